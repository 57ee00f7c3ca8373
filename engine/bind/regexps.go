package bind

import (
	"regexp"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"

	"sqe/fault"
)

// linearRegexp is a call of a regular expression function in the row executor. It
// takes time in proportion to the text and the pattern. go-mysql-server's own runs
// ICU as WebAssembly, which may need years for a pattern like (a+)+b, cannot be
// interrupted, and stops the whole process as soon as memory is collected.
type linearRegexp struct {
	sql.Expression
	name string
	last atomic.Pointer[compiledPattern]
}

type compiledPattern struct {
	pattern, flags string
	re             *regexp.Regexp
}

// regexpArguments says at which argument the position, the occurrence, the return
// option and the flags are; 0 is nowhere.
var regexpArguments = map[string]struct{ position, occurrence, option, flags int }{
	"regexp_like":    {flags: 2},
	"regexp_replace": {position: 3, occurrence: 4, flags: 5},
	"regexp_instr":   {position: 2, occurrence: 3, option: 4, flags: 5},
	"regexp_substr":  {position: 2, occurrence: 3, flags: 4},
}

const (
	maxPattern = 4096      // bytes
	maxMatches = 1_000_000 // in one value
)

// WithChildren implements sql.Expression.
func (l *linearRegexp) WithChildren(children ...sql.Expression) (sql.Expression, error) {
	e, err := l.Expression.WithChildren(children...)
	if err != nil {
		return nil, err
	}
	return &linearRegexp{Expression: e, name: l.name}, nil
}

// Eval implements sql.Expression. Every function is NULL when an argument is.
func (l *linearRegexp) Eval(ctx *sql.Context, row sql.Row) (any, error) {
	children := l.Children()
	values := make([]any, len(children))
	for i, c := range children {
		v, err := c.Eval(ctx, row)
		if err != nil || v == nil {
			return nil, err
		}
		values[i] = v
	}
	var failed error
	text := func(i int) string {
		if i >= len(values) {
			return ""
		}
		s, err := textOf(ctx, values[i])
		if err != nil {
			failed = err
		}
		return s
	}
	number := func(i, otherwise int) int {
		if i == 0 || i >= len(values) {
			return otherwise
		}
		v, _, err := types.Int32.Convert(ctx, values[i])
		n, ok := v.(int32)
		if err != nil || !ok {
			failed = fault.New(fault.OutOfRange, "an argument of %s is out of range", strings.ToUpper(l.name))
		}
		return int(n)
	}
	at := regexpArguments[l.name]
	s, pattern, flags := text(0), text(1), text(at.flags)
	position, occurrence, option := number(at.position, 1), number(at.occurrence, -1), number(at.option, 0)
	if failed != nil {
		return nil, failed
	}
	re, err := l.compile(ctx, pattern, flags)
	if err != nil {
		return nil, err
	}
	if l.name == "regexp_like" {
		if re.MatchString(s) {
			return int8(1), nil
		}
		return int8(0), nil
	}
	if position < 1 {
		return nil, fault.New(fault.BadStatement, "the position for %s begins at 1", strings.ToUpper(l.name))
	}
	from := 0
	for range position - 1 {
		if from >= len(s) {
			if l.name == "regexp_replace" && s == "" {
				break
			}
			return nil, fault.New(fault.BadStatement, "Index out of bounds in regular expression search")
		}
		_, n := utf8.DecodeRuneInString(s[from:])
		from += n
	}
	if l.name == "regexp_replace" {
		return l.replace(ctx, re, s, text(2), from, max(occurrence, 0))
	}
	occurrence = max(occurrence, 1)
	matches := re.FindAllStringIndex(s[from:], min(occurrence, maxMatches))
	found := occurrence <= len(matches)
	if l.name == "regexp_substr" {
		if !found {
			return nil, nil
		}
		m := matches[occurrence-1]
		return s[from+m[0] : from+m[1]], nil
	}
	if !found {
		return int32(0), nil
	}
	end := matches[occurrence-1][0]
	if option == 1 {
		end = matches[occurrence-1][1]
	}
	return int32(utf8.RuneCountInString(s[:from+end]) + 1), nil
}

// compile compiles a pattern, once as long as it stays the same.
func (l *linearRegexp) compile(ctx *sql.Context, pattern, flags string) (*regexp.Regexp, error) {
	if c := l.last.Load(); c != nil && c.pattern == pattern && c.flags == flags {
		return c.re, nil
	}
	if pattern == "" {
		return nil, fault.New(fault.BadStatement, "an empty pattern is no regular expression")
	}
	if len(pattern) > maxPattern {
		return nil, fault.New(fault.Limit, "a regular expression may be %d bytes long", maxPattern)
	}
	children := l.Children()
	left, leftForce := sql.GetCoercibility(ctx, children[0])
	right, rightForce := sql.GetCoercibility(ctx, children[1])
	collation, _ := sql.ResolveCoercibility(left, leftForce, right, rightForce)
	fold, modes := strings.HasSuffix(collation.String(), "_ci"), ""
	for _, f := range flags {
		switch f {
		case 'i':
			fold = true
		case 'c':
			fold = false
		case 'm':
			modes += "m"
		case 'n':
			modes += "s"
		case 'u': // lines end with a line feed alone: they do here
		default:
			return nil, fault.New(fault.BadStatement, "the flags of %s are c, i, m, n and u", strings.ToUpper(l.name))
		}
	}
	if fold {
		modes += "i"
	}
	full := pattern
	if modes != "" {
		full = "(?" + modes + ")" + pattern
	}
	re, err := regexp.Compile(full)
	if err != nil {
		// The text of the error holds the pattern, which may come from a column.
		return nil, fault.New(fault.BadStatement, "a regular expression is wrong, or uses look-around or back references, which are not supported")
	}
	l.last.Store(&compiledPattern{pattern: pattern, flags: flags, re: re})
	return re, nil
}

// replace replaces one match behind from, or all when occurrence is 0.
func (l *linearRegexp) replace(ctx *sql.Context, re *regexp.Regexp, s, by string, from, occurrence int) (any, error) {
	limit := occurrence
	if limit == 0 || limit > maxMatches {
		limit = maxMatches + 1
	}
	matches := re.FindAllStringSubmatchIndex(s[from:], limit)
	if len(matches) > maxMatches {
		return nil, fault.New(fault.Limit, "a regular expression is found more than %d times in one value", maxMatches)
	}
	var out strings.Builder
	done := 0
	for i, m := range matches {
		if occurrence > 0 && i != occurrence-1 {
			continue
		}
		out.WriteString(s[done : from+m[0]])
		done = from + m[1]
		if err := expand(&out, by, s[from:], m); err != nil {
			return nil, err
		}
		if out.Len() > maxText {
			return nil, errTooLong()
		}
	}
	out.WriteString(s[done:])
	if out.Len() > maxText {
		return nil, errTooLong()
	}
	return out.String(), stateOf(ctx).produce(int64(out.Len()))
}

// expand writes a replacement: $1 is what the first group matched, a backslash
// takes the next character as it is.
func expand(out *strings.Builder, by, s string, m []int) error {
	groups := len(m)/2 - 1
	for i := 0; i < len(by); i++ {
		switch {
		case by[i] == '\\' && i+1 < len(by):
			i++
			out.WriteByte(by[i])
		case by[i] == '$':
			n, digits := 0, 0
			for i+1 < len(by) && by[i+1] >= '0' && by[i+1] <= '9' && (digits == 0 || n*10+int(by[i+1]-'0') <= groups) {
				n, digits, i = n*10+int(by[i+1]-'0'), digits+1, i+1
			}
			if digits == 0 || n > groups {
				return fault.New(fault.BadStatement, "the replacement names a group that the regular expression does not have; write \\$ for a dollar sign")
			}
			if m[2*n] >= 0 {
				out.WriteString(s[m[2*n]:m[2*n+1]])
			}
		default:
			out.WriteByte(by[i])
		}
		if out.Len() > maxText {
			return errTooLong()
		}
	}
	return nil
}
