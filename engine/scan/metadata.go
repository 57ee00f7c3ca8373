package scan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"sqe/catalog"
	"sqe/plan"
)

// metadataStream yields the rows of a metadata table (catalog lists their
// columns). Those of files, manifests and partitions are of the selected snapshot.
type metadataStream struct {
	handle *catalog.Handle
	table  *plan.Table
	cols   []plan.ScanColumn
}

// row is a row of a metadata table by column name; an absent column is NULL.
type row map[string]any

// metadataBatch is how many rows a batch of a metadata table has at most.
const metadataBatch = 1024

// Open implements Stream.
func (s *metadataStream) Open(ctx context.Context, columns []int) (Reader, error) {
	var rows []row
	err := guarded(func() error {
		var err error
		rows, err = s.rows(ctx)
		return err
	})
	if err != nil {
		return nil, broken(ctx, err, s.table)
	}
	return &rowReader{ctx: ctx, stream: s, columns: columns, rows: rows}, nil
}

func (s *metadataStream) rows(ctx context.Context) ([]row, error) {
	switch s.table.Metadata {
	case "snapshots":
		return s.snapshots(), nil
	case "history":
		return s.history(), nil
	case "refs":
		return s.refs(), nil
	case "manifests":
		return s.manifests(ctx)
	case "files":
		return s.files(ctx)
	case "partitions":
		return s.partitions(ctx)
	}
	return nil, fmt.Errorf("no metadata table %q", s.table.Metadata)
}

func millis(ms int64) arrow.Timestamp { return arrow.Timestamp(ms * 1000) }

func optional[T int | int64](v *T) any {
	if v == nil {
		return nil
	}
	return int64(*v)
}

func (s *metadataStream) snapshots() []row {
	var out []row
	for _, sn := range s.handle.Table.Metadata().Snapshots() {
		r := row{"committed_at": millis(sn.TimestampMs), "snapshot_id": sn.SnapshotID, "parent_id": optional(sn.ParentSnapshotID)}
		if sn.Summary != nil {
			r["operation"] = string(sn.Summary.Operation)
			r["summary"] = map[string]string(sn.Summary.Properties)
		}
		out = append(out, r)
	}
	return out
}

func (s *metadataStream) history() []row {
	meta := s.handle.Table.Metadata()
	ancestors := map[int64]bool{}
	for at := meta.CurrentSnapshot(); at != nil && !ancestors[at.SnapshotID]; {
		ancestors[at.SnapshotID] = true
		if at.ParentSnapshotID == nil {
			break
		}
		at = meta.SnapshotByID(*at.ParentSnapshotID)
	}
	var out []row
	for e := range meta.SnapshotLogs() {
		r := row{"made_current_at": millis(e.TimestampMs), "snapshot_id": e.SnapshotID, "is_current_ancestor": ancestors[e.SnapshotID]}
		if sn := meta.SnapshotByID(e.SnapshotID); sn != nil {
			r["parent_id"] = optional(sn.ParentSnapshotID)
		}
		out = append(out, r)
	}
	return out
}

func (s *metadataStream) refs() []row {
	var out []row
	for name, ref := range s.handle.Table.Metadata().Refs() {
		out = append(out, row{
			"name": name, "type": strings.ToUpper(string(ref.SnapshotRefType)), "snapshot_id": ref.SnapshotID,
			"max_reference_age_in_ms": optional(ref.MaxRefAgeMs), "min_snapshots_to_keep": optional(ref.MinSnapshotsToKeep),
			"max_snapshot_age_in_ms": optional(ref.MaxSnapshotAgeMs),
		})
	}
	slices.SortFunc(out, func(a, b row) int { return strings.Compare(a["name"].(string), b["name"].(string)) })
	return out
}

func (s *metadataStream) manifests(ctx context.Context) ([]row, error) {
	var out []row
	err := s.eachManifest(ctx, func(_ iter.Seq2[iceberg.ManifestEntry, error], m iceberg.ManifestFile) error {
		out = append(out, row{
			"content": int64(m.ManifestContent()), "path": m.FilePath(), "length": m.Length(),
			"partition_spec_id": int64(m.PartitionSpecID()), "added_snapshot_id": m.SnapshotID(),
			"added_files_count": int64(m.AddedDataFiles()), "existing_files_count": int64(m.ExistingDataFiles()),
			"deleted_files_count": int64(m.DeletedDataFiles()),
		})
		return nil
	})
	return out, err
}

func (s *metadataStream) eachManifest(ctx context.Context, visit func(entries iter.Seq2[iceberg.ManifestEntry, error], m iceberg.ManifestFile) error) error {
	if s.handle.Snapshot == nil {
		return nil
	}
	storage, err := s.handle.Table.FS(ctx)
	if err != nil {
		return err
	}
	list, err := s.handle.Snapshot.Manifests(storage)
	if err != nil {
		return err
	}
	for _, m := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := visit(m.Entries(storage, true), m); err != nil {
			return err
		}
	}
	return nil
}

func (s *metadataStream) eachFile(ctx context.Context, visit func(iceberg.DataFile) error) error {
	return s.eachManifest(ctx, func(entries iter.Seq2[iceberg.ManifestEntry, error], _ iceberg.ManifestFile) error {
		for e, err := range entries {
			if err != nil {
				return err
			}
			if err := visit(e.DataFile()); err != nil {
				return err
			}
		}
		return nil
	})
}

// partition is the partition of a file as text, nil for an unpartitioned one. It is
// without values of columns that the schema does not have: no policy of the table as it
// is read decides about them. whole: nothing was left out.
func (s *metadataStream) partition(d iceberg.DataFile) (text any, whole bool, err error) {
	spec := s.handle.Table.Metadata().PartitionSpecByID(int(d.SpecID()))
	if spec == nil {
		return nil, false, errors.New("a file with a partition specification that the table does not have")
	}
	if spec.IsUnpartitioned() {
		return nil, true, nil
	}
	schema := s.handle.Table.Schema()
	all := spec.PartitionToPath(table.GetPartitionRecord(d, spec.PartitionType(schema)), schema)
	// Names and values are escaped: there is a "/" between them only.
	parts := strings.Split(all, "/")
	if len(parts) != spec.NumFields() {
		return nil, false, errors.New("a partition that is not what its specification says")
	}
	var shown []string
	for i, f := range spec.Fields() {
		if !slices.ContainsFunc(f.SourceIDs, func(id int) bool { _, ok := s.handle.Schema.FindFieldByID(id); return !ok }) {
			shown = append(shown, parts[i])
		}
	}
	if len(shown) == 0 {
		return nil, false, nil
	}
	return strings.Join(shown, "/"), len(shown) == len(parts), nil
}

func (s *metadataStream) files(ctx context.Context) ([]row, error) {
	names := map[int]iceberg.NestedField{}
	for _, f := range s.handle.Schema.Fields() {
		names[f.ID] = f
	}
	limits := func(raw map[int][]byte) map[string]string {
		out := map[string]string{}
		for id, b := range raw {
			f, ok := names[id]
			if !ok {
				continue
			}
			if l, err := iceberg.LiteralFromBytes(f.Type, b); err == nil {
				out[f.Name] = l.String()
			}
		}
		return out
	}
	var out []row
	err := s.eachFile(ctx, func(d iceberg.DataFile) error {
		p, whole, err := s.partition(d)
		if err != nil {
			return err
		}
		file := d.FilePath()
		if !whole { // most writers put the partition into it
			file = path.Base(file)
		}
		nulls := map[string]string{}
		for id, n := range d.NullValueCounts() {
			if f, ok := names[id]; ok {
				nulls[f.Name] = fmt.Sprint(n)
			}
		}
		out = append(out, row{
			"content": int64(d.ContentType()), "file_path": file, "file_format": string(d.FileFormat()),
			"spec_id": int64(d.SpecID()), "partition": p, "record_count": d.Count(), "file_size_in_bytes": d.FileSizeBytes(),
			"null_value_counts": nulls, "lower_bounds": limits(d.LowerBoundValues()), "upper_bounds": limits(d.UpperBoundValues()),
		})
		return nil
	})
	return out, err
}

func (s *metadataStream) partitions(ctx context.Context) ([]row, error) {
	type key struct {
		spec      int32
		partition any
	}
	type sums struct{ rows, files, bytes, deletes int64 }
	all := map[key]*sums{}
	var order []key
	err := s.eachFile(ctx, func(d iceberg.DataFile) error {
		p, _, err := s.partition(d)
		if err != nil {
			return err
		}
		k := key{d.SpecID(), p}
		if all[k] == nil {
			all[k] = &sums{}
			order = append(order, k)
		}
		if d.ContentType() != iceberg.EntryContentData {
			all[k].deletes++
			return nil
		}
		all[k].rows += d.Count()
		all[k].files++
		all[k].bytes += d.FileSizeBytes()
		return nil
	})
	var out []row
	for _, k := range order {
		a := all[k]
		out = append(out, row{
			"partition": k.partition, "spec_id": int64(k.spec), "record_count": a.rows, "file_count": a.files,
			"total_data_file_size_in_bytes": a.bytes, "delete_file_count": a.deletes,
		})
	}
	return out, err
}

// rowReader is the Reader of rows in memory.
type rowReader struct {
	ctx     context.Context
	stream  *metadataStream
	columns []int
	rows    []row
}

// Next implements Reader.
func (r *rowReader) Next() (arrow.RecordBatch, error) {
	if err := r.ctx.Err(); err != nil {
		return nil, broken(r.ctx, err, r.stream.table)
	}
	if len(r.rows) == 0 {
		return nil, io.EOF
	}
	rows := r.rows[:min(metadataBatch, len(r.rows))]
	r.rows = r.rows[len(rows):]
	fields := make([]arrow.Field, len(r.columns))
	cols := make([]arrow.Array, 0, len(r.columns))
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	for i, at := range r.columns {
		c := r.stream.cols[at]
		field, ok := r.stream.table.Field(c.FieldID)
		if !ok {
			return nil, errors.New("scan of a field that the metadata table does not have")
		}
		fields[i] = arrow.Field{Name: c.Name, Type: c.Type, Nullable: true}
		col, err := columnOf(rows, field)
		if err != nil {
			return nil, err
		}
		cols = append(cols, col)
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, int64(len(rows))), nil
}

// Close implements Reader.
func (r *rowReader) Close() error {
	r.rows = nil
	return nil
}

// columnOf is one column of rows.
func columnOf(rows []row, f plan.Field) (arrow.Array, error) {
	b := array.NewBuilder(memory.DefaultAllocator, f.Type)
	defer b.Release()
	for _, r := range rows {
		switch v := r[f.Name].(type) {
		case nil:
			b.AppendNull()
		case map[string]string:
			m, ok := b.(*array.MapBuilder)
			if !ok {
				return nil, fmt.Errorf("column %s holds no map", f.Name)
			}
			m.Append(true)
			for _, k := range slices.Sorted(maps.Keys(v)) {
				if !appendValue(m.KeyBuilder(), k) || !appendValue(m.ItemBuilder(), v[k]) {
					return nil, fmt.Errorf("column %s holds no map of text", f.Name)
				}
			}
		default:
			if !appendValue(b, v) {
				return nil, fmt.Errorf("column %s does not hold a %T", f.Name, v)
			}
		}
	}
	return b.NewArray(), nil
}
