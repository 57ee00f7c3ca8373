package wire

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"

	"sqe/fault"
	"sqe/plan"
)

// put appends the value of row i to dst. Row i is not NULL.
type put func(dst []byte, i int) []byte

// cell is one column of one batch.
type cell struct {
	put put
	// valid is the validity bitmap, nil when nothing is NULL; row i is bit off+i.
	valid []byte
	off   int
}

func (c *cell) null(i int) bool {
	return c.valid != nil && c.valid[(c.off+i)>>3]&(1<<uint((c.off+i)&7)) == 0
}

// Protocol is the form in which rows are sent.
type Protocol uint8

const (
	TextProtocol   Protocol = iota // of COM_QUERY
	BinaryProtocol                 // of prepared statements
)

// Encoder turns Arrow batches into row packets.
type Encoder struct {
	columns []plan.Column
	binary  bool
	cells   []cell
	// err is set by a put that met a value which MySQL cannot represent.
	err error
}

// NewEncoder makes an encoder for rows with these columns.
func NewEncoder(columns []plan.Column, p Protocol) *Encoder {
	return &Encoder{columns: columns, binary: p == BinaryProtocol, cells: make([]cell, len(columns))}
}

// Write writes the rows of a batch. The batch may have another Arrow layout of
// the same kind than the columns say (large strings, dictionaries, narrower
// integers), which does not show in what is sent.
func (e *Encoder) Write(w *Writer, batch arrow.RecordBatch) error {
	if int(batch.NumCols()) != len(e.columns) {
		return fmt.Errorf("a batch has %d columns, the result has %d", batch.NumCols(), len(e.columns))
	}
	for i, c := range e.columns {
		cell, err := e.bind(c.Type, batch.Column(i))
		if err != nil {
			return err
		}
		e.cells[i] = cell
	}
	defer clear(e.cells) // the batch is released after this
	if e.binary {
		return e.writeBinary(w, int(batch.NumRows()))
	}
	return e.writeText(w, int(batch.NumRows()))
}

func (e *Encoder) writeText(w *Writer, rows int) error {
	for i := range rows {
		b := w.Begin()
		for c := range e.cells {
			if cell := &e.cells[c]; cell.null(i) {
				b = append(b, nullMarker)
			} else {
				b = cell.put(b, i)
			}
		}
		if e.err != nil {
			return e.err
		}
		if err := w.End(b); err != nil {
			return err
		}
	}
	return nil
}

func (e *Encoder) writeBinary(w *Writer, rows int) error {
	bitmap := make([]byte, (len(e.cells)+7+2)/8)
	for i := range rows {
		b := append(w.Begin(), 0x00)
		at := len(b)
		b = append(b, bitmap...)
		for c := range e.cells {
			if cell := &e.cells[c]; cell.null(i) {
				b[at+(c+2)/8] |= 1 << uint((c+2)%8)
			} else {
				b = cell.put(b, i)
			}
		}
		if e.err != nil {
			return e.err
		}
		if err := w.End(b); err != nil {
			return err
		}
	}
	return nil
}

// refuse makes the statement fail after the present row.
func (e *Encoder) refuse(what string) {
	if e.err == nil {
		e.err = fault.New(fault.OutOfRange, "a %s is outside of what MySQL's protocol can hold; CAST the column to CHAR to see it", what)
	}
}

// bind finds how the values of arr, declared as t, are written.
func (e *Encoder) bind(t arrow.DataType, arr arrow.Array) (cell, error) {
	valid, off := validity(arr)
	if x, ok := arr.(array.ExtensionArray); ok && !plan.IsUUID(x.DataType()) {
		arr = x.Storage()
	}
	if d, ok := arr.(*array.Dictionary); ok {
		return e.dictionary(t, d)
	}
	if f, ok := finite(arr); ok {
		valid, off = f, 0
	}
	p, err := e.puts(t, arr)
	if err != nil {
		return cell{}, err
	}
	return cell{put: p, valid: valid, off: off}, nil
}

// puts dispatches on the declared type.
func (e *Encoder) puts(t arrow.DataType, arr arrow.Array) (put, error) {
	if arr.DataType().ID() == arrow.NULL {
		return func(dst []byte, _ int) []byte { return dst }, nil // never called: every row is NULL
	}
	var p put
	switch {
	case plan.IsUUID(t):
		p = uuids(arr)
	case plan.IsJSON(t), plan.IsString(t), t.ID() == arrow.STRING_VIEW:
		p = texts(arr)
	case t.ID() == arrow.BOOL:
		p = e.bools(arr)
	case arrow.IsInteger(t.ID()):
		p = e.integers(t, arr)
	case arrow.IsFloating(t.ID()):
		p = e.floats(t, arr)
	case arrow.IsDecimal(t.ID()):
		p = decimals(t.(arrow.DecimalType), arr)
	case t.ID() == arrow.DATE32, t.ID() == arrow.DATE64:
		p = e.dates(arr)
	case t.ID() == arrow.TIMESTAMP:
		p = e.timestamps(arr)
	case t.ID() == arrow.TIME32, t.ID() == arrow.TIME64:
		p = e.times(arr)
	default:
		p = blobs(arr)
	}
	if p == nil {
		return nil, fmt.Errorf("a column of type %s came as %s", typeName(t), typeName(arr.DataType()))
	}
	return p, nil
}

// validity is the bitmap of an array, nil when no row is NULL.
func validity(arr arrow.Array) ([]byte, int) {
	if arr.DataType().ID() == arrow.NULL {
		return make([]byte, bitutil.BytesForBits(int64(arr.Len()))), 0
	}
	if arr.NullN() == 0 {
		return nil, 0
	}
	return arr.NullBitmapBytes(), arr.Data().Offset()
}

// finite is the bitmap of a float array that holds NaN or an infinity, with
// those as NULL: MySQL has no such values, and its own operations give NULL.
func finite(arr arrow.Array) ([]byte, bool) {
	var odd func(i int) bool
	switch a := arr.(type) {
	case *array.Float64:
		v := a.Float64Values()
		odd = func(i int) bool { return v[i]-v[i] != 0 } // true for NaN, Inf and -Inf alone
	case *array.Float32:
		v := a.Float32Values()
		odd = func(i int) bool { return v[i]-v[i] != 0 }
	default:
		return nil, false
	}
	n := arr.Len()
	for i := range n {
		if odd(i) {
			return bitmap(n, func(i int) bool { return !arr.IsNull(i) && !odd(i) }), true
		}
	}
	return nil, false
}

func bitmap(n int, set func(int) bool) []byte {
	b := make([]byte, bitutil.BytesForBits(int64(n)))
	for i := range n {
		if set(i) {
			bitutil.SetBit(b, i)
		}
	}
	return b
}

// dictionary writes through the indices. The dictionary itself may hold NULL.
func (e *Encoder) dictionary(t arrow.DataType, d *array.Dictionary) (cell, error) {
	inner, err := e.bind(t, d.Dictionary())
	if err != nil {
		return cell{}, err
	}
	out := cell{put: func(dst []byte, i int) []byte { return inner.put(dst, d.GetValueIndex(i)) }}
	if d.NullN() > 0 || inner.valid != nil {
		out.valid = bitmap(d.Len(), func(i int) bool { return !d.IsNull(i) && !inner.null(d.GetValueIndex(i)) })
	}
	return out, nil
}

// bools writes TINYINT(1). Some layouts have an integer for a boolean.
func (e *Encoder) bools(arr arrow.Array) put {
	a, ok := arr.(*array.Boolean)
	if !ok {
		if arrow.IsInteger(arr.DataType().ID()) {
			return e.integers(plan.Int8, arr)
		}
		return nil
	}
	if e.binary {
		return func(dst []byte, i int) []byte {
			if a.Value(i) {
				return append(dst, 1)
			}
			return append(dst, 0)
		}
	}
	return func(dst []byte, i int) []byte {
		if a.Value(i) {
			return append(dst, 1, '1')
		}
		return append(dst, 1, '0')
	}
}

func (e *Encoder) integers(t arrow.DataType, arr arrow.Array) put {
	switch a := arr.(type) {
	case *array.Int8:
		return integer(e, t, a.Int8Values())
	case *array.Int16:
		return integer(e, t, a.Int16Values())
	case *array.Int32:
		return integer(e, t, a.Int32Values())
	case *array.Int64:
		return integer(e, t, a.Int64Values())
	case *array.Uint8:
		return integer(e, t, a.Uint8Values())
	case *array.Uint16:
		return integer(e, t, a.Uint16Values())
	case *array.Uint32:
		return integer(e, t, a.Uint32Values())
	case *array.Uint64:
		return integer(e, t, a.Uint64Values())
	}
	return nil
}

// integer writes integers of any width. The binary protocol has the width of the
// declared type; a value that does not fit into it is refused.
func integer[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](e *Encoder, t arrow.DataType, v []T) put {
	low, high := bounds(t)
	if !e.binary {
		return func(dst []byte, i int) []byte {
			at := len(dst)
			dst = append(dst, 0)
			if x := v[i]; x < 0 || uint64(x) <= math.MaxInt64 {
				dst = appendInt(dst, int64(x))
			} else {
				dst = appendUint(dst, uint64(x))
			}
			dst[at] = byte(len(dst) - at - 1)
			return dst
		}
	}
	width := t.(arrow.FixedWidthDataType).Bytes()
	return func(dst []byte, i int) []byte {
		x := v[i]
		if x < 0 && int64(x) < low || x > 0 && uint64(x) > high {
			e.refuse("number")
		}
		for n, y := 0, uint64(x); n < width; n, y = n+1, y>>8 {
			dst = append(dst, byte(y))
		}
		return dst
	}
}

// bounds are the smallest and the largest value of an integer type.
func bounds(t arrow.DataType) (int64, uint64) {
	bits := uint(t.(arrow.FixedWidthDataType).BitWidth())
	if arrow.IsUnsignedInteger(t.ID()) {
		return 0, math.MaxUint64 >> (64 - bits)
	}
	return math.MinInt64 >> (64 - bits), math.MaxUint64 >> (65 - bits)
}

func (e *Encoder) floats(t arrow.DataType, arr arrow.Array) put {
	wide := t.ID() == arrow.FLOAT64
	switch a := arr.(type) {
	case *array.Float64:
		v := a.Float64Values()
		if !e.binary {
			bits := 64
			if !wide {
				bits = 32
			}
			return func(dst []byte, i int) []byte { return appendFloatCell(dst, v[i], bits) }
		}
		if !wide {
			return func(dst []byte, i int) []byte { return append32(dst, math.Float32bits(float32(v[i]))) }
		}
		return func(dst []byte, i int) []byte { return append64(dst, math.Float64bits(v[i])) }
	case *array.Float32:
		v := a.Float32Values()
		if !e.binary {
			return func(dst []byte, i int) []byte { return appendFloatCell(dst, float64(v[i]), 32) }
		}
		if wide {
			return func(dst []byte, i int) []byte { return append64(dst, math.Float64bits(float64(v[i]))) }
		}
		return func(dst []byte, i int) []byte { return append32(dst, math.Float32bits(v[i])) }
	}
	return nil
}

func decimals(t arrow.DecimalType, arr arrow.Array) put {
	at, ok := arr.DataType().(arrow.DecimalType)
	if !ok || at.GetScale() != t.GetScale() {
		return nil
	}
	scale := int(t.GetScale())
	switch a := arr.(type) {
	case *array.Decimal128:
		v := a.Values()
		return func(dst []byte, i int) []byte {
			x := v[i]
			if low := int64(x.LowBits()); x.HighBits() == low>>63 {
				return appendDecimal(dst, low, scale)
			}
			return appendBigDecimal(dst, x.BigInt(), scale)
		}
	case *array.Decimal256:
		return func(dst []byte, i int) []byte { return appendBigDecimal(dst, a.Value(i).BigInt(), scale) }
	case *array.Decimal64:
		return func(dst []byte, i int) []byte { return appendDecimal(dst, int64(a.Value(i)), scale) }
	case *array.Decimal32:
		return func(dst []byte, i int) []byte { return appendDecimal(dst, int64(a.Value(i)), scale) }
	}
	return nil
}

func uuids(arr arrow.Array) put {
	if x, ok := arr.(array.ExtensionArray); ok {
		arr = x.Storage()
	}
	a, ok := arr.(*array.FixedSizeBinary)
	if !ok {
		return texts(arr) // text of 36 characters
	}
	if a.DataType().(*arrow.FixedSizeBinaryType).ByteWidth != 16 {
		return nil
	}
	return func(dst []byte, i int) []byte { return appendUUID(append(dst, 36), a.Value(i)) }
}

func texts(arr arrow.Array) put {
	switch a := arr.(type) {
	case *array.String:
		return func(dst []byte, i int) []byte { return appendLenencString(dst, a.Value(i)) }
	case *array.LargeString:
		return func(dst []byte, i int) []byte { return appendLenencString(dst, a.Value(i)) }
	case *array.StringView:
		return func(dst []byte, i int) []byte { return appendLenencString(dst, a.Value(i)) }
	}
	return nil
}

func blobs(arr arrow.Array) put {
	bytes := func(value func(int) []byte) put {
		return func(dst []byte, i int) []byte {
			v := value(i)
			return append(appendLenenc(dst, uint64(len(v))), v...)
		}
	}
	switch a := arr.(type) {
	case *array.Binary:
		return bytes(a.Value)
	case *array.LargeBinary:
		return bytes(a.Value)
	case *array.BinaryView:
		return bytes(a.Value)
	case *array.FixedSizeBinary:
		return bytes(a.Value)
	}
	return nil
}
