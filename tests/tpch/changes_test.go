//go:build e2e

package tpch

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// BenchmarkChanges compares statements that change rows, typed by a client, with each
// other and with DuckDB alone.
func BenchmarkChanges(b *testing.B) {
	ctx := b.Context()
	s := serve(b, *scale)
	db := s.open(b, "root")
	out := filepath.Join(b.TempDir(), "copy.parquet")
	exec := func(text string) { b.Helper(); run(ctx, b, db, text) }
	copies := func(name, mode string) {
		b.Helper()
		exec("DROP TABLE IF EXISTS " + name + " PURGE")
		exec("CREATE TABLE " + name + " LIKE lineitem")
		exec("ALTER TABLE " + name + " SET TBLPROPERTIES ('write.delete.mode' = '" + mode + "', 'write.update.mode' = '" + mode + "', 'write.merge.mode' = '" + mode + "')")
		exec("INSERT INTO " + name + " SELECT * FROM lineitem")
	}
	for range b.N {
		copies("li", "copy-on-write")
		insert, copied := versus(b, 3, func() error {
			if err := try(ctx, db, "TRUNCATE TABLE li"); err != nil {
				return err
			}
			return try(ctx, db, "INSERT INTO li SELECT * FROM lineitem")
		}, func() error {
			return try(ctx, s.duck, "COPY lineitem TO '"+out+"' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 1048576)")
		})
		report(b, "INSERT SELECT of lineitem / COPY", insert, copied)

		exec("CREATE OR REPLACE TABLE one (id BIGINT, name VARCHAR(20), at DATETIME)")
		var times []time.Duration
		for i := range 101 {
			start := time.Now()
			exec(fmt.Sprintf("INSERT INTO one VALUES (%d, 'x', '2026-01-01 00:00:00')", i))
			times = append(times, time.Since(start))
		}
		slices.Sort(times)
		fmt.Printf("single INSERT: p50 %s, p99 %s\n", times[50], times[99])
		b.ReportMetric(ms(times[50]), "insert-p50-ms")

		copies("mor", "merge-on-read")
		var deletes [2]time.Duration
		for i, name := range []string{"mor", "li"} {
			start := time.Now()
			exec("DELETE FROM " + name + " WHERE l_orderkey % 100 = 3")
			deletes[i] = time.Since(start)
		}
		report(b, "DELETE of 1 %: merge-on-read / copy-on-write", deletes[0], deletes[1])

		copies("mor", "merge-on-read")
		copies("li", "copy-on-write")
		exec("CREATE OR REPLACE TABLE news AS SELECT l_orderkey, l_linenumber, l_quantity + 1 AS q, concat('new ', l_comment) AS c FROM lineitem WHERE l_orderkey % 60 = 0 " +
			"UNION ALL SELECT -l_orderkey, l_linenumber, l_quantity, l_comment FROM lineitem WHERE l_orderkey % 6000 = 0")
		join := "SELECT t.*, s.q, s.c FROM news s LEFT JOIN %s t ON t.l_orderkey = s.l_orderkey AND t.l_linenumber = s.l_linenumber"
		merge := "MERGE INTO %s t USING news s ON t.l_orderkey = s.l_orderkey AND t.l_linenumber = s.l_linenumber " +
			"WHEN MATCHED THEN UPDATE SET l_quantity = s.q, l_comment = s.c WHEN NOT MATCHED THEN INSERT (l_orderkey, l_linenumber, l_quantity, l_comment, " +
			"l_partkey, l_suppkey, l_extendedprice, l_discount, l_tax, l_returnflag, l_linestatus, l_shipdate, l_commitdate, l_receiptdate, l_shipinstruct, l_shipmode) " +
			"VALUES (s.l_orderkey, s.l_linenumber, s.q, s.c, 1, 1, 1, 0, 0, 'N', 'O', '1998-01-01', '1998-01-01', '1998-01-01', 'NONE', 'AIR')"
		read := best(b, 3, func() error { _, err := drain(ctx, db, fmt.Sprintf(join, "mor")); return err })
		start := time.Now()
		exec(fmt.Sprintf(merge, "mor"))
		report(b, "MERGE: merge-on-read / SELECT of the join", time.Since(start), read)
		result := "CREATE OR REPLACE TABLE merged AS SELECT t.l_orderkey, t.l_partkey, t.l_suppkey, t.l_linenumber, coalesce(s.q, t.l_quantity) AS l_quantity, t.l_extendedprice, t.l_discount, t.l_tax, " +
			"t.l_returnflag, t.l_linestatus, t.l_shipdate, t.l_commitdate, t.l_receiptdate, t.l_shipinstruct, t.l_shipmode, coalesce(s.c, t.l_comment) AS l_comment " +
			"FROM li t LEFT JOIN news s ON t.l_orderkey = s.l_orderkey AND t.l_linenumber = s.l_linenumber"
		created := best(b, 1, func() error { return try(ctx, db, result) })
		start = time.Now()
		exec(fmt.Sprintf(merge, "li"))
		report(b, "MERGE: copy-on-write / CREATE TABLE AS of the result", time.Since(start), created)
		for _, name := range []string{"li", "mor", "news", "merged", "one"} {
			exec("DROP TABLE " + name + " PURGE")
		}
	}
}

func try(ctx context.Context, db *sql.DB, text string) error {
	_, err := db.ExecContext(ctx, text)
	return err
}

func run(ctx context.Context, b *testing.B, db *sql.DB, text string) {
	b.Helper()
	if err := try(ctx, db, text); err != nil {
		b.Fatalf("%s: %v", text, err)
	}
}

func report(b *testing.B, what string, x, y time.Duration) {
	b.Helper()
	fmt.Printf("%s: %.0f ms / %.0f ms = %.3f\n", what, ms(x), ms(y), x.Seconds()/y.Seconds())
}
