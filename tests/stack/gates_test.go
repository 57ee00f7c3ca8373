//go:build e2e

package stack

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sqe/tests/sqetest"
)

const hidden = "ERROR: Table '%s' doesn't exist, or you may not use it"

// schema makes a database with tables of one row each, to which alice may write and
// which nobody else may see.
func schema(t testing.TB, name string, tables ...string) {
	t.Helper()
	does(t, "carol", "GRANT CREATE NAMESPACE ON CATALOG lake TO USER alice")
	does(t, "alice", "CREATE DATABASE "+name)
	does(t, "carol", "GRANT CREATE, CREATE VIEW ON SCHEMA "+name+" TO USER alice")
	does(t, "carol", "GRANT INSERT ON ALL TABLES IN SCHEMA "+name+" TO USER alice")
	for _, table := range tables {
		does(t, "alice", "CREATE TABLE "+name+"."+table+" (id BIGINT, region VARCHAR(10))")
		does(t, "alice", "INSERT INTO "+name+"."+table+" VALUES (1, 'EU')")
	}
}

// inLake is a path in the catalog.
func inLake(path string) string {
	if lake.Prefix != "" {
		return "/v1/" + lake.Prefix + path
	}
	return "/v1" + path
}

func count(table string) string { return "SELECT COUNT(*) FROM " + table }

func path(table string) string {
	schema, name, _ := strings.Cut(table, ".")
	return inLake("/namespaces/" + schema + "/tables/" + name)
}

// agrees waits until SQE and the catalog both let somebody read a table, or both do
// not.
func agrees(t testing.TB, name, table string, may bool) {
	t.Helper()
	if may {
		controls(t, name, path(table), http.StatusOK)
		becomes(t, name, count(table), "1")
		return
	}
	controls(t, name, path(table), http.StatusForbidden)
	becomes(t, name, count(table), fmt.Sprintf(hidden, table))
}

// TestObjects: who may read a table, find a schema and list a catalog, and who may
// not, is the same to SQE and to the catalog asked with the same token; but lists
// hold less in SQE.
func TestObjects(t *testing.T) {
	schema(t, "objects", "open", "secret")
	agrees(t, "alice", "objects.open", true)
	agrees(t, "bob", "objects.open", false)
	agrees(t, "ext_auditor", "objects.open", false)
	is(t, "bob", "SHOW TABLES IN objects", "ERROR: Unknown database 'objects'")

	does(t, "carol", "GRANT USE ON SCHEMA objects TO USER bob")
	does(t, "carol", "GRANT SELECT ON objects.open TO USER bob")
	agrees(t, "bob", "objects.open", true)
	agrees(t, "bob", "objects.secret", false)
	// The catalog's list is whole.
	status, text, err := ask(within(t, patience), http.MethodGet, lake.Address+inLake("/namespaces/objects/tables"), people.Token(t, "bob"), nil)
	if err != nil || status != http.StatusOK || !strings.Contains(string(text), "secret") {
		t.Fatalf("the catalog's list: %d %s %v", status, text, err)
	}
	becomes(t, "bob", "SHOW TABLES IN objects", "open")
	becomes(t, "alice", "SHOW TABLES IN objects", "open\nsecret")
	is(t, "bob", "SELECT table_name FROM information_schema.tables WHERE table_schema = 'objects'", "open")
	is(t, "bob", "SELECT DISTINCT table_name FROM information_schema.columns WHERE table_schema = 'objects'", "open")

	// ext_auditor may not look into the catalog at all.
	if got := control(t, "ext_auditor", inLake("/namespaces")); got != http.StatusForbidden {
		t.Errorf("the catalog lists its namespaces to ext_auditor: %d", got)
	}
	if got := as(t, "ext_auditor", "SHOW DATABASES").Said(); strings.Contains(got, "objects") {
		t.Errorf("ext_auditor sees %s", got)
	}
	if got := as(t, "bob", "SHOW DATABASES").Said(); !strings.Contains(got, "objects") {
		t.Errorf("bob sees %s", got)
	}
	// What may not be seen does not exist.
	for _, statement := range []string{"SELECT * FROM objects.%s", "DESCRIBE objects.%s", "SHOW CREATE TABLE objects.%s", "INSERT INTO objects.%s VALUES (2, 'US')", "DROP TABLE objects.%s"} {
		there, missing := as(t, "bob", fmt.Sprintf(statement, "secret")).Said(), as(t, "bob", fmt.Sprintf(statement, "nothing")).Said()
		if !strings.HasPrefix(there, "ERROR") || strings.ReplaceAll(there, "secret", "nothing") != missing {
			t.Errorf(statement+": %s, and of a table that is missing: %s", "secret", there, missing)
		}
	}
}

// TestDenyFirst: a denial comes before each grant, at both gates.
func TestDenyFirst(t *testing.T) {
	schema(t, "denied", "t")
	does(t, "carol", "GRANT SELECT ON ALL TABLES IN SCHEMA denied TO GROUP analytics")
	does(t, "carol", "GRANT SELECT ON denied.t TO USER bob")
	agrees(t, "bob", "denied.t", true)
	agrees(t, "anna_analyst", "denied.t", true)
	does(t, "carol", "DENY SELECT ON denied.t TO USER bob")
	is(t, "bob", count("denied.t"), fmt.Sprintf(hidden, "denied.t"))
	agrees(t, "bob", "denied.t", false)
	agrees(t, "anna_analyst", "denied.t", true)
	does(t, "carol", "DENY SELECT ON denied.t TO GROUP analytics")
	agrees(t, "anna_analyst", "denied.t", false)
	agrees(t, "alice", "denied.t", true)
	does(t, "carol", "REVOKE SELECT ON denied.t FROM GROUP analytics")
	agrees(t, "anna_analyst", "denied.t", true)
}

// TestLaterTable: a grant on all tables is one on those that are made afterwards.
func TestLaterTable(t *testing.T) {
	schema(t, "later")
	does(t, "carol", "GRANT SELECT ON ALL TABLES IN SCHEMA later TO USER bob")
	does(t, "alice", "CREATE TABLE later.fresh (id BIGINT)")
	does(t, "alice", "INSERT INTO later.fresh VALUES (7)")
	agrees(t, "bob", "later.fresh", true)
	agrees(t, "anna_analyst", "later.fresh", false)
}

// TestView: a view is an object of its own, and shows nothing of a table that its
// reader may not read.
func TestView(t *testing.T) {
	schema(t, "viewed", "t")
	does(t, "alice", "CREATE VIEW viewed.v AS SELECT id FROM viewed.t")
	is(t, "bob", "SELECT * FROM viewed.v", fmt.Sprintf(hidden, "viewed.v"))
	does(t, "carol", "GRANT SELECT ON VIEW viewed.v TO USER bob, USER alice")
	controls(t, "bob", inLake("/namespaces/viewed/views/v"), http.StatusOK)
	if got := as(t, "bob", "SELECT * FROM viewed.v").Said(); !strings.HasPrefix(got, "ERROR") {
		t.Errorf("bob reads a table through a view: %s", got)
	}
	becomes(t, "alice", "SELECT * FROM viewed.v", "1")
	does(t, "carol", "GRANT SELECT ON viewed.t TO USER bob")
	becomes(t, "bob", "SELECT * FROM viewed.v", "1")
	does(t, "carol", "REVOKE SELECT ON VIEW viewed.v FROM USER bob")
	is(t, "bob", "SELECT * FROM viewed.v", fmt.Sprintf(hidden, "viewed.v"))
	controls(t, "bob", inLake("/namespaces/viewed/views/v"), http.StatusForbidden)
}

// TestTwoAtOnce: two people on one server at the same time get their own answers.
func TestTwoAtOnce(t *testing.T) {
	schema(t, "twins", "left", "right")
	does(t, "carol", "GRANT SELECT ON twins.left TO USER bob")
	does(t, "carol", "GRANT SELECT ON twins.right TO USER anna_analyst")
	agrees(t, "bob", "twins.left", true)
	agrees(t, "anna_analyst", "twins.right", true)
	var wg sync.WaitGroup
	for name, table := range map[string]string{"bob": "left", "anna_analyst": "right"} {
		other := map[string]string{"left": "right", "right": "left"}[table]
		people.Session(t, name)
		wg.Go(func() {
			for range 50 {
				is(t, name, count("twins."+table), "1")
				is(t, name, count("twins."+other), fmt.Sprintf(hidden, "twins."+other))
			}
		})
	}
	wg.Wait()
}

// TestRevokeCloses: reading ends with the right to read data at SQE's own answer,
// though a right to write is left and the catalog has not heard of it.
func TestRevokeCloses(t *testing.T) {
	schema(t, "closes", "t")
	does(t, "carol", "GRANT USE ON SCHEMA closes TO USER bob")
	does(t, "carol", "GRANT SELECT, MONITOR, ALTER ON closes.t TO USER bob")
	agrees(t, "bob", "closes.t", true)
	does(t, "carol", "REVOKE SELECT ON closes.t FROM USER bob")
	const denied = "ERROR: SELECT command denied to user 'bob' for table 't'; ask an administrator for SELECT on it"
	is(t, "bob", count("closes.t"), denied)
	controls(t, "bob", path("closes.t"), http.StatusForbidden)
	is(t, "bob", count("closes.t"), denied)
	// The right to change the table is still there: the catalog shows its metadata to
	// who asks for nothing more.
	req, err := http.NewRequestWithContext(within(t, patience), http.MethodGet, lake.Address+path("closes.t"), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+people.Token(t, "bob"))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("metadata: %d", resp.StatusCode)
	}
}

// disagreements is sqe_gate_disagreements_total of the operations that a pattern names.
func disagreements(t testing.TB, operation string) int {
	t.Helper()
	address, err := sqe.Operations()
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, m := range regexp.MustCompile(`(?m)^sqe_gate_disagreements_total\{catalog="lake",operation="`+operation+`"\} (\d+)$`).FindAllSubmatch(page, -1) {
		n, err := strconv.Atoi(string(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}

// TestDisagreement: what SQE allows and the catalog refuses is refused, and counted.
// A role of the token counts for SQE, and the catalog knows only those of the policy
// server.
func TestDisagreement(t *testing.T) {
	schema(t, "disagree", "t")
	does(t, "carol", "CREATE ROLE data_analyst")
	does(t, "carol", "GRANT SELECT ON disagree.t TO ROLE data_analyst")
	time.Sleep(2 * pollInterval)
	before := disagreements(t, "load table")
	is(t, "bob", count("disagree.t"), fmt.Sprintf(hidden, "disagree.t"))
	if got := control(t, "bob", path("disagree.t")); got != http.StatusForbidden {
		t.Fatalf("the catalog: %d", got)
	}
	counted := disagreements(t, "load table")
	if counted <= before {
		t.Errorf("%d disagreements, and %d before", counted, before)
	}
	// A table that is missing is none, nor one that both refuse.
	is(t, "alice", count("disagree.nothing"), fmt.Sprintf(hidden, "disagree.nothing"))
	is(t, "ext_auditor", count("disagree.t"), fmt.Sprintf(hidden, "disagree.t"))
	if again := disagreements(t, "load table"); again != counted {
		t.Errorf("%d disagreements, and %d before", again, counted)
	}
	does(t, "carol", "GRANT data_analyst TO USER bob")
	agrees(t, "bob", "disagree.t", true)
	does(t, "carol", "REVOKE SELECT ON disagree.t FROM ROLE data_analyst")
	is(t, "bob", count("disagree.t"), fmt.Sprintf(hidden, "disagree.t"))
}

// put writes a policy over REST as an administrator of the policy store, and returns
// how to remove it.
func put(t testing.TB, policy map[string]any) (remove func()) {
	t.Helper()
	call := func(method, path string, body any) []byte {
		t.Helper()
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(within(t, patience), method, store+"/public/v2/api/policy"+path, strings.NewReader(string(text)))
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
		out, _ := io.ReadAll(resp.Body)
		if resp.StatusCode/100 != 2 {
			t.Fatalf("%s %s: %s %s", method, path, resp.Status, out)
		}
		return out
	}
	var made struct{ ID int64 }
	if err := json.Unmarshal(call(http.MethodPost, "", policy), &made); err != nil {
		t.Fatal(err)
	}
	return func() { call(http.MethodDelete, fmt.Sprintf("/%d", made.ID), nil) }
}

// TestTimes measures how long it takes from a change of policies to the first answer
// by it, at SQE and at the catalog alone.
func TestTimes(t *testing.T) {
	const rounds = 5
	var tables []string
	for _, kind := range "ab" {
		for i := range rounds {
			tables = append(tables, fmt.Sprintf("%c%d", kind, i))
		}
	}
	schema(t, "times", tables...)
	values := func(v string) map[string]any { return map[string]any{"values": []string{v}} }
	var remove func()
	ways := []struct {
		name          string
		grant, revoke func(table string)
	}{
		{
			"a policy over REST", func(table string) {
				remove = put(t, map[string]any{
					"service": "polaris", "name": "times " + table, "policyType": 0, "isEnabled": true,
					"resources":   map[string]any{"root": values("POLARIS"), "catalog": values("lake"), "namespace": values("times"), "table": values(table)},
					"policyItems": []any{map[string]any{"users": []string{"bob"}, "accesses": []any{map[string]any{"type": "table-data-read", "isAllowed": true}}}},
				})
			},
			func(string) { remove() },
		},
		{
			"GRANT and REVOKE",
			func(table string) { does(t, "carol", "GRANT SELECT ON times."+table+" TO USER bob") },
			func(table string) { does(t, "carol", "REVOKE SELECT ON times."+table+" FROM USER bob") },
		},
	}
	for i, way := range ways {
		var visible, refused, control []time.Duration
		for _, name := range tables[i*rounds : (i+1)*rounds] {
			// Each time a table of which SQE knows nothing yet, and at any moment between two
			// polls of the catalog.
			table := "times." + name
			agrees(t, "bob", table, false)
			time.Sleep(rand.N(pollInterval))
			start := time.Now()
			way.grant(name)
			becomes(t, "bob", count(table), "1")
			visible = append(visible, time.Since(start))
			controls(t, "bob", path(table), http.StatusOK)
			time.Sleep(rand.N(pollInterval))
			start = time.Now()
			way.revoke(name)
			becomes(t, "bob", count(table), fmt.Sprintf(hidden, table))
			refused = append(refused, time.Since(start))
			controls(t, "bob", path(table), http.StatusForbidden)
			control = append(control, time.Since(start))
		}
		for _, d := range [][]time.Duration{visible, refused, control} {
			slices.Sort(d)
		}
		t.Logf("%s: visible after %d ms (at most %d), denied after %d ms (at most %d); the catalog alone denies after %d ms (at most %d)", way.name,
			visible[rounds/2].Milliseconds(), visible[rounds-1].Milliseconds(), refused[rounds/2].Milliseconds(), refused[rounds-1].Milliseconds(), control[rounds/2].Milliseconds(), control[rounds-1].Milliseconds())
	}
}

// TestWithoutToken: a session without a token works with the other catalogs.
func TestWithoutToken(t *testing.T) {
	schema(t, "tokens", "t")
	a := as(t, "static", "SHOW DATABASES")
	if a.Err != nil || !strings.Contains(a.Said(), "information_schema") || strings.Contains(a.Said(), "tokens") {
		t.Errorf("SHOW DATABASES: %s", a.Said())
	}
	warned := func(a sqetest.Answer) bool {
		return slices.ContainsFunc(a.Warnings, func(w []string) bool { return strings.Contains(w[2], "catalog 'lake' is left out") })
	}
	if !warned(a) {
		t.Errorf("no warning: %v", a.Warnings)
	}
	a = as(t, "static", "SELECT COUNT(*) FROM information_schema.tables")
	if a.Err != nil || !warned(a) {
		t.Errorf("information_schema: %s, warnings %v", a.Said(), a.Warnings)
	}
	if a := as(t, "alice", "SHOW DATABASES"); a.Err != nil || warned(a) || !strings.Contains(a.Said(), "tokens") {
		t.Errorf("alice: %s %v", a.Said(), a.Warnings)
	}
	does(t, "carol", "GRANT SELECT ON ALL TABLES IN SCHEMA archive.bank TO USER static")
	is(t, "static", "SELECT COUNT(*) > 0 FROM archive.bank.customers", "1")
	if got := as(t, "static", "SHOW DATABASES").Said(); !strings.Contains(got, "archive.bank") {
		t.Errorf("SHOW DATABASES: %s", got)
	}
	does(t, "carol", "GRANT SELECT ON tokens.t TO USER static")
	for _, statement := range []string{count("tokens.t"), "USE tokens", "SHOW TABLES IN tokens", "SELECT COUNT(*) FROM tokens.t, archive.bank.customers"} {
		if a := as(t, "static", statement); a.Number() != 1045 || !strings.Contains(a.Said(), "this session has none") {
			t.Errorf("%s: %s", statement, a.Said())
		}
	}
}
