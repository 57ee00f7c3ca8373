package rangerclient

import (
	"slices"
	"strings"

	"sqe/plan"
	"sqe/policy"
	"sqe/rangerclient/eval"
)

// targets finds tables and columns by the names that policies use for them. All
// answers are remembered, because policies repeat each other's names. It belongs
// to one goroutine.
type targets struct {
	databases names[*database]
	byValue   map[string][]*database
	byPair    map[string][]*plan.Table
	columns   names[*plan.Table] // every name that a column bears or bore
	bears     map[*plan.Table]map[string]bool
	byPattern map[string][]string // columns
	zones     map[*plan.Table]string
}

// database is what holds tables, under one of the names that policies use for it.
type database struct {
	name   string // for trino "catalog\x00schema"
	tables names[*plan.Table]
}

// names is an index by name in lower case.
type names[T any] struct {
	of     map[string][]T
	sorted []string
}

func (n *names[T]) add(name string, x T) {
	if n.of == nil {
		n.of = map[string][]T{}
	}
	name = strings.ToLower(name)
	n.of[name] = append(n.of[name], x)
}

func (n *names[T]) sort() {
	n.sorted = make([]string, 0, len(n.of))
	for name := range n.of {
		n.sorted = append(n.sorted, name)
	}
	slices.Sort(n.sorted)
}

// find lists the names that a value stands for, in order.
func (n *names[T]) find(v value) []string {
	if v.literal {
		name := strings.ToLower(v.text)
		if _, ok := n.of[name]; ok && v.matches(name) {
			return []string{name}
		}
		return nil
	}
	from, prefix := 0, strings.ToLower(v.prefix)
	if prefix != "" {
		from, _ = slices.BinarySearch(n.sorted, prefix)
	}
	var out []string
	for _, name := range n.sorted[from:] {
		if !strings.HasPrefix(name, prefix) {
			break
		}
		if v.matches(name) {
			out = append(out, name)
		}
	}
	return out
}

// value is one value of an element, or an element as a whole.
type value struct {
	text    string
	literal bool
	prefix  string // of all names that a pattern stands for
	all     bool
	matches func(name string) bool
}

func raw(n *eval.Names) []string {
	out := make([]string, len(n.Values))
	for i, v := range n.Values {
		out[i] = v.Raw
	}
	return out
}

func everything(string) bool { return true }

// values are those of an element; nil is an element that the policy does not have.
func values(n *eval.Names) []value {
	switch {
	case n != nil && n.Dynamic(): // it differs for each user
		return []value{{text: strings.Join(raw(n), ","), all: true, matches: everything}}
	case n != nil && n.Excludes:
		return []value{{text: "!" + strings.Join(raw(n), ","), matches: n.Matches}}
	case n == nil || n.Any:
		return []value{{text: "*", all: true, matches: everything}}
	}
	var out []value
	for _, v := range n.Values {
		x := value{text: v.Raw, literal: !v.Pattern, matches: v.Matches}
		if v.Literal {
			continue // reported with what cannot be applied
		}
		if v.Pattern {
			x.prefix = v.Raw[:strings.IndexAny(v.Raw, "*?")]
		}
		out = append(out, x)
	}
	return out
}

func (s *State) targets(tables []*plan.Table) *targets {
	t := &targets{
		byValue: map[string][]*database{}, byPair: map[string][]*plan.Table{},
		bears: map[*plan.Table]map[string]bool{}, byPattern: map[string][]string{}, zones: map[*plan.Table]string{},
	}
	byName := map[string]*database{}
	for _, x := range tables {
		for _, name := range s.databaseNames(x) {
			d := byName[strings.ToLower(name)]
			if d == nil {
				d = &database{name: name}
				byName[strings.ToLower(name)] = d
				t.databases.add(name, d)
			}
			d.tables.add(x.Name.Name, x)
		}
		borne := s.everBorne(x)
		t.bears[x] = borne
		for name := range borne {
			t.columns.add(name, x)
		}
	}
	for _, d := range byName {
		d.tables.sort()
	}
	t.databases.sort()
	t.columns.sort()
	return t
}

// databaseNames are the names that policies use for what holds the table.
func (s *State) databaseNames(t *plan.Table) []string {
	dotted := strings.Join(t.Name.Namespace, ".")
	if s.tables.Type() == "trino" {
		return []string{t.Name.Catalog + "\x00" + dotted}
	}
	return s.databases(t, dotted)
}

// everBorne is every name that a column of the table bears or bore, lower case.
func (s *State) everBorne(t *plan.Table) map[string]bool {
	names := map[string]bool{}
	r := &restriction{State: s, table: t, out: &policy.Restrictions{}}
	r.eachField(func(_ plan.Field, _ int, paths []string) {
		for _, p := range paths {
			names[strings.ToLower(p)] = true
		}
	})
	return names
}

// places are the databases that a resource names.
func (s *State) places(elements map[string]*eval.Names) []value {
	if s.tables.Type() != "trino" {
		return values(elements["database"])
	}
	var out []value
	for _, c := range values(elements["catalog"]) {
		for _, x := range values(elements["schema"]) {
			v := value{text: c.text + "\x00" + x.text, literal: c.literal && x.literal, all: c.all && x.all}
			if c.literal {
				v.prefix = c.text + "\x00" + x.prefix
			} else {
				v.prefix = c.prefix
			}
			v.matches = func(name string) bool {
				catalog, schema, _ := strings.Cut(name, "\x00")
				return c.matches(catalog) && x.matches(schema)
			}
			out = append(out, v)
		}
	}
	return out
}

// tables finds the tables of a name in the databases of a name.
func (t *targets) tables(db, table value) []*plan.Table {
	key := db.text + "\x01" + table.text
	if found, ok := t.byPair[key]; ok {
		return found
	}
	in, ok := t.byValue[db.text]
	if !ok {
		for _, name := range t.databases.find(db) {
			in = append(in, t.databases.of[name]...)
		}
		t.byValue[db.text] = in
	}
	var out []*plan.Table
	for _, d := range in {
		for _, name := range d.tables.find(table) {
			out = append(out, d.tables.of[name]...)
		}
	}
	t.byPair[key] = out
	return out
}

// unknown reports whether nothing but the name of a table is known.
func unknown(t *plan.Table) bool { return len(t.Fields) == 0 }

// column reports whether any of the tables has or had a column of the name, as far as
// that is known.
func (t *targets) column(tables []*plan.Table, v value) bool {
	return t.knownColumn(tables, v) || slices.ContainsFunc(tables, unknown)
}

// knownColumn is column without the tables whose columns are not known.
func (t *targets) knownColumn(tables []*plan.Table, v value) bool {
	if v.literal {
		name := strings.ToLower(v.text)
		return len(t.columns.of[name]) > 0 && slices.ContainsFunc(tables, func(x *plan.Table) bool { return t.bears[x][name] })
	}
	matching, ok := t.byPattern[v.text]
	if !ok {
		matching = t.columns.find(v)
		t.byPattern[v.text] = matching
	}
	for _, name := range matching {
		if slices.ContainsFunc(tables, func(x *plan.Table) bool { return t.bears[x][name] }) {
			return true
		}
	}
	return false
}
