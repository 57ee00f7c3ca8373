package main

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"sqe/catalog"
	"sqe/engine"
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
			tables, personal, _ := allTables(ctx, catalogs) // a table that cannot be loaded is told where it is read
			if len(personal) > 0 {
				tables = nil // not known
			}
			if ctx.Err() != nil {
				return
			}
			t.missing.Store(int64(silent(sources, tables)))
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

// silent counts parts of policies that never act as the tables stand.
func silent(sources []policy.Source, tables []*plan.Table) int {
	n := 0
	for _, f := range engine.Findings(sources, tables) {
		if f.Kind == policy.Silent {
			n++
		}
	}
	return n
}
