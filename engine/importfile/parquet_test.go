package importfile

import (
	"bytes"
	"context"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"sqe/fault"
	"sqe/plan"
)

// fileSchema are columns as other writers make them: with narrow integers, other
// units, and types that only the Arrow schema beside them knows.
var fileSchema = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64},
	{Name: "small", Type: arrow.PrimitiveTypes.Int8, Nullable: true},
	{Name: "word", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}, Nullable: true},
	{Name: "long word", Type: arrow.BinaryTypes.LargeString, Nullable: true},
	{Name: "at", Type: &arrow.TimestampType{Unit: arrow.Nanosecond}, Nullable: true},
	{Name: "instant", Type: &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "Europe/Zurich"}, Nullable: true},
	{Name: "clock", Type: arrow.FixedWidthTypes.Time32ms, Nullable: true},
	{Name: "price", Type: plan.Decimal(9, 2), Nullable: true},
	{Name: "list", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true},
	{Name: "pair", Type: arrow.StructOf(arrow.Field{Name: "a", Type: arrow.BinaryTypes.String, Nullable: true}), Nullable: true},
}, nil)

const fileRows = `[
	{"id":1,"small":-1,"word":"a","long word":"ä","at":"2024-02-29 12:00:00.123456","instant":"2024-02-29T12:00:00.123Z","clock":"12:34:56.789","price":"1.50","list":[1,null],"pair":{"a":"x"}},
	{"id":2,"small":null,"word":"b","long word":"","at":null,"instant":null,"clock":null,"price":null,"list":null,"pair":null}
]`

const fileText = `1;-1;a;ä;2024-02-29T12:00:00.123456;2024-02-29T12:00:00.123Z;12:34:56.789000;1.5;[1,null];{"a":"x"}|2;NULL;b;;NULL;NULL;NULL;NULL;NULL;NULL`

func parquetBytes(t testing.TB, schema *arrow.Schema, times int, codec compress.Compression, json string) []byte {
	t.Helper()
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(json))
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Release()
	return recordBytes(t, rec, times, codec)
}

func recordBytes(t testing.TB, rec arrow.RecordBatch, times int, codec compress.Compression) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := pqarrow.NewFileWriter(rec.Schema(), &out, parquet.NewWriterProperties(parquet.WithCompression(codec)), pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		t.Fatal(err)
	}
	for range times {
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func load(content []byte) (string, error) {
	f, err := Open(context.Background(), bytes.NewReader(content), Options{Kind: Parquet})
	if err != nil {
		return "", err
	}
	fields, err := f.Fields(context.Background(), nil)
	if err != nil {
		return "", err
	}
	return read(f, fields)
}

// TestParquet: every codec, several row groups, and types by the format alone.
func TestParquet(t *testing.T) {
	for _, c := range []compress.Compression{compress.Codecs.Uncompressed, compress.Codecs.Snappy, compress.Codecs.Gzip, compress.Codecs.Zstd, compress.Codecs.Brotli, compress.Codecs.Lz4Raw} {
		content := parquetBytes(t, fileSchema, 3, c, fileRows)
		got, err := load(content)
		if want := strings.Join([]string{fileText, fileText, fileText}, "|"); err != nil || got != want {
			t.Errorf("%s:\n%s\n%s\n%v", c, got, want, err)
		}
	}
	f, err := Open(context.Background(), bytes.NewReader(parquetBytes(t, fileSchema, 1, compress.Codecs.Snappy, fileRows)), Options{Kind: Parquet})
	if err != nil {
		t.Fatal(err)
	}
	fields, err := f.Fields(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	for _, x := range fields {
		types = append(types, x.Type.String())
	}
	want := "int64 int32 utf8 utf8 timestamp[us] timestamp[us, tz=UTC] time64[us] decimal(9, 2) list<element: int32, nullable> struct<a: utf8 nullable>"
	if got := strings.Join(types, " "); got != want || !fields[0].Required || fields[1].Required {
		t.Errorf("types %s\nwant %s", got, want)
	}
	// Some columns, in another order, one of them twice, and one that is not there.
	rows, err := f.Rows(context.Background(), []Column{{At: 3, Field: fields[3]}, {At: -1, Field: plan.Field{Name: "x", Type: plan.Int64}}, {At: 0, Field: fields[0]}, {At: 0, Field: fields[0]}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	b, err := rows.Next()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	if a, n, c := b.Column(0).ValueStr(0), b.Column(1).NullN(), b.Column(3).ValueStr(1); a != "ä" || n != 2 || c != "2" {
		t.Errorf("%s %d %s", a, n, c)
	}
	none, err := f.Rows(context.Background(), []Column{{At: -1, Field: plan.Field{Name: "x", Type: plan.Int64}}})
	if err != nil {
		t.Fatal(err)
	}
	b, err = none.Next()
	if err != nil || b.NumRows() != 2 {
		t.Fatalf("no column of the file: %v", err)
	}
	b.Release()
	_ = none.Close()
}

// TestDamagedParquet: whatever byte is changed, reading gives rows or a fault, within
// the bounds of memory.
func TestDamagedParquet(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	refused, read := 0, 0
	try := func(content []byte) {
		_, err := load(content)
		if err == nil {
			read++
			return
		}
		refused++
		if k := fault.KindOf(err); k != fault.BadStatement && k != fault.Limit && k != fault.Unsupported && k != fault.OutOfRange {
			t.Fatalf("%s: %v", k, err)
		}
	}
	for _, c := range []compress.Compression{compress.Codecs.Uncompressed, compress.Codecs.Snappy, compress.Codecs.Zstd} {
		content := parquetBytes(t, fileSchema, 2, c, fileRows)
		for range 1500 {
			broken := bytes.Clone(content)
			for range 1 + random.IntN(3) {
				broken[random.IntN(len(broken))] = byte(random.IntN(256))
			}
			try(broken)
		}
		for i := 0; i < len(content); i += 97 {
			try(content[:i])
		}
	}
	if refused < 500 || read < 100 {
		t.Errorf("%d refused, %d read", refused, read)
	}
	for _, x := range []string{"", "PAR1", "a,b\n1,2\n", "PAR1\xff\xff\xff\x7fPAR1", strings.Repeat("PAR1", 10)} {
		try([]byte(x))
	}
}

// TestLongPage: a page that unpacks to more than it says is not unpacked.
func TestLongPage(t *testing.T) {
	codec, err := compress.GetCodec(compress.Codecs.Zstd)
	if err != nil {
		t.Fatal(err)
	}
	content := make([]byte, 256<<20)
	packed := codec.Encode(nil, content)
	content = nil
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	if _, err := compress.Decode(codec, make([]byte, 1000), packed); err == nil {
		t.Error("256 MiB in a page of 1000 bytes")
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
		t.Errorf("%d MiB were needed", used>>20)
	}
	small := codec.Encode(nil, []byte("abc"))
	if got, err := compress.Decode(codec, make([]byte, 3), small); err != nil || string(got) != "abc" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := compress.Decode(codec, nil, small); err != nil || string(got) != "abc" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestBoundedMemory: the allocator of a file gives no more than its bound, and takes
// back.
func TestBoundedMemory(t *testing.T) {
	a := newAllocator()
	err := guarded(func() error {
		for {
			_ = a.Allocate(64 << 20)
		}
	})
	if !fault.Is(err, fault.Limit) {
		t.Error(err)
	}
	a = newAllocator()
	for range 100 {
		a.Free(a.Reallocate(64<<20, a.Allocate(32<<20)))
	}
	if n := a.held.Load(); n != 0 {
		t.Errorf("%d bytes are held", n)
	}
}

// TestTextOfParquet: text is UTF-8 in a table, whatever a file calls text.
func TestTextOfParquet(t *testing.T) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "c", Type: plan.String}}, nil))
	defer b.Release()
	b.Field(0).(*array.StringBuilder).Append("secret\xff")
	rec := b.NewRecordBatch()
	defer rec.Release()
	_, err := load(recordBytes(t, rec, 1, compress.Codecs.Snappy))
	if !fault.Is(err, fault.BadStatement) || !strings.Contains(err.Error(), "'c'") || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}

// TestUnfitParquet: what a table cannot hold is refused by the name of the column.
func TestUnfitParquet(t *testing.T) {
	for _, x := range []struct {
		typ        arrow.DataType
		value, err string
		kind       fault.Kind
	}{
		{arrow.FixedWidthTypes.Float16, "1", "'c' of the file has a type", fault.Unsupported},
		{&arrow.Decimal256Type{Precision: 60, Scale: 2}, `"1"`, "'c' of the file has a type", fault.Unsupported},
		{arrow.FixedWidthTypes.Time64ns, `"12:00:00.123456789"`, "'c' is out of range", fault.OutOfRange},
	} {
		schema := arrow.NewSchema([]arrow.Field{{Name: "c", Type: x.typ, Nullable: true}}, nil)
		_, err := load(parquetBytes(t, schema, 1, compress.Codecs.Snappy, `[{"c":`+x.value+`}]`))
		if !fault.Is(err, x.kind) || !strings.Contains(err.Error(), x.err) {
			t.Errorf("%s: %v", x.typ, err)
		}
	}
}
