package grants

import (
	"slices"
	"strings"
	"testing"
)

// TestOn: what says something about an object is on it, on what holds it by a pattern,
// on everything in it, or on something in it; and nothing else is.
func TestOn(t *testing.T) {
	s := &Snapshot{Root: Any}
	for name, elements := range map[string][]string{
		"everything": {"wh|wh2", "*", "*"}, "schemas": {"wh", "*"}, "tables": {"wh", "sales", "*"}, "one": {"wh", "sales", "orders"}, "schema": {"wh", "sales"},
		"catalog": {"wh"}, "named everywhere": {"wh", "*", "orders"}, "other": {"wh", "hr", "*"}, "elsewhere": {"hub", "*", "*"},
	} {
		p := &Policy{Name: name, Elements: map[string][]string{"root": {Any}}}
		for i, e := range []string{"catalog", "namespace", "table"}[:len(elements)] {
			p.Elements[e] = strings.Split(elements[i], "|")
		}
		if len(p.Elements["catalog"]) > 1 {
			p.Special = []string{SeveralResources}
		}
		s.Policies = append(s.Policies, p)
	}
	for object, want := range map[string]string{
		"wh":           "catalog everything named_everywhere one other schema schemas tables",
		"wh2":          "everything",
		"wh.sales":     "everything one schema schemas tables",
		"wh.hr":        "everything other schemas",
		"wh.sales.x":   "everything tables",
		"wh.hr.orders": "everything named_everywhere other",
		"none":         "",
	} {
		var got []string
		for _, p := range s.On(objectOf(object)).Policies {
			got = append(got, strings.ReplaceAll(p.Name, " ", "_"))
		}
		slices.Sort(got)
		if got := strings.Join(got, " "); got != want {
			t.Errorf("on %s there is %s, want %s", object, got, want)
		}
	}
}
