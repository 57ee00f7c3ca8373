package parse

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// The procedures of CALL system.
const (
	RollbackToSnapshot  = "rollback_to_snapshot"
	RollbackToTimestamp = "rollback_to_timestamp"
	SetCurrentSnapshot  = "set_current_snapshot"
	ExpireSnapshots     = "expire_snapshots"
	RewriteDataFiles    = "rewrite_data_files"
	RewriteManifests    = "rewrite_manifests"
	RemoveOrphanFiles   = "remove_orphan_files"
)

// Call is CALL [catalog.]system.procedure(argument, ...), with arguments by place or
// by name (name => value), as Iceberg's procedures for Spark have them. What a
// procedure does not have is zero.
type Call struct {
	// Catalog is "" when none was named.
	Catalog   string
	Procedure string
	Table     TableRef
	// Snapshot is that of rollback_to_snapshot and set_current_snapshot; 0 when Ref,
	// a branch or tag, was given.
	Snapshot int64
	Ref      string
	// Time is that of rollback_to_timestamp (timestamp), and older_than of
	// expire_snapshots and remove_orphan_files; nil when it was not given. UTC.
	Time *time.Time
	// RetainLast and Snapshots are those of expire_snapshots; 0 and nil: not given.
	RetainLast int64
	Snapshots  []int64
	// DryRun of remove_orphan_files lists files and removes none.
	DryRun bool
	// Strategy (binpack, sort), SortOrder, Where, the text of a condition, and
	// Options (map('key', 'value', ...)) are those of rewrite_data_files.
	Strategy  string
	SortOrder string
	Where     string
	Options   []Property
}

func (*Call) statement() {}

// procedureArguments are the arguments of each procedure in their places.
var procedureArguments = map[string][]string{
	RollbackToSnapshot:  {"table", "snapshot_id"},
	RollbackToTimestamp: {"table", "timestamp"},
	SetCurrentSnapshot:  {"table", "snapshot_id", "ref"},
	ExpireSnapshots:     {"table", "older_than", "retain_last", "snapshot_ids"},
	RewriteDataFiles:    {"table", "strategy", "sort_order", "options", "where"},
	RewriteManifests:    {"table"},
	RemoveOrphanFiles:   {"table", "older_than", "dry_run"},
}

// requiredArguments must be given; set_current_snapshot needs one of two.
var requiredArguments = map[string][]string{
	RollbackToSnapshot:  {"snapshot_id"},
	RollbackToTimestamp: {"timestamp"},
}

// procedure parses CALL of a procedure of system; nil for another one.
func (p *parser) procedure() (Statement, error) {
	start := p.pos
	p.pos++
	path, err := p.identPath("the name of a procedure")
	if err != nil || len(path) < 2 || !strings.EqualFold(path[len(path)-2], "system") {
		p.pos = start
		return nil, nil
	}
	c := &Call{Procedure: strings.ToLower(path[len(path)-1])}
	names, ok := procedureArguments[c.Procedure]
	if !ok || len(path) > 3 {
		return nil, refuse("this procedure", "there are system.rollback_to_snapshot, rollback_to_timestamp, set_current_snapshot, expire_snapshots, "+
			"rewrite_data_files, rewrite_manifests, remove_orphan_files and reproject_column_tags")
	}
	if len(path) == 3 {
		c.Catalog = path[0]
	}
	if params, err := checkLiterals(p.tokens); err != nil {
		return nil, err
	} else if params > 0 {
		return nil, p.noParameters("CALL has no parameters")
	}
	if err := p.need("("); err != nil {
		return nil, err
	}
	given, err := p.arguments(c, names)
	if err != nil {
		return nil, err
	}
	for _, name := range append([]string{"table"}, requiredArguments[c.Procedure]...) {
		if !given[name] {
			p.pos--
			return nil, p.expected(name + " => ...")
		}
	}
	if c.Procedure == SetCurrentSnapshot && given["snapshot_id"] == given["ref"] {
		p.pos--
		return nil, p.expected("snapshot_id => ... or ref => ..., one of them")
	}
	return c, p.end()
}

// arguments reads the arguments and the closing bracket.
func (p *parser) arguments(c *Call, names []string) (given map[string]bool, err error) {
	given = map[string]bool{}
	if p.acceptPunct(")") {
		return given, nil
	}
	byName := false
	for n := 0; ; n++ {
		at, name := p.pos, ""
		switch {
		case p.nameAhead(0) && p.pos+2 < len(p.tokens) && p.str(p.pos+1) == "=" && p.str(p.pos+2) == ">":
			byName = true
			name = strings.ToLower(unquoteName(p.str(p.pos)))
			if !slices.Contains(names, name) {
				return nil, p.expected(strings.Join(names, ", "))
			}
			p.pos += 3
		case byName:
			return nil, p.expected("the name of an argument and =>")
		case n >= len(names):
			return nil, p.expected(")")
		default:
			name = names[n]
		}
		if given[name] {
			return nil, syntaxAt(p.text, p.tokens[at].start, "the argument stands twice")
		}
		given[name] = true
		if err := p.argument(c, name); err != nil {
			return nil, err
		}
		if !p.acceptPunct(",") {
			if !p.acceptPunct(")") {
				return nil, p.expected(", or )")
			}
			return given, nil
		}
	}
}

// argument reads the value of one argument.
func (p *parser) argument(c *Call, name string) (err error) {
	switch name {
	case "table":
		c.Table, err = p.tableText()
	case "snapshot_id":
		c.Snapshot, err = p.snapshotID()
	case "ref":
		c.Ref, err = p.textValue("the name of a branch or tag in quotes")
	case "timestamp", "older_than":
		c.Time, err = p.instant()
	case "retain_last":
		at := p.pos
		if c.RetainLast, err = p.integer("a number", 1<<31-1); err == nil && c.RetainLast == 0 {
			err = syntaxAt(p.text, p.tokens[at].start, "expected a number of at least 1")
		}
	case "snapshot_ids":
		c.Snapshots, err = p.snapshotIDs()
	case "dry_run":
		switch {
		case p.accept("true"):
			c.DryRun = true
		case p.accept("false"):
		default:
			return p.expected("TRUE or FALSE")
		}
	case "strategy":
		at := p.pos
		if c.Strategy, err = p.textValue("'binpack' or 'sort'"); err != nil {
			return err
		}
		if c.Strategy = strings.ToLower(c.Strategy); c.Strategy != "binpack" && c.Strategy != "sort" {
			return syntaxAt(p.text, p.tokens[at].start, "expected 'binpack' or 'sort'")
		}
	case "sort_order":
		c.SortOrder, err = p.textValue("a sort order in quotes")
	case "where":
		c.Where, err = p.textValue("a condition in quotes")
	case "options":
		c.Options, err = p.optionMap()
	}
	return err
}

// instant reads [TIMESTAMP] 'time', with fractions of a second. A time without a zone
// is in UTC.
func (p *parser) instant() (*time.Time, error) {
	const what = "a time like '2026-12-31 23:59:59.999' (UTC)"
	p.accept("timestamp")
	text, err := p.textValue(what)
	if err != nil {
		return nil, err
	}
	for _, layout := range timeLayouts {
		// A fraction may follow the seconds of any layout.
		if t, err := time.Parse(layout, text); err == nil && t.Year() >= 1 && t.Year() <= 9999 {
			t = t.UTC()
			return &t, nil
		}
	}
	p.pos--
	return nil, p.expected(what)
}

// tableText reads the name of a table in a string.
func (p *parser) tableText() (TableRef, error) {
	at := p.pos
	text, err := p.textValue("the name of a table in quotes")
	if err != nil {
		return TableRef{}, err
	}
	levels := SplitDatabase(text)
	for _, l := range levels {
		if l == "" || strings.ContainsRune(l, 0) {
			return TableRef{}, syntaxAt(p.text, p.tokens[at].start, "the name is empty, or a part of it is")
		}
	}
	last := len(levels) - 1
	ref := TableRef{Name: levels[last]}
	if last > 0 {
		ref.Database = JoinDatabase(levels[:last]...)
	}
	return ref, nil
}

// snapshotID reads the id of a snapshot, a number or one in quotes.
func (p *parser) snapshotID() (int64, error) {
	const what = "the id of a snapshot"
	if p.pos < len(p.tokens) && p.tokens[p.pos].kind == str {
		text, err := p.textValue(what)
		if err != nil {
			return 0, err
		}
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id < 0 {
			p.pos--
			return 0, p.expected(what)
		}
		return id, nil
	}
	return p.integer(what, 1<<63-1)
}

// snapshotIDs reads ARRAY(id, ...).
func (p *parser) snapshotIDs() ([]int64, error) {
	if !p.accept("array") {
		return nil, p.expected("ARRAY(id, ...)")
	}
	if err := p.need("("); err != nil {
		return nil, err
	}
	var out []int64
	for {
		id, err := p.snapshotID()
		if err != nil {
			return nil, err
		}
		out = append(out, id)
		if more, err := p.more(len(out)); err != nil {
			return nil, err
		} else if !more {
			return out, p.need(")")
		}
	}
}

// optionMap reads MAP('key', 'value', ...).
func (p *parser) optionMap() ([]Property, error) {
	if !p.accept("map") {
		return nil, p.expected("MAP('key', 'value', ...)")
	}
	if err := p.need("("); err != nil {
		return nil, err
	}
	var out []Property
	for {
		key, err := p.textValue("the name of an option in quotes")
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out, func(o Property) bool { return o.Key == key }) {
			p.pos--
			return nil, syntaxAt(p.text, p.tokens[p.pos].start, "the option stands twice")
		}
		if err := p.need(","); err != nil {
			return nil, err
		}
		value, err := p.propertyValue()
		if err != nil {
			return nil, err
		}
		out = append(out, Property{key, value})
		if more, err := p.more(len(out)); err != nil {
			return nil, err
		} else if !more {
			return out, p.need(")")
		}
	}
}
