package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sqe/audit"
	"sqe/catalog"
	"sqe/engine"
	"sqe/fault"
	"sqe/identity"
	"sqe/masks"
	"sqe/plan"
	"sqe/policy"
)

// procedures are those that maintain the files of a table.
var procedures = []string{"expire_snapshots", "rewrite_data_files", "rewrite_manifests", "remove_orphan_files"}

// TestMaintenanceHides: whoever may not see a table learns as much of it as of one
// that is not there, and who may see it is told what is lacking.
func TestMaintenanceHides(t *testing.T) {
	m := openMaintenance(t)
	m.create("m", "2", 1)
	before := m.table("m").Version
	for _, p := range procedures {
		hidden := refused(t, m.bob, "CALL system."+p+"('bank.m')", fault.NotFound)
		missing := refused(t, m.bob, "CALL system."+p+"('bank.n')", fault.NotFound)
		if strings.ReplaceAll(hidden.Error(), "m'", "n'") != missing.Error() {
			t.Errorf("%q and %q", hidden, missing)
		}
		granted := refused(t, m.root, "CALL system."+p+"('bank.n')", fault.NotFound)
		if granted.Error() != missing.Error() {
			t.Errorf("%q and %q", granted, missing)
		}
	}
	m.may("bob", "bank.m", "table-list table-data-read")
	for _, p := range procedures {
		err := refused(t, m.bob, "CALL system."+p+"('bank.m')", fault.Denied)
		if !strings.Contains(err.Error(), "table-data-write") {
			t.Errorf("%v", err)
		}
		if e := m.journal.last(); e.Kind != "maintenance" || e.Outcome != "denied" || len(e.Denials) == 0 || len(e.Changes) > 0 {
			t.Errorf("%+v", e)
		}
	}
	if after := m.table("m").Version; after != before {
		t.Errorf("the table was %s and is %s", before, after)
	}
	m.may("bob", "bank.m", "table-data-write")
	if _, err := query(m.bob, "CALL system.remove_orphan_files('bank.m')"); err != nil {
		t.Error(err)
	}
	want := []audit.Change{{
		Object: "lake.bank.m", Path: []string{"lake", "bank", "m"}, Privileges: []string{"table-data-write"},
		By: []policy.Origin{{Source: "gate", Policy: "grants", ID: 1}},
	}}
	if e := m.journal.last(); cmp.Diff(want, e.Changes) != "" || e.Kind != "maintenance" || e.Outcome != "ok" {
		t.Errorf("%+v", e)
	}
}

// TestMaintenanceRefuses: arguments that would do harm, or that there are not.
func TestMaintenanceRefuses(t *testing.T) {
	m := openMaintenance(t)
	m.create("m", "2", 2)
	before := m.table("m").Version
	for _, x := range []struct {
		call, says string
		kind       fault.Kind
	}{
		{"rewrite_data_files(table => 'm', where => 'id = 1')", "no condition", fault.Unsupported},
		{"rewrite_data_files(table => 'm', strategy => 'sort')", "WRITE ORDERED BY", fault.Unsupported},
		{"rewrite_data_files(table => 'm', sort_order => 'id')", "WRITE ORDERED BY", fault.Unsupported},
		{"rewrite_data_files(table => 'm', options => map('rewrite-all', 'yes'))", "rewrite-all", fault.BadStatement},
		{"rewrite_data_files(table => 'm', options => map('min-input-files', '0'))", "at least 1", fault.BadStatement},
		{"rewrite_data_files(table => 'm', options => map('min-file-size-bytes', 'x'))", "at least 1", fault.BadStatement},
		{"rewrite_data_files(table => 'm', options => map('partial-progress.enabled', 'true'))", "there are rewrite-all", fault.Unsupported},
		{"expire_snapshots(table => 'm', snapshot_ids => array(1))", "older_than", fault.Unsupported},
	} {
		err := refused(t, m.root, "CALL system."+x.call, x.kind)
		if !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v", x.call, err)
		}
	}
	m.do(m.root, "ALTER TABLE m SET TBLPROPERTIES ('gc.enabled' = 'false')")
	for _, call := range []string{
		"expire_snapshots(table => 'm', older_than => '2199-01-01 00:00:00')", "remove_orphan_files('m')",
		"remove_orphan_files(table => 'm', dry_run => true)",
	} {
		if err := refused(t, m.root, "CALL system."+call, fault.BadStatement); !strings.Contains(err.Error(), "gc.enabled") {
			t.Errorf("%s: %v", call, err)
		}
	}
	m.do(m.root, "ALTER TABLE m UNSET TBLPROPERTIES ('gc.enabled')")
	must(t, m.root, "SELECT COUNT(*) FROM `m$snapshots`", "2")
	if before == m.table("m").Version {
		t.Error("the properties were not changed")
	}
	if _, err := query(m.root, "CALL system.rewrite_data_files(table => 'm', strategy => 'binpack', options => map('min-input-files', '3'))"); err != nil {
		t.Error(err)
	}
	must(t, m.root, "SELECT COUNT(*) FROM `m$snapshots`", "2")
	if _, err := query(m.root, "CALL system.rewrite_data_files(table => 'm', options => map('rewrite-all', 'TRUE', 'min-file-size-bytes', '1'))"); err != nil {
		t.Error(err)
	}
	must(t, m.root, "SELECT COUNT(*) FROM `m$snapshots`", "3")
}

// TestOrphansOfEnd: files of a server that ended in the middle of a write are listed,
// no others are, and once removed the table reads as before.
func TestOrphansOfEnd(t *testing.T) {
	m := openMaintenance(t)
	m.create("m", "3", 2)
	rows, before := m.rows("m"), m.files("m")
	// The server ends before the commit is known: it removes nothing.
	if err := m.appendTo("m", 100, 110, failing{fmt.Errorf("ended: %w", catalog.ErrUnknown)}); err == nil {
		t.Fatal("the commit did not fail")
	}
	var orphans []string
	for _, f := range m.files("m") {
		if !slices.Contains(before, f) {
			orphans = append(orphans, f)
		}
	}
	if len(orphans) != 2 {
		t.Fatalf("%d orphans", len(orphans))
	}
	const now = "older_than => '2199-01-01 00:00:00'"
	listed := func(s *engine.Session, call string) string {
		t.Helper()
		out, err := m.result(s, "CALL system.remove_orphan_files(table => 'bank.m'"+call+")")
		if err != nil {
			t.Fatalf("%s: %v", call, err)
		}
		lines := strings.Split(strings.TrimPrefix(out, "orphan_file_location\n"), "\n")
		slices.Sort(lines)
		return strings.Join(lines, "\n")
	}
	all := strings.Join(orphans, "\n")
	if got := listed(m.sue, ", dry_run => true"); got != "" {
		t.Errorf("young files are orphans: %s", got)
	}
	if got := listed(m.sue, ", dry_run => true, "+now); got != all {
		t.Errorf("%s\nwant\n%s", got, all)
	}
	// Young files are removed by nobody, those of an hour by an administrator.
	refused(t, m.sue, "CALL system.remove_orphan_files(table => 'm', "+now+")", fault.BadStatement)
	refused(t, m.root, "CALL system.remove_orphan_files(table => 'm', "+now+")", fault.BadStatement)
	ago := func(d time.Duration) string {
		return ", older_than => '" + time.Now().UTC().Add(-d).Format("2006-01-02 15:04:05") + "'"
	}
	m.age(m.files("m"), 3*time.Hour)
	refused(t, m.sue, "CALL system.remove_orphan_files(table => 'm'"+ago(2*time.Hour)+")", fault.BadStatement)
	if got := m.files("m"); len(got) != len(before)+2 {
		t.Errorf("%d files", len(got))
	}
	m.age(orphans[1:], 49*time.Hour)
	if got := listed(m.sue, ago(48*time.Hour)); got != orphans[1] {
		t.Errorf("%s\nwant\n%s", got, orphans[1])
	}
	if got := listed(m.root, ago(2*time.Hour)); got != orphans[0] {
		t.Errorf("%s\nwant\n%s", got, orphans[0])
	}
	if got := m.files("m"); !slices.Equal(got, before) || m.rows("m") != rows {
		t.Errorf("the files are\n%s\nwant\n%s\nand the rows %s, want %s", got, before, m.rows("m"), rows)
	}
}

// TestOrphansUnderPolicies: the path of a file may hold a value that a policy hides.
// Who sees the table under one may remove orphans, and is not told where they lay.
func TestOrphansUnderPolicies(t *testing.T) {
	m := openMaintenance(t)
	m.create("m", "2", 1)
	orphan := filepath.Join(m.folder("m"), "data/part=secret/x.parquet")
	put := func() {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(orphan), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(orphan, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		m.age([]string{orphan}, 100*time.Hour)
	}
	put()
	for name, r := range map[string]*policy.Restrictions{
		"filter": {Complete: true, Filters: []policy.RowFilter{{SQL: "part = 'p1'"}}},
		"mask":   {Complete: true, Columns: map[int]policy.ColumnRule{2: {Kind: policy.Mask, Action: masks.Hash}}},
		"none":   {Complete: true},
	} {
		m.gate.mu.Lock()
		m.gate.state.restrict = func(identity.Principal, *plan.Table) *policy.Restrictions { return r }
		m.gate.mu.Unlock()
		s := m.open(identity.Principal{Name: "sue", Groups: []string{name}})
		want := "NULL"
		if name == "none" {
			want = orphan
		}
		must(t, s, "CALL system.remove_orphan_files(table => 'bank.m', dry_run => true)", want)
		must(t, s, "CALL system.remove_orphan_files(table => 'bank.m')", want)
		if _, err := os.Stat(orphan); !os.IsNotExist(err) {
			t.Errorf("%s: the orphan is there: %v", name, err)
		}
		put()
		// Rows go from file to file, whatever is hidden.
		if _, err := query(s, "CALL system.rewrite_data_files(table => 'bank.m', options => map('rewrite-all', 'true'))"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	m.gate.mu.Lock()
	m.gate.state.restrict = nil
	m.gate.mu.Unlock()
	root := m.open(identity.Principal{Name: "root", Admin: true, Groups: []string{"whole"}})
	must(t, root, "SELECT COUNT(*), MIN(part), MAX(part) FROM m", "10|p0|p1")
}

// states are the State cells of the process list that a session sees of another one.
func states(t *testing.T, of, to *engine.Session) []string {
	t.Helper()
	id, err := query(of, "SELECT CONNECTION_ID()")
	if err != nil {
		t.Fatal(err)
	}
	return statesOf(t, id, to)
}

func statesOf(t *testing.T, id string, to *engine.Session) []string {
	t.Helper()
	out, err := query(to, "SHOW PROCESSLIST")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, line := range strings.Split(out, "\n") {
		if cells := strings.Split(line, "|"); cells[0] == id {
			list = append(list, cells[6])
		}
	}
	return list
}

// TestMaintenanceProgress: while a procedure runs, its owner and administrators see
// how far it is, and nobody else does.
func TestMaintenanceProgress(t *testing.T) {
	m := openMaintenance(t)
	m.create("m", "2", 3)
	again := m.open(identity.Principal{Name: "sue"})
	id, err := query(m.sue, "SELECT CONNECTION_ID()")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string][]string{}
	m.held.hold(func(context.Context) {
		seen["sue"], seen["root"], seen["bob"] = statesOf(t, id, again), statesOf(t, id, m.root), statesOf(t, id, m.bob)
	})
	if _, err := query(m.sue, "CALL system.rewrite_data_files('m')"); err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{"sue": {"rewriting: 6 of 6 files"}, "root": {"rewriting: 6 of 6 files"}, "bob": nil}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
	if got := states(t, m.sue, m.root); !slices.Equal(got, []string{""}) {
		t.Errorf("afterwards: %q", got)
	}
	m.held.hold(func(context.Context) { seen["sue"] = statesOf(t, id, again) })
	if _, err := query(m.sue, "CALL system.expire_snapshots('m')"); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(seen["sue"], []string{"expiring snapshots"}) {
		t.Errorf("%q", seen["sue"])
	}
}

// TestMaintenanceEnds: what is ended in the middle changes nothing and leaves nothing.
func TestMaintenanceEnds(t *testing.T) {
	m := openMaintenance(t)
	m.create("m", "2", 3)
	rows, files, version := m.rows("m"), m.files("m"), m.table("m").Version
	id, err := query(m.sue, "SELECT CONNECTION_ID()")
	if err != nil {
		t.Fatal(err)
	}
	staged := 0
	for _, call := range []string{
		"rewrite_data_files('m')", "rewrite_manifests('m')", "expire_snapshots(table => 'm', older_than => '2199-01-01 00:00:00')", "remove_orphan_files('m')",
	} {
		m.held.hold(func(context.Context) {
			staged = max(staged, len(m.files("m")))
			m.do(m.root, "KILL QUERY "+id)
		})
		err := refused(t, m.sue, "CALL system."+call, fault.Cancelled)
		if !strings.Contains(err.Error(), "KILL") {
			t.Errorf("%s: %v", call, err)
		}
		if after := m.table("m").Version; after != version || m.rows("m") != rows || !slices.Equal(m.files("m"), files) {
			t.Errorf("%s: the table was %s and is %s, of %d files there are %d", call, version, after, len(files), len(m.files("m")))
		}
	}
	if staged <= len(files) {
		t.Error("nothing was staged when the rewrite was ended")
	}
	if _, err := query(m.sue, "CALL system.rewrite_data_files('m')"); err != nil || m.table("m").Version == version {
		t.Errorf("the next statement of the session: %v", err)
	}
}

// TestExpiryEnds: an expiry that is ended after its commit says what is left, which is
// found as orphans.
func TestExpiryEnds(t *testing.T) {
	m := openMaintenance(t)
	m.create("m", "2", 3)
	if _, err := query(m.sue, "CALL system.rewrite_data_files('m')"); err != nil {
		t.Fatal(err)
	}
	rows, files := m.rows("m"), m.files("m")
	id, err := query(m.sue, "SELECT CONNECTION_ID()")
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Millisecond)
	m.held.after = func() { m.do(m.root, "KILL QUERY "+id) }
	refused(t, m.sue, "CALL system.expire_snapshots(table => 'm', older_than => '2199-01-01 00:00:00')", fault.Cancelled)
	if w := warnings(t, m.sue); !strings.Contains(w, "3 snapshots of table 'm' expired") || !strings.Contains(w, "remove_orphan_files") {
		t.Errorf("%q", w)
	}
	must(t, m.root, "SELECT COUNT(*) FROM `m$snapshots`", "1")
	if got := m.files("m"); !slices.Equal(got, files) {
		t.Errorf("%d files of %d", len(got), len(files))
	}
	m.age(files, 100*time.Hour)
	out, err := query(m.sue, "CALL system.remove_orphan_files('m')")
	if n := strings.Count(out, "\n") + 1; err != nil || n < 9 || len(m.files("m")) != len(files)-n || m.rows("m") != rows {
		t.Errorf("%d orphans of %d files, %d left, %v", n, len(files), len(m.files("m")), err)
	}
}

// TestMaintenanceTimeout: the timeout of statements holds for maintenance.
func TestMaintenanceTimeout(t *testing.T) {
	m := openMaintenance(t, func(o *engine.Options) { o.StatementTimeout = 5 * time.Second })
	m.create("m", "2", 2)
	rows, files := m.rows("m"), m.files("m")
	m.held.hold(func(ctx context.Context) { <-ctx.Done() })
	refused(t, m.root, "CALL system.rewrite_data_files('m')", fault.Timeout)
	if m.rows("m") != rows || !slices.Equal(m.files("m"), files) {
		t.Errorf("rows %s, want %s; %d files, want %d", m.rows("m"), rows, len(m.files("m")), len(files))
	}
}

// TestMaintenanceMeetsWriters: rows that others add meanwhile are there afterwards, and
// rows that others delete meanwhile do not come back.
func TestMaintenanceMeetsWriters(t *testing.T) {
	for _, version := range []string{"2", "3"} {
		m := openMaintenance(t)
		m.create("m", version, 3)
		m.held.hold(func(context.Context) { m.append("m", 30, 40) })
		if _, err := query(m.sue, "CALL system.rewrite_data_files('m')"); err != nil {
			t.Fatal(err)
		}
		must(t, m.root, "SELECT COUNT(*), COUNT(DISTINCT id), SUM(id) FROM m", "40|40|780")
		must(t, m.root, "SELECT COUNT(*) FROM `m$files`", "4")
		m.held.hold(func(context.Context) { m.delete("m", 5) })
		files := 0
		err := refused(t, m.sue, "CALL system.rewrite_data_files(table => 'm', options => map('rewrite-all', 'true'))", fault.Conflict)
		if files = len(m.files("m")); !strings.Contains(err.Error(), "try again") {
			t.Errorf("%v", err)
		}
		must(t, m.root, "SELECT COUNT(*), COUNT(DISTINCT id), SUM(id) FROM m", "39|39|775")
		res, err := m.result(m.sue, "CALL system.rewrite_data_files('m')")
		if err != nil || !strings.HasSuffix(res, "|1") {
			t.Errorf("the delete file is to be removed: %s, %v", res, err)
		}
		must(t, m.root, "SELECT COUNT(*), COUNT(DISTINCT id), SUM(id) FROM m", "39|39|775")
		if now := len(m.files("m")); now <= files {
			t.Errorf("%d files, before there were %d", now, files)
		}
		time.Sleep(3 * time.Millisecond)
		res, err = m.result(m.sue, "CALL system.expire_snapshots(table => 'm', older_than => '2199-01-01 00:00:00')")
		if want := expireColumns; err != nil || !strings.HasPrefix(res, want) || strings.Split(strings.TrimPrefix(res, want), "|")[1] != "1" {
			t.Errorf("%s, %v", res, err)
		}
		must(t, m.root, "SELECT COUNT(*), COUNT(DISTINCT id), SUM(id) FROM m", "39|39|775")
		must(t, m.root, "CALL system.remove_orphan_files(table => 'm', older_than => '2199-01-01 00:00:00', dry_run => true)", "")
	}
}

// TestCountsUnderPolicies: counts tell of all rows, so that who does not see all of them
// gets none.
func TestCountsUnderPolicies(t *testing.T) {
	f, eve := people(t)
	f.do(f.sue, "INSERT INTO people VALUES (4, 'Dora', 'US', 1)")
	f.may("eve", "bank.people", "table-snapshot-add table-snapshot-ref-set table-snapshots-remove table-snapshot-ref-remove")
	for _, call := range []string{"rewrite_data_files(table => 'bank.people')", "rewrite_manifests('bank.people')", "expire_snapshots(table => 'bank.people', older_than => '2199-01-01 00:00:00')"} {
		f.do(f.sue, "INSERT INTO people VALUES (5, 'Ed', 'US', 1)")
		out, err := query(eve, "CALL system."+call)
		if err != nil || strings.Trim(out, "NUL|") != "" {
			t.Errorf("%s: %q, %v", call, out, err)
		}
		f.do(f.sue, "INSERT INTO people VALUES (5, 'Ed', 'US', 1)")
		if out, err = query(f.sue, "CALL system."+call); err != nil || strings.Contains(out, "NULL") {
			t.Errorf("%s: %q, %v", call, out, err)
		}
	}
}
