package policysql

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

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
	"sqe/rangerclient"
	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

// lake is an engine with the sample tables and a policy store.
type lake struct {
	*testing.T
	engine        *engine.Engine
	catalog       *catalog.SQL
	store         *policystore.Store
	administrator *admin.Administrator
	root          *engine.Session
}

// Users of the tests: they may read all tables. Group eu has ann and ben.
var users = []string{"ann", "ben", "control"}

func open(t *testing.T) *lake {
	t.Helper()
	return openWith(t, false)
}

// openWith opens a lake whose tags may go to the policy store too.
func openWith(t *testing.T, projectTags bool) *lake {
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
	registry, err := catalog.NewRegistry(cat)
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
	for _, u := range users {
		user := &model.User{Name: u, Password: "Passw0rd-of-tests"}
		if u != "control" {
			user.Groups = []string{"eu"}
		}
		_, err := store.CreateUser(ctx, user)
		must(err)
	}
	_, err = store.CreateRole(ctx, &model.Role{Name: "teller", Users: []model.Member{{Name: "ann"}}})
	must(err)
	yes := true
	access := &model.Item{Groups: []string{policy.Public}}
	for _, a := range []policy.Privilege{policy.CatalogList, policy.NamespaceList, policy.TableList, policy.TableProps, policy.TableDataRead} {
		access.Accesses = append(access.Accesses, model.Access{Type: string(a), Allowed: &yes})
	}
	all := func(names ...string) map[string]model.Resource {
		out := map[string]model.Resource{}
		for _, n := range names {
			out[n] = model.Resource{Values: []string{"*"}}
		}
		return out
	}
	_, err = store.CreatePolicy(ctx, &model.Policy{
		Service: "polaris", Name: "everybody reads", Enabled: &yes, AuditEnabled: &yes, Resources: all("root", "catalog", "namespace", "table"),
		PolicyItems: []*model.Item{access},
	})
	must(err)

	source, err := rangerclient.OpenStore(rangerclient.StoreConfig{Name: "store", Store: store, PolarisService: "polaris", DataService: "hive"})
	must(err)
	t.Cleanup(func() { _ = source.Close() })
	must(source.Reload(ctx))
	a, err := admin.New(store, admin.Config{Source: "store", DataService: "hive", PolarisService: "polaris", ProjectTags: projectTags, Reload: source.Reload})
	must(err)
	l := &lake{T: t, catalog: cat, store: store, administrator: a}
	l.engine = engine.New(engine.Options{
		Catalogs: registry, Sources: []policy.Source{source}, Administrators: []policy.Administrator{a}, Duck: executor, Scans: scan.New(scan.Options{}),
		Masks: masks.Options{HashKey: []byte("a key for the tests of policies")}, Audit: audit.Discard{}, StatementTimeout: time.Minute, Version: "8.0.36-SQE",
	})
	l.root = l.session(identity.Principal{Name: "root", Admin: true})
	return l
}

func (l *lake) session(p identity.Principal) *engine.Session {
	l.Helper()
	s, err := l.engine.Open(p, engine.ConnInfo{ID: 1, RemoteAddr: "10.0.0.1:5000", Database: "bank"})
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(s.Close)
	return s
}

func (l *lake) user(name string) *engine.Session { return l.session(identity.Principal{Name: name}) }

// ask runs a statement: rows on lines, cells between bars.
func ask(s *engine.Session, text string) (string, error) {
	res, _, err := s.Query(context.Background(), text)
	if err != nil || res.Rows == nil {
		return "", err
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

func (l *lake) write(text string) {
	l.Helper()
	if _, err := ask(l.root, text); err != nil {
		l.Fatalf("%s: %v", text, err)
	}
}

// sees asks each user the same and compares.
func (l *lake) sees(text string, want map[string]string) {
	l.Helper()
	for _, u := range users {
		got, err := ask(l.user(u), text)
		if err != nil || got != want[u] {
			l.Errorf("%s sees %q, %v; want %q", u, got, err, want[u])
		}
	}
}

// raw is the IBAN of the first customer.
const raw, last4, first = "NL91ABNA0417164300", "xxxxxxxxxxxxxx4300", "SELECT iban FROM customers ORDER BY cust_id LIMIT 1"

// TestWriteAndSee: masks and filters for users, groups, roles and everybody, on
// tables and on tags.
func TestWriteAndSee(t *testing.T) {
	l := open(t)
	l.sees(first, map[string]string{"ann": raw, "ben": raw, "control": raw})
	l.write("CREATE POLICY iban ON TABLE customers COLUMN MASK MASK_SHOW_LAST_4 TO ROLE teller, COLUMN MASK CUSTOM TO GROUP eu USING (concat(left({col}, 2), '*')) ON COLUMN iban")
	l.sees(first, map[string]string{"ann": last4, "ben": "NL*", "control": raw})
	l.write("ALTER POLICY iban ADD FIRST COLUMN MASK MASK_NULL TO USER ben, REMOVE ROLE teller")
	l.sees(first, map[string]string{"ann": "NL*", "ben": "NULL", "control": raw})
	l.write("ALTER POLICY iban DISABLE")
	l.sees(first, map[string]string{"ann": raw, "ben": raw, "control": raw})
	l.write("ALTER POLICY iban ENABLE, SET VALID FROM '2099-01-01'")
	l.sees(first, map[string]string{"ann": raw, "ben": raw, "control": raw})
	l.write("CREATE OR REPLACE POLICY iban ON TABLE customers COLUMN MASK MASK_NONE TO USER control, COLUMN MASK MASK_NULL TO PUBLIC ON COLUMN iban")
	l.sees(first, map[string]string{"ann": "NULL", "ben": "NULL", "control": raw})
	l.write("DROP POLICY iban")
	l.write("CREATE POLICY pii ON TAG PII COLUMN MASK MASK_SHOW_LAST_4 TO GROUP eu")
	l.sees(first, map[string]string{"ann": last4, "ben": last4, "control": raw})
	// Where both a tag and a table mask a column the tag's mask acts, unless the
	// other overrides.
	l.write("CREATE POLICY iban ON TABLE customers COLUMN MASK MASK_NULL TO USER ben ON COLUMN iban")
	l.sees(first, map[string]string{"ann": last4, "ben": last4, "control": raw})
	l.write("ALTER POLICY iban SET PRIORITY OVERRIDE")
	l.sees(first, map[string]string{"ann": last4, "ben": "NULL", "control": raw})

	const count = "SELECT COUNT(*) FROM payments"
	l.write("CREATE POLICY some ON TABLE bank.payments ROW FILTER TO ROLE teller USING (cust_id IN (SELECT cust_id FROM customers WHERE residency_region = 'EU')), ROW FILTER TO USER ben USING (1 = 0)")
	eu, err := ask(l.user("control"), "SELECT COUNT(*) FROM payments p JOIN customers c USING (cust_id) WHERE c.residency_region = 'EU'")
	if err != nil || eu == "0" || eu == "24" {
		t.Fatalf("%q payments of the EU, %v", eu, err)
	}
	l.sees(count, map[string]string{"ann": eu, "ben": "0", "control": "24"})
	l.write("ALTER POLICY some REMOVE USER ben, ADD ROW FILTER TO USER control USING (pay_id < 0)")
	l.sees(count, map[string]string{"ann": eu, "ben": "24", "control": "0"})
}

// TestEveryChangeIsSeen: no statement after a change works with what was before.
func TestEveryChangeIsSeen(t *testing.T) {
	l := open(t)
	ann := l.user("ann")
	for i := range 40 {
		l.write(fmt.Sprintf("CREATE OR REPLACE POLICY p ON TABLE customers COLUMN MASK CUSTOM TO USER ann ON COLUMN iban USING (concat('change ', '%d'))", i))
		if got, err := ask(ann, first); err != nil || got != fmt.Sprintf("change %d", i) {
			t.Fatalf("after change %d: %q, %v", i, got, err)
		}
	}
}

// TestManyWriters: no change of an administrator is lost to another.
func TestManyWriters(t *testing.T) {
	l := open(t)
	l.write("CREATE POLICY p ON TABLE customers COLUMN MASK MASK_NULL TO USER control ON COLUMN iban")
	const writers = 12
	for i := range writers {
		if _, err := l.store.CreateUser(context.Background(), &model.User{Name: fmt.Sprintf("u%d", i), Password: "Passw0rd-of-tests"}); err != nil {
			t.Fatal(err)
		}
	}
	sessions := make([]*engine.Session, writers)
	for i := range sessions {
		sessions[i] = l.session(identity.Principal{Name: fmt.Sprintf("root%d", i), Admin: true})
	}
	var wg sync.WaitGroup
	for i, s := range sessions {
		wg.Go(func() {
			if _, err := ask(s, fmt.Sprintf("ALTER POLICY p ADD COLUMN MASK MASK_SHOW_LAST_4 TO USER u%d", i)); err != nil {
				t.Errorf("writer %d: %v", i, err)
			}
			if got, err := ask(l.user(fmt.Sprintf("u%d", i)), first); err != nil || got != last4 {
				t.Errorf("user %d sees %q, %v", i, got, err)
			}
		})
	}
	wg.Wait()
	list, err := l.administrator.List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		if p.Name == "p" && len(p.Items) != writers+1 {
			t.Errorf("%d items: %+v", len(p.Items), p.Items)
		}
	}
	l.sees(first, map[string]string{"ann": raw, "ben": raw, "control": "NULL"})
}

// TestShowCreateMakesItAgain: every policy that SQL can write comes back from what
// SHOW CREATE POLICY says.
func TestShowCreateMakesItAgain(t *testing.T) {
	l := open(t)
	for _, text := range []string{
		"CREATE POLICY `a b` ON TABLE customers COLUMN MASK MASK_HASH TO USER ann, GROUP eu, COLUMN MASK CUSTOM TO ROLE teller USING (concat({col}, ')', '\\'')) ON COLUMN iban, full_name COMMENT 'it''s' PRIORITY OVERRIDE VALID FROM '2026-01-01' UNTIL '2026-12-31 23:59:59' DISABLED",
		"CREATE POLICY b ON TABLE profiles COLUMN MASK MASK TO PUBLIC ON COLUMN contact.address.city COMMENT 'x'",
		"CREATE POLICY c ON TAG PII COLUMN MASK MASK_NONE TO USER control, COLUMN MASK MASK_SHOW_FIRST_4 TO PUBLIC COMMENT 'y'",
		"CREATE POLICY d ON TABLE payments ROW FILTER TO USER ann USING (cust_id = ${{USER.id}} OR pay_id IN (1, 2)) COMMENT 'z' VALID UNTIL '2099-01-01'",
	} {
		l.write(text)
		find := func() policy.Stored {
			list, err := l.administrator.List(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(list, func(s policy.Stored) bool { return s.Service != "polaris" })
			if i < 0 {
				t.Fatalf("%s made no policy", text)
			}
			return list[i]
		}
		before := find()
		shown, err := ask(l.root, "SHOW CREATE POLICY `"+before.Name+"`")
		_, create, ok := strings.Cut(shown, "|")
		if err != nil || !ok || !strings.HasPrefix(create, "CREATE POLICY") {
			t.Errorf("%s: %q, %v", text, shown, err)
			continue
		}
		l.write("DROP POLICY `" + before.Name + "`")
		l.write(create)
		after := find()
		if fmt.Sprintf("%+v", after.Definition) != fmt.Sprintf("%+v", before.Definition) || len(after.Beyond) > 0 {
			t.Errorf("%s\nbecame %+v\nwas    %+v", create, after.Definition, before.Definition)
		}
		l.write("DROP POLICY `" + before.Name + "`")
	}
}

// TestPoliciesOfOthers: policies that were made by the means of the policy server
// are listed with what is wrong with them and with what SQL cannot say.
func TestPoliciesOfOthers(t *testing.T) {
	l := open(t)
	yes := true
	mask := func(name string, resources map[string][]string, change func(*model.Policy)) {
		p := &model.Policy{
			Service: "hive", Name: name, PolicyType: model.MaskPolicy, Enabled: &yes, AuditEnabled: &yes, Resources: map[string]model.Resource{},
			DataMaskPolicyItems: []*model.Item{{
				Users: []string{"ann"}, Accesses: []model.Access{{Type: "select", Allowed: &yes}}, DataMaskInfo: &model.DataMaskInfo{DataMaskType: "MASK_NULL"},
			}},
		}
		for k, v := range resources {
			p.Resources[k] = model.Resource{Values: v}
		}
		change(p)
		if _, err := l.store.CreatePolicy(context.Background(), p); err != nil {
			t.Fatal(err)
		}
	}
	same := func(*model.Policy) {}
	mask("good", map[string][]string{"database": {"bank"}, "table": {"customers"}, "column": {"IBAN"}}, same)
	mask("no-column", map[string][]string{"database": {"bank"}, "table": {"customers"}, "column": {"nothing"}}, same)
	mask("no-table", map[string][]string{"database": {"lake.bank"}, "table": {"nothing"}, "column": {"x"}}, same)
	mask("two", map[string][]string{"database": {"bank"}, "table": {"customers", "payments"}, "column": {"cust_id"}}, same)
	mask("wild", map[string][]string{"database": {"*"}, "table": {"customers"}, "column": {"ph*"}}, same)
	for name, column := range map[string]string{"stale": "no_such_column", "binds": "phone"} {
		on := map[string]string{"stale": "full_name", "binds": "email"}[name]
		mask(name, map[string][]string{"database": {"bank"}, "table": {"customers"}, "column": {on}}, func(p *model.Policy) {
			p.DataMaskPolicyItems[0].Users = []string{"control"}
			p.DataMaskPolicyItems[0].DataMaskInfo = &model.DataMaskInfo{DataMaskType: "CUSTOM", ValueExpr: "concat({col}, " + column + ")"}
		})
	}
	mask("nth", map[string][]string{"database": {"bank"}, "table": {"payments"}, "column": {"amount_eur"}}, func(p *model.Policy) { p.PolicyPriority = 1 })
	deadline := time.Now().Add(2 * time.Minute)
	for {
		got, err := ask(l.user("ann"), first)
		if err == nil && got == "NULL" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the policies are not in force: %q, %v", got, err)
		}
		time.Sleep(20 * time.Millisecond)
	}

	rows := map[string]string{}
	got, err := ask(l.root, "SHOW POLICIES LIKE '%'")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(got, "\n") {
		name, rest, _ := strings.Cut(line, "|")
		rows[name] = rest
	}
	for name, want := range map[string]struct{ has, lacks string }{
		"good": {"|bank.customers|IBAN|USER ann: MASK_NULL|", "never"}, "no-column": {"names column nothing", "no catalog"}, "no-table": {"which no catalog has", "never"},
		"two": {"several tables", "never"}, "wild": {`column "ph*" is taken literally`, "never"},
		"stale": {"|on table lake.bank.customers: the expression of the CUSTOM mask cannot be bound: Unknown column 'no_such_column'|", "never"}, "binds": {"concat({col}, phone)", "on table"}, "nth": {"OVERRIDE", "never"}, "everybody reads": {"access|polaris|", "never"},
	} {
		if row := rows[name]; !strings.Contains(row, want.has) || strings.Contains(row, want.lacks) {
			t.Errorf("%s: %s", name, row)
		}
	}
	for name, statement := range map[string]bool{"good": true, "nth": true, "wild": false, "everybody reads": false} {
		got, err := ask(l.root, "SHOW CREATE POLICY '"+name+"'")
		if _, text, _ := strings.Cut(got, "|"); err != nil || strings.HasPrefix(text, "CREATE") != statement {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	if got, err := ask(l.root, "SHOW POLICIES ON TABLE payments"); err != nil || !strings.Contains(got, "nth|") || !strings.Contains(got, "two|") || strings.Contains(got, "good|") {
		t.Errorf("%s, %v", got, err)
	}
	// What is there is changed without what SQL cannot say being lost.
	l.write("ALTER POLICY two ADD COLUMN MASK MASK_NULL TO USER ben")
	got, err = ask(l.root, "SHOW POLICIES LIKE 'two'")
	if err != nil || !strings.Contains(got, "several tables") || !strings.Contains(got, "USER ben") {
		t.Errorf("%s, %v", got, err)
	}
	for _, table := range []string{"customers", "payments"} {
		l.sees("SELECT COUNT(cust_id) > 0 FROM "+table, map[string]string{"ann": "false", "ben": "false", "control": "true"})
	}
	if _, err := ask(l.root, "ALTER POLICY 'everybody reads' ADD COLUMN MASK MASK_NULL TO USER ben"); err == nil {
		t.Error("a mask was put into an access policy")
	}
}

// TestEffectivePolicy: what is said of a user is what the user sees.
func TestEffectivePolicy(t *testing.T) {
	l := open(t)
	l.write("CREATE POLICY m ON TABLE customers COLUMN MASK MASK_SHOW_LAST_4 TO ROLE teller ON COLUMN iban")
	l.write("CREATE POLICY f ON TABLE customers ROW FILTER TO GROUP eu USING (residency_region = 'EU')")
	for user, want := range map[string][]string{
		"ann":     {"row_filter||residency_region = 'EU'|f (id ", "as group:eu", "column_mask|iban|MASK_SHOW_LAST_4|m (id ", "as role:teller"},
		"ben":     {"row_filter||residency_region = 'EU'|f (id ", "as group:eu"},
		"control": {},
	} {
		got, err := ask(l.root, "SHOW EFFECTIVE POLICY FOR USER "+user+" ON customers")
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %q is not in\n%s", user, w, got)
			}
		}
		if err != nil || strings.Contains(got, "column_mask") != (user == "ann") || strings.Contains(got, "row_filter") != (user != "control") {
			t.Errorf("%s: %s, %v", user, got, err)
		}
		own, err := ask(l.user(user), "SHOW EFFECTIVE POLICY ON customers")
		if err != nil || strings.Contains(own, "EU") || strings.Contains(own, "LAST") || strings.Contains(own, "column_mask") != (user == "ann") {
			t.Errorf("%s is told %q, %v", user, own, err)
		}
	}
	if _, err := ask(l.user("ben"), "SHOW EFFECTIVE POLICY FOR USER ann ON customers"); !fault.Is(err, fault.Denied) {
		t.Errorf("ben asks about ann: %v", err)
	}
}
