package restrictions

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"sqe/plan"
)

var dataTypes = map[string]arrow.DataType{
	"boolean": plan.Bool, "int": plan.Int32, "long": plan.Int64, "float": plan.Float32, "double": plan.Float64,
	"date": plan.Date, "time": plan.Time, "timestamp": plan.Timestamp, "timestamptz": plan.TimestampTZ,
	"timestamp_ns": plan.TimestampNS, "timestamptz_ns": plan.TimestampTZNS,
	"string": plan.String, "uuid": plan.UUID, "binary": plan.Binary,
}

var parameterized = regexp.MustCompile(`^(?:decimal\( ?([0-9]{1,2}) ?, ?([0-9]{1,2}) ?\)|fixed\[([0-9]{1,9})\])$`)

// dataType reads the name of a type.
func dataType(n any) (arrow.DataType, error) {
	name, _ := n.(string)
	if t, ok := dataTypes[name]; ok {
		return t, nil
	}
	m := parameterized.FindStringSubmatch(name)
	switch {
	case m == nil:
		return nil, fmt.Errorf("the type of a constant, %s, is not known", brief(name))
	case m[3] != "":
		width, _ := strconv.Atoi(m[3]) // nine digits
		return &arrow.FixedSizeBinaryType{ByteWidth: width}, nil
	}
	p, _ := strconv.Atoi(m[1])
	s, _ := strconv.Atoi(m[2])
	if p < 1 || p > 38 || s > p {
		return nil, errors.New("the type of a constant is a decimal that cannot be")
	}
	return plan.Decimal(int32(p), int32(s)), nil
}

// alike reports whether values of the types may be compared: of the same type
// or of types that promote to one another.
func alike(a, b arrow.DataType) bool {
	if plan.IsNested(a) || plan.IsNested(b) || plan.IsJSON(a) || a.ID() == arrow.NULL {
		return false
	}
	if arrow.TypeEqual(a, b) {
		return true
	}
	da, okA := a.(*arrow.Decimal128Type)
	db, okB := b.(*arrow.Decimal128Type)
	if okA && okB {
		return da.Scale == db.Scale
	}
	return (plan.IsInteger(a) && plan.IsInteger(b)) || (arrow.IsFloating(a.ID()) && arrow.IsFloating(b.ID()))
}

var errUnfit = errors.New("a constant is not of the type that it is compared with")

// constant reads a constant in the form of Iceberg's single values, to compare with
// values of type t. What t cannot represent gets the wider type that t promotes to,
// and fails when there is none. Source: table specification, appendix D, "JSON
// single-value serialization".
func constant(n any, t arrow.DataType) (*plan.Literal, error) {
	v, wider, err := single(n, t)
	if err != nil {
		return nil, err
	}
	return &plan.Literal{Value: v, Typ: wider}, nil
}

var (
	datePattern  = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)
	timePattern  = regexp.MustCompile(`^\d\d:\d\d:\d\d(\.\d{1,6})?$`)
	stampPattern = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(\+00:00)?$`)
	uuidPattern  = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	decPattern   = regexp.MustCompile(`^-?\d{1,38}(\.\d{1,38})?$`)
)

func single(n any, t arrow.DataType) (any, arrow.DataType, error) {
	if n == nil {
		return nil, nil, errors.New("a constant is null")
	}
	bad := func() (any, arrow.DataType, error) { return nil, nil, errUnfit }
	s, isText := n.(string)
	if plan.IsUUID(t) {
		if !isText || !uuidPattern.MatchString(s) {
			return bad()
		}
		b, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
		return b, t, err
	}
	switch typ := t.(type) {
	case *arrow.BooleanType:
		if b, ok := n.(bool); ok {
			return b, t, nil
		}
	case *arrow.Int32Type, *arrow.Int64Type:
		v, ok := whole(n)
		if !ok {
			return bad()
		}
		if typ.ID() == arrow.INT32 && int64(int32(v)) != v {
			return v, plan.Int64, nil
		}
		return v, t, nil
	case *arrow.Float32Type, *arrow.Float64Type:
		return float(n, t)
	case *arrow.Decimal128Type:
		return decimal(s, isText, typ)
	case *arrow.StringType:
		if isText {
			return s, t, nil
		}
	case *arrow.BinaryType, *arrow.FixedSizeBinaryType:
		b, err := hex.DecodeString(s)
		if !isText || err != nil {
			return bad()
		}
		if f, ok := typ.(*arrow.FixedSizeBinaryType); ok && len(b) != f.ByteWidth {
			return bad()
		}
		return b, t, nil
	case *arrow.Date32Type:
		d, err := time.Parse(time.DateOnly, s)
		if !isText || !datePattern.MatchString(s) || err != nil {
			return bad()
		}
		return arrow.Date32FromTime(d), t, nil
	case *arrow.Time64Type:
		d, err := time.Parse("15:04:05", s)
		if !isText || !timePattern.MatchString(s) || err != nil {
			return bad()
		}
		return arrow.Time64(d.Sub(d.Truncate(24 * time.Hour)).Microseconds()), t, nil
	case *arrow.TimestampType:
		if isText {
			return stamp(s, typ)
		}
	}
	return bad()
}

// float: a number that a float does not write as it stands is compared as a double.
func float(n any, t arrow.DataType) (any, arrow.DataType, error) {
	number, ok := n.(json.Number)
	if !ok {
		return nil, nil, errUnfit
	}
	v, err := strconv.ParseFloat(number.String(), 64)
	if err != nil || math.IsInf(v, 0) {
		return nil, nil, errors.New("a constant is out of range")
	}
	if t.ID() == arrow.FLOAT64 {
		return v, t, nil
	}
	if f, err := strconv.ParseFloat(number.String(), 32); err == nil {
		if back, err := strconv.ParseFloat(strconv.FormatFloat(f, 'g', -1, 32), 64); err == nil && back == v {
			return f, t, nil
		}
	}
	return v, plan.Float64, nil
}

func decimal(s string, isText bool, t *arrow.Decimal128Type) (any, arrow.DataType, error) {
	if !isText || !decPattern.MatchString(s) {
		return nil, nil, errUnfit
	}
	digits := strings.TrimPrefix(s, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	if len(fraction) != int(t.Scale) {
		return nil, nil, errors.New("a decimal constant does not have the scale of what it is compared with")
	}
	precision := max(t.Precision, int32(len(strings.TrimLeft(whole, "0"))+len(fraction)))
	if precision > 38 {
		return nil, nil, errors.New("a constant is out of range")
	}
	v, err := decimal128.FromString(s, 38, t.Scale)
	if err != nil {
		return nil, nil, errUnfit
	}
	return v, plan.Decimal(precision, t.Scale), nil
}

func stamp(s string, t *arrow.TimestampType) (any, arrow.DataType, error) {
	m := stampPattern.FindStringSubmatch(s)
	if m == nil || (m[2] != "") != (t.TimeZone != "") || (t.Unit == arrow.Microsecond && len(m[1]) > 7) {
		return nil, nil, errUnfit
	}
	at, err := time.Parse("2006-01-02T15:04:05", strings.TrimSuffix(s, "+00:00"))
	if err != nil {
		return nil, nil, errUnfit
	}
	if t.Unit == arrow.Microsecond {
		return arrow.Timestamp(at.UnixMicro()), t, nil
	}
	if !time.Unix(0, at.UnixNano()).Equal(at) {
		return nil, nil, errors.New("a constant is out of range")
	}
	return arrow.Timestamp(at.UnixNano()), t, nil
}
