package bind

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/shopspring/decimal"

	"sqe/fault"
	"sqe/plan"
)

// sameColumnType reports whether a new value of a column can stand for the column
// in an expression.
func sameColumnType(c plan.Column, x plan.Expr) bool { return arrow.TypeEqual(c.Type, x.Type()) }

// storedType is the type of a value for a field in the rows of changes.
func storedType(f plan.Field) arrow.DataType {
	if plan.IsNested(f.Type) {
		return plan.JSON
	}
	return f.Type
}

// fill is the value of a field for which none is given.
func (w *writeBinder) fill(f plan.Field) plan.Expr {
	switch d := f.Default; {
	case d == nil && f.Required:
		refuse(fault.NullValue, "Field '%s' doesn't have a default value: give it one in the statement (there is no AUTO_INCREMENT)", f.Name)
	case d == nil:
		return null(storedType(f))
	case d.Typ == nil || plan.IsNested(f.Type):
		refuse(fault.Unsupported, "the default value of column '%s' cannot be read exactly; give the column a value", f.Name)
	default:
		return w.translator().assign(d, f)
	}
	return nil
}

// assign makes the value of a field out of an expression, as MySQL's strict mode
// does: what does not fit is an error, here when it is known and else when the
// statement runs. Exact numbers round half away from zero, as MySQL rounds them.
func (t *translator) assign(x plan.Expr, f plan.Field) plan.Expr {
	var out plan.Expr
	if !translatable(func() { out = t.assigned(x, f) }) {
		mismatch(x, f)
	}
	if l, ok := out.(*plan.Literal); ok && l.Value == nil && f.Required {
		refuse(fault.NullValue, "Column '%s' cannot be null", f.Name)
	}
	return out
}

func mismatch(x plan.Expr, f plan.Field) {
	refuse(fault.BadStatement, "Column '%s' has the type %s; a value of type %s cannot be put into it, use CAST", f.Name, plan.TypeName(f.Type), plan.TypeName(x.Type()))
}

func (t *translator) assigned(x plan.Expr, f plan.Field) plan.Expr {
	from, to := x.Type(), storedType(f)
	if l, ok := x.(*plan.Literal); ok {
		if l.Value == nil {
			return null(to)
		}
		if v := literalValue(l, f); v != nil {
			return v
		}
	}
	switch {
	case arrow.TypeEqual(from, to):
		return x
	case from.ID() == arrow.NULL:
		return &plan.Cast{Operand: x, Typ: to}
	case plan.IsJSON(to), plan.IsJSON(from) && !plan.IsString(to):
		cannot("")
	case plan.IsString(to):
		return t.cast(x, plan.String)
	case plan.IsUUID(to):
		if plan.IsString(from) {
			return x
		}
		cannot("")
	}
	number := plan.IsNumeric(from) || from.ID() == arrow.BOOL
	switch {
	case to.ID() == arrow.BOOL:
		if number {
			refuse(fault.BadStatement, "Column '%s' is a boolean and is assigned a number that is not known to be 0 or 1; write a condition, such as value <> 0", f.Name)
		}
	case plan.IsString(from) && (plan.IsNumeric(to) || plan.IsTemporal(to) || to.ID() == arrow.TIME64):
		return &plan.Cast{Operand: x, Typ: to}
	case plan.IsInteger(to) && number:
		if arrow.IsDecimal(from.ID()) {
			x = t.call("round", x, integer(0))
		}
		return &plan.Cast{Operand: x, Typ: to}
	case arrow.IsFloating(to.ID()) && number:
		return &plan.Cast{Operand: x, Typ: to}
	case arrow.IsDecimal(to.ID()) && number:
		_, scale := plan.DecimalParams(to)
		if _, have := plan.DecimalParams(from); arrow.IsDecimal(from.ID()) && have > scale {
			x = t.call("round", x, integer(int64(scale)))
		}
		return &plan.Cast{Operand: x, Typ: to}
	case to.ID() == arrow.DATE32 && from.ID() == arrow.TIMESTAMP:
		refuse(fault.BadStatement, "Column '%s' is a date and is assigned a date and time; write DATE(...) to drop the time", f.Name)
	case to.ID() == arrow.TIMESTAMP && plan.IsTemporal(from):
		if ft, ok := from.(*arrow.TimestampType); ok && ft.Unit == arrow.Nanosecond && to.(*arrow.TimestampType).Unit != arrow.Nanosecond {
			refuse(fault.BadStatement, "Column '%s' keeps microseconds and is assigned a time in nanoseconds; use CAST(... AS DATETIME(6))", f.Name)
		}
		return &plan.Cast{Operand: x, Typ: to}
	case to.ID() == arrow.BINARY && plan.IsString(from):
		return t.cast(x, plan.Binary)
	case to.ID() == arrow.BINARY && from.ID() == arrow.FIXED_SIZE_BINARY:
		return &plan.Cast{Operand: x, Typ: to}
	case to.ID() == arrow.FIXED_SIZE_BINARY && from.ID() == arrow.BINARY:
		return x
	case to.ID() == arrow.FIXED_SIZE_BINARY && plan.IsString(from):
		return t.cast(x, plan.Binary)
	}
	cannot("")
	return nil
}

// literalValue is a literal as a value of the field, which it fits exactly or
// after MySQL's rounding; nil leaves it to the general way.
func literalValue(l *plan.Literal, f plan.Field) plan.Expr {
	to := storedType(f)
	wrong := func(kind string) {
		refuse(fault.BadStatement, "Incorrect %s value for column '%s'", kind, f.Name)
	}
	switch {
	case plan.IsJSON(to):
		s, ok := l.Value.(string)
		if !ok {
			return nil
		}
		if !json.Valid([]byte(s)) {
			wrong("JSON")
		}
		return &plan.Literal{Value: s, Typ: plan.JSON}
	case plan.IsString(to):
		if b, ok := l.Value.([]byte); ok && !plan.IsUUID(l.Typ) {
			if !utf8.Valid(b) {
				wrong("text")
			}
			return text(string(b))
		}
		return nil
	case plan.IsUUID(to):
		return uuidValue(l, wrong)
	case to.ID() == arrow.BOOL, plan.IsNumeric(to):
		return numberValue(l, f, wrong)
	case to.ID() == arrow.DATE32:
		return dateValue(l, f, wrong)
	case to.ID() == arrow.TIMESTAMP:
		return timestampValue(l, to, wrong)
	case to.ID() == arrow.TIME64:
		micros, ok := int64(0), false
		switch v := l.Value.(type) {
		case string:
			micros, ok = parseClock(strings.TrimSpace(v))
		case arrow.Time64:
			micros, ok = int64(v), true
		default:
			return nil
		}
		if !ok || micros < 0 || micros >= 24*3600*1e6 {
			wrong("TIME")
		}
		return &plan.Literal{Value: arrow.Time64(micros), Typ: plan.Time}
	case to.ID() == arrow.FIXED_SIZE_BINARY, to.ID() == arrow.BINARY:
		var b []byte
		switch v := l.Value.(type) {
		case string:
			if !plan.IsString(l.Typ) {
				return nil
			}
			b = []byte(v)
		case []byte:
			b = v
		default:
			return nil
		}
		if fixed, ok := to.(*arrow.FixedSizeBinaryType); ok && len(b) != fixed.ByteWidth {
			refuse(fault.BadStatement, "The value for column '%s' does not have %d bytes", f.Name, fixed.ByteWidth)
		}
		return &plan.Literal{Value: b, Typ: to}
	}
	return nil
}

func uuidValue(l *plan.Literal, wrong func(string)) plan.Expr {
	switch v := l.Value.(type) {
	case []byte:
		if len(v) == 16 {
			return &plan.Literal{Value: v, Typ: plan.UUID}
		}
	case string:
		if b, err := hex.DecodeString(strings.ReplaceAll(v, "-", "")); err == nil && len(b) == 16 && (len(v) == 36 || len(v) == 32) {
			return &plan.Literal{Value: b, Typ: plan.UUID}
		}
	default:
		return nil
	}
	wrong("UUID")
	return nil
}

func numberValue(l *plan.Literal, f plan.Field, wrong func(string)) plan.Expr {
	to := f.Type
	if s, ok := l.Value.(string); ok && plan.IsString(l.Typ) {
		n, ok := parseNumber(s)
		if !ok {
			kind := "integer"
			if arrow.IsFloating(to.ID()) {
				kind = "double"
			} else if arrow.IsDecimal(to.ID()) {
				kind = "decimal"
			}
			wrong(kind)
		}
		l = n
	}
	outside := func() {
		refuse(fault.OutOfRange, "Out of range value for column '%s'", f.Name)
	}
	d, exact := decimalOf(l)
	x, isFloat := l.Value.(float64)
	if !exact && !isFloat {
		return nil
	}
	if isFloat && (math.IsNaN(x) || math.IsInf(x, 0)) {
		outside()
	}
	switch {
	case to.ID() == arrow.BOOL:
		if isFloat {
			d = decimal.NewFromFloat(x)
		}
		if !d.IsZero() && !d.Equal(decimal.NewFromInt(1)) {
			outside()
		}
		return boolean(!d.IsZero())
	case plan.IsInteger(to):
		if isFloat {
			d = decimal.NewFromFloat(math.RoundToEven(x))
		}
		d = d.Round(0)
		if !d.BigInt().IsInt64() || !fits(d.IntPart(), to) {
			outside()
		}
		return &plan.Literal{Value: d.IntPart(), Typ: to}
	case arrow.IsFloating(to.ID()):
		if exact {
			x, _ = d.Float64()
		}
		if to.ID() == arrow.FLOAT32 {
			if x = float64(float32(x)); math.IsInf(x, 0) {
				outside()
			}
		}
		return &plan.Literal{Value: x, Typ: to}
	}
	if isFloat {
		d = decimal.NewFromFloat(x)
	}
	p, s := plan.DecimalParams(to)
	scaled := d.Round(s).Shift(s)
	if int32(len(scaled.Abs().BigInt().String())) > p {
		outside()
	}
	return &plan.Literal{Value: decimal128.FromBigInt(scaled.BigInt()), Typ: to}
}

// dateText is a literal as the text that MySQL reads a date from.
func dateText(l *plan.Literal) (string, bool) {
	switch v := l.Value.(type) {
	case string:
		return v, plan.IsString(l.Typ)
	case int64:
		return strconv.FormatInt(v, 10), true
	}
	return "", false
}

func dateValue(l *plan.Literal, f plan.Field, wrong func(string)) plan.Expr {
	midnight := func(ok bool) {
		if !ok {
			refuse(fault.BadStatement, "Column '%s' is a date and is assigned a date and time; write DATE(...) to drop the time", f.Name)
		}
	}
	if at, ok := l.Value.(arrow.Timestamp); ok {
		ts, _ := l.Typ.(*arrow.TimestampType)
		v := at.ToTime(ts.Unit)
		midnight(v.Hour() == 0 && v.Minute() == 0 && v.Second() == 0 && v.Nanosecond() == 0)
		return dateLiteral(v)
	}
	s, ok := dateText(l)
	if !ok {
		return nil
	}
	at, _, ok := parseTemporal(s)
	if !ok {
		wrong("DATE")
	}
	midnight(at.Hour() == 0 && at.Minute() == 0 && at.Second() == 0 && at.Nanosecond() == 0)
	return dateLiteral(at)
}

func timestampValue(l *plan.Literal, to arrow.DataType, wrong func(string)) plan.Expr {
	if ts, ok := l.Typ.(*arrow.TimestampType); ok && arrow.TypeEqual(ts, to) {
		return l
	}
	if s, ok := dateText(l); ok {
		at, _, ok := parseTemporal(s)
		if !ok {
			wrong("DATETIME")
		}
		l = timestampLiteral(at)
	} else if !plan.IsTemporal(l.Typ) {
		return nil
	}
	x, ok := castLiteral(l, to)
	if !ok {
		wrong("DATETIME")
	}
	return x
}
