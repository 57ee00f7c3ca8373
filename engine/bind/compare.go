package bind

import (
	"encoding/hex"
	"math"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/shopspring/decimal"

	"sqe/fault"
	"sqe/plan"
)

// unify is the type that values of two types become in one column, as MySQL
// chooses it for UNION, CASE and COALESCE.
func unify(a, b arrow.DataType) arrow.DataType {
	if t, ok := plan.CommonType(a, b); ok {
		return t
	}
	switch {
	case a.ID() == arrow.BINARY || b.ID() == arrow.BINARY:
		return plan.Binary
	case plan.IsJSON(a) && plan.IsJSON(b):
		return plan.JSON
	}
	return plan.String
}

// cast converts to a type as MySQL does without warnings.
func (t *translator) cast(e plan.Expr, to arrow.DataType) plan.Expr {
	from := e.Type()
	if arrow.TypeEqual(from, to) {
		return e
	}
	if l, ok := e.(*plan.Literal); ok {
		if c, ok := castLiteral(l, to); ok {
			return c
		}
	}
	switch {
	case plan.IsString(to):
		switch {
		case from.ID() == arrow.BOOL:
			return &plan.Cast{Operand: &plan.Cast{Operand: e, Typ: plan.Int64}, Typ: plan.String}
		case arrow.IsFloating(from.ID()):
			cannot("the text of a FLOAT or DOUBLE")
		case from.ID() == arrow.TIMESTAMP:
			return t.call("date_format", e, text("%Y-%m-%d %H:%i:%s.%f"))
		case from.ID() == arrow.BINARY:
			cannot("a conversion of bytes to text")
		case plan.IsNumeric(from), from.ID() == arrow.DATE32, plan.IsJSON(from), plan.IsUUID(from), plan.IsString(from), from.ID() == arrow.TIME64:
			return &plan.Cast{Operand: e, Typ: to}
		}
	case to.ID() == arrow.BINARY:
		if plan.IsString(from) {
			return t.call("utf8_bytes", e)
		}
		return t.call("utf8_bytes", t.cast(e, plan.String))
	case from.ID() == arrow.NULL:
		return &plan.Cast{Operand: e, Typ: to}
	case (plan.IsNumeric(to) || to.ID() == arrow.BOOL) && (plan.IsNumeric(from) || from.ID() == arrow.BOOL):
		return &plan.Cast{Operand: e, Typ: to}
	case plan.IsTemporal(to) && plan.IsTemporal(from):
		return &plan.Cast{Operand: e, Typ: to}
	}
	cannot("a conversion that MySQL makes value by value")
	return nil
}

// castLiteral converts a literal where that loses nothing.
func castLiteral(l *plan.Literal, to arrow.DataType) (plan.Expr, bool) {
	if l.Value == nil {
		return null(to), true
	}
	if b, ok := l.Value.(bool); ok && plan.IsNumeric(to) {
		l = integer(map[bool]int64{true: 1}[b])
		if arrow.TypeEqual(l.Typ, to) {
			return l, true
		}
	}
	switch {
	case arrow.IsFloating(to.ID()):
		if d, ok := decimalOf(l); ok {
			f, _ := d.Float64()
			return &plan.Literal{Value: f, Typ: to}, true
		}
		if f, ok := l.Value.(float64); ok && to.ID() == arrow.FLOAT64 {
			return &plan.Literal{Value: f, Typ: to}, true
		}
	case arrow.IsDecimal(to.ID()):
		if d, ok := decimalOf(l); ok {
			p, s := plan.DecimalParams(to)
			scaled := d.Shift(s)
			if scaled.Equal(scaled.Truncate(0)) && int32(len(scaled.Abs().BigInt().String())) <= p {
				return &plan.Literal{Value: decimal128.FromBigInt(scaled.BigInt()), Typ: to}, true
			}
		}
	case plan.IsInteger(to):
		if i, ok := l.Value.(int64); ok && fits(i, to) {
			return &plan.Literal{Value: i, Typ: to}, true
		}
	case plan.IsString(to):
		switch v := l.Value.(type) {
		case int64, decimal128.Num, bool:
			if d, ok := decimalOf(l); ok {
				_, s := plan.DecimalParams(l.Typ)
				if _, isInt := v.(int64); isInt {
					s = 0
				}
				return text(d.StringFixed(s)), true
			}
		case arrow.Date32:
			return text(v.ToTime().Format("2006-01-02")), true
		}
	case to.ID() == arrow.BINARY:
		if s, ok := l.Value.(string); ok {
			return &plan.Literal{Value: []byte(s), Typ: plan.Binary}, true
		}
	case to.ID() == arrow.TIMESTAMP:
		var micros int64
		switch v := l.Value.(type) {
		case arrow.Date32:
			micros = v.ToTime().UnixMicro()
		case arrow.Timestamp:
			from, ok := l.Typ.(*arrow.TimestampType)
			if !ok {
				return nil, false
			}
			micros = v.ToTime(from.Unit).UnixMicro()
		default:
			return nil, false
		}
		if to.(*arrow.TimestampType).Unit == arrow.Nanosecond {
			if micros > math.MaxInt64/1000 || micros < math.MinInt64/1000 {
				return nil, false
			}
			micros *= 1000
		}
		return &plan.Literal{Value: arrow.Timestamp(micros), Typ: to}, true
	}
	return nil, false
}

func fits(i int64, t arrow.DataType) bool {
	switch t.ID() {
	case arrow.INT8:
		return i >= math.MinInt8 && i <= math.MaxInt8
	case arrow.INT16:
		return i >= math.MinInt16 && i <= math.MaxInt16
	case arrow.INT32:
		return i >= math.MinInt32 && i <= math.MaxInt32
	case arrow.INT64:
		return true
	}
	return false
}

// decimalOf is the exact value of an integer, decimal or boolean literal.
func decimalOf(l *plan.Literal) (decimal.Decimal, bool) {
	switch v := l.Value.(type) {
	case int64:
		return decimal.NewFromInt(v), true
	case bool:
		if v {
			return decimal.NewFromInt(1), true
		}
		return decimal.Zero, true
	case decimal128.Num:
		_, s := plan.DecimalParams(l.Typ)
		return decimal.NewFromBigInt(v.BigInt(), -s), true
	}
	return decimal.Zero, false
}

func negated(l *plan.Literal) (plan.Expr, bool) {
	switch v := l.Value.(type) {
	case int64:
		if v != math.MinInt64 {
			return integer(-v), true
		}
	case float64:
		return &plan.Literal{Value: -v, Typ: l.Typ}, true
	case decimal128.Num:
		if n, ok := decimalLiteral(decimal.NewFromBigInt(v.Negate().BigInt(), 0)); ok {
			if _, s := plan.DecimalParams(l.Typ); s == 0 {
				// 9223372036854775808 is a decimal, its negation a BIGINT.
				if d, _ := decimalOf(n); d.IsInteger() && d.BigInt().IsInt64() {
					return integer(d.IntPart()), true
				}
			}
		}
		return &plan.Literal{Value: v.Negate(), Typ: l.Typ}, true
	}
	return nil, false
}

// number is a value as MySQL's arithmetic takes it: BIGINT, DECIMAL or DOUBLE.
func (t *translator) number(e plan.Expr, where string) plan.Expr {
	typ := e.Type()
	switch {
	case typ.ID() == arrow.NULL:
		return null(plan.Int64)
	case typ.ID() == arrow.BOOL:
		return t.cast(e, plan.Int64)
	case typ.ID() == arrow.UINT64:
		return t.cast(e, plan.Decimal(20, 0))
	case plan.IsInteger(typ):
		return t.cast(e, plan.Int64)
	case arrow.IsFloating(typ.ID()):
		return t.cast(e, plan.Float64)
	case arrow.IsDecimal(typ.ID()):
		return e
	case plan.IsString(typ):
		if l, ok := e.(*plan.Literal); ok {
			if n, ok := parseNumber(l.Value.(string)); ok {
				// Text is a DOUBLE in arithmetic, whatever it looks like.
				return t.cast(n, plan.Float64)
			}
			refuse(fault.BadStatement, "a text that is no number is an operand of %s; MySQL would use the number at its beginning and warn", where)
		}
	}
	cannot("a text, date or JSON value as a number")
	return nil
}

// compare makes both sides of a comparison one type.
func (t *translator) compare(op string, l, r plan.Expr) plan.Expr {
	lt, rt := l.Type(), r.Type()
	switch {
	case lt.ID() == arrow.NULL && rt.ID() == arrow.NULL:
		return t.call(op, null(plan.Bool), null(plan.Bool))
	case lt.ID() == arrow.NULL:
		return t.call(op, null(rt), r)
	case rt.ID() == arrow.NULL:
		return t.call(op, l, null(lt))
	}
	if ll, ok := l.(*plan.Literal); ok {
		if x, ok := t.literalFor(ll, r); ok {
			l = x
		}
	} else if rl, ok := r.(*plan.Literal); ok {
		if x, ok := t.literalFor(rl, l); ok {
			r = x
		}
	}
	lt, rt = l.Type(), r.Type()
	if arrow.TypeEqual(lt, rt) {
		if plan.IsJSON(lt) {
			cannot("a comparison of JSON values")
		}
		return t.call(op, l, r)
	}
	if typ, ok := plan.CommonType(lt, rt); ok {
		return t.call(op, t.cast(l, typ), t.cast(r, typ))
	}
	switch {
	case plan.IsUUID(lt) && plan.IsString(rt):
		return t.call(op, t.cast(l, plan.String), r)
	case plan.IsUUID(rt) && plan.IsString(lt):
		return t.call(op, l, t.cast(r, plan.String))
	case lt.ID() == arrow.BINARY && plan.IsString(rt):
		return t.call(op, l, t.call("utf8_bytes", r))
	case rt.ID() == arrow.BINARY && plan.IsString(lt):
		return t.call(op, t.call("utf8_bytes", l), r)
	}
	cannot("a comparison of " + family(lt) + " with " + family(rt))
	return nil
}

// family names the kind of a type in messages.
func family(t arrow.DataType) string {
	switch {
	case plan.IsJSON(t):
		return "JSON"
	case plan.IsString(t):
		return "text"
	case plan.IsNumeric(t), t.ID() == arrow.BOOL:
		return "a number"
	case plan.IsTemporal(t):
		return "a date"
	case t.ID() == arrow.TIME64:
		return "a time"
	case plan.IsUUID(t):
		return "a UUID"
	}
	return "bytes"
}

// literalFor converts a literal to the type of what it is compared with, once,
// where MySQL would do so; ok is false where the literal stays.
func (t *translator) literalFor(l *plan.Literal, other plan.Expr) (plan.Expr, bool) {
	ot := other.Type()
	switch v := l.Value.(type) {
	case string:
		if !plan.IsString(l.Typ) {
			return nil, false
		}
		switch {
		case plan.IsNumeric(ot), ot.ID() == arrow.BOOL:
			n, ok := parseNumber(v)
			if !ok {
				refuse(fault.BadStatement, "a number is compared with a text that is no number; MySQL would compare the number at its beginning and warn")
			}
			return n, true
		case plan.IsTemporal(ot):
			return temporalLiteral(v, ot), true
		case ot.ID() == arrow.TIME64:
			micros, ok := parseClock(strings.TrimSpace(v))
			if !ok {
				refuse(fault.BadStatement, "Incorrect TIME value in a comparison; write 'HH:MM:SS'")
			}
			return &plan.Literal{Value: arrow.Time64(micros), Typ: plan.Time}, true
		case plan.IsUUID(ot):
			b, err := hex.DecodeString(strings.ReplaceAll(v, "-", ""))
			if err == nil && len(b) == 16 && len(v) == 36 && strings.ToLower(v) == v {
				return &plan.Literal{Value: b, Typ: plan.UUID}, true
			}
		}
	case int64:
		if plan.IsTemporal(ot) {
			d, _ := decimalOf(l)
			return temporalLiteral(d.String(), ot), true
		}
		if plan.IsInteger(ot) && fits(v, ot) {
			return &plan.Literal{Value: v, Typ: ot}, true
		}
		if arrow.IsDecimal(ot.ID()) {
			if x, ok := castLiteral(l, ot); ok {
				return x, true
			}
			if d, ok := decimalLiteral(decimal.NewFromInt(v)); ok {
				return d, true
			}
		}
	case []byte:
		// 0x41 is text beside text.
		if plan.IsString(ot) {
			return text(string(v)), true
		}
	}
	return nil, false
}

// temporalLiteral reads the text that a date or timestamp is compared with.
func temporalLiteral(s string, other arrow.DataType) plan.Expr {
	at, hasTime, ok := parseTemporal(s)
	if !ok {
		name := "DATETIME"
		if other.ID() == arrow.DATE32 {
			name = "DATE"
		}
		refuse(fault.BadStatement, "Incorrect %s value in a comparison; write 'YYYY-MM-DD' or 'YYYY-MM-DD HH:MM:SS'", name)
	}
	if other.ID() == arrow.DATE32 {
		if !hasTime || at.Hour() == 0 && at.Minute() == 0 && at.Second() == 0 && at.Nanosecond() == 0 {
			return dateLiteral(at)
		}
		return timestampLiteral(at)
	}
	if x, ok := castLiteral(timestampLiteral(at), other); ok {
		return x
	}
	return timestampLiteral(at)
}
