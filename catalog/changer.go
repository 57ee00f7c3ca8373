package catalog

import (
	"context"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go/table"

	"sqe/fault"
	"sqe/plan"
)

// Changer is a catalog whose namespaces, tables and views can be changed. A
// Catalog that can be changed implements it; Changing finds out.
//
// Nothing here asks who may do what: the caller has. What a user may not reach by
// any right is refused here all the same: the properties that hold tags, and
// places outside the warehouse.
//
// A name that is taken is fault.Exists, one that is not there fault.NotFound (a
// namespace: fault.NoDatabase), a definition that makes no sense
// fault.BadStatement. A table that other writers do not leave alone is
// fault.Conflict; then nothing was changed.
type Changer interface {
	// CreateNamespace creates a namespace; one that exists is fault.Exists, or left
	// alone with ifNotExists.
	CreateNamespace(ctx context.Context, namespace []string, props map[string]string, ifNotExists bool) error
	// DropNamespace drops a namespace that holds nothing. One that holds a table, a
	// view or another namespace is fault.BadStatement.
	DropNamespace(ctx context.Context, namespace []string, ifExists bool) error
	NamespaceProperties(ctx context.Context, namespace []string) (map[string]string, error)
	// UpdateNamespace sets and removes properties of a namespace in one transaction.
	UpdateNamespace(ctx context.Context, namespace []string, set map[string]string, remove []string) error

	// CreateTable creates a table. It reports whether it did: with Keep it may have
	// found one, which it returns.
	CreateTable(ctx context.Context, name plan.TableName, d TableDefinition, o CreateOptions) (t *plan.Table, created bool, err error)
	// DropTable takes a table out of the catalog and, with purge, deletes its files
	// afterwards.
	DropTable(ctx context.Context, name plan.TableName, purge bool) (Purged, error)
	// RenameTable gives a table another name in the same catalog. Files stay where
	// they are.
	RenameTable(ctx context.Context, from, to plan.TableName) error
	// AlterTable makes all changes, one after the other, in one commit.
	AlterTable(ctx context.Context, name plan.TableName, changes []Change) (*plan.Table, error)

	// CreateView stores a view; one that exists is fault.Exists unless o says
	// otherwise. It reports whether it stored one.
	CreateView(ctx context.Context, name plan.TableName, d ViewDefinition, o ViewOptions) (created bool, err error)
	// DropView drops a view. With ifExists one that is not there is no error.
	DropView(ctx context.Context, name plan.TableName, ifExists bool) error
	RenameView(ctx context.Context, from, to plan.TableName) error

	// SetRef creates or replaces a branch or tag.
	SetRef(ctx context.Context, name plan.TableName, r Ref, mode RefMode) (*plan.Table, error)
	// DropRef drops a branch or tag, but never the branch main.
	DropRef(ctx context.Context, name plan.TableName, ref string, branch, ifExists bool) (*plan.Table, error)
	// Rollback makes an earlier snapshot of the branch main the present one: the one
	// of an id, or the last one at or before a time. Only an ancestor of the present
	// snapshot will do.
	Rollback(ctx context.Context, name plan.TableName, to plan.AsOf) (*plan.Table, error)
	// SetCurrent makes any snapshot that the table has, by id, branch or tag, the
	// present one of the branch main.
	SetCurrent(ctx context.Context, name plan.TableName, to plan.AsOf) (*plan.Table, error)

	// Commit changes a table through a transaction on the branch main.
	//
	// change is given the table as it is now and a transaction on it, and is called
	// again on the new state whenever another writer was faster: what it prepared
	// before (data files) may be used again only if it still holds for the table
	// that it is given. Two calls for one table never run at once in this process,
	// so change should be quick, and must not change the same table in another way. It
	// must not commit the transaction itself. Nothing
	// staged is no commit. Hooks that updates ask for after the commit are not run:
	// expire snapshots with table.WithPostCommit(false).
	//
	// When change fails, or the commit does, the manifests of the snapshots that were
	// staged are deleted; data and delete files belong to who wrote them. They must
	// stay when ErrUnknown is in the chain of the error.
	Commit(ctx context.Context, name plan.TableName, change TableChange) (*plan.Table, error)
	// CommitBranch is Commit on a branch, which must exist. change is given the table
	// as it is on the branch; what is returned is the table on the branch main.
	CommitBranch(ctx context.Context, name plan.TableName, branch string, change TableChange) (*plan.Table, error)
}

var _ Changer = (*SQL)(nil)

// Changing is c as a Changer; a catalog that cannot be changed is
// fault.Unsupported.
func Changing(c Catalog) (Changer, error) {
	if ch, ok := c.(Changer); ok {
		return ch, nil
	}
	return nil, fault.New(fault.Unsupported, "Catalog '%s' cannot be changed through SQE", c.Name())
}

// TableChange stages a change of t in tx.
type TableChange func(ctx context.Context, tx *table.Transaction, t *plan.Table) error

// TableDefinition is what a table is to be. DefinitionOf reads one from a table.
type TableDefinition struct {
	// Fields are the columns. The catalog assigns their ids; those given are ignored.
	// Children say what is inside a struct, list or map; without them the Arrow type
	// does. Initial is ignored: no row is older than the table.
	Fields []plan.Field
	// Identifiers are the paths of the columns that identify a row, all of them
	// required; that they do is not enforced.
	Identifiers [][]string
	Partitions  []PartitionField
	Sort        []SortField
	Properties  map[string]string
	Comment     string
	// FormatVersion is 2 or 3; 0 is 2, or what the property format-version says.
	FormatVersion int
	// Tags are put on the columns of the new table; in addition to those that a
	// replaced table had. One that is Inherited stays so: it takes and does not give.
	Tags []TaggedPath
}

// TaggedPath says which tags a column is to have; no Path is the table itself.
type TaggedPath struct {
	Path []string
	Tags []plan.Tag
}

// PartitionField is one field of a partition spec.
type PartitionField struct {
	// Path is the column, or the way to a field inside structs.
	Path []string
	// Transform is "identity" (also ""), "bucket", "truncate", "year", "month", "day"
	// or "hour", whatever the case.
	Transform string
	// Arg is the number of buckets or the width.
	Arg int
	// Name is that of the partition field; "" is the usual one ("ts_day").
	Name string
}

// SortField is one field of a sort order.
type SortField struct {
	Path       []string
	Transform  string
	Arg        int
	Desc       bool
	NullsFirst bool
}

// IfTaken says what happens when the name of a new table is taken by a table.
type IfTaken uint8

// The zero value refuses.
const (
	Refuse IfTaken = iota
	Keep           // leave the table that exists as it is
	// Replace gives the table that exists the new definition and no rows. Its uuid,
	// its snapshots and its tags stay; every column is a new field with a fresh id,
	// so that no policy or tag by field id falls on it by accident. A column that
	// takes the name of a tagged one inherits the tags (TagSet).
	Replace
)

// CreateOptions say how to create a table.
type CreateOptions struct {
	IfTaken IfTaken
	// Fill, when not nil, writes rows into the table before it is visible: the table
	// appears with them or not at all. It may be called again, with another table of
	// other field ids, when the table to be replaced was changed meanwhile.
	Fill TableChange
}

// Purged says what became of the files of a dropped table.
type Purged struct {
	// Deleted files, and those that were Left because they lie outside the folder of
	// the table or the warehouse, or could not be deleted.
	Deleted, Left int
}

// ViewDefinition is what a view is to be.
type ViewDefinition struct {
	SQL string
	// Fields are the columns of the query; their ids are ignored.
	Fields []plan.Field
	// Namespace is where unqualified names in SQL are looked up; none is that of the
	// view.
	Namespace  []string
	Properties map[string]string
	Comment    string
}

// ViewOptions say what happens when the name of a view is taken by a view.
type ViewOptions struct{ IfTaken IfTaken }

// Ref is a branch or a tag.
type Ref struct {
	Name   string
	Branch bool
	// Snapshot is what it points to; 0 is the present snapshot.
	Snapshot int64
	// Retention: how long the ref lives, and for a branch how many snapshots and how
	// old ones it keeps. 0 is what the table says.
	MaxAge, MaxSnapshotAge time.Duration
	MinSnapshots           int
}

// RefMode says whether a ref is created or replaced.
type RefMode uint8

// The ways to set a ref.
const (
	CreateRef          RefMode = iota
	CreateRefIfMissing         // leave one that exists as it is
	ReplaceRef                 // it must exist
	CreateOrReplaceRef
)

// Position is the place of a column among its siblings; the zero value is the end
// for a new column and no move for another.
type Position struct {
	First         bool
	After, Before string
}

// Change is one change of a table.
type Change interface{ alter(*alteration) error }

// The changes of a schema. Path is the name of a column, and the way to a field
// inside one: names of fields of structs, "element" in a list, "key" and "value" in
// a map.
type (
	// AddColumn adds a column, or a field to a struct. The last part of Path is the
	// new name; Field.Name is ignored. Field.Default becomes the initial default as
	// well (format version 3); a required column must have one.
	AddColumn struct {
		Path        []string
		Field       plan.Field
		Position    Position
		IfNotExists bool
	}
	DropColumn struct {
		Path     []string
		IfExists bool
	}
	RenameColumn struct {
		Path []string
		To   string
	}
	// WidenColumn gives a column a type that holds all its values: int to long, float
	// to double, a decimal of more digits.
	WidenColumn struct {
		Path []string
		Type arrow.DataType
	}
	// DropRequired makes a required column optional. The other way is not possible:
	// nobody has looked at the rows.
	DropRequired  struct{ Path []string }
	CommentColumn struct {
		Path []string
		Doc  string
	}
	MoveColumn struct {
		Path     []string
		Position Position
	}
	// SetDefault sets the value of rows for which a writer names none; nil is NULL.
	SetDefault struct {
		Path  []string
		Value *plan.Literal
	}
	// SetIdentifiers replaces the columns that identify a row. Each must be required;
	// none is a table without.
	SetIdentifiers struct{ Paths [][]string }
	// DropIdentifiers takes columns from those that identify a row.
	DropIdentifiers struct{ Paths [][]string }
)

// The changes of the layout. Files that are there keep the one that they have.
type (
	AddPartition struct{ Field PartitionField }
	// DropPartition drops the partition field of a name or, without one, that of a
	// path and transform.
	DropPartition    struct{ Field PartitionField }
	ReplacePartition struct{ Old, New PartitionField }
	// SetSort replaces the sort order; none is unsorted.
	SetSort struct{ Fields []SortField }
)

// The changes of properties. Property names that are Reserved are refused.
type (
	SetProperties struct{ Properties map[string]string }
	// RemoveProperties ignores names that are not there.
	RemoveProperties struct{ Names []string }
	// CommentTable sets the comment of the table; "" removes it.
	CommentTable struct{ Comment string }
)
