package engine

import (
	"context"
	"encoding/hex"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"sqe/engine/parse"
	"sqe/fault"
	"sqe/plan"
)

// column is a column of a definition.
func (st *statement) column(ctx context.Context, c parse.ColumnDef) (plan.Field, error) {
	f, err := field(c.Field)
	if err != nil || c.Default == nil {
		return f, err
	}
	f.Default, err = st.defaultOf(ctx, c.Name, c.Default, f.Type)
	return f, err
}

func field(c parse.Field) (f plan.Field, err error) {
	f = plan.Field{Name: c.Name, Required: c.Required, Doc: c.Comment}
	f.Type, f.Children, err = columnType(c.Type)
	return f, err
}

var plainTypes = map[parse.TypeKind]arrow.DataType{
	parse.TypeBoolean: plan.Bool, parse.TypeInt: plan.Int32, parse.TypeLong: plan.Int64, parse.TypeFloat: plan.Float32, parse.TypeDouble: plan.Float64,
	parse.TypeDate: plan.Date, parse.TypeTime: plan.Time, parse.TypeTimestamp: plan.Timestamp, parse.TypeTimestampTZ: plan.TimestampTZ,
	parse.TypeTimestampNS: plan.TimestampNS, parse.TypeTimestampTZNS: plan.TimestampTZNS, parse.TypeString: plan.String,
	parse.TypeUUID: plan.UUID, parse.TypeBinary: plan.Binary,
}

// nestedID is the Arrow type of each nested type.
var nestedID = map[parse.TypeKind]arrow.Type{parse.TypeStruct: arrow.STRUCT, parse.TypeList: arrow.LIST, parse.TypeMap: arrow.MAP}

// columnType is the Arrow type of a type of the grammar, with what is inside it.
func columnType(t parse.Type) (arrow.DataType, []plan.Field, error) {
	if plain, ok := plainTypes[t.Kind]; ok {
		return plain, nil, nil
	}
	switch t.Kind {
	case parse.TypeDecimal:
		return plan.Decimal(int32(t.Precision), int32(t.Scale)), nil, nil
	case parse.TypeFixed:
		return &arrow.FixedSizeBinaryType{ByteWidth: t.Length}, nil, nil
	}
	children := make([]plan.Field, len(t.Fields))
	fields := make([]arrow.Field, len(t.Fields))
	for i, c := range t.Fields {
		f, err := field(c)
		if err != nil {
			return nil, nil, err
		}
		children[i] = f
		fields[i] = arrow.Field{Name: f.Name, Type: f.Type, Nullable: !f.Required}
	}
	switch {
	case t.Kind == parse.TypeStruct:
		return arrow.StructOf(fields...), children, nil
	case t.Kind == parse.TypeList && len(fields) == 1:
		return arrow.ListOfField(fields[0]), children, nil
	case t.Kind == parse.TypeMap && len(fields) == 2:
		m := arrow.MapOf(fields[0].Type, fields[1].Type)
		m.SetItemNullable(fields[1].Nullable)
		return m, children, nil
	}
	return nil, nil, fault.New(fault.Unsupported, "the type %s is not supported", t)
}

// defaultOf is the value of a literal as one of the column's type, exactly.
func (st *statement) defaultOf(ctx context.Context, column string, e *parse.Expr, t arrow.DataType) (*plan.Literal, error) {
	v, err := st.literal(ctx, e.Text)
	if err != nil {
		return nil, err
	}
	value, ok := exactly(v, t)
	if !ok {
		return nil, fault.New(fault.BadStatement, "Invalid default value for '%s': it is no value of the column's type", column)
	}
	return &plan.Literal{Value: value, Typ: t}, nil
}

// constantValue is the value of a literal in a statement.
type constantValue struct {
	typ   arrow.DataType
	text  string
	isNil bool
}

// literal evaluates a literal of the grammar.
func (st *statement) literal(ctx context.Context, text string) (constantValue, error) {
	stmt, rest, err := parse.Parse("SELECT " + text)
	sql, ok := stmt.(*parse.SQL)
	if err != nil || !ok || rest != "" {
		return constantValue{}, fault.New(fault.BadStatement, "a default is a literal")
	}
	governed, _, err := st.govern(ctx, sql, nil)
	if err != nil {
		return constantValue{}, err
	}
	rows, err := st.run(ctx, governed)
	if err != nil {
		return constantValue{}, err
	}
	defer func() { _ = rows.Close() }()
	b, err := rows.Next()
	if err != nil {
		return constantValue{}, err
	}
	defer b.Release()
	if b.NumRows() != 1 || b.NumCols() != 1 {
		return constantValue{}, fault.New(fault.BadStatement, "a default is a literal")
	}
	c := b.Column(0)
	out := constantValue{typ: c.DataType(), isNil: c.IsNull(0)}
	if !out.isNil {
		out.text = strings.Clone(c.ValueStr(0))
	}
	return out, nil
}

// exactly is the value as plan.Literal holds it for the type; false when the type
// does not hold it exactly.
func exactly(v constantValue, t arrow.DataType) (any, bool) {
	if v.isNil {
		return nil, true
	}
	text := plan.IsString(v.typ)
	number := plan.IsNumeric(v.typ)
	switch {
	case plan.IsUUID(t):
		b, err := hex.DecodeString(strings.ReplaceAll(v.text, "-", ""))
		return b, text && err == nil && len(b) == 16 && len(v.text) == 36
	case plan.IsString(t):
		return v.text, text
	}
	switch t := t.(type) {
	case *arrow.BooleanType:
		b, err := strconv.ParseBool(v.text)
		return b, err == nil && (v.typ.ID() == arrow.BOOL || plan.IsInteger(v.typ) && (v.text == "0" || v.text == "1"))
	case *arrow.Int32Type, *arrow.Int64Type:
		n, ok := scaled(v.text, 0)
		if !number || !ok || !n.IsInt64() || t.ID() == arrow.INT32 && (n.Int64() < math.MinInt32 || n.Int64() > math.MaxInt32) {
			return nil, false
		}
		return n.Int64(), true
	case *arrow.Float32Type, *arrow.Float64Type:
		f, err := strconv.ParseFloat(v.text, 64)
		return f, number && err == nil && !math.IsInf(f, 0)
	case *arrow.Decimal128Type:
		n, ok := scaled(v.text, int(t.Scale))
		if !number || !ok || n.BitLen() > 127 {
			return nil, false
		}
		d := decimal128.FromBigInt(n)
		return d, d.FitsInPrecision(t.Precision)
	case *arrow.BinaryType:
		return []byte(v.text), text
	case *arrow.FixedSizeBinaryType:
		return []byte(v.text), text && len(v.text) == t.ByteWidth
	case *arrow.Date32Type:
		d, err := time.Parse(time.DateOnly, v.text)
		return arrow.Date32FromTime(d), err == nil && !number
	case *arrow.Time64Type:
		d, err := time.Parse("15:04:05.999999", v.text)
		return arrow.Time64(d.Sub(d.Truncate(24 * time.Hour)).Microseconds()), err == nil && !number
	case *arrow.TimestampType:
		d, ok := instant(v.text, t.TimeZone != "")
		if !ok || number {
			return nil, false
		}
		if t.Unit == arrow.Nanosecond {
			ns := arrow.Timestamp(d.UnixNano())
			return ns, time.Unix(0, int64(ns)).Equal(d)
		}
		return arrow.Timestamp(d.UnixMicro()), d.Nanosecond()%1000 == 0
	}
	return nil, false
}

// scaled is the number times 10^scale, when that is a whole one.
func scaled(text string, scale int) (*big.Int, bool) {
	if len(text) > 400 {
		return nil, false
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, false
	}
	r.Mul(r, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)))
	return r.Num(), r.IsInt()
}

// instant reads a time; without a zone it is in UTC.
func instant(text string, zone bool) (time.Time, bool) {
	layouts := []string{"2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999", time.DateOnly}
	if zone {
		layouts = append(layouts, "2006-01-02 15:04:05.999999999Z07:00", time.RFC3339Nano)
	}
	for _, l := range layouts {
		if t, err := time.Parse(l, text); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
