package duck

import (
	"os"
	"path/filepath"
	"testing"

	"sqe/engine/scan"
	"sqe/plan"
)

// TestVirtualColumns: the file and the number of a row are those of the table's
// metadata, whatever the path looks like and whatever is filtered.
func TestVirtualColumns(t *testing.T) {
	dir := t.TempDir()
	in := open(t, Config{Roots: []string{dir}})
	odd := filepath.Join(dir, "k=a*[b] 100%")
	if err := os.Mkdir(odd, 0o755); err != nil {
		t.Fatal(err)
	}
	c := column{"n", plan.Int64, `[10, 11, 12]`}
	b := batch(t, c)
	s := scanOf(1, c)
	s.Cols = append(s.Cols,
		plan.ScanColumn{Column: plan.Column{ID: 50, Name: "_file", Type: plan.String}, FieldID: plan.FileField},
		plan.ScanColumn{Column: plan.Column{ID: 51, Name: "_pos", Type: plan.Int64}, FieldID: plan.PositionField})
	file := func(path, location string) scan.File {
		f := fileOf(path, c)
		f.Location = location
		f.Columns = append(f.Columns, scan.FileColumn{Type: plan.String, Virtual: plan.FileField}, scan.FileColumn{Type: plan.Int64, Virtual: plan.PositionField})
		return f
	}
	one, two := writeFile(t, dir, "one.parquet", b), writeFile(t, dir, "two.parquet", b)
	three := writeFile(t, odd, "it's.parquet", b)
	files := []scan.File{file(one, "file://"+one), file(two, "file://"+two), file(three, "file:///odd%20one"), file(one, one)}
	kept := &plan.Filter{Input: s, Cond: call("gt", ref(s, 0), lit(int64(10)))}
	want(t, in, &plan.Sort{Input: kept, Keys: []plan.SortKey{asc(ref(s, 1)), asc(ref(s, 2))}}, fixed(&scan.Input{Files: files}),
		"11|"+one+"|1", "12|"+one+"|2",
		"11|file:///odd%20one|1", "12|file:///odd%20one|2",
		"11|file://"+one+"|1", "12|file://"+one+"|2",
		"11|file://"+two+"|1", "12|file://"+two+"|2",
	)
}
