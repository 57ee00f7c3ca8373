//go:build e2e

package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"sqe/tests/sqetest"
)

var (
	metamorphicSeed  = flag.Uint64("seed", 1, "seed of the first random query; 0: a new one for each run")
	metamorphicCount = flag.Int("queries", 400, "number of random queries")
)

// TestMetamorphic: for random queries, what pat gets from the governed tables is
// what root gets from copies of them that are physically filtered and masked.
//
// A failure prints the seed of its query: go test ... -run Metamorphic -seed N
// -queries 1 runs that query alone.
func TestMetamorphic(t *testing.T) {
	s := labServer(t)
	pat, root := s.Conn(t, "pat", sqetest.Database("lab")), s.Conn(t, "root", sqetest.Database("lab"))
	seed := *metamorphicSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano()) % 1_000_000_007
	}
	t.Logf("seed %d", seed)
	answered, withRows, failed := 0, 0, 0
	for i := range *metamorphicCount {
		g := generator{r: rand.New(rand.NewPCG(seed+uint64(i), 0))}
		query := g.query()
		governed := strings.NewReplacer("{people}", "people", "{orders}", "orders").Replace(query)
		copied := strings.NewReplacer("{people}", "people_seen", "{orders}", "orders_seen").Replace(query)
		mine := sqetest.Ask(within(t, patience), pat, governed)
		theirs := sqetest.Ask(within(t, patience), root, copied)
		switch {
		case (mine.Err == nil) != (theirs.Err == nil):
			failed++
			t.Errorf("seed %d: only one of the two fails\n%s\ngoverned: %v\ncopy:     %v", seed+uint64(i), governed, mine.Err, theirs.Err)
		case mine.Err == nil:
			answered++
			if len(mine.Rows) > 0 {
				withRows++
			}
			if !slices.Equal(mine.Sorted(), theirs.Sorted()) {
				failed++
				t.Errorf("seed %d: different rows\n%s\ngoverned: %.600q\ncopy:     %.600q", seed+uint64(i), governed, mine.Sorted(), theirs.Sorted())
			}
		}
		if failed > 10 {
			t.Fatal("too many failures")
		}
	}
	t.Logf("%d queries: %d answered, %d with rows", *metamorphicCount, answered, withRows)
	if *metamorphicCount > 100 && (answered < *metamorphicCount*8/10 || withRows < *metamorphicCount*4/10) {
		t.Errorf("of %d queries %d were answered, %d with rows: the generator proves little", *metamorphicCount, answered, withRows)
	}
}

// TestGenerator: the same seed makes the same query, and another another.
func TestGenerator(t *testing.T) {
	seen := map[string]bool{}
	for i := range uint64(200) {
		a := generator{r: rand.New(rand.NewPCG(i, 0))}
		b := generator{r: rand.New(rand.NewPCG(i, 0))}
		x := a.query()
		if y := b.query(); x != y {
			t.Fatalf("seed %d makes %s and %s", i, x, y)
		}
		seen[x] = true
	}
	if len(seen) < 180 {
		t.Errorf("%d different queries of 200", len(seen))
	}
}

// generator makes random queries over {people} and {orders} whose results do not
// depend on anything that SQL leaves open: no LIMIT without a total order, no
// sum of doubles, no value of an arbitrary row.
type generator struct {
	r     *rand.Rand
	alias int
}

// column is a column in scope, as text and with its kind.
type column struct{ text, kind string }

const (
	numberKind = "number"
	textKind   = "text"
	dateKind   = "date"
	moneyKind  = "money"
	boolKind   = "bool"
)

var columnsOf = map[string][]column{
	"{people}": {
		{"id", numberKind},
		{"k", numberKind},
		{"age", numberKind},
		{"region", textKind},
		{"active", boolKind},
		{"name", textKind},
		{"ssn", textKind},
		{"email", textKind},
		{"dob", dateKind},
		{"salary", moneyKind},
		{"note", textKind},
	},
	"{orders}": {
		{"id", numberKind}, {"person", numberKind}, {"amount", moneyKind}, {"status", textKind}, {"memo", textKind}, {"placed", dateKind},
	},
}

func pick[T any](g *generator, list ...T) T { return list[g.r.IntN(len(list))] }

func (g *generator) chance(percent int) bool { return g.r.IntN(100) < percent }

func (g *generator) name() string {
	g.alias++
	return fmt.Sprintf("t%d", g.alias)
}

func (g *generator) query() string {
	switch g.r.IntN(10) {
	case 0:
		return g.selectOne() + pick(g, " UNION ", " UNION ALL ", " INTERSECT ", " EXCEPT ") + g.selectOne()
	case 1:
		n := g.name()
		return fmt.Sprintf("WITH %s AS (SELECT * FROM {people} WHERE %s) SELECT a.id, a.ssn, b.note FROM %s a JOIN %s b ON a.k = b.k WHERE %s",
			n, g.condition(g.scope("{people}", ""), 2), n, n, g.condition(g.scope("{people}", "a"), 1))
	case 2:
		return g.window()
	case 3, 4:
		return g.grouped()
	default:
		return g.plain()
	}
}

// scope is the columns of a table under an alias.
func (g *generator) scope(table, alias string) []column {
	var out []column
	for _, c := range columnsOf[table] {
		if alias != "" {
			c.text = alias + "." + c.text
		}
		out = append(out, c)
	}
	return out
}

// from makes a FROM clause and the columns that it brings.
func (g *generator) from() (string, []column) {
	a, b := g.name(), g.name()
	switch g.r.IntN(7) {
	case 0:
		return fmt.Sprintf("{people} %s %s {orders} %s ON %s.id = %s.person", a, pick(g, "JOIN", "LEFT JOIN", "RIGHT JOIN"), b, a, b),
			append(g.scope("{people}", a), g.scope("{orders}", b)...)
	case 1:
		join := pick(g, "k", "ssn", "note", "dob", "name")
		return fmt.Sprintf("{people} %s JOIN {people} %s ON %s.%s = %s.%s AND %s.id <= %s.id", a, b, a, join, b, join, a, b),
			append(g.scope("{people}", a), g.scope("{people}", b)...)
	case 2:
		return fmt.Sprintf("(SELECT * FROM {people} WHERE %s) %s", g.condition(g.scope("{people}", ""), 1), a), g.scope("{people}", a)
	case 3, 4:
		return "{orders} " + a, g.scope("{orders}", a)
	default:
		return "{people} " + a, g.scope("{people}", a)
	}
}

func (g *generator) plain() string {
	from, scope := g.from()
	items := make([]string, 1+g.r.IntN(4))
	for i := range items {
		items[i] = g.value(scope, 2)
	}
	distinct := pick(g, "", "", "DISTINCT ")
	text := fmt.Sprintf("SELECT %s%s FROM %s", distinct, strings.Join(items, ", "), from)
	if g.chance(75) {
		text += " WHERE " + g.condition(scope, 3)
	}
	return text
}

// selectOne has one text column, for set operations.
func (g *generator) selectOne() string {
	from, scope := g.from()
	text := fmt.Sprintf("SELECT %s AS v FROM %s", g.of(scope, textKind), from)
	if g.chance(60) {
		text += " WHERE " + g.condition(scope, 2)
	}
	return text
}

func (g *generator) grouped() string {
	from, scope := g.from()
	key := pick(g, scope...).text
	aggregates := []string{"count(*)"}
	for range 1 + g.r.IntN(3) {
		aggregates = append(aggregates, g.aggregate(scope))
	}
	text := fmt.Sprintf("SELECT %s AS g, %s FROM %s", key, strings.Join(aggregates, ", "), from)
	if g.chance(50) {
		text += " WHERE " + g.condition(scope, 2)
	}
	text += " GROUP BY " + key
	if g.chance(40) {
		text += " HAVING " + pick(g, "count(*) > 1", "count(*) < 4", "max("+g.of(scope, textKind)+") IS NOT NULL")
	}
	return text
}

func (g *generator) aggregate(scope []column) string {
	switch g.r.IntN(5) {
	case 0:
		return fmt.Sprintf("count(%s)", g.value(scope, 1))
	case 1:
		return fmt.Sprintf("count(DISTINCT %s)", pick(g, scope...).text)
	case 2:
		return fmt.Sprintf("sum(%s)", g.of(scope, numberKind, moneyKind))
	default:
		return fmt.Sprintf("%s(%s)", pick(g, "min", "max"), g.of(scope, numberKind, textKind, dateKind, moneyKind))
	}
}

func (g *generator) window() string {
	scope := g.scope("{people}", "")
	over := fmt.Sprintf("OVER (%sORDER BY %s%s, id)", pick(g, "", "PARTITION BY region ", "PARTITION BY k ", "PARTITION BY dob "),
		pick(g, scope...).text, pick(g, "", " DESC"))
	f := pick(g, "row_number()", "rank()", "count(*)", "sum(age)", "lag(ssn)", "lead(note)", "first_value(email)", "max(name)")
	return fmt.Sprintf("SELECT id, %s %s AS w FROM {people} WHERE %s", f, over, g.condition(scope, 2))
}

// of is a column of one of the kinds.
func (g *generator) of(scope []column, kinds ...string) string {
	var fit []column
	for _, c := range scope {
		if slices.Contains(kinds, c.kind) {
			fit = append(fit, c)
		}
	}
	return pick(g, fit...).text
}

// value is an expression of any type.
func (g *generator) value(scope []column, depth int) string {
	if depth == 0 || g.chance(50) {
		return pick(g, scope...).text
	}
	n, s := g.of(scope, numberKind), g.of(scope, textKind)
	switch g.r.IntN(12) {
	case 0:
		return fmt.Sprintf("%s %s %d", n, pick(g, "+", "-", "*"), g.r.IntN(20))
	case 1:
		return fmt.Sprintf("CONCAT(%s, '-', %s)", s, g.of(scope, textKind))
	case 2:
		return fmt.Sprintf("CASE WHEN %s THEN %s ELSE %s END", g.condition(scope, 1), s, g.of(scope, textKind))
	case 3:
		return fmt.Sprintf("COALESCE(%s, 'none')", s)
	case 4:
		return fmt.Sprintf("UPPER(%s)", s)
	case 5:
		return fmt.Sprintf("SUBSTR(%s, %d, %d)", s, 1+g.r.IntN(4), 1+g.r.IntN(5))
	case 6:
		return fmt.Sprintf("CHAR_LENGTH(%s)", s)
	case 7:
		return fmt.Sprintf("YEAR(%s)", g.of(scope, dateKind))
	case 8:
		return fmt.Sprintf("NULLIF(%s, %s)", n, g.of(scope, numberKind))
	case 9:
		return fmt.Sprintf("(SELECT count(*) FROM {orders} o WHERE o.person = %s)", n)
	case 10:
		return fmt.Sprintf("(SELECT max(p.%s) FROM {people} p WHERE p.id = %s)", pick(g, "ssn", "note", "salary", "name"), n)
	default:
		return fmt.Sprintf("IF(%s, 1, 0)", g.condition(scope, 1))
	}
}

// Literals are raw and masked values, of visible and of hidden rows.
var texts = []string{
	"EU", "US", "100-00-1000", "xxx-xx-1000", "114-02-1026", "Ana Quill 0", "Xxx Xxxxx n", "c:Q", "Q0 says hush-0", "open", "void", "late", "memo-0-zz0", "x", "",
}

func (g *generator) condition(scope []column, depth int) string {
	if depth > 1 && g.chance(45) {
		return fmt.Sprintf("(%s %s %s)", g.condition(scope, depth-1), pick(g, "AND", "OR"), g.condition(scope, depth-1))
	}
	if depth > 1 && g.chance(12) {
		return fmt.Sprintf("NOT (%s)", g.condition(scope, depth-1))
	}
	n, s := g.of(scope, numberKind), g.of(scope, textKind)
	literal := "'" + pick(g, texts...) + "'"
	compare := pick(g, "=", "<>", "<", "<=", ">", ">=")
	switch g.r.IntN(13) {
	case 0, 1:
		return fmt.Sprintf("%s %s %d", n, compare, g.r.IntN(70))
	case 2, 3:
		return fmt.Sprintf("%s %s %s", s, compare, literal)
	case 4:
		return fmt.Sprintf("%s IS %sNULL", pick(g, scope...).text, pick(g, "", "NOT "))
	case 5:
		return fmt.Sprintf("%s %sLIKE '%s'", s, pick(g, "", "NOT "), pick(g, "%1%", "x%", "c:%", "Q%", "%-10_0", "E_", "%hush%"))
	case 6:
		return fmt.Sprintf("%s %sIN (%s, '%s')", s, pick(g, "", "NOT "), literal, pick(g, texts...))
	case 7:
		return fmt.Sprintf("%s BETWEEN %d AND %d", n, g.r.IntN(20), 20+g.r.IntN(40))
	case 8:
		return fmt.Sprintf("%s %s '%d-%02d-01'", g.of(scope, dateKind), compare, pick(g, 1955, 1970, 1990, 2024), 1+g.r.IntN(12))
	case 9:
		return fmt.Sprintf("%s <=> %s", s, literal)
	case 10:
		return fmt.Sprintf("%sEXISTS (SELECT 1 FROM {people} x WHERE x.id = %s AND x.%s)", pick(g, "", "NOT "), n,
			pick(g, "ssn = "+literal, "age > 40", "region = 'EU'", "note LIKE 'Q%'", "salary > 1"))
	case 11:
		return fmt.Sprintf("%s %sIN (SELECT x.%s FROM {people} x WHERE x.age > %d)", s, pick(g, "", "NOT "), pick(g, "ssn", "note", "name", "region"), g.r.IntN(80))
	default:
		return fmt.Sprintf("%s > (SELECT avg(x.%s) FROM {people} x)", n, pick(g, "age", "k", "id"))
	}
}
