//go:build e2e

package faults

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"sqe/tests/lab"
	"sqe/tests/sqetest"
)

// catalogKind makes a catalog in dir, with the warehouse given, and returns its
// [[catalogs]] section.
type catalogKind struct {
	name    string
	section func(t *testing.T, dir, warehouse string) string
}

// catalogKinds are those that every test of many writers runs with.
var catalogKinds = []catalogKind{{"sqlite", sqlite}}

// sqlite is an embedded catalog. An empty file is one without tables.
func sqlite(t *testing.T, dir, warehouse string) string {
	t.Helper()
	path := filepath.Join(dir, "catalog.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("[[catalogs]]\nname = %q\nkind = \"sqlite\"\npath = %q\nwarehouse = %q\ndefault = true\n", lab.Catalog, path, warehouse)
}

// site is a catalog with the servers that serve it.
type site struct {
	*testing.T
	dir       string // of the catalog
	warehouse string
	configs   []string
	ports     []int
	servers   []*sqetest.Server
	pools     []*sql.DB // parallel to servers
}

// newSite starts this many servers of one catalog, in which there is the schema s.
func newSite(t *testing.T, kind catalogKind, servers int, settings map[string]string) *site {
	t.Helper()
	return newSiteWith(t, kind, servers, settings, nil)
}

// newSiteWith has prepare look at the folders before there is anything in them.
func newSiteWith(t *testing.T, kind catalogKind, servers int, settings map[string]string, prepare func(s *site)) *site {
	t.Helper()
	root := t.TempDir()
	s := &site{T: t, dir: filepath.Join(root, "catalog"), warehouse: filepath.Join(root, "warehouse")}
	s.must(os.Mkdir(s.dir, 0o700))
	s.must(os.Mkdir(s.warehouse, 0o700))
	if prepare != nil {
		prepare(s)
	}
	section := kind.section(s.T, s.dir, s.warehouse)
	policies := lab.PoliciesOf("s")
	for _, at := range [][2]string{{"", ""}, {"*", ""}, {"*", "*"}} {
		policies.Allow("root", at[0], at[1], "catalog-content-manage")
	}
	for i := range servers {
		dir := filepath.Join(root, fmt.Sprintf("server%d", i))
		s.must(os.MkdirAll(dir, 0o700))
		s.must(policies.Write(filepath.Join(dir, "policies")))
		s.must(os.WriteFile(filepath.Join(dir, "mask.key"), []byte(lab.HashKey+"\n"), 0o600))
		all := map[string]string{"catalogs": section, "engine": "memory-limit = \"256MiB\"\nthreads = 2"}
		for k, v := range settings {
			all[k] = v
		}
		config, port, err := sqetest.Config(dir, lab.Catalog, []string{"root"}, all)
		s.must(err)
		s.configs, s.ports = append(s.configs, config), append(s.ports, port)
		s.servers, s.pools = append(s.servers, nil), append(s.pools, nil)
		s.start(i)
	}
	s.Cleanup(func() {
		for i, server := range s.servers {
			_ = s.pools[i].Close()
			if err := server.Stop(); err != nil && server.Alive() {
				s.Errorf("%v\n%s", err, server.Output())
			}
		}
	})
	s.do("CREATE SCHEMA s")
	return s
}

// start starts a server that does not run.
func (s *site) start(i int) {
	s.Helper()
	server, err := sqetest.Serve(s.configs[i], s.ports[i])
	s.must(err)
	if s.pools[i] != nil {
		_ = s.pools[i].Close()
	}
	s.servers[i], s.pools[i] = server, server.Open("root")
	s.pools[i].SetMaxIdleConns(8)
}

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// exec runs a statement of a client of a server, and tells how many rows it changed.
func (s *site) exec(i int, text string) (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	res, err := s.pools[i].ExecContext(ctx, text)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// do runs statements that must succeed.
func (s *site) do(texts ...string) {
	s.Helper()
	for _, text := range texts {
		if _, err := s.exec(0, text); err != nil {
			s.Fatalf("%.200s: %v\n%s", text, err, s.log())
		}
	}
}

// see is the answer to a query, rows by lines and values by blanks.
func (s *site) see(query string) string {
	s.Helper()
	return s.seeAt(0, query)
}

func (s *site) seeAt(i int, query string) string {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	a := sqetest.Ask(ctx, s.pools[i], query)
	if a.Err != nil {
		s.Fatalf("%.200s: %v\n%s", query, a.Err, s.log())
	}
	lines := make([]string, len(a.Rows))
	for n, r := range a.Rows {
		lines[n] = strings.Join(r, " ")
	}
	return strings.Join(lines, "\n")
}

func (s *site) want(query, want string) {
	s.Helper()
	if got := s.see(query); got != want {
		s.Errorf("%s: %s, want %s", query, got, want)
	}
}

// log is the end of what the servers printed.
func (s *site) log() string {
	text := ""
	for _, server := range s.servers {
		out := server.Output()
		text += out[max(0, len(out)-4000):]
	}
	return text
}

// number is the MySQL number of an error, 0 for another error or none.
func number(err error) uint16 {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

// digits makes the table d of the numbers 0 to 9; numbers is a query of n (a power of
// ten) numbers from it, as the column i.
func (s *site) digits() {
	s.Helper()
	s.do("CREATE TABLE s.d (d BIGINT)", "INSERT INTO s.d VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)")
}

func numbers(n int) string {
	sum, from := "0", ""
	for k, at := 1, 0; k < n; k, at = k*10, at+1 {
		sum += fmt.Sprintf(" + %d * d%d.d", k, at)
		if at > 0 {
			from += ", "
		}
		from += fmt.Sprintf("s.d AS d%d", at)
	}
	return fmt.Sprintf("SELECT %s AS i FROM %s", sum, from)
}
