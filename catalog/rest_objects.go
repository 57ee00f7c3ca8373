package catalog

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/apache/iceberg-go/view"

	"sqe/catalog/rest"
	"sqe/fault"
	"sqe/plan"
)

// CreateNamespace implements Changer. Whether its parents must exist is for the
// catalog to say.
func (c *REST) CreateNamespace(ctx context.Context, namespace []string, props map[string]string, ifNotExists bool) error {
	if len(namespace) == 0 {
		return fault.New(fault.NoDatabase, "No database selected")
	}
	if err := checkName(namespace...); err != nil {
		return err
	}
	if err := c.checkNamespaceProperties(props, nil); err != nil {
		return err
	}
	err := c.client.CreateNamespace(ctx, namespace, props)
	c.changed()
	switch {
	case err == nil, ifNotExists && statusOf(err) == http.StatusConflict:
		return nil
	case statusOf(err) == http.StatusConflict:
		return fault.New(fault.Exists, "Database '%s' exists", JoinDatabase(namespace...))
	case rest.Is(err, http.StatusNotFound) && len(namespace) > 1:
		return noNamespace(namespace[:len(namespace)-1])
	}
	return c.failed(ctx, err)
}

// DropNamespace implements Changer.
func (c *REST) DropNamespace(ctx context.Context, namespace []string, ifExists bool) error {
	if len(namespace) == 0 {
		return fault.New(fault.NoDatabase, "No database selected")
	}
	// Some catalogs drop a namespace above others.
	if below, err := c.client.Namespaces(ctx, namespace); err == nil && len(below) > 0 {
		return fault.New(fault.BadStatement, "Database '%s' is not empty: it holds database '%s'; drop that first", JoinDatabase(namespace...), JoinDatabase(below[0]...))
	}
	err := c.client.DropNamespace(ctx, namespace)
	c.changed()
	switch {
	case err == nil, ifExists && rest.Is(err, http.StatusNotFound):
		return nil
	case statusOf(err) == http.StatusConflict, rest.IsType(err, "NamespaceNotEmptyException"):
		return fault.New(fault.BadStatement, "Database '%s' is not empty; drop its tables and views first", JoinDatabase(namespace...))
	}
	return c.changeFault(ctx, err, namespace)
}

// changeFault is the fault of a change of a namespace. One that is missing is looked at
// too, so that it takes as long as one that is hidden.
func (c *REST) changeFault(ctx context.Context, err error, namespace []string) error {
	switch {
	case errors.Is(err, rest.ErrName):
		return noNamespace(namespace)
	case rest.Is(err, http.StatusNotFound):
		_, _ = c.client.Namespace(ctx, namespace)
		return noNamespace(namespace)
	case statusOf(err) == http.StatusForbidden:
		if _, seen := c.client.Namespace(ctx, namespace); statusOf(seen) == http.StatusForbidden {
			c.hides(ctx, err, plan.TableName{Namespace: namespace})
			return noNamespace(namespace)
		}
	}
	return c.failed(ctx, err)
}

// NamespaceProperties implements Changer.
func (c *REST) NamespaceProperties(ctx context.Context, namespace []string) (map[string]string, error) {
	if len(namespace) == 0 {
		return nil, fault.New(fault.NoDatabase, "No database selected")
	}
	props, err := c.client.Namespace(ctx, namespace)
	if err != nil {
		return nil, c.namespaceFault(ctx, err, namespace)
	}
	return props, nil
}

// hasNamespace refuses a namespace that is missing: some catalogs would make it. One
// that may not be looked at is for the catalog to refuse; it is not seen then. Something
// may be made in it all the same, so a missing one is asked for once more: it takes as
// long.
func (c *REST) hasNamespace(ctx context.Context, namespace []string) (seen bool, err error) {
	_, err = c.client.Namespace(ctx, namespace)
	switch {
	case err == nil:
		return true, nil
	case statusOf(err) == http.StatusForbidden:
		return false, nil
	case rest.Is(err, http.StatusNotFound):
		_, _ = c.client.Namespace(ctx, namespace)
	}
	return false, c.namespaceFault(ctx, err, namespace)
}

// UpdateNamespace implements Changer.
func (c *REST) UpdateNamespace(ctx context.Context, namespace []string, set map[string]string, remove []string) error {
	if err := c.checkNamespaceProperties(set, remove); err != nil {
		return err
	}
	if err := c.client.UpdateNamespace(ctx, namespace, set, remove); err != nil {
		return c.changeFault(ctx, err, namespace)
	}
	return nil
}

func (c *REST) viewsPossible(ctx context.Context) error {
	has, err := c.client.HasViews(ctx)
	if err != nil {
		return c.failed(ctx, err)
	}
	if !has {
		return fault.New(fault.Unsupported, "Catalog '%s' has no views", c.name)
	}
	return nil
}

func (c *REST) hasView(ctx context.Context, name plan.TableName) error {
	_, err := c.loadView(ctx, name)
	return err
}

func (c *REST) loadView(ctx context.Context, name plan.TableName) (*view.View, error) {
	v, _, err := c.askView(ctx, name)
	return v, err
}

// askView is loadView with what the catalog answered instead.
func (c *REST) askView(ctx context.Context, name plan.TableName) (_ *view.View, cause, err error) {
	if has, err := c.client.HasViews(ctx); err != nil || !has {
		if err != nil {
			return nil, err, c.failed(ctx, err)
		}
		return nil, nil, missing(name)
	}
	answer, err := c.client.LoadView(ctx, name.Namespace, name.Name)
	if err != nil {
		return nil, err, c.tableFault(ctx, err, name, true)
	}
	return view.New(append(slices.Clone(name.Namespace), name.Name), answer.Metadata, answer.Location), nil, nil
}

// View implements Catalog.
func (c *REST) View(ctx context.Context, name plan.TableName) (*View, error) {
	scope, err := c.client.Scope(ctx)
	if err != nil {
		return nil, c.failed(ctx, err)
	}
	key, asked := scoped{scope, viewKind + name.Key()}, c.now()
	if k, ok := recall[kept[*View]](ctx, c.cache.retained, key); ok && asked.Before(k.until) {
		return k.is, nil
	}
	if ok, err := c.absence(ctx, key, asked); ok {
		return nil, err
	}
	before := c.cache.now()
	loaded, cause, err := c.askView(ctx, name)
	if err != nil {
		c.cache.forget(key)
		return nil, c.missed(ctx, key, asked, before, err, cause, name)
	}
	v, err := planView(loaded, name, c.storedName())
	if err != nil {
		return nil, err
	}
	c.cache.add(before, func() {
		c.cache.remember(ctx, key, kept[*View]{v, asked.Add(c.bound)}, entrySize+sizeOfView(v), sharing{})
	})
	return v, nil
}

// createView implements backend.
func (c *REST) createView(ctx context.Context, name plan.TableName, v newView) error {
	// Some catalogs create a view over a table.
	if _, err := c.client.LoadTable(ctx, name.Namespace, name.Name, ""); err == nil {
		return exists(name)
	}
	seen, err := c.hasNamespace(ctx, name.Namespace)
	if err != nil {
		return err
	}
	err = c.client.CreateView(ctx, name.Namespace, rest.NewView{Name: name.Name, Schema: v.schema, Version: v.version, Properties: v.props})
	return c.stored(ctx, err, name, "created", seen)
}

// stored is the fault of storing a view; seen: its namespace may be looked at.
func (c *REST) stored(ctx context.Context, err error, name plan.TableName, done string, seen bool) error {
	c.changed(name)
	switch {
	case err == nil:
		return nil
	case statusOf(err) == http.StatusConflict:
		return exists(name)
	case unknown(err):
		return fault.Wrap(fault.Unavailable, errors.Join(ErrUnknown, err), "Catalog '%s' did not answer: it is not known whether view '%s' was %s; look before you repeat the statement", c.name, name, done)
	}
	return c.createFault(ctx, err, name, seen)
}

// replaceView implements backend.
func (c *REST) replaceView(ctx context.Context, name plan.TableName, v newView) (bool, error) {
	old, err := c.loadView(ctx, name)
	if fault.Is(err, fault.NotFound) {
		return false, nil // it was dropped meanwhile
	} else if err != nil {
		return false, err
	}
	meta, err := newVersion(name, old, v)
	if err != nil {
		return false, err
	}
	if len(meta.Changes) == 0 {
		return true, nil
	}
	err = c.client.CommitView(ctx, name.Namespace, name.Name, []view.Requirement{view.AssertViewUUID(old.Metadata().ViewUUID())}, meta.Changes)
	if statusOf(err) == http.StatusConflict || rest.Is(err, http.StatusNotFound) {
		c.changed(name)
		return false, nil
	}
	err = c.stored(ctx, err, name, "replaced", true)
	return err == nil, err
}

// DropView implements Changer.
func (c *REST) DropView(ctx context.Context, name plan.TableName, ifExists bool) error {
	if has, err := c.client.HasViews(ctx); err == nil && !has {
		if ifExists {
			return nil
		}
		return missing(name)
	}
	err := c.client.DropView(ctx, name.Namespace, name.Name)
	c.changed(name)
	err = c.dropped(ctx, err, name)
	if ifExists && fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// RenameView implements Changer.
func (c *REST) RenameView(ctx context.Context, from, to plan.TableName) error {
	return c.rename(ctx, from, to, true)
}

var (
	_ Changer   = (*REST)(nil)
	_ Preloader = (*REST)(nil)
)
