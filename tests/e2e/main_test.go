//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"sqe/tests/sqetest"
)

// demo is the server of the demo, one for all suites.
var demo *sqetest.Server

func TestMain(m *testing.M) { os.Exit(runSuites(m)) }

func runSuites(m *testing.M) (code int) {
	dir, err := os.MkdirTemp("", "sqe-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if demo, err = sqetest.Demo(filepath.Join(dir, "demo")); err != nil {
		fmt.Fprintln(os.Stderr, "the demo does not start:", err)
		return 1
	}
	laboratory.dir = filepath.Join(dir, "lab")
	code = m.Run()
	for name, s := range map[string]*sqetest.Server{"demo": demo, "laboratory": laboratory.server} {
		if s == nil {
			continue
		}
		if err := s.Stop(); err != nil {
			fmt.Fprintf(os.Stderr, "the server of the %s does not end well: %v\n%s\n", name, err, s.Output())
			code = 1
		}
		if strings.Contains(s.Output(), "panic") {
			fmt.Fprintf(os.Stderr, "the server of the %s panicked:\n%s\n", name, s.Output())
			code = 1
		}
	}
	return code
}

// patience is how long tests wait for what happens soon. It is for what hangs: a busy
// machine may be many times slower than it is alone.
const patience = 2 * time.Minute

// within is a context that ends with the test or after d.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// ask runs a text as a user of the demo on a connection of its own.
func ask(t testing.TB, user, text string, args ...any) sqetest.Answer {
	t.Helper()
	return sqetest.Ask(within(t, patience), demo.Conn(t, user), text, args...)
}

func wrongPassword(c *mysql.Config) { c.Passwd = "wrong" }
