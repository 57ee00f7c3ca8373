package catalog

import (
	"context"
	"errors"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"sqe/fault"
	"sqe/plan"
)

// CreateTable implements Changer.
func (c *common) CreateTable(ctx context.Context, name plan.TableName, d TableDefinition, o CreateOptions) (*plan.Table, bool, error) {
	if err := checkName(append([]string{name.Name}, name.Namespace...)...); err != nil {
		return nil, false, err
	}
	for range maxAttempts {
		err := c.backend.hasTable(ctx, name)
		switch {
		case err == nil && o.IfTaken == Replace:
			t, err := c.replaceTable(ctx, name, d, o)
			if fault.Is(err, fault.NotFound) {
				continue // it was dropped meanwhile
			}
			return t, err == nil, err
		case err == nil && o.IfTaken == Keep:
			t, err := c.backend.fresh(ctx, name)
			return t, false, err
		case err == nil:
			return nil, false, exists(name)
		case !fault.Is(err, fault.NotFound):
			return nil, false, err
		}
		t, err := c.backend.createTable(ctx, name, d, o.Fill)
		if fault.Is(err, fault.Exists) && o.IfTaken != Refuse {
			if fault.Is(c.backend.hasView(ctx, name), fault.NotFound) {
				continue // another one was faster
			}
		}
		return t, err == nil, err
	}
	return nil, false, fault.New(fault.Conflict, "Table %s is being created and dropped by others all the time; nothing was changed, try again", name)
}

// createTable implements backend.
func (c *SQL) createTable(ctx context.Context, name plan.TableName, d TableDefinition, fill TableChange) (_ *plan.Table, err error) {
	if err := c.inTransaction(ctx, func(tx *transaction) error { return c.taken(ctx, tx, name) }); err != nil {
		return nil, err
	}
	meta, err := c.newTable(ctx, name, d)
	if err != nil {
		return nil, err
	}
	if fill != nil {
		empty, planned := planTable(c.tableAt(name, meta, ""), name, plan.AsOf{}, "")
		if planned != nil {
			return nil, planned
		}
		var s staged
		defer func() {
			if err != nil && s.discard != nil && !errors.Is(err, ErrUnknown) {
				_ = guarded(func() error { s.discard(); return nil })
			}
		}()
		if err = guarded(func() (err error) {
			s, err = stage(ctx, empty, table.MainBranch, fill)
			return err
		}); err != nil {
			return nil, err
		}
		if meta, err = table.UpdateTableMetadata(meta, s.updates, ""); err != nil {
			return nil, refused(err, name)
		}
	}
	location, err := c.writeMetadata(ctx, meta, 0)
	if err != nil {
		return nil, c.unwritten(ctx, err, name)
	}
	if err = c.insert(ctx, name, location, "TABLE"); err != nil {
		return nil, err
	}
	t, err := planTable(c.tableAt(name, meta, location), name, plan.AsOf{}, "")
	if err != nil {
		return nil, fault.Wrap(fault.KindOf(err), errors.Join(ErrUnknown, err), "Table %s was created, and cannot be read now: %s", name, err)
	}
	return t, nil
}

// defined makes the parts of a new table.
func (c *common) defined(name plan.TableName, d TableDefinition) (n newTable, err error) {
	if n.version, err = d.version(); err != nil {
		return n, err
	}
	build := schemaBuilder{version: n.version}
	if n.columns, err = build.fields(d.Fields, 0); err != nil {
		return n, err
	}
	var partitions []iceberg.PartitionField
	if partitions, n.order, err = d.layout(n.columns); err != nil {
		return n, err
	}
	identifiers, err := identifiersOf(n.columns, d.Identifiers)
	if err != nil {
		return n, err
	}
	n.schema = iceberg.NewSchemaWithIdentifiers(0, identifiers, n.columns...)
	if _, err := iceberg.IndexByName(n.schema); err != nil {
		return n, fault.Wrap(fault.BadStatement, err, "Two columns of table %s have the same name: %s", name, err)
	}
	if n.spec, err = specOf(n.schema, partitions); err != nil {
		return n, err
	}
	n.props = d.properties()
	return n, c.checkProperties(n.props)
}

// newTable is the metadata of a new table. iceberg-go's own NewMetadata would look
// columns up by dotted names, and give other ids.
func (c *SQL) newTable(ctx context.Context, name plan.TableName, d TableDefinition) (table.Metadata, error) {
	n, err := c.defined(name, d)
	if err != nil {
		return nil, err
	}
	location, err := c.newLocation(ctx, name)
	if err != nil {
		return nil, err
	}
	b, err := table.NewMetadataBuilder(n.version)
	if err != nil {
		return nil, refused(err, name)
	}
	for _, step := range []func() error{
		func() error { return b.SetUUID(uuid.New()) },
		func() error { return b.SetLoc(location) },
		func() error { return b.AddSchema(n.schema) },
		func() error { return b.SetCurrentSchemaID(-1) },
		func() error { return b.AddPartitionSpec(&n.spec, true) },
		func() error { return b.SetDefaultSpecID(-1) },
		func() error { return b.AddSortOrder(&n.order) },
		func() error { return b.SetDefaultSortOrderID(-1) },
		func() error { return b.SetProperties(n.props) },
	} {
		if err := step(); err != nil {
			return nil, refused(err, name)
		}
	}
	meta, err := b.Build()
	if err != nil || len(d.Tags) == 0 {
		return meta, wrapBuild(err, name)
	}
	set, err := tagProperties(meta, n.columns, d.Tags)
	if err != nil {
		return nil, err
	}
	if err := b.SetProperties(set); err != nil {
		return nil, refused(err, name)
	}
	meta, err = b.Build()
	return meta, wrapBuild(err, name)
}

// tagProperties are the properties that put tags on the columns of a new table.
func tagProperties(meta table.Metadata, columns []iceberg.NestedField, paths []TaggedPath) (map[string]string, error) {
	tags, err := readTags(meta, nil)
	if err != nil {
		return nil, err
	}
	if err := tags.add(columns, paths); err != nil {
		return nil, err
	}
	set, _, err := tags.Properties()
	return set, err
}

func wrapBuild(err error, name plan.TableName) error {
	if err == nil {
		return nil
	}
	return refused(err, name)
}

// replaceTable gives a table that exists a new definition, and rows.
func (c *common) replaceTable(ctx context.Context, name plan.TableName, d TableDefinition, o CreateOptions) (*plan.Table, error) {
	return c.change(ctx, name, func(ctx context.Context, t *plan.Table) (staged, error) {
		base := t.Handle.(*Handle).Table
		a := c.alteration(name, base.Metadata())
		if err := a.replace(d); err != nil {
			return staged{}, err
		}
		updates, err := a.updates()
		if err != nil || o.Fill == nil {
			return staged{updates: updates}, err
		}
		meta, err := table.UpdateTableMetadata(base.Metadata(), updates, base.MetadataLocation())
		if err != nil {
			return staged{}, refused(err, name)
		}
		empty, err := planTable(c.backend.with(base, name, meta), name, plan.AsOf{}, "")
		if err != nil {
			return staged{}, err
		}
		s, err := stage(ctx, empty, table.MainBranch, o.Fill)
		// What it requires is said of the empty table.
		s.updates, s.required = append(updates, s.updates...), nil
		return s, err
	})
}

// RenameTable implements Changer.
func (c *SQL) RenameTable(ctx context.Context, from, to plan.TableName) error {
	leave, err := c.writers.enter(ctx, from)
	if err != nil {
		return err
	}
	defer leave()
	return c.rename(ctx, from, to, c.onlyTables())
}

// DropTable implements Changer.
func (c *SQL) DropTable(ctx context.Context, name plan.TableName, purge bool) (Purged, error) {
	leave, err := c.writers.enter(ctx, name)
	if err != nil {
		return Purged{}, err
	}
	defer leave()
	for n := range maxAttempts {
		if err := pause(ctx, n); err != nil {
			return Purged{}, err
		}
		location, err := c.location(ctx, c.locate, name)
		// A table whose metadata is lost can be dropped, but not purged.
		if err != nil && (purge || !fault.Is(err, fault.Corrupt)) {
			return Purged{}, err
		}
		var loaded *table.Table
		if purge {
			if loaded, err = c.load(ctx, name, tableKey{location, name.Key()}); err != nil {
				return Purged{}, fault.Wrap(fault.KindOf(err), err, "%s; or drop the table without PURGE, which leaves its files", err)
			}
		}
		dropped, err := c.delete(ctx, name, location, c.onlyTables())
		if err != nil {
			return Purged{}, err
		}
		if !dropped {
			continue // it was changed meanwhile
		}
		if !purge {
			return Purged{}, nil
		}
		return c.purge(context.WithoutCancel(ctx), loaded), nil
	}
	return Purged{}, fault.New(fault.Conflict, "Table %s is being changed by others all the time; it was not dropped, try again", name)
}

// delete takes a table or view out of the catalog if its metadata is where it was.
func (c *SQL) delete(ctx context.Context, name plan.TableName, location, which string) (done bool, err error) {
	err = c.inTransaction(ctx, func(tx *transaction) error {
		if err := c.keepNamespace(ctx, tx, name.Namespace); err != nil {
			return err
		}
		res, err := tx.ExecContext(ctx, `DELETE FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?
			AND COALESCE(metadata_location, '') = ?`+which, c.stored, namespaceKey(name.Namespace), name.Name, location)
		if err != nil {
			return c.failed(ctx, err)
		}
		n, err := res.RowsAffected()
		if err != nil {
			return c.failed(ctx, err)
		}
		done = n > 0
		return nil
	})
	return done, err
}
