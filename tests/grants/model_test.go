package grants

import (
	"slices"
	"strings"
)

// what a privilege gives and what its denial takes: reading and writing rows, where a
// table lies, dropping it; and of a view.
var (
	abilities     = map[string]string{"SELECT": "r", "INSERT": "rw", "MODIFY": "rwl", "DROP": "d"}
	viewAbilities = map[string]string{"SELECT": "v", "DROP": "x"}
)

// fact is a grant or a denial that the model knows of.
type fact struct {
	deny               bool
	grantee            string // as it is written
	on                 string
	privilege, ability string
}

func factOf(grantee, on, privilege string) fact {
	f := fact{grantee: grantee, on: on, privilege: privilege, ability: abilities[privilege]}
	if strings.Contains(on, "VIEW") {
		f.ability = viewAbilities[privilege]
	}
	return f
}

// placeOf is what a statement is on, without whether it is for tables or for views: there
// is one policy for both.
func placeOf(on string) string {
	return strings.TrimPrefix(strings.Replace(on, "ALL VIEWS", "ALL TABLES", 1), "VIEW ")
}

// reaches says whether something on one place is on another one. What is on all of a
// schema is on what is directly in it; a denial is on what is further inside, too.
func reaches(on, at string, deny bool) bool {
	schema, all := strings.CutPrefix(on, "ALL TABLES IN SCHEMA ")
	switch {
	case on == at || on == "ALL TABLES IN CATALOG lake":
		return true
	case !all || at == "ALL TABLES IN CATALOG lake":
		return false
	}
	in, whole := strings.CutPrefix(at, "ALL TABLES IN SCHEMA ")
	if !whole {
		in = at[:strings.LastIndexByte(at, '.')]
	}
	return in == schema || deny && strings.HasPrefix(in, schema+".")
}

// held is a grantee at a place.
type held struct{ grantee, place string }

// reading is the simple reading of grants: what one is given, by oneself or a group or
// a role, and what is not denied.
type reading struct {
	facts []fact
	// options are the abilities that may be passed on.
	options map[held]string
	// roles are the members of roles that statements made, as "role grantee".
	roles []string
}

// identities are the names of a user in statements.
func (m *reading) identities(user string) []string {
	mine := []string{"USER " + user, "PUBLIC"}
	for _, g := range members[user].groups {
		mine = append(mine, "GROUP "+g)
	}
	for _, r := range members[user].roles {
		mine = append(mine, "ROLE "+r)
	}
	for changed := true; changed; {
		changed = false
		for _, x := range m.roles {
			role, member, _ := strings.Cut(x, " ")
			if role = "ROLE " + role; slices.Contains(mine, member) && !slices.Contains(mine, role) {
				mine, changed = append(mine, role), true
			}
		}
	}
	return mine
}

func (m *reading) may(user, table, ability string) bool {
	mine := m.identities(user)
	allowed := false
	for _, f := range m.facts {
		if !slices.Contains(mine, f.grantee) || !reaches(placeOf(f.on), table, f.deny) || !strings.Contains(f.ability, ability) {
			continue
		}
		if f.deny {
			return false
		}
		allowed = true
	}
	return allowed
}

// mayPass says whether a user may pass on, and take back, what a fact says.
func (m *reading) mayPass(user string, f fact) bool {
	mine, at := m.identities(user), placeOf(f.on)
	passes := ""
	for x, abilities := range m.options {
		if slices.Contains(mine, x.grantee) && reaches(x.place, at, false) {
			passes = plus(passes, abilities)
		}
	}
	for _, d := range m.facts {
		if d.deny && slices.Contains(mine, d.grantee) && reaches(placeOf(d.on), at, true) {
			passes = without(passes, d.ability)
		}
	}
	return without(f.ability, passes) == ""
}

func (m *reading) grant(f fact, option bool) {
	if !slices.Contains(m.facts, f) {
		m.facts = append(m.facts, f)
	}
	if option {
		x := held{f.grantee, placeOf(f.on)}
		m.options[x] = plus(m.options[x], f.ability)
	}
}

// revoke takes facts back; what is not held any more is not passed on.
func (m *reading) revoke(f fact, all bool, gone func(fact) bool) {
	x := held{f.grantee, placeOf(f.on)}
	m.facts = slices.DeleteFunc(m.facts, func(g fact) bool {
		return g.grantee == x.grantee && placeOf(g.on) == x.place && (all || g.on == f.on && g.privilege == f.privilege) && gone(g)
	})
	left := ""
	for _, g := range m.facts {
		if !g.deny && g.grantee == x.grantee && placeOf(g.on) == x.place {
			left = plus(left, g.ability)
		}
	}
	m.options[x] = without(m.options[x], without("rwldvx", left))
}

// revokeOption takes the right to pass something on, but for what belongs to something
// greater that may be passed on.
func (m *reading) revokeOption(f fact) {
	x := held{f.grantee, placeOf(f.on)}
	all, kept := m.options[x], ""
	for _, g := range m.facts {
		if !g.deny && g.grantee == x.grantee && placeOf(g.on) == x.place && without(g.ability, all) == "" && without(g.ability, f.ability) != "" {
			kept = plus(kept, g.ability)
		}
	}
	m.options[x] = without(all, without(f.ability, kept))
}

func plus(a, b string) string { return without(a, b) + b }

// without is a without the letters of b.
func without(a, b string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(b, r) {
			return -1
		}
		return r
	}, a)
}
