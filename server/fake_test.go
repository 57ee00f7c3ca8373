package server

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"

	"sqe/engine"
	"sqe/fault"
	"sqe/identity"
	"sqe/plan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeEngine answers by the text of a statement. It is the engine of the tests:
// what runs behind the protocol is not their subject.
type fakeEngine struct {
	open    atomic.Int32
	closed  atomic.Int32
	mu      sync.Mutex
	infos   []engine.ConnInfo
	users   []string
	answers map[string]func(ctx context.Context, args []plan.Literal) (*engine.Result, error)
	texts   []string
}

type fakeSession struct {
	e        *fakeEngine
	database string
	login    string
	resets   int
}

func (e *fakeEngine) Open(l identity.Login, info engine.ConnInfo) (Session, error) {
	p := l.Principal
	if p.IsZero() {
		return nil, fault.New(fault.Auth, "no user")
	}
	e.open.Add(1)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.infos, e.users = append(e.infos, info), append(e.users, p.Name)
	return &fakeSession{e: e, login: info.Database}, nil
}

// Ping is what the engine answers to the text "ping".
func (s *fakeSession) Ping(ctx context.Context) error {
	s.e.mu.Lock()
	f := s.e.answers["ping"]
	s.e.mu.Unlock()
	if f == nil {
		return nil
	}
	_, err := f(ctx, nil)
	return err
}

func (s *fakeSession) Close() { s.e.closed.Add(1) }
func (s *fakeSession) Reset() { s.resets++; s.database = s.login }

func (s *fakeSession) Use(_ context.Context, database string) error {
	if database != "bank" && database != "shop" {
		return fault.New(fault.NoDatabase, "Unknown database '%s'", database)
	}
	s.database = database
	return nil
}

func (s *fakeSession) Query(ctx context.Context, text string) (*engine.Result, string, error) {
	first, rest, _ := strings.Cut(text, ";")
	res, err := s.run(ctx, strings.TrimSpace(first), nil)
	return res, strings.TrimSpace(rest), err
}

func (s *fakeSession) Prepare(_ context.Context, text string) (*engine.Prepared, error) {
	if strings.HasPrefix(text, "bad") {
		return nil, fault.New(fault.Syntax, "You have an error")
	}
	p := &engine.Prepared{Text: text, Params: strings.Count(text, "?")}
	if text == "types" {
		p.Columns = typedColumns
	}
	return p, nil
}

func (s *fakeSession) Execute(ctx context.Context, p *engine.Prepared, args []plan.Literal) (*engine.Result, error) {
	return s.run(ctx, p.Text, args)
}

func (s *fakeSession) run(ctx context.Context, text string, args []plan.Literal) (*engine.Result, error) {
	s.e.mu.Lock()
	s.e.texts = append(s.e.texts, text)
	answer := s.e.answers[text]
	s.e.mu.Unlock()
	switch {
	case answer != nil:
		return answer(ctx, args)
	case text == "select 1":
		return values("1", "1"), nil
	case text == "select database()":
		return values("database()", s.database), nil
	case text == "types":
		return &engine.Result{Columns: typedColumns, Rows: &batches{list: []arrow.RecordBatch{typedBatch()}}}, nil
	case text == "sleep":
		<-ctx.Done()
		return nil, context.Cause(ctx)
	case text == "panic":
		panic("a secret value")
	case strings.HasPrefix(text, "params"):
		return values("params", argumentText(args)), nil
	case text == "set":
		return &engine.Result{Affected: 3, Warnings: 2}, nil
	}
	return nil, fault.New(fault.Syntax, "You have an error in your SQL syntax near '%s'", text)
}

func argumentText(args []plan.Literal) string {
	var out []string
	for _, a := range args {
		out = append(out, fmt.Sprintf("%s:%v", a.Typ, a.Value))
	}
	return strings.Join(out, " ")
}

// values is a result of one column and one row of text.
func values(name, value string) *engine.Result {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	defer b.Release()
	b.Append(value)
	col := b.NewArray()
	defer col.Release()
	columns := []plan.Column{{Name: name, Type: plan.String}}
	return &engine.Result{Columns: columns, Rows: &batches{list: []arrow.RecordBatch{record(columns, col)}}}
}

func record(columns []plan.Column, arrays ...arrow.Array) arrow.RecordBatch {
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		fields[i] = arrow.Field{Name: c.Name, Type: arrays[i].DataType(), Nullable: true}
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), arrays, int64(arrays[0].Len()))
}

// batches yields a list of batches, then err or the end.
type batches struct {
	list     []arrow.RecordBatch
	err      error
	closeErr error
	closed   atomic.Bool
}

func (r *batches) Next() (arrow.RecordBatch, error) {
	if len(r.list) == 0 {
		if r.err != nil {
			return nil, r.err
		}
		return nil, io.EOF
	}
	b := r.list[0]
	r.list = r.list[1:]
	return b, nil
}

func (r *batches) Close() error {
	r.closed.Store(true)
	for _, b := range r.list {
		b.Release()
	}
	r.list = nil
	return r.closeErr
}

// setup of a server for tests.

type setup struct {
	t      testing.TB
	engine *fakeEngine
	server *Server
	log    *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// cheapHash is the weakest hash that is allowed, of the password "pw", so that
// tests are quick.
var cheapHash = "$argon2id$v=19$m=8192,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$HAO5Zos1OTxHR9X0pIcUX6TY52m+/mcdXFq/5p/y0zE"

func start(t testing.TB, change func(*Options)) *setup {
	t.Helper()
	cert, err := GeneratedCertificate(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	users, err := identity.NewStatic([]identity.User{{Principal: identity.Principal{Name: "alice", Groups: []string{"g"}}, PasswordHash: cheapHash}})
	if err != nil {
		t.Fatal(err)
	}
	s := &setup{t: t, engine: &fakeEngine{answers: map[string]func(context.Context, []plan.Literal) (*engine.Result, error){}}, log: &lockedBuffer{}}
	o := Options{
		Address: "127.0.0.1:0", Open: s.engine.Open, Authenticator: identity.NewChain(users), TLS: TLSConfig(cert),
		Log: slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&o)
	}
	if s.server, err = Listen(o); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.server.Serve() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		s.server.Shutdown(ctx)
		if err := <-served; err != nil {
			t.Error("Serve:", err)
		}
		if open, closed := s.engine.open.Load(), s.engine.closed.Load(); open != closed {
			t.Errorf("%d sessions were opened and %d closed", open, closed)
		}
	})
	return s
}

func (s *setup) answer(text string, f func(ctx context.Context, args []plan.Literal) (*engine.Result, error)) {
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	s.engine.answers[text] = f
}

func (s *setup) config(change func(*mysql.Config)) *mysql.Config {
	c := mysql.NewConfig()
	c.Net, c.Addr, c.User, c.Passwd = "tcp", s.server.Addr().String(), "alice", "pw"
	c.TLS = &tls.Config{InsecureSkipVerify: true}
	c.Logger = &mysql.NopLogger{}
	if change != nil {
		change(c)
	}
	return c
}

func (s *setup) db(change func(*mysql.Config)) *sql.DB {
	s.t.Helper()
	connector, err := mysql.NewConnector(s.config(change))
	if err != nil {
		s.t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	s.t.Cleanup(func() { _ = db.Close() })
	return db
}

// code of a MySQL error, 0 when there is none.
func number(err error) uint16 {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

func state(err error) string {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return string(e.SQLState[:])
	}
	return ""
}

// One row of every type.

var typedColumns = []plan.Column{
	{Name: "b", Type: plan.Bool},
	{Name: "i", Type: plan.Int32},
	{Name: "l", Type: plan.Int64, Nullable: true},
	{Name: "u", Type: plan.Uint64},
	{Name: "f", Type: plan.Float32},
	{Name: "d", Type: plan.Float64},
	{Name: "dec", Type: plan.Decimal(10, 2)},
	{Name: "date", Type: plan.Date},
	{Name: "time", Type: plan.Time},
	{Name: "ts", Type: plan.Timestamp},
	{Name: "s", Type: plan.String},
	{Name: "bin", Type: plan.Binary},
	{Name: "uuid", Type: plan.UUID},
	{Name: "json", Type: plan.JSON},
	{Name: "n", Type: plan.Null, Nullable: true},
}

func typedBatch() arrow.RecordBatch {
	mem := memory.DefaultAllocator
	one := func(t arrow.DataType, add func(array.Builder)) arrow.Array {
		b := array.NewBuilder(mem, t)
		defer b.Release()
		add(b)
		return b.NewArray()
	}
	ext := func(t arrow.DataType, storage arrow.Array) arrow.Array {
		defer storage.Release()
		return array.NewExtensionArrayWithStorage(t.(arrow.ExtensionType), storage)
	}
	arrays := []arrow.Array{
		one(plan.Bool, func(b array.Builder) { b.(*array.BooleanBuilder).Append(true) }),
		one(plan.Int32, func(b array.Builder) { b.(*array.Int32Builder).Append(-7) }),
		one(plan.Int64, func(b array.Builder) { b.AppendNull() }),
		one(plan.Uint64, func(b array.Builder) { b.(*array.Uint64Builder).Append(18446744073709551615) }),
		one(plan.Float32, func(b array.Builder) { b.(*array.Float32Builder).Append(0.1) }),
		one(plan.Float64, func(b array.Builder) { b.(*array.Float64Builder).Append(1.5e300) }),
		one(plan.Decimal(10, 2), func(b array.Builder) { b.(*array.Decimal128Builder).Append(decimal128.FromI64(-5)) }),
		one(plan.Date, func(b array.Builder) { b.(*array.Date32Builder).Append(19_000) }),
		one(plan.Time, func(b array.Builder) { b.(*array.Time64Builder).Append(3_723_000_004) }),
		one(plan.Timestamp, func(b array.Builder) { b.(*array.TimestampBuilder).Append(1_700_000_000_000_005) }),
		one(plan.String, func(b array.Builder) { b.(*array.StringBuilder).Append("héllo\x00") }),
		one(plan.Binary, func(b array.Builder) { b.(*array.BinaryBuilder).Append([]byte{0, 255}) }),
		ext(plan.UUID, one(&arrow.FixedSizeBinaryType{ByteWidth: 16}, func(b array.Builder) {
			b.(*array.FixedSizeBinaryBuilder).Append([]byte("\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef"))
		})),
		ext(plan.JSON, one(plan.String, func(b array.Builder) { b.(*array.StringBuilder).Append(`{"a": [1]}`) })),
		one(plan.Null, func(b array.Builder) { b.AppendNull() }),
	}
	rec := record(typedColumns, arrays...)
	for _, a := range arrays {
		a.Release()
	}
	return rec
}

func dial(t testing.TB, addr net.Addr) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	return nc
}
