package rangerclient

import (
	"fmt"
	"slices"
	"strings"

	"sqe/plan"
	"sqe/policy"
	"sqe/rangerclient/eval"
	"sqe/rangerclient/model"
)

// Governs implements policy.Governor. Policies that are disabled do not count;
// those whose time has not come or is over do.
func (s *State) Governs(t *plan.Table) policy.Governance {
	g := &governing{State: s, table: t}
	g.data()
	g.denials()
	if zone := s.tables.ZoneOf(s.tableRequest(asker{Subject: &eval.Subject{}}, t)); zone != "" {
		g.add("zone\x00"+zone, true)
	}
	g.out.Tagged = map[int]bool{}
	for id, tags := range s.TableTags(t) {
		for _, tag := range tags {
			g.out.Tagged[id] = true
			g.add(fmt.Sprintf("tag\x00%d\x00%s", id, tag), true)
		}
	}
	g.out.Texts = s.allTexts(t)
	slices.Sort(g.out.By)
	g.out.By = slices.Compact(g.out.By)
	return g.out
}

type governing struct {
	*State
	table *plan.Table
	out   policy.Governance
}

func (g *governing) add(by string, named bool) {
	g.out.By = append(g.out.By, by)
	g.out.Named = g.out.Named || named
}

// data finds the resources of masks, row filters and denials of the data service.
func (g *governing) data() {
	databases := g.databaseNames(g.table)
	for _, kind := range []int{model.AccessPolicy, model.MaskPolicy, model.RowFilterPolicy} {
		n := 0
		g.tables.Resources(kind, func(p *eval.Policy, elements map[string]*eval.Names) {
			n++
			if kind == model.AccessPolicy && (!p.Denies() || g.options.ColumnAccess == ColumnAccessIgnored) {
				return
			}
			in, tables := g.places(elements), values(elements["table"])
			if !matches(tables, g.table.Name.Name) || !matches(in, databases...) {
				return
			}
			by := fmt.Sprintf("data\x00%s\x00%d\x00%d\x00%d", p.Service, kind, p.ID, n)
			if dynamic(elements["table"], elements["database"], elements["catalog"], elements["schema"]) {
				by += "\x00" + g.table.Name.Key() // for whom it is meant depends on the name
			}
			everything := slices.ContainsFunc(in, func(v value) bool { return v.all }) && slices.ContainsFunc(tables, func(v value) bool { return v.all })
			g.add(by, !everything)
		})
	}
}

func dynamic(list ...*eval.Names) bool {
	return slices.ContainsFunc(list, func(n *eval.Names) bool { return n != nil && n.Dynamic() })
}

// denials finds the resources of policies of the object gate that deny.
func (g *governing) denials() {
	if g.objects == nil {
		return
	}
	t := g.table.Name
	rest := escapeLevel(t.Name)
	for i := len(t.Namespace) - 1; i > 0; i-- {
		rest = escapeLevel(t.Namespace[i]) + "/" + rest
	}
	names := map[string]string{"root": g.options.Realm, "catalog": t.Catalog, "namespace": escapeLevel(t.Namespace[0]), "table": rest}
	n := 0
	g.objects.Resources(model.AccessPolicy, func(p *eval.Policy, elements map[string]*eval.Names) {
		n++
		if !p.Denies() || elements["table"] == nil {
			return
		}
		by := fmt.Sprintf("object\x00%s\x00%d\x00%d", p.Service, p.ID, n)
		for element, e := range elements {
			switch {
			case e.Dynamic():
				by += "\x00" + t.Key()
			case !e.Any && !e.Matches(names[element]):
				return
			}
		}
		g.add(by, false)
	})
}

// allTexts is Texts with those that differ for each principal.
func (s *State) allTexts(t *plan.Table) []string {
	var out []string
	s.eachText(t, func(_ *eval.Policy, x policy.PolicyText) {
		if strings.TrimSpace(x.SQL) != "" && !slices.Contains(out, x.SQL) {
			out = append(out, x.SQL)
		}
	})
	return out
}

var _ policy.Governor = (*State)(nil)
