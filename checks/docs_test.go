package checks

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// pages are the Markdown files of the repository.
func pages(t *testing.T) []trackedFile {
	t.Helper()
	var out []trackedFile
	for _, f := range tracked(t) {
		if strings.HasSuffix(f.path, ".md") {
			out = append(out, f)
		}
	}
	if len(out) < 8 {
		t.Fatalf("%d pages: the search finds too little", len(out))
	}
	return out
}

func page(t *testing.T, name string) string {
	t.Helper()
	for _, f := range pages(t) {
		if f.path == name {
			return string(f.text)
		}
	}
	t.Fatalf("%s is missing", name)
	return ""
}

var (
	fence   = regexp.MustCompile("(?ms)^```.*?^```")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	noWord  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are the names that the headings of a page give to links.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		name := noWord.ReplaceAllString(strings.ToLower(strings.TrimSpace(m[1])), "")
		out[strings.ReplaceAll(name, " ", "-")] = true
	}
	return out
}

// TestLinks: every relative link of a page leads to a file or folder of the
// repository, and one with an anchor to a heading.
func TestLinks(t *testing.T) {
	dir, err := root()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, f := range pages(t) {
		text := string(f.text)
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			target := m[1]
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			found++
			name, anchor, _ := strings.Cut(target, "#")
			body := text
			if name != "" {
				at := filepath.Join(dir, filepath.FromSlash(path.Join(path.Dir(f.path), name)))
				info, err := os.Stat(at)
				if err != nil {
					t.Errorf("%s: the link %s leads nowhere", f.path, target)
					continue
				}
				if anchor == "" || info.IsDir() {
					continue
				}
				b, err := os.ReadFile(at)
				if err != nil {
					t.Fatal(err)
				}
				body = string(b)
			}
			if !anchors(body)[anchor] {
				t.Errorf("%s: the link %s names a heading that is not there", f.path, target)
			}
		}
	}
	if found < 20 {
		t.Errorf("%d links: the search finds too little", found)
	}
}

// TestErrorNumbers: what the troubleshooting table explains are errors that the
// server has.
func TestErrorNumbers(t *testing.T) {
	_, table, ok := strings.Cut(page(t, "docs/quickstart.md"), "## Troubleshooting")
	if !ok {
		t.Fatal("docs/quickstart.md has no section Troubleshooting")
	}
	numbers := map[string]bool{}
	for _, f := range tracked(t) {
		if under(f.path, "server") && strings.HasSuffix(f.path, "errors.go") {
			for _, m := range regexp.MustCompile(`\{(\d{4}), "|Number: (\d{4})`).FindAllStringSubmatch(string(f.text), -1) {
				numbers[m[1]+m[2]] = true
			}
		}
	}
	rows := regexp.MustCompile(`(?m)^\| (\d{4}) \|`).FindAllStringSubmatch(table, -1)
	if len(rows) < 10 || len(numbers) < 10 {
		t.Fatalf("%d rows, %d numbers: the search finds too little", len(rows), len(numbers))
	}
	for _, m := range rows {
		if !numbers[m[1]] {
			t.Errorf("docs/quickstart.md explains error %s, which server/errors.go does not have", m[1])
		}
	}
}

// TestDependencies: each direct dependency has its reason in docs/decisions.
func TestDependencies(t *testing.T) {
	reasons := page(t, "docs/decisions/dependencies.md")
	n := 0
	for _, f := range tracked(t) {
		if f.path != "go.mod" {
			continue
		}
		for _, m := range regexp.MustCompile(`(?m)^(?:require)?\s+((?:github\.com|golang\.org|go\.uber\.org|modernc\.org|gopkg\.in)/\S+) v\S+(.*)$`).FindAllStringSubmatch(string(f.text), -1) {
			if strings.Contains(m[2], "indirect") {
				continue
			}
			n++
			name := regexp.MustCompile(`/v\d+$`).ReplaceAllString(m[1], "")
			if !strings.Contains(reasons, strings.TrimPrefix(name, "github.com/")) && !strings.Contains(reasons, path.Base(name)) {
				t.Errorf("docs/decisions/dependencies.md does not say why %s is a dependency", name)
			}
		}
	}
	if n < 10 {
		t.Errorf("%d dependencies: the search finds too little", n)
	}
}

// TestNamedTests: a test that a page names as evidence exists.
func TestNamedTests(t *testing.T) {
	exists := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	for _, f := range tracked(t) {
		if strings.HasSuffix(f.path, "_test.go") {
			for _, m := range declared.FindAllStringSubmatch(string(f.text), -1) {
				exists[m[1]] = true
			}
		}
	}
	named := 0
	for _, f := range pages(t) {
		for _, m := range regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w*)`").FindAllStringSubmatch(string(f.text), -1) {
			named++
			if !exists[m[1]] {
				t.Errorf("%s names %s, which no file declares", f.path, m[1])
			}
		}
	}
	if named < 20 {
		t.Errorf("%d tests are named: the search finds too little", named)
	}
}

// TestFunctionLists: docs/sql.md names every function that compiles, and no other
// in that list.
func TestFunctionLists(t *testing.T) {
	compiled := map[string]bool{}
	for _, f := range tracked(t) {
		if path.Dir(f.path) == "engine/bind" && strings.HasSuffix(f.path, ".go") && !strings.HasSuffix(f.path, "_test.go") {
			for _, name := range functionKeys(t, f) {
				compiled[strings.ToUpper(name)] = true
			}
		}
	}
	if len(compiled) < 50 {
		t.Fatalf("%d functions in engine/bind: the search finds too little; its tables are direct, special and constants", len(compiled))
	}
	_, list, _ := strings.Cut(page(t, "docs/sql.md"), "<!-- compiled functions -->")
	list, _, ok := strings.Cut(list, "<!-- end -->")
	if !ok {
		t.Fatal("docs/sql.md has no list of compiled functions")
	}
	shown := map[string]bool{}
	for _, m := range regexp.MustCompile("`([A-Z][A-Z0-9_]*)`").FindAllStringSubmatch(list, -1) {
		shown[m[1]] = true
		// SUBSTRING and its other names are a node of the binder, not in a table.
		if !compiled[m[1]] && !map[string]bool{"SUBSTR": true, "SUBSTRING": true, "MID": true}[m[1]] {
			t.Errorf("docs/sql.md says that %s compiles; engine/bind has no such function", m[1])
		}
	}
	for name := range compiled {
		if !shown[name] {
			t.Errorf("docs/sql.md does not list the function %s", name)
		}
	}
}

// TestRowFunctions: what docs/sql.md gives to the row executor is what the row
// executor is given.
func TestRowFunctions(t *testing.T) {
	given := map[string]bool{}
	table := regexp.MustCompile("(?s)var rowFunctions = .*?`(.*?)`")
	for _, f := range tracked(t) {
		if path.Dir(f.path) == "engine/bind" {
			if m := table.FindSubmatch(f.text); m != nil {
				for _, name := range strings.Fields(string(m[1])) {
					given[strings.ToUpper(name)] = true
				}
			}
		}
	}
	_, list, _ := strings.Cut(page(t, "docs/sql.md"), "<!-- row functions -->")
	list, _, ok := strings.Cut(list, "<!-- end rows -->")
	shown := regexp.MustCompile("`([A-Z][A-Z0-9_]*)`").FindAllStringSubmatch(list, -1)
	if !ok || len(shown) < 20 || len(given) < 20 {
		t.Fatalf("%d functions in docs/sql.md, %d in rowFunctions of engine/bind: the search finds too little", len(shown), len(given))
	}
	for _, m := range shown {
		if !given[m[1]] {
			t.Errorf("docs/sql.md says that %s runs in the row executor; rowFunctions of engine/bind does not have it", m[1])
		}
	}
}

// functionKeys are the keys of the tables of functions in a file of engine/bind.
func functionKeys(t *testing.T, f trackedFile) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), f.path, f.text, 0)
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string]bool{"direct": true, "special": true, "constants": true}
	var out []string
	keys := func(name ast.Expr, value ast.Expr) {
		id, ok := name.(*ast.Ident)
		lit, isLit := value.(*ast.CompositeLit)
		if !ok || !isLit || !tables[id.Name] {
			return
		}
		for _, e := range lit.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				if k, ok := kv.Key.(*ast.BasicLit); ok {
					if s, err := strconv.Unquote(k.Value); err == nil {
						out = append(out, s)
					}
				}
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for i, v := range n.Values {
				keys(n.Names[i], v)
			}
		case *ast.AssignStmt:
			for i, v := range n.Rhs {
				if i < len(n.Lhs) {
					keys(n.Lhs[i], v)
				}
			}
		}
		return true
	})
	return out
}
