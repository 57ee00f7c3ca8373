package engine_test

import (
	"context"
	"strings"
	"testing"

	"sqe/fault"
	"sqe/plan"
)

// TestPreparedWrites: a prepared statement that writes has its parameters, and takes
// them.
func TestPreparedWrites(t *testing.T) {
	f := openDDL(t)
	f.do(f.sue, "CREATE TABLE t (id BIGINT, name STRING)")
	p, err := f.sue.Prepare(context.Background(), "INSERT INTO t (id, name) VALUES (?, ?), (2, ?)")
	if err != nil || p.Params != 3 {
		t.Fatalf("%+v, %v", p, err)
	}
	x := plan.Literal{Typ: plan.String, Value: "x"}
	res, err := f.sue.Execute(context.Background(), p, []plan.Literal{{Typ: plan.Int64, Value: int64(1)}, x, x})
	if err != nil || res.Affected != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	if _, err := f.sue.Execute(context.Background(), p, []plan.Literal{x}); !fault.Is(err, fault.BadStatement) {
		t.Errorf("%v", err)
	}
	must(t, f.sue, "SELECT id, name FROM t ORDER BY id", "1|x\n2|x")
}

// TestIndexes: CREATE INDEX and DROP INDEX warn and change nothing, for who may alter
// the table.
func TestIndexes(t *testing.T) {
	f := openDDL(t)
	f.do(f.sue, "CREATE TABLE t (id BIGINT)")
	before, err := query(f.sue, "SHOW CREATE TABLE t")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"CREATE INDEX i ON t (id)", "DROP INDEX i ON t"} {
		f.do(f.sue, text)
		must(t, f.sue, "SHOW WARNINGS", "Warning|1105|indexes have no effect: Iceberg tables have none; partition or sort the table")
	}
	if after, err := query(f.sue, "SHOW CREATE TABLE t"); err != nil || after != before {
		t.Errorf("%s, before %s, %v", after, before, err)
	}
	refused(t, f.sue, "CREATE INDEX i ON missing (id)", fault.NotFound)
	refused(t, f.nobody, "CREATE INDEX i ON bank.t (id)", fault.NotFound)
}

// TestWarningsOfErrors: a statement that fails has no warnings of those before it,
// whether it parses or not.
func TestWarningsOfErrors(t *testing.T) {
	f := openDDL(t)
	for _, text := range []string{"SELECT FROM WHERE", "SELECT nothing", "INSERT INTO missing VALUES (1)"} {
		f.do(f.sue, "DROP TABLE IF EXISTS missing")
		if out, err := query(f.sue, "SHOW WARNINGS"); err != nil || out == "" {
			t.Fatalf("%q, %v", out, err)
		}
		if _, err := query(f.sue, text); err == nil {
			t.Fatalf("%s succeeded", text)
		}
		must(t, f.sue, "SHOW WARNINGS", "")
	}
}

// TestExplainChanges: EXPLAIN shows what would be done and does nothing, to those who
// may do it.
func TestExplainChanges(t *testing.T) {
	f, eve := people(t)
	for _, x := range []struct{ text, head string }{
		{"INSERT INTO people VALUES (9, 'x', 'EU', 1)", "insert lake.bank.people"},
		{"UPDATE people SET n = 1", "update lake.bank.people"},
		{"DELETE FROM people WHERE id = 1", "delete lake.bank.people"},
		{"MERGE INTO people p USING (SELECT 1 AS id) s ON p.id = s.id WHEN MATCHED THEN DELETE", "merge lake.bank.people"},
	} {
		out, err := query(eve, "EXPLAIN "+x.text)
		if err != nil || !strings.HasPrefix(out, x.head+"\n") || strings.Contains(out, "'EU'") || strings.Contains(out, "***") {
			t.Errorf("%s: %s, %v", x.text, out, err)
		}
		out, err = query(eve, "EXPLAIN POLICY "+x.text)
		if err != nil || !strings.Contains(out, "rows are filtered") {
			t.Errorf("%s: %s, %v", x.text, out, err)
		}
		refused(t, eve, "EXPLAIN ANALYZE "+x.text, fault.Unsupported)
		if _, err := query(f.nobody, "EXPLAIN "+x.text); err == nil {
			t.Errorf("nobody may see the plan of %s", x.text)
		}
	}
	must(t, f.sue, whole, "1|Anna|EU|10\n2|Bert|EU|20\n3|Cleo|US|30")
}

// TestTransactions: every statement commits by itself, which a rollback says; and who
// wants to read only does not write.
func TestTransactions(t *testing.T) {
	f := openDDL(t)
	s := f.sue
	f.do(s, "CREATE TABLE t (id BIGINT)")
	for _, begin := range []string{"BEGIN", "START TRANSACTION", "SET autocommit = 0"} {
		f.do(s, begin)
		f.do(s, "INSERT INTO t VALUES (1)")
		f.do(s, "ROLLBACK")
		if w := warnings(t, s); !strings.Contains(w, "were not rolled back") {
			t.Errorf("after %s: %q", begin, w)
		}
		f.do(s, "ROLLBACK")
		if w := warnings(t, s); w != "" {
			t.Errorf("after two: %q", w)
		}
		f.do(s, begin)
		f.do(s, "INSERT INTO t VALUES (1)")
		f.do(s, "COMMIT")
		f.do(s, "ROLLBACK")
		if w := warnings(t, s); w != "" {
			t.Errorf("after COMMIT: %q", w)
		}
	}
	must(t, s, "SELECT COUNT(*) FROM t", "6")
	f.do(s, "SET autocommit = 1")
	f.do(s, "INSERT INTO t VALUES (1)")
	f.do(s, "ROLLBACK")
	if w := warnings(t, s); w != "" {
		t.Errorf("without a transaction: %q", w)
	}
	writes := []string{"INSERT INTO t VALUES (1)", "DELETE FROM t", "TRUNCATE TABLE t", "CREATE TABLE u AS SELECT 1 AS x", "CREATE TABLE u (a INT)", "DROP TABLE t", "CALL system.expire_snapshots('bank.t')"}
	for _, begin := range []string{"START TRANSACTION READ ONLY", "SET SESSION TRANSACTION READ ONLY", "SET transaction_read_only = 1"} {
		f.do(s, begin)
		for _, text := range writes {
			refused(t, s, text, fault.ReadOnly)
		}
		must(t, s, "SELECT COUNT(*) FROM t", "7")
		f.do(s, "COMMIT")
		f.do(s, "SET SESSION TRANSACTION READ WRITE")
		f.do(s, "SET transaction_read_only = 0")
	}
	for _, text := range writes[:4] {
		f.do(s, text)
	}
}

// TestShowGrantsOfWriters: SHOW GRANTS says of a table whether its rows may be changed.
func TestShowGrantsOfWriters(t *testing.T) {
	f := openDDL(t)
	f.do(f.sue, "CREATE TABLE t (id BIGINT)")
	f.may("bob", "bank.t", "table-data-read table-list")
	const reads, writes = "GRANT SELECT ON `bank`.`t` TO 'bob'@'%'", "GRANT SELECT, INSERT, UPDATE, DELETE ON `bank`.`t` TO 'bob'@'%'"
	if out, err := query(f.bob, "SHOW GRANTS"); err != nil || !strings.Contains(out, reads) || strings.Contains(out, "INSERT") {
		t.Errorf("%s, %v", out, err)
	}
	f.may("bob", "bank.t", "table-data-write")
	if out, err := query(f.bob, "SHOW GRANTS"); err != nil || !strings.Contains(out, writes) {
		t.Errorf("%s, %v", out, err)
	}
}
