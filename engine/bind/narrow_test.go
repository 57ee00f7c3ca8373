package bind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"testing"

	"sqe/plan"
)

// counting notes the databases whose names were listed, and the relations that were
// looked at.
type counting struct {
	*world
	listed, loaded []string
}

func (c *counting) Names(ctx context.Context, database string) (tables, views []string, err error) {
	c.listed = append(c.listed, database)
	return c.world.Names(ctx, database)
}

func (c *counting) Relation(ctx context.Context, database, name string, at plan.AsOf) (*Relation, error) {
	c.loaded = append(c.loaded, database+"."+name)
	return c.world.Relation(ctx, database, name, at)
}

// TestNarrow: a query of information_schema for one database, or one table, asks for
// no others, and answers the same as one whose condition cannot be read.
func TestNarrow(t *testing.T) {
	worldOf := func() *counting {
		w := &counting{world: tinyWorld()}
		for i := range 5 {
			w.relations[fmt.Sprintf("more%d.t", i)] = table("t", field(1, "a", plan.Int64))
			w.relations[fmt.Sprintf("more%d.u", i)] = table("u", field(1, "a", plan.Int64))
			w.relations[fmt.Sprintf("more%d.v", i)] = view("select a from t")
		}
		w.relations["émore.t"] = table("t", field(1, "a", plan.Int64))
		return w
	}
	ask := func(w *counting, text string, args ...plan.Literal) string {
		t.Helper()
		b, s := newBinder(t)
		s.SetDatabase("more1")
		st := mustParse(t, text)
		out, err := b.Bind(context.Background(), s, w, st, args)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		r, err := b.RunForeign(context.Background(), s, w, out.Plan.(*plan.Foreign), nil, Limits{})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		defer func() { _ = r.Close() }()
		var rows []string
		for {
			batch, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			for i := range int(batch.NumRows()) {
				row := ""
				for j := range int(batch.NumCols()) {
					row += batch.Column(j).ValueStr(i) + "|"
				}
				rows = append(rows, row)
			}
			batch.Release()
		}
		sort.Strings(rows)
		return strings.Join(rows, "\n")
	}
	text := func(s string) []plan.Literal { return []plan.Literal{{Value: s, Typ: plan.String}} }
	const columns = "SELECT table_schema, table_name, column_name FROM information_schema.columns"
	const tables = "SELECT table_schema, table_name FROM information_schema.tables"
	for _, x := range []struct {
		query, condition string
		args             []plan.Literal
		narrow           bool
	}{
		{columns, "table_schema = 'more1'", nil, true},
		{columns, "'more1' = table_schema", nil, true},
		{columns, "table_schema = 'MORE1'", nil, true},
		{columns, "TABLE_SCHEMA LIKE 'more1' AND (table_name = 't' AND ordinal_position > 0)", nil, true},
		{columns + " c", "c.table_schema IN ('more1', 'none')", nil, true},
		{columns, "table_schema = ? AND table_name = 'u'", text("more1"), true},
		{columns, "table_schema = DATABASE()", nil, true},
		{columns, "table_name = 't' AND table_schema = 'more1'", nil, true},
		{tables, "table_schema = 'more1' AND table_type = 'VIEW'", nil, true},
		{"SELECT table_schema, table_name FROM information_schema.views", "table_schema = 'more1'", nil, true},
		{"SELECT schema_name FROM information_schema.schemata", "schema_name = 'more1'", nil, true},
		{columns, "table_schema = 'more1' OR table_name = 'w'", nil, false},
		{columns, "NOT table_schema = 'more1'", nil, false},
		{columns, "table_schema <> 'more1'", nil, false},
		{columns, "table_schema LIKE 'more_'", nil, false},
		{columns, "table_schema = 0 AND table_name = 'w'", nil, false},
		{columns, "table_schema = 'émore'", nil, false},
		{columns, "table_schema = CONCAT('more', '1')", nil, false},
		{columns, "column_name = 'more1' OR table_schema IN ('more1', table_schema)", nil, false},
		{tables + " t", "t.table_schema = 'more1' OR EXISTS (SELECT 1 FROM information_schema.tables x WHERE x.table_schema = 'more2')", nil, false},
		{"SELECT t.table_name, s.schema_name FROM information_schema.tables t JOIN information_schema.schemata s ON 1 = 1", "table_schema = 'more1'", nil, false},
	} {
		w, whole := worldOf(), worldOf()
		got := ask(w, x.query+" WHERE "+x.condition, x.args...)
		want := ask(whole, x.query+" WHERE ("+x.condition+") OR 1 = 0", x.args...)
		if got != want {
			t.Errorf("%s: %s\nnot as without a list that is cut:\n%s", x.condition, got, want)
		}
		others := 0
		for _, name := range append(w.listed, w.loaded...) {
			if !strings.HasPrefix(name, "more1") && name != "émore" && !strings.HasPrefix(name, "émore.") {
				others++
			}
		}
		if (others == 0) != x.narrow && !strings.Contains(x.query, "schemata") {
			t.Errorf("%s: %d look-ups elsewhere: %v %v", x.condition, others, w.listed, w.loaded)
		}
		if strings.Contains(x.condition, "table_name = 't'") && x.narrow {
			for _, name := range w.loaded {
				if strings.HasSuffix(name, ".u") {
					t.Errorf("%s looks at %s", x.condition, name)
				}
			}
		}
	}
}

// TestNoSelectLimit: the numbers by which tools lift sql_select_limit lift it, in both
// executors; a small one bounds both.
func TestNoSelectLimit(t *testing.T) {
	b, s := newBinder(t)
	rows := func(limit string) int {
		t.Helper()
		if _, err := runText(t, b, s, "set session sql_select_limit = "+limit, 0, Limits{}); err != nil {
			t.Fatalf("%s: %v", limit, err)
		}
		got, err := runText(t, b, s, "select collation_name from information_schema.collations", 0, Limits{})
		if err != nil {
			t.Fatalf("%s: %v", limit, err)
		}
		return strings.Count(got, "\n")
	}
	if n := rows("2"); n != 2 {
		t.Fatalf("2: %d rows", n)
	}
	for _, none := range []string{"18446744073709551615", "9223372036854775807", "4294967295", "default"} {
		rows("2")
		if n := rows(none); n < 100 {
			t.Errorf("%s: %d rows", none, n)
		}
		out, err := b.Bind(context.Background(), s, tinyWorld(), mustParse(t, "select a from t"), nil)
		if err != nil || strings.Contains(plan.Format(out.Plan), "limit") {
			t.Errorf("%s: %v, %v", none, out, err)
		}
	}
}
