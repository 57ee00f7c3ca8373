//go:build e2e

package tpch

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	duckdb "github.com/duckdb/duckdb-go/v2"
)

// openDuck opens DuckDB alone, with a view on the Parquet file of each table.
func openDuck(ctx context.Context, data string) (*sql.DB, error) {
	db, err := sql.Open("duckdb", "")
	if err != nil {
		return nil, err
	}
	for _, t := range Tables {
		if _, err := db.ExecContext(ctx, fmt.Sprintf("CREATE VIEW %s AS SELECT * FROM read_parquet('%s')", t, filepath.Join(data, t+".parquet"))); err != nil {
			return nil, fmt.Errorf("%s: %w", t, err)
		}
	}
	return db, nil
}

// fetch runs a query and reads every row as text.
func fetch(ctx context.Context, q interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}, text string,
) ([][]string, error) {
	rows, err := q.QueryContext(ctx, text)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values := make([]any, len(columns))
	targets := make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	var out [][]string
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		row := make([]string, len(values))
		for i, v := range values {
			row[i] = text1(v)
		}
		out = append(out, row)
	}
	return out, rows.Err()
}

func text1(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case []byte:
		return string(v)
	case time.Time:
		return strings.TrimSuffix(v.Format("2006-01-02 15:04:05"), " 00:00:00")
	case duckdb.Decimal:
		return v.String()
	default:
		return fmt.Sprint(v)
	}
}

// difference says where two results differ, "" when they are equal. The order of
// rows that the query leaves open is not compared; numbers may differ by the
// rounding of MySQL's AVG and division (four digits more than the operand has).
func difference(got, want [][]string) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d rows, want %d", len(got), len(want))
	}
	got, want = ordered(got), ordered(want)
	for i := range got {
		if len(got[i]) != len(want[i]) {
			return fmt.Sprintf("row %d has %d columns, want %d", i, len(got[i]), len(want[i]))
		}
		for j := range got[i] {
			if !same(got[i][j], want[i][j]) {
				return fmt.Sprintf("row %d column %d is %q, want %q\n got: %v\nwant: %v", i, j, got[i][j], want[i][j], got[i], want[i])
			}
		}
	}
	return ""
}

// ordered sorts rows by their cells that are no fractions, which both sides write
// alike.
func ordered(rows [][]string) [][]string {
	key := func(r []string) string {
		var b strings.Builder
		for _, c := range r {
			if _, err := strconv.ParseFloat(c, 64); err == nil && strings.Contains(c, ".") {
				continue
			}
			b.WriteString(c + "\x00")
		}
		return b.String()
	}
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b []string) int { return strings.Compare(key(a), key(b)) })
	return rows
}

func same(a, b string) bool {
	if a == b {
		return true
	}
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err1 == nil && err2 == nil && math.Abs(x-y) <= 1e-6+1e-9*math.Abs(y)
}
