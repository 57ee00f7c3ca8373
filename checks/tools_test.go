package checks

import (
	"bytes"
	"context"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// The tools run as `go run pkg@version`, so that go.mod lists what the product
// needs and nothing else.
const (
	gofumpt     = "mvdan.cc/gofumpt@v0.12.0"
	staticcheck = "honnef.co/go/tools/cmd/staticcheck@v0.8.2"
	govulncheck = "golang.org/x/vuln/cmd/govulncheck@v1.9.0"
)

// run runs a command at the root and returns what it printed.
func run(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	dir, err := root()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.String(), err
}

func TestFormat(t *testing.T) {
	out, err := run(t, "go", "run", gofumpt, "-l", ".")
	if err != nil {
		t.Fatalf("gofumpt: %v\n%s", err, out)
	}
	for _, line := range strings.Split(out, "\n") {
		if strings.HasSuffix(line, ".go") {
			t.Errorf("%s is not formatted; run: go run %s -w .", line, gofumpt)
		}
	}
}

func TestVet(t *testing.T) {
	if out, err := run(t, "go", "vet", "-tags", "duckdb_arrow,e2e", "./..."); err != nil {
		t.Fatalf("go vet: %v\n%s", err, out)
	}
}

func TestStaticcheck(t *testing.T) {
	if out, err := run(t, "go", "run", staticcheck, "-tags", "duckdb_arrow,e2e", "./..."); err != nil {
		t.Fatalf("staticcheck: %v\n%s", err, out)
	}
}

// TestVulnerabilities asks the database of known vulnerabilities, where the
// machine can reach it: many builds run without a way out.
func TestVulnerabilities(t *testing.T) {
	c, err := net.DialTimeout("tcp", "vuln.go.dev:443", 3*time.Second)
	if err != nil {
		t.Log("the vulnerability database cannot be reached from here; govulncheck did not run")
		return
	}
	_ = c.Close()
	if out, err := run(t, "go", "run", govulncheck, "-tags", "duckdb_arrow", "./..."); err != nil {
		t.Fatalf("govulncheck: %v\n%s", err, out)
	}
}
