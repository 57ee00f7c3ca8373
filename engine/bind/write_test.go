package bind

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cockroachdb/datadriven"

	"sqe/engine/parse"
	"sqe/fault"
	"sqe/plan"
)

// writeWorld has tables to change.
func writeWorld() *world {
	w := tinyWorld()
	required := field(1, "id", plan.Int64)
	required.Required = true
	defaulted := field(2, "state", plan.String)
	defaulted.Default = text("new")
	unread := field(3, "since", plan.Date)
	unread.Default = &plan.Literal{}
	w.relations["db.strict"] = table("strict", required, defaulted, unread)
	w.relations["db.types"] = table("types", field(1, "i", plan.Int32), field(2, "l", plan.Int64), field(3, "f", plan.Float32), field(4, "dbl", plan.Float64),
		field(5, "dec", plan.Decimal(5, 2)), field(6, "ok", plan.Bool), field(7, "s", plan.String), field(8, "d", plan.Date), field(9, "tm", plan.Time),
		field(10, "ts", plan.Timestamp), field(11, "tz", plan.TimestampTZ), field(12, "ns", plan.TimestampNS), field(13, "u", plan.UUID),
		field(14, "b", plan.Binary), field(15, "fx", &arrow.FixedSizeBinaryType{ByteWidth: 4}))
	snapshots := table("t", field(1, "snapshot_id", plan.Int64))
	snapshots.Table.Metadata = "snapshots"
	w.relations["db.t$snapshots"] = snapshots
	w.relations["db.odd"] = table("odd", field(1, "a", plan.Int64), field(2, fileColumn, plan.String))
	return w
}

func bindWrite(t testing.TB, text string, args ...plan.Literal) (*BoundWrite, error) {
	t.Helper()
	st, _, err := parse.Parse(text)
	if err != nil {
		return nil, err
	}
	b, s := newBinder(t)
	return b.BindWrite(context.Background(), s, writeWorld(), st, args)
}

func showWrite(w *BoundWrite) string {
	var b strings.Builder
	b.WriteString("write " + w.Write.Target.Name.String())
	if w.Write.Overwrite {
		b.WriteString(" overwrite")
	}
	if w.Write.File != 0 {
		fmt.Fprintf(&b, " at #%d #%d", w.Write.File, w.Write.Pos)
	}
	if w.Write.Branch != 0 {
		fmt.Fprintf(&b, " branch #%d", w.Write.Branch)
	}
	if w.Write.Once {
		b.WriteString(" once")
	}
	b.WriteByte('\n')
	for i, br := range w.Write.Branches {
		fmt.Fprintf(&b, "%d: %s", i, map[plan.WriteOp]string{plan.InsertRow: "insert", plan.UpdateRow: "update", plan.DeleteRow: "delete"}[br.Op])
		ids := make([]int, 0, len(br.Values))
		for id := range br.Values {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		for _, id := range ids {
			f, _ := w.Write.Target.Field(id)
			fmt.Fprintf(&b, " %s=#%d", f.Name, br.Values[id])
		}
		b.WriteByte('\n')
	}
	for _, p := range w.Partition {
		f, _ := w.Write.Target.Field(p.Field)
		fmt.Fprintf(&b, "partition %s", f.Name)
		if p.Value != nil {
			b.WriteString(" = " + plan.FormatExpr(p.Value))
		}
		b.WriteByte('\n')
	}
	b.WriteString(show(w.Write.Rows))
	for _, x := range w.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", x)
	}
	return b.String()
}

// TestBindWrite runs testdata/write: statements that change rows, and the changes
// that they become.
func TestBindWrite(t *testing.T) {
	datadriven.Walk(t, "testdata/write", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := bindWrite(t, d.Input)
			if err != nil {
				return fmt.Sprintf("%s: %v\n", fault.KindOf(err), err)
			}
			if err := wellFormed(out.Write.Rows); err != nil {
				t.Fatal(err)
			}
			return showWrite(out)
		})
	})
}

// What is wrong with a statement is said with the name of the column.
func TestWriteFaults(t *testing.T) {
	for _, c := range []struct {
		text string
		kind fault.Kind
		want string
	}{
		{"insert into missing values (1)", fault.NotFound, "missing"},
		{"insert into v (a) values (1)", fault.Unsupported, "view"},
		{"delete from vv", fault.Unsupported, "view"},
		{"insert into `t$snapshots` values (1)", fault.Unsupported, "metadata"},
		{"delete from `t$snapshots`", fault.Unsupported, "metadata"},
		{"insert into u (a, q) values (1, 2)", fault.NoColumn, "'q'"},
		{"insert into u by name select 1 as q", fault.NoColumn, "'q'"},
		{"insert into u by name select 1 as a, 2 as A", fault.BadStatement, "twice"},
		{"insert into u select 1, 2", fault.BadStatement, "Column count"},
		{"insert into u values (1, 2)", fault.BadStatement, "Column count"},
		{"insert into t (n) values (2147483648)", fault.OutOfRange, "'n'"},
		{"insert into t (n) select 2147483648", fault.OutOfRange, "'n'"},
		{"insert into t (n) values ('12x')", fault.BadStatement, "'n'"},
		{"insert into t (c) values (123456789)", fault.OutOfRange, "'c'"},
		{"insert into t (d) values ('2020-02-30')", fault.BadStatement, "'d'"},
		{"insert into t (d) values ('2020-02-03 10:00:00')", fault.BadStatement, "DATE("},
		{"insert into t (d) select ts from t", fault.BadStatement, "DATE("},
		{"insert into t (ts) values ('noon')", fault.BadStatement, "'ts'"},
		{"insert into t (ok) values (2)", fault.OutOfRange, "'ok'"},
		{"insert into t (ok) select a from t", fault.BadStatement, "'ok'"},
		{"insert into t (a) select d from t", fault.BadStatement, "'a'"},
		{"insert into types (tm) values ('25:00:00')", fault.BadStatement, "'tm'"},
		{"insert into types (f) values (1e300)", fault.OutOfRange, "'f'"},
		{"insert into types (u) values ('x')", fault.BadStatement, "'u'"},
		{"insert into types (fx) values ('abc')", fault.BadStatement, "'fx'"},
		{"insert into types (ns) values ('9999-01-01')", fault.BadStatement, "'ns'"},
		{"insert into strict (id, since) values (null, '2020-01-01')", fault.NullValue, "'id'"},
		{"insert into strict (since) values ('2020-01-01')", fault.NullValue, "'id'"},
		{"insert into strict (id, since) values (default, '2020-01-01')", fault.NullValue, "'id'"},
		{"insert into strict (id) values (1)", fault.Unsupported, "'since'"},
		{"update strict set id = null", fault.NullValue, "'id'"},
		{"insert into secret values (1, 'x', 'y')", fault.Withheld, "'ssn'"},
		{"insert into secret (ssn) values ('x')", fault.Withheld, "'ssn'"},
		{"insert into secret by name select 'x' as ssn", fault.Withheld, "'ssn'"},
		{"update secret set ssn = 'x'", fault.Withheld, "'ssn'"},
		{"update secret set name = ssn", fault.Withheld, "'ssn'"},
		{"delete from secret where ssn = 'x'", fault.Withheld, "'ssn'"},
		{"merge into secret t using u s on t.id = s.a when matched then update set *", fault.Withheld, "'ssn'"},
		{"merge into secret t using u s on t.id = s.a when not matched then insert values (1, 'x', 'y')", fault.Withheld, "'ssn'"},
		{"merge into secret t using u s on t.ssn = s.x when matched then delete", fault.Withheld, "'ssn'"},
		{"update nested set address.city = 'x'", fault.Unsupported, "whole column 'address'"},
		{"update t set q = 1", fault.NoColumn, "'q'"},
		{"update t set u.a = 1", fault.NoColumn, "'u.a'"},
		{"update t set a = 1, A = 2", fault.Syntax, "twice"},
		{"update t set a = q", fault.NoColumn, "'q'"},
		{"update t x set a = t.a", fault.NotFound, "'t'"},
		{"update t set a = max(n)", fault.BadStatement, "group function"},
		{"update t set a = row_number() over ()", fault.BadStatement, "group function"},
		{"delete from t where count(*) > 1", fault.BadStatement, "group function"},
		{"delete from t where n in (select x.v from json_table('[1]', '$[*]' columns (v int path '$')) x)", fault.Unsupported, "JSON_TABLE"},
		{"update t set b = b collate utf8mb4_general_ci", fault.Unsupported, "collation"},
		{"merge into t using u on t.a = u.a when not matched then insert (a) values (t.a)", fault.BadStatement, "target"},
		{"merge into t using u on t.a = u.a when not matched and t.a = 1 then insert (a) values (1)", fault.BadStatement, "target"},
		{"merge into t using u on t.a = u.a when not matched by source then update set a = u.y", fault.BadStatement, "source"},
		{"merge into t using u on t.a = u.a when not matched then insert values (1)", fault.BadStatement, "Column count"},
		{"merge into t using u on t.a = u.a when matched then update set *", fault.NoColumn, "b"},
		{"merge into t using u on t.a = u.a when not matched then insert (a, q) values (1, 2)", fault.NoColumn, "'q'"},
		{"merge into strict t using u on t.id = u.a when not matched then insert (state, since) values ('x', null)", fault.NullValue, "'id'"},
		{"insert overwrite u partition (y = a) select a, x from u", fault.NoColumn, "a"},
	} {
		_, err := bindWrite(t, c.text)
		if !fault.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v: %v", c.text, fault.KindOf(err), err)
		}
	}
}

// Literals become values of their columns, as MySQL's strict mode makes them.
func TestWriteLiterals(t *testing.T) {
	for _, c := range []struct{ column, value, want string }{
		{"i", "-2147483648", "-2147483648"},
		{"i", "1.5", "2"},
		{"i", "-1.5", "-2"},
		{"i", "2.5e0", "2"},
		{"i", "' 12 '", "12"},
		{"i", "true", "1"},
		{"f", "1.5", "1.5"},
		{"dbl", "3", "3"},
		{"dbl", "'1e3'", "1000"},
		{"dec", "1.005", "1.01"},
		{"dec", "999.994", "999.99"},
		{"dec", "-0.005", "-0.01"},
		{"dec", "'7'", "7.00"},
		{"dec", "1e2", "100.00"},
		{"ok", "1", "true"},
		{"ok", "false", "false"},
		{"ok", "'0'", "false"},
		{"s", "12", `"12"`},
		{"s", "1.50", `"1.50"`},
		{"s", "date '2020-01-02'", `"2020-01-02"`},
		{"s", "x'41'", `"A"`},
		{"d", "'2020-1-2'", `date "2020-01-02"`},
		{"d", "20200102", `date "2020-01-02"`},
		{"d", "timestamp '2020-01-02 00:00:00'", `date "2020-01-02"`},
		{"tm", "'10:20:30.5'", `time "10:20:30.5"`},
		{"ts", "'2020-01-02'", `timestamp "2020-01-02 00:00:00"`},
		{"ts", "'2020-01-02 03:04:05.123456'", `timestamp "2020-01-02 03:04:05.123456"`},
		{"tz", "'2020-01-02 03:04:05'", `timestamptz "2020-01-02 03:04:05"`},
		{"ns", "'2020-01-02 03:04:05.5'", `timestamp_ns "2020-01-02 03:04:05.5"`},
		{"u", "'00000000-0000-0000-0000-00000000000A'", "<16 bytes>"},
		{"b", "'abc'", "<3 bytes>"},
		{"fx", "x'01020304'", "<4 bytes>"},
	} {
		for _, form := range []string{"insert into types (%s) values (%s)", "insert into types (%s) select %s", "insert into types (%s) select * from (select %s from t limit 1) x"} {
			text := fmt.Sprintf(form, c.column, c.value)
			out, err := bindWrite(t, text)
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			f, _ := out.Write.Target.FieldNamed(c.column)
			id := out.Write.Branches[0].Values[f.ID]
			p := out.Write.Rows.(*plan.Project)
			i := slices.IndexFunc(p.Items, func(it plan.Item) bool { return it.ID == id })
			x := p.Items[i].Expr
			if v, ok := p.Input.(*plan.Values); ok && strings.Contains(form, "values") {
				x = v.Rows[0][0]
			}
			if got := plan.FormatExpr(x); got != c.want || !arrow.TypeEqual(x.Type(), f.Type) || !arrow.TypeEqual(p.Items[i].Type, f.Type) {
				t.Errorf("%s: %s (%s), want %s", text, got, x.Type(), c.want)
			}
		}
	}
}

// Nothing that a user writes names the place of a row, or the target by its hidden
// name.
func TestWriteHostile(t *testing.T) {
	for _, text := range []string{
		"update t set b = `\x00file`", "update t set b = t.`\x00file`", "delete from t where `\x00pos` = 1", "update t set b = (select max(`\x00file`) from t)",
		"update t set b = (select max(x.`\x00file`) from `\x00target` x)", "merge into t using `\x00target` s on t.a = s.a when matched then delete",
		"merge into t using u on t.a = u.a when matched then update set b = t.`\x00file`", "update t set b = (select `\x00file` from u limit 1)",
		"merge into t using (select `\x00file` f from `\x00target`) s on true when matched then update set b = s.f",
		"insert into t (b) select `\x00file` from t", "insert into t (b) select x.`\x00file` from `\x00target` x",
		"delete from t where exists (select t.* from u where t._file = 'x')", "update t set b = _file", "update t set b = (select t.* from u)",
		"merge into t using u on t.a = u.a when matched then update set b = (select x from (select t.*) q)",
		"delete from odd where `\x00file` = 'x'", "delete from odd",
	} {
		if out, err := bindWrite(t, text); err == nil {
			t.Errorf("%q was bound: %s", text, showWrite(out))
		}
	}
	// A view may hold any text.
	w := writeWorld()
	w.relations["db.evil"] = view("select `\x00file` as x, a from `\x00target`")
	b, s := newBinder(t)
	for _, text := range []string{
		"update t set b = (select max(x) from evil)", "delete from t where b in (select x from evil)",
		"merge into t using evil s on t.a = s.a when matched then update set b = s.x", "insert into t (b) select x from evil",
	} {
		st, _, err := parse.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := b.BindWrite(context.Background(), s, w, st, nil); err == nil {
			t.Errorf("%q was bound: %s", text, showWrite(out))
		}
	}
	// The control: the same shapes over ordinary names.
	for _, text := range []string{
		"update t set b = t.b", "delete from t where a = 1", "update t set b = (select max(x.b) from t x)", "merge into t using t s on t.a = s.a when matched then delete",
		"delete from t where exists (select u.* from u where t.a = 1)",
	} {
		if _, err := bindWrite(t, strings.Replace(text, "using t s", "using u s", 1)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Placeholders keep their values, wherever the query puts their expressions.
func TestWriteArguments(t *testing.T) {
	n := func(i int64) plan.Literal { return plan.Literal{Value: i, Typ: plan.Int64} }
	for _, c := range []struct {
		text string
		args []plan.Literal
		want []string
	}{
		{"insert into u (a, y) values (?, 5), (?, ?)", []plan.Literal{n(1), n(2), n(3)}, []string{"(1, 5) (2, 3)"}},
		{"insert into u set y = ?, a = ?", []plan.Literal{n(1), n(2)}, []string{"(1, 2)"}},
		{"insert into u (a) select a + ? from t where n = ?", []plan.Literal{n(1), n(2)}, []string{"add(a#1, 1)", "eq(n#8, 2)"}},
		{"update t set a = ?, n = ? where a = ?", []plan.Literal{n(1), n(2), n(3)}, []string{"a#15:long! = 1", "n#16:int! = 2", "eq(a#1, 3)"}},
		{"delete from t where a = ? and n = ?", []plan.Literal{n(1), n(2)}, []string{"and(eq(a#1, 1), eq(n#8, 2))"}},
		{"insert overwrite u partition (y = ?) select a, x from u where a = ?", []plan.Literal{n(1), n(2)}, []string{"= 1]", "2)"}},
		{
			"merge into t using (select a, y from u where y = ?) s on t.a = s.a + ? when matched and s.y = ? then update set n = ? when not matched then insert (a) values (s.a + ?)",
			[]plan.Literal{n(1), n(2), n(3), n(4), n(5)},
			[]string{"eq(y#3, 1)", "add(a#1, 2)", "eq(y#3, 3)", ":int = 4", "add(a#1, 5)"},
		},
	} {
		out, err := bindWrite(t, c.text, c.args...)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		got := plan.Format(out.Write.Rows)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: lacks %s:\n%s", c.text, want, got)
			}
		}
		if _, err := bindWrite(t, c.text, c.args[1:]...); !fault.Is(err, fault.BadStatement) {
			t.Errorf("%s with an argument less: %v", c.text, err)
		}
	}
}
