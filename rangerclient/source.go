package rangerclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"sqe/fault"
	"sqe/policy"
	"sqe/rangerclient/model"
)

// The defaults of polling.
const (
	DefaultRefreshInterval = 10 * time.Second
	DefaultMaxStaleness    = 60 * time.Second
)

// loader fetches the documents of one poll. prev are those of the last good poll,
// nil before the first. It returns prev itself when nothing changed.
type loader interface {
	load(ctx context.Context, prev *documents) (*documents, error)
	kind() string
}

// keeper is a loader that keeps the documents for the next start.
type keeper interface {
	// store is called after each successful poll, restore once, before the first.
	store(at time.Time, changed bool, bound time.Duration) error
	restore() (*documents, time.Time, error)
}

// Source keeps a State of Ranger's documents. It implements policy.Source.
type Source struct {
	name         string
	options      Options
	loader       loader
	interval     time.Duration
	maxStaleness time.Duration
	now          func() time.Time
	log          *slog.Logger

	current atomic.Pointer[fresh]

	polling sync.Mutex // one poll at a time
	mu      sync.Mutex
	lastErr error

	watcher atomic.Pointer[Watcher]
	look    chan struct{}

	ctx    context.Context // of the refresher
	cancel context.CancelFunc
	done   sync.WaitGroup
	wake   chan struct{}
}

// fresh is a State with the time of the last poll that found it to be true.
type fresh struct {
	state *State
	at    time.Time
}

// Watcher looks after the policies of a source beside their evaluation.
type Watcher interface {
	// Look gets the policies and the roles after a poll that found something new.
	Look(ctx context.Context, policies []*model.Policy, roles []*model.Role) error
	// Notes are for Status.
	Notes() (notes []string, lost, restored int64)
}

// Watch has somebody look at the policies, beside the polls, until the source is
// closed. It is called once.
func (s *Source) Watch(w Watcher) {
	s.watcher.Store(&w)
	s.done.Add(1)
	go func() {
		defer s.done.Done()
		var last *State
		for {
			if c := s.current.Load(); c != nil && c.state != last {
				if err := w.Look(s.ctx, c.state.docs.policies(), c.state.docs.roleList()); err != nil && s.ctx.Err() == nil {
					s.log.Warn("the history of policies could not be compared", "source", s.name, "error", err.Error())
				} else {
					last = c.state
				}
			}
			select {
			case <-s.ctx.Done():
				return
			case <-s.look:
			}
		}
	}()
}

// Name implements policy.Source.
func (s *Source) Name() string { return s.name }

// State implements policy.Source.
func (s *Source) State() (policy.State, error) {
	c := s.current.Load()
	if c == nil {
		return nil, fault.New(fault.PolicyStale, "policies of source %s were never loaded, so nothing can be decided; an administrator sees the cause with SHOW POLICY STATUS", s.name)
	}
	if age := s.now().Sub(c.at); age > s.maxStaleness {
		return nil, fault.New(fault.PolicyStale, "policies of source %s are older than %s; they are asked for again every %s", s.name, s.maxStaleness, s.interval)
	}
	return c.state, nil
}

// Status implements policy.Source.
func (s *Source) Status() policy.Status {
	out := policy.Status{Source: s.name, Kind: s.loader.kind(), MaxAge: s.maxStaleness}
	s.mu.Lock()
	if s.lastErr != nil {
		out.LastError = s.lastErr.Error()
	}
	s.mu.Unlock()
	if c := s.current.Load(); c != nil {
		out.Loaded, out.LastSuccess, out.Age = true, c.at, s.now().Sub(c.at)
		out.Fresh = out.Age <= s.maxStaleness
		out.Versions = c.state.docs.versions()
		out.Policies = c.state.policies()
		out.Problems = c.state.Problems()
	}
	if w := s.watcher.Load(); w != nil {
		out.Notes, out.Lost, out.Restored = (*w).Notes()
	}
	return out
}

// Reload polls now and returns why it failed, if it did. The State of before then
// stays.
func (s *Source) Reload(ctx context.Context) error {
	s.polling.Lock()
	defer s.polling.Unlock()
	err := s.poll(ctx)
	s.mu.Lock()
	before := s.lastErr
	s.lastErr = err
	s.mu.Unlock()
	switch {
	case err != nil && (before == nil || before.Error() != err.Error()):
		s.log.Warn("policies could not be refreshed", "source", s.name, "error", err.Error())
	case err == nil && before != nil:
		s.log.Info("policies are refreshed again", "source", s.name)
	}
	return err
}

func (s *Source) poll(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("policies cannot be compiled: %v", r)
		}
	}()
	began := s.now()
	var prev *documents
	c := s.current.Load()
	if c != nil {
		prev = c.state.docs
	}
	docs, err := s.loader.load(ctx, prev)
	if err != nil {
		return err
	}
	if docs == prev && prev != nil {
		s.current.Store(&fresh{state: c.state, at: began})
		s.keep(began, false)
		return nil
	}
	if err := notOlder(prev, docs); err != nil {
		return err
	}
	s.current.Store(&fresh{state: newState(s.name, s.options, docs, s.now, s.log), at: began})
	s.keep(began, true)
	return nil
}

// keep stores the documents where the loader does that. That it fails is told,
// and changes nothing: the documents in memory are good.
func (s *Source) keep(at time.Time, changed bool) {
	if k, ok := s.loader.(keeper); ok {
		if err := k.store(at, changed, s.maxStaleness); err != nil {
			s.log.Warn("policies could not be stored for the next start", "source", s.name, "error", err.Error())
		}
	}
}

// recall starts with the documents of an earlier run, as old as they are.
func (s *Source) recall() {
	k, ok := s.loader.(keeper)
	if !ok {
		return
	}
	defer func() {
		if r := recover(); r != nil {
			s.log.Warn("stored policies cannot be used", "source", s.name, "error", fmt.Sprint(r))
		}
	}()
	docs, at, err := k.restore()
	if err != nil {
		s.log.Warn("stored policies cannot be used", "source", s.name, "error", err.Error())
		return
	}
	if docs != nil {
		s.current.Store(&fresh{state: newState(s.name, s.options, docs, s.now, s.log), at: at})
	}
}

// notOlder refuses documents that are older than those in force.
func notOlder(prev, next *documents) error {
	if prev == nil {
		return nil
	}
	was, is := prev.versions(), next.versions()
	for name, v := range was {
		n, ok := is[name]
		if !ok {
			return fmt.Errorf("%s: the document is gone", name)
		}
		if n < v {
			return fmt.Errorf("%s: version %d is older than version %d, which is in force", name, n, v)
		}
	}
	return nil
}

// open makes the first poll and starts the refresher. A first poll that fails is
// reported by State and Status; it is tried again.
func open(s *Source) *Source {
	if s.interval <= 0 {
		s.interval = DefaultRefreshInterval
	}
	if s.maxStaleness <= 0 {
		s.maxStaleness = DefaultMaxStaleness
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.wake, s.look = make(chan struct{}, 1), make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(context.Background())
	s.ctx, s.cancel = ctx, cancel
	if s.recall(); s.current.Load() == nil {
		_ = s.Reload(ctx)
	} else {
		s.wake <- struct{}{} // a server that does not answer must not delay the start
	}
	s.done.Add(1)
	go func() {
		defer s.done.Done()
		ticker := time.NewTicker(s.interval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			case <-s.wake:
			}
			_ = s.Reload(ctx)
			select {
			case s.look <- struct{}{}:
			default:
			}
		}
	}()
	return s
}

// Close stops refreshing. The State stays usable until it is stale.
func (s *Source) Close() error {
	s.cancel()
	s.done.Wait()
	return nil
}

var (
	_            policy.Source = (*Source)(nil)
	errNoService               = errors.New("a service of type hive or trino is required for row filters and masks")
)
