package bind

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cockroachdb/datadriven"

	"sqe/plan"
)

var tpchTables = map[string]string{
	"region":   "r_regionkey l, r_name s, r_comment s",
	"nation":   "n_nationkey l, n_name s, n_regionkey l, n_comment s",
	"supplier": "s_suppkey l, s_name s, s_address s, s_nationkey l, s_phone s, s_acctbal d, s_comment s",
	"customer": "c_custkey l, c_name s, c_address s, c_nationkey l, c_phone s, c_acctbal d, c_mktsegment s, c_comment s",
	"part":     "p_partkey l, p_name s, p_mfgr s, p_brand s, p_type s, p_size i, p_container s, p_retailprice d, p_comment s",
	"partsupp": "ps_partkey l, ps_suppkey l, ps_availqty i, ps_supplycost d, ps_comment s",
	"orders":   "o_orderkey l, o_custkey l, o_orderstatus s, o_totalprice d, o_orderdate t, o_orderpriority s, o_clerk s, o_shippriority i, o_comment s",
	"lineitem": "l_orderkey l, l_partkey l, l_suppkey l, l_linenumber i, l_quantity d, l_extendedprice d, l_discount d, l_tax d, l_returnflag s, l_linestatus s, l_shipdate t, l_commitdate t, l_receiptdate t, l_shipinstruct s, l_shipmode s, l_comment s",
}

func tpchWorld() *world {
	w := &world{relations: map[string]*Relation{}}
	typ := map[string]arrow.DataType{"l": plan.Int64, "i": plan.Int32, "s": plan.String, "d": plan.Decimal(15, 2), "t": plan.Date}
	for name, cols := range tpchTables {
		var fields []plan.Field
		for i, c := range strings.Split(cols, ", ") {
			n, t, _ := strings.Cut(c, " ")
			fields = append(fields, plan.Field{ID: i + 1, Name: n, Type: typ[t], Required: true})
		}
		w.relations["db."+name] = table(name, fields...)
	}
	return w
}

// All 22 queries bind into the plan alone: nothing of them goes to the row
// executor.
func TestTPCH(t *testing.T) {
	files, err := filepath.Glob("../../tests/tpch/queries/*.sql")
	if err != nil || len(files) != 22 {
		t.Fatalf("%d queries: %v", len(files), err)
	}
	b, s := newBinder(t)
	datadriven.RunTest(t, "testdata/tpch", func(t *testing.T, d *datadriven.TestData) string {
		raw, err := os.ReadFile("../../tests/tpch/queries/" + d.Cmd + ".sql")
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(raw), "{fraction}", "0.0001")
		out, err := b.Bind(context.Background(), s, tpchWorld(), mustParse(t, text), nil)
		if err != nil {
			return fmt.Sprintf("error: %v\n", err)
		}
		plan.Walk(out.Plan, func(n plan.Node) bool {
			if _, foreign := n.(*plan.Foreign); foreign {
				t.Errorf("%s holds a Foreign", d.Cmd)
			}
			return true
		})
		var lines []string
		for _, l := range strings.Split(plan.Format(out.Plan), "\n") {
			if before, _, isScan := strings.Cut(l, "scan lake.db."); isScan {
				l = before + "scan " + strings.Fields(l[len(before)+len("scan lake.db."):])[0]
			}
			lines = append(lines, l)
		}
		return strings.Join(lines, "\n")
	})
}

func BenchmarkBindPointQuery(b *testing.B) {
	binder, s := newBinder(b)
	w := tpchWorld()
	st := mustParse(b, "select n_name, n_regionkey from nation where n_nationkey = 7")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := binder.Bind(context.Background(), s, w, st, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBindTPCH5(b *testing.B) {
	binder, s := newBinder(b)
	w := tpchWorld()
	raw, err := os.ReadFile("../../tests/tpch/queries/q05.sql")
	if err != nil {
		b.Fatal(err)
	}
	st := mustParse(b, string(raw))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := binder.Bind(context.Background(), s, w, st, nil); err != nil {
			b.Fatal(err)
		}
	}
}
