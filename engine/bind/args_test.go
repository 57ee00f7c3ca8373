package bind

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"sqe/fault"
	"sqe/plan"
)

func TestArguments(t *testing.T) {
	b, s := newBinder(t)
	w := tinyWorld()
	for _, c := range []struct {
		text string
		args []plan.Literal
		want string // part of the plan
	}{
		{"select a from t where b = ?", []plan.Literal{{Value: `it's "x" \ ; -- '`, Typ: plan.String}}, `eq(b#2, "it's \"x\" \\ ; -- '")`},
		{"select a from t where a = ? and n = ?", []plan.Literal{{Value: int64(-5), Typ: plan.Int64}, {Value: int64(7), Typ: plan.Int64}}, `and(eq(a#1, -5), eq(n#8, 7))`},
		{"select a from t where a = ?", []plan.Literal{{Typ: plan.Null}}, `eq(a#1, null:long)`},
		{"select a from t where c < ?", []plan.Literal{{Value: decimal128.FromI64(150), Typ: plan.Decimal(5, 2)}}, `lt(c#3, 1.50)`},
		{"select a from t where d = ?", []plan.Literal{{Value: arrow.Date32FromTime(time.Date(2020, 1, 2, 0, 0, 0, 0, time.UTC)), Typ: plan.Date}}, `eq(d#4, date "2020-01-02")`},
		{"select a from t where ts > ?", []plan.Literal{{Value: "2020-01-02 03:04:05", Typ: plan.String}}, `gt(ts#5, timestamp "2020-01-02 03:04:05")`},
		{"select a from t limit ?", []plan.Literal{{Value: int64(3), Typ: plan.Int64}}, `limit 3`},
		{"select ? + 1", []plan.Literal{{Value: float64(1.5), Typ: plan.Float64}}, `add(1.5, 1)`},
		{"select a from t where a in (?, ?)", []plan.Literal{{Value: int64(1), Typ: plan.Int64}, {Value: int64(2), Typ: plan.Int64}}, `a#1 in (1, 2)`},
	} {
		out, err := b.Bind(context.Background(), s, w, mustParse(t, c.text), c.args)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got := plan.Format(out.Plan); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s lacks %s", c.text, got, c.want)
		}
	}
	if _, err := b.Bind(context.Background(), s, w, mustParse(t, "select ?"), nil); !fault.Is(err, fault.BadStatement) {
		t.Errorf("missing argument: %v", err)
	}
}

func TestDescribe(t *testing.T) {
	b, s := newBinder(t)
	w := tinyWorld()
	params, cols, err := b.Describe(context.Background(), s, w, mustParse(t, "select a, b from t where a = ? and b like ?"))
	if err != nil || params != 2 || len(cols) != 2 || cols[0].Name != "a" || cols[1].Type != plan.String {
		t.Fatalf("%d %v %v", params, cols, err)
	}
	if _, _, err := b.Describe(context.Background(), s, w, mustParse(t, "select nothing from t where a = ?")); !fault.Is(err, fault.NoColumn) {
		t.Errorf("%v", err)
	}
	if params, _, err := b.Describe(context.Background(), s, w, mustParse(t, "select a from t limit ?")); err != nil || params != 1 {
		t.Errorf("%d %v", params, err)
	}
}

func TestTimeTravel(t *testing.T) {
	b, s := newBinder(t)
	for text, want := range map[string]plan.AsOf{
		"select a from t for version as of 42":                      {Snapshot: 42},
		"select a from t for version as of 'main'":                  {Ref: "main"},
		"select a from t for version as of '2024-01-01'":            {Ref: "2024-01-01"},
		"select a from t for timestamp as of '2024-01-02 03:04:05'": {Time: time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)},
		"select a from t for system_time as of '2024-01-02'":        {Time: time.Date(2024, 1, 2, 0, 0, 0, 0, time.UTC)},
		"select a from db.t as of '2024-01-02T03:04:05Z' x":         {Time: time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)},
		"select a from t as of 'audit'":                             {Ref: "audit"},
	} {
		w := &recording{world: tinyWorld()}
		if _, err := b.Bind(context.Background(), s, w, mustParse(t, text), nil); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		found := false
		for _, at := range w.at {
			found = found || at == want
		}
		if !found {
			t.Errorf("%s: %+v, want %+v", text, w.at, want)
		}
	}
	if _, err := bindText(t, "select a from t for timestamp as of '2024-99-02'"); !fault.Is(err, fault.BadStatement) {
		t.Errorf("%v", err)
	}
}

type recording struct {
	*world
	at []plan.AsOf
}

func (r *recording) Relation(ctx context.Context, database, name string, at plan.AsOf) (*Relation, error) {
	r.at = append(r.at, at)
	return r.world.Relation(ctx, database, name, at)
}

// The time of a statement is one, and a literal of its plan.
func TestNow(t *testing.T) {
	before := time.Now().UTC().Truncate(time.Second)
	out, err := bindText(t, "select now(), current_timestamp, now(6) >= now(), curdate()")
	if err != nil {
		t.Fatal(err)
	}
	items := out.Plan.(*plan.Project).Items
	a, b := items[0].Expr.(*plan.Literal).Value.(arrow.Timestamp), items[1].Expr.(*plan.Literal).Value.(arrow.Timestamp)
	if at := a.ToTime(arrow.Microsecond); a != b || at.Before(before) || at.After(time.Now()) {
		t.Errorf("%v %v, not after %v", a, b, before)
	}
}

// A binder serves many sessions at once.
func TestConcurrent(t *testing.T) {
	b, _ := newBinder(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			s := b.NewSession(uint32(i), alice(), "")
			for range 20 {
				for _, text := range []string{"select a, sum(c) from t group by a", "select aa from vv", "select elt(a, 'x') from t", "show tables", "select * from information_schema.columns"} {
					if _, err := b.Bind(context.Background(), s, tinyWorld(), mustParse(t, text), nil); err != nil {
						t.Error(err)
						return
					}
				}
				if _, err := runText(t, b, s, "select elt(a, 'x'), b from t", 3, Limits{}); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	wg.Wait()
}

// Long and deep statements are bound or refused, and do not crash.
func TestDeep(t *testing.T) {
	for text, ok := range map[string]bool{
		"select a from t where " + strings.Repeat("a = 1 or ", 1500) + "a = 2":                                true,
		"select a from t where a in (1" + strings.Repeat(", 1", 50000) + ")":                                  true,
		"select 1" + strings.Repeat(" + 1", 1900):                                                             true,
		"select a from t where " + strings.Repeat("not ", 1900) + "ok":                                        true,
		"select " + strings.Repeat("(select ", 8) + "1" + strings.Repeat(")", 8):                              true,
		"select " + strings.Repeat("(select ", 150) + "1" + strings.Repeat(")", 150):                          false,
		"select a from t" + strings.Repeat(" union all select a from u", 200):                                 true,
		"select count(*) from t t0" + strings.Repeat(" cross join (select * from t) ", 1) + "x":               true,
		"select * from " + strings.Repeat("(select * from ", 100) + "t" + strings.Repeat(") x", 100):          true,
		"select " + strings.Repeat("case when ok then ", 300) + "1" + strings.Repeat(" end", 300) + " from t": true,
	} {
		_, err := bindText(t, text)
		if (err == nil) != ok {
			t.Errorf("%.60s: %v", text, err)
		}
	}
}

// Hostile statements must not reach what they may not name, and must not crash.
func TestHostile(t *testing.T) {
	b, s := newBinder(t)
	for _, text := range []string{
		"select * from `\x00protected`.t", "select * from `\x00leaf0`", "select ssn from (select * from secret) x", "select `ssn` from secret s", "select s.ssn from secret s",
		"select id from secret order by ssn", "select id from secret group by ssn", "select count(ssn) from secret", "select id from secret having ssn = 'x'",
		"select (select ssn from secret limit 1)", "select a from t where exists (select 1 from secret where ssn = t.b)", "select json_object('x', ssn) from secret",
		"with q as (select ssn from secret) select * from q", "select id from secret where ssn = 'x' union select 1", "select elt(1, ssn) from secret", "set @x = (select ssn from secret limit 1)",
		"select id from secret join u using (ssn)", "show columns from secret where field = (select ssn from secret limit 1)", "show tables where tables_in_db = (select ssn from secret limit 1)",
	} {
		w := tinyWorld()
		out, err := b.Bind(context.Background(), s, w, mustParse(t, text), nil)
		if err == nil {
			t.Errorf("%q was bound: %s", text, plan.Format(out.Plan))
		}
	}
	// The control: the same shapes over a column that is not withheld.
	for _, text := range []string{"select name from (select * from secret) x", "select count(name) from secret", "select elt(1, name) from secret", "set @x = (select name from secret limit 1)"} {
		if _, err := b.Bind(context.Background(), s, tinyWorld(), mustParse(t, text), nil); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}
