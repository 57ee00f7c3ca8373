package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/catalog"
	"sqe/engine/parse"
	"sqe/fault"
	"sqe/plan"
	"sqe/policy"
)

// tagging is one change of the tags of a table.
//
// Where tags are also written to a policy server, tags in both places count, so
// every step leaves the union of what was and what will be: what is added goes to
// the server first and then to the table, what is taken away leaves the table
// first. A step that fails undoes those before it. When the server stops in
// between, the union still holds and running the statement again, or CALL
// system.reproject_column_tags, ends it.
type tagging struct {
	*statement
	name    plan.TableName
	changes []parse.TagChange
}

// run changes the tags.
func (g *tagging) run(ctx context.Context) error {
	projectors := g.engine.projectors()
	if len(projectors) == 0 {
		// The error for a table that is not there is that for administrators.
		if _, err := g.engine.definedTable(ctx, g.name); err != nil {
			return err
		}
		_, err := g.write(ctx)
		return err
	}
	// The server must hear of changes in the order in which the table has them.
	give, err := g.engine.projecting.Take(ctx, g.name)
	if err != nil {
		return err
	}
	defer give()
	t, err := g.engine.definedTable(ctx, g.name)
	if err != nil {
		return err
	}
	set, err := catalog.ReadTags(t)
	if err != nil {
		return err
	}
	before := set.ByColumn()
	named, err := g.edit(set)
	if err != nil {
		return err
	}
	wide := union(before, set.ByColumn())
	p := &projection{by: g.author(), table: t, to: projectors}
	if !equalTags(before, wide) {
		if err := p.move(ctx, before, wide); err != nil {
			return g.undone(err, p.back(ctx, wide, before))
		}
	}
	w, err := g.write(ctx)
	if err != nil {
		return g.undone(err, p.back(ctx, wide, before))
	}
	// A tag that is to go may be left on the server alone.
	if gone := union(wide, named); !equalTags(gone, w.after) {
		p.table = w.table
		if err := p.move(ctx, gone, w.after); err != nil {
			restored := g.restore(ctx, w)
			if restored == nil {
				restored = p.back(ctx, w.after, before)
			}
			return g.undone(err, restored)
		}
	}
	return nil
}

// undone is the error of a statement that failed; undo is nil when nothing is
// changed.
func (g *tagging) undone(err, undo error) error {
	kind := fault.KindOf(err)
	if undo == nil {
		return fault.Wrap(kind, err, "the tags of %s were not changed: %s", g.name, faultText(err))
	}
	return fault.Wrap(kind, err, "the tags of %s were not changed whole: %s; undoing it failed too, so the table and the policy server differ, and the tags of both count; run the statement again or CALL system.reproject_column_tags", g.name, faultText(err))
}

func faultText(err error) string {
	if fault.KindOf(err) == fault.Internal {
		return "an internal error"
	}
	return err.Error()
}

// edit makes the changes in a set. It lists, by column, the tags that are to go
// whether the set has them or not.
func (g *tagging) edit(set *catalog.TagSet) (named map[string][]string, err error) {
	named = map[string][]string{}
	for _, c := range g.changes {
		id, err := set.Column(c.Column)
		if err != nil {
			return nil, err
		}
		if !c.Unset {
			for _, t := range c.Tags {
				tag := plan.Tag{Name: t.Name}
				if t.Value != "" {
					tag.Attributes = map[string]string{"value": t.Value}
				}
				if err := set.Set(id, tag); err != nil {
					return nil, err
				}
			}
			continue
		}
		names := make([]string, len(c.Tags))
		for i, t := range c.Tags {
			names[i] = t.Name
		}
		// The server may know the column by an earlier name.
		names = append(names, set.Unset(id, names...)...)
		for _, n := range set.Names(id) {
			if len(names) > 0 {
				named[n] = append(named[n], names...)
			}
		}
	}
	return named, nil
}

// written is what write changed.
type written struct {
	table *plan.Table
	after map[string][]string
	// old and now are the values of the two properties before and after; a missing
	// key is a property that was not there.
	old, now map[string]string
}

// write changes the properties of the table.
func (g *tagging) write(ctx context.Context) (*written, error) {
	cat, ok := g.engine.catalogs.Get(g.name.Catalog)
	if !ok {
		return nil, fault.New(fault.NotFound, "there is no catalog '%s'", g.name.Catalog)
	}
	w := &written{}
	t, err := cat.UpdateProperties(ctx, g.name, func(t *plan.Table, props map[string]string) (map[string]string, []string, error) {
		set, err := catalog.ReadTags(t)
		if err != nil {
			return nil, nil, err
		}
		if _, err := g.edit(set); err != nil {
			return nil, nil, err
		}
		w.old, w.after = tagProperties(props), set.ByColumn()
		return set.Properties()
	})
	if err != nil {
		return nil, err
	}
	w.table, w.now = t, tagProperties(t.Properties)
	return w, nil
}

func tagProperties(props map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range props {
		if catalog.Reserved(k) {
			out[k] = v
		}
	}
	return out
}

// restore gives the table the tags back that it had before write, unless somebody
// has changed them since.
func (g *tagging) restore(ctx context.Context, w *written) error {
	cat, ok := g.engine.catalogs.Get(g.name.Catalog)
	if !ok {
		return fault.New(fault.NotFound, "there is no catalog '%s'", g.name.Catalog)
	}
	ctx, cancel := unhurried(ctx)
	defer cancel()
	_, err := cat.UpdateProperties(ctx, g.name, func(_ *plan.Table, props map[string]string) (map[string]string, []string, error) {
		if !maps.Equal(tagProperties(props), w.now) {
			return nil, nil, fault.New(fault.Conflict, "the tags were changed meanwhile")
		}
		var remove []string
		for k := range w.now {
			if _, ok := w.old[k]; !ok {
				remove = append(remove, k)
			}
		}
		return w.old, remove, nil
	})
	return err
}

// unhurried is a context for undoing: what ended the statement must not end that.
func unhurried(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
}

// projection writes tags of a table to policy servers.
type projection struct {
	by    policy.Author
	table *plan.Table
	to    []policy.Administrator
}

// projectors are the administrators that write tags to their servers.
func (e *Engine) projectors() []policy.Administrator {
	return slices.DeleteFunc(slices.Clone(e.administrators), func(a policy.Administrator) bool { return !a.Projects() })
}

func (p *projection) move(ctx context.Context, before, after map[string][]string) error {
	for _, a := range p.to {
		if err := a.ProjectTags(ctx, p.by, p.table, before, after); err != nil {
			return err
		}
	}
	return nil
}

// back undoes a move, also one that ended half-way: writing again what is there
// changes nothing.
func (p *projection) back(ctx context.Context, from, to map[string][]string) error {
	if equalTags(from, to) {
		return nil
	}
	ctx, cancel := unhurried(ctx)
	defer cancel()
	var failed error
	for _, a := range p.to {
		if err := a.ProjectTags(ctx, p.by, p.table, from, to); err != nil {
			failed = err
		}
	}
	return failed
}

// union is all tags of two tables of them.
func union(a, b map[string][]string) map[string][]string {
	out := map[string][]string{}
	for _, m := range []map[string][]string{a, b} {
		for column, tags := range m {
			for _, t := range tags {
				if !slices.Contains(out[column], t) {
					out[column] = append(out[column], t)
				}
			}
		}
	}
	return out
}

func equalTags(a, b map[string][]string) bool {
	return maps.EqualFunc(a, b, func(x, y []string) bool {
		return len(x) == len(y) && !slices.ContainsFunc(x, func(s string) bool { return !slices.Contains(y, s) })
	})
}

// reprojectTags is CALL system.reproject_column_tags: it writes the tags of tables
// to the policy servers again.
func (st *statement) reprojectTags(ctx context.Context, x *parse.ReprojectTags) (*Result, error) {
	if err := st.mayTag(); err != nil {
		return nil, err
	}
	projectors := st.engine.projectors()
	if len(projectors) == 0 {
		return nil, fault.New(fault.Unsupported, "no policy source of this server takes tags; set project-tags for one that can")
	}
	names, err := st.reprojected(ctx, x)
	if err != nil {
		return nil, err
	}
	out := typedTable(plan.Column{Name: "table_identifier"}, plan.Column{Name: "status"}, plan.Column{Name: "columns_projected", Type: arrow.PrimitiveTypes.Int64}, plan.Column{Name: "message"})
	for _, n := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		give, err := st.engine.projecting.Take(ctx, n)
		if err != nil {
			return nil, err
		}
		status, columns, message := st.reproject(ctx, n, projectors)
		give()
		out.row(n.String(), status, int64(columns), message)
	}
	return out.result(), nil
}

func (st *statement) reproject(ctx context.Context, n plan.TableName, to []policy.Administrator) (status string, columns int, message string) {
	t, err := st.engine.definedTable(ctx, n)
	if err != nil {
		return "error", 0, faultText(err)
	}
	set, err := catalog.ReadTags(t)
	if err != nil {
		return "error", 0, faultText(err)
	}
	tags := set.ByColumn()
	p := &projection{by: st.author(), table: t, to: to}
	if err := p.move(ctx, nil, tags); err != nil {
		return "error", 0, faultText(err)
	}
	if len(tags) == 0 {
		return "skipped", 0, "no column has a tag"
	}
	delete(tags, "")
	return "projected", len(tags), ""
}

// reprojected lists the tables of the statement.
func (st *statement) reprojected(ctx context.Context, x *parse.ReprojectTags) ([]plan.TableName, error) {
	if x.Table != nil {
		n, err := st.tableName(*x.Table)
		if err != nil {
			return nil, err
		}
		_, err = st.engine.definedTable(ctx, n)
		if fault.Is(err, fault.NotFound) {
			return nil, err
		}
		return []plan.TableName{n}, nil
	}
	var cat catalog.Catalog
	var namespaces [][]string
	if x.Namespace != "" {
		full, c, err := st.engine.catalogs.Resolve(x.Namespace, "x")
		if err != nil {
			return nil, err
		}
		cat, namespaces = c, [][]string{full.Namespace}
	} else {
		c, ok := st.engine.catalogs.Get(x.Catalog)
		if !ok {
			return nil, fault.New(fault.NotFound, "there is no catalog '%s'", x.Catalog)
		}
		all, err := c.Namespaces(ctx)
		if err != nil {
			return nil, err
		}
		cat, namespaces = c, all
	}
	var out []plan.TableName
	for _, ns := range namespaces {
		tables, err := cat.Tables(ctx, ns)
		if err != nil {
			return nil, err
		}
		for _, t := range tables {
			out = append(out, plan.TableName{Catalog: cat.Name(), Namespace: ns, Name: t})
		}
	}
	return out, nil
}
