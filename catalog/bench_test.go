package catalog

import (
	"fmt"
	"testing"

	"sqe/plan"
)

// BenchmarkCommit is a commit of one property on a table of many versions.
func BenchmarkCommit(b *testing.B) {
	c, _ := lake(b)
	made(b, c, "t", humans)
	i := 0
	for b.Loop() {
		i++
		_, err := c.UpdateProperties(ctx, name("ns", "t"), func(*plan.Table, map[string]string) (map[string]string, []string, error) {
			return map[string]string{"k": fmt.Sprint(i)}, nil, nil
		})
		must(b, err)
	}
}

// BenchmarkRESTTable: a table that the catalog showed to this user within the bound.
func BenchmarkRESTTable(b *testing.B) {
	f := newFakeREST(b)
	c := f.open(b)
	alice := as("alice")
	for b.Loop() {
		if _, err := c.Table(alice, orders, plan.AsOf{}, ""); err != nil {
			b.Fatal(err)
		}
	}
	if n := len(f.seen()); n > 2 {
		b.Errorf("%d requests", n)
	}
}
