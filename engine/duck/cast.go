package duck

import (
	"github.com/apache/arrow-go/v18/arrow"

	"sqe/fault"
	"sqe/plan"
)

// castExpr converts as MySQL does: exact numbers round half away from zero, floats
// to an even integer (MySQL uses rint), text is read by MySQL's rules (what is no
// number or date is an error as in strict mode, with try NULL).
func castExpr(s string, from, to arrow.DataType, try bool) (string, error) {
	t, err := sqlType(to)
	if err != nil {
		return "", err
	}
	ft, err := sqlType(from)
	if err != nil {
		return "", err
	}
	word := "CAST("
	if try {
		word = "TRY_CAST("
	}
	conv := func(s string) string { return word + s + " AS " + t + ")" }
	refuse := func() (string, error) {
		return "", fault.New(fault.Unsupported, "a value of type %s cannot be converted to %s here", typeName(from), typeName(to))
	}
	switch {
	case isNull(from), arrow.TypeEqual(from, to):
		return cast(s, t), nil
	case ft == t && plan.IsJSON(from) == plan.IsJSON(to):
		return s, nil
	case plan.IsJSON(to):
		return toJSON(s, from, try)
	case plan.IsString(to):
		return toText(s, from)
	case plan.IsNested(from) || plan.IsNested(to):
		if plan.IsNested(from) && plan.IsNested(to) {
			return conv(s), nil // a file whose inner types are narrower
		}
		return refuse()
	case plan.IsJSON(from):
		return refuse()
	case plan.IsString(from):
		if isBinary(to) {
			return "encode(" + s + ")", nil
		}
		x, err := fromText(s, to, t)
		if err != nil || try {
			return x, err
		}
		if to.ID() == arrow.DATE32 {
			// A time of day would be lost.
			x = "CASE WHEN CAST(" + x + " AS TIMESTAMP) = " + native("parse_timestamp", s) + " THEN " + x + " END"
		}
		return "coalesce(" + x + ", CASE WHEN " + s + " IS NOT NULL THEN CAST(error(" + quote(textMark) + ") AS " + t + ") END)", nil
	}
	switch {
	case to.ID() == arrow.BOOL && plan.IsNumeric(from):
		return "(" + s + " <> 0)", nil
	case plan.IsInteger(to):
		if isFloat(from) || isExact(from) {
			return conv(s), nil
		}
	case isFloat(to):
		if isExact(from) || isFloat(from) {
			return conv(s), nil
		}
	case isDecimal(to):
		switch {
		case from.ID() == arrow.BOOL:
			return conv(cast(s, "INTEGER")), nil
		case isFloat(from):
			return conv(native("digits", cast(s, "DOUBLE"))), nil
		case isExact(from):
			return conv(s), nil
		}
	case to.ID() == arrow.DATE32 && isTimestamp(from):
		return cast(s, t), nil
	case isTimestamp(to) && (isTimestamp(from) || from.ID() == arrow.DATE32):
		if from.ID() == arrow.DATE32 {
			// A DATE beyond the range of timestamps, which MySQL does not have.
			s = "TRY_CAST(" + s + " AS TIMESTAMP)"
			if t == "TIMESTAMP" {
				return s, nil
			}
		} else if isNanos(to) || isNanos(from) {
			s = cast(s, "TIMESTAMP")
			if t == "TIMESTAMP" {
				return s, nil
			}
		}
		return cast(s, t), nil
	case to.ID() == arrow.TIME64 && isTimestamp(from):
		return cast(utc(s, from), t), nil
	}
	return refuse()
}

// utc is an instant as a timestamp in UTC; other timestamps stay.
func utc(s string, t arrow.DataType) string {
	if isInstant(t) {
		return cast(s, "TIMESTAMP")
	}
	return s
}

func toText(s string, from arrow.DataType) (string, error) {
	switch {
	case plan.IsUUID(from), plan.IsInteger(from), isDecimal(from), from.ID() == arrow.DATE32:
		return cast(s, "VARCHAR"), nil
	case plan.IsString(from), plan.IsJSON(from):
		return s, nil
	case from.ID() == arrow.BOOL:
		return cast(cast(s, "TINYINT"), "VARCHAR"), nil
	case from.ID() == arrow.FLOAT32:
		return native("float_text", s), nil
	case from.ID() == arrow.FLOAT64:
		return native("double_text", s), nil
	case isNanos(from):
		return "strftime(" + s + ", '%Y-%m-%d %H:%M:%S.%n')", nil
	case isTimestamp(from):
		return "strftime(" + utc(s, from) + ", '%Y-%m-%d %H:%M:%S.%f')", nil
	case from.ID() == arrow.TIME64:
		return "strftime(DATE '2000-01-01' + " + s + ", '%H:%M:%S.%f')", nil
	case isBinary(from):
		return native("utf8_text", s), nil
	}
	return "", fault.New(fault.Unsupported, "a value of type %s cannot be converted to text", typeName(from))
}

// fromText reads text; NULL where it cannot be read.
func fromText(s string, to arrow.DataType, t string) (string, error) {
	switch {
	case to.ID() == arrow.BOOL:
		return "(TRY_CAST(" + native("number_text", s) + " AS DOUBLE) <> 0)", nil
	case plan.IsInteger(to):
		return "TRY_CAST(" + native("integer_text", s) + " AS " + t + ")", nil
	case isFloat(to), isDecimal(to):
		return "TRY_CAST(" + native("number_text", s) + " AS " + t + ")", nil
	case to.ID() == arrow.DATE32:
		return native("parse_date", s), nil
	case isTimestamp(to):
		return cast(native("parse_timestamp", s), t), nil
	case to.ID() == arrow.TIME64:
		return native("parse_time", s), nil
	case plan.IsUUID(to):
		return "TRY_CAST(" + s + " AS UUID)", nil
	}
	return "", fault.New(fault.Unsupported, "text cannot be converted to %s", typeName(to))
}
