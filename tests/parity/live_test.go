//go:build e2e

package parity

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sqe/tests/sqetest"
)

// both are SQE and Trino over one catalog, both asking one policy server.
type both struct {
	trino  trino
	ranger ranger
	// servers are the pools of connections by user of each sqe: of one that polls
	// the policy server, and of one that is the policy server, unless that is a
	// Ranger Admin.
	servers map[string]map[string]*sql.DB
}

var policiesSection = regexp.MustCompile(`(?s)\[\[policies\]\].*?\[masks\]`)

// configure writes a configuration in dir for the catalog in lake, with this
// section of policies.
func configure(t *testing.T, dir, lake string, logins []string, policies string) (config string, port int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mask.key"), []byte("the key of the comparison\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config, port, err := sqetest.Config(dir, Catalog, logins, map[string]string{
		"masks": "rendering = \"trino\"\nshort-values = \"keep\"\nunkeyed-hash = true",
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	changed := policiesSection.ReplaceAllLiteralString(string(text), policies+"\n[masks]")
	changed = strings.Replace(changed, `path = "catalog.db"`, fmt.Sprintf("path = %q", filepath.Join(lake, "catalog.db")), 1)
	changed = strings.Replace(changed, `warehouse = "."`, fmt.Sprintf("warehouse = %q", lake), 1)
	if err := os.WriteFile(config, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	return config, port
}

// open starts sqe and opens connections of every user.
func (b *both) open(t *testing.T, name, config string, port int, logins []string) (stop func()) {
	t.Helper()
	s, err := sqetest.Serve(config, port)
	if err != nil {
		t.Fatal(err)
	}
	pools := map[string]*sql.DB{}
	for _, u := range logins {
		pools[u] = s.Open(u)
	}
	b.servers[name] = pools
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		for _, p := range pools {
			_ = p.Close()
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// sourceOf is what sections of both kinds of policy sources have in common.
func sourceOf(kind, polarisService, dataService string) string {
	return fmt.Sprintf(`[[policies]]
name = %q
kind = %q
polaris-service = %q
data-service = %q
filter-combination = "ranger"
poll-interval = "1s"
`, kind, kind, polarisService, dataService)
}

// host starts an sqe with the embedded store behind its HTTP face. restart makes
// it read the services of the comparison, which publish has made meanwhile.
func (b *both) host(t *testing.T, dir, lake string, logins []string) (restart func()) {
	t.Helper()
	listen, err := sqetest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	b.ranger = ranger{fmt.Sprintf("http://127.0.0.1:%d", listen), "admin", "Adm1n-of-the-comparison"}
	store := fmt.Sprintf("\n[policystore]\npath = \"policies.db\"\nlisten = \"127.0.0.1:%d\"\nplain-http = true\nadmin-password = %q\n", listen, b.ranger.password)
	config, port := configure(t, dir, lake, logins, sourceOf("store", "", prefix+"first")+store)
	stop := b.open(t, "store", config, port, logins)
	return func() {
		stop()
		config, port := configure(t, dir, lake, logins, sourceOf("store", prefix+"polaris", prefix+"trino")+store)
		b.open(t, "store", config, port, logins)
	}
}

// startBoth starts everything. With SQE_RANGER_URL and SQE_RANGER_ADMIN
// (user:password) the policy server is a Ranger Admin.
func startBoth(t *testing.T, logins []string) *both {
	t.Helper()
	ctx := context.Background()
	dir := t.TempDir()
	lake := filepath.Join(dir, "lake")
	if err := Build(ctx, lake); err != nil {
		t.Fatal(err)
	}
	b := &both{servers: map[string]map[string]*sql.DB{}}
	restart := func() {}
	if url := os.Getenv("SQE_RANGER_URL"); url != "" {
		user, password, _ := strings.Cut(os.Getenv("SQE_RANGER_ADMIN"), ":")
		b.ranger = ranger{strings.TrimRight(url, "/"), user, password}
	} else {
		restart = b.host(t, filepath.Join(dir, "host"), lake, logins)
	}
	p := TrinoLive.Policies()
	p.Read(users("s_tag"), "sem", "people")
	p.TagMask(users("s_tag"), "LATER", "MASK_NULL", "")
	// Left over from a run that was cut off.
	if err := b.ranger.remove(ctx, p); err != nil {
		t.Fatal(err)
	}
	if err := b.ranger.publish(ctx, p); err != nil {
		t.Fatal(err)
	}
	restart()
	t.Cleanup(func() {
		if err := b.ranger.remove(ctx, p); err != nil {
			t.Error(err)
		}
	})
	config, port := configure(t, filepath.Join(dir, "sqe"), lake, logins, sourceOf("ranger", prefix+"polaris", prefix+"trino")+
		fmt.Sprintf("url = %q\nusername = %q\npassword = %q\n", b.ranger.url, pluginUser, pluginPassword))
	b.open(t, "ranger", config, port, logins)
	b.trino = startTrino(t, filepath.Join(dir, "trino"), lake, b.ranger.url, prefix+"trino")
	return b
}

// ask runs a statement of Trino's dialect on both. ours is by kind of policy
// source.
func (b *both) ask(t *testing.T, c Case) (theirs Case, message string, ours map[string]sqetest.Answer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	theirs, message, err := b.trino.ask(ctx, c.User, c.SQL)
	if err != nil {
		t.Fatal(err)
	}
	theirs.Case, theirs.Answered = c.Case, c.Answered && theirs.Error == ""
	theirs.listing()
	ours = map[string]sqetest.Answer{}
	for name, pools := range b.servers {
		ours[name] = sqetest.Ask(ctx, pools[c.User], TrinoLive.translate(c.SQL))
	}
	return theirs, message, ours
}

// TestTrinoLive asks Trino and SQE, which follow the policies of one server, the
// same statements: Trino answers as the captured Trino did under a Ranger Admin,
// and SQE as Trino, but for the listed differences. Then both change rows, and policies change.
func TestTrinoLive(t *testing.T) {
	cases, err := Trino.Cases()
	if err != nil {
		t.Fatal(err)
	}
	known := differences(t, Trino)
	all, logins := cases, append(Users(cases), "s_tag")
	cases = slices.DeleteFunc(slices.Clone(cases), func(c Case) bool { return !live(c) })
	b := startBoth(t, logins)
	tagged := b.tag(t)
	equal, listed := 0, map[string]int{}
	for _, c := range cases {
		theirs, message, answers := b.ask(t, c)
		ours := answers["ranger"]
		for name, a := range answers {
			if x, y := Outcome(theirs, a), Outcome(theirs, ours); x != y {
				t.Errorf("%s %s: %s\nSQE answers\n%s\nwith the policies of a source of kind %s and\n%s\nwith those of kind ranger", c.Case, c.User, c.SQL, x, name, y)
			}
		}
		if Expected(theirs) != Expected(c) {
			t.Errorf("%s %s: %s\nTrino answers %s (%s)\ninstead of %s", c.Case, c.User, c.SQL, Expected(theirs), message, Expected(c))
			continue
		}
		got, d := Outcome(theirs, ours), known[c.Case]
		switch {
		case Equal(theirs, ours):
			equal++
			if d.Reason != "" {
				t.Errorf("%s %s: %s\nis listed as different (%s) and is equal", c.Case, c.User, c.SQL, d.Reason)
			}
		case d.Reason == "" || d.SQE != got:
			t.Errorf("%s %s: %s\nTrino: %s\nSQE (%v): %s\nlisted: %q %s", c.Case, c.User, c.SQL, Expected(theirs), ours.Err, got, d.Reason, d.SQE)
		default:
			listed[d.Reason]++
		}
	}
	t.Logf("%d statements: %d equal, listed: %v", len(cases), equal, listed)
	if equal < 250 {
		t.Errorf("only %d statements are equal: the comparison has lost its cases", equal)
	}
	t.Run("rows that Trino writes", func(t *testing.T) { b.theirRows(t, all) })
	t.Run("rows that SQE writes", func(t *testing.T) { b.rows(t) })
	t.Run("a column gets a tag", func(t *testing.T) { b.await(t, tagged) })
	t.Run("changes", func(t *testing.T) { b.changes(t) })
}

// probes are asked after every change of the policies.
var probes = []Case{
	{User: "s_same", SQL: "SELECT * FROM sem.orders ORDER BY id"},
	{User: "s_same", SQL: "SELECT id FROM sem.orders WHERE ssn LIKE '%1111' ORDER BY id"},
	{User: "s_other", SQL: "SELECT * FROM sem.orders ORDER BY id"},
	{User: "s_other", SQL: "SELECT count(*), min(ssn), max(email) FROM sem.orders"},
	{User: "s_first", SQL: "SELECT id, ssn FROM sem.orders ORDER BY id"},
	{User: "s_join", SQL: "SELECT o.id, p.name FROM sem.orders o JOIN sem.people p ON o.ssn = p.ssn ORDER BY 1, 2"},
	{User: "s_group", SQL: "SELECT * FROM sem.grouped ORDER BY id"},
	{User: "s_group2", SQL: "SELECT * FROM sem.grouped ORDER BY id"},
	{User: "dave", SQL: "SELECT cust_id, full_name, national_id FROM bank.customers ORDER BY cust_id"},
	{User: "dave", SQL: "SELECT count(*) FROM bank.payments"},
	{User: "erin", SQL: "SELECT cust_id, full_name, branch FROM bank.customers ORDER BY cust_id"},
	{User: "bob", SQL: "SELECT residency_region, count(*), sum(risk_score), min(national_id) FROM bank.customers GROUP BY residency_region ORDER BY 1"},
	{User: "frank", SQL: "SELECT cust_id, full_name, dob FROM bank.customers ORDER BY cust_id"},
	{User: "s_first", SQL: "SELECT * FROM sem.pub"},
	{User: "s_other", SQL: "SELECT o.id FROM sem.orders o JOIN sem.allowed a ON o.region = a.region ORDER BY 1"},
	{User: "raw", SQL: "SELECT * FROM sem.orders ORDER BY id"}, // what nothing may change
	{User: "nobody", SQL: "SELECT count(*) FROM sem.orders"},
}

// change is one of the policies and what a user sees afterwards on both sides.
type change struct {
	name string
	make func(ctx context.Context, r ranger) error
	user string
	sql  string
	want string // the rows, or "refused"
}

// expectation is what both sides must see before a time has passed.
type expectation struct {
	probe Case
	want  string
	since time.Time
	limit time.Duration
}

// tag tags a column. Trino asks for tags once a minute, as the service definition
// says, so what becomes of it is looked at later.
func (b *both) tag(t *testing.T) expectation {
	t.Helper()
	e := expectation{Case{User: "s_tag", SQL: "SELECT name FROM sem.people WHERE ssn = '111-11-1111'"}, sqetest.Null, time.Now(), 5 * time.Minute}
	for side, got := range b.look(t, e.probe) {
		if got != "Ann" {
			t.Fatalf("before the tag %s sees %q", side, got)
		}
	}
	err := b.ranger.call(context.Background(), http.MethodPut, "tags/importservicetags", object{
		"op": "add_or_update", "serviceName": prefix + "trino", "tagVersion": 1,
		"tagDefinitions":   object{"1": object{"id": 1, "name": "LATER", "source": "Internal", "attributeDefs": []object{}, "isEnabled": true}},
		"tags":             object{"1": object{"id": 1, "type": "LATER", "owner": 0, "attributes": object{}, "isEnabled": true}},
		"serviceResources": []object{{"id": 1, "serviceName": prefix + "trino", "isEnabled": true, "resourceElements": TrinoLive.Policies().place("sem", "people", "name")}},
		"resourceToTagIds": object{"1": []int{1}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// look is what each side sees, in the form of change.want.
func (b *both) look(t *testing.T, probe Case) map[string]string {
	t.Helper()
	theirs, message, ours := b.ask(t, probe)
	out := map[string]string{"Trino": seen(theirs, message)}
	for name, a := range ours {
		out["SQE with a source of kind "+name] = answer(theirs, a)
	}
	return out
}

// await asks until all sides have seen what is expected.
func (b *both) await(t *testing.T, e expectation) {
	t.Helper()
	took := map[string]time.Duration{}
	for {
		all := b.look(t, e.probe)
		for side, got := range all {
			if _, done := took[side]; !done && got == e.want {
				took[side] = time.Since(e.since).Round(time.Millisecond)
			}
		}
		if len(took) == len(all) {
			t.Logf("seen after %v", took)
			return
		}
		if time.Since(e.since) > e.limit {
			t.Fatalf("%v after the change want %q; seen in time: %v; now: %q", e.limit, e.want, took, all)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (b *both) changes(t *testing.T) {
	raw := make([]string, 0, 1)
	for _, c := range steps() {
		t.Run(c.name, func(t *testing.T) {
			probe := Case{User: c.user, SQL: c.sql}
			for side, got := range b.look(t, probe) {
				if got == c.want {
					t.Fatalf("%s sees %q before the change", side, c.want)
				}
			}
			if err := c.make(context.Background(), b.ranger); err != nil {
				t.Fatal(err)
			}
			// Both ask every second; a busy machine gets some more.
			b.await(t, expectation{probe, c.want, time.Now(), 2 * time.Minute})
			for _, p := range probes {
				theirs, message, ours := b.ask(t, p)
				for name, a := range ours {
					if !Equal(theirs, a) {
						t.Errorf("%s: %s\nTrino: %s %s\nSQE with a source of kind %s (%v): %s", p.User, p.SQL, Expected(theirs), message, name, a.Err, Outcome(theirs, a))
					}
				}
				if p.User == "raw" {
					raw = append(raw, Expected(theirs))
				}
			}
		})
	}
	for _, r := range raw {
		if r != raw[0] || !strings.Contains(r, "111-11-1111") {
			t.Errorf("the control sees %q", r)
		}
	}
}

// seen is what Trino answered, with the rows on one line.
func seen(c Case, message string) string {
	if c.Error != "" {
		if c.refused() {
			return "refused"
		}
		return message
	}
	return strings.Join(strings.Split(Expected(c), "\n")[1:], "; ")
}

// answer is what SQE answered in the same form.
func answer(theirs Case, a sqetest.Answer) string {
	if a.Err != nil {
		if slices.Contains(refusals, a.Number()) {
			return "refused"
		}
		return a.Err.Error()
	}
	return strings.Join(strings.Split(Outcome(theirs, a), "\n")[1:], "; ")
}

// edit changes the policy of a kind on one resource of the service.
func edit(kind int, resources string, f func(p object)) func(ctx context.Context, r ranger) error {
	return func(ctx context.Context, r ranger) error {
		var policies []object
		if err := r.call(ctx, http.MethodGet, "public/v2/api/service/"+prefix+"trino/policy?pageSize=1000", nil, &policies); err != nil {
			return err
		}
		for _, p := range policies {
			if int(p["policyType"].(float64)) != kind || resourceText(p) != resources {
				continue
			}
			f(p)
			return r.call(ctx, http.MethodPut, fmt.Sprintf("public/v2/api/policy/%v", p["id"]), p, nil)
		}
		return fmt.Errorf("no policy of kind %d on %s", kind, resources)
	}
}

// resourceText is schema.table.column of a policy.
func resourceText(p object) string {
	var parts []string
	resources, _ := p["resources"].(object)
	for _, level := range []string{"schema", "table", "column"} {
		if r, ok := resources[level].(object); ok {
			for _, v := range r["values"].([]any) {
				parts = append(parts, v.(string))
			}
		}
	}
	return strings.Join(parts, ".")
}

// prepend puts an item before the others, so that it decides.
func prepend(p object, list string, it object) {
	have, _ := p[list].([]any)
	p[list] = append([]any{it}, have...)
}

// put makes a policy of the service.
func put(kind int, resources, items object) func(ctx context.Context, r ranger) error {
	return func(ctx context.Context, r ranger) error {
		p := object{
			"service": prefix + "trino", "name": fmt.Sprintf("later %v", resources), "policyType": kind, "isEnabled": true,
			"isAuditEnabled": true, "resources": resources,
		}
		for k, v := range items {
			p[k] = v
		}
		return r.call(ctx, http.MethodPost, "public/v2/api/policy", p, nil)
	}
}

// valid is a schedule that ends with a year.
func valid(until string) []object {
	return []object{{"startTime": "2020/01/01 00:00:00", "endTime": until + "/12/31 00:00:00", "timeZone": "UTC"}}
}

func steps() []change {
	p := TrinoLive.Policies()
	ssn := "SELECT ssn FROM sem.orders WHERE id = 1"
	ids := "SELECT id FROM sem.orders ORDER BY id"
	return []change{
		{
			"a mask becomes stricter", edit(maskPolicy, "sem.orders.ssn", func(p object) {
				prepend(p, "dataMaskPolicyItems", maskItem(users("s_same"), "MASK", ""))
			}), "s_same", ssn, "000-00-0000",
		},
		{
			"a mask goes", edit(maskPolicy, "sem.orders.ssn", func(p object) {
				prepend(p, "dataMaskPolicyItems", maskItem(users("s_same"), "MASK_NONE", ""))
			}), "s_same", ssn, "111-11-1111",
		},
		{
			"a row filter changes", edit(filterPolicy, "sem.orders", func(p object) {
				prepend(p, "rowFilterPolicyItems", filterItem(users("s_other"), "region = 'US'"))
			}), "s_other", ids, "2",
		},
		{
			"a row filter that nothing meets", edit(filterPolicy, "sem.orders", func(p object) {
				prepend(p, "rowFilterPolicyItems", filterItem(users("s_other"), "1 = 0"))
			}), "s_other", ids, "",
		},
		{
			"a role gets a member", func(ctx context.Context, r ranger) error {
				var role object
				if err := r.call(ctx, http.MethodGet, "public/v2/api/roles/name/analyst", nil, &role); err != nil {
					return err
				}
				role["users"] = append(role["users"].([]any), object{"name": "dave", "isAdmin": false})
				return r.call(ctx, http.MethodPut, fmt.Sprintf("public/v2/api/roles/%v", role["id"]), role, nil)
			}, "dave", "SELECT full_name FROM bank.customers WHERE cust_id = 1", "Sanne de Vries",
		},
		{
			"a policy is switched off", edit(maskPolicy, "sem.people.ssn", func(p object) { p["isEnabled"] = false }),
			"s_join", "SELECT ssn FROM sem.people WHERE name = 'Ann'", "111-11-1111",
		},
		{
			"a policy of higher priority", put(maskPolicy, p.place("sem", "orders", "ss*"), object{
				"policyPriority": 1, "dataMaskPolicyItems": []object{maskItem(users("s_join"), "MASK_NULL", "")},
			}), "s_join", ssn, sqetest.Null,
		},
		{
			"a pattern of tables", put(maskPolicy, p.place("sem", "allow*", "region"), object{
				"dataMaskPolicyItems": []object{maskItem(users("s_other"), "CUSTOM", "'hidden'")},
			}), "s_other", "SELECT region FROM sem.allowed", "hidden",
		},
		{
			"a role in a role", func(ctx context.Context, r ranger) error {
				var role object
				if err := r.call(ctx, http.MethodGet, "public/v2/api/roles/name/engineer", nil, &role); err != nil {
					return err
				}
				role["roles"] = []object{{"name": "bank_auditor", "isAdmin": false}}
				return r.call(ctx, http.MethodPut, fmt.Sprintf("public/v2/api/roles/%v", role["id"]), role, nil)
			}, "frank", "SELECT count(*), max(risk_score) FROM bank.customers", "7 | " + sqetest.Null,
		},
		{
			"a denial with an exception", put(accessPolicy, p.place("sem", "pub", "v"), object{
				"denyPolicyItems": []object{item(users("s_other", "s_first"), []string{"select"}, nil)},
				"denyExceptions":  []object{item(users("s_first"), []string{"select"}, nil)},
			}), "s_other", "SELECT v FROM sem.pub", "refused",
		},
		{
			"a policy with a schedule", put(filterPolicy, p.place("sem", "peo*", ""), object{
				"validitySchedules": valid("2199"), "rowFilterPolicyItems": []object{filterItem(users("s_other"), "name = 'Bob'")},
			}), "s_other", "SELECT name FROM sem.people ORDER BY name", "Bob",
		},
		{
			"a schedule that is over", edit(filterPolicy, "sem.peo*", func(p object) { p["validitySchedules"] = valid("2020") }),
			"s_other", "SELECT name FROM sem.people ORDER BY name", "Ann; Bob; Eve",
		},
		{
			"a column is denied", edit(accessPolicy, "sem.orders.ssn", func(p object) {
				prepend(p, "denyPolicyItems", item(users("s_first"), []string{"select"}, nil))
			}), "s_first", ssn, "refused",
		},
	}
}
