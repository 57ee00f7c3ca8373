package engine_test

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sqe/engine"
	"sqe/fault"
	"sqe/identity"
	"sqe/plan"
	"sqe/policy"
)

// people is a table of three rows: eve sees those of the EU, with names masked; sue
// sees it whole.
func people(t *testing.T) (f *ddlFixture, eve *engine.Session) {
	t.Helper()
	f = openDDL(t)
	f.gate.state.restrict = func(p identity.Principal, t *plan.Table) *policy.Restrictions {
		r := &policy.Restrictions{Complete: true, Columns: map[int]policy.ColumnRule{}}
		if p.Name != "eve" || t.Name.Name != "people" {
			return r
		}
		r.Filters = []policy.RowFilter{{SQL: "region = 'EU'", Origin: policy.Origin{Source: "gate", Policy: "rows", ID: 1}}}
		r.Columns[column(t, "name")] = policy.ColumnRule{Kind: policy.Mask, Action: "CUSTOM", SQL: "concat(left(name, 1), '***')", Origin: policy.Origin{Source: "gate", Policy: "mask", ID: 2}}
		return r
	}
	f.may("eve", "bank", "namespace-list table-create")
	f.may("eve", "bank.*", "table-list table-data-read table-data-write")
	eve, err := f.Open(identity.Principal{Name: "eve"}, engine.ConnInfo{ID: 9, RemoteAddr: "test", Database: "bank"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(eve.Close)
	f.do(f.sue, "CREATE TABLE people (id BIGINT, name STRING, region STRING, n INT)")
	f.do(f.sue, "INSERT INTO people VALUES (1, 'Anna', 'EU', 10), (2, 'Bert', 'EU', 20), (3, 'Cleo', 'US', 30)")
	return f, eve
}

const whole = "SELECT id, name, region, n FROM people ORDER BY id"

// TestRowFilterIsACheck: a statement touches rows that the user sees only, and makes
// rows that the user sees only.
func TestRowFilterIsACheck(t *testing.T) {
	f, eve := people(t)
	before, err := query(f.sue, whole)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"INSERT INTO people VALUES (4, 'Dora', 'US', 1)",
		"INSERT INTO people VALUES (4, 'Dora', 'EU', 1), (5, 'Ed', 'US', 1)",
		"INSERT INTO people (id) VALUES (4)",
		"INSERT INTO people SELECT id + 10, 'x', 'US', n FROM people",
		"UPDATE people SET region = 'US' WHERE id = 1",
		"UPDATE people SET region = NULL",
		"MERGE INTO people p USING (SELECT 1 AS id) s ON p.id = s.id WHEN MATCHED THEN UPDATE SET region = 'US'",
		"MERGE INTO people p USING (SELECT 9 AS id) s ON p.id = s.id WHEN NOT MATCHED THEN INSERT (id, region) VALUES (s.id, 'US')",
		"TRUNCATE TABLE people",
		"INSERT OVERWRITE people SELECT 1, 'x', 'EU', 2",
	} {
		files := f.files()
		refused(t, eve, text, fault.Denied)
		must(t, f.sue, whole, before)
		if now := f.files(); !slices.Equal(files, now) {
			t.Errorf("%s left files: %v", text, now)
		}
	}
	// The hidden row is neither changed nor counted.
	for _, x := range []struct {
		text string
		want uint64
	}{
		{"UPDATE people SET n = n + 1", 2},
		{"UPDATE people SET n = 0 WHERE id = 3", 0},
		{"DELETE FROM people WHERE id = 3", 0},
		{"MERGE INTO people p USING (SELECT 3 AS id) s ON p.id = s.id WHEN MATCHED THEN DELETE", 0},
		{"MERGE INTO people p USING (SELECT 1 AS id) s ON p.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE", 1},
		{"INSERT INTO people VALUES (4, 'Dora', 'EU', 1)", 1},
		{"UPDATE people SET region = 'EU' WHERE id = 4", 1},
	} {
		res, _, err := eve.Query(t.Context(), x.text)
		if err != nil || res.Affected != x.want {
			t.Errorf("%s: %+v, %v, want %d rows", x.text, res, err, x.want)
		}
	}
	must(t, f.sue, whole, "1|Anna|EU|11\n3|Cleo|US|30\n4|Dora|EU|1")
	f.do(eve, "DELETE FROM people")
	must(t, f.sue, whole, "3|Cleo|US|30")
	// The same statements of somebody without a filter.
	f.do(f.sue, "INSERT INTO people VALUES (4, 'Dora', 'US', 1)")
	f.do(f.sue, "UPDATE people SET region = 'CH' WHERE id = 3")
	must(t, f.sue, whole, "3|Cleo|CH|30\n4|Dora|US|1")
	f.do(f.sue, "TRUNCATE TABLE people")
	must(t, f.sue, whole, "")
}

// TestNoMaskIsWritten: what a statement does not assign stays raw, and what it
// computes, it computes from what the user sees.
func TestNoMaskIsWritten(t *testing.T) {
	f, eve := people(t)
	for _, text := range []string{
		"UPDATE people SET name = name",
		"UPDATE people SET name = upper(name) WHERE id = 1",
		"UPDATE people SET name = (SELECT max(p.name) FROM people p)",
		"INSERT INTO people SELECT * FROM people",
		"INSERT INTO people (id, name, region) SELECT id, concat(name, 'x'), 'EU' FROM people",
		"MERGE INTO people p USING people s ON p.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name",
		"MERGE INTO people p USING (SELECT id + 10 AS id, name AS label FROM people) s ON p.id = s.id WHEN NOT MATCHED THEN INSERT (id, name, region) VALUES (s.id, s.label, 'EU')",
	} {
		refused(t, eve, text, fault.Denied)
		must(t, f.sue, whole, "1|Anna|EU|10\n2|Bert|EU|20\n3|Cleo|US|30")
	}
	f.do(eve, "UPDATE people SET n = n + 1")
	f.do(eve, "MERGE INTO people p USING (SELECT 1 AS id) s ON p.id = s.id WHEN MATCHED THEN UPDATE SET n = 0")
	f.do(eve, "UPDATE people SET name = 'New' WHERE name = 'B***'")
	f.do(eve, "DELETE FROM people WHERE name = 'Anna'") // she sees no such name
	must(t, f.sue, whole, "1|Anna|EU|0\n2|New|EU|21\n3|Cleo|US|30")
	f.do(eve, "CREATE TABLE seen AS SELECT * FROM people")
	must(t, f.sue, "SELECT * FROM seen ORDER BY id", "1|A***|EU|0\n2|N***|EU|21")
	f.do(eve, "CREATE TABLE other (name STRING)")
	f.do(eve, "INSERT INTO other SELECT name FROM people")
	f.do(eve, "UPDATE other SET name = (SELECT max(name) FROM people) WHERE name = 'A***'")
	must(t, f.sue, "SELECT * FROM other ORDER BY name", "N***\nN***")
	f.do(f.sue, "UPDATE people SET name = lower(name)")
	must(t, f.sue, whole, "1|anna|EU|0\n2|new|EU|21\n3|cleo|US|30")
}

// TestNothingIsUnveiled: no statement makes a policy show, or tell of, a value that it
// hides from the user and that the statement keeps.
func TestNothingIsUnveiled(t *testing.T) {
	f, eve := people(t)
	restrict := f.gate.state.restrict
	f.gate.state.restrict = func(p identity.Principal, t *plan.Table) *policy.Restrictions {
		r := restrict(p, t)
		if p.Name != "eve" {
			return r
		}
		origin := policy.Origin{Source: "gate", Policy: "more", ID: 3}
		switch t.Name.Name {
		case "agreed": // the mask looks at another column
			r.Columns[column(t, "phone")] = policy.ColumnRule{Kind: policy.Mask, Action: "CUSTOM", SQL: "CASE WHEN consent THEN phone END", Origin: origin}
		case "guessed": // the filter looks at a masked column
			r.Filters = []policy.RowFilter{{SQL: "region = 'EU' OR ssn = guess", Origin: origin}}
			r.Columns[column(t, "ssn")] = policy.ColumnRule{Kind: policy.Mask, Action: "MASK", Origin: origin}
		case "parts", "twice", "buckets": // what decides the partition is masked
			r.Columns[column(t, "secret")] = policy.ColumnRule{Kind: policy.Mask, Action: "MASK_NULL", Origin: origin}
		}
		return r
	}
	for _, text := range []string{
		"CREATE TABLE agreed (id BIGINT, phone STRING, consent BOOLEAN)", "INSERT INTO agreed VALUES (1, '555-1', FALSE), (2, '555-2', TRUE)",
		"CREATE TABLE guessed (id BIGINT, ssn STRING, guess STRING, region STRING, n INT)", "INSERT INTO guessed VALUES (1, '123', 'x', 'EU', 0)",
		"CREATE TABLE parts (id BIGINT, secret STRING) PARTITIONED BY (secret)", "INSERT INTO parts VALUES (1, 'anna'), (2, 'bert')",
		"CREATE TABLE twice (id BIGINT, k INT, secret STRING) PARTITIONED BY (k, secret)", "INSERT INTO twice VALUES (1, 1, 'anna'), (2, 1, 'bert')",
		"CREATE TABLE buckets (id BIGINT, k INT, secret STRING) PARTITIONED BY (k, BUCKET(4, secret))", "INSERT INTO buckets VALUES (1, 1, 'anna'), (2, 1, 'bert')",
	} {
		f.do(f.sue, text)
	}
	for table, texts := range map[string][]string{
		"agreed": {
			"UPDATE agreed SET consent = TRUE", "UPDATE agreed SET consent = TRUE, id = 7 WHERE id = 1",
			"MERGE INTO agreed a USING (SELECT 1 AS id) s ON a.id = s.id WHEN MATCHED AND a.id = 0 THEN UPDATE SET phone = '1', consent = TRUE WHEN MATCHED THEN UPDATE SET consent = TRUE",
			"MERGE INTO agreed a USING (SELECT 9 AS id) s ON a.id = s.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET consent = TRUE",
		},
		"guessed": {
			"UPDATE guessed SET guess = '123', region = 'US'", "UPDATE guessed SET guess = '124', region = 'US'", "UPDATE guessed SET region = 'US'",
			"MERGE INTO guessed g USING (SELECT 1 AS id) s ON g.id = s.id WHEN MATCHED THEN UPDATE SET guess = '123', region = 'US'",
		},
		"parts": {
			"INSERT OVERWRITE parts PARTITION (secret = 'anna') (id) SELECT 3", "INSERT OVERWRITE parts PARTITION (secret = 'anna') (id) SELECT id FROM parts WHERE FALSE",
			"INSERT OVERWRITE parts PARTITION (secret) SELECT 3, 'anna'",
		},
		"twice": {
			"INSERT OVERWRITE twice PARTITION (k = 1) (id, secret) SELECT 3, 'anna'", "INSERT OVERWRITE twice PARTITION (k) SELECT 3, 1, 'anna'",
		},
		"buckets": {"INSERT OVERWRITE buckets PARTITION (k) SELECT 3, 1, 'anna'"},
	} {
		before, err := query(f.sue, "SELECT * FROM "+table+" ORDER BY id")
		if err != nil {
			t.Fatal(err)
		}
		files := f.files()
		for _, text := range texts {
			refused(t, eve, text, fault.Denied)
			must(t, f.sue, "SELECT * FROM "+table+" ORDER BY id", before)
		}
		if now := f.files(); !slices.Equal(files, now) {
			t.Errorf("%s: files were left: %v", table, now)
		}
	}
	// What tells nothing is free.
	f.do(eve, "UPDATE agreed SET id = id + 10")
	f.do(eve, "UPDATE agreed SET phone = 'own', consent = TRUE WHERE id = 11")
	must(t, eve, "SELECT * FROM agreed ORDER BY id", "11|own|true\n12|555-2|true")
	f.do(eve, "UPDATE guessed SET n = n + 1")
	f.do(eve, "UPDATE guessed SET ssn = '7', guess = '7', region = 'US'")
	must(t, f.sue, "SELECT * FROM guessed", "1|7|7|US|1")
	f.do(eve, "INSERT OVERWRITE parts SELECT 5, 'eve'")
	must(t, f.sue, "SELECT * FROM parts", "5|eve")
	// Who sees the columns may.
	f.do(f.sue, "UPDATE agreed SET consent = FALSE")
	f.do(f.sue, "UPDATE guessed SET region = 'EU'")
	f.do(f.sue, "INSERT OVERWRITE parts PARTITION (secret = 'eve') (id) SELECT 6")
	must(t, f.sue, "SELECT * FROM parts", "6|eve")
	f.do(f.sue, "INSERT OVERWRITE twice PARTITION (k) SELECT 3, 1, 'anna'")
	must(t, f.sue, "SELECT * FROM twice ORDER BY id", "2|1|bert\n3|1|anna")
}

// TestOrderOfFiles: what a user writes is not put in the order of a column that is
// masked for the user: rows of the user's own would show where the others stand.
func TestOrderOfFiles(t *testing.T) {
	f, eve := people(t)
	restrict := f.gate.state.restrict
	f.gate.state.restrict = func(p identity.Principal, t *plan.Table) *policy.Restrictions {
		r := restrict(p, t)
		if t.Name.Name == "sorted" && p.Name == "eve" {
			r.Columns[column(t, "secret")] = policy.ColumnRule{Kind: policy.Mask, Action: "MASK_NULL", Origin: policy.Origin{Source: "gate", Policy: "secret", ID: 3}}
		}
		return r
	}
	for _, mode := range []string{"copy-on-write", "merge-on-read"} {
		for _, change := range []string{
			"UPDATE sorted SET n = n + 1", "MERGE INTO sorted t USING sorted s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n + 1",
		} {
			f.do(f.sue, "CREATE OR REPLACE TABLE sorted (id BIGINT, secret INT, n INT) SORTED BY (secret) TBLPROPERTIES ('write.update.mode' = '"+mode+"', 'write.merge.mode' = '"+mode+"')")
			f.do(f.sue, "INSERT INTO sorted VALUES (1, 5000, 0), (2, 3000, 0), (3, 9000, 0)")
			f.do(eve, "INSERT INTO sorted VALUES (10, 6000, 0), (11, 4000, 0), (12, 8000, 0)")
			f.do(eve, change)
			must(t, f.sue, "SELECT COUNT(*) FROM sorted WHERE n = 1", "6")
			if got, err := query(eve, "SELECT id FROM sorted"); err != nil || got == "2\n11\n1\n10\n12\n3" {
				t.Errorf("%s, %s: the rows are in the order of what is hidden: %s, %v", mode, change, got, err)
			}
			f.do(f.sue, change)
			must(t, f.sue, "SELECT id FROM sorted", "2\n11\n1\n10\n12\n3")
		}
	}
}

// TestExplainOfChanges: the plan of a change tells an ordinary user nothing of policies,
// nor of tables that only a policy may read.
func TestExplainOfChanges(t *testing.T) {
	f, eve := people(t)
	f.do(f.sue, "CREATE TABLE hidden (home STRING, whose STRING)")
	f.gate.revoke("eve", "bank.*", "table-list", "table-data-read", "table-data-write")
	f.may("eve", "bank.people", "table-list table-data-read table-data-write")
	restrict := f.gate.state.restrict
	f.gate.state.restrict = func(p identity.Principal, t *plan.Table) *policy.Restrictions {
		r := restrict(p, t)
		if t.Name.Name == "people" && p.Name != "sue" {
			r.Filters = []policy.RowFilter{{SQL: "region IN (SELECT home FROM bank.hidden WHERE whose = 'whoever')", Origin: policy.Origin{Source: "gate", Policy: "rows", ID: 1}}}
		}
		return r
	}
	root, err := f.Open(identity.Principal{Name: "root", Admin: true}, engine.ConnInfo{ID: 10, RemoteAddr: "test", Database: "bank"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(root.Close)
	for _, text := range []string{
		"INSERT INTO people VALUES (4, 'Dora', 'EU', 1)", "INSERT INTO people SELECT id, 'x', region, n FROM people", "UPDATE people SET n = 1", "DELETE FROM people",
		"MERGE INTO people p USING (SELECT 1 AS id) s ON p.id = s.id WHEN MATCHED THEN UPDATE SET n = 0 WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
	} {
		got, err := query(eve, "EXPLAIN "+text)
		if err != nil || !strings.Contains(got, "people") {
			t.Errorf("%s: %s, %v", text, got, err)
		}
		for _, secret := range []string{"hidden", "whose", "home", "is_true", "definer", "permitted"} {
			if strings.Contains(got, secret) {
				t.Errorf("%s: the plan tells of %s:\n%s", text, secret, got)
			}
		}
		if all, err := query(root, "EXPLAIN "+text); err != nil || !strings.Contains(all, "hidden") {
			t.Errorf("%s: an administrator sees %s, %v", text, all, err)
		}
	}
}

// TestWritesNeedRights: each statement asks before anything is staged, and whoever
// may not see the table learns nothing of it.
func TestWritesNeedRights(t *testing.T) {
	f, _ := people(t)
	f.do(f.sue, "CREATE TABLE own (id BIGINT, name STRING, region STRING, n INT)")
	statements := []string{
		"INSERT INTO people VALUES (4, 'Dora', 'EU', 1)", "INSERT INTO people DEFAULT VALUES", "INSERT OVERWRITE people SELECT 1, 'x', 'EU', 2", "UPDATE people SET n = 1",
		"DELETE FROM people", "MERGE INTO people p USING (SELECT 1 AS id) s ON p.id = s.id WHEN MATCHED THEN DELETE", "TRUNCATE TABLE people",
	}
	before, err := query(f.sue, whole)
	if err != nil {
		t.Fatal(err)
	}
	files := f.files()
	for _, text := range statements {
		err := refused(t, f.nobody, text, fault.NotFound)
		none := refused(t, f.nobody, strings.ReplaceAll(text, "people", "missing"), fault.NotFound)
		if strings.ReplaceAll(err.Error(), "people", "missing") != none.Error() {
			t.Errorf("%s: %v, for a table that is not there: %v", text, err, none)
		}
		f.may("bob", "bank.people", "table-list table-data-read")
		refused(t, f.bob, text, fault.Denied)
		f.gate.revoke("bob", "bank.people", "table-data-read")
		f.may("bob", "bank.people", "table-data-write")
		refused(t, f.bob, text, fault.Denied)
		f.gate.revoke("bob", "bank.people", "table-data-write")
		if e := f.journal.last(); e.Kind != "write" || len(e.Denials) == 0 {
			t.Errorf("%s: %+v", text, e)
		}
	}
	// What is read inside is governed like a query.
	f.may("bob", "bank.own", "table-list table-data-read table-data-write")
	f.gate.revoke("bob", "bank.people", "table-list")
	for _, text := range []string{
		"INSERT INTO own SELECT * FROM people", "INSERT INTO own (id) VALUES ((SELECT max(id) FROM people))", "UPDATE own SET n = (SELECT max(n) FROM people)",
		"DELETE FROM own WHERE id IN (SELECT id FROM people)", "MERGE INTO own o USING people p ON o.id = p.id WHEN NOT MATCHED THEN INSERT *",
		"CREATE TABLE seen AS SELECT * FROM people",
	} {
		if _, err := query(f.bob, text); !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Denied) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if now := f.files(); !slices.Equal(files, now) {
		t.Errorf("files were left: %v", now)
	}
	must(t, f.sue, whole, before)
	must(t, f.sue, "SELECT COUNT(*) FROM own", "0")
	f.may("bob", "bank.people", "table-list table-data-read table-data-write")
	for _, text := range statements {
		f.do(f.bob, text)
		if e := f.journal.last(); e.Kind != "write" || e.Outcome != "ok" || len(e.Changes) != 1 {
			t.Errorf("%s: %+v", text, e)
		}
	}
}

// files are the data files below the warehouse.
func (f *ddlFixture) files() []string {
	f.t.Helper()
	var out []string
	err := filepath.WalkDir(f.warehouse, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return out
}

// TestLayoutOfMasked: nobody lets a column decide where rows stand whose values are
// masked for them.
func TestLayoutOfMasked(t *testing.T) {
	f, eve := people(t)
	f.may("eve", "bank.people", "table-partition-spec-add table-sort-order-add table-sort-order-set-default")
	for _, by := range []string{"name", "TRUNCATE(1, name)", "BUCKET(4, name)"} {
		for _, text := range []string{"ADD PARTITION FIELD " + by, "WRITE ORDERED BY n, " + by} {
			refused(t, eve, "ALTER TABLE people "+text, fault.Denied)
		}
	}
	f.do(eve, "ALTER TABLE people ADD PARTITION FIELD BUCKET(4, n)")
	refused(t, eve, "ALTER TABLE people REPLACE PARTITION FIELD BUCKET(4, n) WITH name", fault.Denied)
	f.do(eve, "ALTER TABLE people WRITE ORDERED BY n DESC")
	f.do(f.sue, "ALTER TABLE people REPLACE PARTITION FIELD BUCKET(4, n) WITH BUCKET(4, name)")
	f.do(f.sue, "ALTER TABLE people WRITE ORDERED BY name")
	must(t, f.sue, whole, "1|Anna|EU|10\n2|Bert|EU|20\n3|Cleo|US|30")
}
