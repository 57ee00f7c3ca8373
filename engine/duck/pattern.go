package duck

import "strings"

// lineEnds are the characters that ICU's dot does not match, and before the last of
// which its dollar does, for a class of RE2.
const lineEnds = `\n\x{0b}\x{0c}\r\x{85}\x{2028}\x{2029}`

// portablePattern translates a regular expression whose meaning is certain from
// ICU's syntax, which MySQL uses, to RE2's. What the two understand differently is
// not accepted.
func portablePattern(p string) (string, bool) {
	t := patternTranslator{in: []rune(p)}
	t.out.WriteString("(?s)")
	for t.at < len(t.in) {
		if !t.next() {
			return "", false
		}
	}
	return t.out.String(), t.depth == 0
}

// patternTranslator translates one regular expression from left to right.
type patternTranslator struct {
	in  []rune
	at  int // the next rune of in
	out strings.Builder
	// depth counts the open groups.
	depth int
	// repeatable: a quantifier may follow what was translated last.
	repeatable bool
}

// next translates one element: a character, an escape, a class, a bracket of a group, an
// anchor or a quantifier. false: it is none whose meaning is certain.
func (t *patternTranslator) next() bool {
	r := t.in[t.at]
	t.at++
	switch {
	case literalRune(r):
		return t.element(string(r), true)
	case r == '\\':
		return t.escape()
	case r == '.':
		return t.element("[^"+lineEnds+"]", true)
	case r == '[':
		return t.class()
	case r == '(':
		if n := t.peek(); n == '?' || n == '*' {
			return false
		}
		t.depth++
		return t.element("(?:", false)
	case r == ')':
		t.depth--
		return t.depth >= 0 && t.element(")", true)
	case r == '|':
		return t.element("|", false)
	case r == '^' && (t.at == 1 || t.in[t.at-2] == '(' || t.in[t.at-2] == '|'):
		return t.element(`\A`, false)
	case r == '$' && (t.at == len(t.in) || t.peek() == '|') && t.depth == 0:
		return t.element(`(?:\r\n|[`+lineEnds+`])?\z`, false)
	case r == '*' || r == '+' || r == '?':
		return t.repeatable && t.element(string(r), false)
	case r == '{':
		return t.repeatable && t.count()
	}
	return false
}

// element writes what an element became.
func (t *patternTranslator) element(text string, repeatable bool) bool {
	t.out.WriteString(text)
	t.repeatable = repeatable
	return true
}

// peek is the next rune, 0 at the end.
func (t *patternTranslator) peek() rune {
	if t.at < len(t.in) {
		return t.in[t.at]
	}
	return 0
}

// escape translates what follows a backslash.
func (t *patternTranslator) escape() bool {
	r := t.peek()
	t.at++
	switch {
	case r == '/':
		return t.element("/", true)
	case r != 0 && strings.ContainsRune(`\.*+?()[]{}|^$-`, r):
		return t.element(`\`+string(r), true)
	}
	return false
}

// class translates a class of characters, whose opening bracket was read.
func (t *patternTranslator) class() bool {
	t.out.WriteByte('[')
	if t.peek() == '^' {
		t.out.WriteByte('^')
		t.at++
	}
	first := t.at
	for ; t.at < len(t.in) && t.in[t.at] != ']'; t.at++ {
		switch r := t.in[t.at]; {
		case r == '-':
			// Only as a range between two letters or digits.
			if t.at == first || t.at+1 == len(t.in) || !alphanumeric(t.in[t.at-1]) || !alphanumeric(t.in[t.at+1]) {
				return false
			}
			t.out.WriteByte('-')
		case literalRune(r) && r != '&':
			t.out.WriteRune(r)
		case strings.ContainsRune(".*+?(){}|", r):
			t.out.WriteByte('\\')
			t.out.WriteRune(r)
		default:
			return false
		}
	}
	if t.at == len(t.in) || t.at == first {
		return false
	}
	t.at++
	return t.element("]", true)
}

// count translates a quantifier of numbers, whose opening brace was read.
func (t *patternTranslator) count() bool {
	const longest = 7 // "999,999"
	near := string(t.in[t.at:min(t.at+longest+1, len(t.in))])
	n := strings.IndexFunc(near, func(r rune) bool { return r != ',' && (r < '0' || r > '9') })
	if n < 1 || near[n] != '}' {
		return false
	}
	body := near[:n]
	if body[0] == ',' || strings.Count(body, ",") > 1 {
		return false
	}
	t.at += n + 1
	return t.element("{"+body+"}", false)
}

// literalRune reports whether a character stands for itself in both syntaxes.
func literalRune(r rune) bool {
	return r == ' ' || r == '_' || r >= 0x80 || strings.ContainsRune("-:/@,;!%&=~\"'<>#`", r) || alphanumeric(r)
}

func alphanumeric(r rune) bool {
	return ('0' <= r && r <= '9') || ('a' <= r && r <= 'z') || ('A' <= r && r <= 'Z')
}
