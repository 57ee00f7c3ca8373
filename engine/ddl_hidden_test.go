package engine_test

import (
	"strings"
	"testing"

	"sqe/fault"
)

// TestHiddenFromDDL: of what is there and may not be seen nobody learns that it is
// there, from any statement: the error is that for what is not there.
func TestHiddenFromDDL(t *testing.T) {
	f := openDDL(t)
	f.do(f.root, "CREATE VIEW a_view AS SELECT 1 AS one")
	before := f.state()
	for _, text := range []string{
		"DROP TABLE %s", "DROP TABLE %s PURGE", "ALTER TABLE %s ADD COLUMN x INT", "ALTER TABLE %s DROP COLUMN cust_id", "ALTER TABLE %s RENAME TO other",
		"RENAME TABLE %s TO other", "ALTER TABLE %s CREATE BRANCH b", "ALTER TABLE %s SET TBLPROPERTIES ('a' = 'b')",
		"CALL system.rollback_to_snapshot('bank.%s', 1)", "CALL system.set_current_snapshot('bank.%s', 1)", "CALL system.rollback_to_timestamp('bank.%s', '2020-01-01')",
		"DROP VIEW %s", "ALTER VIEW %s AS SELECT 1 AS one", "ALTER VIEW %s RENAME TO other", "ALTER VIEW %s SET TBLPROPERTIES ('a' = 'b')", "SHOW CREATE TABLE %s",
	} {
		text := strings.Replace(text, "%s", "@n", 1)
		none := refused(t, f.nobody, strings.Replace(text, "@n", "nothing", 1), fault.NotFound)
		for _, name := range []string{"customers", "a_view"} {
			there := refused(t, f.nobody, strings.Replace(text, "@n", name, 1), fault.NotFound)
			if strings.ReplaceAll(there.Error(), name, "nothing") != none.Error() {
				t.Errorf("%s: %q and %q tell the two apart", text, there, none)
			}
		}
	}
	// Nor from IF EXISTS.
	for _, text := range []string{"DROP TABLE IF EXISTS @n", "DROP VIEW IF EXISTS @n", "ALTER TABLE IF EXISTS @n ADD COLUMN x INT"} {
		f.do(f.nobody, strings.Replace(text, "@n", "nothing", 1))
		none := warnings(t, f.nobody)
		f.do(f.nobody, strings.Replace(text, "@n", "customers", 1))
		if there := warnings(t, f.nobody); strings.ReplaceAll(there, "customers", "nothing") != none || none == "" {
			t.Errorf("%s: %q and %q tell the two apart", text, there, none)
		}
	}
	// A schema.
	for _, text := range []string{"DROP SCHEMA @n", "ALTER SCHEMA @n SET PROPERTIES ('a' = 'b')", "CREATE TABLE @n.t (a INT)", "CREATE VIEW @n.v AS SELECT 1 AS one"} {
		none := refused(t, f.nobody, strings.Replace(text, "@n", "nothing", 1), fault.NoDatabase)
		there := refused(t, f.nobody, strings.Replace(text, "@n", "bank", 1), fault.NoDatabase)
		if strings.ReplaceAll(there.Error(), "bank", "nothing") != none.Error() {
			t.Errorf("%s: %q and %q tell the two apart", text, there, none)
		}
	}
	none := refused(t, f.nobody, "CREATE SCHEMA nothing", fault.Denied)
	there := refused(t, f.nobody, "CREATE SCHEMA bank", fault.Denied)
	if strings.ReplaceAll(there.Error(), "bank", "nothing") != none.Error() {
		t.Errorf("%q and %q tell the two apart", there, none)
	}
	// Who may see the table, and no more, is told which right is lacking.
	f.may("bob", "bank.customers", "table-list")
	f.may("bob", "bank.a_view (view)", "view-list")
	f.may("bob", "bank", "namespace-list")
	for text, right := range map[string]string{
		"DROP TABLE customers": "table-drop", "ALTER TABLE customers ADD COLUMN x INT": "table-schema-add", "ALTER TABLE customers RENAME TO other": "table-drop",
		"CALL system.set_current_snapshot('bank.customers', 1)": "table-snapshot-ref-set", "DROP VIEW a_view": "view-drop",
		"ALTER VIEW a_view AS SELECT 1 AS one": "view-properties-write", "CREATE TABLE t (a INT)": "table-create", "CREATE VIEW v AS SELECT 1 AS one": "view-create",
		"DROP SCHEMA bank": "namespace-drop", "ALTER SCHEMA bank SET PROPERTIES ('a' = 'b')": "namespace-properties-write",
		"DROP TABLE IF EXISTS customers": "table-drop", "ALTER TABLE IF EXISTS customers ADD COLUMN x INT": "table-schema-add",
	} {
		if err := refused(t, f.bob, text, fault.Denied); !strings.Contains(err.Error(), right) || !strings.Contains(err.Error(), "command denied to user 'bob'") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if after := f.state(); after != before {
		t.Errorf("a refused statement changed\n%s\ninto\n%s", before, after)
	}
	f.do(f.root, "DROP VIEW a_view")
	f.do(f.root, "DROP TABLE IF EXISTS customers, nothing")
	if got := f.names(f.root); strings.Contains(got, "customers") {
		t.Error(got)
	}
}

// TestCreateOverHidden: whoever may create and hits the name of something that may
// not be seen learns that the name cannot be had, and not what has it; nothing of
// it is changed.
func TestCreateOverHidden(t *testing.T) {
	f := openDDL(t)
	f.do(f.root, "CREATE VIEW a_view AS SELECT 1 AS one")
	f.may("bob", "bank", "table-create view-create")
	f.may("bob", "bank.mine", "table-drop table-data-read")
	f.do(f.bob, "CREATE TABLE mine (a INT)")
	before := f.state()
	for _, text := range []string{
		"CREATE TABLE @n (a INT)", "CREATE TABLE IF NOT EXISTS @n (a INT)", "CREATE OR REPLACE TABLE @n (a INT)", "CREATE TABLE @n LIKE mine",
		"CREATE VIEW @n AS SELECT 1 AS one", "CREATE OR REPLACE VIEW @n AS SELECT 1 AS one", "CREATE VIEW IF NOT EXISTS @n AS SELECT 1 AS one",
		"RENAME TABLE mine TO @n", "ALTER TABLE mine RENAME TO @n",
	} {
		f.may("bob", "bank.mine", "table-properties-read")
		table := refused(t, f.bob, strings.Replace(text, "@n", "customers", 1), fault.Exists)
		view := refused(t, f.bob, strings.Replace(text, "@n", "a_view", 1), fault.Exists)
		if strings.ReplaceAll(table.Error(), "customers", "a_view") != view.Error() {
			t.Errorf("%s: %q and %q tell what has the name", text, table, view)
		}
	}
	if after := f.state(); after != before {
		t.Errorf("a refused statement changed\n%s\ninto\n%s", before, after)
	}
	// The controls: a free name, and what may be seen.
	f.do(f.bob, "RENAME TABLE mine TO yours")
	f.do(f.root, "CREATE TABLE IF NOT EXISTS customers (a INT)")
	if got := warnings(t, f.root); !strings.Contains(got, "customers") {
		t.Error(got)
	}
	for text, says := range map[string]string{
		"CREATE TABLE customers (a INT)": "Table 'customers' already exists", "CREATE TABLE a_view (a INT)": "it is a view",
		"CREATE VIEW customers AS SELECT 1 AS one": "Table 'customers' already exists", "CREATE OR REPLACE VIEW customers AS SELECT 1 AS one": "already exists",
		"CREATE OR REPLACE TABLE a_view (a INT)": "it is a view", "RENAME TABLE customers TO a_view": "it is a view",
		"CREATE SCHEMA bank": "database exists",
	} {
		if err := refused(t, f.root, text, fault.Exists); !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestNamesOfTheServer: what the server answers by itself cannot be created, nor a
// name that means a metadata table, nor a table without a database.
func TestNamesOfTheServer(t *testing.T) {
	f := openDDL(t)
	for _, text := range []string{
		"CREATE SCHEMA information_schema", "CREATE SCHEMA MySQL", "CREATE SCHEMA `performance_schema`", "CREATE SCHEMA sys",
		"CREATE TABLE `t$snapshots` (a INT)", "RENAME TABLE customers TO `t$files`", "CREATE VIEW `v$refs` AS SELECT 1 AS one",
	} {
		refused(t, f.root, text, fault.BadStatement)
	}
	for _, text := range []string{"CREATE TABLE nowhere.t (a INT)", "CREATE VIEW nowhere.v AS SELECT 1 AS one", "RENAME TABLE customers TO nowhere.t", "DROP SCHEMA nowhere", "ALTER SCHEMA nowhere SET PROPERTIES ('a' = 'b')"} {
		refused(t, f.root, text, fault.NoDatabase)
	}
	f.do(f.root, "DROP SCHEMA IF EXISTS nowhere")
	f.do(f.root, "CREATE SCHEMA empty")
	f.do(f.root, "USE empty")
	f.do(f.root, "DROP SCHEMA empty")
	refused(t, f.root, "CREATE TABLE t (a INT)", fault.NoDatabase)
	if err := refused(t, f.root, "DROP SCHEMA bank", fault.BadStatement); strings.Contains(err.Error(), "customers") {
		t.Error(err)
	}
}

// TestPlaces: no statement says where files lie, and none writes the properties
// that hold tags.
func TestPlaces(t *testing.T) {
	f := openDDL(t)
	for _, key := range []string{"location", "write.data.path", "WRITE.METADATA.PATH", " write.folder-storage.path", "sqe.tags", "sqe.column-tags"} {
		for _, text := range []string{
			"CREATE TABLE t (a INT) TBLPROPERTIES ('%s' = 'x')", "ALTER TABLE customers SET TBLPROPERTIES ('%s' = 'x')",
			"ALTER TABLE customers UNSET TBLPROPERTIES IF EXISTS ('%s')", "CREATE OR REPLACE TABLE customers (a INT) TBLPROPERTIES ('%s' = 'x')",
		} {
			refused(t, f.root, strings.Replace(text, "%s", key, 1), fault.BadStatement)
		}
	}
	f.do(f.root, "CREATE TABLE t (a INT) TBLPROPERTIES ('write.parquet.compression-codec' = 'zstd')")
	f.do(f.root, "ALTER TABLE t UNSET TBLPROPERTIES ('write.parquet.compression-codec')")
}
