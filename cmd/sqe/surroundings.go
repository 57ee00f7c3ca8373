package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"sqe/catalog"
	"sqe/catalog/objects"
	"sqe/config"
	"sqe/server"
)

// surroundings looks at what a server needs of its machine and its neighbours,
// beside policies and logins: certificates, the folder of the audit log, and the
// catalogs that show their tables to users alone.
func surroundings(ctx context.Context, cfg *config.Config, personal []catalog.Catalog) (problems []error, advice []string) {
	problem := func(err error) {
		if err != nil {
			problems = append(problems, err)
		}
	}
	problem(checkCertificate("server", string(cfg.Server.TLSCert), string(cfg.Server.TLSKey), time.Now()))
	if cfg.Store.Path != "" && cfg.Store.Listen != "" && !cfg.Store.PlainHTTP {
		problem(checkCertificate("policystore", string(cfg.Store.TLSCert), string(cfg.Store.TLSKey), time.Now()))
	}
	problem(checkAppend("audit.file", string(cfg.Audit.File)))
	for _, c := range cfg.Catalogs {
		if c.Kind != "rest" || c.Warehouse == "" || objects.Is(string(c.Warehouse)) {
			continue
		}
		if info, err := os.Stat(string(c.Warehouse)); err != nil || !info.IsDir() {
			advice = append(advice, fmt.Sprintf("catalog %s: its warehouse is no folder on this machine; mount the one into which the catalog writes, or name the s3:// address in its place", c.Name))
		}
	}
	for _, cat := range personal {
		if p, ok := cat.(interface{ Probe(context.Context) error }); ok {
			if err := p.Probe(ctx); err != nil {
				problem(fmt.Errorf("catalog %s: %w; check uri, rest-warehouse and ca-file", cat.Name(), err))
			}
		}
	}
	return problems, advice
}

// checkCertificate looks at a certificate of the configuration; "" is one that the
// server makes itself.
func checkCertificate(section, cert, key string, now time.Time) error {
	if cert == "" {
		return nil
	}
	var pair tls.Certificate
	pair, err := server.LoadCertificate(cert, key)
	if err != nil {
		return fmt.Errorf("%s.tls-cert: %w", section, err)
	}
	if leaf := pair.Leaf; leaf != nil && now.After(leaf.NotAfter) {
		return fmt.Errorf("%s.tls-cert: the certificate expired on %s; clients that verify it refuse the connection", section, leaf.NotAfter.UTC().Format(time.DateOnly))
	}
	return nil
}

// checkAppend reports a file to which nothing can be added. It makes none.
func checkAppend(key, path string) error {
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	switch {
	case err == nil:
		return f.Close()
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%s cannot be written: %w", key, err)
	}
	// The server makes the folders that are missing.
	dir := filepath.Dir(path)
	info, err := os.Stat(dir)
	for errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		info, err = os.Stat(dir)
	}
	switch {
	case err != nil && !errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%s cannot be made: %w", key, err)
	case err != nil || !info.IsDir():
		return fmt.Errorf("%s cannot be made: a part of its path is no folder", key)
	case syscall.Access(dir, accessWrite) != nil:
		return fmt.Errorf("%s cannot be made: this user may not write in %s", key, dir)
	}
	return nil
}

// accessWrite is W_OK of access(2).
const accessWrite = 2
