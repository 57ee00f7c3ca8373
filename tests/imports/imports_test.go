//go:build e2e

package imports

import (
	"context"
	"database/sql"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"sqe/tests/sqetest"
	"sqe/tests/tpch"
)

var demo *sqetest.Server

func TestMain(m *testing.M) { os.Exit(runSuites(m)) }

func runSuites(m *testing.M) (code int) {
	dir, err := os.MkdirTemp("", "sqe-imports-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	os.Setenv("SQE_PASSWORD", "demo")
	if demo, err = sqetest.Demo(filepath.Join(dir, "demo")); err != nil {
		fmt.Fprintln(os.Stderr, "the demo does not start:", err)
		return 1
	}
	code = m.Run()
	if err := demo.Stop(); err != nil || strings.Contains(demo.Output(), "panic") {
		fmt.Fprintf(os.Stderr, "the demo does not end well: %v\n%s\n", err, demo.Output())
		code = 1
	}
	return code
}

func imported(args ...string) (string, error) {
	return sqetest.Run(append([]string{"import", "-P", fmt.Sprint(demo.Port), "-D", "bank"}, args...)...)
}

func ask(t *testing.T, text string) string {
	t.Helper()
	a := sqetest.Ask(within(t), demo.Conn(t, "admin", sqetest.Database("bank")), text)
	if a.Err != nil {
		t.Fatalf("%s: %v", text, a.Err)
	}
	var lines []string
	for _, r := range a.Rows {
		lines = append(lines, strings.Join(r, "|"))
	}
	return strings.Join(lines, "\n")
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// left lists the files of the server, without those that each statement changes.
func left(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(demo.Dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.Contains(path, ".db-") {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

const odd = "id,name,Note \"x\",born,paid,score\n" +
	"1,\"Zürich 🏦\",\"say \"\"hi\"\",\r\nyou\",2024-02-29,true,1.5\n" +
	"2,,\"\",1969-12-31,false,-2\n" +
	"3,NULL,\\N,,,\n" +
	"4,\"NULL\",'it''s',0001-01-01,true,1e-3\n"

// TestImportCommand: one command makes a table of a file; what is in it is what was in
// the file.
func TestImportCommand(t *testing.T) {
	path := file(t, "Odd File-1.csv", strings.Replace(odd, `Note "x"`, `"Note ""x"""`, 1))
	out, err := imported("-u", "admin", path)
	if err != nil || !strings.Contains(out, "odd_file_1: 4 rows in ") || !strings.Contains(out, "born      date") {
		t.Fatalf("%v\n%s", err, out)
	}
	want := "1|Zürich 🏦|say \"hi\",\r\nyou|2024-02-29|1|1.5\n2|␀||1969-12-31|0|-2\n3|␀|␀|␀|␀|␀\n4|NULL|'it''s'|0001-01-01|1|0.001"
	if got := ask(t, "SELECT * FROM odd_file_1 ORDER BY id"); got != want {
		t.Errorf("%q\n%q", got, want)
	}
	for _, x := range []struct {
		args []string
		says string // "" succeeds
	}{
		{[]string{"-u", "admin", path}, "-append adds the rows to it"},
		{[]string{"-u", "admin", "-append", "-table", "odd_file_1", path}, ""},
		{[]string{"-u", "admin", "-replace", "-table", "bank.odd_file_1", path, path}, ""},
		{[]string{"-u", "admin", "-append", "-replace", path}, "exclude each other"},
		{[]string{"-u", "alice", "-table", "mine", path}, "CREATE command denied to user 'alice'"},
		{[]string{"-u", "alice", "-append", "-table", "customers", path}, "LOAD command denied to user 'alice'"},
		{[]string{"-u", "dave", "-table", "mine", path}, "Unknown database 'bank'"},
		{[]string{"-u", "admin", "missing.csv"}, "no such file"},
		{[]string{"-u", "admin", filepath.Dir(path)}, "is a folder"},
		{[]string{"-u", "admin"}, "name a file"},
		{[]string{"-u", "admin", file(t, "x.txt", odd)}, "-format csv"},
		{[]string{"-u", "admin", "-table", "x", file(t, "bad.csv", "a,b\n1\n")}, "line 2 of the file has 1 fields"},
		{[]string{"-u", "admin", "-table", "x", file(t, "bad.parquet", odd)}, "damaged"},
		{[]string{"-u", "admin", "-table", "x", file(t, "empty.csv", "")}, "ends before the line that names"},
	} {
		before := left(t)
		out, err := imported(x.args...)
		if (err == nil) != (x.says == "") || !strings.Contains(out, x.says) {
			t.Errorf("%v: %v\n%s", x.args, err, out)
		}
		if after := left(t); x.says != "" && !slices.Equal(after, before) {
			t.Errorf("%v left %d files", x.args, len(after)-len(before))
		}
	}
	if got := ask(t, "SELECT count(*) FROM odd_file_1"); got != "8" {
		t.Errorf("%s rows", got)
	}
	// What admin has made, alice may not see until a policy says so.
	if a := sqetest.Ask(within(t), demo.Conn(t, "alice"), "SELECT * FROM bank.odd_file_1"); a.Number() != 1146 {
		t.Errorf("alice: %v", a.Err)
	}
}

// checksums is a query whose answer changes with any value of the table.
const checksums = "SELECT count(*), sum(l_orderkey), sum(l_linenumber), sum(l_quantity), sum(l_extendedprice * 3 + l_discount * 5 + l_tax * 7), " +
	"sum(length(l_comment)), min(l_shipdate), max(l_receiptdate), count(DISTINCT l_comment), sum(ascii(l_returnflag) * 3 + ascii(l_linestatus)) FROM "

// TestImportTPCH: a large Parquet file, and the same rows as text, are the same rows
// in the table as in the file.
func TestImportTPCH(t *testing.T) {
	data, err := tpch.Generate(within(t), 0.05)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(data, "lineitem.parquet")
	python := filepath.Join(sqetest.Cache(), "venv", "bin", "python")
	text := filepath.Join(t.TempDir(), "lineitem_text.csv")
	program := `
import csv, sys
import pyarrow.parquet as pq
t = pq.read_table(sys.argv[1])
c = {n: t.column(n).to_pylist() for n in t.column_names}
with open(sys.argv[2], "w", newline="") as f:
    w = csv.writer(f)
    w.writerow(t.column_names)
    w.writerows(zip(*c.values()))
rows = zip(c["l_extendedprice"], c["l_discount"], c["l_tax"])
print("|".join(str(x) for x in [t.num_rows, sum(c["l_orderkey"]), sum(c["l_linenumber"]), sum(c["l_quantity"]), sum(a * 3 + b * 5 + d * 7 for a, b, d in rows),
    sum(len(x) for x in c["l_comment"]), min(c["l_shipdate"]), max(c["l_receiptdate"]), len(set(c["l_comment"])),
    sum(ord(a) * 3 + ord(b) for a, b in zip(c["l_returnflag"], c["l_linestatus"]))]))
`
	cmd := exec.CommandContext(within(t), python, "-c", program, path, text)
	cmd.Stderr = os.Stderr
	want, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	if out, err := imported("-u", "admin", path); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("parquet: %s", time.Since(started))
	if got := ask(t, checksums+"lineitem"); got != strings.TrimSpace(string(want)) {
		t.Errorf("parquet:\n%s\n%s", got, want)
	}
	// As text, into a table whose types are those of the other.
	ask(t, "CREATE TABLE lineitem_text LIKE lineitem")
	started = time.Now()
	if out, err := imported("-u", "admin", "-append", text); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("text: %s", time.Since(started))
	if got := ask(t, checksums+"lineitem_text"); got != strings.TrimSpace(string(want)) {
		t.Errorf("text:\n%s\n%s", got, want)
	}
	if got := ask(t, "SELECT count(*) FROM (SELECT * FROM lineitem EXCEPT SELECT * FROM lineitem_text) x"); got != "0" {
		t.Errorf("%s rows differ", got)
	}
}

// TestClients: the clients that send files load one; without their switch they are told
// of it.
func TestClients(t *testing.T) {
	python := filepath.Join(sqetest.Cache(), "venv", "bin", "python")
	path := file(t, "odd.csv", odd)
	load := "LOAD DATA LOCAL INFILE '" + path + "' INTO TABLE bank.clients FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' IGNORE 1 LINES"
	run := func(name string, args ...string) string {
		out, err := exec.CommandContext(within(t), name, args...).CombinedOutput()
		if err != nil && len(out) == 0 {
			return err.Error()
		}
		return string(out)
	}
	port := fmt.Sprint(demo.Port)
	pymysql := `
import sys, pymysql
c = pymysql.connect(host="127.0.0.1", port=int(sys.argv[1]), user="admin", password="demo", ssl={"check_hostname": False, "verify_mode": "none"}, local_infile=sys.argv[3] == "1")
with c.cursor() as x: print("rows", x.execute(sys.argv[2]))
`
	connector := `
import sys, mysql.connector
c = mysql.connector.connect(host="127.0.0.1", port=int(sys.argv[1]), user="admin", password="demo", ssl_verify_cert=False, allow_local_infile=sys.argv[3] == "1", use_pure=True)
x = c.cursor(); x.execute(sys.argv[2]); print("rows", x.rowcount)
`
	for _, c := range []struct {
		name string
		run  func(on string) string
	}{
		{"mariadb", func(on string) string {
			return run("mariadb", "--no-defaults", "--ssl", "--skip-ssl-verify-server-cert", "-h", "127.0.0.1", "-P", port, "-u", "admin", "-pdemo", "-v", "-v", "--local-infile="+on, "-e", load)
		}},
		{"pymysql", func(on string) string { return run(python, "-c", pymysql, port, load, on) }},
		{"connector-python", func(on string) string { return run(python, "-c", connector, port, load, on) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			ask(t, "CREATE OR REPLACE TABLE clients (id INT, name STRING, note STRING, born DATE, paid BOOLEAN, score DOUBLE)")
			if out := c.run("0"); strings.Contains(out, "rows 4") || ask(t, "SELECT count(*) FROM clients") != "0" {
				t.Errorf("a client that does not send files: %s", out)
			}
			out := c.run("1")
			if got := ask(t, "SELECT count(*), sum(id), max(name) FROM clients"); got != "4|10|Zürich 🏦" {
				t.Errorf("%s\n%s", got, out)
			}
		})
	}
}

// driver is a pool whose connections send r as the file "x.csv".
func driver(t *testing.T, r func() io.Reader) *sql.DB {
	name := strings.ReplaceAll(t.Name(), "/", "-") + "/x.csv"
	mysql.RegisterReaderHandler(name, r)
	t.Cleanup(func() { mysql.DeregisterReaderHandler(name) })
	db := demo.Open("admin", sqetest.Database("bank"))
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func from(t *testing.T) string {
	return "LOCAL INFILE 'Reader::" + strings.ReplaceAll(t.Name(), "/", "-") + "/x.csv'"
}

// endless is a file that never ends; at does something at some row.
type endless struct {
	rows int
	at   func()
	stop <-chan struct{}
}

func (e *endless) Read(p []byte) (int, error) {
	select {
	case <-e.stop:
		return 0, io.EOF
	default:
	}
	if e.rows++; e.rows == 50 {
		e.at()
	}
	return copy(p, strings.Repeat("1\n", 4096)), nil
}

// TestKilledUpload: KILL in the middle of a file, of the statement and of the
// connection, and a client that is gone: nothing is left, and the server goes on.
func TestKilledUpload(t *testing.T) {
	for _, how := range []string{"KILL QUERY", "KILL", "gone"} {
		t.Run(strings.ReplaceAll(how, " ", ""), func(t *testing.T) {
			before := left(t)
			stop := make(chan struct{})
			ctx, cancel := context.WithCancel(within(t))
			defer cancel()
			id := ""
			e := &endless{stop: stop, at: func() {
				switch how {
				case "gone":
					cancel()
				default:
					ask(t, how+" "+id)
				}
				close(stop)
			}}
			conn, err := driver(t, func() io.Reader { return e }).Conn(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := conn.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&id); err != nil {
				t.Fatal(err)
			}
			_, err = conn.ExecContext(ctx, "CREATE TABLE killed FROM "+from(t))
			var m *mysql.MySQLError
			if err == nil || how == "KILL QUERY" && (!errors.As(err, &m) || m.Number != 1317) {
				t.Errorf("%v", err)
			}
			if how == "KILL QUERY" {
				if _, err := conn.ExecContext(ctx, "SELECT 1"); err != nil {
					t.Errorf("the connection is lost: %v", err)
				}
			}
			if got := ask(t, "SHOW TABLES LIKE 'killed'"); got != "" {
				t.Errorf("half a table: %s", got)
			}
			if after := left(t); !slices.Equal(after, before) {
				t.Errorf("%d files are left", len(after)-len(before))
			}
		})
	}
}

// TestManyColumns: a wide file of many rows arrives as it is.
func TestManyColumns(t *testing.T) {
	reader, writer := io.Pipe()
	go func() {
		w := csv.NewWriter(writer)
		row := make([]string, 200)
		for i := range row {
			row[i] = fmt.Sprintf("c%d", i)
		}
		_ = w.Write(row)
		for n := range 5000 {
			for i := range row {
				row[i] = fmt.Sprint(n * i)
			}
			_ = w.Write(row)
		}
		w.Flush()
		_ = writer.Close()
	}()
	if _, err := driver(t, func() io.Reader { return reader }).ExecContext(within(t), "CREATE OR REPLACE TABLE wide FROM "+from(t)); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, "SELECT count(*), sum(c0), sum(c199) FROM wide"); got != fmt.Sprintf("5000|0|%d", 199*4999*5000/2) {
		t.Error(got)
	}
}
