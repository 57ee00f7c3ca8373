package parse

import (
	"math"
	"strconv"
	"strings"

	"sqe/fault"
)

// own parses the statements that have a grammar of their own. ok is false when
// the statement is none of them; then nothing was taken.
func (p *parser) own() (stmt Statement, ok bool, err error) {
	start := p.pos
	if err := p.refusedUsers(); err != nil {
		return nil, false, err
	}
	switch p.word(0) {
	case "explain", "describe", "desc":
		stmt, err = p.explain()
	case "show":
		stmt, err = p.show()
	case "kill":
		stmt, err = p.kill()
	case "prepare":
		stmt, err = p.prepare()
	case "execute":
		stmt, err = p.execute()
	case "deallocate", "drop":
		if p.word(1) == "role" {
			stmt, err = p.roleDDL()
			break
		}
		if p.word(1) != "prepare" {
			stmt, err = p.policyDDL()
			break
		}
		p.pos += 2
		d := &Deallocate{}
		d.Name, err = p.identifier("the name of a prepared statement")
		if err == nil {
			err = p.end()
		}
		stmt = d
	case "set":
		if p.word(1) == "role" {
			p.pos += 2
			stmt, err = p.setRole()
		}
	case "use":
		p.pos++
		stmt, err = p.use()
	case "create":
		if stmt, err = p.roleDDL(); stmt == nil && err == nil {
			stmt, err = p.policyDDL()
		}
	case "grant", "revoke", "deny":
		stmt, err = p.grant()
	case "check":
		stmt, err = p.checkAccess()
	case "alter":
		if p.word(1) == "table" {
			stmt, err = p.alterTable()
			break
		}
		stmt, err = p.policyDDL()
	case "call":
		if stmt, err = p.cleanupTraversal(); stmt == nil && err == nil {
			stmt, err = p.call()
		}
	}
	if err == nil && stmt == nil {
		p.pos = start
		stmt, err = p.write()
	}
	if err != nil {
		return nil, false, err
	}
	if stmt == nil {
		p.pos = start
		return nil, false, nil
	}
	return stmt, true, nil
}

// beginsStatement reports whether a statement that can be explained begins here.
func (p *parser) beginsStatement() bool {
	switch p.word(0) {
	case "select", "with", "values", "insert", "update", "delete", "replace", "merge":
		return true
	case "table":
		return p.pos+1 < len(p.tokens)
	}
	return p.pos < len(p.tokens) && p.tokens[p.pos].kind == punct && p.str(p.pos) == "("
}

func (p *parser) explain() (Statement, error) {
	p.pos++
	start := p.pos
	if s, err := p.explainGrant(); s != nil || err != nil {
		return s, err
	}
	if p.accept("policy") {
		json, formatted := false, false
		if p.word(0) == "format" {
			f, err := p.format()
			if err != nil {
				return nil, err
			}
			if f != "json" && f != "traditional" {
				return nil, fault.New(fault.Unsupported, "EXPLAIN POLICY has the formats TRADITIONAL and JSON")
			}
			json, formatted = f == "json", true
		}
		as, err := p.impersonation()
		if err != nil {
			return nil, err
		}
		if p.beginsStatement() || formatted || as != nil {
			inner, err := p.explained()
			if err != nil {
				return nil, err
			}
			return &ExplainPolicy{JSON: json, As: as, Stmt: inner}, nil
		}
		p.pos = start // a table that is called policy
		return nil, nil
	}
	e := &Explain{}
	for {
		switch {
		case p.word(0) == "format" && p.pos+1 < len(p.tokens):
			f, err := p.format()
			if err != nil {
				return nil, err
			}
			e.Format = f
			continue
		case p.word(0) == "analyze" && p.pos+1 < len(p.tokens):
			p.pos++
			e.Analyze = true
			continue
		case p.word(0) == "extended" || p.word(0) == "partitions" || p.word(0) == "plan":
			if p.pos+1 < len(p.tokens) {
				p.pos++
				if p.beginsStatement() {
					continue
				}
				p.pos--
			}
		}
		break
	}
	if !p.beginsStatement() && !e.Analyze && e.Format == "" {
		return nil, nil // EXPLAIN table
	}
	inner, err := p.explained()
	if err != nil {
		return nil, err
	}
	e.Stmt = inner
	return e, nil
}

// explained is the statement behind EXPLAIN: a query, or one that changes rows.
func (p *parser) explained() (Statement, error) {
	if !p.beginsStatement() {
		return nil, p.expected("SELECT, WITH, TABLE, VALUES or another statement")
	}
	if s, err := p.dml(); err != nil {
		return nil, err
	} else if s != nil {
		return s, p.countTables(nil)
	}
	if err := p.refused(); err != nil {
		return nil, err
	}
	return p.sql()
}

// format reads FORMAT [=] name.
func (p *parser) format() (string, error) {
	p.pos++
	p.acceptPunct("=")
	if p.pos < len(p.tokens) && (p.tokens[p.pos].kind == word || p.tokens[p.pos].kind == str) {
		p.pos++
		return strings.ToLower(strings.Trim(p.str(p.pos-1), `'"`)), nil
	}
	return "", p.expected("the name of a format (JSON, TREE, TRADITIONAL)")
}

func (p *parser) show() (Statement, error) {
	switch {
	case p.accept("show", "policy"):
		if !p.accept("status") {
			return nil, p.expected("STATUS")
		}
		return &ShowPolicyStatus{}, p.end()
	case p.accept("show", "processlist"):
		return &ShowProcesslist{}, p.end()
	case p.accept("show", "full", "processlist"):
		return &ShowProcesslist{Full: true}, p.end()
	case p.accept("show", "grants"):
		return p.showGrants()
	}
	if s, err := p.showAccess(); s != nil || err != nil {
		return s, err
	}
	return p.showPolicies()
}

func (p *parser) kill() (Statement, error) {
	p.pos++
	k := &Kill{}
	if !p.accept("connection") {
		k.Query = p.accept("query")
	}
	if p.pos >= len(p.tokens) || p.tokens[p.pos].kind != number {
		return nil, p.expected("the id of a connection (SHOW PROCESSLIST lists them)")
	}
	id, err := strconv.ParseUint(p.str(p.pos), 10, 64)
	if err != nil || id > math.MaxUint32 {
		return nil, p.expected("the id of a connection (SHOW PROCESSLIST lists them)")
	}
	p.pos++
	k.ID = uint32(id)
	return k, p.end()
}

// identifier reads a name of one part.
func (p *parser) identifier(what string) (string, error) {
	if p.pos < len(p.tokens) && (p.tokens[p.pos].kind == word || p.tokens[p.pos].kind == quoted) {
		p.pos++
		return unquoteName(p.str(p.pos - 1)), nil
	}
	return "", p.expected(what)
}

// userVariable reads @name and returns the name.
func (p *parser) userVariable() (string, bool) {
	if p.pos >= len(p.tokens) || p.tokens[p.pos].kind != variable {
		return "", false
	}
	s := p.str(p.pos)[1:]
	if strings.HasPrefix(s, "@") || s == "" {
		return "", false
	}
	p.pos++
	if s[0] == '\'' || s[0] == '"' {
		return strings.Trim(s, s[:1]), true
	}
	return unquoteName(s), true
}

func (p *parser) prepare() (Statement, error) {
	p.pos++
	out := &Prepare{}
	var err error
	if out.Name, err = p.identifier("the name of a prepared statement"); err != nil {
		return nil, err
	}
	if !p.accept("from") {
		return nil, p.expected("FROM")
	}
	if name, ok := p.userVariable(); ok {
		out.Var = name
		return out, p.end()
	}
	if p.pos < len(p.tokens) && p.tokens[p.pos].kind == str {
		if s := p.str(p.pos); s[0] == '\'' || s[0] == '"' {
			p.pos++
			out.Text = unquoteString(s)
			return out, p.end()
		}
	}
	return nil, p.expected("a string or a user variable that holds the statement")
}

// unquoteString is the value of a string literal.
func unquoteString(s string) string {
	quote := s[0]
	s = s[1 : len(s)-1]
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == quote:
			i++ // doubled
			b.WriteByte(quote)
		case s[i] == '\\' && i+1 < len(s):
			i++
			switch s[i] {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case 'r':
				b.WriteByte('\r')
			case 'b':
				b.WriteByte('\b')
			case '0':
				b.WriteByte(0)
			case 'Z':
				b.WriteByte(26)
			case '%', '_':
				b.WriteByte('\\')
				b.WriteByte(s[i])
			default:
				b.WriteByte(s[i])
			}
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

func (p *parser) execute() (Statement, error) {
	p.pos++
	out := &ExecuteStmt{}
	var err error
	if out.Name, err = p.identifier("the name of a prepared statement"); err != nil {
		return nil, err
	}
	if p.accept("using") {
		for {
			name, ok := p.userVariable()
			if !ok {
				return nil, p.expected("a user variable (@name)")
			}
			out.Vars = append(out.Vars, name)
			if !p.acceptPunct(",") {
				break
			}
		}
	}
	return out, p.end()
}

func (p *parser) setRole() (Statement, error) {
	out := &SetRole{}
	switch {
	case p.accept("all"):
		if p.word(0) == "except" {
			return nil, fault.New(fault.Unsupported, "SET ROLE ALL EXCEPT is not supported; name the roles")
		}
		out.All = true
	case p.accept("none"):
		out.None = true
	case p.accept("default"):
		out.Default = true
	default:
		for {
			if p.pos < len(p.tokens) && p.tokens[p.pos].kind == str {
				out.Names = append(out.Names, unquoteString(p.str(p.pos)))
				p.pos++
			} else {
				name, err := p.identifier("the name of a role, ALL, NONE or DEFAULT")
				if err != nil {
					return nil, err
				}
				out.Names = append(out.Names, name)
			}
			if err := p.host(); err != nil {
				return nil, err
			}
			if !p.acceptPunct(",") {
				break
			}
		}
	}
	return out, p.end()
}

func (p *parser) use() (Statement, error) {
	var levels []string
	for {
		l, err := p.identifier("the name of a database")
		if err != nil {
			return nil, err
		}
		levels = append(levels, l)
		if !p.acceptPunct(".") {
			break
		}
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	if len(levels) == 1 {
		// One name is a whole database name, as SHOW DATABASES prints it.
		return &Use{Database: levels[0]}, nil
	}
	return &Use{Database: JoinDatabase(levels...)}, nil
}
