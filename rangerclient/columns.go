package rangerclient

import (
	"strings"
	"time"

	"sqe/plan"
	"sqe/policy"
	"sqe/rangerclient/eval"
)

// columns finds the rule of every field.
func (r *restriction) columns(now time.Time) {
	e := r.State.tables
	masks := e.MaskColumns(r.tableRequest(r.who, r.table))
	denies := r.options.ColumnAccess != ColumnAccessIgnored && e.Denies()
	q := r.tableRequest(r.who, r.table).With("column", false, "")
	q.Time = now
	defer func() { r.depends(q) }()
	named := map[string]bool{} // in lower case; whether the table has it
	for _, m := range masks.Named {
		named[strings.ToLower(m.Column)] = false
	}
	everywhere := masks.Wild || denies || len(r.above) > 0 || e.HasTags()
	ruled := map[int]bool{} // fields with a rule on themselves or above
	r.eachField(func(f plan.Field, parent int, paths []string) {
		ask := everywhere
		if len(named) > 0 {
			for _, p := range paths {
				p = strings.ToLower(p)
				if _, ok := named[p]; ok {
					named[p], ask = true, true
				}
			}
		}
		tags := r.table.Tags[f.ID]
		if !ask && len(tags) == 0 {
			// No policy can act on the field itself; one above it may.
			if ruled[parent] {
				ruled[f.ID] = true
			}
			return
		}
		rule, found := r.field(q, f.ID, tags, parent == 0, paths)
		if ruled[parent] {
			ruled[f.ID] = true
			if above, ok := r.out.Columns[parent]; ok && found && above.Action == eval.MaskCustom {
				// An expression over the whole value would read what is masked inside it.
				above.Kind, above.Action, above.SQL = policy.Forbid, "", ""
				above.Why = "a CUSTOM mask covers a value in which a field is masked too"
				r.out.Columns[parent] = above
			}
			return
		}
		if found {
			r.out.Columns[f.ID] = rule
			ruled[f.ID] = true
		}
	})
	for _, m := range masks.Named {
		if !named[strings.ToLower(m.Column)] {
			r.out.Notes = append(r.out.Notes, describe(eval.Origin{Policy: m.Policy})+" masks column "+m.Column+", which the table never had; it protects nothing")
		}
	}
}

// field finds the rule of one field. Each name that the field goes by is asked
// for by itself, and so are the tags that may be another field's: any mask counts
// more than an exemption under another name or by such a tag, and two different
// masks give NULL.
func (r *restriction) field(q *eval.Request, id int, iceberg []plan.Tag, top bool, paths []string) (rule policy.ColumnRule, found bool) {
	e := r.State.tables
	own, inherited := icebergTags(iceberg, eval.Self, paths[0])
	ask := func() (stop bool) {
		next, ok := r.named(q, id)
		switch {
		case r.out.Refuse != "":
			return true
		case !ok:
		case !found:
			rule, found = next, true
		case next.Kind == policy.Forbid && rule.Kind != policy.Forbid:
			rule = next
		case rule.Kind == policy.Forbid:
		case next.Action != rule.Action || next.SQL != rule.SQL:
			rule = policy.ColumnRule{
				Kind: policy.Nullify, Action: eval.MaskNull, Origin: rule.Origin,
				Why: "another mask acts through an earlier name or a tag that was put on one",
			}
		}
		return false
	}
	for n, path := range paths {
		q.Rename(path)
		if q.Earlier = ""; n > 0 {
			q.Earlier = path
		}
		q.Tags = q.Tags[:0]
		e.FindTags(q)
		if top {
			q.AddTags(r.above...)
		} else {
			// What stands above the column acts on the column.
			kept := q.Tags[:0]
			for _, t := range q.Tags {
				if t.Match == eval.Self {
					kept = append(kept, t)
				}
			}
			q.Tags = kept
		}
		q.AddTags(own...)
		if ask() {
			return policy.ColumnRule{}, false
		}
	}
	if len(inherited) > 0 {
		q.Rename(paths[0])
		q.Earlier = ""
		q.Tags = append(q.Tags[:0], inherited...)
		if ask() {
			return policy.ColumnRule{}, false
		}
	}
	return rule, found
}

// named finds the rule of the field under one name.
func (r *restriction) named(q *eval.Request, id int) (policy.ColumnRule, bool) {
	e := r.State.tables
	if r.options.ColumnAccess != ColumnAccessIgnored && e.Denies() {
		if a := e.Access(q); a.Denied {
			return policy.ColumnRule{
				Kind: policy.Forbid, Why: describe(a.Origin) + " denies select on the column",
				Origin: r.origin(e, a.Origin),
			}, true
		}
	}
	order := eval.TagsFirst
	if r.options.MaskPrecedence == ResourceMasksFirst {
		order = eval.ResourcesFirst
	}
	a := e.Mask(q, order)
	switch {
	case a.Refuse != "":
		r.refuse(a.Refuse)
		return policy.ColumnRule{}, false
	case a.Exempt:
		r.exempt(id, a.Origin)
		return policy.ColumnRule{}, false
	case a.Type == "" && a.Broken == "":
		return policy.ColumnRule{}, false
	}
	rule := policy.ColumnRule{Kind: policy.Mask, Action: a.Type, Origin: r.origin(e, a.Origin)}
	why := a.Broken
	switch {
	case why != "":
	case a.Type == eval.MaskNull:
		rule.Kind = policy.Nullify
	case a.Type == eval.MaskCustom:
		sql, err := a.Expand(q)
		if err != nil {
			why = "its CUSTOM mask cannot be applied: " + err.Error()
		}
		rule.SQL = sql
	}
	if why != "" {
		rule = policy.ColumnRule{Kind: policy.Forbid, Why: describe(a.Origin) + ": " + why, Origin: rule.Origin}
	}
	return rule, true
}
