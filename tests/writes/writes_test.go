//go:build e2e

package writes

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sqe/catalog"
	"sqe/engine/scan"
	"sqe/tests/lab"
	"sqe/tests/sqetest"
)

var ctx = context.Background()

// python is the interpreter that tests/install puts into its folder.
func python(t *testing.T) string {
	t.Helper()
	path := filepath.Join(sqetest.Cache(), "venv", "bin", "python")
	if _, err := os.Stat(path); err != nil {
		t.Fatal("the Python environment is missing: run tests/install spark")
	}
	return path
}

// lake is a catalog that a server writes and others read.
type lake struct {
	*testing.T
	dir    string
	client *sql.DB
	server *sqetest.Server
	tables map[string][][]string // what each is to hold: values as PyIceberg shows them
	// catalog and planner read what the client cannot see, such as row ids.
	catalog *catalog.SQL
	planner *scan.Planner
}

func newLake(t *testing.T) *lake {
	t.Helper()
	dir := t.TempDir()
	l := &lake{T: t, dir: dir, tables: map[string][][]string{}, planner: scan.New(scan.Options{})}
	policies := lab.PoliciesOf("ns")
	for _, at := range [][2]string{{"", ""}, {"*", ""}, {"*", "*"}} {
		policies.Allow("root", at[0], at[1], "catalog-content-manage")
	}
	l.must(policies.Write(filepath.Join(dir, "policies")))
	l.must(os.WriteFile(filepath.Join(dir, "mask.key"), []byte(lab.HashKey+"\n"), 0o600))
	var err error
	l.catalog, err = catalog.OpenSQLite(lab.Catalog, filepath.Join(dir, "catalog.db"), dir, catalog.SQLOptions{Create: true})
	l.must(err)
	t.Cleanup(func() { _ = l.catalog.Close() })
	config, port, err := sqetest.Config(dir, lab.Catalog, []string{"root"}, nil)
	l.must(err)
	l.server, err = sqetest.Serve(config, port)
	l.must(err)
	l.client = l.server.Open("root")
	t.Cleanup(func() {
		_ = l.client.Close()
		if err := l.server.Stop(); err != nil {
			t.Errorf("%v\n%s", err, l.server.Output())
		}
	})
	l.do("CREATE SCHEMA ns")
	return l
}

func (l *lake) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatalf("%v (%v)", err, errors.Unwrap(err))
	}
}

// do runs statements, and tells how many rows the last one changed.
func (l *lake) do(texts ...string) (changed int64) {
	l.Helper()
	limit, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	for _, text := range texts {
		res, err := l.client.ExecContext(limit, text)
		if err != nil {
			out := l.server.Output()
			l.Fatalf("%.1000s: %v\n%s", text, err, out[max(0, len(out)-2000):])
		}
		if changed, err = res.RowsAffected(); err != nil {
			l.Fatal(err)
		}
	}
	return changed
}

// numbers are the numbers of the only row of an answer.
func (l *lake) numbers(text string) []int {
	l.Helper()
	limit, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	a := sqetest.Ask(limit, l.client, text)
	if a.Err != nil || len(a.Rows) != 1 {
		l.Fatalf("%s: %v %v", text, a.Err, a.Rows)
	}
	out := make([]int, len(a.Rows[0]))
	for i, v := range a.Rows[0] {
		if _, err := fmt.Sscan(v, &out[i]); err != nil {
			l.Fatalf("%s: %v", text, a.Rows)
		}
	}
	return out
}

// script runs a script of this folder and decodes what it prints.
func (l *lake) script(out any, args ...string) {
	l.Helper()
	cmd := exec.Command(python(l.T), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	body, err := cmd.Output()
	if err != nil {
		text := stderr.String()
		l.Fatalf("%v\n%s", err, text[max(0, len(text)-4000):])
	}
	l.must(json.Unmarshal(body, out))
}

// names are those of the tables, with their schema.
func (l *lake) names() []string {
	var out []string
	for name := range l.tables {
		out = append(out, "ns."+name)
	}
	slices.Sort(out)
	return out
}

// equal compares the rows that another engine reads.
func equal(t *testing.T, engine, name string, got [][]*string, want [][]string) {
	t.Helper()
	var rows [][]string
	for _, r := range got {
		var row []string
		for _, v := range r {
			if v == nil {
				row = append(row, "NULL")
			} else {
				row = append(row, *v)
			}
		}
		rows = append(rows, row)
	}
	if len(want) == 0 || fmt.Sprint(rows) != fmt.Sprint(want) {
		for i := range max(len(rows), len(want)) {
			if i >= len(rows) || i >= len(want) || !slices.Equal(rows[i], want[i]) {
				t.Errorf("%s: %s reads %d rows, want %d; from row %d on\n%v\nwant\n%v", name, engine, len(rows), len(want), i, rows[i:min(i+3, len(rows))], want[min(i, len(want)):min(i+3, len(want))])
				return
			}
		}
		t.Errorf("%s: %d rows", name, len(rows))
	}
}

// TestPyIceberg: PyIceberg reads tables of every type and partition transform, after
// changes of both modes and after changes of the tables, and its filters find every
// row.
func TestPyIceberg(t *testing.T) {
	l := newLake(t)
	l.types()
	l.nested()
	l.deleted()
	l.lives("cm")
	l.sized()
	var got map[string]struct {
		Rows  [][]*string `json:"rows"`
		Lost  []string    `json:"lost"`
		Files []struct {
			Size, Rows      int64
			Ordered, Bounds bool
		} `json:"files"`
	}
	l.script(&got, append([]string{"pyiceberg_read.py", filepath.Join(l.dir, "catalog.db"), "lake", "ns.sized"}, l.names()...)...)
	for name, want := range l.tables {
		equal(t, "PyIceberg", name, got["ns."+name].Rows, want)
		if lost := got["ns."+name].Lost; len(lost) > 0 {
			t.Errorf("%s: filters do not find %v", name, lost)
		}
	}
	small, rows := 0, int64(0)
	files := got["ns.sized"].Files
	for _, f := range files {
		rows += f.Rows
		if f.Size < sizedTarget/2 {
			small++ // the last ones of those that wrote
		}
		if f.Size > sizedTarget*3/2 || !f.Ordered || !f.Bounds {
			t.Errorf("a file of %d bytes, in order: %t, with bounds: %t", f.Size, f.Ordered, f.Bounds)
		}
	}
	if rows != sizedRows || len(files) < 4 || small > 4 {
		t.Errorf("%d rows in %d files, %d of them small: %v", rows, len(files), small, files)
	}
	l.compare()
}

// TestSpark: Spark reads the same tables, sees the same row ids, and deletes go on from
// one engine to the other.
func TestSpark(t *testing.T) {
	l := newLake(t)
	l.types()
	l.nested()
	deletes := l.deleted()
	l.lives("m")
	delete(l.tables, "time_0") // a type that Spark does not have
	before := map[string]map[int64]int64{}
	for _, name := range deletes {
		before[name] = l.rowIDs(name)
	}
	var got map[string]struct {
		Rows   [][]*string `json:"rows"`
		RowIDs [][]int64   `json:"row_ids"`
	}
	l.script(&got, append([]string{"spark_read.py", l.dir, filepath.Join(sqetest.Cache(), "java"), "lake"}, l.names()...)...)
	for name, want := range l.tables {
		equal(t, "Spark", name, got["ns."+name].Rows, want)
	}
	for _, name := range deletes {
		want, ids := l.tables[name], got["ns."+name].RowIDs
		if strings.Contains(name, "_v3_") && len(ids) != len(want) {
			t.Errorf("%s: Spark gives %d row ids", name, len(ids))
		}
		for _, r := range ids {
			if id, ok := before[name][r[0]]; !ok || id != r[1] {
				t.Errorf("%s: row %d has the id %d for Spark and %d here", name, r[0], r[1], id)
			}
		}
		// Spark has deleted row 3; here goes another one of the same files.
		after := l.rowIDs(name)
		if _, ok := after[3]; ok || len(after) != len(want)-1 {
			t.Errorf("%s: %d rows after Spark's delete: %v", name, len(after), after)
		}
		if n := l.do("DELETE FROM ns." + name + " WHERE id = 8"); n != 1 {
			t.Errorf("%s: a DELETE of a row removed %d", name, n)
		}
		if left := l.rowIDs(name); len(left) != len(want)-2 {
			t.Errorf("%s: %v", name, left)
		}
	}
}
