package plan

import (
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
)

// TableName is the full name of a table or view. Parts hold no quoting; they
// compare byte by byte.
type TableName struct {
	Catalog   string
	Namespace []string // at least one level
	Name      string
}

// String joins the parts with dots, for messages; it is not an SQL identifier
// and not a key (use Key).
func (n TableName) String() string {
	return strings.Join(append(append([]string{n.Catalog}, n.Namespace...), n.Name), ".")
}

// Key is a string that differs for different names whatever bytes the parts hold.
func (n TableName) Key() string {
	return strings.Join(append(append([]string{n.Catalog}, n.Namespace...), n.Name), "\x1f")
}

// AsOf selects a snapshot in time travel. At most one member is set; the zero
// value is the present.
type AsOf struct {
	Snapshot int64     // snapshot id
	Ref      string    // branch or tag
	Time     time.Time // latest snapshot at or before
}

// IsZero reports whether a is the present.
func (a AsOf) IsZero() bool { return a.Snapshot == 0 && a.Ref == "" && a.Time.IsZero() }

// Field is a column, or a field inside a struct, list or map, of a table schema.
type Field struct {
	ID       int // Iceberg field id
	Name     string
	Type     arrow.DataType
	Required bool
	Doc      string
	// Initial is the value of rows that were written before the field was there, and
	// Default that of rows for which a writer names none; nil is NULL. They are the
	// initial and the write default of Iceberg v3. One without Typ is not read exactly:
	// what needs it must fail.
	Initial, Default *Literal
	// Children are the fields of a struct, the element of a list, or the key and
	// value of a map, in that order.
	Children []Field
}

// Table is one loaded table at one snapshot with the schema of that snapshot.
// It is immutable and shared between statements.
type Table struct {
	Name       TableName
	UUID       string
	SchemaID   int
	SnapshotID int64 // 0: the table has no snapshot
	// Version identifies the table metadata (its location); caches key on it.
	Version string
	Fields  []Field
	// Formerly holds the other names of the fields by id, at any depth: those in
	// every schema of the table but the one in Fields, newer ones included. A
	// policy that names an old name is not lost at a rename, and one that names
	// today's name holds for the field under its old name in time travel.
	Formerly map[int][]string
	// Present are the fields of the table as it is now, when Fields are those of
	// another schema; else nil. Texts of policies name columns as they are called now.
	Present []Field
	// Beneath holds, by id, the fields inside columns that have no Children here because
	// their type cannot be read: the id of the column that each is in.
	Beneath map[int]int
	// Identifiers are the ids of the columns that identify a row, as the table says:
	// nobody enforces that they do. Empty when one of them is inside another column.
	Identifiers []int
	// Tags by field id, and of the table itself under id 0.
	Tags       map[int][]Tag
	Properties map[string]string
	// Metadata is "" for the data of the table, else the kind of metadata table
	// ("snapshots", "history", "files", "manifests", "partitions", "refs").
	Metadata string
	// Handle belongs to the catalog that loaded the table and to engine/scan.
	Handle any
}

// Tag is a classification attached to a table or column.
type Tag struct {
	Name       string
	Attributes map[string]string
	// Earlier is the name under which the tag was put on the field, when that is
	// another one than the field bears now. For an Inherited tag it may be the
	// present name, which another field bore then.
	Earlier string
	// Inherited marks a tag that may belong to another field, one that bears or
	// bore the same name. It counts where it takes and not where it gives.
	Inherited bool
	// Carried marks an Inherited tag that came with values from another field.
	Carried bool
}

// Field returns the top-level field with that id.
func (t *Table) Field(id int) (Field, bool) {
	for _, f := range t.Fields {
		if f.ID == id {
			return f, true
		}
	}
	return Field{}, false
}

// FieldNamed returns the top-level field with that name; exact case wins, then a
// unique case-insensitive match.
func (t *Table) FieldNamed(name string) (Field, bool) {
	var found Field
	n := 0
	for _, f := range t.Fields {
		if f.Name == name {
			return f, true
		}
		if strings.EqualFold(f.Name, name) {
			found = f
			n++
		}
	}
	return found, n == 1
}
