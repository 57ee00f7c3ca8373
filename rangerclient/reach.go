package rangerclient

import (
	"slices"

	"sqe/plan"
	"sqe/rangerclient/eval"
	"sqe/rangerclient/model"
)

// eachTarget calls fn for every resource that is compared with tables: those of masks,
// row filters and denials, and what the policy server gives tags to.
func (s *State) eachTarget(fn func(elements map[string]*eval.Names)) {
	for _, kind := range []int{model.AccessPolicy, model.MaskPolicy, model.RowFilterPolicy} {
		s.tables.Resources(kind, func(p *eval.Policy, elements map[string]*eval.Names) {
			if s.governsTables(kind, p, elements) {
				fn(elements)
			}
		})
	}
	s.tables.TaggedResources(func(_ []string, elements map[string]*eval.Names) {
		if s.tagsTables(elements) {
			fn(elements)
		}
	})
}

// NamesTablesOf implements policy.Inspector.
func (s *State) NamesTablesOf(catalog string, namespace []string) bool {
	s.named.once.Do(func() {
		seen := map[string]bool{}
		s.eachTarget(func(elements map[string]*eval.Names) {
			for _, v := range s.places(elements) {
				if !seen[v.text] {
					seen[v.text] = true
					s.named.databases = append(s.named.databases, v)
				}
			}
		})
	})
	if namespace == nil {
		return len(s.named.databases) > 0
	}
	return matches(s.named.databases, s.databaseNames(&plan.Table{Name: plan.TableName{Catalog: catalog, Namespace: namespace}})...)
}

// fewTables is how many tables are looked at first for a column that one of many has.
const fewTables = 16

// Unknown implements policy.Inspector. Of the tables that a pattern stands for some are
// enough, as soon as one of them has the column: it asks for a few, and then for as many
// as are known by then.
func (s *State) Unknown(tables []*plan.Table) []*plan.Table {
	t := s.targets(tables)
	wanted := map[*plan.Table]bool{}
	s.eachTarget(func(elements map[string]*eval.Names) {
		if !namesColumns(elements) {
			return
		}
		for _, db := range s.places(elements) {
			for _, table := range values(elements["table"]) {
				found := t.tables(db, table)
				most := len(found)
				if !db.literal || !table.literal {
					if !slices.ContainsFunc(values(elements["column"]), func(c value) bool { return !t.knownColumn(found, c) }) {
						continue
					}
					most = 0
					for _, x := range found {
						if !unknown(x) {
							most++
						}
					}
					most = max(most, fewTables)
				}
				for _, x := range found {
					if most > 0 && unknown(x) {
						wanted[x] = true
						most--
					}
				}
			}
		}
	})
	out := make([]*plan.Table, 0, len(wanted))
	for _, x := range tables {
		if wanted[x] {
			out = append(out, x)
		}
	}
	return out
}
