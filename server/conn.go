package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"sqe/fault"
	"sqe/identity"
	"sqe/server/wire"
)

// conn is one connection. One goroutine (run) reads commands off a channel,
// executes them and writes; another one (read) reads packets, so that the end of
// the connection is noticed while a statement runs.
type conn struct {
	server    *Server
	id        uint32
	raw       net.Conn
	in        *wire.Reader
	out       *wire.Writer
	remote    string
	log       *slog.Logger
	caps      uint32
	encrypted bool

	session    Session
	statements map[uint32]*statement
	lastID     uint32
	questions  uint64

	ctx    context.Context
	cancel context.CancelCauseFunc

	// file is what the running statement reads from the client; asked says that it
	// may ask for it.
	file  *upload
	asked bool

	// resume lets the reader go on after COM_CHANGE_USER, whose packets the other
	// goroutine reads.
	resume chan struct{}

	mu       sync.Mutex
	upload   *upload // what the reader gives packets to; nil: they are commands
	busy     bool    // a command runs
	draining bool    // end after the running command
}

// goneAfter is how long a connection that is to end may still send its error.
const goneAfter = 2 * time.Second

func newConn(s *Server, raw net.Conn) *conn {
	c := &conn{server: s, id: s.id(), raw: raw, remote: raw.RemoteAddr().String(), statements: map[uint32]*statement{}, resume: make(chan struct{})}
	c.log = s.o.Log.With("connection", c.id, "remote", c.remote)
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.use(raw)
	return c
}

// id is the next connection id, never 0.
func (s *Server) id() uint32 {
	for {
		if id := s.nextID.Add(1); id != 0 {
			return id
		}
	}
}

// use reads and writes through another connection (TLS) from now on.
func (c *conn) use(nc net.Conn) {
	c.in = wire.NewReader(nc)
	c.out = wire.NewWriter(nc, c.server.o.WriteTimeout)
}

// run is the life of the connection.
func (c *conn) run() {
	defer c.raw.Close()
	defer c.cancel(nil)
	defer func() {
		if p := recover(); p != nil {
			c.panicked(p)
		}
	}()
	defer func() {
		if c.session != nil {
			c.session.Close()
		}
	}()
	err := c.login()
	if err != nil {
		if !errors.Is(err, errRefused) {
			c.log.Debug("handshake failed", "error", err)
		}
		return
	}
	c.log.Debug("connected", "tls", c.encrypted)

	packets := make(chan packet, 1)
	var reading sync.WaitGroup
	reading.Go(func() { c.read(packets) })
	defer reading.Wait()
	defer c.raw.Close() // ends the reader
	c.commands(packets)
}

// login is the handshake, counted while it lasts.
func (c *conn) login() error {
	c.server.handshakes.Add(1)
	defer c.server.handshakes.Add(-1)
	return c.handshake()
}

// packet is a command, or why there are no more.
type packet struct {
	data []byte
	next byte // the number of the first packet of the answer
	err  error
}

// read reads commands until the connection ends. A client sends the next command
// after the answer to the last one, so while a statement runs this waits in a
// read, and the end of the connection cancels the statement at once.
func (c *conn) read(packets chan<- packet) {
	defer close(packets)
	defer func() {
		if p := recover(); p != nil {
			c.panicked(p)
			c.cancel(fault.New(fault.Internal, "internal error"))
		}
	}()
	for {
		var to *upload
		data, err := c.in.Next(func() (seq byte, limit int) {
			to, seq = c.expected()
			return seq, c.server.o.MaxPacket
		})
		if to != nil {
			if c.received(to, data, err); err == nil {
				continue
			}
		}
		if err == nil && len(data) > 0 && wire.Command(data[0]) != wire.ComQuit {
			select {
			case packets <- packet{data: data, next: c.in.Seq()}:
			case <-c.ctx.Done():
				return
			}
			if wire.Command(data[0]) == wire.ComChangeUser {
				select {
				case <-c.resume:
				case <-c.ctx.Done():
					return
				}
			}
			continue
		}
		if errors.Is(err, wire.ErrTooLarge) || errors.Is(err, wire.ErrSequence) {
			select {
			case packets <- packet{err: err, next: c.in.Seq()}:
			case <-c.ctx.Done():
			}
			return
		}
		// The client left. What is still being written has no reader.
		c.cancel(fault.New(fault.Cancelled, "the client closed the connection"))
		_ = c.raw.Close()
		return
	}
}

// commands executes commands until the connection ends.
func (c *conn) commands(packets <-chan packet) {
	idle := time.NewTimer(c.server.o.IdleTimeout)
	defer idle.Stop()
	for {
		idle.Reset(c.server.o.IdleTimeout)
		select {
		case p, ok := <-packets:
			if !ok {
				return
			}
			if !c.begin() {
				return
			}
			err := c.command(p)
			if err == nil {
				err = c.out.Flush()
			}
			if c.finish(); err != nil {
				c.log.Debug("connection ends", "error", err)
				return
			}
		case <-c.ctx.Done():
			return
		case <-idle.C:
			c.out.Sequence(0)
			_ = c.refuse(errIdle)
			return
		}
		if c.isDraining() {
			return
		}
	}
}

func (c *conn) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = !c.draining
	return c.busy
}

func (c *conn) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = false
}

func (c *conn) isDraining() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.draining
}

// drain ends the connection after the running command, or now when there is none.
func (c *conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	if !c.busy {
		c.cancel(errShutdown)
		_ = c.raw.Close()
	}
}

// end cancels what the connection runs and closes it, after a moment in which the
// client can be told why.
func (c *conn) end(why *fault.Fault) {
	c.drain()
	c.cancel(why)
	time.AfterFunc(goneAfter, func() { _ = c.raw.Close() })
}

// refuse tells the client an error of the protocol and ends the connection.
func (c *conn) refuse(e wire.Error) error {
	_ = c.out.Error(e, c.caps)
	_ = c.out.Flush()
	return errRefused
}

// fatal tells the client an error and ends the connection.
func (c *conn) fatal(err error) error {
	_ = c.refuse(c.mysqlError(err))
	return &refusal{err}
}

// refusal is an error that the client was told.
type refusal struct{ error }

func (r *refusal) Unwrap() error      { return r.error }
func (*refusal) Is(target error) bool { return target == errRefused }

// command executes one command. An error ends the connection; what went wrong
// with a statement alone was told to the client and is no error here.
func (c *conn) command(p packet) (err error) {
	c.out.Sequence(p.next)
	switch {
	case errors.Is(p.err, wire.ErrTooLarge):
		return c.refuse(errPacketTooLarge)
	case p.err != nil:
		return c.refuse(errOutOfOrder)
	}
	defer func() {
		if r := recover(); r != nil {
			c.panicked(r)
			if err = c.endUpload(); err != nil {
				return
			}
			err = c.fail(fault.New(fault.Internal, "internal error"))
		}
	}()
	return c.dispatch(wire.Command(p.data[0]), p.data[1:])
}

// panicked logs where it happened, not the value of the panic: it may hold data.
func (c *conn) panicked(p any) {
	c.log.Error("panic", "type", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
}

// fail tells the client that a statement failed. Rows that were sent before stay
// valid up to here: the protocol allows an error in place of the end of rows.
// A session that is over ends with its connection, so that a pool makes a new one.
func (c *conn) fail(err error) error {
	if errors.Is(err, identity.ErrOver) {
		return c.fatal(err)
	}
	return c.out.Error(c.mysqlError(err), c.caps)
}
