//go:build e2e

package s3

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sqe/tests/lab"
	"sqe/tests/sqetest"
)

var ctx = context.Background()

// lake is a server whose default catalog has its warehouse in a store, and whose
// catalog "disk" has one on the disk.
type lake struct {
	*testing.T
	dir    string
	config string
	port   int
	server *sqetest.Server
	client *sql.DB
	// answers is everything that clients got.
	answers strings.Builder
}

// newLake starts a server; more are further lines of the configuration's catalog.
func newLake(t *testing.T, endpoint, more, sections string) *lake {
	t.Helper()
	dir := t.TempDir()
	l := &lake{T: t, dir: dir}
	policies := lab.PoliciesOf("ns")
	for _, at := range [][2]string{{"", ""}, {"*", ""}, {"*", "*"}} {
		policies.Allow("root", at[0], at[1], "catalog-content-manage")
	}
	l.must(policies.Write(filepath.Join(dir, "policies")))
	// The same for the other catalogs.
	files, err := filepath.Glob(filepath.Join(dir, "policies", "*"))
	l.must(err)
	for _, f := range files {
		text, err := os.ReadFile(f)
		l.must(err)
		l.must(os.WriteFile(f, []byte(strings.ReplaceAll(string(text), `"`+lab.Catalog+"\"\n", `"`+lab.Catalog+"\", \"disk\", \"vend\"\n")), 0o644))
	}
	l.must(os.WriteFile(filepath.Join(dir, "mask.key"), []byte(lab.HashKey+"\n"), 0o600))
	l.must(os.WriteFile(filepath.Join(dir, "s3.key"), []byte(SecretKey+"\n"), 0o600))
	if !strings.Contains(more, "s3-access-key-id") {
		more += fmt.Sprintf("s3-access-key-id = %q\ns3-secret-access-key-file = \"s3.key\"\n", AccessKey)
	}
	catalogs := fmt.Sprintf(`[[catalogs]]
name = %q
kind = "sqlite"
path = "catalog.db"
warehouse = "s3://lake/wh"
default = true
s3-endpoint = %q
s3-timeout = "2s"
%s
[[catalogs]]
name = "disk"
kind = "sqlite"
path = "disk.db"
warehouse = "disk"
%s`, lab.Catalog, endpoint, more, sections)
	for _, db := range []string{"catalog.db", "disk.db"} {
		createCatalog(t, filepath.Join(dir, db), strings.TrimSuffix(db, ".db"))
	}
	l.config, l.port, err = sqetest.Config(dir, lab.Catalog, []string{"root", "ann"}, map[string]string{"catalogs": catalogs})
	l.must(err)
	l.start()
	t.Cleanup(func() {
		l.stop()
		l.noSecrets()
	})
	return l
}

func (l *lake) start() {
	l.Helper()
	var err error
	l.server, err = sqetest.Serve(l.config, l.port)
	l.must(err)
	l.client = l.server.Open("root")
}

func (l *lake) stop() {
	l.Helper()
	if l.server == nil {
		return
	}
	_ = l.client.Close()
	if err := l.server.Stop(); err != nil {
		l.Errorf("%v\n%s", err, l.server.Output())
	}
	l.answers.WriteString(l.server.Output())
	l.server = nil
}

func (l *lake) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// ask runs a statement as root.
func (l *lake) ask(text string) sqetest.Answer {
	l.Helper()
	limit, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	a := sqetest.Ask(limit, l.client, text)
	fmt.Fprintln(&l.answers, a.Columns, a.Rows, a.Err, a.Warnings)
	return a
}

// do runs statements that must succeed.
func (l *lake) do(texts ...string) {
	l.Helper()
	for _, text := range texts {
		if a := l.ask(text); a.Err != nil {
			out := l.server.Output()
			l.Fatalf("%.300s: %v\n%s", text, a.Err, out[max(0, len(out)-3000):])
		}
	}
}

// one is the only value of an answer.
func (l *lake) one(text string) string {
	l.Helper()
	a := l.ask(text)
	if a.Err != nil || len(a.Rows) != 1 || len(a.Rows[0]) != 1 {
		out := l.server.Output()
		l.Fatalf("%.300s: %v %v\n%s", text, a.Err, a.Rows, out[max(0, len(out)-3000):])
	}
	return a.Rows[0][0]
}

func (l *lake) wants(text, want string) {
	l.Helper()
	if got := l.one(text); got != want {
		l.Errorf("%s: %s, want %s", text, got, want)
	}
}

// fails runs a statement that must fail with a text.
func (l *lake) fails(text, want string) {
	l.Helper()
	a := l.ask(text)
	if a.Err == nil || !strings.Contains(a.Err.Error(), want) {
		l.Errorf("%s: %v %v, want an error with %q", text, a.Err, a.Rows, want)
	}
}

// noSecrets looks for the keys in everything that a server printed, answered and
// recorded.
func (l *lake) noSecrets() {
	l.Helper()
	check := func(where, text string) {
		for _, secret := range []string{AccessKey, SecretKey} {
			if strings.Contains(text, secret) {
				l.Errorf("%s shows a key of the object store", where)
			}
		}
	}
	check("an answer or the log", l.answers.String())
	err := filepath.WalkDir(l.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Base(p) == "s3.key" || filepath.Base(p) == "sqe.toml" {
			return err
		}
		text, err := os.ReadFile(p)
		check(filepath.Base(p), string(text))
		return err
	})
	l.must(err)
	audit, err := os.ReadFile(filepath.Join(l.dir, "audit.jsonl"))
	if err != nil || !strings.Contains(string(audit), "SELECT") {
		l.Errorf("the audit log was not searched: %v", err)
	}
}

// stored are the files of the bucket below a folder.
func stored(t testing.TB, s *Store) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(filepath.Join(s.Dir, "lake"), func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && strings.HasPrefix(d.Name(), ".sgwtmp") {
			return fs.SkipDir
		}
		if err == nil && !d.IsDir() {
			out = append(out, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
