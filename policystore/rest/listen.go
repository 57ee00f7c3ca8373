package rest

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"sqe/fault"
)

// Server listens for requests.
type Server struct {
	http     *http.Server
	listener net.Listener
	tls      bool
}

// Listen opens the address. Serve then answers. Without a certificate the address
// must be one of this machine alone: passwords go over the connection.
func Listen(address string, certificate *tls.Certificate, handler http.Handler) (*Server, error) {
	if certificate == nil {
		host, _, err := net.SplitHostPort(address)
		if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return nil, fault.New(fault.Config, "the policy store would take passwords without encryption on %s: give it a certificate and a key, or an address of this machine such as 127.0.0.1:6080", address)
		}
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fault.Wrap(fault.Config, err, "the port of %s is in use; stop what listens there or give the policy store another address", address)
		}
		return nil, fault.Wrap(fault.Config, err, "the policy store cannot listen on %s; check the address", address)
	}
	l = &bounded{Listener: l, places: make(chan struct{}, maxConnections), closed: make(chan struct{})}
	s := &Server{listener: l, tls: certificate != nil, http: &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute,
		WriteTimeout: 2 * time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}}
	if certificate != nil {
		s.http.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*certificate}}
	} else if tcp, ok := l.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		_ = l.Close() // localhost is another machine's name here
		return nil, fault.New(fault.Config, "the policy store would take passwords without encryption on %s: give it a certificate and a key", address)
	}
	return s, nil
}

// Addr is the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve answers until Shutdown.
func (s *Server) Serve() error {
	var err error
	if s.tls {
		err = s.http.ServeTLS(s.listener, "", "")
	} else {
		err = s.http.Serve(s.listener)
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown ends the server; requests under way are finished until ctx ends.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		_ = s.http.Close()
	}
	_ = s.listener.Close() // Serve may not have been called
	return err
}

// maxConnections are open at a time. Each takes a file, also before it logged in,
// and the rest of the server needs some.
const maxConnections = 1000

// bounded lets connections beyond the places wait for one.
type bounded struct {
	net.Listener
	places chan struct{}
	closed chan struct{}
	close  sync.Once
}

func (b *bounded) Accept() (net.Conn, error) {
	select {
	case b.places <- struct{}{}:
	case <-b.closed:
		return nil, net.ErrClosed
	}
	c, err := b.Listener.Accept()
	if err != nil {
		<-b.places
		return nil, err
	}
	return &placed{Conn: c, leave: func() { <-b.places }}, nil
}

func (b *bounded) Close() error {
	b.close.Do(func() { close(b.closed) })
	return b.Listener.Close()
}

// placed leaves its place when it is closed.
type placed struct {
	net.Conn
	leave func()
	once  sync.Once
}

func (c *placed) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.leave)
	return err
}
