package bind

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dolthub/go-mysql-server/sql"

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

func (t *translator) function(e sql.FunctionExpression) plan.Expr {
	name := strings.ToLower(e.FunctionName())
	args := e.(sql.Expression).Children()
	if p, ok := e.(*provided); ok {
		return p.literal
	}
	if name == "found_rows" || name == "row_count" {
		refuse(fault.Unsupported, "the function %s is not supported; the answer of a statement has the number of its rows, and SELECT COUNT(*) counts", strings.ToUpper(name))
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
