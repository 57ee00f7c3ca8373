package checks

import (
	"strings"
	"testing"
)

// house lists every package of the product, which packages of ours it may import
// (itself and what lies below a listed folder included), and why no more.
// Packages under tests/ are outside: nothing imports them, they may import all.
var house = []struct {
	pkg     string
	may     string // folders, separated by blanks; "*" is everything
	because string
}{
	{"plan", "", "the plan is the vocabulary of everything: a dependency here is a dependency everywhere"},
	{"fault", "", "every package returns faults, so it can import none"},
	{"identity", "fault", "who somebody is does not depend on what they ask"},
	{"policy", "plan identity fault", "the model of policies knows no source, no mask and no engine"},
	{"grants", "policy identity fault", "which policies a grant means is a pure question; who asks it writes them"},
	{"masks", "plan fault", "a mask is an expression of the plan and nothing else"},
	{"rewrite", "plan policy masks fault", "the rewriter is a pure function: what it imports is what must be trusted"},
	{"transform", "", "definitions that executors and tests share"},
	{"restrictions", "plan policy masks", "the language of Iceberg's read-restrictions ends here: it compiles into package policy"},
	{"rangerclient", "plan policy grants identity fault", "Ranger's language ends here: it compiles into package policy"},
	{"policystore", "rangerclient/model rangerclient/admin rangerclient/servicedef rangerclient/eval identity fault", "it keeps Ranger's documents and hands them out; who may see what is decided where they are evaluated"},
	{"audit", "policy identity fault", "an event is a record of what was decided, not of how a statement runs"},
	{"catalog", "plan identity fault", "a catalog decides nothing about access"},
	{"catalog/rest", "identity fault", "a protocol: what its answers mean for tables and users is said in catalog"},
	{"catalog/objects", "", "bytes of objects: which may be read is decided where they are named"},
	{"config", "fault", "values only: cmd wires them"},
	{"engine/parse", "plan fault", "grammar only: no names are resolved here"},
	{"engine/scan", "plan catalog identity fault", "which files hold the rows of a governed scan; it must not know policies"},
	{"engine/importfile", "plan fault", "it reads files that anybody may have made: it must know no table and no policy"},
	{"engine/write", "plan catalog engine/scan identity fault", "it puts rows of governed plans into tables; it must not know policies, nor be able to make a plan"},
	{"engine/bind", "plan catalog engine/parse identity fault", "binding sees schemas and names, never rows or policies; the engine asks the gates"},
	{"engine/duck", "plan masks transform engine/scan fault", "it runs governed plans and must not be able to make one"},
	{"engine", "plan policy grants masks rewrite restrictions catalog audit engine/parse engine/bind engine/duck engine/scan engine/importfile engine/write identity fault", "the way of a statement; it knows no server, no configuration and no policy language"},
	{"ops", "policy fault", "metrics and health: numbers about statements, never their data"},
	{"server", "plan engine config identity fault", "the protocol sees sessions and results of the engine and nothing below it"},
	{"demo/data", "plan catalog fault", "sample tables: files that any engine could have written"},
	{"demo/policies", "rangerclient/model rangerclient/admin", "sample policies: the documents of a Ranger, not a way around one"},
	{"cmd/sqe", "*", "wiring"},
	{"checks", "", "rules about the source tree"},
}

func TestImportsOfOurs(t *testing.T) {
	for _, p := range ours(t) {
		name := local(p.ImportPath)
		if under(name, "tests") {
			continue
		}
		at, found := 0, ""
		for i, h := range house {
			// The most specific entry speaks: engine/duck before engine.
			if under(name, h.pkg) && len(h.pkg) > len(found) {
				at, found = i, h.pkg
			}
		}
		if found == "" {
			t.Errorf("package %s is not in the list of the house: add it to checks/imports_test.go with what it may import and why no more", name)
			continue
		}
		h := house[at]
		for _, imp := range p.Imports {
			if !under(imp, module) {
				continue
			}
			other := local(imp)
			allowed := h.may == "*" || under(other, h.pkg)
			for _, m := range strings.Fields(h.may) {
				// "engine" allows the package engine, not the packages below it.
				allowed = allowed || other == m || (m != "engine" && under(other, m))
			}
			if !allowed {
				t.Errorf("%s imports %s, and may import only [%s]: %s", name, other, h.may, h.because)
			}
		}
	}
}

// fences say which packages may import a library (and what lies below its path).
var fences = []struct {
	library string
	only    string
	because string
}{
	{"github.com/dolthub/go-mysql-server", "engine/bind", "its row executor reads whatever table it is given: only governed rows may reach it"},
	{"github.com/dolthub/vitess", "engine/bind engine/parse", "MySQL's grammar ends at the edge; inside there is the plan"},
	{"github.com/duckdb/duckdb-go", "engine/duck tests/tpch", "only text of our compiler may reach DuckDB, in an instance that is locked down"},
	{"github.com/duckdb/duckdb-go-bindings", "engine/duck", "as duckdb-go"},
	{"github.com/apache/iceberg-go", "catalog engine/scan engine/write demo tests", "raw files are planned in one place, under a guard"},
	{"github.com/twmb/avro", "catalog", "manifest lists are mended in one place"},
	{"github.com/aws", "catalog/objects", "credentials of stores are in one place"},
	{"github.com/go-sql-driver/mysql", "cmd/sqe demo tests", "a client: the server must not call itself"},
	{"github.com/BurntSushi/toml", "config", "one place reads configuration"},
	{"github.com/prometheus", "ops cmd/sqe", "metrics hold no data values: few may write them"},
	{"github.com/peterh/liner", "cmd/sqe", "a terminal is the client's"},
	{"github.com/jackc/pgx", "catalog tests", "a catalog in PostgreSQL"},
	{"modernc.org/sqlite", "catalog policystore demo tests", "the embedded catalog and the embedded policy store"},
	{"golang.org/x/crypto", "identity", "password hashes"},
	{"github.com/coreos/go-oidc", "identity/oidc", "tokens are verified in one place"},
	{"github.com/go-jose/go-jose", "identity/oidc", "as go-oidc"},
	{"golang.org/x/oauth2", "identity/oidc", "tokens are asked for in one place"},
	{"net/http", "audit catalog identity/oidc ops policystore rangerclient cmd/sqe tests", "nothing between the parser and the executor may talk to a network"},
}

func TestImportsOfLibraries(t *testing.T) {
	for _, p := range ours(t) {
		name := local(p.ImportPath)
		for _, imp := range p.Imports {
			for _, f := range fences {
				if !under(imp, f.library) && !strings.HasPrefix(imp, f.library+"/") {
					continue
				}
				allowed := false
				for _, o := range strings.Fields(f.only) {
					allowed = allowed || under(name, o)
				}
				if !allowed {
					t.Errorf("%s imports %s, which only [%s] may: %s", name, imp, f.only, f.because)
				}
			}
		}
	}
}

// TestPure holds the packages that decide about access to what they, and what of
// ours they build upon, may import: no network, no SQL library, no data files.
func TestPure(t *testing.T) {
	forbidden := []string{
		"net/http", "os/exec", "database/sql", "github.com/dolthub/go-mysql-server", "github.com/dolthub/vitess",
		"github.com/duckdb", "github.com/apache/iceberg-go", "modernc.org/sqlite",
	}
	pure := []string{"plan", "policy", "grants", "masks", "rewrite", "restrictions", "transform", "identity", "fault"}
	byPath := map[string]goPackage{}
	for _, p := range ours(t) {
		byPath[p.ImportPath] = p
	}
	for _, name := range pure {
		p, ok := byPath[module+"/"+name]
		if !ok {
			t.Errorf("there is no package %s", name)
			continue
		}
		for _, dep := range append(p.Deps, p.ImportPath) {
			for _, imp := range byPath[dep].Imports {
				for _, f := range forbidden {
					if under(imp, f) {
						t.Errorf("%s imports %s, on the way from %s: what decides about access is pure, so that its tests are the whole truth about it", local(dep), imp, name)
					}
				}
			}
		}
	}
}

// TestRangerLanguage: the documents of Ranger are understood in one place.
func TestRangerLanguage(t *testing.T) {
	for _, f := range tracked(t) {
		if !strings.HasSuffix(f.path, ".go") || strings.HasSuffix(f.path, "_test.go") || under(f.path, "rangerclient") || under(f.path, "policystore") || under(f.path, "demo/policies") || under(f.path, "checks") || under(f.path, "tests") {
			continue
		}
		for _, word := range []string{"dataMaskPolicyItems", "rowFilterPolicyItems", "policyItems"} {
			if strings.Contains(string(f.text), word) {
				t.Errorf("%s names Ranger's %q: only rangerclient knows its JSON, everything else sees package policy", f.path, word)
			}
		}
	}
}

func ours(t *testing.T) []goPackage {
	t.Helper()
	dir, err := root()
	if err != nil {
		t.Fatal(err)
	}
	list, err := packages(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 5 {
		t.Fatalf("only %d packages found: the rules would hold of nothing", len(list))
	}
	return list
}

func tracked(t *testing.T) []trackedFile {
	t.Helper()
	dir, err := root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := trackedFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("only %d files found: the rules would hold of nothing", len(files))
	}
	return files
}
