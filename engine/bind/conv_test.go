package bind

import (
	"fmt"
	"strings"
	"testing"
)

// TestConv: what MySQL 8.0 answers.
func TestConv(t *testing.T) {
	b, s := newBinder(t)
	for _, c := range []struct {
		text     string
		from, to int
		want     string
	}{
		{"ff", 16, 10, "255"},
		{"a", 16, 2, "1010"},
		{"6E", 18, 8, "172"},
		{"-17", 10, -18, "-H"},
		{"-1", 10, 16, "FFFFFFFFFFFFFFFF"},
		{"-ff", 16, -10, "-255"},
		{"12abc", 10, 10, "12"},
		{"10.7", 10, 2, "1010"},
		{" +12", 10, 2, "1100"},
		{"zz", 10, 16, "0"},
		{"zz", 36, 10, "1295"},
		{"8", 8, 10, "0"},
		{"-", 10, 10, "0"},
		{"", 10, 10, "(null)"},
		{"1", 1, 10, "(null)"},
		{"1", 10, 37, "(null)"},
		{"1", -37, 10, "(null)"},
		{"18446744073709551615", 10, 16, "FFFFFFFFFFFFFFFF"},
		{"18446744073709551616", 10, 16, "FFFFFFFFFFFFFFFF"},
		{"9223372036854775808", -10, 10, "9223372036854775807"},
		{"-9223372036854775809", -10, -10, "-9223372036854775808"},
		{"ä1", 10, 10, "0"},
	} {
		got, err := runText(t, b, s, fmt.Sprintf("select conv('%s', %d, %d), elt(a, 'x') from t", c.text, c.from, c.to), 1, Limits{})
		if got, _, _ := strings.Cut(got, " "); err != nil || strings.TrimSpace(got) != c.want {
			t.Errorf("conv(%q, %d, %d) = %q, want %q (%v)", c.text, c.from, c.to, got, c.want, err)
		}
	}
}
