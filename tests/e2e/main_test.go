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
	code = m.Run()
	if err := demo.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "the demo does not end well:", err)
		code = 1
	}
	if code == 0 && strings.Contains(demo.Output(), "panic in a statement") {
		fmt.Fprintln(os.Stderr, "a statement panicked:\n"+demo.Output())
		code = 1
	}
	return code
}

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
	return sqetest.Ask(within(t, time.Minute), demo.Conn(t, user), text, args...)
}

func wrongPassword(c *mysql.Config) { c.Passwd = "wrong" }
