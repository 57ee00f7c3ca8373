package write

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// sizeOf is about how many bytes the values of a batch take; a slice counts by its
// own rows.
func sizeOf(rec arrow.RecordBatch) int64 {
	var n int64
	for _, c := range rec.Columns() {
		n += sizeOfArray(c)
	}
	return n
}

func sizeOfArray(a arrow.Array) int64 {
	rows := int64(a.Len())
	if rows == 0 {
		return 0
	}
	switch a := a.(type) {
	case array.ExtensionArray:
		return sizeOfArray(a.Storage())
	case *array.String:
		return 4*rows + int64(len(a.ValueBytes()))
	case *array.Binary:
		return 4*rows + int64(len(a.ValueBytes()))
	case *array.Struct:
		n := rows / 8
		for i := range a.NumField() {
			n += sizeOfArray(a.Field(i))
		}
		return n
	case *array.Map:
		return 4*rows + part(a, a.ListValues())
	case *array.List:
		return 4*rows + part(a, a.ListValues())
	}
	if t, ok := a.DataType().(arrow.FixedWidthDataType); ok {
		return (rows*int64(t.BitWidth())+7)/8 + rows/8
	}
	return rows
}

// part is the share of the elements that the lists of an array hold.
func part(l array.ListLike, elements arrow.Array) int64 {
	if l.Len() == 0 || elements.Len() == 0 {
		return 0
	}
	from, _ := l.ValueOffsets(0)
	_, to := l.ValueOffsets(l.Len() - 1)
	return sizeOfArray(elements) * (to - from) / int64(elements.Len())
}
