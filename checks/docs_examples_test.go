package checks

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sqe/engine/parse"
	"sqe/identity"
	"sqe/masks"
	"sqe/plan"
	"sqe/policy"
	"sqe/rangerclient"
)

// TestPolicyDocuments: the documents that docs/policies.md shows are a policy
// folder that works as the page says.
func TestPolicyDocuments(t *testing.T) {
	text := page(t, "docs/policies.md")
	dir := t.TempDir()
	shown := regexp.MustCompile("(?s)### \\w[^\n]*`(\\w+\\.json)`\n\n```json\n(.*?)```").FindAllStringSubmatch(text, -1)
	if len(shown) != 5 {
		t.Fatalf("%d documents, want 5", len(shown))
	}
	for _, m := range shown {
		if err := os.WriteFile(filepath.Join(dir, m[1]), []byte(m[2]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	src, err := rangerclient.OpenFolder(rangerclient.FolderConfig{Name: "page", Dir: dir, PolarisService: "polaris", DataService: "hive"})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	state, err := src.State()
	if err != nil {
		t.Fatalf("%v; %s", err, src.Status().LastError)
	}
	if p := src.Status().Problems; len(p) > 0 {
		t.Errorf("problems: %v", p)
	}
	table := &plan.Table{Name: plan.TableName{Catalog: "lake", Namespace: []string{"shop"}, Name: "orders"}, Fields: []plan.Field{
		{ID: 1, Name: "id", Type: plan.Int64}, {ID: 2, Name: "region", Type: plan.String}, {ID: 4, Name: "card", Type: plan.String},
	}}
	sam, other := identity.Principal{Name: "sam"}, identity.Principal{Name: "other"}
	object := policy.TableObject(table.Name)
	if !state.Authorize(sam, object, policy.TableDataRead).Allow {
		t.Error("sam holds the role sales and may not read the table")
	}
	if state.Authorize(other, object, policy.TableDataRead).Allow {
		t.Error("somebody without a role may read the table")
	}
	r, err := state.Restrict(sam, table)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Filters) != 1 || r.Filters[0].SQL != "region = 'EU'" {
		t.Errorf("row filters of sam: %v", r.Filters)
	}
	if c := r.Columns[4]; c.Action != masks.ShowLast4 || len(r.Columns) != 1 {
		t.Errorf("masks of sam: %v", r.Columns)
	}
}

// TestMaskTable: the results of text masks that docs/policies.md shows are those
// of package masks.
func TestMaskTable(t *testing.T) {
	_, table, ok := strings.Cut(page(t, "docs/policies.md"), "| value | `MASK` | `MASK_SHOW_LAST_4` | `MASK_SHOW_FIRST_4` |\n")
	if !ok {
		t.Fatal("docs/policies.md has no table of masked values")
	}
	n := 0
	for _, line := range strings.Split(table, "\n") {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(line, -1)
		if len(cells) != 4 {
			continue // the rule, and the row about the empty text
		}
		n++
		for i, action := range []string{masks.Redact, masks.ShowLast4, masks.ShowFirst4} {
			got, err := masks.Apply(action, plan.Field{ID: 1, Name: "c", Type: plan.String}, cells[0][1], masks.Options{})
			if err != nil || got != cells[i+1][1] {
				t.Errorf("%s of %q is %q (%v), the page shows %q", action, cells[0][1], got, err, cells[i+1][1])
			}
		}
	}
	if n < 4 {
		t.Errorf("%d values: the search finds too little", n)
	}
}

// TestRenderingTable: likewise for the characters of peers.
func TestRenderingTable(t *testing.T) {
	_, table, ok := strings.Cut(page(t, "docs/policies.md"), "| value | mask | `\"sqe\"` | `\"trino\"` | `\"spark\"` |\n|---|---|---|---|---|\n")
	if !ok {
		t.Fatal("docs/policies.md has no table of renderings")
	}
	n := 0
	for _, line := range strings.Split(table, "\n") {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(line, -1)
		if len(cells) != 5 {
			t.Fatalf("not five cells: %s", line)
		}
		n++
		for i, rendering := range []masks.Rendering{masks.RenderSQE, masks.RenderTrino, masks.RenderSpark} {
			got, err := masks.Apply(cells[1][1], plan.Field{ID: 1, Name: "c", Type: plan.String}, cells[0][1], masks.Options{Rendering: rendering})
			if err != nil || got != cells[i+2][1] {
				t.Errorf("%s of %q for %s is %q (%v), the page shows %q", cells[1][1], cells[0][1], rendering, got, err, cells[i+2][1])
			}
		}
	}
	if n != 3 {
		t.Errorf("%d rows", n)
	}
}

// TestStatements: the SQL that pages show parses, and as what it is meant to be.
func TestStatements(t *testing.T) {
	kinds := map[string]int{}
	for _, name := range []string{"docs/sql.md", "docs/policies.md"} {
		for _, m := range regexp.MustCompile("(?s)\n```sql\n(.*?)```").FindAllStringSubmatch(page(t, name), -1) {
			for rest := m[1]; rest != ""; {
				stmt, next, err := parse.Parse(rest)
				if err != nil {
					t.Errorf("%s: %s\n%v", name, strings.TrimSpace(rest), err)
					break
				}
				kinds[fmt.Sprintf("%T", stmt)]++
				rest = next
			}
		}
	}
	for _, kind := range []string{
		"SQL", "CreatePolicy", "AlterPolicy", "DropPolicy", "ShowPolicies", "ShowCreatePolicy", "ShowMaskingPolicies", "ShowEffectivePolicy",
		"AlterTags", "AlterMaskingPolicy", "ShowTags", "ReprojectTags", "ExplainPolicy",
	} {
		if kinds["*parse."+kind] == 0 {
			t.Errorf("no page shows a %s", kind)
		}
	}
}
