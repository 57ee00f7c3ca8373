package bind

import (
	"strings"
	"testing"
	"time"

	"sqe/fault"
)

// Patterns that make an engine with back-tracking try forever take no time, in
// every function. What is left of ICU would not come back, nor could it be killed.
func TestRegexpsAreLinear(t *testing.T) {
	for _, c := range []string{
		"regexp_like(repeat(elt(1, 'a'), 200), '^(a+)+$b')", "repeat(elt(1, 'a'), 200) regexp '(a|aa)+$b'", "not repeat(elt(1, 'a'), 200) rlike '(a*)*(a*)*b'",
		"regexp_replace(repeat('a', 200), '(a|a)*b', 'x')", "regexp_instr(repeat('a', 200), '(a*)*b')", "regexp_substr(repeat('a', 200), '(a+)+b')",
		"elt(1, 'a') collate utf8mb4_0900_ai_ci regexp '(A+)+b'",
	} {
		b, s := newBinder(t)
		began := time.Now()
		if _, err := runText(t, b, s, "select "+c+", elt(1, a) from t", 1, Limits{}); err != nil {
			t.Errorf("%s: %v", c, err)
		}
		if d := time.Since(began); d > time.Minute {
			t.Errorf("%s took %s", c, d)
		}
	}
}

func TestRegexps(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"regexp_replace('abc abd', 'ab(.)', '$1-')", "c- d-"},
		{"regexp_replace('abc abd', 'ab.', 'x', 1, 2)", "abc x"},
		{"regexp_replace('äbc abc', 'b', 'x', 3)", "äbc axc"},
		{"regexp_replace('a.b', '[.]', '\\\\$')", "a$b"},
		{"regexp_replace('ABC', 'b', 'x', 1, 0, 'i')", "AxC"},
		{"regexp_replace('ABC', 'b', 'x')", "ABC"},
		{"regexp_instr('äb äb', 'b')", "2"},
		{"regexp_instr('äb äb', 'b', 1, 2)", "5"},
		{"regexp_instr('äb', 'b', 1, 1, 1)", "3"},
		{"regexp_instr('ab', 'c')", "0"},
		{"regexp_substr('ab12cd34', '[0-9]+', 1, 2)", "34"},
		{"regexp_substr('ab', 'c')", "(null)"},
		{"regexp_substr(null, 'c')", "(null)"},
		{"regexp_like(elt(1, 'A'), 'a', 'i')", "1"},
		{"regexp_like(elt(1, 'A'), 'a')", "0"},
		{"elt(1, 'A') collate utf8mb4_0900_ai_ci regexp 'a'", "1"},
	} {
		b, s := newBinder(t)
		got, err := runText(t, b, s, "select "+c.text+", elt(1, a) from t", 1, Limits{})
		if err != nil || !strings.HasPrefix(got, c.want+"\t") && !strings.HasPrefix(got, c.want+"|") && !strings.HasPrefix(got, c.want+" ") {
			t.Errorf("%s = %q, %v, want %q", c.text, got, err, c.want)
		}
	}
	for _, c := range []string{"'(?=a)'", "'('", "'(a)\\\\1'", "concat('(', elt(1, 'a'))"} {
		b, s := newBinder(t)
		if _, err := runText(t, b, s, "select regexp_replace(elt(1, 'a'), "+c+", 'x'), elt(1, a) from t", 1, Limits{}); !fault.Is(err, fault.BadStatement) {
			t.Errorf("%s: %v", c, err)
		}
	}
}
