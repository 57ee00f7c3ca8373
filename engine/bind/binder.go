package bind

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/planbuilder"
	"github.com/dolthub/go-mysql-server/sql/variables"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"sqe/engine/parse"
	"sqe/fault"
	"sqe/plan"
)

// Options configure a Binder.
type Options struct {
	// Version is what VERSION() and @@version answer.
	Version string
	// Accepts reports by an error that the executor cannot run a node with these
	// expressions (what is below the node was asked before). nil accepts all.
	Accepts func(plan.Node) error
	// DefaultDatabase is selected in a new session.
	DefaultDatabase string
}

// Binder binds statements of many sessions. It is safe for concurrent use.
type Binder struct {
	options  Options
	analyzer *analyzer.Analyzer
	rows     atomic.Int64 // bytes that running statements hold in the row executor
}

// statusVariables are one registry of the process.
var statusVariables sync.Once

// New makes a Binder.
func New(o Options) *Binder {
	statusVariables.Do(func() {
		variables.InitStatusVariables()
		sql.SystemVariables.AddSystemVariables(moreVariables())
	})
	a := analyzer.NewBuilder(provider{}).Build()
	// The library's own rights are of no use here: it would look for its database of
	// them at each statement, and so at what a catalog has.
	a.Catalog.AuthHandler = sql.NoopAuthorizationHandler{}
	readPrivileges(a.Catalog.InfoSchema)
	return &Binder{options: o, analyzer: a}
}

// Bound is a statement that was bound.
type Bound struct {
	Plan plan.Node
	IDs  *plan.IDs
	// Warnings for the user, one sentence each.
	Warnings []string
}

// Bind resolves a statement and translates it. args are the values of its
// placeholders, in order. The plan is not governed yet: it must not run as it is.
func (b *Binder) Bind(ctx context.Context, s *Session, rel Relations, st *parse.SQL, args []plan.Literal) (*Bound, error) {
	state := newStatement(rel, s)
	state.complete, state.query = st.Kind == parse.Show, st.Kind == parse.Query
	out, err := b.bind(ctx, s, state, st, args)
	if err != nil {
		return nil, state.fault(err, st.AST)
	}
	return out, nil
}

func (b *Binder) bind(ctx context.Context, s *Session, state *statement, st *parse.SQL, args []plan.Literal) (out *Bound, err error) {
	defer recovered(&err)
	if err := acceptable(st); err != nil {
		return nil, err
	}
	if len(args) != st.Params {
		return nil, fault.New(fault.BadStatement, "the statement has %d parameters, %d values were given", st.Params, len(args))
	}
	sctx := b.context(ctx, s, state)
	if st.Kind == parse.Query {
		if err := checkMode(sctx); err != nil {
			return nil, err
		}
	}
	state.narrow = narrowed(st.AST, args, s.Database())
	node, flags, err := b.build(sctx, st, args)
	if err != nil {
		return nil, err
	}
	if err := state.checkNatural(st.AST); err != nil {
		return nil, err
	}
	t := &translator{binder: b, ctx: sctx, state: state, ids: &plan.IDs{}}
	root, err := t.root(node, flags)
	if err != nil {
		return nil, err
	}
	root = selectLimit(sctx, st, root)
	warnings := state.starWarnings(st.AST)
	if diagnostics(st.AST) {
		warnings = s.warnings // it shows them and leaves them as they are
	}
	return &Bound{Plan: root, IDs: t.ids, Warnings: warnings}, nil
}

// acceptable refuses kinds of statements that are not bound here.
func acceptable(st *parse.SQL) error {
	switch st.Kind {
	case parse.Query, parse.Show:
		return nil
	case parse.Set:
		return acceptableSet(st.AST)
	}
	return fault.New(fault.Unsupported, "this statement is not supported; docs/sql.md lists what is")
}

// acceptableSet refuses to set what other sessions would see.
func acceptableSet(ast sqlparser.Statement) error {
	set, ok := ast.(*sqlparser.Set)
	if !ok {
		return fault.New(fault.Unsupported, "this form of SET is not supported; SET @name and SET [SESSION] variable are")
	}
	for _, e := range set.Exprs {
		switch e.Scope {
		case sqlparser.SetScope_Global, sqlparser.SetScope_Persist, sqlparser.SetScope_PersistOnly:
			return fault.New(fault.Denied, "SET GLOBAL and SET PERSIST are not possible; the configuration file has the settings of the server")
		}
		value := strings.ToUpper(sqlparser.String(e.Expr))
		switch strings.ToLower(e.Name.Name.String()) {
		case "sql_mode", "@@sql_mode", "@@session.sql_mode", "@@local.sql_mode":
			for _, mode := range unsupportedModes {
				if strings.Contains(value, mode) {
					return fault.New(fault.Unsupported, "the SQL mode %s is not supported: the grammar does not follow it", mode)
				}
			}
		case "time_zone", "@@time_zone", "@@session.time_zone", "@@local.time_zone":
			switch strings.Trim(value, `'"`) {
			case "+00:00", "-00:00", "UTC", "SYSTEM", "ETC/UTC", "DEFAULT":
			default:
				return fault.New(fault.Unsupported, "times are in UTC in SQE; set time_zone to '+00:00' and convert with CONVERT_TZ or in the client")
			}
		}
	}
	return nil
}

// unsupportedModes change what a text means in ways that the grammar does not
// follow. ANSI is a part of some of their names and stands for several.
var unsupportedModes = []string{"ANSI", "PIPES_AS_CONCAT", "NO_BACKSLASH_ESCAPES", "HIGH_NOT_PRECEDENCE"}

// checkMode refuses a statement under a mode that reached the session some other
// way than by a literal in SET.
func checkMode(ctx *sql.Context) error {
	mode := sql.LoadSqlMode(ctx)
	for _, m := range unsupportedModes {
		if mode.ModeEnabled(m) || m == "ANSI" && mode.AnsiQuotes() {
			return fault.New(fault.Unsupported, "the SQL mode %s is not supported: the grammar does not follow it; set sql_mode without it", m)
		}
	}
	return nil
}

// selectLimit applies sql_select_limit, which drivers set for a maximum of rows,
// to a query without LIMIT.
func selectLimit(ctx *sql.Context, st *parse.SQL, n plan.Node) plan.Node {
	if st.Kind != parse.Query {
		return n
	}
	switch ast := st.AST.(type) {
	case *sqlparser.Select:
		if ast.Limit != nil {
			return n
		}
	case *sqlparser.SetOp:
		if ast.Limit != nil {
			return n
		}
	}
	v, err := ctx.GetSessionVariable(ctx, "sql_select_limit")
	if err != nil {
		return n
	}
	var limit uint64
	switch v := v.(type) {
	case uint64:
		limit = v
	case int64:
		limit = uint64(v)
	default:
		return n
	}
	if _, foreign := n.(*plan.Foreign); foreign || limit >= math.MaxInt32 {
		return n
	}
	return &plan.Limit{Input: n, Count: int64(limit)}
}

// context makes go-mysql-server's context of a statement.
func (b *Binder) context(ctx context.Context, s *Session, state *statement) *sql.Context {
	return sql.NewContext(context.WithValue(ctx, stateKey{}, state), sql.WithSession(s.gms), sql.WithMemoryManager(noMemory))
}

// noMemory is shared: it keeps no state that belongs to a statement.
var noMemory = sql.NewMemoryManager(nil)

// build lets go-mysql-server bind the statement.
func (b *Binder) build(ctx *sql.Context, st *parse.SQL, args []plan.Literal) (sql.Node, *sql.QueryFlags, error) {
	ast, err := prepareAST(st)
	if err != nil {
		return nil, nil, err
	}
	if ast, err = countOrErrors(ast); err != nil {
		return nil, nil, err
	}
	return b.buildAST(ctx, ast, st.Text, args)
}

// buildAST binds a tree that prepareAST made of the text.
func (b *Binder) buildAST(ctx *sql.Context, ast sqlparser.Statement, text string, args []plan.Literal) (sql.Node, *sql.QueryFlags, error) {
	builder := planbuilder.New(ctx, b.analyzer.Catalog, nil, viewParser{})
	if len(args) > 0 {
		bindings := make(map[string]sql.Expression, len(args))
		for i, a := range args {
			e, err := argument(a)
			if err != nil {
				return nil, nil, fault.New(fault.BadStatement, "parameter %d cannot be used: %s", i+1, err)
			}
			bindings[strings.TrimPrefix(placeholder(i), ":")] = e
		}
		builder.SetBindingsWithExpr(bindings)
	}
	return builder.BindOnly(ast, text, nil)
}

// placeholder names argument i of a statement, from 0, as the grammar does.
func placeholder(i int) string { return fmt.Sprintf(":v%d", i+1) }

// bindAST binds a tree that has no text and no parameters.
func (b *Binder) bindAST(ctx *sql.Context, ast sqlparser.Statement) (sql.Node, *sql.QueryFlags, error) {
	return planbuilder.New(ctx, b.analyzer.Catalog, nil, viewParser{}).BindOnly(ast, "", nil)
}

// Describe binds a statement without values for its placeholders, to learn what a
// prepared statement yields. cols is empty when that depends on the values.
func (b *Binder) Describe(ctx context.Context, s *Session, rel Relations, st *parse.SQL) (params int, cols []plan.Column, err error) {
	args := make([]plan.Literal, st.Params)
	for i := range args {
		args[i] = plan.Literal{Typ: plan.Null}
	}
	state := newStatement(rel, s)
	state.complete, state.query = st.Kind == parse.Show, st.Kind == parse.Query
	out, err := b.bind(ctx, s, state, st, args)
	switch {
	case err == nil:
		return st.Params, out.Plan.Columns(), nil
	case st.Params > 0 && dependsOnValues(err):
		return st.Params, nil, nil
	}
	return 0, nil, state.fault(err, st.AST)
}

// dependsOnValues reports whether a statement may bind with other values than
// NULL.
func dependsOnValues(err error) bool {
	switch fault.KindOf(err) {
	case fault.BadStatement, fault.Unsupported, fault.Internal:
		return !sql.ErrColumnNotFound.Is(err) && !sql.ErrTableNotFound.Is(err) && !sql.ErrTableColumnNotFound.Is(err)
	}
	return false
}

// viewParser parses the text of views, with the limits and the folding of every
// other statement. It implements sql.Parser.
type viewParser struct{}

func (viewParser) parse(ctx context.Context, text string) (sqlparser.Statement, error) {
	st, rest, err := parse.Parse(text)
	if err != nil {
		return nil, err
	}
	if _, ok := st.(*parse.CreateView); ok && rest == "" && stateOf(ctx).definitions[text] {
		// The definition of a view that is expanded, as viewDefinition makes it: what is
		// folded must not be folded again.
		ast, err := sqlparser.Parse(text)
		if err != nil {
			return nil, err
		}
		st = &parse.SQL{Text: text, AST: ast, Kind: parse.Write}
	}
	q, ok := st.(*parse.SQL)
	if !ok || rest != "" {
		return nil, fault.New(fault.Unsupported, "the view holds something else than one query")
	}
	if err := uniqueTables(q.AST); err != nil {
		return nil, err
	}
	if err := boundedCasts(q.AST); err != nil {
		return nil, err
	}
	tagArguments(q.AST)
	return q.AST, nil
}

// ParseSimple implements sql.Parser.
func (p viewParser) ParseSimple(text string) (sqlparser.Statement, error) {
	return p.parse(context.Background(), text)
}

// Parse implements sql.Parser.
func (p viewParser) Parse(ctx *sql.Context, text string, _ bool) (sqlparser.Statement, string, string, error) {
	ast, err := p.parse(ctx, text)
	return ast, text, "", err
}

// ParseWithOptions implements sql.Parser.
func (p viewParser) ParseWithOptions(ctx context.Context, text string, _ rune, _ bool, _ sqlparser.ParserOptions) (sqlparser.Statement, string, string, error) {
	ast, err := p.parse(ctx, text)
	return ast, text, "", err
}

// ParseOneWithOptions implements sql.Parser.
func (p viewParser) ParseOneWithOptions(ctx context.Context, text string, _ sqlparser.ParserOptions) (sqlparser.Statement, int, error) {
	ast, err := p.parse(ctx, text)
	return ast, len(text), err
}

// mysqlVersion is the version that SQE's dialect follows.
const mysqlVersion = "8.0.40"

func (b *Binder) version() string {
	if b.options.Version == "" {
		return mysqlVersion + "-SQE"
	}
	return b.options.Version
}
