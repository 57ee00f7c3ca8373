package ranger

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// The bounds of a batch, and of the time between attempts.
const (
	maxBatch      = 500
	maxBatchBytes = 1 << 20
	firstWait     = time.Second
	longestWait   = time.Minute
	// longestAsked is the most that a receiver may ask to wait (Retry-After).
	longestAsked = 5 * time.Minute
)

// target is where events are sent.
type target interface {
	// send sends lines, each an Event. Nil: they arrived. A *rejected: at least one
	// of them will never be taken. Anything else may work later.
	send(ctx context.Context, lines [][]byte) error
}

// rejected is the answer of a receiver that will not take these events however
// often they are sent.
type rejected struct{ why string }

func (r *rejected) Error() string { return r.why }

// later is the answer of a receiver that wants to be asked again after some time.
type later struct {
	why   string
	after time.Duration
}

func (l *later) Error() string { return l.why }

// sender sends the lines of a spool, in order, in a goroutine of its own.
type sender struct {
	name   string
	log    *slog.Logger
	spool  *spool
	target target
	first  time.Duration // the first wait after a failure

	cancel   context.CancelFunc
	draining chan struct{}
	done     chan struct{}

	mu        sync.Mutex
	sent      uint64
	setAside  uint64
	torn      uint64
	lastError string
	lastSent  time.Time
	failing   bool
}

func startSender(name string, log *slog.Logger, p *spool, t target, first time.Duration) *sender {
	ctx, cancel := context.WithCancel(context.Background())
	s := &sender{
		name: name, log: log, spool: p, target: t, first: first, cancel: cancel,
		draining: make(chan struct{}), done: make(chan struct{}),
	}
	go s.run(ctx)
	return s
}

func (s *sender) run(ctx context.Context) {
	defer close(s.done)
	wait, looked := s.first, false
	for ctx.Err() == nil {
		items, torn, err := s.spool.peek(maxBatch, maxBatchBytes)
		if torn > 0 {
			s.note(func() { s.torn += uint64(torn) })
			s.log.Error("an audit event was torn when an earlier process or the machine went down, and is lost", "output", s.name)
		}
		if err == nil && len(items) == 0 {
			select {
			case <-s.spool.more:
				continue
			case <-ctx.Done():
				return
			case <-s.draining:
				// Nothing is appended any more; what was appended since looking is seen
				// at a last look.
				if looked {
					return
				}
				looked = true
				continue
			}
		}
		if err == nil {
			err = s.deliver(ctx, items)
		}
		if err == nil {
			wait = s.first
			continue
		}
		if ctx.Err() != nil {
			return
		}
		s.failed(err)
		// Spread out, so that many servers do not come back at the same moment.
		pause := wait/2 + rand.N(wait/2+1)
		if l := (*later)(nil); errors.As(err, &l) && l.after > 0 {
			pause = min(l.after, longestAsked)
		}
		wait = min(2*wait, longestWait)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		case <-s.draining:
			return // what is left is sent after the next start
		}
	}
}

// deliver sends the lines and takes them from the spool. Of a batch that is
// rejected it finds the events that are, and sets them aside.
func (s *sender) deliver(ctx context.Context, items []item) error {
	lines := make([][]byte, len(items))
	for i := range items {
		lines[i] = items[i].line
		if !json.Valid(items[i].line) {
			if err := s.beside(ctx, items[:i]); err != nil {
				return err
			}
			if err := s.aside(items[i], "not JSON: damaged on the disk"); err != nil {
				return err
			}
			return s.beside(ctx, items[i+1:])
		}
	}
	err := s.target.send(ctx, lines)
	if r := (*rejected)(nil); errors.As(err, &r) {
		if len(items) == 1 {
			return s.aside(items[0], r.why)
		}
		half := len(items) / 2
		if err := s.deliver(ctx, items[:half]); err != nil {
			return err
		}
		return s.deliver(ctx, items[half:])
	}
	if err != nil {
		return err
	}
	if err := s.spool.take(items[len(items)-1].next, len(items)); err != nil {
		return err
	}
	s.note(func() {
		s.sent += uint64(len(items))
		s.lastSent = time.Now()
		if s.failing {
			s.log.Info("audit events are sent again", "output", s.name)
		}
		s.failing, s.lastError = false, ""
	})
	return nil
}

// beside delivers what stands beside a damaged line.
func (s *sender) beside(ctx context.Context, items []item) error {
	if len(items) == 0 {
		return nil
	}
	return s.deliver(ctx, items)
}

// aside puts an event that nobody takes into the dead-letter file.
func (s *sender) aside(it item, why string) error {
	if !json.Valid(it.line) {
		it.line, _ = json.Marshal(string(it.line)) // of a string: never fails
	}
	text, err := json.Marshal(struct {
		Time  time.Time       `json:"time"`
		Why   string          `json:"why"`
		Event json.RawMessage `json:"event"`
	}{time.Now().UTC(), why, it.line})
	if err != nil {
		return err
	}
	path := filepath.Join(s.spool.dir, "dead-letters")
	if info, err := os.Stat(path); err == nil && info.Size() > s.spool.limit {
		return errors.New("an event was rejected, and the file of rejected events has reached the limit of the spool")
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := s.spool.take(it.next, 1); err != nil {
		return err
	}
	s.note(func() {
		s.setAside++
		s.lastError = why
	})
	s.log.Error("an audit event was rejected and set aside in the file dead-letters of its spool", "output", s.name, "answer", why)
	return nil
}

func (s *sender) note(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// failed logs the first failure of a row of them.
func (s *sender) failed(err error) {
	text := reason(err)
	s.mu.Lock()
	first := !s.failing || s.lastError != text
	s.failing, s.lastError = true, text
	s.mu.Unlock()
	if first {
		s.log.Error("audit events cannot be sent; they wait in the spool", "output", s.name, "error", text)
	}
}

// close sends what is in the spool, as long as that works and until ctx ends.
func (s *sender) close(ctx context.Context) {
	close(s.draining)
	select {
	case <-s.done:
	case <-ctx.Done():
		s.cancel()
		<-s.done
	}
	s.cancel()
}
