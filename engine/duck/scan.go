package duck

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/engine/scan"
	"sqe/fault"
	"sqe/plan"
)

// scan reads the files and the stream of a scan. Columns of files are found by
// the names that engine/scan found for their field ids, never by position.
func (c *compiler) scan(n *plan.Scan) (*block, error) {
	if c.inputs == nil {
		return c.empty(n.Columns())
	}
	in, err := c.inputs(n)
	if err != nil {
		return nil, err
	}
	if c.rows == nil {
		c.rows = map[*plan.Scan]int64{}
	}
	c.rows[n] = in.Rows
	var parts []string
	for _, g := range layouts(in.Files) {
		s, err := filesText(n, g)
		if err != nil {
			return nil, err
		}
		parts = append(parts, s)
	}
	if in.Stream != nil {
		s := newSource(n, in)
		c.streams = append(c.streams, s)
		items := make([]string, 0, len(n.Cols)+1)
		seen := map[plan.ColumnID]bool{}
		for i, col := range n.Cols {
			if !seen[col.ID] {
				seen[col.ID] = true
				items = append(items, fmt.Sprintf("f%d AS %s", i, columnName(col.ID)))
			}
		}
		if len(items) == 0 {
			items = []string{"none"}
		}
		parts = append(parts, "SELECT "+strings.Join(items, ", ")+" FROM "+streamFunction+"("+quote(s.key)+")")
	}
	if len(parts) == 0 && !c.risks.any {
		return c.empty(n.Columns())
	}
	if len(parts) == 0 {
		// That no file has a row may follow from hidden ones. What DuckDB knows to be
		// empty takes other parts of the statement with it, and their errors.
		list, err := typedNulls(n.Columns())
		if err != nil {
			return nil, err
		}
		parts = append(parts, "SELECT "+list+" FROM range(0)")
	}
	return &block{from: "(" + strings.Join(parts, " UNION ALL ") + ") AS " + c.alias()}, nil
}

// layouts groups files whose columns have the same names, types and defaults.
func layouts(files []scan.File) [][]scan.File {
	var keys []string
	groups := map[string][]scan.File{}
	for _, f := range files {
		var k strings.Builder
		for _, col := range f.Columns {
			if col.Virtual == plan.FileField {
				prefix, ok := locationPrefix(f)
				if !ok {
					prefix = f.Location
				}
				fmt.Fprintf(&k, "l%t %q\x00", ok, prefix)
				continue
			}
			if col.Virtual != 0 {
				fmt.Fprintf(&k, "v%d\x00", col.Virtual)
				continue
			}
			if col.Name != "" {
				fmt.Fprintf(&k, "n%q %s\x00", col.Name, col.Type)
				continue
			}
			if col.Default == nil {
				k.WriteString("d\x00")
				continue
			}
			fmt.Fprintf(&k, "d%T %q %s\x00", col.Default.Value, fmt.Sprint(col.Default.Value), col.Default.Typ)
		}
		key := k.String()
		if _, ok := groups[key]; !ok {
			keys = append(keys, key)
		}
		groups[key] = append(groups[key], f)
	}
	out := make([][]scan.File, len(keys))
	for i, k := range keys {
		out[i] = groups[k]
	}
	return out
}

func filesText(n *plan.Scan, files []scan.File) (string, error) {
	paths := make([]string, len(files))
	for i, f := range files {
		p, err := exactPath(f.Path)
		if err != nil {
			return "", err
		}
		paths[i] = p
	}
	columns := files[0].Columns
	if len(columns) != len(n.Cols) {
		return "", internal("a file has %d columns for %d of the scan", len(columns), len(n.Cols))
	}
	if err := distinctNames(columns); err != nil {
		return "", err
	}
	items := make([]string, 0, len(columns)+1)
	seen := map[plan.ColumnID]bool{}
	var named, numbered bool
	for i, col := range columns {
		sc := n.Cols[i]
		if seen[sc.ID] {
			continue
		}
		seen[sc.ID] = true
		var s string
		var err error
		switch col.Virtual {
		case 0:
			s, err = fileColumn(col, sc.Type)
		case plan.FileField:
			named = true
			s = quote(files[0].Location)
			if prefix, ok := locationPrefix(files[0]); ok {
				s = "(" + quote(prefix) + " || filename)"
			}
		case plan.PositionField:
			numbered = true
			s = "file_row_number"
		default:
			err = internal("a file is to give the virtual column %d", col.Virtual)
		}
		if err != nil {
			return "", err
		}
		items = append(items, s+" AS "+columnName(sc.ID))
	}
	if len(items) == 0 {
		items = []string{"0 AS none"}
	}
	// Every option that reads a meaning out of a path is off.
	return fmt.Sprintf("SELECT %s FROM read_parquet([%s], hive_partitioning=false, union_by_name=false, filename=%t, file_row_number=%t, binary_as_string=false)",
		strings.Join(items, ", "), strings.Join(paths, ", "), named, numbered), nil
}

// locationPrefix is what stands before the path of a file in its location; false
// when DuckDB may name the file otherwise than it was told.
func locationPrefix(f scan.File) (string, bool) {
	if strings.ContainsAny(f.Path, "*?[") || filepath.Clean(f.Path) != f.Path {
		return "", false
	}
	return strings.CutSuffix(f.Location, f.Path)
}

func fileColumn(col scan.FileColumn, t arrow.DataType) (string, error) {
	if col.Name == "" {
		d := col.Default
		if d == nil {
			d = &plan.Literal{Typ: t}
		}
		s, err := literal(d)
		if err != nil {
			return "", err
		}
		if isNull(d.Typ) || d.Value == nil {
			lt, err := sqlType(t)
			if err != nil {
				return "", err
			}
			return cast("NULL", lt), nil
		}
		return converted(s, d.Typ, t)
	}
	if col.Nested {
		return "", internal("a file with nested columns to be mapped was given as a file")
	}
	name, err := quoteName(col.Name)
	if err != nil {
		return "", err
	}
	lt, err := sqlType(t)
	if err != nil {
		return "", err
	}
	if col.Type != nil && isBinary(col.Type) && plan.IsString(t) {
		return native("utf8_text", name), nil
	}
	if hasZonedNanos(t) {
		return "", fault.New(fault.Unsupported, "the column %s has the type timestamptz_ns, which cannot be read from data files yet", col.Name)
	}
	// Without effect where the file already has the type.
	return cast(name, lt), nil
}

// exactPath writes a path as a pattern that matches only that path. Iceberg
// writes field values into paths, so that any character can occur.
func exactPath(path string) (string, error) {
	if path == "" || strings.ContainsRune(path, 0) || !filepath.IsAbs(path) {
		return "", internal("a data file has an unusable path")
	}
	var b strings.Builder
	for _, r := range path {
		switch r {
		case '*', '?', '[':
			b.WriteString("[" + string(r) + "]")
		default:
			b.WriteRune(r)
		}
	}
	return quote(b.String()), nil
}

// distinctNames refuses columns that DuckDB would confuse: it ignores the case
// of names, so that of two columns "a" and "A" it would read the first for both.
// engine/scan, which knows every column of a file, streams such files.
func distinctNames(columns []scan.FileColumn) error {
	inFile := map[string]string{}
	for _, col := range columns {
		if err := distinctName(inFile, col.Name); err != nil {
			return err
		}
	}
	return nil
}

func distinctName(seen map[string]string, name string) error {
	if name == "" {
		return nil
	}
	k := strings.ToLower(name)
	if other, ok := seen[k]; ok && other != name {
		return fault.New(fault.Unsupported, "the table has two columns whose names differ only in case (%s); rename one of them", name)
	}
	seen[k] = name
	return nil
}
