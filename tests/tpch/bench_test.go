//go:build e2e

package tpch

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sqe/tests/lab"
	"sqe/tests/sqetest"
)

// best is the shortest of n runs, after one that warms up. Short runs say most
// about the program and least about the machine.
func best(b *testing.B, n int, f func() error) time.Duration {
	b.Helper()
	shortest := time.Duration(math.MaxInt64)
	for i := range n + 1 {
		start := time.Now()
		if err := f(); err != nil {
			b.Fatal(err)
		}
		if i > 0 {
			shortest = min(shortest, time.Since(start))
		}
	}
	return shortest
}

// versus is the best of f and of g, run turn by turn so that what else the machine
// does falls on both.
func versus(b *testing.B, n int, f, g func() error) (time.Duration, time.Duration) {
	b.Helper()
	shortest := [2]time.Duration{math.MaxInt64, math.MaxInt64}
	for i := range n + 1 {
		for j, run := range []func() error{f, g} {
			start := time.Now()
			if err := run(); err != nil {
				b.Fatal(err)
			}
			if i > 0 {
				shortest[j] = min(shortest[j], time.Since(start))
			}
		}
	}
	return shortest[0], shortest[1]
}

// drain reads every row as the driver hands it out, without making text of it.
func drain(ctx context.Context, db *sql.DB, text string) (int, error) {
	rows, err := db.QueryContext(ctx, text)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return 0, err
	}
	cells := make([]sql.RawBytes, len(columns))
	targets := make([]any, len(columns))
	for i := range cells {
		targets[i] = &cells[i]
	}
	n := 0
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return 0, err
		}
		n++
	}
	return n, rows.Err()
}

// ratios collects pairs of times and prints them as a table.
type ratios struct {
	lines []string
	logs  float64
	worst float64
	where string
	n     int
}

func (r *ratios) add(name string, a, b time.Duration) {
	ratio := a.Seconds() / b.Seconds()
	r.lines = append(r.lines, fmt.Sprintf("| %s | %.1f | %.1f | %.2f |", name, ms(a), ms(b), ratio))
	r.logs += math.Log(ratio)
	r.n++
	if ratio > r.worst {
		r.worst, r.where = ratio, name
	}
}

func (r *ratios) print(b *testing.B, title, first, second string) {
	mean := math.Exp(r.logs / float64(r.n))
	fmt.Printf("\n%s\n\n| query | %s, ms | %s, ms | ratio |\n|---|---|---|---|\n%s\n\ngeometric mean %.2f, highest %.2f (%s)\n\n",
		title, first, second, strings.Join(r.lines, "\n"), mean, r.worst, r.where)
	b.ReportMetric(mean, "geomean-ratio")
	b.ReportMetric(r.worst, "max-ratio")
	b.ReportMetric(0, "ns/op")
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// BenchmarkQueries: the 22 queries through the protocol against DuckDB alone, on
// the same files, turn by turn.
func BenchmarkQueries(b *testing.B) {
	s := serve(b, *scale)
	db := s.open(b, "root")
	var r ratios
	for n := 1; n <= 22; n++ {
		text, err := Query(n, *scale)
		if err != nil {
			b.Fatal(err)
		}
		ours, alone := versus(b, 5,
			func() error { _, err := fetch(b.Context(), db, text); return err },
			func() error { _, err := fetch(b.Context(), s.duck, text); return err })
		r.add(fmt.Sprintf("Q%d", n), ours, alone)
	}
	r.print(b, fmt.Sprintf("TPC-H SF%g, SQE through the MySQL protocol against DuckDB alone", *scale), "SQE", "DuckDB")
}

// BenchmarkPolicies: the 22 queries under policies against the same filter and
// masks typed by hand.
func BenchmarkPolicies(b *testing.B) {
	s := serve(b, *scale)
	pat, root := s.open(b, "pat"), s.open(b, "root")
	var r ratios
	for n := 1; n <= 22; n++ {
		text, err := Query(n, *scale)
		if err != nil {
			b.Fatal(err)
		}
		hand := byHand(text)
		governed, typed := versus(b, 5,
			func() error { _, err := fetch(b.Context(), pat, text); return err },
			func() error { _, err := fetch(b.Context(), root, hand); return err })
		r.add(fmt.Sprintf("Q%d", n), governed, typed)
	}
	r.print(b, fmt.Sprintf("TPC-H SF%g, policies against the same typed by hand", *scale), "policies", "by hand")
}

// latencies runs a statement n times on each of some connections and returns all
// times, sorted, and how long everything took.
func latencies(b *testing.B, db *sql.DB, connections, n int, text string) ([]time.Duration, time.Duration) {
	b.Helper()
	all := make([][]time.Duration, connections)
	errs := make([]error, connections)
	var wg sync.WaitGroup
	ready, start := sync.WaitGroup{}, make(chan struct{})
	for i := range connections {
		wg.Add(1)
		ready.Add(1)
		go func() {
			defer wg.Done()
			conn, err := db.Conn(b.Context())
			if err == nil {
				defer conn.Close()
				a := sqetest.Ask(b.Context(), conn, text) // warm
				err = a.Err
			}
			errs[i] = err
			ready.Done()
			<-start
			for range n {
				if errs[i] != nil {
					return
				}
				t := time.Now()
				var x any
				errs[i] = conn.QueryRowContext(b.Context(), text).Scan(&x)
				all[i] = append(all[i], time.Since(t))
			}
		}()
	}
	ready.Wait()
	began := time.Now()
	close(start)
	wg.Wait()
	took := time.Since(began)
	for _, err := range errs {
		if err != nil {
			b.Fatal(err)
		}
	}
	flat := slices.Concat(all...)
	slices.Sort(flat)
	return flat, took
}

// repeats scales the number of repetitions: a run at a tiny scale factor only
// shows that the benchmark works.
func repeats(n int) int {
	if *scale < 0.1 {
		return max(1, n/50)
	}
	return n
}

func BenchmarkLatency(b *testing.B) {
	s := serve(b, *scale)
	for _, c := range []struct {
		name, user, text string
		connections, n   int
	}{
		{"SELECT 1", "root", "SELECT 1", 1, 5000},
		{"SELECT 1, 16 connections", "root", "SELECT 1", 16, 2000},
		{"point query, governed", "pat", "SELECT s_name FROM supplier WHERE s_suppkey = 7", 1, 1000},
		{"point query on 25 rows", "pat", "SELECT n_name FROM nation WHERE n_nationkey = 7", 1, 1000},
		{"point query, governed, 16 connections", "pat", "SELECT s_name FROM supplier WHERE s_suppkey = 7", 16, 300},
		{"point query on 25 rows, 16 connections", "pat", "SELECT n_name FROM nation WHERE n_nationkey = 7", 16, 300},
	} {
		b.Run(strings.ReplaceAll(c.name, ", ", "/"), func(b *testing.B) {
			all, took := latencies(b, s.open(b, c.user), c.connections, repeats(c.n), c.text)
			p50, p99 := all[len(all)/2], all[len(all)*99/100]
			fmt.Printf("%-40s p50 %.2f ms, p99 %.2f ms, %.0f a second\n", c.name, ms(p50), ms(p99), float64(len(all))/took.Seconds())
			b.ReportMetric(ms(p50), "p50-ms")
			b.ReportMetric(ms(p99), "p99-ms")
			b.ReportMetric(float64(len(all))/took.Seconds(), "queries/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkStream: a million rows of eight columns over the wire.
func BenchmarkStream(b *testing.B) {
	s := serve(b, *scale)
	const rows = 1_000_000
	text := fmt.Sprintf("SELECT l_orderkey, l_partkey, l_linenumber, l_quantity, l_extendedprice, l_shipdate, l_shipmode, l_comment FROM lineitem LIMIT %d", rows)
	for _, c := range []struct {
		name    string
		options []sqetest.Option
	}{{"TLS", nil}, {"in the clear", []sqetest.Option{withoutTLS}}} {
		b.Run(c.name, func(b *testing.B) {
			db := s.open(b, "root", c.options...)
			n := 0
			took := best(b, 3, func() (err error) { n, err = drain(b.Context(), db, text); return err })
			fmt.Printf("%-40s %d rows in %.2f s, %.2f million rows a second\n", "stream, "+c.name, n, took.Seconds(), float64(n)/took.Seconds()/1e6)
			b.ReportMetric(float64(n)/took.Seconds(), "rows/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// TestLarge: GROUP BY over lineitem with a memory limit of 1 GiB stays under
// 2 GiB resident, from clean files and from files with deletes.
func TestLarge(t *testing.T) {
	if !*large {
		return // make bench-large
	}
	for _, deleted := range []bool{false, true} {
		largeGroups(t, deleted)
	}
}

func largeGroups(t *testing.T, deleted bool) {
	dir := t.TempDir()
	s, err := startTables(dir, *scale, map[string]string{"engine": "memory-limit = \"1GiB\"\n"}, func(ctx context.Context) error {
		if deleted {
			return DeleteDay(ctx, dir, lab.Catalog, "1995-06-17")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.server.Stop(); err != nil {
			t.Error(err)
		}
		_ = s.duck.Close()
	}()
	db := s.open(t, "root")
	for _, text := range []string{
		"SELECT l_returnflag, l_linestatus, sum(l_quantity), count(*) FROM lineitem GROUP BY l_returnflag, l_linestatus",
		"SELECT count(*) FROM (SELECT l_orderkey, sum(l_extendedprice) AS s, max(l_comment) AS c FROM lineitem GROUP BY l_orderkey) g WHERE s > 0",
		"SELECT l_partkey, l_suppkey, count(*) AS n, sum(l_quantity) FROM lineitem GROUP BY l_partkey, l_suppkey ORDER BY n DESC, l_partkey, l_suppkey LIMIT 10",
	} {
		start := time.Now()
		n, err := drain(t.Context(), db, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		peak := s.server.PeakResident(t)
		fmt.Printf("deletes: %t, %d rows in %.1f s, peak %.2f GiB resident: %s\n", deleted, n, time.Since(start).Seconds(), float64(peak)/(1<<30), text)
		if peak > 2<<30 {
			t.Errorf("%.2f GiB resident", float64(peak)/(1<<30))
		}
	}
}
