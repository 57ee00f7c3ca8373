package bind

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"

	"sqe/plan"
)

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
