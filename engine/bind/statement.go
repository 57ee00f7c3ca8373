package bind

import (
	"context"
	"sort"
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"

	"sqe/fault"
	"sqe/plan"
)

// stateKey finds the statement in a context: go-mysql-server's provider has one
// instance, names resolve per statement.
type stateKey struct{}

// statement is what binding one statement knows.
type statement struct {
	rel     Relations
	session *Session
	// complete shows withheld columns too: for SHOW and information_schema, which
	// read no rows.
	complete bool
	// query: it is a query, and not a SHOW.
	query bool
	// definer marks that names are resolved for a policy text.
	definer   bool
	functions map[string]Provide
	relations map[relationKey]relationAnswer
	views     int // expanded so far
	// definitions are the texts of the views that were expanded: folded already.
	definitions map[string]bool
	// feed holds the rows of the children of a foreign tree.
	feed []*feed
	// limits bound what the row executor produces, produced counts it.
	limits   Limits
	produced int64
	// rows counts it together with what other statements hold.
	rows *shared
	// withheld lists, by name, the withheld columns of the tables that were named.
	withheld map[string]string // lower-case column -> table
	// narrow bounds what lists of names show.
	narrow narrow
	// target is what the statement changes, when its rows are read for that.
	target *Relation
}

type relationKey struct {
	database, name, ref string
	snapshot            int64
	time                int64
}

type relationAnswer struct {
	relation *Relation
	err      error
}

func newStatement(rel Relations, s *Session) *statement {
	return &statement{rel: rel, session: s, relations: map[relationKey]relationAnswer{}, withheld: map[string]string{}, definitions: map[string]bool{}}
}

func stateOf(ctx context.Context) *statement {
	st, _ := ctx.Value(stateKey{}).(*statement)
	if st == nil {
		// Never in a statement; nothing resolves without one.
		return &statement{rel: noRelations{}, relations: map[relationKey]relationAnswer{}, withheld: map[string]string{}, definitions: map[string]bool{}}
	}
	return st
}

// relation asks for a relation once in a statement.
func (st *statement) relation(ctx context.Context, database, name string, at plan.AsOf) (*Relation, error) {
	if database == noDatabase {
		return nil, errNoDatabase
	}
	key := relationKey{database: database, name: name, ref: at.Ref, snapshot: at.Snapshot}
	if !at.Time.IsZero() {
		key.time = at.Time.UnixNano()
	}
	if a, ok := st.relations[key]; ok {
		return a.relation, a.err
	}
	r, err := st.rel.Relation(ctx, database, name, at)
	st.relations[key] = relationAnswer{r, err}
	if err == nil && r.Table != nil && !st.complete {
		for id := range r.Withheld {
			if f, ok := r.Table.Field(id); ok {
				st.withheld[strings.ToLower(f.Name)] = r.Table.Name.Name
			}
		}
	}
	return r, err
}

// starWarnings says which columns SELECT * left out.
func (st *statement) starWarnings(ast sqlparser.Statement) []string {
	if len(st.withheld) == 0 || !hasStar(ast) {
		return nil
	}
	var out []string
	for column, table := range st.withheld {
		out = append(out, "column '"+column+"' of '"+table+"' is withheld by a policy that cannot be applied; * leaves it out")
	}
	sort.Strings(out)
	return out
}

// hasStar reports whether a statement selects * or t.* (count(*) is none), or
// TABLE t.
func hasStar(ast sqlparser.SQLNode) bool {
	found := false
	_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		if s, ok := n.(*sqlparser.Select); ok {
			for _, e := range s.SelectExprs {
				if _, star := e.(*sqlparser.StarExpr); star {
					found = true
				}
			}
		}
		return !found, nil
	}, ast)
	return found
}

// checkNatural refuses a natural join beside withheld columns: its meaning depends
// on columns that are not shown.
func (st *statement) checkNatural(ast sqlparser.SQLNode) error {
	if len(st.withheld) == 0 {
		return nil
	}
	natural := false
	_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		if j, ok := n.(*sqlparser.JoinTableExpr); ok && strings.HasPrefix(strings.ToLower(j.Join), "natural") {
			natural = true
		}
		return !natural, nil
	}, ast)
	if natural {
		return fault.New(fault.Withheld, "NATURAL JOIN is not possible with a table that has a withheld column; write USING (...) or ON")
	}
	return nil
}

// noRelations knows no names.
type noRelations struct{}

func (noRelations) Relation(context.Context, string, string, plan.AsOf) (*Relation, error) {
	return nil, errNoTable("", "")
}
func (noRelations) Databases(context.Context) ([]string, error)       { return nil, nil }
func (noRelations) HasDatabase(context.Context, string) (bool, error) { return false, nil }
func (noRelations) Names(context.Context, string) (tables, views []string, err error) {
	return nil, nil, nil
}
