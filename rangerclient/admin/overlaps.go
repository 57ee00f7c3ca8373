package admin

import (
	"context"
	"slices"
	"strings"
	"time"

	"sqe/fault"
	"sqe/plan"
	"sqe/policy"
	"sqe/rangerclient"
	"sqe/rangerclient/eval"
	"sqe/rangerclient/model"
	"sqe/rangerclient/servicedef"
)

// Overlaps implements policy.Administrator. Names are compared as the source that
// reads the policies does it.
func (a *Administrator) Overlaps(ctx context.Context, d policy.Definition, id int64) ([]policy.Overlap, error) {
	if d.Tag != "" || d.Disabled || d.Kind != policy.MaskDefinition && d.Kind != policy.FilterDefinition {
		return nil, nil
	}
	l, err := a.language(ctx)
	if err != nil {
		return nil, err
	}
	list, err := a.server.Policies(ctx, l.service)
	if err != nil {
		return nil, a.fault(err, l.service)
	}
	var want *model.Policy
	if own := slices.IndexFunc(list, func(p *model.Policy) bool { return id != 0 && p.ID == id }); own >= 0 {
		enabled := true
		want = clone(list[own])
		want.Name, want.Enabled, want.PolicyPriority = d.Name, &enabled, 0
		if d.Override {
			want.PolicyPriority = 1
		}
	} else {
		if want, err = l.policyFor(d); err != nil {
			return nil, err
		}
		if want.ZoneName, err = a.zone(ctx, l, d, want); err != nil {
			return nil, err
		}
	}
	def, err := servicedef.Definition(l.component)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the policies of service %s cannot be compared", l.service)
	}
	var out []policy.Overlap
	for _, p := range list {
		same := id != 0 && p.ID == id || id == 0 && p.Name == d.Name
		if same || p.PolicyType != want.PolicyType || p.ZoneName != want.ZoneName || !l.together(p, d) {
			continue
		}
		o := policy.Overlap{Name: p.Name, Override: p.PolicyPriority > 0}
		meets := false
		consider := func(column string) bool {
			q := l.request(d.Table)
			if column != "" {
				q.With("column", false, column)
			}
			c := eval.Meet(def, p, q)
			meets, o.Exact = meets || c.Meets, o.Exact || c.Exact
			return c.Meets
		}
		if d.Kind == policy.FilterDefinition {
			consider("")
		}
		for _, c := range d.Columns {
			if consider(c) {
				o.Columns = append(o.Columns, c)
			}
		}
		if meets {
			o.First = eval.Before(def, p, want)
			out = append(out, o)
		}
	}
	return out, nil
}

// request names a table as the source that reads the policies does.
func (l *language) request(t plan.TableName) *eval.Request {
	q := eval.NewRequest(&eval.Subject{}, "", time.Time{})
	dotted := strings.Join(t.Namespace, ".")
	if l.component == "trino" {
		return q.With("catalog", false, t.Catalog).With("schema", false, dotted).With("table", false, t.Name)
	}
	names := []string{dotted}
	switch l.databaseKey {
	case rangerclient.KeyBoth:
		names = append(names, t.Catalog+"."+dotted)
	case rangerclient.KeyCatalogNamespace:
		names = []string{t.Catalog + "." + dotted}
	case rangerclient.KeyOriginal:
		names = append(names, t.Namespace[len(t.Namespace)-1])
	}
	return q.With("database", false, names...).With("table", false, t.Name)
}

// together reports whether p is enabled and there is a time at which both hold.
func (l *language) together(p *model.Policy, d policy.Definition) bool {
	if !p.IsEnabled() {
		return false
	}
	s := l.stored(p)
	if len(p.ValiditySchedules) > 1 || slices.Contains(s.Beyond, beyondTimes) || slices.Contains(s.Beyond, beyondRecurrences) {
		return true // it may be
	}
	ends := func(until, from time.Time) bool { return !until.IsZero() && !until.After(from) }
	return !ends(s.ValidUntil, d.ValidFrom) && !ends(d.ValidUntil, s.ValidFrom) && !ends(s.ValidUntil, time.Now())
}
