package bind

import (
	"fmt"
	"testing"
	"time"

	"sqe/fault"
)

// A text with an exponent that is taken for a number costs no time, wherever it
// stands; as a text it is one like every other.
func TestExponents(t *testing.T) {
	for _, c := range []string{
		"cast(elt(1, '%s') as decimal(38,0))", "elt(1, cast('%s' as decimal(38,20)))", "elt(1, '%s') = cast(1.5 as decimal(10,2))", "elt(1, '%s') in (1.5, 2)",
		"elt(1, '%s') between 1.5 and 2", "1.5 < elt(1, '%s')", "round(elt(1, '%s'))", "floor(elt(1, '%s'))", "abs(elt(1, '%s'))", "greatest(elt(1, '%s'), 1.5)",
		"sum(cast(elt(1, '%s') as decimal(38,20)))", "elt(1, '%s') div 1.5", "elt(1, '%s') %% 1.5", "-elt(1, '%s')", "case elt(1, '%s') when 1.5 then 2 end",
		"round(concat(elt(1, '%s'), ''))", "nullif(elt(1, '%s'), 1.5)", "1.5 <=> elt(1, '%s')", "cast(1.5 as decimal(10,2)) in (elt(1, '%s'), 3)",
	} {
		for _, n := range []string{"1e99999999", "-1E-99999999", " 1.5e+00099999999"} {
			b, s := newBinder(t)
			began := time.Now()
			_, err := runText(t, b, s, "select "+fmt.Sprintf(c, n)+" from t", 1, Limits{})
			if d := time.Since(began); d > time.Minute {
				t.Fatalf("%s with %s took %s: %v", c, n, d, err)
			}
		}
	}
	b, s := newBinder(t)
	if _, err := runText(t, b, s, "select elt(1, '1e99999999') in (1.5, 2) from t", 1, Limits{}); !fault.Is(err, fault.OutOfRange) {
		t.Error(err)
	}
	for _, text := range []string{
		"select elt(1, '12e34567') = '12e34567' from t", "select concat(elt(1, '12e34567'), 1) from t", "select elt(1, cast('1e3' as decimal(38,0))) from t",
		"select elt(1, '1e3') > 1.5 from t", "select elt(1, '1e99999999') is null from t", "select not (elt(1, '1e99999999') is null) from t",
		"select convert(elt(1, '1e99999999') using utf8mb4) from t", "select elt(1, '1e99999999') like elt(1, '1%') from t",
	} {
		if _, err := runText(t, b, s, text, 1, Limits{}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A column whose text is taken for a number is that column, whatever stands
// beside it in the row.
func TestColumnAsNumber(t *testing.T) {
	b, s := newBinder(t)
	for text, want := range map[string]string{
		// b is "s1", no number; the other columns hold 1.
		"select b + 0 from t":                               "0\n",
		"select b + 0, n + 0, b from t":                     "0 | 1 | s1\n",
		"select elt(1, 'x') from t where b = 1":             "",
		"select elt(a, 'x') from t where b = 0":             "x\n",
		"select elt(a, 'x') from t where b between 1 and 2": "",
		"select b * 1, a, elt(a, b) from t":                 "0 | 1 | s1\n",
		"select x.b + 0 from (select c, b, d from t) x":     "0\n",
	} {
		if got, err := runText(t, b, s, text, 1, Limits{}); err != nil || got != want {
			t.Errorf("%s: %q, want %q (%v)", text, got, want, err)
		}
	}
}
