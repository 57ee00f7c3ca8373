package parse

import (
	"strings"
	"testing"

	"github.com/dolthub/vitess/go/vt/sqlparser"

	"sqe/fault"
)

// Names of every depth must reach the MySQL grammar as database.table.
func TestFold(t *testing.T) {
	for _, c := range []struct{ in, out string }{
		{"select * from a.b.c", "select * from `a.b`.c"},
		{"select * from a.b", "select * from a.b"},
		{"select 1 from t where a = any (select b from d.e.f) and c <> all (select 1)", "select 1 from t where a IN (select b from `d.e`.f) and c NOT IN (select 1)"},
		{"select * from a . b . c x", "select * from `a.b`.c x"},
		{"select * from a.b.c.d x, e.f.g y where a.b.c.d.col = y.z and s='a.b.c'", "select * from `a.b.c`.d x, `e.f`.g y where `a.b.c`.d.col = y.z and s='a.b.c'"},
		{"select a.b.c.col from a.b.c", "select `a.b`.c.col from `a.b`.c"},
		{"select a.b.col from a.b", "select a.b.col from a.b"},
		{"select a.b.c.* from a.b.c", "select `a.b`.c.* from `a.b`.c"},
		{"show create table a.b.c", "show create table `a.b`.c"},
		{"describe a.b.c", "describe `a.b`.c"},
		{"select truncate(a.b.c.x, 2) from a.b.c", "select truncate(`a.b`.c.x, 2) from `a.b`.c"},
		{"select * from a.b.c join d.e.f on a.b.c.x = d.e.f.y", "select * from `a.b`.c join `d.e`.f on `a.b`.c.x = `d.e`.f.y"},
		{"select * from a.b.c join d.e.f on a.b.c.x = d.e.f.y, g.h.i", "select * from `a.b`.c join `d.e`.f on `a.b`.c.x = `d.e`.f.y, `g.h`.i"},
		{"with q as (select * from a.b.c) select * from q", "with q as (select * from `a.b`.c) select * from q"},
		{"select (select max(x) from a.b.c) from d.e.f as t", "select (select max(x) from `a.b`.c) from `d.e`.f as t"},
		{"select * from a.b.c as of '2024-01-01'", "select * from `a.b`.c as of '2024-01-01'"},
		{"select * from a.b.c for timestamp as of timestamp '2024-01-01 00:00:00'", "select * from `a.b`.c FOR SYSTEM_TIME AS OF '2024-01-01 00:00:00'"},
		{"select * from c for version as of 42 x", "select * from c FOR VERSION AS OF 'version:42' x"},
		{"select * from c for version as of 'main'", "select * from c FOR VERSION AS OF 'version:main'"},
		{"select * from `a`.`b.x`.`c`", "select * from `a.b\\.x`.`c`"},
		{"select * from `a.b`.c", "select * from `a.b`.c"},
		{"show columns from a.b.c", "show columns from `a.b`.c"},
		{"show columns from c from a.b", "show columns from c from `a.b`"},
		{"show tables from a.b", "show tables from `a.b`"},
		{"show full tables in a.b like 'x.y.z'", "show full tables in `a.b` like 'x.y.z'"},
		{"show create database a.b", "show create database `a.b`"},
		{"select extract(year from a.b.c.d) from t", "select extract(year from `a.b`.c.d) from t"},
		{"select * from (a.b.c, d.e.f)", "select * from (`a.b`.c, `d.e`.f)"},
		{"select * from t$snapshots", "select * from `t$snapshots`"},
		{"select * from größe.t", "select * from `größe`.t"},
		{"select 5--1, 6 /* a.b.c */ -- x.y.z\n from t", "select 5- -1, 6   from t"},
		{"select /*!40101 a.b.c.d */ from t", "select  `a.b`.c.d  from t"},
		{"select 1 /*!90101 nonsense ( */ from t", "select 1   from t"},
		{"select * from t order by a desc, b.c.d.e", "select * from t order by a desc, `b.c`.d.e"},
		{"select count(*), f(a.b.c.d.e) from x.y.z", "select count(*), f(`a.b.c`.d.e) from `x.y`.z"},
		{"select * from a.b.c where x in (select y from d.e.f, g.h.i)", "select * from `a.b`.c where x in (select y from `d.e`.f, `g.h`.i)"},
	} {
		st, rest, err := Parse(c.in)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if rest != "" {
			t.Errorf("%s: rest %q", c.in, rest)
		}
		got := strings.Join(strings.Fields(st.(*SQL).Text), " ")
		if want := strings.Join(strings.Fields(c.out), " "); got != want {
			t.Errorf("%s\n got %s\nwant %s", c.in, got, want)
		}
		// What was folded folds to itself.
		again, _, err := Parse(st.(*SQL).Text)
		if err != nil || (!strings.Contains(c.out, VersionPrefix) && again.(*SQL).Text != st.(*SQL).Text) {
			t.Errorf("%s: folded again: %v %v", c.in, again, err)
		}
	}
}

func TestDatabaseNames(t *testing.T) {
	for _, levels := range [][]string{{"a"}, {"a", "b"}, {"a.", "b"}, {"a", ".b"}, {`a\`, `.`}, {"", ""}, {"ä.ö", "x`y"}} {
		got := SplitDatabase(JoinDatabase(levels...))
		if strings.Join(got, "\x00") != strings.Join(levels, "\x00") {
			t.Errorf("%q became %q", levels, got)
		}
	}
}

func TestOwnStatements(t *testing.T) {
	for in, want := range map[string]string{
		"explain select 1":                           "*parse.Explain",
		"EXPLAIN ANALYZE FORMAT=TREE select 1":       "*parse.Explain",
		"explain policy select * from a.b.c":         "*parse.ExplainPolicy",
		"explain policy format json select 1":        "*parse.ExplainPolicy",
		"explain policy format = json (select 1)":    "*parse.ExplainPolicy",
		"explain policy":                             "*parse.SQL",
		"describe policy":                            "*parse.SQL",
		"show policy status":                         "*parse.ShowPolicyStatus",
		"show full processlist":                      "*parse.ShowProcesslist",
		"kill query 12":                              "*parse.Kill",
		"kill connection 12":                         "*parse.Kill",
		"prepare s from 'select ''x'' from t'":       "*parse.Prepare",
		"prepare s from @q":                          "*parse.Prepare",
		"execute s using @a, @`b c`":                 "*parse.ExecuteStmt",
		"drop prepare s":                             "*parse.Deallocate",
		"deallocate prepare s":                       "*parse.Deallocate",
		"set role none":                              "*parse.SetRole",
		"set role a, 'b'":                            "*parse.SetRole",
		"use a.b.c":                                  "*parse.Use",
		"use `a.b`":                                  "*parse.Use",
		"lock tables t read":                         "*parse.SQL",
		"start transaction with consistent snapshot": "*parse.SQL",
		"set names utf8mb4":                          "*parse.SQL",
		"show tables":                                "*parse.SQL",
		"(select 1) union (select 2)":                "*parse.SQL",
		"table t":                                    "*parse.SQL",
	} {
		st, _, err := Parse(in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
		} else if got := typeName(st); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	st, _, _ := Parse("use a.`b.c`")
	if got := st.(*Use).Database; got != `a.b\.c` {
		t.Errorf("use: %s", got)
	}
	st, _, _ = Parse(`prepare s from 'select ''x'', "y\n"'`)
	if got := st.(*Prepare).Text; got != "select 'x', \"y\n\"" {
		t.Errorf("prepare: %q", got)
	}
	st, _, _ = Parse("kill query 7")
	if k := st.(*Kill); !k.Query || k.ID != 7 {
		t.Errorf("kill: %+v", k)
	}
}

func typeName(st Statement) string {
	switch st.(type) {
	case *SQL:
		return "*parse.SQL"
	case *Explain:
		return "*parse.Explain"
	case *ExplainPolicy:
		return "*parse.ExplainPolicy"
	case *ShowPolicyStatus:
		return "*parse.ShowPolicyStatus"
	case *ShowProcesslist:
		return "*parse.ShowProcesslist"
	case *Kill:
		return "*parse.Kill"
	case *Prepare:
		return "*parse.Prepare"
	case *ExecuteStmt:
		return "*parse.ExecuteStmt"
	case *Deallocate:
		return "*parse.Deallocate"
	case *SetRole:
		return "*parse.SetRole"
	case *Use:
		return "*parse.Use"
	}
	return "?"
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		in   string
		kind fault.Kind
		text string // part of the message
	}{
		{"", fault.Syntax, "empty"},
		{" ; -- x", fault.Syntax, "empty"},
		{"select", fault.Syntax, "line 1, column 7"},
		{"select 1\nfrm t where", fault.Syntax, "line 2"},
		{"select 'abc", fault.Syntax, "line 1, column 8"},
		{"select /* abc", fault.Syntax, "comment"},
		{"select 1 // 2", fault.Syntax, ""},
		{"select :v1", fault.Syntax, "character"},
		{"kill x", fault.Syntax, "id of a connection"},
		{"use a b", fault.Syntax, "end of the statement"},
		{"explain policy format", fault.Syntax, "name of a format"},
		{"show policy", fault.Syntax, "STATUS"},
		{"load xml infile 'x' into table t", fault.Unsupported, "LOAD XML"},
		{"select * from t into outfile '/tmp/x'", fault.Unsupported, "OUTFILE"},
		{"select load_file('/etc/passwd')", fault.Unsupported, "load_file"},
		{"select sleep(10)", fault.Unsupported, "sleep"},
		{"explain select load_file('/etc/passwd')", fault.Unsupported, "load_file"},
		{"create procedure p() select 1", fault.Unsupported, "stored code"},
		{"create definer = 'a'@'b' trigger x before insert on t for each row set @a = 1", fault.Unsupported, "stored code"},
		{"call x()", fault.Unsupported, "CALL"},
		{"select " + strings.Repeat("(", 600) + "1" + strings.Repeat(")", 600), fault.Limit, "nests"},
		{"select 1" + strings.Repeat("+1", 100000), fault.Limit, "chains"},
		{"select 1 from t" + strings.Repeat(", t", 100000), fault.Limit, "chains"},
		{"select " + strings.Repeat(" - ", 100000) + "1", fault.Limit, "chains"},
		{strings.Repeat("explain ", 20000) + "select 1", fault.Limit, "chains"},
		{strings.Repeat(" ", MaxBytes+1), fault.Limit, "MB"},
	} {
		_, _, err := Parse(c.in)
		if !fault.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%.60s: %v", c.in, err)
		}
	}
	// Long and flat is allowed.
	for _, in := range []string{
		"select * from t where x in (1" + strings.Repeat(", 1", 200000) + ")",
		"select * from t where x = 1" + strings.Repeat(" or x = 1", 1900),
		"select sleepy, t.sleep from t",
	} {
		if _, _, err := Parse(in); err != nil {
			t.Errorf("%.60s: %v", in, err)
		}
	}
}

// An error must not repeat a literal of the statement.
func TestErrorsHoldNoLiterals(t *testing.T) {
	for _, in := range []string{"select 'secret' 5 'secret'", "select 1 frm 'secret'", "kill 'secret'", "use 'secret'", "prepare 'secret'", "select 'secret", "select x'secret' y z"} {
		_, _, err := Parse(in)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func TestRest(t *testing.T) {
	text := "select 'a;b' /* ; */ ; ; select `c;d` from t; -- end"
	st, rest, err := Parse(text)
	if err != nil || !strings.HasSuffix(text, rest) || !strings.HasPrefix(strings.TrimLeft(rest, " ;"), "select `c;d`") {
		t.Fatalf("%v %q %v", st, rest, err)
	}
	st, rest, err = Parse(rest)
	if err != nil || rest != "" {
		t.Fatalf("%v %q %v", st, rest, err)
	}
	st, _, err = Parse("select ?, '?', `?` from t where x = ? -- ?")
	if err != nil || st.(*SQL).Params != 2 {
		t.Fatalf("%+v %v", st, err)
	}
}

func TestFingerprint(t *testing.T) {
	for in, want := range map[string]string{
		"select  * from t where a = 'x' and b in (1, 2,3)": "select * from t where a = ? and b in (?)",
		"SELECT a, b FROM `t` -- secret\n LIMIT 10;":       "SELECT a, b FROM `t` LIMIT ?",
		"select x'41', 0x41, 1.5e3, .5, \"dq\", n'x'":      "select ?",
		"select 'unterminated":                             "(unreadable statement)",
		"not sql at all 'secret' 42":                       "not sql at all ? ?",
		"select f(a.b.c, 12abc)":                           "select f (a.b.c, ?)",
		"INSERT INTO t (a, b) VALUES (1, NULL), (2, NULL),(-3,NULL), (4, a), (5, a) ; select 1": "INSERT INTO t (a, b) VALUES (?, NULL), (- ?, NULL), (?, a); select ?",
		"insert into t values ((1), (2)), ((3), (4)), f(x), (x)":                                "insert into t values ((?), (?)), f (x), (x)",
	} {
		got := Fingerprint(in)
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
	if got := Fingerprint("select " + strings.Repeat("a, ", 100000)); len(got) > maxFingerprint+16 {
		t.Errorf("length %d", len(got))
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"select * from a.b.c.d x, e.f.g y where a.b.c.d.col = y.z and s='a.b.c'", "select 5--1 /*! +1 */ // x", "show columns from c from a.b",
		"explain policy format json select 1", "select * from t for version as of 'main'", "prepare s from 'select 1'", "set @a := 1, @@sql_mode = ''",
		"select 'a' 'b', N'c', x'41', 0x41, 1e5, .5, a->'$.b', `a``b`.`c.d`.e", "with recursive r as (select 1 union all select 1) table r;;select",
		"select case when a then (select b) end over (partition by c), ? from t limit ?", "kill query 1", "use a.b.`c.d`", "create view a.b.c as select 1",
	} {
		f.Add(s)
	}
	for s := range policyStatements {
		f.Add(s)
	}
	for _, s := range writeStatements(f) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		st, rest, err := Parse(text)
		if err != nil {
			if k := fault.KindOf(err); k != fault.Syntax && k != fault.Unsupported && k != fault.Limit {
				t.Fatalf("kind %v: %v", k, err)
			}
			Fingerprint(text)
			return
		}
		if !strings.HasSuffix(text, rest) {
			t.Fatalf("rest %q is no suffix", rest)
		}
		if why := misfit(text, st); why != "" {
			t.Fatalf("%q: %s", text, why)
		}
		sql, ok := st.(*SQL)
		if !ok || sql.AST == nil {
			return
		}
		// Folding is stable: the grammar sees the same statement the second time.
		again, rest2, err := Parse(sql.Text)
		if err != nil || rest2 != "" {
			t.Fatalf("%q folded to %q: %v, rest %q", text, sql.Text, err, rest2)
		}
		if strings.Contains(sql.Text, VersionPrefix) {
			return
		}
		if a, b := sqlparser.String(sql.AST), sqlparser.String(again.(*SQL).AST); a != b {
			t.Fatalf("%q: %s became %s", text, a, b)
		}
	})
}

func FuzzFingerprint(f *testing.F) {
	f.Add("select 'x', 12, \"y\" from t")
	f.Fuzz(func(t *testing.T, s string) {
		// A literal that follows any text must not come through.
		quotedSecret := strings.NewReplacer("'", "", "\\", "").Replace("s3cr3t")
		got := Fingerprint("select * from t where a = '" + quotedSecret + "' /*" + strings.ReplaceAll(s, "*/", "") + "*/ and b = " + "9876543")
		if strings.Contains(got, "s3cr3t") || strings.Contains(got, "9876543") {
			t.Fatal(got)
		}
		// Nor may the text of a policy, of which names are a part.
		if got := Fingerprint("ALTER POLICY p ADD ROW FILTER TO r USING (s3cr3t = 1 " + s + ")"); strings.Contains(got, "s3cr3t") {
			t.Fatal(got)
		}
		// Nor a literal of a statement whose names are shown, and of none that looks alike.
		for _, head := range []string{
			"ALTER POLICY p SET COMMENT 's3cr3t', ", "ALTER TABLE t ALTER COLUMN c SET TAG x = 's3cr3t', ", "CREATE POLICY p ON TAG t ROW FILTER TO r USING ('s3cr3t') COMMENT 's3cr3t' ",
			"SELECT 's3cr3t' ", "ALTER TABLE t ADD COLUMN c TEXT DEFAULT 's3cr3t' ", "CREATE TABLE t COMMENT 's3cr3t' ", "DROP TABLE 's3cr3t' ", "SHOW TABLES LIKE 's3cr3t' ", "CALL p('s3cr3t') ",
			"SHOW POLICIES LIKE 's3cr3t' ", "CREATE VIEW v AS SELECT 's3cr3t' ",
		} {
			if got := Fingerprint(head + s); strings.Contains(got, "s3cr3t") && !strings.Contains(s, "s3cr3t") {
				t.Fatal(got)
			}
		}
		Fingerprint(s)
	})
}
