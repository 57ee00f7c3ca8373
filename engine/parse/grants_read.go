package parse

import (
	"strings"

	"sqe/fault"
)

// grant reads GRANT, REVOKE and DENY; the verb is at the current token.
func (p *parser) grant() (Statement, error) {
	verb := GrantVerb(strings.ToUpper(p.word(0)))
	p.pos++
	// What is not there to take back is a warning anyway.
	exists := verb == VerbRevoke && p.accept("if", "exists")
	if verb == VerbRevoke && p.allOf() {
		g := &Grant{Verb: verb, Everything: true}
		var err error
		if g.Grantees, err = p.grantTo(verb); err != nil {
			return nil, err
		}
		return g, p.grantEnd(verb)
	}
	if err := p.refusedGrant(verb); err != nil {
		return nil, err
	}
	if verb != VerbDeny && !p.ahead("on") {
		return p.grantRoles(verb, exists)
	}
	g := &Grant{Verb: verb}
	if verb == VerbRevoke && p.accept("grant", "option", "for") {
		g.Option = true
	}
	var err error
	if g.Privileges, err = p.privileges(); err != nil {
		return nil, err
	}
	if err := optionAsPrivilege(verb, g.Privileges); err != nil {
		return nil, err
	}
	if !p.accept("on") {
		return nil, p.expected("ON and what the privilege is on")
	}
	if err := p.noRoutine(); err != nil {
		return nil, err
	}
	if g.Objects, err = p.grantObjects(); err != nil {
		return nil, err
	}
	if g.Grantees, err = p.grantTo(verb); err != nil {
		return nil, err
	}
	if p.accept("with", "grant", "option") {
		if verb != VerbGrant {
			return nil, syntaxAt(p.text, p.tokens[p.pos-3].start, "WITH GRANT OPTION belongs to GRANT; REVOKE GRANT OPTION FOR takes it back")
		}
		g.Option = true
	}
	return g, p.grantEnd(verb)
}

// allOf reads ALL [PRIVILEGES], GRANT OPTION before FROM.
func (p *parser) allOf() bool {
	at := p.pos
	if p.accept("all") {
		p.accept("privileges")
		if p.acceptPunct(",") && p.accept("grant", "option") && p.word(0) == "from" {
			return true
		}
	}
	p.pos = at
	return false
}

// ahead reports whether a keyword stands before TO and FROM.
func (p *parser) ahead(keyword string) bool {
	for i := 0; p.pos+i < len(p.tokens); i++ {
		switch p.word(i) {
		case keyword:
			return true
		case "to", "from":
			return false
		}
	}
	return false
}

// grantTo reads TO or FROM and the grantees.
func (p *parser) grantTo(verb GrantVerb) ([]Grantee, error) {
	to := "to"
	if verb == VerbRevoke {
		to = "from"
	}
	if !p.accept(to) {
		return nil, p.expected(strings.ToUpper(to) + " and whom the privilege is for")
	}
	return p.grantGrantees()
}

// grantEnd refuses what other systems have behind a grant. REVOKE is always done for
// those who are gone, as IGNORE UNKNOWN USER says.
func (p *parser) grantEnd(verb GrantVerb) error {
	if verb == VerbRevoke {
		p.accept("ignore", "unknown", "user")
	}
	no := func(what, advice string) error {
		return fault.New(fault.Unsupported, "%s is not supported; %s", what, advice)
	}
	switch p.word(0) {
	case "cascade", "restrict":
		return no(strings.ToUpper(p.word(0)), "a grant does not depend on the one who made it: name those whose grants are to go")
	case "granted", "as":
		return no(strings.ToUpper(p.word(0)), "the grantor is the user of the session")
	case "identified", "require":
		return no(strings.ToUpper(p.word(0)), "logins are kept by the identity provider; a grant names a user that there is")
	case "with":
		return no("this WITH", "WITH GRANT OPTION is the one that there is")
	}
	return p.end()
}

// privileges reads names of one or more words with commas between them.
func (p *parser) privileges() ([]string, error) {
	var out []string
	for {
		name, err := p.privilege()
		if err != nil {
			return nil, err
		}
		out = append(out, name)
		if more, err := p.more(len(out)); err != nil || !more {
			return out, err
		}
	}
}

func (p *parser) privilege() (string, error) {
	var words []string
	for p.pos < len(p.tokens) && p.tokens[p.pos].kind == word && p.word(0) != "on" && len(words) < 4 {
		words = append(words, strings.ToUpper(p.str(p.pos)))
		p.pos++
	}
	if len(words) == 0 {
		return "", p.expected("the name of a privilege")
	}
	if p.pos < len(p.tokens) && p.str(p.pos) == "(" {
		return "", fault.New(fault.Unsupported, "a privilege on columns is not supported; grant it on the table and hide columns with CREATE POLICY ... COLUMN MASK")
	}
	return strings.Join(words, " "), nil
}

// grantKinds are the words for kinds of objects.
var grantKinds = map[string]GrantKind{"table": OnTable, "view": OnView, "schema": OnSchema, "database": OnDatabase, "catalog": OnCatalog}

// grantObjects reads a list of objects. A kind holds for the names after it until
// another one is named.
func (p *parser) grantObjects() ([]GrantObject, error) {
	var out []GrantObject
	kind := OnNothing
	for {
		o, err := p.grantObject(&kind)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
		if more, err := p.more(len(out)); err != nil || !more {
			return out, err
		}
	}
}

func (p *parser) grantObject(kind *GrantKind) (GrantObject, error) {
	o := GrantObject{}
	if w := p.word(0); (w == "all" || w == "future") && (p.word(1) == "tables" || p.word(1) == "views") && p.word(2) == "in" {
		o.All, o.Future, o.Kind = true, w == "future", OnTable
		if p.word(1) == "views" {
			o.Kind = OnView
		}
		p.pos += 3
		o.In = grantKinds[p.word(0)]
		if (o.In != OnSchema && o.In != OnDatabase && o.In != OnCatalog) || !p.nameAhead(1) {
			return o, p.expected("SCHEMA or CATALOG and a name")
		}
		p.pos++
		*kind = OnNothing
	} else if k, ok := grantKinds[w]; ok && p.nameAhead(1) {
		p.pos++
		*kind = k
	}
	if !o.All {
		o.Kind = *kind
	}
	return o, p.grantName(&o)
}

// grantName reads a dotted name, in which MySQL's stars may stand.
func (p *parser) grantName(o *GrantObject) error {
	const what = "the name of a table, view, schema or catalog"
	for {
		if !o.All && p.acceptPunct("*") {
			if o.Star = true; o.Kind != OnNothing && o.Kind != OnTable {
				return syntaxAt(p.text, p.tokens[p.pos-1].start, "a star stands for tables; write ON ALL TABLES or ON ALL VIEWS")
			}
			if len(o.Parts) == 0 && p.acceptPunct(".") {
				if !p.acceptPunct("*") {
					return p.expected("*, or the name of a database before the dot")
				}
				o.Star, o.Everywhere = false, true
			}
			return nil
		}
		part, err := p.name(what)
		if err != nil {
			return err
		}
		if o.Parts = append(o.Parts, part); !p.acceptPunct(".") {
			break
		}
	}
	if (o.Kind == OnCatalog && !o.All || o.In == OnCatalog) && len(o.Parts) > 1 {
		return fault.New(fault.BadStatement, "the name of a catalog has one part; a schema is named ON SCHEMA")
	}
	return nil
}

// grantGrantees reads [USER | ROLE | GROUP] name[@host], ... The kind holds for the
// names after it; a list without one is of users.
func (p *parser) grantGrantees() ([]Grantee, error) {
	var out []Grantee
	kind := "user"
	for {
		g, err := p.grantGrantee(&kind)
		if err != nil {
			return nil, err
		}
		if err := p.host(); err != nil {
			return nil, err
		}
		out = append(out, g)
		if more, err := p.more(len(out)); err != nil || !more {
			return out, err
		}
	}
}

func (p *parser) grantGrantee(kind *string) (Grantee, error) {
	if p.word(0) == "database" && p.word(1) == "role" && p.nameAhead(2) {
		p.pos++
	}
	named := false // USER stands right before
	switch w := p.word(0); w {
	case "user", "role", "group":
		if p.nameAhead(1) && !p.grantTail(1) {
			*kind, named = w, w == "user"
			p.pos++
		}
	case "share", "application":
		if p.nameAhead(1) && !p.grantTail(1) {
			return Grantee{}, fault.New(fault.Unsupported, "a grantee is a USER, a ROLE or a GROUP, or PUBLIC, which is everybody; not a %s", strings.ToUpper(w))
		}
	}
	g := Grantee{Kind: *kind}
	everybody := p.word(0) == "public" && *kind != "role" && !named
	current := p.word(0) == "current_user"
	var err error
	if g.Name, err = p.looseName("the name of a user, role or group"); err != nil {
		return g, err
	}
	if current {
		return g, fault.New(fault.BadStatement, "CURRENT_USER cannot be a grantee; name the user")
	}
	if everybody || g.Kind == "group" && strings.EqualFold(g.Name, "public") {
		g = Grantee{Kind: "group", Name: "public"}
	}
	return g, nil
}

// grantTail reports whether WITH GRANT OPTION or another end of a grant begins at
// offset i, so that what stands before it is a name.
func (p *parser) grantTail(i int) bool {
	switch p.word(i) {
	case "with", "cascade", "restrict", "granted", "as":
		return true
	}
	return false
}

// anyHost reads the host of MySQL's user@host; ok is false when there is none.
func (p *parser) anyHost() (host string, ok bool) {
	if p.pos >= len(p.tokens) || p.tokens[p.pos].kind != variable {
		return "", false
	}
	host = strings.TrimPrefix(p.str(p.pos), "@")
	p.pos++
	if host == "" && p.pos < len(p.tokens) {
		host = p.str(p.pos)
		p.pos++
	}
	return strings.Trim(host, "'\"`"), true
}

// host reads a host that has a meaning: only %, because hosts are not told apart.
func (p *parser) host() error {
	if host, ok := p.anyHost(); ok && host != "%" {
		return fault.New(fault.Unsupported, "a grant to a user at one host is not supported: a user is the same from everywhere; write the name alone, or with @'%%'")
	}
	return nil
}

// grantRoles reads what follows GRANT or REVOKE when no privileges do.
func (p *parser) grantRoles(verb GrantVerb, exists bool) (Statement, error) {
	g := &GrantRoles{Revoke: verb == VerbRevoke, IfExists: exists}
	first := p.word(0)
	p.accept("role")
	for {
		name, err := p.looseName("the name of a role")
		if err != nil {
			return nil, err
		}
		if err := p.host(); err != nil {
			return nil, err
		}
		g.Roles = append(g.Roles, name)
		more, err := p.more(len(g.Roles))
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
	}
	if w := p.word(0); w != "to" && w != "from" || first == "all" {
		return nil, p.expected("ON and what the privilege is on (a role is granted with " + string(verb) + " role " + map[bool]string{false: "TO", true: "FROM"}[g.Revoke] + " somebody)")
	}
	var err error
	if g.Grantees, err = p.grantTo(verb); err != nil {
		return nil, err
	}
	if p.word(0) == "with" {
		return nil, fault.New(fault.Unsupported, "a role WITH ADMIN OPTION or GRANT OPTION is not supported; administrators grant roles")
	}
	return g, p.grantEnd(verb)
}

// roleDDL reads CREATE and DROP ROLE; nil when the statement is neither.
func (p *parser) roleDDL() (Statement, error) {
	create := p.word(0) == "create"
	if p.word(1) != "role" || !create && p.word(0) != "drop" {
		return nil, nil
	}
	p.pos += 2
	conditional := create && p.accept("if", "not", "exists") || !create && p.accept("if", "exists")
	var names []string
	for {
		name, err := p.looseName("the name of a role")
		if err != nil {
			return nil, err
		}
		if err := p.host(); err != nil {
			return nil, err
		}
		names = append(names, name)
		more, err := p.more(len(names))
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
	}
	if create {
		return &CreateRole{Names: names, IfNotExists: conditional}, p.end()
	}
	return &DropRole{Names: names, IfExists: conditional}, p.end()
}
