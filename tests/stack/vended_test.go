//go:build e2e

package stack

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"sqe/tests/sqetest"
)

// vended is a server whose catalog is a vendor, with people at it.
type vended struct {
	*testing.T
	*vendor
	server *sqetest.Server
	pools  map[string]*sql.DB
	mu     sync.Mutex
	// shown is everything that clients and operators were shown.
	shown strings.Builder
}

func startVended(t *testing.T, database string) *vended {
	t.Helper()
	v := &vended{T: t, vendor: startVendor(t), pools: map[string]*sql.DB{}}
	does(t, "carol", "GRANT CREATE NAMESPACE ON CATALOG lake TO USER alice")
	v.server = second(t, v.URL, "[object-cache]\nsize = \"64MiB\"\n")
	v.becomes("alice", "CREATE DATABASE "+database, "")
	does(t, "carol", "GRANT CREATE ON SCHEMA "+database+" TO USER alice")
	does(t, "carol", "GRANT MODIFY, ALTER, DROP ON ALL TABLES IN SCHEMA "+database+" TO USER alice")
	for _, text := range []string{
		"CREATE TABLE %s.probe (id INT)", "INSERT INTO %s.probe VALUES (1)", "ALTER TABLE %s.probe ADD COLUMN more INT", "DROP TABLE %s.probe",
	} {
		v.becomes("alice", fmt.Sprintf(text, database), "")
	}
	t.Cleanup(func() { v.secrets() })
	return v
}

// pool are connections of somebody.
func (v *vended) pool(name string) *sql.DB {
	v.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	if p := v.pools[name]; p != nil {
		return p
	}
	token := kc.Token(v.T, "sqe-cli", name).Access
	p := v.server.Open(name, func(c *mysql.Config) { c.Passwd = token })
	v.Cleanup(func() { _ = p.Close() })
	v.pools[name] = p
	return p
}

func (v *vended) as(name, text string, args ...any) sqetest.Answer {
	v.Helper()
	return v.on(v.pool(name), text, args...)
}

func (v *vended) on(q sqetest.Querier, text string, args ...any) sqetest.Answer {
	limit, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	a := sqetest.Ask(limit, q, text, args...)
	v.mu.Lock()
	defer v.mu.Unlock()
	fmt.Fprintln(&v.shown, a.Columns, a.Rows, a.Err, a.Warnings)
	return a
}

func (v *vended) is(name, text, want string) {
	v.Helper()
	if got := v.as(name, text).Said(); got != want {
		v.Errorf("%s: %s\n%s\nwant\n%s", name, text, got, want)
	}
}

// during runs a statement of alice, and something else while its first request to the
// store for which stop is true waits. Those of an earlier statement, which may still
// be on their way, do not count.
func (v *vended) during(stop func(*http.Request) bool, text string, what func()) sqetest.Answer {
	v.Helper()
	before := map[string]bool{}
	for _, k := range v.keys.All() {
		before[k.ID] = true
	}
	mine := func(r *http.Request) bool {
		_, rest, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
		id, _, ok := strings.Cut(rest, "/")
		return ok && !before[id] && stop(r)
	}
	return v.gate.during(v.T, mine, func() sqetest.Answer { return v.as("alice", text) }, what)
}

func (v *vended) fails(name, text, want string) {
	v.Helper()
	if got := v.as(name, text).Said(); !strings.HasPrefix(got, "ERROR") || !strings.Contains(got, want) {
		v.Errorf("%s: %s\n%s\nwant an error with %q", name, text, got, want)
	}
}

// becomes waits until policies have reached everybody.
func (v *vended) becomes(name, text, want string) {
	v.Helper()
	got := ""
	for start := time.Now(); time.Since(start) < patience; time.Sleep(50 * time.Millisecond) {
		if got = v.as(name, text).Said(); got == want {
			return
		}
	}
	v.Fatalf("%s: %s\n%s\nwant\n%s", name, text, got, want)
}

// secrets looks for every key that was given in everything that the server showed.
func (v *vended) secrets() {
	v.Helper()
	if address, err := v.server.Operations(); err == nil {
		if r, err := http.Get(address + "/metrics"); err == nil {
			text, _ := io.ReadAll(r.Body)
			_ = r.Body.Close()
			v.shown.Write(text)
		}
	}
	v.shown.WriteString(v.server.Output())
	var places []string
	err := filepath.WalkDir(v.server.Dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			text, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			places = append(places, filepath.Base(p))
			v.shown.Write(text)
		}
		return err
	})
	if err != nil {
		v.Error(err)
	}
	given, all := strings.Join(v.answers, "\n"), v.shown.String()
	n := 0
	for id, k := range v.given {
		for what, secret := range map[string]string{"the id of a key": id, "a secret key": k.Secret, "a session token": k.Token} {
			if !strings.Contains(given, secret) {
				v.Errorf("the search does not find %s where it was given", what)
			}
			if strings.Contains(all, secret) {
				v.Errorf("the server showed %s", what)
			}
			n++
		}
	}
	for _, there := range []string{"sqe_statements_total", `"type":"statement"`, "sqe_object_cache_hits_total"} {
		if !strings.Contains(all, there) {
			v.Errorf("what was searched does not have %s", there)
		}
	}
	v.Logf("%d secrets of %d keys looked for in %d KiB: answers, log, metrics and %d files of the server", n, len(v.given), len(all)>>10, len(places))
}

// TestVendedStatements: every kind of statement on tables in an object store, with
// credentials of the one who runs it.
func TestVendedStatements(t *testing.T) {
	v := startVended(t, "vend")
	for _, form := range []struct {
		name    string
		commits bool
	}{{"prefixes", false}, {"config", true}, {"both", true}, {"nested", false}} {
		v.gives(func(g *giving) { g.form, g.commits = form.name, form.commits })
		since := v.mark()
		do := func(text string) {
			t.Helper()
			if a := v.as("alice", strings.ReplaceAll(text, "@", "vend."+form.name+"_")); a.Err != nil {
				t.Fatalf("%s: %s: %v", form.name, text, a.Err)
			}
		}
		is := func(text, want string) {
			t.Helper()
			v.is("alice", strings.ReplaceAll(text, "@", "vend."+form.name+"_"), want)
		}
		do("CREATE TABLE @t (id BIGINT, v VARCHAR(20), n INT)")
		do("INSERT INTO @t VALUES (1, 'a', 10), (2, 'b', 20), (3, 'c', 30), (4, 'd', 40)")
		do("UPDATE @t SET n = n + 1 WHERE id = 2")
		do("DELETE FROM @t WHERE id = 1")
		is("SELECT id, v, n FROM @t ORDER BY id", "2|b|21\n3|c|30\n4|d|40")
		do("ALTER TABLE @t SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read')")
		do("DELETE FROM @t WHERE id = 3")
		do("UPDATE @t SET v = 'e' WHERE id = 4")
		is("SELECT id, v, n FROM @t ORDER BY id", "2|b|21\n4|e|40")
		do("CREATE TABLE @c AS SELECT id, n FROM @t")
		do("INSERT INTO @c SELECT id + 10, n FROM @t")
		do("MERGE INTO @t AS t USING @c AS c ON t.id = c.id WHEN MATCHED THEN UPDATE SET n = c.n + 100 WHEN NOT MATCHED THEN INSERT (id, n) VALUES (c.id, c.n)")
		is("SELECT id, v, n FROM @t ORDER BY id", "2|b|121\n4|e|140\n12|NULL|21\n14|NULL|40")
		do("ALTER TABLE @t ADD COLUMN more INT")
		do("CALL system.rewrite_data_files(table => '@t', options => map('rewrite-all', 'true'))")
		do("CALL system.rewrite_manifests(table => '@t')")
		do("CALL system.expire_snapshots(table => '@t', older_than => '2999-01-01 00:00:00', retain_last => 1)")
		do("CALL system.remove_orphan_files(table => '@t')")
		is("SELECT COUNT(*), SUM(n) FROM @t", "4|322")
		is("SELECT COUNT(*) FROM @t AS t JOIN @c AS c ON t.id = c.id", "4")
		is("SELECT COUNT(*) > 0 FROM vend.`"+form.name+"_t$files`", "1")
		do("TRUNCATE TABLE @c")
		is("SELECT COUNT(*) FROM @c", "0")
		do("DROP TABLE @c")
		for _, text := range []string{"EXPLAIN SELECT * FROM @t", "SHOW CREATE TABLE @t", "SHOW FULL PROCESSLIST", "SELECT * FROM vend.`" + form.name + "_t$snapshots`", "SHOW TABLE STATUS FROM vend"} {
			do(text)
		}
		v.alone(since, "alice", 50)
		if form.name == "nested" {
			for _, u := range v.uses(since) {
				if u.Status != "200" && u.Status != "204" && u.Status != "206" {
					t.Errorf("%s of %s was refused: not with the key of its longest prefix", u.Operation, u.Object)
				}
			}
		}
	}
	v.gives(func(g *giving) { g.form = "signing" })
	v.fails("alice", "SELECT v FROM vend.prefixes_t", "signs requests")
	v.gives(func(g *giving) { g.form = "none" })
	v.fails("alice", "SELECT v FROM vend.prefixes_t", "no credentials")
	v.gives(func(g *giving) { g.form = "prefixes" })
	v.is("alice", "SELECT COUNT(v) FROM vend.prefixes_t", "2")
}

// TestVendedApart: two people at one server at the same time, each with their own
// credentials and with nothing of the other's, whatever is in caches, prepared or pooled;
// what is withdrawn is gone at the next statement.
func TestVendedApart(t *testing.T) {
	v := startVended(t, "pair")
	for _, name := range []string{"open", "closed"} {
		if a := v.as("alice", "CREATE TABLE pair."+name+" AS SELECT 1 AS id, 'the first' AS v UNION ALL SELECT 2, 'the second'"); a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	does(t, "carol", "GRANT USE ON SCHEMA pair TO USER bob")
	does(t, "carol", "GRANT SELECT ON pair.open TO USER bob")
	const open, closed, both = "SELECT id, v FROM pair.open ORDER BY id", "SELECT id, v FROM pair.closed ORDER BY id", "1|the first\n2|the second"
	v.becomes("bob", open, both)
	// Warm: alice has read everything.
	for range 2 {
		v.is("alice", open, both)
		v.is("alice", closed, both)
	}
	since := v.mark()
	v.is("bob", open, both)
	v.alone(since, "bob", 1)
	since = v.mark()
	v.is("bob", closed, fmt.Sprintf(hidden, "pair.closed"))
	if n := len(v.uses(since)); n != 0 {
		t.Errorf("the store was asked %d times for what bob may not load", n)
	}
	// A catalog that lets bob load it, and a store that does not let him read.
	v.gives(func(g *giving) {
		g.may = func(who, folder string) string {
			if who == "bob" {
				return usual(who, folder+"/nothing")
			}
			return usual(who, folder)
		}
	})
	v.fails("bob", open, "does not let the server reach")
	v.is("alice", open, both)
	v.gives(func(g *giving) { g.may = nil })
	v.is("bob", open, both)
	v.fails("bob", "INSERT INTO pair.open VALUES (3, 'x')", "")

	// At the same time, on several connections each.
	since = v.mark()
	var wg sync.WaitGroup
	for _, name := range []string{"alice", "bob"} {
		for w := range 3 {
			wg.Go(func() {
				for i := range 15 {
					v.is(name, open, both)
					if name == "alice" {
						if w == 0 && i%5 == 0 {
							v.is(name, "INSERT INTO pair.closed VALUES (3, 'the third')", "")
						}
					} else {
						v.is(name, closed, fmt.Sprintf(hidden, "pair.closed"))
					}
				}
			})
		}
	}
	wg.Wait()
	by := map[string]int{}
	for _, u := range v.uses(since) {
		by[u.by.who]++
		if u.by.who == "bob" && (!strings.HasPrefix(u.Object, "warehouse/pair/open/") || u.Operation != "s3_GetObject") {
			t.Errorf("bob: %s of %s", u.Operation, u.Object)
		}
		if !strings.HasPrefix(u.Object, u.by.folder+"/") && u.Operation != "s3_DeleteObjects" {
			t.Errorf("%s: %s of %s with a key for %s", u.by.who, u.Operation, u.Object, u.by.folder)
		}
	}
	// 45 reads of bob, and 45 of alice: each came with a key of its own.
	keys := map[string]bool{}
	for _, u := range v.uses(since) {
		keys[u.Key] = true
	}
	if by["alice"] < 45 || by["bob"] < 45 || len(keys) < 90 {
		t.Errorf("requests of %v with %d keys", by, len(keys))
	}
	t.Logf("at the same time: requests %v with %d keys", by, len(keys))

	// Prepared, after SET ROLE, and after a reconnect.
	ctx := within(t, patience)
	conn, err := v.pool("bob").Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	prepared, err := conn.PrepareContext(ctx, "SELECT v FROM pair.open WHERE id = ?")
	if err != nil {
		t.Fatal(err)
	}
	defer prepared.Close()
	run := func() string {
		var out string
		if err := prepared.QueryRowContext(ctx, 2).Scan(&out); err != nil {
			v.mu.Lock()
			fmt.Fprintln(&v.shown, err)
			v.mu.Unlock()
			return "ERROR: " + err.Error()
		}
		return out
	}
	since = v.mark()
	for range 3 {
		if got := run(); got != "the second" {
			t.Errorf("prepared: %s", got)
		}
	}
	first := map[string]bool{}
	for _, u := range v.uses(since) {
		first[u.Key] = true
	}
	if len(first) < 3 {
		t.Errorf("three executions came with %d keys", len(first))
	}
	for _, text := range []string{"SET ROLE NONE", "SET ROLE DEFAULT", "SET ROLE ALL"} {
		if a := v.on(conn, text); a.Err != nil {
			t.Errorf("%s: %v", text, a.Err)
		}
		if got := v.on(conn, open).Said(); got != both {
			t.Errorf("after %s: %s", text, got)
		}
	}
	v.alone(since, "bob", 3)
	// The store ends all keys between two statements: each has a new one.
	v.keys.End(t)
	if got := run(); got != "the second" {
		t.Errorf("after the keys ended: %s", got)
	}
	// It narrows what bob may do.
	v.gives(func(g *giving) { g.may = func(who, folder string) string { return usual(who, folder+"/nothing") } })
	if got := run(); !strings.Contains(got, "does not let the server reach") {
		t.Errorf("prepared, without rights in the store: %s", got)
	}
	v.gives(func(g *giving) { g.may = nil })
	// The right to load the table is withdrawn.
	does(t, "carol", "REVOKE SELECT ON pair.open FROM USER bob")
	v.becomes("bob", open, fmt.Sprintf(hidden, "pair.open"))
	since = v.mark()
	if got := run(); !strings.Contains(got, "doesn't exist, or you may not use it") {
		t.Errorf("prepared, without the right to load: %s", got)
	}
	v.is("bob", open, fmt.Sprintf(hidden, "pair.open"))
	if n := len(v.uses(since)); n != 0 {
		t.Errorf("the store was asked %d times after the right was withdrawn", n)
	}
	v.is("alice", open, both)
}

// TestVendedRenewal: credentials that end in the middle of a statement are renewed for
// the one who runs it, by each way that a catalog has for it; when there are no others
// the statement fails and nothing is changed.
func TestVendedRenewal(t *testing.T) {
	v := startVended(t, "renew")
	do := func(text string) {
		t.Helper()
		if a := v.as("alice", text); a.Err != nil {
			t.Fatalf("%s: %v", text, a.Err)
		}
	}
	do("CREATE TABLE renew.t (id BIGINT, v VARCHAR(20))")
	for i := range 12 {
		do(fmt.Sprintf("INSERT INTO renew.t VALUES (%d, 'v%d')", i, i))
	}
	do("CREATE TABLE renew.whole AS SELECT * FROM renew.t")
	do("CREATE TABLE renew.other (id BIGINT, v VARCHAR(20))")
	const all = "SELECT COUNT(v), SUM(id) FROM renew.t WHERE v <> ''"
	state := func() string {
		return v.as("alice", "SELECT COUNT(*) FROM renew.`whole$snapshots`").Said() + " " + v.as("alice", "SELECT COUNT(*) FROM renew.`other$snapshots`").Said() + " " + v.as("alice", "SHOW TABLES FROM renew").Said()
	}
	for _, way := range []struct {
		name   string
		silent bool
		call   bool
	}{{"call", true, true}, {"load", true, false}, {"call, with the time", false, true}, {"load, with the time", false, false}} {
		life := time.Hour
		end := func() { v.keys.End(t) }
		if !way.silent {
			life = 3 * time.Second
			end = func() { time.Sleep(life) } // they end by themselves
		}
		v.gives(func(g *giving) { g.silent, g.endpoint, g.life = way.silent, way.call, life })
		// What the catalog says of itself is known for a while: another session asks again.
		v.mu.Lock()
		delete(v.pools, "alice")
		v.mu.Unlock()
		asked, since := v.renewed(), v.mark()
		run := func(stop func(*http.Request) bool, text string) {
			t.Helper()
			if a := v.during(stop, text, end); a.Err != nil {
				t.Errorf("%s: %s: %v", way.name, text, a.Err)
			} else if text == all && a.Said() != "12|66" {
				t.Errorf("%s: %s: %s", way.name, text, a.Said())
			}
		}
		run(dataFile(http.MethodGet), all)
		run(dataFile(http.MethodPut), "INSERT INTO renew.other SELECT * FROM renew.t")
		run(dataFile(http.MethodPut), "UPDATE renew.other SET v = concat(v, '!') WHERE id > 5")
		run(dataFile(http.MethodPut), "CREATE TABLE renew.made AS SELECT * FROM renew.t")
		run(dataFile(http.MethodGet), "CALL system.rewrite_data_files(table => 'renew.other', options => map('rewrite-all', 'true'))")
		v.gives(func(g *giving) { g.life = time.Hour })
		v.is("alice", "SELECT COUNT(*) FROM renew.made", "12")
		v.is("alice", "SELECT COUNT(*) FROM renew.other WHERE v LIKE '%!'", "6")
		do("DROP TABLE renew.made")
		do("TRUNCATE TABLE renew.other")
		v.alone(since, "alice", 30)
		if n := v.renewed() - asked; way.call != (n > 0) {
			t.Errorf("%s: %d calls for credentials alone", way.name, n)
		} else {
			t.Logf("%s: %d calls for credentials alone", way.name, n)
		}
	}

	// There are no others.
	v.gives(func(g *giving) { g.silent, g.endpoint, g.life = true, true, time.Hour })
	v.mu.Lock()
	delete(v.pools, "alice")
	v.mu.Unlock()
	before := state()
	for _, no := range []struct {
		status int
		want   string
	}{{http.StatusForbidden, "you may not use it any more"}, {http.StatusUnauthorized, "log in again"}, {http.StatusInternalServerError, "does not answer"}} {
		refuse := func() {
			v.gives(func(g *giving) { g.refuse, g.loads = func(string) int { return no.status }, true })
			v.keys.End(t) // only then, or another request of the statement could still renew them
		}
		for _, x := range []struct {
			stop func(*http.Request) bool
			text string
		}{
			{dataFile(http.MethodGet), all},
			{dataFile(http.MethodPut), "INSERT INTO renew.other SELECT * FROM renew.t"},
			{dataFile(http.MethodPut), "DELETE FROM renew.whole WHERE id IN (3, 4)"},
			{dataFile(http.MethodPut), "UPDATE renew.whole SET v = 'x' WHERE id = 3"},
			{dataFile(http.MethodPut), "MERGE INTO renew.other AS o USING renew.t AS t ON o.id = t.id WHEN NOT MATCHED THEN INSERT (id, v) VALUES (t.id, t.v)"},
		} {
			got := v.during(x.stop, x.text, refuse).Said()
			v.gives(func(g *giving) { g.refuse, g.loads = nil, false })
			if !strings.HasPrefix(got, "ERROR: The credentials for the files of table 'lake.renew.") || !strings.Contains(got, "expired during the statement") || !strings.Contains(got, no.want) {
				t.Errorf("%d: %s: %s", no.status, x.text, got)
			}
		}
	}
	// The same, with a key that ends and others that may do less: it is not asked for
	// more.
	narrow := func() {
		v.gives(func(g *giving) { g.may = func(who, folder string) string { return usual(who, folder+"/nothing") } })
		v.keys.End(t)
	}
	got := v.during(dataFile(http.MethodPut), "INSERT INTO renew.other SELECT * FROM renew.t", narrow).Said()
	if !strings.Contains(got, "does not let the server reach") {
		t.Errorf("narrowed: %s", got)
	}
	v.gives(func(g *giving) { g.may = nil })
	if after := state(); after != before {
		t.Errorf("before: %s\nafter: %s", before, after)
	}
	v.is("alice", all, "12|66")
}
