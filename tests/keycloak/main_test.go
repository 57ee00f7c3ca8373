//go:build e2e

package keycloak

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"sqe/tests/keycloaktest"
	"sqe/tests/sqetest"
)

// kc is the Keycloak of the suite, folder where its servers have their state.
var (
	kc     *keycloaktest.Keycloak
	folder string
	fleet  servers
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	var err error
	if folder, err = os.MkdirTemp("", "sqe-keycloak-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	if kc, err = keycloaktest.Start(filepath.Join(folder, "keycloak")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code = m.Run()
	if err := fleet.end(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if err := kc.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

// servers are the servers of the suite, one for each configuration, with every
// secret that was used: none of them may be found in what the servers wrote.
type servers struct {
	mu      sync.Mutex
	byName  map[string]*sqetest.Server
	secrets []string
}

// secret remembers a token or a password.
func (s *servers) secret(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(text) > 6 && !slices.Contains(s.secrets, text) {
		s.secrets = append(s.secrets, text)
	}
	return text
}

// end stops the servers and searches what they wrote.
func (s *servers) end() error {
	if len(s.byName) > 0 && len(s.secrets) == 0 {
		return fmt.Errorf("no secret was used: the search would find nothing")
	}
	for name, server := range s.byName {
		if err := server.Stop(); err != nil {
			return fmt.Errorf("server %s does not end well: %w\n%s", name, err, server.Output())
		}
		text, err := os.ReadFile(filepath.Join(server.Dir, "audit.jsonl"))
		if err != nil {
			return err
		}
		for _, secret := range s.secrets {
			// The signature of a token alone opens nothing, and is as telling.
			parts := append([]string{secret}, strings.Split(secret, ".")...)
			for _, part := range parts {
				if len(part) > 6 && part == secret || len(part) > 60 {
					if strings.Contains(string(text), part) || strings.Contains(server.Output(), part) {
						return fmt.Errorf("server %s wrote a secret of %d characters down", name, len(secret))
					}
				}
			}
		}
		if !strings.Contains(server.Output(), "level=DEBUG") && !strings.Contains(server.Output(), `"DEBUG"`) {
			return fmt.Errorf("server %s does not log at the finest level", name)
		}
		if strings.Contains(server.Output(), "panic") {
			return fmt.Errorf("server %s panicked:\n%s", name, server.Output())
		}
	}
	return nil
}

// provider is a section [[identity-providers]] for realm sqe, with more lines.
func provider(lines ...string) string {
	return fmt.Sprintf("\n[[identity-providers]]\nname = \"keycloak\"\nissuer = %q\naudience = [\"sqe\"]\nadmin-roles = [\"sqe_admin\"]\n%s\n", kc.Issuer("sqe"), strings.Join(lines, "\n"))
}

// usersLast gives the users of the demo, who have the names of users of Keycloak,
// the last place.
const usersLast = "\n[[identity-providers]]\nname = \"local\"\nkind = \"users\"\n"

// everything has the servers log at the finest level, so that the search for secrets
// finds those of every level.
const everything = "\n[log]\nlevel = \"debug\"\n"

// serve is a server with the tables, policies and users of the demo and these
// sections; the same name is the same server.
func serve(t testing.TB, name, sections string) *sqetest.Server {
	t.Helper()
	fleet.mu.Lock()
	defer fleet.mu.Unlock()
	if s := fleet.byName[name]; s != nil {
		return s
	}
	dir := filepath.Join(folder, name)
	prepared, err := sqetest.Demo(dir)
	if err == nil {
		err = prepared.Stop()
	}
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "sqe.toml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(text, sections+everything...), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := sqetest.Serve(path, prepared.Port)
	if err != nil {
		t.Fatal(err)
	}
	if fleet.byName == nil {
		fleet.byName = map[string]*sqetest.Server{}
	}
	fleet.byName[name] = s
	return s
}

// open opens a pool of one login.
func open(s *sqetest.Server, user, password string, options ...sqetest.Option) *sql.DB {
	fleet.secret(password)
	return s.Open(user, append([]sqetest.Option{func(c *mysql.Config) { c.Passwd = password }}, options...)...)
}

// login tries a login and returns the current user, or the error.
func login(t testing.TB, s *sqetest.Server, user, password string) sqetest.Answer {
	t.Helper()
	db := open(s, user, password)
	defer db.Close()
	return sqetest.Ask(within(t, patience), db, "SELECT CURRENT_USER()")
}

// session is one connection that stays open until the end of the test.
func session(t testing.TB, s *sqetest.Server, user, password string) *sql.Conn {
	t.Helper()
	db := open(s, user, password)
	c, err := db.Conn(within(t, patience))
	if err != nil {
		t.Fatalf("login: %v", err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		_ = db.Close()
	})
	return c
}

// patience is how long tests wait for what happens soon. It is for what hangs: a busy
// machine may be many times slower than it is alone.
const patience = 2 * time.Minute

func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}
