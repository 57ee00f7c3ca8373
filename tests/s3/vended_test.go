//go:build e2e

package s3

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sqe/catalog"
	"sqe/catalog/objects"
	"sqe/catalog/rest"
	"sqe/engine/scan"
	"sqe/fault"
	"sqe/plan"
	"sqe/tests/lab"
)

// vendor is a REST catalog with tables that lie in a store. It gives credentials with
// each, by the token of who asks.
type vendor struct {
	*httptest.Server
	mu sync.Mutex
	// metadata are the metadata files of tables on the disk, by name.
	metadata map[string]string
	// gives is what is answered beside the metadata of a table.
	gives func(token, table string) map[string]any
	loads int
}

func newVendor(t *testing.T) *vendor {
	v := &vendor{metadata: map[string]string{}}
	v.Server = httptest.NewServer(http.HandlerFunc(v.serve))
	t.Cleanup(v.Close)
	return v
}

func (v *vendor) serve(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	answer := func(x any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(x)
	}
	switch path := r.URL.Path; {
	case path == "/v1/config":
		answer(map[string]any{"defaults": map[string]string{}, "overrides": map[string]string{}})
	case path == "/v1/namespaces" && r.URL.Query().Get("parent") == "":
		answer(map[string]any{"namespaces": [][]string{{"ns"}}})
	case path == "/v1/namespaces":
		answer(map[string]any{"namespaces": [][]string{}})
	case path == "/v1/namespaces/ns":
		answer(map[string]any{"namespace": []string{"ns"}, "properties": map[string]string{}})
	case path == "/v1/namespaces/ns/tables":
		var list []map[string]any
		for name := range v.metadata {
			list = append(list, map[string]any{"namespace": []string{"ns"}, "name": name})
		}
		answer(map[string]any{"identifiers": list})
	case strings.HasPrefix(path, "/v1/namespaces/ns/tables/") && v.metadata[strings.TrimPrefix(path, "/v1/namespaces/ns/tables/")] != "":
		name := strings.TrimPrefix(path, "/v1/namespaces/ns/tables/")
		v.loads++
		body, err := os.ReadFile(v.metadata[name])
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		out := map[string]any{"metadata-location": "s3://" + strings.SplitN(v.metadata[name], "/lake/", 2)[1], "metadata": json.RawMessage(body)}
		for k, x := range v.gives(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), name) {
			out[k] = x
		}
		answer(out)
	default:
		w.WriteHeader(http.StatusNotFound)
		answer(map[string]any{"error": map[string]any{"message": "none", "type": "NoSuchTableException", "code": 404}})
	}
}

// bearer gives the token that the context holds.
type bearer struct{}

type tokenKey struct{}

func (bearer) Token(ctx context.Context) (rest.Token, error) {
	t, _ := ctx.Value(tokenKey{}).(string)
	return rest.Token{Bearer: t, Scope: t}, nil
}
func (bearer) Refused(rest.Token) bool { return false }

func as(token string) context.Context { return context.WithValue(ctx, tokenKey{}, token) }

// metadataOf is the file of the present metadata of a table.
func metadataOf(t *testing.T, l *lake, s *Store, name string) string {
	t.Helper()
	client, err := objects.New(objects.Options{Endpoint: s.Endpoint, Credentials: objects.Credentials{AccessKeyID: AccessKey, SecretAccessKey: SecretKey}})
	l.must(err)
	c, err := catalog.OpenSQLite(lab.Catalog, filepath.Join(l.dir, "catalog.db"), "s3://lake/wh", catalog.SQLOptions{Objects: client})
	l.must(err)
	defer func() { _ = c.Close() }()
	table, err := c.Table(ctx, plan.TableName{Catalog: lab.Catalog, Namespace: []string{"ns"}, Name: name}, plan.AsOf{}, "")
	l.must(err)
	return filepath.Join(s.Dir, strings.TrimPrefix(table.Version, "s3://"))
}

func keys(endpoint, id, secret string) map[string]string {
	return map[string]string{"s3.access-key-id": id, "s3.secret-access-key": secret, "s3.endpoint": endpoint, "s3.path-style-access": "true"}
}

// read reads a table as the principal of a context: how many rows it gets.
func read(ctx context.Context, c catalog.Catalog, p *scan.Planner, name string) (rows int, err error) {
	t, err := c.Table(ctx, plan.TableName{Catalog: "vend", Namespace: []string{"ns"}, Name: name}, plan.AsOf{}, "")
	if err != nil {
		return 0, err
	}
	if text := fmt.Sprintf("%v %+v %#v %+v", t, t, t, t.Handle); strings.Contains(text, SecretKey) || strings.Contains(text, AccessKey) {
		return 0, fmt.Errorf("a table shows its keys when it is printed")
	}
	s := &plan.Scan{Table: t}
	for i, f := range t.Fields {
		s.Cols = append(s.Cols, plan.ScanColumn{Column: plan.Column{ID: plan.ColumnID(i + 1), Name: f.Name, Type: f.Type}, FieldID: f.ID})
	}
	in, err := p.Plan(ctx, s)
	if err != nil {
		return 0, err
	}
	all := make([]int, len(s.Cols))
	for i := range all {
		all[i] = i
	}
	r, err := in.Stream.Open(ctx, all)
	if err != nil {
		return 0, err
	}
	defer func() { _ = r.Close() }()
	for {
		b, err := r.Next()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
		rows += int(b.NumRows())
		b.Release()
	}
}

// TestVended: what a catalog gives one principal opens files for that one alone, and for
// one load, whatever is kept; and it opens no other files.
func TestVended(t *testing.T) {
	store := StartStore(t)
	l := newLake(t, store.Endpoint, "", "")
	l.do("CREATE SCHEMA ns", "CREATE TABLE ns.t (id BIGINT, v VARCHAR(100))", "INSERT INTO ns.t VALUES (1, 'one'), (2, 'two')",
		"CREATE TABLE ns.other (id BIGINT)", "INSERT INTO ns.other VALUES (7)", "SELECT 1 FROM ns.t")
	v := newVendor(t)
	v.metadata["t"], v.metadata["other"] = metadataOf(t, l, store, "t"), metadataOf(t, l, store, "other")
	good := map[string]any{"config": keys(store.Endpoint, AccessKey, SecretKey)}
	v.gives = func(token, _ string) map[string]any {
		switch token {
		case "good":
			return good
		case "bad":
			return map[string]any{"config": keys(store.Endpoint, AccessKey, "not the secret")}
		}
		return nil
	}
	cache, err := objects.OpenCache(filepath.Join(t.TempDir(), "cache"), 1<<20)
	l.must(err)
	defer func() { _ = cache.Close() }()
	open := func(o catalog.ObjectStores) *catalog.REST {
		h, err := rest.NewHTTP(rest.HTTPOptions{})
		l.must(err)
		client, err := rest.New(rest.Options{URI: v.URL, HTTP: h, Tokens: bearer{}, Delegation: "vended-credentials"})
		l.must(err)
		o.Options.Cache, o.Options.Attempts = cache, 1
		c, err := catalog.OpenREST("vend", client, catalog.RESTOptions{Objects: o})
		l.must(err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	planner := scan.New(scan.Options{})
	wants := func(t *testing.T, c *catalog.REST, token, name string, rows int, kind fault.Kind) {
		t.Helper()
		got, err := read(as(token), c, planner, name)
		switch {
		case rows >= 0 && (err != nil || got != rows):
			t.Errorf("%s reads %s: %d rows, %v", token, name, got, err)
		case rows < 0 && !fault.Is(err, kind):
			t.Errorf("%s reads %s: %d rows, %v, want %v", token, name, got, err, kind)
		}
		if err != nil && strings.Contains(fmt.Sprintf("%v %+v", err, err), SecretKey) {
			t.Error("an error shows a key")
		}
	}
	c := open(catalog.ObjectStores{})
	wants(t, c, "good", "t", 2, 0)
	loads := v.loads
	wants(t, c, "good", "t", 2, 0)
	if v.loads != loads+1 {
		t.Errorf("the catalog was asked %d times for another read: what it gave was kept", v.loads-loads)
	}
	// Everything is in some cache now. It serves nobody without rights in the store.
	for range 3 {
		wants(t, c, "bad", "t", -1, fault.Unavailable)
		wants(t, c, "nobody", "t", -1, fault.Unavailable)
		wants(t, c, "good", "t", 2, 0)
	}
	// Not even with the keys of the configuration is a table opened for which the catalog
	// gives others.
	with := open(catalog.ObjectStores{Warehouse: "s3://lake/wh", Options: objects.Options{Endpoint: store.Endpoint, Credentials: objects.Credentials{AccessKeyID: AccessKey, SecretAccessKey: SecretKey}}})
	wants(t, with, "bad", "t", -1, fault.Unavailable)
	wants(t, with, "nobody", "t", 2, 0) // where it gives none they are what opens it
	t.Run("places", func(t *testing.T) {
		prefix := func(p string) map[string]any {
			return map[string]any{"storage-credentials": []map[string]any{{"prefix": p, "config": keys(store.Endpoint, AccessKey, SecretKey)}}}
		}
		location := strings.SplitN("s3:/"+strings.TrimPrefix(v.metadata["t"], store.Dir), "/metadata/", 2)[0]
		for _, c2 := range []struct {
			gives map[string]any
			rows  int
		}{
			{prefix(location), 2},
			{prefix(location + "/"), 2},
			{prefix("s3://lake/wh"), 2},
			{prefix("s3"), 2},
			{prefix("s3://lake/"), 2},
			{prefix(location[:len(location)-1]), -1},
			{prefix("s3://other/wh"), -1},
			{prefix("s3://lake/elsewhere"), -1},
		} {
			good = c2.gives
			wants(t, c, "good", "t", c2.rows, fault.Unsupported)
		}
		// A warehouse in the configuration narrows what a catalog opens.
		good = prefix(location)
		wants(t, open(catalog.ObjectStores{Warehouse: "s3://lake/elsewhere"}), "good", "t", -1, fault.Unsupported)
		wants(t, open(catalog.ObjectStores{Warehouse: "s3://lake/wh"}), "good", "t", 2, 0)
	})
	t.Run("addresses", func(t *testing.T) {
		good = map[string]any{"config": keys("http://store.example", AccessKey, SecretKey)}
		wants(t, c, "good", "t", -1, fault.Unsupported)
		good = map[string]any{"config": keys("http://user@127.0.0.1", AccessKey, SecretKey)}
		wants(t, c, "good", "t", -1, fault.Unsupported)
		// That of the configuration goes before.
		wants(t, open(catalog.ObjectStores{Options: objects.Options{Endpoint: store.Endpoint}}), "good", "t", 2, 0)
		good = map[string]any{"config": map[string]string{"s3.remote-signing-enabled": "true"}}
		wants(t, c, "good", "t", -1, fault.Unsupported)
	})
	t.Run("foreign files", func(t *testing.T) {
		// Metadata of one table that name the files of another one.
		l.T = t
		good = map[string]any{"config": keys(store.Endpoint, AccessKey, SecretKey)}
		was := v.metadata["t"]
		text, err := os.ReadFile(was)
		l.must(err)
		var meta map[string]any
		l.must(json.Unmarshal(text, &meta))
		own, err := os.ReadFile(v.metadata["other"])
		l.must(err)
		var other map[string]any
		l.must(json.Unmarshal(own, &other))
		for _, location := range []any{other["location"], "file:///etc", "s3://lake/wh/../wh", "s3://elsewhere/wh"} {
			meta["location"] = location
			text, err := json.Marshal(meta)
			l.must(err)
			v.metadata["t"] = filepath.Join(store.Dir, "lake", "wh", "forged.metadata.json")
			l.must(os.WriteFile(v.metadata["t"], text, 0o644))
			wants(t, c, "good", "t", -1, fault.Unsupported)
		}
		v.metadata["t"] = was
		wants(t, c, "good", "t", 2, 0)
	})
	l.T = t
}

// TestVendedStatements: statements on such a table through a server, and nothing of the
// keys in anything that it shows.
func TestVendedStatements(t *testing.T) {
	store := StartStore(t)
	v := newVendor(t)
	v.gives = func(string, string) map[string]any {
		return map[string]any{"config": keys(store.Endpoint, AccessKey, SecretKey)}
	}
	l := newLake(t, store.Endpoint, "", fmt.Sprintf("\n[[catalogs]]\nname = \"vend\"\nkind = \"rest\"\nuri = %q\nidentity = \"none\"\n[object-cache]\nsize = \"4MiB\"\n", v.URL))
	l.do("CREATE SCHEMA ns", "CREATE TABLE ns.t (id BIGINT, v VARCHAR(100))", "INSERT INTO ns.t VALUES (1, 'one'), (2, 'two')")
	v.metadata["t"] = metadataOf(t, l, store, "t")
	l.wants("SELECT group_concat(v ORDER BY id) FROM vend.ns.t", "one,two")
	l.wants("SELECT count(*) FROM vend.ns.t a JOIN ns.t b ON a.id = b.id", "2")
	l.do("EXPLAIN SELECT * FROM vend.ns.t", "EXPLAIN POLICY SELECT * FROM vend.ns.t", "SHOW CREATE TABLE vend.ns.t", "SELECT * FROM vend.ns.`t$files`",
		"SELECT * FROM vend.ns.`t$snapshots`", "SHOW TABLE STATUS FROM `vend.ns`", "SHOW FULL PROCESSLIST")
	v.gives = func(string, string) map[string]any {
		return map[string]any{"config": keys(store.Endpoint, AccessKey, SecretKey+"x")}
	}
	l.fails("SELECT count(v) FROM vend.ns.t WHERE v <> ''", "does not let the server")
	v.gives = func(string, string) map[string]any { return nil }
	l.fails("SELECT count(v) FROM vend.ns.t WHERE v <> ''", "no credentials")
}
