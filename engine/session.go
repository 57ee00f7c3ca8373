package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/catalog"
	"sqe/engine/bind"
	"sqe/engine/parse"
	"sqe/fault"
	"sqe/identity"
	"sqe/plan"
	"sqe/rewrite"
)

// Session is one connection of one principal. It runs one statement at a time;
// only Running may be called meanwhile.
type Session struct {
	engine    *Engine
	login     identity.Login
	principal identity.Principal
	// roles are those of SET ROLE, nil for all.
	roles       []string
	info        ConnInfo
	vars        *bind.Session
	process     *process
	prepared    map[string]*Prepared
	transaction transaction
	closeOnce   sync.Once
}

// Open starts a session of a principal who has no credential. A zero principal is
// refused.
func (e *Engine) Open(p identity.Principal, info ConnInfo) (*Session, error) {
	return e.OpenLogin(identity.Login{Principal: p}, info)
}

// OpenLogin starts the session of a login. It ends with the login: each statement
// asks first whether it may go on.
func (e *Engine) OpenLogin(l identity.Login, info ConnInfo) (*Session, error) {
	p := l.Principal
	if p.IsZero() {
		return nil, fault.New(fault.Auth, "Access denied: no user")
	}
	p.Address = identity.Address(info.RemoteAddr)
	s := &Session{engine: e, login: l, principal: p, info: info}
	s.process = &process{id: info.ID, principal: p, remote: info.RemoteAddr, since: time.Now()}
	s.Reset()
	e.processes.add(s.process)
	return s, nil
}

// Reset drops everything that the session accumulated: variables, prepared
// statements, warnings, the roles of SET ROLE. The database is again that of the
// login.
func (s *Session) Reset() {
	s.roles, s.principal.ActiveRoles = nil, nil
	s.vars = s.engine.binder.NewSession(s.info.ID, s.principal, s.info.RemoteAddr)
	s.prepared = map[string]*Prepared{}
	s.transaction = transaction{}
	s.setDatabase(s.info.Database)
}

// Close ends the session and what it runs.
func (s *Session) Close() {
	s.closeOnce.Do(func() {
		s.process.mu.Lock()
		if s.process.cancel != nil {
			s.process.cancel(fault.New(fault.Cancelled, "the connection was closed"))
		}
		s.process.mu.Unlock()
		s.engine.processes.remove(s.process)
	})
}

// Principal is who the session belongs to.
func (s *Session) Principal() identity.Principal { return s.principal }

// Database is the current database, "" when none is selected.
func (s *Session) Database() string { return s.vars.Database() }

func (s *Session) setDatabase(db string) {
	s.vars.SetDatabase(db)
	s.process.mu.Lock()
	s.process.database = db
	s.process.mu.Unlock()
}

// Use selects a database that the principal may see.
func (s *Session) Use(ctx context.Context, database string) error {
	_, err := s.statement(ctx, "use", "USE", func(ctx context.Context, st *statement) (*Result, error) {
		return st.use(ctx, database)
	})
	return err
}

// Running is the fingerprint of the running statement and since when, or "" and
// since when the session is idle.
func (s *Session) Running() (string, time.Time) {
	s.process.mu.Lock()
	defer s.process.mu.Unlock()
	return s.process.statement, s.process.since
}

// Query runs the first statement of text and returns the rest. After an error
// the rest is not to be run.
func (s *Session) Query(ctx context.Context, text string) (res *Result, rest string, err error) {
	stmt, rest, err := parse.Parse(text)
	if err != nil {
		return nil, "", s.refused(parse.Fingerprint(text), err)
	}
	res, err = s.execute(ctx, stmt, parse.Fingerprint(text[:len(text)-len(rest)]), nil)
	return res, rest, err
}

// Prepare binds a statement once to learn its parameters and columns. Policies
// are asked again at each execution.
func (s *Session) Prepare(ctx context.Context, text string) (*Prepared, error) {
	stmt, rest, err := parse.Parse(text)
	if err == nil && rest != "" {
		err = fault.New(fault.Syntax, "a prepared statement holds one statement")
	}
	if err != nil {
		return nil, s.refused(parse.Fingerprint(text), err)
	}
	p := &Prepared{Text: text, Params: parse.Params(stmt)}
	sql, ok := stmt.(*parse.SQL)
	if !ok {
		return p, nil
	}
	_, err = s.statement(ctx, "prepare", parse.Fingerprint(text), func(ctx context.Context, st *statement) (*Result, error) {
		if sql.Kind != parse.Query && sql.Kind != parse.Show {
			return &Result{}, nil
		}
		relations{st}.prefetchNamed(ctx, parse.NamesOf(sql), s.vars.Database())
		p.Params, p.Columns, err = s.engine.binder.Describe(ctx, s.vars, relations{st}, sql)
		return &Result{}, err
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Execute runs a prepared statement.
func (s *Session) Execute(ctx context.Context, p *Prepared, args []plan.Literal) (*Result, error) {
	if len(args) != p.Params {
		return nil, fault.New(fault.BadStatement, "the statement has %d parameters, %d were given", p.Params, len(args))
	}
	stmt, _, err := parse.Parse(p.Text)
	if err != nil {
		return nil, err
	}
	return s.execute(ctx, stmt, parse.Fingerprint(p.Text), args)
}

// refused records a statement that did not even parse.
func (s *Session) refused(fingerprint string, err error) error {
	if lost := s.engine.audit.Ready(); lost != nil {
		return lost
	}
	if lost := s.finish(s.begin(), "syntax", fingerprint, 0, err); lost != nil {
		return lost
	}
	s.vars.Failed()
	return err
}

func (s *Session) begin() *statement {
	s.vars.Began()
	return &statement{engine: s.engine, session: s, principal: s.principal, started: time.Now(), tables: map[string]*rewrite.Bound{}}
}

// statement runs f as one statement: with a timeout, killable, with panics
// caught, and with one audit event at its end. When f yields rows the statement
// ends with them. A statement whose event cannot be recorded does not succeed.
func (s *Session) statement(ctx context.Context, kind, fingerprint string, f func(context.Context, *statement) (*Result, error)) (res *Result, err error) {
	if err := s.engine.audit.Ready(); err != nil {
		return nil, err
	}
	if err := s.proceed(ctx); err != nil {
		if lost := s.finish(s.begin(), kind, fingerprint, 0, err); lost != nil {
			return nil, lost
		}
		return nil, err
	}
	st := s.begin()
	ctx = catalog.WithStatement(identity.WithPrincipal(ctx, s.principal))
	if s.login.Credential != nil {
		ctx = identity.WithCredential(ctx, s.login.Credential)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.CancelFunc(func() {})
	if t := s.engine.timeout; t > 0 {
		ctx, stop = context.WithTimeoutCause(ctx, t, fault.New(fault.Timeout, "the statement ran longer than server.statement-timeout (%s) and was ended", t))
	}
	end := s.process.begin(fingerprint, cancel)
	over := func(rows int64, err error) error {
		end()
		stop()
		cancel(nil)
		return s.finish(st, kind, fingerprint, rows, err)
	}
	defer func() {
		if p := recover(); p != nil {
			res, err = nil, s.panicked(p)
		}
		if err == nil && res.Rows != nil {
			res.Rows = &tracked{Rows: res.Rows, session: s, ctx: ctx, over: over}
			return
		}
		if err != nil {
			err = causeOf(ctx, err)
			s.vars.Failed()
		}
		var rows int64
		if err == nil {
			rows = int64(res.Affected)
		}
		if lost := over(rows, err); lost != nil && err == nil {
			if len(st.changed) > 0 {
				lost = fault.Wrap(fault.KindOf(lost), lost, "%s. What the statement changes was changed already", lost)
			}
			res, err = nil, lost
		}
	}()
	return f(ctx, st)
}

// panicked logs where a statement panicked, without the panic's value (it may
// hold data), and denies.
func (s *Session) panicked(p any) error {
	s.engine.log.Error("panic in a statement", "connection", s.info.ID, "type", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
	return fault.New(fault.Internal, "internal error")
}

// causeOf replaces the error of a statement that was cancelled by the reason for
// which it was.
func causeOf(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	var f *fault.Fault
	if errors.As(context.Cause(ctx), &f) {
		return f
	}
	return fault.Wrap(fault.Cancelled, err, "the statement was cancelled")
}

// tracked is the rows of a running statement.
type tracked struct {
	Rows
	session *Session
	ctx     context.Context
	over    func(int64, error) error
	once    sync.Once
	n       int64
	err     error
}

// Next implements Rows.
func (t *tracked) Next() (b arrow.RecordBatch, err error) {
	defer func() {
		if p := recover(); p != nil {
			b, err = nil, t.session.panicked(p)
		}
		switch {
		case err == nil:
			t.n += b.NumRows()
		case isEOF(err):
			if lost := t.end(); lost != nil {
				err = lost
			}
		default:
			err = causeOf(t.ctx, err)
			t.err = err
		}
	}()
	return t.Rows.Next()
}

// end records the statement once.
func (t *tracked) end() (lost error) {
	t.once.Do(func() { lost = t.over(t.n, t.err) })
	return lost
}

// Close implements Rows. Rows that were not read to their end are a statement
// that was given up, which is no error.
func (t *tracked) Close() error {
	err := t.Rows.Close()
	if lost := t.end(); err == nil {
		err = lost
	}
	return err
}
