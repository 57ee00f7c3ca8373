package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"sqe/catalog"
	"sqe/engine"
	"sqe/engine/scan"
	"sqe/engine/write"
	"sqe/fault"
	"sqe/identity"
	"sqe/plan"
	"sqe/policy"
)

// held is a catalog that calls a test before it commits a change.
type held struct {
	*catalog.SQL
	mu     sync.Mutex
	before func(context.Context)
	after  func() // called once, when a change is committed
}

func (h *held) Commit(ctx context.Context, name plan.TableName, change catalog.TableChange) (*plan.Table, error) {
	h.mu.Lock()
	f := h.before
	h.before = nil
	h.mu.Unlock()
	if f != nil {
		f(ctx)
	}
	t, err := h.SQL.Commit(ctx, name, change)
	h.mu.Lock()
	f2 := h.after
	h.after = nil
	h.mu.Unlock()
	if f2 != nil {
		f2()
	}
	return t, err
}

func (h *held) hold(f func(context.Context)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.before = f
}

type maintenance struct {
	*ddlFixture
	held *held
	ids  uint32
}

func openMaintenance(t *testing.T, change ...func(*engine.Options)) *maintenance {
	t.Helper()
	m := &maintenance{ddlFixture: &ddlFixture{t: t, gate: &gate{grants: map[string]bool{}}}, ids: 100}
	m.fixture = openWith(t, func(o *engine.Options) {
		o.Sources = []policy.Source{m.gate}
		m.catalog = o.Catalogs.Default().(*catalog.SQL)
		m.held = &held{SQL: m.catalog}
		registry, err := catalog.NewRegistry(m.held)
		if err != nil {
			t.Fatal(err)
		}
		o.Catalogs = registry
		for _, c := range change {
			c(o)
		}
	})
	m.root = m.open(identity.Principal{Name: "root", Admin: true})
	m.sue = m.open(identity.Principal{Name: "sue"})
	m.bob = m.open(identity.Principal{Name: "bob"})
	return m
}

func (m *maintenance) open(p identity.Principal) *engine.Session {
	m.t.Helper()
	m.ids++
	s, err := m.Open(p, engine.ConnInfo{ID: m.ids, RemoteAddr: "test", Database: "bank"})
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(s.Close)
	return s
}

// someRows are the rows of one batch.
type someRows struct{ batch arrow.RecordBatch }

func (r *someRows) Next() (arrow.RecordBatch, error) {
	if r.batch == nil {
		return nil, io.EOF
	}
	b := r.batch
	r.batch = nil
	return b, nil
}

func (r *someRows) Close() error { return nil }

// failing is a committer whose commit fails.
type failing struct{ err error }

func (f failing) Commit(context.Context, plan.TableName, catalog.TableChange) (*plan.Table, error) {
	return nil, f.err
}

// append adds rows (id, part) with the ids from..to-1, in one file for each part.
func (m *maintenance) append(table string, from, to int) {
	m.t.Helper()
	if err := m.appendTo(table, from, to, m.catalog); err != nil {
		m.t.Fatal(err)
	}
}

func (m *maintenance) appendTo(table string, from, to int, c write.Committer) error {
	m.t.Helper()
	var objects []string
	for i := from; i < to; i++ {
		objects = append(objects, fmt.Sprintf(`{"id":%d,"part":"p%d"}`, i, i%2))
	}
	rec := m.batch("["+strings.Join(objects, ",")+"]", arrow.Field{Name: "id", Type: plan.Int64, Nullable: true}, arrow.Field{Name: "part", Type: plan.String, Nullable: true})
	_, err := write.Append(context.Background(), m.table(table), &someRows{rec}, write.Options{Committer: c})
	return err
}

func (m *maintenance) batch(objects string, fields ...arrow.Field) arrow.RecordBatch {
	m.t.Helper()
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, arrow.NewSchema(fields, nil), strings.NewReader(objects))
	if err != nil {
		m.t.Fatal(err)
	}
	return rec
}

// delete ends the row of an id merge-on-read, as another session would.
func (m *maintenance) delete(table string, id int64) {
	m.t.Helper()
	ctx := context.Background()
	set := []catalog.Change{catalog.SetProperties{Properties: map[string]string{"write.delete.mode": "merge-on-read"}}}
	t, err := m.catalog.AlterTable(ctx, m.table(table).Name, set)
	if err != nil {
		m.t.Fatal(err)
	}
	planner := scan.New(scan.Options{})
	file, pos := m.place(planner, t, id)
	rec := m.batch(fmt.Sprintf(`[{"op":%d,"file":%q,"pos":%d}]`, write.Delete, file, pos),
		arrow.Field{Name: "op", Type: plan.Int8}, arrow.Field{Name: "file", Type: plan.String}, arrow.Field{Name: "pos", Type: plan.Int64})
	layout := write.Layout{Command: write.DeleteCommand, Op: 0, File: 1, Position: 2}
	if _, err := write.Change(ctx, t, &someRows{rec}, layout, write.Options{Committer: m.catalog, Planner: planner}); err != nil {
		m.t.Fatal(err)
	}
}

// place finds the file and position of a row.
func (m *maintenance) place(planner *scan.Planner, t *plan.Table, id int64) (file string, pos int64) {
	m.t.Helper()
	s := &plan.Scan{Table: t, Cols: []plan.ScanColumn{
		{Column: plan.Column{ID: 1, Name: "id", Type: plan.Int64, Nullable: true}, FieldID: t.Fields[0].ID},
		{Column: plan.Column{ID: 2, Name: "_file", Type: plan.String}, FieldID: plan.FileField},
		{Column: plan.Column{ID: 3, Name: "_pos", Type: plan.Int64}, FieldID: plan.PositionField},
	}}
	tasks, err := planner.Tasks(context.Background(), t)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, task := range tasks {
		r, err := planner.ReadTask(context.Background(), s, task)
		if err != nil {
			m.t.Fatal(err)
		}
		for {
			b, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				m.t.Fatal(err)
			}
			for i := range int(b.NumRows()) {
				if b.Column(0).(*array.Int64).Value(i) == id {
					file, pos = strings.Clone(b.Column(1).(*array.String).Value(i)), b.Column(2).(*array.Int64).Value(i)
				}
			}
			b.Release()
		}
		if err := r.Close(); err != nil {
			m.t.Fatal(err)
		}
	}
	if file == "" {
		m.t.Fatalf("there is no row %d", id)
	}
	return file, pos
}

// create makes a table with the given number of commits of ten rows.
func (m *maintenance) create(table, version string, commits int) {
	m.t.Helper()
	m.do(m.root, "CREATE TABLE "+table+" (id BIGINT, part TEXT) PARTITIONED BY (part) TBLPROPERTIES ('format-version' = '"+version+"')")
	for i := range commits {
		m.append(table, i*10, i*10+10)
	}
}

func (m *maintenance) folder(table string) string {
	return strings.TrimPrefix(m.table(table).Handle.(*catalog.Handle).Table.Location(), "file://")
}

// files are those in the folder of a table, without the metadata files.
func (m *maintenance) files(table string) []string {
	m.t.Helper()
	var out []string
	err := filepath.WalkDir(m.folder(table), func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasSuffix(p, ".metadata.json") {
			out = append(out, p)
		}
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return out
}

// age makes files older.
func (m *maintenance) age(files []string, by time.Duration) {
	m.t.Helper()
	for _, f := range files {
		if err := os.Chtimes(f, time.Now().Add(-by), time.Now().Add(-by)); err != nil {
			m.t.Fatal(err)
		}
	}
}

func (m *maintenance) rows(table string) string {
	m.t.Helper()
	out, err := query(m.root, "SELECT COUNT(*), COUNT(DISTINCT id), SUM(id) FROM "+table)
	if err != nil {
		m.t.Fatal(err)
	}
	return out
}

// result runs a statement and gives its rows under the names of their columns.
func (m *maintenance) result(s *engine.Session, text string) (string, error) {
	res, _, err := s.Query(context.Background(), text)
	if err != nil {
		return "", err
	}
	var names []string
	for _, c := range res.Columns {
		names = append(names, c.Name)
	}
	rows, err := print(res)
	return strings.Join(names, "|") + "\n" + rows, err
}

func (m *maintenance) want(text, want string) {
	m.t.Helper()
	got, err := m.result(m.root, text)
	if err != nil {
		m.t.Fatalf("%s: %v (%v)", text, err, errors.Unwrap(err))
	}
	if got != want {
		m.t.Errorf("%s:\n%s\nwant:\n%s", text, got, want)
	}
}

const expireColumns = "deleted_data_files_count|deleted_position_delete_files_count|deleted_equality_delete_files_count|" +
	"deleted_manifest_files_count|deleted_manifest_lists_count|deleted_statistics_files_count\n"

// TestMaintenance: what each procedure answers, on tables of both versions; the rows
// stay, and old snapshots are gone when they have expired.
func TestMaintenance(t *testing.T) {
	for _, version := range []string{"2", "3"} {
		t.Run("v"+version, func(t *testing.T) {
			m := openMaintenance(t)
			m.create("m", version, 3)
			first := m.table("m").SnapshotID
			before := m.rows("m")
			time.Sleep(2 * time.Millisecond)
			then := time.Now().UTC().Format("2006-01-02 15:04:05.999999")
			must(t, m.root, "SELECT COUNT(*) FROM m FOR TIMESTAMP AS OF '"+then+"'", "30")
			m.want("CALL system.rewrite_manifests('m')", "rewritten_manifests_count|added_manifests_count\n3|1")
			res, err := m.result(m.root, "CALL system.rewrite_data_files(table => 'bank.m')")
			if err != nil || !strings.HasPrefix(res, "rewritten_data_files_count|added_data_files_count|rewritten_bytes_count|removed_delete_files_count\n6|2|") || !strings.HasSuffix(res, "|0") {
				t.Fatalf("%s, %v", res, err)
			}
			m.want("CALL lake.system.rewrite_data_files('bank.m')", "rewritten_data_files_count|added_data_files_count|rewritten_bytes_count|removed_delete_files_count\n0|0|0|0")
			time.Sleep(3 * time.Millisecond)
			// Nothing is five days old.
			m.want("CALL system.expire_snapshots('m')", expireColumns+"0|0|0|0|0|0")
			m.do(m.root, fmt.Sprintf("ALTER TABLE m CREATE TAG kept AS OF VERSION %d", first))
			must(t, m.root, "SELECT SUM(id) FROM m FOR VERSION AS OF 'kept'", "435")
			m.want("CALL system.expire_snapshots(table => 'm', older_than => '2199-01-01 00:00:00', retain_last => 4)", expireColumns+"0|0|0|0|1|0")
			must(t, m.root, "SELECT SUM(id) FROM m FOR VERSION AS OF 'kept'", "435")
			m.do(m.root, "ALTER TABLE m DROP TAG kept")
			res, err = m.result(m.root, "CALL system.expire_snapshots(table => 'm', older_than => '2199-01-01 00:00:00')")
			if err != nil || !strings.HasPrefix(res, expireColumns+"6|0|0|") {
				t.Fatalf("%s, %v", res, err)
			}
			err = refused(t, m.root, fmt.Sprintf("SELECT COUNT(*) FROM m FOR VERSION AS OF %d", first), fault.BadStatement)
			if !strings.Contains(err.Error(), "expired") {
				t.Errorf("%v", err)
			}
			err = refused(t, m.root, "SELECT COUNT(*) FROM m FOR TIMESTAMP AS OF '"+then+"'", fault.BadStatement)
			if !strings.Contains(err.Error(), "snapshot") {
				t.Errorf("%v", err)
			}
			if after := m.rows("m"); after != before {
				t.Errorf("the rows were %s and are %s", before, after)
			}
			if e := m.journal.last(); e.Kind != "query" {
				t.Errorf("%+v", e)
			}
			// What is left is what is needed.
			m.want("CALL system.remove_orphan_files(table => 'm', older_than => '2199-01-01 00:00:00', dry_run => TRUE)", "orphan_file_location\n")
		})
	}
}
