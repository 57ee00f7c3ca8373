package server

import (
	"context"
	"errors"
	"io"
	"time"

	"sqe/fault"
)

// upload is a file that the client sends while its statement runs: packets of any
// size, the last of which is empty. A client sends the whole file, whatever becomes
// of the statement, so that what nobody reads must be taken all the same.
type upload struct {
	conn    *conn
	ctx     context.Context // of the statement
	packets chan []byte     // closed at the end
	rest    []byte
	ended   bool // the end was seen

	// seq is the number of the next packet, and err why the file broke off. Both are
	// the reader's until packets is closed.
	seq byte
	err error
}

// expected is for the goroutine that reads: where the next packet goes, and its
// number.
func (c *conn) expected() (*upload, byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.upload == nil {
		return nil, 0
	}
	return c.upload, c.upload.seq
}

// received hands over a packet of a file.
func (c *conn) received(u *upload, data []byte, err error) {
	u.seq = c.in.Seq()
	if err == nil && len(data) > 0 {
		select {
		case u.packets <- data:
		case <-c.ctx.Done():
		}
		return
	}
	u.err = err
	c.mu.Lock()
	c.upload = nil
	c.mu.Unlock()
	close(u.packets)
}

// localFile asks the client for a file (engine.ConnInfo.LocalFile).
func (c *conn) localFile(ctx context.Context, name string) (io.Reader, error) {
	if !c.asked || c.file != nil {
		return nil, fault.New(fault.Unsupported, "LOCAL INFILE cannot be prepared by the client; send the statement as text")
	}
	if err := c.out.LocalInfile(name); err != nil {
		return nil, err
	}
	u := &upload{conn: c, ctx: ctx, packets: make(chan []byte, 4), seq: c.out.Next()}
	c.mu.Lock()
	c.upload, c.file = u, u
	c.mu.Unlock()
	if err := c.out.Flush(); err != nil {
		return nil, err
	}
	return u, nil
}

var errBrokenOff = errors.New("the file of the client broke off")

// Read implements io.Reader.
func (u *upload) Read(p []byte) (int, error) {
	for len(u.rest) == 0 {
		if err := u.next(u.ctx); err != nil {
			return 0, err
		}
	}
	n := copy(p, u.rest)
	u.rest = u.rest[n:]
	return n, nil
}

// next takes a packet; io.EOF at the end.
func (u *upload) next(ctx context.Context) error {
	if u.ended {
		return io.EOF
	}
	stalled := time.NewTimer(u.conn.server.o.WriteTimeout)
	defer stalled.Stop()
	select {
	case data, ok := <-u.packets:
		if ok {
			u.rest = data
			return nil
		}
		u.ended = true
		if u.err != nil {
			return fault.Wrap(fault.Cancelled, errors.Join(errBrokenOff, u.err), "the client did not send its file to the end; nothing was loaded")
		}
		return io.EOF
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-stalled.C:
		return fault.New(fault.Cancelled, "the client sent nothing of its file for %s; nothing was loaded", u.conn.server.o.WriteTimeout)
	}
}

// endUpload takes what is left of the file, so that the client hears the answer. Its
// error ends the connection.
func (c *conn) endUpload() error {
	u := c.file
	if u == nil {
		return nil
	}
	c.file = nil
	for {
		err := u.next(c.ctx)
		if err == nil {
			continue
		}
		if !u.ended {
			return err
		}
		c.out.Sequence(u.seq)
		if u.err != nil {
			return u.err
		}
		return nil
	}
}
