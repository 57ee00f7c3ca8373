package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"sqe/catalog/rest"
	"sqe/fault"
	"sqe/plan"
)

// ServerPlanned reports whether the catalog demands to plan the scans of the table:
// its manifests must not be read.
func (h *Handle) ServerPlanned() bool { return h.planner != nil }

// PlanOnServer has the catalog plan a scan of the snapshot for the principal of the
// context. Nobody else may have the answer.
func (h *Handle) PlanOnServer(ctx context.Context) ([]table.FileScanTask, error) {
	return h.planner(ctx, h)
}

// planner plans scans of a table on the server.
func (c *REST) planner(name plan.TableName) func(context.Context, *Handle) ([]table.FileScanTask, error) {
	return func(ctx context.Context, h *Handle) ([]table.FileScanTask, error) {
		parts, err := c.client.Plan(ctx, name.Namespace, name.Name, h.Snapshot.SnapshotID)
		switch {
		case statusOf(err) == http.StatusForbidden:
			c.hides(ctx, err, name)
			return nil, fault.Wrap(fault.Denied, err, "The catalog plans the scans of table '%s' itself, and does not plan this one for you; ask an administrator", name)
		case err != nil:
			return nil, c.tableFault(ctx, err, name, true)
		}
		var out []table.FileScanTask
		for _, p := range parts {
			tasks, err := c.tasks(p, h)
			if err != nil {
				return nil, fault.Wrap(fault.Unsupported, err, "The catalog plans the scans of table '%s' in a way that SQE does not understand; the table is refused", name)
			}
			out = append(out, tasks...)
		}
		return out, nil
	}
}

// tasks reads one part of a plan. Its conditions are those of the row filter that the
// catalog demands in any case: no others were asked for.
func (c *REST) tasks(p rest.ScanTasks, h *Handle) ([]table.FileScanTask, error) {
	deletes := make([]iceberg.DataFile, len(p.Deletes))
	for i, d := range p.Deletes {
		if d.Content != "position-deletes" && d.Content != "equality-deletes" {
			return nil, errors.New("a delete file is none")
		}
		var err error
		if deletes[i], err = contentFile(d, h); err != nil {
			return nil, err
		}
	}
	out := make([]table.FileScanTask, 0, len(p.Files))
	for _, t := range p.Files {
		switch {
		case t.Data == nil || t.Data.Content != "data":
			return nil, errors.New("a data file is none")
		case t.Residue() && h.ReadRestrictions == nil:
			return nil, errors.New("the plan holds conditions that were not asked for")
		}
		f, err := contentFile(*t.Data, h)
		if err != nil {
			return nil, err
		}
		task := table.FileScanTask{File: f, Length: f.FileSizeBytes(), FirstRowID: t.Data.FirstRowID}
		for _, i := range t.Deletes {
			if i < 0 || i >= len(deletes) {
				return nil, errors.New("a task refers to a delete file that is not there")
			}
			switch d := deletes[i]; {
			case d.FileFormat() == iceberg.PuffinFile:
				task.DeletionVectorFiles = append(task.DeletionVectorFiles, d)
			case d.ContentType() == iceberg.EntryContentEqDeletes:
				task.EqualityDeleteFiles = append(task.EqualityDeleteFiles, d)
			default:
				task.DeleteFiles = append(task.DeleteFiles, d)
			}
		}
		out = append(out, task)
	}
	return out, nil
}

var contents = map[string]iceberg.ManifestEntryContent{
	"data": iceberg.EntryContentData, "position-deletes": iceberg.EntryContentPosDeletes, "equality-deletes": iceberg.EntryContentEqDeletes,
}

func contentFile(f rest.ContentFile, h *Handle) (iceberg.DataFile, error) {
	spec := h.Table.Metadata().PartitionSpecByID(f.SpecID)
	if spec == nil || f.KeyMetadata != nil || len(f.Partition) != spec.NumFields() {
		return nil, errors.New("a file is encrypted, or has a partition specification that the table does not have")
	}
	partition, err := identities(spec, f.Partition, h.Table.Metadata())
	if err != nil {
		return nil, err
	}
	b, err := iceberg.NewDataFileBuilder(*spec, contents[f.Content], f.Path, iceberg.FileFormat(strings.ToUpper(f.Format)), partition, nil, nil, f.Rows, f.Size)
	if err != nil {
		return nil, err
	}
	if len(f.EqualityIDs) > 0 {
		b = b.EqualityFieldIDs(f.EqualityIDs)
	}
	if f.FirstRowID != nil {
		b = b.FirstRowID(*f.FirstRowID)
	}
	if f.Referenced != nil {
		b = b.ReferencedDataFile(*f.Referenced)
	}
	if f.Offset != nil && f.Length != nil {
		b = b.ContentOffset(*f.Offset).ContentSizeInBytes(*f.Length)
	}
	return b.Build(), nil
}

// identities are the values of identity partitions, which files need not hold
// themselves. Others only help to leave out files, which the server has done.
func identities(spec *iceberg.PartitionSpec, values []json.RawMessage, meta table.Metadata) (map[int]any, error) {
	out := map[int]any{}
	for i, pf := range spec.Fields() {
		if _, ok := pf.Transform.(iceberg.IdentityTransform); !ok {
			continue
		}
		var t iceberg.Type
		for _, s := range meta.Schemas() {
			if f, ok := s.FindFieldByID(pf.SourceID()); ok {
				t = f.Type
			}
		}
		typ, ok := plan.Null, false
		if t != nil {
			typ, ok = Primitive(t)
		}
		d := json.NewDecoder(bytes.NewReader(values[i]))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil || !ok {
			return nil, errors.New("the partition of a file cannot be read")
		}
		if v == nil {
			out[pf.FieldID] = nil
			continue
		}
		if n, is := v.(json.Number); is {
			if v, ok = number(n, typ); !ok {
				return nil, errors.New("the partition of a file cannot be read")
			}
		}
		l, ok := defaultLiteral(v, typ)
		if !ok {
			return nil, errors.New("the partition of a file cannot be read")
		}
		out[pf.FieldID] = stored(l)
	}
	return out, nil
}

func number(n json.Number, t arrow.DataType) (any, bool) {
	if arrow.IsFloating(t.ID()) {
		f, err := n.Float64()
		return f, err == nil
	}
	i, err := n.Int64()
	return i, err == nil
}

// stored is a value as iceberg-go has it in a data file.
func stored(l *plan.Literal) any {
	switch v := l.Value.(type) {
	case arrow.Date32:
		return int32(v)
	case arrow.Time64:
		return int64(v)
	case arrow.Timestamp:
		return int64(v)
	case decimal128.Num:
		return iceberg.Decimal{Val: v, Scale: int(l.Typ.(*arrow.Decimal128Type).Scale)}
	}
	return l.Value
}
