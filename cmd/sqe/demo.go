package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"sqe/catalog"
	"sqe/config"
	"sqe/demo/data"
	"sqe/demo/policies"
	"sqe/identity"
	"sqe/policystore"
)

// demoUsers are the people of the demo. Everybody's password is "demo"; the
// server listens on the loopback address only.
var demoUsers = []struct{ name, groups, roles, about string }{
	{"admin", "", "", "sees policies and every statement, and all data"},
	{"alice", "analytics", "analyst", "an analyst for the EU"},
	{"bob", "marketing", "marketer", "marketing: customers who agreed"},
	{"carol", "governance", "data_steward", "a data steward: everything as it is"},
	{"dave", "", "", "nobody gave him anything"},
}

// tourQuery is what the demo shows as three people.
const tourQuery = "SELECT cust_id, full_name, national_id, iban, dob, residency_region FROM bank.customers ORDER BY cust_id LIMIT 5"

// demoCommand prepares a folder with a catalog, tables, policies, users and a
// configuration, and serves it exactly as "sqe serve" would.
func demoCommand(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	dir := flags.String("dir", ".demo", "folder that keeps the demo; a second start finds it again")
	port := flags.Int("port", 3307, "port to listen on, on 127.0.0.1")
	opsPort := flags.Int("ops-port", 0, "port for metrics and health on 127.0.0.1; 0: the port above plus one")
	noTour := flags.Bool("no-tour", false, "do not show the tour, only serve")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *opsPort == 0 {
		*opsPort = *port + 1
	}
	for _, p := range []int{*port, *opsPort} {
		if err := portFree(p); err != nil {
			return err
		}
	}
	path, err := prepareDemo(ctx, *dir, *port, *opsPort)
	if err != nil {
		return err
	}
	cfg, err := config.Load(path)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(*dir, "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	in, err := start(cfg, log)
	if err != nil {
		return err
	}
	defer in.Close()
	fmt.Fprintf(stdout, `SQE demo, state in %s

Connect with any MySQL client, the password is "demo" for everybody:

  mysql   -h 127.0.0.1 -P %d -u alice -pdemo --ssl-mode=REQUIRED
  mariadb -h 127.0.0.1 -P %d -u alice -pdemo --ssl --skip-ssl-verify-server-cert
  SQE_PASSWORD=demo bin/sqe sql -P %d -u alice

`, *dir, *port, *port, *port)
	for _, u := range demoUsers {
		fmt.Fprintf(stdout, "  %-6s %s\n", u.name, u.about)
	}
	fmt.Fprintln(stdout)
	if !*noTour {
		if err := tour(ctx, *port, stdout); err != nil {
			fmt.Fprintf(stdout, "The tour failed: %v\n\n", err)
		}
	}
	fmt.Fprintf(stdout, "Serving on 127.0.0.1:%d, metrics on http://127.0.0.1:%d/metrics. Ctrl-C ends.\n", *port, *opsPort)
	return in.Wait(ctx)
}

// portFree reports in a sentence that a port is in use.
func portFree(port int) error {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("port %d is in use; stop what listens there or choose another one with --port and --ops-port", port)
		}
		return fmt.Errorf("cannot listen on port %d: %w; choose another one with --port", port, err)
	}
	return l.Close()
}

// prepareDemo fills the folder where something is missing, and writes the
// configuration for these ports. It returns the path of the configuration.
func prepareDemo(ctx context.Context, dir string, port, opsPort int) (string, error) {
	if err := writable(dir); err != nil {
		return "", err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	cat, err := catalog.OpenSQLite("demo", filepath.Join(dir, "catalog.db"), filepath.Join(dir, "warehouse"), catalog.SQLOptions{Create: true})
	if err != nil {
		return "", err
	}
	err = data.Write(ctx, cat)
	if cerr := cat.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return "", fmt.Errorf("cannot write the sample tables: %w", err)
	}
	if err := seedPolicies(ctx, filepath.Join(dir, "policies.db")); err != nil {
		return "", fmt.Errorf("cannot write the sample policies: %w", err)
	}
	if err := secret(filepath.Join(dir, "mask.key")); err != nil {
		return "", err
	}
	users, err := userSections(filepath.Join(dir, "users.toml"))
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "sqe.toml")
	text := fmt.Sprintf(demoConfig, port, opsPort) + users
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("cannot write the configuration: %w", err)
	}
	return path, nil
}

const demoConfig = `# Written by "sqe demo" at each start. A configuration of your own starts from here: docs/configuration.md.

[server]
address = "127.0.0.1"
port = %d

[ops]
address = "127.0.0.1:%d"

[[catalogs]]
name = "demo"
kind = "sqlite"
path = "catalog.db"
warehouse = "warehouse"
default = true

[policystore]
path = "policies.db"

[[policies]]
name = "store"
kind = "store"
polaris-service = "polaris"
data-service = "hive"

[masks]
hash-key-file = "mask.key"

[audit]
file = "audit.jsonl"

`

// seedPolicies makes the policy store once. It appears whole or not at all.
func seedPolicies(ctx context.Context, path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	unfinished := path + ".new"
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(unfinished + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	store, err := policystore.Open(ctx, unfinished, policystore.Options{})
	if err != nil {
		return err
	}
	err = policies.Seed(ctx, store, "demo")
	if cerr := store.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(unfinished, path)
}

// writable makes the folder and tries it, so that the error is a sentence and
// comes before anything else is done.
func writable(dir string) error {
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		probe := filepath.Join(dir, ".writable")
		if err = os.WriteFile(probe, nil, 0o600); err == nil {
			err = os.Remove(probe)
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("the folder %s cannot be written; name another one with --dir", dir)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("no space is left for the folder %s; free some or name another one with --dir", dir)
	}
	return fmt.Errorf("the folder %s cannot be used (%w); name another one with --dir", dir, err)
}

// secret makes a random key once.
func secret(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(hex.EncodeToString(key)+"\n"), 0o600)
}

// userSections makes the [[users]] sections once: hashing five passwords takes a
// while, and a second start should be quick.
func userSections(path string) (string, error) {
	if text, err := os.ReadFile(path); err == nil {
		return string(text), nil
	}
	list := func(s string) string {
		if s == "" {
			return "[]"
		}
		return `["` + strings.ReplaceAll(s, ",", `", "`) + `"]`
	}
	var b strings.Builder
	for _, u := range demoUsers {
		hash, err := identity.HashPassword("demo")
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "[[users]]\nname = %q\npassword-hash = %q\ngroups = %s\nroles = %s\n", u.name, hash, list(u.groups), list(u.roles))
		if u.name == "admin" {
			b.WriteString("admin = true\n")
		}
		b.WriteByte('\n')
	}
	return b.String(), os.WriteFile(path, []byte(b.String()), 0o600)
}

// tour runs one query as three people.
func tour(ctx context.Context, port int, stdout io.Writer) error {
	fmt.Fprintf(stdout, "One query, three people:\n\n  %s;\n\n", tourQuery)
	for _, user := range []string{"carol", "alice", "bob"} {
		db, err := connect("127.0.0.1", port, user, always("demo"), "", false)
		if err != nil {
			return err
		}
		tctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		err = func() error {
			defer cancel()
			defer db.Close()
			rows, err := db.QueryContext(tctx, tourQuery)
			if err != nil {
				return err
			}
			defer rows.Close()
			fmt.Fprintf(stdout, "%s:\n", user)
			return printRows(rows, stdout)
		}()
		if err != nil {
			return fmt.Errorf("as %s: %w", user, err)
		}
		fmt.Fprintln(stdout)
	}
	fmt.Fprintln(stdout, "Ask what happens to a statement: EXPLAIN POLICY SELECT * FROM bank.customers;")
	fmt.Fprintln(stdout, "Which policies acted on each statement, in full, is in audit.jsonl in the folder.")
	fmt.Fprintln(stdout)
	return nil
}
