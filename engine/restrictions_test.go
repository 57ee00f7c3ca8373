package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/iceberg-go/table"

	"sqe/catalog"
	"sqe/catalog/rest"
	"sqe/engine"
	"sqe/fault"
	"sqe/identity"
	"sqe/plan"
	"sqe/policy"
)

// hub is a REST catalog that shows the tables of another catalog, to each principal
// with what it demands of that one.
type hub struct {
	*fixture
	lake catalog.Catalog

	mu      sync.Mutex
	demands map[string]string // by "principal table"
	changed map[string]table.Metadata
	commits int
	// plans answers requests for plans: nil, the catalog demands to make none.
	plans func(who string, tasks []map[string]any) any
	asked int // for a plan, and what belongs to it
	// marks has it say "not modified" to whoever sends a mark, and counts that.
	marks      bool
	unmodified int
}

// byName sends the name of the principal as the token.
type byName struct{}

func (byName) Token(ctx context.Context) (rest.Token, error) {
	p, _ := identity.FromContext(ctx)
	return rest.Token{Bearer: p.Name, Scope: p.Name}, nil
}

func (byName) Refused(rest.Token) bool { return false }

func openHub(t *testing.T) *hub {
	t.Helper()
	return openHubWith(t, catalog.RESTOptions{Bound: -1})
}

// openHubWith is openHub with a catalog that is used in another way.
func openHubWith(t *testing.T, options catalog.RESTOptions) *hub {
	t.Helper()
	h := &hub{demands: map[string]string{}, changed: map[string]table.Metadata{}}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	h.fixture = openWith(t, func(o *engine.Options) {
		lake, _ := o.Catalogs.Get("lake")
		h.lake = lake
		client, err := rest.New(rest.Options{URI: server.URL, Tokens: byName{}, HTTP: server.Client(), AllowHTTP: true})
		if err != nil {
			t.Fatal(err)
		}
		// One folder holds the catalog and the warehouse: see openWith.
		dir := filepath.Dir(strings.TrimPrefix(mustTable(t, lake, "customers").Handle.(*catalog.Handle).Table.Location(), "file://"))
		options.Local = filepath.Dir(dir)
		remote, err := catalog.OpenREST("hub", client, options)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = remote.Close() })
		if o.Catalogs, err = catalog.NewRegistry(lake, remote); err != nil {
			t.Fatal(err)
		}
	})
	ann := h.session(t, "ann")
	for _, s := range []string{
		`CREATE TABLE bank.people (id BIGINT NOT NULL, name VARCHAR(100), card VARCHAR(100), born DATE, seen DATETIME(6), points INT, total BIGINT, code VARBINARY(9), salary DECIMAL(9,2), score DOUBLE)`,
		`INSERT INTO bank.people VALUES
			(1, 'alice@example.com', '4111-1111-1111-4444', '2024-07-15', '1969-12-31 23:59:59.999999', 42, 42, x'00FF', 10.50, 1.5),
			(2, 'bob', '123-45-6789', '1969-12-31', '2024-07-15 10:00:00', 0, 0, x'', 20.00, 2.5),
			(3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)`,
	} {
		if _, err := query(ann, s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return h
}

func mustTable(t testing.TB, c catalog.Catalog, name string) *plan.Table {
	t.Helper()
	got, err := c.Table(context.Background(), plan.TableName{Catalog: c.Name(), Namespace: []string{"bank"}, Name: name}, plan.AsOf{}, "")
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// demand sets what the catalog demands of a principal's reads of bank.people.
func (h *hub) demand(who, raw string) { h.demandOf(who, "people", raw) }

func (h *hub) demandOf(who, name, raw string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.demands[who+" "+name] = raw
}

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	say := func(x any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(x)
	}
	missing := func() {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		say(map[string]any{"error": map[string]any{"message": "no", "type": "NoSuchTableException", "code": 404}})
	}
	name, isTable := strings.CutPrefix(r.URL.Path, "/v1/namespaces/bank/tables/")
	name, planning, isPlan := strings.Cut(name, "/")
	who := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case isTable && isPlan && h.plans != nil:
		h.asked++
		say(h.plan(r, who, name, planning))
	case isTable && isPlan:
		missing()
	case r.URL.Path == "/v1/config":
		say(map[string]any{})
	case r.URL.Path == "/v1/namespaces" && r.URL.Query().Get("parent") == "":
		say(map[string]any{"namespaces": [][]string{{"bank"}}})
	case r.URL.Path == "/v1/namespaces":
		say(map[string]any{"namespaces": [][]string{}})
	case r.URL.Path == "/v1/namespaces/bank/tables":
		say(map[string]any{"identifiers": []any{map[string]any{"namespace": []string{"bank"}, "name": "people"}}})
	case r.URL.Path == "/v1/namespaces/bank/views":
		say(map[string]any{"identifiers": []any{}})
	case isTable:
		if h.marks && r.Method == http.MethodGet {
			if r.Header.Get("If-None-Match") != "" {
				h.unmodified++
				w.WriteHeader(http.StatusNotModified)
				return
			}
			w.Header().Set("ETag", `"metadata"`)
		}
		meta := h.changed[name]
		if meta == nil {
			t, err := h.lake.Table(context.Background(), plan.TableName{Catalog: "lake", Namespace: []string{"bank"}, Name: name}, plan.AsOf{}, "")
			if err != nil {
				missing()
				return
			}
			meta = t.Handle.(*catalog.Handle).Table.Metadata()
		}
		if r.Method == http.MethodPost {
			var commit struct {
				Requirements table.Requirements
				Updates      table.Updates
			}
			if err := json.NewDecoder(r.Body).Decode(&commit); err != nil {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			var err error
			if meta, err = table.UpdateTableMetadata(meta, commit.Updates, ""); err != nil {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			h.changed[name] = meta
			h.commits++
		}
		// The same metadata for everybody, at the same place.
		out := map[string]any{"metadata": meta, "metadata-location": fmt.Sprintf("%s/metadata/%05d-x.metadata.json", meta.Location(), h.commits)}
		if h.plans != nil && r.Method == http.MethodGet {
			out["config"] = map[string]string{"scan-planning-mode": "server"}
		}
		if raw := h.demands[who+" "+name]; raw != "" && r.Method == http.MethodGet {
			out["read-restrictions"] = json.RawMessage(raw)
		}
		say(out)
	default:
		missing()
	}
}

// plan answers a request to plan a scan, for a table of the other catalog.
func (h *hub) plan(r *http.Request, who, name, what string) any {
	var request map[string]any
	_ = json.NewDecoder(r.Body).Decode(&request)
	t, err := h.lake.Table(context.Background(), plan.TableName{Catalog: "lake", Namespace: []string{"bank"}, Name: name}, plan.AsOf{}, "")
	if err != nil {
		return nil
	}
	files, err := t.Handle.(*catalog.Handle).Table.Scan().PlanFiles(context.Background())
	if err != nil {
		return nil
	}
	var tasks []map[string]any
	for _, f := range files {
		tasks = append(tasks, map[string]any{"data-file": map[string]any{
			"content": "data", "file-path": f.File.FilePath(), "file-format": "parquet", "spec-id": 0, "partition": []any{},
			"file-size-in-bytes": f.File.FileSizeBytes(), "record-count": f.File.Count(),
			"lower-bounds": map[string]any{"keys": []int{1}, "values": []any{1}},
		}})
	}
	if part, ok := request["plan-task"].(string); ok {
		return map[string]any{"file-scan-tasks": tasks[len(part):]}
	}
	return h.plans(who+" "+what, tasks)
}

// reference is the column of bank.people in a condition.
func reference(id int) string { return fmt.Sprintf(`{"type":"reference","id":%d}`, id) }

func action(name string, id int) string {
	return fmt.Sprintf(`{"required-column-projections":[{"action":%q,"field-id":%d}]}`, name, id)
}

// The ids of the columns of bank.people.
const (
	idColumn = iota + 1
	nameColumn
	cardColumn
	bornColumn
	seenColumn
	pointsColumn
	totalColumn
	codeColumn
	salaryColumn
	scoreColumn
)

const persons = "`hub.bank`.people"

// TestCatalogRestrictions: two people run the same statement over the same table, and
// the catalog restricts one of them.
func TestCatalogRestrictions(t *testing.T) {
	h := openHub(t)
	ann, eve := h.session(t, "ann"), h.session(t, "eve")
	const q = "SELECT id, name FROM " + persons + " ORDER BY id"
	const whole = "1|alice@example.com\n2|bob\n3|NULL"
	must(t, eve, q, whole)
	for filter, want := range map[string]string{
		`{"type":"eq","left":` + reference(nameColumn) + `,"right":"bob"}`:                                                                                              "2|bob",
		`{"type":"eq","term":` + reference(nameColumn) + `,"value":{"type":"literal","value":"bob"}}`:                                                                   "2|bob",
		`{"type":"not-eq","left":` + reference(nameColumn) + `,"right":"bob"}`:                                                                                          "1|alice@example.com\n3|NULL",
		`{"type":"not","child":{"type":"lt","left":` + reference(pointsColumn) + `,"right":10}}`:                                                                        "1|alice@example.com\n3|NULL",
		`{"type":"lt","left":` + reference(pointsColumn) + `,"right":10}`:                                                                                               "2|bob",
		`{"type":"not-in","child":` + reference(nameColumn) + `,"values":["bob"]}`:                                                                                      "1|alice@example.com\n3|NULL",
		`{"type":"eq","left":{"type":"apply","function":{"catalog":"iceberg_functions","identifier":["year"]},"arguments":[` + reference(bornColumn) + `]},"right":54}`: "1|alice@example.com",
		`{"type":"gt","left":` + reference(salaryColumn) + `,"right":"10.50"}`:                                                                                          "2|bob",
		`false`: "",
		`true`:  whole,
	} {
		h.demand("eve", `{"required-row-filter":`+filter+`}`)
		must(t, eve, q, want)
		n := 0
		if want != "" {
			n = strings.Count(want, "\n") + 1
		}
		must(t, eve, "SELECT count(*) FROM "+persons, fmt.Sprint(n))
		must(t, ann, q, whole)
	}
	h.demand("eve", "")
	must(t, eve, q, whole)
}

// TestCatalogActions: each of the nine actions, on every row for the one and on none
// for the other.
func TestCatalogActions(t *testing.T) {
	h := openHub(t)
	ann, eve := h.session(t, "ann"), h.session(t, "eve")
	names := []string{"", "id", "name", "card", "born", "seen", "points", "total", "code", "salary", "score"}
	for _, c := range []struct {
		action string
		column int
		want   string
	}{
		{"mask-alphanum", cardColumn, "nnnn-nnnn-nnnn-nnnn\nnnn-nn-nnnn\nNULL"},
		{"show-first-4", cardColumn, "4111-nnnn-nnnn-nnnn\n123-nn-nnnn\nNULL"},
		{"show-last-4", cardColumn, "nnnn-nnnn-nnnn-4444\nnnn-nn-6789\nNULL"},
		{"replace-with-null", cardColumn, "NULL\nNULL\nNULL"},
		{"replace-with-null", scoreColumn, "NULL\nNULL\nNULL"},
		{"mask-to-fixed-value", cardColumn, "XXXXXXXX\nXXXXXXXX\nXXXXXXXX"},
		{"mask-to-fixed-value", idColumn, "0\n0\n0"},
		{"mask-to-fixed-value", salaryColumn, "0\n0\n0"},
		{"mask-to-fixed-value", bornColumn, "1970-01-01\n1970-01-01\n1970-01-01"},
		{"truncate-to-year", bornColumn, "2024-01-01\n1969-01-01\nNULL"},
		{"truncate-to-month", bornColumn, "2024-07-01\n1969-12-01\nNULL"},
		{"truncate-to-month", seenColumn, "1969-12-01T00:00:00\n2024-07-01T00:00:00\nNULL"},
		{"sha-256-global", nameColumn, "ff8d9819fc0e12bf0d24892e45987e249a28dce836a85cad60e28eaaa8c6d976\n81b637d8fcd2c6da6359e6963113a1170de795e4b725b84d1e0b4cfd9ec58ce9\nNULL"},
		{"sha-256-global", pointsColumn, "-290282264\n-1738457121\nNULL"},
		{"sha-256-global", totalColumn, "-4111196313959201555\n8794265229978523055\nNULL"},
	} {
		column := names[c.column]
		q := "SELECT " + column + " FROM " + persons
		h.demand("eve", "")
		raw, err := query(eve, q)
		if err != nil {
			t.Fatal(err)
		}
		h.demand("eve", action(c.action, c.column))
		if c.want == raw {
			t.Fatalf("%s on %s shows nothing", c.action, column)
		}
		got, err := query(eve, q)
		if err != nil || got != c.want {
			t.Errorf("%s of %s: %v\n%s\nwant\n%s", c.action, column, err, got, c.want)
		}
		must(t, ann, q, raw)
		// What is masked is masked for conditions, too.
		must(t, eve, "SELECT count(*) FROM "+persons+" WHERE card = '4111-1111-1111-4444'", map[bool]string{true: "0", false: "1"}[c.column == cardColumn])
	}
	h.demand("eve", action("sha-256-global", codeColumn))
	must(t, eve, "SELECT HEX(code) FROM "+persons, "06EB7D6A69EE19E5FBDF749018D3D2ABFA04BCBD1365DB312EB86DC7169389B8\nE3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855\nNULL")

	// A salt for each statement: equal within one, different between two.
	h.demand("eve", action("sha-256-query-local", nameColumn))
	const hashed = "SELECT name FROM " + persons + " WHERE id = 1"
	first, err := query(eve, hashed)
	if err != nil || len(first) != 64 {
		t.Fatalf("%q: %v", first, err)
	}
	if second, err := query(eve, hashed); err != nil || second == first || len(second) != 64 {
		t.Errorf("two statements: %s and %s, %v", first, second, err)
	}
	must(t, eve, "SELECT count(*) FROM "+persons+" a JOIN "+persons+" b ON a.name = b.name", "2")
}

// TestCatalogUnknown: what is not understood fails the statement; never raw values,
// never fewer rows.
func TestCatalogUnknown(t *testing.T) {
	h := openHub(t)
	ann, eve := h.session(t, "ann"), h.session(t, "eve")
	for _, raw := range []string{
		`{"required-row-filter":{"type":"between","left":` + reference(1) + `,"right":5}}`,
		`{"required-row-filter":{"type":"eq","left":{"type":"reference","name":"name"},"right":"bob"}}`,
		`{"required-row-filter":{"type":"eq","left":` + reference(99) + `,"right":5}}`,
		`{"required-row-filter":{"type":"eq","left":` + reference(nameColumn) + `,"right":5}}`,
		`{"required-row-filter":{"type":"eq","left":` + reference(nameColumn) + `,"right":null}}`,
		`{"required-something":true}`, `[]`, `"x"`,
		action("mask-alphanum", 99),
		`{"required-column-projections":[{"action":"mask-alphanum","field-id":2},{"action":"show-last-4","field-id":2}]}`,
	} {
		h.demand("eve", raw)
		for _, q := range []string{"SELECT * FROM " + persons, "SELECT count(*) FROM " + persons, "SELECT 1 FROM " + persons + " LIMIT 0"} {
			err := refused(t, eve, q, fault.PolicyBroken)
			if err != nil && strings.Contains(err.Error(), "bob") {
				t.Errorf("%v tells a value", err)
			}
		}
		must(t, ann, "SELECT count(*) FROM "+persons, "3")
	}
	for _, raw := range []string{
		action("mask-to-default", nameColumn), action("sha-256-global", salaryColumn), action("truncate-to-year", nameColumn),
		action("mask-alphanum", pointsColumn), action("replace-with-null", idColumn),
	} {
		h.demand("eve", raw)
		column := map[bool]string{true: "name", false: "salary"}[strings.Contains(raw, `"field-id":2`)]
		switch {
		case strings.Contains(raw, `"field-id":6`):
			column = "points"
		case strings.Contains(raw, `"field-id":1}`):
			column = "id"
		}
		refused(t, eve, "SELECT * FROM "+persons, fault.Withheld)
		refused(t, eve, "SELECT "+column+" FROM "+persons, fault.Withheld)
		refused(t, eve, "SELECT 1 FROM "+persons+" WHERE "+column+" IS NULL", fault.Withheld)
		must(t, eve, "SELECT count(card) FROM "+persons, "2") // a column that is not restricted
		must(t, ann, "SELECT count(*) FROM (SELECT * FROM "+persons+") p", "3")
	}
}

// TestCatalogNested: actions on fields inside a struct act on their values; what is
// inside a list or map fails the statements that read that column, and no others.
func TestCatalogNested(t *testing.T) {
	h := openHub(t)
	ann, eve := h.session(t, "ann"), h.session(t, "eve")
	for _, s := range []string{
		`CREATE TABLE bank.nested (id BIGINT, person STRUCT<ssn: STRING, home: STRUCT<street: STRING, no: INT>>, tags ARRAY<STRUCT<tag: STRING>>, marks MAP<STRING, STRING>)`,
		`INSERT INTO bank.nested VALUES
			(1, '{"ssn": "123-45-6789", "home": {"street": "Elm 5", "no": 42}}', '[{"tag": "secret"}]', '{"k": "secret"}'),
			(2, '{"ssn": null, "home": null}', NULL, NULL), (3, NULL, NULL, NULL)`,
	} {
		if _, err := query(ann, s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	ids := map[string]int{}
	var walk func(prefix string, fields []plan.Field)
	walk = func(prefix string, fields []plan.Field) {
		for _, f := range fields {
			ids[prefix+f.Name] = f.ID
			walk(prefix+f.Name+".", f.Children)
		}
	}
	walk("", mustTable(t, h.lake, "nested").Fields)
	const nested = "`hub.bank`.nested"
	q := "SELECT person FROM " + nested + " ORDER BY id"
	whole, err := query(ann, q)
	if err != nil || !strings.Contains(whole, "123-45-6789") {
		t.Fatalf("%s %v", whole, err)
	}
	for _, x := range []struct{ field, action, statement, want string }{
		{"person.ssn", "mask-alphanum", "SELECT person->>'$.ssn' FROM " + nested + " ORDER BY id", "nnn-nn-nnnn\nnull\nNULL"},
		{"person.ssn", "show-last-4", "SELECT person->>'$.ssn', person->>'$.home.no' FROM " + nested + " WHERE id = 1", "nnn-nn-6789|42"},
		{"person.ssn", "replace-with-null", "SELECT person->>'$.ssn', person->>'$.home.street' FROM " + nested + " WHERE id = 1", "null|Elm 5"},
		{"person.home.no", "sha-256-global", "SELECT person->>'$.home.no' FROM " + nested + " ORDER BY id", "-290282264\nNULL\nNULL"},
		{"person.home.no", "mask-to-fixed-value", "SELECT person->>'$.home.no' FROM " + nested + " ORDER BY id", "0\nNULL\nNULL"},
		{"person.home", "mask-to-fixed-value", "SELECT person->>'$.home.street' FROM " + nested + " ORDER BY id", "XXXXXXXX\nXXXXXXXX\nNULL"},
		{"person.home", "replace-with-null", "SELECT person->>'$.home', person->>'$.ssn' FROM " + nested + " WHERE id = 1", "null|123-45-6789"},
		{"person", "replace-with-null", "SELECT count(person), count(tags) FROM " + nested, "0|1"},
		{"tags", "mask-to-fixed-value", "SELECT tags FROM " + nested + " ORDER BY id", "[]\n[]\n[]"},
		{"marks", "mask-to-fixed-value", "SELECT marks FROM " + nested + " ORDER BY id", "{}\n{}\n{}"},
	} {
		h.demandOf("eve", "nested", action(x.action, ids[x.field]))
		must(t, eve, x.statement, x.want)
		// No way to the raw value: as a condition, by another column, in a change.
		must(t, eve, "SELECT count(*) FROM "+nested+" WHERE person->>'$.ssn' = '123-45-6789'", map[bool]string{true: "0", false: "1"}[x.field == "person.ssn" || x.field == "person"])
		must(t, ann, q, whole)
	}
	for _, field := range []string{"tags.element", "tags.element.tag", "marks.value"} {
		column := strings.Split(field, ".")[0]
		h.demandOf("eve", "nested", action("replace-with-null", ids[field]))
		refused(t, eve, "SELECT "+column+" FROM "+nested, fault.Withheld)
		refused(t, eve, "SELECT * FROM "+nested, fault.Withheld)
		refused(t, eve, "SELECT id FROM "+nested+" WHERE "+column+" IS NULL", fault.Withheld)
		refused(t, eve, "SELECT 1 FROM (SELECT "+column+" FROM "+nested+") x", fault.Withheld)
		refused(t, eve, "SELECT count("+column+") FROM "+nested, fault.Withheld)
		if got, err := query(eve, q); err != nil || got != whole {
			t.Errorf("%s: another column: %v %s", field, err, got)
		}
		must(t, eve, "SELECT count(*) FROM "+nested, "3")
		if err := refused(t, ann, "SELECT nothing FROM "+nested, fault.NoColumn); err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%v tells a value", err)
		}
	}
}

// TestCatalogAndPolicies: the catalog's demand and the policies of a source act
// together; none lifts the other.
func TestCatalogAndPolicies(t *testing.T) {
	h := openHub(t)
	eve := h.session(t, "eve")
	h.source.set(func(s *state) {
		s.version = "2"
		s.restrict = func(_ identity.Principal, t *plan.Table) *policy.Restrictions {
			r := &policy.Restrictions{Complete: true, Columns: map[int]policy.ColumnRule{}}
			if t.Name.Catalog == "hub" {
				r.Filters = []policy.RowFilter{{SQL: "id < 3", Origin: policy.Origin{Source: "test", Policy: "few"}}}
				r.Columns[nameColumn] = policy.ColumnRule{Kind: policy.Mask, Action: "MASK_NONE"}
				r.Columns[cardColumn] = policy.ColumnRule{Kind: policy.Mask, Action: "MASK_SHOW_LAST_4"}
			}
			return r
		}
	})
	h.demand("eve", `{"required-row-filter":{"type":"not-eq","left":`+reference(nameColumn)+`,"right":"bob"},"required-column-projections":[
		{"action":"show-first-4","field-id":2},{"action":"show-last-4","field-id":3}]}`)
	must(t, eve, "SELECT id, name, card FROM "+persons, "1|alicx@xxxxxxx.xxx|NULL")
	got, err := query(eve, "EXPLAIN POLICY SELECT name FROM "+persons)
	if err != nil || !strings.Contains(got, "rows are filtered") || !strings.Contains(got, "column is masked") || strings.Contains(got, "bob") {
		t.Errorf("for a user: %v\n%s", err, got)
	}
	// Who may see policies is told where each comes from.
	got, err = query(h.as(t, identity.Principal{Name: "eve", Admin: true}), "EXPLAIN POLICY SELECT name FROM "+persons)
	if err != nil || strings.Count(got, "read-restrictions (source hub)") != 2 || !strings.Contains(got, "few (source test)") || !strings.Contains(got, "iceberg:show-first-4") {
		t.Errorf("for an administrator: %v\n%s", err, got)
	}
	// What it demands of somebody else nobody is told.
	got, err = query(h.as(t, identity.Principal{Name: "ann", Admin: true}), "EXPLAIN POLICY AS USER 'eve' SELECT name FROM "+persons)
	if err != nil || strings.Contains(got, "read-restrictions (") || !strings.Contains(got, "catalog hub decides with the token of eve, which is not simulated") {
		t.Errorf("about somebody else: %v\n%s", err, got)
	}
	must(t, eve, "SELECT id, name, card FROM "+persons, "1|alicx@xxxxxxx.xxx|NULL")
	if e := h.journal.last(); len(e.Policies) < 3 {
		t.Errorf("the audit event does not say what acted: %+v", e.Policies)
	}
}

// TestCatalogTimeTravel: what is demanded of a field id holds for it under every name
// that it bore, and branches and metadata are no way round.
func TestCatalogTimeTravel(t *testing.T) {
	h := openHub(t)
	ann, eve := h.session(t, "ann"), h.session(t, "eve")
	old := mustTable(t, h.lake, "people").SnapshotID
	for _, s := range []string{
		"ALTER TABLE bank.people RENAME COLUMN card TO plastic", "ALTER TABLE bank.people ADD COLUMN later VARCHAR(10)", "INSERT INTO bank.people (id) VALUES (4)",
	} {
		if _, err := query(ann, s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	h.demand("eve", `{"required-row-filter":{"type":"lt","left":`+reference(idColumn)+`,"right":3},"required-column-projections":[
		{"action":"show-last-4","field-id":3},{"action":"mask-to-fixed-value","field-id":11}]}`)
	const masked = "nnnn-nnnn-nnnn-4444\nnnn-nn-6789"
	must(t, eve, "SELECT plastic FROM "+persons+" ORDER BY id", masked)
	at := fmt.Sprintf(" FOR SYSTEM_VERSION AS OF %d", old)
	must(t, eve, "SELECT card FROM "+persons+at+" ORDER BY id", masked)
	must(t, ann, "SELECT count(card) FROM "+persons+at, "2")
	for _, kind := range []string{"files", "snapshots", "partitions"} {
		refused(t, eve, "SELECT * FROM `hub.bank`.`people$"+kind+"`", fault.Denied)
	}
	if got, err := query(ann, "SELECT count(*) > 0 FROM `hub.bank`.`people$files`"); err != nil || got != "true" {
		t.Errorf("for whom nothing is restricted: %s, %v", got, err)
	}
	// A filter on a column that the old schema lacks cannot be evaluated there. Nobody who
	// may not list versions is told whether that is the reason or that there is none.
	h.demand("eve", `{"required-row-filter":{"type":"is-null","child":`+reference(11)+`}}`)
	must(t, eve, "SELECT count(*) FROM "+persons, "4")
	there := refused(t, eve, "SELECT card FROM "+persons+at, fault.BadStatement)
	if none := refused(t, eve, "SELECT card FROM "+persons+" FOR SYSTEM_VERSION AS OF 17", fault.BadStatement); there.Error() != none.Error() || !fault.Is(errors.Unwrap(there), fault.PolicyBroken) {
		t.Errorf("%v, and of one that is not there %v", there, none)
	}
}

// TestCatalogDefiner: a policy does not read with its own rights what the catalog
// restricts for the principal.
func TestCatalogDefiner(t *testing.T) {
	h := openHub(t)
	ann, eve := h.session(t, "ann"), h.session(t, "eve")
	h.source.set(func(s *state) {
		s.version = "2"
		s.restrict = func(_ identity.Principal, t *plan.Table) *policy.Restrictions {
			r := &policy.Restrictions{Complete: true}
			if t.Name.Name == "customers" {
				r.Filters = []policy.RowFilter{{SQL: "cust_id IN (SELECT id FROM `hub.bank`.people)"}}
			}
			return r
		}
	})
	must(t, eve, "SELECT count(*) FROM bank.customers", "3")
	h.demand("eve", `{"required-row-filter":{"type":"lt","left":`+reference(idColumn)+`,"right":3}}`)
	refused(t, eve, "SELECT count(*) FROM bank.customers", fault.PolicyBroken)
	must(t, ann, "SELECT count(*) FROM bank.customers", "3")
}

// TestCatalogWrites: who changes a table changes rows that the catalog lets them see,
// and makes none that it hides.
func TestCatalogWrites(t *testing.T) {
	h := openHub(t)
	ann, eve := h.session(t, "ann"), h.session(t, "eve")
	h.demand("eve", `{"required-row-filter":{"type":"lt","left":`+reference(idColumn)+`,"right":3},"required-column-projections":[{"action":"show-last-4","field-id":3}]}`)
	for _, q := range []string{
		"INSERT INTO " + persons + " (id) VALUES (7)", "UPDATE " + persons + " SET id = 9 WHERE id = 1", "UPDATE " + persons + " SET card = card",
	} {
		if _, err := query(eve, q); err == nil {
			t.Errorf("%s was done", q)
		}
	}
	must(t, eve, "UPDATE "+persons+" SET points = 77", "")
	must(t, eve, "INSERT INTO "+persons+" (id, name) VALUES (0, 'new')", "")
	must(t, ann, "SELECT id, points, card FROM "+persons+" ORDER BY id", "0|NULL|NULL\n1|77|4111-1111-1111-4444\n2|77|123-45-6789\n3|NULL|NULL")
	must(t, eve, "DELETE FROM "+persons, "")
	must(t, ann, "SELECT id FROM "+persons, "3")
}

// TestCatalogMemo: what is demanded of one is not remembered for another, nor for the
// same one once it changes.
func TestCatalogMemo(t *testing.T) {
	h := openHub(t)
	const q = "SELECT count(*) FROM " + persons
	var sessions []*engine.Session
	for range 3 {
		sessions = append(sessions, h.session(t, "eve"), h.session(t, "ann"))
	}
	p, err := sessions[0].Prepare(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for n := range 6 {
		raw, want := "", "3"
		if n%2 == 1 {
			raw, want = fmt.Sprintf(`{"required-row-filter":{"type":"lt-eq","left":%s,"right":%d}}`, reference(idColumn), n%3), fmt.Sprint(n%3)
		}
		h.demand("eve", raw)
		for i, s := range sessions {
			must(t, s, q, map[bool]string{true: want, false: "3"}[i%2 == 0])
		}
		res, err := sessions[0].Execute(context.Background(), p, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := print(res); err != nil || got != want {
			t.Errorf("prepared: %s (%v), want %s", got, err, want)
		}
		if time.Now().After(deadline) {
			t.Fatal("too slow")
		}
	}
}

// TestCatalogPlans: where the catalog demands to plan scans, its plan says which files
// are read, for the principal that it was made for, and its demands act all the same.
func TestCatalogPlans(t *testing.T) {
	h := openHub(t)
	ann, eve := h.session(t, "ann"), h.session(t, "eve")
	if _, err := query(ann, "INSERT INTO bank.people (id, name) VALUES (4, 'dora')"); err != nil {
		t.Fatal(err)
	}
	const q = "SELECT id FROM " + persons + " ORDER BY id"
	done := func(tasks []map[string]any) map[string]any {
		return map[string]any{"status": "completed", "plan-id": "1", "file-scan-tasks": tasks}
	}
	// eve's plan leaves out the file with the row 4, which may be the first or second.
	with := func(row string) func(string, []map[string]any) any {
		return func(who string, tasks []map[string]any) any {
			if who == "ann plan" {
				return done(tasks)
			}
			for _, task := range tasks {
				if n := task["data-file"].(map[string]any)["record-count"].(int64); (n == 1) == (row == "4") {
					return done([]map[string]any{task})
				}
			}
			return nil
		}
	}
	h.plans = with("1, 2, 3")
	must(t, ann, q, "1\n2\n3\n4")
	must(t, eve, q, "1\n2\n3")
	h.plans = with("4")
	must(t, eve, q, "4")
	must(t, ann, q, "1\n2\n3\n4")
	h.demand("eve", `{"required-row-filter":{"type":"gt","left":`+reference(idColumn)+`,"right":1},"required-column-projections":[{"action":"mask-alphanum","field-id":2}]}`)
	h.plans = with("1, 2, 3")
	must(t, eve, "SELECT id, name FROM "+persons+" ORDER BY id", "2|xxx\n3|NULL")
	must(t, eve, "SELECT count(*) FROM "+persons, "2")

	// In parts, and later.
	h.demand("eve", "")
	h.plans = func(who string, tasks []map[string]any) any {
		if strings.HasSuffix(who, " plan") {
			return map[string]any{"status": "submitted", "plan-id": "a"}
		}
		out := done(tasks[:1])
		out["plan-tasks"] = []string{"x", "x"}
		return out
	}
	h.asked = 0
	must(t, eve, q, "1\n2\n3\n4")
	if h.asked != 3 {
		t.Errorf("the catalog was asked %d times, not 3", h.asked)
	}

	// What is not understood is no answer.
	file := func(change func(map[string]any)) func(string, []map[string]any) any {
		return func(_ string, tasks []map[string]any) any {
			change(tasks[0])
			return done(tasks)
		}
	}
	for name, plans := range map[string]func(string, []map[string]any) any{
		"failed":    func(string, []map[string]any) any { return map[string]any{"status": "failed"} },
		"cancelled": func(string, []map[string]any) any { return map[string]any{"status": "cancelled"} },
		"empty":     func(string, []map[string]any) any { return map[string]any{} },
		"a condition that nobody asked for": file(func(t map[string]any) {
			t["residual-filter"] = map[string]any{"type": "eq", "term": "id", "value": 1}
		}),
		"a delete file that is not there": file(func(t map[string]any) { t["delete-file-references"] = []int{0} }),
		"another specification":           file(func(t map[string]any) { t["data-file"].(map[string]any)["spec-id"] = 7 }),
		"encrypted":                       file(func(t map[string]any) { t["data-file"].(map[string]any)["key-metadata"] = "00" }),
		"no data file":                    file(func(t map[string]any) { delete(t, "data-file") }),
		"a file elsewhere":                file(func(t map[string]any) { t["data-file"].(map[string]any)["file-path"] = "file:///etc/passwd" }),
	} {
		h.plans = plans
		if got, err := query(eve, q); err == nil {
			t.Errorf("%s gave %q", name, got)
		}
	}
	h.plans = with("1, 2, 3")
	refused(t, eve, "DELETE FROM "+persons, fault.Denied)
	refused(t, eve, "SELECT * FROM `hub.bank`.`people$files`", fault.Denied)
	must(t, eve, q, "1\n2\n3")
}
