//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"sqe/tests/lab"
	"sqe/tests/sqetest"
)

// healthy asserts that the server still answers.
func healthy(t *testing.T, s *sqetest.Server, user string) {
	t.Helper()
	if !s.Alive() {
		t.Fatalf("the server is gone:\n%s", tail(s.Output()))
	}
	if got, err := sqetest.Ask(within(t, patience), s.Conn(t, user), "SELECT 1").One(); err != nil || got != "1" {
		t.Fatalf("the server does not answer any more: %q, %v\n%s", got, err, tail(s.Output()))
	}
}

func tail(s string) string { return s[max(0, len(s)-4000):] }

// TestHostileStatements: whatever the text, there is an answer or an error, and
// the server lives.
func TestHostileStatements(t *testing.T) {
	nested := func(n int, open, inner, closing string) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(closing, n)
	}
	for name, text := range map[string]string{
		"10 MB literal":          "SELECT LENGTH('" + strings.Repeat("a", 10<<20) + "')",
		"10 MB list":             "SELECT count(*) FROM bank.customers WHERE cust_id IN (1" + strings.Repeat(",1234567", 10<<20/8) + ")",
		"10 MB comment":          "SELECT 1 /* " + strings.Repeat("x", 10<<20) + " */",
		"10 MB of nothing":       strings.Repeat(" ", 10<<20),
		"10 MB of semicolons":    strings.Repeat(";", 10<<20),
		"parentheses":            "SELECT " + nested(100_000, "(", "1", ")"),
		"open parentheses":       "SELECT " + strings.Repeat("(", 100_000),
		"not":                    "SELECT " + strings.Repeat("NOT ", 100_000) + "1",
		"minus":                  "SELECT " + strings.Repeat("- ", 100_000) + "1",
		"sum of many":            "SELECT 1" + strings.Repeat("+1", 100_000),
		"or of many":             "SELECT count(*) FROM bank.customers WHERE cust_id = 1" + strings.Repeat(" OR cust_id = 2", 20_000),
		"case in case":           "SELECT " + nested(5_000, "CASE WHEN 1 THEN ", "1", " END"),
		"functions in functions": "SELECT " + nested(5_000, "UPPER(", "'x'", ")"),
		"sub-queries":            nested(1_000, "SELECT (", "SELECT 1", ")"),
		"derived tables":         nested(500, "SELECT * FROM (", "SELECT 1 AS a", ") d"),
		"unions":                 "SELECT 1" + strings.Repeat(" UNION SELECT 1", 2_000),
		"joins":                  "SELECT count(*) FROM bank.customers c0" + manyJoins(150),
		"names":                  "SELECT * FROM " + strings.Repeat("a.", 10_000) + "b",
		"long name":              "SELECT * FROM `" + strings.Repeat("n", 1<<20) + "`",
		"ctes":                   "WITH " + doubling(40) + " SELECT count(*) FROM c40",
		"endless recursion":      "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n FROM r) SELECT count(*) FROM r",
		"control characters":     "SELECT 1 \x00 \x01 \xff\xfe FROM \x00",
		"not UTF-8":              "SELECT '\xff\xfe\xc3'",
		"unterminated string":    "SELECT 'abc",
		"unterminated comment":   "SELECT 1 /* abc",
		"unterminated name":      "SELECT `abc",
	} {
		t.Run(name, func(t *testing.T) {
			started := time.Now()
			// What would take longer must have been refused or ended by a limit.
			a := sqetest.Ask(within(t, 5*time.Minute), demo.Conn(t, "carol"), text)
			if errors.Is(a.Err, context.DeadlineExceeded) {
				t.Errorf("no answer within %s", time.Since(started).Round(time.Second))
			}
			if errors.Is(a.Err, mysql.ErrInvalidConn) || (a.Err != nil && strings.Contains(a.Err.Error(), "bad connection")) {
				t.Errorf("the connection broke without an error: %v", a.Err)
			}
			if a.Err != nil && len(a.Err.Error()) > 4096 {
				t.Errorf("an error of %d bytes", len(a.Err.Error()))
			}
			healthy(t, demo, "carol")
		})
	}
}

func manyJoins(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, " JOIN bank.customers c%d ON c%d.cust_id = c%d.cust_id", i, i, i-1)
	}
	return b.String()
}

// doubling defines c0 to cn, each twice the one before: 2^n uses of a table.
func doubling(n int) string {
	parts := []string{"c0 AS (SELECT 1 AS x FROM bank.customers)"}
	for i := 1; i <= n; i++ {
		parts = append(parts, fmt.Sprintf("c%d AS (SELECT x FROM c%d UNION SELECT x + 1 FROM c%d)", i, i-1, i-1))
	}
	return strings.Join(parts, ", ")
}

// TestRefusedStatements: what could write, read files or store code is refused,
// with an error that is no syntax error of ours, and nothing changed.
func TestRefusedStatements(t *testing.T) {
	before := ask(t, "carol", "SELECT * FROM bank.customers ORDER BY cust_id").Text()
	for _, text := range []string{
		"INSERT INTO bank.customers (cust_id) VALUES (99)",
		"INSERT INTO bank.customers SELECT * FROM bank.customers",
		"REPLACE INTO bank.customers (cust_id) VALUES (1)",
		"UPDATE bank.customers SET full_name = 'x'",
		"DELETE FROM bank.customers",
		"TRUNCATE TABLE bank.customers",
		"DROP TABLE bank.customers",
		"DROP DATABASE bank",
		"CREATE TABLE bank.t (a INT)",
		"CREATE TABLE bank.t AS SELECT * FROM bank.customers",
		"CREATE VIEW bank.v AS SELECT 1",
		"ALTER TABLE bank.customers DROP COLUMN iban",
		"CREATE DATABASE x",
		"LOAD DATA INFILE '/etc/hostname' INTO TABLE bank.customers",
		"LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE bank.customers",
		"SELECT * FROM bank.customers INTO OUTFILE '/tmp/out'",
		"SELECT 'x' INTO DUMPFILE '/tmp/out'",
		"SELECT LOAD_FILE('/etc/hostname')",
		"CREATE PROCEDURE p() SELECT 1",
		"CREATE TRIGGER t BEFORE INSERT ON bank.customers FOR EACH ROW SET @a = 1",
		"CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1",
		"CREATE FUNCTION f RETURNS STRING SONAME 'x.so'",
		"CREATE USER mallory IDENTIFIED BY 'x'",
		"SET GLOBAL max_connections = 1",
		"SELECT * FROM mysql.user",
		"SELECT read_text('/etc/hostname')",
		"SELECT * FROM read_parquet('/etc/hostname')",
		"COPY (SELECT 1) TO '/tmp/out'",
		"ATTACH '/tmp/x.db'",
		"PRAGMA database_list",
		"SELECT * FROM duckdb_settings()",
	} {
		a := ask(t, "carol", text)
		if a.Err == nil {
			t.Errorf("%s: answered: %s", text, a.Text())
		} else if a.Number() == 0 {
			t.Errorf("%s: no MySQL error: %v", text, a.Err)
		}
	}
	if after := ask(t, "carol", "SELECT * FROM bank.customers ORDER BY cust_id").Text(); after != before {
		t.Error("the table changed")
	}
	healthy(t, demo, "carol")
}

// TestManyConnections: a thousand connections at once are served or refused with
// error 1040, and afterwards everything is as before.
func TestManyConnections(t *testing.T) {
	ctx := within(t, 3*time.Minute)
	var served, refusedCount, other atomic.Int32
	var firstError atomic.Value
	var wg sync.WaitGroup
	release := make(chan struct{})
	var connected sync.WaitGroup
	// The first login is the slow one: the password hash is made to be slow.
	for range 1000 {
		wg.Add(1)
		connected.Add(1)
		go func() {
			defer wg.Done()
			db := demo.Open("alice", func(c *mysql.Config) { c.Timeout = 2 * time.Minute })
			defer db.Close()
			a := sqetest.Ask(ctx, db, "SELECT 1")
			switch {
			case a.Err == nil:
				served.Add(1)
			case a.Number() == 1040 || a.Number() == 1203:
				refusedCount.Add(1)
			default:
				other.Add(1)
				firstError.CompareAndSwap(nil, a.Err.Error())
			}
			connected.Done()
			<-release
		}()
	}
	connected.Wait()
	close(release)
	wg.Wait()
	t.Logf("%d served, %d refused, %d failed", served.Load(), refusedCount.Load(), other.Load())
	if other.Load() > 0 {
		t.Errorf("%d connections failed otherwise: %v", other.Load(), firstError.Load())
	}
	if served.Load() < 50 {
		t.Errorf("only %d were served", served.Load())
	}
	healthy(t, demo, "alice")
}

// TestSlowReader: a client that stops reading holds up nobody, and its statement
// ends when it goes away.
func TestSlowReader(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	db := demo.Open("carol")
	defer db.Close()
	rows, err := db.QueryContext(ctx, "SELECT a.*, b.*, c.* FROM bank.payments a, bank.payments b, bank.payments c, bank.payments d")
	if err != nil {
		t.Fatal(err)
	}
	if !rows.Next() {
		t.Fatal("no row")
	}
	for range 20 {
		if a := ask(t, "alice", "SELECT count(*) FROM bank.customers"); a.Err != nil {
			t.Fatalf("somebody else's statement: %v", a.Err)
		}
	}
	cancel()
	_ = rows.Close()
	gone(t, demo, "admin", "payments")
}

// gone waits until no statement whose text holds a word is in the process list.
func gone(t *testing.T, s *sqetest.Server, admin, word string) {
	t.Helper()
	conn := s.Conn(t, admin)
	last := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		a := sqetest.Ask(within(t, patience), conn, "SHOW FULL PROCESSLIST")
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		if last = a.Text(); !strings.Contains(last, word) {
			return
		}
	}
	t.Errorf("the statement still runs after %s: %s", patience, last)
}

// TestNoise: bytes that are no MySQL client do no harm.
func TestNoise(t *testing.T) {
	for name, noise := range map[string]string{
		"nothing": "", "http": "GET / HTTP/1.1\r\n\r\n", "zeros": strings.Repeat("\x00", 1<<16),
		"huge packet": "\xff\xff\xff\x01" + strings.Repeat("x", 1<<20), "half a packet": "\x20\x00\x00\x01\x85",
		"tls without asking": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
	} {
		t.Run(name, func(t *testing.T) {
			c, err := net.DialTimeout("tcp", demo.Addr(), patience)
			if err != nil {
				t.Fatal(err)
			}
			_ = c.SetDeadline(time.Now().Add(5 * time.Second))
			_, _ = c.Write([]byte(noise)) // the server may hang up at any byte
			_ = c.Close()
			healthy(t, demo, "carol")
		})
	}
}

// TestBrokenFiles: corrupt and missing data and metadata files give an error for
// their table, without a path, and harm no other.
func TestBrokenFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lab")
	config, port, err := buildLab(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, table, suffix string
		breakIt             func(path string) error
	}{
		{"truncated data file", "crossing", ".parquet", func(p string) error { return os.Truncate(p, 40) }},
		{"garbage in a data file", "chained", ".parquet", func(p string) error { return os.WriteFile(p, []byte(strings.Repeat("garbage", 500)), 0o644) }},
		{"empty data file", "unknown", ".parquet", func(p string) error { return os.Truncate(p, 0) }},
		{"missing data file", "ghost", ".parquet", os.Remove},
		{"garbage in a manifest", "scoped", ".avro", func(p string) error { return os.WriteFile(p, []byte("garbage"), 0o644) }},
		{"garbage in the metadata", "orders", ".metadata.json", func(p string) error { return os.WriteFile(p, []byte("{"), 0o644) }},
		{"missing metadata", "people_seen", ".metadata.json", os.Remove},
	}
	// Before the server starts: what it has read once it need not read again.
	for _, c := range cases {
		broken := 0
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, c.suffix) || !strings.Contains(path, string(filepath.Separator)+c.table+string(filepath.Separator)) {
				return err
			}
			broken++
			return c.breakIt(path)
		})
		if err != nil || broken == 0 {
			t.Fatalf("%s: %d files broken: %v", c.name, broken, err)
		}
	}
	s, err := sqetest.Serve(config, port)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}()
	ctx := within(t, 4*patience)
	root := s.Conn(t, "root", sqetest.Database("lab"))
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := sqetest.Ask(ctx, root, "SELECT * FROM "+c.table)
			if a.Err == nil {
				t.Errorf("answered from broken files: %s", a.Text())
			} else if strings.Contains(a.Err.Error(), dir) || strings.Contains(a.Err.Error(), ".parquet") || strings.Contains(a.Err.Error(), ".avro") {
				t.Errorf("the error holds a path: %v", a.Err)
			} else if a.Number() == 0 {
				t.Errorf("no MySQL error: %v", a.Err)
			}
			if got, err := sqetest.Ask(ctx, root, "SELECT count(*) FROM people").One(); err != nil || got != "66" {
				t.Errorf("another table: %q, %v", got, err)
			}
		})
	}
}

// TestBrokenPolicies: a document that cannot be read leaves the last good state in
// place and is reported.
func TestBrokenPolicies(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lab")
	s, err := startLab(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}()
	ctx := within(t, 4*patience)
	pat, root := s.Conn(t, "pat", sqetest.Database("lab")), s.Conn(t, "root", sqetest.Database("lab"))
	before := sqetest.Ask(ctx, pat, "SELECT * FROM people ORDER BY id")
	if before.Err != nil || len(before.Rows) == 0 {
		t.Fatal(before.Text())
	}
	status := func() string { return sqetest.Ask(ctx, root, "SHOW POLICY STATUS").Text() }
	// A mask that does not exist is reported to administrators by name, to nobody
	// else; a text that cannot be bound by sqe check, which opens the tables.
	if !strings.Contains(status(), "mask unknown.a") {
		t.Errorf("SHOW POLICY STATUS does not report the unknown mask: %s", status())
	}
	if a := sqetest.Ask(ctx, pat, "SHOW POLICY STATUS"); strings.Contains(a.Text(), "unknown.a") {
		t.Errorf("SHOW POLICY STATUS tells everybody about policies: %s", a.Text())
	}
	out, err := sqetest.Run("check", "-c", filepath.Join(dir, "sqe.toml"))
	if err == nil {
		t.Errorf("sqe check finds nothing wrong: %s", out)
	}
	for _, word := range []string{"mask unknown.a", "filter unfiltered", "filter missing", "mask chained.a"} {
		if !strings.Contains(out, word) {
			t.Errorf("sqe check does not report %q: %s", word, out)
		}
	}
	good := status()
	files, err := filepath.Glob(filepath.Join(labPolicies(s), "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no policy files: %v", err)
	}
	for _, f := range files {
		if err := os.WriteFile(f, []byte("{ this is no policy"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	reported := false
	for deadline := time.Now().Add(patience); time.Now().Before(deadline) && !reported; time.Sleep(200 * time.Millisecond) {
		if after := sqetest.Ask(ctx, pat, "SELECT * FROM people ORDER BY id"); after.Text() != before.Text() {
			t.Fatalf("the broken files changed an answer: %s", after.Text())
		}
		reported = strings.Contains(lastError(ctx, root), "json") || lastError(ctx, root) != ""
	}
	if !reported {
		t.Errorf("SHOW POLICY STATUS reports nothing: %s (before: %s)", status(), good)
	}
	if err := lab.NewPolicies().Write(labPolicies(s)); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if lastError(ctx, root) == "" {
			return
		}
	}
	t.Errorf("mended files are not read: %s", status())
}

// lastError is the column last_error of SHOW POLICY STATUS.
func lastError(ctx context.Context, q sqetest.Querier) string {
	a := sqetest.Ask(ctx, q, "SHOW POLICY STATUS")
	for i, c := range a.Columns {
		if strings.EqualFold(c, "last_error") && len(a.Rows) > 0 && a.Rows[0][i] != null {
			return a.Rows[0][i]
		}
	}
	return ""
}

// TestBrokenConfiguration: everything that is wrong is reported at once, by check
// and by serve, and nothing starts.
func TestBrokenConfiguration(t *testing.T) {
	dir := t.TempDir()
	err := errors.Join(lab.Build(t.Context(), dir), lab.NewPolicies().Write(filepath.Join(dir, "policies")),
		os.WriteFile(filepath.Join(dir, "mask.key"), []byte(lab.HashKey), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	path, _, err := sqetest.Config(dir, lab.Catalog, []string{"root"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		text string
		says []string
	}{
		{"unknown key", string(good) + "\n[server2]\nx = 1\n", []string{"server2"}},
		{"two faults", strings.Replace(string(good), "[server]", "[server]\nprot = 3", 1) + "\n[nonsense]\ny = 2\n", []string{"prot", "nonsense"}},
		{"no TOML", "this is = = no toml", []string{"broken.toml"}},
		{"wrong type", strings.Replace(string(good), "[server]", "[server]\nmax-connections = \"many\"", 1), []string{"max-connections"}},
		{"no hash", strings.Replace(string(good), "$argon2id", "$nothing", 1), []string{"password-hash"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			broken := filepath.Join(dir, "broken.toml")
			if err := os.WriteFile(broken, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, command := range []string{"check", "serve"} {
				out, err := sqetest.Run(command, "-c", broken)
				if err == nil {
					t.Errorf("sqe %s ends well", command)
				}
				for _, word := range c.says {
					if !strings.Contains(out, word) {
						t.Errorf("sqe %s does not name %q:\n%s", command, word, out)
					}
				}
				if strings.Contains(out, "panic") || strings.Contains(out, "goroutine ") {
					t.Errorf("sqe %s panics:\n%s", command, out)
				}
			}
		})
	}
	if out, err := sqetest.Run("serve", "-c", filepath.Join(dir, "nothing.toml")); err == nil || !strings.Contains(out, "nothing.toml") {
		t.Errorf("a missing file: %v\n%s", err, out)
	}
}
