package engine

import (
	"context"
	"slices"

	"sqe/catalog"
	"sqe/fault"
	"sqe/plan"
	"sqe/policy"
)

// Which snapshots, branches and tags a table has, and since when, is told to those who
// may read its metadata tables. Everybody else who may read the table may read it as of
// what they can name, under the policies, and of what they cannot read so they learn no
// reason: neither that it is not there, nor that policies stand against it.

// noVersion is the one error for all reasons.
func noVersion(name plan.TableName, cause error) error {
	return fault.Wrap(fault.BadStatement, cause, "Table %s has no such version, or you may not read it so; ask an administrator", name)
}

// listsVersions reports whether the principal may know which versions the table has:
// whether it may read the table that lists its branches and tags. What stands against it
// is for the audit log.
func (st *statement) listsVersions(ctx context.Context, cat catalog.Catalog, name plan.TableName) (bool, error) {
	object := policy.TableObject(name)
	read, err := st.authorize(object, policy.TableDataRead)
	if err != nil {
		return false, err
	}
	if !read.Allow {
		st.denied(object, policy.TableDataRead, read)
		return false, nil
	}
	t, err := cat.Table(ctx, name, plan.AsOf{}, "refs")
	if err != nil {
		return false, err
	}
	switch _, err = st.bound(ctx, t); fault.KindOf(err) {
	case fault.Denied, fault.PolicyBroken:
		return false, nil
	}
	return err == nil, err
}

// unreadable hides from those who may not know which versions a table has why one cannot be
// read. err is what reading it led to.
func (st *statement) unreadable(ctx context.Context, cat catalog.Catalog, name plan.TableName, err error) error {
	switch fault.KindOf(err) {
	case fault.BadStatement, fault.Corrupt, fault.PolicyBroken:
	default:
		return err
	}
	may, failed := st.listsVersions(ctx, cat, name)
	switch {
	case failed != nil:
		return failed
	case may:
		return err
	}
	return noVersion(name, err)
}

// ofVersion is unreadable for what changes the table: only the error that there is no such
// version is one that tells of versions.
func (st *statement) ofVersion(ctx context.Context, o *object, err error) error {
	if !catalog.NoVersion(err) {
		return o.hidden(err)
	}
	return st.unreadable(ctx, o.catalog, o.TableName, err)
}

// restricted notes for the audit log which policies restrict what the principal sees of
// a table that was refused because of them.
func (st *statement) restricted(t *plan.Table) {
	d := policy.Decision{Visible: true, Reason: policy.Restricted}
	add := func(o *policy.Origin) {
		if o != nil && !slices.Contains(d.By, *o) {
			d.By = append(d.By, *o)
		}
	}
	for _, b := range st.tables {
		r := b.Record()
		if r.Table != t.Name.String() || r.Metadata != "" {
			continue
		}
		for i := range r.Filters {
			add(r.Filters[i].Origin)
		}
		for i := range r.Columns {
			add(r.Columns[i].Origin)
			for j := range r.Columns[i].Also {
				add(&r.Columns[i].Also[j])
			}
		}
	}
	object := policy.TableObject(t.Name)
	told := func(x denial) bool {
		return x.decision.Reason == d.Reason && objectText(x.object) == objectText(object)
	}
	if !slices.ContainsFunc(st.denial, told) {
		st.denied(object, policy.TableDataRead, d)
	}
}
