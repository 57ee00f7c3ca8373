package catalog

import (
	"context"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"sqe/fault"
	"sqe/plan"
)

// identifiersOf finds the ids of the columns that identify a row. Source: Iceberg
// specification, "Identifier Field IDs": required, of a primitive type other than
// float and double, and inside required structs only.
func identifiersOf(columns []iceberg.NestedField, paths [][]string) ([]int, error) {
	var out []int
	for _, path := range paths {
		bad := func(why string) error {
			return fault.New(fault.BadStatement, "Column '%s' cannot identify a row: %s", strings.Join(path, "."), why)
		}
		in := columns
		for n, name := range path {
			i := indexOf(in, name)
			if i < 0 {
				return nil, noColumn(path)
			}
			f := in[i]
			if !f.Required {
				return nil, bad("it must be NOT NULL")
			}
			if n < len(path)-1 {
				s, ok := f.Type.(*iceberg.StructType)
				if !ok {
					return nil, bad("it is inside a list or a map")
				}
				in = s.FieldList
				continue
			}
			switch f.Type.(type) {
			case iceberg.Float32Type, iceberg.Float64Type:
				return nil, bad("floating-point numbers are not exact")
			case *iceberg.StructType, *iceberg.ListType, *iceberg.MapType:
				return nil, bad("it is a struct, a list or a map")
			}
			if !slices.Contains(out, f.ID) {
				out = append(out, f.ID)
			}
		}
	}
	return out, nil
}

func (ch SetIdentifiers) alter(a *alteration) (err error) {
	a.identifiers, err = identifiersOf(a.columns, ch.Paths)
	a.newColumns = true
	return err
}

func (ch DropIdentifiers) alter(a *alteration) error {
	gone, err := identifiersOf(a.columns, ch.Paths)
	if err != nil {
		return err
	}
	for _, id := range gone {
		if !slices.Contains(a.identifiers, id) {
			return fault.New(fault.BadStatement, "A column is not one of those that identify a row of table %s", a.name)
		}
	}
	a.identifiers = slices.DeleteFunc(slices.Clone(a.identifiers), func(id int) bool { return slices.Contains(gone, id) })
	a.newColumns = true
	return nil
}

// SetCurrent implements Changer.
func (c *common) SetCurrent(ctx context.Context, name plan.TableName, to plan.AsOf) (*plan.Table, error) {
	if to.Ref == "" && to.Snapshot == 0 {
		return nil, fault.New(fault.BadStatement, "The id of a snapshot, or the name of a branch or tag, is needed")
	}
	return c.change(ctx, name, func(_ context.Context, t *plan.Table) (staged, error) {
		meta := t.Handle.(*Handle).Table.Metadata()
		id := to.Snapshot
		if to.Ref != "" {
			ref := refOf(meta, to.Ref)
			if ref == nil {
				return staged{}, noRef(name, to.Ref)
			}
			id = ref.SnapshotID
		}
		if meta.SnapshotByID(id) == nil {
			return staged{}, noSnapshot(name, id)
		}
		if now := meta.CurrentSnapshot(); now != nil && now.SnapshotID == id {
			return staged{}, nil
		}
		var maxAge, maxSnapshotAge int64
		keep := 0
		if main := refOf(meta, table.MainBranch); main != nil {
			if main.MaxRefAgeMs != nil {
				maxAge = *main.MaxRefAgeMs
			}
			if main.MaxSnapshotAgeMs != nil {
				maxSnapshotAge = *main.MaxSnapshotAgeMs
			}
			if main.MinSnapshotsToKeep != nil {
				keep = *main.MinSnapshotsToKeep
			}
		}
		return staged{updates: []table.Update{table.NewSetSnapshotRefUpdate(table.MainBranch, id, table.BranchRef, maxAge, maxSnapshotAge, keep)}}, nil
	})
}
