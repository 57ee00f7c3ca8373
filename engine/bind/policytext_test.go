package bind

import (
	"context"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/fault"
	"sqe/plan"
)

func condition(t *testing.T, text string) (*plan.Scan, plan.Expr, error) {
	t.Helper()
	b, s := newBinder(t)
	w := tinyWorld()
	return b.Condition(context.Background(), s, w, w.relations["db.t"].Table, text)
}

func TestCondition(t *testing.T) {
	for text, want := range map[string]string{
		"a = 1":                                   `eq(a#1, 1)`,
		"t.a = 1 AND b <> 'x'":                    `and(eq(a#1, 1), ne(b#2, "x"))`,
		"b = current_user":                        `eq(b#2, "alice")`,
		"b = current_user() or b = CURRENT_USER":  `or(eq(b#2, "alice"), eq(b#2, "alice"))`,
		"is_role_in_session('analyst') and a > 1": `and(true, gt(a#1, 1))`,
		"is_role_in_session('nobody')":            `false`,
		"1":                                       `ne(1, 0)`,
		"a":                                       `ne(a#1, 0)`,
		"ok":                                      `ok#7`,
		"case when a > 1 then false else true end": `case when gt(a#1, 1) then false else true end`,
		"b like 'x%' -- a comment":                 `b#2 like "x%" escape "\\"`,
		"d >= '2020-01-01' and year(ts) = 2020":    `and(ge(d#4, date "2020-01-01"), eq(year(ts#5), 2020))`,
	} {
		scan, e, err := condition(t, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := plan.Format(&plan.Filter{Input: scan, Cond: e})
		if first, _, _ := strings.Cut(got, "\n"); first != "filter "+want {
			t.Errorf("%s: %s, want %s", text, first, want)
		}
		if e.Type().ID() != arrow.BOOL || scan.Definer || len(scan.Cols) != 8 {
			t.Errorf("%s: %v %+v", text, e.Type(), scan)
		}
	}
}

// What a policy text reads in a sub-query is read with the rights of the policy
// and marked so; the protected table itself is not.
func TestConditionSubquery(t *testing.T) {
	for _, text := range []string{"a in (select a from u)", "exists (select 1 from u where u.a = t.a)", "a > (select max(y) from db.u)", "a in (select u.a from u join cat.ns.z.w on w.k = u.a)", "b = (select b from t x where x.a = 1)"} {
		scan, e, err := condition(t, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if scan.Definer {
			t.Errorf("%s: the protected table is marked", text)
		}
		n := 0
		plan.Walk(&plan.Filter{Input: scan, Cond: e}, func(node plan.Node) bool {
			if s, ok := node.(*plan.Scan); ok && s != scan {
				n++
				if !s.Definer {
					t.Errorf("%s: a scan of %s is not marked", text, s.Table.Name.Name)
				}
			}
			return true
		})
		if n == 0 {
			t.Errorf("%s: no scan in the sub-query", text)
		}
	}
}

func TestConditionRefuses(t *testing.T) {
	for text, kind := range map[string]fault.Kind{
		"":                             fault.Syntax,
		"a = ":                         fault.Syntax,
		"a = 1; drop table t":          fault.Syntax,
		"1) from t where (1":           fault.Syntax,
		"1), (2":                       fault.Syntax,
		"1, 2":                         fault.Syntax,
		"a = 1) union select (1":       fault.Syntax,
		"a = ?":                        fault.Syntax,
		"nothing = 1":                  fault.NoColumn,
		"u.a = 1":                      fault.NotFound,
		"rand() < 0.5":                 fault.Unsupported,
		"uuid() = b":                   fault.Unsupported,
		"a = @x":                       fault.Unsupported,
		"a = @@max_connections":        fault.Unsupported,
		"max(a) > 1":                   fault.Unsupported,
		"row_number() over () = 1":     fault.Unsupported,
		"elt(a, 'x') = 'x'":            fault.Unsupported,
		"a in (select a from missing)": fault.NotFound,
		"is_role_in_session(b)":        fault.BadStatement,
		"b":                            fault.Unsupported,
		"exists (select * from nested) and sleep(1) = 0": fault.Unsupported,
	} {
		if _, _, err := condition(t, text); !fault.Is(err, kind) {
			t.Errorf("%q: %v (%v), want %v", text, err, fault.KindOf(err), kind)
		}
	}
}

func TestValue(t *testing.T) {
	b, s := newBinder(t)
	w := tinyWorld()
	for text, want := range map[string]string{
		"concat(left(b, 2), '***')":            `concat(left(b#2, 2), "***")`,
		"case when a > 1 then b else NULL end": `case when gt(a#1, 1) then b#2 else null:string end`,
		"NULL":                                 `null:null`,
		"'fixed'":                              `"fixed"`,
		"if(is_role_in_session('analyst'), b, '')": `case when true then b#2 else "" end`,
		"sha2(b, 256)": `sha2(b#2, 256)`,
	} {
		scan, e, err := b.Value(context.Background(), s, w, w.relations["db.t"].Table, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := plan.Format(&plan.Filter{Input: scan, Cond: e})
		if first, _, _ := strings.Cut(got, "\n"); first != "filter "+want {
			t.Errorf("%s: %s, want %s", text, first, want)
		}
	}
	// Nested columns: the text sees JSON, built from the raw value.
	_, e, err := b.Value(context.Background(), s, w, w.relations["db.nested"].Table, "address->>'$.city'")
	if err != nil {
		t.Fatal(err)
	}
	found := false
	plan.WalkExpr(e, func(e plan.Expr) bool {
		if c, ok := e.(*plan.Call); ok && c.Func.Name == "to_json" {
			found = true
		}
		return true
	})
	if !found {
		t.Error("the nested column is not made JSON")
	}
}

// A user cannot change what a policy text means.
func TestSessionDoesNotReachPolicyTexts(t *testing.T) {
	b, s := newBinder(t)
	w := tinyWorld()
	if _, err := runText(t, b, s, "set session sql_mode = ''", 0, Limits{}); err != nil {
		t.Fatal(err)
	}
	other := b.NewSession(8, alice(), "")
	_, e1, err1 := b.Condition(context.Background(), other, w, w.relations["db.t"].Table, "b = 'x'")
	if err1 != nil || e1 == nil {
		t.Fatal(err1)
	}
}
