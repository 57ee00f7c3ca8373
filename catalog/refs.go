package catalog

import (
	"context"
	"time"

	"github.com/apache/iceberg-go/table"

	"sqe/fault"
	"sqe/plan"
)

// SetRef implements Changer.
func (c *common) SetRef(ctx context.Context, name plan.TableName, r Ref, mode RefMode) (*plan.Table, error) {
	if err := checkName(r.Name); err != nil {
		return nil, err
	}
	if r.Name == table.MainBranch {
		return nil, fault.New(fault.BadStatement, "The branch '%s' is the table itself; it is changed by writing or by a rollback", table.MainBranch)
	}
	if r.MaxAge < 0 || r.MaxSnapshotAge < 0 || r.MinSnapshots < 0 {
		return nil, fault.New(fault.BadStatement, "The retention of a branch or tag cannot be negative")
	}
	if !r.Branch && (r.MaxSnapshotAge > 0 || r.MinSnapshots > 0) {
		return nil, fault.New(fault.BadStatement, "A tag is one snapshot; how many and how old ones are kept can be said of a branch only")
	}
	for _, age := range []time.Duration{r.MaxAge, r.MaxSnapshotAge} {
		if age > 0 && age < time.Millisecond {
			return nil, fault.New(fault.BadStatement, "The retention of a branch or tag is counted in milliseconds")
		}
	}
	kind := table.TagRef
	if r.Branch {
		kind = table.BranchRef
	}
	return c.change(ctx, name, func(_ context.Context, t *plan.Table) (staged, error) {
		meta := t.Handle.(*Handle).Table.Metadata()
		old := refOf(meta, r.Name)
		switch {
		case old != nil && old.SnapshotRefType != kind:
			return staged{}, fault.New(fault.Exists, "'%s' is a %s of table %s; drop it first", r.Name, old.SnapshotRefType, name)
		case old != nil && mode == CreateRefIfMissing:
			return staged{}, nil
		case old != nil && mode == CreateRef:
			return staged{}, fault.New(fault.Exists, "Table %s has a %s '%s' already", name, kind, r.Name)
		case old == nil && mode == ReplaceRef:
			return staged{}, noRef(name, r.Name)
		}
		snapshot := r.Snapshot
		if snapshot == 0 {
			current := meta.CurrentSnapshot()
			if current == nil {
				return staged{}, fault.New(fault.BadStatement, "Table %s has no snapshot to which a branch or tag could point; write a row first", name)
			}
			snapshot = current.SnapshotID
		}
		if meta.SnapshotByID(snapshot) == nil {
			return staged{}, noSnapshot(name, snapshot)
		}
		return staged{updates: []table.Update{table.NewSetSnapshotRefUpdate(r.Name, snapshot, kind,
			r.MaxAge.Milliseconds(), r.MaxSnapshotAge.Milliseconds(), r.MinSnapshots)}}, nil
	})
}

func noSnapshot(name plan.TableName, id int64) error {
	return noVersion("Table %s has no snapshot %d, or it has expired; `%s$snapshots` lists them", name, id, name.Name)
}

// DropRef implements Changer.
func (c *common) DropRef(ctx context.Context, name plan.TableName, ref string, branch, ifExists bool) (*plan.Table, error) {
	if ref == table.MainBranch {
		return nil, fault.New(fault.BadStatement, "The branch '%s' is the table itself; drop the table", table.MainBranch)
	}
	return c.change(ctx, name, func(_ context.Context, t *plan.Table) (staged, error) {
		old := refOf(t.Handle.(*Handle).Table.Metadata(), ref)
		switch {
		case old == nil && ifExists:
			return staged{}, nil
		case old == nil:
			return staged{}, noRef(name, ref)
		case (old.SnapshotRefType == table.BranchRef) != branch:
			return staged{}, fault.New(fault.BadStatement, "'%s' is a %s of table %s", ref, old.SnapshotRefType, name)
		}
		return staged{updates: []table.Update{table.NewRemoveSnapshotRefUpdate(ref)}}, nil
	})
}

// Rollback implements Changer.
func (c *common) Rollback(ctx context.Context, name plan.TableName, to plan.AsOf) (*plan.Table, error) {
	if to.Ref != "" || to.IsZero() {
		return nil, fault.New(fault.BadStatement, "A rollback needs the id of a snapshot or a time")
	}
	return c.change(ctx, name, func(_ context.Context, t *plan.Table) (staged, error) {
		meta := t.Handle.(*Handle).Table.Metadata()
		if to.Snapshot != 0 && meta.SnapshotByID(to.Snapshot) == nil {
			return staged{}, noSnapshot(name, to.Snapshot)
		}
		current := meta.CurrentSnapshot()
		for s := current; s != nil; s = parent(meta, s) {
			if to.Snapshot != 0 && s.SnapshotID != to.Snapshot || to.Snapshot == 0 && s.TimestampMs > to.Time.UnixMilli() {
				continue
			}
			if s.SnapshotID == current.SnapshotID {
				return staged{}, nil
			}
			main := refOf(meta, table.MainBranch)
			age := func(ms *int64) int64 {
				if ms == nil {
					return 0
				}
				return *ms
			}
			keep := 0
			if main.MinSnapshotsToKeep != nil {
				keep = *main.MinSnapshotsToKeep
			}
			return staged{updates: []table.Update{table.NewSetSnapshotRefUpdate(table.MainBranch, s.SnapshotID, table.BranchRef,
				age(main.MaxRefAgeMs), age(main.MaxSnapshotAgeMs), keep)}}, nil
		}
		if to.Snapshot != 0 {
			return staged{}, noVersion("Snapshot %d of table %s is no ancestor of the present one; `%s$history` lists those that are", to.Snapshot, name, name.Name)
		}
		return staged{}, noVersion("Table %s had no snapshot at that time, or it has expired; `%s$history` lists when each became current", name, name.Name)
	})
}

func parent(meta table.Metadata, s *table.Snapshot) *table.Snapshot {
	if s.ParentSnapshotID == nil {
		return nil
	}
	return meta.SnapshotByID(*s.ParentSnapshotID)
}
