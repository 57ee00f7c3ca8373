package engine_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"sqe/fault"
	"sqe/identity"
	"sqe/plan"
	"sqe/policy"
)

// store is an Administrator whose policies the source of a fixture enforces.
type store struct {
	mu       sync.Mutex
	name     string
	source   *source
	policies []policy.Stored
	changes  int
	authors  []policy.Author
	err      error
}

func (s *store) Source() string { return s.name }

// changed publishes the policies.
func (s *store) changed(by policy.Author) {
	s.changes++
	s.authors = append(s.authors, by)
	all := slices.Clone(s.policies)
	s.source.set(func(st *state) {
		st.version = "store " + strconv.Itoa(s.changes)
		st.restrict = func(p identity.Principal, t *plan.Table) *policy.Restrictions { return decide(all, p, t) }
	})
}

// decide is the data gate over stored policies.
func decide(all []policy.Stored, p identity.Principal, t *plan.Table) *policy.Restrictions {
	out := &policy.Restrictions{Complete: true, Columns: map[int]policy.ColumnRule{}}
	for _, s := range all {
		i := slices.IndexFunc(s.Items, func(i policy.Item) bool {
			return slices.ContainsFunc(i.Grantees, func(g policy.Grantee) bool {
				return g.Kind == policy.UserGrantee && g.Name == p.Name || g.Kind == policy.RoleGrantee && slices.Contains(p.Roles, g.Name) ||
					g.Kind == policy.GroupGrantee && (g.Name == policy.Public || slices.Contains(p.Groups, g.Name))
			})
		})
		if i < 0 || s.Disabled || s.Tag == "" && s.Table.Key() != t.Name.Key() {
			continue
		}
		item := s.Items[i]
		origin := policy.Origin{Source: "test", Policy: s.Name, ID: s.ID, Version: s.Version, Tag: s.Tag}
		if s.Kind == policy.FilterDefinition {
			out.Filters = append(out.Filters, policy.RowFilter{SQL: item.SQL, Origin: origin})
			continue
		}
		for _, f := range t.Fields {
			tagged := slices.ContainsFunc(t.Tags[f.ID], func(tag plan.Tag) bool { return tag.Name == s.Tag })
			if slices.Contains(s.Columns, f.Name) || tagged {
				out.Columns[f.ID] = policy.ColumnRule{Kind: policy.Mask, Action: item.Mask, SQL: item.SQL, Origin: origin}
			}
		}
	}
	return out
}

func (s *store) find(name string) int {
	return slices.IndexFunc(s.policies, func(p policy.Stored) bool { return p.Name == name })
}

func (s *store) Create(_ context.Context, by policy.Author, d policy.Definition, replace bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(d.Name)
	switch {
	case s.err != nil:
		return s.err
	case i >= 0 && !replace:
		return fault.New(fault.BadStatement, "the policy '%s' exists; use CREATE OR REPLACE POLICY", d.Name)
	case i < 0:
		i = len(s.policies)
		s.policies = append(s.policies, policy.Stored{ID: int64(i + 1), Service: "hive"})
	}
	s.put(i, by, d)
	return nil
}

func (s *store) put(i int, by policy.Author, d policy.Definition) {
	p := &s.policies[i]
	p.Definition, p.Version, p.UpdatedBy = d, p.Version+1, by.User
	p.UpdatedAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s.changed(by)
}

func (s *store) Alter(_ context.Context, by policy.Author, name string, c policy.Change, check func(policy.Definition) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(name)
	if i < 0 {
		return fault.New(fault.NotFound, "there is no policy '%s'; SHOW POLICIES lists them", name)
	}
	d := s.policies[i].Definition
	d.Items = slices.Clone(d.Items)
	if c.First {
		d.Items = append(slices.Clone(c.Add), d.Items...)
	} else {
		d.Items = append(d.Items, c.Add...)
	}
	for k := range d.Items {
		d.Items[k].Grantees = slices.DeleteFunc(slices.Clone(d.Items[k].Grantees), func(g policy.Grantee) bool { return slices.Contains(c.Remove, g) })
	}
	d.Items = slices.DeleteFunc(d.Items, func(i policy.Item) bool { return len(i.Grantees) == 0 })
	change(&d.Name, c.Rename)
	change(&d.Description, c.Description)
	change(&d.Disabled, c.Disabled)
	change(&d.Override, c.Override)
	change(&d.ValidFrom, c.ValidFrom)
	change(&d.ValidUntil, c.ValidUntil)
	if err := check(d); err != nil {
		return err
	}
	s.put(i, by, d)
	return nil
}

func change[T any](to, v *T) {
	if v != nil {
		*to = *v
	}
}

func (s *store) Drop(_ context.Context, by policy.Author, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(name)
	if i < 0 {
		return fault.New(fault.NotFound, "there is no policy '%s'; SHOW POLICIES lists them", name)
	}
	s.policies = slices.Delete(s.policies, i, i+1)
	s.changed(by)
	return nil
}

func (s *store) List(context.Context) ([]policy.Stored, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.policies), s.err
}

// Overlaps knows no patterns; of two of one priority the first by name acts.
func (s *store) Overlaps(_ context.Context, d policy.Definition, id int64) ([]policy.Overlap, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []policy.Overlap
	for _, p := range s.policies {
		if d.Tag != "" || d.Disabled || p.Disabled || p.Kind != d.Kind || p.ID == id || id == 0 && p.Name == d.Name || p.Table.Key() != d.Table.Key() {
			continue
		}
		o := policy.Overlap{Name: p.Name, Exact: true, Override: p.Override, First: p.Override && !d.Override || p.Override == d.Override && p.Name < d.Name}
		for _, c := range d.Columns {
			if slices.Contains(p.Columns, c) {
				o.Columns = append(o.Columns, c)
			}
		}
		if d.Kind == policy.FilterDefinition || len(o.Columns) > 0 {
			out = append(out, o)
		}
	}
	return out, s.err
}

func (s *store) Projects() bool { return false }

func (s *store) ProjectTags(context.Context, policy.Author, *plan.Table, map[string][]string, map[string][]string) error {
	return nil
}
