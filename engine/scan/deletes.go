package scan

import (
	"context"
	"errors"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// positionDeletePath is the field id of the column file_path in a position delete
// file. Source: Iceberg specification, "Reserved Field IDs".
const positionDeletePath = 2147483546

// mostPositions is up to how many positions a delete file is read while planning.
const mostPositions = 2_000_000

// attribute leaves out, from each task, the position delete files that hold no
// position of its data file. Planning knows only that a delete file lies in the
// same partition, so that one deleted row would make every file of it slow.
func attribute(ctx context.Context, tasks []table.FileScanTask) error {
	targets := map[string]map[string]bool{} // data files by delete file; nil: not known
	for i := range tasks {
		var keep []iceberg.DataFile
		for _, d := range tasks[i].DeleteFiles {
			in, ok := targets[d.FilePath()]
			if !ok {
				if err := ctx.Err(); err != nil {
					return err
				}
				var err error
				if in, err = deleteTargets(ctx, d); err != nil {
					return err
				}
				targets[d.FilePath()] = in
			}
			if in == nil || in[tasks[i].File.FilePath()] {
				keep = append(keep, d)
			}
		}
		tasks[i].DeleteFiles = keep
	}
	return nil
}

// deleteTargets reads which data files a position delete file is about; nil when
// it is not local, not Parquet or too large to look.
func deleteTargets(ctx context.Context, d iceberg.DataFile) (targets map[string]bool, err error) {
	path := localPath(d.FilePath())
	if path == "" || d.FileFormat() != iceberg.ParquetFile || d.Count() > mostPositions || d.ReferencedDataFile() != nil {
		return nil, nil
	}
	targets = map[string]bool{}
	err = guarded(func() error {
		r, err := file.OpenParquetFile(path, false)
		if err != nil {
			return err
		}
		defer func() { _ = r.Close() }()
		column := -1
		for i := range r.MetaData().Schema.NumColumns() {
			if r.MetaData().Schema.Column(i).SchemaNode().FieldID() == positionDeletePath {
				column = i
			}
		}
		if column < 0 {
			targets = nil // a file of an unusual writer: let the reader of deletes judge
			return nil
		}
		p, err := arrowReader(r, 64<<10)
		if err != nil {
			return err
		}
		batches, err := p.GetRecordReader(ctx, []int{column}, nil)
		if err != nil {
			return err
		}
		defer batches.Release()
		last := ""
		for batches.Next() {
			paths, ok := batches.RecordBatch().Column(0).(*array.String)
			if !ok {
				return errors.New("file_path of a position delete file is no string")
			}
			for i := range paths.Len() {
				// The rows are sorted by path.
				if s := paths.Value(i); s != last {
					s = strings.Clone(s) // the value lies in memory of the batch
					targets[s] = true
					last = s
				}
			}
		}
		return batches.Err()
	})
	return targets, err
}
