package main

import (
	"context"
	"testing"

	"sqe/catalog"
	"sqe/fault"
	"sqe/identity"
	"sqe/plan"
	"sqe/policy"
)

// gateState allows ann one privilege on each object.
type gateState struct {
	policy.State
	privilege policy.Privilege
	asked     *[]policy.Object
}

func (s gateState) Authorize(p identity.Principal, o policy.Object, priv policy.Privilege) policy.Decision {
	*s.asked = append(*s.asked, o)
	return policy.Decision{Allow: p.Name == "ann" && priv == s.privilege, Visible: true, Reason: policy.Granted}
}

type gateSource struct {
	policy.Source
	state policy.State
}

func (s gateSource) State() (policy.State, error) {
	if s.state == nil {
		return nil, fault.New(fault.PolicyStale, "old")
	}
	return s.state, nil
}

// TestGates: a refusal of a catalog is counted when the policies allow what was
// refused, and not when they do not, or cannot say.
func TestGates(t *testing.T) {
	orders := plan.TableName{Catalog: "lake", Namespace: []string{"sales"}, Name: "orders"}
	ann := identity.WithPrincipal(context.Background(), identity.Principal{Name: "ann"})
	ben := identity.WithPrincipal(context.Background(), identity.Principal{Name: "ben"})
	for _, x := range []struct {
		name      string
		ctx       context.Context
		operation string
		allowed   policy.Privilege
		stale     bool
		want      int
	}{
		{"allowed here", ann, "load table", policy.TableDataRead, false, 1},
		{"refused here too", ben, "load table", policy.TableDataRead, false, 0},
		{"another right", ann, "load table", policy.TableProps, false, 0},
		{"nobody", context.Background(), "load table", policy.TableDataRead, false, 0},
		{"policies that are not known", ann, "load table", policy.TableDataRead, true, 0},
		{"a view", ann, "load view", policy.ViewProps, false, 1},
		{"a list", ann, "list tables", policy.TableList, false, 1},
		{"a change, which was allowed before", ann, "commit table", "", false, 1},
	} {
		var asked []policy.Object
		g := &gates{}
		refusal := catalog.Refusal{Operation: x.operation, Object: orders}
		g.refused(x.ctx, refusal) // before the server has its policies
		n := 0
		count := func(name, operation string) {
			if n++; name != "lake" || operation != x.operation {
				t.Errorf("%s: counted for %s, %s", x.name, name, operation)
			}
		}
		sources := []policy.Source{gateSource{state: gateState{privilege: x.allowed, asked: &asked}}}
		if x.stale {
			sources = append(sources, gateSource{})
		}
		g.sources.Store(&sources)
		g.count.Store(&count)
		g.refused(x.ctx, refusal)
		if n != x.want {
			t.Errorf("%s: counted %d times, want %d", x.name, n, x.want)
		}
		if len(asked) > 0 && (asked[0].Name != "orders" || asked[0].View != (x.operation == "load view")) {
			t.Errorf("%s: asked about %+v", x.name, asked[0])
		}
	}
}
