package rangerclient

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"sqe/identity"
	"sqe/rangerclient/eval"
)

// maxSubjects bounds how many principals a state remembers.
const maxSubjects = 4096

// subjects remembers what an engine knows about principals: every question of a
// statement needs it, and nested roles make it long. It lives as long as the state,
// whose documents it comes from. Of one name the last principal is kept: another
// one under the same name, with other groups, roles or attributes, replaces it.
type subjects struct {
	byName sync.Map // name to *known
	count  atomic.Int64
}

type known struct {
	principal identity.Principal
	subject   *eval.Subject
}

func (s *subjects) get(p identity.Principal, build func(identity.Principal) *eval.Subject) *eval.Subject {
	if v, ok := s.byName.Load(p.Name); ok {
		if k := v.(*known); samePrincipal(k.principal, p) {
			return k.subject
		}
	}
	// The caller's lists may change; what is kept must not.
	p.Groups, p.Roles, p.ActiveRoles, p.Attributes = slices.Clone(p.Groups), slices.Clone(p.Roles), slices.Clone(p.ActiveRoles), maps.Clone(p.Attributes)
	k := &known{p, build(p)}
	if s.count.Load() < maxSubjects {
		if _, was := s.byName.Swap(p.Name, k); !was {
			s.count.Add(1)
		}
	}
	return k.subject
}

// samePrincipal reports whether the two get the same answers. No active roles and
// all roles active are two things (nil and empty).
func samePrincipal(a, b identity.Principal) bool {
	return a.Name == b.Name && slices.Equal(a.Groups, b.Groups) && slices.Equal(a.Roles, b.Roles) &&
		(a.ActiveRoles == nil) == (b.ActiveRoles == nil) && slices.Equal(a.ActiveRoles, b.ActiveRoles) && maps.Equal(a.Attributes, b.Attributes)
}
