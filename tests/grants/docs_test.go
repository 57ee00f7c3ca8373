package grants

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	console  = regexp.MustCompile("(?s)```console\n(.*?)```")
	document = regexp.MustCompile("(?s)```json\n(.*?)```")
	prompt   = regexp.MustCompile(`^(\w+)> (.*)$`)
)

// TestManual: what docs/grants.md shows is what is answered. With -rewrite the page
// gets the answers.
func TestManual(t *testing.T) {
	const path = "../../docs/grants.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	l := open(t)
	n := 0
	got := console.ReplaceAllStringFunc(string(text), func(block string) string {
		var out strings.Builder
		out.WriteString("```console\n")
		for _, line := range strings.Split(block, "\n") {
			m := prompt.FindStringSubmatch(line)
			if m == nil {
				continue // an answer
			}
			n++
			out.WriteString(line + "\n")
			rows, warnings, err := l.ask(m[1], m[2])
			switch {
			case err != nil:
				out.WriteString("ERROR: " + err.Error() + "\n")
			case rows != "":
				out.WriteString(moment.ReplaceAllString(rows, "2026-11-30T12:00:00Z") + "\n")
			}
			for _, w := range strings.Split(warnings, "\n") {
				if w != "" {
					out.WriteString("Warning: " + w[strings.LastIndexByte(w, '|')+1:] + "\n")
				}
			}
		}
		out.WriteString("```")
		return out.String()
	})
	if n < 30 {
		t.Fatalf("%d statements", n)
	}
	if left := l.policies(); left != "" {
		t.Errorf("the examples leave\n%s", left)
	}
	got = document.ReplaceAllLiteralString(got, "```json\n"+l.example()+"\n```")
	if got == string(text) {
		return
	}
	if flag.Lookup("rewrite").Value.String() == "true" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, have := strings.Split(string(text), "\n"), strings.Split(got, "\n")
	for i := range want {
		if i >= len(have) || want[i] != have[i] {
			t.Fatalf("line %d is\n%s\nand should be\n%s", i+1, want[i], have[min(i, len(have)-1)])
		}
	}
}

// example is the policy of a grant on a table, as a policy server answers with it.
func (l *lake) example() string {
	l.Helper()
	l.root("GRANT SELECT ON bank.customers TO ROLE teller")
	p, err := l.store.PolicyNamed(context.Background(), "polaris", "", "sqe-grant-lake-bank-customers")
	if err != nil {
		l.Fatal(err)
	}
	delete(p.Options, "sqe.made-from") // another one each time
	p.ID, p.GUID, p.ResourceSignature, p.CreateTime, p.UpdateTime, p.ServiceType = 0, "", "", 0, 0, ""
	out, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		l.Fatal(err)
	}
	return string(out)
}
