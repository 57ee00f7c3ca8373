//go:build e2e

package e2e

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// TestLongTextsOfManyRows: statements whose rows repeat or make long texts give their rows, or fail
// for the memory that they need; whatever they do, the server takes no more memory than a
// multiple of its limit.
func TestLongTextsOfManyRows(t *testing.T) {
	s, err := startLab(t.TempDir(), map[string]string{"engine": "memory-limit = \"128MiB\"\nrow-executor-bytes = \"32MiB\"\nthreads = 2\n"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Stop() }()
	const (
		bytes, needs = 2_000_000, 1041
		either       = -1 // a row, or that error
	)
	digits := "(SELECT 0 AS n" + strings.Repeat(" UNION ALL SELECT 1", 9) + ")"
	for i := 2; i < 10; i++ {
		digits = strings.Replace(digits, "SELECT 1", fmt.Sprintf("SELECT %d", i), 1)
	}
	numbers := "(SELECT 100 * a.n + 10 * b.n + c.n AS n FROM " + digits + " a, " + digits + " b, " + digits + " c)"
	wide := fmt.Sprintf("(SELECT repeat('a', %d) AS a)", bytes)
	many := func(format string) string {
		list := make([]string, 50)
		for i := range list {
			list[i] = fmt.Sprintf(format, i)
		}
		return strings.Join(list, ", ")
	}
	for _, c := range []struct {
		name, text string
		rows       int // that are read and have the text; 0: the statement fails
	}{
		{"cross join", "SELECT w.a, x.n FROM " + wide + " w CROSS JOIN " + numbers + " x", 20},
		{"left join", "SELECT w.a, x.n FROM " + numbers + " x LEFT JOIN " + wide + " w ON length(w.a) > x.n", 20},
		{"a filter that lets few rows pass", "SELECT w.a, x.n FROM " + wide + " w CROSS JOIN " + numbers + " x WHERE mod(x.n + length(w.a), 20) = 1", 20},
		{"union", "SELECT w.a, x.n FROM " + wide + " w CROSS JOIN " + numbers + " x UNION ALL SELECT w.a, x.n FROM " + wide + " w CROSS JOIN " + numbers + " x", either},
		{"recursion", fmt.Sprintf("WITH RECURSIVE r(a, n) AS (SELECT CAST(repeat('a', %d) AS CHAR), 1 UNION ALL SELECT CAST(concat(left(a, %d), 'a') AS CHAR), n + 1 FROM r WHERE n < 900) SELECT a, n FROM r", bytes, bytes-1), 20},
		{"many columns", "SELECT " + many("concat(w.a, x.n, %d)") + " FROM (SELECT repeat('a', 60000) AS a) w CROSS JOIN " + numbers + " x", 0},
		{"the row executor", "SELECT json_objectagg(x.n, w.a) FROM " + wide + " w CROSS JOIN " + numbers + " x", 0},
		{"a sort", "SELECT w.a, x.n FROM " + wide + " w CROSS JOIN " + numbers + " x ORDER BY mod(x.n, 7) LIMIT 600", 0},
		{"an aggregate", "SELECT length(json_arrayagg(concat(w.a, x.n))) FROM " + wide + " w CROSS JOIN " + numbers + " x", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
			defer cancel()
			db := s.Open("root")
			defer func() { _ = db.Close() }()
			rows, err := db.QueryContext(ctx, c.text)
			n := 0
			for err == nil && n < max(1, c.rows) {
				if !rows.Next() {
					if err = rows.Err(); err == nil {
						t.Fatalf("%d rows", n)
					}
					break
				}
				if c.rows > 0 {
					var a sql.RawBytes
					var k int
					if err = rows.Scan(&a, &k); err == nil && (len(a) != bytes || strings.Trim(string(a), "a") != "") {
						t.Fatalf("a text of %d bytes", len(a))
					}
				}
				n++
			}
			if rows != nil {
				cancel()
				_ = rows.Close()
			}
			var refused *mysql.MySQLError
			isRefused := errors.As(err, &refused) && refused.Number == needs
			if c.rows > 0 && err != nil || c.rows == 0 && !isRefused || c.rows == either && err != nil && !isRefused {
				t.Errorf("%d rows, %v", n, err)
			}
			healthy(t, s, "root")
		})
	}
	// Eight times the limit of DuckDB's memory; without bounds each of the statements takes
	// two gigabytes and more.
	if peak := s.PeakResident(t); peak > 1<<30 {
		t.Errorf("%d MiB were resident", peak>>20)
	} else {
		t.Logf("%d MiB were resident", peak>>20)
	}
}
