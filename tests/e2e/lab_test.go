//go:build e2e

package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"sqe/tests/lab"
	"sqe/tests/sqetest"
)

// laboratory is the server over the tables of package lab, started by the first
// suite that needs it and stopped by TestMain.
var laboratory struct {
	once   sync.Once
	dir    string // set by TestMain
	server *sqetest.Server
	err    error
}

func labServer(t testing.TB) *sqetest.Server {
	t.Helper()
	laboratory.once.Do(func() { laboratory.server, laboratory.err = startLab(laboratory.dir, nil) })
	if laboratory.err != nil {
		t.Fatal(laboratory.err)
	}
	return laboratory.server
}

// startLab builds the tables, policies and configuration in dir and serves them.
func startLab(dir string, settings map[string]string) (*sqetest.Server, error) {
	config, port, err := buildLab(dir, settings)
	if err != nil {
		return nil, err
	}
	return sqetest.Serve(config, port)
}

// buildLab builds what startLab serves.
func buildLab(dir string, settings map[string]string) (config string, port int, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", 0, err
	}
	err = errors.Join(
		lab.Build(context.Background(), dir),
		lab.NewPolicies().Write(filepath.Join(dir, "policies")),
		os.WriteFile(filepath.Join(dir, "mask.key"), []byte(lab.HashKey+"\n"), 0o600),
	)
	if err != nil {
		return "", 0, err
	}
	return sqetest.Config(dir, lab.Catalog, []string{"root", "pat"}, settings)
}
