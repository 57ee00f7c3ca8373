package bind

import (
	"slices"
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/go-mysql-server/sql/types"

	"sqe/fault"
	"sqe/plan"
)

// foreign is what go-mysql-server's row executor runs: the tree that it bound, in
// which every piece that can be translated is a leaf that yields the rows of a
// child. It is the Handle of a plan.Foreign.
type foreign struct {
	node  sql.Node
	flags *sql.QueryFlags
	// ok says that the statement yields no rows (SET).
	ok     bool
	narrow narrow
}

// splitter makes a foreign tree.
type splitter struct {
	*translator
	children []plan.Node
	// retyped holds the types that columns of leaves have; the binder derived
	// others for some (SUM of integers is DOUBLE there).
	retyped map[sql.ColumnId]sql.Type
	lastID  sql.ColumnId
}

// firstLeafID is above the column ids that the binder gives (define keeps it so):
// it has 16 bits for them.
const firstLeafID = 1 << 15

// foreign splits a statement that has no place in the plan as a whole.
func (t *translator) foreign(n sql.Node, flags *sql.QueryFlags, reason string) (out plan.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			f, ok := p.(failure)
			if !ok {
				panic(p)
			}
			out, err = nil, f.err
			if u, ok := f.err.(untranslatable); ok {
				err = fault.New(fault.Unsupported, "%s is not supported; docs/sql.md lists what is", u.reason)
			}
		}
	}()
	s := &splitter{translator: t, retyped: map[sql.ColumnId]sql.Type{}, lastID: firstLeafID}
	node := s.retype(s.split(n))
	s.checkTypes(node)
	f := &plan.Foreign{Reason: reason}
	h := &foreign{node: node, flags: flags, narrow: s.state.narrow}
	f.Handle = h
	if _, isSet := node.(*gmsplan.Set); isSet {
		h.ok = true
	} else {
		for _, c := range node.Schema() {
			typ, ok := arrowType(c.Type)
			if !ok {
				cannot("a result of the type " + strings.ToLower(c.Type.String()))
			}
			f.Cols = append(f.Cols, plan.Column{ID: t.ids.New(), Name: c.Name, Type: typ, Nullable: true})
		}
	}
	for _, c := range s.children {
		c, err := t.finish(c)
		if err != nil {
			return nil, err
		}
		f.Children = append(f.Children, c)
	}
	return f, nil
}

// retype gives references to columns of leaves the types that they have.
func (s *splitter) retype(n sql.Node) sql.Node {
	out, _, err := transform.NodeExprsWithOpaque(n, func(e sql.Expression) (sql.Expression, transform.TreeIdentity, error) {
		switch e := e.(type) {
		case *expression.GetField:
			if typ, ok := s.retyped[e.Id()]; ok && !typ.Equals(e.Type()) {
				return expression.NewGetFieldWithTable(int(e.Id()), int(e.TableId()), typ, e.Database(), e.Table(), e.Name(), true), transform.NewTree, nil
			}
		case *expression.EnumToString:
			// The tables of information_schema hold the text of an ENUM, not its number.
			if g, ok := e.Enum.(*expression.GetField); ok {
				return textField(g), transform.NewTree, nil
			}
		case *expression.CollatedExpression:
			// Their texts are of another character set, which takes no collation of ours.
			if g, ok := e.Child().(*expression.GetField); ok && types.IsText(g.Type()) {
				out, err := e.WithChildren(textField(g))
				return out, transform.NewTree, err
			}
		case *gmsplan.Subquery:
			return e.WithQuery(s.retype(e.Query)), transform.NewTree, nil
		case *gmsplan.ExistsSubquery:
			return gmsplan.NewExistsSubquery(e.Query.WithQuery(s.retype(e.Query.Query))), transform.NewTree, nil
		}
		return e, transform.SameTree, nil
	})
	if err != nil {
		panic(failure{err})
	}
	return out
}

// textField is a column of text in our own character set.
func textField(g *expression.GetField) sql.Expression {
	return expression.NewGetFieldWithTable(int(g.Id()), int(g.TableId()), stringType, g.Database(), g.Table(), g.Name(), g.IsNullable())
}

// informational lists statements that read names and schemas only.
var informational = map[string]bool{
	"*plan.ShowTables": true, "*plan.ShowDatabases": true, "*plan.ShowColumns": true, "*plan.ShowCreateTable": true, "*plan.ShowCreateDatabase": true,
	"*plan.ShowVariables": true, "plan.ShowWarnings": true, "*plan.ShowWarnings": true, "*plan.ShowIndexes": true, "*plan.ShowCharset": true,
	"*plan.ShowStatus": true, "*plan.ShowTableStatus": true, "*plan.ShowTriggers": true, "*plan.ShowEvents": true, "*plan.ShowPrivileges": true,
	"*plan.Describe": true, "*plan.Nothing": true,
}

// rowNodes lists the operations that the row executor may do above leaves.
var rowNodes = map[string]bool{
	"*plan.Project": true, "*plan.Filter": true, "*plan.Having": true, "*plan.GroupBy": true, "*plan.Sort": true, "*plan.Limit": true, "*plan.Offset": true,
	"*plan.Distinct": true, "*plan.OrderedDistinct": true, "*plan.JoinNode": true, "*plan.SubqueryAlias": true, "*plan.TableAlias": true, "*plan.SetOp": true,
	"*plan.Set": true, "*plan.JSONTable": true, "*plan.ValueDerivedTable": true, "*plan.ResolvedTable": true, "*plan.EmptyTable": true,
}

// split replaces the largest pieces of n that can be translated by leaves.
func (s *splitter) split(n sql.Node) sql.Node {
	if status, ok := n.(*gmsplan.ShowTableStatus); ok {
		out := *status
		out.Catalog = lazyCatalog{status.Catalog}
		return &out
	}
	if show, ok := n.(*gmsplan.ShowCreateDatabase); ok {
		// The library answers for any name.
		name := show.Database().Name()
		if !strings.EqualFold(name, "information_schema") && !(provider{}).HasDatabase(s.ctx, name) {
			refuse(fault.NoDatabase, "Unknown database '%s'", name)
		}
	}
	if informational[typeName(n)] {
		return n
	}
	if !rowNodes[typeName(n)] {
		cannot("the operation " + nodeName(n))
	}
	if r, ok := n.(*gmsplan.ResolvedTable); ok {
		if _, isStub := r.Table.(*stub); !isStub {
			return n // DUAL, information_schema
		}
	}
	if out, ok := s.readable(n); ok {
		return s.leaf(out, outputs(n), n.Schema())
	}
	children := n.Children()
	if len(children) == 1 {
		if out, ok := s.over(n, children[0]); ok {
			return out
		}
	}
	done := make([]sql.Node, len(children))
	for i, c := range children {
		done[i] = s.split(c)
	}
	if len(done) > 0 {
		var err error
		if n, err = n.WithChildren(done...); err != nil {
			panic(failure{err})
		}
	}
	return s.expressions(n, s.keep)
}

// readable translates a tree that reads tables and is not correlated.
func (s *splitter) readable(n sql.Node) (plan.Node, bool) {
	out, reason, err := s.try(n)
	if err != nil {
		panic(failure{err})
	}
	return out, reason == "" && scans(out) && len(plan.Free(out)) == 0
}

func scans(n plan.Node) bool {
	found := false
	plan.Walk(n, func(n plan.Node) bool {
		if _, ok := n.(*plan.Scan); ok {
			found = true
		}
		return !found
	})
	return found
}

// over handles a node whose input can be translated and whose expressions cannot:
// what can be of each expression is computed below.
func (s *splitter) over(n, child sql.Node) (sql.Node, bool) {
	if _, ok := n.(sql.Expressioner); !ok {
		return nil, false
	}
	if _, isAlias := n.(*gmsplan.SubqueryAlias); isAlias {
		return nil, false
	}
	saved := s.scope
	s.scope = nil
	s.push()
	defer func() { s.scope = saved }()
	in, ok := s.attempt(child)
	if !ok {
		return nil, false
	}
	gms := outputs(child)
	cols := in.Columns()
	if len(gms) != len(cols) {
		return nil, false
	}
	items := make([]plan.Item, len(cols))
	schema := slices.Clone(child.Schema())
	for i, c := range cols {
		items[i] = plan.Item{Column: c, Expr: reference(c)}
	}
	n = s.expressions(n, func(e sql.Expression) sql.Expression {
		return s.lower(e, func(x plan.Expr, name string) sql.Expression {
			s.lastID++
			c := plan.Column{ID: s.ids.New(), Name: name, Type: x.Type(), Nullable: true}
			items = append(items, plan.Item{Column: c, Expr: x})
			gms = append(gms, s.lastID)
			schema = append(schema, &sql.Column{Name: name, Type: gmsType(x.Type()), Nullable: true})
			return expression.NewGetField(int(s.lastID), gmsType(x.Type()), name, true)
		})
	})
	if len(items) > len(cols) {
		in = s.accept(&plan.Project{Input: in, Items: items})
	}
	out, err := n.WithChildren(s.leaf(in, gms, schema))
	if err != nil {
		panic(failure{err})
	}
	return out, true
}

// attempt translates a tree in the current scope, so that what it yields stays
// known.
func (s *splitter) attempt(n sql.Node) (out plan.Node, ok bool) {
	if !translatable(func() { out = s.node(n) }) {
		return nil, false
	}
	return out, scans(out) && len(plan.Free(out)) == 0
}

// translatable runs a translation and reports whether all of it has a place in
// the plan. Refusals go on to the caller.
func translatable(translate func()) (ok bool) {
	defer func() {
		if p := recover(); p != nil {
			f, isFailure := p.(failure)
			if !isFailure {
				panic(p)
			}
			if _, cannot := f.err.(untranslatable); !cannot {
				panic(p)
			}
			ok = false
		}
	}()
	translate()
	return true
}

// expressions rewrites the expressions of a node.
func (s *splitter) expressions(n sql.Node, f func(sql.Expression) sql.Expression) sql.Node {
	x, ok := n.(sql.Expressioner)
	if !ok {
		return n
	}
	in := x.Expressions()
	out := make([]sql.Expression, len(in))
	for i, e := range in {
		out[i] = f(e)
	}
	n, err := x.WithExpressions(out...)
	if err != nil {
		panic(failure{err})
	}
	return n
}

// lower replaces the largest parts of an expression that can be translated by
// columns that compute makes.
func (s *splitter) lower(e sql.Expression, compute func(x plan.Expr, name string) sql.Expression) sql.Expression {
	switch x := e.(type) {
	case *expression.GetField, *expression.Literal, *expression.Interval, *expression.UserVar, *expression.SystemVar, expression.Tuple:
		return s.keep(e)
	case *expression.Alias, *argumentOf, *expression.DistinctExpression, sql.Aggregation:
	default:
		if p, ok := s.attemptExpr(e); ok && refers(p) {
			return compute(p, x.String())
		}
	}
	return s.descend(e, func(c sql.Expression) sql.Expression { return s.lower(c, compute) })
}

func (s *splitter) attemptExpr(e sql.Expression) (x plan.Expr, ok bool) {
	ok = translatable(func() {
		x = s.expr(e)
		s.accept(&plan.Project{Input: &plan.Values{Rows: [][]plan.Expr{{}}}, Items: []plan.Item{{Column: plan.Column{ID: 1, Type: x.Type()}, Expr: x}}})
	})
	return x, ok
}

// refers reports whether an expression depends on a row.
func refers(e plan.Expr) bool {
	found := false
	plan.WalkExpr(e, func(e plan.Expr) bool {
		switch e.(type) {
		case *plan.Ref, *plan.Subquery:
			found = true
		}
		return !found
	})
	return found
}

// keep leaves an expression to the row executor.
func (s *splitter) keep(e sql.Expression) sql.Expression { return s.descend(e, s.keep) }

// descend checks that the row executor computes e rightly and goes on below it.
func (s *splitter) descend(e sql.Expression, f func(sql.Expression) sql.Expression) sql.Expression {
	permitted(e)
	if q, ok := e.(*gmsplan.Subquery); ok {
		return q.WithQuery(s.split(q.Query))
	}
	if x, ok := e.(*gmsplan.ExistsSubquery); ok {
		return gmsplan.NewExistsSubquery(x.Query.WithQuery(s.split(x.Query.Query)))
	}
	children := e.Children()
	if len(children) == 0 {
		return e
	}
	out := make([]sql.Expression, len(children))
	for i, c := range children {
		out[i] = f(c)
	}
	n, err := e.WithChildren(out...)
	if err != nil {
		panic(failure{err})
	}
	if a, ok := n.(*expression.Arithmetic); ok { // texts become DOUBLE
		return &checkedArithmetic{Arithmetic: a}
	}
	if n, err = checkExponents(n); err != nil {
		panic(failure{err})
	}
	return bound(n)
}

// rowFunctions lists the functions that the row executor computes as MySQL does.
var rowFunctions = func() map[string]bool {
	out := map[string]bool{}
	for _, n := range strings.Fields(`
		elt format conv bin to_base64 from_base64 char inet_aton inet_ntoa inet6_aton inet6_ntoa is_ipv4 is_ipv6 is_ipv4_compat is_ipv4_mapped
		uuid is_uuid uuid_to_bin bin_to_uuid rand random_bytes regexp_like regexp_replace regexp_instr regexp_substr bit_count crc32
		time_format timediff time convert_tz get_format charset collation coercibility hex unhex
		json_array json_array_append json_array_insert json_contains json_contains_path json_depth json_extract json_insert json_keys json_length
		json_merge json_merge_patch json_merge_preserve json_object json_overlaps json_pretty json_quote json_remove json_replace json_schema_valid
		json_search json_set json_type json_unquote json_valid json_value
		if ifnull coalesce nullif isnull concat concat_ws lower lcase upper ucase trim ltrim rtrim left right substring substr mid replace reverse
		character_length char_length length octet_length bit_length locate instr md5 sha1 sha sha2 ascii ord strcmp find_in_set field space
		repeat substring_index soundex round abs ceil ceiling floor sign sqrt power pow exp ln log log2 log10 sin cos tan asin acos atan cot degrees radians pi
		greatest least date_format date datetime timestamp year month day dayofmonth dayofweek dayofyear weekday hour minute second microsecond quarter
		dayname monthname last_day datediff date_add date_sub adddate subdate timestampdiff to_days from_days unix_timestamp from_unixtime str_to_date extract
		now current_timestamp localtime localtimestamp curdate current_date curtime current_time utc_timestamp database schema connection_id user current_user
		last_insert_id any_value count min max group_concat json_arrayagg json_objectagg bit_and bit_or bit_xor
		sum avg stddev_pop stddev_samp var_pop var_samp std stddev variance mod div`) {
		out[n] = true
	}
	return out
}()

// permitted refuses what the row executor does not compute as MySQL does.
func permitted(e sql.Expression) {
	switch e := e.(type) {
	case *argumentOf, *gmsplan.Subquery, *gmsplan.InSubquery, *gmsplan.ExistsSubquery:
		return
	case *planned:
		cannot("the function " + strings.ToUpper(e.name) + " here")
	case sql.WindowAggregation:
		if _, isAgg := e.(sql.Aggregation); !isAgg {
			cannot("a window function over this query")
		}
	}
	if a, ok := e.(sql.Aggregation); ok && a.Window() != nil {
		cannot("a window function over this query")
	}
	if f, ok := e.(sql.FunctionExpression); ok {
		if !rowFunctions[strings.ToLower(f.FunctionName())] {
			cannot("the function " + strings.ToUpper(f.FunctionName()))
		}
		if args := e.Children(); strings.EqualFold(f.FunctionName(), "str_to_date") && len(args) == 2 {
			if l, ok := args[1].(*expression.Literal); ok && !rowReadable(l.Value()) {
				cannot("STR_TO_DATE with this format")
			}
		}
		return
	}
	if n := typeName(e); !strings.HasPrefix(n, "*expression.") && !strings.HasPrefix(n, "expression.") && !strings.HasPrefix(n, "*aggregation.") {
		cannot("the expression " + strings.TrimLeft(n, "*"))
	}
}

// rowReadable reports whether the row executor reads a text by a format of STR_TO_DATE
// as MySQL does: of other specifiers it makes NULL, and what is missing of the date it
// takes from today.
func rowReadable(format any) bool {
	f, ok := format.(string)
	year, month, day := false, false, false
	for i := 0; ok && i < len(f); i++ {
		if f[i] != '%' {
			continue
		}
		i++
		ok = i < len(f) && strings.IndexByte("YymcdebMHkhIlisSfpTr%", f[i]) >= 0
		year = year || ok && strings.IndexByte("Yy", f[i]) >= 0
		month = month || ok && strings.IndexByte("mcbM", f[i]) >= 0
		day = day || ok && strings.IndexByte("de", f[i]) >= 0
	}
	return ok && year && month && day || format == nil
}

// checkTypes refuses aggregates that the row executor computes in DOUBLE where
// MySQL is exact.
func (s *splitter) checkTypes(n sql.Node) {
	if x, ok := n.(sql.Expressioner); ok {
		for _, e := range x.Expressions() {
			sql.Inspect(e, func(e sql.Expression) bool {
				switch e := e.(type) {
				case *gmsplan.Subquery:
					s.checkTypes(e.Query)
				case *gmsplan.ExistsSubquery:
					s.checkTypes(e.Query.Query)
				case sql.Aggregation:
					name := aggregateNames[typeName(e)]
					if args := e.Children(); (name == "sum" || name == "avg") && len(args) > 0 {
						if typ := args[0].Type(); !types.IsDecimal(typ) && !types.IsFloat(typ) {
							cannot(strings.ToUpper(name) + " of integers in a query that is not translated whole")
						}
					}
				}
				return true
			})
		}
	}
	for _, c := range n.Children() {
		s.checkTypes(c)
	}
}

// leaf makes the node that yields the rows of a child. gms are the ids that the
// binder gave to the child's columns, 0 where it gave none.
func (s *splitter) leaf(p plan.Node, gms []sql.ColumnId, names sql.Schema) sql.Node {
	cols := p.Columns()
	if len(gms) != len(cols) || len(names) != len(cols) {
		cannot("a query whose columns are not known")
	}
	t := &leafTable{child: len(s.children)}
	s.children = append(s.children, p)
	position := map[sql.ColumnId]int{}
	ids := make([]sql.ColumnId, len(cols))
	for i, id := range gms {
		if id == 0 {
			s.lastID++
			id = s.lastID
		}
		ids[i] = id
		if _, again := position[id]; !again {
			position[id] = i
		}
	}
	sorted := make([]sql.ColumnId, 0, len(position))
	for id := range position {
		sorted = append(sorted, id)
	}
	slices.Sort(sorted)
	var set sql.ColSet
	for _, id := range sorted {
		i := position[id]
		typ := gmsType(cols[i].Type)
		s.retyped[id] = typ
		source := names[i].Source
		if source == "" {
			source = t.Name() // the library refuses tables with columns of no table
		}
		t.schema = append(t.schema, &sql.Column{Name: names[i].Name, Source: source, DatabaseSource: names[i].DatabaseSource, Type: typ, Nullable: true})
		t.columns = append(t.columns, i)
		set.Add(id)
	}
	var out sql.Node = gmsplan.NewResolvedTable(t, database(""), nil).WithId(sql.TableId(1<<12 + t.child)).WithColumns(set)
	if slices.Equal(sorted, ids) {
		return out
	}
	exprs := make([]sql.Expression, len(ids))
	for i, id := range ids {
		exprs[i] = expression.NewGetFieldWithTable(int(id), 0, gmsType(cols[i].Type), names[i].DatabaseSource, names[i].Source, names[i].Name, true)
	}
	return gmsplan.NewProject(exprs, out)
}
