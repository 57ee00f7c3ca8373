package engine_test

import (
	"context"
	"strings"
	"testing"

	"sqe/catalog"
	"sqe/fault"
	"sqe/plan"

	"github.com/google/go-cmp/cmp"
)

const everyType = "CREATE TABLE `every one` (" +
	"`b` BOOLEAN, i INT NOT NULL COMMENT 'it''s an \\\\ int', l BIGINT, f FLOAT, d DOUBLE, m DECIMAL(38,10), day DATE, `time` TIME, " +
	"ts DATETIME(6), tz TIMESTAMP(6) WITH TIME ZONE, tn TIMESTAMP_NS, tzn TIMESTAMPTZ_NS, s STRING, u UUID, fx BINARY(4), bin BLOB, " +
	"st STRUCT<a: INT NOT NULL COMMENT 'inner', b: STRUCT<c: DECIMAL(5,2)>>, li ARRAY<STRUCT<x: BIGINT>>, ma MAP<STRING, ARRAY<DOUBLE> NOT NULL>, PRIMARY KEY (i)) " +
	"COMMENT 'all' PARTITIONED BY (BUCKET(8, l), TRUNCATE(3, s) AS part, DAY(ts), i, st.a) " +
	"SORTED BY (s DESC NULLS FIRST, TRUNCATE(10, l), i) TBLPROPERTIES ('format-version' = '3', 'it''s' = 'a\\\\b')"

func (f *ddlFixture) created(s string) string {
	f.t.Helper()
	out, err := query(f.root, "SHOW CREATE TABLE `"+s+"`")
	if err != nil {
		f.t.Fatal(err)
	}
	_, text, ok := strings.Cut(out, "|")
	if !ok {
		f.t.Fatal(out)
	}
	return text
}

// TestShowCreateTable: what SHOW CREATE TABLE says makes the same table again, of
// every type, layout, default and property.
func TestShowCreateTable(t *testing.T) {
	f := openDDL(t)
	f.do(f.root, everyType)
	for _, x := range []string{
		"b TRUE", "i -7", "l 9007199254740991", "f 0.5", "d -1.5e300", "m 12345678901234567890.0000000001", "day '2026-02-28'", "`time` '23:59:59.000001'",
		"ts '2026-02-28 23:59:59.5'", "tz '2026-02-28 23:59:59'", "tn '2026-02-28 23:59:59.123456789'", "tzn '2026-02-28 00:00:00'", "s 'a''b\\\\c'",
		"u '123e4567-e89b-12d3-a456-426614174000'", "fx 'abcd'", "bin 'x'",
	} {
		column, value, _ := strings.Cut(x, " ")
		f.do(f.root, "ALTER TABLE `every one` ALTER COLUMN "+column+" SET DEFAULT "+value)
	}
	text := f.created("every one")
	for _, part := range []string{
		"COMMENT 'it''s an \\\\ int'", "COMMENT='all'", "'it''s' = 'a\\\\b'", "PRIMARY KEY (`i`)", "'format-version' = '3'", "struct<`a`: int NOT NULL COMMENT 'inner'", "DEFAULT -7",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
	f.do(f.root, strings.Replace(text, "`every one`", "`again`", 1))
	if again := f.created("again"); strings.Replace(again, "`again`", "`every one`", 1) != text {
		t.Errorf("%s\nmakes\n%s", text, again)
	}
	f.do(f.root, "CREATE TABLE alike LIKE `every one`")
	if alike := f.created("alike"); strings.Replace(alike, "`alike`", "`every one`", 1) != text {
		t.Errorf("%s\nis alike\n%s", text, alike)
	}
	define := func(name string) catalog.TableDefinition {
		d, err := catalog.DefinitionOf(f.table(name))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	plain := cmp.Transformer("fields", func(f plan.Field) []string {
		var out []string
		if f.Type != nil {
			out = append(out, f.Type.String())
		}
		return out
	})
	one, other := define("every one"), define("again")
	if diff := cmp.Diff(one.Partitions, other.Partitions) + cmp.Diff(one.Sort, other.Sort) + cmp.Diff(one.Properties, other.Properties) + cmp.Diff(one.Fields, other.Fields, plain); diff != "" {
		t.Error(diff)
	}
	must(t, f.root, "SELECT COUNT(*) FROM again", "0")
}

// TestBadDefaults: a default that the column cannot hold exactly is refused.
func TestBadDefaults(t *testing.T) {
	f := openDDL(t)
	for _, c := range []string{
		"INT DEFAULT 'x'", "INT DEFAULT 2147483648", "INT DEFAULT 1.5", "BOOLEAN DEFAULT 2", "DECIMAL(4,2) DEFAULT 1.005", "DECIMAL(4,2) DEFAULT 100",
		"DATE DEFAULT '2026-02-30'", "DATE DEFAULT 20260228", "UUID DEFAULT 'x'", "BINARY(2) DEFAULT 'abc'", "TIMESTAMP DEFAULT 'noon'", "STRING DEFAULT 5",
		"DATETIME(6) DEFAULT '2026-01-01 00:00:00.1234567'", "BIGINT DEFAULT 9223372036854775807",
	} {
		refused(t, f.root, "CREATE TABLE t (a "+c+") TBLPROPERTIES ('format-version' = '3')", fault.BadStatement)
	}
	refused(t, f.root, "CREATE TABLE t (a INT DEFAULT 1) TBLPROPERTIES ('format-version' = '2')", fault.BadStatement)
	f.do(f.root, "CREATE TABLE three (a INT DEFAULT 1)")
	f.do(f.root, "INSERT INTO three VALUES (DEFAULT)")
	must(t, f.root, "SELECT a FROM three", "1")
	f.do(f.root, "CREATE TABLE two (a INT)")
	refused(t, f.root, "ALTER TABLE two ADD COLUMN b INT DEFAULT 1", fault.BadStatement)
	f.do(f.root, "CREATE TABLE t (a INT DEFAULT 1, b DECIMAL(4,2) DEFAULT 1.5, c DATE DEFAULT DATE '2026-02-28') TBLPROPERTIES ('format-version' = '3')")
}

// TestAlterTable: every action of ALTER TABLE does what it says, is seen by the next
// statement of another session, and leaves the rows.
func TestAlterTable(t *testing.T) {
	f := openDDL(t)
	rows := "SELECT cust_id, national_id FROM customers WHERE cust_id = 1"
	must(t, f.sue, rows, "1|184729103")
	for _, x := range []struct{ statement, then, want string }{
		{"ADD COLUMN extra INT COMMENT 'new' AFTER cust_id", "SELECT extra FROM customers WHERE cust_id = 1", "NULL"},
		{"ADD COLUMN IF NOT EXISTS extra INT", "SELECT extra FROM customers WHERE cust_id = 1", "NULL"},
		{"ALTER COLUMN extra TYPE BIGINT", "SHOW COLUMNS FROM customers LIKE 'extra'", "extra|bigint|YES||NULL|"},
		{"CHANGE COLUMN extra more BIGINT COMMENT 'other'", "SELECT more FROM customers WHERE cust_id = 1", "NULL"},
		{"MODIFY COLUMN more BIGINT FIRST", "SELECT * FROM (SELECT * FROM customers LIMIT 0) x LIMIT 0", ""},
		{"ADD COLUMN st STRUCT<a: INT>, ADD COLUMN st.b INT", "SELECT st->>'$.b' FROM customers WHERE cust_id = 1", "NULL"},
		{"RENAME COLUMN st.b TO c, DROP COLUMN st.a", "SELECT st->>'$.c' FROM customers WHERE cust_id = 1", "NULL"},
		{"MODIFY COLUMN st STRUCT<c: INT> COMMENT 'nested'", "SELECT COUNT(*) FROM customers", "12"},
		{"DROP COLUMN IF EXISTS nothing", "SELECT COUNT(*) FROM customers", "12"},
		{"DROP COLUMN more", "SHOW COLUMNS FROM customers LIKE 'more'", ""},
		{"ADD PARTITION FIELD BUCKET(4, cust_id) AS part", "SELECT COUNT(*) FROM customers", "12"},
		{"REPLACE PARTITION FIELD part WITH cust_id", "SELECT COUNT(*) FROM customers", "12"},
		{"DROP PARTITION FIELD cust_id", "SELECT COUNT(*) FROM customers", "12"},
		{"WRITE ORDERED BY cust_id DESC", "SELECT COUNT(*) FROM customers", "12"},
		{"WRITE UNORDERED", "SELECT COUNT(*) FROM customers", "12"},
		{"SET TBLPROPERTIES ('owner' = 'ann')", "SELECT COUNT(*) FROM customers", "12"},
		{"COMMENT 'the customers'", "SELECT table_comment FROM information_schema.tables WHERE table_schema = 'bank' AND table_name = 'customers'", "the customers"},
		{"RENAME COLUMN national_id TO tax_id", "SELECT cust_id, tax_id FROM customers WHERE cust_id = 1", "1|184729103"},
		{"RENAME COLUMN tax_id TO national_id", rows, "1|184729103"},
		{"ALTER COLUMN cust_id COMMENT 'key'", rows, "1|184729103"},
	} {
		f.do(f.root, "ALTER TABLE customers "+x.statement)
		must(t, f.sue, x.then, x.want)
	}
	text := f.created("customers")
	for _, part := range []string{"COMMENT='the customers'", "'owner' = 'ann'", "`cust_id` bigint NOT NULL COMMENT 'key'", "COMMENT 'nested'"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
	f.do(f.root, "ALTER TABLE customers UNSET TBLPROPERTIES ('owner'), COMMENT ''")
	if text := f.created("customers"); strings.Contains(text, "the customers") || strings.Contains(text, "owner") {
		t.Error(text)
	}
	f.do(f.root, "CREATE TABLE k (a INT NOT NULL, b INT NOT NULL, c INT, PRIMARY KEY (a))")
	f.do(f.root, "ALTER TABLE k SET IDENTIFIER FIELDS a, b")
	if text := f.created("k"); !strings.Contains(text, "PRIMARY KEY (`a`, `b`)") {
		t.Error(text)
	}
	refused(t, f.root, "ALTER TABLE k DROP COLUMN a", fault.BadStatement)
	f.do(f.root, "ALTER TABLE k DROP PRIMARY KEY")
	f.do(f.root, "ALTER TABLE k DROP COLUMN a")

	before := f.state()
	for text, kind := range map[string]fault.Kind{
		"ALTER TABLE customers DROP COLUMN nothing":                                         fault.NoColumn,
		"ALTER TABLE customers ADD COLUMN cust_id INT":                                      fault.BadStatement,
		"ALTER TABLE customers ADD COLUMN x INT NOT NULL":                                   fault.BadStatement,
		"ALTER TABLE customers ALTER COLUMN cust_id TYPE INT":                               fault.BadStatement,
		"ALTER TABLE customers ALTER COLUMN national_id SET NOT NULL":                       fault.BadStatement,
		"ALTER TABLE customers ADD COLUMN fine INT, DROP COLUMN nothing":                    fault.NoColumn,
		"ALTER TABLE customers UNSET TBLPROPERTIES ('nothing')":                             fault.BadStatement,
		"ALTER TABLE customers SET TBLPROPERTIES ('format-version' = '1')":                  fault.BadStatement,
		"ALTER TABLE customers RENAME TO other, COMMENT 'x'":                                fault.Syntax,
		"ALTER TABLE customers ADD COLUMN x INT, CREATE TAG v1":                             fault.Syntax,
		"ALTER TABLE customers SET IDENTIFIER FIELDS national_id":                           fault.BadStatement,
		"ALTER TABLE customers DROP PARTITION FIELD cust_id":                                fault.BadStatement,
		"ALTER TABLE nothing ADD COLUMN x INT":                                              fault.NotFound,
		"CREATE TABLE t (a INT, PRIMARY KEY (b))":                                           fault.Syntax,
		"CREATE TABLE t (a DOUBLE PRIMARY KEY)":                                             fault.BadStatement,
		"DROP TABLE customers, customers":                                                   fault.BadStatement,
		"DROP TABLE customers, nothing":                                                     fault.NotFound,
		"RENAME TABLE customers TO moved, nothing TO other":                                 fault.NotFound,
		"RENAME TABLE customers TO moved, payments TO moved":                                fault.Exists,
		"ALTER TABLE IF EXISTS customers DROP COLUMN nothing":                               fault.NoColumn,
		"CREATE TABLE t LIKE nothing":                                                       fault.NotFound,
		"CREATE OR REPLACE TABLE customers (a INT, a INT)":                                  fault.Syntax,
		"CREATE OR REPLACE TABLE customers (a INT) PARTITIONED BY (b)":                      fault.NoColumn,
		"CREATE OR REPLACE TABLE customers (a INT) TBLPROPERTIES ('format-version' = '12')": fault.BadStatement,
	} {
		refused(t, f.root, text, kind)
	}
	if after := f.state(); after != before {
		t.Errorf("a refused statement changed\n%s\ninto\n%s", before, after)
	}
}

// TestRenameTables: several renames are one statement: names may go round, and all
// get their names back when one cannot be had.
func TestRenameTables(t *testing.T) {
	f := openDDL(t)
	f.do(f.root, "CREATE VIEW v AS SELECT 1 AS one")
	f.do(f.root, "CREATE TABLE a (x INT) COMMENT 'first'")
	f.do(f.root, "CREATE TABLE b (x INT) COMMENT 'second'")
	f.do(f.root, "RENAME TABLE a TO tmp, b TO a, tmp TO b, v TO w")
	if !strings.Contains(f.created("a"), "second") || !strings.Contains(f.created("b"), "first") {
		t.Error("the names did not go round")
	}
	must(t, f.root, "SELECT * FROM w", "1")
	// Who may rename a view, and no table of its name, is refused nothing.
	f.may("bob", "bank.w (view)", "view-drop view-list")
	f.may("bob", "bank", "view-create")
	f.may("bob", "bank.v (view)", "view-drop")
	f.do(f.bob, "RENAME TABLE w TO v")
	if e := f.journal.last(); e.Outcome != "ok" || len(e.Denials) > 0 {
		t.Errorf("%+v", e)
	}
	f.do(f.bob, "RENAME TABLE v TO w")
	names := f.names(f.root)
	refused(t, f.root, "RENAME TABLE a TO aa, b TO bb, w TO customers", fault.Exists)
	if got := f.names(f.root); got != names {
		t.Errorf("%s, before %s", got, names)
	}
	f.do(f.root, "CREATE SCHEMA other")
	f.do(f.root, "RENAME TABLE a TO other.a")
	f.do(f.root, "ALTER TABLE other.a RENAME TO z")
	must(t, f.root, "SHOW TABLES FROM other", "z")
	refused(t, f.root, "ALTER VIEW b RENAME TO c", fault.NotFound)
	refused(t, f.root, "DROP VIEW b", fault.NotFound)
	refused(t, f.root, "DROP TABLE w", fault.NotFound)
}

// TestBranchesAndRollback: branches, tags and CALL move a table between snapshots.
func TestBranchesAndRollback(t *testing.T) {
	f := openDDL(t)
	first := f.table("customers").SnapshotID
	f.do(f.root, "ALTER TABLE customers CREATE TAG v1")
	f.do(f.root, "ALTER TABLE customers CREATE BRANCH IF NOT EXISTS work RETAIN 3 DAYS WITH SNAPSHOT RETENTION 2 SNAPSHOTS 5 HOURS")
	must(t, f.root, "SELECT COUNT(*) FROM customers FOR VERSION AS OF 'v1'", "12")
	must(t, f.root, "SELECT COUNT(*) FROM customers FOR VERSION AS OF 'work'", "12")
	refused(t, f.root, "ALTER TABLE customers CREATE TAG v1", fault.Exists)
	refused(t, f.root, "ALTER TABLE customers DROP BRANCH v1", fault.BadStatement)
	refused(t, f.root, "ALTER TABLE customers DROP BRANCH main", fault.BadStatement)
	f.do(f.root, "ALTER TABLE customers CREATE OR REPLACE TAG v1 AS OF VERSION "+number(first))
	f.do(f.root, "ALTER TABLE customers DROP BRANCH IF EXISTS nothing")

	// A replaced table has no rows, and its former snapshots.
	f.do(f.root, "CREATE OR REPLACE TABLE customers (cust_id BIGINT)")
	must(t, f.root, "SELECT COUNT(*) FROM customers", "0")
	must(t, f.root, "SELECT COUNT(*) FROM customers FOR VERSION AS OF 'v1'", "12")
	must(t, f.root, "CALL system.set_current_snapshot(table => 'bank.customers', ref => 'v1')", "0|"+number(first))
	must(t, f.sue, "SELECT COUNT(*) FROM customers", "12")
	res, _, err := f.root.Query(t.Context(), "CALL system.set_current_snapshot(table => 'bank.customers', ref => 'v1')")
	if err != nil || res.Columns[0].Type != plan.Int64 || res.Columns[1].Type != plan.Int64 {
		t.Errorf("the ids of snapshots: %+v, %v", res, err)
	} else if err := res.Rows.Close(); err != nil {
		t.Error(err)
	}
	must(t, f.root, "CALL lake.system.rollback_to_snapshot('bank.customers', "+number(first)+")", number(first)+"|"+number(first))
	refused(t, f.root, "CALL system.rollback_to_snapshot('bank.customers', 42)", fault.BadStatement)
	refused(t, f.root, "CALL system.rollback_to_timestamp('bank.customers', '1999-01-01 00:00:00')", fault.BadStatement)
	refused(t, f.root, "CALL nowhere.system.rollback_to_snapshot('bank.customers', 42)", fault.NotFound)
	refused(t, f.root, "CALL system.set_current_snapshot(table => 'bank.customers', ref => 'nothing')", fault.BadStatement)
	must(t, f.root, "CALL system.rollback_to_timestamp('customers', '2199-01-01 00:00:00')", number(first)+"|"+number(first))
	f.do(f.root, "ALTER TABLE customers DROP TAG v1")
}

// TestDropPurge: PURGE deletes the files, DROP leaves them.
func TestDropPurge(t *testing.T) {
	f := openDDL(t)
	f.do(f.root, "DROP TABLE payments PURGE")
	f.do(f.root, "DROP TABLE customers")
	for _, name := range []string{"payments", "customers"} {
		if _, err := f.catalog.Table(context.Background(), plan.TableName{Catalog: "lake", Namespace: []string{"bank"}, Name: name}, plan.AsOf{}, ""); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
		refused(t, f.sue, "SELECT * FROM "+name, fault.NotFound)
	}
}
