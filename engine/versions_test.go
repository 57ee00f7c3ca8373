package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sqe/audit"
	"sqe/engine"
	"sqe/fault"
	"sqe/identity"
	"sqe/plan"
	"sqe/policy"
)

// TestVersionsAreNotTold: whoever may not read the metadata tables of a table learns of
// no version why it cannot be read: neither from time travel in any form, nor from what
// changes branches, tags and the present snapshot. Whoever may read them is told.
func TestVersionsAreNotTold(t *testing.T) {
	f, eve := people(t)
	f.may("eve", "bank.people", "table-snapshot-ref-set table-snapshot-ref-remove")
	f.do(f.root, "ALTER TABLE people CREATE TAG narrow")
	f.do(f.root, "ALTER TABLE people DROP COLUMN region")
	f.do(f.root, "ALTER TABLE people ADD COLUMN region STRING")
	f.do(f.root, "INSERT INTO people (id, region) VALUES (4, 'EU')")
	f.do(f.root, "ALTER TABLE people CREATE TAG now_")
	// Of "narrow" the filter cannot be decided: its column was another one then.
	const forms = 5
	text := func(i int, version string) string {
		return []string{
			"SELECT id FROM people FOR VERSION AS OF '" + version + "'",
			"SELECT COUNT(*) FROM people AS OF '" + version + "'",
			"EXPLAIN SELECT id FROM people FOR VERSION AS OF '" + version + "'",
			"EXPLAIN POLICY SELECT id FROM people FOR VERSION AS OF '" + version + "'",
			"SELECT a.id FROM people a JOIN people FOR VERSION AS OF '" + version + "' b ON a.id = b.id",
		}[i]
	}
	var said error
	for i := range forms {
		for _, version := range []string{"none", "17", "narrow"} {
			err := refused(t, eve, text(i, version), fault.BadStatement)
			if said == nil {
				said = err
			}
			if err.Error() != said.Error() {
				t.Errorf("%s: %v; others: %v", text(i, version), err, said)
			}
			if e := f.journal.last(); !slices.ContainsFunc(e.Denials, restrictedBy(1)) {
				t.Errorf("%s: the audit event does not say which policy stands against it: %+v", text(i, version), e)
			}
		}
		f.do(eve, text(i, "now_")) // what she may read, she may
		f.do(f.sue, text(i, "narrow"))
		if err := refused(t, f.sue, text(i, "none"), fault.BadStatement); !strings.Contains(err.Error(), "people$refs") {
			t.Errorf("%s: %v", text(i, "none"), err)
		}
	}
	for _, at := range []string{"1999-01-01", "2999-01-01"} {
		text := "SELECT id FROM people FOR TIMESTAMP AS OF '" + at + "'"
		if at > "2" {
			f.do(eve, text)
			continue
		}
		if err := refused(t, eve, text, fault.BadStatement); err.Error() != said.Error() {
			t.Errorf("%s: %v", text, err)
		}
		if err := refused(t, f.sue, text, fault.BadStatement); err.Error() == said.Error() {
			t.Errorf("%s: %v", text, err)
		}
	}
	// A metadata table as of a version tells no more than as of now.
	for _, version := range []string{"", " FOR VERSION AS OF 'none'", " FOR VERSION AS OF 'now_'", " FOR TIMESTAMP AS OF '1999-01-01'"} {
		if err := refused(t, eve, "SELECT * FROM `people$refs`"+version, fault.Denied); !strings.Contains(err.Error(), "cannot be read under a row filter") {
			t.Error(version, err)
		}
		if e := f.journal.last(); !slices.ContainsFunc(e.Denials, restrictedBy(2)) {
			t.Errorf("people$refs%s: the audit event is %+v", version, e)
		}
	}
	for _, x := range []string{"ALTER TABLE people CREATE TAG x AS OF VERSION 17", "ALTER TABLE people DROP TAG none"} {
		if err := refused(t, eve, x, fault.BadStatement); err.Error() != said.Error() {
			t.Errorf("%s: %v", x, err)
		}
		if err := refused(t, f.sue, x, fault.BadStatement); err.Error() == said.Error() {
			t.Errorf("%s: %v", x, err)
		}
	}
}

// restrictedBy finds the denial for which a policy restricts what is seen of a table.
func restrictedBy(policyID int64) func(audit.Denial) bool {
	return func(d audit.Denial) bool {
		return d.Reason == policy.Restricted && d.Object == "lake.bank.people" && slices.ContainsFunc(d.By, func(o policy.Origin) bool { return o.ID == policyID })
	}
}

// TestNoOtherSnapshotUnderAFilter: a table goes to no other snapshot by somebody who does
// not see which rows come and go. Who sees all rows, and not all values, may move it and
// is not told the snapshots.
func TestNoOtherSnapshotUnderAFilter(t *testing.T) {
	f, eve := people(t)
	of := f.gate.state.restrict
	f.gate.state.restrict = func(p identity.Principal, t *plan.Table) *policy.Restrictions {
		if p.Name != "kim" {
			return of(p, t)
		}
		r := of(identity.Principal{Name: "eve"}, t)
		r.Filters = nil
		return r
	}
	f.may("eve", "bank.*", "table-snapshot-ref-set")
	old := f.table("people").SnapshotID
	f.do(f.root, "ALTER TABLE people CREATE TAG old")
	f.do(f.root, "INSERT INTO people VALUES (4, 'Dora', 'US', 1)")
	before := f.state()
	calls := []string{
		fmt.Sprintf("CALL system.rollback_to_snapshot('bank.people', %d)", old), "CALL system.rollback_to_snapshot('bank.people', 17)",
		fmt.Sprintf("CALL system.set_current_snapshot('bank.people', %d)", old), "CALL system.set_current_snapshot(table => 'bank.people', ref => 'old')",
		"CALL system.rollback_to_timestamp('bank.people', '2999-01-01')", "CALL system.rollback_to_timestamp('bank.people', '1999-01-01')",
	}
	said := ""
	for _, text := range calls {
		err := refused(t, eve, text, fault.Denied)
		if said == "" {
			said = err.Error()
		}
		if err.Error() != said {
			t.Errorf("%s: %v; others: %s", text, err, said)
		}
		if e := f.journal.last(); !slices.ContainsFunc(e.Denials, restrictedBy(1)) {
			t.Errorf("%s: the audit event is %+v", text, e)
		}
	}
	if after := f.state(); after != before {
		t.Errorf("it changed\n%s\ninto\n%s", before, after)
	}
	f.may("kim", "bank", "namespace-list")
	f.may("kim", "bank.people", "table-list table-data-read table-snapshot-ref-set")
	kim, err := f.Open(identity.Principal{Name: "kim"}, engine.ConnInfo{ID: 10, RemoteAddr: "test", Database: "bank"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kim.Close)
	must(t, kim, calls[0], "NULL|NULL")
	must(t, f.sue, "SELECT COUNT(*) FROM people", "3")
	if got, err := query(f.sue, "CALL system.set_current_snapshot(table => 'bank.people', ref => 'old')"); err != nil || strings.Contains(got, "NULL") || !strings.Contains(got, fmt.Sprint(old)) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestPartitionsOfDroppedColumns: the values of a column that is gone, and that no policy
// of the table decides about any more, are not in the metadata of the files that were
// partitioned by it: neither in the partition nor in the path. As of when the column was
// there they are for whom no policy masks it.
func TestPartitionsOfDroppedColumns(t *testing.T) {
	f := openDDL(t)
	f.gate.state.restrict = func(p identity.Principal, t *plan.Table) *policy.Restrictions {
		r := &policy.Restrictions{Complete: true, Columns: map[int]policy.ColumnRule{}}
		if ssn, ok := t.FieldNamed("ssn"); ok && p.Name == "bob" {
			r.Columns[ssn.ID] = policy.ColumnRule{Kind: policy.Nullify, Origin: policy.Origin{Source: "gate", Policy: "mask", ID: 1}}
		}
		return r
	}
	f.may("bob", "bank", "namespace-list")
	f.may("bob", "bank.people", "table-list table-data-read")
	f.do(f.root, "CREATE TABLE people (id BIGINT, region STRING, ssn STRING) PARTITIONED BY (region, ssn)")
	f.do(f.root, "INSERT INTO people VALUES (1, 'EU', 's-1'), (2, 'US', 's-2')")
	f.do(f.root, "ALTER TABLE people CREATE TAG old")
	refused(t, f.bob, "SELECT * FROM `people$files`", fault.Denied)
	for _, s := range []string{"ALTER TABLE people DROP PARTITION FIELD ssn", "ALTER TABLE people DROP COLUMN ssn", "INSERT INTO people VALUES (3, 'CH')"} {
		f.do(f.root, s)
	}
	for _, x := range []string{"SELECT * FROM `people$files`", "SELECT * FROM `people$partitions`"} {
		got, err := query(f.bob, x)
		if err != nil || strings.Contains(got, "s-1") || strings.Contains(got, "ssn") || !strings.Contains(got, "region=EU") || !strings.Contains(got, "region=CH") {
			t.Errorf("%s: %q, %v", x, got, err)
		}
		refused(t, f.bob, x+" FOR VERSION AS OF 'old'", fault.Denied)
		if got, err := query(f.sue, x+" FOR VERSION AS OF 'old'"); err != nil || !strings.Contains(got, "s-1") {
			t.Errorf("%s as of when it was there: %q, %v", x, got, err)
		}
	}
}
