package engine

import (
	"slices"
	"strings"
	"time"

	"sqe/audit"
	"sqe/fault"
	"sqe/plan"
	"sqe/policy"
	"sqe/rewrite"
)

// finish makes the audit event and the metrics of a statement. Its error means
// that the event could not be recorded: the statement must not succeed.
func (s *Session) finish(st *statement, kind, fingerprint string, rows int64, err error) error {
	elapsed := time.Since(st.started)
	e := audit.Event{
		Type: "statement", Remote: s.info.RemoteAddr, Connection: s.info.ID, Database: s.Database(),
		Statement: fingerprint, Kind: kind, Rows: rows, DurationMS: float64(elapsed.Microseconds()) / 1000,
	}
	e.Of(s.principal)
	e.Ended(err)
	st.describe(&e, err)
	s.engine.observer.Statement(kind, e.Outcome, elapsed.Seconds(), rows)
	return s.engine.audit.Record(e)
}

// describe fills in which tables the statement read and what the policies did.
func (st *statement) describe(e *audit.Event, err error) {
	for _, d := range st.denial {
		e.Denials = append(e.Denials, audit.Denial{
			Object: objectText(d.object), Privilege: string(d.privilege), Reason: d.decision.Reason, By: d.decision.By,
			Path: objectPath(d.object),
		})
	}
	e.Grantees = st.grantees
	for _, c := range st.changed {
		change := audit.Change{Object: objectText(c.object), Path: objectPath(c.object)}
		for _, p := range c.rights {
			change.Privileges = append(change.Privileges, string(p))
		}
		for _, o := range c.by {
			if !slices.Contains(change.By, o) {
				change.By = append(change.By, o)
			}
		}
		e.Changes = append(e.Changes, change)
	}
	if st.record == nil {
		if fault.Is(err, fault.Withheld) {
			st.describeWithheld(e)
		}
		return
	}
	for _, t := range st.record.Tables {
		st.describeTable(e, &t)
	}
}

// granted is what the object gate said of the table of a record.
func (st *statement) granted(t *rewrite.TableRecord) (grant, bool) {
	for _, g := range st.allowed {
		if g.table.SnapshotID == t.Snapshot && g.table.Metadata == t.Metadata && g.table.Name.String() == t.Table {
			return g, true
		}
	}
	return grant{}, false
}

func (st *statement) describeTable(e *audit.Event, t *rewrite.TableRecord) {
	table := audit.Table{Name: t.Table, Snapshot: t.Snapshot}
	act := func(a audit.Action, o *policy.Origin) {
		if o != nil {
			a.Table, a.Origin = t.Table, *o
			e.Policies = append(e.Policies, a)
		}
	}
	g, known := st.granted(t)
	if known {
		table.Path = objectPath(policy.TableObject(g.table.Name))
		if t.Metadata == "" { // the columns of a metadata table are not the table's
			table.Columns = columnNames(g.table.Fields, t.Used)
		}
		for i := range g.by {
			act(audit.Action{What: "allow"}, &g.by[i])
		}
	}
	e.Tables = append(e.Tables, table)
	for _, f := range t.Filters {
		act(audit.Action{What: "row-filter"}, f.Origin)
	}
	for _, c := range t.Columns {
		a := audit.Action{Column: c.Column, What: c.Rule, Action: c.Action, Unused: known && !uses(g.table.Fields, t.Used, c.Field)}
		act(a, c.Origin)
		for i := range c.Also {
			act(a, &c.Also[i])
		}
	}
	for i := range t.Exempt {
		e := &t.Exempt[i]
		act(audit.Action{Column: e.Column, What: "exempt", Unused: !t.Acts(*e)}, &e.Origin)
	}
}

// describeWithheld says which policies withhold the columns because of which the
// statement was refused: those that the error names, or all.
func (st *statement) describeWithheld(e *audit.Event) {
	var all, named []audit.Action
	for _, b := range st.tables {
		r := b.Record()
		for _, c := range r.Columns {
			if c.Rule != "withheld" || c.Origin == nil {
				continue
			}
			a := audit.Action{Table: r.Table, Column: c.Column, What: c.Rule, Action: c.Action, Origin: *c.Origin}
			all = append(all, a)
			if top, _, _ := strings.Cut(c.Column, "."); strings.Contains(e.Error, "'"+c.Column+"'") || strings.Contains(e.Error, "'"+top+"'") {
				named = append(named, a)
			}
		}
	}
	if named == nil {
		named = all
	}
	slices.SortFunc(named, func(a, b audit.Action) int {
		return strings.Compare(a.Table+"\x00"+a.Column, b.Table+"\x00"+b.Column)
	})
	e.Policies = append(e.Policies, named...)
}

// columnNames are the names of the top-level fields with these ids.
func columnNames(fields []plan.Field, ids []int) []string {
	var out []string
	for _, f := range fields {
		if slices.Contains(ids, f.ID) {
			out = append(out, f.Name)
		}
	}
	return out
}

// uses reports whether the field, or the top-level field that holds it, is among
// those that a statement refers to.
func uses(fields []plan.Field, used []int, id int) bool {
	for i := range fields {
		if slices.Contains(used, fields[i].ID) && holds(&fields[i], id) {
			return true
		}
	}
	return false
}

func holds(f *plan.Field, id int) bool {
	if f.ID == id {
		return true
	}
	for i := range f.Children {
		if holds(&f.Children[i], id) {
			return true
		}
	}
	return false
}

func objectPath(o policy.Object) []string {
	out := append([]string{o.Catalog}, o.Namespace...)
	if o.Name != "" {
		out = append(out, o.Name)
	}
	return out
}

func objectText(o policy.Object) string { return strings.Join(objectPath(o), ".") }
