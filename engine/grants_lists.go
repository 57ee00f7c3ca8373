package engine

import (
	"context"

	"sqe/catalog"
)

// namespacesIn, tablesIn and viewsIn ask a catalog for what is in a namespace, once for
// all objects of a statement, whether the catalog keeps its answers or not.
func (r *grantResolver) namespacesIn(ctx context.Context, cat catalog.Catalog, parent []string) ([][]string, error) {
	return r.list("namespaces", cat, parent, func() ([][]string, error) { return cat.NamespacesIn(ctx, parent) })
}

func (r *grantResolver) tablesIn(ctx context.Context, cat catalog.Catalog, namespace []string) ([]string, error) {
	return r.names("tables", cat, namespace, func() ([]string, error) { return cat.Tables(ctx, namespace) })
}

func (r *grantResolver) viewsIn(ctx context.Context, cat catalog.Catalog, namespace []string) ([]string, error) {
	return r.names("views", cat, namespace, func() ([]string, error) { return cat.Views(ctx, namespace) })
}

func (r *grantResolver) names(what string, cat catalog.Catalog, namespace []string, ask func() ([]string, error)) ([]string, error) {
	all, err := r.list(what, cat, namespace, func() ([][]string, error) {
		names, err := ask()
		return [][]string{names}, err
	})
	return all[0], err
}

func (r *grantResolver) list(what string, cat catalog.Catalog, namespace []string, ask func() ([][]string, error)) ([][]string, error) {
	key := catalog.JoinDatabase(append([]string{what, cat.Name()}, namespace...)...)
	if a, ok := r.lists[key]; ok {
		return a.names, a.err
	}
	var a listAnswer
	a.names, a.err = ask()
	if r.lists == nil {
		r.lists = map[string]listAnswer{}
	}
	r.lists[key] = a
	return a.names, a.err
}
