package write

import (
	"fmt"
	"testing"

	"github.com/apache/iceberg-go"
)

func TestAppend(t *testing.T) {
	for _, version := range []string{"1", "2", "3"} {
		t.Run("v"+version, func(t *testing.T) {
			l := newLake(t)
			l.create("t", creation{schema: simple(), version: version})
			res := l.append("t", objects(0, 10), objects(10, 25))
			if res.Inserted != 25 || res.Files != 1 || res.Bytes == 0 || res.Table.SnapshotID == 0 {
				t.Errorf("%+v", res)
			}
			l.want(l.read("t"), rowsText(0, 25)...)
			l.append("t", objects(25, 30))
			l.want(l.read("t"), rowsText(0, 30)...)
		})
	}
}

// TestTransforms: every transform puts every row into the file of its partition, and
// the manifests say so.
func TestTransforms(t *testing.T) {
	types := []struct {
		typ        iceberg.Type
		values     []string
		transforms []iceberg.Transform
	}{
		{iceberg.PrimitiveTypes.Bool, []string{"true", "false"}, []iceberg.Transform{iceberg.IdentityTransform{}}},
		{iceberg.PrimitiveTypes.Int32, []string{"-2147483648", "-1", "0", "34"}, []iceberg.Transform{iceberg.IdentityTransform{}, iceberg.BucketTransform{NumBuckets: 16}, iceberg.TruncateTransform{Width: 10}}},
		{iceberg.PrimitiveTypes.Int64, []string{"-9223372036854775800", "-1", "0", "34"}, []iceberg.Transform{iceberg.IdentityTransform{}, iceberg.BucketTransform{NumBuckets: 16}, iceberg.TruncateTransform{Width: 10}}},
		{iceberg.PrimitiveTypes.Float32, []string{"-0.5", "1e20"}, []iceberg.Transform{iceberg.IdentityTransform{}}},
		{iceberg.PrimitiveTypes.Float64, []string{"-0.5", "1e200"}, []iceberg.Transform{iceberg.IdentityTransform{}}},
		{iceberg.DecimalTypeOf(9, 2), []string{`"-10.65"`, `"0.00"`, `"14.20"`}, []iceberg.Transform{iceberg.IdentityTransform{}, iceberg.BucketTransform{NumBuckets: 16}, iceberg.TruncateTransform{Width: 50}}},
		{iceberg.DecimalTypeOf(38, 2), []string{`"-999999999999999999999999999999999999.99"`, `"14.20"`}, []iceberg.Transform{iceberg.IdentityTransform{}, iceberg.BucketTransform{NumBuckets: 16}, iceberg.TruncateTransform{Width: 50}}},
		{iceberg.PrimitiveTypes.Date, []string{`"1969-12-31"`, `"1970-01-01"`, `"2024-02-29"`}, []iceberg.Transform{iceberg.IdentityTransform{}, iceberg.BucketTransform{NumBuckets: 16}, iceberg.YearTransform{}, iceberg.MonthTransform{}, iceberg.DayTransform{}}},
		{iceberg.PrimitiveTypes.Time, []string{`"23:59:59.999999"`, `"00:00:00.000000"`}, []iceberg.Transform{iceberg.IdentityTransform{}, iceberg.BucketTransform{NumBuckets: 16}}},
		{iceberg.PrimitiveTypes.Timestamp, []string{`"1969-12-31 23:59:59.999999"`, `"1970-01-01 00:00:00"`, `"2024-02-29 13:00:00"`}, []iceberg.Transform{iceberg.IdentityTransform{}, iceberg.BucketTransform{NumBuckets: 16}, iceberg.YearTransform{}, iceberg.MonthTransform{}, iceberg.DayTransform{}, iceberg.HourTransform{}}},
		{iceberg.PrimitiveTypes.TimestampTz, []string{`"1969-12-31 23:59:59.999999Z"`, `"2024-02-29 13:00:00Z"`}, []iceberg.Transform{iceberg.IdentityTransform{}, iceberg.BucketTransform{NumBuckets: 16}, iceberg.YearTransform{}, iceberg.MonthTransform{}, iceberg.DayTransform{}, iceberg.HourTransform{}}},
		{iceberg.PrimitiveTypes.TimestampNs, []string{`"1969-12-31 23:59:59.999999999"`, `"2024-02-29 13:00:00"`}, []iceberg.Transform{iceberg.BucketTransform{NumBuckets: 16}, iceberg.YearTransform{}, iceberg.MonthTransform{}, iceberg.DayTransform{}, iceberg.HourTransform{}}},
		{iceberg.PrimitiveTypes.TimestampTzNs, []string{`"1969-12-31 23:59:59.999999999Z"`, `"2024-02-29 13:00:00Z"`}, []iceberg.Transform{iceberg.BucketTransform{NumBuckets: 16}, iceberg.DayTransform{}}},
		{iceberg.PrimitiveTypes.String, []string{`""`, `"a/b=c d%"`, `"äöü😀zzzz"`, `"äöü😀"`}, []iceberg.Transform{iceberg.IdentityTransform{}, iceberg.BucketTransform{NumBuckets: 16}, iceberg.TruncateTransform{Width: 4}}},
		{iceberg.PrimitiveTypes.Binary, []string{`""`, `"AP8AAQ=="`, `"AP8A"`}, []iceberg.Transform{iceberg.IdentityTransform{}, iceberg.BucketTransform{NumBuckets: 16}, iceberg.TruncateTransform{Width: 3}}},
		{iceberg.FixedTypeOf(3), []string{`"AAAA"`, `"////"`}, []iceberg.Transform{iceberg.IdentityTransform{}, iceberg.BucketTransform{NumBuckets: 16}}},
		{iceberg.PrimitiveTypes.UUID, []string{`"6ba7b810-9dad-11d1-80b4-00c04fd430c8"`, `"00000000-0000-0000-0000-000000000000"`}, []iceberg.Transform{iceberg.IdentityTransform{}, iceberg.BucketTransform{NumBuckets: 16}}},
		{iceberg.PrimitiveTypes.Int64, []string{"1", "2"}, []iceberg.Transform{iceberg.VoidTransform{}}},
	}
	for _, ty := range types {
		for _, tr := range ty.transforms {
			t.Run(fmt.Sprintf("%s %s", tr, ty.typ), func(t *testing.T) {
				l := newLake(t)
				l.create("t", creation{
					schema: iceberg.NewSchema(0, col(1, "id", iceberg.PrimitiveTypes.Int64), col(2, "v", ty.typ)), version: "3",
					partition: []iceberg.PartitionField{{SourceIDs: []int{2}, FieldID: 1000, Name: "p", Transform: tr}},
				})
				text, n := "", 0
				for range 3 {
					for _, v := range append(ty.values, "null") {
						text += fmt.Sprintf(`{"id":%d,"v":%s},`, n, v)
						n++
					}
				}
				l.append("t", "["+text[:len(text)-1]+"]")
				got := l.read("t")
				if len(got) != n {
					t.Fatalf("%d rows of %d: %v", len(got), n, got)
				}
				l.checkPartitions("t", tr)
			})
		}
	}
}
