package main

import (
	"context"
	"sync/atomic"

	"sqe/catalog"
	"sqe/identity"
	"sqe/policy"
)

// gates finds where a catalog refuses what the policies here allow: both must agree,
// so the refusal counts, but policies that are read at two places should not differ
// for longer than it takes to read them. The opposite cannot be seen: what is refused
// here is not asked of the catalog.
type gates struct {
	sources atomic.Pointer[[]policy.Source]
	count   atomic.Pointer[func(catalog, operation string)]
}

// reading is what the policies here are asked when a catalog refuses to show
// something. A change is asked about before it is sent, so that one which a catalog
// refuses was allowed here.
var reading = map[string]policy.Privilege{
	"list namespaces": policy.NamespaceList,
	"list tables":     policy.TableList,
	"list views":      policy.ViewList,
	"load namespace":  policy.NamespaceProps,
	"load table":      policy.TableDataRead,
	"load view":       policy.ViewProps,
}

// refused is catalog.RESTOptions.Refused.
func (g *gates) refused(ctx context.Context, r catalog.Refusal) {
	count, sources := g.count.Load(), g.sources.Load()
	if count == nil || sources == nil {
		return
	}
	if privilege, ok := reading[r.Operation]; ok {
		p, ok := identity.FromContext(ctx)
		if !ok || !allowed(*sources, p, policy.Object{
			Catalog: r.Object.Catalog, Namespace: r.Object.Namespace, Name: r.Object.Name, View: r.Operation == "load view",
		}, privilege) {
			return
		}
	}
	(*count)(r.Object.Catalog, r.Operation)
}

// allowed asks the object gate of every source, as a statement does.
func allowed(sources []policy.Source, p identity.Principal, o policy.Object, privilege policy.Privilege) bool {
	var all []policy.Decision
	for _, s := range sources {
		state, err := s.State()
		if err != nil {
			return false
		}
		all = append(all, state.Authorize(p, o, privilege))
	}
	return policy.MergeDecisions(all...).Allow
}
