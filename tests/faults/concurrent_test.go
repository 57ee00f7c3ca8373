//go:build e2e

package faults

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// writers is how many clients write at once.
const writers = 8

// conflict is the number of a conflict, after which clients try again.
const conflict = 1213

// modes are the ways of a table to change rows.
var modes = []struct{ name, properties string }{
	{"copy_on_write", "'format-version' = '2'"},
	{"merge_on_read", "'format-version' = '2', 'write.update.mode' = 'merge-on-read', 'write.delete.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read'"},
	{"vectors", "'format-version' = '3', 'write.update.mode' = 'merge-on-read', 'write.delete.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read'"},
}

// crowd has eight clients write at once, every second one at another server.
type crowd struct {
	*site
	conflicts atomic.Int64
}

// each runs work for every writer at the same time.
func (c *crowd) each(work func(w int)) {
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() { work(w) })
	}
	all.Wait()
}

// write runs a statement until it succeeds, as clients do that meet a conflict, and
// tells how many rows it changed. Nothing but a conflict may happen.
func (c *crowd) write(w int, text string) int64 {
	deadline := time.Now().Add(5 * time.Minute)
	for {
		n, err := c.exec(w%len(c.servers), text)
		if err == nil {
			return n
		}
		if number(err) != conflict || !strings.Contains(err.Error(), "try again") || strings.Contains(err.Error(), c.dir) {
			c.Errorf("%s: %v\n%s", text, err, c.log())
			return 0
		}
		if time.Now().After(deadline) {
			c.Errorf("%s: nothing but conflicts in five minutes", text)
			return 0
		}
		c.conflicts.Add(1)
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
	}
}

// TestWriters: eight clients of two servers write one table at once. Every statement
// commits or ends with a conflict, no change is lost and none is made twice.
func TestWriters(t *testing.T) {
	for _, kind := range catalogKinds {
		t.Run(kind.name, func(t *testing.T) {
			c := &crowd{site: newSite(t, kind, 2, nil)}
			run := func(name string, test func(c *crowd)) {
				t.Run(name, func(t *testing.T) {
					start := time.Now()
					part := *c.site
					part.T = t
					of := &crowd{site: &part}
					test(of)
					t.Logf("%d conflicts in %s", of.conflicts.Load(), time.Since(start).Round(time.Millisecond))
				})
			}
			run("inserts", inserts)
			for _, m := range modes {
				run("counter_"+m.name, func(c *crowd) { counter(c, m.name, m.properties) })
				run("moves_"+m.name, func(c *crowd) { moves(c, m.name, m.properties) })
				run("upserts_"+m.name, func(c *crowd) { upserts(c, m.name, m.properties) })
			}
			run("deletes", deletes)
			run("overwrites", overwrites)
			run("creates", creates)
		})
	}
}

// inserts: what was inserted is there, once.
func inserts(c *crowd) {
	const each = 6
	c.do("CREATE TABLE s.inserts (w INT, k INT, n INT) PARTITIONED BY (BUCKET(2, w))")
	c.each(func(w int) {
		for k := range each {
			if n := c.write(w, fmt.Sprintf("INSERT INTO s.inserts VALUES (%d, %d, 0), (%d, %d, 1), (%d, %d, 2)", w, k, w, k, w, k)); n != 3 {
				c.Errorf("an INSERT of 3 rows added %d", n)
			}
		}
	})
	for i := range c.servers {
		if got, want := c.seeAt(i, "SELECT COUNT(*), COUNT(DISTINCT w, k, n) FROM s.inserts"), fmt.Sprintf("%d %[1]d", writers*each*3); got != want {
			c.Errorf("server %d: %s, want %s", i, got, want)
		}
	}
	// Each statement is a snapshot of its own.
	c.want("SELECT COUNT(*) FROM s.`inserts$snapshots`", fmt.Sprint(writers*each))
	c.clean("inserts")
}

// counter: no addition to a counter is lost.
func counter(c *crowd, mode, properties string) {
	const each = 4
	name := "counter_" + mode
	c.do(fmt.Sprintf("CREATE TABLE s.%s (id INT, n BIGINT) TBLPROPERTIES (%s)", name, properties))
	c.do(fmt.Sprintf("INSERT INTO s.%s VALUES (1, 0), (2, 0), (3, 100)", name))
	c.each(func(w int) {
		for range each {
			if n := c.write(w, fmt.Sprintf("UPDATE s.%s SET n = n + 1 WHERE id = %d", name, 1+w%2)); n != 1 {
				c.Errorf("an UPDATE of a row changed %d", n)
			}
		}
	})
	c.want(fmt.Sprintf("SELECT id, n FROM s.%s ORDER BY id", name), fmt.Sprintf("1 %d\n2 %[1]d\n3 100", writers/2*each))
	c.clean(name)
}

// moves: each client deletes its row and inserts the next one.
func moves(c *crowd, mode, properties string) {
	const each = 3
	name := "moves_" + mode
	c.do(fmt.Sprintf("CREATE TABLE s.%s (w INT, step INT) TBLPROPERTIES (%s)", name, properties))
	for w := range writers {
		c.do(fmt.Sprintf("INSERT INTO s.%s VALUES (%d, 0)", name, w))
	}
	// All lie in one file, so that deletes of different rows meet.
	c.do(fmt.Sprintf("CALL system.rewrite_data_files('s.%s')", name))
	c.each(func(w int) {
		for k := range each {
			if n := c.write(w, fmt.Sprintf("DELETE FROM s.%s WHERE w = %d AND step = %d", name, w, k)); n != 1 {
				c.Errorf("a DELETE of a row removed %d", n)
			}
			c.write(w, fmt.Sprintf("INSERT INTO s.%s VALUES (%d, %d)", name, w, k+1))
		}
	})
	c.want(fmt.Sprintf("SELECT COUNT(*), COUNT(DISTINCT w), MIN(step), MAX(step) FROM s.%s", name), fmt.Sprintf("%d %[1]d %d %[2]d", writers, each))
	c.clean(name)
}

// upserts: a key that is not there is inserted by one of those who look for it, and
// changed by the others.
func upserts(c *crowd, mode, properties string) {
	const each, keys = 3, 3
	name := "upserts_" + mode
	c.do(fmt.Sprintf("CREATE TABLE s.%s (k INT, n BIGINT) TBLPROPERTIES (%s)", name, properties))
	c.each(func(w int) {
		for k := range each {
			// The same keys for all, in the same order: they meet on each new one.
			c.write(w, fmt.Sprintf("MERGE INTO s.%s AS t USING (SELECT %d AS k) AS u ON t.k = u.k WHEN MATCHED THEN UPDATE SET n = t.n + 1 WHEN NOT MATCHED THEN INSERT (k, n) VALUES (u.k, 1)", name, k%keys))
		}
	})
	c.want(fmt.Sprintf("SELECT COUNT(*), COUNT(DISTINCT k), SUM(n) FROM s.%s", name), fmt.Sprintf("%d %[1]d %d", keys, writers*each))
	c.clean(name)
}

// deletes: of all who delete a row, one is told that it did.
func deletes(c *crowd) {
	const rows = 6
	c.do("CREATE TABLE s.deletes (id INT) TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
	for id := range rows + 1 {
		c.do(fmt.Sprintf("INSERT INTO s.deletes VALUES (%d)", id))
	}
	var gone atomic.Int64
	c.each(func(w int) {
		for k := range rows {
			gone.Add(c.write(w, fmt.Sprintf("DELETE FROM s.deletes WHERE id = %d", (k+w)%rows)))
		}
	})
	if gone.Load() != rows {
		c.Errorf("%d rows were deleted, by those who deleted %d", rows, gone.Load())
	}
	c.want("SELECT id FROM s.deletes", fmt.Sprint(rows))
	c.clean("deletes")
}

// overwrites: what one client replaces is never mixed with what another one does.
func overwrites(c *crowd) {
	c.do("CREATE TABLE s.overwrites (w INT, k INT)")
	c.each(func(w int) {
		for k := range 3 {
			c.write(w, fmt.Sprintf("INSERT OVERWRITE s.overwrites VALUES (%d, %d), (%d, %d)", w, k, w, k))
		}
	})
	c.want("SELECT COUNT(*), COUNT(DISTINCT w, k) FROM s.overwrites", "2 1")
	c.clean("overwrites")
}

// creates: one of all who create a table does.
func creates(c *crowd) {
	var created, kept atomic.Int64
	var one atomic.Int64
	c.each(func(w int) {
		_, err := c.exec(w%len(c.servers), fmt.Sprintf("CREATE TABLE s.creates AS SELECT CAST(%d AS SIGNED) AS w", w))
		switch {
		case err == nil:
			created.Add(1)
			one.Store(int64(w))
		case number(err) == 1050:
			kept.Add(1)
		default:
			c.Errorf("CREATE TABLE AS: %v", err)
		}
	})
	if created.Load() != 1 || kept.Load() != writers-1 {
		c.Errorf("%d clients created a table, and %d were told that it exists", created.Load(), kept.Load())
	}
	c.want("SELECT w FROM s.creates", fmt.Sprint(one.Load()))
	c.clean("creates")
}
