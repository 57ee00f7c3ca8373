package catalog

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	icebergcatalog "github.com/apache/iceberg-go/catalog"

	"sqe/fault"
	"sqe/plan"
)

func noNamespace(namespace []string) error {
	return fault.New(fault.NoDatabase, "Unknown database '%s'", JoinDatabase(namespace...))
}

// checkName refuses names that no other engine can say.
func checkName(parts ...string) error {
	for _, p := range parts {
		switch {
		case p == "":
			return fault.New(fault.BadStatement, "A name is empty")
		case len(p) > 255:
			return fault.New(fault.BadStatement, "A name is longer than 255 bytes")
		case strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }):
			return fault.New(fault.BadStatement, "A name holds a control character or is no valid UTF-8")
		}
	}
	return nil
}

// CreateNamespace implements Changer. The parents of a namespace need not exist.
func (c *SQL) CreateNamespace(ctx context.Context, namespace []string, props map[string]string, ifNotExists bool) error {
	if len(namespace) == 0 {
		return fault.New(fault.NoDatabase, "No database selected")
	}
	if err := checkName(namespace...); err != nil {
		return err
	}
	if err := c.checkNamespaceProperties(props, nil); err != nil {
		return err
	}
	return c.inTransaction(ctx, func(tx *transaction) error {
		switch is, err := c.namespaceIn(ctx, tx, namespace); {
		case err != nil:
			return err
		case is && ifNotExists:
			return nil
		case is:
			return fault.New(fault.Exists, "Database '%s' exists", JoinDatabase(namespace...))
		}
		// A namespace without a property would not be there.
		all := map[string]string{namespaceMark: "true"}
		for k, v := range props {
			all[k] = v
		}
		for k, v := range all {
			if _, err := tx.ExecContext(ctx, `INSERT INTO iceberg_namespace_properties
				(catalog_name, namespace, property_key, property_value) VALUES (?, ?, ?, ?)`, c.stored, namespaceKey(namespace), k, v); err != nil {
				return c.failed(ctx, err)
			}
		}
		return nil
	})
}

// namespaceMark is a property that every namespace has, so that it is there without
// another one. Source: the SQL catalog of iceberg-go and PyIceberg.
const namespaceMark = "exists"

func (c *common) checkNamespaceProperties(set map[string]string, remove []string) error {
	if err := c.checkProperties(set); err != nil {
		return err
	}
	for _, k := range remove {
		if err := c.checkProperty(k); err != nil {
			return err
		}
		if _, ok := set[k]; ok {
			return fault.New(fault.BadStatement, "The property '%s' is both set and removed", k)
		}
	}
	if _, ok := set[namespaceMark]; ok || slices.Contains(remove, namespaceMark) {
		return fault.New(fault.BadStatement, "The property '%s' belongs to the catalog", namespaceMark)
	}
	return nil
}

// DropNamespace implements Changer.
func (c *SQL) DropNamespace(ctx context.Context, namespace []string, ifExists bool) error {
	if len(namespace) == 0 {
		return fault.New(fault.NoDatabase, "No database selected")
	}
	return c.inTransaction(ctx, func(tx *transaction) error {
		all, err := c.namespacesIn(ctx, tx)
		if err != nil {
			return err
		}
		is := false
		for _, ns := range all {
			if len(ns) > len(namespace) && slices.Equal(ns[:len(namespace)], namespace) {
				return fault.New(fault.BadStatement, "Database '%s' is not empty: it holds database '%s'; drop that first", JoinDatabase(namespace...), JoinDatabase(ns...))
			}
			is = is || slices.Equal(ns, namespace)
		}
		if !is {
			if ifExists {
				return nil
			}
			return noNamespace(namespace)
		}
		var held string
		err = tx.QueryRowContext(ctx, `SELECT table_name FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ? ORDER BY table_name LIMIT 1`,
			c.stored, namespaceKey(namespace)).Scan(&held)
		switch {
		case err == nil:
			return fault.New(fault.BadStatement, "Database '%s' is not empty; drop its tables and views first", JoinDatabase(namespace...))
		case !errors.Is(err, sql.ErrNoRows):
			return c.failed(ctx, err)
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM iceberg_namespace_properties WHERE catalog_name = ? AND namespace = ?`,
			c.stored, namespaceKey(namespace)); err != nil {
			return c.failed(ctx, err)
		}
		return nil
	})
}

// NamespaceProperties implements Changer.
func (c *SQL) NamespaceProperties(ctx context.Context, namespace []string) (map[string]string, error) {
	if len(namespace) == 0 {
		return nil, fault.New(fault.NoDatabase, "No database selected")
	}
	props, err := c.iceberg.LoadNamespaceProperties(ctx, namespace)
	switch {
	case errors.Is(err, icebergcatalog.ErrNoSuchNamespace):
		return nil, noNamespace(namespace)
	case err != nil:
		return nil, c.failed(ctx, err)
	}
	return props, nil
}

// UpdateNamespace implements Changer.
func (c *SQL) UpdateNamespace(ctx context.Context, namespace []string, set map[string]string, remove []string) error {
	if err := c.checkNamespaceProperties(set, remove); err != nil {
		return err
	}
	return c.inTransaction(ctx, func(tx *transaction) error {
		if is, err := c.namespaceIn(ctx, tx, namespace); err != nil {
			return err
		} else if !is {
			return noNamespace(namespace)
		}
		key := namespaceKey(namespace)
		for _, k := range append(slices.Collect(keysOf(set)), remove...) {
			if _, err := tx.ExecContext(ctx, `DELETE FROM iceberg_namespace_properties WHERE catalog_name = ? AND namespace = ? AND property_key = ?`,
				c.stored, key, k); err != nil {
				return c.failed(ctx, err)
			}
		}
		all := map[string]string{}
		var held int
		if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM iceberg_namespace_properties WHERE catalog_name = ? AND namespace = ?`,
			c.stored, key).Scan(&held); err != nil {
			return c.failed(ctx, err)
		}
		if held == 0 {
			all[namespaceMark] = "true"
		}
		for k, v := range set {
			all[k] = v
		}
		for k, v := range all {
			if _, err := tx.ExecContext(ctx, `INSERT INTO iceberg_namespace_properties
				(catalog_name, namespace, property_key, property_value) VALUES (?, ?, ?, ?)`, c.stored, key, k, v); err != nil {
				return c.failed(ctx, err)
			}
		}
		return nil
	})
}

func keysOf(m map[string]string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// inTransaction runs f in a transaction of the catalog's database, in which it
// reads and writes without others between.
func (c *SQL) inTransaction(ctx context.Context, f func(*transaction) error) error {
	tx, err := c.db.begin(ctx, c.stored)
	if err != nil {
		return c.failed(ctx, err)
	}
	defer func() { _ = tx.Rollback() }()
	if err := f(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return c.failed(ctx, err)
	}
	return nil
}

func (c *SQL) namespacesIn(ctx context.Context, tx *transaction) ([][]string, error) {
	rows, err := tx.QueryContext(ctx, allNamespaces, c.stored, c.stored)
	if err != nil {
		return nil, c.failed(ctx, err)
	}
	keys, err := c.scanned(ctx, rows)
	return withParents(keys), err
}

func (c *SQL) namespaceIn(ctx context.Context, tx *transaction, namespace []string) (bool, error) {
	var n int
	if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM iceberg_namespace_properties WHERE catalog_name = ? AND namespace = ?`,
		c.stored, namespaceKey(namespace)).Scan(&n); err != nil {
		return false, c.failed(ctx, err)
	}
	if n > 0 {
		return true, nil
	}
	// One that is there for what it holds alone.
	all, err := c.namespacesIn(ctx, tx)
	return slices.ContainsFunc(all, func(ns []string) bool { return slices.Equal(ns, namespace) }), err
}

// taken reports whether the name of a new table or view is free: fault.Exists when
// it is not, fault.NoDatabase when there is no such namespace.
func (c *SQL) taken(ctx context.Context, tx *transaction, name plan.TableName) error {
	if is, err := c.namespaceIn(ctx, tx, name.Namespace); err != nil {
		return err
	} else if !is {
		return noNamespace(name.Namespace)
	}
	var n int
	if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?`,
		c.stored, namespaceKey(name.Namespace), name.Name).Scan(&n); err != nil {
		return c.failed(ctx, err)
	}
	if n > 0 {
		return exists(name)
	}
	return nil
}

func exists(name plan.TableName) error {
	return fault.New(fault.Exists, "Table or view '%s' already exists", name)
}

// insert enters a new table or view, whose metadata is written, into the catalog.
// When it cannot, the metadata file is deleted.
func (c *SQL) insert(ctx context.Context, name plan.TableName, location, kind string) error {
	err := c.inTransaction(ctx, func(tx *transaction) error {
		if err := c.taken(ctx, tx, name); err != nil {
			return err
		}
		query, args := `INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location) VALUES (?, ?, ?, ?)`,
			[]any{c.stored, namespaceKey(name.Namespace), name.Name, location}
		if c.hasViews {
			query = `INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, iceberg_type) VALUES (?, ?, ?, ?, ?)`
			args = append(args, kind)
		}
		if _, err := tx.ExecContext(ctx, query, args...); err != nil {
			return c.failed(ctx, err)
		}
		return nil
	})
	if err == nil {
		return nil
	}
	find := c.locate
	if kind == "VIEW" {
		find = c.locateView
	}
	now, lost := c.location(context.WithoutCancel(ctx), find, name)
	switch {
	case lost == nil && now == location:
		return nil
	case lost != nil && !fault.Is(lost, fault.NotFound):
		return fault.Wrap(fault.Unavailable, errors.Join(ErrUnknown, err, lost), "Catalog '%s' did not answer: it is not known whether '%s' was created; look before you repeat the statement", c.name, name)
	}
	c.remove(ctx, location)
	return err
}

// rename gives a table or view another name.
func (c *SQL) rename(ctx context.Context, from, to plan.TableName, which string) error {
	if from.Catalog != to.Catalog {
		return fault.New(fault.Unsupported, "A table or view cannot be moved to another catalog; create it there and copy the rows")
	}
	if err := checkName(to.Name); err != nil {
		return err
	}
	return c.inTransaction(ctx, func(tx *transaction) error {
		var n int
		if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?`+which,
			c.stored, namespaceKey(from.Namespace), from.Name).Scan(&n); err != nil {
			return c.failed(ctx, err)
		}
		if n == 0 {
			return missing(from)
		}
		if err := c.taken(ctx, tx, to); err != nil {
			return err
		}
		// The old namespace stays when this was the last that it held.
		if err := c.keepNamespace(ctx, tx, from.Namespace); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE iceberg_tables SET table_namespace = ?, table_name = ?
			WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?`,
			namespaceKey(to.Namespace), to.Name, c.stored, namespaceKey(from.Namespace), from.Name); err != nil {
			return c.failed(ctx, err)
		}
		return nil
	})
}

// keepNamespace makes a namespace that is there only because of what it holds one
// of its own.
func (c *SQL) keepNamespace(ctx context.Context, tx *transaction, namespace []string) error {
	key := namespaceKey(namespace)
	var n int
	if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM iceberg_namespace_properties WHERE catalog_name = ? AND namespace = ?`, c.stored, key).Scan(&n); err != nil {
		return c.failed(ctx, err)
	}
	if n > 0 {
		return nil
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO iceberg_namespace_properties
		(catalog_name, namespace, property_key, property_value) VALUES (?, ?, 'exists', 'true')`, c.stored, key); err != nil {
		return c.failed(ctx, err)
	}
	return nil
}

// onlyTables and onlyViews narrow a query of iceberg_tables.
func (c *SQL) onlyTables() string {
	if c.hasViews {
		return ` AND (iceberg_type = 'TABLE' OR iceberg_type IS NULL)`
	}
	return ""
}

func (c *SQL) onlyViews() string {
	if c.hasViews {
		return ` AND iceberg_type = 'VIEW'`
	}
	return ` AND 1 = 0`
}
