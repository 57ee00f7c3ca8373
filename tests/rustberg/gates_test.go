//go:build e2e

package rustberg

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const hidden = "ERROR: Table '%s' doesn't exist, or you may not use it"

// schema makes a database with tables of one row each, as carol.
func schema(t testing.TB, name string, tables ...string) {
	t.Helper()
	policies(t)
	does(t, "carol", "CREATE DATABASE "+name)
	for _, table := range tables {
		does(t, "carol", "CREATE TABLE "+name+"."+table+" (id BIGINT, region VARCHAR(10))")
		does(t, "carol", "INSERT INTO "+name+"."+table+" VALUES (1, 'EU')")
	}
}

func count(table string) string { return "SELECT COUNT(*) FROM " + table }

// agrees waits until SQE lets somebody read a table as the catalog does that was asked
// directly, or does not.
func agrees(t testing.TB, name, table string, may bool) {
	t.Helper()
	status, answer := http.StatusOK, "1"
	if !may {
		status, answer = http.StatusNotFound, fmt.Sprintf(hidden, table)
	}
	if got := control(t, name, table); got != status {
		t.Fatalf("the catalog answers %s %d for %s, want %d", name, got, table, status)
	}
	becomes(t, name, count(table), answer)
}

// same holds statements with %s to the same refusal whether they name a thing that
// somebody may not see or one that is missing.
func same(t testing.TB, name, there, missing string, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		a, b := as(t, name, fmt.Sprintf(statement, there)).Said(), as(t, name, fmt.Sprintf(statement, missing)).Said()
		if !strings.HasPrefix(a, "ERROR") || strings.ReplaceAll(a, there, missing) != b {
			t.Errorf("%s: "+statement+": %s, and of what is missing: %s", name, there, a, b)
		}
	}
}

// TestObjects: who may read a table, find a namespace and list the catalog.
func TestObjects(t *testing.T) {
	schema(t, "objects", "open", "secret")
	schema(t, "vault", "t")
	does(t, "carol", "CREATE VIEW objects.window AS SELECT id FROM objects.open")
	policies(t, finds(group("data_analyst"), "objects"), permit(group("data_analyst"), look, table("objects.open")))
	agrees(t, "carol", "objects.secret", true)
	agrees(t, "bob", "objects.open", true)
	agrees(t, "bob", "objects.secret", false)
	agrees(t, "bob", "vault.t", false)
	is(t, "carol", count("vault.t"), "1")

	// Lists hold what one may see.
	lists := func(name, schemas, tables string) {
		t.Helper()
		becomes(t, name, "SELECT schema_name FROM information_schema.schemata WHERE schema_name IN ('objects', 'vault') ORDER BY 1", schemas)
		becomes(t, name, "SHOW DATABASES LIKE 'objects'", strings.TrimSuffix(schemas, "\nvault"))
		becomes(t, name, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'objects' ORDER BY 1", tables)
		becomes(t, name, "SELECT DISTINCT table_name FROM information_schema.columns WHERE table_schema = 'objects' ORDER BY 1", tables)
		if schemas != "" {
			becomes(t, name, "SHOW TABLES IN objects", tables)
		}
	}
	lists("carol", "objects\nvault", "open\nsecret\nwindow")
	lists("bob", "objects", "open")
	is(t, "bob", "SHOW TABLES IN vault", "ERROR: Unknown database 'vault'")
	is(t, "bob", "SHOW TABLES IN nowhere", "ERROR: Unknown database 'nowhere'")

	// Who may not look into the catalog at all.
	if status, _ := ask(t, "ext_auditor", http.MethodGet, "/v1/namespaces", nil); status != http.StatusForbidden {
		t.Errorf("the catalog lists its namespaces to ext_auditor: %d", status)
	}
	lists("ext_auditor", "", "")
	agrees(t, "ext_auditor", "objects.open", false)
	// Who may find the namespace and nothing in it.
	policies(t, finds(group("auditor"), "objects"))
	becomes(t, "ext_auditor", "SHOW TABLES IN objects", "")
	lists("ext_auditor", "objects", "")

	// What may not be seen does not exist.
	policies(t, finds(group("data_analyst"), "objects"), permit(group("data_analyst"), look, table("objects.open")))
	agrees(t, "bob", "objects.open", true)
	same(t, "bob", "secret", "nothing",
		"SELECT * FROM objects.%s", "DESCRIBE objects.%s", "SHOW CREATE TABLE objects.%s", "INSERT INTO objects.%s VALUES (2, 'US')", "UPDATE objects.%s SET id = 2",
		"DELETE FROM objects.%s", "TRUNCATE TABLE objects.%s", "DROP TABLE objects.%s", "ALTER TABLE objects.%s ADD COLUMN x INT", "RENAME TABLE objects.%s TO objects.other",
		"SELECT * FROM objects.open JOIN objects.%s USING (id)", "EXPLAIN SELECT * FROM objects.%s", "EXPLAIN POLICY SELECT * FROM objects.%s",
		"SELECT * FROM objects.`%s$snapshots`", "CREATE VIEW objects.v AS SELECT * FROM objects.%s", "SHOW COLUMNS FROM objects.%s", "SHOW EFFECTIVE POLICY ON objects.%s")
	same(t, "bob", "window", "nothing", "SELECT * FROM objects.%s", "SHOW CREATE VIEW objects.%s", "DROP VIEW objects.%s")
	same(t, "bob", "vault", "nowhere", "USE %s", "SHOW TABLES IN %s", "SELECT * FROM %s.t", "CREATE TABLE %s.mine (id BIGINT)", "DROP DATABASE %s")
	is(t, "carol", count("objects.secret"), "1")
}

// TestReadOnly: what the catalog lets somebody read, it need not let them change.
func TestReadOnly(t *testing.T) {
	schema(t, "fixed", "t")
	read := []string{finds(group("data_analyst"), "fixed"), permit(group("data_analyst"), look, table("fixed.t"))}
	policies(t, read...)
	agrees(t, "bob", "fixed.t", true)
	for _, statement := range []string{
		"INSERT INTO fixed.t VALUES (2, 'US')", "UPDATE fixed.t SET id = 2", "DELETE FROM fixed.t WHERE id = 1", "TRUNCATE TABLE fixed.t",
		"ALTER TABLE fixed.t ADD COLUMN x INT", "DROP TABLE fixed.t", "CREATE TABLE fixed.mine (id BIGINT)", "CREATE TABLE fixed.mine AS SELECT * FROM fixed.t",
		"CREATE DATABASE bobs", "DROP DATABASE fixed", "CREATE VIEW fixed.v AS SELECT * FROM fixed.t",
	} {
		if got := as(t, "bob", statement).Said(); !strings.HasPrefix(got, "ERROR: ") || strings.Contains(got, "internal") {
			t.Errorf("%s: %s", statement, got)
		}
	}
	is(t, "carol", "SELECT * FROM fixed.t", "1|EU")
	is(t, "carol", "SHOW TABLES IN fixed", "t")
	// Control: with the right they are done.
	policies(t, append(read, permit(group("data_analyst"), "action", table("fixed.t")), permit(group("data_analyst"), `action == Rustberg::Action::"Create"`, namespace("fixed")),
		permit(group("data_analyst"), "action", table("fixed.mine")))...)
	does(t, "bob", "INSERT INTO fixed.t VALUES (2, 'US')")
	does(t, "bob", "UPDATE fixed.t SET region = 'UK' WHERE id = 2")
	does(t, "bob", "DELETE FROM fixed.t WHERE id = 1")
	does(t, "bob", "CREATE TABLE fixed.mine AS SELECT * FROM fixed.t")
	is(t, "bob", "SELECT * FROM fixed.mine", "2|UK")
	does(t, "bob", "DROP TABLE fixed.mine")
}

// TestForbidFirst: a prohibition comes before each permission, for a person, a group,
// a table and a namespace.
func TestForbidFirst(t *testing.T) {
	schema(t, "denied", "t", "other")
	may := []string{finds(group("data_analyst"), "denied"), permit(group("data_analyst"), look, inside("denied")), permit(person(t, "bob"), look, table("denied.t"))}
	policies(t, may...)
	agrees(t, "bob", "denied.t", true)
	agrees(t, "anna_analyst", "denied.t", true)
	policies(t, append(may, forbid(person(t, "bob"), "action", table("denied.t")))...)
	agrees(t, "bob", "denied.t", false)
	agrees(t, "bob", "denied.other", true)
	agrees(t, "anna_analyst", "denied.t", true)
	policies(t, append(may, forbid(group("data_analyst"), "action", inside("denied")))...)
	for _, name := range []string{"bob", "anna_analyst"} {
		agrees(t, name, "denied.t", false)
		agrees(t, name, "denied.other", false)
		becomes(t, name, "SHOW TABLES IN denied", "ERROR: Unknown database 'denied'")
	}
	is(t, "carol", count("denied.t"), "1")
	policies(t, may...)
	agrees(t, "anna_analyst", "denied.t", true)
}

// TestLaterTable: a policy on all tables of a namespace is one on those that are made
// afterwards, also in a namespace inside.
func TestLaterTable(t *testing.T) {
	schema(t, "later")
	policies(t, finds(person(t, "bob"), "later"), permit(person(t, "bob"), look, inside("later")))
	becomes(t, "bob", "SHOW TABLES IN later", "")
	does(t, "carol", "CREATE TABLE later.fresh (id BIGINT)")
	does(t, "carol", "INSERT INTO later.fresh VALUES (7)")
	agrees(t, "bob", "later.fresh", true)
	agrees(t, "anna_analyst", "later.fresh", false)
	does(t, "carol", "CREATE DATABASE `later.deep`")
	does(t, "carol", "CREATE TABLE `later.deep`.t (id BIGINT)")
	becomes(t, "bob", count("`later.deep`.t"), "0")
	is(t, "anna_analyst", count("`later.deep`.t"), "ERROR: Table 'later.deep.t' doesn't exist, or you may not use it")
	// A table keeps its files where they were when its name changes.
	does(t, "carol", "RENAME TABLE later.fresh TO later.stale")
	does(t, "carol", "INSERT INTO later.stale VALUES (8)")
	becomes(t, "bob", count("later.stale"), "2")
}

// TestView: a view is an object of its own, and shows nothing of a table that its
// reader may not read.
func TestView(t *testing.T) {
	schema(t, "viewed", "t")
	does(t, "carol", "CREATE VIEW viewed.v AS SELECT id FROM viewed.t")
	policies(t, finds(group("data_analyst"), "viewed"))
	is(t, "bob", "SELECT * FROM viewed.v", fmt.Sprintf(hidden, "viewed.v"))
	v := permit(group("data_analyst"), look, view("viewed.v"))
	policies(t, finds(group("data_analyst"), "viewed"), v)
	becomes(t, "bob", "SHOW TABLES IN viewed", "v")
	if got := as(t, "bob", "SELECT * FROM viewed.v").Said(); !strings.HasPrefix(got, "ERROR") {
		t.Errorf("bob reads a table through a view: %s", got)
	}
	policies(t, finds(group("data_analyst"), "viewed"), v, permit(group("data_analyst"), look, table("viewed.t")))
	becomes(t, "bob", "SELECT * FROM viewed.v", "1")
	policies(t, finds(group("data_analyst"), "viewed"), permit(group("data_analyst"), look, table("viewed.t")))
	becomes(t, "bob", "SELECT * FROM viewed.v", fmt.Sprintf(hidden, "viewed.v"))
	is(t, "bob", count("viewed.t"), "1")
}

// TestTwoAtOnce: two people on one server at the same time get their own answers.
func TestTwoAtOnce(t *testing.T) {
	schema(t, "pair", "left", "right")
	policies(t, finds(group("data_analyst"), "pair"), permit(person(t, "bob"), look, table("pair.left")), permit(person(t, "anna_analyst"), look, table("pair.right")))
	agrees(t, "bob", "pair.left", true)
	agrees(t, "anna_analyst", "pair.right", true)
	agrees(t, "bob", "pair.right", false)
	agrees(t, "anna_analyst", "pair.left", false)
	var wg sync.WaitGroup
	for name, table := range map[string]string{"bob": "left", "anna_analyst": "right"} {
		other := map[string]string{"left": "right", "right": "left"}[table]
		wg.Go(func() {
			for range 50 {
				is(t, name, count("pair."+table), "1")
				is(t, name, count("pair."+other), fmt.Sprintf(hidden, "pair."+other))
				is(t, name, "SHOW TABLES IN pair", table)
			}
		})
	}
	wg.Wait()
}

// TestTimes measures how long it takes from a change of the catalog's policies to the
// first answer by it, with an answer that may be used again for a second and for five.
func TestTimes(t *testing.T) {
	const rounds = 3
	schema(t, "times", "t")
	finding := finds(group("data_analyst"), "times")
	reading := permit(group("data_analyst"), look, table("times.t"))
	for _, catalog := range []string{"lake", "slow"} {
		name := catalog + ".times.t"
		if catalog == "lake" {
			name = "times.t"
		}
		var visible, refused []time.Duration
		for range rounds {
			policies(t, finding)
			becomes(t, "bob", count(name), fmt.Sprintf(hidden, name))
			time.Sleep(rand.N(time.Second))
			start := time.Now()
			policies(t, finding, reading)
			becomes(t, "bob", count(name), "1")
			visible = append(visible, time.Since(start))
			time.Sleep(rand.N(time.Second))
			start = time.Now()
			policies(t, finding)
			becomes(t, "bob", count(name), fmt.Sprintf(hidden, name))
			refused = append(refused, time.Since(start))
		}
		slices.Sort(visible)
		slices.Sort(refused)
		t.Logf("%s: visible after %d ms (at most %d), denied after %d ms (at most %d)", catalog,
			visible[rounds/2].Milliseconds(), visible[rounds-1].Milliseconds(), refused[rounds/2].Milliseconds(), refused[rounds-1].Milliseconds())
	}
}
