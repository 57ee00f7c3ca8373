package lab

import "testing"

func TestBuild(t *testing.T) {
	dir := t.TempDir()
	if err := Build(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if err := NewPolicies().Write(dir + "/policies"); err != nil {
		t.Fatal(err)
	}
}

func TestMasksByHand(t *testing.T) {
	for _, c := range []struct{ in, last4, whole string }{
		{"111-11-1111", "xxx-xx-1111", "nnn-nn-nnnn"},
		{"184729103", "xxxxx9103", "nnnnnnnnn"},
		{"Sanne de Vries", "xxxxx xx xries", "Xxxxx xx Xxxxx"},
		{"7", "x", "n"},
		{"", "", ""},
		{"Иван", "xxxx", "Xxxx"},
	} {
		if got := redact(c.in, 4, "x", "x", "x"); got != c.last4 {
			t.Errorf("last 4 of %q is %q, want %q", c.in, got, c.last4)
		}
		if got := redact(c.in, 0, "X", "x", "n"); got != c.whole {
			t.Errorf("%q redacted is %q, want %q", c.in, got, c.whole)
		}
	}
}

// TestSecrets: the values to search for are unique, and the copies hold none.
func TestSecrets(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Secrets() {
		if seen[s] {
			t.Errorf("%q twice", s)
		}
		seen[s] = true
	}
	_, copied := people(peopleRows)
	for _, r := range copied {
		for k, v := range r {
			if s, ok := v.(string); ok && seen[s] {
				t.Errorf("the copy holds the secret %s %q", k, s)
			}
		}
	}
}
