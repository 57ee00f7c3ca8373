package eval

import (
	"errors"
	"regexp"
	"slices"
	"strings"
)

var (
	errMacro     = errors.New("it uses an expression ${{...}} that is not known")
	errAttribute = errors.New("it uses an attribute that the user does not have")
	errPlace     = errors.New("it uses an expression ${{...}} inside a quoted name or a comment")
)

var (
	dotted  = regexp.MustCompile(`^(USER|TAG|REQ)\.([A-Za-z_][A-Za-z0-9_.\-]*)$`)
	listing = regexp.MustCompile(`^ctx\.([a-z]\w*?)(Csv)?(Q?)(?:\(\s*(?:'([^']*)'|"([^"]*)")?\s*\))?$`)
	number  = regexp.MustCompile(`^-?[0-9]{1,18}(\.[0-9]{1,18})?$`)
)

// Expand replaces the expressions ${{...}} in text. In SQL every value becomes a
// quoted string or, where the text does not ask for quotes and the value is
// written like one, a number; a list becomes its quoted members, an empty list
// NULL. Ranger inserts the bare text, which lets an attribute change the SQL. A name
// or attribute that holds characters of patterns is refused where it is a part of one.
func (q *Request) Expand(text string, sql bool) (string, error) {
	if sql {
		return q.expandSQL(text)
	}
	var b strings.Builder
	for {
		start := strings.Index(text, "${{")
		if start < 0 {
			b.WriteString(text)
			return b.String(), nil
		}
		end := strings.Index(text[start:], "}}")
		if end < 0 {
			return "", errMacro
		}
		values, _, err := q.value(strings.TrimSpace(text[start+3 : start+end]))
		switch {
		case err != nil:
			return "", err
		case len(values) != 1:
			return "", errMacro
		}
		b.WriteString(text[:start])
		b.WriteString(values[0])
		text = text[start+end+2:]
	}
}

func (q *Request) expandSQL(text string) (string, error) {
	if !strings.Contains(text, "${{") && !InPattern(text) {
		return text, nil
	}
	return q.walk(text, func(p *place, expr string, name bool) (string, error) {
		if name {
			return "", p.admits(q.Subject.User)
		}
		values, quoted, err := q.value(expr)
		if err == nil {
			err = p.admits(values...)
		}
		switch {
		case err != nil:
			return "", err
		case p.quote == '\'':
			if len(values) != 1 || quoted {
				return "", errMacro
			}
			return escape(values[0]), nil
		case p.quote != 0:
			return "", errPlace
		}
		return literals(values, quoted), nil
	})
}

// walk follows an SQL text. It calls put for each expression ${{...}}, which is replaced
// by what put gives, and with name set for each function that gives the name of who
// asks.
func (q *Request) walk(text string, put func(p *place, expr string, name bool) (string, error)) (string, error) {
	var b strings.Builder
	p := newPlace(text)
	for i := 0; i < len(text); {
		if strings.HasPrefix(text[i:], "${{") {
			end := strings.Index(text[i:], "}}")
			if end < 0 {
				return "", errMacro
			}
			s, err := put(p, strings.TrimSpace(text[i+3:i+end]), false)
			if err != nil {
				return "", err
			}
			b.WriteString(s)
			i += end + 2
			continue
		}
		c := text[i]
		if p.quote == 0 && isWord(c) {
			from := i
			for i < len(text) && isWord(text[i]) {
				i++
			}
			w := strings.ToLower(text[from:i])
			if parentheses, ok := nameFunctions[w]; ok && (!parentheses || strings.HasPrefix(strings.TrimSpace(text[i:]), "(")) {
				if _, err := put(p, "", true); err != nil {
					return "", err
				}
			}
			p.word(w)
			b.WriteString(text[from:i])
			continue
		}
		switch {
		case p.quote != 0 && c == '\\' && p.quote != '`' && i+1 < len(text):
			b.WriteByte(c)
			i++
			c = text[i]
		case p.quote == c:
			p.quote = 0
		case p.quote == 0 && (c == '\'' || c == '"' || c == '`'):
			p.quote = c
		case p.quote == 0 && (c == '#' || strings.HasPrefix(text[i:], "--") || strings.HasPrefix(text[i:], "/*")):
			return "", errPlace
		case p.quote == 0:
			p.symbol(c)
		}
		b.WriteByte(c)
		i++
	}
	return b.String(), nil
}

func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `'`, `''`, "\x00", `\0`).Replace(s)
}

func literals(values []string, quoted bool) string {
	if len(values) == 0 {
		return "NULL"
	}
	out := make([]string, len(values))
	for i, v := range values {
		if out[i] = v; quoted || !number.MatchString(v) {
			out[i] = "'" + escape(v) + "'"
		}
	}
	return strings.Join(out, ",")
}

// value evaluates one expression. quoted: the expression asks for quotes.
func (q *Request) value(expr string) (values []string, quoted bool, err error) {
	one := func(v string, ok bool) ([]string, bool, error) {
		if !ok {
			return nil, false, errAttribute
		}
		return []string{v}, quoted, nil
	}
	if m := dotted.FindStringSubmatch(expr); m != nil {
		switch {
		case m[1] == "USER" && m[2] == "_name":
			return one(q.Subject.User, true)
		case m[1] == "USER":
			v, ok := q.Subject.Attributes[m[2]]
			return one(v, ok)
		case m[1] == "TAG" && q.tag == nil:
			return nil, false, errAttribute
		case m[1] == "TAG" && m[2] == "_type":
			return one(q.tag.Type, true)
		case m[1] == "TAG":
			v, ok := q.tag.Attributes[m[2]]
			return one(v, ok)
		case m[1] == "REQ" && m[2] == "user":
			return one(q.Subject.User, true)
		}
	}
	m := listing.FindStringSubmatch(expandMacros(expr))
	if m == nil {
		return q.scripted(expr)
	}
	values, ok := q.list(m[1], m[4]+m[5], sorted(q.Subject.Groups), q.Subject.Active)
	switch {
	case !ok:
		return q.scripted(expr)
	case strings.HasSuffix(m[1], "Attr") && len(values) == 0:
		return nil, false, errAttribute
	}
	return values, m[3] == "Q" || strings.HasSuffix(m[1], "Names"), nil
}

// scripted evaluates an expression that is no plain attribute or macro as a
// script.
func (q *Request) scripted(expr string) ([]string, bool, error) {
	if strings.Contains(expr, "_Q") || strings.Contains(expr, "Q(") {
		return nil, false, errMacro // would be quoted twice
	}
	s, err := compileScript(expr)
	if err != nil {
		return nil, false, errMacro
	}
	values, err := s.text(q)
	if err != nil {
		return nil, false, errMacro
	}
	return values, false, nil
}

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}
