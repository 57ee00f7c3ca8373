package parse

import (
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sqe/fault"
)

func ptr[T any](v T) *T { return &v }

// customers is the table of the statements in this file.
var customers = &TableRef{Database: "lake.bank", Name: "customers"}

// policyStatements are statements about policies with what they mean.
var policyStatements = map[string]Statement{
	// One principal and one item.
	"CREATE POLICY p ON TABLE lake.bank.customers COLUMN MASK MASK_NULL TO ROLE analyst ON COLUMN iban": &CreatePolicy{
		Name: "p", Table: customers, Columns: []string{"iban"},
		Items: []PolicyItem{{Mask: "MASK_NULL", Grantees: []Grantee{{"role", "analyst"}}}},
	},
	"create or replace policy p on table lake.bank.customers column mask custom to user 'jan' on column ssn using (concat('xxx-xx-', substr({col},8,4)))": &CreatePolicy{
		Replace: true, Name: "p", Table: customers, Columns: []string{"ssn"},
		Items: []PolicyItem{{Mask: "CUSTOM", Grantees: []Grantee{{"user", "jan"}}, Text: "concat('xxx-xx-', substr({col},8,4))"}},
	},
	"CREATE POLICY \"my policy\" ON TAG PII COLUMN MASK MASK_HASH TO GROUP \"every one\"": &CreatePolicy{
		Name: "my policy", Tag: "PII", Items: []PolicyItem{{Mask: "MASK_HASH", Grantees: []Grantee{{"group", "every one"}}}},
	},
	"CREATE POLICY p ON TAG `a b` COLUMN MASK CUSTOM TO ROLE r USING ('x')": &CreatePolicy{
		Name: "p", Tag: "a b", Items: []PolicyItem{{Mask: "CUSTOM", Grantees: []Grantee{{"role", "r"}}, Text: "'x'"}},
	},
	"CREATE POLICY p ON TABLE bank.customers ROW FILTER TO ROLE r USING (region = 'E)U' /* not ( this */ AND (a) -- nor this\n)": &CreatePolicy{
		Name: "p", Table: &TableRef{"bank", "customers"}, Items: []PolicyItem{{Filter: true, Grantees: []Grantee{{"role", "r"}}, Text: "region = 'E)U' AND (a)"}},
	},
	"CREATE POLICY p ON TAG T ROW FILTER TO PUBLIC USING (dept IN (${{USER.dept}}) AND x[1] = 'a;b')": &CreatePolicy{
		Name: "p", Tag: "T", Items: []PolicyItem{{Filter: true, Grantees: []Grantee{{"group", "public"}}, Text: "dept IN (${{USER.dept}}) AND x[1] = 'a;b'"}},
	},
	// Several of everything.
	"CREATE POLICY risk-1 ON TABLE t COLUMN MASK MASK_NONE TO ROLE a, b-c, USER x.y@corp.example, `u`, group PUBLIC, COLUMN MASK 'iceberg:mask-alphanum' TO GROUP everyone ON COLUMN `a b`, c.d " +
		"COMMENT = 'it''s' PRIORITY OVERRIDE VALID FROM '2026-01-31' UNTIL '2026-12-31T23:59:59+01:00' DISABLED": &CreatePolicy{
		Name: "risk-1", Table: &TableRef{Name: "t"}, Columns: []string{"a b", "c.d"},
		Items: []PolicyItem{
			{Mask: "MASK_NONE", Grantees: []Grantee{{"role", "a"}, {"role", "b-c"}, {"user", "x.y@corp.example"}, {"user", "u"}, {"group", "public"}}},
			{Mask: "iceberg:mask-alphanum", Grantees: []Grantee{{"group", "everyone"}}},
		},
		Comment: "it's", Override: true, Disabled: true,
		From: time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC), Until: time.Date(2026, 12, 31, 22, 59, 59, 0, time.UTC),
	},
	"CREATE POLICY p ON TABLE t COLUMN MASK MASK TO a ON COLUMN x, y, COLUMN MASK CUSTOM TO ROLE b USING (1) ON COLUMN X, Y ENABLED VALID UNTIL '2026-01-01 10:00'": &CreatePolicy{
		Name: "p", Table: &TableRef{Name: "t"}, Columns: []string{"X", "Y"},
		Items: []PolicyItem{{Mask: "MASK", Grantees: []Grantee{{"user", "a"}}}, {Mask: "CUSTOM", Grantees: []Grantee{{"role", "b"}}, Text: "1"}},
		Until: time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC),
	},
	"CREATE POLICY p ON TAG T ROW FILTER NONE TO none, ROLE r, ROW FILTER TO none USING (false)": &CreatePolicy{
		Name: "p", Tag: "T", Items: []PolicyItem{
			{Filter: true, Exempt: true, Grantees: []Grantee{{"user", "none"}, {"role", "r"}}},
			{Filter: true, Grantees: []Grantee{{"user", "none"}}, Text: "false"},
		},
	},
	"CREATE POLICY p ON TABLE `a.b`.c.`d.e`.t ROW FILTER TO ROLE r USING (true), ROW FILTER TO public USING (false)": &CreatePolicy{
		Name: "p", Table: &TableRef{`a\.b.c.d\.e`, "t"},
		Items: []PolicyItem{{Filter: true, Grantees: []Grantee{{"role", "r"}}, Text: "true"}, {Filter: true, Grantees: []Grantee{{"group", "public"}}, Text: "false"}},
	},

	"ALTER POLICY p ENABLE":                      &AlterPolicy{Name: "p", Disabled: ptr(false)},
	"alter policy `p q` rename to 'r', disable;": &AlterPolicy{Name: "p q", Rename: ptr("r"), Disabled: ptr(true)},
	"ALTER POLICY p ADD FIRST COLUMN MASK MASK_NONE TO ROLE a, b, COLUMN MASK MASK TO USER c, REMOVE GROUP g, USER u, SET COMMENT '', SET PRIORITY NORMAL, SET VALID FROM NONE UNTIL '2027-01-01', DISABLE": &AlterPolicy{
		Name: "p", First: true,
		Add:     []PolicyItem{{Mask: "MASK_NONE", Grantees: []Grantee{{"role", "a"}, {"role", "b"}}}, {Mask: "MASK", Grantees: []Grantee{{"user", "c"}}}},
		Remove:  []Grantee{{"group", "g"}, {"user", "u"}},
		Comment: ptr(""), Override: ptr(false), From: &time.Time{}, Until: ptr(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)), Disabled: ptr(true),
	},
	"ALTER POLICY p ADD ROW FILTER TO ROLE 'enable', x USING (a = 1), SET VALID ALWAYS": &AlterPolicy{
		Name: "p", Add: []PolicyItem{{Filter: true, Grantees: []Grantee{{"role", "enable"}, {"role", "x"}}, Text: "a = 1"}}, From: &time.Time{}, Until: &time.Time{},
	},
	"DROP POLICY p":                    &DropPolicy{Name: "p"},
	"DROP POLICY IF EXISTS \"p \"\"\"": &DropPolicy{Name: `p "`, IfExists: true},

	"SHOW POLICIES":                                           &ShowPolicies{},
	"SHOW POLICIES ON TABLE a.b.c LIKE 'x'":                   &ShowPolicies{Table: &TableRef{"a.b", "c"}, Like: ptr("x")},
	"SHOW POLICIES ON TAG PII FOR ROLE r":                     &ShowPolicies{Tag: "PII", For: &Grantee{"role", "r"}},
	"SHOW POLICIES FOR GROUP public":                          &ShowPolicies{For: &Grantee{"group", "public"}},
	"SHOW CREATE POLICY p":                                    &ShowCreatePolicy{"p"},
	"SHOW MASKING POLICIES":                                   &ShowMaskingPolicies{},
	"SHOW MASKING POLICY":                                     &ShowMaskingPolicies{},
	"SHOW MASKING POLICY p-1":                                 &ShowMaskingPolicies{"p-1"},
	"SHOW EFFECTIVE POLICY ON bank.t":                         &ShowEffectivePolicy{Table: TableRef{"bank", "t"}},
	"SHOW EFFECTIVE POLICY FOR USER jan ON TABLE lake.bank.t": &ShowEffectivePolicy{User: "jan", Table: TableRef{"lake.bank", "t"}},
	"SHOW TAGS ON bank.t":                                     &ShowTags{TableRef{"bank", "t"}},
	"SHOW TAGS ON TABLE `bank.eu`.`t`":                        &ShowTags{TableRef{"bank.eu", "t"}},

	"ALTER TABLE t SET TAGS (a = ('T1','T2'), b.c = (T3))": &AlterTags{TableRef{"", "t"}, []TagChange{
		{Column: "a", Tags: []Tag{{"T1", ""}, {"T2", ""}}}, {Column: "b.c", Tags: []Tag{{"T3", ""}}},
	}},
	"ALTER TABLE n.t UNSET TAGS (a, `b c`)":                        &AlterTags{TableRef{"n", "t"}, []TagChange{{Column: "a", Unset: true}, {Column: "b c", Unset: true}}},
	"ALTER TABLE t MODIFY COLUMN c SET TAG PII = 'high', x.y":      &AlterTags{TableRef{"", "t"}, []TagChange{{Column: "c", Tags: []Tag{{"PII", "high"}, {"x.y", ""}}}}},
	"ALTER TABLE t ALTER COLUMN c UNSET TAG PII, Q":                &AlterTags{TableRef{"", "t"}, []TagChange{{Column: "c", Unset: true, Tags: []Tag{{"PII", ""}, {"Q", ""}}}}},
	"ALTER TABLE t ALTER c SET TAG PII":                            &AlterTags{TableRef{"", "t"}, []TagChange{{Column: "c", Tags: []Tag{{"PII", ""}}}}},
	"ALTER TABLE t SET TAG secret":                                 &AlterTags{TableRef{"", "t"}, []TagChange{{Tags: []Tag{{"secret", ""}}}}},
	"ALTER TABLE t UNSET TAG secret":                               &AlterTags{TableRef{"", "t"}, []TagChange{{Unset: true, Tags: []Tag{{"secret", ""}}}}},
	"ALTER TABLE t MODIFY COLUMN c SET MASKING POLICY p":           &AlterMaskingPolicy{Table: TableRef{"", "t"}, Column: "c", Policy: "p"},
	"ALTER TABLE t ALTER COLUMN c UNSET MASKING POLICY":            &AlterMaskingPolicy{Table: TableRef{"", "t"}, Column: "c", Unset: true},
	"ALTER TABLE t ALTER COLUMN c UNSET MASKING POLICY p":          &AlterMaskingPolicy{Table: TableRef{"", "t"}, Column: "c", Unset: true, Policy: "p"},
	"CALL system.reproject_column_tags(table => 'ns.t')":           &ReprojectTags{Table: &TableRef{"ns", "t"}},
	"call SYSTEM.reproject_column_tags ( namespace => `x` ) ":      nil,
	"CALL system.reproject_column_tags(namespace => 'a.b')":        &ReprojectTags{Namespace: "a.b"},
	"CALL system.reproject_column_tags(catalog => \"c\")":          &ReprojectTags{Catalog: "c"},
	"CALL system.reproject_column_tags(table => 'lake.a\\\\.b.t')": &ReprojectTags{Table: &TableRef{`lake.a\.b`, "t"}},
}

func TestPolicyStatements(t *testing.T) {
	for text, want := range policyStatements {
		got, rest, err := Parse(text)
		if want == nil {
			if err == nil {
				t.Errorf("%s gives %#v", text, got)
			}
			continue
		}
		if err != nil || rest != "" {
			t.Errorf("%s: %v, rest %q", text, err, rest)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", text, diff)
		}
	}
}

// TestNoPolicyStatements: the words of policies and tags are also names.
func TestNoPolicyStatements(t *testing.T) {
	for text, want := range map[string]Statement{
		"ALTER TABLE t MODIFY COLUMN c SET('a','b')": &AlterTable{}, "ALTER TABLE t ALTER COLUMN c SET DEFAULT 1": &AlterTable{},
		"ALTER TABLE t ADD COLUMN policy INT": &AlterTable{}, "CREATE TABLE policy (a INT)": &CreateTable{}, "DROP TABLE policy": &DropTable{},
		"SELECT policy FROM policies": &SQL{}, "SHOW TABLES LIKE 'policies'": &SQL{},
	} {
		if stmt, _, err := Parse(text); err != nil {
			t.Errorf("%s: %v", text, err)
		} else if reflect.TypeOf(stmt) != reflect.TypeOf(want) {
			t.Errorf("%s gives %#v", text, stmt)
		}
	}
}

func TestPolicyErrors(t *testing.T) {
	for text, want := range map[string]string{
		"CREATE POLICY":                 "column 14: expected the name of a policy, the statement ends here",
		"CREATE POLICY '' ON TABLE t":   "column 15: expected the name of a policy, the name is empty",
		"CREATE POLICY p ON t":          "column 17: expected ON TABLE or ON TAG, found 'ON'",
		"CREATE POLICY p ON TABLE t":    "column 27: expected COLUMN MASK or ROW FILTER",
		"CREATE POLICY p ON TABLE t x":  "column 28: expected COLUMN MASK or ROW FILTER, found 'x'",
		"CREATE POLICY p ON TABLE a..t": "column 28: expected the name of a table",
		"CREATE POLICY p ON TABLE t COLUMN MASK CUSTOM TO ROLE r ON COLUMN c":                             "column 68: expected USING (expression): a CUSTOM COLUMN MASK requires USING",
		"CREATE POLICY p ON TABLE t ROW FILTER TO ROLE r":                                                 "column 48: expected USING (condition): a ROW FILTER requires USING",
		"CREATE POLICY p ON TABLE t COLUMN MASK MASK_NULL TO ROLE r ON COLUMN c USING (1)":                "column 28: only a CUSTOM COLUMN MASK takes USING",
		"CREATE POLICY p ON TABLE t COLUMN MASK MASK_NULL TO ROLE r":                                      "column 59: expected ON COLUMN",
		"CREATE POLICY p ON TABLE t COLUMN MASK MASK_NULL ROLE r":                                         "column 50: expected TO, found 'ROLE'",
		"CREATE POLICY p ON TAG t COLUMN MASK MASK_NULL TO ROLE r ON COLUMN c":                            "column 58: expected USING or the next item: a policy on a tag",
		"CREATE POLICY p ON TABLE t ROW FILTER TO ROLE r ON COLUMN c USING (1)":                           "column 49: expected USING: a ROW FILTER is on the whole table",
		"CREATE POLICY p ON TABLE t ROW FILTER TO ON COLUMN c USING (1)":                                  "column 42: expected USER, ROLE or GROUP and a name, found 'ON'",
		"CREATE POLICY p ON TABLE t ROW FILTER NONE TO r USING (true)":                                    "column 28: ROW FILTER NONE takes no USING: its principals see all rows",
		"CREATE POLICY p ON TABLE t ROW FILTER TO r USING ()":                                             "column 51: expected the text of the policy",
		"CREATE POLICY p ON TABLE t ROW FILTER TO r USING (a = 1":                                         "column 56: expected ) after the text of the policy",
		"CREATE POLICY p ON TABLE t ROW FILTER TO r USING (a = 1) OR (true)":                              "column 58: expected COMMENT, PRIORITY, VALID",
		"CREATE POLICY p ON TABLE t ROW FILTER TO r USING (a = ?)":                                        "column 55: the text of a policy has no parameters",
		"CREATE POLICY p ON TABLE t ROW FILTER TO r USING (a = ';' ; DROP)":                               "column 58: expected ) after",
		"CREATE POLICY p ON TABLE t ROW FILTER TO r USING (a), COLUMN MASK MASK TO r ON COLUMN c":         "column 55: a policy holds column masks or row filters, not both",
		"CREATE POLICY p ON TABLE t COLUMN MASK MASK TO r ON COLUMN c, COLUMN MASK MASK TO s ON COLUMN d": "column 85: the items of a policy are on the same columns",
		"CREATE POLICY p ON TAG t ROW FILTER TO r USING (a) COMMENT 'x' COMMENT 'y'":                      "column 64: COMMENT stands twice",
		"CREATE POLICY p ON TAG t ROW FILTER TO r USING (a) ENABLED DISABLED":                             "column 60: DISABLED stands twice",
		"CREATE POLICY p ON TAG t ROW FILTER TO r USING (a) PRIORITY HIGH":                                "column 61: expected OVERRIDE or NORMAL, found 'HIGH'",
		"CREATE POLICY p ON TAG t ROW FILTER TO r USING (a) VALID FROM 'soon'":                            "column 63: expected a time like",
		"CREATE POLICY p ON TAG t ROW FILTER TO r USING (a) VALID FROM '2026-01-01 10:00:00.5'":           "column 63: expected a time like",
		"CREATE POLICY p ON TAG t ROW FILTER TO r USING (a) VALID FROM '0001-01-01'":                      "column 63: expected a time like",
		"CREATE POLICY p ON TAG t ROW FILTER TO r USING (a) VALID FROM '2026-01-02' UNTIL '2026-01-01'":   "column 58: UNTIL is not after FROM",
		"ALTER POLICY p":                                       "column 15: expected ADD, REMOVE",
		"ALTER POLICY p ENABLE, DISABLE":                       "column 24: the clause stands twice",
		"ALTER POLICY p SET TAG x":                             "column 16: expected ADD, REMOVE",
		"ALTER POLICY p REMOVE":                                "column 22: expected the name of a user, role or group",
		"ALTER POLICY p ADD COLUMN MASK MASK TO r ON COLUMN c": "column 42: expected USING or the next clause: the columns of a policy stay",
		"DROP POLICY p q":                                      "column 15: expected the end of the statement",
		"SHOW POLICIES ON":                                     "column 17: expected the name of a table",
		"SHOW POLICIES FOR ROLE a, b":                          "column 28: expected one principal",
		"SHOW EFFECTIVE POLICY t":                              "column 23: expected ON and the name of a table",
		"SHOW TAGS FROM t":                                     "column 11: expected ON and the name of a table",
		"ALTER TABLE t SET TAGS (a = 'T')":                     "column 29: expected ( and tags, found a string",
		"ALTER TABLE t SET TAGS (a = ())":                      "column 30: expected the name of a tag",
		"ALTER TABLE t SET TAGS (a=(x), a=(y))":                "column 32: the column stands twice",
		"ALTER TABLE t ALTER COLUMN c SET TAG":                 "column 37: expected the name of a tag",
		"CALL system.reproject_column_tags('t')":               "column 35: expected table =>",
		"CALL system.reproject_column_tags(table => 'a..t')":   "column 44: the name is empty",
	} {
		stmt, _, err := Parse(text)
		if !fault.Is(err, fault.Syntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n gives %#v, %v\n  want %s", text, stmt, err, want)
		}
	}
	for _, text := range []string{"EXPLAIN CREATE POLICY p ON TAG t ROW FILTER TO r USING (a)", "EXPLAIN SHOW POLICIES", "EXPLAIN ANALYZE DROP POLICY p"} {
		if stmt, _, err := Parse(text); err == nil {
			t.Errorf("%s gives %#v", text, stmt)
		}
	}
	long := "ALTER POLICY p REMOVE x" + strings.Repeat(", x", MaxNames)
	if _, _, err := Parse(long); !fault.Is(err, fault.Limit) {
		t.Errorf("a long list: %v", err)
	}
	if _, _, err := Parse(strings.TrimSuffix(long, ", x")); err != nil {
		t.Errorf("a list of the longest length: %v", err)
	}
}

// TestPolicyPrefixes: no beginning of a statement makes the parser panic, which
// it would tell by an error without a place.
func TestPolicyPrefixes(t *testing.T) {
	for text := range policyStatements {
		for i := range text {
			for _, tail := range []string{"", ",", " (", " ON", "'", " x"} {
				_, _, err := Parse(text[:i] + tail)
				if err != nil && strings.Contains(err.Error(), "cannot be parsed") {
					t.Errorf("%s%s: %v", text[:i], tail, err)
				}
				Fingerprint(text[:i] + tail)
			}
		}
	}
}

func TestPolicyFingerprints(t *testing.T) {
	for text, want := range map[string]string{
		"CREATE POLICY p ON TABLE t ROW FILTER TO USER 'jan' USING (a = 'x' OR f(${{USER.x}})), ROW FILTER TO ROLE r USING (b) COMMENT 'secret'": "CREATE POLICY p ON TABLE t ROW FILTER TO USER `jan` USING (?), ROW FILTER TO ROLE r USING (?) COMMENT ?",
		"CREATE POLICY p ON TAG t COLUMN MASK CUSTOM TO r USING (a = (b":                                                                         "CREATE POLICY p ON TAG t COLUMN MASK CUSTOM TO r USING (?",
		"ALTER POLICY p ADD ROW FILTER TO r USING (a = b), DISABLE":                                                                              "ALTER POLICY p ADD ROW FILTER TO r USING (?), DISABLE",
		"SELECT 1, 2 FROM t t; CREATE POLICY p ON TAG t ROW FILTER TO r USING (a = b); SELECT * FROM t JOIN s USING (a)":                         "SELECT ? FROM t t; CREATE POLICY p ON TAG t ROW FILTER TO r USING (?); SELECT * FROM t JOIN s USING (a)",
		"SELECT * FROM t JOIN s USING (a)":              "SELECT * FROM t JOIN s USING (a)",
		"ALTER TABLE t SET TAGS (a = ('T1','T2'))":      "ALTER TABLE t SET TAGS (a = (`T1`, `T2`))",
		"ALTER TABLE t MODIFY COLUMN c SET TAG x = 'v'": "ALTER TABLE t MODIFY COLUMN c SET TAG x = ?",
		"DROP POLICY IF EXISTS 'my `policy'":            "DROP POLICY IF EXISTS `my ``policy`",
		`ALTER POLICY 'it''s' RENAME TO "b\"c"`:         "ALTER POLICY `it's` RENAME TO `b\"c`",
		// What does not parse, and what is no statement of this kind, shows no string.
		"DROP POLICY 'a' 'b'":                                  "DROP POLICY ? ?",
		"ALTER TABLE t SET TAGS (a = ('T1')":                   "ALTER TABLE t SET TAGS (a = (?)",
		"DROP TABLE t; DROP POLICY 'a'":                        "DROP TABLE t; DROP POLICY ?",
		"ALTER TABLE t MODIFY COLUMN c VARCHAR(3) COMMENT 'x'": "ALTER TABLE t MODIFY COLUMN c VARCHAR (?) COMMENT ?",
	} {
		if got := Fingerprint(text); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

// TestFingerprintNames: of statements about policies and tags every name is shown,
// however it is quoted, and no comment, text, time, value or pattern.
func TestFingerprintNames(t *testing.T) {
	for _, text := range []string{
		"CREATE POLICY 'n4me 1' ON TABLE 'n4me 2'.\"n4me 3\" COLUMN MASK CUSTOM TO USER 'n4me 4', ROLE \"n4me 5\" ON COLUMN 'n4me 6' USING (concat('s3cr3t', {col})) COMMENT 's3cr3t' VALID FROM '2026-01-02' UNTIL '2027-01-02'",
		"CREATE OR REPLACE POLICY 'n4me 1' ON TAG 'n4me 2' ROW FILTER TO GROUP 'n4me 3' USING (a = 's3cr3t' OR \"s3cr3t\" = ${{USER.s3cr3t}})",
		"ALTER POLICY 'n4me 1' ADD FIRST COLUMN MASK CUSTOM TO USER 'n4me 2' USING ('s3cr3t'), REMOVE ROLE 'n4me 3', RENAME TO 'n4me 4', SET COMMENT 's3cr3t', SET VALID UNTIL '2027-01-02'",
		"DROP POLICY 'n4me 1'", "SHOW CREATE POLICY \"n4me 1\"", "SHOW MASKING POLICY 'n4me 1'", "SHOW POLICIES ON TAG 'n4me 1' FOR USER 'n4me 2' LIKE 's3cr3t'",
		"SHOW POLICIES ON TABLE 'n4me 1'.t LIKE 's3cr3t%'", "SHOW EFFECTIVE POLICY FOR USER 'n4me 1' ON TABLE 'n4me 2'", "SHOW TAGS ON 'n4me 1'",
		"ALTER TABLE 'n4me 1' SET TAGS ('n4me 2' = ('n4me 3', \"n4me 4\"))", "ALTER TABLE t UNSET TAGS ('n4me 1')",
		"ALTER TABLE t ALTER COLUMN 'n4me 1' SET TAG 'n4me 2' = 's3cr3t', x = 's3cr3t'", "ALTER TABLE t UNSET TAG 'n4me 1'",
		"ALTER TABLE t MODIFY COLUMN c SET MASKING POLICY 'n4me 1'", "CALL system.reproject_column_tags(table => 'n4me 1')",
	} {
		if _, _, err := Parse(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		got := Fingerprint(text)
		for n := 1; strings.Contains(text, "n4me "+strconv.Itoa(n)); n++ {
			if !strings.Contains(got, "`n4me "+strconv.Itoa(n)+"`") {
				t.Errorf("%s\nlacks name %d: %s", text, n, got)
			}
		}
		if strings.Contains(got, "s3cr3t") || strings.Contains(got, "202") || strings.ContainsAny(got, `'"`) {
			t.Errorf("%s\nshows what is no name: %s", text, got)
		}
		// What does not parse shows neither.
		if got := Fingerprint(text + " 'n4me' ("); strings.Contains(got, "n4me") || strings.Contains(got, "s3cr3t") {
			t.Errorf("%s 'n4me' (\nshows %s", text, got)
		}
	}
}
