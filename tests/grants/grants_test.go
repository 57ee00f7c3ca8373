package grants

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"sqe/audit"
	"sqe/catalog"
	"sqe/demo/data"
	"sqe/engine"
	"sqe/engine/duck"
	"sqe/engine/scan"
	"sqe/fault"
	"sqe/identity"
	"sqe/masks"
	"sqe/policy"
	"sqe/policystore"
	"sqe/policystore/rest"
	"sqe/rangerclient"
	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

// lake is an engine with the sample tables and a policy store in which nobody has
// access to anything.
type lake struct {
	*testing.T
	engine *engine.Engine
	store  *policystore.Store
	source *rangerclient.Source
	// administrator writes to the policy server.
	administrator *admin.Administrator
	// broken, when not nil, gets every request to the policy server of the sink "rest"; it
	// answers itself and returns true, or the server does. Requests of downloads pass.
	broken func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) bool
	// fails makes writes of policies fail: it gets the name of the policy.
	fails func(policy string) error
	// Sessions by user.
	sessions map[string]*engine.Session
	mu       sync.Mutex
	last     audit.Event // of the last statement
}

// Ready implements audit.Sink.
func (*lake) Ready() error { return nil }

// Record implements audit.Sink.
func (l *lake) Record(e audit.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = e
	return nil
}

// failing is a policy server with writes that fail when a test says so.
type failing struct {
	admin.Server
	lake *lake
}

// Name is the same for every sink, so that all give the same answers.
func (failing) Name() string { return "the policy server" }

func (f failing) fail(p string) error {
	if f.lake.fails == nil {
		return nil
	}
	return f.lake.fails(p)
}

func (f failing) CreatePolicy(ctx context.Context, p *model.Policy) (*model.Policy, error) {
	if err := f.fail(p.Name); err != nil {
		return nil, err
	}
	return f.Server.CreatePolicy(ctx, p)
}

func (f failing) UpdatePolicy(ctx context.Context, p *model.Policy) (*model.Policy, error) {
	if err := f.fail(p.Name); err != nil {
		return nil, err
	}
	return f.Server.UpdatePolicy(ctx, p)
}

// members of the tests: the groups and roles of each user.
var members = map[string]struct{ groups, roles []string }{
	"ann": {[]string{"eu"}, []string{"teller"}}, "ben": {[]string{"eu"}, nil}, "cat": {nil, []string{"teller", "senior"}}, "dan": {nil, nil},
}

// sinks are the policy servers that the tests run over: the embedded store, and a
// Ranger Admin, as which the store answers over REST.
var sinks = []string{"store", "rest"}

func open(t *testing.T) *lake { return openOver(t, "store") }

func openOver(t *testing.T, sink string) *lake {
	t.Helper()
	return openWith(t, sink, settings{})
}

// settings are those of the configuration that change what statements do.
type settings struct {
	options       rangerclient.Options
	groupsAsRoles bool
	rangerDecides bool
	managedBy     map[string]string
	catalogs      []catalog.Catalog // beside lake
}

func openWith(t *testing.T, sink string, set settings) *lake {
	t.Helper()
	ctx, dir := context.Background(), t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	cat, err := catalog.OpenSQLite("lake", filepath.Join(dir, "catalog.db"), filepath.Join(dir, "warehouse"), catalog.SQLOptions{Create: true})
	must(err)
	t.Cleanup(func() { _ = cat.Close() })
	must(data.Write(ctx, cat))
	// Schemas inside another one, with a table of one name.
	for _, ns := range [][]string{{"sales"}, {"sales", "eu"}, {"sales", "eu", "de"}} {
		must(cat.CreateNamespace(ctx, ns, nil, false))
	}
	registry, err := catalog.NewRegistry(append([]catalog.Catalog{cat}, set.catalogs...)...)
	must(err)
	executor, err := duck.Open(duck.Config{Roots: []string{filepath.Join(dir, "warehouse")}, Threads: 1, MemoryLimit: 256 << 20})
	must(err)
	t.Cleanup(func() { _ = executor.Close() })
	store, err := policystore.Open(ctx, filepath.Join(dir, "policies.db"), policystore.Options{AdminPassword: "Passw0rd-of-tests"})
	must(err)
	t.Cleanup(func() { _ = store.Close() })
	unused := model.Strings{"username": "none", "password": "none", "jdbc.driverClassName": "none", "jdbc.url": "none"}
	for _, s := range []*model.Service{
		{Name: "tags", Type: "tag"}, {Name: "hive", Type: "hive", TagService: "tags", Configs: unused}, {Name: "polaris", Type: "polaris", TagService: "tags"},
	} {
		_, err := store.CreateService(ctx, s)
		must(err)
	}
	_, err = store.CreateGroup(ctx, &model.Group{Name: "eu"})
	must(err)
	roles := map[string][]model.Member{"teller": nil, "senior": nil, "empty": nil}
	for u, m := range members {
		_, err := store.CreateUser(ctx, &model.User{Name: u, Password: "Passw0rd-of-tests", Groups: m.groups})
		must(err)
		for _, r := range m.roles {
			roles[r] = append(roles[r], model.Member{Name: u})
		}
	}
	for name, users := range roles {
		_, err = store.CreateRole(ctx, &model.Role{Name: name, Users: users})
		must(err)
	}
	l := &lake{T: t, store: store, sessions: map[string]*engine.Session{}}
	var server admin.Server = store
	var source *rangerclient.Source
	if sink == "store" {
		source, err = rangerclient.OpenStore(rangerclient.StoreConfig{Name: "store", Store: store, PolarisService: "polaris", DataService: "hive", Options: set.options})
	} else {
		handler := rest.New(store, rest.Options{})
		face := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if f := l.broken; f == nil || strings.Contains(r.URL.Path, "/download/") || !f(w, r, handler.ServeHTTP) {
				handler.ServeHTTP(w, r)
			}
		}))
		t.Cleanup(face.Close)
		server, err = admin.OpenREST(admin.RESTConfig{URL: face.URL, Username: "admin", Password: "Passw0rd-of-tests"})
		must(err)
		source, err = rangerclient.OpenREST(rangerclient.RESTConfig{
			Name: "store", URL: face.URL, Username: "admin", Password: "Passw0rd-of-tests", PolarisService: "polaris", DataService: "hive",
			RefreshInterval: time.Second, Options: set.options,
		})
	}
	must(err)
	t.Cleanup(func() { _ = source.Close() })
	must(source.Reload(ctx))
	a, err := admin.New(failing{server, l}, admin.Config{
		Source: "store", DataService: "hive", PolarisService: "polaris", Reload: source.Reload,
		Options: set.options, GroupsAsRoles: set.groupsAsRoles, RangerDecides: set.rangerDecides,
	})
	must(err)
	l.source, l.administrator = source, a
	l.engine = engine.New(engine.Options{
		Catalogs: registry, Sources: []policy.Source{source}, Administrators: []policy.Administrator{a}, Duck: executor, Scans: scan.New(scan.Options{}),
		Masks: masks.Options{HashKey: []byte("a key for the tests of grants")}, Audit: l, StatementTimeout: time.Minute, Version: "8.0.36-SQE",
		ManagedBy: set.managedBy,
	})
	l.session(identity.Principal{Name: "root", Admin: true})
	for u := range members {
		l.session(identity.Principal{Name: u})
	}
	return l
}

func (l *lake) session(p identity.Principal) {
	l.Helper()
	s, err := l.engine.Open(p, engine.ConnInfo{ID: 1, RemoteAddr: "10.0.0.1:5000", Database: "bank"})
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(s.Close)
	l.sessions[p.Name] = s
}

// ask runs a statement: rows on lines, cells between bars; then warnings.
func (l *lake) ask(user, text string) (rows string, warnings string, err error) {
	s := l.sessions[user]
	res, _, err := s.Query(context.Background(), text)
	if err != nil {
		return "", "", err
	}
	n := res.Warnings
	if rows, err = print(res); err == nil && n > 0 {
		var w *engine.Result
		if w, _, err = s.Query(context.Background(), "SHOW WARNINGS"); err == nil {
			warnings, err = print(w)
		}
	}
	return rows, warnings, err
}

func print(res *engine.Result) (string, error) {
	if res.Rows == nil {
		return "", nil
	}
	defer func() { _ = res.Rows.Close() }()
	var lines []string
	for {
		b, err := res.Rows.Next()
		if err == io.EOF {
			return strings.Join(lines, "\n"), nil
		}
		if err != nil {
			return "", err
		}
		for r := range int(b.NumRows()) {
			var line strings.Builder
			for c := range int(b.NumCols()) {
				if c > 0 {
					line.WriteByte('|')
				}
				if b.Column(c).IsNull(r) {
					line.WriteString("NULL")
				} else {
					line.WriteString(b.Column(c).ValueStr(r))
				}
			}
			lines = append(lines, line.String())
		}
		b.Release()
	}
}

func (l *lake) root(text string) {
	l.Helper()
	if _, _, err := l.ask("root", text); err != nil {
		l.Fatalf("%s: %v", text, err)
	}
}

var moment = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// TestStatements runs testdata/statements: statements of users, with what they
// answer.
func TestStatements(t *testing.T) {
	for _, sink := range sinks {
		t.Run(sink, func(t *testing.T) { statements(t, sink) })
	}
}

func statements(t *testing.T, sink string) {
	datadriven.Walk(t, "testdata/statements", func(t *testing.T, path string) {
		l := openOver(t, sink)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if l.sessions[d.Cmd] == nil {
				t.Fatalf("%s: nobody is called %s", d.Pos, d.Cmd)
			}
			var out strings.Builder
			for _, text := range strings.Split(d.Input, "\n") {
				rows, warnings, err := l.ask(d.Cmd, text)
				rows = moment.ReplaceAllString(rows, "<when>")
				if err != nil {
					fmt.Fprintf(&out, "%s: %v\n", fault.KindOf(err), err)
					continue
				}
				if rows == "" {
					rows = "ok"
				}
				fmt.Fprintln(&out, rows)
				if warnings != "" {
					fmt.Fprintln(&out, "  "+strings.ReplaceAll(warnings, "\n", "\n  "))
				}
			}
			return out.String()
		})
	})
}

// policies is all that the store holds, without what counts writes.
func (l *lake) policies() string {
	l.Helper()
	list, err := l.store.Policies(context.Background(), "polaris")
	if err != nil {
		l.Fatal(err)
	}
	var out strings.Builder
	for _, p := range list {
		fmt.Fprintf(&out, "%s %v %v\n", p.Name, p.Resources, p.PolicyLabels)
		for _, i := range append(p.PolicyItems, p.DenyPolicyItems...) {
			fmt.Fprintf(&out, "  %v %v %v %v", i.Users, i.Groups, i.Roles, i.DelegateAdmin)
			for _, a := range i.Accesses {
				fmt.Fprint(&out, " ", a.Type)
			}
			fmt.Fprintln(&out)
		}
	}
	return out.String()
}

// TestAllOrNothing: whichever write of a statement fails, what was before is there
// again, and the statement says so.
func TestAllOrNothing(t *testing.T) {
	for _, sink := range sinks {
		t.Run(sink, func(t *testing.T) { allOrNothing(openOver(t, sink)) })
	}
}

func allOrNothing(l *lake) {
	t := l.T
	l.root("GRANT SELECT ON customers TO ROLE teller")
	l.root("GRANT USE ON SCHEMA bank TO ben")
	before := l.policies()
	const statement = "GRANT SELECT, DROP ON TABLE customers, payments, SCHEMA other TO ben, ROLE senior, GROUP eu"
	broken := errors.New("the disk is full")
	writes := 0
	l.fails = func(string) error { writes++; return nil }
	l.root("EXPLAIN " + statement)
	if writes != 0 {
		t.Fatal("EXPLAIN writes")
	}
	// How many writes there are.
	l.root(statement)
	total := writes
	l.fails = nil
	l.root("REVOKE SELECT, DROP ON TABLE customers, payments, SCHEMA other FROM ben, ROLE senior, GROUP eu")
	if after := l.policies(); strip(after) != strip(before) {
		t.Fatalf("REVOKE leaves\n%s\nbefore:\n%s", after, before)
	}
	before = l.policies()
	if total < 4 {
		t.Fatalf("%d writes", total)
	}
	for n := 1; n <= total; n++ {
		count := 0
		l.fails = func(string) error {
			if count++; count == n {
				return &admin.Error{Kind: admin.Invalid, Reason: broken.Error()}
			}
			return nil
		}
		_, _, err := l.ask("root", statement)
		if err == nil || !strings.Contains(err.Error(), "nothing was changed") {
			t.Errorf("write %d fails: %v", n, err)
		}
		l.fails = nil
		if after := l.policies(); after != before {
			t.Fatalf("write %d fails, and\n%s\nis there; before:\n%s", n, after, before)
		}
	}
	// When even that fails, it is said.
	count := 0
	l.fails = func(string) error {
		if count++; count >= 3 {
			return &admin.Error{Kind: admin.Invalid, Reason: broken.Error()}
		}
		return nil
	}
	_, _, err := l.ask("root", statement)
	l.fails = nil
	if err == nil || !strings.Contains(err.Error(), "could not be taken back") {
		t.Errorf("the end of everything: %v", err)
	}
	// Repeating it makes it whole.
	l.root(statement)
	for _, who := range []string{"ben", "cat"} {
		if _, _, err := l.ask(who, "SELECT COUNT(*) FROM payments"); err != nil {
			t.Errorf("%s: %v", who, err)
		}
	}
}

// strip leaves out labels about authors.
func strip(s string) string { return strings.ReplaceAll(s, "sqe:by=root ", "") }

// TestSimultaneous: many grant at once, and nothing is lost.
func TestSimultaneous(t *testing.T) {
	for _, sink := range sinks {
		t.Run(sink, func(t *testing.T) { simultaneous(openOver(t, sink)) })
	}
}

func simultaneous(l *lake) {
	t := l.T
	var wait sync.WaitGroup
	users := []string{"ann", "ben", "cat", "dan"}
	tables := []string{"customers", "payments"}
	for i, u := range users {
		l.session(identity.Principal{Name: fmt.Sprint("root", i), Admin: true})
		wait.Add(1)
		go func() {
			defer wait.Done()
			for _, table := range tables {
				for _, text := range []string{"GRANT SELECT ON %s TO %s", "GRANT INSERT ON %s TO %s", "REVOKE SELECT ON %s FROM %s"} {
					if _, _, err := l.ask(fmt.Sprint("root", i), fmt.Sprintf(text, table, u)); err != nil {
						t.Errorf(text+": %v", table, u, err)
					}
				}
			}
		}()
	}
	wait.Wait()
	for _, u := range users {
		for _, table := range tables {
			if _, _, err := l.ask(u, "SELECT COUNT(*) FROM "+table); err != nil {
				t.Errorf("%s, who may INSERT, on %s: %v", u, table, err)
			}
			l.root("REVOKE ALL ON " + table + " FROM " + u)
		}
	}
	if left := l.policies(); left != "" {
		t.Errorf("left:\n%s", left)
	}
}
