//go:build e2e

package writes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	icebergcatalog "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
)

// types makes a table for each type and each transform that it can be partitioned by.
func (l *lake) types() {
	l.Helper()
	types := []struct {
		name, typ    string
		values, show []string // show is values without quotes where it is nil
		transforms   []string
	}{
		{"bool", "BOOLEAN", []string{"true", "false"}, nil, []string{"v"}},
		{"int", "INT", []string{"-2147483640", "-7", "2147483647"}, nil, []string{"v", "BUCKET(7, v)", "TRUNCATE(10, v)"}},
		{"long", "BIGINT", []string{"-9223372036854775800", "-7", "9223372036854775807"}, nil, []string{"BUCKET(7, v)", "TRUNCATE(10, v)"}},
		{"double", "DOUBLE", []string{"-0.5", "1e100"}, []string{"-0.5", "1e+100"}, nil},
		{"float", "FLOAT", []string{"-0.5", "2.25"}, nil, nil},
		{"decimal", "DECIMAL(9,2)", []string{"-10.65", "9999999.99"}, nil, []string{"v", "BUCKET(7, v)", "TRUNCATE(50, v)"}},
		{"wide", "DECIMAL(38,10)", []string{"-9999999999999999999999999999.9999999999", "1.0000000001"}, nil, []string{"BUCKET(7, v)"}},
		{"date", "DATE", []string{"'0001-01-01'", "'1969-12-31'", "'2024-02-29'"}, nil, []string{"v", "BUCKET(7, v)", "YEAR(v)", "MONTH(v)", "DAY(v)"}},
		{"time", "TIME", []string{"'23:59:59.999999'", "'00:00:00'"}, nil, nil},
		{"ts", "TIMESTAMP", []string{"'1969-12-31 23:59:59.999999'", "'2024-02-29 13:00:00'"}, nil, []string{"v", "BUCKET(7, v)", "YEAR(v)", "MONTH(v)", "DAY(v)", "HOUR(v)"}},
		{"tz", "TIMESTAMP WITH TIME ZONE", []string{"'1969-12-31 23:59:59.999999'", "'2024-02-29 13:00:00'"}, nil, []string{"BUCKET(7, v)", "DAY(v)", "HOUR(v)"}},
		{"string", "STRING", []string{"'a/b=c d%'", "'äöü😀zzzzzzzzzzzzzzzzzzzzz'"}, nil, []string{"v", "BUCKET(7, v)", "TRUNCATE(4, v)"}},
		{"empty", "STRING", []string{"''", "'a'"}, nil, []string{"v", "TRUNCATE(2, v)", "BUCKET(7, v)"}},
		{"uuid", "UUID", []string{"'6ba7b810-9dad-11d1-80b4-00c04fd430c8'"}, nil, []string{"BUCKET(7, v)"}},
		{"fixed", "BINARY(4)", []string{"x'00ff0001'"}, []string{"00ff0001"}, []string{"BUCKET(7, v)"}},
		{"binary", "BLOB", []string{"x'00ff000102030405060708090a0b0c0d0e0f101112'"}, []string{"00ff000102030405060708090a0b0c0d0e0f101112"}, []string{"BUCKET(7, v)", "TRUNCATE(3, v)"}},
	}
	for _, ty := range types {
		for i, tr := range append([]string{""}, ty.transforms...) {
			name := fmt.Sprintf("%s_%d", ty.name, i)
			layout := ""
			if tr != "" {
				layout = " PARTITIONED BY (" + tr + ")"
			}
			var rows []string
			for k, v := range append(slices.Clone(ty.values), "NULL") {
				rows = append(rows, fmt.Sprintf("(%d, %s)", k, v))
				show := strings.Trim(v, "'")
				if k < len(ty.show) {
					show = ty.show[k]
				}
				l.tables[name] = append(l.tables[name], []string{fmt.Sprint(k), show})
			}
			l.do("CREATE TABLE ns."+name+" (id BIGINT, v "+ty.typ+")"+layout, "INSERT INTO ns."+name+" VALUES "+strings.Join(rows, ", "))
		}
	}
}

// nested makes tables with columns in columns, one filled by values and one by a query.
func (l *lake) nested() {
	l.Helper()
	l.do(
		"CREATE TABLE ns.nested (id BIGINT, s STRUCT<a: INT, b: STRING, c: STRUCT<d: ARRAY<INT>>>, l ARRAY<DATE>, m MAP<STRING, DECIMAL(9,2)>)",
		`INSERT INTO ns.nested VALUES (1, '{"a":1,"b":"x","c":{"d":[1,null]}}', '["2024-02-29",null]', '{"k":1.50}'), (2, NULL, NULL, NULL), (3, '{"a":null}', '[]', '{}')`,
		"CREATE TABLE ns.nested_copy AS SELECT * FROM ns.nested",
	)
	l.tables["nested"] = [][]string{
		{"1", "{a:1,b:x,c:{d:[1,None]}}", "[2024-02-29,None]", "[[k,1.50]]"}, {"2", "NULL", "NULL", "NULL"}, {"3", "{a:None,b:None,c:None}", "[]", "[]"},
	}
	l.tables["nested_copy"] = l.tables["nested"]
}

// deleted makes tables of every version and mode, of which rows are deleted before and
// after the partitioning changes, as they are then and after maintenance.
func (l *lake) deleted() (names []string) {
	l.Helper()
	for _, version := range []string{"1", "2", "3"} {
		for _, mode := range []string{"copy-on-write", "merge-on-read"} {
			if version == "1" && mode == "merge-on-read" {
				continue
			}
			for kind, maintain := range map[string]func(string){"deletes": func(string) {}, "manifests": l.mergeManifests, "rewritten": l.rewrite} {
				name := kind + "_v" + version + "_" + mode[:1]
				l.deletedFrom(name, version, mode)
				maintain(name)
				names = append(names, name)
			}
		}
	}
	return names
}

func (l *lake) deletedFrom(name, version, mode string) {
	l.Helper()
	if version == "1" {
		// Such tables are not made in SQL, but written.
		field := func(id int, name string, t iceberg.Type) iceberg.NestedField {
			return iceberg.NestedField{ID: id, Name: name, Type: t}
		}
		spec := iceberg.NewPartitionSpec(iceberg.PartitionField{SourceIDs: []int{2}, FieldID: 1000, Name: "v", Transform: iceberg.IdentityTransform{}})
		_, err := l.catalog.Iceberg().CreateTable(ctx, table.Identifier{"ns", name},
			iceberg.NewSchema(0, field(1, "id", iceberg.PrimitiveTypes.Int64), field(2, "v", iceberg.PrimitiveTypes.String)),
			icebergcatalog.WithPartitionSpec(&spec), icebergcatalog.WithProperties(iceberg.Properties{"format-version": "1"}))
		l.must(err)
	} else {
		l.do(fmt.Sprintf("CREATE TABLE ns.%s (id BIGINT, v STRING) PARTITIONED BY (v) TBLPROPERTIES ('format-version' = '%s', 'write.delete.mode' = '%s')", name, version, mode))
	}
	l.do("INSERT INTO ns." + name + " VALUES (1, 'a'), (2, 'a'), (3, 'b'), (4, 'b'), (5, 'a')")
	if n := l.do("DELETE FROM ns." + name + " WHERE id IN (1, 4)"); n != 2 {
		l.Errorf("%s: a DELETE of 2 rows removed %d", name, n)
	}
	if version != "1" {
		// The partitioning changes: later deletes are about files of both specs.
		l.do("ALTER TABLE ns." + name + " REPLACE PARTITION FIELD v WITH BUCKET(2, id)")
	}
	l.do("INSERT INTO ns."+name+" VALUES (6, 'a')",
		"INSERT INTO ns."+name+" VALUES (7, 'c'), (8, 'c')",
		"DELETE FROM ns."+name+" WHERE id IN (2, 7)")
	l.tables[name] = [][]string{{"3", "b"}, {"5", "a"}, {"6", "a"}, {"8", "c"}}
}

func (l *lake) mergeManifests(name string) {
	l.Helper()
	if n := l.numbers("CALL system.rewrite_manifests('ns." + name + "')"); n[0] < 2 || n[1] < 1 || n[1] >= n[0] {
		l.Errorf("%s: %d manifests became %d", name, n[0], n[1])
	}
}

// rewrite writes every file anew, and leaves nothing of what was before.
func (l *lake) rewrite(name string) {
	l.Helper()
	ids := l.rowIDs(name)
	res := l.numbers("CALL system.rewrite_data_files(table => 'ns." + name + "', options => map('rewrite-all', 'true'))")
	expired := l.numbers("CALL system.expire_snapshots(table => 'ns." + name + "', older_than => '2199-01-01 00:00:00')")
	if left := l.numbers("SELECT COUNT(*) FROM ns.`" + name + "$snapshots`"); res[0] < 2 || expired[0] < 2 || left[0] != 1 || fmt.Sprint(l.rowIDs(name)) != fmt.Sprint(ids) {
		l.Errorf("%s: %v, then %v, and %v snapshots; row ids %v, before %v", name, res, expired, left, l.rowIDs(name), ids)
	}
}

// lifeRow is a row of a table that goes through everything.
type lifeRow struct {
	k       string
	n       int
	e       string // "NULL", or a double
	at      string
	s, tags string
}

// lives makes tables that every statement and every ALTER changes, of these modes.
func (l *lake) lives(modes string) {
	l.Helper()
	for name, properties := range map[string]string{
		"life2c": "'format-version' = '2'",
		"life2m": "'format-version' = '2', 'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read'",
		"life3c": "'format-version' = '3'",
		"life3m": "'format-version' = '3', 'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read'",
	} {
		if strings.ContainsAny(name[len("life2"):], modes) {
			l.life(name, properties)
		}
	}
}

func (l *lake) life(name, properties string) {
	l.Helper()
	full := "ns." + name
	rows := map[int]lifeRow{}
	l.do("CREATE TABLE " + full + " (id BIGINT NOT NULL, k STRING, n INT, at TIMESTAMP, s STRUCT<a: INT, b: STRING>, tags ARRAY<STRING>) " +
		"PARTITIONED BY (BUCKET(3, k), MONTH(at)) SORTED BY (n DESC NULLS LAST, id) TBLPROPERTIES (" + properties + ")")
	var values []string
	for id := range 60 {
		r := lifeRow{k: fmt.Sprintf("k%d", id%11), n: id * 37 % 100, e: "NULL", at: fmt.Sprintf("2024-%02d-%02d 10:00:00", 1+id%3, 1+id%28), s: fmt.Sprintf("{a:%d,b:x}", id), tags: "[t,None]"}
		rows[id] = r
		values = append(values, fmt.Sprintf(`(%d, '%s', %d, '%s', '{"a": %d, "b": "x"}', '["t", null]')`, id, r.k, r.n, r.at, id))
	}
	l.do("INSERT INTO " + full + " VALUES " + strings.Join(values, ", "))
	l.do("UPDATE " + full + " SET n = n + 1000, k = CONCAT(k, 'x') WHERE id % 7 = 0")
	l.do("DELETE FROM " + full + " WHERE id % 5 = 1")
	for id, r := range rows {
		if id%7 == 0 {
			r.n, r.k = r.n+1000, r.k+"x"
			rows[id] = r
		}
	}
	maps.DeleteFunc(rows, func(id int, _ lifeRow) bool { return id%5 == 1 })
	l.do(
		"ALTER TABLE "+full+" ADD COLUMN e DOUBLE AFTER n, RENAME COLUMN k TO key2, MODIFY COLUMN n BIGINT, ADD COLUMN s.c INT",
		"ALTER TABLE "+full+" REPLACE PARTITION FIELD MONTH(at) WITH DAY(at)",
		"ALTER TABLE "+full+" WRITE ORDERED BY id",
		"MERGE INTO "+full+" AS t USING (SELECT id + 2 AS id, key2 FROM "+full+" WHERE id % 2 = 0) AS u ON t.id = u.id "+
			"WHEN MATCHED AND t.id % 3 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET e = 0.25, n = t.n + 3000000000 "+
			"WHEN NOT MATCHED THEN INSERT (id, key2, n, e, at) VALUES (u.id, 'new', 1, 2.5, '2025-01-01 00:00:00') "+
			"WHEN NOT MATCHED BY SOURCE AND t.id = 3 THEN UPDATE SET tags = NULL",
	)
	source := map[int]bool{}
	for id := range rows {
		if id%2 == 0 {
			source[id+2] = true
		}
	}
	for id, r := range rows {
		r.s = r.s[:len(r.s)-1] + ",c:None}"
		switch {
		case source[id] && id%3 == 0:
			delete(rows, id)
			delete(source, id)
			continue
		case source[id]:
			r.e, r.n = "0.25", r.n+3000000000
			delete(source, id)
		case id == 3:
			r.tags = "NULL"
		}
		rows[id] = r
	}
	for id := range source {
		rows[id] = lifeRow{k: "new", n: 1, e: "2.5", at: "2025-01-01 00:00:00", s: "NULL", tags: "NULL"}
	}
	l.do("INSERT INTO "+full+" SELECT id + 100, key2, n, e, at, s, tags FROM "+full+" WHERE id < 20",
		"DELETE FROM "+full+" WHERE id IN (5, 105)")
	for id, r := range maps.Clone(rows) {
		if id < 20 {
			rows[id+100] = r
		}
	}
	delete(rows, 5)
	delete(rows, 105)
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		r := rows[id]
		l.tables[name] = append(l.tables[name], []string{fmt.Sprint(id), r.k, fmt.Sprint(r.n), r.e, r.at, r.s, r.tags})
	}
	l.do("CREATE TABLE "+full+"_as PARTITIONED BY (TRUNCATE(2, key2)) TBLPROPERTIES ("+properties+") AS SELECT * FROM "+full,
		"CREATE TABLE "+full+"_over LIKE "+full,
		"INSERT INTO "+full+"_over (id, at) VALUES (1, '2025-01-01 00:00:00')",
		"INSERT OVERWRITE "+full+"_over SELECT * FROM "+full,
		"CREATE TABLE "+full+"_replaced (x INT)", "INSERT INTO "+full+"_replaced VALUES (1)",
		"CREATE OR REPLACE TABLE "+full+"_replaced AS SELECT * FROM "+full)
	for _, kind := range []string{"_as", "_over", "_replaced"} {
		l.tables[name+kind] = l.tables[name]
	}
}

const (
	sizedRows   = 300_000
	sizedTarget = 1 << 20
)

// sized makes a table of several files, whose rows come in no order.
func (l *lake) sized() {
	l.Helper()
	l.do("CREATE TABLE ns.ten (d BIGINT)", "INSERT INTO ns.ten VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)",
		fmt.Sprintf("CREATE TABLE ns.sized (id BIGINT, n BIGINT, pad STRING) SORTED BY (n) TBLPROPERTIES ('write.target-file-size-bytes' = '%d')", sizedTarget),
		fmt.Sprintf("INSERT INTO ns.sized SELECT i, i * 7919 %% %d, MD5(CAST(i AS CHAR)) FROM (SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d + 100000 * g.d AS i "+
			"FROM ns.ten AS a, ns.ten AS b, ns.ten AS c, ns.ten AS e, ns.ten AS f, ns.ten AS g) AS x WHERE i < %d", 1_000_003, sizedRows))
}
