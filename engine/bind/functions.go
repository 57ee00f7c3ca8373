package bind

import (
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function"
	"sqe/fault"
	"sqe/plan"
)

// kinds of arguments that a function takes, one letter each; a star repeats the
// letter before it.
//
//	s text   n number   i integer   d DOUBLE   t date or timestamp   b text or
//	bytes, as bytes   j JSON   x anything   c condition
type signature struct {
	name string // of the catalogue
	args string
	min  int // number of arguments that must be given
}

// direct lists the functions that are one function of the catalogue. Keys are
// go-mysql-server's names.
var direct = map[string]signature{
	"abs": {"abs", "n", 1}, "sign": {"sign", "n", 1}, "ceil": {"ceil", "n", 1}, "ceiling": {"ceil", "n", 1}, "floor": {"floor", "n", 1},
	"sqrt": {"sqrt", "d", 1}, "exp": {"exp", "d", 1}, "ln": {"ln", "d", 1}, "log2": {"log2", "d", 1}, "log10": {"log10", "d", 1},
	"sin": {"sin", "d", 1}, "cos": {"cos", "d", 1}, "tan": {"tan", "d", 1}, "asin": {"asin", "d", 1}, "acos": {"acos", "d", 1},
	"cot": {"cot", "d", 1}, "degrees": {"degrees", "d", 1}, "radians": {"radians", "d", 1}, "power": {"pow", "dd", 2}, "pow": {"pow", "dd", 2},
	"pi": {"pi", "", 0}, "rand": {"rand", "", 0},
	"concat": {"concat", "s*", 1}, "concat_ws": {"concat_ws", "s*", 2}, "lower": {"lower", "s", 1}, "lcase": {"lower", "s", 1},
	"upper": {"upper", "s", 1}, "ucase": {"upper", "s", 1}, "reverse": {"reverse", "s", 1}, "md5": {"md5", "s", 1}, "sha1": {"sha1", "s", 1}, "sha": {"sha1", "s", 1},
	"soundex": {"soundex", "s", 1}, "quote": {"quote", "s", 1}, "ltrim": {"ltrim", "s", 1}, "rtrim": {"rtrim", "s", 1},
	"left": {"left", "si", 2}, "right": {"right", "si", 2}, "repeat": {"repeat", "si", 2}, "replace": {"replace", "sss", 3},
	"lpad": {"lpad", "sis", 3}, "rpad": {"rpad", "sis", 3}, "substring_index": {"substring_index", "ssi", 3}, "space": {"space", "i", 1},
	"character_length": {"char_length", "s", 1}, "char_length": {"char_length", "s", 1}, "bit_length": {"bit_length", "s", 1},
	"ascii": {"ascii", "s", 1}, "ord": {"ord", "s", 1}, "strcmp": {"strcmp", "ss", 2}, "find_in_set": {"find_in_set", "ss", 2},
	"year": {"year", "t", 1}, "quarter": {"quarter", "t", 1}, "month": {"month", "t", 1}, "day": {"day", "t", 1}, "dayofmonth": {"day", "t", 1},
	"hour": {"hour", "t", 1}, "minute": {"minute", "t", 1}, "second": {"second", "t", 1}, "microsecond": {"microsecond", "t", 1},
	"dayofweek": {"dayofweek", "t", 1}, "weekday": {"weekday", "t", 1}, "dayofyear": {"dayofyear", "t", 1}, "to_days": {"to_days", "t", 1},
	"dayname": {"dayname", "t", 1}, "monthname": {"monthname", "t", 1}, "last_day": {"last_day", "t", 1}, "datediff": {"datediff", "tt", 2},
	"makedate": {"makedate", "ii", 2}, "insert": {"insert_text", "siis", 4},
	"from_days": {"from_days", "i", 1}, "json_extract": {"json_extract", "js*", 2}, "json_unquote": {"json_unquote", "j", 1},
	"json_type": {"json_type", "j", 1}, "json_valid": {"json_valid", "x", 1}, "json_length": {"json_length", "js", 1}, "json_keys": {"json_keys", "js", 1},
	"json_contains_path": {"json_contains_path", "jss", 3},
}

// constants are folded to a literal when the statement is bound.
var constants = map[string]bool{
	"now": true, "current_timestamp": true, "localtime": true, "localtimestamp": true, "curdate": true, "current_date": true, "curtime": true, "current_time": true,
	"utc_timestamp": true, "sysdate": true, "database": true, "schema": true, "version": true, "connection_id": true, "user": true, "current_user": true,
	"session_user": true, "system_user": true, "last_insert_id": true,
}

func (t *translator) function(e sql.FunctionExpression) plan.Expr {
	name := strings.ToLower(e.FunctionName())
	args := e.(sql.Expression).Children()
	if p, ok := e.(*provided); ok {
		return p.literal
	}
	if name == "found_rows" || name == "row_count" {
		refuse(fault.Unsupported, "the function %s is not supported; count with SELECT COUNT(*)", strings.ToUpper(name))
	}
	if constants[name] {
		return t.constant(name, e.(sql.Expression))
	}
	if f, ok := special[name]; ok {
		return f(t, e.(sql.Expression), args)
	}
	s, ok := direct[name]
	if !ok {
		cannot("the function " + strings.ToUpper(name))
	}
	if len(args) < s.min {
		refuse(fault.BadStatement, "Incorrect parameter count in the call to function '%s'", name)
	}
	return t.call(s.name, t.arguments(s.args, name, args)...)
}

// arguments translates the arguments of a function as a signature wants them.
func (t *translator) arguments(kinds, name string, args []sql.Expression) []plan.Expr {
	out := make([]plan.Expr, len(args))
	for i, a := range args {
		k := byte('?')
		switch {
		case i < len(kinds) && kinds[i] != '*':
			k = kinds[i]
		case strings.HasSuffix(kinds, "*"):
			k = kinds[len(kinds)-2]
		default:
			cannot("the function " + strings.ToUpper(name) + " with this number of arguments")
		}
		out[i] = t.argument(k, name, t.expr(a))
	}
	return out
}

func (t *translator) argument(kind byte, name string, x plan.Expr) plan.Expr {
	switch kind {
	case 's':
		if x.Type().ID() == arrow.BINARY {
			cannot("the function " + strings.ToUpper(name) + " on bytes")
		}
		return t.cast(x, plan.String)
	case 'n':
		return t.number(x, strings.ToUpper(name))
	case 'i':
		x = t.number(x, strings.ToUpper(name))
		if !plan.IsInteger(x.Type()) {
			cannot("the function " + strings.ToUpper(name) + " with a number that is no integer")
		}
		return x
	case 'd':
		return t.cast(t.number(x, strings.ToUpper(name)), plan.Float64)
	case 't':
		return t.temporal(x, name)
	case 'b':
		return t.cast(x, plan.Binary)
	case 'j':
		if l, ok := x.(*plan.Literal); ok && plan.IsString(l.Typ) || plan.IsString(x.Type()) {
			if l != nil && l.Value == nil {
				return null(plan.JSON)
			}
			return t.call("parse_json", x)
		}
		if x.Type().ID() == arrow.NULL {
			return null(plan.JSON)
		}
		if !plan.IsJSON(x.Type()) {
			cannot("the function " + strings.ToUpper(name) + " on something else than JSON")
		}
		return x
	case 'c':
		return t.truth(x)
	}
	return x
}

// temporal is a date or timestamp; a literal text is read as one.
func (t *translator) temporal(x plan.Expr, name string) plan.Expr {
	if plan.IsTemporal(x.Type()) {
		return x
	}
	l, ok := x.(*plan.Literal)
	if !ok || l.Value == nil {
		if ok {
			return null(plan.Timestamp)
		}
		cannot("the function " + strings.ToUpper(name) + " on something else than a date")
	}
	s, isText := l.Value.(string)
	if i, isInt := l.Value.(int64); isInt {
		s, isText = strconv.FormatInt(i, 10), true
	}
	if !isText {
		cannot("the function " + strings.ToUpper(name) + " on something else than a date")
	}
	at, hasTime, ok := parseTemporal(s)
	if !ok {
		refuse(fault.BadStatement, "%s is given a text that is no date; write 'YYYY-MM-DD' or 'YYYY-MM-DD HH:MM:SS'", strings.ToUpper(name))
	}
	if hasTime {
		return timestampLiteral(at)
	}
	return dateLiteral(at)
}

// constant folds a function of the session or of the statement's time.
func (t *translator) constant(name string, e sql.Expression) plan.Expr {
	switch name {
	case "now", "current_timestamp", "localtime", "localtimestamp", "utc_timestamp", "sysdate":
		at := t.now().Truncate(1e9)
		if c := e.Children(); len(c) == 1 {
			if l, ok := t.expr(c[0]).(*plan.Literal); ok {
				if p, ok := l.Value.(int64); ok && p >= 0 && p <= 6 {
					unit := int64(1e9)
					for ; p > 0; p-- {
						unit /= 10
					}
					at = t.now().Truncate(timeUnit(unit))
				}
			}
		}
		return timestampLiteral(at)
	case "curdate", "current_date":
		return dateLiteral(t.now())
	case "curtime", "current_time":
		n := t.now()
		return &plan.Literal{Value: arrow.Time64(int64(n.Hour()*3600+n.Minute()*60+n.Second()) * 1e6), Typ: plan.Time}
	case "version":
		return text(t.binder.version())
	case "database", "schema":
		if db := selected(t.ctx.GetCurrentDatabase()); db != "" {
			return text(db)
		}
		return null(plan.String)
	}
	if name == "session_user" || name == "system_user" {
		c := t.ctx.Client()
		return text(c.User + "@" + c.Address)
	}
	return t.folded(e)
}

type specialFunction func(t *translator, e sql.Expression, args []sql.Expression) plan.Expr

// special lists the functions that are more than a renaming.
var special map[string]specialFunction

func init() {
	special = map[string]specialFunction{
		"if": func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr {
			return t.choice(t.condition(args[0]), t.expr(args[1]), t.expr(args[2]))
		},
		"ifnull": func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr {
			return t.common("coalesce", args)
		},
		"coalesce": func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr {
			return t.common("coalesce", args)
		},
		"greatest": func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr {
			return t.extreme("greatest", args)
		},
		"least": func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr {
			return t.extreme("least", args)
		},
		"isnull": func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr {
			return t.call("is_null", t.expr(args[0]))
		},
		"nullif": func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr {
			a, b := t.expr(args[0]), t.expr(args[1])
			eq := t.compare("eq", a, b)
			return &plan.Case{Whens: []plan.When{{Cond: eq, Then: null(a.Type())}}, Else: a, Typ: a.Type()}
		},
		"trim": (*translator).trim,
		"length": func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr {
			x := t.expr(args[0])
			if x.Type().ID() == arrow.BINARY {
				return t.call("byte_length", x)
			}
			return t.call("byte_length", t.cast(x, plan.String))
		},
		"octet_length": func(t *translator, e sql.Expression, args []sql.Expression) plan.Expr {
			return special["length"](t, e, args)
		},
		"hex": func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr {
			x := t.expr(args[0])
			if !plan.IsString(x.Type()) && x.Type().ID() != arrow.BINARY {
				cannot("HEX of something else than text or bytes")
			}
			return t.call("hex", x)
		},
		"unhex": func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr {
			return t.call("unhex", t.argument('s', "unhex", t.expr(args[0])))
		},
		"sha2": func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr {
			bits, ok := t.expr(args[1]).(*plan.Literal)
			if !ok {
				cannot("SHA2 with a length that is no literal")
			}
			return t.call("sha2", t.argument('s', "sha2", t.expr(args[0])), bits)
		},
		"locate": func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr {
			return t.call("locate", t.arguments("ssi", "locate", args)...)
		},
		"instr": func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr {
			a := t.arguments("ss", "instr", args)
			return t.call("locate", a[1], a[0])
		},
		"field": func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr {
			return t.call("field", t.arguments("s*", "field", args)...)
		},
		"round": func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr { return t.round("round", args) },
		"truncate": func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr {
			return t.round("truncate", args)
		},
		"mod": func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr {
			return t.expr(expression.NewMod(args[0], args[1]))
		},
		"atan": func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr {
			a := t.arguments("dd", "atan", args)
			if len(a) == 2 {
				return t.call("atan2", a...)
			}
			return t.call("atan", a...)
		},
		"log": func(t *translator, e sql.Expression, args []sql.Expression) plan.Expr { return t.logarithm(e, args) },
		"date": func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr {
			return t.toDate(t.expr(args[0]))
		},
		"datetime": func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr {
			if len(args) != 1 {
				cannot("TIMESTAMP with two arguments")
			}
			return t.toTimestamp(t.expr(args[0]))
		},
		"timestamp": func(t *translator, e sql.Expression, args []sql.Expression) plan.Expr {
			return special["datetime"](t, e, args)
		},
		"extract": (*translator).extract,
		"week":    func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr { return t.week("week", args) },
		"yearweek": func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr {
			return t.week("yearweek", args)
		},
		"weekofyear": func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr {
			return t.call("week", t.temporal(t.expr(args[0]), "weekofyear"), integer(3))
		},
		"date_format": func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr {
			format, ok := t.expr(args[1]).(*plan.Literal)
			if !ok || !plan.IsString(format.Typ) {
				cannot("DATE_FORMAT with a format that is no literal")
			}
			return t.call("date_format", t.temporal(t.expr(args[0]), "date_format"), format)
		},
		"date_add": func(t *translator, e sql.Expression, args []sql.Expression) plan.Expr { return t.dateAdd(args, false) },
		"date_sub": func(t *translator, e sql.Expression, args []sql.Expression) plan.Expr { return t.dateAdd(args, true) },
		"adddate":  func(t *translator, e sql.Expression, args []sql.Expression) plan.Expr { return t.dateAdd(args, false) },
		"subdate":  func(t *translator, e sql.Expression, args []sql.Expression) plan.Expr { return t.dateAdd(args, true) },
		"timestampdiff": func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr {
			unit, ok := t.expr(args[0]).(*plan.Literal)
			name, isText := "", false
			if ok {
				name, isText = unit.Value.(string)
			}
			if !isText {
				cannot("TIMESTAMPDIFF without a unit")
			}
			u := strings.TrimPrefix(strings.ToLower(name), "sql_tsi_")
			a, b := t.toTimestamp(t.expr(args[1])), t.toTimestamp(t.expr(args[2]))
			return t.call("timestampdiff", text(u), a, b)
		},
		"unix_timestamp": func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr {
			if len(args) == 0 {
				return integer(t.now().Unix())
			}
			return t.call("unix_timestamp", t.temporal(t.expr(args[0]), "unix_timestamp"))
		},
		"from_unixtime": func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr {
			if len(args) != 1 {
				cannot("FROM_UNIXTIME with a format")
			}
			return t.call("from_unixtime", t.number(t.expr(args[0]), "FROM_UNIXTIME"))
		},
		"str_to_date": (*translator).strToDate,
		"regexp_like": func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr {
			if len(args) != 2 {
				cannot("REGEXP_LIKE with flags")
			}
			return t.call("regexp_like", t.arguments("ss", "regexp_like", args)...)
		},
		"json_object": func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr {
			out := make([]plan.Expr, len(args))
			for i, a := range args {
				out[i] = t.expr(a)
				if i%2 == 0 {
					out[i] = t.cast(out[i], plan.String)
				}
			}
			return t.call("json_object", out...)
		},
		"json_array": func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr {
			out := make([]plan.Expr, len(args))
			for i, a := range args {
				out[i] = t.expr(a)
			}
			return t.call("json_array", out...)
		},
		"json_contains": func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr {
			return t.call("json_contains", t.arguments("jjs", "json_contains", args)...)
		},
		"json_value": func(t *translator, _ sql.Expression, args []sql.Expression) plan.Expr {
			if len(args) != 2 {
				cannot("JSON_VALUE with RETURNING")
			}
			return t.call("json_unquote", t.call("json_extract", t.arguments("js", "json_value", args)...))
		},
	}
}

// choice is IF(c, a, b) with both results of one type.
func (t *translator) choice(c, a, b plan.Expr) plan.Expr {
	typ := unify(a.Type(), b.Type())
	return &plan.Case{Whens: []plan.When{{Cond: c, Then: t.cast(a, typ)}}, Else: t.cast(b, typ), Typ: typ}
}

// common calls a function whose arguments have one type.
func (t *translator) common(name string, args []sql.Expression) plan.Expr {
	out := make([]plan.Expr, len(args))
	var typ arrow.DataType = plan.Null
	for i, a := range args {
		out[i] = t.expr(a)
		typ = unify(typ, out[i].Type())
	}
	for i := range out {
		out[i] = t.cast(out[i], typ)
	}
	return t.call(name, out...)
}

// extreme is GREATEST and LEAST. MySQL compares mixed types in ways of their own.
func (t *translator) extreme(name string, args []sql.Expression) plan.Expr {
	var typ arrow.DataType = plan.Null
	for _, a := range args {
		u, ok := plan.CommonType(typ, t.expr(a).Type())
		if !ok {
			cannot(strings.ToUpper(name) + " of mixed types")
		}
		typ = u
	}
	return t.common(name, args)
}

func (t *translator) substring(e *function.Substring) plan.Expr {
	args := []plan.Expr{t.argument('s', "substr", t.expr(e.Str)), t.argument('i', "substr", t.expr(e.Start))}
	if e.Len != nil {
		args = append(args, t.argument('i', "substr", t.expr(e.Len)))
	}
	return t.call("substr", args...)
}

func (t *translator) trim(e sql.Expression, _ []sql.Expression) plan.Expr {
	f, ok := e.(*function.Trim)
	if !ok {
		cannot("this form of TRIM")
	}
	c := f.Children()
	if len(c) != 2 {
		cannot("this form of TRIM")
	}
	name := "trim"
	// The direction shows in the text only; BOTH is the one without a word.
	switch s := f.String(); {
	case strings.HasPrefix(strings.ToLower(s), "trim(leading "):
		name = "ltrim"
	case strings.HasPrefix(strings.ToLower(s), "trim(trailing "):
		name = "rtrim"
	}
	str, pat := t.argument('s', name, t.expr(c[0])), t.argument('s', name, t.expr(c[1]))
	l, ok := pat.(*plan.Literal)
	if !ok {
		cannot("TRIM of something else than a literal")
	}
	s, isText := l.Value.(string)
	if !isText {
		return null(plan.String)
	}
	if s == " " {
		return t.call(name, str)
	}
	return t.call(name, str, l)
}

// round is ROUND and TRUNCATE. The number of places is a literal, and narrows the
// scale of a decimal.
func (t *translator) round(name string, args []sql.Expression) plan.Expr {
	x := t.number(t.expr(args[0]), strings.ToUpper(name))
	places := int64(0)
	if len(args) > 1 {
		l, ok := t.expr(args[1]).(*plan.Literal)
		if !ok {
			cannot(strings.ToUpper(name) + " with places that are no literal")
		}
		if l.Value == nil {
			return null(x.Type())
		}
		if places, ok = l.Value.(int64); !ok {
			cannot(strings.ToUpper(name) + " with places that are no integer")
		}
	}
	r := t.call(name, x, integer(places))
	if !arrow.IsDecimal(x.Type().ID()) {
		return r
	}
	p, s := plan.DecimalParams(x.Type())
	to := int32(max(places, 0))
	if to >= s {
		return r
	}
	// One more digit before the point: 9.99 rounds to 10.0.
	return &plan.Cast{Operand: r, Typ: plan.Decimal(min(38, max(p-s+to+1, 1)), to)}
}

func (t *translator) logarithm(e sql.Expression, args []sql.Expression) plan.Expr {
	a := make([]plan.Expr, len(args))
	for i, x := range args {
		a[i] = t.argument('d', "log", t.expr(x))
	}
	switch s := strings.ToLower(e.String()); {
	case len(a) == 2:
		return t.call("log", a...)
	case len(a) == 1 && strings.HasPrefix(s, "log2("):
		return t.call("log2", a...)
	case len(a) == 1 && strings.HasPrefix(s, "log10("):
		return t.call("log10", a...)
	case len(a) == 1:
		return t.call("ln", a...)
	}
	cannot("this form of LOG")
	return nil
}

func (t *translator) toDate(x plan.Expr) plan.Expr {
	x = t.temporal(x, "date")
	return t.cast(x, plan.Date)
}

func (t *translator) toTimestamp(x plan.Expr) plan.Expr {
	x = t.temporal(x, "timestamp")
	return t.cast(x, plan.Timestamp)
}

var extracted = map[string]string{
	"YEAR": "year", "QUARTER": "quarter", "MONTH": "month", "DAY": "day", "HOUR": "hour", "MINUTE": "minute", "SECOND": "second",
	"MICROSECOND": "microsecond", "WEEK": "week",
}

func (t *translator) extract(_ sql.Expression, args []sql.Expression) plan.Expr {
	l, ok := t.expr(args[0]).(*plan.Literal)
	unit := ""
	if ok {
		unit, _ = l.Value.(string)
	}
	name, ok := extracted[strings.ToUpper(unit)]
	if !ok {
		cannot("EXTRACT of a combined unit")
	}
	x := t.temporal(t.expr(args[1]), "extract")
	if name == "week" {
		return t.call("week", x, integer(0))
	}
	return t.call(name, x)
}

func (t *translator) week(name string, args []sql.Expression) plan.Expr {
	mode := integer(0)
	if len(args) > 1 {
		l, ok := t.expr(args[1]).(*plan.Literal)
		if !ok || l.Value == nil {
			cannot(strings.ToUpper(name) + " with a mode that is no literal")
		}
		mode = l
	}
	return t.call(name, t.temporal(t.expr(args[0]), name), mode)
}

// dateAdd is DATE_ADD, ADDDATE and the like: a date and an interval, or days.
func (t *translator) dateAdd(args []sql.Expression, subtract bool) plan.Expr {
	if len(args) != 2 {
		cannot("this form of DATE_ADD")
	}
	if i, ok := args[1].(*expression.Interval); ok {
		return t.addInterval(args[0], i, subtract)
	}
	return t.addInterval(args[0], expression.NewInterval(args[1], "DAY"), subtract)
}

var intervals = map[string]bool{
	"YEAR": true, "QUARTER": true, "MONTH": true, "WEEK": true, "DAY": true, "HOUR": true, "MINUTE": true, "SECOND": true, "MICROSECOND": true,
}

func (t *translator) addInterval(date sql.Expression, i *expression.Interval, subtract bool) plan.Expr {
	unit := strings.ToUpper(i.Unit)
	if !intervals[unit] {
		cannot("an interval of a combined unit")
	}
	amount := t.number(t.expr(i.Child), "INTERVAL")
	if l, ok := amount.(*plan.Literal); ok && l.Value != nil {
		// INTERVAL '90' DAY is text that is a number.
		if f, isFloat := l.Value.(float64); isFloat && f == float64(int64(f)) {
			amount = integer(int64(f))
		}
	}
	if !plan.IsInteger(amount.Type()) {
		cannot("an interval with a fraction")
	}
	if subtract {
		if l, ok := amount.(*plan.Literal); ok {
			if n, ok := negated(l); ok {
				amount = n
				subtract = false
			}
		}
		if subtract {
			amount = t.call("neg", amount)
		}
	}
	raw := t.expr(date)
	x := t.temporal(raw, "DATE_ADD")
	switch unit {
	case "HOUR", "MINUTE", "SECOND", "MICROSECOND":
		if x.Type().ID() == arrow.DATE32 {
			x = t.cast(x, plan.Timestamp)
		}
	}
	if xl, ok := x.(*plan.Literal); ok {
		if al, ok := amount.(*plan.Literal); ok {
			if folded, ok := addLiteral(xl, al, unit); ok {
				return folded
			}
		}
	}
	return t.call("date_add", x, amount, text(strings.ToLower(unit)))
}

// formatHasTime reports whether a STR_TO_DATE format reads a time of day.
func formatHasTime(f string) bool {
	for i := 0; i+1 < len(f); i++ {
		if f[i] == '%' {
			if strings.IndexByte("HhIiklprSsTf", f[i+1]) >= 0 {
				return true
			}
			i++
		}
	}
	return false
}

func (t *translator) strToDate(_ sql.Expression, args []sql.Expression) plan.Expr {
	f, ok := t.expr(args[1]).(*plan.Literal)
	format := ""
	if ok {
		format, ok = f.Value.(string)
	}
	if !ok {
		cannot("STR_TO_DATE with a format that is no literal")
	}
	x := t.argument('s', "str_to_date", t.expr(args[0]))
	if formatHasTime(format) {
		return t.call("str_to_date_timestamp", x, f)
	}
	return t.call("str_to_date_date", x, f)
}

// convert translates CAST and CONVERT.
func (t *translator) convert(e *expression.Convert) plan.Expr {
	// The target shows in the text only: convert(child, type(length,scale)).
	target := strings.TrimSuffix(strings.TrimPrefix(e.String(), "convert("+e.Child.String()+", "), ")")
	name, params, _ := strings.Cut(target, "(")
	x := t.expr(e.Child)
	from := x.Type()
	var length, scale int64
	if params != "" {
		l, s, _ := strings.Cut(strings.TrimSuffix(params, ")"), ",")
		length, _ = strconv.ParseInt(l, 10, 64)
		scale, _ = strconv.ParseInt(s, 10, 64)
	}
	if from.ID() == arrow.NULL {
		to, ok := arrowType(e.Type())
		if !ok {
			cannot("this CAST")
		}
		return null(to)
	}
	switch strings.ToLower(name) {
	case expression.ConvertToChar, expression.ConvertToNChar:
		s := t.cast(x, plan.String)
		if length > 0 {
			s = t.call("left", s, integer(length))
		}
		return s
	case expression.ConvertToBinary:
		if length > 0 {
			cannot("CAST AS BINARY(n)")
		}
		return t.cast(x, plan.Binary)
	case expression.ConvertToDate:
		return t.toDate(x)
	case expression.ConvertToDatetime:
		return t.toTimestamp(x)
	case expression.ConvertToSigned:
		x = t.castNumber(x)
		if plan.IsInteger(x.Type()) {
			return t.cast(x, plan.Int64)
		}
		// Rounds half away from zero.
		return &plan.Cast{Operand: t.call("round", x, integer(0)), Typ: plan.Int64}
	case expression.ConvertToDecimal:
		if length == 0 {
			length = 10
		}
		if length > 38 {
			refuse(fault.Unsupported, "DECIMAL has at most 38 digits")
		}
		x = t.castNumber(x)
		to := plan.Decimal(int32(length), int32(scale))
		if l, ok := x.(*plan.Literal); ok {
			if c, ok := castLiteral(l, to); ok {
				return c
			}
		}
		if !plan.IsInteger(x.Type()) {
			x = t.call("round", x, integer(scale))
		}
		return &plan.Cast{Operand: x, Typ: to}
	case expression.ConvertToDouble, expression.ConvertToReal:
		return t.cast(t.castNumber(x), plan.Float64)
	case expression.ConvertToFloat:
		return t.cast(t.cast(t.castNumber(x), plan.Float64), plan.Float32)
	case expression.ConvertToJSON:
		return t.argument('j', "CAST AS JSON", x)
	}
	cannot("CAST AS " + strings.ToUpper(name))
	return nil
}

// castNumber is the number that CAST reads from a value.
func (t *translator) castNumber(x plan.Expr) plan.Expr {
	if l, ok := x.(*plan.Literal); ok && plan.IsString(l.Typ) && l.Value != nil {
		if n, ok := parseNumber(l.Value.(string)); ok {
			return n
		}
		refuse(fault.BadStatement, "CAST of a text that is no number; MySQL would use the number at its beginning and warn")
	}
	return t.number(x, "CAST")
}
