package main

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"sqe/catalog"
	"sqe/engine"
	"sqe/fault"
	"sqe/plan"
	"sqe/policy"
)

// Policies are compared with the tables when policies changed, which is looked at
// every targetsGlance, and every targetsInterval, because tables change as well. When
// a catalog did not answer it is asked again after targetsRetry.
const (
	targetsGlance   = 5 * time.Second
	targetsInterval = 5 * time.Minute
	targetsRetry    = time.Minute
)

// Nobody waits for the comparison, and catalogs are there for statements: what it asks
// of them is asked one after the other, after the first targetsBurst no faster than one
// each targetsPace.
const (
	targetsBurst = 40
	targetsPace  = 50 * time.Millisecond
)

// targets counts policies that protect nothing as the tables stand, for a metric:
// a mask on a column that never existed is silent otherwise.
//
// It lists the namespaces that policies name, and loads the tables of which they name
// columns; of those that a pattern stands for as many as it takes to find the columns.
// Nothing that it reads stays in the caches that statements use.
type targets struct{ missing atomic.Int64 }

// Missing is the number of findings when the tables were looked at last.
func (t *targets) Missing() int { return int(t.missing.Load()) }

// watch looks until ctx ends.
func (t *targets) watch(ctx context.Context, catalogs *catalog.Registry, sources []policy.Source) {
	glance := time.NewTicker(targetsGlance)
	defer glance.Stop()
	var next time.Time
	seen := ""
	for {
		if version := versions(sources); version != seen || time.Now().After(next) {
			again := targetsInterval
			if !t.compare(ctx, catalogs, sources, targetsPace) {
				again = targetsRetry
			}
			next, seen = time.Now().Add(again), version
		}
		select {
		case <-ctx.Done():
			return
		case <-glance.C:
		}
	}
}

// compare looks once. It is false when a catalog did not list its tables: then the
// number is that of before.
func (t *targets) compare(ctx context.Context, catalogs *catalog.Registry, sources []policy.Source, pace time.Duration) bool {
	l := &looking{catalogs: catalogs, inspectors: inspectors(sources), pace: pace}
	tables, err := l.tables(catalog.Aside(ctx))
	if err != nil || ctx.Err() != nil {
		return false
	}
	t.missing.Store(int64(silent(sources, tables)))
	return true
}

// looking is one look at the tables.
type looking struct {
	catalogs   *catalog.Registry
	inspectors []policy.Inspector
	pace       time.Duration
	asked      int
}

// turn waits until a catalog may be asked for something.
func (l *looking) turn(ctx context.Context) error {
	if l.asked++; l.asked <= targetsBurst {
		return ctx.Err()
	}
	timer := time.NewTimer(l.pace)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// named reports whether policies name tables of a namespace; nil: of any.
func (l *looking) named(catalog string, namespace []string) bool {
	return slices.ContainsFunc(l.inspectors, func(i policy.Inspector) bool { return i.NamesTablesOf(catalog, namespace) })
}

// tables are those that policies are to be compared with; nil: not known, because a
// catalog shows them to each user alone.
func (l *looking) tables(ctx context.Context) ([]*plan.Table, error) {
	all := []*plan.Table{}
	if !l.named("", nil) {
		return all, nil
	}
	var of [][][]string
	for _, cat := range l.catalogs.All() {
		if err := l.turn(ctx); err != nil {
			return nil, err
		}
		namespaces, err := cat.Namespaces(ctx)
		if fault.Is(err, fault.Auth) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		of = append(of, namespaces)
	}
	for i, cat := range l.catalogs.All() {
		for _, ns := range of[i] {
			if !l.named(cat.Name(), ns) {
				continue
			}
			if err := l.turn(ctx); err != nil {
				return nil, err
			}
			names, err := cat.Tables(ctx, ns)
			if err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.NoDatabase) { // it was dropped meanwhile
				return nil, err
			}
			for _, name := range names {
				all = append(all, &plan.Table{Name: plan.TableName{Catalog: cat.Name(), Namespace: ns, Name: name}})
			}
		}
	}
	return l.known(ctx, all)
}

// known loads those of the tables of which the columns count. Of one that cannot be
// loaded nothing but the name is known: that is told where it is read.
func (l *looking) known(ctx context.Context, all []*plan.Table) ([]*plan.Table, error) {
	at := map[string]int{}
	for i, t := range all {
		at[t.Name.Key()] = i
	}
	tried := map[string]bool{}
	for {
		open := slices.DeleteFunc(slices.Clone(all), func(t *plan.Table) bool { return t == nil || len(t.Fields) == 0 && tried[t.Name.Key()] })
		wanted := map[string]bool{}
		var next []plan.TableName
		for _, i := range l.inspectors {
			for _, t := range i.Unknown(open) {
				if key := t.Name.Key(); !wanted[key] {
					wanted[key] = true
					next = append(next, t.Name)
				}
			}
		}
		if len(next) == 0 {
			return slices.DeleteFunc(all, func(t *plan.Table) bool { return t == nil }), nil
		}
		for _, name := range next {
			if err := l.turn(ctx); err != nil {
				return nil, err
			}
			key := name.Key()
			tried[key] = true
			cat, _ := l.catalogs.Get(name.Catalog)
			switch t, err := cat.Table(ctx, name, plan.AsOf{}, ""); {
			case fault.Is(err, fault.NotFound):
				all[at[key]] = nil // it was dropped meanwhile
			case err == nil:
				// Its metadata may be large, and are not needed.
				all[at[key]] = &plan.Table{Name: t.Name, Fields: t.Fields, Formerly: t.Formerly}
			}
		}
	}
}

// inspectors are the present states that can be looked at.
func inspectors(sources []policy.Source) []policy.Inspector {
	var out []policy.Inspector
	for _, s := range sources {
		if state, err := s.State(); err == nil {
			if i, ok := state.(policy.Inspector); ok {
				out = append(out, i)
			}
		}
	}
	return out
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
