package grants

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sqe/fault"
)

// what a privilege lets one do with a table, and what its denial takes.
var abilities = map[string]string{"SELECT": "r", "INSERT": "rw", "MODIFY": "rw", "DROP": "d"}

// fact is a grant or a denial that the model knows of.
type fact struct {
	deny               bool
	grantee            string // as it is written
	on                 string
	privilege, ability string
}

// covers says which tables something is on. A grant on all tables of a schema is one
// on those directly in it; a denial is one on those further inside, too.
func (f fact) covers(table string) bool {
	switch f.on {
	case "ALL TABLES IN CATALOG lake":
		return true
	case "ALL TABLES IN SCHEMA bank":
		return strings.HasPrefix(table, "bank.")
	case "ALL TABLES IN SCHEMA sales":
		return strings.HasPrefix(table, "sales.") && (f.deny || strings.Count(table, ".") == 1)
	case "ALL TABLES IN SCHEMA sales.eu":
		return strings.HasPrefix(table, "sales.eu.") && (f.deny || strings.Count(table, ".") == 2)
	}
	return f.on == table
}

// reading is the simple reading of grants: what one is given, by oneself or a group or
// a role, and what is not denied.
type reading struct{ facts []fact }

func (m *reading) may(user, table, ability string) bool {
	mine := []string{"USER " + user, "PUBLIC"}
	for _, g := range members[user].groups {
		mine = append(mine, "GROUP "+g)
	}
	for _, r := range members[user].roles {
		mine = append(mine, "ROLE "+r)
	}
	allowed := false
	for _, f := range m.facts {
		if !slices.Contains(mine, f.grantee) || !f.covers(table) || !strings.Contains(f.ability, ability) {
			continue
		}
		if f.deny {
			return false
		}
		allowed = true
	}
	return allowed
}

// TestRandom holds random sequences of statements to the model: what the model says
// is what CHECK ACCESS says, and what happens when the user tries.
func TestRandom(t *testing.T) {
	for i, sink := range sinks {
		t.Run(sink, func(t *testing.T) { random(openOver(t, sink), 3-2*i) })
	}
}

func random(l *lake, rounds int) {
	t := l.T
	tables := []string{"bank.customers", "bank.payments", "sales.t", "sales.eu.t", "sales.eu.de.t"}
	objects := append([]string{"ALL TABLES IN SCHEMA bank", "ALL TABLES IN SCHEMA sales", "ALL TABLES IN SCHEMA sales.eu", "ALL TABLES IN CATALOG lake"}, tables...)
	grantees := []string{"USER ann", "USER ben", "USER cat", "USER dan", "GROUP eu", "ROLE teller", "ROLE senior", "PUBLIC"}
	privileges := []string{"SELECT", "INSERT", "MODIFY", "DROP"}
	l.root("GRANT CREATE TABLE ON SCHEMA sales, sales.eu, sales.eu.de TO dan")
	for _, table := range tables[2:] {
		if _, _, err := l.ask("dan", "CREATE TABLE "+table+" (id INT)"); err != nil {
			t.Fatal(err)
		}
	}
	l.root("REVOKE CREATE TABLE ON SCHEMA sales, sales.eu, sales.eu.de FROM dan")
	if left := l.policies(); left != "" {
		t.Fatalf("left:\n%s", left)
	}
	if testing.Short() {
		rounds = 1
	}
	for seed := range uint64(rounds) {
		rng := rand.New(rand.NewPCG(seed, 3))
		pick := func(list []string) string { return list[rng.IntN(len(list))] }
		m, log := &reading{}, []string(nil)
		for step := range 40 {
			f := fact{grantee: pick(grantees), on: pick(objects), privilege: pick(privileges)}
			f.ability = abilities[f.privilege]
			same := func(g fact) bool { return g.grantee == f.grantee && g.on == f.on && g.privilege == f.privilege }
			text := ""
			switch n := rng.IntN(10); {
			case n < 4:
				text = fmt.Sprintf("GRANT %s ON %s TO %s", f.privilege, f.on, f.grantee)
				if !slices.Contains(m.facts, f) {
					m.facts = append(m.facts, f)
				}
			case n < 6:
				text = fmt.Sprintf("DENY %s ON %s TO %s", f.privilege, f.on, f.grantee)
				if f.deny = true; !slices.Contains(m.facts, f) {
					m.facts = append(m.facts, f)
				}
			case n < 7 && len(m.facts) > 0:
				f = m.facts[rng.IntN(len(m.facts))]
				text = fmt.Sprintf("REVOKE ALL PRIVILEGES ON %s FROM %s", f.on, f.grantee)
				m.facts = slices.DeleteFunc(m.facts, func(g fact) bool { return g.grantee == f.grantee && g.on == f.on })
			default:
				if len(m.facts) > 0 && n < 9 {
					f = m.facts[rng.IntN(len(m.facts))]
				}
				text = fmt.Sprintf("REVOKE %s ON %s FROM %s", f.privilege, f.on, f.grantee)
				m.facts = slices.DeleteFunc(m.facts, same)
			}
			log = append(log, text)
			l.root(text)
			l.compare(m, tables, log, step%8 == 0)
		}
		for len(m.facts) > 0 {
			f := m.facts[0]
			l.root(fmt.Sprintf("REVOKE %s ON %s FROM %s", f.privilege, f.on, f.grantee))
			m.facts = slices.DeleteFunc(m.facts, func(g fact) bool { return g.grantee == f.grantee && g.on == f.on && g.privilege == f.privilege })
		}
		if left := l.policies(); left != "" {
			t.Fatalf("after\n%s\nand when all is taken back there are\n%s", strings.Join(log, "\n"), left)
		}
	}
}

func (l *lake) compare(m *reading, tables, log []string, write bool) {
	l.Helper()
	fail := func(format string, args ...any) {
		l.Helper()
		l.Fatalf("after\n%s\n%s", strings.Join(log, "\n"), fmt.Sprintf(format, args...))
	}
	for user := range members {
		for _, table := range tables {
			for ability, privilege := range map[string]string{"r": "SELECT", "w": "INSERT", "d": "DROP"} {
				want := m.may(user, table, ability)
				if ability == "w" { // who may not read may not write
					want = want && m.may(user, table, "r")
				}
				rows, _, err := l.ask("root", fmt.Sprintf("CHECK ACCESS %s ON %s FOR USER %s", privilege, table, user))
				if err != nil {
					fail("CHECK ACCESS: %v", err)
				}
				if got := strings.HasPrefix(rows, "true|"); got != want {
					fail("%s of %s on %s: CHECK ACCESS says %s, the model %v", privilege, user, table, rows, want)
				}
				text := ""
				switch {
				case ability == "r":
					text = "SELECT COUNT(*) FROM " + table
				case ability == "w" && write && strings.HasPrefix(table, "sales"):
					text = "INSERT INTO " + table + " VALUES (1)"
				default:
					continue
				}
				_, _, err = l.ask(user, text)
				if (err == nil) != want || err != nil && !fault.Is(err, fault.Denied) && !fault.Is(err, fault.NotFound) {
					fail("%s: %s: %v, the model says %v", user, text, err, want)
				}
			}
		}
	}
}
