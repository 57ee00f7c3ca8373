package restrictions

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/plan"
)

// binder binds an expression to the columns of a table. Its conditions are "weak":
// TRUE where Iceberg says true, and FALSE or NULL where it says false. A filter, AND
// and OR, and a branch of CASE make no difference between the two; under NOT strong
// makes FALSE of NULL first.
type binder struct {
	table *plan.Table
	scan  *plan.Scan
	ids   plan.IDs
}

func truth(b bool) plan.Expr { return &plan.Literal{Value: b, Typ: plan.Bool} }

func strong(weak plan.Expr) plan.Expr {
	switch e := weak.(type) {
	case *plan.Literal:
		return e
	case *plan.Call:
		switch e.Func.Name {
		case "is_null", "null_safe_eq", "is_true", "not": // every NOT here is over a strong one
			return e
		}
	}
	return plan.MustCall("is_true", weak)
}

func not(weak plan.Expr) plan.Expr { return plan.MustCall("not", strong(weak)) }

// predicate binds a condition.
func (b *binder) predicate(n any) (plan.Expr, error) {
	if v, ok := n.(bool); ok {
		return truth(v), nil
	}
	o, ok := n.(object)
	if !ok {
		return nil, errors.New("a condition is neither an object nor true or false")
	}
	kind, _ := o["type"].(string)
	switch kind {
	case "true", "false":
		return truth(kind == "true"), o.closed([]string{"type"})
	case "literal":
		v, err := b.value(o)
		if err != nil {
			return nil, err
		}
		truth, ok := v.constant.(bool)
		if !ok || (v.declared != nil && v.declared.ID() != arrow.BOOL) {
			return nil, errors.New("a constant stands in the place of a condition")
		}
		return &plan.Literal{Value: truth, Typ: plan.Bool}, nil
	case "not":
		if err := o.closed([]string{"type", "child"}); err != nil {
			return nil, err
		}
		c, err := b.predicate(o["child"])
		if err != nil {
			return nil, err
		}
		return not(c), nil
	case "and", "or":
		if err := o.closed([]string{"type", "left", "right"}); err != nil {
			return nil, err
		}
		l, err := b.predicate(o["left"])
		if err != nil {
			return nil, err
		}
		r, err := b.predicate(o["right"])
		if err != nil {
			return nil, err
		}
		return plan.MustCall(kind, l, r), nil
	case "is-null", "not-null", "is-nan", "not-nan":
		return b.unary(kind, o)
	case "lt", "lt-eq", "gt", "gt-eq", "eq", "not-eq", "starts-with", "not-starts-with":
		return b.binary(kind, o)
	case "in", "not-in":
		return b.in(kind, o)
	}
	return nil, fmt.Errorf("the condition %s is not known", brief(kind))
}

// unary: the operand is "child", or "term" in the older form.
func (b *binder) unary(kind string, o object) (plan.Expr, error) {
	v, err := b.operand(o, "child")
	if err != nil {
		return nil, err
	}
	if v.expr == nil {
		return nil, fmt.Errorf("%s is asked of a constant", kind)
	}
	switch kind {
	case "is-null":
		return plan.MustCall("is_null", v.expr), nil
	case "not-null":
		return not(plan.MustCall("is_null", v.expr)), nil
	}
	if !arrow.IsFloating(v.expr.Type().ID()) {
		return nil, fmt.Errorf("%s is asked of what is no float", kind)
	}
	e := plan.MustCall("is_nan", v.expr)
	if kind == "not-nan" {
		return not(e), nil
	}
	return e, nil
}

// operand is the member name of an object that has no other operand, or its "term".
func (b *binder) operand(o object, name string, more ...string) (value, error) {
	if _, old := o["term"]; old {
		if err := o.closed(append([]string{"type", "term"}, more...)); err != nil {
			return value{}, err
		}
		return b.term(o["term"])
	}
	if err := o.closed(append([]string{"type", name}, more...)); err != nil {
		return value{}, err
	}
	return b.value(o[name])
}

// binary: the operands are "left" and "right", or "term" and "value".
func (b *binder) binary(kind string, o object) (plan.Expr, error) {
	right := "right"
	if _, old := o["term"]; old {
		right = "value"
	}
	l, err := b.operand(o, "left", right)
	if err != nil {
		return nil, err
	}
	r, err := b.value(o[right])
	if err != nil {
		return nil, err
	}
	if right == "value" && r.expr != nil {
		return nil, errors.New("the value of a condition is no constant")
	}
	x, y, err := typed(l, r)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "starts-with", "not-starts-with":
		if !plan.IsString(x.Type()) || r.expr != nil {
			return nil, fmt.Errorf("%s needs a text and a constant", kind)
		}
		e := plan.MustCall("starts_with", x, y)
		if kind == "not-starts-with" {
			return not(e), nil
		}
		return e, nil
	case "not-eq":
		return not(equal(x, y)), nil
	case "eq":
		return equal(x, y), nil
	case "gt":
		return ordered("lt", y, x), nil
	case "gt-eq":
		return ordered("le", y, x), nil
	case "lt":
		return ordered("lt", x, y), nil
	}
	return ordered("le", x, y), nil
}

func isConstant(e plan.Expr) bool {
	_, ok := e.(*plan.Literal)
	return ok
}

// equal: two NULLs are equal, two NaNs too.
func equal(x, y plan.Expr) plan.Expr {
	if isConstant(x) || isConstant(y) {
		return plan.MustCall("eq", x, y) // no constant is NULL
	}
	return plan.MustCall("null_safe_eq", x, y)
}

// ordered is x < y, or x <= y. Executors take NaN for the greatest number; here it is
// neither less nor greater than any, and equal to itself.
func ordered(op string, x, y plan.Expr) plan.Expr {
	guard := func(e plan.Expr) plan.Expr {
		if isConstant(y) || !arrow.IsFloating(y.Type().ID()) {
			return e // a constant is not NaN
		}
		return plan.MustCall("and", e, plan.MustCall("not", plan.MustCall("is_nan", y)))
	}
	if op == "le" && !isConstant(x) && !isConstant(y) {
		return plan.MustCall("or", guard(plan.MustCall("lt", x, y)), equal(x, y))
	}
	return guard(plan.MustCall(op, x, y))
}

// in: the operand is "child" or "term", the constants are "values".
func (b *binder) in(kind string, o object) (plan.Expr, error) {
	v, err := b.operand(o, "child", "values")
	if err != nil {
		return nil, err
	}
	list, ok := o["values"].([]any)
	var declared arrow.DataType
	if lo, is := o["values"].(object); is {
		if err := lo.closed([]string{"type", "values"}, "data-type"); err != nil {
			return nil, err
		}
		list, ok = lo["values"].([]any)
		ok = ok && lo["type"] == "literals"
		if dt, given := lo["data-type"]; given && ok {
			if declared, err = dataType(dt); err != nil {
				return nil, err
			}
		}
	}
	if !ok {
		return nil, fmt.Errorf("the values of %s are no list", kind)
	}
	e := &plan.In{}
	for _, n := range list {
		c, err := b.value(n)
		if err != nil {
			return nil, err
		}
		if c.expr != nil {
			return nil, fmt.Errorf("a value of %s is no constant", kind)
		}
		if c.declared == nil {
			c.declared = declared
		}
		x, y, err := typed(v, c)
		if err != nil {
			return nil, err
		}
		e.Operand, e.List = x, append(e.List, y)
	}
	out := plan.Expr(e)
	if len(list) == 0 {
		out = truth(false)
	}
	if kind == "not-in" {
		return not(out), nil
	}
	return out, nil
}

// value is an operand: an expression, or a constant that gets its type from what it
// is compared with.
type value struct {
	expr     plan.Expr
	constant any
	declared arrow.DataType // of a constant that says its type
}

// typed gives two operands types that compare.
func typed(l, r value) (x, y plan.Expr, err error) {
	of := func(v, other value) (plan.Expr, error) {
		switch {
		case v.expr != nil:
			return v.expr, nil
		case v.declared != nil:
			return constant(v.constant, v.declared)
		case other.expr != nil:
			return constant(v.constant, other.expr.Type())
		case other.declared != nil:
			return constant(v.constant, other.declared)
		}
		return nil, errors.New("constants of unknown types are compared")
	}
	if x, err = of(l, r); err != nil {
		return nil, nil, err
	}
	if y, err = of(r, l); err != nil {
		return nil, nil, err
	}
	if !alike(x.Type(), y.Type()) {
		return nil, nil, fmt.Errorf("values of types %s and %s are compared", plan.TypeName(x.Type()), plan.TypeName(y.Type()))
	}
	return x, y, nil
}

// term is an operand of the older form, in which text is the name of a column.
func (b *binder) term(n any) (value, error) {
	if _, ok := n.(string); ok {
		return value{}, errNamed
	}
	v, err := b.value(n)
	if err == nil && v.expr == nil {
		err = errors.New("the term of a condition is a constant")
	}
	return v, err
}

var errNamed = errors.New("a column is referred to by its name, and not by its id")

// value binds what is no condition.
func (b *binder) value(n any) (value, error) {
	o, ok := n.(object)
	if !ok {
		if _, list := n.([]any); list || n == nil {
			return value{}, errors.New("a constant is null or a list")
		}
		return value{constant: n}, nil
	}
	kind, _ := o["type"].(string)
	switch kind {
	case "literal":
		if err := o.closed([]string{"type", "value"}, "data-type"); err != nil {
			return value{}, err
		}
		v, err := b.value(o["value"])
		if _, nested := o["value"].(object); nested || err != nil {
			return value{}, errors.New("a constant is null or not plain")
		}
		if dt, given := o["data-type"]; given {
			if v.declared, err = dataType(dt); err != nil {
				return value{}, err
			}
		}
		return v, nil
	case "reference":
		if _, ok := o["id"]; !ok {
			return value{}, errNamed
		}
		if err := o.closed([]string{"type", "id"}); err != nil {
			return value{}, err
		}
		id, ok := whole(o["id"])
		if !ok || id < 0 || id > math.MaxInt32 {
			return value{}, errors.New("the id of a column is no number")
		}
		e, err := b.column(int(id))
		return value{expr: e}, err
	case "apply":
		e, err := b.apply(o)
		return value{expr: e}, err
	case "transform":
		e, err := b.older(o)
		return value{expr: e}, err
	}
	return value{}, fmt.Errorf("the expression %s is not known", brief(kind))
}

// column refers to a column or, through structs alone, to a field inside one.
func (b *binder) column(id int) (plan.Expr, error) {
	for _, f := range b.table.Fields {
		path := pathTo(f, id)
		if path == nil {
			continue
		}
		e := b.raw(f)
		for i, inner := range path[1:] {
			if path[i].Type.ID() != arrow.STRUCT {
				return nil, fmt.Errorf("field id %d is inside a list or map", id)
			}
			field, err := plan.NewStructField(e, inner.Name)
			if err != nil || !arrow.TypeEqual(field.Typ, inner.Type) {
				return nil, fmt.Errorf("field id %d cannot be found by its name", id)
			}
			e = field
		}
		if e.Type().ID() == arrow.NULL {
			return nil, fmt.Errorf("field id %d is of a type that cannot be read", id)
		}
		return e, nil
	}
	return nil, fmt.Errorf("field id %d is not in the schema that the table is read with", id)
}

// pathTo lists the fields from f down to the one with the id; nil when it is not there.
func pathTo(f plan.Field, id int) []plan.Field {
	if f.ID == id {
		return []plan.Field{f}
	}
	for _, c := range f.Children {
		if p := pathTo(c, id); p != nil {
			return append([]plan.Field{f}, p...)
		}
	}
	return nil
}

func (b *binder) raw(f plan.Field) plan.Expr {
	for _, c := range b.scan.Cols {
		if c.FieldID == f.ID {
			return &plan.Ref{ID: c.ID, Typ: c.Type, Name: c.Name}
		}
	}
	c := plan.ScanColumn{Column: plan.Column{ID: b.ids.New(), Name: f.Name, Type: f.Type, Nullable: !f.Required}, FieldID: f.ID}
	b.scan.Cols = append(b.scan.Cols, c)
	return &plan.Ref{ID: c.ID, Typ: c.Type, Name: c.Name}
}

// iceberg is the catalog of functions that every reader has.
const iceberg = "iceberg_functions"

func (b *binder) apply(o object) (plan.Expr, error) {
	if err := o.closed([]string{"type", "function", "arguments"}); err != nil {
		return nil, err
	}
	f, _ := o["function"].(object)
	id, _ := f["identifier"].([]any)
	arguments, ok := o["arguments"].([]any)
	if !ok || f.closed([]string{"catalog", "identifier"}) != nil || f["catalog"] != iceberg || len(id) != 1 {
		return nil, errors.New("a function is not one of the catalog " + iceberg)
	}
	name, _ := id[0].(string)
	switch {
	case name == "if_else" && len(arguments) == 3:
		return b.ifElse(arguments)
	case (name == "bucket" || name == "truncate") && len(arguments) == 2:
		w, err := b.value(arguments[0])
		if err != nil {
			return nil, err
		}
		n, ok := whole(w.constant)
		if !ok || (w.declared != nil && !plan.IsInteger(w.declared)) {
			return nil, fmt.Errorf("the width of %s is no number", name)
		}
		return b.transform(name, n, arguments[1])
	case name != "bucket" && name != "truncate" && len(arguments) == 1:
		return b.transform(name, 0, arguments[0])
	}
	return nil, fmt.Errorf("the function %s is not known, or has other arguments", brief(name))
}

var widthed = regexp.MustCompile(`^(bucket|truncate)\[([0-9]{1,10})\]$`)

// older is a transform as filters had it before there were functions.
func (b *binder) older(o object) (plan.Expr, error) {
	if err := o.closed([]string{"type", "transform", "term"}); err != nil {
		return nil, err
	}
	if _, ok := o["term"].(string); ok {
		return nil, errNamed
	}
	name, _ := o["transform"].(string)
	if m := widthed.FindStringSubmatch(name); m != nil {
		n, _ := strconv.ParseInt(m[2], 10, 64) // ten digits
		return b.transform(m[1], n, o["term"])
	}
	if name == "bucket" || name == "truncate" {
		return nil, fmt.Errorf("the transform %s has no width", name)
	}
	return b.transform(name, 0, o["term"])
}

func (b *binder) transform(name string, width int64, of any) (plan.Expr, error) {
	v, err := b.value(of)
	if err != nil {
		return nil, err
	}
	if v.expr == nil {
		return nil, fmt.Errorf("%s is applied to a constant", brief(name))
	}
	t := v.expr.Type()
	fits := false
	switch name {
	case "identity":
		return v.expr, nil
	case "year", "month", "day":
		fits = plan.IsTemporal(t)
	case "hour":
		fits = t.ID() == arrow.TIMESTAMP
	case "bucket":
		fits = plan.IsUUID(t) || plan.IsTemporal(t) || cuttable(t) || t.ID() == arrow.TIME64 || t.ID() == arrow.FIXED_SIZE_BINARY
	case "truncate":
		fits = cuttable(t)
	default:
		return nil, fmt.Errorf("the function %s is not known", brief(name))
	}
	if !fits {
		return nil, fmt.Errorf("%s does not apply to type %s", name, plan.TypeName(t))
	}
	if name != "bucket" && name != "truncate" {
		return plan.MustCall("iceberg_"+name, v.expr), nil
	}
	if width < 1 || width > math.MaxInt32 {
		return nil, fmt.Errorf("the width of %s is out of range", name)
	}
	return plan.MustCall("iceberg_"+name, &plan.Literal{Value: width, Typ: plan.Int64}, v.expr), nil
}

// cuttable are the types of truncate.
func cuttable(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.INT32, arrow.INT64, arrow.DECIMAL128, arrow.STRING, arrow.BINARY:
		return true
	}
	return false
}

func (b *binder) ifElse(arguments []any) (plan.Expr, error) {
	cond, err := b.predicate(arguments[0])
	if err != nil {
		return nil, err
	}
	l, err := b.value(arguments[1])
	if err != nil {
		return nil, err
	}
	r, err := b.value(arguments[2])
	if err != nil {
		return nil, err
	}
	then, other, err := typed(l, r)
	if err != nil {
		return nil, err
	}
	t, ok := plan.CommonType(then.Type(), other.Type())
	if !ok {
		return nil, errors.New("the branches of if_else have no common type")
	}
	return &plan.Case{Whens: []plan.When{{Cond: cond, Then: then}}, Else: other, Typ: t}, nil
}
