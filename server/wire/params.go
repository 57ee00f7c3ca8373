package wire

import (
	"math"
	"math/big"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"sqe/fault"
	"sqe/plan"
)

// ParamType is the type of a parameter as the client declared it.
type ParamType struct {
	Type     Type
	Unsigned bool
}

// Execution is a COM_STMT_EXECUTE packet without the values.
type Execution struct {
	ID     uint32
	cursor cursor
}

// ParseExecution reads the head of a COM_STMT_EXECUTE packet (without the command
// byte). A cursor that the client asks for is not opened: the protocol lets the
// server send all rows at once.
func ParseExecution(data []byte) (Execution, error) {
	c := cursor{data: data}
	x := Execution{ID: c.uint32()}
	c.skip(1)                    // flags: cursor type
	if n := c.uint32(); n != 1 { // iterations: always 1
		c.bad = true
	}
	x.cursor = c
	if c.bad {
		return x, ErrMalformed
	}
	return x, nil
}

// Arguments reads the values of params parameters. types are those of the last
// execution and are replaced when the client sends new ones; long holds what
// COM_STMT_SEND_LONG_DATA brought, by parameter. Errors are faults or
// ErrMalformed.
func (x Execution) Arguments(params int, types []ParamType, long map[int][]byte) ([]plan.Literal, []ParamType, error) {
	if params == 0 {
		return nil, nil, nil
	}
	c := x.cursor
	nulls := c.bytes((params + 7) / 8)
	if c.byte() == 1 {
		types = make([]ParamType, params)
		for i := range types {
			types[i] = ParamType{Type: Type(c.byte()), Unsigned: c.byte()&0x80 != 0}
		}
	}
	if c.bad || len(types) != params {
		return nil, nil, ErrMalformed
	}
	args := make([]plan.Literal, params)
	for i := range args {
		var err error
		switch data, ok := long[i]; {
		case nulls[i/8]&(1<<uint(i%8)) != 0:
			args[i] = plan.Literal{Typ: plan.Null}
		case ok:
			args[i] = text(types[i].Type, data)
		default:
			args[i], err = c.argument(types[i])
		}
		if err != nil {
			return nil, nil, err
		}
		if c.bad {
			return nil, nil, ErrMalformed
		}
	}
	return args, types, nil
}

func (c *cursor) argument(t ParamType) (plan.Literal, error) {
	signed := func(v int64, u uint64) (plan.Literal, error) {
		if t.Unsigned {
			return plan.Literal{Value: u, Typ: plan.Uint64}, nil
		}
		return plan.Literal{Value: v, Typ: plan.Int64}, nil
	}
	switch t.Type {
	case TypeNull:
		return plan.Literal{Typ: plan.Null}, nil
	case TypeTiny, TypeBool:
		v := c.byte()
		return signed(int64(int8(v)), uint64(v))
	case TypeShort, TypeYear:
		v := c.uint16()
		return signed(int64(int16(v)), uint64(v))
	case TypeLong, TypeInt24:
		v := c.uint32()
		return signed(int64(int32(v)), uint64(v))
	case TypeLongLong:
		v := c.uint64()
		return signed(int64(v), v)
	case TypeFloat:
		return plan.Literal{Value: float64(math.Float32frombits(c.uint32())), Typ: plan.Float64}, nil
	case TypeDouble:
		return plan.Literal{Value: math.Float64frombits(c.uint64()), Typ: plan.Float64}, nil
	case TypeDate, TypeDatetime, TypeTimestamp:
		return c.datetime(t.Type)
	case TypeTime:
		return c.time()
	case TypeDecimal, TypeNewDecimal:
		return parseDecimal(string(c.lenencBytes()))
	case TypeVarchar, TypeVarString, TypeString, TypeEnum, TypeSet, TypeJSON, TypeBit,
		TypeTinyBlob, TypeMediumBlob, TypeLongBlob, TypeBlob:
		return text(t.Type, c.lenencBytes()), nil
	}
	return plan.Literal{}, fault.New(fault.Unsupported, "a parameter of protocol type 0x%02x is not supported; send it as a string", byte(t.Type))
}

// text is a string or, for the blob types and for bytes that are not UTF-8, a
// binary value.
func text(t Type, data []byte) plan.Literal {
	switch t {
	case TypeTinyBlob, TypeMediumBlob, TypeLongBlob, TypeBlob, TypeBit:
	default:
		if utf8.Valid(data) {
			return plan.Literal{Value: string(data), Typ: plan.String}
		}
	}
	return plan.Literal{Value: append([]byte{}, data...), Typ: plan.Binary}
}

func (c *cursor) datetime(t Type) (plan.Literal, error) {
	b := cursor{data: c.bytes(int(c.byte()))}
	n := len(b.data)
	if n != 0 && n != 4 && n != 7 && n != 11 {
		return plan.Literal{}, ErrMalformed
	}
	y, m, d := int(b.uint16()), int(b.byte()), int(b.byte())
	var h, min, s, micro int
	if n >= 7 {
		h, min, s = int(b.byte()), int(b.byte()), int(b.byte())
	}
	if n == 11 {
		micro = int(b.uint32())
	}
	v := time.Date(y, time.Month(m), d, h, min, s, micro*1000, time.UTC)
	if n == 0 || v.Year() != y || int(v.Month()) != m || v.Day() != d || h > 23 || min > 59 || s > 59 || micro >= microsPerSecond {
		return plan.Literal{}, fault.New(fault.BadStatement, "a parameter holds a date that does not exist")
	}
	if t == TypeDate && n == 4 {
		return plan.Literal{Value: arrow.Date32(floorDiv(v.Unix(), 86_400)), Typ: plan.Date}, nil
	}
	return plan.Literal{Value: arrow.Timestamp(v.UnixMicro()), Typ: plan.Timestamp}, nil
}

func (c *cursor) time() (plan.Literal, error) {
	b := cursor{data: c.bytes(int(c.byte()))}
	n := len(b.data)
	if n != 0 && n != 8 && n != 12 {
		return plan.Literal{}, ErrMalformed
	}
	var v int64
	if n > 0 {
		negative := b.byte() == 1
		days := int64(b.uint32())
		h, min, s := int64(b.byte()), int64(b.byte()), int64(b.byte())
		micro := int64(0)
		if n == 12 {
			micro = int64(b.uint32())
		}
		if days > 34 || h > 23 || min > 59 || s > 59 || micro >= microsPerSecond {
			return plan.Literal{}, fault.New(fault.BadStatement, "a parameter holds a time that does not exist")
		}
		v = (((days*24+h)*60+min)*60+s)*microsPerSecond + micro
		if negative {
			v = -v
		}
	}
	return plan.Literal{Value: arrow.Time64(v), Typ: plan.Time}, nil
}

// parseDecimal reads a decimal text without an exponent.
func parseDecimal(s string) (plan.Literal, error) {
	bad := func() (plan.Literal, error) {
		return plan.Literal{}, fault.New(fault.BadStatement, "a decimal parameter does not hold a decimal number")
	}
	digits := strings.TrimLeft(s, "+-")
	if len(s)-len(digits) > 1 {
		return bad()
	}
	whole, frac, _ := strings.Cut(digits, ".")
	all := whole + frac
	if all == "" || strings.Trim(all, "0123456789") != "" {
		return bad()
	}
	all = strings.TrimLeft(all, "0")
	precision := max(len(all), len(frac), 1)
	if precision > 38 {
		return plan.Literal{}, fault.New(fault.OutOfRange, "a decimal parameter has more than 38 digits")
	}
	n, _ := new(big.Int).SetString("0"+all, 10)
	if strings.HasPrefix(s, "-") {
		n.Neg(n)
	}
	return plan.Literal{Value: decimal128.FromBigInt(n), Typ: plan.Decimal(int32(precision), int32(len(frac)))}, nil
}

// LongData is a COM_STMT_SEND_LONG_DATA packet.
func LongData(data []byte) (id uint32, param int, chunk []byte, err error) {
	c := cursor{data: data}
	id, param = c.uint32(), int(c.uint16())
	if c.bad {
		return 0, 0, nil, ErrMalformed
	}
	return id, param, c.data, nil
}

// StatementID is the body of COM_STMT_CLOSE, COM_STMT_RESET and COM_STMT_FETCH.
func StatementID(data []byte) (uint32, error) {
	c := cursor{data: data}
	id := c.uint32()
	if c.bad {
		return 0, ErrMalformed
	}
	return id, nil
}

// FieldListTable is the table of a COM_FIELD_LIST packet.
func FieldListTable(data []byte) (string, error) {
	c := cursor{data: data}
	name := c.nulString()
	if c.bad {
		return "", ErrMalformed
	}
	return name, nil
}

// Uint16 is the body of COM_SET_OPTION.
func Uint16(data []byte) (uint16, error) {
	c := cursor{data: data}
	v := c.uint16()
	if c.bad {
		return 0, ErrMalformed
	}
	return v, nil
}
