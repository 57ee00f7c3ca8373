package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sqe/fault"
	"sqe/identity/oidc"
)

// storedLogin is what "sqe login" keeps for later commands, in a file that only its
// owner can read.
type storedLogin struct {
	Issuer    string   `json:"issuer"`
	ClientID  string   `json:"client_id"`
	Scopes    []string `json:"scopes,omitempty"`
	CAFile    string   `json:"ca_file,omitempty"`
	AllowHTTP bool     `json:"allow_http,omitempty"`
	IDToken   bool     `json:"id_token,omitempty"`

	// Where the option file leads, and as whom.
	Host string `json:"host"`
	Port int    `json:"port"`
	User string `json:"user"`

	Access  string    `json:"access_token"`
	Refresh string    `json:"refresh_token,omitempty"`
	Expires time.Time `json:"expires"`
}

// enough is how long a token must be good for to be used as it is.
const enough = 20 * time.Second

// loginFolder is where logins are kept.
func loginFolder() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("no folder for the login: %w", err)
	}
	return filepath.Join(dir, "sqe"), nil
}

func loginFile() (string, error) {
	dir, err := loginFolder()
	return filepath.Join(dir, "login.json"), err
}

func optionFile() (string, error) {
	dir, err := loginFolder()
	return filepath.Join(dir, "my.cnf"), err
}

// readLogin reads the login that is kept. Without one its error is fs.ErrNotExist.
func readLogin() (*storedLogin, error) {
	path, err := loginFile()
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("others may read %s; run: chmod 600 %s", path, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	l := &storedLogin{}
	if json.Unmarshal(text, l) != nil || l.Issuer == "" || l.ClientID == "" {
		return nil, fmt.Errorf("%s cannot be read; run: sqe login", path)
	}
	return l, nil
}

// write keeps the login, and writes the option file for clients of MySQL.
func (l *storedLogin) write() error {
	path, err := loginFile()
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	if err := private(path, append(text, '\n')); err != nil {
		return err
	}
	options, err := optionFile()
	if err != nil {
		return err
	}
	return private(options, []byte(l.options()))
}

// longestOption is how long a line of an option file may be for the clients that
// read it, in bytes.
const longestOption = 4096

// options is the option file. Clients of MySQL use TLS by themselves, those of
// MariaDB when told so; a token is never sent without it.
func (l *storedLogin) options() string {
	var b strings.Builder
	b.WriteString("# Written by sqe login and sqe token; the password is a token that expires.\n[client]\n")
	fmt.Fprintf(&b, "host=%s\nport=%d\nprotocol=tcp\nuser=\"%s\"\n", l.Host, l.Port, strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(l.User))
	if line := fmt.Sprintf("password=\"%s\"\n", l.Access); len(line) < longestOption {
		b.WriteString(line)
	} else {
		b.WriteString("# The token is too long for an option file; use sqe sql, or a client that reads the token from a file.\n")
	}
	b.WriteString("\n[client-mariadb]\nssl=1\n")
	if local(l.Host) {
		b.WriteString("ssl-verify-server-cert=0\n")
	}
	return b.String()
}

// private writes a file that only its owner can read, as a whole.
func private(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".sqe-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

func local(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

func (l *storedLogin) client() (*oidc.Client, error) {
	roots, err := trusted(l.CAFile)
	return &oidc.Client{Issuer: l.Issuer, ID: l.ClientID, Scopes: l.Scopes, IDToken: l.IDToken, RootCAs: roots, AllowHTTP: l.AllowHTTP}, err
}

func (l *storedLogin) take(t *oidc.Tokens) {
	l.Access, l.Expires = t.Access, t.Expires
	if t.Refresh != "" {
		l.Refresh = t.Refresh
	}
}

// token is a token that is good for a while: the one that is kept, or a new one.
func (l *storedLogin) token(ctx context.Context) (string, error) {
	if time.Until(l.Expires) > enough {
		return l.Access, nil
	}
	if l.Refresh == "" {
		return "", errors.New("the token has expired; run: sqe login")
	}
	c, err := l.client()
	if err != nil {
		return "", err
	}
	t, err := c.Renew(ctx, l.Refresh)
	if err != nil {
		return "", err
	}
	l.take(t)
	return l.Access, l.write()
}

// loginCommand logs a person in by the device flow, and keeps the tokens.
func loginCommand(ctx context.Context, args []string, stdout io.Writer) error {
	before, err := readLogin()
	if err != nil {
		before = &storedLogin{ClientID: "sqe-cli", Host: "127.0.0.1", Port: 3307}
	}
	flags := flag.NewFlagSet("login", flag.ContinueOnError)
	l := &storedLogin{}
	flags.StringVar(&l.Issuer, "issuer", before.Issuer, "address of the identity provider, such as https://keycloak.example/realms/lake")
	flags.StringVar(&l.ClientID, "client-id", before.ClientID, "public client of the provider that may use the device flow")
	scopes := flags.String("scope", strings.Join(before.Scopes, " "), "scopes to ask for, separated by blanks")
	flags.StringVar(&l.CAFile, "ca-file", before.CAFile, "certificates (PEM) to trust beside the system's")
	flags.BoolVar(&l.AllowHTTP, "allow-http", before.AllowHTTP, "permit http:// to another machine; the token then travels in the clear")
	flags.BoolVar(&l.IDToken, "id-token", before.IDToken, "keep the ID token in place of the access token, for a server with token-use = \"id\"")
	flags.StringVar(&l.Host, "h", before.Host, "host of the SQE server, for the option file")
	flags.IntVar(&l.Port, "P", before.Port, "port of the SQE server, for the option file")
	flags.StringVar(&l.User, "u", "", "name of the principal, for the option file; \"\": preferred_username of the token")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: sqe login --issuer URL [options]\nOptions that are not given are those of the last login.")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if l.Issuer == "" {
		return errors.New("which identity provider? sqe login --issuer https://keycloak.example/realms/lake")
	}
	l.Scopes = strings.Fields(*scopes)
	c, err := l.client()
	if err != nil {
		return err
	}
	t, err := c.Device(ctx, func(p oidc.Prompt) {
		address := p.Complete
		if address == "" {
			address = p.Address
		}
		fmt.Fprintf(stdout, "Open this address in a browser and confirm the code %s:\n\n  %s\n\n", printable(p.Code, false), printable(address, false))
	})
	if err != nil {
		return err
	}
	l.take(t)
	if l.User == "" {
		l.User = oidc.ClaimedName(l.Access, "preferred_username")
	}
	if strings.ContainsFunc(l.User, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fault.New(fault.Auth, "the token names nobody that could log in")
	}
	if err := l.write(); err != nil {
		return err
	}
	options, err := optionFile()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "Logged in as %s. Now: sqe sql, or: mysql --defaults-file=%s\nThe token lasts until %s; sqe token renews it.\n",
		printable(l.User, false), options, l.Expires.Local().Format(time.TimeOnly))
	return err
}

// tokenCommand prints a token that is good for a while.
func tokenCommand(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("token", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: sqe token\nPrints the token of sqe login. One that has expired, or will within seconds, is renewed first, here and in the option file.")
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	l, err := readLogin()
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("nobody is logged in; run: sqe login --issuer https://keycloak.example/realms/lake")
	}
	if err != nil {
		return err
	}
	token, err := l.token(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, token)
	return err
}

// logoutCommand forgets the login, and ends it at the provider.
func logoutCommand(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("logout", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: sqe logout\nRemoves the tokens from this machine and ends the login at the identity provider.")
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	l, err := readLogin()
	if errors.Is(err, fs.ErrNotExist) {
		_, err = fmt.Fprintln(stdout, "nobody is logged in")
		return err
	}
	for _, file := range []func() (string, error){loginFile, optionFile} {
		path, ferr := file()
		if ferr != nil {
			return ferr
		}
		if rerr := os.Remove(path); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			return rerr
		}
	}
	if err != nil {
		return err // it could not be read; it is gone now
	}
	if l.Refresh != "" {
		c, err := l.client()
		if err != nil {
			return err
		}
		if err := c.Revoke(ctx, l.Refresh); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(stdout, "logged out")
	return err
}
