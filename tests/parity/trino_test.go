//go:build e2e

package parity

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sqe/tests/sqetest"
)

// trino is a running Trino. It believes every user name.
type trino struct{ url string }

// startTrino starts Trino with its files in state over the catalog in warehouse,
// with its Ranger access control asking policies. It is stopped with the test.
func startTrino(t *testing.T, state, warehouse, policies, service string) trino {
	t.Helper()
	scripts := filepath.Join(sqetest.Root(), "tests", "e2e", "stack", "trino")
	port, err := sqetest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) error {
		cmd := exec.Command(filepath.Join(scripts, name), args...)
		cmd.Env = append(os.Environ(), fmt.Sprintf("SQE_TEST_OWNER=%d", os.Getpid()))
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", name, err, out)
		}
		return nil
	}
	if err := run("install"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(state, "log"))
			t.Logf("Trino's log ends with\n%s", log[max(0, len(log)-3000):])
		}
		if err := run("stop", state); err != nil {
			t.Error(err)
		}
	})
	if err := run("start", state, fmt.Sprint(port), warehouse, policies, service, pluginUser, pluginPassword); err != nil {
		t.Fatal(err)
	}
	return trino{fmt.Sprintf("http://127.0.0.1:%d", port)}
}

// page is a part of an answer of Trino's statement protocol.
type page struct {
	NextURI string `json:"nextUri"`
	Columns []struct {
		Name string `json:"name"`
		Type string `json:"type"`
	} `json:"columns"`
	Data  [][]any `json:"data"`
	Error *struct {
		Name    string `json:"errorName"`
		Message string `json:"message"`
	} `json:"error"`
}

// ask runs a statement; the case that it returns has the answer.
func (s trino) ask(ctx context.Context, user, statement string) (c Case, message string, err error) {
	for range 240 {
		c, message, err = s.once(ctx, user, statement)
		// Some seconds pass between the start and the first query that runs.
		if c.Error != "NO_NODES_AVAILABLE" {
			return c, message, err
		}
		time.Sleep(500 * time.Millisecond)
	}
	return c, message, errors.New("Trino has no worker")
}

func (s trino) once(ctx context.Context, user, statement string) (c Case, message string, err error) {
	c = Case{User: user, SQL: statement}
	p, err := s.fetch(ctx, user, http.MethodPost, s.url+"/v1/statement", statement)
	for ; err == nil; p, err = s.fetch(ctx, user, http.MethodGet, p.NextURI, "") {
		if len(p.Columns) > 0 && c.Types == nil {
			for _, col := range p.Columns {
				c.Types = append(c.Types, col.Type)
			}
		}
		c.Rows = append(c.Rows, p.Data...)
		if p.Error != nil {
			return Case{User: user, SQL: statement, Error: p.Error.Name}, p.Error.Message, nil
		}
		if p.NextURI == "" {
			break
		}
	}
	if err != nil {
		return c, "", err
	}
	for _, r := range c.Rows {
		for i, v := range r {
			if text, ok := v.(string); ok && c.Types[i] == "varbinary" {
				b, err := base64.StdEncoding.DecodeString(text)
				if err != nil {
					return c, "", err
				}
				r[i] = "0x" + hex.EncodeToString(b)
			}
		}
	}
	return c, "", nil
}

func (s trino) fetch(ctx context.Context, user, method, url, body string) (p page, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return p, err
	}
	req.Header.Set("X-Trino-User", user)
	req.Header.Set("X-Trino-Catalog", Catalog)
	req.Header.Set("X-Trino-Time-Zone", "UTC")
	req.Header.Set("X-Trino-Client-Capabilities", "PARAMETRIC_DATETIME")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return p, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return p, fmt.Errorf("%s %s: HTTP %d", method, url, resp.StatusCode)
	}
	d := json.NewDecoder(resp.Body)
	d.UseNumber()
	return p, d.Decode(&p)
}

var (
	writesRE = regexp.MustCompile(`^(INSERT|UPDATE|DELETE|MERGE|CREATE|DROP|ALTER|TRUNCATE|CALL|SET)\b`)
	// What the statements above leave behind, and what this Trino has not: the
	// views of its own dialect, other catalogs, other partitions and snapshots.
	elsewhereRE = regexp.MustCompile(`\b(copy|target|dml|dmlf|dmlm|v_own|v_own2|v_orders|v_invoker)\b|SHOW (CATALOGS|STATS|SESSION|FUNCTIONS)|information_schema|\$|table_changes`)
)

// live reports whether a captured statement can be asked of a Trino over the
// tables of this package, under policies whose texts SQE reads too.
func live(c Case) bool {
	cast := c.User == "m_type" || (c.User == "m_custom" && strings.Contains(c.SQL, "masks.c_") && !strings.Contains(c.SQL, "masks.c_s "))
	return !writesRE.MatchString(c.SQL) && !elsewhereRE.MatchString(c.SQL) && !cast
}
