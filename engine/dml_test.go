package engine_test

import (
	"strings"
	"testing"

	"sqe/fault"
)

// TestRows: each statement that changes rows, by copy-on-write and merge-on-read, in
// format versions 2 and 3.
func TestRows(t *testing.T) {
	for _, version := range []string{"2", "3"} {
		for _, mode := range []string{"copy-on-write", "merge-on-read"} {
			t.Run("v"+version+" "+mode, func(t *testing.T) { testRows(t, version, mode) })
		}
	}
}

func testRows(t *testing.T, version, mode string) {
	f := openDDL(t)
	s := f.sue
	f.do(s, "CREATE TABLE t (id BIGINT NOT NULL, name STRING, n INT, at TIMESTAMP, d DECIMAL(10,2)) TBLPROPERTIES ('format-version' = '"+version+
		"', 'write.delete.mode' = '"+mode+"', 'write.update.mode' = '"+mode+"', 'write.merge.mode' = '"+mode+"')")
	affected := func(text string, want uint64) {
		t.Helper()
		res, _, err := s.Query(t.Context(), text)
		if err != nil {
			t.Fatalf("%s: %v (%s)", text, err, fault.KindOf(err))
		}
		if res.Affected != want {
			t.Errorf("%s: %d rows, want %d", text, res.Affected, want)
		}
	}
	affected("INSERT INTO t VALUES (1, 'a', 10, '2026-01-01 12:00:00', 1.5), (2, 'b', NULL, NULL, 2), (3, 'c', 30, NULL, 3.25)", 3)
	affected("INSERT INTO t (id, name) VALUES (4, 'd')", 1)
	affected("INSERT INTO t (name, id) SELECT concat(name, name), id + 10 FROM t WHERE id <= 2", 2)
	affected("INSERT INTO t BY NAME SELECT 'x' AS name, 20 AS id", 1)
	must(t, s, "SELECT id, name, n, at, d FROM t ORDER BY id",
		"1|a|10|2026-01-01T12:00:00|1.5\n2|b|NULL|NULL|2\n3|c|30|NULL|3.25\n4|d|NULL|NULL|NULL\n11|aa|NULL|NULL|NULL\n12|bb|NULL|NULL|NULL\n20|x|NULL|NULL|NULL")
	affected("UPDATE t SET n = id * 2, name = upper(name) WHERE id IN (2, 4)", 2)
	must(t, s, "SELECT id, name, n, d FROM t WHERE id <= 4 ORDER BY id", "1|a|10|1.5\n2|B|4|2\n3|c|30|3.25\n4|D|8|NULL")
	affected("UPDATE t SET n = 1 WHERE id = 999", 0)
	affected("DELETE FROM t WHERE id > 10", 3)
	affected("DELETE FROM t WHERE id IN (SELECT id FROM t WHERE n = 30)", 1)
	must(t, s, "SELECT id FROM t ORDER BY id", "1\n2\n4")
	f.do(s, "CREATE TABLE src AS SELECT 1 AS id, 'one' AS name, 100 AS n UNION ALL SELECT 4, 'four', 400 UNION ALL SELECT 5, 'five', 500")
	affected("MERGE INTO t USING src s ON t.id = s.id WHEN MATCHED AND s.n = 400 THEN DELETE WHEN MATCHED THEN UPDATE SET name = s.name, n = t.n + s.n "+
		"WHEN NOT MATCHED THEN INSERT (id, name, n) VALUES (s.id, s.name, s.n) WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = -1", 4)
	must(t, s, "SELECT id, name, n, d FROM t ORDER BY id", "1|one|110|1.5\n2|B|-1|2\n5|five|500|NULL")
	refused(t, s, "MERGE INTO t USING (SELECT 1 AS id UNION ALL SELECT 1) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 0", fault.BadStatement)
	refused(t, s, "INSERT INTO t (name) VALUES ('no id')", fault.NullValue)
	refused(t, s, "INSERT INTO t (id, n) SELECT id, 5000000000 + id FROM t", fault.OutOfRange)
	refused(t, s, "UPDATE t SET id = NULL WHERE id = 1", fault.NullValue)
	must(t, s, "SELECT id, name, n FROM t ORDER BY id", "1|one|110\n2|B|-1\n5|five|500")
	affected("INSERT OVERWRITE t (id, name) SELECT id, name FROM t WHERE id < 5", 2)
	must(t, s, "SELECT id, name, n FROM t ORDER BY id", "1|one|NULL\n2|B|NULL")
	affected("TRUNCATE TABLE t", 0)
	must(t, s, "SELECT COUNT(*) FROM t", "0")
	affected("INSERT INTO t (id) VALUES (7)", 1)
	affected("DELETE FROM t", 1)
	must(t, s, "SELECT COUNT(*) FROM t", "0")
}

// TestOverwritePartitions: with values what has them goes, whether or not rows come;
// without values what gets rows.
func TestOverwritePartitions(t *testing.T) {
	f := openDDL(t)
	s := f.sue
	f.do(s, "CREATE TABLE t (id BIGINT, day DATE, region STRING, name STRING) PARTITIONED BY (day, region, BUCKET(2, id))")
	fill := func() {
		f.do(s, "INSERT OVERWRITE t VALUES (1, '2026-01-01', 'EU', 'a'), (2, '2026-01-01', 'US', 'b'), (3, '2026-01-02', 'EU', 'c'), (4, NULL, 'EU', 'd')")
	}
	const all = "SELECT id, name FROM t ORDER BY id"
	for _, x := range []struct{ text, want string }{
		{"INSERT OVERWRITE t PARTITION (day = '2026-01-01') SELECT 9, 'EU', 'x'", "3|c\n4|d\n9|x"},
		{"INSERT OVERWRITE t PARTITION (day = '2026-01-01', region = 'US') (id, name) VALUES (9, 'x')", "1|a\n3|c\n4|d\n9|x"},
		{"INSERT OVERWRITE t PARTITION (day = '2026-01-01') SELECT id, region, name FROM t WHERE FALSE", "3|c\n4|d"},
		{"INSERT OVERWRITE t PARTITION (day = NULL) SELECT 9, 'EU', 'x'", "1|a\n2|b\n3|c\n9|x"},
		{"INSERT OVERWRITE t PARTITION (day, region) SELECT id, day, region, upper(name) FROM t WHERE id IN (1, 3)", "1|A\n2|b\n3|C\n4|d"},
		{"INSERT OVERWRITE t PARTITION (day = '2027-01-01') SELECT 9, 'EU', 'x'", "1|a\n2|b\n3|c\n4|d\n9|x"},
		{"INSERT OVERWRITE t SELECT 9, '2026-01-01', 'EU', 'x'", "9|x"},
	} {
		fill()
		f.do(s, x.text)
		must(t, s, all, x.want)
	}
	fill()
	refused(t, s, "INSERT OVERWRITE t PARTITION (name = 'a') SELECT 9, '2026-01-01', 'EU'", fault.BadStatement)
	refused(t, s, "INSERT OVERWRITE t PARTITION (id = 1) SELECT '2026-01-01', 'EU', 'x'", fault.BadStatement)
	refused(t, s, "INSERT OVERWRITE t PARTITION (name) SELECT 9, '2026-01-01', 'EU', 'x'", fault.BadStatement)
	must(t, s, all, "1|a\n2|b\n3|c\n4|d")
}

// TestSourcesOfRows: rows come from the row executor, from views and earlier
// snapshots; what is no table is not changed.
func TestSourcesOfRows(t *testing.T) {
	f := openDDL(t)
	s := f.sue
	f.do(s, "CREATE TABLE t (id BIGINT, name STRING, n INT DEFAULT 7) TBLPROPERTIES ('format-version' = '3')")
	f.do(s, "INSERT INTO t (id, name) SELECT 5, bin(5)")
	f.do(s, "INSERT INTO t (id, name) VALUES (6, bin(6)), (7, NULL)")
	f.do(s, "CREATE VIEW v AS SELECT id, name FROM t WHERE id > 5")
	f.do(s, "INSERT INTO t (id, name) SELECT id + 10, name FROM v")
	f.do(s, "UPDATE t SET name = (SELECT max(v.name) FROM v WHERE v.id = t.id) WHERE id = 6")
	f.do(s, "SET @x = 5")
	f.do(s, "DELETE FROM t WHERE id = @x")
	must(t, s, "SELECT id, name, n FROM t ORDER BY id", "6|110|7\n7|NULL|7\n16|110|7\n17|NULL|7")
	f.do(s, "CREATE TABLE bins AS SELECT id, bin(id) AS b FROM t")
	must(t, s, "SELECT id, b FROM bins ORDER BY id", "6|110\n7|111\n16|10000\n17|10001")
	f.do(s, "ALTER TABLE t CREATE TAG before_all")
	f.do(s, "DELETE FROM t")
	f.do(s, "INSERT INTO t SELECT * FROM t FOR VERSION AS OF 'before_all'")
	must(t, s, "SELECT COUNT(*) FROM t", "4")
	for _, text := range []string{
		"INSERT INTO v VALUES (1, 'x')", "UPDATE v SET id = 1", "DELETE FROM v", "TRUNCATE TABLE v", "MERGE INTO v USING t ON v.id = t.id WHEN MATCHED THEN DELETE",
	} {
		if err := refused(t, s, text, fault.Unsupported); !strings.Contains(err.Error(), "is a view") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"INSERT INTO `t$files` VALUES (1)", "DELETE FROM `t$snapshots`", "TRUNCATE TABLE `t$refs`", "CREATE TABLE `x$files` AS SELECT 1 AS a"} {
		if _, err := query(s, text); err == nil || fault.Is(err, fault.Internal) {
			t.Errorf("%s: %v", text, err)
		}
	}
	must(t, s, "SELECT COUNT(*) FROM t", "4")
}
