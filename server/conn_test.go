package server

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/go-sql-driver/mysql"

	"sqe/engine"
	"sqe/fault"
	"sqe/plan"
	"sqe/server/wire"
)

// blocking answers a statement that runs until its context ends.
func (s *setup) blocking(text string) (started, ended chan error) {
	started, ended = make(chan error, 1), make(chan error, 1)
	s.answer(text, func(ctx context.Context, _ []plan.Literal) (*engine.Result, error) {
		started <- nil
		<-ctx.Done()
		err := context.Cause(ctx)
		ended <- err
		return nil, err
	})
	return started, ended
}

// patience is how long tests wait for what happens at once; a busy machine may be many
// times slower than it is alone.
const patience = time.Minute

// within fails when nothing comes.
func within(t *testing.T, c <-chan error) error {
	t.Helper()
	select {
	case err := <-c:
		return err
	case <-time.After(patience):
		t.Fatalf("nothing within %s", patience)
		return nil
	}
}

// TestDisconnect: a client that leaves ends its statement at once, whether it
// says goodbye or not.
func TestDisconnect(t *testing.T) {
	s := start(t, nil)
	started, ended := s.blocking("wait")
	for _, quit := range []bool{false, true} {
		r := rawLogin(t, s)
		r.command(wire.ComQuery, "wait")
		within(t, started)
		if quit {
			r.command(wire.ComQuit, "")
		} else {
			_ = r.nc.Close()
		}
		if err := within(t, ended); !fault.Is(err, fault.Cancelled) {
			t.Error(err)
		}
	}
	// The same through a driver whose context ends.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	over := make(chan error, 1)
	go func() {
		_, err := s.db(nil).ExecContext(ctx, "wait")
		over <- err
	}()
	within(t, started)
	cancel()
	if err := within(t, over); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	within(t, ended)
}

// endless yields one batch for ever.
type endless struct {
	repeated
	closed chan error
}

func (e *endless) Close() error { e.closed <- nil; return nil }

// TestClientStopsReading: it holds little memory and is dropped after the write
// timeout; the rows are closed.
func TestClientStopsReading(t *testing.T) {
	s := start(t, func(o *Options) { o.WriteTimeout = 300 * time.Millisecond })
	closed := make(chan error, 1)
	s.answer("endless", func(context.Context, []plan.Literal) (*engine.Result, error) {
		return &engine.Result{Columns: benchColumns, Rows: &endless{repeated{benchBatch(), 1 << 30}, closed}}, nil
	})
	r := rawLogin(t, s)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r.command(wire.ComQuery, "endless")
	within(t, closed)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
		t.Errorf("%d bytes more", grown)
	}
}

// TestKill: the connection of a running statement ends with the reason; an idle
// one is closed; a wrong id does nothing.
func TestKill(t *testing.T) {
	s := start(t, nil)
	started, ended := s.blocking("wait")
	r := rawLogin(t, s)
	r.command(wire.ComQuery, "wait")
	within(t, started)
	id := s.engine.infos[0].ID
	s.server.CloseConnection(id + 1000)
	s.server.CloseConnection(id)
	if err := within(t, ended); !fault.Is(err, fault.Cancelled) {
		t.Error(err)
	}
	if p := r.read(); failure(p) != 1317 || !strings.Contains(string(p), "KILL") {
		t.Errorf("%q", p)
	}
	if !r.closed() {
		t.Error("still open")
	}
	idle := rawLogin(t, s)
	s.server.CloseConnection(s.engine.infos[1].ID)
	if !idle.closed() {
		t.Error("the idle one is still open")
	}
}

// TestShutdown: idle connections go, a running statement may end, one that does
// not end in time is cancelled with a reason.
func TestShutdown(t *testing.T) {
	for _, ends := range []bool{true, false} {
		s := start(t, nil)
		started := make(chan error, 1)
		s.answer("slow", func(ctx context.Context, _ []plan.Literal) (*engine.Result, error) {
			started <- nil
			if ends {
				time.Sleep(100 * time.Millisecond)
				return values("a", "b"), nil
			}
			<-ctx.Done()
			return nil, context.Cause(ctx)
		})
		idle := rawLogin(t, s)
		db := s.db(nil)
		result := make(chan error, 1)
		go func() {
			var v string
			result <- db.QueryRow("slow").Scan(&v)
		}()
		within(t, started)
		timeout := patience
		if !ends {
			timeout = 50 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		s.server.Shutdown(ctx)
		cancel()
		if err := within(t, result); ends && err != nil || !ends && number(err) != 1053 {
			t.Errorf("ends %v: %v", ends, err)
		}
		if !idle.closed() {
			t.Error("the idle one is still open")
		}
		if err := s.db(nil).Ping(); err == nil {
			t.Error("it still accepts")
		}
	}
}

func TestIdleTimeout(t *testing.T) {
	s := start(t, func(o *Options) { o.IdleTimeout = 50 * time.Millisecond })
	r := rawLogin(t, s)
	r.in.Expect(0)
	if p := r.read(); failure(p) != 4031 || !r.closed() {
		t.Errorf("%q", p)
	}
}

// TestPanic: a panic is an internal error for the client, an entry without the
// value in the log, and the connection lives on.
func TestPanic(t *testing.T) {
	s := start(t, nil)
	db := s.db(nil)
	db.SetMaxOpenConns(1)
	_, err := db.Exec("panic")
	if number(err) != 1105 || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
	s.answer("panicking rows", func(context.Context, []plan.Literal) (*engine.Result, error) {
		return &engine.Result{Columns: benchColumns, Rows: panicking{}}, nil
	})
	if _, err = db.Exec("panicking rows"); number(err) != 1105 {
		t.Error(err)
	}
	var one string
	if err := db.QueryRow("select 1").Scan(&one); err != nil || one != "1" {
		t.Error(one, err)
	}
	if n := s.engine.open.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
	if log := s.log.String(); strings.Contains(log, "secret") || !strings.Contains(log, "level=ERROR msg=panic") {
		t.Error(log)
	}
}

type panicking struct{}

func (panicking) Next() (arrow.RecordBatch, error) { panic("a secret row") }
func (panicking) Close() error                     { return nil }

// TestLargePackets: a row and a statement of more than one packet arrive; beyond
// the limit a statement is refused.
func TestLargePackets(t *testing.T) {
	s := start(t, func(o *Options) { o.MaxPacket = 40 << 20 })
	big := strings.Repeat("x", 1<<24+5)
	s.answer("big", func(context.Context, []plan.Literal) (*engine.Result, error) { return values("big", big), nil })
	db := s.db(func(c *mysql.Config) { c.MaxAllowedPacket = 1 << 30 })
	var got string
	if err := db.QueryRow("big").Scan(&got); err != nil || got != big {
		t.Error(len(got), err)
	}
	text := "params " + strings.Repeat("y", 20<<20)
	if _, err := db.Exec(text); err != nil {
		t.Error(err)
	}
	s.engine.mu.Lock()
	if last := s.engine.texts[len(s.engine.texts)-1]; last != text {
		t.Errorf("%d bytes arrived", len(last))
	}
	s.engine.mu.Unlock()
	// A client that is still sending may see the closed connection instead.
	r := rawLogin(t, s)
	r.out.Sequence(0)
	r.in.Expect(1)
	head := []byte{0xff, 0xff, 0xff, 0}
	body := make([]byte, 1<<24-1)
	for n := range 3 {
		head[3] = byte(n)
		if _, err := r.nc.Write(append(head, body...)); err != nil {
			break
		}
	}
	if p, err := r.in.Packet(1 << 20); err == nil && failure(p) != 1153 {
		t.Errorf("%q", p)
	}
	if !r.closed() {
		t.Error("still open")
	}
}

// TestOutOfOrder: packets out of order end the connection.
func TestOutOfOrder(t *testing.T) {
	s := start(t, nil)
	r := rawLogin(t, s)
	r.out.Sequence(5)
	r.in.Expect(6)
	r.write([]byte("\x03select 1"))
	if p := r.read(); failure(p) != 1156 || !r.closed() {
		t.Errorf("%q", p)
	}
}

// TestManyConnections: a thousand connections work at once and cost little.
func TestManyConnections(t *testing.T) {
	const n = 1000
	s := start(t, func(o *Options) { o.MaxConnections = n })
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	db := s.db(nil)
	db.SetMaxOpenConns(n)
	conns := make([]*sql.Conn, n)
	limit := make(chan struct{}, 16)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			c, err := db.Conn(context.Background())
			if err != nil {
				t.Error(err)
				return
			}
			conns[i] = c
		})
	}
	wg.Wait()
	for _, c := range conns {
		wg.Go(func() {
			var one string
			if c == nil || c.QueryRowContext(context.Background(), "select 1").Scan(&one) != nil || one != "1" {
				t.Error("a connection does not work")
			}
		})
	}
	wg.Wait()
	runtime.GC()
	runtime.ReadMemStats(&after)
	for _, c := range conns {
		if c != nil {
			_ = c.Close()
		}
	}
	each := (int64(after.HeapAlloc+after.StackInuse) - int64(before.HeapAlloc+before.StackInuse)) / n
	t.Logf("%d bytes for each connection, client included", each)
	if each > 256<<10 {
		t.Errorf("%d bytes for each connection", each)
	}
}

// TestErrorTable: every kind of fault has a number and a state of its own
// meaning, and an unknown kind is internal.
func TestErrorTable(t *testing.T) {
	s := start(t, nil)
	db := s.db(nil)
	seen := map[code][]fault.Kind{}
	kinds := 0
	for k := fault.Kind(0); k.String() != ""; k++ {
		kinds++
		want, ok := codes[k]
		if !ok {
			t.Errorf("the kind %s has no MySQL error", k)
			continue
		}
		seen[want] = append(seen[want], k)
		s.answer("fail", func(context.Context, []plan.Literal) (*engine.Result, error) {
			return nil, fmt.Errorf("wrapped: %w", fault.Wrap(k, errors.New("cause"), "text of %s", k))
		})
		_, err := db.Exec("fail")
		if number(err) != want.number || state(err) != want.state {
			t.Errorf("%s: %v, want %v", k, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "text of") != (k != fault.Internal) {
			t.Errorf("%s: %v", k, err)
		}
		if err != nil && strings.Contains(err.Error(), "cause\"") {
			t.Errorf("%s: the cause is shown: %v", k, err)
		}
	}
	if kinds != len(codes) || kinds < 20 {
		t.Errorf("%d kinds, %d in the table", kinds, len(codes))
	}
	for c, kinds := range seen {
		if len(kinds) > 1 {
			t.Errorf("%v is the error of %v", c, kinds)
		}
	}
	s.answer("fail", func(context.Context, []plan.Literal) (*engine.Result, error) {
		return nil, fault.New(fault.NoDatabase, "No database selected")
	})
	if _, err := db.Exec("fail"); number(err) != 1046 || state(err) != "3D000" {
		t.Error(err)
	}
	s.answer("fail", func(context.Context, []plan.Literal) (*engine.Result, error) {
		return nil, &fault.Fault{Kind: 250, Text: "x"}
	})
	if _, err := db.Exec("fail"); number(err) != 1105 || strings.Contains(err.Error(), "x)") {
		t.Error(err)
	}
}

// TestErrorsAreDocumented: the page lists the numbers as the table has them.
func TestErrorsAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "protocol.md"))
	if err != nil {
		t.Fatal(err)
	}
	for k, c := range codes {
		if row := fmt.Sprintf("| %s | %d | %s |", k, c.number, c.state); !strings.Contains(string(page), row) {
			t.Errorf("docs/protocol.md lacks %q", row)
		}
	}
}

// TestInternal: the client is told an id alone, the log has the cause under it,
// and neither has what may be a value.
func TestInternal(t *testing.T) {
	s := start(t, nil)
	cause := errors.New(`Conversion Error: could not convert string 'Müller' to INT64, "Meier" or 4711 in column x`)
	s.answer("fail", func(context.Context, []plan.Literal) (*engine.Result, error) {
		return nil, fmt.Errorf("running: %w", cause)
	})
	s.answer("denied", func(context.Context, []plan.Literal) (*engine.Result, error) {
		return nil, fault.Wrap(fault.OutOfRange, cause, "a value cannot be converted")
	})
	db := s.db(nil)
	_, err := db.Exec("fail")
	_, denied := db.Exec("denied")
	log := s.log.String()
	var e *mysql.MySQLError
	if !errors.As(err, &e) || e.Number != 1105 || !strings.HasPrefix(e.Message, "internal error (id ") {
		t.Fatal(err)
	}
	id := strings.TrimSuffix(strings.Fields(e.Message)[3], ");")
	if !strings.Contains(log, "id="+id) || strings.Count(log, "Conversion Error") != 2 {
		t.Errorf("id %s, log %s", id, log)
	}
	for _, value := range []string{"Müller", "Meier", "4711"} {
		if strings.Contains(log+err.Error()+denied.Error(), value) {
			t.Errorf("%s is shown: %s %v %v", value, log, err, denied)
		}
	}
}

// TestCauses: what may be a value is not in the text for the log.
func TestCauses(t *testing.T) {
	for in, want := range map[string]string{
		`near 'it''s' x`:           "near",
		`open "a""b`:               "open",
		"column `x y` is 12.5e-3":  "column",
		"unterminated 'secret":     "unterminated",
		"plain":                    "plain",
		"no such file":             "no such file",
		"date 2024-01-02T03:04:05": "date",
		`Could not convert string 'O'Brien secret' to INT`:  "Could not convert string",
		"Truncated incorrect DOUBLE value: Sanne":           "Truncated incorrect DOUBLE value",
		"Conversion Error: could not convert string Müller": "Conversion Error",
	} {
		if got := causes(errors.New(in)); got != "*errors.errorString: "+want {
			t.Errorf("%q: %q", in, got)
		}
	}
	// Each of several causes is said, and of the operating system its own words.
	many := fault.Wrap(fault.Unavailable, errors.Join(
		&fs.PathError{Op: "write", Path: "/v=secret/1", Err: syscall.ENOSPC}, errors.New("2 files (/v=secret/2)"), fmt.Errorf("left: %w", errors.New("class 'secret'")),
	), "the text")
	if got := causes(many); !strings.HasSuffix(got, ": the text: write: no space left on device: class") {
		t.Errorf("%q", got)
	}
}

// detailed is an error that says more to a log than its text does.
type detailed struct{ below error }

func (detailed) Error() string     { return "https://store.example/bucket?secret" }
func (detailed) Detail() string    { return "status 403, AccessDenied, request R1" }
func (d detailed) Unwrap() []error { return []error{d.below} }

// TestDetailInLog: the log has what an error made for it, and not its text.
func TestDetailInLog(t *testing.T) {
	err := fault.Wrap(fault.Unavailable, detailed{errors.New("the store refuses")}, "The files cannot be reached")
	const want = "status 403, AccessDenied, request R1: the store refuses"
	if got := Cause(err); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := causes(err); !strings.HasSuffix(got, "The files cannot be reached: "+want) || strings.Contains(got, "secret") {
		t.Errorf("%q", got)
	}
	if got := Cause(fault.New(fault.NotFound, "There is no such table")); got != "" {
		t.Errorf("%q", got)
	}
}
