package policystore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	_ "modernc.org/sqlite" // driver "sqlite"

	"sqe/fault"
	"sqe/rangerclient/admin"
)

// Options configures a store.
type Options struct {
	// AdminPassword is the password of the user admin when the store is made; with
	// none, admin cannot log in until SetPassword. An existing store ignores it. One
	// that SetPassword would refuse is an error in any case.
	AdminPassword string
	Now           func() time.Time // nil: time.Now
	Log           *slog.Logger     // nil: none
}

// Store is a policy server in one file. It is safe for concurrent use, also by
// several processes; Changed reports the changes of its own process only.
type Store struct {
	reader, writer *sql.DB
	now            func() time.Time
	log            *slog.Logger
	definitions    definitionCache
	downloads      downloadCache
	logins         logins

	id string // of the file, for ever

	mu        sync.Mutex
	changed   chan struct{} // closed by the next change
	followers []func()
}

var _ admin.Server = (*Store)(nil)

// busyWait is how long one process waits for another that writes.
const busyWait = 10 * time.Second

// Open opens the store in the file at path and makes it when there is none.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	if weak(o.AdminPassword) && o.AdminPassword != "" {
		return nil, fault.New(fault.Config, "The password of the user admin of the policy store is too simple: "+
			"it needs 8 characters or more, with a capital letter, a small one and a digit")
	}
	if err := private(path); err != nil {
		return nil, err
	}
	s := &Store{now: o.Now, log: o.Log, changed: make(chan struct{})}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.logins.now = s.now
	name := "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() +
		"?mode=rw&_pragma=busy_timeout(" + strconv.FormatInt(busyWait.Milliseconds(), 10) + ")&_pragma=foreign_keys(1)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
	var err error
	// A writer takes the file's lock at once: one that had read before it waits
	// would be refused.
	if s.writer, err = sql.Open("sqlite", name+"&_txlock=immediate"); err != nil {
		return nil, unusable(err)
	}
	if s.reader, err = sql.Open("sqlite", name+"&_pragma=query_only(1)"); err != nil {
		_ = s.writer.Close()
		return nil, unusable(err)
	}
	s.writer.SetMaxOpenConns(1)
	s.reader.SetMaxOpenConns(8)
	s.reader.SetMaxIdleConns(8)
	if err := s.prepare(ctx, path, o.AdminPassword); err != nil {
		_ = s.Close()
		return nil, unusable(err)
	}
	if err := s.identify(ctx); err != nil {
		_ = s.Close()
		return nil, unusable(err)
	}
	s.checkpoint(ctx)
	return s, nil
}

// private makes the file, or takes the rights of others from it. SQLite gives its
// side files the rights of the file.
func private(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fault.Wrap(fault.Unavailable, err, "The folder of the policy store cannot be created; choose one that this user may write")
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = errors.Join(f.Chmod(0o600), f.Close())
	}
	if errors.Is(err, fs.ErrPermission) {
		return fault.Wrap(fault.Unavailable, err, "The file of the policy store cannot be opened: it must belong to the user that runs the server")
	}
	if err != nil {
		return unusable(err)
	}
	return nil
}

func unusable(err error) error {
	if fault.Is(err, fault.Config) || fault.Is(err, fault.Unavailable) {
		return err
	}
	return fault.Wrap(fault.Unavailable, err, "The policy store cannot be used; check that its file is one, whole and writable")
}

// Close closes the file.
func (s *Store) Close() error {
	return errors.Join(s.reader.Close(), s.writer.Close())
}

// Name implements admin.Server.
func (s *Store) Name() string { return "the embedded policy store" }

// Changed is closed at the next change of this process. Take it before reading:
// what changes afterwards closes it.
func (s *Store) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *Store) announce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}

// OnChange has f called after each change of this process, before the call that made
// it returns: what f reads anew is then in force. f must not write to the store.
func (s *Store) OnChange(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followers = append(s.followers, f)
}

func (s *Store) tellFollowers() {
	s.mu.Lock()
	followers := slices.Clone(s.followers)
	s.mu.Unlock()
	for _, f := range followers {
		f()
	}
}

// read runs f on one state of the store.
func (s *Store) read(ctx context.Context, f func(q *tx) error) error {
	t, err := s.reader.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = t.Rollback() }()
	return f(&tx{ctx: ctx, Tx: t, store: s})
}

// write runs f alone, in one transaction that is on disk when write returns.
func (s *Store) write(ctx context.Context, f func(c *tx) error) error {
	if err := s.commit(ctx, f); err != nil {
		return err
	}
	s.checkpoint(context.WithoutCancel(ctx))
	s.announce()
	s.tellFollowers()
	return nil
}

func (s *Store) commit(ctx context.Context, f func(c *tx) error) error {
	t, err := s.writer.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = t.Rollback() }()
	if err := f(&tx{ctx: ctx, Tx: t, store: s, author: admin.AuthorOf(ctx), time: s.now()}); err != nil {
		return err
	}
	return t.Commit()
}

// checkpointWait is how long a write waits for readers of the state before it.
const checkpointWait = 500 * time.Millisecond

// checkpoint brings what is in the file's write-ahead log into the file itself and
// empties the log: who loses the log, or copies the file alone, then loses nothing.
// Where readers are in the way for long, the change is in the log, on disk, and the
// next write brings it in.
func (s *Store) checkpoint(ctx context.Context) {
	err := func() error {
		conn, err := s.writer.Conn(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		if _, err := conn.ExecContext(ctx, fmt.Sprintf(`PRAGMA busy_timeout = %d`, checkpointWait.Milliseconds())); err != nil {
			return err
		}
		defer func() { _, _ = conn.ExecContext(ctx, fmt.Sprintf(`PRAGMA busy_timeout = %d`, busyWait.Milliseconds())) }()
		var busy, frames, done int
		if err := conn.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &frames, &done); err != nil {
			return err
		}
		if busy != 0 && done < frames {
			return errors.New("a reader is in the way")
		}
		return nil
	}()
	if err != nil {
		s.log.Warn("a change of the policy store is on disk in the log beside its file only, until the next change", "error", err.Error())
	}
}

// tx is a transaction: of a reader, or of a writer with what its history says.
type tx struct {
	*sql.Tx
	ctx    context.Context
	store  *Store
	author admin.Author
	time   time.Time
}

func (t *tx) millis() int64 { return t.time.UnixMilli() }

func (t *tx) exec(query string, args ...any) error {
	_, err := t.ExecContext(t.ctx, query, args...)
	return err
}

// insert is exec that returns the id of the new row.
func (t *tx) insert(query string, args ...any) (int64, error) {
	r, err := t.ExecContext(t.ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return r.LastInsertId()
}

// one reads the first row into the pointers; sql.ErrNoRows when there is none.
func (t *tx) one(query string, args []any, into ...any) error {
	return t.QueryRowContext(t.ctx, query, args...).Scan(into...)
}

// exists reports whether the query yields a row.
func (t *tx) exists(query string, args ...any) (bool, error) {
	var any int
	err := t.one(`SELECT EXISTS (`+query+`)`, args, &any)
	return any == 1, err
}

// each calls f for every row.
func (t *tx) each(query string, args []any, f func(scan func(into ...any) error) error) error {
	rows, err := t.QueryContext(t.ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// text reads a list of texts.
func (t *tx) texts(query string, args ...any) ([]string, error) {
	var list []string
	err := t.each(query, args, func(scan func(...any) error) error {
		var s string
		if err := scan(&s); err != nil {
			return err
		}
		list = append(list, s)
		return nil
	})
	return list, err
}
