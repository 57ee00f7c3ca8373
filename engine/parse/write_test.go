package parse

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"sqe/fault"
)

// printValue writes a value as its members that are not zero, without syntax trees.
func printValue(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case Type:
		return x.String()
	case time.Time:
		return x.Format(time.RFC3339Nano)
	case string:
		return fmt.Sprintf("%q", x)
	}
	switch v.Kind() {
	case reflect.Interface:
		return v.Elem().Elem().Type().Name() + printValue(v.Elem())
	case reflect.Pointer:
		return printValue(v.Elem())
	case reflect.Slice:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = printValue(v.Index(i))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case reflect.Struct:
		var parts []string
		for i := range v.NumField() {
			f, field := v.Type().Field(i), v.Field(i)
			if field.IsZero() || strings.Contains(f.Type.String(), "sqlparser") {
				continue
			}
			if f.Anonymous {
				if s := printValue(field); s != "{}" {
					parts = append(parts, s[1:len(s)-1])
				}
				continue
			}
			parts = append(parts, f.Name+": "+printValue(field))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return fmt.Sprint(v.Interface())
}

// TestWriteStatements: statements and what they mean, or why they are refused.
func TestWriteStatements(t *testing.T) {
	datadriven.Walk(t, "testdata/write", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var b strings.Builder
			for rest := d.Input; rest != ""; {
				stmt, next, err := Parse(rest)
				if err != nil {
					if strings.Contains(err.Error(), "cannot be parsed") {
						t.Errorf("%s: %v has no place", d.Pos, err)
					}
					fmt.Fprintf(&b, "error: %v\n", err)
					break
				}
				v := reflect.ValueOf(stmt)
				fmt.Fprintf(&b, "%s%s\n", v.Elem().Type().Name(), strings.ReplaceAll(printValue(v), ", Warnings: ", ",\nWarnings: "))
				rest = next
			}
			return b.String()
		})
	})
}

// writeStatements are the statements of the golden files.
func writeStatements(t testing.TB) (out []string) {
	t.Helper()
	files, err := filepath.Glob("testdata/write/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(string(text), "\nparse\n")[1:] {
			input, _, ok := strings.Cut(part, "\n----")
			if !ok {
				t.Fatalf("%s: no ---- after %s", f, part)
			}
			out = append(out, input)
		}
	}
	if len(out) < 100 {
		t.Fatalf("%d statements", len(out))
	}
	return out
}

// misfit says what is wrong with the queries and expressions inside a statement,
// "" when nothing is: each must stand for its piece of the text by itself, and
// the placeholders must be those of the statement, each once and in order.
func misfit(text string, stmt Statement) string {
	next, why := 0, ""
	own := func(param, params int, folded string) {
		if params == 0 {
			return
		}
		if param != next {
			why = fmt.Sprintf("%s begins with placeholder %d, expected %d", folded, param, next)
		}
		next += params
	}
	again := func(folded, prefix, suffix string, ast sqlparser.SQLNode, params int) {
		tokens, _, err := cut(folded)
		if err != nil {
			why = fmt.Sprintf("%s: %v", folded, err)
			return
		}
		if n, _ := checkLiterals(tokens); n != params {
			why = fmt.Sprintf("%s has %d placeholders, expected %d", folded, n, params)
		}
		parsed, err := sqlparser.Parse(prefix + folded + suffix)
		if err != nil {
			why = fmt.Sprintf("%s: %v", folded, err)
			return
		}
		if got, want := sqlparser.String(parsed), prefix+sqlparser.String(ast)+suffix; !strings.EqualFold(got, want) {
			why = fmt.Sprintf("%s became %s", want, got)
		}
	}
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		if why != "" || strings.Contains(v.Type().String(), "sqlparser") {
			return
		}
		switch x := v.Interface().(type) {
		case Expr:
			if x.AST == nil {
				return // DEFAULT
			}
			if x.Start < 0 || x.Start >= x.End || x.End > len(text) {
				why = fmt.Sprintf("%s is at %d..%d", x.Text, x.Start, x.End)
				return
			}
			again(x.Text, "select (", ")", x.AST, x.Params)
			own(x.Param, x.Params, x.Text)
			return
		case Source:
			again(x.Text, "select 1 from ", "", x.AST, x.Params)
			own(x.Param, x.Params, x.Text)
			return
		case SQL:
			if x.AST != nil {
				again(x.Text, "", "", x.AST, x.Params)
			}
			own(x.Param, x.Params, x.Text)
			return
		}
		switch v.Kind() {
		case reflect.Interface, reflect.Pointer:
			if !v.IsNil() {
				walk(v.Elem())
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.Struct:
			if v.Type() == reflect.TypeFor[time.Time]() {
				return
			}
			for i := range v.NumField() {
				walk(v.Field(i))
			}
		}
	}
	walk(reflect.ValueOf(stmt))
	if why == "" && next != Params(stmt) {
		why = fmt.Sprintf("the parts have %d placeholders, the statement %d", next, Params(stmt))
	}
	return why
}

// TestParts: what a statement holds can be bound by itself.
func TestParts(t *testing.T) {
	parts := 0
	for _, text := range writeStatements(t) {
		stmt, _, err := Parse(text)
		if err != nil {
			continue
		}
		if why := misfit(text, stmt); why != "" {
			t.Errorf("%s: %s", text, why)
		}
		parts++
	}
	if parts < 100 {
		t.Errorf("%d statements", parts)
	}
}

// TestWritePrefixes: no beginning of a statement makes the parser panic, which it
// would tell by an error without a place.
func TestWritePrefixes(t *testing.T) {
	for _, text := range writeStatements(t) {
		for i := range text {
			for _, tail := range []string{"", ",", " (", ")", "'", " x"} {
				cutOff := text[:i] + tail
				stmt, _, err := Parse(cutOff)
				if err != nil && strings.Contains(err.Error(), "cannot be parsed") {
					t.Errorf("%s: %v", cutOff, err)
				}
				if err == nil && tail == "" {
					if why := misfit(cutOff, stmt); why != "" {
						t.Errorf("%s: %s", cutOff, why)
					}
				}
			}
		}
	}
}

// TestWriteSecrets: no literal comes through a fingerprint or an error.
func TestWriteSecrets(t *testing.T) {
	literal := regexp.MustCompile(`'[^']*'`)
	digits := regexp.MustCompile(`\b[1-9][0-9]*\b`)
	hidden, refusedBy := 0, 0
	for _, text := range writeStatements(t) {
		tokens, _, err := cut(Fingerprint(text))
		if err != nil {
			continue // the text has no tokens
		}
		for _, tok := range tokens {
			if tok.kind == str || tok.kind == number {
				t.Errorf("the fingerprint of %s is %s", text, Fingerprint(text))
			}
		}
		for _, secret := range []string{literal.ReplaceAllString(text, "'s3cr3t'"), digits.ReplaceAllString(text, "987654321")} {
			if quotedNames(secret) != nil {
				continue // of a statement about tags, whose names are shown (TestFingerprintNames)
			}
			if got := Fingerprint(secret); strings.Contains(got, "s3cr3t") || strings.Contains(got, "987654321") {
				t.Errorf("the fingerprint of %s is %s", secret, got)
			}
			hidden++
			for _, broken := range []string{secret, secret + " x", secret + ")", secret[:len(secret)-1]} {
				if _, _, err := Parse(broken); err != nil {
					refusedBy++
					if strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), "987654321") {
						t.Errorf("%s: %v", broken, err)
					}
				}
			}
		}
	}
	if hidden < 200 || refusedBy < 200 {
		t.Errorf("%d and %d statements", hidden, refusedBy)
	}
}

// TestWriteLimits: what would take too much work or memory is refused, what lies
// just below is not.
func TestWriteLimits(t *testing.T) {
	repeat := func(n int, s string) string { return strings.TrimSuffix(strings.Repeat(s+", ", n), ", ") }
	columns := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, ", c%d int", i)
		}
		return b.String()[2:]
	}
	for _, c := range []struct {
		text string
		ok   bool
	}{
		{"INSERT INTO t VALUES " + repeat(MaxLiterals/2, "(1, 'a')"), true},
		{"INSERT INTO t VALUES " + repeat(MaxLiterals/2+1, "(1, 'a')"), false},
		{"INSERT INTO t VALUES " + repeat(MaxLiterals, "(NULL)"), true},
		{"INSERT INTO t VALUES " + repeat(MaxLiterals+1, "(NULL)"), false},
		{"INSERT INTO t VALUES " + repeat(MaxLiterals/2+1, "(DEFAULT, a)"), false},
		{"MERGE INTO t USING s ON a = b WHEN NOT MATCHED THEN INSERT VALUES (" + repeat(MaxNames, "1") + ")", true},
		{"MERGE INTO t USING s ON a = b WHEN NOT MATCHED THEN INSERT VALUES (" + repeat(MaxNames+1, "1") + ")", false},
		{"CREATE TABLE t (" + columns(MaxFields) + ")", true},
		{"CREATE TABLE t (" + columns(MaxFields+1) + ")", false},
		{"CREATE TABLE t (a STRUCT<" + columns(MaxFields-1) + ">)", true},
		{"CREATE TABLE t (a STRUCT<" + columns(MaxFields) + ">)", false},
		{"CREATE TABLE t (a " + strings.Repeat("ARRAY<", MaxTypeNesting-1) + "INT" + strings.Repeat(">", MaxTypeNesting-1) + ")", true},
		{"CREATE TABLE t (a " + strings.Repeat("ARRAY<", MaxTypeNesting) + "INT" + strings.Repeat(">", MaxTypeNesting) + ")", false},
		{"ALTER TABLE t ADD COLUMN a" + strings.Repeat(".a", MaxTypeNesting-1) + " INT", true},
		{"ALTER TABLE t ADD COLUMN a" + strings.Repeat(".a", MaxTypeNesting) + " INT", false},
		{"INSERT INTO t SELECT 1 FROM " + repeat(MaxJoined, "a"), true},
		{"INSERT INTO t SELECT 1 FROM " + repeat(MaxJoined+1, "a"), false},
		{"INSERT INTO t SELECT 1" + strings.Repeat(" UNION ALL SELECT 1 FROM a", MaxTables-1), true},
		{"INSERT INTO t SELECT 1" + strings.Repeat(" UNION ALL SELECT 1 FROM a", MaxTables), false},
		{"UPDATE t SET a = 1 WHERE " + strings.TrimSuffix(strings.Repeat("EXISTS (SELECT 1 FROM a) AND ", MaxTables-1), " AND "), true},
		{"UPDATE t SET a = 1 WHERE " + strings.TrimSuffix(strings.Repeat("EXISTS (SELECT 1 FROM a) AND ", MaxTables), " AND "), false},
		{"EXPLAIN DELETE FROM t WHERE " + strings.TrimSuffix(strings.Repeat("EXISTS (SELECT 1 FROM a) AND ", MaxTables), " AND "), false},
		{"MERGE INTO t USING s ON a = b" + strings.Repeat(" WHEN MATCHED AND EXISTS (SELECT 1 FROM a) THEN DELETE", MaxTables-2), true},
		{"MERGE INTO t USING s ON a = b" + strings.Repeat(" WHEN MATCHED AND EXISTS (SELECT 1 FROM a) THEN DELETE", MaxTables-1), false},
		{"CREATE TABLE t AS SELECT 1 FROM (" + strings.Repeat("SELECT * FROM (", 20) + "SELECT 1" + strings.Repeat(") x", 20) + ") x", true},
		{"CREATE TABLE t AS SELECT " + strings.Repeat("(", 600) + "1" + strings.Repeat(")", 600), false},
		{"DROP TABLE " + repeat(MaxNames+1, "t"), false},
	} {
		_, _, err := Parse(c.text)
		if c.ok && err != nil || !c.ok && !fault.Is(err, fault.Limit) {
			t.Errorf("%.60s (%d bytes): %v", c.text, len(c.text), err)
		}
	}
}

// TestShowCreateView: how a view was defined is shown by the MySQL grammar.
func TestShowCreateView(t *testing.T) {
	stmt, _, err := Parse("SHOW CREATE VIEW a.b.c")
	if s, ok := stmt.(*SQL); err != nil || !ok || s.Kind != Show {
		t.Errorf("%#v, %v", stmt, err)
	}
}

// FuzzWriteParts: whatever stands in the place of an expression or a query, the
// statement has parts that stand for themselves, or it is an error.
func FuzzWriteParts(f *testing.F) {
	for _, s := range []string{
		"1", "?", "a + b.c.d.e", "(select x from a.b.c where y = ?)", "case when a then b else ? end", "a) , (b", "a from t", "a as b", "'x' 'y'", "x'41'", "default",
		"1 when matched then delete", "a, b = 2", "t.x = 1 or 1 = 1", "1 -- ", "1 /*! + 1 */", "a.`b``c`", "select 1", "with q as (select 1) select * from q", "values row(1)",
		"table a.b.c", "@x", "interval 1 day + a", "a in (1, 2) and b between 1 and 2", "cast(a as decimal(10,2))", "exists (select 1)", "a->'$.b'", "5--1", "not a", "s as x", "(select 1) s",
		"a.b.c for version as of 5 s", "replace(a, 'x', 'y')", "date '2020-01-01'",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, part string) {
		for _, form := range []string{
			"UPDATE a.t SET x = %s, y = ? WHERE %s", "DELETE FROM t AS u WHERE %s", "INSERT INTO t VALUES (?, %s), (%s, default)", "INSERT INTO t %s",
			"INSERT INTO t PARTITION (d = %s) SELECT ?", "INSERT INTO t SET a = %s, b = ?", "CREATE TABLE t AS %s", "CREATE VIEW v AS %s",
			"MERGE INTO t USING %s ON ? = %s WHEN MATCHED AND %s THEN UPDATE SET a = %s WHEN NOT MATCHED THEN INSERT (a, b) VALUES (%s, ?)",
			"EXPLAIN UPDATE t SET x = ? WHERE %s", "CREATE TABLE t (a INT DEFAULT %s)",
		} {
			text := strings.ReplaceAll(form, "%s", part)
			stmt, rest, err := Parse(text)
			if err != nil {
				continue
			}
			if why := misfit(text[:len(text)-len(rest)], stmt); why != "" {
				t.Fatalf("%q: %s", text, why)
			}
		}
	})
}
