//go:build e2e

package stack

import (
	"regexp"
	"strings"
	"testing"
)

var prompt = regexp.MustCompile(`^(\w+)> (.*)$`)

// TestGuide: what docs/stack.md shows is what is answered, line by line. Where a
// grant has to reach the catalog first, within a few seconds.
func TestGuide(t *testing.T) {
	text, err := guide("console", 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 0; i < len(lines); {
		m := prompt.FindStringSubmatch(lines[i])
		if m == nil {
			t.Fatalf("%s: not a statement", lines[i])
		}
		var want []string
		for i++; i < len(lines) && !prompt.MatchString(lines[i]); i++ {
			want = append(want, lines[i])
		}
		n++
		took := becomes(t, m[1], m[2], strings.Join(want, "\n"))
		t.Logf("%s> %s: %s", m[1], m[2], took.Round(1e6))
	}
	if n < 20 {
		t.Fatalf("%d statements", n)
	}
}
