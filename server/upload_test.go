package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"sqe/engine"
	"sqe/fault"
	"sqe/plan"
	"sqe/server/wire"
)

// uploads answers statements that read a file of the client: "load NAME" reads all of
// it and gives its length, "some NAME" a few bytes, "refuse NAME" asks for it and
// fails, "none" fails before.
func uploads(t *testing.T, change func(*Options)) (*setup, *[]byte) {
	var got []byte
	s := start(t, func(o *Options) {
		o.LocalFiles = true
		if change != nil {
			change(o)
		}
	})
	ask := func(read func(io.Reader) error) func(ctx context.Context, args []plan.Literal) (*engine.Result, error) {
		return func(ctx context.Context, _ []plan.Literal) (*engine.Result, error) {
			local := s.lastInfo().LocalFile
			if local == nil {
				return nil, fault.New(fault.Unsupported, "the client sends no files")
			}
			r, err := local(ctx, "Reader::x")
			if err == nil {
				err = read(r)
			}
			return &engine.Result{Affected: uint64(len(got))}, err
		}
	}
	all := func(r io.Reader) (err error) {
		got, err = io.ReadAll(r)
		return err
	}
	s.answer("load", ask(all))
	s.answer("some", ask(func(r io.Reader) error {
		_, err := io.ReadFull(r, make([]byte, 10))
		return err
	}))
	s.answer("refuse", ask(func(io.Reader) error { return fault.New(fault.Limit, "too large") }))
	s.answer("panic in load", ask(func(io.Reader) error { panic("x") }))
	s.answer("twice", func(ctx context.Context, _ []plan.Literal) (*engine.Result, error) {
		local := s.lastInfo().LocalFile
		r, err := local(ctx, "Reader::x")
		if err != nil {
			return nil, err
		}
		if _, err := local(ctx, "Reader::x"); !fault.Is(err, fault.Unsupported) {
			t.Errorf("a second file: %v", err)
		}
		return &engine.Result{}, all(r)
	})
	return s, &got
}

func sending(t *testing.T, content func() io.Reader) {
	mysql.RegisterReaderHandler("x", content)
	t.Cleanup(func() { mysql.DeregisterReaderHandler("x") })
}

func pool(t *testing.T, s *setup, change func(*mysql.Config)) *sql.DB {
	c, err := mysql.NewConnector(s.config(change))
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// TestUpload: a file arrives as it is, and the connection works afterwards.
func TestUpload(t *testing.T) {
	s, got := uploads(t, nil)
	db := pool(t, s, func(c *mysql.Config) { c.MultiStatements = true })
	ctx := context.Background()
	for _, size := range []int{0, 1, 16<<10 - 1, 16 << 10, 16<<10 + 1, 10 << 20} { // the last one has more than 256 packets
		content := make([]byte, size)
		_, _ = rand.Read(content)
		sending(t, func() io.Reader { return bytes.NewReader(content) })
		res, err := db.ExecContext(ctx, "load")
		if err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if n, _ := res.RowsAffected(); int(n) != size || !bytes.Equal(*got, content) {
			t.Errorf("%d bytes: %d arrived", size, n)
		}
		if _, err := db.ExecContext(ctx, "select 1"); err != nil {
			t.Fatalf("after %d bytes: %v", size, err)
		}
		if _, err := db.ExecContext(ctx, "load; set"); err != nil {
			t.Fatalf("several statements with %d bytes: %v", size, err)
		}
	}
	if _, err := db.ExecContext(ctx, "twice"); err != nil {
		t.Error(err)
	}
}

// TestUploadRefused: a client that sends a file to its end hears why the statement
// failed, and its connection works.
func TestUploadRefused(t *testing.T) {
	s, _ := uploads(t, nil)
	db := pool(t, s, nil)
	ctx := context.Background()
	content := strings.Repeat("x", 20<<20)
	sending(t, func() io.Reader { return strings.NewReader(content) })
	for _, text := range []string{"some", "refuse", "panic in load", "select 1"} {
		_, err := db.ExecContext(ctx, text)
		var e *mysql.MySQLError
		switch {
		case text == "refuse" && (!errors.As(err, &e) || !strings.Contains(e.Message, "too large")),
			text == "panic in load" && (!errors.As(err, &e) || !strings.Contains(e.Message, "internal error")),
			(text == "some" || text == "select 1") && err != nil:
			t.Errorf("%s: %v", text, err)
		}
	}
	if n := s.engine.open.Load(); n != 1 {
		t.Errorf("%d connections were needed", n)
	}
}

// TestUploadOfClients: nothing is asked of a client that did not say that it sends
// files, of one on a server that takes none, and for a prepared statement.
func TestUploadOfClients(t *testing.T) {
	sending(t, func() io.Reader { t.Error("the client was asked for a file"); return strings.NewReader("x") })
	ctx := context.Background()
	s, _ := uploads(t, func(o *Options) { o.LocalFiles = false })
	if _, err := pool(t, s, nil).ExecContext(ctx, "load"); err == nil || !strings.Contains(err.Error(), "sends no files") {
		t.Errorf("a server that takes no files: %v", err)
	}
	s, _ = uploads(t, nil)
	stmt, err := pool(t, s, nil).PrepareContext(ctx, "load")
	if err != nil {
		t.Fatal(err)
	}
	defer stmt.Close()
	if _, err := stmt.ExecContext(ctx); err == nil || !strings.Contains(err.Error(), "cannot be prepared") {
		t.Errorf("prepared: %v", err)
	}
}

// slow sends a little and then nothing until it is closed.
type slow struct {
	first  io.Reader
	closed chan struct{}
}

func (r *slow) Read(p []byte) (int, error) {
	if n, err := r.first.Read(p); err == nil {
		return n, nil
	}
	<-r.closed
	return 0, io.EOF
}

// TestUploadStalls: a client that sends no more is not waited for, and one that goes
// away ends its statement.
func TestUploadStalls(t *testing.T) {
	s, _ := uploads(t, func(o *Options) { o.WriteTimeout = 200 * time.Millisecond })
	closed := make(chan struct{})
	sending(t, func() io.Reader { return &slow{strings.NewReader(strings.Repeat("x", 100)), closed} })
	over := make(chan error, 1)
	db := pool(t, s, nil)
	go func() {
		_, err := db.ExecContext(context.Background(), "load")
		over <- err
	}()
	eventually(t, func() bool { return s.engine.closed.Load() > 0 }) // the connection of a client that sends nothing
	close(closed)
	if err := <-over; err == nil {
		t.Error("a file that did not end was loaded")
	}

	s, _ = uploads(t, nil)
	closed = make(chan struct{})
	sending(t, func() io.Reader { return &slow{strings.NewReader(strings.Repeat("x", 100)), closed} })
	gone := pool(t, s, nil)
	go func() {
		_, err := gone.ExecContext(context.Background(), "load")
		over <- err
	}()
	eventually(t, func() bool { return s.engine.open.Load() == 1 })
	s.server.CloseConnection(s.lastInfo().ID)
	close(closed)
	if err := <-over; err == nil {
		t.Error("a file that did not end was loaded")
	}
}

// lastInfo is of the connection that was opened last.
func (s *setup) lastInfo() engine.ConnInfo {
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	return s.engine.infos[len(s.engine.infos)-1]
}

// TestUploadPackets: what a client sends in the place of a file, packet by packet.
func TestUploadPackets(t *testing.T) {
	s, got := uploads(t, func(o *Options) { o.MaxPacket = 1 << 20 })
	open := func() *raw {
		t.Helper()
		r := rawLoginAs(t, s, rawCaps|wire.ClientLocalFiles)
		r.command(wire.ComQuery, "load")
		if p := r.read(); string(p) != "\xfbReader::x" {
			t.Fatalf("the request is %q", p)
		}
		r.out.Sequence(2)
		return r
	}
	r := open()
	for range 600 { // the numbers of packets go round
		r.write([]byte("ab"))
	}
	r.write(nil)
	r.in.Expect(byte((2 + 601) % 256))
	if p := r.read(); p[0] != 0 || len(*got) != 1200 {
		t.Errorf("%q after %d bytes", p, len(*got))
	}
	r.command(wire.ComPing, "")
	if p := r.read(); p[0] != 0 {
		t.Errorf("ping: %q", p)
	}

	*got = nil
	r = open()
	r.write([]byte("ab"))
	r.out.Sequence(9)
	r.write([]byte("cd"))
	if !r.gone() {
		t.Error("packets out of order: the connection goes on")
	}
	r = open()
	_ = errors.Join(r.out.End(append(r.out.Begin(), make([]byte, 2<<20)...)), r.out.Flush()) // the server may hang up before the end
	if !r.gone() {
		t.Error("a packet beyond the limit: the connection goes on")
	}
	r = open()
	r.write([]byte("ab"))
	_ = r.nc.Close() // half a file
	// A client that did not say that it sends files is not asked.
	r = rawLoginAs(t, s, rawCaps)
	r.command(wire.ComQuery, "load")
	if p := r.read(); failure(p) == 0 {
		t.Errorf("%q", p)
	}
	// A command while a file is asked for is a part of the file.
	r = open()
	r.write(append([]byte{byte(wire.ComQuery)}, "set"...))
	r.write(nil)
	r.in.Expect(4)
	if p := r.read(); p[0] != 0 || string(*got) != "\x03set" {
		t.Errorf("%q, %q", p, *got)
	}
}

// gone reads answers until the server closes the connection.
func (r *raw) gone() bool {
	_ = r.nc.SetReadDeadline(time.Now().Add(patience))
	_, err := io.Copy(io.Discard, r.nc)
	var timeout net.Error
	return err == nil || !(errors.As(err, &timeout) && timeout.Timeout())
}
