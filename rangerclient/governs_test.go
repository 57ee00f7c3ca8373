package rangerclient

import (
	"slices"
	"strings"
	"testing"

	"sqe/plan"
	"sqe/rangerclient/model"
)

// TestGoverns: what finds a table by its name is told, and what does not is not;
// two names that are treated alike have the same.
func TestGoverns(t *testing.T) {
	one, other, far := table("c.s.t", "a", "region"), table("c.s.u", "a", "region"), table("c.x.t", "a", "region")
	deny := func(b *build, res string) {
		b.policy(&b.data, model.AccessPolicy, res).DenyPolicyItems = []*model.Item{item("ann", "select")}
	}
	for name, x := range map[string]struct {
		make         func(b *build)
		found, named bool // of one
		alike        bool // other
	}{
		"nothing":             {func(*build) {}, false, false, true},
		"a mask":              {func(b *build) { b.mask("database=s table=t column=a", "ann: MASK") }, true, true, false},
		"a mask of both":      {func(b *build) { b.mask("database=s table=t|u column=a", "ann: MASK") }, true, true, true},
		"a mask of another":   {func(b *build) { b.mask("database=s table=u column=a", "ann: MASK") }, false, false, false},
		"a filter":            {func(b *build) { b.filter(&b.data, "database=c.s table=T", "", "ann: a = 1") }, true, true, false},
		"a filter, elsewhere": {func(b *build) { b.filter(&b.data, "database=x table=t", "", "ann: a = 1") }, false, false, true},
		"all but the other":   {func(b *build) { b.filter(&b.data, "database=s table=!u", "", "ann: a = 1") }, true, true, false},
		"a disabled mask":     {func(b *build) { off := false; b.mask("database=s table=t column=a", "ann: MASK").Enabled = &off }, false, false, true},
		"a denial":            {func(b *build) { deny(b, "database=s table=t column=a") }, true, true, false},
		"a grant": {func(b *build) {
			b.policy(&b.data, model.AccessPolicy, "database=s table=t column=a").PolicyItems = []*model.Item{item("ann", "select")}
		}, false, false, true},
		"one for each user":    {func(b *build) { b.filter(&b.data, "database=s table={USER}", "", "ann: a = 1") }, true, true, false},
		"a wildcard, in trino": {func(b *build) { b.typ = "trino"; b.mask("catalog=* schema=* table=* column=a", "ann: MASK") }, true, false, true},
		"a pattern, in trino":  {func(b *build) { b.typ = "trino"; b.mask("catalog=* schema=s table=t* column=a", "ann: MASK") }, true, true, false},
		"a denied object": {func(b *build) {
			b.object("root=* catalog=c namespace=s table=t").DenyPolicyItems = []*model.Item{item("ann", "table-data-read")}
		}, true, false, false},
		"a granted object": {func(b *build) { b.object("root=* catalog=c namespace=s table=t", item("ann", "table-data-read")) }, false, false, true},
		"a denied object of ns": {func(b *build) {
			b.object("root=* catalog=c namespace=s table=*").DenyPolicyItems = []*model.Item{item("ann", "table-data-read")}
		}, true, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuild(t)
			x.make(b)
			st := b.state(Options{})
			g, h := st.Governs(one), st.Governs(other)
			if found := len(g.By) > 0; found != x.found || g.Named != x.named {
				t.Errorf("found %v, named %v: %q", found, g.Named, g.By)
			}
			if alike := slices.Equal(g.By, h.By); alike != x.alike {
				t.Errorf("%q and %q", g.By, h.By)
			}
			_ = st.Governs(far)
		})
	}
}

// TestGovernsTags: tags of the policy server find a table by its name; those in the
// table go with it. Texts are those of all policies that may act.
func TestGovernsTags(t *testing.T) {
	b := newBuild(t)
	b.tagMask("PII", "ann: CUSTOM concat({col}, other)")
	b.filter(&b.data, "database=s table=t", "", "ann: region = 'EU'", "bob: owner = ${{USER.name}}")
	b.filter(&b.data, "database=s table=u", "", "ann: hidden = 1")
	st := b.serverTags(Options{}, map[string]string{"database=s table=t column=a": "PII", "database=s table=v": "SECRET"})
	tagged := table("c.s.t", "a", "region")
	g := st.Governs(tagged)
	if f, _ := tagged.FieldNamed("a"); !g.Tagged[f.ID] || len(g.Tagged) != 1 {
		t.Errorf("%v", g.Tagged)
	}
	texts := strings.Join(g.Texts, "\n")
	for text, want := range map[string]bool{"region = 'EU'": true, "${{USER.name}}": true, "concat({col}, other)": true, "hidden": false} {
		if strings.Contains(texts, text) != want {
			t.Errorf("%q in %q: want %v", text, texts, want)
		}
	}
	if !st.Governs(table("c.s.v", "a")).Tagged[0] {
		t.Error("the tag of a table is not found")
	}
	if g := st.Governs(table("c.s.w", "a")); len(g.By)+len(g.Tagged)+len(g.Texts) > 0 {
		t.Errorf("%+v", g)
	}
	own := table("c.s.w", "a")
	own.Tags = map[int][]plan.Tag{own.Fields[0].ID: {{Name: "PII"}}}
	if g := st.Governs(own); len(g.By) > 0 || len(g.Texts) != 1 {
		t.Errorf("%+v", g)
	}
}
