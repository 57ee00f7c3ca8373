package bind

import (
	"fmt"
	"testing"

	"sqe/fault"
)

// The library's LPAD and RPAD count bytes, and cut a character of several: they
// are refused where the row executor would have to run them.
func TestPadding(t *testing.T) {
	b, s := newBinder(t)
	for _, f := range []string{"lpad", "rpad"} {
		if _, err := runText(t, b, s, "select "+f+"(elt(1, 'é'), 1, 'x') from t", 1, Limits{}); !fault.Is(err, fault.Unsupported) {
			t.Errorf("%s in the row executor: %v", f, err)
		}
		if _, err := bindText(t, "select "+f+"(b, 1, 'x') from t"); err != nil {
			t.Errorf("%s alone: %v", f, err)
		}
	}
}

// No function of the row executor makes a value that is too long, however it is
// nested: memory that cannot be had ends the process. The same function makes a
// short one.
func TestLongValues(t *testing.T) {
	const long, short = 1_000_000_000_000, 3
	for _, c := range []string{
		"repeat(elt(1, 'ab'), %d)", "repeat(elt(1, 'ab'), '%d')", "replace(elt(1, 'aaa'), 'a', repeat('x', %d))", "concat(elt(1, 'a'), repeat('a', %d))",
	} {
		b, s := newBinder(t)
		if _, err := runText(t, b, s, "select length("+fmt.Sprintf(c, long)+") from t", 1, Limits{}); !fault.Is(err, fault.Limit) && !fault.Is(err, fault.OutOfRange) {
			t.Errorf("%s: %v", c, err)
		}
		if _, err := runText(t, b, s, "select length("+fmt.Sprintf(c, short)+") from t", 1, Limits{}); err != nil {
			t.Errorf("%s: %v", c, err)
		}
	}
	for _, c := range []struct{ made, fits string }{
		{"elt(1, cast('a' as binary(300000000)))", "elt(1, cast('a' as binary(300)))"},
		{"replace(elt(1, repeat('x', 10000)), 'x', repeat('y', 100000))", "replace(elt(1, repeat('x', 100)), 'x', repeat('y', 100))"},
		{"regexp_replace(repeat('x', 10000), 'x', repeat('y', 100000))", "regexp_replace(repeat('x', 100), 'x', repeat('y', 100))"},
		{"concat(elt(1, repeat('x', 9000000)), repeat('y', 9000000))", "concat(elt(1, repeat('x', 9000)), repeat('y', 9000))"},
	} {
		b, s := newBinder(t)
		if _, err := runText(t, b, s, "select length("+c.made+") from t", 1, Limits{}); !fault.Is(err, fault.Limit) && !fault.Is(err, fault.OutOfRange) {
			t.Errorf("%s: %v", c.made, err)
		}
		if _, err := runText(t, b, s, "select length("+c.fits+") from t", 1, Limits{}); err != nil {
			t.Errorf("%s: %v", c.fits, err)
		}
	}
}

// What functions of the row executor make counts together, since sorting, grouping
// and lists keep it.
func TestProducedTogether(t *testing.T) {
	b, s := newBinder(t)
	const text = "select length(repeat(elt(1, 'x'), 10000)) from t"
	if _, err := runText(t, b, s, text, 100, Limits{Bytes: 1 << 20}); err != nil {
		t.Error(err)
	}
	if _, err := runText(t, b, s, text, 100, Limits{Bytes: 100_000}); !fault.Is(err, fault.Limit) {
		t.Error(err)
	}
}

// User variables cannot be doubled without end, nor can there be many of them.
func TestVariablesAreBounded(t *testing.T) {
	set := func(s *Session, b *Binder, text string) error {
		_, err := runText(t, b, s, text, 0, Limits{})
		return err
	}
	b, s := newBinder(t)
	if err := set(s, b, "set @x = repeat('x', 1000000), @j = json_array(1)"); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"set @x = concat(@x, @x)", "set @j = json_array(@j, @j, @j, @j)"} {
		var err error
		for i := 0; i < 40 && err == nil; i++ {
			err = set(s, b, text)
			if i == 0 && err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
		if !fault.Is(err, fault.Limit) {
			t.Errorf("%s: %v", text, err)
		}
	}
	b, s = newBinder(t)
	var err error
	n := 0
	for ; n < 20 && err == nil; n++ {
		err = set(s, b, fmt.Sprintf("set @v%d = repeat('x', 10000000)", n))
	}
	if !fault.Is(err, fault.Limit) || n < 5 {
		t.Errorf("%d variables: %v", n, err)
	}
	// To set one anew frees what it held.
	for range 10 {
		if err := set(s, b, "set @v0 = repeat('y', 10000000)"); err != nil {
			t.Error(err)
		}
	}
}
