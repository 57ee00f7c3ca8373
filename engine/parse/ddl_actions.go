package parse

// AlterTable is ALTER TABLE table action, ... The actions happen in their order
// and as one change. No actions: the statement has no effect, the warnings say why.
type AlterTable struct {
	Table    TableRef
	IfExists bool
	Actions  []AlterAction
	// Warnings say what has no effect.
	Warnings []string
}

// AlterAction is one action of ALTER TABLE. The set of implementations is closed.
type AlterAction interface{ alterAction() }

// Position is where a column stands: First, or behind After, a column of the same
// struct; the zero value is where it is, or the end for a new one.
type Position struct {
	First bool
	After string
}

// AddColumn is ADD [COLUMN] [IF NOT EXISTS] path type ... [FIRST | AFTER column].
// Parent is the path of the struct that the column is added to; nil for the table.
type AddColumn struct {
	Parent []string
	ColumnDef
	IfNotExists bool
	Position    Position
}

// DropColumn is DROP [COLUMN] [IF EXISTS] path.
type DropColumn struct {
	Column   []string
	IfExists bool
}

// RenameColumn is RENAME COLUMN path TO name.
type RenameColumn struct {
	Column []string
	To     string
}

// ChangeColumn is ALTER, MODIFY or CHANGE COLUMN without a new name. What is nil
// stays as it is; MODIFY and CHANGE too change only what they name.
type ChangeColumn struct {
	Column   []string
	Type     *Type
	Required *bool
	Comment  *string
	// Default is a literal; nil with SetDefault takes the default away.
	Default    *Expr
	SetDefault bool
	Position   Position
}

// AddPartition is ADD PARTITION FIELD transform [AS name].
type AddPartition struct{ Field PartitionField }

// DropPartition is DROP PARTITION FIELD, with a transform or the name of a
// field. A bare name, which is Name and also an identity transform of the column,
// means the field of that name before the column's.
type DropPartition struct {
	Transform
	Name string
}

// ReplacePartition is REPLACE PARTITION FIELD old WITH new [AS name].
type ReplacePartition struct {
	Old DropPartition
	New PartitionField
}

// SetSortOrder is WRITE [LOCALLY] ORDERED BY fields, and WRITE UNORDERED, which has
// none. Local sorts each file by itself.
type SetSortOrder struct {
	Fields []SortField
	Local  bool
}

// SetProperties is SET TBLPROPERTIES (...).
type SetProperties struct{ Properties []Property }

// UnsetProperties is UNSET TBLPROPERTIES [IF EXISTS] (...).
type UnsetProperties struct {
	Keys     []string
	IfExists bool
}

// SetComment is COMMENT [=] 'text'.
type SetComment struct{ Comment string }

// SetIdentifier is SET IDENTIFIER FIELDS column, ... and ADD PRIMARY KEY (column,
// ...); without columns it is DROP PRIMARY KEY.
type SetIdentifier struct{ Columns [][]string }

// DropIdentifier is DROP IDENTIFIER FIELDS column, ...
type DropIdentifier struct{ Columns [][]string }

// RenameTo is RENAME [TO] table.
type RenameTo struct{ Table TableRef }

// CreateRef is CREATE [OR REPLACE] or REPLACE of a BRANCH or TAG [IF NOT EXISTS]
// name [AS OF VERSION snapshot] [RETAIN n unit] [WITH SNAPSHOT RETENTION ...].
type CreateRef struct {
	Tag  bool // else a branch
	Name string
	// Create and Replace: with both it may exist or not.
	Create, Replace bool
	IfNotExists     bool
	Snapshot        *int64 // nil: the current one
	// MaxRefAge, MinSnapshots and MaxSnapshotAge are 0 when they were not named; ages
	// are in milliseconds.
	MaxRefAge      int64
	MinSnapshots   int64
	MaxSnapshotAge int64
}

// DropRef is DROP {BRANCH | TAG} [IF EXISTS] name.
type DropRef struct {
	Tag      bool
	Name     string
	IfExists bool
}

func (*AlterTable) statement() {}

func (*AddColumn) alterAction()        {}
func (*DropColumn) alterAction()       {}
func (*RenameColumn) alterAction()     {}
func (*ChangeColumn) alterAction()     {}
func (*AddPartition) alterAction()     {}
func (*DropPartition) alterAction()    {}
func (*ReplacePartition) alterAction() {}
func (*SetSortOrder) alterAction()     {}
func (*SetProperties) alterAction()    {}
func (*UnsetProperties) alterAction()  {}
func (*SetComment) alterAction()       {}
func (*SetIdentifier) alterAction()    {}
func (*DropIdentifier) alterAction()   {}
func (*RenameTo) alterAction()         {}
func (*CreateRef) alterAction()        {}
func (*DropRef) alterAction()          {}
