package ranger

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"sqe/audit"
)

// maxPending is the most bytes that wait in memory for a slow disk.
const maxPending = 16 << 20

// writer takes lines without waiting and writes them in a goroutine of its own.
type writer struct {
	name  string
	log   *slog.Logger
	every time.Duration // between two calls of force; 0: none
	// write writes complete lines; force waits until they are on the disk.
	write func(lines []byte) error
	force func() error
	wake  chan struct{}
	stop  chan struct{}
	done  chan struct{}

	mu      sync.Mutex
	pending []byte
	lines   int // in pending
	busy    int // lines that the goroutine holds
	dropped uint64
	broken  error // why writing fails now
	closed  bool
}

func newWriter(name string, log *slog.Logger, s audit.Sync, write func([]byte) error, force func() error) *writer {
	w := &writer{
		name: name, log: log, write: write, force: force,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	if s == audit.SyncInterval {
		w.every = audit.SyncEvery
	}
	go w.run()
	return w
}

// add takes lines to be written; false means that they are lost.
func (w *writer) add(lines []byte, n int) bool {
	w.mu.Lock()
	ok := !w.closed && len(w.pending)+len(lines) <= maxPending
	first := false
	if ok {
		w.pending = append(w.pending, lines...)
		w.lines += n
	} else {
		first = w.dropped == 0
		w.dropped += uint64(n)
	}
	w.mu.Unlock()
	if first {
		w.log.Error("audit events are lost: they come faster than the disk takes them", "output", w.name)
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return ok
}

func (w *writer) run() {
	defer close(w.done)
	var spare []byte
	var tick <-chan time.Time
	if w.every > 0 {
		t := time.NewTicker(w.every)
		defer t.Stop()
		tick = t.C
	}
	stopping := false
	for {
		w.mu.Lock()
		lines, n := w.pending, w.lines
		w.pending, w.lines, w.busy = spare[:0], 0, n
		w.mu.Unlock()
		if len(lines) > 0 && !w.writeAll(lines, stopping) {
			return
		}
		w.mu.Lock()
		w.busy = 0
		w.mu.Unlock()
		if spare = lines; cap(spare) > 1<<20 {
			spare = nil
		}
		if stopping {
			if len(lines) == 0 {
				return
			}
			continue
		}
		select {
		case <-w.wake:
		case <-w.stop:
			stopping = true
		case <-tick:
			if err := w.force(); err != nil {
				w.log.Error("audit events cannot be forced to the disk", "output", w.name, "error", reason(err))
			}
		}
	}
}

// writeAll writes until it worked, or the writer is to stop.
func (w *writer) writeAll(lines []byte, stopping bool) bool {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := w.write(lines)
		w.mu.Lock()
		was := w.broken
		w.broken = err
		w.mu.Unlock()
		if err == nil {
			if was != nil {
				w.log.Warn("audit events can be written again", "output", w.name)
			}
			return true
		}
		if was == nil {
			w.log.Error("audit events cannot be written; they wait in memory", "output", w.name, "error", reason(err))
		}
		if stopping {
			w.mu.Lock()
			w.dropped += uint64(w.busy + w.lines)
			w.busy, w.lines = 0, 0
			w.mu.Unlock()
			return false
		}
		select {
		case <-time.After(wait):
		case <-w.stop:
			stopping = true // once more
		}
	}
}

// state is what Stats shows.
func (w *writer) state() (lines int, dropped uint64, broken error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines + w.busy, w.dropped, w.broken
}

// close writes what is pending and ends the goroutine, or gives up after the time
// and says so: then the goroutine still holds what it writes to.
func (w *writer) close(within time.Duration) bool {
	w.mu.Lock()
	closed := w.closed
	w.closed = true
	w.mu.Unlock()
	if !closed {
		close(w.stop)
	}
	select {
	case <-w.done:
		return true
	case <-time.After(within):
		w.log.Error("audit events are lost: the disk does not answer", "output", w.name)
		return false
	}
}

// file appends lines to a file.
type file struct {
	path string
	mu   sync.Mutex
	out  *os.File
	torn bool
}

func openFile(path string) (*file, error) {
	f := &file{path: path}
	return f, f.reopen()
}

// reopen opens the file under its name, for rotation.
func (f *file) reopen() error {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.out != nil {
		_ = f.out.Sync()
		_ = f.out.Close()
	}
	f.out = out
	return nil
}

// write writes all lines or, after an error, those again that were complete.
func (f *file) write(lines []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.torn {
		lines = append([]byte{'\n'}, lines...)
	}
	n, err := f.out.Write(lines)
	if err != nil && n > 0 {
		f.torn = !bytes.HasSuffix(lines[:n], []byte{'\n'})
	}
	if err == nil {
		f.torn = false
	}
	return err
}

func (f *file) force() error {
	f.mu.Lock()
	out := f.out
	f.mu.Unlock()
	if err := out.Sync(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

func (f *file) close(s audit.Sync) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var err error
	if s != audit.SyncNone {
		err = f.out.Sync()
	}
	return errors.Join(err, f.out.Close())
}
