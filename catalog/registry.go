package catalog

import (
	"errors"

	"sqe/fault"
	"sqe/plan"
)

// Registry holds the configured catalogs. The first one is the default: its
// namespaces are plain databases ("ns1.ns2"), those of the others carry the name
// of their catalog in front ("cat.ns1.ns2").
//
// Where the two readings of a name collide, the catalog wins: if "x" is a catalog
// and the default catalog also has a namespace x with a child y, then "x.y" is
// namespace y of catalog x, and the child is "default.x.y", with the name of the
// default catalog in front. A database of one part is always a namespace of the
// default catalog. A Registry is immutable and safe for concurrent use.
type Registry struct {
	order  []Catalog
	byName map[string]Catalog
}

// NewRegistry makes a registry; the first catalog is the default. Without a
// catalog, with an empty name or with a name twice it fails with fault.Config.
func NewRegistry(catalogs ...Catalog) (*Registry, error) {
	if len(catalogs) == 0 {
		return nil, fault.New(fault.Config, "no catalog is configured; name at least one")
	}
	r := &Registry{order: catalogs, byName: map[string]Catalog{}}
	for _, c := range catalogs {
		switch {
		case c.Name() == "":
			return nil, fault.New(fault.Config, "a catalog has no name; give each a name of its own")
		case r.byName[c.Name()] != nil:
			return nil, fault.New(fault.Config, "two catalogs are named '%s'; give each a name of its own", c.Name())
		}
		r.byName[c.Name()] = c
	}
	return r, nil
}

// Default is the catalog whose namespaces are plain databases.
func (r *Registry) Default() Catalog { return r.order[0] }

// All lists the catalogs in the order of the configuration.
func (r *Registry) All() []Catalog { return append([]Catalog(nil), r.order...) }

// Get finds a catalog by name.
func (r *Registry) Get(name string) (Catalog, bool) {
	c, ok := r.byName[name]
	return c, ok
}

// Resolve finds the catalog of a database and the full name of a table or view in
// it. It asks no catalog whether they exist. A database that cannot be split
// (SplitDatabase) is fault.NoDatabase, an empty name fault.NotFound.
func (r *Registry) Resolve(database, name string) (plan.TableName, Catalog, error) {
	parts, err := SplitDatabase(database)
	if err != nil {
		return plan.TableName{}, nil, err
	}
	if name == "" {
		return plan.TableName{}, nil, fault.New(fault.NotFound, "A table name is empty")
	}
	cat := r.order[0]
	if len(parts) > 1 {
		if c, ok := r.byName[parts[0]]; ok {
			cat, parts = c, parts[1:]
		}
	}
	return plan.TableName{Catalog: cat.Name(), Namespace: parts, Name: name}, cat, nil
}

// Database is the database name of a namespace: the shortest text that Resolve
// takes for it.
func (r *Registry) Database(catalog string, namespace []string) string {
	plain := catalog == r.order[0].Name()
	if plain && len(namespace) > 1 {
		_, plain = r.byName[namespace[0]]
		plain = !plain
	}
	if plain {
		return JoinDatabase(namespace...)
	}
	return JoinDatabase(append([]string{catalog}, namespace...)...)
}

// Close closes every catalog.
func (r *Registry) Close() error {
	var all []error
	for _, c := range r.order {
		all = append(all, c.Close())
	}
	return errors.Join(all...)
}
