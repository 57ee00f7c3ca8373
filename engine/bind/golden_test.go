package bind

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"sqe/plan"
)

func TestBind(t *testing.T) {
	datadriven.Walk(t, "testdata/bind", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := bindText(t, d.Input)
			if err != nil {
				return fmt.Sprintf("error: %v\n", err)
			}
			var b strings.Builder
			b.WriteString(show(out.Plan))
			for _, w := range out.Warnings {
				fmt.Fprintf(&b, "warning: %s\n", w)
			}
			return b.String()
		})
	})
}

func show(n plan.Node) string {
	s := plan.Format(n)
	if f, ok := n.(*plan.Foreign); ok {
		s += "reason: " + f.Reason + "\n"
	}
	return s
}
