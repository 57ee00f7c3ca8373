package main

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/go-sql-driver/mysql"
	"golang.org/x/term"
)

// connection says which server a client command connects to, and as whom.
type connection struct {
	host, user, database string
	port                 int
	verify               bool
	flags                *flag.FlagSet
}

// connectionFlags are the flags that client commands have in common.
func connectionFlags(flags *flag.FlagSet) *connection {
	c := &connection{flags: flags}
	flags.StringVar(&c.host, "h", "127.0.0.1", "host of the server; after sqe login that of the login")
	flags.IntVar(&c.port, "P", 3307, "port of the server; after sqe login that of the login")
	flags.StringVar(&c.user, "u", "", "user name; without it that of sqe login, or of this machine")
	flags.StringVar(&c.database, "D", "", "database to start in")
	flags.BoolVar(&c.verify, "verify-tls", false, "refuse a server certificate that this machine does not trust; with the token of sqe login that is the default for other machines")
	return c
}

// open opens a pool with the password of SQE_PASSWORD, or the token of sqe login,
// or a password that it asks for.
func (c *connection) open() (*sql.DB, error) {
	password, err := c.password()
	if err != nil {
		return nil, err
	}
	if c.user == "" {
		c.user = os.Getenv("USER")
	}
	return connect(c.host, c.port, c.user, password, c.database, c.verify)
}

func (c *connection) password() (passwordSource, error) {
	if fixed, ok := os.LookupEnv("SQE_PASSWORD"); ok {
		return always(fixed), nil
	}
	l, err := readLogin()
	switch {
	case err == nil && (c.user == "" || c.user == l.User):
		c.from(l)
		return l.token, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case !term.IsTerminal(int(os.Stdin.Fd())):
		return nil, errors.New("no terminal to ask for the password; set SQE_PASSWORD, or run: sqe login")
	}
	fixed, err := askPassword()
	return always(fixed), err
}

// from takes what was not given from a login. A token is shown to a server on
// another machine only when its certificate is trusted.
func (c *connection) from(l *storedLogin) {
	given := map[string]bool{}
	c.flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	c.user = l.User
	if !given["h"] {
		c.host = l.Host
	}
	if !given["P"] {
		c.port = l.Port
	}
	if !given["verify-tls"] {
		c.verify = !local(c.host)
	}
}

// passwordSource gives the password for a new connection.
type passwordSource func(context.Context) (string, error)

func always(password string) passwordSource {
	return func(context.Context) (string, error) { return password, nil }
}

// connect opens a pool to a server.
func connect(host string, port int, user string, password passwordSource, database string, verify bool) (*sql.DB, error) {
	c := mysql.NewConfig()
	c.Net, c.Addr = "tcp", fmt.Sprintf("%s:%d", host, port)
	c.User, c.DBName = user, database
	c.MultiStatements = true
	c.Timeout = 10 * time.Second
	c.TLS = &tls.Config{ServerName: host, InsecureSkipVerify: !verify, MinVersion: tls.VersionTLS12} //nolint:gosec // -verify-tls turns it on
	err := c.Apply(mysql.BeforeConnect(func(ctx context.Context, c *mysql.Config) (err error) {
		c.Passwd, err = password(ctx)
		return err
	}))
	if err != nil {
		return nil, err
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}
