package scan

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"

	"sqe/plan"
)

// partitionCondition tells what a comparison of a column with a literal may be on
// the rows of a file, by the file's partition alone.
func partitionCondition(op string, col column, l *plan.Literal) condition {
	lit, comparable := valueOf(l)
	source, transformable := icebergLiteral(col.typ, l)
	transformed := map[string]*value{} // by transform
	return func(f *dataFile) truth {
		out := anything
		for _, pf := range f.spec.Fields() {
			if len(pf.SourceIDs) != 1 || pf.SourceID() != col.field {
				continue
			}
			p, known := f.partition[pf.FieldID]
			if !known {
				continue
			}
			if _, void := pf.Transform.(iceberg.VoidTransform); void {
				continue
			}
			if p == nil {
				return isNull // every transform but void gives NULL for NULL alone
			}
			if _, identity := pf.Transform.(iceberg.IdentityTransform); identity {
				if comparable {
					out &= identityTruth(op, col, p, lit)
				}
				continue
			}
			if !transformable {
				continue
			}
			name := pf.Transform.String()
			want, ok := transformed[name]
			if !ok {
				want = apply(pf.Transform, source)
				transformed[name] = want
			}
			if want != nil {
				out &= transformTruth(op, pf.Transform, p, *want)
			}
		}
		return out
	}
}

func identityTruth(op string, col column, p any, lit value) truth {
	pl, ok := literalOf(p, col.typ)
	if !ok {
		return anything
	}
	v, ok := valueOf(pl)
	for _, t := range col.casts {
		if ok {
			v, ok = v.cast(t)
		}
	}
	if !ok {
		return anything
	}
	return bounds{present: true, lo: &v, hi: &v}.compare(op, lit)
}

// apply transforms the literal of a comparison; nil when it cannot.
func apply(t iceberg.Transform, lit iceberg.Literal) *value {
	if !t.CanTransform(lit.Type()) {
		return nil
	}
	r := t.Apply(iceberg.Optional[iceberg.Literal]{Val: lit, Valid: true})
	if !r.Valid {
		return nil
	}
	v, ok := partitionValue(r.Val.Any())
	if !ok {
		return nil
	}
	return &v
}

// transformTruth compares the partition p of a file with the transformed literal.
// But for buckets, transforms keep order, so that col < literal implies
// p <= transform(literal).
func transformTruth(op string, t iceberg.Transform, p any, want value) truth {
	v, ok := partitionValue(p)
	if !ok {
		return anything
	}
	c, ok := v.compare(want)
	if !ok {
		return anything
	}
	possible := true
	switch t.(type) {
	case iceberg.BucketTransform:
		possible = op != "eq" || c == 0
	case iceberg.TruncateTransform:
		possible = ordered(op, c)
	case iceberg.YearTransform, iceberg.MonthTransform, iceberg.DayTransform, iceberg.HourTransform:
		possible = ordered(op, c)
		// Old writers rounded times before 1970 up: such a file may be labelled one
		// too high.
		if want.num < 0 && v.num == want.num+1 {
			possible = true
		}
	}
	if possible {
		return anything
	}
	return isFalse | isNull
}

// ordered reports whether the comparison can be true where the transformed column
// compares as c with the transformed literal.
func ordered(op string, c int) bool {
	switch op {
	case "eq":
		return c == 0
	case "lt", "le":
		return c <= 0
	case "gt", "ge":
		return c >= 0
	}
	return true
}

func partitionValue(v any) (value, bool) {
	if n, ok := integer(v); ok {
		return value{family: whole, num: n}, true
	}
	switch v := v.(type) {
	case string:
		return value{family: text, text: v}, true
	case []byte:
		return value{family: octets, text: string(v)}, true
	case iceberg.Decimal:
		return value{family: decimal, big: v.Val.BigInt(), scale: int32(v.Scale)}, true
	}
	return value{}, false
}

// icebergLiteral is a literal in the type of the column, when it can be had
// without loss.
func icebergLiteral(t arrow.DataType, l *plan.Literal) (iceberg.Literal, bool) {
	switch t := t.(type) {
	case *arrow.Int32Type:
		if v, ok := l.Value.(int64); ok && v == int64(int32(v)) {
			return iceberg.NewLiteral(int32(v)), true
		}
	case *arrow.Int64Type:
		if v, ok := l.Value.(int64); ok {
			return iceberg.NewLiteral(v), true
		}
	case *arrow.StringType:
		if v, ok := l.Value.(string); ok {
			return iceberg.NewLiteral(v), true
		}
	case *arrow.BinaryType:
		if v, ok := l.Value.([]byte); ok {
			return iceberg.NewLiteral(v), true
		}
	case *arrow.Date32Type:
		if v, ok := l.Value.(arrow.Date32); ok {
			return iceberg.NewLiteral(iceberg.Date(v)), true
		}
	case *arrow.TimestampType:
		v, ok := l.Value.(arrow.Timestamp)
		lt, typed := l.Typ.(*arrow.TimestampType)
		if ok && typed && lt.Unit == t.Unit && t.Unit == arrow.Microsecond {
			return iceberg.NewLiteral(iceberg.Timestamp(v)), true
		}
	case *arrow.Decimal128Type:
		v, ok := l.Value.(decimal128.Num)
		lt, typed := l.Typ.(*arrow.Decimal128Type)
		if ok && typed && lt.Scale == t.Scale {
			return iceberg.NewLiteral(iceberg.Decimal{Val: v, Scale: int(t.Scale)}), true
		}
	}
	return nil, false
}
