package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/iceberg-go/table"

	"sqe/catalog"
	"sqe/catalog/rest"
	"sqe/engine"
	"sqe/fault"
)

// shop is a REST catalog that hides some of what it has from everybody but root, as one
// does that filters its lists: it refuses what is hidden and does not know what is
// missing. It has namespaces "shop" and "vault", which is hidden, each with the tables
// "orders", "items", "people" and "secret" and the views "v" and "hidden".
type shop struct {
	*ddlFixture
	meta table.Metadata

	mu       sync.Mutex
	requests []string
	// meet holds requests for tables back until so many are there at once; 0: none.
	meet, waiting int
	all           chan struct{}
	made          bool // root has made the table "made"
	open          bool // lists what it hides, and opens it too: the policies alone hide it
}

func shopView(text string) string {
	return fmt.Sprintf(`{"metadata-location": "file:/x/metadata/1.json", "metadata": {"view-uuid": "c60b831c-6f48-4b72-94d5-000000000001", "format-version": 1,
	"location": "file:/x", "schemas": [{"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "n", "required": false, "type": "long"}]}],
	"current-version-id": 1, "versions": [{"version-id": 1, "timestamp-ms": 1, "schema-id": 0, "summary": {"engine-name": "sqe"},
	"representations": [{"type": "sql", "sql": %q, "dialect": "sqe"}], "default-namespace": ["shop"]}],
	"version-log": [{"timestamp-ms": 1, "version-id": 1}], "properties": {}}}`, text)
}

func openShop(t *testing.T, bound time.Duration) *shop {
	t.Helper()
	s := &shop{}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.ddlFixture = openDDLWith(t, func(o *engine.Options) {
		lake, _ := o.Catalogs.Get("lake")
		customers := mustTable(t, lake, "customers").Handle.(*catalog.Handle).Table
		s.meta = customers.Metadata()
		client, err := rest.New(rest.Options{URI: server.URL, Tokens: byName{}, HTTP: server.Client(), AllowHTTP: true})
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Dir(strings.TrimPrefix(customers.Location(), "file://"))
		remote, err := catalog.OpenREST("hub", client, catalog.RESTOptions{Local: filepath.Dir(filepath.Dir(dir)), Bound: bound, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = remote.Close() })
		if o.Catalogs, err = catalog.NewRegistry(remote, lake); err != nil {
			t.Fatal(err)
		}
	})
	for _, x := range []*engine.Session{s.root, s.sue, s.bob, s.nobody} {
		if err := x.Use(context.Background(), "shop"); err != nil && x != s.nobody && x != s.bob {
			t.Fatal(err)
		}
	}
	s.seen()
	return s
}

// seen are the requests since the last call, in any order.
func (s *shop) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.requests
	s.requests = nil
	slices.Sort(out)
	return out
}

// together holds requests for tables back until n are there.
func (s *shop) together(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.meet, s.waiting, s.all = n, 0, make(chan struct{})
}

var (
	shopNamespaces = []string{"shop", "vault"}
	shopTables     = []string{"items", "orders", "people", "secret"}
	shopViews      = map[string]string{"v": "SELECT COUNT(*) AS n FROM orders JOIN items USING (cust_id)", "hidden": "SELECT 1 AS n", "w": "SELECT n FROM v"}
)

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
	wait := s.all
	if s.meet > 0 && len(parts) == 4 && parts[2] == "tables" && slices.Contains(shopTables, parts[3]) {
		if s.waiting++; s.waiting == s.meet {
			close(s.all)
		}
	} else {
		wait = nil
	}
	s.mu.Unlock()
	if wait != nil {
		select {
		case <-wait:
		case <-r.Context().Done():
			return
		}
	}
	say := func(status int, x any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(x)
	}
	no := func(status int, kind string) {
		say(status, map[string]any{"error": map[string]any{"message": "no", "type": kind, "code": status}})
	}
	root := r.Header.Get("Authorization") == "Bearer root"
	s.mu.Lock()
	root = root || s.open
	s.mu.Unlock()
	shown := func(name string) bool { return root || !slices.Contains([]string{"secret", "hidden", "vault"}, name) }
	switch {
	case parts[0] == "config":
		say(200, map[string]any{"endpoints": []string{"GET /v1/{prefix}/namespaces/{namespace}/views/{view}"}})
		return
	case len(parts) == 1:
		all := [][]string{}
		for _, n := range shopNamespaces {
			if shown(n) && r.URL.Query().Get("parent") == "" {
				all = append(all, []string{n})
			}
		}
		say(200, map[string]any{"namespaces": all})
		return
	case len(parts) == 2 && parts[1] == "rename":
		var what struct{ Source, Destination struct{ Namespace []string } }
		_ = json.NewDecoder(r.Body).Decode(&what)
		if !slices.Contains(shopNamespaces, what.Destination.Namespace[0]) {
			no(404, "NoSuchNamespaceException")
			return
		}
		no(403, "ForbiddenException")
		return
	case !slices.Contains(shopNamespaces, parts[1]):
		no(404, "NoSuchNamespaceException")
		return
	case !shown(parts[1]):
		no(403, "ForbiddenException")
		return
	case len(parts) == 2:
		say(200, map[string]any{"namespace": parts[1:], "properties": map[string]string{}})
		return
	}
	names := slices.Clone(shopTables)
	s.mu.Lock()
	if s.made {
		names = append(names, "made")
	}
	s.mu.Unlock()
	if parts[2] == "views" {
		names = []string{"hidden", "v", "w"}
	}
	switch {
	case len(parts) == 3 && r.Method == http.MethodGet:
		all := []any{}
		for _, n := range names {
			if shown(n) {
				all = append(all, map[string]any{"namespace": parts[1:2], "name": n})
			}
		}
		say(200, map[string]any{"identifiers": all})
	case len(parts) == 3 && parts[2] == "tables" && r.Header.Get("Authorization") == "Bearer root":
		s.mu.Lock()
		s.made = true
		s.mu.Unlock()
		say(200, map[string]any{"metadata": s.meta, "metadata-location": "file:/nowhere/1.json"})
	case len(parts) == 3:
		no(403, "ForbiddenException")
	case !slices.Contains(names, parts[3]):
		no(404, map[bool]string{true: "NoSuchViewException", false: "NoSuchTableException"}[parts[2] == "views"])
	case !shown(parts[3]) || r.Method != http.MethodGet:
		no(403, "ForbiddenException")
	case parts[2] == "views":
		_, _ = w.Write([]byte(shopView(shopViews[parts[3]])))
	default:
		say(200, map[string]any{"metadata": s.meta, "metadata-location": "file:/nowhere/" + parts[1] + "/" + parts[3] + "/1.json"})
	}
}

// statementsOn name an object @o of the current database.
var statementsOn = []string{
	"SELECT * FROM @o", "SELECT COUNT(*) FROM shop.@o", "SELECT 1 FROM orders JOIN @o USING (cust_id)", "SELECT * FROM @o FOR VERSION AS OF 1",
	"SELECT * FROM @o FOR TIMESTAMP AS OF '2024-01-01'", "SELECT * FROM `@o$snapshots`", "SELECT (SELECT MAX(n) FROM @o) FROM orders", "SELECT @o.x FROM @o",
	"WITH x AS (SELECT * FROM @o) SELECT * FROM x", "TABLE @o",
	"DESCRIBE @o", "DESC @o", "SHOW CREATE TABLE @o", "SHOW CREATE VIEW @o", "SHOW COLUMNS FROM @o", "SHOW FULL COLUMNS FROM @o FROM shop", "SHOW INDEX FROM @o",
	"SHOW TABLES LIKE '@o'", "SHOW FULL TABLES LIKE '@o'", "SHOW TABLE STATUS LIKE '@o'",
	"EXPLAIN SELECT * FROM @o", "EXPLAIN POLICY SELECT * FROM @o", "EXPLAIN INSERT INTO @o VALUES (1)", "EXPLAIN DELETE FROM @o",
	"INSERT INTO @o VALUES (1)", "INSERT INTO @o SELECT * FROM orders", "INSERT INTO orders SELECT * FROM @o", "INSERT OVERWRITE @o SELECT * FROM orders",
	"UPDATE @o SET x = 1", "DELETE FROM @o", "DELETE FROM @o WHERE x = 1", "TRUNCATE TABLE @o",
	"MERGE INTO @o USING orders AS s ON 1 = 1 WHEN MATCHED THEN DELETE", "MERGE INTO orders AS o USING @o AS s ON 1 = 1 WHEN MATCHED THEN DELETE",
	"DROP TABLE @o", "DROP TABLE IF EXISTS @o", "DROP TABLE @o PURGE", "DROP VIEW @o", "DROP VIEW IF EXISTS @o",
	"ALTER TABLE @o ADD COLUMN x INT", "ALTER TABLE IF EXISTS @o ADD COLUMN x INT", "ALTER TABLE @o DROP COLUMN x", "ALTER TABLE @o RENAME TO other", "RENAME TABLE @o TO other",
	"ALTER TABLE @o SET TBLPROPERTIES ('a' = 'b')", "ALTER TABLE @o CREATE BRANCH b", "ALTER TABLE @o SET TAGS (x = (PII))", "ALTER TABLE @o UNSET TAGS (x)", "SHOW TAGS ON @o",
	"ALTER VIEW @o AS SELECT 1 AS one", "ALTER VIEW @o RENAME TO other", "ALTER VIEW @o SET TBLPROPERTIES ('a' = 'b')",
	"CREATE TABLE other LIKE @o", "CREATE TABLE other AS SELECT * FROM @o", "CREATE VIEW other AS SELECT * FROM @o",
	"CALL system.rollback_to_snapshot('shop.@o', 1)", "CALL system.set_current_snapshot('shop.@o', 1)", "CALL system.rollback_to_timestamp('shop.@o', '2020-01-01')",
	"CALL system.rewrite_data_files('shop.@o')", "CALL system.expire_snapshots('shop.@o')", "CALL system.remove_orphan_files('shop.@o')",
	"SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = 'shop' AND table_name = '@o'",
	"SELECT column_name FROM information_schema.columns WHERE table_schema = 'shop' AND table_name = '@o'",
	"SELECT table_name FROM information_schema.views WHERE table_name = '@o'",
	"CREATE INDEX i ON @o (x)", "ANALYZE TABLE @o", "SHOW EFFECTIVE POLICY FOR USER sue ON @o", "SHOW POLICIES ON @o", "GRANT SELECT ON @o TO USER bob", "REVOKE SELECT ON @o FROM USER bob", "SHOW GRANTS ON @o",
	"SHOW GRANTS ON TABLE @o", "CREATE POLICY p ON TABLE @o COLUMN MASK MASK_NULL TO USER bob ON COLUMN x",
}

// statementsIn name a namespace @o.
var statementsIn = []string{
	"USE @o", "SELECT * FROM @o.orders", "SELECT * FROM @o.v", "SELECT * FROM @o.nothing", "DESCRIBE @o.orders", "SHOW TABLES FROM @o", "SHOW FULL TABLES FROM @o", "SHOW TABLE STATUS FROM @o", "SHOW CREATE DATABASE @o",
	"SHOW DATABASES LIKE '@o'", "SHOW CREATE TABLE @o.orders", "SHOW COLUMNS FROM @o.orders", "INSERT INTO @o.orders VALUES (1)", "DELETE FROM @o.orders", "DROP TABLE @o.orders", "DROP TABLE IF EXISTS @o.orders",
	"DROP SCHEMA @o", "DROP SCHEMA IF EXISTS @o", "ALTER SCHEMA @o SET PROPERTIES ('a' = 'b')", "CREATE TABLE @o.other (a INT)", "CREATE VIEW @o.other AS SELECT 1 AS one", "CREATE TABLE @o.other AS SELECT * FROM shop.orders",
	"RENAME TABLE shop.orders TO @o.other", "ALTER TABLE @o.orders ADD COLUMN x INT",
	"SELECT schema_name FROM information_schema.schemata WHERE schema_name = '@o'", "SELECT table_name FROM information_schema.tables WHERE table_schema = '@o'",
	"CREATE SCHEMA @o.below", "CREATE TABLE IF NOT EXISTS @o.other (a INT)", "CREATE OR REPLACE TABLE @o.other (a INT)", "CREATE OR REPLACE TABLE @o.orders (a INT)", "CREATE TABLE @o.other LIKE shop.orders",
	"CREATE OR REPLACE TABLE @o.other AS SELECT * FROM shop.orders", "CREATE OR REPLACE VIEW @o.v AS SELECT 1 AS one", "ALTER TABLE shop.orders RENAME TO @o.other", "ALTER VIEW shop.v RENAME TO @o.other",
	"INSERT INTO @o.orders SELECT * FROM shop.orders", "INSERT INTO @o.nothing VALUES (1)", "INSERT OVERWRITE @o.orders SELECT * FROM shop.orders", "UPDATE @o.orders SET x = 1",
	"MERGE INTO @o.orders AS o USING shop.orders AS s ON 1 = 1 WHEN MATCHED THEN DELETE", "EXPLAIN INSERT INTO @o.orders VALUES (1)", "TRUNCATE TABLE @o.orders", "DROP VIEW @o.v", "SELECT * FROM @o.orders FOR VERSION AS OF 'main'",
	"CALL system.rollback_to_snapshot('@o.orders', 1)", "SELECT * FROM `@o.below`.orders", "GRANT SELECT ON ALL TABLES IN SCHEMA @o TO USER bob", "SHOW EFFECTIVE POLICY FOR USER sue ON @o.orders",
}

// TestAlike: in each form of statement what is hidden and what is missing are answered
// by the same text, after the same questions to the catalog and to the policies.
func TestAlike(t *testing.T) {
	t.Run("a catalog that hides", func(t *testing.T) { alike(t, false) })
	t.Run("a catalog that shows everything to everybody", func(t *testing.T) { alike(t, true) })
}

func alike(t *testing.T, open bool) {
	s := openShop(t, -1)
	s.open = open
	users := map[string]*engine.Session{
		"the catalog hides it": s.sue, // whom the policies permit everything
		"the policies hide it": s.nobody,
		"may see the database": s.bob,
	}
	s.may("bob", "shop", "namespace-list")
	s.may("bob", "shop.orders", "table-data-read table-data-write table-list table-drop")
	s.may("bob", "hub", "namespace-list")
	if err := s.bob.Use(context.Background(), "shop"); err != nil {
		t.Fatal(err)
	}
	if open {
		delete(users, "the catalog hides it")
	}
	type outcome struct {
		text     string
		requests []string
		asked    []string
	}
	run := func(session *engine.Session, text, name string) outcome {
		plain := func(x string) string { return strings.ReplaceAll(x, name, "@o") }
		s.seen()
		s.gate.mu.Lock()
		s.gate.asked = nil
		s.gate.mu.Unlock()
		rows, err := query(session, strings.ReplaceAll(text, "@o", name))
		out := outcome{text: rows}
		if err != nil {
			out.text = fault.KindOf(err).String() + ": " + err.Error()
		}
		for _, r := range s.seen() {
			if r == "GET /v1/config" {
				continue // once for each principal
			}
			if open {
				r = strings.ReplaceAll(r, "parent=vault", "parent="+name) // it is always listed
			}
			out.requests = append(out.requests, plain(r))
		}
		s.gate.mu.Lock()
		for _, a := range s.gate.asked {
			out.asked = append(out.asked, plain(a))
		}
		s.gate.mu.Unlock()
		slices.Sort(out.requests)
		if open {
			out.requests = slices.Compact(out.requests)
		}
		slices.Sort(out.asked)
		if text := strings.ToUpper(text); err == nil && (strings.Contains(text, "IF EXISTS") || strings.HasPrefix(text, "SHOW")) {
			out.text += "\n" + warnings(t, session)
		}
		out.text = plain(out.text)
		return out
	}
	for who, session := range users {
		for _, x := range []struct {
			statements []string
			hidden     []string
			missing    string
		}{{statementsOn, []string{"secret", "hidden"}, "absent"}, {statementsIn, []string{"vault"}, "attic"}} {
			for _, text := range x.statements {
				missing := run(session, text, x.missing)
				for _, name := range x.hidden {
					hidden := run(session, text, name)
					if hidden.text != missing.text {
						t.Errorf("%s: %s (%s):\n  hidden:  %s\n  missing: %s", who, text, name, hidden.text, missing.text)
					}
					if open && !strings.HasPrefix(text, "CREATE") && !strings.Contains(text, "RENAME TO") && !strings.HasPrefix(text, "USE") {
						continue // what is listed is asked for further; nobody but the catalog and the clock see that
					}
					if !slices.Equal(hidden.requests, missing.requests) {
						t.Errorf("%s: %s (%s):\n  hidden:  %q\n  missing: %q", who, text, name, hidden.requests, missing.requests)
					}
					if !slices.Equal(hidden.asked, missing.asked) && !open {
						t.Errorf("%s: %s (%s): policies are asked\n  hidden:  %q\n  missing: %q", who, text, name, hidden.asked, missing.asked)
					}
				}
				if testing.Verbose() {
					t.Logf("%s: %s: %s %q", who, text, missing.text, missing.requests)
				}
			}
			for _, session := range users {
				_ = session.Use(context.Background(), "shop")
			}
		}
	}
	// A catalog. What is asked for differs where it is of another kind.
	for _, text := range []string{"USE `@o.bank`", "SELECT * FROM `@o.bank`.customers", "SHOW TABLES FROM `@o.bank`", "DROP TABLE `@o.bank`.customers", "CREATE TABLE `@o.bank`.t (a INT)", "DROP SCHEMA `@o.bank`"} {
		if there, none := run(s.nobody, text, "lake"), run(s.nobody, text, "pond"); there.text != none.text {
			t.Errorf("%s: %q and %q tell a catalog from none", text, there.text, none.text)
		}
	}
	// The control: whoever may see it is answered otherwise.
	for _, text := range []string{"SELECT COUNT(*) FROM hidden", "DESCRIBE secret", "DESCRIBE vault.orders", "SHOW TABLES FROM vault"} {
		if got, err := query(s.root, text); err != nil || got == "" {
			t.Errorf("%s: %q %v", text, got, err)
		}
	}
}
