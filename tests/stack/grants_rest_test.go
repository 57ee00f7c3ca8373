//go:build e2e

package stack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sqe/tests/sqetest"
)

type object = map[string]any

// deed is something that somebody does to a table, a view or a schema, by a statement
// and by a request to the catalog itself.
type deed struct {
	name string
	// statement has {object}, its {schema}, and {new} for a name that is new each time.
	statement string
	request   func(t testing.TB, schema, name, fresh string) request
}

// request is one to the catalog, and its answers.
type request struct {
	method, path string
	body         any
	delegated    bool   // it asks for access to the data too
	status       int    // when it is done
	has          string // in that answer
	operation    string // that is named when it is refused
}

func tableAt(schema, name string) string { return inLake("/namespaces/" + schema + "/tables/" + name) }

// The deeds.
var (
	reading = deed{"read", "SELECT COUNT(*) FROM {object}", func(_ testing.TB, schema, name, _ string) request {
		return request{http.MethodGet, tableAt(schema, name), nil, true, http.StatusOK, `"metadata-location"`, "LOAD_TABLE_WITH_READ_DELEGATION"}
	}}
	inserting = deed{"insert", "INSERT INTO {object} (id, region) VALUES (1, 'EU')", func(t testing.TB, schema, name, _ string) request {
		was := metadata(t, "alice", schema, name)
		last := was.Snapshots[len(was.Snapshots)-1]
		current := last["snapshot-id"]
		next := object{}
		for k, v := range last {
			next[k] = v
		}
		// The rows of the current snapshot once more, in a snapshot of its own.
		id := time.Now().UnixNano() / 1000
		next["snapshot-id"], next["parent-snapshot-id"], next["timestamp-ms"] = id, current, time.Now().UnixMilli()
		next["sequence-number"] = was.Sequence + 1
		delete(next, "first-row-id")
		delete(next, "added-rows")
		return request{http.MethodPost, tableAt(schema, name), object{
			"requirements": []object{{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": current}},
			"updates": []object{
				{"action": "add-snapshot", "snapshot": next},
				{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": id},
			},
		}, false, http.StatusOK, fmt.Sprintf(`"current-snapshot-id":%d`, id), "ADD_TABLE_SNAPSHOT"}
	}}
	altering = deed{"alter", "ALTER TABLE {object} ADD COLUMN {new} VARCHAR(10)", func(_ testing.TB, schema, name, fresh string) request {
		return update(schema, name, "SET_TABLE_PROPERTIES", fresh, object{"action": "set-properties", "updates": object{"note": fresh}})
	}}
	dropping = deed{"drop", "DROP TABLE {object}", func(_ testing.TB, schema, name, _ string) request {
		return request{http.MethodDelete, tableAt(schema, name), nil, false, http.StatusNoContent, "", "DROP_TABLE_WITHOUT_PURGE"}
	}}
	creating = deed{"create", "CREATE TABLE {object}_{new} (id BIGINT)", func(_ testing.TB, schema, name, fresh string) request {
		return request{http.MethodPost, inLake("/namespaces/" + schema + "/tables"), object{
			"name": name + "_r" + fresh, "schema": object{"type": "struct", "fields": []object{{"id": 1, "name": "id", "required": false, "type": "long"}}},
		}, false, http.StatusOK, `"metadata-location"`, "CREATE_TABLE_DIRECT"}
	}}
	renaming = deed{"rename", "ALTER TABLE {object} RENAME TO {object}_{new}", func(_ testing.TB, schema, name, fresh string) request {
		id := func(n string) object { return object{"namespace": []string{schema}, "name": n} }
		return request{http.MethodPost, inLake("/tables/rename"), object{"source": id(name), "destination": id(name + "_r" + fresh)}, false, http.StatusNoContent, "", "RENAME_TABLE"}
	}}
	viewing = deed{"read the view", "SELECT * FROM {object}", func(_ testing.TB, schema, name, _ string) request {
		return request{http.MethodGet, inLake("/namespaces/" + schema + "/views/" + name), nil, false, http.StatusOK, `"representations"`, "LOAD_VIEW"}
	}}
	droppingView = deed{"drop the view", "DROP VIEW {object}", func(_ testing.TB, schema, name, _ string) request {
		return request{http.MethodDelete, inLake("/namespaces/" + schema + "/views/" + name), nil, false, http.StatusNoContent, "", "DROP_VIEW"}
	}}
	creatingView = deed{"create a view", "CREATE VIEW {object}_v{new} AS SELECT id FROM {object}", func(_ testing.TB, schema, name, fresh string) request {
		return request{http.MethodPost, inLake("/namespaces/" + schema + "/views"), object{
			"name": name + "_w" + fresh, "properties": object{}, "schema": object{"type": "struct", "schema-id": 0, "fields": []object{{"id": 1, "name": "id", "required": false, "type": "long"}}},
			"view-version": object{
				"version-id": 1, "timestamp-ms": 1, "schema-id": 0, "summary": object{}, "default-namespace": []string{schema},
				"representations": []object{{"type": "sql", "sql": "SELECT id FROM " + schema + "." + name, "dialect": "spark"}},
			},
		}, false, http.StatusOK, `"representations"`, "CREATE_VIEW"}
	}}
	listing = deed{"list the tables", "SHOW TABLES IN {schema}", func(_ testing.TB, schema, _, _ string) request {
		return request{http.MethodGet, inLake("/namespaces/" + schema + "/tables"), nil, false, http.StatusOK, `"identifiers"`, "LIST_TABLES"}
	}}
	entering = deed{"find the schema", "USE {schema}", func(_ testing.TB, schema, _, _ string) request {
		return request{http.MethodGet, inLake("/namespaces/" + schema), nil, false, http.StatusOK, `"namespace":["` + schema + `"]`, "LOAD_NAMESPACE_METADATA"}
	}}
	founding = deed{"create a schema", "CREATE DATABASE {schema}_{new}", func(_ testing.TB, schema, _, fresh string) request {
		return request{http.MethodPost, inLake("/namespaces"), object{"namespace": []string{schema + "_r" + fresh}, "properties": object{}}, false, http.StatusOK, schema + "_r" + fresh, "CREATE_NAMESPACE"}
	}}
)

func update(schema, name, operation, has string, updates ...object) request {
	return request{http.MethodPost, tableAt(schema, name), object{"requirements": []object{}, "updates": updates}, false, http.StatusOK, has, operation}
}

// loaded is what tests look at in a table's metadata.
type loaded struct {
	Snapshots []object `json:"snapshots"`
	Current   int64    `json:"current-snapshot-id"`
	Sequence  int64    `json:"last-sequence-number"`
	Location  string   `json:"location"`
	Schemas   []struct {
		Fields []struct {
			Name string `json:"name"`
		} `json:"fields"`
	} `json:"schemas"`
}

// metadata is that of a table, as the catalog gives it to somebody who may read it.
func metadata(t testing.TB, who, schema, name string) loaded {
	t.Helper()
	status, text := sent(t, who, request{method: http.MethodGet, path: tableAt(schema, name), delegated: true})
	var answer struct{ Metadata json.RawMessage }
	var out loaded
	d := json.NewDecoder(strings.NewReader(text))
	if err := d.Decode(&answer); err != nil || status != http.StatusOK {
		t.Fatalf("%s: %s.%s: %d %.300s", who, schema, name, status, text)
	}
	d = json.NewDecoder(bytes.NewReader(answer.Metadata))
	d.UseNumber() // ids of snapshots are long
	if err := d.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// sent sends a request with somebody's token.
func sent(t testing.TB, who string, r request) (int, string) {
	t.Helper()
	var in io.Reader
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			t.Fatal(err)
		}
		in = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(within(t, patience), r.method, lake.Address+r.path, in)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+people.Token(t, who))
	if r.delegated {
		req.Header.Set("X-Iceberg-Access-Delegation", "vended-credentials")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// forbidden says whether an answer refuses an operation to somebody: "" or what is
// wrong with it.
func forbidden(status int, text, who, operation string) string {
	var answer struct {
		Error struct {
			Message, Type string
			Code          int
		}
	}
	err := json.Unmarshal([]byte(text), &answer)
	e := answer.Error
	if status != http.StatusForbidden || err != nil || e.Type != "ForbiddenException" || e.Code != http.StatusForbidden ||
		!strings.Contains(e.Message, "'"+who+"'") || !strings.Contains(e.Message, "'"+operation+"'") {
		return fmt.Sprintf("%d %.300s: not a refusal of %s to %s", status, text, operation, who)
	}
	return ""
}

// outcome is what is expected of a deed.
type outcome int

const (
	may   outcome = iota // as soon as the catalog has read the policies
	never                // not once: nothing ever allowed it
	ended                // no more, as soon as the catalog has read the policies
)

// evidence is a line of the table of rows.
type evidence struct {
	row            int
	who, what      string
	statement, way string // the answers of SQE and of the catalog
	allowed        bool
}

// proven is what the tests of this run have shown.
var proven struct {
	sync.Mutex
	lines []evidence
	fresh int
}

// row is one of the table of live tests of the specification of access control.
type row struct {
	testing.TB
	number int
}

// both does something as somebody, by the catalog and by SQE, and holds both to the
// outcome.
func (r row) both(who string, d deed, table string, want outcome) {
	r.Helper()
	schema, name, _ := strings.Cut(table, ".")
	proven.Lock()
	proven.fresh++
	fresh := fmt.Sprint("n", proven.fresh)
	proven.Unlock()
	statement := strings.NewReplacer("{object}", table, "{schema}", schema, "{new}", fresh).Replace(d.statement)
	line := evidence{row: r.number, who: who, what: d.name + " " + table, allowed: want == may}
	var a sqetest.Answer
	bySQE := func() {
		r.Helper()
		for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			if a = as(r, who, statement); (a.Err == nil) == (want == may) {
				break
			} else if want == never || time.Since(start) > patience {
				r.Fatalf("row %d: %s: %s\n%s", r.number, who, statement, a.Said())
			}
		}
		if n := a.Number(); a.Err != nil && !slices.Contains([]uint16{1044, 1049, 1142, 1146}, n) {
			r.Errorf("row %d: %s: %s: %d %s: not a refusal", r.number, who, statement, n, a.Said())
		}
		if line.statement = strings.ReplaceAll(a.Said(), "\n", " / "); a.Err == nil && len(a.Rows) == 0 {
			line.statement = "done"
		}
	}
	byREST := func() {
		r.Helper()
		for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			q := d.request(r, schema, name, fresh)
			status, text := sent(r, who, q)
			wrong := forbidden(status, text, who, q.operation)
			if want == may {
				wrong = ""
				if status != q.status || !strings.Contains(strings.ReplaceAll(text, " ", ""), q.has) {
					wrong = fmt.Sprintf("%d %.300s: want %d and %s", status, text, q.status, q.has)
				}
			}
			if wrong == "" {
				if line.way = fmt.Sprint(status); want != may {
					line.way += " " + q.operation
				}
				return
			}
			if want == never || time.Since(start) > patience {
				r.Fatalf("row %d: %s: %s %s: %s", r.number, who, q.method, q.path, wrong)
			}
		}
	}
	// SQE knows at once, and the catalog with its next poll: what SQE permits waits for
	// the catalog, too.
	if want == may {
		byREST()
		bySQE()
	} else {
		bySQE()
		byREST()
	}
	proven.Lock()
	defer proven.Unlock()
	proven.lines = append(proven.lines, line)
	r.Logf("row %2d | %s: %s | SQE: %.70s | REST: %s", line.row, line.who, line.what, line.statement, line.way)
}

// call asks the policy server as its administrator.
func call(t testing.TB, method, path string, body any) []byte {
	t.Helper()
	out, status := called(t, method, path, body)
	if status/100 != 2 {
		t.Fatalf("%s %s: %d %.300s", method, path, status, out)
	}
	return out
}

func called(t testing.TB, method, path string, body any) ([]byte, int) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(within(t, patience), method, store+"/"+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(admin.name, admin.password)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return out, resp.StatusCode
}

// policies are those of the service of the catalog on a schema and what is in it, and
// with "" all.
func policies(t testing.TB, schema string) []object {
	t.Helper()
	var all []object
	if err := json.Unmarshal(call(t, http.MethodGet, "public/v2/api/service/polaris/policy?pageSize=1000", nil), &all); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(p object) bool {
		return schema != "" && !slices.Contains(onLevel(p, "namespace"), schema)
	})
}

// onLevel are the values of a policy for a level.
func onLevel(p object, level string) []string {
	r, _ := p["resources"].(object)[level].(object)
	var out []string
	if values, ok := r["values"].([]any); ok {
		for _, v := range values {
			out = append(out, fmt.Sprint(v))
		}
	}
	return out
}

// given are the access types that policies on exactly a catalog, a schema or a table
// give to a principal; list is policyItems or denyPolicyItems, kind is users, groups or
// roles.
func given(t testing.TB, list, kind, who string, at ...string) string {
	t.Helper()
	var out []string
	for _, p := range policies(t, "") {
		on := len(p["resources"].(object)) == len(at)+1
		for i, v := range at {
			on = on && slices.Equal(onLevel(p, []string{"catalog", "namespace", "table"}[i]), []string{v})
		}
		items, _ := p[list].([]any)
		for _, i := range items {
			names, _ := i.(object)[kind].([]any)
			if !on || !slices.Contains(names, any(who)) {
				continue
			}
			for _, a := range i.(object)["accesses"].([]any) {
				out = append(out, a.(object)["type"].(string))
			}
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), " ")
}

// caughtUp waits until the catalog has read what was written up to now. table is one
// that ext_auditor has nothing on.
func caughtUp(t testing.TB, table string) {
	t.Helper()
	schema, name, _ := strings.Cut(table, ".")
	one := func(v string) object { return object{"values": []string{v}} }
	remove := put(t, object{
		"service": "polaris", "name": "read by now " + table, "policyType": 0, "isEnabled": true,
		"resources":   object{"root": one("POLARIS"), "catalog": one("lake"), "namespace": one(schema), "table": one(name)},
		"policyItems": []any{object{"users": []string{"ext_auditor"}, "accesses": []any{object{"type": "table-properties-read", "isAllowed": true}}}},
	})
	defer remove()
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		status, text := sent(t, "ext_auditor", request{method: http.MethodGet, path: tableAt(schema, name)})
		if status == http.StatusOK {
			return
		}
		if time.Since(start) > patience {
			t.Fatalf("the catalog has not read a policy within %s: %d %s", patience, status, text)
		}
	}
}
