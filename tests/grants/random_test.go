package grants

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sqe/fault"
)

// The seeds of TestRandom; more of them, from another one on, for a search by hand.
var (
	seeds     = flag.Int("seeds", 0, "how many random sequences of statements are tried with each sink; 0: the usual number")
	firstSeed = flag.Uint64("first-seed", 0, "the seed of the first of them")
)

// TestRandom holds random sequences of statements to the model: what the model says
// is what CHECK ACCESS says, and what happens when the user tries.
func TestRandom(t *testing.T) {
	for i, sink := range sinks {
		t.Run(sink, func(t *testing.T) { random(openOver(t, sink), 3-2*i) })
	}
}

const view = "sales.v"

var (
	randomTables  = []string{"bank.customers", "bank.payments", "sales.t", "sales.eu.t", "sales.eu.de.t"}
	randomSchemas = "bank, sales, sales.eu, sales.eu.de"
	randomObjects = slices.Concat([]string{
		"ALL TABLES IN SCHEMA bank", "ALL TABLES IN SCHEMA sales", "ALL TABLES IN SCHEMA sales.eu", "ALL TABLES IN CATALOG lake",
		"ALL VIEWS IN SCHEMA sales", "ALL VIEWS IN CATALOG lake", "VIEW " + view, "VIEW " + view,
	}, randomTables, randomTables)
	randomGrantees = []string{"PUBLIC", "USER ann", "USER ben", "USER cat", "USER dan", "GROUP eu", "ROLE teller", "ROLE senior", "ROLE empty"}
	// Members of roles that come and go. A role of the list has members that are before it.
	randomRoles = []string{"senior ROLE teller", "senior GROUP eu", "empty ROLE senior", "empty ROLE teller", "empty USER dan", "teller USER dan"}
)

func random(l *lake, rounds int) {
	t := l.T
	l.root("GRANT CREATE TABLE ON SCHEMA sales, sales.eu, sales.eu.de TO dan")
	l.root("GRANT CREATE VIEW ON SCHEMA sales TO dan")
	for _, table := range randomTables[2:] {
		if _, _, err := l.ask("dan", "CREATE TABLE "+table+" (id INT)"); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := l.ask("dan", "CREATE VIEW "+view+" AS SELECT 1 AS one"); err != nil {
		t.Fatal(err)
	}
	l.root("REVOKE ALL PRIVILEGES, GRANT OPTION FROM dan")
	if left := l.policies(); left != "" {
		t.Fatalf("left:\n%s", left)
	}
	if *seeds > 0 {
		rounds = *seeds
	} else if testing.Short() {
		rounds = 1
	}
	for n := range uint64(rounds) {
		s := &sequence{lake: l, seed: *firstSeed + n}
		s.rng = rand.New(rand.NewPCG(s.seed, 3))
		s.run()
	}
}

// sequence is one of random statements.
type sequence struct {
	*lake
	seed uint64
	rng  *rand.Rand
	m    *reading
	log  []string
}

func (s *sequence) pick(list []string) string { return list[s.rng.IntN(len(list))] }

func (s *sequence) fail(format string, args ...any) {
	s.Helper()
	s.Fatalf("seed %d (-first-seed): after\n%s\n%s", s.seed, strings.Join(s.log, "\n"), fmt.Sprintf(format, args...))
}

// do is a statement of root.
func (s *sequence) do(text string) {
	s.Helper()
	s.log = append(s.log, text)
	if _, _, err := s.ask("root", text); err != nil {
		s.fail("%v", err)
	}
}

// Half of the steps are those of an administrator, on the way to something that nothing
// has prepared. In the others owners act, too, and everybody finds all schemas.
const (
	randomSteps = 40
	ownersFrom  = randomSteps / 2
)

func (s *sequence) run() {
	s.m = &reading{options: map[held]string{}}
	everybody := strings.Join(randomGrantees, ", ")
	for step := range randomSteps {
		if step == ownersFrom {
			s.do("GRANT USE, SELECT VIEW ON SCHEMA " + randomSchemas + " TO " + everybody)
		}
		switch n := s.rng.IntN(20); {
		case n < 2:
			s.role()
		case step >= ownersFrom && n < 9:
			s.owner()
		default:
			s.administrator()
		}
		s.compare(step%8 == 0)
	}
	for len(s.m.facts) > 0 {
		f := s.m.facts[0]
		s.do(fmt.Sprintf("REVOKE %s ON %s FROM %s", f.privilege, f.on, f.grantee))
		s.m.revoke(f, false, func(fact) bool { return true })
	}
	for _, x := range s.m.roles {
		role, member, _ := strings.Cut(x, " ")
		s.do("REVOKE " + role + " FROM " + member)
	}
	s.do("REVOKE USE, SELECT VIEW ON SCHEMA " + randomSchemas + " FROM " + everybody)
	if left := s.policies(); left != "" {
		s.fail("and when all is taken back there are\n%s", left)
	}
}

// fact is something that may be said, or that was said.
func (s *sequence) fact(again bool) fact {
	if again && len(s.m.facts) > 0 {
		f := s.m.facts[s.rng.IntN(len(s.m.facts))]
		f.deny = false
		return f
	}
	f := factOf(s.pick(randomGrantees), s.pick(randomObjects), s.pick([]string{"SELECT", "INSERT", "MODIFY", "DROP"}))
	if f.ability == "" { // of a view
		return factOf(f.grantee, f.on, "SELECT")
	}
	return f
}

// written is the object in a statement: FUTURE is another word for ALL.
func (s *sequence) written(on string) string {
	if s.rng.IntN(4) == 0 {
		return strings.Replace(on, "ALL ", "FUTURE ", 1)
	}
	return on
}

// option says whether a grant is one with the right to pass it on.
func (s *sequence) option() (text string, yes bool) {
	if s.rng.IntN(3) == 0 {
		return " WITH GRANT OPTION", true
	}
	return "", false
}

func (s *sequence) administrator() {
	f := s.fact(false)
	switch n := s.rng.IntN(22); {
	case n < 8:
		option, yes := s.option()
		s.do(fmt.Sprintf("GRANT %s ON %s TO %s%s", f.privilege, s.written(f.on), f.grantee, option))
		s.m.grant(f, yes)
	case n < 12:
		s.do(fmt.Sprintf("DENY %s ON %s TO %s", f.privilege, s.written(f.on), f.grantee))
		f.deny = true
		s.m.grant(f, false)
	case n < 14:
		f = s.fact(true)
		s.do(fmt.Sprintf("REVOKE ALL PRIVILEGES ON %s FROM %s", s.written(f.on), f.grantee))
		s.m.revoke(f, true, func(fact) bool { return true })
	case n < 16:
		f = s.fact(true)
		s.do(fmt.Sprintf("REVOKE GRANT OPTION FOR %s ON %s FROM %s", f.privilege, s.written(f.on), f.grantee))
		s.m.revokeOption(f)
	default:
		f = s.fact(n < 20)
		s.do(fmt.Sprintf("REVOKE %s ON %s FROM %s", f.privilege, s.written(f.on), f.grantee))
		s.m.revoke(f, false, func(fact) bool { return true })
	}
}

// owner is a statement of somebody who may have been given the right to make it.
func (s *sequence) owner() {
	user := s.pick([]string{"ann", "ben", "cat", "dan"})
	f := s.fact(s.rng.IntN(2) == 0)
	if s.rng.IntN(4) > 0 { // about something that somebody may pass on
		var some []fact
		for _, g := range s.m.facts {
			if without(g.ability, s.m.options[held{g.grantee, placeOf(g.on)}]) == "" {
				some = append(some, factOf(f.grantee, g.on, g.privilege))
			}
		}
		if len(some) > 0 {
			f = some[s.rng.IntN(len(some))]
		}
		for _, u := range []string{"ann", "ben", "cat", "dan"} {
			if s.rng.IntN(2) == 0 && s.m.mayPass(u, f) {
				user = u
			}
		}
	}
	if strings.Contains(f.on, "CATALOG") {
		return // nobody was prepared to find all schemas that there may be
	}
	may, text := s.m.mayPass(user, f), ""
	var then func()
	switch n := s.rng.IntN(10); {
	case n < 6:
		option, yes := s.option()
		text, then = fmt.Sprintf("GRANT %s ON %s TO %s%s", f.privilege, s.written(f.on), f.grantee, option), func() { s.m.grant(f, yes) }
	case n < 7:
		text, then = fmt.Sprintf("REVOKE GRANT OPTION FOR %s ON %s FROM %s", f.privilege, s.written(f.on), f.grantee), func() { s.m.revokeOption(f) }
	default: // a denial is not for owners to lift
		text = fmt.Sprintf("REVOKE %s ON %s FROM %s", f.privilege, s.written(f.on), f.grantee)
		then = func() { s.m.revoke(f, false, func(g fact) bool { return !g.deny }) }
	}
	s.log = append(s.log, user+"> "+text)
	_, _, err := s.ask(user, text)
	if (err == nil) != may || err != nil && !fault.Is(err, fault.Denied) {
		s.fail("it is answered %v, and the model says %v", err, may)
	}
	if may {
		then()
	} else {
		s.log[len(s.log)-1] += " -- denied"
	}
}

// role makes something a member of a role, or takes it out.
func (s *sequence) role() {
	x := s.pick(randomRoles)
	role, member, _ := strings.Cut(x, " ")
	if i := slices.Index(s.m.roles, x); i >= 0 {
		s.do("REVOKE " + role + " FROM " + member)
		s.m.roles = slices.Delete(s.m.roles, i, i+1)
		return
	}
	s.do("GRANT " + role + " TO " + member)
	s.m.roles = append(s.m.roles, x)
}

// compare asks for all that everybody may do, and tries it.
func (s *sequence) compare(write bool) {
	s.Helper()
	for user := range members {
		for _, table := range append(slices.Clone(randomTables), view) {
			asks := map[string]string{"r": "SELECT", "w": "INSERT", "d": "DROP"}
			if table == view {
				asks = map[string]string{"v": "SELECT", "x": "DROP"}
			}
			for ability, privilege := range asks {
				want := s.m.may(user, table, ability)
				if ability == "w" { // who may not read may not write
					want = want && s.m.may(user, table, "r")
				}
				rows, _, err := s.ask("root", fmt.Sprintf("CHECK ACCESS %s ON %s FOR USER %s", privilege, table, user))
				if err != nil {
					s.fail("CHECK ACCESS: %v", err)
				}
				if got := strings.HasPrefix(rows, "true|"); got != want {
					s.fail("%s of %s on %s: CHECK ACCESS says %s, the model %v", privilege, user, table, rows, want)
				}
				text := ""
				switch {
				case ability == "r", ability == "v":
					text = "SELECT COUNT(*) FROM " + table
				case ability == "w" && write && strings.HasPrefix(table, "sales"):
					text = "INSERT INTO " + table + " VALUES (1)"
				default:
					continue
				}
				_, _, err = s.ask(user, text)
				if (err == nil) != want || err != nil && !fault.Is(err, fault.Denied) && !fault.Is(err, fault.NotFound) {
					s.fail("%s: %s: %v, the model says %v", user, text, err, want)
				}
			}
		}
	}
}
