// Package ops is what operators see of a server: logs, Prometheus metrics and
// health, on an address of their own.
//
// Invariants: no metric, log line or page holds a value of a row, a literal of a
// statement, a policy text or the name of a user; the number of time series is
// bounded whatever clients do. The pages need no login and change nothing.
package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"sqe/fault"
)

// NewLogger makes the logger of the server. level is "debug", "info", "warn" or
// "error"; format is "text" or "json".
func NewLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fault.New(fault.Config, "log.level is %q; it must be debug, info, warn or error", level)
	}
	o := &slog.HandlerOptions{Level: l}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return nil, fault.New(fault.Config, "log.format is %q; it must be text or json", format)
}

// Check is one condition of readiness. A non-nil error says what is wrong; its
// text is shown.
type Check struct {
	Name string
	Err  func() error
}

// Server serves /metrics, /healthz and /readyz.
type Server struct {
	http     *http.Server
	listener net.Listener
}

// Listen opens the address. Serve then answers.
func Listen(address string, m *Metrics, ready []Check) (*Server, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fault.Wrap(fault.Config, err, "the port of %s is in use; stop what listens there or set another ops.address", address)
		}
		return nil, fault.Wrap(fault.Config, err, "cannot listen on %s (%v); check ops.address", address, errors.Unwrap(err))
	}
	return &Server{listener: l, http: &http.Server{
		Handler: handler(m, ready), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}}, nil
}

// Addr is the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve answers until Shutdown.
func (s *Server) Serve() error {
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown ends the server.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	_ = s.listener.Close() // Serve may not have been called
	return err
}

func handler(m *Metrics, ready []Check) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.handler())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, "ok\n")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		readiness(w, ready)
	})
	return mux
}

// readiness answers 200 when every check passes, else 503, with the reasons.
func readiness(w http.ResponseWriter, checks []Check) {
	page := struct {
		Ready    bool              `json:"ready"`
		Problems map[string]string `json:"problems,omitempty"`
	}{Ready: true}
	for _, c := range checks {
		if err := run(c); err != nil {
			if page.Problems == nil {
				page.Problems = map[string]string{}
			}
			page.Ready, page.Problems[c.Name] = false, err.Error()
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if !page.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(page)
}

// run asks a check; one that panics is not ready. Only the text of a fault is
// made for others' eyes.
func run(c Check) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the check failed (%T)", p)
		}
	}()
	err = c.Err()
	if f := (*fault.Fault)(nil); err != nil && !errors.As(err, &f) {
		return errors.New("not ready; the log of the server has the reason")
	}
	return err
}
