package server

import (
	"context"
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"testing"

	"sqe/engine"
	"sqe/fault"
	"sqe/identity"
	"sqe/plan"
	"sqe/server/wire"
)

// become sends COM_CHANGE_USER and goes through the login.
func (r *raw) become(user, password, database string) []byte {
	r.t.Helper()
	scramble := sha256.Sum256([]byte("an answer to the salt of the first login"))
	body := user + "\x00" + string([]byte{32}) + string(scramble[:]) + database + "\x00\x2d\x00" + wire.MethodCachingSHA2 + "\x00"
	r.command(wire.ComChangeUser, body)
	if p := r.read(); p[0] != 0xfe { // whatever was sent, the password is asked for
		r.t.Fatalf("no request for a login: %q", p)
	}
	r.out.Sequence(r.in.Seq())
	r.write(scramble[:])
	r.in.Expect(r.out.Next())
	if p := r.read(); len(p) != 2 || p[1] != wire.SHA2FullAuth {
		r.t.Fatalf("%q", p)
	}
	r.out.Sequence(r.in.Seq())
	r.write([]byte(password + "\x00"))
	r.in.Expect(r.out.Next())
	return r.read()
}

// TestChangeUser: the connection becomes that of another user after a login, with
// nothing of the former session; a login that fails ends it.
func TestChangeUser(t *testing.T) {
	var mu sync.Mutex
	var events []LoginEvent
	s := start(t, func(o *Options) {
		o.MaxConnections = 1 // the connection itself is not one too many
		o.Authenticator = authenticator(func(user, password string) (identity.Principal, error) {
			if password != "pw" {
				return identity.Principal{}, identity.Denied(user, nil, identity.ReasonPassword)
			}
			return identity.Principal{Name: user}, nil
		})
		o.Logins = func(e LoginEvent) error {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, e)
			return nil
		}
	})
	r := rawLogin(t, s)
	r.command(wire.ComStmtPrepare, "select 1")
	r.read()
	for range 2 {
		if p := r.become("bob", "pw", "shop"); p[0] != 0 {
			t.Fatalf("%q", p)
		}
	}
	if open, closed := s.engine.open.Load(), s.engine.closed.Load(); open != 3 || closed != 2 {
		t.Errorf("%d sessions were opened, %d closed", open, closed)
	}
	s.engine.mu.Lock()
	if user, info := s.engine.users[2], s.engine.infos[2]; user != "bob" || info.Database != "shop" {
		t.Errorf("%s %+v", user, info)
	}
	s.engine.mu.Unlock()
	r.command(wire.ComStmtExecute, "\x01\x00\x00\x00\x00\x01\x00\x00\x00")
	if p := r.read(); failure(p) != 1243 {
		t.Errorf("a statement of the former user: %q", p)
	}
	r.command(wire.ComPing, "")
	if p := r.read(); p[0] != 0 {
		t.Errorf("%q", p)
	}
	if p := r.become("alice", "wrong", ""); failure(p) != 1045 || !r.closed() {
		t.Errorf("a wrong password: %q", p)
	}
	if open, closed := s.engine.open.Load(), s.engine.closed.Load(); open != 3 || closed != 3 {
		t.Errorf("%d sessions were opened, %d closed", open, closed)
	}
	mu.Lock()
	defer mu.Unlock()
	if n := len(events); n != 4 || identity.ReasonOf(events[3].Err) != identity.ReasonPassword || events[3].User != "alice" {
		t.Errorf("%d logins: %+v", n, events)
	}
}

// TestOpenID: the token of MySQL's method for tokens arrives whole, sent at once
// or when asked for, over TLS alone.
func TestOpenID(t *testing.T) {
	var got string
	asked := 0
	s := start(t, func(o *Options) {
		o.PlainAllowed = true
		o.Authenticator = authenticator(func(_, password string) (identity.Principal, error) {
			got, asked = password, asked+1
			return identity.Principal{Name: "ann"}, nil
		})
	})
	const token = "a.b.c"
	packet := openIDPacket(token)
	// Connector/J sends zeros behind the token.
	for _, first := range []string{packet, "", packet + "\x00\x00\x00"} {
		r := openIDLogin(t, s, first)
		if p := r.asked(packet, first == ""); p[0] != 0 || got != token {
			t.Errorf("%q: %q", got, p)
		}
		got = ""
	}
	asked = 0
	for _, bad := range []string{"\x02\x05" + token, "\x01\x06" + token, "\x01\x04" + token, "\x01\xfe\xff\xff\xff\xff\xff\xff\xff\xff", "\x01\xfb", "\x01\x05" + token + "x", "\x01\x05" + token + "\x00x"} {
		r := openIDLogin(t, s, bad)
		if p := r.read(); failure(p) != 1043 || !r.closed() {
			t.Errorf("%q: %q", bad, p)
		}
	}
	r, _ := rawDial(t, s)
	r.write(login(rawCaps, "", packet, wire.MethodOpenID))
	if p := r.read(); failure(p) != 3159 || !r.closed() {
		t.Errorf("without TLS: %q", p)
	}
	if asked != 0 {
		t.Errorf("%d logins were decided", asked)
	}
}

// TestSessionOver: a session that its provider ended ends with its connection;
// other errors leave it open.
func TestSessionOver(t *testing.T) {
	s := start(t, nil)
	for text, err := range map[string]error{
		"over":  identity.Over("the token of this session has expired; log in again"),
		"later": fault.New(fault.Unavailable, "the identity provider does not answer"),
	} {
		s.answer(text, func(context.Context, []plan.Literal) (*engine.Result, error) { return nil, err })
	}
	r := rawLogin(t, s)
	r.command(wire.ComQuery, "later")
	if p := r.read(); failure(p) != 1429 {
		t.Errorf("%q", p)
	}
	r.command(wire.ComQuery, "over")
	if p := r.read(); failure(p) != 1045 || !r.closed() {
		t.Errorf("%q", p)
	}
}

// TestPingOver: a ping or a reset of a session that is over ends the connection
// without an answer, which is what pools replace a connection for.
func TestPingOver(t *testing.T) {
	s := start(t, nil)
	var over atomic.Bool
	s.answer("ping", func(context.Context, []plan.Literal) (*engine.Result, error) {
		if over.Load() {
			return nil, identity.Over("the token of this session has expired; log in again")
		}
		return nil, nil
	})
	for _, command := range []wire.Command{wire.ComPing, wire.ComResetConnection} {
		over.Store(false)
		r := rawLogin(t, s)
		r.command(command, "")
		if p := r.read(); len(p) == 0 || p[0] != 0 {
			t.Fatalf("%d: %q", command, p)
		}
		over.Store(true)
		r.command(command, "")
		if !r.closed() {
			t.Errorf("%d of a session that is over was answered", command)
		}
	}
}
