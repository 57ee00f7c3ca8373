package catalog

import (
	"github.com/apache/arrow-go/v18/arrow"

	"sqe/plan"
)

// firstMetadataField is where the field ids of metadata tables start: beyond the
// ids of any table's own fields, so that a rule for a column never falls on them.
const firstMetadataField = 1_000_000_001

var textMap arrow.DataType = arrow.MapOf(plan.String, plan.String)

// metadataTables gives the columns of each metadata table: names and types as in
// the Iceberg reference implementation where it has them. The partition of a file
// is shown as text ("booked_at_year=54"), because its type differs from table to
// table.
var metadataTables = map[string][]plan.Field{
	"snapshots": {
		{Name: "committed_at", Type: plan.TimestampTZ, Required: true},
		{Name: "snapshot_id", Type: plan.Int64, Required: true},
		{Name: "parent_id", Type: plan.Int64},
		{Name: "operation", Type: plan.String},
		{Name: "summary", Type: textMap},
	},
	"history": {
		{Name: "made_current_at", Type: plan.TimestampTZ, Required: true},
		{Name: "snapshot_id", Type: plan.Int64, Required: true},
		{Name: "parent_id", Type: plan.Int64},
		{Name: "is_current_ancestor", Type: plan.Bool, Required: true},
	},
	"refs": {
		{Name: "name", Type: plan.String, Required: true},
		{Name: "type", Type: plan.String, Required: true},
		{Name: "snapshot_id", Type: plan.Int64, Required: true},
		{Name: "max_reference_age_in_ms", Type: plan.Int64},
		{Name: "min_snapshots_to_keep", Type: plan.Int32},
		{Name: "max_snapshot_age_in_ms", Type: plan.Int64},
	},
	"files": {
		{Name: "content", Type: plan.Int32, Required: true},
		{Name: "file_path", Type: plan.String, Required: true},
		{Name: "file_format", Type: plan.String, Required: true},
		{Name: "spec_id", Type: plan.Int32, Required: true},
		{Name: "partition", Type: plan.String},
		{Name: "record_count", Type: plan.Int64, Required: true},
		{Name: "file_size_in_bytes", Type: plan.Int64, Required: true},
		{Name: "null_value_counts", Type: textMap},
		{Name: "lower_bounds", Type: textMap},
		{Name: "upper_bounds", Type: textMap},
	},
	"manifests": {
		{Name: "content", Type: plan.Int32, Required: true},
		{Name: "path", Type: plan.String, Required: true},
		{Name: "length", Type: plan.Int64, Required: true},
		{Name: "partition_spec_id", Type: plan.Int32, Required: true},
		{Name: "added_snapshot_id", Type: plan.Int64, Required: true},
		{Name: "added_files_count", Type: plan.Int32, Required: true},
		{Name: "existing_files_count", Type: plan.Int32, Required: true},
		{Name: "deleted_files_count", Type: plan.Int32, Required: true},
	},
	"partitions": {
		{Name: "partition", Type: plan.String},
		{Name: "spec_id", Type: plan.Int32, Required: true},
		{Name: "record_count", Type: plan.Int64, Required: true},
		{Name: "file_count", Type: plan.Int32, Required: true},
		{Name: "total_data_file_size_in_bytes", Type: plan.Int64, Required: true},
		{Name: "delete_file_count", Type: plan.Int32, Required: true},
	},
}

func init() {
	for _, fields := range metadataTables {
		for i := range fields {
			fields[i].ID = firstMetadataField + i
			if fields[i].Type == textMap {
				id := firstMetadataField + 1000 + 2*i
				fields[i].Children = []plan.Field{
					{ID: id, Name: "key", Type: plan.String, Required: true},
					{ID: id + 1, Name: "value", Type: plan.String},
				}
			}
		}
	}
}

func metadataFields(kind string) ([]plan.Field, bool) {
	f, ok := metadataTables[kind]
	return f, ok
}
