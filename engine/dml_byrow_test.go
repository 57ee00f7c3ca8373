package engine_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"sqe/fault"
)

// byRow are expressions that the catalogue of functions has no place for, over the
// columns of oddities.
var byRow = []string{
	"bin(n)", "bin(n + 1)", "conv(s, 16, 10)", "conv(n, 10, -2)", "hex(n)", "elt(n % 3 + 1, s, 'zwei', NULL)", "format(d, 2)", "format(x, 3)",
	"to_base64(s)", "from_base64(to_base64(s))", "char(65 + n % 20)", "inet_aton('10.0.0.1') + n", "inet_ntoa(abs(n))", "is_ipv4(s)", "is_uuid(s)",
	"bit_count(n)", "crc32(s)", "n & 6", "n | 1", "n ^ 5", "n << 2", "n >> 1", "s + 0", "s * 2", "n = s", "s > n", "x + s", "at + 0",
	"s LIKE concat('%', left(s, 1))", "s LIKE p", "s LIKE p ESCAPE '|'", "s NOT LIKE p", "regexp_like(s, p)", "s REGEXP concat('^', left(s, 1))",
	"s REGEXP '(?i)A'", "regexp_replace(s, '[0-9]+', '<$0>')", "regexp_instr(s, '[0-9]')", "regexp_substr(s, '[a-z]+', 1, 2)", "regexp_like(s, 'A', 'i')",
	"date_format(at, p)", "date_format(at, if(n > 0, '%Y', '%m'))", "str_to_date(concat('2026-01-0', n % 9 + 1), left('%Y-%m-%d', 8))", "round(x, n % 3)", "round(d, n % 3)",
	"week(at, n % 8)", "time(at)", "time_format(time(at), '%H:%i')", "timediff('23:59:59', time(at))", "convert_tz(at, '+00:00', '+02:00')",
	"get_format(DATE, 'EUR')", "charset(s)", "collation(s)",
	"json_set(j, '$.a', n)", "json_insert(j, '$.b', s)", "json_replace(j, '$.a', d)", "json_remove(j, '$.a')", "json_array_append(j, '$.list', n)",
	"json_merge_patch(j, '{\"z\": 1}')", "json_depth(j)", "json_pretty(j)", "json_quote(s)", "json_search(j, 'one', 'x')", "json_overlaps(j, '{\"a\": 1}')",
	"json_extract(j, concat('$.', 'a'))", "json_valid(s)", "json_unquote(json_set(j, '$.a', s))",
	"concat(x, '')", "length(x)", "upper(bin(n))", "if(bin(n) = '101', s, conv(n, 10, 16))", "coalesce(elt(n, s), 'none')", "CASE WHEN bin(n) LIKE '1%' THEN x ELSE n END",
	"(SELECT max(bin(o.n)) FROM oddities o WHERE o.id <= oddities.id)", "bin(n) IN (SELECT bin(n * 1) FROM oddities WHERE id < 4)",
	"s COLLATE utf8mb4_general_ci = 'ABC'", "@five + s", "date_add(at, INTERVAL s DAY)", "cast(s AS SIGNED) + bin(n)", "unhex(hex(n))", "sha2(s, 200 + n * 0 + 56)",
	"greatest(s, n)", "u = s", "bin_to_uuid(uuid_to_bin(u))", "cast(b AS CHAR)", "concat(b, s)", "field(n, s, 5)", "replace(s, n, '-')", "lower(elt(1, s))",
}

// oddities is a table of values at the edges.
func oddities(t *testing.T) *ddlFixture {
	t.Helper()
	f := openDDL(t)
	f.do(f.sue, "CREATE TABLE oddities (id BIGINT, n BIGINT, i INT, s STRING, p STRING, x DOUBLE, d DECIMAL(20,5), at TIMESTAMP, day DATE, j STRUCT<a: INT, list: ARRAY<STRING>>, u UUID, b BLOB)")
	const u = "'123e4567-e89b-12d3-a456-426614174000'"
	for i, row := range []string{
		"5, 5, 'abc', 'a%', 1.5, 12345.678, '2026-01-05 12:34:56.123456', '2026-02-28', '{\"a\": 1, \"list\": [\"x\", \"y\"]}', " + u + ", 'raw'",
		"0, -1, '12', '%2', 0, 0, '2024-02-29 00:00:00', '2024-02-29', '{\"a\": null, \"list\": []}', " + u + ", ''",
		"-7, 2147483647, '', '', -1e300, -0.00001, '1970-01-01 00:00:00', '1970-01-01', NULL, NULL, NULL",
		"NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
		"9, -2147483648, 'ff', '__', 1e-10, 99999999999999.99999, '2026-12-31 23:59:59', '2026-12-31', '{\"a\": -5, \"list\": [\"ä\", null]}', " + u + ", 'ä'",
		"3, 7, 'Äpfel 10 x 20', 'Ä|%%', 0.1, 1, '2025-06-15 06:07:08', '2025-06-15', '{\"a\": 7, \"list\": null}', " + u + ", 'b'",
		"1, 1, '7 apples', '%|_%', 123456789.125, 0.5, '2000-01-01 01:01:01', '2000-01-01', '{\"a\": 0, \"list\": [\"\"]}', " + u + ", '1'",
	} {
		f.do(f.sue, fmt.Sprintf("INSERT INTO oddities VALUES (%d, %s)", i+1, row))
	}
	return f
}

// fills writes the rows of a query into a table of its columns, by row where it must.
func fills(t *testing.T, f *ddlFixture, text string) error {
	t.Helper()
	if _, err := query(f.sue, "CREATE OR REPLACE TABLE made AS "+text+" WITH NO DATA"); err != nil {
		return err
	}
	if out, err := query(f.sue, "EXPLAIN INSERT INTO made "+text); err == nil && strings.Contains(out, "row executor [") {
		t.Errorf("the row executor runs more than expressions:\n%s", out)
	}
	_, err := query(f.sue, "INSERT INTO made "+text)
	return err
}

// TestByRow: what a statement that changes rows computes by row is what a query shows.
// Where one fails, both do.
func TestByRow(t *testing.T) {
	f := oddities(t)
	s := f.sue
	f.do(s, "SET @five = 5")
	for _, e := range byRow {
		t.Run(strings.ReplaceAll(e, "/", "-"), func(t *testing.T) {
			want, failed := query(s, "SELECT id, "+e+" AS e FROM oddities ORDER BY id")
			err := fills(t, f, "SELECT id, "+e+" AS e FROM oddities")
			if (failed == nil) != (err == nil) {
				t.Fatalf("a query: %v, a change: %v", failed, err)
			}
			if err != nil {
				t.Logf("both fail: %v / %v", failed, err)
				return
			}
			must(t, s, "SELECT id, e FROM made ORDER BY id", want)
		})
	}
}

// TestChangesByRow: conditions and values of every statement that changes rows.
func TestChangesByRow(t *testing.T) {
	for _, mode := range []string{"copy-on-write", "merge-on-read"} {
		t.Run(mode, func(t *testing.T) {
			f := openDDL(t)
			s := f.sue
			const properties = " TBLPROPERTIES ('write.delete.mode' = '%[1]s', 'write.update.mode' = '%[1]s', 'write.merge.mode' = '%[1]s')"
			f.do(s, fmt.Sprintf("CREATE TABLE t (id BIGINT, s STRING, p STRING, n INT, j STRUCT<a: INT>)"+properties, mode))
			f.do(s, "INSERT INTO t VALUES (1, 'one', 'o%', 10, '{\"a\": 1}'), (2, 'two', 'o%', 20, '{\"a\": 2}'), (3, 'three', '%e', 30, NULL), (4, NULL, NULL, NULL, NULL)")
			changes := func(text string, affected uint64, want string) {
				t.Helper()
				res, _, err := s.Query(t.Context(), text)
				if err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				if res.Affected != affected {
					t.Errorf("%s: %d rows, want %d", text, res.Affected, affected)
				}
				must(t, s, "SELECT id, s, n, j->>'$.a' FROM t ORDER BY id", want)
			}
			changes("UPDATE t SET s = bin(n) WHERE s LIKE p AND id < 3", 1, "1|1010|10|1\n2|two|20|2\n3|three|30|NULL\n4|NULL|NULL|NULL")
			// A later value sees an earlier one, and what is assigned may be computed either way.
			changes("UPDATE t SET n = conv('ff', 16, 10) + id, s = conv(n, 10, 16), p = concat(s, elt(1, '!'))", 4, "1|100|256|1\n2|101|257|2\n3|102|258|NULL\n4|103|259|NULL")
			must(t, s, "SELECT p FROM t ORDER BY id", "100!\n101!\n102!\n103!")
			changes("UPDATE t SET j = json_set(j, '$.a', n) WHERE bin(id) = '10'", 1, "1|100|256|1\n2|101|257|257\n3|102|258|NULL\n4|103|259|NULL")
			changes("DELETE FROM t WHERE s IN (SELECT conv(conv(o.s, 16, 10), 10, 16) FROM t o WHERE bin(o.id) LIKE '1_' AND o.id & 1)", 1, "1|100|256|1\n2|101|257|257\n4|103|259|NULL")
			changes("DELETE FROM t WHERE elt(id, 'x', NULL, 'x', 'x') IS NULL", 1, "1|100|256|1\n4|103|259|NULL")
			changes("INSERT INTO t (id, s) VALUES (bin(2), elt(2, 'a', 'b')), (11, DEFAULT)", 2, "1|100|256|1\n4|103|259|NULL\n10|b|NULL|NULL\n11|NULL|NULL|NULL")
			f.do(s, "CREATE TABLE src AS SELECT '1' AS k, 5 AS v UNION ALL SELECT '100', 6 UNION ALL SELECT '111', 7")
			changes("MERGE INTO t USING src ON t.id = conv(src.k, 2, 10) WHEN MATCHED AND bin(src.v) = '110' THEN DELETE "+
				"WHEN MATCHED THEN UPDATE SET s = hex(src.v + t.n) WHEN NOT MATCHED THEN INSERT (id, s) VALUES (conv(src.k, 2, 10), bin(src.v))",
				3, "1|105|256|1\n7|111|NULL|NULL\n10|b|NULL|NULL\n11|NULL|NULL|NULL")
			changes("MERGE INTO t USING src ON t.id = CAST(conv(src.k, 2, 10) AS SIGNED) WHEN NOT MATCHED THEN INSERT (id, s) VALUES (conv(src.k, 2, 10), 'new') "+
				"WHEN NOT MATCHED BY SOURCE AND elt(t.id - 9, 'x', 'y') = 'x' THEN DELETE WHEN NOT MATCHED BY SOURCE THEN UPDATE SET s = lower(bin(t.id))",
				3, "1|105|256|1\n4|new|NULL|NULL\n7|111|NULL|NULL\n11|1011|NULL|NULL")
			f.do(s, "UPDATE t SET s = uuid()")
			must(t, s, "SELECT COUNT(DISTINCT s), MIN(length(s)) FROM t", "4|36")
			refused(t, s, "UPDATE t SET s = uuid(), p = s", fault.Unsupported)
			// An error changes nothing, and names no value.
			before, _ := query(s, "SELECT * FROM t ORDER BY id")
			for _, text := range []string{"UPDATE t SET s = 'x' WHERE regexp_like(s, concat('(', s))", "UPDATE t SET s = repeat(elt(1, 'xxxx'), 100000000)", "DELETE FROM t WHERE regexp_substr(s, '') = 'x'"} {
				if _, err := query(s, text); err == nil || strings.Contains(err.Error(), "1011") || fault.Is(err, fault.Internal) {
					t.Errorf("%s: %v (%s)", text, err, fault.KindOf(err))
				}
			}
			must(t, s, "SELECT * FROM t ORDER BY id", before)
			// What is no expression of a row is refused by name.
			for _, text := range []string{
				"DELETE FROM t WHERE id IN (SELECT x.v FROM JSON_TABLE('[1]', '$[*]' COLUMNS (v INT PATH '$')) x)",
				"UPDATE t SET s = s COLLATE utf8mb4_general_ci",
			} {
				refused(t, s, text, fault.Unsupported)
			}
			must(t, s, "SELECT * FROM t ORDER BY id", before)
			out, err := query(s, "EXPLAIN UPDATE t SET s = conv(s, 16, 10) WHERE bin(id) = '1'")
			if err != nil || !strings.Contains(out, "row executor: the function BIN\nrow executor: the function CONV") {
				t.Errorf("EXPLAIN: %s, %v", out, err)
			}
		})
	}
}

// TestRowsOfPoliciesByRow: what is computed by row is computed from what the user sees,
// of the rows that the user sees, and written as every other value.
func TestRowsOfPoliciesByRow(t *testing.T) {
	f, eve := people(t)
	f.do(f.sue, "INSERT INTO people VALUES (4, '(', 'US', 40)")
	const all = "1|Anna|EU|10\n2|Bert|EU|20\n3|Cleo|US|30\n4|(|US|40"
	must(t, f.sue, whole, all)
	for _, text := range []string{
		"UPDATE people SET name = elt(1, name)",
		"UPDATE people SET name = concat(bin(n), elt(1, name)) WHERE id = 1",
		"MERGE INTO people p USING (SELECT id, elt(1, name) AS label FROM people) s ON p.id = s.id WHEN MATCHED THEN UPDATE SET name = s.label",
		"INSERT INTO people (id, name, region) SELECT 9, elt(1, name), 'EU' FROM people",
		"UPDATE people SET region = elt(1, 'US') WHERE id = 1",
		"INSERT INTO people SELECT id + 10, bin(id), elt(2, 'EU', 'US'), n FROM people",
	} {
		refused(t, eve, text, fault.Denied)
		must(t, f.sue, whole, all)
	}
	// A hidden row makes no error: for who sees it, it does.
	refused(t, f.sue, "UPDATE people SET n = n + 1 WHERE regexp_like('x', name)", fault.BadStatement)
	f.do(eve, "UPDATE people SET n = n + 1 WHERE regexp_like('A', concat('^', left(name, 1)))")
	must(t, f.sue, whole, "1|Anna|EU|11\n2|Bert|EU|20\n3|Cleo|US|30\n4|(|US|40")
	f.do(eve, "UPDATE people SET n = crc32(name) % 7 WHERE elt(1, name) LIKE concat('B', '***')")
	want, err := query(f.sue, "SELECT crc32('B***') % 7")
	if err != nil {
		t.Fatal(err)
	}
	must(t, f.sue, "SELECT n FROM people WHERE id = 2", want)
	f.do(eve, "DELETE FROM people WHERE elt(1, name) = 'Anna'") // she sees no such name
	f.do(eve, "INSERT INTO people SELECT id + 10, bin(id), elt(1, 'EU', 'US'), n FROM people WHERE id = 1")
	must(t, f.sue, "SELECT id, name FROM people ORDER BY id", "1|Anna\n2|Bert\n3|Cleo\n4|(\n11|1")
	for _, text := range []string{"EXPLAIN UPDATE people SET n = 1 WHERE elt(1, name) = 'B***'", "EXPLAIN DELETE FROM people WHERE conv(n, 10, 7) = '4711'"} {
		out, err := query(eve, text)
		if err != nil || !strings.Contains(out, "row executor: the function") || strings.Contains(out, "'B***'") || strings.Contains(out, "EU") || strings.Contains(out, "4711") {
			t.Errorf("%s: %s, %v", text, out, err)
		}
	}
}

// randomExpr makes an expression of a kind ("s" text, "n" number, "c" condition) of
// functions that compile and functions that do not. The row executor's LOCATE counts
// bytes, its FIELD ignores case, and its types of numbers beside unsigned ones are
// wrong: what is above one of its functions compiles in a change and is right there.
func randomExpr(r *rand.Rand, kind string, depth int) string {
	leaves := map[string][]string{
		"s": {"s", "p", "'abc'", "'a_%'", "nullif('x', 'x')", "''", "'12'", "elt(n, s, p)", "conv(i, 10, 16)", "bin(n)"},
		"n": {"n", "i", "3", "nullif(1, 1)", "0", "-2", "id", "cast(crc32(s) AS SIGNED)", "bit_count(i)", "id & 5"},
		"c": {"n > 1", "s = 'abc'", "TRUE", "s IS NULL", "s LIKE p", "bin(n) = '101'"},
	}
	if depth == 0 {
		return leaves[kind][r.IntN(len(leaves[kind]))]
	}
	inner := map[string][]string{
		"s": {
			"concat(%s, %s)", "upper(%s)", "elt(2, 'x', %s)", "if(%c, %s, %s)", "coalesce(%s, %s)", "CASE WHEN %c THEN %s ELSE %s END", "left(%s, 2)", "to_base64(%s)",
			"json_quote(%s)", "replace(%s, 'a', %s)", "conv(%n, 10, 8)", "nullif(%s, %s)", "lower(bin(%n))", "quote(%s)", "regexp_replace(%s, 'b', 'c')", "cast(%n AS CHAR)",
		},
		"n": {"%n + %n", "length(%s)", "cast(crc32(%s) AS SIGNED)", "if(%c, %n, %n)", "bit_count(length(%s))", "abs(%n)", "coalesce(%n, %n)", "regexp_instr(%s, '[0-9]')", "%n DIV 3"},
		"c": {"%s = %s", "%n < %n", "%s LIKE concat(left(%s, 1), '%%')", "%c AND %c", "%c OR %c", "NOT (%c)", "%s IN (%s, %s)", "%n BETWEEN %n AND %n", "%s IS NULL", "%s <=> %s", "%s > %s", "regexp_like(%s, '^[a-c]')", "is_uuid(%s)"},
	}[kind]
	form := inner[r.IntN(len(inner))]
	var b strings.Builder
	for i := 0; i < len(form); i++ {
		switch {
		case form[i] != '%':
			b.WriteByte(form[i])
		case form[i+1] == '%':
			b.WriteByte('%')
			i++
		default:
			i++
			b.WriteString("(" + randomExpr(r, string(form[i]), depth-1) + ")")
		}
	}
	return b.String()
}

// TestByRowRandom: the two ways agree on expressions that mix what compiles with what
// does not.
func TestByRowRandom(t *testing.T) {
	f := oddities(t)
	s := f.sue
	r := rand.New(rand.NewPCG(5, 17))
	agreed := 0
	for range 60 {
		var list, names []string
		for i := range 4 {
			list = append(list, fmt.Sprintf("%s AS e%d", randomExpr(r, []string{"s", "n", "c"}[r.IntN(3)], 1+r.IntN(3)), i))
			names = append(names, fmt.Sprintf("e%d", i))
		}
		list = append(list, "bin(id) AS e4") // so that the query takes the row executor
		text := strings.Join(list, ", ")
		want, failed := query(s, "SELECT id, "+text+" FROM oddities ORDER BY id")
		err := fills(t, f, "SELECT id, "+text+" FROM oddities")
		if failed != nil || err != nil {
			if (failed == nil) != (err == nil) || fault.Is(err, fault.Internal) && !fault.Is(failed, fault.Internal) {
				t.Errorf("%s: a query: %v, a change: %v (%s)", text, failed, err, fault.KindOf(err))
			}
			continue
		}
		agreed++
		got, err := query(s, "SELECT id, "+strings.Join(names, ", ")+", e4 FROM made ORDER BY id")
		if err != nil || got != want {
			t.Errorf("%s:\n%s\nwant\n%s\n%v", text, got, want, err)
		}
	}
	if agreed < 30 {
		t.Errorf("%d of 60 lists of expressions were compared", agreed)
	}
}
