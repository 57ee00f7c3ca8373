package write

import (
	"context"
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

// TestRewriteEnds: a rewrite that is ended between two files, at any of them, leaves
// no file and changes nothing.
func TestRewriteEnds(t *testing.T) {
	l := newLake(t)
	l.create("t", creation{schema: simple(), version: "2"})
	for i := range 4 {
		l.append("t", objects(i*10, i*10+10))
	}
	before, version := l.files("t"), l.load("t").Version
	for end := range 5 {
		c, cancel := context.WithCancel(ctx)
		var told []int
		_, err := RewriteDataFiles(c, l.load("t"), RewriteOptions{Progress: func(done, of int) {
			if told = append(told, done); done == end {
				cancel()
			}
			if of != 4 {
				t.Errorf("%d of %d", done, of)
			}
		}}, l.options())
		cancel()
		if !fault.Is(err, fault.Cancelled) || told[len(told)-1] != end {
			t.Errorf("ended at %d: told %v, %v", end, told, err)
		}
		l.want(l.files("t"), before...)
		if now := l.load("t").Version; now != version {
			t.Errorf("ended at %d: the table was changed", end)
		}
	}
	res, err := RewriteDataFiles(ctx, l.load("t"), RewriteOptions{}, l.options())
	l.must(err)
	if res.RemovedFiles != 4 || res.Files != 1 || res.RemovedBytes < 1000 {
		t.Errorf("%+v", res)
	}
	l.want(l.read("t"), rowsText(0, 40)...)
}

// TestExpireEnds: what is left of an expiry that is ended while it deletes files is
// found as orphans, and the table reads as before.
func TestExpireEnds(t *testing.T) {
	l := newLake(t)
	l.create("t", creation{schema: simple(), version: "3", props: modesOf("merge-on-read")})
	l.append("t", objects(0, 10))
	l.change("t", DeleteCommand, edit{op: Delete, id: 3})
	l.append("t", objects(10, 20))
	_, err := RewriteDataFiles(ctx, l.load("t"), RewriteOptions{}, l.options())
	l.must(err)
	rows := l.read("t")
	time.Sleep(5 * time.Millisecond)
	c, cancel := context.WithCancel(ctx)
	defer cancel()
	total := 0
	res, err := ExpireSnapshots(c, l.load("t"), ExpireOptions{OlderThan: time.Millisecond, Progress: func(done, of int) {
		if total = of; done == 2 {
			cancel()
		}
	}}, l.options())
	if !fault.Is(err, fault.Cancelled) || res.Snapshots != 3 || res.Files != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	l.want(l.read("t"), rows...)
	l.age("t", 48*time.Hour)
	listed, err := RemoveOrphans(ctx, l.load("t"), OrphanOptions{DryRun: true}, l.options())
	l.must(err)
	if len(listed.Orphans) != total-2 || listed.Files != 0 {
		t.Errorf("%d orphans of %d", len(listed.Orphans), total)
	}
	done, of := 0, 0
	removed, err := RemoveOrphans(ctx, l.load("t"), OrphanOptions{OlderThan: 24 * time.Hour, Progress: func(d, o int) { done, of = d, o }}, l.options())
	l.must(err)
	l.want(removed.Orphans, listed.Orphans...)
	if done != removed.Files || of != done {
		t.Errorf("%d of %d told, %+v", done, of, removed)
	}
	l.want(l.read("t"), rows...)
}

// TestExpireCounts: files are counted by what they hold, those of statistics too.
func TestExpireCounts(t *testing.T) {
	for version, deletes := range map[string]int{"2": 2, "3": 2} {
		l := newLake(t)
		l.create("t", creation{schema: simple(), version: version, props: modesOf("merge-on-read")})
		l.append("t", objects(0, 10))
		first := l.load("t")
		path := first.Handle.(*catalog.Handle).Table.Location() + "/metadata/first.stats"
		l.must(os.WriteFile(strings.TrimPrefix(path, "file://"), []byte("x"), 0o600))
		_, _, err := l.catalog.Iceberg().CommitTable(ctx, table.Identifier{"ns", "t"}, nil, []table.Update{
			table.NewSetStatisticsUpdate(table.StatisticsFile{SnapshotID: first.SnapshotID, StatisticsPath: path, FileSizeInBytes: 1, FileFooterSizeInBytes: 1}),
		})
		l.must(err)
		l.change("t", DeleteCommand, edit{op: Delete, id: 3})
		l.change("t", DeleteCommand, edit{op: Delete, id: 4})
		before := l.files("t")
		res, err := RewriteDataFiles(ctx, l.load("t"), RewriteOptions{}, l.options())
		l.must(err)
		if res.RemovedFiles != 1 || res.RemovedDeleteFiles == 0 {
			t.Errorf("v%s: %+v", version, res)
		}
		time.Sleep(5 * time.Millisecond)
		e, err := ExpireSnapshots(ctx, l.load("t"), ExpireOptions{OlderThan: time.Millisecond}, l.options())
		l.must(err)
		d := e.Expired
		if sum := d.Data + d.PositionDeletes + d.EqualityDeletes + d.Manifests + d.ManifestLists + d.Statistics; sum != e.Files || e.Snapshots != 3 ||
			d.Data != 1 || d.PositionDeletes != deletes || d.Statistics != 1 || d.ManifestLists != 3 || d.Manifests == 0 {
			t.Errorf("v%s: %+v of %d files", version, e, len(before))
		}
		l.want(l.read("t"), append(rowsText(0, 3), rowsText(5, 10)...)...)
	}
}

// TestRewriteManifests: manifests become few, rows and their ids stay.
func TestRewriteManifests(t *testing.T) {
	for _, version := range []string{"2", "3"} {
		l := newLake(t)
		l.create("t", creation{schema: simple(), version: version, props: modesOf("merge-on-read")})
		m := &model{lake: l, rows: map[int64]edit{}, ids: map[int64]int64{}, v3: version == "3"}
		for i := range 3 {
			l.append("t", objects(i*10, i*10+10))
			for k := i * 10; k < i*10+10; k++ {
				m.rows[int64(k)] = edit{name: fmt.Sprintf("n%d", k), n: int32(k % 7)}
			}
		}
		l.change("t", DeleteCommand, edit{op: Delete, id: 6})
		delete(m.rows, 6)
		m.check(0)
		rewritten, added, err := RewriteManifests(ctx, l.load("t"), l.options())
		l.must(err)
		if rewritten != 3 || added != 1 {
			t.Errorf("v%s: %d manifests became %d", version, rewritten, added)
		}
		m.check(1)
		l.append("t", objects(30, 31))
		m.rows[30] = edit{name: "n30", n: 2}
		m.check(2)
		before, files := l.load("t").Version, l.files("t")
		rewritten, added, err = RewriteManifests(ctx, l.load("t"), Options{Committer: &committer{catalog: l.catalog, fail: errors.New("boom")}})
		if !fault.Is(err, fault.Unavailable) || l.load("t").Version != before {
			t.Errorf("v%s: %v, %d, %d", version, err, rewritten, added)
		}
		l.want(l.files("t"), files...)
		// The files of the manifests that were merged are still needed.
		time.Sleep(5 * time.Millisecond)
		e, err := ExpireSnapshots(ctx, l.load("t"), ExpireOptions{OlderThan: time.Millisecond}, l.options())
		l.must(err)
		if e.Snapshots != 5 || e.Expired.Data != 0 || e.Expired.PositionDeletes != 0 || e.Expired.Manifests != 3 || e.Expired.ManifestLists != 5 {
			t.Errorf("v%s: %+v", version, e)
		}
		m.check(3)
	}
}

// TestOrphansMeetWriters: an old file that another engine puts into the table while
// its folders are looked through is no orphan.
func TestOrphansMeetWriters(t *testing.T) {
	l := newLake(t)
	l.create("t", creation{schema: simple(), version: "2"})
	l.append("t", objects(0, 5))
	own := l.dataFiles("t")[0]
	body, err := os.ReadFile(strings.TrimPrefix(own.FilePath(), "file://"))
	l.must(err)
	folder := filepath.Dir(strings.TrimPrefix(own.FilePath(), "file://"))
	late, lost := folder+"/late.parquet", folder+"/lost.parquet"
	l.must(os.WriteFile(late, body, 0o600))
	l.must(os.WriteFile(lost, body, 0o600))
	l.age("t", 48*time.Hour)
	calls := 0
	o := Options{Committer: &committer{catalog: l.catalog, staged: func(int) {
		if calls++; calls != 1 {
			return
		}
		l.commit("t", func(tx *table.Transaction) {
			b, err := iceberg.NewDataFileBuilder(*iceberg.UnpartitionedSpec, iceberg.EntryContentData, "file://"+late, iceberg.ParquetFile, nil, nil, nil, own.Count(), own.FileSizeBytes())
			l.must(err)
			l.must(tx.AddDataFiles(ctx, []iceberg.DataFile{b.Build()}, nil))
		})
	}}}
	res, err := RemoveOrphans(ctx, l.load("t"), OrphanOptions{OlderThan: 24 * time.Hour}, o)
	l.must(err)
	l.want(res.Orphans, lost)
	l.want(l.read("t"), append(rowsText(0, 5), rowsText(0, 5)...)...)
}

// TestMaintainOthers: a table whose rows SQE cannot write can be maintained.
func TestMaintainOthers(t *testing.T) {
	l := newLake(t)
	l.create("t", creation{schema: simple(), version: "2"})
	l.append("t", objects(0, 5))
	l.append("t", objects(5, 10))
	l.commit("t", func(tx *table.Transaction) {
		l.must(tx.SetProperties(iceberg.Properties{"write.format.default": "orc"}))
	})
	tb := l.load("t")
	if _, err := Append(ctx, tb, l.rows(tb, objects(0, 1)), l.options()); !fault.Is(err, fault.Unsupported) {
		t.Errorf("%v", err)
	}
	if _, err := RewriteDataFiles(ctx, tb, RewriteOptions{}, l.options()); !fault.Is(err, fault.Unsupported) {
		t.Errorf("%v", err)
	}
	rewritten, _, err := RewriteManifests(ctx, tb, l.options())
	l.must(err)
	time.Sleep(5 * time.Millisecond)
	res, err := ExpireSnapshots(ctx, l.load("t"), ExpireOptions{OlderThan: time.Millisecond}, l.options())
	l.must(err)
	_, err = RemoveOrphans(ctx, l.load("t"), OrphanOptions{OlderThan: 24 * time.Hour}, l.options())
	l.must(err)
	if rewritten != 2 || res.Snapshots != 2 {
		t.Errorf("%d manifests, %+v", rewritten, res)
	}
	l.want(l.read("t"), rowsText(0, 10)...)
}
