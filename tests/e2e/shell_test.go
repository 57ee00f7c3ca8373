//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"sqe/tests/sqetest"
)

// TestShell: the shell answers each statement of a text, and stops at the one that
// fails. The statements change rows by functions that run in the row executor.
func TestShell(t *testing.T) {
	bin, err := sqetest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	shell := func(text string) string {
		cmd := exec.Command(bin, "sql", "-u", "admin", "-P", fmt.Sprint(demo.Port), "-e", text)
		cmd.Env = append(os.Environ(), "SQE_PASSWORD=demo")
		out, _ := cmd.CombinedOutput()
		return normal(string(out))
	}
	want := func(text string, lines ...string) {
		t.Helper()
		if got := shell(text); got != strings.Join(lines, "\n") {
			t.Errorf("%s:\n%s", text, got)
		}
	}
	t.Cleanup(func() { shell("DROP TABLE IF EXISTS shell.t PURGE; DROP SCHEMA IF EXISTS shell") })
	want("CREATE SCHEMA shell; CREATE TABLE shell.t (id BIGINT, s STRING); USE shell;\n"+
		"INSERT INTO t VALUES (1, 'one;'), (5, elt(2, 'a', 'five')), (12, NULL)", "ok", "ok", "ok", "ok, 3 rows")
	want("UPDATE shell.t SET s = conv(id, 10, 16) WHERE bin(id) LIKE concat('1', '0%'); DELETE FROM shell.t WHERE crc32(s) = crc32('one;'); "+
		"MERGE INTO shell.t USING (SELECT '1100' AS k) k ON t.id = conv(k.k, 2, 10) WHEN MATCHED THEN UPDATE SET s = format(t.id * 1000, 0); SELECT * FROM shell.t ORDER BY id",
		"ok, 1 row", "ok, 1 row", "ok, 1 row", "id s", "-- -", "5 5", "12 12,000", "(2 rows)")
	got := shell("SET @a = 1; DELETE FROM shell.nothing; DELETE FROM shell.t")
	if !strings.HasPrefix(got, "ok\n") || !strings.Contains(got, "1146") {
		t.Error(got)
	}
	want("SELECT COUNT(*) FROM shell.t", "COUNT(*)", "--------", "2", "(1 row)")
}
