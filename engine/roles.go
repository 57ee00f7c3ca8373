package engine

import (
	"context"
	"slices"

	"sqe/engine/parse"
	"sqe/fault"
)

// proceed asks the login whether the session may run another statement, and takes
// over what it says of the principal now. An answer for somebody else ends the
// session: names never change.
func (s *Session) proceed(ctx context.Context) error {
	if s.login.Continue == nil {
		return nil
	}
	p, err := s.login.Continue(ctx)
	if err != nil {
		return err
	}
	if p.Name != s.login.Principal.Name {
		return fault.New(fault.Internal, "the login of this session became another principal")
	}
	p.ActiveRoles, p.Address = s.roles, s.principal.Address
	s.principal = p
	s.vars.SetPrincipal(p)
	return nil
}

// Ping reports whether the session goes on: nil unless its login has ended for good.
// A provider that does not answer ends nothing.
func (s *Session) Ping(ctx context.Context) error {
	err := s.proceed(ctx)
	if fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Cancelled) || fault.Is(err, fault.Limit) {
		return nil
	}
	return err
}

// activate sets the roles that count from now on; nil is all of the principal's.
func (s *Session) activate(roles []string) {
	s.roles, s.principal.ActiveRoles = roles, roles
	s.vars.SetPrincipal(s.principal)
}

// setRole narrows the session to some of the principal's own roles: those that
// the login asserts, and those that the policy sources give. What a policy denies
// or masks for a role that is held counts on, whether the role is active or not.
func (st *statement) setRole(stmt *parse.SetRole) (*Result, error) {
	switch {
	case stmt.All, stmt.Default:
		st.session.activate(nil)
		return &Result{}, nil
	case stmt.None:
		st.session.activate([]string{})
		return &Result{}, nil
	}
	states, err := st.policies()
	if err != nil {
		return nil, err
	}
	own := slices.Clone(st.principal.Roles)
	for _, s := range states {
		own = append(own, s.Roles(st.principal)...)
	}
	roles := []string{}
	for _, name := range stmt.Names {
		if !slices.Contains(own, name) {
			return nil, fault.New(fault.Denied, "the role '%s' is not yours; SET ROLE takes roles of your own, ALL or NONE", name)
		}
		if !slices.Contains(roles, name) {
			roles = append(roles, name)
		}
	}
	st.session.activate(roles)
	return &Result{}, nil
}
