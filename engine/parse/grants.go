package parse

// GrantVerb is what a Grant statement does.
type GrantVerb string

// The verbs.
const (
	VerbGrant  GrantVerb = "GRANT"
	VerbRevoke GrantVerb = "REVOKE"
	VerbDeny   GrantVerb = "DENY"
)

// GrantKind is what a GrantObject was called.
type GrantKind string

// The kinds of objects. Without a kind it is a table or a view.
const (
	OnNothing GrantKind = ""
	OnTable   GrantKind = "TABLE"
	OnView    GrantKind = "VIEW"
	OnSchema  GrantKind = "SCHEMA"
	OnCatalog GrantKind = "CATALOG"
	// OnDatabase is a schema, as in MySQL; some systems call a catalog so.
	OnDatabase GrantKind = "DATABASE"
)

// GrantObject is what a privilege is given on.
type GrantObject struct {
	Kind GrantKind
	// All is ALL TABLES (Kind is OnTable) or ALL VIEWS IN what the parts name; In is
	// OnSchema, OnDatabase or OnCatalog then. Future: it was written FUTURE.
	All, Future bool
	In          GrantKind
	// Star is MySQL's db.* (Parts has the database), * (none) or *.* (Everywhere).
	Star, Everywhere bool
	// Parts of the name, outermost first. A single part of a schema is a whole
	// database name, as SHOW DATABASES prints it.
	Parts []string
}

// Table is the table or view that the object is.
func (o GrantObject) Table() TableRef { return tableRefOf(o.Parts) }

// Database is the schema that the parts name; "" for the current one.
func (o GrantObject) Database() string {
	if len(o.Parts) == 1 {
		return o.Parts[0]
	}
	return JoinDatabase(o.Parts...)
}

// Grant is GRANT, REVOKE or DENY of privileges.
type Grant struct {
	Verb GrantVerb
	// Privileges in upper case, with one blank between words; not looked up.
	Privileges []string
	Objects    []GrantObject
	Grantees   []Grantee
	// Option is WITH GRANT OPTION, or REVOKE GRANT OPTION FOR.
	Option bool
	// Everything is MySQL's REVOKE ALL PRIVILEGES, GRANT OPTION FROM; there are neither
	// privileges nor objects then.
	Everything bool
}

// GrantRoles is GRANT role, ... TO and REVOKE role, ... FROM.
type GrantRoles struct {
	Revoke   bool
	IfExists bool // of REVOKE: a role that is missing is a warning
	Roles    []string
	Grantees []Grantee
}

// CreateRole is CREATE ROLE [IF NOT EXISTS] name, ...
type CreateRole struct {
	Names       []string
	IfNotExists bool
}

// DropRole is DROP ROLE [IF EXISTS] name, ...
type DropRole struct {
	Names    []string
	IfExists bool
}

// ExplainGrant is EXPLAIN of a GRANT, REVOKE or DENY.
type ExplainGrant struct{ Grant *Grant }

// ShowPrivileges is SHOW PRIVILEGES.
type ShowPrivileges struct{}

// CheckAccess is CHECK ACCESS privilege ON object [FOR [USER | ROLE | GROUP] name]; a
// grantee without a name is oneself.
type CheckAccess struct {
	Privilege string
	Object    GrantObject
	For       Grantee
}

// ShowAccess is SHOW ACCESS ON object.
type ShowAccess struct{ Object GrantObject }

// ListGrants is SHOW GRANTS ON object, or SHOW GRANTS TO or FOR a grantee; one of
// the two is set.
type ListGrants struct {
	On *GrantObject
	To *Grantee
}

// ShowEffectiveGrants is SHOW EFFECTIVE GRANTS [FOR USER name]; "" is oneself.
type ShowEffectiveGrants struct{ User string }

// ShowRoles is SHOW ROLES, or SHOW CURRENT ROLES.
type ShowRoles struct{ Current bool }

// ShowRoleGrants is SHOW ROLE GRANTS [FOR grantee]; nil is oneself.
type ShowRoleGrants struct{ For *Grantee }

// Impersonation is AS USER name [WITH ROLE role, ...] of EXPLAIN POLICY.
type Impersonation struct {
	User  string
	Roles []string
}

// CleanupTraversal is CALL system.cleanup_traversal([dry_run => TRUE | FALSE]).
type CleanupTraversal struct{ DryRun bool }

func (*CleanupTraversal) statement()    {}
func (*Grant) statement()               {}
func (*GrantRoles) statement()          {}
func (*CreateRole) statement()          {}
func (*DropRole) statement()            {}
func (*ExplainGrant) statement()        {}
func (*CheckAccess) statement()         {}
func (*ShowPrivileges) statement()      {}
func (*ShowAccess) statement()          {}
func (*ListGrants) statement()          {}
func (*ShowEffectiveGrants) statement() {}
func (*ShowRoles) statement()           {}
func (*ShowRoleGrants) statement()      {}
