package importfile

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"sqe/fault"
	"sqe/plan"
)

var csvOptions = Options{Kind: CSV, Terminated: ",", Enclosed: '"', Ignore: 1, Header: true}

// TestRecords: fields as MySQL's LOAD DATA reads them; NULL is not an empty text.
func TestRecords(t *testing.T) {
	tab := Options{Terminated: "\t", Escaped: '\\', Lines: "\n"}
	for _, x := range []struct {
		o        Options
		in, want string // records by |, fields by ;
	}{
		{csvOptions, "", ""},
		{csvOptions, "a,b\n1,2\n", "a;b|1;2"},
		{csvOptions, "a,b\r\n1,2\r\n", "a;b|1;2"},
		{csvOptions, "a,b\n1,2", "a;b|1;2"},
		{csvOptions, "a,b\r\n1,2\r", "a;b|1;2\r"},
		{csvOptions, ",\"\",\n", "NULL;;NULL"},
		{csvOptions, `"a,b","say ""hi""","x` + "\n" + `y"`, "a,b;say \"hi\";x\ny"},
		{csvOptions, "\"a\"\r\n\"b\"", "a|b"},
		{csvOptions, "NULL,\"NULL\",\\N,null", "NULL;'NULL';NULL;null"},
		{csvOptions, `a"b,c`, `a"b;c`},
		{csvOptions, "a\n\nb", "a|NULL|b"},
		{tab, "a\\tb\t\\N\t\\\\N\\n\tNULL\n", "a\tb;NULL;\\N\n;'NULL'"},
		{tab, "a\\\nb\tc\n", "a\nb;c"},
		{tab, "x\\Ny", "xNy"},
		{tab, "a\r\n", "a\r"},
		{Options{Terminated: "||", Lines: "##", Enclosed: '\'', Escaped: '\\'}, `a|b||'c''d\'e'##f||`, "a|b;c'd'e|f;NULL"},
		{Options{Terminated: ";", Lines: "\r\n"}, "a\nb;c\r\nd;e", "a\nb;c|d;e"},
	} {
		for _, slow := range []bool{false, true} {
			var in io.Reader = strings.NewReader(x.in)
			if slow {
				in = iotest.OneByteReader(in)
			}
			r := newRecords(in, x.o)
			var records []string
			for {
				err := r.next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatalf("%q: %v", x.in, err)
				}
				var fields []string
				for i := range r.ends {
					v, null := r.field(i)
					s := string(v)
					if s == "NULL" {
						s = "'NULL'"
					}
					if null {
						s = "NULL"
					}
					fields = append(fields, s)
				}
				records = append(records, strings.Join(fields, ";"))
			}
			if got := strings.Join(records, "|"); got != x.want {
				t.Errorf("%q (slow %t): %q, want %q", x.in, slow, got, x.want)
			}
		}
	}
}

// TestMalformedText: what is no file of records names the line.
func TestMalformedText(t *testing.T) {
	for _, x := range []struct{ in, want string }{
		{"a\n\"secret", "begins at line 2"},
		{"a\n1\n\"x\"secret\n", "line 3 of the file has characters behind the quote"},
		{"a,b\n1,2\n\n3,secret,5\n", "line 4 of the file has 3 fields where 2 are expected"},
		{"a,b\n\"1\n2\n3\",secret\n4\n", "line 5 of the file has 1 fields"},
		{"a\n" + strings.Repeat("x", MaxRow+1), "line 2 of the file is longer"},
		{"a\n\"" + strings.Repeat("x", MaxRow+1), "line 2 of the file is longer"},
		{"a\n" + strings.Repeat(",", MaxColumns+10), "has more than"},
		{"", "ends before the line that names its columns"},
		{"a,,b\n", "no name to its column 2"},
		{"a,\xff\n", "column 2 of the file is not UTF-8"},
	} {
		_, err := fieldsOf(t, x.in, csvOptions)
		if err == nil || !strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), "secret") || fault.KindOf(err) == fault.Internal {
			t.Errorf("%.40q: %v, want %s", x.in, err, x.want)
		}
	}
}

func fieldsOf(t *testing.T, in string, o Options) ([]plan.Field, error) {
	t.Helper()
	f, err := Open(context.Background(), strings.NewReader(in), o)
	if err != nil {
		return nil, err
	}
	return f.Fields(context.Background(), nil)
}

// TestInference: the type that holds every value exactly.
func TestInference(t *testing.T) {
	for _, x := range []struct{ values, want string }{
		{"1 -2 0", "bigint"},
		{"1 NULL", "bigint"},
		{"9223372036854775807 -9223372036854775808", "bigint"},
		{"9223372036854775808", "longtext"},
		{"007 1", "longtext"}, // codes keep their zeros
		{"+49", "longtext"},
		{"1 2.5", "double"},
		{"1e3 -0.25 .5", "double"},
		{"0.1 123456789.123456", "double"},
		{"0.12345678901234567890", "longtext"}, // a double would lose digits
		{"1e999", "longtext"},
		{"NaN", "longtext"},
		{"0x10", "longtext"},
		{"1_000", "longtext"},
		{"true FALSE", "boolean"},
		{"true 1", "longtext"},
		{"0 1", "bigint"},
		{"2024-02-29 1969-12-31", "date"},
		{"2023-02-29", "longtext"},
		{"2024-02-29 2024-02-29T12:00:00", "datetime"},
		{"2024-02-29T12:00:00.123456", "datetime"},
		{"2024-02-29T12:00:00.1234567", "longtext"},
		{"2024-02-29T12:00:00Z 2024-02-29T12:00:00+01:00", "timestamptz"},
		{"2024-02-29T12:00:00Z 2024-02-29T12:00:00", "longtext"},
		{"12:00:00 23:59:59.5", "time"},
		{"12:00", "longtext"},
		{"NULL", "longtext"},
		{"x 1", "longtext"},
	} {
		got, err := fieldsOf(t, "c\n"+strings.ReplaceAll(x.values, " ", "\n"), csvOptions)
		want := map[string]string{
			"bigint": plan.Int64.String(), "longtext": plan.String.String(), "double": plan.Float64.String(), "boolean": plan.Bool.String(),
			"date": plan.Date.String(), "datetime": plan.Timestamp.String(), "timestamptz": plan.TimestampTZ.String(), "time": plan.Time.String(),
		}[x.want]
		if err != nil || len(got) != 1 || got[0].Type.String() != want || got[0].Name != "c" {
			t.Errorf("%s: %v %v, want %s", x.values, got, err, want)
		}
	}
}

// read reads a file with all its columns into the given fields.
func read(f File, fields []plan.Field) (string, error) {
	columns := make([]Column, len(fields))
	for i := range fields {
		columns[i] = Column{At: i, Field: fields[i]}
	}
	rows, err := f.Rows(context.Background(), columns)
	if err != nil {
		return "", err
	}
	defer func() { _ = rows.Close() }()
	var out []string
	for {
		b, err := rows.Next()
		if err == io.EOF {
			return strings.Join(out, "|"), nil
		}
		if err != nil {
			return "", err
		}
		for i := range int(b.NumRows()) {
			var cells []string
			for _, c := range b.Columns() {
				s := "NULL"
				if c.IsValid(i) {
					s = strings.Clone(c.ValueStr(i))
				}
				cells = append(cells, s)
			}
			out = append(out, strings.Join(cells, ";"))
		}
		b.Release()
	}
}

// TestValues: text becomes exactly the value of the type, or is refused with its
// line and column and without itself.
func TestValues(t *testing.T) {
	fixed := plan.Field{Name: "c", Type: plan.Binary}
	for _, x := range []struct {
		f        plan.Field
		in, want string // "" is refused
	}{
		{plan.Field{Type: plan.Int32}, "2147483647", "2147483647"},
		{plan.Field{Type: plan.Int32}, "2147483648", ""},
		{plan.Field{Type: plan.Int32}, " 7 ", "7"},
		{plan.Field{Type: plan.Int64}, "1.0", ""},
		{plan.Field{Type: plan.Int64}, "secret", ""},
		{plan.Field{Type: plan.Bool}, "1", "true"},
		{plan.Field{Type: plan.Bool}, "yes", ""},
		{plan.Field{Type: plan.Float64}, "1e300", "1e+300"},
		{plan.Field{Type: plan.Float64}, "1e400", ""},
		{plan.Field{Type: plan.Float64}, "inf", ""},
		{plan.Field{Type: plan.Float32}, "-0.25", "-0.25"},
		{plan.Field{Type: plan.Decimal(5, 2)}, "-123.45", "-123.45"},
		{plan.Field{Type: plan.Decimal(5, 2)}, "1e2", "100"},
		{plan.Field{Type: plan.Decimal(5, 2)}, "1.500", "1.5"},
		{plan.Field{Type: plan.Decimal(5, 2)}, "1.505", ""},
		{plan.Field{Type: plan.Decimal(5, 2)}, "1000", ""},
		{plan.Field{Type: plan.Decimal(5, 2)}, "0e99999", "0"},
		{plan.Field{Type: plan.Decimal(5, 2)}, "1e99999", ""},
		{plan.Field{Type: plan.Decimal(38, 10)}, "1234567890123456789012345678.0123456789", "1234567890123456789012345678.0123456789"},
		{plan.Field{Type: plan.Decimal(38, 0)}, "-99999999999999999999999999999999999999", "-99999999999999999999999999999999999999"},
		{plan.Field{Type: plan.Date}, "0001-01-01", "0001-01-01"},
		{plan.Field{Type: plan.Date}, "2024-2-1", ""},
		{plan.Field{Type: plan.Time}, "23:59:59.999999", "23:59:59.999999"},
		{plan.Field{Type: plan.Time}, "24:00:00", ""},
		{plan.Field{Type: plan.Timestamp}, "2024-02-29 12:34:56.5", "2024-02-29T12:34:56.5"},
		{plan.Field{Type: plan.Timestamp}, "2024-02-29T12:34Z", ""},
		{plan.Field{Type: plan.TimestampTZ}, "2024-02-29 12:34:56+02:00", "2024-02-29T10:34:56Z"},
		{plan.Field{Type: plan.TimestampTZ}, "1969-12-31 23:59:59 UTC", "1969-12-31T23:59:59Z"},
		{plan.Field{Type: plan.TimestampNS}, "2024-02-29 12:34:56.123456789", "2024-02-29T12:34:56.123456789"},
		{plan.Field{Type: plan.TimestampNS}, "9999-01-01", ""},
		{plan.Field{Type: plan.String}, " Zürich 🏦 ", " Zürich 🏦 "},
		{plan.Field{Type: plan.String}, "\xff", ""},
		{fixed, "\xff", "/w=="},
		{plan.Field{Type: plan.UUID}, "f79c3e09-677c-4bbd-a479-3f349cb785e7", "f79c3e09-677c-4bbd-a479-3f349cb785e7"}, // the writer's
	} {
		x.f.Name = "c"
		f, err := Open(context.Background(), strings.NewReader("c\n\n\n"+x.in+"\n"), Options{Kind: CSV, Terminated: "\x01", Ignore: 3, Fields: 1})
		if err != nil {
			t.Fatal(err)
		}
		got, err := read(f, []plan.Field{x.f})
		if x.want != "" {
			if err != nil || strings.Trim(got, `"`) != x.want && got != x.want {
				t.Errorf("%s of %q: %q %v, want %q", x.f.Type, x.in, got, err, x.want)
			}
			continue
		}
		if !fault.Is(err, fault.OutOfRange) || !strings.Contains(err.Error(), "line 4") || !strings.Contains(err.Error(), "'c'") || strings.Contains(err.Error(), x.in) {
			t.Errorf("%s of %q: %q, %v", x.f.Type, x.in, got, err)
		}
	}
}

// TestColumns: fields may be passed over, columns filled.
func TestColumns(t *testing.T) {
	f, err := Open(context.Background(), strings.NewReader("\xef\xbb\xbfa,b,c\n1,2,3\n4,,6\n"), csvOptions)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(f.Names(), ";"); got != "a;b;c" {
		t.Errorf("names %q", got)
	}
	rows, err := f.Rows(context.Background(), []Column{
		{At: 2, Field: plan.Field{Name: "x", Type: plan.Int32}},
		{At: -1, Field: plan.Field{Name: "y", Type: plan.Int64}},
		{At: -1, Field: plan.Field{Name: "z", Type: plan.Int32}, Fill: &plan.Literal{Typ: plan.Int32, Value: int64(7)}},
		{At: 1, Field: plan.Field{Name: "b", Type: plan.String}},
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := rows.Next()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	want := []string{"[3 6]", "[(null) (null)]", "[7 7]", `["2" (null)]`}
	for i, c := range b.Columns() {
		if got := fmt.Sprint(c); got != want[i] {
			t.Errorf("column %d: %s, want %s", i, got, want[i])
		}
	}
	if _, err := rows.Next(); err != io.EOF {
		t.Error(err)
	}
}

func packed(t *testing.T, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestGzip: a file that unpacks to more than is allowed, or is cut off, is refused.
func TestGzip(t *testing.T) {
	o := csvOptions
	o.Gzip, o.MaxBytes = true, 1<<20
	load := func(content []byte) (string, error) {
		f, err := Open(context.Background(), bytes.NewReader(content), o)
		if err != nil {
			return "", err
		}
		fields, err := f.Fields(context.Background(), nil)
		if err != nil {
			return "", err
		}
		return read(f, fields)
	}
	good := packed(t, []byte("a,b\n1,x\n2,y\n"))
	if got, err := load(good); err != nil || got != "1;x|2;y" {
		t.Errorf("%q, %v", got, err)
	}
	bomb := packed(t, []byte("a\n"+strings.Repeat("1\n", 64<<20)))
	if len(bomb) > 1<<20 {
		t.Fatalf("%d bytes", len(bomb))
	}
	if _, err := load(bomb); !fault.Is(err, fault.Limit) {
		t.Errorf("a bomb: %v", err)
	}
	for _, broken := range [][]byte{good[:len(good)-3], good[:5], []byte("a,b\n1,2\n")} {
		if _, err := load(broken); !fault.Is(err, fault.BadStatement) {
			t.Errorf("broken: %v", err)
		}
	}
}

// TestCancelled: reading ends with its context.
func TestCancelled(t *testing.T) {
	why := errors.New("ended")
	ctx, cancel := context.WithCancelCause(context.Background())
	f, err := Open(ctx, strings.NewReader("a\n1\n"), csvOptions)
	if err != nil {
		t.Fatal(err)
	}
	cancel(why)
	if _, err := f.Fields(ctx, nil); !errors.Is(err, why) {
		t.Error(err)
	}
	rows, err := f.Rows(ctx, []Column{{Field: plan.Field{Name: "a", Type: plan.Int64}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rows.Next(); !errors.Is(err, why) {
		t.Error(err)
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"a,b\n1,2\n", "a\n\"x\"\"y\"\n", "a\n\\N\n", "\xef\xbb\xbfa", "a,b\r\n\"\n\",\r\n"} {
		f.Add(s, byte('"'), byte(0))
		f.Add(s, byte(0), byte('\\'))
	}
	f.Fuzz(func(t *testing.T, in string, enclosed, escaped byte) {
		if strings.IndexByte(",\n", enclosed) >= 0 || strings.IndexByte(",\n", escaped) >= 0 {
			return
		}
		o := csvOptions
		o.Enclosed, o.Escaped = enclosed, escaped
		file, err := Open(context.Background(), strings.NewReader(in), o)
		if err != nil {
			return
		}
		fields, err := file.Fields(context.Background(), nil)
		if err != nil {
			if fault.KindOf(err) == fault.Internal {
				t.Fatal(err)
			}
			return
		}
		// What was inferred holds every value.
		if _, err := read(file, fields); err != nil && !strings.Contains(err.Error(), "UTF-8") {
			t.Fatalf("%q: %v of %v", in, err, fields)
		}
	})
}
