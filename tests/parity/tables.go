package parity

import (
	"context"
	"database/sql"
	_ "embed" // the tables
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	icesql "github.com/apache/iceberg-go/catalog/sql"
	_ "github.com/apache/iceberg-go/io" // the local file system
	"github.com/apache/iceberg-go/table"
	_ "modernc.org/sqlite" // the catalog's database
)

// Catalog is where the tables lie.
const Catalog = "lake"

// Values are text; binary is hexadecimal.
//
//go:embed testdata/tables.json
var tablesText []byte

type tableDef struct {
	Columns [][2]string `json:"columns"` // name, type
	Rows    [][]*string `json:"rows"`
}

var columnTypes = map[string]arrow.DataType{
	"long": arrow.PrimitiveTypes.Int64, "int": arrow.PrimitiveTypes.Int32, "string": arrow.BinaryTypes.String,
	"date": arrow.FixedWidthTypes.Date32, "boolean": arrow.FixedWidthTypes.Boolean, "double": arrow.PrimitiveTypes.Float64,
	"float": arrow.PrimitiveTypes.Float32, "decimal(12,2)": &arrow.Decimal128Type{Precision: 12, Scale: 2},
	"timestamp":   &arrow.TimestampType{Unit: arrow.Microsecond},
	"timestamptz": &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, "binary": arrow.BinaryTypes.Binary,
}

func (d tableDef) schema() *arrow.Schema {
	fields := make([]arrow.Field, len(d.Columns))
	for i, c := range d.Columns {
		fields[i] = arrow.Field{Name: c[0], Type: columnTypes[c[1]], Nullable: true}
	}
	return arrow.NewSchema(fields, nil)
}

func (d tableDef) records() (arrow.RecordBatch, error) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, d.schema())
	defer b.Release()
	for _, row := range d.Rows {
		for i, v := range row {
			if v == nil {
				b.Field(i).AppendNull()
				continue
			}
			var err error
			switch f := b.Field(i).(type) {
			case *array.Float64Builder:
				var x float64
				x, err = strconv.ParseFloat(*v, 64)
				f.Append(x)
			case *array.Float32Builder:
				var x float64
				x, err = strconv.ParseFloat(*v, 32)
				f.Append(float32(x))
			case *array.BinaryBuilder:
				var x []byte
				x, err = hex.DecodeString(*v)
				f.Append(x)
			case *array.TimestampBuilder:
				text := *v
				if f.Type().(*arrow.TimestampType).TimeZone != "" {
					text += "Z"
				}
				err = f.AppendValueFromString(text)
			default:
				err = f.AppendValueFromString(*v)
			}
			if err != nil {
				return nil, fmt.Errorf("column %s: %q: %w", d.Columns[i][0], *v, err)
			}
		}
	}
	return b.NewRecordBatch(), nil
}

// project is the table of some columns of another.
func (d tableDef) project(names ...string) tableDef {
	var out tableDef
	for i, c := range d.Columns {
		for _, n := range names {
			if c[0] == n {
				out.Columns = append(out.Columns, c)
				for j := range d.Rows {
					if len(out.Rows) <= j {
						out.Rows = append(out.Rows, nil)
					}
					out.Rows[j] = append(out.Rows[j], d.Rows[j][i])
				}
			}
		}
	}
	return out
}

// nestedColumns have a table each, masks.c_<name>, and masks.nested together.
var nestedColumns = []arrow.Field{
	{Name: "a", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
	{Name: "st", Type: arrow.StructOf(
		arrow.Field{Name: "x", Type: arrow.BinaryTypes.String, Nullable: true}, arrow.Field{Name: "y", Type: arrow.PrimitiveTypes.Int32, Nullable: true}), Nullable: true},
	{Name: "m", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.BinaryTypes.String), Nullable: true},
}

const nestedRows = `[{"id": 1, "a": ["Ab1", null], "st": {"x": "Ab1", "y": 7}, "m": [{"key": "k", "value": "Ab1"}]}, {"id": 2}]`

// The two views hold one query. In Trino the first runs with the rights of its
// owner and the second with those of who asks; SQE knows the second kind only.
const viewQuery = "SELECT id, region, ssn FROM sem.orders WHERE id < 3"

// Build makes the catalog <dir>/catalog.db and the tables in it.
func Build(ctx context.Context, dir string) (err error) {
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
	for _, n := range []string{"bank", "masks", "sem", "default"} {
		if err := cat.CreateNamespace(ctx, table.Identifier{n}, nil); err != nil {
			return err
		}
	}
	var tables map[string]tableDef
	if err := json.Unmarshal(tablesText, &tables); err != nil {
		return err
	}
	for _, c := range tables["masks.types"].Columns[1:] {
		tables["masks.c_"+c[0]] = tables["masks.types"].project("id", c[0])
	}
	for name, d := range tables {
		rec, err := d.records()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := create(ctx, cat, name, d.schema(), rec); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	id := arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int32, Nullable: true}
	nested := map[string]*arrow.Schema{"masks.nested": arrow.NewSchema(append([]arrow.Field{id}, nestedColumns...), nil)}
	for _, f := range nestedColumns {
		nested["masks.c_"+f.Name] = arrow.NewSchema([]arrow.Field{id, f}, nil)
	}
	for name, schema := range nested {
		rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(nestedRows))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := create(ctx, cat, name, schema, rec); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	orders := tables["sem.orders"].project("id", "region", "ssn").schema()
	for _, v := range []string{"v_orders", "v_invoker"} {
		if err := createView(ctx, cat, v, orders); err != nil {
			return fmt.Errorf("%s: %w", v, err)
		}
	}
	return nil
}

func create(ctx context.Context, cat *icesql.Catalog, name string, s *arrow.Schema, rec arrow.RecordBatch) error {
	schema, err := table.ArrowSchemaToIcebergWithFreshIDs(s, false)
	if err != nil {
		return err
	}
	namespace, short, _ := strings.Cut(name, ".")
	t, err := cat.CreateTable(ctx, catalog.ToIdentifier(namespace, short), schema, catalog.WithProperties(iceberg.Properties{"format-version": "2"}))
	if err != nil || rec.NumRows() == 0 {
		return err
	}
	r, err := array.NewRecordReader(s, []arrow.RecordBatch{rec})
	if err != nil {
		return err
	}
	defer r.Release()
	_, err = t.Append(ctx, r, nil)
	return err
}

// createView stores the query in the dialect of SQE. iceberg-go can only say
// "default", so the metadata file is written again.
func createView(ctx context.Context, cat *icesql.Catalog, name string, s *arrow.Schema) error {
	schema, err := table.ArrowSchemaToIcebergWithFreshIDs(s, false)
	if err != nil {
		return err
	}
	identifier := catalog.ToIdentifier("sem", name)
	if err := cat.CreateView(ctx, identifier, schema, viewQuery, nil); err != nil {
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
	return os.WriteFile(files[0], []byte(strings.ReplaceAll(string(text), `"dialect":"default"`, `"dialect":"sqe"`)), 0o644)
}
