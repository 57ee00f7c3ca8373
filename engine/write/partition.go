package write

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"sqe/fault"
)

// partition is one combination of partition values.
type partition struct {
	values map[int]any // by partition field id
	path   string      // folder of its files, "" without partitioning
	lane   int
}

// partitioner finds the partition of rows.
type partitioner struct {
	spec   iceberg.PartitionSpec
	schema *iceberg.Schema
	fields []partitionField
	known  map[string]*partition
	lanes  int
	key    []byte
}

type partitionField struct {
	id        int
	transform iceberg.Transform
	source    iceberg.Type
	path      []int // column, then the fields inside structs
	apply     func(any) any
}

func newPartitioner(spec iceberg.PartitionSpec, schema *iceberg.Schema, lanes int) (*partitioner, error) {
	p := &partitioner{spec: spec, schema: schema, known: map[string]*partition{}, lanes: lanes}
	for _, f := range spec.Fields() {
		if _, void := f.Transform.(iceberg.VoidTransform); void {
			p.fields = append(p.fields, partitionField{id: f.FieldID, transform: f.Transform})
			continue
		}
		if len(f.SourceIDs) != 1 {
			return nil, fault.New(fault.Unsupported, "The table is partitioned by several columns in one transform, which SQE cannot write")
		}
		path, typ, ok := pathTo(schema.Fields(), f.SourceID())
		if !ok || !f.Transform.CanTransform(typ) {
			return nil, fault.New(fault.Unsupported, "The table is partitioned by %s of a column, which SQE cannot write", f.Transform)
		}
		apply, err := transformer(f.Transform, typ)
		if err != nil {
			return nil, err
		}
		p.fields = append(p.fields, partitionField{id: f.FieldID, transform: f.Transform, source: typ, path: path, apply: apply})
	}
	return p, nil
}

// pathTo finds a field inside structs.
func pathTo(fields []iceberg.NestedField, id int) ([]int, iceberg.Type, bool) {
	for i, f := range fields {
		if f.ID == id {
			return []int{i}, f.Type, true
		}
		if s, ok := f.Type.(*iceberg.StructType); ok {
			if path, t, ok := pathTo(s.FieldList, id); ok {
				return append([]int{i}, path...), t, true
			}
		}
	}
	return nil, nil, false
}

// split gives the rows of each partition of a batch, in their order.
func (p *partitioner) split(rec arrow.RecordBatch) ([]*partition, [][]int32, error) {
	rows := int(rec.NumRows())
	columns := make([]func(int) (any, bool), len(p.fields))
	for i, f := range p.fields {
		if f.path == nil {
			columns[i] = func(int) (any, bool) { return nil, false }
			continue
		}
		read, err := reader(rec, f.path, f.source)
		if err != nil {
			return nil, nil, err
		}
		columns[i] = f.memo(read)
	}
	var parts []*partition
	var of [][]int32
	place := map[*partition]int{}
	var last *partition
	var lastKey []byte
	lastPlace := 0
	values := make([]any, len(p.fields))
	for row := range rows {
		key := p.key[:0]
		for i, value := range columns {
			v, ok := value(row)
			if !ok {
				values[i] = nil
				key = append(key, 0)
				continue
			}
			values[i] = v
			key = appendKey(append(key, 1), v)
		}
		p.key = key
		if last == nil || string(key) != string(lastKey) {
			part, ok := p.known[string(key)]
			if !ok {
				part = p.add(string(key), values)
			}
			at, ok := place[part]
			if !ok {
				at = len(parts)
				place[part] = at
				parts = append(parts, part)
				of = append(of, nil)
			}
			last, lastPlace = part, at
			lastKey = append(lastKey[:0], key...)
		}
		of[lastPlace] = append(of[lastPlace], int32(row))
	}
	return parts, of, nil
}

// maxKnown bounds how many partitions are remembered; a forgotten one is made anew.
const maxKnown = 100_000

func (p *partitioner) add(key string, values []any) *partition {
	if len(p.known) >= maxKnown {
		clear(p.known)
	}
	part := &partition{values: make(map[int]any, len(values))}
	row := make(record, len(values))
	for i, f := range p.fields {
		v := values[i]
		// A partition lives longer than the batch whose memory its values are read from.
		switch x := v.(type) {
		case []byte:
			v = append([]byte{}, x...) // nil would read as NULL
		case string:
			v = strings.Clone(x)
		}
		part.values[f.id] = v
		row[i] = v
	}
	part.path = folder(p.spec.PartitionToPath(row, p.schema))
	h := uint32(2166136261)
	for i := range len(key) {
		h = (h ^ uint32(key[i])) * 16777619
	}
	part.lane = int(h % uint32(p.lanes))
	p.known[key] = part
	return part
}

// longestPart bounds a part of a folder's name: file systems bound it too.
const longestPart = 100

// folder makes the name of a partition's folder safe. It has no meaning. Locations
// with escapes are read in different ways: iceberg-go takes %2F in a file's location
// for a slash, PyIceberg and Hadoop for three characters.
func folder(path string) string {
	parts := strings.Split(path, "/")
	for i, s := range parts {
		if len(s) > longestPart {
			s = s[:longestPart]
		}
		parts[i] = strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("=_-.", r) {
				return r
			}
			return '_'
		}, s)
	}
	return strings.Join(parts, "/")
}

// record is the values of a partition for iceberg-go.
type record []any

func (r record) Size() int        { return len(r) }
func (r record) Get(i int) any    { return r[i] }
func (r record) Set(i int, v any) { r[i] = v }

// memo applies the transform, once for each run of equal values.
func (f partitionField) memo(read func(int) (any, bool)) func(int) (any, bool) {
	seen := map[any]any{}
	return func(row int) (any, bool) {
		v, ok := read(row)
		if !ok {
			return nil, false
		}
		if _, bytes := v.([]byte); bytes {
			out := f.apply(v)
			return out, out != nil
		}
		out, known := seen[v]
		if !known {
			if len(seen) > 1<<14 {
				clear(seen)
			}
			out = f.apply(v)
			seen[v] = out
		}
		return out, out != nil
	}
}

// appendKey appends a value so that different values give different keys. All values
// of one field have one type.
func appendKey(key []byte, v any) []byte {
	switch v := v.(type) {
	case bool:
		if v {
			return append(key, 1)
		}
		return append(key, 0)
	case int32:
		return binary.LittleEndian.AppendUint32(key, uint32(v))
	case int64:
		return binary.LittleEndian.AppendUint64(key, uint64(v))
	case iceberg.Date:
		return binary.LittleEndian.AppendUint32(key, uint32(v))
	case iceberg.Time:
		return binary.LittleEndian.AppendUint64(key, uint64(v))
	case iceberg.Timestamp:
		return binary.LittleEndian.AppendUint64(key, uint64(v))
	case iceberg.TimestampNano:
		return binary.LittleEndian.AppendUint64(key, uint64(v))
	case float32:
		return binary.LittleEndian.AppendUint32(key, math.Float32bits(v))
	case float64:
		return binary.LittleEndian.AppendUint64(key, math.Float64bits(v))
	case string:
		return append(binary.AppendUvarint(key, uint64(len(v))), v...)
	case []byte:
		return append(binary.AppendUvarint(key, uint64(len(v))), v...)
	case uuid.UUID:
		return append(key, v[:]...)
	case iceberg.Decimal:
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(key, v.Val.LowBits()), uint64(v.Val.HighBits()))
	}
	return fmt.Appendf(key, "%T %v", v, v)
}

// reader reads the values of a column, or of a field inside structs, in iceberg-go's
// Go types; false for NULL.
func reader(rec arrow.RecordBatch, path []int, source iceberg.Type) (func(int) (any, bool), error) {
	a := rec.Column(path[0])
	var outer []arrow.Array
	for _, i := range path[1:] {
		s, ok := a.(*array.Struct)
		if !ok {
			return nil, fmt.Errorf("a partition field inside %s", a.DataType())
		}
		outer = append(outer, s)
		a = s.Field(i)
	}
	value, err := valueReader(a, source)
	if err != nil {
		return nil, err
	}
	return func(row int) (any, bool) {
		for _, o := range outer {
			if o.IsNull(row) {
				return nil, false
			}
		}
		if a.IsNull(row) {
			return nil, false
		}
		return value(row), true
	}, nil
}

func valueReader(a arrow.Array, source iceberg.Type) (func(int) any, error) {
	switch a := a.(type) {
	case *array.Boolean:
		return func(i int) any { return a.Value(i) }, nil
	case *array.Int32:
		return func(i int) any { return a.Value(i) }, nil
	case *array.Int64:
		return func(i int) any { return a.Value(i) }, nil
	case *array.Float32:
		return func(i int) any { return a.Value(i) }, nil
	case *array.Float64:
		return func(i int) any { return a.Value(i) }, nil
	case *array.Date32:
		return func(i int) any { return iceberg.Date(a.Value(i)) }, nil
	case *array.Time64:
		return func(i int) any { return iceberg.Time(a.Value(i)) }, nil
	case *array.Timestamp:
		switch source.(type) {
		case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
			return func(i int) any { return iceberg.TimestampNano(a.Value(i)) }, nil
		}
		return func(i int) any { return iceberg.Timestamp(a.Value(i)) }, nil
	case *array.Decimal128:
		scale := int(a.DataType().(*arrow.Decimal128Type).Scale)
		return func(i int) any { return iceberg.Decimal{Val: a.Value(i), Scale: scale} }, nil
	case *array.String:
		return func(i int) any { return a.Value(i) }, nil
	case *array.Binary:
		return func(i int) any { return a.Value(i) }, nil
	case *array.FixedSizeBinary:
		return func(i int) any { return a.Value(i) }, nil
	case *extensions.UUIDArray:
		return func(i int) any { return a.Value(i) }, nil
	}
	return nil, fmt.Errorf("partition values of type %s", a.DataType())
}

// transformer gives a transform as a function over iceberg-go's Go types. Sources:
// Iceberg specification, "Partition Transforms" and appendix B.
func transformer(t iceberg.Transform, source iceberg.Type) (func(any) any, error) {
	switch t := t.(type) {
	case iceberg.IdentityTransform:
		return canonical, nil
	case iceberg.TruncateTransform:
		if t.Width <= 0 {
			break
		}
		return func(v any) any { return truncate(v, t.Width) }, nil
	case iceberg.BucketTransform:
		if t.NumBuckets <= 0 {
			break
		}
		return func(v any) any { return applied(t, v) }, nil
	case iceberg.YearTransform, iceberg.MonthTransform, iceberg.DayTransform, iceberg.HourTransform:
		return func(v any) any { return applied(t, v) }, nil
	}
	return nil, fault.New(fault.Unsupported, "The table is partitioned by %s of %s, which SQE cannot write", t, source)
}

// canonical makes one value of those that are equal.
func canonical(v any) any {
	switch f := v.(type) {
	case float32:
		if f != f {
			return float32(math.NaN())
		}
	case float64:
		if f != f {
			return math.NaN()
		}
	}
	return v
}

func applied(t iceberg.Transform, v any) any {
	l := literal(v)
	if l == nil {
		return nil
	}
	out := t.Apply(iceberg.Optional[iceberg.Literal]{Val: l, Valid: true})
	if !out.Valid {
		return nil
	}
	return out.Val.Any()
}

func literal(v any) iceberg.Literal {
	switch v := v.(type) {
	case bool:
		return iceberg.NewLiteral(v)
	case int32:
		return iceberg.NewLiteral(v)
	case int64:
		return iceberg.NewLiteral(v)
	case iceberg.Date:
		return iceberg.NewLiteral(v)
	case iceberg.Time:
		return iceberg.NewLiteral(v)
	case iceberg.Timestamp:
		return iceberg.NewLiteral(v)
	case iceberg.TimestampNano:
		return iceberg.NewLiteral(v)
	case string:
		return iceberg.NewLiteral(v)
	case []byte:
		return iceberg.NewLiteral(v)
	case uuid.UUID:
		return iceberg.NewLiteral(v)
	case iceberg.Decimal:
		return iceberg.NewLiteral(v)
	}
	return nil
}

// truncate rounds numbers down to a multiple of the width, and cuts text after that
// many characters and binary values after that many bytes.
func truncate(v any, width int) any {
	switch v := v.(type) {
	case int32:
		return int32(int64(v) - mod(int64(v), int64(width)))
	case int64:
		return v - mod(v, int64(width))
	case string:
		return v[:prefix(v, width)]
	case []byte:
		return v[:min(width, len(v))]
	case iceberg.Decimal:
		w := decimal128.FromI64(int64(width))
		_, rest := v.Val.Div(w)
		if rest.Sign() < 0 {
			rest = rest.Add(w)
		}
		return iceberg.Decimal{Val: v.Val.Sub(rest), Scale: v.Scale}
	}
	return nil
}

func mod(v, width int64) int64 {
	m := v % width
	if m < 0 {
		m += width
	}
	return m
}

// prefix is the length in bytes of the first n characters.
func prefix(s string, n int) int {
	at := 0
	for ; n > 0 && at < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	return at
}
