package parse

// ShowPolicies is SHOW POLICIES [ON TABLE table | ON TAG tag] [FOR {USER | ROLE |
// GROUP} name] [LIKE 'pattern'].
type ShowPolicies struct {
	Table *TableRef
	Tag   string
	For   *Grantee
	Like  *string
}

// ShowCreatePolicy is SHOW CREATE POLICY name.
type ShowCreatePolicy struct{ Name string }

// ShowMaskingPolicies is SHOW MASKING POLICIES, or SHOW MASKING POLICY [name].
type ShowMaskingPolicies struct{ Name string }

// ShowEffectivePolicy is SHOW EFFECTIVE POLICY [FOR USER name] ON [TABLE] table.
// User is "" for oneself.
type ShowEffectivePolicy struct {
	User  string
	Table TableRef
}

func (*ShowPolicies) statement()        {}
func (*ShowCreatePolicy) statement()    {}
func (*ShowMaskingPolicies) statement() {}
func (*ShowEffectivePolicy) statement() {}

// showPolicies parses the SHOW statements about policies and tags; nil when the
// statement is none of them.
func (p *parser) showPolicies() (Statement, error) {
	var err error
	switch {
	case p.accept("show", "policies"):
		return p.policyList()
	case p.accept("show", "create", "policy"):
		s := &ShowCreatePolicy{}
		if s.Name, err = p.looseName("the name of a policy"); err != nil {
			return nil, err
		}
		return s, p.end()
	case p.accept("show", "masking", "policies"):
		return &ShowMaskingPolicies{}, p.end()
	case p.accept("show", "masking", "policy"):
		s := &ShowMaskingPolicies{}
		if p.pos < len(p.tokens) {
			if s.Name, err = p.looseName("the name of a policy"); err != nil {
				return nil, err
			}
		}
		return s, p.end()
	case p.accept("show", "effective", "policy"):
		s := &ShowEffectivePolicy{}
		if p.accept("for") {
			p.accept("user")
			if s.User, err = p.looseName("the name of a user"); err != nil {
				return nil, err
			}
		}
		if s.Table, err = p.onTable(); err != nil {
			return nil, err
		}
		return s, p.end()
	case p.accept("show", "tags"):
		s := &ShowTags{}
		if s.Table, err = p.onTable(); err != nil {
			return nil, err
		}
		return s, p.end()
	}
	return nil, nil
}

// onTable reads ON [TABLE] table.
func (p *parser) onTable() (TableRef, error) {
	if !p.accept("on") {
		return TableRef{}, p.expected("ON and the name of a table")
	}
	if p.word(0) == "table" && p.nameAhead(1) {
		p.pos++
	}
	return p.tableRef()
}

func (p *parser) policyList() (Statement, error) {
	s := &ShowPolicies{}
	var err error
	switch {
	case p.accept("on", "tag"):
		if s.Tag, err = p.looseName("the name of a tag"); err != nil {
			return nil, err
		}
	case p.word(0) == "on":
		ref, err := p.onTable()
		if err != nil {
			return nil, err
		}
		s.Table = &ref
	}
	if p.accept("for") {
		list, err := p.grantees(false)
		if err != nil {
			return nil, err
		}
		if len(list) > 1 {
			return nil, p.expected("one principal")
		}
		s.For = &list[0]
	}
	if p.accept("like") {
		pattern, err := p.textValue("a pattern in quotes")
		if err != nil {
			return nil, err
		}
		s.Like = &pattern
	}
	return s, p.end()
}
