package parse

import (
	"bytes"
	"slices"
	"strings"
)

// maxFingerprint bounds a fingerprint, in bytes.
const maxFingerprint = 8 << 10

// unreadable is the fingerprint of text that has no tokens.
const unreadable = "(unreadable statement)"

// Fingerprint is the statement for logs, the audit log and the process list: every
// literal is ?, lists of literals are one ?, equal lists in brackets (the rows of
// VALUES) are one, comments are dropped and blanks are single. It depends on tokens
// only, so that text which does not parse lets no literal through either; text
// without tokens gives a constant. The text of a policy (USING) is one ?. Names in
// quotes of a first statement about policies or tags are names, when it parses;
// comments, values, times and patterns are not.
func Fingerprint(text string) string {
	if len(text) > MaxBytes {
		return unreadable
	}
	names := quotedNames(text)
	l := &lexer{text: text}
	var b []byte
	var open []int // where in b the open brackets are
	prev, comma := "", false
	hidden := 0 // open brackets around and inside the text of a policy
	for {
		tok, ok, err := l.next()
		if err != nil {
			return unreadable
		}
		if !ok {
			break
		}
		s := text[tok.start:tok.end]
		if hidden > 0 {
			switch {
			case tok.kind == punct && s == "(":
				hidden++
			case tok.kind == punct && s == ")":
				hidden--
			}
			if hidden > 0 {
				continue
			}
			b = append(b, '?')
		}
		switch {
		case l.braces && tok.kind == punct && s == "(" && strings.EqualFold(prev, "using"):
			hidden = 1
		case names[tok.start]:
			s = quoteName(unquoteString(s))
		case tok.kind == str, tok.kind == number, tok.kind == param:
			s = "?"
		case tok.kind == word && digit(s[0]):
			// A word that starts with a digit is a name by MySQL's leave only; it is
			// more often a number that was mistyped.
			s = "?"
		}
		if s == "," && !comma {
			comma = true
			continue
		}
		if comma {
			comma = false
			if prev == "?" && s == "?" {
				continue
			}
			b = append(b, ',')
			prev = ","
		}
		if len(b) >= maxFingerprint {
			return strings.ToValidUTF8(string(b[:maxFingerprint]), "") + "..."
		}
		if gap(prev, s) {
			b = append(b, ' ')
		}
		b = append(b, s...)
		prev = s
		if tok.kind != punct {
			continue
		}
		switch s {
		case "(":
			open = append(open, len(b)-1)
		case ")":
			if len(open) == 0 {
				continue
			}
			from := open[len(open)-1]
			open = open[:len(open)-1]
			if repeatsRow(b, from) {
				b = b[:from-2]
			}
		}
	}
	if hidden > 0 {
		b = append(b, '?')
	}
	return strings.ToValidUTF8(strings.TrimRight(string(b), " ;"), "?")
}

// repeatsRow reports whether the list that begins at from and ends the text is
// the one before it, in the rows of VALUES.
func repeatsRow(b []byte, from int) bool {
	list := b[from:]
	if from < len(list)+2 || !bytes.HasSuffix(b[:from], []byte(", ")) || !bytes.HasSuffix(b[:from-2], list) {
		return false
	}
	before := b[:from-2-len(list)]
	const values = "values "
	return bytes.HasSuffix(before, []byte(", ")) || len(before) >= len(values) && bytes.EqualFold(before[len(before)-len(values):], []byte(values))
}

// quotedNames are the starts of the strings that are names in the first statement,
// if it is one about policies or tags.
func quotedNames(text string) (names map[int]bool) {
	l := &lexer{text: text}
	head, ok, lexErr := l.next()
	begins := []string{"create", "alter", "drop", "show", "call"}
	if lexErr != nil || !ok || !slices.Contains(begins, strings.ToLower(text[head.start:head.end])) || !strings.ContainsAny(text, `'"`) {
		return nil
	}
	tokens, _, err := cut(text)
	if err != nil {
		return nil
	}
	defer func() {
		if recover() != nil { // as in Parse
			names = nil
		}
	}()
	p := &parser{text: text, tokens: tokens}
	stmt, _, err := p.own()
	if err != nil {
		return nil
	}
	switch stmt.(type) {
	case *CreatePolicy, *AlterPolicy, *DropPolicy, *ShowPolicies, *ShowCreatePolicy, *ShowMaskingPolicies, *ShowEffectivePolicy,
		*AlterTags, *AlterMaskingPolicy, *ShowTags, *ReprojectTags:
		return p.named
	}
	return nil
}

// gap reports whether a blank stands between two tokens of a fingerprint.
func gap(prev, next string) bool {
	switch next {
	case ",", ")", ".", ";":
		return false
	}
	switch prev {
	case "", "(", ".":
		return false
	}
	return true
}
