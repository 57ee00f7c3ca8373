package bind

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/sqltypes"
	"github.com/shopspring/decimal"

	"sqe/plan"
)

func text(s string) *plan.Literal { return &plan.Literal{Value: s, Typ: plan.String} }

func integer(i int64) *plan.Literal { return &plan.Literal{Value: i, Typ: plan.Int64} }

func boolean(b bool) *plan.Literal { return &plan.Literal{Value: b, Typ: plan.Bool} }

func null(t arrow.DataType) *plan.Literal { return &plan.Literal{Typ: t} }

// decimalLiteral is an exact number; ok is false when it has more than 38 digits.
func decimalLiteral(d decimal.Decimal) (*plan.Literal, bool) {
	if d.Exponent() > 0 {
		d = d.Truncate(0)
		if d.Exponent() > 0 {
			d = decimal.NewFromBigInt(d.BigInt(), 0)
		}
	}
	scale := int32(-d.Exponent())
	digits := int32(len(new(big.Int).Abs(d.Coefficient()).String()))
	precision := max(digits, scale, 1)
	if precision > 38 || scale > 30 {
		return nil, false
	}
	return &plan.Literal{Value: decimal128.FromBigInt(d.Coefficient()), Typ: plan.Decimal(precision, scale)}, true
}

// literalOf is the plan's literal for a value of go-mysql-server.
func literalOf(v any, t sql.Type) (*plan.Literal, error) {
	switch v := v.(type) {
	case nil:
		return null(plan.Null), nil
	case bool:
		return boolean(v), nil
	case int8:
		if t == types.Boolean && (v == 0 || v == 1) {
			return boolean(v == 1), nil
		}
		return integer(int64(v)), nil
	case int16:
		return integer(int64(v)), nil
	case int32:
		return integer(int64(v)), nil
	case int64:
		return integer(v), nil
	case int:
		return integer(int64(v)), nil
	case uint8:
		return integer(int64(v)), nil
	case uint16:
		return integer(int64(v)), nil
	case uint32:
		return integer(int64(v)), nil
	case uint64:
		if v <= 1<<63-1 {
			return integer(int64(v)), nil
		}
		l, _ := decimalLiteral(decimal.NewFromBigInt(new(big.Int).SetUint64(v), 0))
		return l, nil
	case float32:
		return &plan.Literal{Value: float64(v), Typ: plan.Float64}, nil
	case float64:
		return &plan.Literal{Value: v, Typ: plan.Float64}, nil
	case decimal.Decimal:
		if l, ok := decimalLiteral(v); ok {
			return l, nil
		}
		return nil, fmt.Errorf("a number of more than 38 digits")
	case string:
		return text(v), nil
	case []byte:
		if t != nil && types.IsText(t) {
			return text(string(v)), nil
		}
		return &plan.Literal{Value: v, Typ: plan.Binary}, nil
	case time.Time:
		if t != nil && t.Type() == sqltypes.Date {
			return dateLiteral(v), nil
		}
		return timestampLiteral(v), nil
	case types.Timespan:
		return &plan.Literal{Value: arrow.Time64(v.AsMicroseconds()), Typ: plan.Time}, nil
	case sql.JSONWrapper:
		s, err := types.JsonToMySqlString(v)
		if err != nil {
			return nil, err
		}
		return &plan.Literal{Value: s, Typ: plan.JSON}, nil
	}
	return nil, fmt.Errorf("a value of a type that plans do not have")
}

func dateLiteral(t time.Time) *plan.Literal {
	return &plan.Literal{Value: arrow.Date32FromTime(t), Typ: plan.Date}
}

func timestampLiteral(t time.Time) *plan.Literal {
	return &plan.Literal{Value: arrow.Timestamp(t.UnixMicro()), Typ: plan.Timestamp}
}

// argument is a parameter value as go-mysql-server's literal.
func argument(l plan.Literal) (sql.Expression, error) {
	if l.Value == nil {
		return expression.NewLiteral(nil, types.Null), nil
	}
	switch v := l.Value.(type) {
	case bool:
		return expression.NewLiteral(v, types.Boolean), nil
	case int64:
		return expression.NewLiteral(v, types.Int64), nil
	case uint64:
		return expression.NewLiteral(v, types.Uint64), nil
	case float64:
		return expression.NewLiteral(v, types.Float64), nil
	case string:
		return expression.NewLiteral(v, stringType), nil
	case []byte:
		return expression.NewLiteral(v, types.LongBlob), nil
	case decimal128.Num:
		p, s := plan.DecimalParams(l.Typ)
		t, err := types.CreateDecimalType(uint8(p), uint8(s))
		if err != nil {
			return nil, err
		}
		return expression.NewLiteral(decimal.NewFromBigInt(v.BigInt(), -s), t), nil
	case arrow.Date32:
		return expression.NewLiteral(v.ToTime(), types.Date), nil
	case arrow.Timestamp:
		ts, ok := l.Typ.(*arrow.TimestampType)
		if !ok {
			return nil, fmt.Errorf("a timestamp without a unit")
		}
		return expression.NewLiteral(v.ToTime(ts.Unit), datetimeType), nil
	case arrow.Time64:
		return expression.NewLiteral(types.Timespan(int64(v)), types.Time), nil
	}
	return nil, fmt.Errorf("a value of an unknown type")
}

// parseTemporal reads a text as MySQL reads a date or a date and time: the parts
// may have one digit, between date and time stands a blank or T, a fraction has up
// to 6 digits. hasTime says that a time was given.
func parseTemporal(s string) (t time.Time, hasTime, ok bool) {
	s = strings.TrimSpace(s)
	date, clock, hasTime := s, "", false
	if i := strings.IndexAny(s, " T"); i > 0 {
		date, clock, hasTime = s[:i], strings.TrimSpace(s[i+1:]), true
	}
	parts := strings.FieldsFunc(date, func(r rune) bool { return r == '-' || r == '/' || r == '.' })
	if len(parts) == 1 && (len(date) == 8 || len(date) == 14) && isNumber.MatchString(date) {
		if len(date) == 14 {
			clock, hasTime = date[8:10]+":"+date[10:12]+":"+date[12:], true
		}
		parts = []string{date[:4], date[4:6], date[6:8]}
	}
	if len(parts) != 3 || len(parts[0]) != 4 {
		return t, false, false
	}
	n := make([]int, 3)
	for i, p := range parts {
		v, err := strconv.Atoi(p)
		if err != nil || i > 0 && len(p) > 2 {
			return t, false, false
		}
		n[i] = v
	}
	var micros int64
	if hasTime {
		var ok bool
		if micros, ok = parseClock(clock); !ok || micros < 0 || micros >= 24*3600*1e6 {
			return t, false, false
		}
	}
	t = time.Date(n[0], time.Month(n[1]), n[2], 0, 0, 0, 0, time.UTC)
	if t.Year() != n[0] || int(t.Month()) != n[1] || t.Day() != n[2] {
		return t, false, false
	}
	return t.Add(time.Duration(micros) * time.Microsecond), hasTime, true
}

// parseClock reads [-]HH:MM[:SS[.ffffff]] in microseconds.
func parseClock(s string) (micros int64, ok bool) {
	s, negative := strings.CutPrefix(s, "-")
	parts := strings.Split(s, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return 0, false
	}
	h, err1 := strconv.Atoi(parts[0])
	m, err2 := strconv.Atoi(parts[1])
	var seconds decimal.Decimal
	var err3 error
	if len(parts) == 3 {
		seconds, err3 = decimal.NewFromString(parts[2])
	}
	if err1 != nil || err2 != nil || err3 != nil || h < 0 || h > 838 || m < 0 || m > 59 || seconds.IsNegative() || seconds.Cmp(decimal.NewFromInt(60)) >= 0 {
		return 0, false
	}
	micros = int64(h)*3600e6 + int64(m)*60e6 + seconds.Shift(6).Round(0).IntPart()
	if negative {
		micros = -micros
	}
	return micros, true
}

// parseNumber reads a text that is a whole number as MySQL writes it, without
// rest. It gives a BIGINT, an exact decimal, or a DOUBLE for the form with an
// exponent.
func parseNumber(s string) (*plan.Literal, bool) {
	s = strings.Trim(s, " \t\n\r")
	if s == "" || strings.IndexFunc(s, func(r rune) bool { return !strings.ContainsRune("0123456789+-.eE", r) }) >= 0 {
		return nil, false
	}
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return integer(i), true
	}
	if !strings.ContainsAny(s, "eE") {
		d, err := decimal.NewFromString(s)
		if err != nil {
			return nil, false
		}
		return decimalLiteral(d)
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil, false
	}
	return &plan.Literal{Value: f, Typ: plan.Float64}, true
}
