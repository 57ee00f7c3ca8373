package bind

import (
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"

	"sqe/fault"
	"sqe/plan"
)

// translator turns the bound tree of one statement into a plan.
type translator struct {
	binder *Binder
	ctx    *sql.Context
	state  *statement
	ids    *plan.IDs
	scope  *scope
	// work holds the recursive queries that are being translated, by the name
	// under which go-mysql-server's work table knows them.
	work       []workTable
	recursions int
	defined    int
	withheld   map[sql.ColumnId]string // columns that may be listed and not read
	// implicit holds the columns that an Aggregate picks from any row of a group
	// because something above may need them (loose GROUP BY), with their names.
	implicit map[plan.ColumnID]string
	// rows computes expressions that have no place in the plan; nil: they are refused.
	rows *rowCalls
	// byRow permits rows when nothing else translates the statement.
	byRow bool
}

// maxColumns bounds the columns that one translation defines. It is more than
// half of what the binder's ids can tell apart, and each id is defined where it is
// made.
const maxColumns = 60000

// scope maps the column ids of go-mysql-server to columns of the plan, for one
// query block. A use of a common table expression copies the tree with its ids;
// the scope of the copy then hides the outer meaning of the same ids.
type scope struct {
	parent *scope
	cols   map[sql.ColumnId]plan.Column
	// keys are grouping expressions of the block's Aggregate, as expressions over
	// its output, with the columns that hold them.
	keys []groupKey
	// work holds the columns of work tables by the name of the table (or its alias)
	// and of the column, in lower case: the binder gives a use of a work table new
	// ids that the node does not know.
	work map[[2]string]plan.Column
}

type groupKey struct {
	expr plan.Expr
	col  plan.Column
}

func (t *translator) push() { t.scope = &scope{parent: t.scope, cols: map[sql.ColumnId]plan.Column{}} }
func (t *translator) pop()  { t.scope = t.scope.parent }

func (t *translator) define(id sql.ColumnId, c plan.Column) {
	if id == 0 {
		return
	}
	// The binder counts columns in 16 bits and does not notice when they overflow.
	t.defined++
	if id >= firstLeafID || t.defined > maxColumns {
		refuse(fault.Limit, "the statement handles too many columns (tables, derived tables and expressions together at most %d); name the columns that are needed in place of *", firstLeafID)
	}
	t.scope.cols[id] = c
}

func (t *translator) lookup(id sql.ColumnId) (plan.Column, bool) {
	for s := t.scope; s != nil; s = s.parent {
		if c, ok := s.cols[id]; ok {
			return c, true
		}
	}
	return plan.Column{}, false
}

// untranslatable says that a tree, or a part of it, has no place in the plan. It
// is a failure that the row executor may still help with.
type untranslatable struct{ reason string }

func (e untranslatable) Error() string { return e.reason }

// cannot stops translation. The reason names a construct, never a value.
func cannot(reason string) { panic(failure{untranslatable{reason}}) }

// tryByRow is try, and again with RowCalls where they are permitted.
func (t *translator) tryByRow(n sql.Node) (out plan.Node, reason string, err error) {
	out, reason, err = t.try(n)
	if err != nil || reason == "" || !t.byRow {
		return out, reason, err
	}
	t.rows = newRowCalls()
	out, again, err := t.try(n)
	if err != nil || again != "" {
		t.rows = nil
		return nil, reason, err
	}
	return out, "", nil
}

// try translates a tree in an own scope. reason is not "" when it has no place in
// the plan; refusals come as errors.
func (t *translator) try(n sql.Node) (out plan.Node, reason string, err error) {
	saved, savedWork := t.scope, t.work
	savedIDs := *t.ids
	defer func() {
		t.scope, t.work = saved, savedWork
		if p := recover(); p != nil {
			f, ok := p.(failure)
			if !ok {
				panic(p)
			}
			*t.ids = savedIDs
			if u, ok := f.err.(untranslatable); ok {
				reason = u.reason
				return
			}
			err = f.err
		}
	}()
	t.push()
	t.defined = 0
	out = t.node(n)
	return out, "", nil
}

// accept asks the executor about a node that was made.
func (t *translator) accept(n plan.Node) plan.Node {
	if t.binder.options.Accepts != nil {
		if err := t.binder.options.Accepts(n); err != nil {
			cannot(err.Error())
		}
	}
	return n
}

// node translates a relational node. The columns that it yields are defined in
// the current scope.
func (t *translator) node(n sql.Node) plan.Node {
	switch n := n.(type) {
	case *gmsplan.ResolvedTable:
		return t.table(n)
	case *gmsplan.TableAlias:
		out := t.node(n.Child)
		if r, ok := n.Child.(*gmsplan.RecursiveTable); ok {
			t.nameWork(n.Name(), r, out)
		}
		return out
	case *gmsplan.SubqueryAlias:
		return t.subqueryAlias(n)
	case *gmsplan.Filter:
		in := t.node(n.Child)
		return t.accept(&plan.Filter{Input: in, Cond: t.condition(n.Expression)})
	case *gmsplan.Having:
		in := t.node(n.Child)
		return t.accept(&plan.Filter{Input: in, Cond: t.condition(n.Cond)})
	case *gmsplan.Project:
		in := t.node(n.Child)
		return t.project(in, n.Projections)
	case *gmsplan.GroupBy:
		in := t.node(n.Child)
		return t.groupBy(in, n)
	case *gmsplan.Window:
		in := t.node(n.Child)
		return t.window(in, n)
	case *gmsplan.Distinct:
		return t.distinct(n.Child)
	case *gmsplan.OrderedDistinct:
		return t.distinct(n.Child)
	case *gmsplan.Sort:
		in := t.node(n.Child)
		return t.sort(in, n.SortFields)
	case *gmsplan.Limit:
		in := t.node(n.Child)
		return t.limit(in, t.count(n.Limit), 0)
	case *gmsplan.Offset:
		in := t.node(n.Child)
		return t.limit(in, -1, t.count(n.Offset))
	case *gmsplan.JoinNode:
		return t.join(n)
	case *gmsplan.SetOp:
		return t.setOp(n)
	case *gmsplan.RecursiveCte:
		return t.recursive(n)
	case *gmsplan.RecursiveTable:
		return t.workTable(n)
	case *gmsplan.ValueDerivedTable:
		return t.values(n.ExpressionTuples, n.Columns())
	case *gmsplan.EmptyTable:
		return t.values(nil, sql.ColSet{})
	}
	cannot("the operation " + nodeName(n))
	return nil
}

// nodeName names the kind of a node of go-mysql-server for a reason.
func nodeName(n sql.Node) string {
	switch n := n.(type) {
	case *gmsplan.JSONTable:
		return "JSON_TABLE"
	case *gmsplan.ResolvedTable:
		return "of a table of information_schema"
	case sql.TableFunction:
		return "of a table function"
	default:
		s := strings.TrimPrefix(typeName(n), "*plan.")
		return strings.TrimPrefix(s, "*")
	}
}

func ids(set sql.ColSet) []sql.ColumnId {
	out := make([]sql.ColumnId, 0, set.Len())
	set.ForEach(func(id sql.ColumnId) { out = append(out, id) })
	return out
}
