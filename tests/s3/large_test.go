//go:build e2e

package s3

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestLarge: how much of a table is read, and how long that takes beside the same table
// on the disk. What is asserted are bytes and requests; times are printed.
func TestLarge(t *testing.T) {
	store := StartStore(t)
	f := newFront(t, store)
	l := newLake(t, f.address, "", "\n[object-cache]\nsize = \"256MiB\"\n")
	l.do("CREATE SCHEMA ns", "CREATE SCHEMA disk.ns", "CREATE TABLE ns.d (i BIGINT)", "INSERT INTO ns.d VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)")
	var joins, sum []string
	for i := range 6 {
		joins, sum = append(joins, fmt.Sprintf("ns.d d%d", i)), append(sum, fmt.Sprintf("d%d.i * %d", i, pow10(i)))
	}
	const columns = "id BIGINT, a BIGINT, b DOUBLE, s VARCHAR(100), wide VARCHAR(200), n INT, d DATE, at DATETIME(6)"
	for _, at := range []string{"", "disk."} {
		l.do("CREATE TABLE "+at+"ns.big ("+columns+") TBLPROPERTIES ('write.parquet.row-group-limit' = '100000')",
			"INSERT INTO "+at+"ns.big SELECT id, id % 1000, id / 3, concat('s', id % 50), md5(id), CASE WHEN id BETWEEN 200000 AND 799999 THEN NULL ELSE id END, date_add('2024-01-01', INTERVAL id DIV 1000 DAY), date_add('2024-01-01 00:00:00', INTERVAL id SECOND) FROM (SELECT "+strings.Join(sum, " + ")+" AS id FROM "+strings.Join(joins, ", ")+") x ORDER BY id")
	}
	var size int64
	for _, p := range stored(t, store) {
		if info, err := os.Stat(p); err == nil && strings.Contains(p, "/big-") && strings.HasSuffix(p, ".parquet") {
			size += info.Size()
		}
	}
	// run gives the time of a query, and the bytes and requests that it took.
	run := func(at, query string) (d time.Duration, bytes, requests int64) {
		b, r := f.bytes.Load(), f.seen.Load()
		start := time.Now()
		l.do(strings.ReplaceAll(query, "@", at))
		return time.Since(start), f.bytes.Load() - b, f.seen.Load() - r
	}
	cached := filepath.Join(l.dir, "object-cache")
	for _, q := range []struct {
		query string
		most  float64 // part of the table that may be read
	}{
		{"SELECT sum(a) FROM @ns.big", 0.15},
		{"SELECT a, count(*), sum(b) FROM @ns.big GROUP BY a ORDER BY a LIMIT 10", 0.45},
		{"SELECT max(wide), max(s), sum(id), sum(a), sum(b) FROM @ns.big", 1.2},
		{"SELECT max(wide) FROM @ns.big WHERE id BETWEEN 250000 AND 250100", 0.2},
	} {
		run("disk.", q.query) // once, to have code and files in memory
		disk, _, _ := run("disk.", q.query)
		cold, bytes, requests := run("", q.query)
		warm, again, _ := run("", q.query)
		t.Logf("%-75s disk %v, store %v (%.1fx, %d KiB of %d, %d requests), cached %v (%.1fx, %d KiB)", q.query, disk.Round(time.Millisecond),
			cold.Round(time.Millisecond), cold.Seconds()/disk.Seconds(), bytes>>10, size>>10, requests, warm.Round(time.Millisecond), warm.Seconds()/disk.Seconds(), again>>10)
		if float64(bytes) > q.most*float64(size)+200<<10 {
			t.Errorf("%s reads %d of %d bytes", q.query, bytes, size)
		}
		if again > 300<<10 {
			t.Errorf("%s reads %d bytes with everything in the cache", q.query, again)
		}
	}
	// Row groups that are left out are those that hold nothing: the disk is read by
	// another reader.
	for _, where := range []string{
		"id = 123456", "id IN (5, 999999, 1000000)", "id < 3", "id > 999990", "id <> 5 AND id < 10", "NOT (id >= 7)", "s = 's7' AND id < 100000", "s > 's48' AND id > 900000",
		"wide = md5(777777)", "n IS NULL AND id < 250010", "n IS NOT NULL AND id > 799999", "n = 300000", "n < 0", "n IS NULL", "a IS NULL", "d = '2024-01-02'", "d < '2023-12-31'", "id = 5 OR d > '2026-09-20'",
		"at >= '2024-01-01 00:16:40' AND id < 1010", "b > 333330.5", "id BETWEEN 99999 AND 100001", "s LIKE 's4%' AND id BETWEEN 10 AND 60", "coalesce(n, -1) = -1 AND id < 200100",
	} {
		query := "SELECT count(*), sum(id), min(id), max(wide), max(n), min(d), max(at) FROM @ns.big WHERE " + where
		a, b := l.ask(strings.ReplaceAll(query, "@", "")), l.ask(strings.ReplaceAll(query, "@", "disk."))
		if a.Err != nil || b.Err != nil || fmt.Sprint(a.Rows) != fmt.Sprint(b.Rows) {
			t.Errorf("%s:\n%v %v\n%v %v", where, a.Rows, a.Err, b.Rows, b.Err)
		}
	}
	// The cache is for the server alone, and within its size.
	list, err := os.ReadDir(cached)
	l.must(err)
	if len(list) < 5 {
		t.Errorf("%d files in the cache", len(list))
	}
	for _, e := range list {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v (%v)", e.Name(), info.Mode(), err)
		}
	}
	if info, err := os.Stat(cached); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the cache has mode %v (%v)", info.Mode(), err)
	}
	// It survives a restart, and is right after one that was not orderly.
	l.must(l.server.Crash())
	_ = l.client.Close()
	for _, e := range list[:3] {
		if e.Name() != "lock" {
			l.must(os.WriteFile(filepath.Join(cached, e.Name()), []byte("half"), 0o600))
		}
	}
	l.start()
	l.wants("SELECT sum(a) FROM ns.big", "499500000")
	// A store that goes away in the middle of a query: an error, and never the rows that
	// came until then as if they were all.
	l.stop()
	l.must(os.RemoveAll(cached))
	l.start()
	for _, after := range []int64{2, 4, 8} {
		var n atomic.Int64
		f.fail(func(w http.ResponseWriter, r *http.Request) bool {
			if !data(r) || n.Add(1) <= after {
				return false
			}
			panic(http.ErrAbortHandler)
		})
		for _, query := range []string{"SELECT max(wide), sum(b), max(s), sum(id) FROM ns.big", "SELECT * FROM ns.big"} {
			n.Store(0)
			l.fails(query, "does not answer")
		}
		f.fail(nil)
		l.must(os.RemoveAll(cached)) // while it runs: that is missing, and no more
		l.wants("SELECT count(*) FROM ns.big WHERE wide <> ''", "1000000")
	}
}

func pow10(n int) int {
	out := 1
	for range n {
		out *= 10
	}
	return out
}
