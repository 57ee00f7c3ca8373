package write

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// mode says how much is kept about a column. Source: Iceberg documentation,
// "write.metadata.metrics.default".
type mode struct {
	counts bool
	bounds bool
	length int // of bounds of text and binary values; 0 is whole
}

const (
	metricsDefault = "write.metadata.metrics.default"
	metricsColumn  = "write.metadata.metrics.column."
	metricsLimit   = "write.metadata.metrics.max-inferred-column-defaults"
)

func parseMode(s string) (mode, bool) {
	switch s = strings.ToLower(strings.TrimSpace(s)); {
	case s == "none":
		return mode{}, true
	case s == "counts":
		return mode{counts: true}, true
	case s == "full":
		return mode{counts: true, bounds: true}, true
	case strings.HasPrefix(s, "truncate(") && strings.HasSuffix(s, ")"):
		n, err := strconv.Atoi(s[len("truncate(") : len(s)-1])
		if err == nil && n > 0 {
			return mode{counts: true, bounds: true, length: n}, true
		}
	}
	return mode{}, false
}

// modes are the modes of the primitive fields outside lists and maps, by field id.
func modes(schema *iceberg.Schema, order table.SortOrder, props iceberg.Properties) map[int]mode {
	usual := mode{counts: true, bounds: true, length: 16}
	limit := math.MaxInt
	if m, ok := parseMode(props[metricsDefault]); ok {
		usual = m
	} else if n, err := strconv.Atoi(props[metricsLimit]); err == nil {
		limit = n
	} else {
		limit = 100
	}
	sorted := map[int]bool{}
	for _, f := range order.Fields() {
		for _, id := range f.SourceIDs {
			sorted[id] = true
		}
	}
	out := map[int]mode{}
	n := 0
	var walk func([]iceberg.NestedField)
	walk = func(fields []iceberg.NestedField) {
		for _, f := range fields {
			if s, ok := f.Type.(*iceberg.StructType); ok {
				walk(s.FieldList)
				continue
			}
			if _, nested := f.Type.(iceberg.NestedType); nested {
				continue
			}
			m := usual
			if n++; n > limit {
				m = mode{}
			}
			// Sorted columns are worth their bounds.
			if sorted[f.ID] && !m.bounds {
				m = mode{counts: true, bounds: true, length: 16}
			}
			if name, ok := schema.FindColumnName(f.ID); ok {
				if own, ok := parseMode(props[metricsColumn+name]); ok {
					m = own
				}
			}
			out[f.ID] = m
		}
	}
	walk(schema.Fields())
	return out
}

// metrics are the statistics of a file while it is written.
type metrics struct {
	modes   map[int]mode
	columns []*columnMetrics // one for each column of the file
}

// columnMetrics are those of a column, or of a field inside structs.
type columnMetrics struct {
	id       int
	mode     mode
	children []*columnMetrics // of a struct
	skipped  bool             // a list or a map

	values, nulls, nans int64
	lower, upper        any // int64, float64, bool, []byte, decimal128.Num
	bytesType           byte
	width               int // of the number in bounds: 4 or 8
	hasNaN              bool
}

// kinds of byte strings, which are truncated in different ways.
const (
	isText = iota + 1
	isBinary
	isWhole
)

func newMetrics(schema *iceberg.Schema, modes map[int]mode) *metrics {
	return &metrics{modes: modes, columns: columnsOf(schema.Fields(), modes)}
}

func columnsOf(fields []iceberg.NestedField, modes map[int]mode) []*columnMetrics {
	out := make([]*columnMetrics, len(fields))
	for i, f := range fields {
		c := &columnMetrics{id: f.ID, mode: modes[f.ID]}
		switch t := f.Type.(type) {
		case *iceberg.StructType:
			c.children = columnsOf(t.FieldList, modes)
		case iceberg.NestedType:
			c.skipped = true
		case iceberg.StringType:
			c.bytesType = isText
		case iceberg.BinaryType, iceberg.FixedType:
			c.bytesType = isBinary
		case iceberg.UUIDType:
			c.bytesType = isWhole
		case iceberg.Int32Type, iceberg.DateType, iceberg.Float32Type:
			c.width = 4
		case iceberg.Float64Type:
			c.width, c.hasNaN = 8, true
		default:
			c.width = 8
		}
		if _, ok := f.Type.(iceberg.Float32Type); ok {
			c.hasNaN = true
		}
		if iceberg.IsMetadataColumn(f.ID) {
			c.mode = mode{counts: true, bounds: true}
		}
		out[i] = c
	}
	return out
}

func (m *metrics) add(rec arrow.RecordBatch) {
	for i, c := range m.columns {
		c.add(rec.Column(i), nil)
	}
}

// add counts an array; hidden says in which rows a struct around it is NULL.
func (c *columnMetrics) add(a arrow.Array, hidden func(int) bool) {
	if c.skipped {
		return
	}
	if s, ok := a.(*array.Struct); ok {
		inner := hidden
		if s.NullN() > 0 {
			inner = func(i int) bool { return s.IsNull(i) || hidden != nil && hidden(i) }
		}
		for i, child := range c.children {
			child.add(s.Field(i), inner)
		}
		return
	}
	if !c.mode.counts {
		return
	}
	n := a.Len()
	c.values += int64(n)
	skip := hidden
	switch {
	case hidden == nil && a.NullN() == 0:
	case hidden == nil:
		c.nulls += int64(a.NullN())
		skip = a.IsNull
	default:
		skip = func(i int) bool { return a.IsNull(i) || hidden(i) }
		for i := range n {
			if skip(i) {
				c.nulls++
			}
		}
	}
	if c.mode.bounds || c.hasNaN {
		c.bounds(a, skip)
	}
}

func (c *columnMetrics) bounds(a arrow.Array, skip func(int) bool) {
	if u, ok := a.(*extensions.UUIDArray); ok {
		a = u.Storage()
	}
	switch a := a.(type) {
	case *array.Int32:
		whole(c, a.Values(), skip)
	case *array.Int64:
		whole(c, a.Values(), skip)
	case *array.Date32:
		whole(c, a.Values(), skip)
	case *array.Time64:
		whole(c, a.Values(), skip)
	case *array.Timestamp:
		whole(c, a.Values(), skip)
	case *array.Float32:
		floats(c, a.Values(), skip)
	case *array.Float64:
		floats(c, a.Values(), skip)
	case *array.Boolean:
		for i := range a.Len() {
			if skip != nil && skip(i) {
				continue
			}
			v := int64(0)
			if a.Value(i) {
				v = 1
			}
			c.update(v, v)
		}
		c.width = 1
	case *array.Decimal128:
		var lo, hi decimal128.Num
		found := false
		for i, v := range a.Values() {
			if skip != nil && skip(i) {
				continue
			}
			if !found || v.Less(lo) {
				lo = v
			}
			if !found || hi.Less(v) {
				hi = v
			}
			found = true
		}
		if found {
			if old, ok := c.lower.(decimal128.Num); !ok || lo.Less(old) {
				c.lower = lo
			}
			if old, ok := c.upper.(decimal128.Num); !ok || old.Less(hi) {
				c.upper = hi
			}
		}
	case *array.String:
		octets(c, a.Len(), a.Value, skip)
	case *array.Binary:
		octets(c, a.Len(), func(i int) string { return unsafeString(a.Value(i)) }, skip)
	case *array.FixedSizeBinary:
		octets(c, a.Len(), func(i int) string { return unsafeString(a.Value(i)) }, skip)
	}
}

func (c *columnMetrics) update(lo, hi int64) {
	if old, ok := c.lower.(int64); !ok || lo < old {
		c.lower = lo
	}
	if old, ok := c.upper.(int64); !ok || hi > old {
		c.upper = hi
	}
}

func whole[T ~int32 | ~int64](c *columnMetrics, values []T, skip func(int) bool) {
	if len(values) == 0 {
		return
	}
	if skip == nil {
		c.update(int64(slices.Min(values)), int64(slices.Max(values)))
		return
	}
	var lo, hi T
	found := false
	for i, v := range values {
		if skip(i) {
			continue
		}
		if !found || v < lo {
			lo = v
		}
		if !found || v > hi {
			hi = v
		}
		found = true
	}
	if found {
		c.update(int64(lo), int64(hi))
	}
}

func floats[T float32 | float64](c *columnMetrics, values []T, skip func(int) bool) {
	var lo, hi T
	found := false
	for i, v := range values {
		if skip != nil && skip(i) {
			continue
		}
		if v != v {
			c.nans++
			continue
		}
		if !found || v < lo {
			lo = v
		}
		if !found || v > hi {
			hi = v
		}
		found = true
	}
	if !found || !c.mode.bounds {
		return
	}
	if old, ok := c.lower.(float64); !ok || float64(lo) < old {
		c.lower = float64(lo)
	}
	if old, ok := c.upper.(float64); !ok || float64(hi) > old {
		c.upper = float64(hi)
	}
}

// unsafeString is b as a string for as long as b does not change.
func unsafeString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func octets(c *columnMetrics, n int, text func(int) string, skip func(int) bool) {
	lower, hasLower := c.lower.([]byte)
	upper, _ := c.upper.([]byte)
	lo, hi := string(lower), string(upper)
	found := hasLower
	for i := range n {
		if skip != nil && skip(i) {
			continue
		}
		v := text(i)
		if !found {
			lo, hi, found = v, v, true
			continue
		}
		if v < lo {
			lo = v
		} else if v > hi {
			hi = v
		}
	}
	if found {
		c.lower, c.upper = []byte(lo), []byte(hi)
	}
}

// counts and bounds by field id, as a manifest holds them.
type fileMetrics struct {
	values, nulls, nans map[int]int64
	lower, upper        map[int][]byte
}

func (m *metrics) result() fileMetrics {
	out := fileMetrics{map[int]int64{}, map[int]int64{}, map[int]int64{}, map[int][]byte{}, map[int][]byte{}}
	var walk func([]*columnMetrics)
	walk = func(list []*columnMetrics) {
		for _, c := range list {
			if c.children != nil {
				walk(c.children)
				continue
			}
			if c.skipped || !c.mode.counts {
				continue
			}
			out.values[c.id], out.nulls[c.id] = c.values, c.nulls
			if c.hasNaN {
				out.nans[c.id] = c.nans
			}
			if !c.mode.bounds || c.lower == nil {
				continue
			}
			if b, ok := c.bound(c.lower, false); ok {
				out.lower[c.id] = b
			}
			if b, ok := c.bound(c.upper, true); ok {
				out.upper[c.id] = b
			}
		}
	}
	walk(m.columns)
	return out
}

// bound is a limit in the single-value serialization of the Iceberg specification,
// appendix D; false for an upper bound that cannot be cut.
func (c *columnMetrics) bound(v any, upper bool) ([]byte, bool) {
	switch v := v.(type) {
	case int64:
		switch c.width {
		case 1:
			return []byte{byte(v)}, true
		case 4:
			return binary.LittleEndian.AppendUint32(nil, uint32(v)), true
		}
		return binary.LittleEndian.AppendUint64(nil, uint64(v)), true
	case float64:
		// There may be zeros of both signs, which not every reader takes for equal.
		if v == 0 {
			v = 0
			if !upper {
				v = math.Copysign(0, -1)
			}
		}
		if c.width == 4 {
			return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(v))), true
		}
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)), true
	case decimal128.Num:
		return twosComplement(v), true
	case []byte:
		n := c.mode.length
		switch {
		case n == 0 || c.bytesType == isWhole:
			return v, true
		case c.bytesType == isText:
			if !utf8.Valid(v) {
				return nil, false
			}
			at := prefix(string(v), n)
			if at == len(v) || !upper {
				return v[:at], true
			}
			return nextText(v[:at])
		}
		if len(v) <= n || !upper {
			return v[:min(n, len(v))], true
		}
		return nextBytes(v[:n])
	}
	return nil, false
}

// nextText is the least text of at most as many characters that is above every text
// that begins with s.
func nextText(s []byte) ([]byte, bool) {
	r := []rune(string(s))
	for i := len(r) - 1; i >= 0; i-- {
		next := r[i] + 1
		if next == 0xD800 {
			next = 0xE000 // surrogates are no characters
		}
		if next <= utf8.MaxRune {
			return []byte(string(append(r[:i:i], next))), true
		}
	}
	return nil, false
}

func nextBytes(s []byte) ([]byte, bool) {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] < 0xFF {
			out := bytes.Clone(s[:i+1])
			out[i]++
			return out, true
		}
	}
	return nil, false
}

// twosComplement is a number in as few bytes as hold it, the highest first.
func twosComplement(v decimal128.Num) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(v.HighBits()))
	b = binary.BigEndian.AppendUint64(b, v.LowBits())
	for len(b) > 1 && (b[0] == 0 && b[1] < 0x80 || b[0] == 0xFF && b[1] >= 0x80) {
		b = b[1:]
	}
	return b
}
