//go:build e2e

package live

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/iceberg-go"

	"sqe/tests/sqetest"
)

var namespaces atomic.Int64

// orders makes a table "orders" in a namespace of its own.
func orders(t testing.TB) (namespace string) {
	t.Helper()
	namespace = fmt.Sprintf("ac%d", namespaces.Add(1))
	sales.create(t, namespace, "orders", ordersSchema, ordersRows)
	return namespace
}

const allIDs = "1\n2\n3"

// Resource masks act for the role that they name alone.
func TestResourceMasksActForTheirRole(t *testing.T) {
	ns := orders(t)
	q := "SELECT amount, ssn FROM sales_wh." + ns + ".orders ORDER BY id"
	raw := "10|111-11-1111\n20|222-22-2222\n30|333-33-3333"
	is(t, "bob", q, raw)
	mask(t, ns, "orders", "amount", "MASK_NULL", "", "engineer")
	mask(t, ns, "orders", "ssn", "MASK_SHOW_LAST_4", "", "engineer")
	becomes(t, "bob", q, "NULL|xxx-xx-1111\nNULL|xxx-xx-2222\nNULL|xxx-xx-3333")
	is(t, "alice", q, raw)
}

func TestHashMaskIsKeyed(t *testing.T) {
	ns := orders(t)
	q := "SELECT email FROM " + ns + ".orders ORDER BY id"
	mask(t, ns, "orders", "email", "MASK_HASH", "", "engineer")
	becomes(t, "bob", q, "491c535df5b10e029c37a1a2a49638fe8db57b96d0b83dac522fc0d6cf701109\n"+
		"e38ff56157e4e2dd387e7e0fd085ba18dbe36132ee3e8ac0af93177f35813c85\n136bdc217df93c518ff03832f856d060be664ed5d22539151d4e10d6bd6ecd33")
	is(t, "alice", q, "a@x\nb@x\nc@x")
}

func TestRowFilterRestrictsRows(t *testing.T) {
	ns := orders(t)
	q := "SELECT id FROM " + ns + ".orders ORDER BY id"
	filter(t, ns, "orders", "region = 'EU'", "engineer")
	becomes(t, "bob", q, "1\n3")
	is(t, "alice", q, allIDs)
	is(t, "bob", "SELECT region, count(*) FROM "+ns+".orders GROUP BY region", "EU|2")
}

// sqlTag sets a tag on a column in SQL, as an administrator.
func sqlTag(t testing.TB, ns, column, tag string) {
	t.Helper()
	if a := as(t, "carol", "ALTER TABLE "+ns+".orders MODIFY COLUMN "+column+" SET TAG "+tag+" = 'true'"); a.Err != nil {
		t.Fatal(a.Err)
	}
}

func TestTagMaskFromTheIcebergProperty(t *testing.T) {
	ns := orders(t)
	q := "SELECT ssn FROM " + ns + ".orders ORDER BY id"
	tagMask(t, "LIVE_PII", "hive:MASK_SHOW_LAST_4", "", "engineer")
	sqlTag(t, ns, "ssn", "LIVE_PII")
	becomes(t, "bob", q, "xxx-xx-1111\nxxx-xx-2222\nxxx-xx-3333")
	is(t, "alice", q, "111-11-1111\n222-22-2222\n333-33-3333")
}

// A tag of the policy server's own store does the same.
func TestTagMaskFromTheTagStore(t *testing.T) {
	ns := orders(t)
	q := "SELECT ssn FROM " + ns + ".orders ORDER BY id"
	tagMask(t, "LIVE_STORED", "hive:MASK_SHOW_LAST_4", "", "engineer")
	tagColumns(t, "add_or_update", ns, "orders", map[string][]string{"ssn": {"LIVE_STORED"}})
	becomes(t, "bob", q, "xxx-xx-1111\nxxx-xx-2222\nxxx-xx-3333")
	is(t, "alice", q, "111-11-1111\n222-22-2222\n333-33-3333")
	tagColumns(t, "delete", ns, "orders", map[string][]string{"ssn": {"LIVE_STORED"}})
	becomes(t, "bob", q, "111-11-1111\n222-22-2222\n333-33-3333")
}

func TestTagRowFilter(t *testing.T) {
	ns := orders(t)
	q := "SELECT id FROM " + ns + ".orders ORDER BY id"
	tagFilter(t, "LIVE_RESTRICTED", "region = 'EU'", "engineer")
	sqlTag(t, ns, "region", "LIVE_RESTRICTED")
	becomes(t, "bob", q, "1\n3")
	is(t, "alice", q, allIDs)
}

// A tag mask that says nothing withholds or empties its column.
func TestUnmappableTagMaskFailsClosed(t *testing.T) {
	ns := orders(t)
	q := "SELECT email FROM " + ns + ".orders ORDER BY id"
	tagMask(t, "LIVE_SECRET", "hive:CUSTOM", "", "engineer")
	sqlTag(t, ns, "email", "LIVE_SECRET")
	is(t, "alice", q, "a@x\nb@x\nc@x")
	deadline := time.Now().Add(patience)
	for {
		got := rows(as(t, "bob", q))
		if !strings.Contains(got, "@x") {
			if got != "NULL\nNULL\nNULL" && !strings.HasPrefix(got, "error: ") {
				t.Errorf("bob gets %s", got)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("bob still reads %s", got)
		}
		time.Sleep(50 * time.Millisecond)
	}
	is(t, "bob", "SELECT count(*) FROM "+ns+".orders", "3")
	is(t, "alice", q, "a@x\nb@x\nc@x")
}

// Tags that cannot be read may protect something: the table is refused.
func TestUnknownTagStateDenies(t *testing.T) {
	for key, value := range map[string]string{
		"sqe.column-tags": `{"ssn": ["PII"`, "sqe.tags": `{"ssn": 1}`,
	} {
		t.Run(key, func(t *testing.T) {
			ns := orders(t)
			q := "SELECT ssn FROM " + ns + ".orders ORDER BY id"
			is(t, "bob", q, "111-11-1111\n222-22-2222\n333-33-3333")
			sales.setProperty(t, ns, "orders", key, value)
			for _, user := range []string{"bob", "alice", "carol"} {
				a := as(t, user, q)
				if a.Err == nil || strings.Contains(a.Text(), "111-11") {
					t.Errorf("%s: %s", user, a.Text())
				}
			}
			if key == "sqe.tags" {
				return
			}
			sales.setProperty(t, ns, "orders", key, `{"ssn": ["PII"]}`)
			is(t, "bob", q, "111-11-1111\n222-22-2222\n333-33-3333")
		})
	}
}

func TestRemainingMaskTypes(t *testing.T) {
	ns := orders(t)
	q := "SELECT region, ssn, signed_on, email FROM " + ns + ".orders ORDER BY id"
	mask(t, ns, "orders", "region", "MASK", "", "engineer")
	mask(t, ns, "orders", "ssn", "MASK_SHOW_FIRST_4", "", "engineer")
	mask(t, ns, "orders", "signed_on", "MASK_DATE_SHOW_YEAR", "", "engineer")
	mask(t, ns, "orders", "email", "CUSTOM", "concat('redacted:', substr({col}, 3, 1))", "engineer")
	becomes(t, "bob", q, "XX|111-xx-xxxx|2021-01-01|redacted:x\nXX|222-xx-xxxx|2022-01-01|redacted:x\nXX|333-xx-xxxx|2023-01-01|redacted:x")
	is(t, "alice", q, "EU|111-11-1111|2021-05-04|a@x\nUS|222-22-2222|2022-06-05|b@x\nEU|333-33-3333|2023-07-06|c@x")
}

func TestTagMaskBeatsResourceMask(t *testing.T) {
	ns := orders(t)
	q := "SELECT ssn FROM " + ns + ".orders ORDER BY id"
	mask(t, ns, "orders", "ssn", "MASK_SHOW_LAST_4", "", "engineer")
	becomes(t, "bob", q, "xxx-xx-1111\nxxx-xx-2222\nxxx-xx-3333")
	tagMask(t, "LIVE_WINS", "hive:MASK_NULL", "", "engineer")
	sqlTag(t, ns, "ssn", "LIVE_WINS")
	becomes(t, "bob", q, "NULL\nNULL\nNULL")
	is(t, "alice", q, "111-11-1111\n222-22-2222\n333-33-3333")
}

// Items for groups and for everybody act as well, for resources and for tags.
func TestGroupsAndPublic(t *testing.T) {
	ns := orders(t)
	q := "SELECT ssn, email FROM " + ns + ".orders WHERE id = 1"
	policy(t, object{
		"service": dataService, "name": "sqe-live-group-" + ns, "policyType": 1, "isEnabled": true,
		"resources":           object{"database": values(ns), "table": values("orders"), "column": values("ssn")},
		"dataMaskPolicyItems": []object{{"groups": []string{"engineering"}, "accesses": selects, "dataMaskInfo": object{"dataMaskType": "MASK_NULL"}}},
	})
	policy(t, object{
		"service": tagService, "name": "sqe-live-public-" + ns, "policyType": 1, "isEnabled": true, "resources": object{"tag": values("LIVE_PUBLIC")},
		"dataMaskPolicyItems": []object{
			{"roles": []string{"sqe_admin"}, "accesses": hiveSelects, "dataMaskInfo": object{"dataMaskType": "hive:MASK_NONE"}},
			{"groups": []string{"public"}, "accesses": hiveSelects, "dataMaskInfo": object{"dataMaskType": "hive:MASK_NULL"}},
		},
	})
	sqlTag(t, ns, "email", "LIVE_PUBLIC")
	becomes(t, "bob", q, "NULL|NULL")
	is(t, "alice", q, "111-11-1111|NULL")
	is(t, "carol", q, "111-11-1111|a@x")
}

// listed finds the row of an answer whose first column is name.
func listed(t testing.TB, a sqetest.Answer, name string) map[string]string {
	t.Helper()
	if a.Err != nil {
		t.Fatal(a.Err)
	}
	for _, r := range a.Rows {
		if r[0] != name {
			continue
		}
		out := map[string]string{}
		for i, c := range a.Columns {
			out[c] = r[i]
		}
		return out
	}
	t.Fatalf("%s is not listed:\n%s", name, a.Text())
	return nil
}

func TestShowMaskingPolicies(t *testing.T) {
	ns := orders(t)
	const expression = "concat('xxx-xx-', substr({col},8,4))"
	mask(t, ns, "orders", "ssn", "CUSTOM", expression, "engineer")
	mask(t, ns, "orders", "email", "MASK_NULL", "", "engineer")
	name := "sqe-live-" + ns + "-orders-ssn-CUSTOM"
	row := listed(t, as(t, "carol", "SHOW MASKING POLICIES"), name)
	for column, want := range map[string]string{
		"database": ns, "table": "orders", "column": "ssn", "mask_type": "CUSTOM", "expression": expression, "grantees": "ROLE engineer",
	} {
		if row[column] != want {
			t.Errorf("%s is %q, want %q", column, row[column], want)
		}
	}
	listed(t, as(t, "carol", "SHOW MASKING POLICIES"), "sqe-live-"+ns+"-orders-email-MASK_NULL")
	one := as(t, "carol", `SHOW MASKING POLICY "`+strings.ToUpper(name)+`"`)
	if one.Err != nil || len(one.Rows) != 1 || one.Rows[0][0] != name {
		t.Errorf("SHOW MASKING POLICY: %s", one.Text())
	}
	for _, statement := range []string{"SHOW MASKING POLICIES", "SHOW POLICIES", `SHOW CREATE POLICY "` + name + `"`} {
		refused := as(t, "bob", statement)
		if refused.Number() != 1142 || strings.Contains(refused.Text(), "concat") {
			t.Errorf("%s as bob: %s", statement, refused.Text())
		}
		if a := as(t, "carol", statement); a.Err != nil || len(a.Rows) == 0 {
			t.Errorf("%s as carol: %s", statement, a.Text())
		}
	}
}

func TestSetMaskingPolicy(t *testing.T) {
	ns := orders(t)
	q := "SELECT ssn FROM " + ns + ".orders ORDER BY id"
	tagMask(t, "live_attach", "hive:MASK_SHOW_LAST_4", "", "engineer")
	set := "ALTER TABLE " + ns + `.orders MODIFY COLUMN ssn SET MASKING POLICY "sqe-live-mask-live_attach"`
	if a := as(t, "bob", set); a.Err == nil {
		t.Errorf("bob attached a policy")
	}
	if a := as(t, "carol", set); a.Err != nil {
		t.Fatal(a.Err)
	}
	becomes(t, "bob", q, "xxx-xx-1111\nxxx-xx-2222\nxxx-xx-3333")
	if a := as(t, "carol", "SHOW TAGS ON "+ns+".orders"); !strings.Contains(a.Text(), "live_attach") {
		t.Errorf("SHOW TAGS: %s", a.Text())
	}
	if a := as(t, "carol", "ALTER TABLE "+ns+".orders MODIFY COLUMN ssn UNSET MASKING POLICY"); a.Err != nil {
		t.Fatal(a.Err)
	}
	is(t, "bob", q, "111-11-1111\n222-22-2222\n333-33-3333")
}

func TestSetMaskingPolicyRefusesAResourcePolicy(t *testing.T) {
	ns := orders(t)
	mask(t, ns, "orders", "email", "MASK_NULL", "", "engineer")
	a := as(t, "carol", "ALTER TABLE "+ns+".orders MODIFY COLUMN ssn SET MASKING POLICY `sqe-live-"+ns+"-orders-email-MASK_NULL`")
	if a.Err == nil || !strings.Contains(a.Err.Error(), "resource masking policy") || !strings.Contains(a.Err.Error(), "cross product") {
		t.Errorf("answer: %s", a.Text())
	}
	if a := as(t, "carol", "SHOW TAGS ON "+ns+".orders"); a.Err != nil || len(a.Rows) != 0 {
		t.Errorf("tags: %s", a.Text())
	}
}

// A column that is dropped and made again by another engine does not open, and a
// renamed one stays masked, by tag and by name.
func TestSchemaChangesDoNotUnmask(t *testing.T) {
	ns := orders(t)
	tagMask(t, "LIVE_SCHEMA", "hive:MASK_NULL", "", "engineer")
	sqlTag(t, ns, "ssn", "LIVE_SCHEMA")
	mask(t, ns, "orders", "email", "MASK_NULL", "", "engineer")
	becomes(t, "bob", "SELECT ssn, email FROM "+ns+".orders WHERE id = 1", "NULL|NULL")

	sales.renameColumn(t, ns, "orders", "ssn", "tax_id")
	sales.renameColumn(t, ns, "orders", "email", "mail")
	is(t, "bob", "SELECT tax_id, mail FROM "+ns+".orders WHERE id = 1", "NULL|NULL")
	is(t, "alice", "SELECT tax_id, mail FROM "+ns+".orders WHERE id = 1", "111-11-1111|a@x")
	why := as(t, "carol", "EXPLAIN POLICY SELECT mail FROM "+ns+".orders")
	if why.Err != nil {
		t.Error(why.Err)
	}

	sales.dropColumn(t, ns, "orders", "tax_id")
	sales.addColumn(t, ns, "orders", "ssn", iceberg.PrimitiveTypes.String)
	is(t, "bob", "SELECT ssn FROM "+ns+".orders", "NULL\nNULL\nNULL")
	is(t, "alice", "SELECT ssn FROM "+ns+".orders", "NULL\nNULL\nNULL") // the new column is empty

	sales.addColumn(t, ns, "orders", "nickname", iceberg.PrimitiveTypes.String)
	is(t, "bob", "SELECT id, ssn, nickname FROM "+ns+".orders WHERE id = 2", "2|NULL|NULL")
}
