package catalog

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/apache/iceberg-go/table"

	"sqe/fault"
	"sqe/plan"
)

func TestRefs(t *testing.T) {
	c, _ := lake(t)
	made(t, c, "t", humans)
	n := name("ns", "t")
	_, err := c.SetRef(ctx, n, Ref{Name: "x", Branch: true}, CreateRef)
	wants(t, "no snapshot", err, fault.BadStatement, "no snapshot")
	first := appended(t, c, "t", `[{"id": 1}]`)
	second := appended(t, c, "t", `[{"id": 2}]`)
	tb, err := c.SetRef(ctx, n, Ref{Name: "x", Branch: true, Snapshot: first.SnapshotID, MaxAge: time.Hour, MaxSnapshotAge: time.Minute, MinSnapshots: 3}, CreateRef)
	must(t, err)
	r := refOf(tb.Handle.(*Handle).Table.Metadata(), "x")
	if r.SnapshotID != first.SnapshotID || *r.MaxRefAgeMs != 3600000 || *r.MaxSnapshotAgeMs != 60000 || *r.MinSnapshotsToKeep != 3 || tb.SnapshotID != second.SnapshotID {
		t.Errorf("%+v", r)
	}
	_, err = c.SetRef(ctx, n, Ref{Name: "v1"}, CreateRef)
	must(t, err)
	for what, f := range map[string]func() (fault.Kind, error){
		"twice": func() (fault.Kind, error) { return fault.Exists, refErr(c.SetRef(ctx, n, Ref{Name: "v1"}, CreateRef)) },
		"a tag a branch": func() (fault.Kind, error) {
			return fault.Exists, refErr(c.SetRef(ctx, n, Ref{Name: "v1", Branch: true}, CreateOrReplaceRef))
		},
		"replace none": func() (fault.Kind, error) {
			return fault.BadStatement, refErr(c.SetRef(ctx, n, Ref{Name: "v2"}, ReplaceRef))
		},
		"no snapshot": func() (fault.Kind, error) {
			return fault.BadStatement, refErr(c.SetRef(ctx, n, Ref{Name: "v2", Snapshot: 42}, CreateRef))
		},
		"main": func() (fault.Kind, error) {
			return fault.BadStatement, refErr(c.SetRef(ctx, n, Ref{Name: "main", Branch: true}, ReplaceRef))
		},
		"a tag that keeps": func() (fault.Kind, error) {
			return fault.BadStatement, refErr(c.SetRef(ctx, n, Ref{Name: "v2", MinSnapshots: 1}, CreateRef))
		},
		"negative": func() (fault.Kind, error) {
			return fault.BadStatement, refErr(c.SetRef(ctx, n, Ref{Name: "v2", MaxAge: -1}, CreateRef))
		},
		"drop none":     func() (fault.Kind, error) { return fault.BadStatement, refErr(c.DropRef(ctx, n, "none", true, false)) },
		"drop main":     func() (fault.Kind, error) { return fault.BadStatement, refErr(c.DropRef(ctx, n, "main", true, false)) },
		"drop as a tag": func() (fault.Kind, error) { return fault.BadStatement, refErr(c.DropRef(ctx, n, "x", false, false)) },
		"write a tag": func() (fault.Kind, error) {
			return fault.BadStatement, refErr(c.CommitBranch(ctx, n, "v1", rows(`[{"id": 9}]`)))
		},
		"write none": func() (fault.Kind, error) {
			return fault.BadStatement, refErr(c.CommitBranch(ctx, n, "none", rows(`[{"id": 9}]`)))
		},
	} {
		kind, err := f()
		wants(t, what, err, kind, "")
	}
	_, err = c.CommitBranch(ctx, n, "x", func(ctx context.Context, tx *table.Transaction, on *plan.Table) error {
		if on.SnapshotID != first.SnapshotID {
			t.Error("a change of a branch is given another snapshot")
		}
		return rows(`[{"id": 3}]`)(ctx, tx, on)
	})
	must(t, err)
	for ref, want := range map[string]int64{"main": 2, "x": 2, "v1": 2} {
		at, err := c.Table(ctx, n, plan.AsOf{Ref: ref}, "")
		must(t, err)
		total := at.Handle.(*Handle).Snapshot.Summary.Properties["total-records"]
		if total != fmt.Sprint(want) {
			t.Errorf("%s has %s rows", ref, total)
		}
	}
	if same, err := c.SetRef(ctx, n, Ref{Name: "v1", Snapshot: first.SnapshotID}, CreateRefIfMissing); err != nil || refOf(same.Handle.(*Handle).Table.Metadata(), "v1").SnapshotID != second.SnapshotID {
		t.Error(err)
	}
	if moved, err := c.SetRef(ctx, n, Ref{Name: "v1", Snapshot: first.SnapshotID}, ReplaceRef); err != nil || refOf(moved.Handle.(*Handle).Table.Metadata(), "v1").SnapshotID != first.SnapshotID {
		t.Error(err)
	}
	_, err = c.DropRef(ctx, n, "none", true, true)
	must(t, err)
	tb, err = c.DropRef(ctx, n, "v1", false, false)
	must(t, err)
	if refOf(tb.Handle.(*Handle).Table.Metadata(), "v1") != nil {
		t.Error("the tag is there")
	}

	// Rollback.
	branch := refOf(tb.Handle.(*Handle).Table.Metadata(), "x")
	for what, f := range map[string]plan.AsOf{"none": {}, "a ref": {Ref: "x"}, "no such": {Snapshot: 42}, "no ancestor": {Snapshot: branch.SnapshotID}, "too early": {Time: time.Unix(1, 0)}} {
		_, err := c.Rollback(ctx, n, f)
		wants(t, what, err, fault.BadStatement, "")
	}
	if same, err := c.Rollback(ctx, n, plan.AsOf{Time: time.Now().Add(time.Hour)}); err != nil || same.Version != tb.Version {
		t.Errorf("to the present: %v", err)
	}
	back, err := c.Rollback(ctx, n, plan.AsOf{Snapshot: first.SnapshotID})
	must(t, err)
	if back.SnapshotID != first.SnapshotID || scanned(t, loaded(t, c, "t")) != 1 {
		t.Error("no rollback")
	}
	third := appended(t, c, "t", `[{"id": 4}]`)
	if scanned(t, third) != 2 {
		t.Error("a write after a rollback")
	}
	at := time.UnixMilli(first.Handle.(*Handle).Snapshot.TimestampMs)
	if back, err = c.Rollback(ctx, n, plan.AsOf{Time: at}); err != nil || back.SnapshotID != first.SnapshotID {
		t.Errorf("to a time: %v", err)
	}
}

func refErr(_ *plan.Table, err error) error { return err }
