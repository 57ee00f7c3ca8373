//go:build e2e

package tpch

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"

	"sqe/tests/lab"
	"sqe/tests/sqetest"
)

var (
	scale = flag.Float64("scale", 0.01, "scale factor of the benchmarks")
	large = flag.Bool("large", false, "run TestLarge")
)

// tables is a server over the tables of one scale factor, and DuckDB alone over
// the same files.
type tables struct {
	scale  float64
	dir    string
	server *sqetest.Server
	duck   *sql.DB
}

// started are the servers by scale factor; TestMain stops them.
var started = struct {
	sync.Mutex
	dir string
	by  map[float64]*tables
}{by: map[float64]*tables{}}

func TestMain(m *testing.M) { os.Exit(runAll(m)) }

func runAll(m *testing.M) int {
	dir, err := os.MkdirTemp("", "sqe-tpch-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	started.dir = dir
	code := m.Run()
	for _, t := range started.by {
		if err := errors.Join(t.duck.Close(), t.server.Stop()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	return code
}

// serve starts a server over TPC-H at a scale factor, once.
func serve(t testing.TB, scale float64) *tables {
	t.Helper()
	started.Lock()
	defer started.Unlock()
	if s := started.by[scale]; s != nil {
		return s
	}
	s, err := startTables(filepath.Join(started.dir, fmt.Sprint("sf", scale)), scale, map[string]string{"server": "require-tls = false\n"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	started.by[scale] = s
	return s
}

// startTables loads the tables into dir and serves them; prepare, where it is
// not nil, runs in between.
func startTables(dir string, scale float64, settings map[string]string, prepare func(context.Context) error) (*tables, error) {
	ctx := context.Background()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	err := errors.Join(
		Load(ctx, dir, lab.Catalog, scale),
		policies().Write(filepath.Join(dir, "policies")),
		os.WriteFile(filepath.Join(dir, "mask.key"), []byte("the key of the benchmark\n"), 0o600),
	)
	if err != nil {
		return nil, err
	}
	if prepare != nil {
		if err := prepare(ctx); err != nil {
			return nil, err
		}
	}
	config, port, err := sqetest.Config(dir, lab.Catalog, []string{"root", "pat"}, settings)
	if err != nil {
		return nil, err
	}
	server, err := sqetest.Serve(config, port)
	if err != nil {
		return nil, err
	}
	data, err := Generate(ctx, scale)
	if err != nil {
		return nil, err
	}
	duck, err := openDuck(ctx, data)
	if err != nil {
		return nil, err
	}
	return &tables{scale: scale, dir: dir, server: server, duck: duck}, nil
}

// open connects as a user, in the database of the tables.
func (s *tables) open(t testing.TB, user string, options ...sqetest.Option) *sql.DB {
	t.Helper()
	db := s.server.Open(user, append([]sqetest.Option{sqetest.Database(Namespace)}, options...)...)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// withoutTLS is a connection in the clear, which the configuration of these
// servers allows.
func withoutTLS(c *mysql.Config) { c.TLS = nil }

// What pat is under: a filter on orders and masks on three columns. byHand is the
// same typed into the query by root.
const (
	ordersFilter = "o_orderpriority <> '5-LOW'"
	nameMask     = "concat('c:', substr({col}, 10, 9))"
	supplierMask = "concat('s:', substr({col}, 10, 9))"
)

func policies() *lab.Policies {
	p := lab.PoliciesOf(Namespace, Tables...)
	p.Allow("root", Namespace, "", "table-create")
	p.Allow("root", Namespace, "*", "table-data-write", "table-drop", "table-properties-set", "table-schema-add", "table-schema-set-current",
		"table-partition-spec-add", "table-sort-order-add", "table-sort-order-set-default", "table-properties-remove", "table-snapshot-ref-remove")
	p.Filter("orders", ordersFilter)
	p.Mask("customer", "c_name", "CUSTOM", nameMask)
	p.Mask("customer", "c_address", "MASK_NULL", "")
	p.Mask("supplier", "s_name", "CUSTOM", supplierMask)
	return p
}

var byHandTables = map[string]string{
	"orders": "(SELECT * FROM orders WHERE " + ordersFilter + ")",
	"customer": "(SELECT c_custkey, " + strings.ReplaceAll(nameMask, "{col}", "c_name") + " AS c_name, CAST(NULL AS CHAR) AS c_address," +
		" c_nationkey, c_phone, c_acctbal, c_mktsegment, c_comment FROM customer)",
	"supplier": "(SELECT s_suppkey, " + strings.ReplaceAll(supplierMask, "{col}", "s_name") + " AS s_name, s_address, s_nationkey, s_phone," +
		" s_acctbal, s_comment FROM supplier)",
}

// A table name stands between a comma, "from" or "join" and whatever follows.
var tableName = regexp.MustCompile(`(?m)(from |, |join )(orders|customer|supplier)\b( [a-z]+[0-9])?`)

// byHand writes the policies of pat into a query.
func byHand(query string) string {
	return tableName.ReplaceAllStringFunc(query, func(m string) string {
		p := tableName.FindStringSubmatch(m)
		alias := p[2]
		if p[3] != "" {
			alias = strings.TrimSpace(p[3])
		}
		return p[1] + byHandTables[p[2]] + " " + alias
	})
}
