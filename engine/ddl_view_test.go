package engine_test

import (
	"strings"
	"testing"

	"sqe/fault"
)

// TestViews: views are bound when they are made, and read with the rights of who
// reads.
func TestViews(t *testing.T) {
	f := openDDL(t)
	f.do(f.root, "CREATE VIEW v (k, n) COMMENT 'two' TBLPROPERTIES ('owner' = 'ann') AS SELECT cust_id, COUNT(*) /* all */ FROM customers GROUP BY cust_id")
	must(t, f.root, "SELECT k, n FROM v WHERE k = 1", "1|1")
	must(t, f.root, "SHOW COLUMNS FROM v", "k|bigint|NO||NULL|\nn|bigint|NO||NULL|")
	if got, err := query(f.root, "SHOW CREATE VIEW v"); err != nil || !strings.Contains(got, "SELECT cust_id, COUNT(*)") {
		t.Errorf("%s, %v", got, err)
	}
	refused(t, f.root, "SHOW CREATE VIEW customers", fault.BadStatement)
	// Time travel in a view is that of its text, read and shown as it was written.
	f.do(f.root, "CREATE VIEW past AS SELECT cust_id FROM customers FOR VERSION AS OF 'main'")
	must(t, f.root, "SELECT COUNT(*) FROM past", "12")
	must(t, f.root, "SHOW CREATE TABLE past", "past|CREATE VIEW `past` AS SELECT cust_id FROM customers FOR VERSION AS OF 'main'|utf8mb4|utf8mb4_0900_bin")
	// The reader needs the view and what it reads.
	f.may("bob", "bank.v (view)", "view-list view-properties-read")
	refused(t, f.bob, "SELECT * FROM v", fault.NotFound)
	f.may("bob", "bank.customers", "table-data-read")
	must(t, f.bob, "SELECT n FROM v WHERE k = 2", "1")
	f.gate.revoke("bob", "bank.v (view)", "view-list", "view-properties-read")
	refused(t, f.bob, "SELECT * FROM v", fault.NotFound)

	before := f.state()
	f.may("bob", "bank", "view-create")
	for text, kind := range map[string]fault.Kind{
		"CREATE VIEW w AS SELECT nothing FROM customers":                  fault.NoColumn,
		"CREATE VIEW w AS SELECT * FROM nothing":                          fault.NotFound,
		"CREATE VIEW w AS SELECT * FROM payments":                         fault.NotFound, // bob may not read it
		"CREATE VIEW w (a, b, c) AS SELECT cust_id, 1 FROM customers":     fault.BadStatement,
		"CREATE VIEW w AS SELECT cust_id, cust_id FROM customers":         fault.BadStatement,
		"CREATE VIEW w AS VALUES ROW(1, 2)":                               fault.BadStatement, // nobody could read it
		"CREATE VIEW w AS DELETE FROM customers":                          fault.Syntax,
		"CREATE VIEW w AS SELECT 1 AS a INTO OUTFILE 'x'":                 fault.Unsupported,
		"CREATE VIEW w AS SELECT ? AS a":                                  fault.Syntax,
		"CREATE VIEW w TBLPROPERTIES ('location' = 'x') AS SELECT 1 AS a": fault.BadStatement,
	} {
		refused(t, f.bob, text, kind)
	}
	refused(t, f.root, "CREATE OR REPLACE VIEW v AS SELECT * FROM v", fault.BadStatement)
	refused(t, f.root, "ALTER VIEW v AS SELECT * FROM (SELECT * FROM bank.v) x", fault.BadStatement)
	refused(t, f.root, "ALTER VIEW nothing AS SELECT 1 AS a", fault.NotFound)
	refused(t, f.root, "ALTER VIEW customers AS SELECT 1 AS a", fault.NotFound)
	refused(t, f.root, "ALTER VIEW v UNSET TBLPROPERTIES ('nothing')", fault.BadStatement)
	refused(t, f.root, "DROP VIEW v, nothing", fault.NotFound)
	if after := f.state(); after != before {
		t.Errorf("a refused statement changed\n%s\ninto\n%s", before, after)
	}
	// By way of another view.
	f.do(f.root, "CREATE VIEW u AS SELECT * FROM v")
	refused(t, f.root, "CREATE OR REPLACE VIEW v AS SELECT * FROM u", fault.BadStatement)

	f.do(f.root, "CREATE OR REPLACE VIEW v AS SELECT 1 AS one")
	must(t, f.sue, "SELECT * FROM v", "1")
	f.do(f.root, "CREATE OR REPLACE VIEW v AS SELECT 2 AS one")
	f.do(f.root, "CREATE OR REPLACE VIEW v AS SELECT 1 AS one") // as it was before
	must(t, f.sue, "SELECT * FROM v", "1")
	f.do(f.root, "ALTER VIEW v SET TBLPROPERTIES ('a' = 'b')")
	must(t, f.sue, "SELECT * FROM v", "1")
	f.do(f.root, "ALTER VIEW v UNSET TBLPROPERTIES ('a')")
	f.do(f.root, "CREATE VIEW IF NOT EXISTS v AS SELECT 5 AS five")
	must(t, f.sue, "SELECT * FROM v", "1")
	f.do(f.root, "DROP VIEW IF EXISTS u, v, nothing")
	refused(t, f.root, "SELECT * FROM v", fault.NotFound)
}

// TestViewsElsewhere: a view in another database than the current one names its
// tables with their database: what it would mean without differs.
func TestViewsElsewhere(t *testing.T) {
	f := openDDL(t)
	f.do(f.root, "CREATE SCHEMA shop")
	f.do(f.root, "CREATE TABLE shop.customers (other INT)")
	refused(t, f.root, "CREATE VIEW shop.v AS SELECT COUNT(*) AS n FROM customers", fault.BadStatement)
	f.do(f.root, "CREATE VIEW shop.v AS SELECT COUNT(*) AS n FROM bank.customers")
	must(t, f.root, "SELECT * FROM shop.v", "12")
	f.do(f.root, "USE shop")
	f.do(f.root, "CREATE VIEW w AS SELECT COUNT(*) AS n FROM customers")
	must(t, f.root, "SELECT * FROM w", "0")
	f.do(f.root, "USE bank")
	must(t, f.root, "SELECT * FROM shop.w", "0")
	f.do(f.root, "CREATE VIEW x AS WITH c AS (SELECT 1 AS one) SELECT * FROM c")
	f.do(f.root, "CREATE VIEW shop.x AS WITH c AS (SELECT 1 AS one) SELECT * FROM c")
	must(t, f.root, "SELECT * FROM shop.x", "1")
}
