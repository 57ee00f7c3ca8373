package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"sqe/engine"
	"sqe/fault"
	"sqe/identity"
	"sqe/server/wire"
)

// TestLogin: the right password opens a session as that principal; a wrong one
// and an unknown user give the same error and open none.
func TestLogin(t *testing.T) {
	var mu sync.Mutex
	var events []LoginEvent
	s := start(t, func(o *Options) {
		o.Logins = func(e LoginEvent) error {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, e)
			return nil
		}
	})
	if err := s.db(func(c *mysql.Config) {
		c.DBName = "bank"
		c.ConnectionAttributes = "program_name:tests"
	}).Ping(); err != nil {
		t.Fatal(err)
	}
	s.engine.mu.Lock()
	info, user := s.engine.infos[0], s.engine.users[0]
	s.engine.mu.Unlock()
	if user != "alice" || info.Database != "bank" || info.Program != "tests" || info.ID == 0 || !strings.HasPrefix(info.RemoteAddr, "127.0.0.1:") {
		t.Errorf("%s %+v", user, info)
	}
	texts := map[string]bool{}
	for _, login := range [][2]string{{"alice", "wrong"}, {"nobody", "pw"}, {"", "pw"}, {"alice", ""}, {"Alice", "pw"}} {
		err := s.db(func(c *mysql.Config) { c.User, c.Passwd = login[0], login[1] }).Ping()
		if number(err) != 1045 || state(err) != "28000" {
			t.Errorf("%q: %v", login, err)
		}
		if err != nil {
			texts[strings.Replace(err.Error(), "'"+login[0]+"'", "USER", 1)] = true
		}
	}
	if len(texts) != 1 {
		t.Errorf("the errors differ: %v", texts)
	}
	if n := s.engine.open.Load(); n != 1 {
		t.Errorf("%d sessions were opened", n)
	}
	mu.Lock()
	if len(events) != 6 || events[0].Err != nil || events[0].Principal.Name != "alice" || !fault.Is(events[1].Err, fault.Auth) {
		t.Errorf("%+v", events)
	}
	mu.Unlock()
	if err := s.db(func(c *mysql.Config) { c.DBName = "secret" }).Ping(); number(err) != 1049 {
		t.Error("unknown database:", err)
	}
	if strings.Contains(s.log.String(), "wrong") {
		t.Error("a password is in the log")
	}
}

// TestLoginRecorded: when a login cannot be recorded it is refused.
func TestLoginRecorded(t *testing.T) {
	s := start(t, func(o *Options) {
		o.Logins = func(LoginEvent) error { return fault.New(fault.Unavailable, "no audit log") }
	})
	if err := s.db(nil).Ping(); number(err) != 1429 {
		t.Error(err)
	}
	if s.engine.open.Load() != 0 {
		t.Error("a session was opened")
	}
}

type authenticator func(user, password string) (identity.Principal, error)

func (f authenticator) Authenticate(_ context.Context, user, password string, _ net.Addr) (identity.Login, error) {
	p, err := f(user, password)
	return identity.Login{Principal: p}, err
}

// TestTokens: passwords of any length arrive whole, by every method, at the login and
// when the user of a connection changes; what no token can be is not even read.
func TestTokens(t *testing.T) {
	var got string
	s := start(t, func(o *Options) {
		o.Authenticator = authenticator(func(_, password string) (identity.Principal, error) {
			got = password
			return identity.Principal{Name: "ann"}, nil
		})
	})
	for _, n := range []int{1, 20, 200, 300, 4_000, 60_000} {
		token := strings.Repeat("é", n/2) + strings.Repeat("x", n%2)
		if err := s.db(func(c *mysql.Config) { c.Passwd = token }).Ping(); err != nil || got != token {
			t.Errorf("caching_sha2_password, %d bytes: %d arrived, %v", n, len(got), err)
		}
		r, _ := rawDial(t, s)
		if err := r.encrypt(&tls.Config{InsecureSkipVerify: true}); err != nil {
			t.Fatal(err)
		}
		r.write(login(rawCaps, "alice", token+"\x00", wire.MethodClear))
		if p := r.read(); p[0] != 0 || got != token {
			t.Errorf("mysql_clear_password, %d bytes: %d arrived, %q", n, len(got), p)
		}
		got = ""
		if p := r.become("bob", token, ""); p[0] != 0 || got != token {
			t.Errorf("COM_CHANGE_USER, %d bytes: %d arrived, %q", n, len(got), p)
		}
		for _, first := range []string{openIDPacket(token), ""} {
			got = ""
			r := openIDLogin(t, s, first)
			if p := r.asked(openIDPacket(token), first == ""); p[0] != 0 || got != token {
				t.Errorf("%s, sent at once: %t, %d bytes: %d arrived, %q", wire.MethodOpenID, first != "", n, len(got), p)
			}
			got = ""
			r.command(wire.ComChangeUser, "bob\x00\x00\x00\x2d\x00"+wire.MethodOpenID+"\x00")
			if p := r.asked(openIDPacket(token), true); p[0] != 0 || got != token {
				t.Errorf("COM_CHANGE_USER by %s, %d bytes: %d arrived, %q", wire.MethodOpenID, n, len(got), p)
			}
		}
	}
	got = ""
	for _, n := range []int{maxHandshakePacket, 17 << 20} {
		large := strings.Repeat("x", n)
		if err := s.db(func(c *mysql.Config) { c.Passwd = large }).Ping(); err == nil || got != "" {
			t.Errorf("a password of %d bytes: %d arrived, %v", n, len(got), err)
		}
		r, _ := rawDial(t, s)
		if err := r.encrypt(&tls.Config{InsecureSkipVerify: true}); err != nil {
			t.Fatal(err)
		}
		go func() { // the server closes the connection before it has read this
			b := append(r.out.Begin(), login(rawCaps, "alice", openIDPacket(large[:min(n, 1<<20)]), wire.MethodOpenID)...)
			_ = errors.Join(r.out.End(b), r.out.Flush())
		}()
		if !r.refused() || got != "" {
			t.Errorf("a token of %d bytes: %d arrived", n, len(got))
		}
	}
}

// openIDPacket is what a client sends by MySQL's method for tokens.
func openIDPacket(token string) string {
	n := len(token)
	if n < 251 {
		return "\x01" + string([]byte{byte(n)}) + token
	}
	return "\x01\xfd" + string([]byte{byte(n), byte(n >> 8), byte(n >> 16)}) + token
}

// openIDLogin begins a login over TLS by MySQL's method for tokens.
func openIDLogin(t testing.TB, s *setup, first string) *raw {
	t.Helper()
	r, _ := rawDial(t, s)
	if err := r.encrypt(&tls.Config{InsecureSkipVerify: true}); err != nil {
		t.Fatal(err)
	}
	r.write(login(rawCaps, "", first, wire.MethodOpenID))
	return r
}

// asked answers the request for a token, when there is to be one, and reads what the
// server says.
func (r *raw) asked(packet string, request bool) []byte {
	r.t.Helper()
	p := r.read()
	if !request {
		return p
	}
	if p[0] != 0xfe {
		r.t.Fatalf("no request for a token: %q", p)
	}
	r.out.Sequence(r.in.Seq())
	r.write([]byte(packet))
	r.in.Expect(r.out.Next())
	return r.read()
}

// refused reports whether the server says an error, or nothing any more.
func (r *raw) refused() bool {
	_ = r.nc.SetReadDeadline(time.Now().Add(patience))
	p, err := r.in.Packet(1 << 20)
	var timeout net.Error
	return err == nil && failure(p) != 0 || err != nil && !(errors.As(err, &timeout) && timeout.Timeout())
}

// TestNobody: an authenticator that gives nobody without an error lets nobody in.
func TestNobody(t *testing.T) {
	s := start(t, func(o *Options) {
		o.Authenticator = authenticator(func(string, string) (identity.Principal, error) { return identity.Principal{}, nil })
	})
	if err := s.db(nil).Ping(); number(err) != 1045 {
		t.Error(err)
	}
	if s.engine.open.Load() != 0 {
		t.Error("a session was opened")
	}
}

// TestNoTLS: without TLS nobody gets as far as sending a password.
func TestNoTLS(t *testing.T) {
	asked := false
	s := start(t, func(o *Options) {
		o.Authenticator = authenticator(func(string, string) (identity.Principal, error) {
			asked = true
			return identity.Principal{Name: "x"}, nil
		})
	})
	if err := s.db(func(c *mysql.Config) { c.TLS = nil }).Ping(); number(err) != 3159 || !strings.Contains(err.Error(), "--ssl-mode=REQUIRED") {
		t.Error(err)
	}
	r, _ := rawDial(t, s)
	r.write(login(rawCaps, "alice", "pw\x00", wire.MethodClear))
	if p := r.read(); failure(p) != 3159 || !r.closed() {
		t.Errorf("%q", p)
	}
	if asked {
		t.Error("a password was checked")
	}
	// Commands before the login are no commands.
	r, _ = rawDial(t, s)
	r.write([]byte("\x03select 1"))
	if p := r.read(); failure(p) != 1043 || !r.closed() {
		t.Errorf("%q", p)
	}
}

// TestPlain: where it is allowed, the password travels encrypted with a public
// key, and mysql_clear_password is never used.
func TestPlain(t *testing.T) {
	s := start(t, func(o *Options) { o.PlainAllowed = true })
	if err := s.db(func(c *mysql.Config) { c.TLS = nil }).Ping(); err != nil {
		t.Error(err)
	}
	if err := s.db(func(c *mysql.Config) { c.TLS, c.Passwd = nil, "wrong" }).Ping(); number(err) != 1045 {
		t.Error(err)
	}
	if err := s.db(nil).Ping(); err != nil {
		t.Error("with TLS:", err)
	}
	r, _ := rawDial(t, s)
	r.write(login(rawCaps, "alice", "pw\x00", wire.MethodClear))
	if p := r.read(); p[0] != 0xfe || !strings.HasPrefix(string(p[1:]), wire.MethodCachingSHA2) {
		t.Errorf("%q", p)
	}
	// What is not encrypted with the key is a wrong password.
	r.out.Sequence(3)
	r.in.Expect(4)
	r.write([]byte(strings.Repeat("s", 32)))
	if p := r.read(); len(p) != 2 || p[1] != wire.SHA2FullAuth {
		t.Fatalf("%q", p)
	}
	r.out.Sequence(5)
	r.in.Expect(6)
	r.write([]byte("pw\x00"))
	if p := r.read(); failure(p) != 1045 {
		t.Errorf("%q", p)
	}
}

// TestSwitch: a client that starts with another method is asked to switch.
func TestSwitch(t *testing.T) {
	s := start(t, nil)
	r, greeting := rawDial(t, s)
	if greeting[0] != 10 || !strings.HasPrefix(string(greeting[1:]), "8.0.") {
		t.Errorf("%q", greeting)
	}
	if err := r.encrypt(&tls.Config{InsecureSkipVerify: true}); err != nil {
		t.Fatal(err)
	}
	r.write(login(rawCaps, "alice", strings.Repeat("x", 20), "mysql_native_password"))
	if p := r.read(); p[0] != 0xfe {
		t.Fatalf("%q", p)
	}
	r.out.Sequence(4)
	r.write([]byte(strings.Repeat("s", 32)))
	r.in.Expect(5)
	if p := r.read(); len(p) != 2 || p[1] != wire.SHA2FullAuth {
		t.Fatalf("%q", p)
	}
	r.out.Sequence(6)
	r.write([]byte("pw\x00"))
	r.in.Expect(7)
	if p := r.read(); p[0] != 0 {
		t.Errorf("%q", p)
	}
}

// TestBadHandshakes: what is no handshake ends the connection with an error and
// without much memory.
func TestBadHandshakes(t *testing.T) {
	s := start(t, nil)
	for name, packet := range map[string][]byte{
		"empty":       {},
		"short":       make([]byte, 10),
		"old":         login(rawCaps&^wire.ClientProtocol41, "alice", "", wire.MethodClear),
		"cut":         login(rawCaps, "alice", "", wire.MethodClear)[:40],
		"too large":   make([]byte, maxHandshakePacket+1),
		"no database": login(rawCaps|wire.ClientConnectWithDB, "alice", "", ""),
	} {
		r, _ := rawDial(t, s)
		r.write(packet)
		if p := r.read(); failure(p) != 1043 && failure(p) != 3159 {
			t.Errorf("%s: %q", name, p)
		}
	}
	r, _ := rawDial(t, s)
	if err := r.encrypt(&tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 is accepted")
	}
	r, _ = rawDial(t, s)
	if err := r.encrypt(&tls.Config{InsecureSkipVerify: true}); err != nil {
		t.Fatal(err)
	}
	r.write(login(rawCaps&^wire.ClientPluginAuth, "alice", "", ""))
	if p := r.read(); failure(p) != 1251 {
		t.Errorf("%q", p)
	}
	for _, n := range []int{maxName, maxName + 1} {
		err := s.db(func(c *mysql.Config) { c.User = strings.Repeat("u", n) }).Ping()
		if want := map[bool]uint16{true: 1045, false: 1043}[n == maxName]; number(err) != want {
			t.Errorf("a name of %d bytes: %v", n, err)
		}
	}
	if s.engine.open.Load() != 0 {
		t.Error("a session was opened")
	}
}

// TestPlainBytesBeforeTLS: what a client (or somebody between) sends behind the
// request for TLS in the clear is never taken for what was encrypted.
func TestPlainBytesBeforeTLS(t *testing.T) {
	s := start(t, nil)
	r, _ := rawDial(t, s)
	injected := login(rawCaps, "alice", "pw\x00", wire.MethodClear)
	request := handshakeHead(rawCaps | wire.ClientSSL)
	both := append([]byte{byte(len(request)), 0, 0, 1}, request...)
	both = append(append(both, byte(len(injected)), 0, 0, 2), injected...)
	if _, err := r.nc.Write(both); err != nil {
		t.Fatal(err)
	}
	if err := tls.Client(r.nc, &tls.Config{InsecureSkipVerify: true}).Handshake(); err == nil {
		t.Error("the TLS handshake went on after plain bytes")
	}
	if s.engine.open.Load() != 0 {
		t.Error("a session was opened")
	}
}

// TestSlowHandshake: a client that does nothing is dropped.
func TestSlowHandshake(t *testing.T) {
	s := start(t, func(o *Options) { o.HandshakeTimeout = 500 * time.Millisecond })
	r, _ := rawDial(t, s)
	if !r.closed() {
		t.Error("still open")
	}
}

// TestConnectionLimit: one more than the limit gets error 1040; a place is free
// again when one leaves.
func TestConnectionLimit(t *testing.T) {
	var mostOpen atomic.Int32
	s := start(t, func(o *Options) {
		o.MaxConnections = 2
		o.Observer = observer(func(open int) {
			if n := int32(open); n > mostOpen.Load() {
				mostOpen.Store(n)
			}
		})
	})
	one, two := s.db(nil), s.db(nil)
	if err := errors.Join(one.Ping(), two.Ping()); err != nil {
		t.Fatal(err)
	}
	if err := s.db(nil).Ping(); number(err) != 1040 {
		t.Error(err)
	}
	_ = one.Close()
	eventually(t, func() bool { return s.db(nil).Ping() == nil })
	if n := mostOpen.Load(); n != 2 {
		t.Error(n)
	}
}

type observer func(int)

func (o observer) Connections(open int) { o(open) }
func (observer) Login(string)           {}

func eventually(t testing.TB, f func() bool) {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < patience; time.Sleep(5 * time.Millisecond) {
		if f() {
			return
		}
	}
	t.Fatalf("not within %s", patience)
}

func TestCertificate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	one, err := GeneratedCertificate(dir)
	if err != nil {
		t.Fatal(err)
	}
	two, err := GeneratedCertificate(dir)
	if err != nil || one.Leaf.SerialNumber.Cmp(two.Leaf.SerialNumber) != 0 {
		t.Error("it is not kept:", err)
	}
	path := filepath.Join(dir, certificateFile)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Error(entries)
	}
	if err := os.WriteFile(path, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if three, err := GeneratedCertificate(dir); err != nil || three.Leaf.SerialNumber.Cmp(one.Leaf.SerialNumber) == 0 {
		t.Error("a broken one is not replaced:", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := GeneratedCertificate(filepath.Join(file, "x")); !fault.Is(err, fault.Config) {
		t.Error(err)
	}
	if _, err := LoadCertificate(file, file); !fault.Is(err, fault.Config) {
		t.Error(err)
	}
	if cert, err := LoadCertificate(path, path); err != nil || cert.Leaf == nil {
		t.Error(err)
	}
}

func TestListen(t *testing.T) {
	open := func(identity.Login, engine.ConnInfo) (Session, error) { return nil, nil }
	auth := authenticator(func(string, string) (identity.Principal, error) { return identity.Principal{}, nil })
	if _, err := Listen(Options{}); err == nil {
		t.Error("a server without an engine")
	}
	if _, err := Listen(Options{Open: open, Authenticator: auth}); !fault.Is(err, fault.Config) {
		t.Error("no TLS and no plain connections:", err)
	}
	s := start(t, nil)
	_, err := Listen(Options{Open: open, Authenticator: auth, PlainAllowed: true, Address: s.server.Addr().String()})
	if !fault.Is(err, fault.Config) || !strings.Contains(err.Error(), "in use") {
		t.Error(err)
	}
}
