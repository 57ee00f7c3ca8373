package rangerclient

import (
	"sqe/policy"
	"sqe/rangerclient/eval"
)

// somebody is a user that no policy names.
const somebody = "\x00"

// Probe implements policy.Prober. A group counts here whatever the groups of users
// are taken from.
func (s *State) Probe(g policy.Grantee, o policy.Object, priv policy.Privilege) policy.Decision {
	if s.objects == nil {
		return policy.Decision{Reason: policy.NotDecided}
	}
	if g.Name == "" {
		return policy.Decision{Reason: policy.NoGrant}
	}
	var subject *eval.Subject
	switch g.Kind {
	case policy.UserGrantee:
		subject = s.objects.Subject(g.Name, nil, nil, nil, nil)
	case policy.GroupGrantee:
		subject = s.objects.Subject(somebody, []string{g.Name}, nil, nil, nil)
	case policy.RoleGrantee:
		subject = s.objects.Subject(somebody, nil, []string{g.Name}, nil, nil)
	default:
		return policy.Decision{Reason: policy.NoGrant}
	}
	return s.authorize(asker{Subject: subject}, o, priv)
}

var _ policy.Prober = (*State)(nil)
