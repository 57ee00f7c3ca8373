package parse

import (
	"strings"

	"sqe/fault"
)

// refusedUsers gives the error of MySQL's statements about users, groups and default
// roles, which are kept elsewhere, with what to type or where to go.
func (p *parser) refusedUsers() error {
	no := func(what, advice string) error {
		return fault.New(fault.Unsupported, "%s is not supported; %s", what, advice)
	}
	const defaults = "all roles of a user act from the login on: GRANT role TO user gives one, and SET ROLE narrows a session"
	switch verb, object := p.word(0), p.word(1); {
	case verb == "alter" && object == "user" && p.ahead("default"):
		return no("ALTER USER ... DEFAULT ROLE", defaults)
	case (verb == "create" || verb == "alter" || verb == "drop" || verb == "rename") && object == "user":
		return no(strings.ToUpper(verb)+" USER", "users and their passwords are kept by the identity provider, the configuration file and the policy server; GRANT names one that there is")
	case (verb == "create" || verb == "alter" || verb == "drop") && object == "group" && p.nameAhead(2):
		return no(strings.ToUpper(verb)+" GROUP", "groups are kept by the identity provider and the policy server; CREATE ROLE makes a role")
	case verb == "alter" && object == "role":
		return no("ALTER ROLE", "GRANT role TO somebody and REVOKE role FROM somebody change who has it")
	case verb == "set" && object == "default" && p.word(2) == "role":
		return no("SET DEFAULT ROLE", defaults)
	case verb == "set" && object == "password" && (p.word(2) == "for" || p.word(2) == "to" || p.pos+2 < len(p.tokens) && p.str(p.pos+2) == "="):
		return no("SET PASSWORD", "passwords are kept by the identity provider and the configuration file (sqe hash-password)")
	case verb == "show" && object == "create" && p.word(2) == "user":
		return no("SHOW CREATE USER", "SHOW GRANTS TO name shows what somebody may do")
	case verb == "flush" && object == "privileges":
		return no("FLUSH PRIVILEGES", "grants act at once, and policies of others with the next poll (SHOW POLICY STATUS): leave it out")
	}
	return nil
}

// refusedGrant gives the error of MySQL's forms of GRANT and REVOKE that have no
// meaning here; the verb was read.
func (p *parser) refusedGrant(verb GrantVerb) error {
	no := func(what, advice string) error {
		return fault.New(fault.Unsupported, "%s is not supported; %s", string(verb)+" "+what, advice)
	}
	switch {
	case p.word(0) == "proxy" && p.ahead("on"):
		return no("PROXY", "nobody acts as somebody else; EXPLAIN POLICY AS USER shows an administrator what somebody sees")
	case verb == VerbRevoke && p.word(0) == "admin" && p.word(1) == "option":
		return no("ADMIN OPTION FOR", "administrators grant roles")
	case verb == VerbRevoke && p.word(0) == "all" && !p.ahead("on"):
		return no("ALL PRIVILEGES without ON", "REVOKE ALL PRIVILEGES, GRANT OPTION FROM name takes all that somebody was given by name; write REVOKE ALL ON what is meant FROM name")
	}
	return nil
}

// optionAsPrivilege refuses MySQL's GRANT OPTION in a list of privileges.
func optionAsPrivilege(verb GrantVerb, privileges []string) error {
	for _, name := range privileges {
		if name != "GRANT OPTION" {
			continue
		}
		if verb == VerbRevoke {
			return fault.New(fault.Unsupported, "GRANT OPTION is not a privilege of its own; write REVOKE GRANT OPTION FOR privilege ON object FROM name")
		}
		return fault.New(fault.Unsupported, "GRANT OPTION is not a privilege of its own; write GRANT privilege ON object TO name WITH GRANT OPTION")
	}
	return nil
}

// noRoutine refuses ON PROCEDURE and ON FUNCTION.
func (p *parser) noRoutine() error {
	if w := p.word(0); (w == "procedure" || w == "function") && p.nameAhead(1) && !p.grantTail(1) && p.word(1) != "to" && p.word(1) != "from" {
		return fault.New(fault.Unsupported, "a privilege on a %s is not supported: SQE has no stored code", strings.ToUpper(w))
	}
	return nil
}

// noUsing refuses USING behind SHOW GRANTS FOR a user.
func (p *parser) noUsing() error {
	if p.word(0) == "using" {
		return fault.New(fault.Unsupported, "SHOW GRANTS ... USING is not supported; SHOW EFFECTIVE GRANTS FOR USER name shows what somebody has by roles, and SHOW GRANTS TO ROLE name what a role has")
	}
	return nil
}
