package grants

import (
	"context"

	"sqe/policy"
)

// Keeper keeps the access policies of a policy server, and its roles. Its errors are
// faults that tell whoever grants what to do. When a method that changes something
// returns without error, the policy source that reads the server shows the change.
type Keeper interface {
	// Administers reports whether a user may grant everything; here is what this server
	// says of it.
	Administers(ctx context.Context, user string, here bool) (bool, error)
	// Access reads all access policies.
	Access(ctx context.Context) (*Snapshot, error)
	// Complete fills in who made the policies, and when, where a list does not tell.
	Complete(ctx context.Context, s *Snapshot) error
	// Plan says what Apply would do.
	Plan(ctx context.Context, s *Statement) (*Outcome, error)
	// Apply does a statement as a whole: what was written is taken back when a part
	// cannot be.
	Apply(ctx context.Context, by policy.Author, s *Statement) (*Outcome, error)

	// Clean takes back rights that lead to nothing (see Clean).
	Clean(ctx context.Context, by policy.Author) (*Outcome, error)

	// Exists fails with fault.NoPrincipal when the server does not have a grantee.
	Exists(ctx context.Context, g policy.Grantee) error
	// GroupsOf lists the groups that the server knows a user in; none for a user that it
	// does not have.
	GroupsOf(ctx context.Context, user string) ([]string, error)
	// Roles lists the roles of the server, by name.
	Roles(ctx context.Context) ([]Role, error)
	// CreateRole fails with fault.BadPrincipal when there is one of that name, DropRole when
	// there is none.
	CreateRole(ctx context.Context, by policy.Author, name string) error
	DropRole(ctx context.Context, by policy.Author, name string) error
	// AlterRole fails with fault.NoPrincipal when there is no such role. It adds members to a role and takes members out.
	AlterRole(ctx context.Context, by policy.Author, name string, add, remove []policy.Grantee) error
}

// Role is a role with its direct members. A role that is a member holds what this
// one does.
type Role struct {
	Name    string
	Members []policy.Grantee
}

// Provider is an administrator of policies that may have a Keeper; nil: none, since
// its server keeps no access policies for SQE.
type Provider interface {
	Grants() Keeper
}
