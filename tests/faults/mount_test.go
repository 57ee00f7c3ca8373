//go:build e2e

package faults

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// mount mounts something at dir for the time of the test. Where that is impossible,
// which it is not for root outside of a narrow container, the test says so.
func mount(t *testing.T, dir string, args ...string) {
	t.Helper()
	if out, err := exec.Command("mount", append(args, dir)...).CombinedOutput(); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("mount: %v: %s", err, out)
		}
		t.Skipf("this test mounts file systems, which needs root and a machine that permits it (mount: %v: %s)", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
}

// remount changes how something is mounted.
func remount(t *testing.T, dir, how string) {
	t.Helper()
	if out, err := exec.Command("mount", "-o", "remount,bind,"+how, dir).CombinedOutput(); err != nil {
		t.Fatalf("mount: %v: %s", err, out)
	}
}

// ballast fills the file system of a folder, but for so many blocks.
type ballast struct {
	t    *testing.T
	path string
}

const block = 4096

func (b ballast) fill(leave int) {
	b.t.Helper()
	f, err := os.OpenFile(b.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		b.t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = io.CopyN(f, zeros{}, block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		b.t.Fatal(err)
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err == nil {
		err = f.Truncate(max(0, size/block*block-int64(leave*block)))
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b ballast) drop() {
	b.t.Helper()
	if err := os.Remove(b.path); err != nil {
		b.t.Fatal(err)
	}
}

// zeros are without end.
type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// secret is in every row that the statements of failing writes bring: no error and no
// log may have it.
const secret = "kohlrabi"

// refused checks that a statement failed with an error of this number that is for
// people: without a path, a value or what the system said. What the system said is in
// the log.
func (s *site) refused(what string, err error, want uint16, cause string) {
	s.Helper()
	if number(err) != want {
		s.Errorf("%s: %v, want error %d\n%s", what, err, want, s.log())
		return
	}
	for _, bad := range []string{s.dir, s.warehouse, filepath.Dir(s.dir), ".parquet", ".avro", ".json", "catalog.db", secret} {
		if strings.Contains(err.Error(), bad) {
			s.Errorf("%s: the error has %q: %v", what, bad, err)
		}
	}
	// The client may hear of it before the log is read.
	log := s.servers[0].Output()
	for end := time.Now().Add(time.Minute); !strings.Contains(log, cause) && time.Now().Before(end); log = s.servers[0].Output() {
		time.Sleep(20 * time.Millisecond)
	}
	if !strings.Contains(log, cause) {
		s.Errorf("%s: the log does not say %q\n%s", what, cause, s.log())
	}
	if strings.Contains(log, secret) {
		s.Errorf("%s: the log has a value\n%s", what, s.log())
	}
	s.Logf("%s: %v", what, err)
}

// same checks that there are the same files as before.
func (s *site) same(what string, before []string) {
	s.Helper()
	now := map[string]bool{}
	for _, f := range s.files() {
		now[f] = true
	}
	for _, f := range before {
		if !now[f] {
			s.Errorf("%s: %s is gone", what, f)
		}
		delete(now, f)
	}
	for f := range now {
		s.Errorf("%s: %s is left", what, f)
	}
	for _, f := range s.hollow() {
		s.Errorf("%s: an empty folder is left: %s", what, f)
	}
}

// bulk are statements that write n rows into the table t, or from it, each of its kind.
func bulk(n int) map[string]string {
	rows := fmt.Sprintf("SELECT i AS id, CONCAT('%s', MD5(CAST(i AS CHAR))) AS v FROM (%s) AS n", secret, numbers(n))
	return map[string]string{
		"INSERT":           "INSERT INTO s.t " + rows,
		"INSERT OVERWRITE": "INSERT OVERWRITE s.t " + rows,
		"MERGE":            "MERGE INTO s.t AS t USING (" + rows + ") AS u ON t.id = u.id WHEN MATCHED THEN UPDATE SET v = u.v WHEN NOT MATCHED THEN INSERT (id, v) VALUES (u.id, u.v)",
		"CREATE":           "CREATE TABLE s.made AS " + rows,
		"REPLACE":          "CREATE OR REPLACE TABLE s.t AS " + rows,
	}
}

// small makes the table t of two rows.
func (s *site) small(properties string) {
	s.Helper()
	s.digits()
	s.do("CREATE TABLE s.t (id BIGINT, v STRING) PARTITIONED BY (TRUNCATE(500000, id)) TBLPROPERTIES ("+properties+")",
		"INSERT INTO s.t VALUES (1, 'a'), (2, 'b')")
}

const smallRows = "1 a\n2 b"
