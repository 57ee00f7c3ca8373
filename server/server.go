// Package server speaks the MySQL protocol with clients: it listens, encrypts,
// authenticates, keeps connections, and turns results of the engine into packets.
//
// Invariants: no session of the engine is opened before the login succeeded, and
// a connection without one can do nothing; a login reaches the engine only as
// the principal that the Authenticator returned; a password is never kept, logged
// or sent in the clear; the end of a connection ends its statement; no text of a
// statement and no value of a row is logged.
//
// The package must never read tables or policies itself, or answer a statement
// without the engine.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"sqe/engine"
	"sqe/fault"
	"sqe/identity"
	"sqe/plan"
)

// Session is one session of the engine. *engine.Session implements it.
type Session interface {
	// Query runs the first statement of text and returns the rest, "" at the end.
	Query(ctx context.Context, text string) (res *engine.Result, rest string, err error)
	Prepare(ctx context.Context, text string) (*engine.Prepared, error)
	Execute(ctx context.Context, p *engine.Prepared, args []plan.Literal) (*engine.Result, error)
	// Use selects a database that the principal may see.
	Use(ctx context.Context, database string) error
	// Ping is nil unless the session is over. The connection then ends without an
	// answer: pools ask by a ping or a reset whether they may hand a connection on, and
	// take an error in the answer for one of their user's.
	Ping(ctx context.Context) error
	// Reset drops what the session accumulated.
	Reset()
	Close()
}

// Observer counts connections and logins. Its arguments hold no names.
type Observer interface {
	// Connections is told the number of authenticated connections at each change,
	// in order. It must be quick.
	Connections(open int)
	// Login is told the outcome of each login: "ok", or the kind of its error.
	Login(outcome string)
}

// Options are what a Server is made of.
type Options struct {
	// Address is host:port. Port 0 takes a free one (see Server.Addr).
	Address string
	// Open opens a session of the engine. Required.
	Open func(identity.Login, engine.ConnInfo) (Session, error)
	// Authenticator decides who a login is. Required.
	Authenticator identity.Authenticator
	// TLS is the configuration of encrypted connections; nil: there are none.
	TLS *tls.Config
	// PlainAllowed lets clients connect without TLS. Without it and without TLS
	// nobody can connect.
	PlainAllowed bool
	// Version is what clients see; many decide by its first number ("8.0.36-SQE").
	Version string
	// MaxConnections bounds authenticated connections. Default 1000.
	MaxConnections int
	// HandshakeTimeout bounds a login. Default 10 s.
	HandshakeTimeout time.Duration
	// IdleTimeout closes a connection without a statement. Default 8 h.
	IdleTimeout time.Duration
	// WriteTimeout closes a connection whose client takes nothing. Default 60 s.
	WriteTimeout time.Duration
	// MaxPacket bounds a statement and the parameters of a prepared statement, in
	// bytes. Default 64 MiB.
	MaxPacket int
	// LocalFiles lets statements read files that clients send (LOCAL INFILE).
	LocalFiles bool
	// Logins, when not nil, records each login that was decided. When it fails, a
	// login that succeeded is refused.
	Logins   func(LoginEvent) error
	Observer Observer
	Log      *slog.Logger
}

// LoginEvent is a login that was decided.
type LoginEvent struct {
	User         string // as the client sent it
	Principal    identity.Principal
	RemoteAddr   string
	ConnectionID uint32
	Err          error // nil: it succeeded; identity.ReasonOf says why it was refused
}

// spareHandshakes bounds connections that are not authenticated yet, beside as
// many as may be authenticated: all clients may come back at once.
const spareHandshakes = 256

// Server accepts connections. It is safe for concurrent use.
type Server struct {
	o        Options
	listener net.Listener
	keys     *passwordKeys
	started  time.Time

	nextID     atomic.Uint32
	handshakes atomic.Int32
	wg         sync.WaitGroup

	mu     sync.Mutex
	conns  map[uint32]*conn // authenticated
	all    map[*conn]struct{}
	closed bool
}

// Listen opens the port. Serve then accepts connections.
func Listen(o Options) (*Server, error) {
	if o.Open == nil || o.Authenticator == nil {
		return nil, errors.New("server: Open and Authenticator are required")
	}
	if o.TLS == nil && !o.PlainAllowed {
		return nil, fault.New(fault.Config, "TLS is required and there is no certificate: set server.tls-cert and server.tls-key, or allow plain connections with server.require-tls = false")
	}
	defaults(&o)
	l, err := net.Listen("tcp", o.Address)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fault.Wrap(fault.Config, err, "the port of %s is in use; stop what listens there or set another server.port", o.Address)
		}
		return nil, fault.Wrap(fault.Config, err, "cannot listen on %s (%v); check server.address and server.port", o.Address, errors.Unwrap(err))
	}
	s := &Server{o: o, listener: l, keys: &passwordKeys{}, started: time.Now(), conns: map[uint32]*conn{}, all: map[*conn]struct{}{}}
	return s, nil
}

func defaults(o *Options) {
	set := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	set(&o.HandshakeTimeout, 10*time.Second)
	set(&o.IdleTimeout, 8*time.Hour)
	set(&o.WriteTimeout, time.Minute)
	if o.MaxConnections <= 0 {
		o.MaxConnections = 1000
	}
	if o.MaxPacket <= 0 {
		o.MaxPacket = 64 << 20
	}
	if o.Version == "" {
		o.Version = "8.0.36-SQE"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Observer == nil {
		o.Observer = nobody{}
	}
	if o.Logins == nil {
		o.Logins = func(LoginEvent) error { return nil }
	}
}

type nobody struct{}

func (nobody) Connections(int) {}
func (nobody) Login(string)    {}

// Addr is the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve accepts connections until Shutdown.
func (s *Server) Serve() error {
	pause := time.Duration(0)
	for {
		nc, err := s.listener.Accept()
		if err != nil {
			if s.isClosed() {
				return nil
			}
			if !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) && !errors.Is(err, syscall.ECONNABORTED) {
				return fmt.Errorf("accept: %w", err)
			}
			// Out of file descriptors: connections that end give some back.
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.o.Log.Warn("cannot accept a connection; raise the limit of open files", "error", err)
			time.Sleep(pause)
			continue
		}
		pause = 0
		if t, ok := nc.(*net.TCPConn); ok {
			// Notices within about 30 s that a client vanished without a word.
			_ = t.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3})
		}
		c := newConn(s, nc)
		if !s.register(c) {
			_ = nc.Close()
			continue
		}
		go func() {
			defer s.wg.Done()
			defer s.unregister(c)
			c.run()
		}()
	}
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func (s *Server) register(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.wg.Add(1)
	s.all[c] = struct{}{}
	return true
}

func (s *Server) unregister(c *conn) {
	s.mu.Lock()
	delete(s.all, c)
	if s.conns[c.id] == c {
		delete(s.conns, c.id)
	}
	s.o.Observer.Connections(len(s.conns))
	s.mu.Unlock()
}

// admit counts c as authenticated, unless there are too many.
func (s *Server) admit(c *conn) bool {
	s.mu.Lock()
	if s.conns[c.id] != c && len(s.conns) >= s.o.MaxConnections || s.closed {
		s.mu.Unlock()
		return false
	}
	s.conns[c.id] = c
	s.o.Observer.Connections(len(s.conns))
	s.mu.Unlock()
	return true
}

func (s *Server) full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns) >= s.o.MaxConnections
}

// CloseConnection ends a connection and what it runs (KILL).
func (s *Server) CloseConnection(id uint32) {
	s.mu.Lock()
	c := s.conns[id]
	s.mu.Unlock()
	if c != nil {
		c.end(fault.New(fault.Cancelled, "the connection was ended by KILL"))
	}
}

// Shutdown stops accepting, closes idle connections and waits for running
// statements until ctx ends; those that still run are then cancelled. It returns
// when every connection is gone.
func (s *Server) Shutdown(ctx context.Context) {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	open := make([]*conn, 0, len(s.all))
	for c := range s.all {
		open = append(open, c)
	}
	s.mu.Unlock()
	if first {
		_ = s.listener.Close()
	}
	for _, c := range open {
		c.drain()
	}
	gone := make(chan struct{})
	go func() {
		s.wg.Wait()
		close(gone)
	}()
	select {
	case <-gone:
		return
	case <-ctx.Done():
	}
	for _, c := range open {
		c.end(errShutdown)
	}
	<-gone
}

// errShutdown is the cause with which statements end at a shutdown.
var errShutdown = fault.New(fault.Cancelled, "the server shuts down; connect again")
