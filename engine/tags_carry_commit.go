package engine

import (
	"context"
	"errors"
	"strings"

	"sqe/catalog"
	"sqe/engine/write"
	"sqe/fault"
	"sqe/plan"
)

// committer is by with the tags that the rows bring, in the same commit. Where tags
// are also written to policy servers, they are there before the rows are (tagging).
func (c *carriage) committer(by write.Committer) write.Committer {
	if c == nil || len(c.fields) == 0 {
		return by
	}
	return carrying{by, c}
}

// carrying commits rows with tags.
type carrying struct {
	by write.Committer
	*carriage
}

// Commit implements write.Committer.
func (c carrying) Commit(ctx context.Context, name plan.TableName, change catalog.TableChange) (*plan.Table, error) {
	var t *plan.Table
	err := c.projected(ctx, c.carriedBy, func() (err error) {
		t, err = c.by.Commit(ctx, name, catalog.WithTags(change, c.fields))
		return err
	})
	return t, err
}

// carriedBy adds the tags to those of the table.
func (c *carriage) carriedBy(set *catalog.TagSet) map[string][]string {
	if set == nil {
		return nil // the table was dropped meanwhile; the commit will say so
	}
	for id, tags := range c.fields {
		set.Carry(id, tags...)
	}
	return set.ByColumn()
}

// creating creates a table with the tags of c. create reports whether it did.
func (c *carriage) creating(ctx context.Context, create func() (bool, error)) (created bool, err error) {
	if c == nil || len(c.paths) == 0 {
		return create()
	}
	err = c.projected(ctx, func(set *catalog.TagSet) map[string][]string {
		wide := map[string][]string{}
		if set != nil {
			wide = set.ByColumn() // those of a table that is replaced act on columns of their names
		}
		brings := map[string][]string{}
		for _, p := range c.paths {
			column := strings.Join(p.Path, ".")
			for _, t := range p.Tags {
				brings[column] = append(brings[column], t.Name)
			}
		}
		return union(wide, brings)
	}, func() (err error) {
		created, err = create()
		if err == nil && !created {
			return errNotCreated
		}
		return err
	})
	if errors.Is(err, errNotCreated) {
		err = nil
	}
	return created, err
}

var errNotCreated = errors.New("the table was there already")

// projected runs commit, which adds tags to the target, after they are on the policy
// servers. wide gives the tags by column that the table will have; its argument is
// those that it has now, nil when there is no table. When commit fails the servers
// get back what they had.
func (c *carriage) projected(ctx context.Context, wide func(*catalog.TagSet) map[string][]string, commit func() error) error {
	projectors := c.engine.projectors()
	if len(projectors) == 0 {
		return commit()
	}
	give, err := c.engine.projecting.Take(ctx, c.target)
	if err != nil {
		return err
	}
	defer give()
	cat, ok := c.engine.catalogs.Get(c.target.Catalog)
	if !ok {
		return fault.New(fault.NotFound, "there is no catalog '%s'", c.target.Catalog)
	}
	var set *catalog.TagSet
	var before map[string][]string
	t, err := cat.Table(ctx, c.target, plan.AsOf{}, "")
	switch {
	case fault.Is(err, fault.NotFound):
		t = &plan.Table{Name: c.target}
	case err != nil:
		return err
	default:
		if set, err = catalog.ReadTags(t); err != nil {
			return err
		}
		before = set.ByColumn()
	}
	after := wide(set)
	if equalTags(before, after) {
		return commit()
	}
	p := &projection{by: c.author(), table: t, to: projectors}
	if err := p.move(ctx, before, after); err != nil {
		return c.unprojected(err, p.back(ctx, after, before))
	}
	err = commit()
	if err == nil || errors.Is(err, catalog.ErrUnknown) {
		return err
	}
	if back := p.back(ctx, after, before); back != nil {
		return c.unprojected(err, back)
	}
	return err
}

// unprojected is the error of a statement whose tags a policy server did not take, or
// did not give back.
func (c *carriage) unprojected(err, undo error) error {
	kind := fault.KindOf(err)
	if undo == nil {
		return fault.Wrap(kind, err, "the rows bring tags to table '%s' that could not be written to the policy server, so nothing was changed: %s", c.target, faultText(err))
	}
	return fault.Wrap(kind, err, "nothing was changed in table '%s' (%s), but the policy server may have tags of it that the table has not; CALL system.reproject_column_tags", c.target, faultText(err))
}
