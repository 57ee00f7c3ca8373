//go:build e2e

package live

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// closed leaves what there is to administrators, until the end of the test: what
// anybody else has then comes from a GRANT.
func closed(t testing.TB) {
	t.Helper()
	finds := func(want bool) {
		t.Helper()
		for deadline := time.Now().Add(patience); (rows(as(t, "alice", "SHOW DATABASES")) != "information_schema") != want; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("alice finds something: not %v within %s", want, patience)
			}
		}
	}
	orders(t)                         // so that there is something to find
	t.Cleanup(func() { finds(true) }) // after the others
	for _, name := range []string{"readers of catalogs", "readers of namespaces", "readers of tables"} {
		path := "public/v2/api/service/" + polarisService + "/policy/" + url.PathEscape(name)
		p := server.must(t, "GET", path, nil)
		id := fmt.Sprintf("public/v2/api/policy/%.0f", p["id"])
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if _, err := server.call("PUT", id, json.RawMessage(text)); err != nil {
				t.Error(err)
			}
		})
		for _, i := range p["policyItems"].([]any) {
			i.(object)["roles"] = []string{"sqe_admin"}
		}
		server.must(t, "PUT", id, p)
	}
	finds(false)
	t.Cleanup(func() { // those of the test
		for _, p := range written(t) {
			_, _ = server.call("DELETE", fmt.Sprintf("public/v2/api/policy/%.0f", p["id"]), nil)
		}
	})
}

// written are the policies that statements made.
func written(t testing.TB) []object {
	t.Helper()
	out, err := server.call("GET", "public/v2/api/service/"+polarisService+"/policy?pageSize=1000", nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []object
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(p object) bool {
		name := p["name"].(string)
		return !strings.HasPrefix(name, "sqe-grant-") && !strings.HasPrefix(name, "sqe-deny-")
	})
}

// given are the access types that policies on exactly a resource give to a principal, as
// the policy server has them; list is policyItems or denyPolicyItems.
func given(t testing.TB, list, kind, who string, resource ...string) string {
	t.Helper()
	elements := []string{"catalog", "namespace", "table"}[:len(resource)]
	var out []string
	for _, p := range written(t) {
		resources := p["resources"].(object)
		on := len(resources) == len(resource)+1
		for i, e := range elements {
			r, ok := resources[e].(object)
			on = on && ok && r["values"].([]any)[0] == resource[i]
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
	return strings.Join(out, " ")
}

// do runs a statement of the administrator carol.
func do(t testing.TB, text string) {
	t.Helper()
	if a := as(t, "carol", text); a.Err != nil {
		t.Fatalf("%s: %v", text, a.Err)
	}
}

func denied(t testing.TB, user, text string) {
	t.Helper()
	if a := as(t, user, text); a.Err == nil {
		t.Errorf("%s: %s is done", user, text)
	}
}

func allowed(t testing.TB, user, text string) {
	t.Helper()
	if a := as(t, user, text); a.Err != nil {
		t.Errorf("%s: %s: %v", user, text, a.Err)
	}
}

// TestGrantAndRevoke: nobody reads before a grant; it acts for a role and for a user
// with the next statement, and is over with the next one after REVOKE.
func TestGrantAndRevoke(t *testing.T) {
	closed(t)
	ns := orders(t)
	ops.create(t, ns, "audit", ordersSchema, ordersRows)
	o, audit := "sales_wh."+ns+".orders", "ops_wh."+ns+".audit"
	q := "SELECT region, amount FROM " + o + " ORDER BY id"
	becomes(t, "carol", "SELECT COUNT(*) FROM "+o, "3")
	denied(t, "alice", q)
	began := time.Now()
	do(t, "GRANT SELECT ON "+o+" TO ROLE analyst")
	is(t, "alice", q, "EU|10\nUS|20\nEU|30")
	granted := time.Since(began)
	if got := given(t, "policyItems", "roles", "analyst", "sales_wh", ns, "orders"); got != "table-data-read table-list table-properties-read" {
		t.Errorf("the policy server gives %s", got)
	}
	denied(t, "dave", q)
	began = time.Now()
	do(t, "REVOKE SELECT ON "+o+" FROM ROLE analyst")
	denied(t, "alice", q)
	t.Logf("GRANT to first rows %s, REVOKE to first refusal %s", granted.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	if left := written(t); len(left) > 0 {
		t.Errorf("%d policies are left", len(left))
	}
	// By role and by user, each for its own.
	do(t, "GRANT SELECT ON "+o+" TO ROLE engineer")
	do(t, "GRANT SELECT ON "+audit+" TO USER dave")
	is(t, "bob", "SELECT id FROM "+o+" ORDER BY id", allIDs)
	is(t, "dave", "SELECT COUNT(*) FROM "+audit, "3")
	denied(t, "dave", q)
	denied(t, "alice", "SELECT COUNT(*) FROM "+audit)
}

// TestWritingIsSeparate: INSERT is more than SELECT, and does not let one move a table;
// what it writes all see, and without it reading stays.
func TestWritingIsSeparate(t *testing.T) {
	closed(t)
	ns := orders(t)
	o := ns + ".orders"
	do(t, "GRANT SELECT ON "+o+" TO ROLE analyst, ROLE engineer")
	do(t, "GRANT INSERT ON "+o+" TO ROLE engineer, USER carol")
	row := "(%d, 'EU', 40.0, '444-44-4444', 'd@x', DATE '2024-08-07')"
	allowed(t, "bob", "INSERT INTO "+o+" VALUES "+fmt.Sprintf(row, 4))
	is(t, "carol", "SELECT id FROM "+o+" ORDER BY id", allIDs+"\n4")
	is(t, "carol", "DELETE FROM "+o+" WHERE id = 4", "")
	is(t, "bob", "SELECT COUNT(*) FROM "+o+" WHERE id = 4", "0")
	denied(t, "alice", "INSERT INTO "+o+" VALUES "+fmt.Sprintf(row, 9))
	denied(t, "alice", "DROP TABLE "+o)
	types := given(t, "policyItems", "roles", "engineer", "sales_wh", ns, "orders")
	if !strings.Contains(types, "table-data-write") {
		t.Errorf("INSERT is %s", types)
	}
	for _, never := range []string{"table-location-set", "table-uuid-assign", "table-format-version-upgrade", "table-properties-write"} {
		if strings.Contains(types, never) {
			t.Errorf("INSERT is also %s", never)
		}
	}
	do(t, "REVOKE INSERT ON "+o+" FROM ROLE engineer")
	denied(t, "bob", "INSERT INTO "+o+" VALUES "+fmt.Sprintf(row, 5))
	is(t, "bob", "SELECT COUNT(*) FROM "+o, "3")
	do(t, "REVOKE SELECT ON "+o+" FROM ROLE engineer, ROLE analyst")
	denied(t, "bob", "SELECT COUNT(*) FROM "+o)
}

// TestDenial: a denial comes before a grant, is there once however often it is said,
// and is lifted; one that somebody puts into the policy by hand counts too.
func TestDenial(t *testing.T) {
	closed(t)
	ns := orders(t)
	o := ns + ".orders"
	q := "SELECT COUNT(*) FROM " + o
	do(t, "GRANT SELECT ON "+o+" TO ROLE analyst")
	is(t, "alice", q, "3")
	do(t, "DENY SELECT ON "+o+" TO USER bob")
	do(t, "DENY SELECT ON "+o+" TO USER bob")
	denied(t, "bob", q)
	is(t, "alice", q, "3")
	if got := given(t, "denyPolicyItems", "users", "bob", "sales_wh", ns, "orders"); got != "table-data-read table-list table-properties-read" {
		t.Errorf("denied is %s", got)
	}
	do(t, "REVOKE SELECT ON "+o+" FROM USER bob")
	is(t, "bob", q, "3")
	// By hand.
	for _, p := range written(t) {
		if p["resources"].(object)["table"] != nil {
			p["denyPolicyItems"] = []object{{"roles": []string{"engineer"}, "accesses": []object{{"type": "table-properties-read", "isAllowed": true}, {"type": "table-data-read", "isAllowed": true}}}}
			server.must(t, "PUT", fmt.Sprintf("public/v2/api/policy/%.0f", p["id"]), p)
		}
	}
	for deadline := time.Now().Add(patience); as(t, "bob", q).Err == nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("bob reads what is denied by hand")
		}
	}
	is(t, "alice", q, "3")
}

// TestShowsGrants: who granted, when, and to whom; CHECK ACCESS says what a query does.
func TestShowsGrants(t *testing.T) {
	closed(t)
	ns := orders(t)
	o := ns + ".orders"
	do(t, "GRANT SELECT ON "+o+" TO ROLE analyst, ROLE engineer")
	do(t, "GRANT SELECT ON "+o+" TO USER bob")
	shown := rows(as(t, "carol", "SHOW GRANTS ON "+o))
	for _, want := range []string{"|analyst|", "|engineer|", "|USER|bob|", "|carol|", "|20"} {
		if !strings.Contains(shown, want) {
			t.Errorf("SHOW GRANTS has no %s:\n%s", want, shown)
		}
	}
	for user, want := range map[string]string{"bob": "1|", "dave": "0|"} {
		if got := rows(as(t, "carol", `CHECK ACCESS SELECT ON `+o+` FOR USER "`+user+`"`)); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", user, got)
		}
	}
	is(t, "bob", "SELECT COUNT(*) FROM "+o, "3")
	denied(t, "dave", "SELECT COUNT(*) FROM "+o)
}

// TestAllTables: a grant on all tables of a schema is also for one that is made later.
func TestAllTables(t *testing.T) {
	closed(t)
	ns := orders(t)
	denied(t, "alice", "SELECT COUNT(*) FROM "+ns+".orders")
	do(t, `GRANT SELECT ON ALL TABLES IN SCHEMA sales_wh.`+ns+` TO ROLE "analyst"`)
	is(t, "alice", "SELECT COUNT(*) FROM "+ns+".orders", "3")
	sales.create(t, ns, "orders_extra", ordersSchema, `[{"id": 7}]`)
	becomes(t, "alice", "SELECT id FROM "+ns+".orders_extra", "7")
	denied(t, "dave", "SELECT id FROM "+ns+".orders_extra")
}

// TestTheWay: a grant on one table gives what leads to it and nothing beside it, and
// REVOKE takes all of that.
func TestTheWay(t *testing.T) {
	closed(t)
	ns := orders(t)
	sales.create(t, ns, "sibling", ordersSchema, ordersRows)
	do(t, "GRANT SELECT ON "+ns+".orders TO USER dave")
	for want, at := range map[string][]string{
		"namespace-list": {"sales_wh"}, "namespace-list namespace-properties-read": {"sales_wh", ns},
		"table-data-read table-list table-properties-read": {"sales_wh", ns, "orders"}, "": {"sales_wh", ns, "sibling"},
	} {
		if got := given(t, "policyItems", "users", "dave", at...); got != want {
			t.Errorf("dave has %q on %v, want %q", got, at, want)
		}
	}
	is(t, "dave", "SELECT COUNT(*) FROM "+ns+".orders", "3")
	denied(t, "dave", "SELECT COUNT(*) FROM "+ns+".sibling")
	is(t, "dave", "SHOW TABLES FROM `"+ns+"`", "orders")
	do(t, "REVOKE SELECT ON "+ns+".orders FROM USER dave")
	denied(t, "dave", "SELECT COUNT(*) FROM "+ns+".orders")
	if left := written(t); len(left) > 0 {
		t.Errorf("%d policies are left", len(left))
	}
}

// TestSchemasOfACatalog: what is listed is that of the catalog that was named.
func TestSchemasOfACatalog(t *testing.T) {
	closed(t)
	ns := orders(t)
	ops.create(t, ns+"_ops", "audit", ordersSchema, ordersRows)
	do(t, "GRANT SELECT ON sales_wh."+ns+".orders TO USER dave")
	do(t, "GRANT SELECT ON ops_wh."+ns+"_ops.audit TO USER dave")
	listed := rows(as(t, "dave", "SHOW DATABASES"))
	for _, want := range []string{ns, "ops_wh." + ns + "_ops"} {
		if !slices.Contains(strings.Split(listed, "\n"), want) {
			t.Errorf("SHOW DATABASES has no %s:\n%s", want, listed)
		}
	}
	if slices.Contains(strings.Split(listed, "\n"), ns+"_ops") {
		t.Errorf("SHOW DATABASES has a schema of another catalog:\n%s", listed)
	}
	is(t, "dave", "SHOW TABLES FROM `"+ns+"`", "orders")
	is(t, "dave", "SHOW TABLES FROM `ops_wh."+ns+"_ops`", "audit")
	if a := as(t, "carol", "GRANT SELECT ON nowhere."+ns+".orders TO USER dave"); a.Err != nil && !strings.Contains(a.Err.Error(), "nowhere") {
		t.Errorf("an unknown catalog: %v", a.Err)
	}
	if a := as(t, "carol", "GRANT USE ON CATALOG nowhere TO USER dave"); a.Err == nil || !strings.Contains(a.Err.Error(), "nowhere") {
		t.Errorf("an unknown catalog: %v", a.Err)
	}
}

// TestWhoGrants: nobody but administrators and owners grants; an owner does on its own
// table, and denies nothing.
func TestWhoGrants(t *testing.T) {
	closed(t)
	ns := orders(t)
	sales.create(t, ns, "audit", ordersSchema, ordersRows)
	o := ns + ".orders"
	if a := as(t, "dave", "GRANT SELECT ON "+o+" TO USER bob"); a.Err == nil || !strings.Contains(a.Err.Error(), "GRANT command denied to user 'dave'") {
		t.Errorf("dave grants: %v", a.Err)
	}
	do(t, "GRANT SELECT ON "+o+" TO USER dave WITH GRANT OPTION")
	do(t, "GRANT USE ON SCHEMA sales_wh."+ns+" TO USER bob")
	allowed(t, "dave", "GRANT SELECT ON "+o+" TO USER bob")
	is(t, "bob", "SELECT COUNT(*) FROM "+o, "3")
	if got := given(t, "policyItems", "users", "bob", "sales_wh", ns, "orders"); !strings.Contains(got, "table-data-read") {
		t.Errorf("bob has %s", got)
	}
	denied(t, "dave", "GRANT SELECT ON "+ns+".audit TO USER bob")
	denied(t, "bob", "SELECT COUNT(*) FROM "+ns+".audit")
	if a := as(t, "dave", "DENY SELECT ON "+o+" TO USER bob"); a.Err == nil || !strings.Contains(a.Err.Error(), "DENY") {
		t.Errorf("dave denies: %v", a.Err)
	}
	is(t, "bob", "SELECT COUNT(*) FROM "+o, "3")
	do(t, "DENY SELECT ON "+o+" TO USER bob")
	denied(t, "bob", "SELECT COUNT(*) FROM "+o)
}
