package engine

import (
	"context"
	"strings"

	"sqe/engine/parse"
	"sqe/policy"
)

// grants is SHOW GRANTS for oneself, in MySQL's form, which BI tools parse: what
// the object gate lets the principal read, table by table.
func (st *statement) grants(ctx context.Context, x *parse.ShowGrants) (*Result, error) {
	if x.User != "" && x.User != st.principal.Name {
		return nil, unsupported("SHOW GRANTS for another user")
	}
	user := "'" + strings.ReplaceAll(st.principal.Name, "'", "''") + "'@'%'"
	out := table("Grants for " + st.principal.Name + "@%")
	out.row("GRANT USAGE ON *.* TO " + user)
	for _, cat := range st.engine.catalogs.All() {
		namespaces, err := cat.Namespaces(ctx)
		if err != nil {
			return nil, err
		}
		for _, ns := range namespaces {
			tables, views, err := relations{st}.names(ctx, cat, ns)
			if err != nil {
				return nil, err
			}
			database := backquoted(st.engine.catalogs.Database(cat.Name(), ns))
			for i, name := range append(tables[:len(tables):len(tables)], views...) {
				o := policy.Object{Catalog: cat.Name(), Namespace: ns, Name: name, View: i >= len(tables)}
				needed := policy.TableDataRead
				if o.View {
					needed = policy.ViewProps
				}
				d, err := st.authorize(o, needed)
				if err != nil {
					return nil, err
				}
				if d.Allow {
					out.row("GRANT SELECT ON " + database + "." + backquoted(name) + " TO " + user)
				}
			}
		}
	}
	return out.result(), nil
}

func backquoted(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
