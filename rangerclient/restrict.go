package rangerclient

import (
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/fault"
	"sqe/identity"
	"sqe/plan"
	"sqe/policy"
	"sqe/rangerclient/eval"
)

// selectAccess is the access type of the data services that reading needs.
const selectAccess = "select"

// Restrict implements policy.State.
func (s *State) Restrict(p identity.Principal, t *plan.Table) (*policy.Restrictions, error) {
	if p.IsZero() {
		return nil, fault.New(fault.Denied, "nobody is logged in")
	}
	if t == nil || t.Name.Catalog == "" || t.Name.Name == "" || len(t.Name.Namespace) == 0 {
		return nil, fault.New(fault.PolicyBroken, "the table has no full name, so no policy can be found for it")
	}
	r := &restriction{State: s, table: t, who: s.subject(s.tables, p), out: &policy.Restrictions{Complete: true, Columns: map[int]policy.ColumnRule{}}}
	now := s.now()
	r.above, _ = icebergTags(t.Tags[0], eval.Ancestor, "")
	q := s.tableRequest(r.who, t)
	q.Time = now
	s.tables.FindTags(q)
	own, _ := icebergTags(t.Tags[0], eval.Self, "")
	q.AddTags(own...)
	r.filters(q)
	if r.out.Refuse == "" {
		r.columns(now)
	}
	r.depends(q)
	return r.out, nil
}

// tableRequest names the table in the vocabulary of the data service.
func (s *State) tableRequest(who asker, t *plan.Table) *eval.Request {
	q := eval.NewRequest(who.Subject, selectAccess, s.now())
	q.ClientIP = who.address
	dotted := strings.Join(t.Name.Namespace, ".")
	if s.tables.Type() == "trino" {
		return q.With("catalog", false, t.Name.Catalog).With("schema", false, dotted).With("table", false, t.Name.Name)
	}
	return q.With("database", false, s.databases(t, dotted)...).With("table", false, t.Name.Name)
}

// databases are the names that hive policies may use for the namespace of the
// table, which is dotted.
func (s *State) databases(t *plan.Table, dotted string) []string {
	switch s.options.DatabaseKey {
	case KeyNamespace:
		return []string{dotted}
	case KeyCatalogNamespace:
		return []string{t.Name.Catalog + "." + dotted}
	case KeyOriginal:
		return []string{dotted, t.Name.Namespace[len(t.Name.Namespace)-1]}
	default:
		return []string{dotted, t.Name.Catalog + "." + dotted}
	}
}

// icebergTags are the tags of a table or of a field of the name: its own, and those
// that may be another field's.
func icebergTags(list []plan.Tag, m eval.MatchType, name string) (own, inherited []eval.Tag) {
	for _, t := range list {
		x := eval.Tag{Type: t.Name, Attributes: t.Attributes, Match: m, Earlier: t.Earlier, From: eval.FromTable}
		if t.Inherited {
			inherited = append(inherited, x)
			continue
		}
		if x.Earlier == name {
			x.Earlier = "" // time travel shows the field under that very name
		}
		own = append(own, x)
	}
	return own, inherited
}

// restriction is one answer of the data gate in the making.
type restriction struct {
	*State
	who   asker
	table *plan.Table
	out   *policy.Restrictions
	above []eval.Tag // tags of the table, as its columns see them
}

// depends notes until when the answers to q hold, and which policies looked at the
// address of the client.
func (r *restriction) depends(q *eval.Request) {
	for _, p := range q.ByAddress() {
		r.out.ByAddress = true
		from := r.who.address
		if from == "" {
			from = "not known"
		}
		note := describe(eval.Origin{Policy: p}) + " looks at the address of the client (" + from + "): from another one it may say something else"
		if !slices.Contains(r.out.Notes, note) {
			r.out.Notes = append(r.out.Notes, note)
		}
	}
	if t := q.Until(); !t.IsZero() && (r.out.Expires.IsZero() || t.Before(r.out.Expires)) {
		r.out.Expires = t
	}
}

func (r *restriction) refuse(why string) {
	if r.out.Refuse == "" {
		r.out.Refuse = why
	}
}

// filters finds the row filters. Ranger's engine gives one; unless configured to
// do as Ranger does, the filter of a resource policy holds beside that of a tag
// policy, and so do the filters for tags on columns.
func (r *restriction) filters(q *eval.Request) {
	e := r.State.tables
	if r.options.FilterCombination == FiltersAsRanger {
		r.filter(e.Filter(q, eval.AllPolicies), q)
		return
	}
	tagged := e.Filter(q, eval.TagPolicies)
	r.filter(tagged, q)
	switch {
	case tagged.Refuse != "":
	case tagged.SQL != "":
		r.filter(e.Filter(q, eval.ResourcePolicies), q)
	default:
		r.filter(e.Filter(q, eval.AllPolicies), q)
	}
	if !e.TagFilters() || !e.HasTags() && len(r.table.Tags) == 0 {
		return
	}
	c := r.tableRequest(r.who, r.table).With("column", false, "")
	c.Time = q.Time
	r.eachField(func(f plan.Field, _ int, paths []string) {
		own, inherited := icebergTags(r.table.Tags[f.ID], eval.Self, paths[0])
		if !e.HasTags() && len(own)+len(inherited) == 0 {
			return
		}
		ask := func() {
			if a := e.Filter(c, eval.TagPolicies); a.SQL != "" || a.Refuse != "" {
				r.filter(a, c)
			}
		}
		for n, path := range paths {
			c.Rename(path)
			if c.Earlier = ""; n > 0 {
				c.Earlier = path
			}
			c.Tags = c.Tags[:0]
			e.FindTags(c)
			c.Tags = slices.DeleteFunc(c.Tags, func(t eval.Tag) bool { return t.Match != eval.Self })
			c.AddTags(own...)
			ask()
		}
		// A tag that may be another field's filters, and does not keep one that is the
		// field's own from filtering.
		if len(inherited) > 0 {
			c.Rename(paths[0])
			c.Earlier, c.Tags = "", inherited
			ask()
		}
		r.depends(c)
	})
}

func (r *restriction) filter(a eval.FilterAnswer, q *eval.Request) {
	switch {
	case a.Refuse != "":
		r.refuse(a.Refuse)
	case a.Exempt:
		r.exempt(0, a.Origin)
	case a.SQL != "":
		sql, err := a.Expand(q)
		if err != nil {
			r.refuse(describe(a.Origin) + ": the row filter cannot be applied: " + err.Error())
			return
		}
		f := policy.RowFilter{SQL: sql, Origin: r.origin(r.State.tables, a.Origin)}
		if !slices.ContainsFunc(r.out.Filters, func(x policy.RowFilter) bool { return x.SQL == f.SQL && x.Origin.ID == f.Origin.ID }) {
			r.out.Filters = append(r.out.Filters, f)
		}
	}
}

func describe(o eval.Origin) string {
	if o.Policy == nil {
		return "a policy"
	}
	return "policy " + strconv.FormatInt(o.Policy.ID, 10) + " " + strconv.Quote(o.Policy.Name)
}

// exempt notes an exemption from the masks of a field, or of the rows (0).
func (r *restriction) exempt(field int, o eval.Origin) {
	e := policy.Exemption{FieldID: field, Origin: r.origin(r.State.tables, o)}
	if !slices.Contains(r.out.Exempt, e) {
		r.out.Exempt = append(r.out.Exempt, e)
	}
}

// maxPaths bounds the names that a renamed field inside renamed structs goes by.
const maxPaths = 32

// eachField calls fn for every field with the names that it goes by, the present
// one first. A field inside a struct goes by its dotted path; one inside the
// elements of a list or the values of a map also by the path without "element" or
// "value".
func (r *restriction) eachField(fn func(f plan.Field, parent int, paths []string)) {
	var walk func(fields []plan.Field, parent int, parents []string, members bool)
	walk = func(fields []plan.Field, parent int, parents []string, members bool) {
		for _, f := range fields {
			paths := append([]string{f.Name}, r.table.Formerly[f.ID]...)
			if parents != nil {
				names := paths
				paths = nil
				for _, p := range parents {
					for _, n := range names {
						paths = append(paths, p+"."+n)
					}
				}
			}
			if len(paths) > maxPaths {
				r.refuse("a field of the table goes by so many former names that policies on it cannot be found")
				return
			}
			fn(f, parent, paths)
			if len(f.Children) == 0 {
				continue
			}
			below := paths
			if members && f.Name != "key" {
				below = append(slices.Clone(paths), parents...)
			}
			walk(f.Children, f.ID, below, f.Type.ID() != arrow.STRUCT)
		}
	}
	walk(r.table.Fields, 0, nil, false)
}
