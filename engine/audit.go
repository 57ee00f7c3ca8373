package engine

import (
	"time"

	"sqe/audit"
	"sqe/policy"
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
	st.describe(&e)
	s.engine.observer.Statement(kind, e.Outcome, elapsed.Seconds(), rows)
	return s.engine.audit.Record(e)
}

// describe fills in which tables the statement read and what the policies did.
func (st *statement) describe(e *audit.Event) {
	for _, d := range st.denial {
		e.Denials = append(e.Denials, audit.Denial{
			Object: objectText(d.object), Privilege: string(d.privilege), Reason: d.decision.Reason, By: d.decision.By,
		})
	}
	if st.record == nil {
		return
	}
	for _, t := range st.record.Tables {
		e.Tables = append(e.Tables, audit.Table{Name: t.Table, Snapshot: t.Snapshot})
		act := func(column, what string, o *policy.Origin) {
			if o != nil {
				e.Policies = append(e.Policies, audit.Action{Table: t.Table, Column: column, What: what, Origin: *o})
			}
		}
		for _, f := range t.Filters {
			act("", "row-filter", f.Origin)
		}
		for _, c := range t.Columns {
			act(c.Column, c.Rule, c.Origin)
			for i := range c.Also {
				act(c.Column, c.Rule, &c.Also[i])
			}
		}
		for i := range t.Exempt {
			act("", "exempt", &t.Exempt[i])
		}
	}
}

func objectText(o policy.Object) string {
	out := o.Catalog
	for _, n := range o.Namespace {
		out += "." + n
	}
	if o.Name != "" {
		out += "." + o.Name
	}
	return out
}
