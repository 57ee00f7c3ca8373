// Package admin writes policies, roles, users and tags of a policy server: a
// Ranger Admin, or the embedded store, which answers in the same way.
//
// Invariants: a write is a read, a change of what was read and a write back,
// serialised in this process, and merged three ways with what somebody else wrote
// meanwhile; a write is sent once and its outcome read back, never repeated
// blindly; what a policy holds and SQE has no word for is kept as it is.
//
// The package must never decide about access: whoever calls it has asked.
package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"sqe/rangerclient/model"
)

// Server is a policy server. Objects that it returns belong to the caller.
//
// Errors about an object or the caller's right are *Error; any other error means
// that the outcome is not known.
type Server interface {
	// Name says in words which server this is, for messages.
	Name() string

	// ServiceDefs are whole documents: SQE's model holds a part of them only.
	ServiceDefs(ctx context.Context) ([]json.RawMessage, error)
	ServiceDef(ctx context.Context, name string) (json.RawMessage, error)
	CreateServiceDef(ctx context.Context, def json.RawMessage) error

	Services(ctx context.Context) ([]*model.Service, error)
	Service(ctx context.Context, name string) (*model.Service, error)
	CreateService(ctx context.Context, s *model.Service) (*model.Service, error)
	UpdateService(ctx context.Context, s *model.Service) (*model.Service, error)
	// DeleteService deletes the service with its policies and tags.
	DeleteService(ctx context.Context, name string) error

	// Policies lists all policies of a service, of all kinds and zones, disabled
	// ones included, by id.
	Policies(ctx context.Context, service string) ([]*model.Policy, error)
	Policy(ctx context.Context, id int64) (*model.Policy, error)
	// PolicyNamed finds a policy by its name; zone is "" for none.
	PolicyNamed(ctx context.Context, service, zone, name string) (*model.Policy, error)
	// PolicyVersions lists the versions of a policy that are known, ascending.
	PolicyVersions(ctx context.Context, id int64) ([]int64, error)
	// PolicyAt is the policy as it was at that version.
	PolicyAt(ctx context.Context, id, version int64) (*model.Policy, error)
	// CreatePolicy returns the stored policy, with its id and version 1.
	CreatePolicy(ctx context.Context, p *model.Policy) (*model.Policy, error)
	// UpdatePolicy replaces the policy with that id. The version that is sent is
	// not compared; the one that is returned is one above the replaced one.
	UpdatePolicy(ctx context.Context, p *model.Policy) (*model.Policy, error)
	DeletePolicy(ctx context.Context, id int64) error

	Zones(ctx context.Context) ([]*model.Zone, error)
	CreateZone(ctx context.Context, z *model.Zone) (*model.Zone, error)
	UpdateZone(ctx context.Context, z *model.Zone) (*model.Zone, error)
	// DeleteZone deletes the zone with its policies.
	DeleteZone(ctx context.Context, name string) error

	Roles(ctx context.Context) ([]*model.Role, error)
	Role(ctx context.Context, name string) (*model.Role, error)
	CreateRole(ctx context.Context, r *model.Role) (*model.Role, error)
	UpdateRole(ctx context.Context, r *model.Role) (*model.Role, error)
	// AlterRole adds the members of add to a role and takes those of remove out of it,
	// in the server, so that of two at the same time none is lost. Roles have no
	// versions. service is one that the caller administers.
	AlterRole(ctx context.Context, service, name string, add, remove *model.Role) error
	DeleteRole(ctx context.Context, name string) error

	Users(ctx context.Context) ([]*model.User, error)
	User(ctx context.Context, name string) (*model.User, error)
	CreateUser(ctx context.Context, u *model.User) (*model.User, error)
	// UpdateUser replaces everything but the password, which stays when it is
	// empty.
	UpdateUser(ctx context.Context, u *model.User) (*model.User, error)
	DeleteUser(ctx context.Context, name string) error

	Groups(ctx context.Context) ([]*model.Group, error)
	Group(ctx context.Context, name string) (*model.Group, error)
	CreateGroup(ctx context.Context, g *model.Group) (*model.Group, error)
	UpdateGroup(ctx context.Context, g *model.Group) (*model.Group, error)
	DeleteGroup(ctx context.Context, name string) error

	// Tags is the whole tag document of a service.
	Tags(ctx context.Context, service string) (*model.ServiceTags, error)
	// ImportTags applies a document by its Op: "add_or_update", "delete" or
	// "replace". Ids in it are local to the document.
	ImportTags(ctx context.Context, t *model.ServiceTags) error
}

// Kind says what a server's refusal means.
type Kind string

// The kinds of refusals.
const (
	NotFound         Kind = "not-found"
	Exists           Kind = "exists"   // the name, or the resource of a policy (code 3010), is taken
	Conflict         Kind = "conflict" // another write came between: read and try again
	Invalid          Kind = "invalid"
	UnknownPrincipal Kind = "unknown-principal" // a user, group or role that the server does not have
	InUse            Kind = "in-use"            // still referred to
	Forbidden        Kind = "forbidden"
	Unauthenticated  Kind = "unauthenticated"
)

// Error is the refusal of a policy server.
type Error struct {
	Kind Kind
	// Code is Ranger's error code, such as 3010; 0 when there is none.
	Code int
	// Reason is the server's own text. It may name policies and principals: it is
	// for administrators.
	Reason string
	// Name is the principal or the policy that the refusal is about, if known.
	Name string
}

// Error implements error.
func (e *Error) Error() string {
	if e.Code != 0 {
		return fmt.Sprintf("%s (%d): %s", e.Kind, e.Code, e.Reason)
	}
	return fmt.Sprintf("%s: %s", e.Kind, e.Reason)
}

// KindOf is the kind of a refusal, "" for any other error.
func KindOf(err error) Kind {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// Author is who changes something, for the history of a server that keeps one.
type Author struct {
	User string // name of the principal
	From string // address of the client
}

type authorKey struct{}

// WithAuthor says on whose behalf writes under ctx are made.
func WithAuthor(ctx context.Context, a Author) context.Context {
	return context.WithValue(ctx, authorKey{}, a)
}

// AuthorOf is the author of ctx, zero when there is none.
func AuthorOf(ctx context.Context) Author {
	a, _ := ctx.Value(authorKey{}).(Author)
	return a
}
