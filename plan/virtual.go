package plan

// Field ids of columns that a Scan yields of where a row lies and not of what the
// table's schema holds. Source: Iceberg specification, "Reserved Field IDs".
const (
	// FileField is "_file": the location of the data file as the table's metadata
	// spells it. Its type is String and it is never NULL.
	FileField = 2147483646
	// PositionField is "_pos": the number of the row in its data file, from 0,
	// deleted rows counted. Its type is Int64 and it is never NULL.
	PositionField = 2147483645
	// RowIDField is "_row_id" and LastUpdatedField "_last_updated_sequence_number",
	// the row lineage of format version 3, both Int64; NULL where the table has none.
	// Only engine/scan's own readers yield them.
	RowIDField       = 2147483540
	LastUpdatedField = 2147483539
)

// IsVirtual reports whether a field id is that of a virtual column of scans.
func IsVirtual(field int) bool {
	switch field {
	case FileField, PositionField, RowIDField, LastUpdatedField:
		return true
	}
	return false
}
