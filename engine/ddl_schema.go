package engine

import (
	"context"
	"strings"

	"sqe/catalog"
	"sqe/engine/parse"
	"sqe/fault"
	"sqe/policy"
)

// schema is a namespace that a statement names.
type schema struct {
	name      string // as the statement has it
	namespace []string
	catalog   catalog.Catalog
	changer   catalog.Changer
}

// systemDatabases are answered by the server itself or mean something to clients.
var systemDatabases = []string{"information_schema", "mysql", "performance_schema", "sys"}

func (st *statement) schema(name string) (*schema, error) {
	full, cat, err := st.engine.catalogs.Resolve(name, "x")
	if err != nil {
		return nil, unknownDatabase(name)
	}
	s := &schema{name: name, namespace: full.Namespace, catalog: cat}
	s.changer, err = catalog.Changing(cat)
	return s, err
}

func (s *schema) object() policy.Object {
	return policy.Object{Catalog: s.catalog.Name(), Namespace: s.namespace}
}

// maySchema asks for a right on a namespace that is there.
func (st *statement) maySchema(ctx context.Context, command string, s *schema, right policy.Privilege) error {
	lacking, _, err := st.may(s.object(), right)
	if err != nil || lacking == "" {
		return err
	}
	if ok, err := (relations{st}).HasDatabase(ctx, s.name); err != nil || ok {
		if err != nil {
			return err
		}
		return st.deniedRight(command, "database", s.name, right)
	}
	return unknownDatabase(s.name)
}

// createSchema is CREATE SCHEMA. The right is asked on what is to hold it, before
// anybody looks whether there is one of the name.
func (st *statement) createSchema(ctx context.Context, x *parse.CreateSchema) (*Result, error) {
	s, err := st.schema(x.Name)
	if err != nil {
		return nil, err
	}
	for _, name := range systemDatabases {
		if len(s.namespace) == 1 && strings.EqualFold(s.namespace[0], name) {
			return nil, fault.New(fault.BadStatement, "the name '%s' belongs to the server; choose another one", x.Name)
		}
	}
	parent := s.object()
	parent.Namespace = parent.Namespace[:len(parent.Namespace)-1]
	lacking, _, err := st.may(parent, namespaceCreate)
	if err != nil {
		return nil, err
	}
	if lacking != "" {
		return nil, st.deniedRight("CREATE", "database", x.Name, lacking)
	}
	props, err := properties(x.Properties)
	if err != nil {
		return nil, err
	}
	if x.Comment != "" {
		props["comment"] = x.Comment
	}
	err = s.changer.CreateNamespace(ctx, s.namespace, props, false)
	if fault.Is(err, fault.Exists) {
		if x.IfNotExists {
			return st.warned(append(x.Warnings, "database '"+x.Name+"' exists")), nil
		}
		return nil, fault.New(fault.Exists, "Can't create database '%s'; database exists", x.Name)
	}
	if err != nil {
		return nil, err
	}
	return st.warned(x.Warnings), nil
}

// dropSchema is DROP SCHEMA.
func (st *statement) dropSchema(ctx context.Context, x *parse.DropSchema) (*Result, error) {
	s, err := st.schema(x.Name)
	if err == nil {
		err = st.maySchema(ctx, "DROP", s, namespaceDrop)
	}
	if err == nil {
		err = s.changer.DropNamespace(ctx, s.namespace, false)
	}
	switch {
	case fault.Is(err, fault.NoDatabase):
		if x.IfExists {
			return st.warned([]string{"Unknown database '" + x.Name + "'"}), nil
		}
		return nil, unknownDatabase(x.Name)
	case fault.Is(err, fault.BadStatement):
		// What is in it may not be for everybody to know.
		return nil, fault.Wrap(fault.BadStatement, err, "Database '%s' is not empty; drop what it holds first", x.Name)
	case err != nil:
		return nil, err
	}
	res := st.warned(nil)
	if now, _, err := st.engine.catalogs.Resolve(st.session.Database(), "x"); err == nil {
		if dropped, _, err := st.engine.catalogs.Resolve(x.Name, "x"); err == nil && now.Key() == dropped.Key() {
			none := ""
			st.session.setDatabase(none)
			res.Database = &none
		}
	}
	return res, nil
}

// alterSchema is ALTER SCHEMA.
func (st *statement) alterSchema(ctx context.Context, x *parse.AlterSchema) (*Result, error) {
	s, err := st.schema(x.Name)
	if err != nil {
		return nil, err
	}
	if err := st.maySchema(ctx, "ALTER", s, namespaceWrite); err != nil {
		return nil, err
	}
	set, err := properties(x.Set)
	if err != nil {
		return nil, err
	}
	now, err := s.changer.NamespaceProperties(ctx, s.namespace)
	if err != nil {
		if fault.Is(err, fault.NoDatabase) {
			err = unknownDatabase(x.Name)
		}
		return nil, err
	}
	if err := has(now, x.Unset, x.UnsetIfExists); err != nil {
		return nil, err
	}
	if err := s.changer.UpdateNamespace(ctx, s.namespace, set, x.Unset); err != nil {
		return nil, err
	}
	return st.warned(x.Warnings), nil
}
