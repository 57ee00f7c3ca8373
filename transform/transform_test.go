package transform

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

func decimal(t *testing.T, s string, scale int32) decimal128.Num {
	t.Helper()
	n, err := decimal128.FromString(s, 38, scale)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestHashes: the values of the specification, appendix B, "32-bit Hash
// Requirements", without the sign bit.
func TestHashes(t *testing.T) {
	const all = math.MaxInt32 + 1
	bin, _ := hex.DecodeString("00010203")
	id := uuid.MustParse("f79c3e09-677c-4bbd-a479-3f349cb785e7")
	for _, c := range []struct {
		name string
		got  int64
		want int32
	}{
		{"34", BucketInteger(all, 34), 2017239379},
		{"14.20", BucketDecimal(all, decimal(t, "14.20", 2)), -500754589},
		{"2017-11-16", BucketInteger(all, 17486), -653330422},
		{"22:31:08", BucketInteger(all, 81068000000), -662762989},
		{"2017-11-16T22:31:08", BucketInteger(all, 1510871468000000), -2047944441},
		{"2017-11-16T22:31:08.000001", BucketInteger(all, 1510871468000001), -1207196810},
		{"iceberg", Bucket(all, []byte("iceberg")), 1210000089},
		{"uuid", Bucket(all, id[:]), 1488055340},
		{"bytes", Bucket(all, bin), -188683207},
	} {
		if want := int64(c.want & math.MaxInt32); c.got != want {
			t.Errorf("%s: %d, want %d", c.name, c.got, want)
		}
	}
}

// TestAgainstIceberg compares with the library that reads and writes tables.
func TestAgainstIceberg(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	apply := func(tr iceberg.Transform, l iceberg.Literal) string {
		v := tr.Apply(iceberg.Optional[iceberg.Literal]{Valid: true, Val: l})
		return fmt.Sprint(v.Val.Any())
	}
	bucket, cut := iceberg.BucketTransform{NumBuckets: 17}, iceberg.TruncateTransform{Width: 7}
	for range 20_000 {
		v := r.Int64() - r.Int64()
		v >>= r.IntN(60)
		for name, pair := range map[string][2]string{
			"bucket":   {fmt.Sprint(BucketInteger(17, v)), apply(bucket, iceberg.Int64Literal(v))},
			"truncate": {fmt.Sprint(TruncateInteger(7, v)), apply(cut, iceberg.Int64Literal(v))},
			"hour":     {fmt.Sprint(Hour(v >> 8)), apply(iceberg.HourTransform{}, iceberg.TimestampLiteral(v>>8))},
			"day":      {fmt.Sprint(Day(v >> 8)), apply(iceberg.DayTransform{}, iceberg.TimestampLiteral(v>>8))},
			"decimal": {
				fmt.Sprint(BucketDecimal(17, decimal128.FromI64(v))),
				apply(bucket, iceberg.DecimalLiteral{Val: decimal128.FromI64(v), Scale: 2}),
			},
		} {
			if pair[0] != pair[1] {
				t.Fatalf("%s of %d: %s, want %s", name, v, pair[0], pair[1])
			}
		}
		day := int64(r.IntN(4_000_000) - 2_000_000)
		at := time.Unix(day*86400, 0).UTC()
		if got, want := Year(day), int64(at.Year()-1970); got != want {
			t.Fatalf("year of day %d: %d, want %d", day, got, want)
		}
		if got, want := Month(day), int64((at.Year()-1970)*12+int(at.Month())-1); got != want {
			t.Fatalf("month of day %d: %d, want %d", day, got, want)
		}
	}
}

func TestTruncate(t *testing.T) {
	for _, c := range []struct{ got, want any }{
		{TruncateInteger(10, 1), int64(0)},
		{TruncateInteger(10, -1), int64(-10)},
		{TruncateDecimal(50, decimal(t, "10.65", 2)), decimal(t, "10.50", 2)},
		{TruncateDecimal(50, decimal(t, "-0.05", 2)), decimal(t, "-0.50", 2)},
		{TruncateText(3, "iceberg"), "ice"},
		{TruncateText(2, "a😀b"), "a😀"},
		{TruncateText(9, "é"), "é"},
		{string(TruncateBytes(3, []byte{1, 2, 3, 4, 5})), "\x01\x02\x03"},
		{Hour(-1), int64(-1)},
	} {
		if c.got != c.want {
			t.Errorf("%v, want %v", c.got, c.want)
		}
	}
}
