package write

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// commit makes a change through iceberg-go, as another engine would.
func (l *lake) commit(name string, f func(*table.Transaction)) {
	l.Helper()
	t, err := l.catalog.Iceberg().LoadTable(ctx, table.Identifier{"ns", name})
	l.must(err)
	tx := t.NewTransaction()
	f(tx)
	_, err = tx.Commit(ctx)
	l.must(err)
}

func (l *lake) countByIceberg(name string) int {
	l.Helper()
	t, err := l.catalog.Iceberg().LoadTable(ctx, table.Identifier{"ns", name})
	l.must(err)
	data, err := t.Scan().ToArrowTable(ctx)
	l.must(err)
	return int(data.NumRows())
}

// TestUpgraded: rows that position deletes of version 2 ended stay so under the
// deletion vectors of version 3, which readers may take for all that is deleted.
func TestUpgraded(t *testing.T) {
	for _, mode := range []string{"copy-on-write", "merge-on-read"} {
		l := newLake(t)
		l.create("t", creation{schema: simple(), version: "2", props: modesOf("merge-on-read")})
		l.append("t", objects(0, 10))
		l.change("t", DeleteCommand, edit{op: Delete, id: 1}, edit{op: Delete, id: 2})
		l.commit("t", func(tx *table.Transaction) {
			l.must(tx.UpgradeFormatVersion(3))
			l.must(tx.SetProperties(modesOf(mode)))
		})
		l.change("t", MergeCommand, edit{op: Delete, id: 3}, edit{op: Update, id: 4, to: 4, name: "four", n: 4}, edit{op: Insert, to: 11, name: "n11", n: 4})
		want := append(append(rowsText(0, 1), rowsText(5, 10)...), "4|four|4", "11|n11|4")
		l.want(l.read("t"), want...)
		if n := l.countByIceberg("t"); n != len(want) {
			t.Errorf("%s: iceberg-go reads %d rows of %d", mode, n, len(want))
		}
		// Once more: a vector takes the place of the one before.
		l.change("t", DeleteCommand, edit{op: Delete, id: 5}, edit{op: Delete, id: 11})
		want = append(append(rowsText(0, 1), rowsText(6, 10)...), "4|four|4")
		l.want(l.read("t"), want...)
		_, err := RewriteDataFiles(ctx, l.load("t"), RewriteOptions{All: true}, l.options())
		l.must(err)
		l.want(l.read("t"), want...)
		if n := l.countByIceberg("t"); n != len(want) {
			t.Errorf("%s: iceberg-go reads %d rows of %d after a rewrite", mode, n, len(want))
		}
	}
}

// TestEqualityDeletes: rows that an equality delete of another engine ended are not
// there for a change, and do not come back by one.
func TestEqualityDeletes(t *testing.T) {
	for _, mode := range []string{"copy-on-write", "merge-on-read"} {
		l := newLake(t)
		l.create("t", creation{schema: simple(), version: "2", props: modesOf(mode)})
		l.append("t", objects(0, 20))
		l.commit("t", func(tx *table.Transaction) {
			schema, err := table.SchemaToArrowSchema(iceberg.NewSchema(0, col(3, "n", iceberg.PrimitiveTypes.Int32)), nil, true, false)
			l.must(err)
			rec := l.fromJSON(schema, `[{"n":3},{"n":5}]`)
			files, err := tx.WriteEqualityDeletes(ctx, []int{3}, func(yield func(arrow.RecordBatch, error) bool) { yield(rec, nil) })
			l.must(err)
			l.must(tx.NewRowDelta(nil).AddDeletes(files...).Commit(ctx))
		})
		var want []string
		for i := range 20 {
			if i%7 != 3 && i%7 != 5 {
				want = append(want, rowsText(i, i+1)...)
			}
		}
		l.want(l.read("t"), append([]string(nil), want...)...)
		// A new row with an ended value lives: it is younger than the delete.
		l.change("t", MergeCommand, edit{op: Delete, id: 0}, edit{op: Insert, to: 100, name: "young", n: 3})
		want = append(want[1:], "100|young|3")
		l.want(l.read("t"), append([]string(nil), want...)...)
		if n := l.countByIceberg("t"); n != len(want) {
			t.Errorf("%s: iceberg-go reads %d rows of %d", mode, n, len(want))
		}
		_, err := RewriteDataFiles(ctx, l.load("t"), RewriteOptions{}, l.options())
		l.must(err)
		l.want(l.read("t"), want...)
		if n := l.countByIceberg("t"); n != len(want) {
			t.Errorf("%s: iceberg-go reads %d rows of %d after a rewrite", mode, n, len(want))
		}
	}
}

// TestPercentSigns: a file of another writer, in whose location a percent sign is
// itself, is read, is no orphan, and is deleted when it expires.
func TestPercentSigns(t *testing.T) {
	l := newLake(t)
	l.create("t", creation{schema: simple(), version: "2"})
	l.append("t", objects(0, 5))
	own := l.dataFiles("t")[0]
	body, err := os.ReadFile(strings.TrimPrefix(own.FilePath(), "file://"))
	l.must(err)
	other := filepath.Dir(strings.TrimPrefix(own.FilePath(), "file://")) + "/city=a%2Fb/x.parquet"
	l.must(os.MkdirAll(filepath.Dir(other), 0o755))
	l.must(os.WriteFile(other, body, 0o600))
	l.commit("t", func(tx *table.Transaction) {
		b, err := iceberg.NewDataFileBuilder(*iceberg.UnpartitionedSpec, iceberg.EntryContentData, "file://"+other, iceberg.ParquetFile, nil, nil, nil, own.Count(), own.FileSizeBytes())
		l.must(err)
		l.must(tx.AddDataFiles(ctx, []iceberg.DataFile{b.Build()}, nil))
	})
	l.want(l.read("t"), append(rowsText(0, 5), rowsText(0, 5)...)...)
	l.age("t", 48*time.Hour)
	res, err := RemoveOrphans(ctx, l.load("t"), OrphanOptions{OlderThan: 24 * time.Hour}, l.options())
	l.must(err)
	if res.Files != 0 {
		t.Fatalf("%d orphans", res.Files)
	}
	l.want(l.read("t"), append(rowsText(0, 5), rowsText(0, 5)...)...)
	_, err = Overwrite(ctx, l.load("t"), All, nil, l.options())
	l.must(err)
	time.Sleep(5 * time.Millisecond)
	_, err = ExpireSnapshots(ctx, l.load("t"), ExpireOptions{OlderThan: time.Millisecond, RetainLast: 1}, l.options())
	l.must(err)
	if _, err := os.Stat(other); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}
