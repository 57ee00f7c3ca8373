package keycloaktest

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"sqe/tests/sqetest"
)

// People are the logins of a suite, each with a token of Keycloak as the password.
type People struct {
	Keycloak *Keycloak
	// Server is where Session logs in.
	Server *sqetest.Server
	// Local are those who have a password of the server and no token.
	Local []string

	mu     sync.Mutex
	pools  []*sql.DB
	open   map[string]*sql.Conn
	tokens map[string]string
	all    []string // the tokens of the whole run
	made   time.Time
}

// renewTokens is when all get new tokens: a Keycloak ends them after five minutes, unless
// its realm says otherwise.
const renewTokens = 3 * time.Minute

// Token is one of Keycloak for a person, for two minutes at least.
func (p *People) Token(t testing.TB, name string) string {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.renew()
	if p.tokens[name] == "" {
		p.tokens[name] = p.Keycloak.Token(t, "sqe-cli", name).Access
		p.all = append(p.all, p.tokens[name])
	}
	return p.tokens[name]
}

// renew forgets tokens, and sessions with them, that may end soon.
func (p *People) renew() {
	if time.Since(p.made) > renewTokens {
		p.open, p.tokens, p.made = map[string]*sql.Conn{}, map[string]string{}, time.Now()
	}
}

// Session is a session of a person at the server of the suite. Those of the same name
// share it.
func (p *People) Session(t testing.TB, name string) *sql.Conn {
	t.Helper()
	token := ""
	if !slices.Contains(p.Local, name) {
		token = p.Token(t, name)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.renew()
	if c := p.open[name]; c != nil {
		return c
	}
	c := p.login(t, p.Server, name, token)
	p.open[name] = c
	return c
}

// Login is a new session at a server, with the token as the password; "" is the password
// of the demo.
func (p *People) Login(t testing.TB, at *sqetest.Server, name, token string) *sql.Conn {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.login(t, at, name, token)
}

func (p *People) login(t testing.TB, at *sqetest.Server, name, token string) *sql.Conn {
	t.Helper()
	db := at.Open(name, func(c *mysql.Config) {
		if token != "" {
			c.Passwd = token
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := db.Conn(ctx)
	if err != nil {
		t.Fatalf("login of %s: %v", name, errors.Join(err, db.Close()))
	}
	p.pools = append(p.pools, db)
	return c
}

// Close ends all sessions.
func (p *People) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []error
	for _, db := range p.pools {
		all = append(all, db.Close())
	}
	return errors.Join(all...)
}

// Leaked looks for the tokens of the run, their signatures and passwords in what a server
// wrote: its output and its audit log.
func (p *People) Leaked(at *sqetest.Server, passwords ...string) error {
	audit, err := os.ReadFile(filepath.Join(at.Dir, "audit.jsonl"))
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.all) == 0 {
		return errors.New("no token was used: the search would find nothing")
	}
	secrets := slices.Clone(passwords)
	for _, token := range p.all {
		secrets = append(secrets, token, strings.Split(token, ".")[2])
	}
	for _, secret := range secrets {
		if strings.Contains(string(audit), secret) || strings.Contains(at.Output(), secret) {
			return errors.New("sqe wrote a secret down")
		}
	}
	return nil
}
