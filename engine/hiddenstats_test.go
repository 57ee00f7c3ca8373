package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"sqe/engine"
	"sqe/fault"
	"sqe/identity"
	"sqe/plan"
	"sqe/policy"
)

// TestErrorsOfHiddenRows: what becomes of a statement, also whether it fails, is the same
// whatever the rows are that its user does not see: they are in the statistics of the
// files from which the executor and the planner of files leave out work.
func TestErrorsOfHiddenRows(t *testing.T) {
	f := openDDL(t)
	f.gate.state.restrict = func(p identity.Principal, t *plan.Table) *policy.Restrictions {
		r := &policy.Restrictions{Complete: true, Columns: map[int]policy.ColumnRule{}}
		if p.Name == "eve" {
			r.Filters = []policy.RowFilter{{SQL: "region = 'EU'", Origin: policy.Origin{Source: "gate", Policy: "rows", ID: 1}}}
		}
		return r
	}
	f.may("eve", "bank", "namespace-list")
	f.may("eve", "bank.*", "table-list table-data-read table-data-write")
	eve, err := f.Open(identity.Principal{Name: "eve"}, engine.ConnInfo{ID: 9, RemoteAddr: "test", Database: "bank"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(eve.Close)
	seen := "(1, 'Anna', 'EU', 10, 'x'), (2, 'Bert', 'EU', 20, 'x')"
	tables := []string{"few", "many"}
	for _, name := range tables {
		f.do(f.sue, "CREATE TABLE "+name+" (id BIGINT, name STRING, region STRING, n BIGINT, note STRING)")
	}
	f.do(f.sue, "INSERT INTO few VALUES "+seen)
	f.do(f.sue, "INSERT INTO many VALUES "+seen+", (3, '7', 'US', 5000, NULL), (300, NULL, 'US', -9, 'x')")
	outcome := func(s *engine.Session, text string) string {
		rows, err := query(s, text)
		if fault.Is(err, fault.Internal) {
			t.Errorf("%s: %v", text, err)
		}
		for _, name := range tables {
			rows = strings.ReplaceAll(rows, name, "it")
		}
		return fmt.Sprint(rows, " ", err != nil)
	}
	failed := 0
	for _, text := range []string{
		"SELECT n > 1000 AND CAST(name AS SIGNED) > 0 FROM it",
		"SELECT CAST(name AS SIGNED) > 0 AND n > 1000 FROM it",
		"SELECT n <= 1000 OR CAST(name AS SIGNED) > 0 FROM it",
		"SELECT note IS NULL AND CAST(name AS SIGNED) > 0 FROM it",
		"SELECT n < 0 AND n + 9223372036854775807 > 0 FROM it",
		"SELECT COUNT(*) FROM it t WHERE (SELECT x.id FROM it x WHERE x.n <= t.n) = 3",
		"SELECT COUNT(*) FROM it t JOIN (SELECT 300 AS k) z ON z.k = (SELECT x.id FROM it x WHERE x.n <= t.n)",
		"SELECT * FROM it a JOIN it b ON CAST(a.name AS SIGNED) = b.id AND a.n + b.n > 1000",
		"SELECT a.id FROM it a LEFT JOIN it b ON CAST(a.name AS SIGNED) = b.id AND a.n > 1000",
		"SELECT COUNT(*) FROM it WHERE CAST(name AS SIGNED) > 0 AND n IN (SELECT 1000 UNION ALL SELECT 4000)",
		"SELECT * FROM (SELECT id, CAST(name AS SIGNED) c FROM it) t JOIN (SELECT 0 AS k UNION ALL SELECT 200) z ON z.k = t.id",
		"SELECT * FROM (SELECT n, (SELECT x.id FROM it x WHERE x.id > 0) c FROM it) q WHERE n > 1000",
		"SELECT * FROM (SELECT n, MAX(CAST(name AS SIGNED)) c FROM it GROUP BY n) q WHERE n > 1000",
		"DELETE FROM it WHERE (SELECT x.id FROM it x WHERE x.n <= it.n) = 3",
		"UPDATE it SET n = 1 WHERE CAST(name AS SIGNED) > 0 AND n IN (SELECT 1000 UNION ALL SELECT 4000)",
		// What fails, or not, for the rows that she sees alone.
		"SELECT SUM(CAST(name AS SIGNED)) FROM it",
		"SELECT n + 1, n * id FROM it WHERE id < 100",
	} {
		few, many := outcome(eve, strings.NewReplacer(" it ", " few ", " it.", " few.", " it)", " few)").Replace(text+" ")), outcome(eve, strings.NewReplacer(" it ", " many ", " it.", " many.", " it)", " many)").Replace(text+" "))
		if few != many {
			t.Errorf("%s: without hidden rows %s, with some %s", text, few, many)
		}
		if strings.HasSuffix(few, "true") {
			failed++
		}
	}
	if failed == 0 || failed == 17 {
		t.Errorf("%d statements failed: no difference would be seen", failed)
	}
	// Where no row is hidden the same rows do show.
	if text := "SELECT n > 1000 AND CAST(name AS SIGNED) > 0 FROM "; outcome(f.sue, text+"few") == outcome(f.sue, text+"many") {
		t.Error("who sees all rows does not see them")
	}
}
