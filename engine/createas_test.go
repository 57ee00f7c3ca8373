package engine_test

import (
	"strings"
	"testing"

	"sqe/fault"
)

// TestCreateTableAs: the table has the columns and rows of the query, in every type.
func TestCreateTableAs(t *testing.T) {
	f := openDDL(t)
	s := f.sue
	f.do(s, "CREATE TABLE t (id BIGINT NOT NULL, s STRING, n INT, f DOUBLE, d DECIMAL(10,2), day DATE, at TIMESTAMP, c TIME, u UUID, b BLOB, ok BOOLEAN, "+
		"address STRUCT<street: STRING, no: INT>, tags ARRAY<STRING>, m MAP<STRING, INT>)")
	f.do(s, `INSERT INTO t VALUES (1, 'x', 2, 1.5, 3.25, '2026-01-02', '2026-01-02 03:04:05', '01:02:03', '11111111-2222-3333-4444-555555555555', 'bytes', TRUE, `+
		`'{"street": "High", "no": 7}', '["a", "b"]', '{"k": 1}')`)
	f.do(s, "CREATE TABLE u PARTITIONED BY (MONTH(at)) COMMENT 'copy' TBLPROPERTIES ('a' = 'b') AS SELECT * FROM t")
	all := "SELECT * FROM "
	want, err := query(s, all+"t")
	if err != nil || !strings.Contains(want, "High") {
		t.Fatalf("%s, %v", want, err)
	}
	must(t, s, all+"u", want)
	from, to := f.table("t"), f.table("u")
	for i, x := range from.Fields {
		if y := to.Fields[i]; y.Name != x.Name || y.Type.ID() != x.Type.ID() || y.Required {
			t.Errorf("column %s has become %+v", x.Name, y)
		}
	}
	if to.Properties["a"] != "b" || to.Properties["comment"] != "copy" {
		t.Errorf("%v", to.Properties)
	}
	must(t, s, "SELECT COUNT(*) FROM `u$partitions`", "1")

	f.do(s, "CREATE TABLE v AS SELECT id, COUNT(*) AS c, SUM(d) AS total, 'text' AS s FROM t GROUP BY id")
	must(t, s, "SELECT * FROM v", "1|1|3.25|text")
	res, _, err := s.Query(t.Context(), "CREATE OR REPLACE TABLE v AS SELECT id, s FROM v UNION ALL SELECT 2, 'y'")
	if err != nil || res.Affected != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	must(t, s, "SELECT * FROM v ORDER BY id", "1|text\n2|y")
	f.do(s, "CREATE TABLE IF NOT EXISTS v AS SELECT 3 AS id")
	must(t, s, "SELECT COUNT(*) FROM v", "2")
	refused(t, s, "CREATE TABLE v AS SELECT 3 AS id", fault.Exists)
	f.do(s, "CREATE TABLE w AS SELECT id, s FROM v WITH NO DATA")
	must(t, s, "SELECT COUNT(*) FROM w", "0")
	refused(t, s, "CREATE TABLE x AS SELECT NULL AS nothing", fault.BadStatement)
	refused(t, s, "CREATE TABLE x AS SELECT id, id FROM v", fault.BadStatement)
	refused(t, s, "CREATE TABLE x AS SELECT CAST(CAST(id AS DECIMAL(20,0)) * 1000000000000000000000 AS SIGNED) AS n FROM v", fault.OutOfRange)
	refused(t, s, "SELECT * FROM x", fault.NotFound)
}
