// Package lab makes the tables and policies of the tests about access: tables
// whose hidden rows and raw values are known, and beside some of them a copy that
// is physically filtered and masked, which is what a principal under the policies
// must see.
//
// Invariants: the copies are computed here, by rules written from the
// documentation, and never by the product; every secret value is unique, so that
// finding it anywhere is a leak. The package must not import the product.
package lab

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	icesql "github.com/apache/iceberg-go/catalog/sql"
	_ "github.com/apache/iceberg-go/io" // the local file system
	"github.com/apache/iceberg-go/table"
	_ "modernc.org/sqlite" // the catalog's database
)

// Catalog and Namespace are where the tables lie.
const (
	Catalog   = "lake"
	Namespace = "lab"
)

// HashKey is the key of MASK_HASH.
const HashKey = "the key of the laboratory"

// record is a row by column name. Absent is NULL.
type record map[string]any

// tableDef is a table to make.
type tableDef struct {
	name   string
	schema *arrow.Schema
	rows   []record
}

func field(name string, t arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: t, Nullable: true}
}

var (
	text    = arrow.BinaryTypes.String
	long    = arrow.PrimitiveTypes.Int64
	integer = arrow.PrimitiveTypes.Int32
	date    = arrow.FixedWidthTypes.Date32
	money   = &arrow.Decimal128Type{Precision: 12, Scale: 2}
)

// peopleSchema: id, k, age, region and active are seen raw; the other columns are
// masked, each in its way.
var peopleSchema = arrow.NewSchema([]arrow.Field{
	field("id", long), field("k", integer), field("age", integer), field("region", text),
	field("active", arrow.FixedWidthTypes.Boolean), field("score", arrow.PrimitiveTypes.Float64),
	field("name", text), field("ssn", text), field("email", text), field("dob", date),
	field("salary", money), field("note", text),
}, nil)

var ordersSchema = arrow.NewSchema([]arrow.Field{
	field("id", long), field("person", long), field("amount", money), field("status", text), field("memo", text),
	field("placed", date),
}, nil)

// PeopleFilter and OrdersFilter are the row filters of the governed user.
const (
	PeopleFilter = "region = 'EU'"
	OrdersFilter = "status <> 'void'"
)

var (
	first = []string{"Ana", "Bram", "Chloé", "Dieter", "Élodie", "Fatima", "Grace", "Hiro", "Иван", "Jürgen"}
	last  = []string{"Quill", "Rossi", "Straße", "Tanaka", "Umarov", "Vries"}
)

// people makes n rows. Every third is hidden; NULLs, empty and short values are
// among them.
func people(n int) (raw, seen []record) {
	for i := range n {
		region := []string{"EU", "EU", "US"}[i%3]
		r := record{
			"id": i + 1, "k": i % 5, "age": 18 + (i*7)%60, "region": region, "active": i%2 == 0,
			"score": float64(i*37%100) / 4,
			"name":  fmt.Sprintf("%s %s %d", first[i%len(first)], last[i%len(last)], i),
			"ssn":   fmt.Sprintf("%03d-%02d-%04d", 100+i*7%900, i%100, 1000+i*13%9000),
			"email": fmt.Sprintf("user%d@%s.example", i, strings.ToLower(region)),
			"dob":   fmt.Sprintf("%04d-%02d-%02d", 1950+i%50, 2+i%11, 2+i%27),
			// Unique and long: a number that turns up by chance is no leak.
			"salary": fmt.Sprintf("%d.%02d", 31000007+i*1009, i%100),
			"note":   fmt.Sprintf("Q%d says hush-%d", i, i*7919),
		}
		switch i % 11 {
		case 4:
			delete(r, "name")
		case 5:
			delete(r, "ssn")
			delete(r, "age")
		case 6:
			r["ssn"], r["note"] = "7", ""
		case 7:
			r["ssn"] = ""
			delete(r, "dob")
		case 8:
			delete(r, "email")
			delete(r, "note")
		}
		if i%13 == 12 {
			delete(r, "region") // a filter that is NULL hides the row
		}
		raw = append(raw, r)
		if r["region"] == "EU" {
			seen = append(seen, maskPerson(r))
		}
	}
	return raw, seen
}

// maskPerson is what Policies says of a row of people.
func maskPerson(r record) record {
	out := record{}
	for k, v := range r {
		s, _ := v.(string)
		switch k {
		case "name":
			v = redact(s, 0, "X", "x", "n")
		case "ssn":
			v = redact(s, 4, "x", "x", "x")
		case "email":
			mac := hmac.New(sha256.New, []byte(HashKey))
			mac.Write([]byte(s))
			v = hex.EncodeToString(mac.Sum(nil))
		case "dob":
			v = s[:4] + "-01-01"
		case "salary":
			continue // NULL
		case "note":
			v = "c:" + s[:min(1, len(s))]
		}
		out[k] = v
	}
	return out
}

// redact replaces letters and digits, keeping the last ones. A value that would
// be kept whole is masked whole.
func redact(s string, keepLast int, upper, lower, digit string) string {
	runes := []rune(s)
	if len(runes) <= keepLast {
		keepLast = 0
	}
	var b strings.Builder
	for i, r := range runes {
		switch {
		case i >= len(runes)-keepLast:
			b.WriteRune(r)
		case unicode.IsLetter(r) && unicode.IsUpper(r):
			b.WriteString(upper)
		case unicode.IsLetter(r):
			b.WriteString(lower)
		case unicode.IsNumber(r):
			b.WriteString(digit)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func orders(n, persons int) (raw, seen []record) {
	for i := range n {
		r := record{
			"id": i + 1, "person": i*7%(persons+3) + 1, "amount": fmt.Sprintf("%d.%02d", i*17%500, i*29%100),
			"status": []string{"open", "paid", "void", "late"}[i%4], "memo": fmt.Sprintf("memo-%d-zz%d", i, i*104729),
			"placed": fmt.Sprintf("2024-%02d-%02d", 1+i%12, 1+i%28),
		}
		if i%9 == 8 {
			delete(r, "amount")
		}
		if i%10 == 9 {
			delete(r, "person")
		}
		raw = append(raw, r)
		if r["status"] != "void" {
			s := record{}
			for k, v := range r {
				if k != "memo" {
					s[k] = v
				}
			}
			seen = append(seen, s)
		}
	}
	return raw, seen
}

// Secrets are the values that the governed user must never see: everything of the
// hidden rows that identifies them, and the raw values of the masked columns.
func Secrets() []string {
	raw, _ := people(peopleRows)
	var out []string
	for _, r := range raw {
		for _, k := range []string{"name", "ssn", "email", "salary", "note"} {
			if s, ok := r[k].(string); ok && len(s) > 4 {
				out = append(out, s)
			}
		}
	}
	rawOrders, _ := orders(orderRows, peopleRows)
	for _, r := range rawOrders {
		out = append(out, r["memo"].(string))
	}
	for _, t := range specials() {
		for _, r := range t.rows {
			for _, v := range r {
				out = append(out, secretsIn(v)...)
			}
		}
	}
	return out
}

// secretsIn finds the values marked as secret in the special tables.
func secretsIn(v any) (out []string) {
	switch v := v.(type) {
	case string:
		if strings.HasPrefix(v, "secret-") {
			out = append(out, v)
		}
	case record:
		for _, w := range v {
			out = append(out, secretsIn(w)...)
		}
	case []any:
		for _, w := range v {
			out = append(out, secretsIn(w)...)
		}
	}
	return out
}

const (
	peopleRows = 66
	orderRows  = 150
)

// typesSchema has every primitive type of Iceberg v2.
var typesSchema = arrow.NewSchema([]arrow.Field{
	field("id", long), field("c_boolean", arrow.FixedWidthTypes.Boolean), field("c_int", integer), field("c_long", long),
	field("c_float", arrow.PrimitiveTypes.Float32), field("c_double", arrow.PrimitiveTypes.Float64),
	field("c_decimal", &arrow.Decimal128Type{Precision: 38, Scale: 10}), field("c_date", date),
	field("c_time", arrow.FixedWidthTypes.Time64us), field("c_timestamp", &arrow.TimestampType{Unit: arrow.Microsecond}),
	field("c_timestamptz", &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}), field("c_string", text),
	field("c_uuid", extensions.NewUUIDType()), field("c_fixed", &arrow.FixedSizeBinaryType{ByteWidth: 4}), field("c_binary", arrow.BinaryTypes.Binary),
}, nil)

// The bytes are base64: 0xdeadbeef, 0x00ff and none.
var typesRows = []record{
	{
		"id": 1, "c_boolean": true, "c_int": 2147483647, "c_long": json.Number("9223372036854775807"), "c_float": 1.5, "c_double": 1e300,
		"c_decimal": "1234567890123456789012345678.0123456789", "c_date": "9999-12-31", "c_time": "23:59:59.999999",
		"c_timestamp": "2024-02-29 12:34:56.789012", "c_timestamptz": "2024-02-29 12:34:56.789012Z", "c_string": "Zürich 🏦",
		"c_uuid": "f79c3e09-677c-4bbd-a479-3f349cb785e7", "c_fixed": "3q2+7w==", "c_binary": "AP8=",
	},
	{
		"id": 2, "c_boolean": false, "c_int": -2147483648, "c_long": json.Number("-9223372036854775808"), "c_float": -0.25, "c_double": -2.5,
		"c_decimal": "-0.0000000001", "c_date": "1970-01-01", "c_time": "00:00:00", "c_timestamp": "1970-01-01 00:00:00",
		"c_timestamptz": "1969-12-31 23:59:59Z", "c_string": "", "c_uuid": "00000000-0000-0000-0000-000000000000", "c_fixed": "AAAAAA==", "c_binary": "",
	},
	{"id": 3},
}

// specials are the small tables for one question each. Values that start with
// "secret-" must never be seen by the governed user.
func specials() []tableDef {
	profile := arrow.StructOf(field("city", text), field("phone", text))
	nested := arrow.NewSchema([]arrow.Field{
		field("id", long), field("profile", profile), field("phones", arrow.ListOf(text)), field("attributes", arrow.MapOf(text, text)),
	}, nil)
	pairs := arrow.NewSchema([]arrow.Field{field("id", long), field("region", text), field("a", text), field("b", text)}, nil)
	one := func(name string) tableDef {
		t := tableDef{name: name, schema: pairs}
		for i, region := range []string{"EU", "US", "EU", "US"} {
			t.rows = append(t.rows, record{
				"id": i + 1, "region": region,
				"a": fmt.Sprintf("secret-%s-a-%d", name, i+1), "b": fmt.Sprintf("plain-b-%d", i+1),
			})
		}
		return t
	}
	tables := []tableDef{
		{name: "types", schema: typesSchema, rows: typesRows},
		one("crossing"),   // mask on a reads b, which is not masked
		one("chained"),    // mask on a reads b, which is masked: a is withheld
		one("withheld"),   // every column withheld
		one("unknown"),    // one mask of an unknown kind on a
		one("unfiltered"), // a filter that does not parse: the table is refused
		one("missing"),    // a filter on a column that does not exist: refused
		one("ghost"),      // a mask on a column that never existed: nothing else is affected
		one("scoped"),     // a filter with a sub-query over a table that the user may not read
		one("forbidden"),  // no grant at all
	}
	tables = append(tables, tableDef{
		name:   "mapping", // no grant: only the filter of scoped reads it
		schema: arrow.NewSchema([]arrow.Field{field("region", text), field("owner", text)}, nil),
		rows:   []record{{"region": "EU", "owner": "pat"}, {"region": "US", "owner": "secret-owner"}},
	}, tableDef{
		name: "nested", schema: nested,
		rows: []record{
			{
				"id": 1, "profile": record{"city": "Gent", "phone": "secret-phone-1"}, "phones": []any{"secret-list-1", "secret-list-2"},
				"attributes": []any{record{"key": "card", "value": "secret-map-1"}},
			},
			{"id": 2, "profile": record{"city": "Oslo"}, "phones": []any{}},
		},
	})
	return tables
}

// Build makes the catalog <dir>/catalog.db and the tables in it.
func Build(ctx context.Context, dir string) (err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "catalog.db")+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	cat, err := icesql.NewCatalog(Catalog, db, icesql.SQLite, iceberg.Properties{"warehouse": "file://" + dir, "init_catalog_tables": "true"})
	if err != nil {
		return err
	}
	if err := cat.CreateNamespace(ctx, table.Identifier{Namespace}, nil); err != nil {
		return err
	}
	rawPeople, seenPeople := people(peopleRows)
	rawOrders, seenOrders := orders(orderRows, peopleRows)
	tables := append(specials(),
		tableDef{"people", peopleSchema, rawPeople}, tableDef{"people_seen", peopleSchema, seenPeople},
		tableDef{"orders", ordersSchema, rawOrders}, tableDef{"orders_seen", ordersSchema, seenOrders})
	for _, t := range tables {
		if err := t.create(ctx, cat); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	for _, v := range views {
		fields := peopleSchema.Fields()
		if v.columns != nil {
			fields = nil
			for _, c := range v.columns {
				f, _ := peopleSchema.FieldsByName(c)
				fields = append(fields, f...)
			}
		}
		schema, err := table.ArrowSchemaToIcebergWithFreshIDs(arrow.NewSchema(fields, nil), false)
		if err != nil {
			return err
		}
		if err := createView(ctx, cat, v.name, v.sql, schema); err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
	}
	return nil
}

// views are stored queries; pat may use them, and what lies below them is
// governed as if pat had typed it.
var views = []struct {
	name, sql string
	columns   []string
}{
	{"people_view", "SELECT * FROM people", nil},
	{"people_view2", "SELECT id, name, ssn, region FROM lab.people_view WHERE age > 20", []string{"id", "name", "ssn", "region"}},
	{"narrow", "SELECT id, age FROM people", []string{"id", "age"}}, // not the column that the filter reads
}

// createView stores a query in the dialect of SQE. iceberg-go can only say
// "default", so the metadata file is written again.
func createView(ctx context.Context, cat *icesql.Catalog, name, query string, schema *iceberg.Schema) error {
	identifier := catalog.ToIdentifier(Namespace, name)
	if err := cat.CreateView(ctx, identifier, schema, query, nil); err != nil {
		return err
	}
	v, err := cat.LoadView(ctx, identifier)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimPrefix(v.Location(), "file://"), "metadata", "*.metadata.json"))
	if err != nil || len(files) != 1 {
		return fmt.Errorf("metadata files of a new view: %v (%w)", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		return err
	}
	changed := strings.ReplaceAll(string(text), `"dialect":"default"`, `"dialect":"sqe"`)
	if changed == string(text) {
		return errors.New("the metadata of the view names no dialect")
	}
	return os.WriteFile(files[0], []byte(changed), 0o644)
}

func (d tableDef) create(ctx context.Context, cat *icesql.Catalog) error {
	schema, err := table.ArrowSchemaToIcebergWithFreshIDs(d.schema, false)
	if err != nil {
		return err
	}
	t, err := cat.CreateTable(ctx, catalog.ToIdentifier(Namespace, d.name), schema, catalog.WithProperties(iceberg.Properties{"format-version": "2"}))
	if err != nil {
		return err
	}
	// Two files and two snapshots, so that pruning and time travel have something
	// to choose from.
	for _, part := range [][]record{d.rows[:len(d.rows)/2], d.rows[len(d.rows)/2:]} {
		text, err := json.Marshal(part)
		if err != nil {
			return err
		}
		rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, d.schema, strings.NewReader(string(text)))
		if err != nil {
			return err
		}
		r, err := array.NewRecordReader(d.schema, []arrow.RecordBatch{rec})
		if err != nil {
			return err
		}
		t, err = t.Append(ctx, r, nil)
		r.Release()
		rec.Release()
		if err != nil {
			return err
		}
	}
	return nil
}
