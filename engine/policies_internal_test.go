package engine

import (
	"strings"
	"testing"

	"sqe/catalog"
	"sqe/engine/parse"
	"sqe/plan"
	"sqe/policy"
)

// empty is a catalog that holds nothing.
type empty struct {
	catalog.Catalog
	name string
}

func (e empty) Name() string { return e.name }

func catalogsOnly(t *testing.T, names ...string) *Engine {
	t.Helper()
	var all []catalog.Catalog
	for _, n := range names {
		all = append(all, empty{name: n})
	}
	r, err := catalog.NewRegistry(all...)
	if err != nil {
		t.Fatal(err)
	}
	return &Engine{catalogs: r}
}

// TestCreateText: what SQL cannot say is never shown as a statement that says
// something else.
func TestCreateText(t *testing.T) {
	item := []policy.Item{{Grantees: []policy.Grantee{{Kind: policy.UserGrantee, Name: "a"}}, SQL: "x = 1"}}
	table := plan.TableName{Catalog: "lake", Namespace: []string{"a.b", "c"}, Name: "t"}
	filter := policy.Definition{Name: "p", Kind: policy.FilterDefinition, Table: table, Items: item}
	change := func(f func(*policy.Stored)) policy.Stored {
		s := policy.Stored{Definition: filter}
		s.Items = append([]policy.Item(nil), item...)
		f(&s)
		return s
	}
	e := catalogsOnly(t, "lake", "other")
	for name, c := range map[string]struct {
		stored    policy.Stored
		statement bool
		text      string
	}{
		"plain":          {change(func(*policy.Stored) {}), true, "ON TABLE `lake`.`a.b`.`c`.`t`"},
		"beyond":         {change(func(s *policy.Stored) { s.Beyond = []string{"conditions", "a\nb"} }), true, "-- SQL has no words for: conditions, a\n-- b\nCREATE"},
		"pattern":        {change(func(s *policy.Stored) { s.Table.Name = "t*" }), false, "cannot write"},
		"no catalog":     {change(func(s *policy.Stored) { s.Table.Catalog = "" }), true, "every catalog\nCREATE POLICY `p` ON TABLE `a.b`.`c`.`t`"},
		"other catalog":  {change(func(s *policy.Stored) { s.Table.Catalog = "other" }), true, "ON TABLE `other`.`a.b`.`c`.`t`"},
		"a level":        {change(func(s *policy.Stored) { s.Table.Catalog = "level" }), true, "ON TABLE `level`.`a.b`.`c`.`t`"},
		"like a catalog": {change(func(s *policy.Stored) { s.Table.Catalog, s.Table.Namespace = "", []string{"other", "c"} }), false, "cannot write"},
		"pattern in a column": {change(func(s *policy.Stored) {
			s.Kind, s.Columns, s.Items[0].Mask, s.Items[0].SQL = policy.MaskDefinition, []string{"*"}, "MASK", ""
		}), false, "cannot write"},
		"no columns":      {change(func(s *policy.Stored) { s.Kind, s.Items[0].Mask, s.Items[0].SQL = policy.MaskDefinition, "MASK", "" }), false, "cannot write"},
		"brackets":        {change(func(s *policy.Stored) { s.Items[0].SQL = "x) OR (true" }), false, "cannot write"},
		"more statements": {change(func(s *policy.Stored) { s.Items[0].SQL = "x); DROP POLICY p; --" }), false, "cannot write"},
		"a comment":       {change(func(s *policy.Stored) { s.Items[0].SQL = "x -- y\n\r= 1" }), false, "cannot write"},
		"no text":         {change(func(s *policy.Stored) { s.Items[0].SQL = "" }), false, "cannot write"},
		"no items":        {change(func(s *policy.Stored) { s.Items = nil }), false, "cannot write"},
		"an odd mask": {change(func(s *policy.Stored) {
			s.Tag, s.Table, s.Kind, s.Items[0].Mask, s.Items[0].SQL = "T", plan.TableName{}, policy.MaskDefinition, "mask x", ""
		}), true, "COLUMN MASK `mask x` TO"},
		"access": {change(func(s *policy.Stored) {
			s.Kind, s.Items[0].Privileges, s.Resources = policy.AccessDefinition, []string{"select"}, "root=*"
		}), false, "gives access on lake.a.b.c.t"},
	} {
		got := e.createText(c.stored)
		stmt, rest, err := parse.Parse(got)
		if _, ok := stmt.(*parse.CreatePolicy); ok != c.statement || c.statement && (err != nil || rest != "") {
			t.Errorf("%s: %T, %v, %q from\n%s", name, stmt, err, rest, got)
		}
		if !strings.Contains(got, c.text) {
			t.Errorf("%s gives\n%s", name, got)
		}
	}
}

func TestColumnNamed(t *testing.T) {
	table := &plan.Table{
		Fields: []plan.Field{
			{ID: 1, Name: "iban", Type: plan.String},
			{ID: 2, Name: "contact", Children: []plan.Field{{ID: 3, Name: "email", Type: plan.String}, {ID: 4, Name: "a.b", Type: plan.String}}},
			{ID: 5, Name: "Name", Type: plan.String},
			{ID: 6, Name: "name", Type: plan.String},
		},
		Formerly: map[int][]string{1: {"account"}, 2: {"person"}, 3: {"mail"}, 9: {"dropped"}},
	}
	for name, want := range map[string]struct {
		id  int
		now string
	}{
		"iban": {1, ""}, "IBAN": {1, ""}, "account": {1, "iban"}, "contact.email": {3, ""}, "Contact.EMAIL": {3, ""}, "person.mail": {3, "contact.email"},
		"contact.mail": {3, "contact.email"}, "contact.a.b": {4, ""}, "name": {6, ""}, "Name": {5, ""},
		"NAME": {0, ""}, "email": {0, ""}, "dropped": {0, ""}, "nothing": {0, ""}, "": {0, ""},
	} {
		f, now, ok := columnNamed(table, name)
		if ok != (want.id != 0) || f.ID != want.id || now != want.now {
			t.Errorf("%q is field %d, now %q, %v", name, f.ID, now, ok)
		}
	}
	c := &policyCheck{statement: "CREATE POLICY"}
	fields, err := c.columns(table, []string{"account", "dropped", "contact.email"})
	if err != nil || len(fields) != 2 || len(c.notes) != 2 || !strings.Contains(c.notes[0], "is called 'iban' now") || !strings.Contains(c.notes[1], "has none now") {
		t.Errorf("%v, %v, %q", fields, err, c.notes)
	}
	if _, err := c.columns(table, []string{"account", "iban"}); err == nil {
		t.Error("a column twice, by two of its names, is taken")
	}
	if _, err := c.columns(table, []string{"never"}); err == nil {
		t.Error("a column that never was is taken")
	}
	c.changed = true
	if _, err := c.columns(table, []string{"never"}); err != nil {
		t.Errorf("ALTER of a policy with such a column: %v", err)
	}
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"%", "", true},
		{"", "", true},
		{"", "a", false},
		{"a%", "ABC", true},
		{"a_c", "abc", true},
		{"a_c", "ac", false},
		{"%b%", "abc", true},
		{"%a%a%a%b", strings.Repeat("a", 2000), false},
		{"ä_", "Äß", true},
		{"a", "ab", false},
	} {
		if like(c.name, c.pattern) != c.want {
			t.Errorf("%q LIKE %q is not %v", c.name, c.pattern, c.want)
		}
	}
	n := plan.TableName{Catalog: "lake", Namespace: []string{"a", "b"}, Name: "t"}
	for of, want := range map[string]bool{"lake/a.b/t": true, "LAKE/A.B/T": true, "/a.b/t": true, "/b/t": false, "a/b/t": true, "b/a/t": false, "/*/t": true, "*/*/*": true, "lake/*/t?": false, "lake/a/t": false, "lake/a.*/?": true} {
		p := strings.Split(of, "/")
		if got := covers(plan.TableName{Catalog: p[0], Namespace: strings.Split(p[1], "."), Name: p[2]}, n); got != want {
			t.Errorf("%s covers: %v", of, got)
		}
	}
	if covers(plan.TableName{}, n) {
		t.Error("no table covers a table")
	}
}

func TestIsOn(t *testing.T) {
	n := plan.TableName{Catalog: "lake", Namespace: []string{"bank"}, Name: "t"}
	for resources, want := range map[string]bool{
		"database=bank, table=s,t, column=c": true, "database=x,lake.bank, table=t": true, "database=x, table=t": false, "database=bank, table=s": false,
		"database=x, table=y; database=bank, table=t": true, "catalog=lake, schema=bank, table=s,T": true, "database=bank, table!=s": true, "database!=x, table=t": true, "database!=x": false,
		"root=*, catalog=*, namespace=bank": false, "tag=t": false, "": false, "database=b*, table=*": true,
	} {
		s := policy.Stored{Resources: resources, Beyond: []string{"several tables"}}
		if got := isOn(s, n); got != want {
			t.Errorf("%s: %v", resources, got)
		}
		s.Beyond = nil
		if isOn(s, n) {
			t.Errorf("%s: what Definition says whole is taken from elsewhere", resources)
		}
	}
}
