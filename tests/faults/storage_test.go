//go:build e2e

package faults

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// unavailable is the number of an error of the storage or the catalog.
const unavailable = 1429

// TestDiskFull: when the disk of the warehouse is full nothing is changed, what was
// written is deleted, and with room again the next statement works.
func TestDiskFull(t *testing.T) {
	s := newSiteWith(t, catalogKinds[0], 1, nil, func(s *site) { mount(t, s.warehouse, "-t", "tmpfs", "-o", "size=6m", "tmpfs") })
	s.small(modes[1].properties)
	before := s.files()
	for name, text := range bulk(1_000_000) {
		_, err := s.exec(0, text)
		s.refused(name, err, unavailable, "no space left on device")
		s.same(name, before)
		s.want("SELECT id, v FROM s.t ORDER BY id", smallRows)
	}
	// With only so much room the statement comes as far as a manifest, the list of
	// manifests, or the metadata of the table.
	b := ballast{t, filepath.Join(s.warehouse, "ballast")}
	failed, rows := 0, 2
	for leave := range 8 {
		for _, text := range []string{"INSERT INTO s.t VALUES (3, '" + secret + "')", "DELETE FROM s.t WHERE id = 3"} {
			before := s.files()
			b.fill(leave)
			n, err := s.exec(0, text)
			b.drop()
			if err != nil {
				failed++
				s.refused(fmt.Sprintf("%.6s with %d blocks", text, leave), err, unavailable, "no space left on device")
				s.same(text, before)
			} else if text[0] == 'I' {
				rows++
			} else {
				rows -= int(n)
			}
			s.want("SELECT COUNT(*) FROM s.t", fmt.Sprint(rows))
		}
	}
	if failed < 4 {
		t.Errorf("%d statements failed on a full disk: the test shows less than it should", failed)
	}
	s.do("DELETE FROM s.t WHERE id = 3")
	s.want("SELECT id, v FROM s.t ORDER BY id", smallRows)
	s.clean("t")
}

// TestCatalogFull: when the disk of the embedded catalog is full, what a statement
// wrote is deleted, and what was acknowledged is there after a crash.
func TestCatalogFull(t *testing.T) {
	s := newSiteWith(t, catalogKinds[0], 1, nil, func(s *site) { mount(t, s.dir, "-t", "tmpfs", "-o", "size=4m", "tmpfs") })
	s.small(modes[0].properties)
	b := ballast{t, filepath.Join(s.dir, "ballast")}
	b.fill(0)
	rows, failed := 2, 0
	for range 40 {
		before := s.files()
		_, err := s.exec(0, "INSERT INTO s.t VALUES (3, '"+secret+"')")
		if err == nil {
			rows++ // the log of the database had room
			continue
		}
		s.refused("INSERT", err, unavailable, "full")
		s.same("INSERT", before)
		if failed++; failed == 2 {
			break
		}
	}
	if failed == 0 {
		t.Error("no statement failed: the test shows less than it should")
	}
	s.want("SELECT COUNT(*) FROM s.t", fmt.Sprint(rows))
	b.drop()
	s.do("INSERT INTO s.t VALUES (4, 'd')")
	s.must(s.servers[0].Crash())
	s.start(0)
	s.want("SELECT COUNT(*) FROM s.t", fmt.Sprint(rows+1))
	s.clean("t")
}

// TestReadOnly: on a warehouse that cannot be written tables are read, and every write
// is refused and changes nothing.
func TestReadOnly(t *testing.T) {
	s := newSiteWith(t, catalogKinds[0], 1, nil, func(s *site) { mount(t, s.warehouse, "--bind", s.warehouse) })
	s.small(modes[2].properties)
	before := s.files()
	texts := bulk(100)
	texts["UPDATE"] = "UPDATE s.t SET v = '" + secret + "' WHERE id = 1"
	texts["DELETE"] = "DELETE FROM s.t WHERE id = 1"
	texts["TRUNCATE"] = "TRUNCATE TABLE s.t"
	texts["ALTER"] = "ALTER TABLE s.t ADD COLUMN w INT"
	texts["CREATE empty"] = "CREATE TABLE s.made (id INT)"
	texts["rewrite"] = "CALL system.rewrite_data_files(table => 's.t', options => map('rewrite-all', 'true'))"
	remount(t, s.warehouse, "ro")
	for name, text := range texts {
		_, err := s.exec(0, text)
		s.refused(name, err, unavailable, "read-only file system")
		s.same(name, before)
		s.want("SELECT id, v FROM s.t ORDER BY id", smallRows)
	}
	remount(t, s.warehouse, "rw")
	for _, name := range []string{"CREATE", "INSERT", "UPDATE", "ALTER", "MERGE", "rewrite"} {
		s.do(texts[name])
	}
	s.want("SELECT COUNT(*), COUNT(DISTINCT id) FROM s.t", "102 100")
}

// TestCatalogLocked: another process holds the lock of the embedded catalog from
// before a statement commits. For a while the statement waits; after that it fails, and
// what it wrote is deleted.
func TestCatalogLocked(t *testing.T) {
	t.Parallel() // most of it is waiting
	s := newSite(t, catalogKinds[0], 1, nil)
	s.small(modes[0].properties)
	ctx := context.Background()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(s.dir, "catalog.db")+"?mode=rw&_pragma=busy_timeout(10000)")
	s.must(err)
	t.Cleanup(func() { _ = db.Close() })
	conn, err := db.Conn(ctx)
	s.must(err)
	t.Cleanup(func() { _ = conn.Close() })
	lock := func(text string) {
		t.Helper()
		_, err := conn.ExecContext(ctx, text)
		s.must(err)
	}
	// Released soon enough.
	lock("BEGIN EXCLUSIVE")
	done := make(chan error, 1)
	go func() {
		_, err := s.exec(0, "INSERT INTO s.t VALUES (3, 'c')")
		done <- err
	}()
	select {
	case err := <-done:
		t.Errorf("an INSERT ended while the catalog was locked: %v", err)
		done <- err
	case <-time.After(time.Second):
	}
	lock("ROLLBACK")
	s.must(<-done)
	s.want("SELECT id, v FROM s.t ORDER BY id", smallRows+"\n3 c")
	// Not released.
	before := s.files()
	lock("BEGIN EXCLUSIVE")
	results := map[string]chan error{}
	for name, text := range map[string]string{
		"INSERT": "INSERT INTO s.t VALUES (4, '" + secret + "')", "CREATE": bulk(100)["CREATE"],
	} {
		results[name] = make(chan error, 1)
		go func() {
			_, err := s.exec(0, text)
			results[name] <- err
		}()
	}
	for name, r := range results {
		s.refused(name, <-r, unavailable, "locked")
	}
	s.same("locked", before)
	s.want("SELECT id, v FROM s.t ORDER BY id", smallRows+"\n3 c")
	lock("ROLLBACK")
	s.do("INSERT INTO s.t VALUES (4, 'd')", bulk(100)["CREATE"])
	s.want("SELECT COUNT(*) FROM s.t", "4")
}

// TestCatalogGone: the file of the embedded catalog is taken away and put back. What
// was acknowledged is there, and nothing else.
func TestCatalogGone(t *testing.T) {
	s := newSite(t, catalogKinds[0], 1, nil)
	s.small(modes[0].properties)
	away := s.dir + "-away"
	s.must(os.Rename(s.dir, away))
	rows := 2
	for range 5 {
		s.pools[0].SetMaxIdleConns(0) // a new connection each time
		if _, err := s.exec(0, "INSERT INTO s.t VALUES (3, '"+secret+"')"); err == nil {
			rows++
		} else {
			s.refused("INSERT", err, unavailable, "")
		}
	}
	s.must(s.servers[0].Crash())
	s.must(os.Rename(away, s.dir))
	s.start(0)
	s.want("SELECT COUNT(*) FROM s.t", fmt.Sprint(rows))
	s.do("INSERT INTO s.t VALUES (4, 'd')")
	s.clean("t")
	t.Logf("%d of 5 statements were taken by the catalog that was moved", rows-2)
}
