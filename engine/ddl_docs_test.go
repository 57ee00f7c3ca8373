package engine_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sqe/engine/parse"
)

func manual(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/sql.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// between is what stands between two texts.
func between(t *testing.T, text, from, to string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, from)
	out, _, ok2 := strings.Cut(rest, to)
	if !ok || !ok2 {
		t.Fatalf("the manual has no %q before %q", from, to)
	}
	return out
}

// forms are the rows of the manual's table of rights, with the statements that they
// are about; the first that matches counts.
var forms = []struct{ statement, row string }{
	{"^CREATE SCHEMA", "`CREATE SCHEMA`"},
	{"^ALTER SCHEMA", "`ALTER SCHEMA`"},
	{"^DROP SCHEMA", "`DROP SCHEMA`"},
	{"^CREATE TABLE .* AS SELECT", "`CREATE TABLE ... AS`"},
	{"^(INSERT|UPDATE|DELETE|MERGE|TRUNCATE) ", "`INSERT`, `UPDATE`, `DELETE`, `MERGE`, `TRUNCATE`"},
	{"^CREATE TABLE .* LIKE", "`CREATE TABLE ... LIKE`"},
	{"^CREATE TABLE", "`CREATE TABLE`"},
	{"^CREATE OR REPLACE TABLE", "`CREATE OR REPLACE TABLE`"},
	{"PARTITION FIELD", "`ALTER TABLE ... PARTITION FIELD`"},
	{"WRITE ORDERED", "`ALTER TABLE ... WRITE`"},
	{"^ALTER TABLE .* UNSET TBLPROPERTIES", "`ALTER TABLE ... UNSET TBLPROPERTIES`"},
	{"^ALTER TABLE .* SET TBLPROPERTIES|^ALTER TABLE [^ ]* COMMENT", "`ALTER TABLE ... SET TBLPROPERTIES`, `COMMENT`"},
	{"CREATE (BRANCH|TAG)", "`ALTER TABLE ... CREATE`, `REPLACE` of a branch or tag"},
	{"DROP (BRANCH|TAG)", "`ALTER TABLE ... DROP` of a branch or tag"},
	{"^CALL system.expire", "`CALL system.expire_snapshots`"},
	{"^CALL system.rewrite", "`CALL system.rewrite_data_files`, `rewrite_manifests`"},
	{"^CALL system.remove", "`CALL system.remove_orphan_files`"},
	{"^CALL", "`CALL system.rollback_to_...`, `set_current_snapshot`"},
	{"^RENAME TABLE|^ALTER TABLE .* RENAME TO", "`RENAME TABLE`, `ALTER TABLE ... RENAME TO`"},
	{"^ALTER TABLE", "`ALTER TABLE` of columns and identifier fields"},
	{"PURGE$", "`DROP TABLE ... PURGE`"},
	{"^DROP TABLE", "`DROP TABLE`"},
	{"^CREATE VIEW", "`CREATE VIEW`"},
	{"^CREATE OR REPLACE VIEW", "`CREATE OR REPLACE VIEW`"},
	{"^ALTER VIEW .* RENAME TO", "`ALTER VIEW ... RENAME TO`, `RENAME TABLE` of a view"},
	{"^ALTER VIEW", "`ALTER VIEW`"},
	{"^DROP VIEW", "`DROP VIEW`"},
}

// TestDocumentedRights: the manual names for each statement the rights that
// TestRightsOfStatements found, all of which Ranger's service polaris has.
func TestDocumentedRights(t *testing.T) {
	text, err := os.ReadFile("../rangerclient/servicedef/polaris.json")
	if err != nil {
		t.Fatal(err)
	}
	var service struct {
		AccessTypes []struct{ Name string } `json:"accessTypes"`
	}
	if err := json.Unmarshal(text, &service); err != nil || len(service.AccessTypes) < 60 {
		t.Fatalf("%d access types, %v", len(service.AccessTypes), err)
	}
	asked := map[string][]string{}
	for _, x := range rightsOfStatements {
		row := ""
		for _, f := range forms {
			if row == "" && regexp.MustCompile(f.statement).MatchString(x.statement) {
				row = f.row
			}
		}
		for _, r := range strings.Split(x.rights, ", ") {
			right, _, _ := strings.Cut(r, " ")
			asked[row] = append(asked[row], right)
		}
	}
	documented := map[string][]string{}
	for line := range strings.Lines(between(t, manual(t), "<!-- rights -->\n", "<!-- end rights -->")) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		row := strings.TrimSpace(cells[0])
		if len(cells) != 2 || !strings.HasPrefix(row, "`") {
			continue
		}
		for _, m := range regexp.MustCompile("`((?:table|view|namespace)-[a-z-]+)`").FindAllStringSubmatch(cells[1], -1) {
			documented[row] = append(documented[row], m[1])
			if !slices.ContainsFunc(service.AccessTypes, func(a struct{ Name string }) bool { return a.Name == m[1] }) {
				t.Errorf("%s: the service polaris has no access type %s", row, m[1])
			}
		}
	}
	for _, f := range forms {
		a, d := asked[f.row], documented[f.row]
		slices.Sort(a)
		slices.Sort(d)
		if a, d = slices.Compact(a), slices.Compact(d); !slices.Equal(a, d) || len(a) == 0 {
			t.Errorf("%s\nasks for %v\nthe manual says %v", f.row, a, d)
		}
		delete(documented, f.row)
	}
	for row := range documented {
		t.Errorf("the manual has a row %s that no statement is tested for", row)
	}
}

// TestDocumentedDefinitions: the examples of the manual run, one after the other.
func TestDocumentedDefinitions(t *testing.T) {
	f := openDDL(t)
	section := between(t, manual(t), "## Schemas, tables and views\n", "\n## ")
	blocks := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(section, -1)
	n := 0
	for _, b := range blocks {
		for rest := b[1]; strings.TrimSpace(rest) != ""; n++ {
			text := rest
			_, after, err := parse.Parse(text)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			f.do(f.root, strings.TrimSuffix(strings.TrimSpace(text[:len(text)-len(after)]), ";"))
			rest = after
		}
	}
	if n < 35 {
		t.Errorf("%d examples ran", n)
	}
}
