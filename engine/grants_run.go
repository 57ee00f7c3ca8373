package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sqe/catalog"
	"sqe/engine/parse"
	"sqe/fault"
	"sqe/grants"
	"sqe/policy"
)

// keeper is what keeps the access policies. The first policy source that can be
// written and has an object gate is the one in which statements grant.
func (st *statement) keeper() (grants.Keeper, error) {
	for _, a := range st.engine.administrators {
		if p, ok := a.(grants.Provider); ok {
			if k := p.Grants(); k != nil {
				return k, nil
			}
		}
	}
	return nil, fault.New(fault.Unsupported, "access is not managed by this server: no policy source of it can be written and has a polaris-service; grant where the policies are kept, or configure one (docs/grants.md)")
}

// identities are the names by which policies know the principal.
func (st *statement) identities() []policy.Grantee {
	out := []policy.Grantee{{Kind: policy.UserGrantee, Name: st.principal.Name}, {Kind: policy.GroupGrantee, Name: policy.Public}}
	groups := slices.Clone(st.principal.Groups)
	if states, err := st.policies(); err == nil {
		for _, s := range states {
			if g, ok := s.(policy.Grouper); ok {
				groups = append(groups, g.Groups(st.principal)...)
			}
		}
	}
	for _, g := range groups {
		if x := (policy.Grantee{Kind: policy.GroupGrantee, Name: g}); !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	roles := st.principal.ActiveRoles
	if roles == nil {
		roles = st.heldRoles()
	}
	for _, r := range roles {
		out = append(out, policy.Grantee{Kind: policy.RoleGrantee, Name: r})
	}
	return out
}

// heldRoles are the roles that the principal has, by whatever way, sorted.
func (st *statement) heldRoles() []string {
	roles := slices.Clone(st.principal.Roles)
	if states, err := st.policies(); err == nil {
		for _, s := range states {
			roles = append(roles, s.Roles(st.principal)...)
		}
	}
	slices.Sort(roles)
	return slices.Compact(roles)
}

// grantRun is GRANT, REVOKE or DENY.
func (st *statement) grantRun(ctx context.Context, x *parse.Grant) (*Result, error) {
	st.grantees = granteeTexts(x.Grantees)
	k, s, notes, err := st.grantStatement(ctx, x)
	if err != nil {
		return nil, err
	}
	out, err := k.Apply(ctx, st.author(), s)
	if err != nil {
		return nil, err
	}
	for _, t := range s.Targets {
		st.changed = append(st.changed, permission{object: t.Object.Policy(), rights: []policy.Privilege{policy.Privilege(strings.ToLower(string(s.Verb)) + " " + t.Privilege)}})
	}
	notes = append(notes, out.Notices...)
	s.Grantees = out.Grantees
	return st.warned(append(notes, st.effects(s)...)), nil
}

func granteeTexts(list []parse.Grantee) []string {
	var out []string
	for _, g := range granteesOf(list) {
		out = append(out, granteeText(g))
	}
	return out
}

// explainGrant is EXPLAIN of a grant: the difference that it would make.
func (st *statement) explainGrant(ctx context.Context, x *parse.ExplainGrant) (*Result, error) {
	k, s, notes, err := st.grantStatement(ctx, x.Grant)
	if err != nil {
		return nil, err
	}
	o, err := k.Plan(ctx, s)
	if err != nil {
		return nil, err
	}
	return st.differences(o.Changes, append(notes, o.Notices...)), nil
}

// differences shows what changes make of policies.
func (st *statement) differences(changes []grants.Change, notes []string) *Result {
	out := table("policy", "resource", "change", "what", "grantee", "rights")
	for _, c := range changes {
		change, p := "alter", c.After
		switch {
		case c.Before == nil:
			change = "create"
		case c.After == nil:
			change, p = "drop", c.Before
		}
		for _, d := range grants.Diff(c.Before, c.After) {
			if d.Effect == "label" {
				// Those that every policy of this server bears say nothing about a grant.
				d.What = slices.DeleteFunc(slices.Clone(d.What), func(l string) bool { return strings.HasPrefix(l, "managed-by:") || strings.HasPrefix(l, "sqe:by=") })
				if len(d.What) == 0 {
					continue
				}
			}
			what := map[bool]string{true: "add ", false: "remove "}[d.Added] + d.Effect
			who := ""
			if d.Grantee.Name != "" {
				who = granteeText(d.Grantee)
			}
			out.row(p.Name, c.Resource.String(), change, what, who, strings.Join(d.What, ", "))
		}
	}
	st.session.vars.SetWarnings(notes)
	res := out.result()
	res.Warnings = st.session.vars.WarningCount()
	return res
}

// cleanupTraversal is CALL system.cleanup_traversal: it takes back, or with dry_run
// shows, rights that lead to nothing.
func (st *statement) cleanupTraversal(ctx context.Context, x *parse.CleanupTraversal) (*Result, error) {
	k, err := st.roleKeeper(ctx, "CALL system.cleanup_traversal", "take back what leads to nothing")
	if err != nil {
		return nil, err
	}
	var o *grants.Outcome
	if x.DryRun {
		now, err := k.Access(ctx)
		if err != nil {
			return nil, err
		}
		o = grants.Clean(now, st.principal.Name)
	} else if o, err = k.Clean(ctx, st.author()); err != nil {
		return nil, err
	}
	return st.differences(o.Changes, nil), nil
}

// grantStatement resolves the names of a statement, and finds what keeps its grants.
func (st *statement) grantStatement(ctx context.Context, x *parse.Grant) (grants.Keeper, *grants.Statement, []string, error) {
	s := &grants.Statement{
		Verb: grants.Verb(x.Verb), Grantees: granteesOf(x.Grantees), Option: x.Option, By: st.principal.Name,
		Administrator: st.principal.Admin, Identities: st.identities(),
	}
	k, none := st.keeper()
	if none == nil {
		var err error
		if s.Administrator, err = k.Administers(ctx, s.By, s.Administrator); err != nil {
			return nil, nil, nil, err
		}
	}
	r := &grantResolver{statement: st, revoke: s.Verb == grants.Revoke, all: s.Administrator}
	for _, o := range x.Objects {
		for _, p := range x.Privileges {
			name, err := grants.Canonical(p)
			if err != nil {
				return nil, nil, nil, err
			}
			object, err := r.object(ctx, o, name)
			if err != nil {
				return nil, nil, nil, err
			}
			if where, ok := st.engine.managedBy[object.Catalog]; ok {
				return nil, nil, nil, fault.New(fault.Unsupported, "access to catalog '%s' is not managed by this server, but by %s; %s it there", object.Catalog, where, s.Verb)
			}
			if s.Verb == grants.Grant && !s.Administrator {
				d, err := decides(p, object, st.authorize)
				if err != nil {
					return nil, nil, nil, err
				}
				if d.Reason == policy.ExplicitDeny {
					return nil, nil, nil, fault.New(fault.Denied, "GRANT command denied to user '%s' for '%s': what is denied to somebody cannot be passed on", st.principal.Name, object)
				}
			}
			s.Targets = append(s.Targets, grants.Target{Privilege: p, Object: object})
		}
	}
	return k, s, r.notes, none
}

// grantResolver finds the objects of statements about access.
type grantResolver struct {
	*statement
	revoke bool // what is gone may be named
	all    bool // whoever asks may know of everything
	notes  []string
}

func (r *grantResolver) note(format string, args ...any) {
	n := fmt.Sprintf(format, args...)
	if !slices.Contains(r.notes, n) {
		r.notes = append(r.notes, n)
	}
}

// object is what a name means for a privilege, by its name in the profile.
func (r *grantResolver) object(ctx context.Context, o parse.GrantObject, privilege string) (grants.Object, error) {
	_, deepest := grants.Binds(privilege)
	switch {
	case o.Future:
		r.note("FUTURE is as ALL: policies have no words for what does not exist yet alone, so what exists now is covered too")
		fallthrough
	case o.All && o.In == parse.OnCatalog:
		if o.In != parse.OnCatalog {
			break
		}
		c, err := r.catalog(o.Parts[0])
		return grants.Object{Catalog: c, Namespace: []string{grants.Any}, Name: grants.Any, View: o.Kind == parse.OnView}, err
	case o.Everywhere:
		return r.everywhere(deepest)
	case o.Star:
		schema, err := r.schema(o)
		if err != nil {
			return schema, err
		}
		return r.star(schema, privilege, deepest)
	case o.Kind == parse.OnCatalog:
		c, err := r.catalog(o.Parts[0])
		return grants.Object{Catalog: c}, err
	case !o.All && o.Kind == parse.OnSchema:
		return r.schema(o)
	case !o.All && o.Kind == parse.OnDatabase:
		return r.database(ctx, o)
	}
	if o.All {
		schema, err := r.schema(o)
		schema.Name, schema.View = grants.Any, o.Kind == parse.OnView
		return schema, err
	}
	return r.table(ctx, o)
}

func (r *grantResolver) catalog(name string) (string, error) {
	if _, ok := r.engine.catalogs.Get(name); !ok && !r.all {
		return "", fault.New(fault.NotFound, "there is no catalog '%s', or you may not use it", name)
	} else if !ok {
		return "", fault.New(fault.NotFound, "there is no catalog '%s'; the catalogs are %s", name, strings.Join(r.catalogs(), ", "))
	}
	return name, nil
}

func (st *statement) catalogs() []string {
	var out []string
	for _, c := range st.engine.catalogs.All() {
		out = append(out, c.Name())
	}
	return out
}

func (r *grantResolver) schema(o parse.GrantObject) (grants.Object, error) {
	database := ""
	if len(o.Parts) > 0 {
		database = o.Database()
	}
	if database == "" {
		database = r.session.Database()
	}
	if database == "" {
		return grants.Object{}, fault.New(fault.NoDatabase, "No database selected")
	}
	full, _, err := r.engine.catalogs.Resolve(database, "x")
	if err != nil {
		return grants.Object{}, unknownDatabase(database)
	}
	return grants.Object{Catalog: full.Catalog, Namespace: full.Namespace}, nil
}

// database is DATABASE name: a schema, or the catalog of that name when there is no
// such schema.
func (r *grantResolver) database(ctx context.Context, o parse.GrantObject) (grants.Object, error) {
	schema, err := r.schema(o)
	if err != nil || len(o.Parts) != 1 {
		return schema, err
	}
	if _, ok := r.engine.catalogs.Get(o.Parts[0]); !ok {
		return schema, nil
	}
	has, err := r.hasNamespace(ctx, r.engine.catalogs.Default(), schema.Namespace)
	if err == nil && has && !r.all {
		has, err = r.visible(policy.Object{Catalog: schema.Catalog, Namespace: schema.Namespace}, policy.NamespaceList)
	}
	if err != nil || has {
		return schema, err
	}
	r.note("DATABASE %s is taken for the catalog: there is no schema of that name; ON CATALOG says so", o.Parts[0])
	return grants.Object{Catalog: o.Parts[0]}, nil
}

// everywhere is MySQL's *.*, which is one thing where there is one catalog.
func (r *grantResolver) everywhere(deepest grants.Level) (grants.Object, error) {
	all := r.catalogs()
	if len(all) > 1 && !r.all {
		return grants.Object{}, fault.New(fault.BadStatement, "*.* may be all of several catalogs; name one: ON ALL TABLES IN CATALOG name, or ON CATALOG name")
	}
	if len(all) > 1 {
		return grants.Object{}, fault.New(fault.BadStatement, "*.* may be all of several catalogs (%s); name one: ON ALL TABLES IN CATALOG %s, or ON CATALOG %s", strings.Join(all, ", "), all[0], all[0])
	}
	switch deepest {
	case grants.TableLevel:
		r.note("*.* is all tables of catalog %s; views are granted with ON ALL VIEWS IN CATALOG %s", all[0], all[0])
		return grants.Object{Catalog: all[0], Namespace: []string{grants.Any}, Name: grants.Any}, nil
	case grants.NamespaceLevel:
		return grants.Object{Catalog: all[0], Namespace: []string{grants.Any}}, nil
	}
	return grants.Object{Catalog: all[0]}, nil
}

// star is MySQL's db.*.
func (r *grantResolver) star(schema grants.Object, privilege string, deepest grants.Level) (grants.Object, error) {
	switch deepest {
	case grants.CatalogLevel:
		return schema, fault.New(fault.BadStatement, "%s ON %s.* has no one meaning: %s is a privilege on a catalog. Name what is to be allowed: SELECT, MODIFY, ALTER, DROP ON ALL TABLES IN SCHEMA, and USE, CREATE, CREATE VIEW ON SCHEMA", privilege, schema, privilege)
	case grants.TableLevel:
		r.note("%s.* is all tables of %s; views are granted with ON ALL VIEWS IN SCHEMA", schema, schema)
		schema.Name = grants.Any
	}
	return schema, nil
}

// table is a table or view. Without a word for which it is the catalog tells.
func (r *grantResolver) table(ctx context.Context, o parse.GrantObject) (grants.Object, error) {
	name, err := r.tableName(o.Table())
	if err != nil {
		return grants.Object{}, err
	}
	out := grants.Object{Catalog: name.Catalog, Namespace: name.Namespace, Name: name.Name, View: o.Kind == parse.OnView}
	cat, ok := r.engine.catalogs.Get(name.Catalog)
	if !ok {
		return out, missing(o.Table().Database, name.Name)
	}
	isTable, isView, err := r.kindOf(ctx, cat, out)
	if err == nil && !r.all {
		// Nobody learns from a refusal what there is.
		if isTable {
			isTable, err = r.visible(policy.Object{Catalog: out.Catalog, Namespace: out.Namespace, Name: out.Name}, policy.TableList)
		}
		if isView && err == nil {
			isView, err = r.visible(policy.Object{Catalog: out.Catalog, Namespace: out.Namespace, Name: out.Name, View: true}, policy.ViewList)
		}
	}
	switch {
	case err != nil:
		return out, err
	case o.Kind == parse.OnNothing && isView && !isTable:
		out.View = true
	case o.Kind == parse.OnTable && isView:
		return out, fault.New(fault.BadStatement, "'%s' is a view; write ON VIEW %s", out, out)
	case o.Kind == parse.OnView && isTable:
		return out, fault.New(fault.BadStatement, "'%s' is a table; write ON TABLE %s", out, out)
	}
	if !isTable && !isView && !r.revoke && r.all {
		r.note("there is no table or view %s now; the statement is about one that will bear the name", out)
	}
	return out, nil
}

// visible reports whether the principal may know of an object.
func (st *statement) visible(o policy.Object, p policy.Privilege) (bool, error) {
	d, err := st.authorize(o, p)
	return d.Visible, err
}

// kindOf says what bears a name in the catalog.
func (st *statement) kindOf(ctx context.Context, cat catalog.Catalog, o grants.Object) (isTable, isView bool, err error) {
	tables, err := cat.Tables(ctx, o.Namespace)
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.NoDatabase) {
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	views, err := cat.Views(ctx, o.Namespace)
	return slices.Contains(tables, o.Name), slices.Contains(views, o.Name), err
}
