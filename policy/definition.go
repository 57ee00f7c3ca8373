package policy

import (
	"context"
	"time"

	"sqe/plan"
)

// DefinitionKind says what a policy does.
type DefinitionKind string

// The kinds of definitions. Access policies are listed, not written.
const (
	MaskDefinition   DefinitionKind = "mask"
	FilterDefinition DefinitionKind = "row filter"
	AccessDefinition DefinitionKind = "access"
)

// GranteeKind says what a Grantee is.
type GranteeKind string

// The kinds of grantees. "Everybody" is the group named public.
const (
	UserGrantee  GranteeKind = "user"
	GroupGrantee GranteeKind = "group"
	RoleGrantee  GranteeKind = "role"
)

// Public is the group that everybody belongs to.
const Public = "public"

// Grantee is a principal in a policy.
type Grantee struct {
	Kind GranteeKind
	Name string
}

// Item is one entry of a policy: for these principals, this. Of the items of a
// policy the first that names a principal acts.
type Item struct {
	Grantees []Grantee
	// Mask is a mask action ("MASK_NULL", "CUSTOM", "MASK_NONE"); for masks only.
	Mask string
	// SQL is the condition of a row filter, or the expression of CUSTOM.
	SQL string
	// Exempt is an item of a row filter policy without a filter: its principals see
	// all rows. For a mask that is the mask MASK_NONE.
	Exempt bool
	// Privileges and Deny are for access policies.
	Privileges []string
	Deny       bool
}

// Definition is a policy in the words of SQL. Exactly one of Table and Tag is set
// in a definition that is to be written.
type Definition struct {
	Name        string
	Description string
	Kind        DefinitionKind
	// Table that the policy is on. Its parts may hold wildcards (*, ?) only in a
	// definition that was read.
	Table plan.TableName
	// Columns of a mask on a table.
	Columns []string
	Tag     string
	Items   []Item
	// Disabled policies do nothing.
	Disabled bool
	// Override policies come before all others.
	Override bool
	// ValidFrom and ValidUntil bound when it acts; zero: no bound.
	ValidFrom, ValidUntil time.Time
}

// Stored is a policy as a server holds it.
type Stored struct {
	Definition
	ID      int64
	Version int64
	Service string
	Zone    string
	Labels  []string
	// Resources is the resource in the words of the server, such as
	// "database=bank, table=customers, column=iban,email".
	Resources string
	// Beyond lists what the policy holds and Definition has no word for, such as
	// "conditions" or "several tables"; it is empty when Definition says all.
	Beyond               []string
	CreatedBy, UpdatedBy string
	UpdatedAt            time.Time
}

// Overlap is a stored policy that is on the same as another one. Of all that name
// a principal only the one that is asked first acts.
type Overlap struct {
	Name string
	// Columns that both are on; nil for row filters.
	Columns []string
	// Exact: it names the table itself, not by a pattern.
	Exact bool
	// Override of the stored policy.
	Override bool
	// First: the stored policy is asked before the other one.
	First bool
}

// Change edits a stored policy. Nil and empty members leave things as they are.
type Change struct {
	Rename      *string
	Description *string
	Disabled    *bool
	Override    *bool
	ValidFrom   *time.Time // zero: no bound
	ValidUntil  *time.Time
	// Add appends items, or puts them first: only the first item that names a
	// principal acts.
	Add   []Item
	First bool
	// Remove takes grantees out of every item; an item that has none left goes,
	// and a policy whose last item would go is refused.
	Remove []Grantee
}

// Author is who changes policies, and from where.
type Author struct {
	User string
	From string // address of the client
}

// Administrator writes policies where they are kept. Its errors are faults that
// tell an administrator what to do. When a method returns without error, the
// State of the source that reads the policies shows the change.
type Administrator interface {
	// Source is the name of the policy source that reads what is written.
	Source() string
	// Create stores a new policy. With replace a policy of the same name and place
	// is replaced as a whole. The definition was checked against the table.
	Create(ctx context.Context, by Author, d Definition, replace bool) error
	// Alter changes a policy. check is called with the definition as it will be,
	// before it is written.
	Alter(ctx context.Context, by Author, name string, c Change, check func(Definition) error) error
	// Drop deletes a policy by its name. One that does not exist is
	// fault.NotFound.
	Drop(ctx context.Context, by Author, name string) error
	// List lists all policies of the services that the source reads, by service
	// and name.
	List(ctx context.Context) ([]Stored, error)
	// Overlaps lists the enabled policies, other than the one that has this id, that
	// are on the same table, and for masks on some of the same columns, as d: those
	// of its kind, service and security zone whose times meet. d.Table is the full
	// name of a table. id is 0 for a policy that is to be created; one of its name in
	// its place is the policy that it replaces, not another one.
	Overlaps(ctx context.Context, d Definition, id int64) ([]Overlap, error)
	// Projects reports whether tags are also written to the server.
	Projects() bool
	// ProjectTags makes the tags of the columns of a table on the server what the
	// catalog says: before is what the catalog said until now, after what it says
	// from now on, both by column name. Tags that came from elsewhere stay.
	ProjectTags(ctx context.Context, by Author, t *plan.Table, before, after map[string][]string) error
}
