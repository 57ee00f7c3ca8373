package write

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"sqe/catalog"
	"sqe/fault"
)

func TestOverwrite(t *testing.T) {
	for _, version := range []string{"1", "2", "3"} {
		t.Run("v"+version, func(t *testing.T) {
			l := newLake(t)
			l.create("t", creation{schema: simple(), version: version, partition: byN, props: modesOf("merge-on-read")})
			l.append("t", objects(0, 20))
			l.change("t", DeleteCommand, edit{op: Delete, id: 0}, edit{op: Delete, id: 8})
			tb := l.load("t")
			// Only the partitions 0 (ids 7, 14) and 1 (ids 1, 15) are replaced: 0 and 8 are gone.
			res, err := Overwrite(ctx, tb, Partitions, l.rows(tb, `[{"id":100,"name":"x","n":0},{"id":101,"name":"y","n":1},{"id":102,"name":"z","n":null}]`), l.options())
			l.must(err)
			if res.Inserted != 3 || res.Deleted != 4 {
				t.Errorf("%+v", res)
			}
			var want []string
			for i := range 20 {
				if i%7 > 1 {
					want = append(want, rowsText(i, i+1)...)
				}
			}
			l.want(l.read("t"), append(want, "100|x|0", "101|y|1", "102|z|(null)")...)
			// Nothing replaces nothing.
			tb = l.load("t")
			res, err = Overwrite(ctx, tb, Partitions, l.rows(tb), l.options())
			l.must(err)
			if res.Table.SnapshotID != tb.SnapshotID || len(l.read("t")) != len(want)+3 {
				t.Error("an overwrite without rows has changed the table")
			}
			// The whole table, from a table that lost rows.
			res, err = Overwrite(ctx, tb, All, l.rows(tb, `[{"id":1,"name":"a","n":5}]`), l.options())
			l.must(err)
			if res.Deleted != int64(len(want)+3) {
				t.Errorf("%+v", res)
			}
			l.want(l.read("t"), "1|a|5")
			_, err = Overwrite(ctx, l.load("t"), All, nil, l.options())
			l.must(err)
			l.want(l.read("t"))
			_, err = Overwrite(ctx, l.load("t"), All, nil, l.options())
			l.must(err)
			l.append("t", objects(0, 2))
			l.want(l.read("t"), rowsText(0, 2)...)
		})
	}
}

func TestOverwriteConflict(t *testing.T) {
	for _, what := range []What{All, Partitions} {
		for _, other := range []int{0, 5} {
			l := newLake(t)
			l.create("t", creation{schema: simple(), version: "2", partition: byN})
			l.append("t", objects(0, 7))
			tb := l.load("t")
			rows := l.rows(tb, `[{"id":100,"name":"x","n":0}]`)
			l.append("t", fmt.Sprintf(`[{"id":50,"name":"other","n":%d}]`, other))
			before := l.files("t")
			_, err := Overwrite(ctx, tb, what, rows, l.options())
			if refused := what == All || other == 0; refused {
				if !fault.Is(err, fault.Conflict) {
					t.Errorf("%d %d: %v", what, other, err)
				}
				l.want(l.files("t"), before...)
			} else {
				l.must(err)
				l.want(l.read("t"), append(rowsText(1, 7), "100|x|0", "50|other|5")...)
			}
		}
	}
}

func TestOverwriteAfterRepartitioning(t *testing.T) {
	l := newLake(t)
	l.create("t", creation{schema: simple(), version: "2", partition: byN})
	l.append("t", objects(0, 7))
	l.respec("t", func(u *table.UpdateSpec) *table.UpdateSpec {
		return u.RemoveField("n").AddField("id", iceberg.BucketTransform{NumBuckets: 2}, "b")
	})
	tb := l.load("t")
	if _, err := Overwrite(ctx, tb, Partitions, l.rows(tb, objects(0, 3)), l.options()); !fault.Is(err, fault.Unsupported) {
		t.Fatalf("%v", err)
	}
	_, err := RewriteDataFiles(ctx, tb, RewriteOptions{}, l.options())
	l.must(err)
	l.want(l.read("t"), rowsText(0, 7)...)
	tb = l.load("t")
	_, err = Overwrite(ctx, tb, Partitions, l.rows(tb, objects(0, 3)), l.options())
	l.must(err)
}

// TestRewrite: rows and their ids stay, files become few, deletes are applied.
func TestRewrite(t *testing.T) {
	for _, version := range []string{"1", "2", "3"} {
		t.Run("v"+version, func(t *testing.T) {
			l := newLake(t)
			l.create("t", creation{schema: simple(), version: version, partition: byN, props: modesOf("merge-on-read")})
			m := &model{lake: l, rows: map[int64]edit{}, ids: map[int64]int64{}, v3: version == "3"}
			for i := range 4 {
				l.append("t", objects(i*20, i*20+20))
				for k := i * 20; k < i*20+20; k++ {
					m.rows[int64(k)] = edit{name: fmt.Sprintf("n%d", k), n: int32(k % 7)}
				}
			}
			l.change("t", UpdateCommand, edit{op: Update, id: 5, to: 5, name: "five", n: 6}, edit{op: Update, id: 33, to: 33, name: "x", n: 0})
			m.rows[5], m.rows[33] = edit{name: "five", n: 6}, edit{name: "x", n: 0}
			l.change("t", DeleteCommand, edit{op: Delete, id: 6})
			delete(m.rows, 6)
			m.check(0)
			var done int64
			o := l.options()
			o.Progress = func(rows int64) { done = rows }
			res, err := RewriteDataFiles(ctx, l.load("t"), RewriteOptions{}, o)
			l.must(err)
			if len(l.dataFiles("t")) != 7 || res.Files != 7 || done != 79 {
				t.Errorf("%d files, %d rows told, %+v", len(l.dataFiles("t")), done, res)
			}
			m.check(1)
			tasks, err := l.planner.Tasks(ctx, l.load("t"))
			l.must(err)
			for _, tk := range tasks {
				if len(deletesOf(tk)) > 0 {
					t.Errorf("deletes are left: %v", deletesOf(tk))
				}
			}
			if s := l.load("t").Handle.(*catalog.Handle).Snapshot; s.Summary.Operation != table.OpReplace {
				t.Errorf("operation %s", s.Summary.Operation)
			}
			again, err := RewriteDataFiles(ctx, l.load("t"), RewriteOptions{}, o)
			l.must(err)
			if again.Files != 0 || again.RemovedFiles != 0 {
				t.Errorf("a second time: %+v", again)
			}
		})
	}
}

func TestExpire(t *testing.T) {
	l := newLake(t)
	l.create("t", creation{schema: simple(), version: "2", props: modesOf("copy-on-write")})
	l.append("t", objects(0, 10))
	first := l.load("t").SnapshotID
	l.append("t", objects(10, 20))
	l.change("t", DeleteCommand, edit{op: Delete, id: 3})
	l.change("t", DeleteCommand, edit{op: Delete, id: 13})
	before := l.files("t")
	// A tag keeps the first snapshot and its file.
	ch, err := catalog.Changing(l.catalog)
	l.must(err)
	_, err = ch.SetRef(ctx, l.load("t").Name, catalog.Ref{Name: "v1", Snapshot: first}, 0)
	l.must(err)
	time.Sleep(5 * time.Millisecond)
	var told int
	res, err := ExpireSnapshots(ctx, l.load("t"), ExpireOptions{OlderThan: time.Millisecond, RetainLast: 1, Progress: func(done, _ int) { told = done }}, l.options())
	l.must(err)
	if res.Snapshots != 2 || res.Files == 0 || told != res.Files || len(res.Left) > 0 {
		t.Errorf("%+v, told %d", res, told)
	}
	if after := l.files("t"); len(after) != len(before)-res.Files {
		t.Errorf("%d files of %d, %d deleted", len(after), len(before), res.Files)
	}
	l.want(l.read("t"), append(append(rowsText(0, 3), rowsText(4, 13)...), rowsText(14, 20)...)...)
	old, err := l.catalog.Iceberg().LoadTable(ctx, table.Identifier{"ns", "t"})
	l.must(err)
	data, err := old.Scan(table.WithSnapshotID(first)).ToArrowTable(ctx)
	l.must(err)
	if data.NumRows() != 10 {
		t.Errorf("the tagged snapshot has %d rows", data.NumRows())
	}
	// Every file that is left is needed: nothing is an orphan.
	l.age("t", 48*time.Hour)
	orphans, err := RemoveOrphans(ctx, l.load("t"), OrphanOptions{OlderThan: 24 * time.Hour}, l.options())
	l.must(err)
	if orphans.Files != 0 {
		t.Errorf("%d orphans", orphans.Files)
	}
}

// age makes every file of a table older.
func (l *lake) age(name string, by time.Duration) {
	l.Helper()
	root := strings.TrimPrefix(l.load(name).Handle.(*catalog.Handle).Table.Location(), "file://")
	l.must(filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.Chtimes(p, time.Now().Add(-by), time.Now().Add(-by))
	}))
}

// TestOrphans: only old files that nothing names are removed, and none of a table
// within the table's folder.
func TestOrphans(t *testing.T) {
	l := newLake(t)
	l.create("t", creation{schema: simple(), version: "3", props: modesOf("merge-on-read")})
	l.append("t", objects(0, 10))
	l.change("t", DeleteCommand, edit{op: Delete, id: 3})
	root := strings.TrimPrefix(l.load("t").Handle.(*catalog.Handle).Table.Location(), "file://")
	put := func(name string) string {
		p := filepath.Join(root, name)
		l.must(os.MkdirAll(filepath.Dir(p), 0o755))
		l.must(os.WriteFile(p, []byte("x"), 0o600))
		return p
	}
	old := []string{put("data/00000-lost.parquet"), put("data/n=1/lost.parquet"), put("metadata/snap-lost.avro"), put("data/00000-lost.puffin")}
	inner := []string{put("inner/metadata/00000-a.metadata.json"), put("inner/data/a.parquet"), put("metadata/version-hint.text")}
	l.age("t", 48*time.Hour)
	young := put("data/00000-young.parquet")
	if _, err := RemoveOrphans(ctx, l.load("t"), OrphanOptions{OlderThan: time.Minute}, l.options()); !fault.Is(err, fault.BadStatement) {
		t.Errorf("a bound of a minute: %v", err)
	}
	res, err := RemoveOrphans(ctx, l.load("t"), OrphanOptions{OlderThan: 24 * time.Hour}, l.options())
	l.must(err)
	if res.Files != len(old) {
		t.Errorf("%+v", res)
	}
	for _, p := range old {
		if _, err := os.Stat(p); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there", filepath.Base(p))
		}
	}
	for _, p := range append(inner, young) {
		if _, err := os.Stat(p); err != nil {
			t.Errorf("%s is gone", filepath.Base(p))
		}
	}
	l.want(l.read("t"), append(rowsText(0, 3), rowsText(4, 10)...)...)
}
