package parse

import (
	"strings"
	"unicode/utf8"
)

// clause is where in a statement a name stands, as far as folding needs it.
type clause uint8

const (
	expression clause = iota // column names
	tables                   // table names: after FROM, JOIN, INTO, ...
	databases                // database names: SHOW TABLES FROM, ...
)

// level is one open bracket, or the statement itself.
type level struct {
	clause clause
	// from says that a comma leads to another table: FROM a JOIN b ON ..., c.
	from bool
	// call says that the bracket holds the arguments of a function, where FROM
	// (EXTRACT, TRIM) names no table.
	call bool
}

// tableWords are followed by a table name wherever they stand.
var tableWords = map[string]bool{
	"from": true, "join": true, "straight_join": true, "table": true, "tables": true, "view": true,
}

// firstWords are followed by a table name when they begin the statement; elsewhere
// they are functions or something else.
var firstWords = map[string]bool{"describe": true, "desc": true, "explain": true}

// between may stand between such a word and the name.
var between = map[string]bool{
	"if": true, "not": true, "exists": true, "lateral": true,
}

// exprWords end a list of tables.
var exprWords = map[string]bool{
	"where": true, "group": true, "having": true, "order": true, "limit": true, "on": true, "using": true, "set": true,
	"select": true, "values": true, "window": true, "partition": true, "fetch": true,
}

// fold rewrites tokens so that the MySQL grammar takes them: names of three and
// more parts become database.table (the levels joined by JoinDatabase), time
// travel clauses get the one spelling that it knows, and what its lexer would
// read differently is quoted. Text between tokens stays, comments become blanks.
type folder struct {
	text   string
	tokens []token
	out    strings.Builder
	copied int // text before this offset was written
	levels []level
	show   bool // the statement is SHOW
	// filtered says that SHOW ... WHERE was passed.
	filtered bool
	// inner says that the tokens are a part of a statement: the first word begins
	// none.
	inner bool
	// from says that the tokens begin with the name of a table.
	from bool
	// replaced has what is written in the place of single tokens.
	replaced map[int]string
	// trace, when set, gets the offset in the text for each offset in the output.
	trace func(out, in int)
}

func (f *folder) str(i int) string { return f.text[f.tokens[i].start:f.tokens[i].end] }

// lower is the keyword at token i in lower case, "" when it is no word.
func (f *folder) lower(i int) string {
	if i < 0 || i >= len(f.tokens) || f.tokens[i].kind != word {
		return ""
	}
	return strings.ToLower(f.str(i))
}

func (f *folder) is(i int, punctuation string) bool {
	return i >= 0 && i < len(f.tokens) && f.tokens[i].kind == punct && f.str(i) == punctuation
}

// name reports whether token i may be a part of a dotted name.
func (f *folder) name(i int) bool {
	return i < len(f.tokens) && (f.tokens[i].kind == word || f.tokens[i].kind == quoted)
}

// write puts s in the place of the tokens from..to-1.
func (f *folder) write(from, to int, s string) {
	f.blanks(f.tokens[from].start)
	if f.trace != nil {
		f.trace(f.out.Len(), f.tokens[from].start)
	}
	f.out.WriteString(s)
	f.copied = f.tokens[to-1].end
}

// blanks writes what stands between tokens up to offset end: a blank for whatever
// is there.
func (f *folder) blanks(end int) {
	if end > f.copied {
		between := f.text[f.copied:end]
		if strings.IndexFunc(between, func(r rune) bool { return r > ' ' }) < 0 {
			f.out.WriteString(between)
		} else {
			f.out.WriteByte(' ')
		}
		f.copied = end
	}
}

func (f *folder) top() *level { return &f.levels[len(f.levels)-1] }

// run folds all tokens and returns the text.
func (f *folder) run() string {
	f.levels = append(f.levels[:0], level{})
	if f.from {
		f.levels[0] = level{clause: tables, from: true}
	}
	f.show = !f.inner && f.lower(0) == "show"
	for i := 0; i < len(f.tokens); {
		i = f.step(i)
	}
	return f.out.String()
}

// step handles the token at i, or a name that begins there, and returns the index
// of the next one.
func (f *folder) step(i int) int {
	tok := f.tokens[i]
	s := f.str(i)
	replaced, ok := f.replaced[i]
	if ok && tok.kind != punct {
		f.write(i, i+1, replaced)
		return i + 1
	}
	switch tok.kind {
	case punct:
		if in := f.quantified(i); in != "" {
			f.write(i, i+2, in)
			return i + 2
		}
		switch s {
		case "(":
			l := level{clause: f.top().clause, from: f.top().clause == tables}
			if i > 0 && f.tokens[i-1].kind == word && !tableWords[f.lower(i-1)] && !exprWords[f.lower(i-1)] && f.lower(i-1) != "as" && f.lower(i-1) != "in" {
				l = level{call: true}
			}
			f.levels = append(f.levels, l)
		case ")":
			if len(f.levels) > 1 {
				f.levels = f.levels[:len(f.levels)-1]
			}
			if t := f.top(); t.clause == tables {
				t.clause = expression
			}
		case ",":
			if t := f.top(); t.from {
				t.clause = tables
			}
		case "-":
			// The grammar's lexer takes -- for a comment whatever follows it.
			if tok.after && f.is(i-1, "-") {
				f.write(i, i+1, " -")
				return i + 1
			}
		case "/":
			if tok.after && f.is(i-1, "/") {
				f.write(i, i+1, " /")
				return i + 1
			}
		}
		if ok {
			s = replaced
		}
		f.write(i, i+1, s)
		return i + 1
	case word:
		if n := f.timeTravel(i); n > 0 {
			return i + n
		}
		if !f.is(i-1, ".") && !f.is(i+1, ".") && f.keyword(i) {
			f.write(i, i+1, s)
			return i + 1
		}
		return f.chain(i)
	case quoted:
		return f.chain(i)
	case number:
		if t := f.top(); t.clause == tables && !t.call {
			t.clause = expression
		}
	}
	f.write(i, i+1, s)
	return i + 1
}

// quantified is the operator that the grammar knows for = ANY (query), = SOME
// (query) and <> ALL (query), "" when none of them stands at token i.
func (f *folder) quantified(i int) string {
	query := false
	switch f.lower(i + 3) {
	case "select", "with", "table", "values":
		query = true
	}
	if !f.is(i+2, "(") || !query {
		return ""
	}
	switch w := f.lower(i + 1); {
	case f.is(i, "=") && (w == "any" || w == "some"):
		return "IN"
	case (f.is(i, "<>") || f.is(i, "!=")) && w == "all":
		return "NOT IN"
	}
	return ""
}

// keyword notes what the keyword at i means for the names after it and reports
// whether it is one.
func (f *folder) keyword(i int) bool {
	w, t := f.lower(i), f.top()
	switch {
	case w == "from" && t.call:
		return true
	case w == "from" && f.show:
		t.clause, t.from = f.showTarget(i), false
		return true
	case w == "in" && f.show && len(f.levels) == 1 && !f.filtered:
		t.clause = f.showTarget(i)
		return true
	case i == 0 && !f.inner && firstWords[w]:
		t.clause, t.from = tables, false
		return true
	case (w == "database" || w == "schema") && f.show:
		t.clause = databases
		return true
	case between[w] && t.clause != expression:
		return true
	case tableWords[w]:
		t.clause, t.call = tables, false
		t.from = true
		return true
	case exprWords[w]:
		t.clause = expression
		f.filtered = true
		// After ON and USING a comma leads to the next table.
		if w != "on" && w != "using" && w != "partition" {
			t.from = false
		}
		if w == "select" {
			t.call = false
		}
		return true
	}
	return false
}

// showTarget says what FROM or IN of a SHOW statement at token i names.
func (f *folder) showTarget(i int) clause {
	for j := 1; j < i; j++ {
		switch f.lower(j) {
		case "columns", "fields", "index", "indexes", "keys":
			// SHOW COLUMNS FROM table FROM database
			for k := j + 1; k < i; k++ {
				if w := f.lower(k); w == "from" || w == "in" {
					return databases
				}
			}
			return tables
		}
	}
	return databases
}

// chain folds the dotted name that begins at token i.
func (f *folder) chain(i int) int {
	var parts []int
	j := i
	for {
		parts = append(parts, j)
		if f.is(j+1, ".") && f.name(j+2) {
			j += 2
			continue
		}
		break
	}
	end := j + 1
	star := f.is(end, ".") && f.is(end+1, "*")
	t := f.top()
	where := t.clause
	if f.is(end, "(") && where != databases {
		where = expression // a function
	}
	if star {
		where = tables // q.* is the name of a table
	}
	if where == tables && !star && !t.call {
		// What follows is an alias or a clause; a comma leads on.
		t.clause = expression
	}
	keep := len(parts) // parts that stay as they are
	switch {
	case where == databases:
		keep = 0
		t.clause = expression
	case where == tables && len(parts) > 2:
		keep = 1
	case where == expression && len(parts) > 3:
		keep = 2
	}
	var b strings.Builder
	if n := len(parts) - keep; n > 1 || n == 1 && keep > 0 && len(parts) > keep {
		levels := make([]string, 0, n)
		for _, p := range parts[:n] {
			levels = append(levels, unquoteName(f.str(p)))
		}
		b.WriteString(quoteName(JoinDatabase(levels...)))
		parts = parts[n:]
		if len(parts) > 0 {
			b.WriteByte('.')
		}
	}
	for k, p := range parts {
		if k > 0 {
			b.WriteByte('.')
		}
		b.WriteString(f.plain(p))
	}
	f.write(i, end, b.String())
	return end
}

// plain is the token at i, quoted when the grammar's lexer does not take it.
func (f *folder) plain(i int) string {
	s := f.str(i)
	if f.tokens[i].kind != word {
		return s
	}
	for k := 0; k < len(s); k++ {
		if s[k] == '$' || s[k] >= utf8.RuneSelf {
			return quoteName(s)
		}
	}
	return s
}

// VersionPrefix marks the value of FOR VERSION AS OF, a snapshot id or the name
// of a branch or tag, in the folded text; without it a time is meant.
const VersionPrefix = "version:"

// timeTravel folds FOR {TIMESTAMP | SYSTEM_TIME | VERSION | SYSTEM_VERSION} AS OF
// and returns how many tokens it took, 0 when there is no such clause at i.
func (f *folder) timeTravel(i int) int {
	if f.lower(i) != "for" || f.lower(i+2) != "as" || f.lower(i+3) != "of" {
		return 0
	}
	switch f.lower(i + 1) {
	case "timestamp", "system_time":
		f.write(i, i+4, "FOR SYSTEM_TIME AS OF")
		if f.lower(i+4) == "timestamp" && i+5 < len(f.tokens) && f.tokens[i+5].kind == str {
			f.write(i+4, i+6, " "+f.str(i+5))
			return 6
		}
		return 4
	case "version", "system_version":
		f.write(i, i+4, "FOR VERSION AS OF")
		if i+4 < len(f.tokens) {
			switch s := f.str(i + 4); f.tokens[i+4].kind {
			case number:
				f.write(i+4, i+5, " '"+VersionPrefix+s+"'")
				return 5
			case str:
				if s[0] == '\'' || s[0] == '"' {
					f.write(i+4, i+5, " "+s[:1]+VersionPrefix+s[1:])
					return 5
				}
			}
		}
		return 4
	}
	return 0
}
