package main

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"sqe/catalog"
	"sqe/plan"
	"sqe/policy"
)

// Policies are compared with the tables when policies changed, which is looked at
// every targetsGlance, and every targetsInterval, because it loads every table.
const (
	targetsGlance   = 5 * time.Second
	targetsInterval = 5 * time.Minute
)

// targets counts policies that protect nothing as the tables stand, for a metric:
// a mask on a column that never existed is silent otherwise.
type targets struct{ missing atomic.Int64 }

// Missing is the number of findings when the tables were looked at last.
func (t *targets) Missing() int { return int(t.missing.Load()) }

// watch looks until ctx ends.
func (t *targets) watch(ctx context.Context, catalogs *catalog.Registry, sources []policy.Source) {
	glance := time.NewTicker(targetsGlance)
	defer glance.Stop()
	var looked time.Time
	seen := ""
	for {
		if version := versions(sources); version != seen || time.Since(looked) > targetsInterval {
			tables, _ := allTables(ctx, catalogs) // a table that cannot be loaded is told where it is read
			if ctx.Err() != nil {
				return
			}
			t.missing.Store(int64(len(withoutTarget(sources, tables))))
			looked, seen = time.Now(), version
		}
		select {
		case <-ctx.Done():
			return
		case <-glance.C:
		}
	}
}

// versions is a text that changes with the policies of any source.
func versions(sources []policy.Source) string {
	var b strings.Builder
	for _, s := range sources {
		if state, err := s.State(); err == nil {
			b.WriteString(state.Version())
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// finding is a policy that protects nothing.
type finding struct{ source, text string }

// withoutTarget lists the policies of the sources that name tables or columns
// which are not among the tables.
func withoutTarget(sources []policy.Source, tables []*plan.Table) []finding {
	var out []finding
	for _, s := range sources {
		state, err := s.State()
		if err != nil {
			continue // SHOW POLICY STATUS tells
		}
		if checker, ok := state.(interface {
			Check(tables []*plan.Table) []string
		}); ok {
			for _, text := range checker.Check(tables) {
				out = append(out, finding{s.Name(), text})
			}
		}
	}
	return out
}
