package wire

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/plan"
)

// Definition is what a column looks like to a client.
type Definition struct {
	Name      string
	Type      Type
	Length    uint32 // display width in bytes
	Flags     uint16
	Decimals  byte
	Collation uint16
}

// definitionOf gives the definition of a column of the plan. A type that has no form in
// the protocol is an error (nested types must be turned into JSON before).
func definitionOf(c plan.Column) (Definition, error) {
	d := Definition{Name: c.Name, Collation: collationBinary, Flags: flagBinary}
	set := func(t Type, length uint32) { d.Type, d.Length = t, length }
	switch t := c.Type.(type) {
	case arrow.ExtensionType:
		switch {
		case plan.IsUUID(t):
			set(TypeString, 36*4)
			d.Collation, d.Flags = collationText, 0
		case plan.IsJSON(t):
			set(TypeJSON, 1<<32-1)
			d.Flags = flagBlob | flagBinary
		default:
			return d, undefined(c)
		}
	case *arrow.NullType:
		set(TypeNull, 0)
	case *arrow.BooleanType:
		set(TypeTiny, 1)
		d.Flags = 0 // Connector/J gives the bytes of one that is binary, and not a Boolean
	case *arrow.Int8Type, *arrow.Uint8Type:
		set(TypeTiny, 4)
	case *arrow.Int16Type, *arrow.Uint16Type:
		set(TypeShort, 6)
	case *arrow.Int32Type, *arrow.Uint32Type:
		set(TypeLong, 11)
	case *arrow.Int64Type, *arrow.Uint64Type:
		set(TypeLongLong, 20)
	case *arrow.Float32Type:
		set(TypeFloat, 12)
		d.Decimals = decimalsAll
	case *arrow.Float64Type:
		set(TypeDouble, 22)
		d.Decimals = decimalsAll
	case arrow.DecimalType:
		length := uint32(t.GetPrecision()) + 1 // the sign
		if t.GetScale() > 0 {
			length++ // the point
		}
		set(TypeNewDecimal, length)
		if t.GetScale() < 0 || t.GetScale() > 38 {
			return d, undefined(c)
		}
		d.Decimals = byte(t.GetScale())
	case *arrow.Date32Type, *arrow.Date64Type:
		set(TypeDate, 10)
	case *arrow.Time32Type, *arrow.Time64Type:
		set(TypeTime, 17)
		d.Decimals = 6
	case *arrow.TimestampType:
		set(TypeDatetime, 26)
		d.Decimals = 6
	case *arrow.StringType, *arrow.LargeStringType, *arrow.StringViewType:
		// LONGTEXT, as MySQL itself sends it.
		set(TypeBlob, 1<<32-1)
		d.Collation, d.Flags = collationText, flagBlob
	case *arrow.BinaryType, *arrow.LargeBinaryType, *arrow.BinaryViewType, *arrow.FixedSizeBinaryType:
		set(TypeBlob, 1<<32-1)
		d.Flags = flagBlob | flagBinary
	default:
		return d, undefined(c)
	}
	switch c.Type.ID() {
	case arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64:
		d.Flags |= flagUnsigned
	case arrow.FLOAT32, arrow.FLOAT64, arrow.NULL:
		// NaN and the infinities are sent as NULL: such a column is never NOT NULL.
		return d, nil
	}
	if !c.Nullable {
		d.Flags |= flagNotNull
	}
	return d, nil
}

// Definitions gives the definitions of all columns.
func Definitions(columns []plan.Column) ([]Definition, error) {
	out := make([]Definition, len(columns))
	for i, c := range columns {
		d, err := definitionOf(c)
		if err != nil {
			return nil, err
		}
		out[i] = d
	}
	return out, nil
}

func undefined(c plan.Column) error {
	return fmt.Errorf("a column of type %s has no form in the MySQL protocol", typeName(c.Type))
}

// typeName is the name of a type without names of fields, which may be governed.
func typeName(t arrow.DataType) string {
	if t == nil {
		return "nothing"
	}
	return strings.ToLower(t.ID().String())
}

// Column writes one column definition. With withDefault it has the default value
// (NULL) that COM_FIELD_LIST asks for.
func (w *Writer) Column(d Definition, withDefault bool) error {
	b := w.Begin()
	b = appendLenencString(b, "def")
	b = append(b, 0, 0, 0) // database, table, original table
	b = appendLenencString(b, d.Name)
	b = append(b, 0)    // original name
	b = append(b, 0x0c) // length of what follows
	b = binary.LittleEndian.AppendUint16(b, d.Collation)
	b = binary.LittleEndian.AppendUint32(b, d.Length)
	b = append(b, byte(d.Type))
	b = binary.LittleEndian.AppendUint16(b, d.Flags)
	b = append(b, d.Decimals, 0, 0)
	if withDefault {
		b = append(b, nullMarker)
	}
	return w.End(b)
}

// Columns writes the head of a result: the number of columns, their definitions
// and, for older clients, an EOF packet.
func (w *Writer) Columns(defs []Definition, status uint16, caps uint32) error {
	if err := w.End(appendLenenc(w.Begin(), uint64(len(defs)))); err != nil {
		return err
	}
	return w.definitions(defs, status, caps)
}

func (w *Writer) definitions(defs []Definition, status uint16, caps uint32) error {
	for _, d := range defs {
		if err := w.Column(d, false); err != nil {
			return err
		}
	}
	if caps&ClientDeprecateEOF == 0 {
		return w.OK(OK{EOF: true, Status: status}, caps)
	}
	return nil
}

// Prepared writes the answer to COM_STMT_PREPARE.
func (w *Writer) Prepared(id uint32, params int, columns []Definition, status, warnings uint16, caps uint32) error {
	b := append(w.Begin(), 0x00)
	b = binary.LittleEndian.AppendUint32(b, id)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(columns)))
	b = binary.LittleEndian.AppendUint16(b, uint16(params))
	b = append(b, 0)
	b = binary.LittleEndian.AppendUint16(b, warnings)
	if err := w.End(b); err != nil {
		return err
	}
	if params > 0 {
		defs := make([]Definition, params)
		for i := range defs {
			defs[i] = Definition{Name: "?", Type: TypeVarString, Collation: collationBinary, Flags: flagBinary}
		}
		if err := w.definitions(defs, status, caps); err != nil {
			return err
		}
	}
	if len(columns) > 0 {
		return w.definitions(columns, status, caps)
	}
	return nil
}
