//go:build e2e

package live

import (
	"io"
	"strings"
	"testing"
	"time"

	"sqe/tests/sqetest"
)

// What cannot be applied closes what it protects; the control is alice, for whom
// the policy is not, and everything that it does not protect.
func TestBrokenPoliciesFailClosed(t *testing.T) {
	wait := func(t *testing.T, text string, closed func(string) bool) string {
		t.Helper()
		got := ""
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			if got = rows(as(t, "bob", text)); closed(got) {
				return got
			}
		}
		t.Fatalf("%s as bob is still\n%s", text, got)
		return ""
	}
	errors := func(got string) bool { return strings.HasPrefix(got, "error: ") }
	closed := func(got string) bool { return errors(got) || strings.ReplaceAll(got, "\n", "") == "NULLNULLNULL" }
	const rawSSN = "111-11-1111\n222-22-2222\n333-33-3333"

	filters := map[string]string{
		"syntax":                "region = = 'EU'",
		"missing column":        "no_such_column = 1",
		"not a condition":       "concat(region, 'x')",
		"missing attribute":     "region = ${{USER.no_such_attribute}}",
		"unknown function":      "no_such_function(region) = 'EU'",
		"missing mapping table": "region IN (SELECT region FROM nowhere.mapping)",
		"a statement":           "1 = 1; SELECT 1",
		"an aggregate":          "max(id) > 0",
	}
	for name, text := range filters {
		t.Run("filter: "+name, func(t *testing.T) {
			ns := orders(t)
			q := "SELECT ssn FROM " + ns + ".orders ORDER BY id"
			is(t, "bob", q, rawSSN)
			filter(t, ns, "orders", text, "engineer")
			got := wait(t, q, errors)
			if strings.Contains(got, "region") || strings.Contains(got, "EU'") {
				t.Errorf("the error quotes the filter: %s", got)
			}
			wait(t, "SELECT count(*) FROM "+ns+".orders", errors)
			is(t, "alice", q, rawSSN)
			// An administrator learns which policy it is.
			if a := as(t, "carol", "SHOW POLICY STATUS"); !strings.Contains(a.Text(), "sqe-live-filter-"+ns) {
				t.Errorf("SHOW POLICY STATUS does not name the policy: %s", a.Text())
			}
		})
	}
	masks := map[string]struct{ kind, expression string }{
		"unknown column":      {"CUSTOM", "concat(no_such_column, 'x')"},
		"syntax":              {"CUSTOM", "concat({col}, "},
		"no expression":       {"CUSTOM", ""},
		"unknown function":    {"CUSTOM", "no_such_function({col})"},
		"a second expression": {"CUSTOM", "{col}, id"},
	}
	for name, m := range masks {
		t.Run("mask: "+name, func(t *testing.T) {
			ns := orders(t)
			q := "SELECT ssn FROM " + ns + ".orders ORDER BY id"
			is(t, "bob", q, rawSSN)
			mask(t, ns, "orders", "ssn", m.kind, m.expression, "engineer")
			wait(t, q, closed)
			is(t, "bob", "SELECT count(*) FROM "+ns+".orders", "3")
			is(t, "bob", "SELECT id FROM "+ns+".orders ORDER BY id", allIDs)
			is(t, "alice", q, rawSSN)
		})
	}
	t.Run("mask: everything but a column", func(t *testing.T) {
		ns := orders(t)
		policy(t, object{
			"service": dataService, "name": "sqe-live-excludes-" + ns, "policyType": 1, "isEnabled": true,
			"resources": object{
				"database": values(ns), "table": values("orders"),
				"column": object{"values": []string{"id"}, "isExcludes": true, "isRecursive": false},
			},
			"dataMaskPolicyItems": []object{{"roles": []string{"engineer"}, "accesses": selects, "dataMaskInfo": object{"dataMaskType": "MASK_NULL"}}},
		})
		becomes(t, "bob", "SELECT id, ssn, email FROM "+ns+".orders WHERE id = 1", "1|NULL|NULL")
		is(t, "alice", "SELECT id, ssn, email FROM "+ns+".orders WHERE id = 1", "1|111-11-1111|a@x")
	})
	t.Run("a condition that cannot be decided", func(t *testing.T) {
		ns := orders(t)
		policy(t, object{
			"service": dataService, "name": "sqe-live-condition-" + ns, "policyType": 1, "isEnabled": true,
			"resources": object{"database": values(ns), "table": values("orders"), "column": values("ssn")},
			"dataMaskPolicyItems": []object{{
				"roles": []string{"engineer"}, "accesses": selects, "dataMaskInfo": object{"dataMaskType": "MASK_NULL"},
				"conditions": []object{{"type": "_expression", "values": []string{"this is no JavaScript"}}},
			}},
		})
		q := "SELECT ssn FROM " + ns + ".orders ORDER BY id"
		wait(t, q, closed)
		is(t, "alice", q, rawSSN)
	})
}

// A view is no way around: what lies below it is governed.
func TestTimeTravelAndMetadataAreGoverned(t *testing.T) {
	ns := orders(t)
	mask(t, ns, "orders", "ssn", "MASK_NULL", "", "engineer")
	filter(t, ns, "orders", "region = 'EU'", "engineer")
	becomes(t, "bob", "SELECT ssn FROM "+ns+".orders", "NULL\nNULL")
	snapshot, err := as(t, "alice", "SELECT max(snapshot_id) FROM "+ns+".`orders$snapshots`").One()
	if err != nil {
		t.Fatal(err)
	}
	q := "SELECT id, ssn FROM " + ns + ".orders FOR VERSION AS OF " + snapshot + " ORDER BY id"
	is(t, "bob", q, "1|NULL\n3|NULL")
	is(t, "alice", q, "1|111-11-1111\n2|222-22-2222\n3|333-33-3333")
	if a := as(t, "bob", "SELECT * FROM "+ns+".`orders$files`"); strings.Contains(a.Text(), "111-11") {
		t.Error("bounds of the files show raw values")
	}
}

// A policy on a column that never existed protects nothing: SHOW POLICIES, the
// metric and sqe check say so.
func TestPoliciesWithoutTargetAreTold(t *testing.T) {
	ns := orders(t)
	address, err := sqe.Operations()
	if err != nil {
		t.Fatal(err)
	}
	missing := func() string {
		resp, err := client.Get(address + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		_, value, _ := strings.Cut(string(body), "\nsqe_policies_without_target ")
		value, _, _ = strings.Cut(value, "\n")
		return value
	}
	becomesMissing := func(want string) {
		t.Helper()
		for deadline := time.Now().Add(patience); missing() != want; time.Sleep(100 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("the metric is %s, want %s", missing(), want)
			}
		}
	}
	becomesMissing("0")
	mask(t, ns, "orders", "no_such_column", "MASK_NULL", "", "engineer")
	becomesMissing("1")
	row := listed(t, as(t, "carol", "SHOW POLICIES"), "sqe-live-"+ns+"-orders-no_such_column-MASK_NULL")
	if !strings.Contains(row["problems"], "no_such_column") {
		t.Errorf("SHOW POLICIES says %q", row["problems"])
	}
	out, err := sqetest.Run("check", "-c", sqe.Dir+"/sqe.toml")
	if err == nil || !strings.Contains(out, "no_such_column") {
		t.Errorf("sqe check: %v\n%s", err, out)
	}
}
