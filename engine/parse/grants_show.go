package parse

import (
	"strings"

	"sqe/fault"
)

// showAccess reads the SHOW statements about grants and roles; nil when the
// statement is none of them. SHOW GRANTS itself is read by showGrants.
func (p *parser) showAccess() (Statement, error) {
	switch {
	case p.accept("show", "access"):
		if !p.accept("on") {
			return nil, p.expected("ON and what the access is to")
		}
		o, err := p.oneObject()
		if err != nil {
			return nil, err
		}
		return &ShowAccess{Object: o}, p.end()
	case p.accept("show", "privileges"):
		return &ShowPrivileges{}, p.end()
	case p.accept("show", "effective", "grants"):
		s := &ShowEffectiveGrants{}
		if p.accept("for") {
			if w := p.word(0); (w == "role" || w == "group") && p.nameAhead(1) {
				return nil, fault.New(fault.Unsupported, "SHOW EFFECTIVE GRANTS is of a user; SHOW GRANTS TO %s name shows what a %s has", strings.ToUpper(w), w)
			}
			if p.accept("current_user") {
				return s, p.brackets()
			}
			if p.word(0) == "user" && p.nameAhead(1) {
				p.pos++
			}
			var err error
			if s.User, err = p.looseName("the name of a user"); err != nil {
				return nil, err
			}
			p.anyHost()
		}
		return s, p.end()
	case p.accept("show", "roles"):
		return &ShowRoles{}, p.end()
	case p.accept("show", "current", "roles"):
		return &ShowRoles{Current: true}, p.end()
	case p.accept("show", "role", "grants"):
		s := &ShowRoleGrants{}
		if p.accept("for") || p.accept("to") || p.accept("of") {
			g, err := p.oneGrantee()
			if err != nil {
				return nil, err
			}
			s.For = &g
		}
		return s, p.end()
	}
	return nil, nil
}

// oneObject reads an object without a list.
func (p *parser) oneObject() (GrantObject, error) {
	kind := OnNothing
	return p.grantObject(&kind)
}

func (p *parser) oneGrantee() (Grantee, error) {
	kind := "user"
	g, err := p.grantGrantee(&kind)
	p.anyHost()
	return g, err
}

// brackets reads () if they stand there, and the end.
func (p *parser) brackets() error {
	if p.acceptPunct("(") && !p.acceptPunct(")") {
		return p.expected(")")
	}
	if err := p.noUsing(); err != nil {
		return err
	}
	return p.end()
}

// showGrants reads what follows SHOW GRANTS: nothing, FOR a user in MySQL's words, ON
// an object, or TO or FOR a grantee.
func (p *parser) showGrants() (Statement, error) {
	switch {
	case p.pos >= len(p.tokens):
		return &ShowGrants{}, nil
	case p.accept("on"):
		o, err := p.oneObject()
		if err != nil {
			return nil, err
		}
		return &ListGrants{On: &o}, p.end()
	case p.accept("for", "current_user"):
		return &ShowGrants{}, p.brackets()
	case p.word(0) == "to" || p.word(0) == "for":
		kinded := p.word(1) == "user" || p.word(1) == "role" || p.word(1) == "group"
		to := p.accept("to")
		if !to {
			p.pos++
		}
		kinded = kinded && p.nameAhead(1)
		g, err := p.oneGrantee()
		if err != nil {
			return nil, err
		}
		if err := p.noUsing(); err != nil {
			return nil, err
		}
		if to || kinded || g.Kind != "user" {
			return &ListGrants{To: &g}, p.end()
		}
		return &ShowGrants{User: g.Name}, p.end()
	}
	return nil, p.expected("ON, TO or FOR, or the end of the statement")
}

// checkAccess reads CHECK ACCESS; nil when the statement is another one.
func (p *parser) checkAccess() (Statement, error) {
	if !p.accept("check", "access") {
		return nil, nil
	}
	c := &CheckAccess{}
	var err error
	if c.Privilege, err = p.privilege(); err != nil {
		return nil, err
	}
	if !p.accept("on") {
		return nil, p.expected("ON and what the privilege is on")
	}
	if c.Object, err = p.oneObject(); err != nil {
		return nil, err
	}
	if p.pos >= len(p.tokens) {
		return c, nil
	}
	if !p.accept("for") {
		return nil, p.expected("FOR and a user, role or group")
	}
	if p.accept("current_user") {
		return c, p.brackets()
	}
	if c.For, err = p.oneGrantee(); err != nil {
		return nil, err
	}
	return c, p.end()
}

// explainGrant reads EXPLAIN of a grant; nil when something else is explained.
func (p *parser) explainGrant() (Statement, error) {
	switch p.word(0) {
	case "grant", "revoke", "deny":
	default:
		return nil, nil
	}
	at := p.pos
	s, err := p.grant()
	if err != nil {
		return nil, err
	}
	g, ok := s.(*Grant)
	if !ok {
		return nil, syntaxAt(p.text, p.tokens[at].start, "EXPLAIN shows what a %s of privileges makes of policies; a role has none", strings.ToUpper(p.str(at)))
	}
	return &ExplainGrant{Grant: g}, nil
}

// impersonation reads AS USER name [WITH ROLE role, ...]; nil when it does not
// stand there.
func (p *parser) impersonation() (*Impersonation, error) {
	if p.word(0) != "as" {
		return nil, nil
	}
	p.pos++
	if !p.accept("user") {
		return nil, p.expected("USER and a name (WITH ROLE name, ... may follow)")
	}
	out := &Impersonation{}
	var err error
	if out.User, err = p.looseName("the name of a user"); err != nil {
		return nil, err
	}
	if !p.accept("with", "role") {
		return out, nil
	}
	for {
		name, err := p.looseName("the name of a role")
		if err != nil {
			return nil, err
		}
		out.Roles = append(out.Roles, name)
		if more, err := p.more(len(out.Roles)); err != nil || !more {
			return out, err
		}
	}
}

// cleanupTraversal reads CALL system.cleanup_traversal; nil when another procedure is
// called.
func (p *parser) cleanupTraversal() (Statement, error) {
	start := p.pos
	if !p.accept("call", "system") || !p.acceptPunct(".") || !p.accept("cleanup_traversal") {
		p.pos = start
		return nil, nil
	}
	c := &CleanupTraversal{}
	if !p.acceptPunct("(") {
		return c, p.end() // as CALL name() in MySQL
	}
	if p.accept("dry_run") {
		if !p.acceptPunct("=") || !p.acceptPunct(">") {
			return nil, p.expected("=>")
		}
		switch {
		case p.accept("true"):
			c.DryRun = true
		case !p.accept("false"):
			return nil, p.expected("TRUE or FALSE")
		}
	}
	if !p.acceptPunct(")") {
		return nil, p.expected("dry_run => TRUE, or )")
	}
	return c, p.end()
}
