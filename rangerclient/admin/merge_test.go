package admin

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sqe/rangerclient/model"
)

func mask(typ string, users ...string) *model.Item {
	return &model.Item{Accesses: accesses("select"), Users: users, DataMaskInfo: &model.DataMaskInfo{DataMaskType: typ}}
}

func allow(users string, types ...string) *model.Item {
	return &model.Item{Accesses: accesses(types...), Users: strings.Split(users, ",")}
}

func public(i *model.Item) *model.Item {
	i.Users, i.Groups = nil, []string{"public"}
	return i
}

func masks(items ...*model.Item) *model.Policy {
	return &model.Policy{Service: "lake", Name: "m", PolicyType: model.MaskPolicy, Resources: on("database", "d", "table", "t", "column", "c"), DataMaskPolicyItems: items}
}

func granting(items ...*model.Item) *model.Policy {
	return &model.Policy{Service: "lake", Name: "g", Resources: on("database", "d", "table", "t", "column", "*"), PolicyItems: items}
}

func TestMerge(t *testing.T) {
	disabled := false
	with := func(p *model.Policy, change func(*model.Policy)) *model.Policy {
		p = clone(p)
		change(p)
		return p
	}
	hash, null := mask("MASK_HASH", "alice"), mask("MASK_NULL", "bob")
	two := granting(allow("alice", "select"), allow("bob", "select"))
	for _, c := range []struct {
		name               string
		base, theirs, ours *model.Policy
		want               *model.Policy // nil: a conflict about
		about              string
	}{
		{"both add", masks(hash), masks(hash, null), masks(hash, mask("MASK", "carol")), masks(hash, null, mask("MASK", "carol")), ""},
		{"exemption last", masks(), masks(mask("MASK_NONE", "alice")), masks(public(mask("MASK_NULL"))), masks(public(mask("MASK_NULL")), mask("MASK_NONE", "alice")), ""},
		{"first and last", masks(hash), masks(null, hash), masks(hash, public(mask("MASK"))), masks(null, hash, public(mask("MASK"))), ""},
		{"same added twice", masks(hash), masks(hash, null), masks(hash, null), masks(hash, null), ""},
		{"different for one", masks(hash), masks(hash, null), masks(hash, mask("MASK_NONE", "bob")), nil, "masks: user bob"},
		{"one changes, one joins", masks(public(mask("MASK_HASH"))), masks(public(mask("MASK_NULL"))), masks(&model.Item{Accesses: accesses("select"), Groups: []string{"public"}, Users: []string{"bob"}, DataMaskInfo: &model.DataMaskInfo{DataMaskType: "MASK_HASH"}}), masks(mask("MASK_HASH", "bob"), public(mask("MASK_NULL"))), ""},
		{"both change one item", masks(hash), masks(mask("MASK_NULL", "alice")), masks(mask("MASK", "alice")), nil, "masks: user alice"},
		{"changed and removed", masks(hash, null), masks(mask("MASK_NULL", "alice"), null), masks(null), nil, "masks: user alice"},
		{"a deny and a grant", two, with(two, func(p *model.Policy) { p.DenyPolicyItems = []*model.Item{allow("bob", "select")} }), granting(allow("alice", "select", "update"), allow("bob", "select")), with(granting(allow("alice", "select", "update"), allow("bob", "select")), func(p *model.Policy) { p.DenyPolicyItems = []*model.Item{allow("bob", "select")} }), ""},
		{"one joins, one gains", granting(allow("bob", "select")), granting(allow("bob,carol", "select")), granting(allow("bob", "select", "update")), granting(allow("bob", "select", "update"), allow("carol", "select")), ""},
		{"one leaves, one joins", granting(allow("bob", "select"), allow("x", "drop")), granting(allow("x", "drop")), granting(allow("alice,bob", "select"), allow("x", "drop")), granting(allow("alice", "select"), allow("x", "drop")), ""},
		{"settings", two, with(two, func(p *model.Policy) { p.Enabled = &disabled }), with(two, func(p *model.Policy) { p.Description = "d"; p.PolicyLabels = []string{"l"} }), with(two, func(p *model.Policy) { p.Enabled = &disabled; p.Description = "d"; p.PolicyLabels = []string{"l"} }), ""},
		{"same setting", two, with(two, func(p *model.Policy) { p.Description = "a" }), with(two, func(p *model.Policy) { p.Description = "b" }), nil, "description"},
		{"columns", masks(hash), with(masks(hash), func(p *model.Policy) { p.Resources = on("database", "d", "table", "t", "column", "c,e") }), with(masks(hash), func(p *model.Policy) { p.Resources = on("database", "d", "table", "t", "column", "c,d") }), with(masks(hash), func(p *model.Policy) { p.Resources = on("database", "d", "table", "t", "column", "c,d,e") }), ""},
		{"cross product", masks(hash), with(masks(hash), func(p *model.Policy) { p.Resources = on("database", "d", "table", "t,u", "column", "c") }), with(masks(hash), func(p *model.Policy) { p.Resources = on("database", "d", "table", "t", "column", "c,d") }), nil, "resources"},
		{"order", masks(hash, null, public(mask("MASK"))), masks(null, hash, public(mask("MASK"))), masks(hash, public(mask("MASK")), null), nil, "masks: their order"},
		{"order of no meaning", masks(hash, null, mask("MASK", "carol")), masks(null, hash, mask("MASK", "carol")), masks(hash, mask("MASK", "carol"), null), masks(hash, null, mask("MASK", "carol")), ""},
		{"reordered and added", masks(hash, null), masks(null, hash), masks(hash, null, mask("MASK", "carol")), masks(null, mask("MASK", "carol"), hash), ""},
		{"a condition tightened twice", granting(allow("bob", "select")), with(granting(allow("bob", "select")), func(p *model.Policy) { p.PolicyItems[0].Conditions = []model.Condition{{Type: "a"}} }), with(granting(allow("bob", "select")), func(p *model.Policy) { p.PolicyItems[0].Conditions = []model.Condition{{Type: "b"}} }), nil, "allow items: user bob"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, turned := range []bool{false, true} {
				theirs, ours := c.theirs, c.ours
				if turned {
					theirs, ours = ours, theirs
				}
				got, err := merge(c.base, theirs, ours)
				var clash *MergeConflict
				switch {
				case c.want == nil && (!errors.As(err, &clash) || !slices.Contains(clash.What, c.about)):
					t.Errorf("merged to %s, %v; want a conflict about %q", text(got), err, c.about)
				case c.want != nil && err != nil:
					t.Errorf("got %v", err)
				case c.want != nil:
					if d := cmp.Diff(normal(c.want), got); d != "" {
						t.Errorf("turned %t (-want +got):\n%s", turned, d)
					}
				}
			}
		})
	}
}

// random makes policies and edits of them.
type random struct{ *rand.Rand }

func (r random) users() (out []string) {
	for n := range 6 {
		if r.IntN(3) == 0 {
			out = append(out, fmt.Sprint("u", n))
		}
	}
	if out == nil {
		out = []string{fmt.Sprint("u", r.IntN(6))}
	}
	return out
}

func (r random) item(typ int) *model.Item {
	i := &model.Item{Users: r.users(), Accesses: accesses("select")}
	switch typ {
	case model.MaskPolicy:
		i.DataMaskInfo = &model.DataMaskInfo{DataMaskType: []string{"MASK", "MASK_NULL", "MASK_NONE", "MASK_HASH"}[r.IntN(4)]}
	case model.RowFilterPolicy:
		f := []string{"a = 1", "a = 2", "", "b"}[r.IntN(4)]
		i.RowFilterInfo = &model.RowFilterInfo{FilterExpr: &f}
	default:
		i.Accesses = accesses([]string{"select", "update", "drop"}[:1+r.IntN(3)]...)
		i.DelegateAdmin = r.IntN(4) == 0
		if r.IntN(5) == 0 {
			i.Conditions = []model.Condition{{Type: "_expression", Values: []string{"x"}}}
		}
	}
	if r.IntN(3) == 0 {
		i.Roles = []string{"r"}
	}
	return i
}

func (r random) list(p *model.Policy) *[]*model.Item {
	switch p.PolicyType {
	case model.MaskPolicy:
		return &p.DataMaskPolicyItems
	case model.RowFilterPolicy:
		return &p.RowFilterPolicyItems
	}
	return []*[]*model.Item{&p.PolicyItems, &p.DenyPolicyItems}[r.IntN(2)]
}

func (r random) policy() *model.Policy {
	p := &model.Policy{Service: "lake", Name: "p", PolicyType: r.IntN(3), Resources: on("database", "d")}
	for range r.IntN(5) {
		l := r.list(p)
		*l = append(*l, r.item(p.PolicyType))
	}
	return p
}

func (r random) edit(p *model.Policy) *model.Policy {
	p = clone(p)
	for range r.IntN(3) {
		l := r.list(p)
		n := r.IntN(len(*l) + 1)
		switch k := r.IntN(6); {
		case k < 2 || n == len(*l):
			*l = slices.Insert(*l, n, r.item(p.PolicyType))
		case k == 2:
			*l = slices.Delete(*l, n, n+1)
		case k == 3:
			(*l)[n].Users = r.users()
		case k == 4:
			users := (*l)[n].Users
			(*l)[n] = r.item(p.PolicyType)
			(*l)[n].Users = users
		default:
			p.PolicyLabels = append(p.PolicyLabels, fmt.Sprint("l", r.IntN(3)))
		}
	}
	return p
}

// checkMerge holds a merge to what it promises, whatever the edits are.
func checkMerge(t *testing.T, base, theirs, ours *model.Policy) (merged bool) {
	t.Helper()
	got, err := merge(base, theirs, ours)
	turned, err2 := merge(base, ours, theirs)
	if (err == nil) != (err2 == nil) || !same(got, turned) {
		t.Fatalf("the order of the edits matters:\n%s, %v\n%s, %v\nbase %s\ntheirs %s\nours %s", text(got), err, text(turned), err2, text(base), text(theirs), text(ours))
	}
	if err != nil {
		if c := (*MergeConflict)(nil); !errors.As(err, &c) || len(c.What) == 0 {
			t.Fatalf("an error that is no conflict: %v", err)
		}
		return false
	}
	for _, side := range []*model.Policy{theirs, ours} {
		if !holds(base, side, got) {
			t.Fatalf("an edit is lost:\nbase %s\ntheirs %s\nours %s\ngot %s", text(base), text(theirs), text(ours), text(got))
		}
	}
	for _, l := range lists {
		m := itemMerge{list: l}
		b, th, o, r := m.whole(*l.of(normal(base))), m.whole(*l.of(normal(theirs))), m.whole(*l.of(normal(ours))), m.whole(*l.of(got))
		for _, p := range keys(b, r) {
			for _, k := range keys(b[p], r[p]) {
				if b[p][k] == th[p][k] && b[p][k] == o[p][k] && r[p][k] != b[p][k] {
					t.Fatalf("%s of %s: nobody changed it: %q became %q", l.name, p, b[p][k], r[p][k])
				}
			}
		}
	}
	return true
}

func TestMergeHoldsItsPromise(t *testing.T) {
	merged := 0
	const rounds = 2000
	for seed := range uint64(rounds) {
		r := random{rand.New(rand.NewPCG(seed, 4))}
		base := r.policy()
		theirs, ours := r.edit(base), r.edit(base)
		if checkMerge(t, base, theirs, ours) {
			merged++
		}
		for _, side := range []*model.Policy{theirs, ours} {
			if got, err := merge(base, base, side); err != nil || !same(got, side) {
				t.Fatalf("one edit alone: %s, %v; want %s", text(got), err, text(side))
			}
			if got, err := merge(base, side, side); err != nil || !same(got, side) {
				t.Fatalf("the same edit twice: %s, %v; want %s", text(got), err, text(side))
			}
		}
	}
	if merged < rounds/2 || merged == rounds {
		t.Fatalf("%d of %d merged: the generator makes no interesting edits", merged, rounds)
	}
}

// TestMergeOfDifferentItems: edits on different principals always merge, and
// both are in the result.
func TestMergeOfDifferentItems(t *testing.T) {
	for seed := range uint64(400) {
		r := random{rand.New(rand.NewPCG(seed, 5))}
		base := r.policy()
		theirs, ours := clone(base), clone(base)
		a, b := r.item(base.PolicyType), r.item(base.PolicyType)
		a.Users, a.Roles = []string{"new-a"}, nil
		b.Users, b.Roles = []string{"new-b"}, nil
		la, lb := r.list(theirs), r.list(ours)
		*la = slices.Insert(*la, r.IntN(len(*la)+1), a)
		*lb = slices.Insert(*lb, r.IntN(len(*lb)+1), b)
		if !checkMerge(t, base, theirs, ours) {
			t.Fatalf("a conflict between different principals:\nbase %s\ntheirs %s\nours %s", text(base), text(theirs), text(ours))
		}
		got, err := merge(base, theirs, ours)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range []*model.Item{a, b} {
			found := false
			for _, l := range lists {
				found = found || slices.ContainsFunc(*l.of(got), func(x *model.Item) bool {
					return text(x) == text(normalItem(clone(&model.Policy{PolicyItems: []*model.Item{i}}).PolicyItems[0]))
				})
			}
			if !found {
				t.Fatalf("%s is lost in %s", text(i), text(got))
			}
		}
	}
}

func FuzzMerge(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) {
		r := random{rand.New(rand.NewPCG(a, b))}
		base := r.policy()
		checkMerge(t, base, r.edit(base), r.edit(base))
	})
}
