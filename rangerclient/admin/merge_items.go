package admin

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"sqe/rangerclient/model"
)

// itemMerge merges one list of items.
type itemMerge struct {
	conflict *MergeConflict
	list     list
	base     []*model.Item
}

func (m *itemMerge) merge(theirs, ours []*model.Item) []*model.Item {
	switch b, t, o := text(m.base), text(theirs), text(ours); {
	case o == b:
		return theirs
	case t == b, t == o:
		return ours
	}
	t, o := m.place(theirs), m.place(ours)
	var out []*model.Item
	added := m.additions(t, o)
	out = append(out, added[-1]...)
	for _, n := range m.skeleton(t, o) {
		out = append(out, m.item(m.base[n], t.item[n], o.item[n])...)
		out = append(out, added[n]...)
	}
	m.verify(theirs, ours, out)
	// Of equal items only the first can matter.
	once := map[string]bool{}
	return slices.DeleteFunc(out, func(i *model.Item) bool {
		k := text(normalItem(i))
		again := once[k]
		once[k] = true
		return again
	})
}

// placed is one side, seen from the base.
type placed struct {
	order []int                 // items of the base in the order of the side
	item  map[int]*model.Item   // what became of an item of the base; absent: it is gone
	added map[int][]*model.Item // new items, by the item of the base that they follow; -1 at the start
}

// place finds for every item of a side the item of the base that it was: the
// equal one, else one that says the same and names a common principal, else one
// that names a common principal.
func (m *itemMerge) place(side []*model.Item) *placed {
	type pair struct{ score, base, side int }
	was := make([]int, len(side))
	taken := make([]bool, len(m.base))
	equal := map[string][]int{}
	for n, i := range m.base {
		equal[text(i)] = append(equal[text(i)], n)
	}
	for n, i := range side {
		was[n] = -1
		if e := equal[text(i)]; len(e) > 0 {
			was[n], taken[e[0]] = e[0], true
			equal[text(i)] = e[1:]
		}
	}
	var pairs []pair
	for n, i := range m.base {
		for k, j := range side {
			if taken[n] || was[k] >= 0 {
				continue
			}
			p := pair{base: n, side: k}
			names := principals(j)
			for _, x := range principals(i) {
				if slices.Contains(names, x) {
					p.score++
				}
			}
			if p.score == 0 {
				continue
			}
			if text(payload(i)) == text(payload(j)) {
				p.score += 1 << 20
			}
			pairs = append(pairs, p)
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.base, b.base), cmp.Compare(a.side, b.side))
	})
	for _, p := range pairs {
		if !taken[p.base] && was[p.side] < 0 {
			was[p.side], taken[p.base] = p.base, true
		}
	}
	out := &placed{item: map[int]*model.Item{}, added: map[int][]*model.Item{}}
	after := -1
	for n, i := range side {
		if was[n] < 0 {
			out.added[after] = append(out.added[after], i)
			continue
		}
		after = was[n]
		out.order = append(out.order, after)
		out.item[after] = i
	}
	return out
}

// skeleton is the order of the items of the base in the result.
func (m *itemMerge) skeleton(t, o *placed) []int {
	natural := make([]int, len(m.base))
	for n := range natural {
		natural[n] = n
	}
	var order []int
	switch {
	case !m.list.ordered, slices.IsSorted(t.order) && slices.IsSorted(o.order):
		return natural
	case slices.IsSorted(o.order):
		order = slices.Clone(t.order)
	case slices.IsSorted(t.order):
		order = slices.Clone(o.order)
	case slices.Equal(t.order, o.order):
		order = slices.Clone(t.order)
	default:
		if !m.free() {
			m.conflict.add(m.list.name + ": their order")
		}
		return natural
	}
	for n := range m.base {
		if slices.Contains(order, n) {
			continue
		}
		at := 0
		for k := n - 1; k >= 0; k-- {
			if p := slices.Index(order, k); p >= 0 {
				at = p + 1
				break
			}
		}
		order = slices.Insert(order, at, n)
	}
	return order
}

// free reports whether no two items of the base can name the same person, so that
// their order means nothing.
func (m *itemMerge) free() bool {
	seen := map[string]bool{}
	for _, i := range m.base {
		if len(i.Groups)+len(i.Roles) > 0 {
			return false
		}
		for _, u := range i.Users {
			if seen[u] || strings.HasPrefix(u, "{") {
				return false
			}
			seen[u] = true
		}
	}
	return true
}

// item merges what became of one item, principal by principal. Both sides nil:
// it is gone.
func (m *itemMerge) item(base, theirs, ours *model.Item) []*model.Item {
	result := map[string]statements{}
	for _, p := range set(slices.Concat(principals(base), principals(theirs), principals(ours))) {
		b, t, o := says(m.list, base, p), says(m.list, theirs, p), says(m.list, ours, p)
		merged := statements{}
		for _, k := range keys(b, t, o) {
			v, clash := statement(b, t, o, k)
			if clash {
				m.conflict.add(m.list.name + ": " + p)
			}
			if v != "" {
				merged[k] = v
			}
		}
		if len(merged) > 0 {
			result[p] = merged
		}
	}
	return m.build(result)
}

// statement merges one statement; "" is none.
func statement(base, theirs, ours statements, key string) (merged string, clash bool) {
	b, t, o := base[key], theirs[key], ours[key]
	switch {
	case o == b:
		return t, false
	case t == b, t == o:
		return o, false
	}
	return t, true
}

// build makes items of what is said about principals: one for all of whom the
// same is said.
func (m *itemMerge) build(result map[string]statements) []*model.Item {
	byText := map[string]*model.Item{}
	for _, p := range keys(result) {
		for _, k := range m.split(p, result[p]) {
			i := byText[k]
			if i == nil {
				i = &model.Item{}
				if err := json.Unmarshal([]byte(k), i); err != nil {
					panic("admin: " + err.Error()) // it was written by text
				}
				byText[k] = i
			}
			kind, name, _ := strings.Cut(p, " ")
			switch kind {
			case "user":
				i.Users = append(i.Users, name)
			case "group":
				i.Groups = append(i.Groups, name)
			default:
				i.Roles = append(i.Roles, name)
			}
		}
	}
	var out []*model.Item
	for _, k := range keys(byText) {
		out = append(out, byText[k])
	}
	slices.SortStableFunc(out, func(a, b *model.Item) int {
		return strictFirst([]*model.Item{a}, []*model.Item{b})
	})
	return out
}

// split turns statements about a principal into texts of items without
// principals.
func (m *itemMerge) split(principal string, s statements) []string {
	if m.list.ordered {
		return []string{s[""]}
	}
	byCondition := map[string]*model.Item{}
	for _, access := range keys(s) {
		i := byCondition[s[access]]
		if i == nil {
			i = &model.Item{}
			byCondition[s[access]] = i
			if err := json.Unmarshal([]byte(s[access]), &i.Conditions); err != nil {
				panic("admin: " + err.Error())
			}
		}
		if access == delegate {
			i.DelegateAdmin = true
			continue
		}
		var a model.Access
		if err := json.Unmarshal([]byte(access), &a); err != nil {
			panic("admin: " + err.Error())
		}
		i.Accesses = append(i.Accesses, a)
	}
	var out []string
	for _, k := range keys(byCondition) {
		i := byCondition[k]
		if len(i.Accesses) == 0 {
			// The right to grant, with nothing left that could be granted: no
			// server stores that.
			m.conflict.add(m.list.name + ": " + principal)
			continue
		}
		i.Accesses = normalAccesses(i.Accesses)
		out = append(out, text(i))
	}
	return out
}

// additions brings the new items of both sides together, by the place where they
// go. What both added is added once.
func (m *itemMerge) additions(t, o *placed) map[int][]*model.Item {
	out := map[int][]*model.Item{}
	places := []int{-1}
	for n := range m.base {
		places = append(places, n)
	}
	at := func(p *placed) map[string]int {
		where := map[string]int{}
		for _, n := range places {
			for _, i := range p.added[n] {
				if _, ok := where[text(i)]; !ok {
					where[text(i)] = n
				}
			}
		}
		return where
	}
	inT, inO := at(t), at(o)
	for _, n := range places {
		a, b := slices.Clone(t.added[n]), slices.Clone(o.added[n])
		earlier := func(other map[string]int) func(*model.Item) bool {
			return func(i *model.Item) bool {
				k, ok := other[text(i)]
				return ok && k < n
			}
		}
		a, b = slices.DeleteFunc(a, earlier(inO)), slices.DeleteFunc(b, earlier(inT))
		out[n] = m.runs(a, b)
	}
	return out
}

// runs brings together what both sides put at one place.
func (m *itemMerge) runs(a, b []*model.Item) []*model.Item {
	var head, tail []*model.Item
	for len(a) > 0 && len(b) > 0 && text(a[0]) == text(b[0]) {
		head, a, b = append(head, a[0]), a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && text(a[len(a)-1]) == text(b[len(b)-1]) {
		tail, a, b = append([]*model.Item{a[len(a)-1]}, tail...), a[:len(a)-1], b[:len(b)-1]
	}
	if slices.ContainsFunc(a, func(i *model.Item) bool {
		return slices.ContainsFunc(b, func(j *model.Item) bool { return text(i) == text(j) })
	}) {
		// The same in another order, as after merges elsewhere.
		a, b = slices.Concat(a, b), nil
		slices.SortFunc(a, func(x, y *model.Item) int { return strictFirst([]*model.Item{x}, []*model.Item{y}) })
	}
	if strictFirst(a, b) > 0 {
		a, b = b, a
	}
	out := slices.Concat(head, a, b, tail)
	if !m.list.ordered {
		slices.SortFunc(out, func(x, y *model.Item) int { return strings.Compare(text(x), text(y)) })
		out = slices.CompactFunc(out, func(x, y *model.Item) bool { return text(x) == text(y) })
	}
	return out
}

// verify checks the promise of merge on the result, whatever way it was found:
// every statement is as the side that changed it left it.
func (m *itemMerge) verify(theirs, ours, result []*model.Item) {
	b, t, o, r := m.whole(m.base), m.whole(theirs), m.whole(ours), m.whole(result)
	for _, p := range keys(b, t, o, r) {
		for _, k := range keys(b[p], t[p], o[p], r[p]) {
			want, clash := statement(b[p], t[p], o[p], k)
			if clash || r[p][k] != want {
				m.conflict.add(m.list.name + ": " + p)
			}
		}
	}
}

// whole is what a list says about every principal that it names: the first item
// that does, or all of them.
func (m *itemMerge) whole(items []*model.Item) map[string]statements {
	out := map[string]statements{}
	for _, i := range items {
		for _, p := range principals(i) {
			if out[p] == nil {
				out[p] = statements{}
			} else if m.list.ordered {
				continue
			}
			for k, when := range m.list.says(i) {
				if !m.list.ordered {
					k += when
				}
				out[p][k] = when
			}
		}
	}
	return out
}
