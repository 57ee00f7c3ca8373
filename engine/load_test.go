package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"sqe/catalog"
	"sqe/engine"
	"sqe/fault"
	"sqe/identity"
	"sqe/plan"
	"sqe/policy"
)

// loader is a fixture whose server has files of its own and whose clients send
// files.
type loader struct {
	*ddlFixture
	dir, spool, warehouse string
	// content is what clients send, by name; asked are the names.
	content map[string]func() io.Reader
	asked   []string
}

func openLoader(t *testing.T, change func(*engine.Import)) *loader {
	t.Helper()
	l := &loader{dir: t.TempDir(), spool: t.TempDir(), content: map[string]func() io.Reader{}}
	l.ddlFixture = openDDLWith(t, func(o *engine.Options) {
		o.Import = engine.Import{Local: true, Directories: []string{l.dir}, MaxBytes: 1 << 20, Spool: l.spool}
		if change != nil {
			change(&o.Import)
		}
	})
	l.warehouse = strings.TrimPrefix(l.table("customers").Handle.(*catalog.Handle).Table.Location(), "file://")
	l.warehouse = filepath.Dir(filepath.Dir(l.warehouse))
	return l
}

// client is a session that sends files.
func (l *loader) client(name string) *engine.Session {
	l.t.Helper()
	s, err := l.Open(identity.Principal{Name: name}, engine.ConnInfo{ID: 77, RemoteAddr: "test", Database: "bank", LocalFile: func(_ context.Context, name string) (io.Reader, error) {
		l.asked = append(l.asked, name)
		c, ok := l.content[name]
		if !ok {
			return nil, errors.New("no such file")
		}
		return c(), nil
	}})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(s.Close)
	return s
}

func (l *loader) sends(name, content string) {
	l.content[name] = func() io.Reader { return strings.NewReader(content) }
}

func (l *loader) file(name, content string) string {
	l.t.Helper()
	path := filepath.Join(l.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		l.t.Fatal(err)
	}
	return path
}

// left lists every file of the warehouse and of the spool.
func (l *loader) left() []string {
	l.t.Helper()
	var out []string
	for _, dir := range []string{l.warehouse, l.spool} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				out = append(out, path)
			}
			return err
		})
		if err != nil {
			l.t.Fatal(err)
		}
	}
	slices.Sort(out)
	return out
}

// refuses runs a statement that must fail and leave nothing.
func (l *loader) refuses(s *engine.Session, text string, kind fault.Kind, says string) {
	l.t.Helper()
	files, state := l.left(), l.state()
	_, err := query(s, text)
	if !fault.Is(err, kind) || !strings.Contains(err.Error(), says) {
		l.t.Errorf("%s: %v (%s), want %s: %s", text, err, fault.KindOf(err), kind, says)
	}
	if err != nil && (strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), l.dir) || strings.Contains(err.Error(), l.spool)) {
		l.t.Errorf("%s: the error tells too much: %v", text, err)
	}
	if after := l.left(); !slices.Equal(after, files) {
		l.t.Errorf("%s left files: %v", text, after)
	}
	if after := l.state(); after != state {
		l.t.Errorf("%s changed\n%s\ninto\n%s", text, state, after)
	}
}

func (l *loader) affects(s *engine.Session, text string, rows uint64) {
	l.t.Helper()
	res, _, err := s.Query(context.Background(), text)
	if err != nil {
		l.t.Fatalf("%s: %v (%v)", text, err, errors.Unwrap(err))
	}
	if res.Affected != rows {
		l.t.Errorf("%s: %d rows, want %d", text, res.Affected, rows)
	}
}

const peopleFile = "id,name,note,born,paid\n1,\"Zürich 🏦\",\"say \"\"hi\"\",\nyou\",2024-02-29,true\n2,,\"\",1969-12-31,false\n3,NULL,\\N,,\n"

// TestCreateFromText: a file of a client becomes a table with the types of its values.
func TestCreateFromText(t *testing.T) {
	l := openLoader(t, nil)
	s := l.client("root")
	l.sends("people.csv", peopleFile)
	l.affects(s, "CREATE TABLE p FROM LOCAL INFILE 'people.csv'", 3)
	must(t, s, "SELECT * FROM p ORDER BY id", "1|Zürich 🏦|say \"hi\",\nyou|2024-02-29|true\n2|NULL||1969-12-31|false\n3|NULL|NULL|NULL|NULL")
	must(t, s, "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'p' ORDER BY ordinal_position", "id|bigint\nname|longtext\nnote|longtext\nborn|date\npaid|tinyint")
	if e := l.journal.events[len(l.journal.events)-3]; e.Kind != "write" || len(e.Changes) != 2 || e.Changes[0].Object != "lake.bank" || e.Changes[0].Privileges[0] != "table-create" || strings.Contains(e.Statement, "people") {
		t.Errorf("the audit event is %+v", e)
	}
	if n := l.left(); slices.ContainsFunc(n, func(f string) bool { return strings.HasPrefix(f, l.spool) }) {
		t.Errorf("the file of the client is left: %v", n)
	}
	l.affects(s, "CREATE TABLE IF NOT EXISTS p FROM LOCAL INFILE 'nothing.csv'", 0)
	l.affects(s, "CREATE OR REPLACE TABLE p PARTITIONED BY (paid) TBLPROPERTIES ('a' = 'b') COMMENT 'c' FROM LOCAL INFILE 'people.csv' IGNORE 1 LINES (i, @x, @y, b, paid)", 3)
	must(t, s, "SELECT * FROM p ORDER BY i", "1|2024-02-29|true\n2|1969-12-31|false\n3|NULL|NULL")
	must(t, s, "SELECT count(*) FROM p WHERE paid", "1")
	l.refuses(s, "CREATE TABLE p FROM LOCAL INFILE 'people.csv'", fault.Exists, "already exists")
	l.sends("head.csv", "a,b\n")
	l.affects(s, "CREATE TABLE h FROM LOCAL INFILE 'head.csv'", 0)
	must(t, s, "SELECT * FROM h", "")
}

// TestLoadText: rows go to columns by their places or names, as what they are.
func TestLoadText(t *testing.T) {
	l := openLoader(t, nil)
	s := l.client("root")
	l.do(s, "CREATE TABLE t (id INT NOT NULL, price DECIMAL(9,2), at TIMESTAMP, u UUID, raw BINARY, st STRUCT<a INT, b STRING>, extra BIGINT DEFAULT 7) TBLPROPERTIES ('format-version' = '3')")
	l.sends("a.csv", "1,1.5,2024-02-29 12:00:00.5,f79c3e09-677c-4bbd-a479-3f349cb785e7,x,\"{\"\"a\"\": 1, \"\"b\"\": \"\"y\"\"}\",\n")
	l.affects(s, "LOAD DATA LOCAL INFILE 'a.csv' INTO TABLE t", 1)
	l.sends("b.csv", "Extra,ID,ignored\n9,2,x\n")
	l.refuses(s, "LOAD DATA LOCAL INFILE 'b.csv' INTO TABLE t BY NAME", fault.NoColumn, "'ignored'")
	l.affects(s, "LOAD DATA LOCAL INFILE 'b.csv' INTO TABLE t BY NAME (id, extra)", 1)
	l.sends("c.tsv", "# comment\n3\\\t\t0\n")
	l.affects(s, "LOAD DATA LOCAL INFILE 'b.csv' INTO TABLE t IGNORE 1 LINES (@a, id, @b)", 1)
	l.sends("d.txt", "4|x|1|\n5|x|2|\n")
	l.affects(s, "LOAD DATA LOCAL INFILE 'd.txt' INTO TABLE t FIELDS TERMINATED BY '|' (id, @x, price, @y)", 2)
	must(t, s, "SELECT id, price, at, u, HEX(raw), st, extra FROM t ORDER BY id, price",
		"1|1.5|2024-02-29T12:00:00.5|f79c3e09-677c-4bbd-a479-3f349cb785e7|78|{\"a\":1,\"b\":\"y\"}|NULL\n2|NULL|NULL|NULL|NULL|NULL|7\n2|NULL|NULL|NULL|NULL|NULL|9\n4|1|NULL|NULL|NULL|NULL|7\n5|2|NULL|NULL|NULL|NULL|7")
	for _, x := range []struct {
		content, with string
		kind          fault.Kind
		says          string
	}{
		{"s3cret\n", "(id)", fault.OutOfRange, "column 'id' in the row at line 1"},
		{"1\n2\n99999999999\n", "(id)", fault.OutOfRange, "line 3"},
		{"1,1.555\n", "(id, price)", fault.OutOfRange, "'price'"},
		{"1,s3cret\n", "(id, u)", fault.OutOfRange, "'u' is no UUID"},
		{"1,{s3cret\n", "(id, st)", fault.OutOfRange, "'st'"},
		{"\n,1\n", "(id, extra)", fault.NullValue, "'id' cannot be null"},
		{"1\n", "(price)", fault.NullValue, "'id' cannot be null"},
		{"1,2\n", "(id)", fault.BadStatement, "2 fields where 1 are expected"},
		{"1\n", "(nothing)", fault.NoColumn, "'nothing'"},
		{"id,id2\n1,2\n", "BY NAME (id, price)", fault.NoColumn, "no column 'price'"},
		{"\"1\n", "(id)", fault.BadStatement, "never closed"},
		{strings.Repeat("1\n", 600<<10), "(id)", fault.Limit, "import.max-bytes"},
	} {
		l.sends("x.csv", x.content)
		l.refuses(s, "LOAD DATA LOCAL INFILE 'x.csv' INTO TABLE t "+x.with, x.kind, x.says)
	}
	must(t, s, "SELECT count(*) FROM t", "5")
}

// parquetOf is a Parquet file with some rows.
func parquetOf(t *testing.T, schema *arrow.Schema, json string) string {
	t.Helper()
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(json))
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Release()
	var out bytes.Buffer
	w, err := pqarrow.NewFileWriter(schema, &out, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(rec), w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestLoadParquet: columns are found by name; a file of the server is read like one
// of the client.
func TestLoadParquet(t *testing.T) {
	l := openLoader(t, nil)
	s := l.client("root")
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "ID", Type: arrow.PrimitiveTypes.Uint16},
		{Name: "at", Type: &arrow.TimestampType{Unit: arrow.Nanosecond}, Nullable: true},
		{Name: "tags", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
		{Name: "big", Type: arrow.PrimitiveTypes.Uint64, Nullable: true},
	}, nil)
	content := parquetOf(t, schema, `[{"ID":1,"at":"2024-02-29 12:00:00.5","tags":["a",null],"big":5},{"ID":2}]`)
	l.file("x.parquet", content)
	l.sends("x.parquet", content)
	l.affects(s, "CREATE TABLE t FROM INFILE 'x.parquet'", 2)
	l.affects(s, "LOAD DATA LOCAL INFILE 'x.parquet' INTO TABLE t (id, tags)", 2)
	must(t, s, "SELECT * FROM t ORDER BY id, at IS NULL", "1|2024-02-29T12:00:00.5|[\"a\",null]|5\n1|NULL|[\"a\",null]|NULL\n2|NULL|NULL|NULL\n2|NULL|NULL|NULL")
	l.do(s, "CREATE TABLE u (id INT, other INT)")
	l.refuses(s, "LOAD DATA INFILE 'x.parquet' INTO TABLE u", fault.NoColumn, "a column 'at' that table 'u' does not have")
	l.refuses(s, "LOAD DATA INFILE 'x.parquet' INTO TABLE u (other)", fault.NoColumn, "The file has no column 'other'")
	l.file("cut.parquet", content[:len(content)-20])
	l.refuses(s, "CREATE TABLE c FROM INFILE 'cut.parquet'", fault.BadStatement, "damaged")
	l.file("text.parquet", "id\n1\n")
	l.refuses(s, "CREATE TABLE c FROM INFILE 'text.parquet'", fault.BadStatement, "damaged")
	l.refuses(s, "CREATE TABLE c FROM INFILE 'x.parquet' IGNORE 1 LINES", fault.BadStatement, "text files")
	l.refuses(s, "CREATE TABLE c FROM INFILE 'x.orc'", fault.BadStatement, "FORMAT PARQUET or FORMAT CSV")
	damaged := []byte(content)
	for i := 10; i < 60; i++ {
		damaged[i] ^= 0x5a
	}
	l.file("damaged.parquet", string(damaged))
	l.refuses(s, "CREATE TABLE c FROM INFILE 'damaged.parquet'", fault.BadStatement, "damaged")
}

// TestFilesOfTheServer: only regular files below the configured directories are
// there, and every other file does not exist, with one error.
func TestFilesOfTheServer(t *testing.T) {
	l := openLoader(t, nil)
	s := l.client("root")
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret.csv"), []byte("a\ns3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := l.file("good.csv", "a\n1\n")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(filepath.Join(l.dir, "sub"), 0o700))
	must(os.Mkdir(filepath.Join(l.dir, "folder.csv"), 0o700))
	must(os.WriteFile(filepath.Join(l.dir, "sub", "deep.csv"), []byte("a\n1\n2\n"), 0o600))
	must(os.Symlink(filepath.Join(outside, "secret.csv"), filepath.Join(l.dir, "link.csv")))
	must(os.Symlink(outside, filepath.Join(l.dir, "out")))
	must(os.Symlink("sub/deep.csv", filepath.Join(l.dir, "inside.csv")))
	must(syscall.Mkfifo(filepath.Join(l.dir, "pipe.csv"), 0o600))
	for i, good := range []string{path, "good.csv", "sub/deep.csv", "sub/../good.csv", "./good.csv", "inside.csv", filepath.Join(l.dir, "sub", "..", "good.csv")} {
		if _, err := query(s, fmt.Sprintf("CREATE TABLE g%d FROM INFILE '%s'", i, good)); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		"missing.csv", "link.csv", "out/secret.csv", "pipe.csv", "folder.csv", "../" + filepath.Base(outside) + "/secret.csv", filepath.Join(outside, "secret.csv"),
		"/etc/passwd", "/proc/self/environ", "/proc/self/root/etc/passwd", "/dev/zero", l.dir + "/../" + filepath.Base(outside) + "/secret.csv", l.dir, "", "sub",
		"good.csv/x", "~/x.csv", "file://" + path, "http://127.0.0.1/x.csv", "*.csv",
	} {
		if bad == "" {
			continue
		}
		l.refuses(s, "CREATE TABLE b FROM INFILE '"+bad+"' FORMAT CSV", fault.BadStatement, "There is no such file in the directories")
	}
	closed := openLoader(t, func(i *engine.Import) { i.Directories = nil })
	closed.refuses(closed.client("root"), "CREATE TABLE b FROM INFILE '"+path+"'", fault.Unsupported, "import.directories")
	closed.refuses(closed.client("root"), "CREATE TABLE b FROM INFILE '/etc/passwd' FORMAT CSV", fault.Unsupported, "import.directories")
	l.file("large.csv", "a\n"+strings.Repeat("1\n", 1<<20))
	l.refuses(s, "CREATE TABLE b FROM INFILE 'large.csv'", fault.Limit, "import.max-bytes")
}

// TestRightsOfLoad: rights are asked before anything is asked of the client or read.
func TestRightsOfLoad(t *testing.T) {
	l := openLoader(t, nil)
	l.file("x.csv", "a\n1\n")
	l.sends("x.csv", "a\n1\n")
	l.do(l.root, "CREATE TABLE t (a INT)")
	bob := l.client("bob")
	for _, x := range []struct{ statement, rights string }{
		{"CREATE TABLE n FROM LOCAL INFILE 'x.csv'", "table-create bank, table-data-write bank.n"},
		{"CREATE TABLE n2 FROM INFILE 'x.csv'", "table-create bank, table-data-write bank.n2"},
		{"LOAD DATA LOCAL INFILE 'x.csv' INTO TABLE t IGNORE 1 LINES", "table-data-write bank.t, table-data-read bank.t"},
		{"LOAD DATA INFILE 'x.csv' INTO TABLE t BY NAME", "table-data-write bank.t, table-data-read bank.t"},
	} {
		wanted := strings.Split(x.rights, ", ")
		for _, lacking := range wanted {
			for _, r := range wanted {
				right, on, _ := strings.Cut(r, " ")
				if l.gate.grant("bob", on, right); r == lacking {
					l.gate.revoke("bob", on, right)
				}
			}
			before := l.state()
			if _, err := query(bob, x.statement); !fault.Is(err, fault.Denied) && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.NoDatabase) {
				t.Errorf("%s without %s: %v", x.statement, lacking, err)
			}
			if l.asked != nil || l.state() != before {
				t.Errorf("%s without %s: asked for %v", x.statement, lacking, l.asked)
			}
		}
		for _, r := range wanted {
			right, on, _ := strings.Cut(r, " ")
			l.gate.grant("bob", on, right)
		}
		l.affects(bob, x.statement, 1)
		if strings.Contains(x.statement, "LOCAL") != (l.asked != nil) {
			t.Errorf("%s: asked for %v", x.statement, l.asked)
		}
		l.asked = nil
		l.gate.mu.Lock()
		l.gate.grants = map[string]bool{}
		l.gate.mu.Unlock()
	}
	if _, err := query(bob, "LOAD DATA LOCAL INFILE 'x.csv' INTO TABLE missing"); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	// What takes too much for granted is refused before the file is asked for.
	s := l.client("root")
	l.refuses(s, "LOAD DATA LOCAL INFILE 'x.csv' INTO TABLE t (b)", fault.NoColumn, "'b'")
	l.refuses(s, "CREATE TABLE t FROM LOCAL INFILE 'x.csv'", fault.Exists, "already exists")
	l.refuses(s, "CREATE TABLE n3 TBLPROPERTIES ('location' = '/tmp') FROM LOCAL INFILE 'x.csv'", fault.BadStatement, "location")
	if l.asked != nil {
		t.Errorf("asked for %v", l.asked)
	}
}

// TestLoadUnderPolicies: rows that a filter would have to check are not loaded, and
// withheld columns not assigned.
func TestLoadUnderPolicies(t *testing.T) {
	l := openLoader(t, nil)
	l.sends("x.csv", "1,2\n")
	l.do(l.root, "CREATE TABLE t (a INT, b INT)")
	l.do(l.root, "CREATE TABLE w (a INT, b INT)")
	l.gate.state.restrict = func(p identity.Principal, tb *plan.Table) *policy.Restrictions {
		r := &policy.Restrictions{Complete: true, Columns: map[int]policy.ColumnRule{}}
		if p.Name != "sue" {
			return r
		}
		switch tb.Name.Name {
		case "t":
			r.Filters = []policy.RowFilter{{SQL: "a < 5"}}
		case "w":
			r.Columns[column(tb, "b")] = policy.ColumnRule{Kind: policy.Forbid}
		}
		return r
	}
	l.refuses(l.client("sue"), "LOAD DATA LOCAL INFILE 'x.csv' INTO TABLE t", fault.Unsupported, "row filter")
	if l.asked != nil {
		t.Errorf("asked for %v", l.asked)
	}
	l.affects(l.client("root"), "LOAD DATA LOCAL INFILE 'x.csv' INTO TABLE t", 1)
	l.refuses(l.client("sue"), "LOAD DATA LOCAL INFILE 'x.csv' INTO TABLE w (a, b)", fault.Withheld, "'b'")
	l.affects(l.client("sue"), "LOAD DATA LOCAL INFILE 'x.csv' INTO TABLE w (a, @b)", 1)
	l.affects(l.client("root"), "LOAD DATA LOCAL INFILE 'x.csv' INTO TABLE w (a, @b)", 1)
}

// TestBrokenUploads: a file that does not arrive whole leaves nothing.
func TestBrokenUploads(t *testing.T) {
	l := openLoader(t, nil)
	l.content["broken.csv"] = func() io.Reader { return io.MultiReader(strings.NewReader("a\n1\n"), &failingUpload{}) }
	s := l.client("root")
	l.refuses(s, "CREATE TABLE b FROM LOCAL INFILE 'broken.csv'", fault.Cancelled, "broke off")
	// KILL while the client sends.
	l.content["slow.csv"] = func() io.Reader {
		return io.MultiReader(strings.NewReader("a\n1\n"), &killingUpload{l})
	}
	l.refuses(s, "CREATE TABLE b FROM LOCAL INFILE 'slow.csv'", fault.Cancelled, "")
	l.do(s, "CREATE TABLE t (a INT)")
	l.refuses(s, "LOAD DATA LOCAL INFILE 'slow.csv' INTO TABLE t", fault.Cancelled, "")
	without := openLoader(t, nil)
	without.refuses(without.root, "CREATE TABLE b FROM LOCAL INFILE 'x.csv'", fault.Unsupported, "local-infile")
	off := openLoader(t, func(i *engine.Import) { i.Local = false })
	off.refuses(off.client("root"), "CREATE TABLE b FROM LOCAL INFILE 'x.csv'", fault.Unsupported, "import.local")
	if off.asked != nil {
		t.Error("the client was asked")
	}
	full := openLoader(t, func(i *engine.Import) { i.Spool = filepath.Join(i.Spool, "missing") })
	full.sends("x.csv", "a\n1\n")
	full.refuses(full.client("root"), "CREATE TABLE b FROM LOCAL INFILE 'x.csv'", fault.Unavailable, "temporary data")
	if full.asked != nil {
		t.Error("the client was asked for a file that cannot be kept")
	}
}

type failingUpload struct{}

func (*failingUpload) Read([]byte) (int, error) {
	return 0, fault.New(fault.Cancelled, "the file broke off")
}

// killingUpload ends the statement that reads it.
type killingUpload struct{ l *loader }

func (k *killingUpload) Read(p []byte) (int, error) {
	if err := k.l.KillQuery(77, identity.Principal{Name: "root", Admin: true}); err != nil {
		return 0, err
	}
	return copy(p, "2\n"), io.EOF
}
