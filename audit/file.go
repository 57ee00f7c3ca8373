package audit

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"sqe/fault"
)

// OnFailure says what happens when an event cannot be recorded.
type OnFailure string

// The values of OnFailure.
const (
	Refuse OnFailure = "refuse" // statements fail
	Log    OnFailure = "log"    // the failure is logged and statements go on
)

// Sync says when events are forced from the memory of the operating system to the
// disk. Whatever it says, no event is lost when the process ends or is killed: it
// is about the machine losing power.
type Sync string

// The values of Sync.
const (
	SyncNone     Sync = "none"     // when the operating system does
	SyncInterval Sync = "interval" // every SyncEvery
	// SyncAlways: before Record returns. Events that are recorded at the same time
	// share one call.
	SyncAlways Sync = "always"
)

// SyncEvery is the interval of SyncInterval.
const SyncEvery = time.Second

// File appends events to a file, one JSON object a line. The file is made with
// mode 0600. A line is written with one system call.
type File struct {
	path    string
	failure OnFailure
	log     *slog.Logger
	sync    Sync
	also    []Sink
	stop    chan struct{} // ends the goroutine of SyncInterval
	stopped sync.WaitGroup

	mu   sync.Mutex
	out  io.WriteCloser
	run  string
	seq  uint64
	torn bool  // the last line may lack its end
	bad  error // why the last event was not recorded
	lost uint64
	open func(path string) (io.WriteCloser, error)

	syncing sync.Mutex // one call of sync at a time; taken before mu
	synced  uint64     // the number of the last event that is on the disk for sure
}

// Option is an option of NewFile.
type Option func(*File)

// WithSync sets when events are forced to the disk; without it, never.
func WithSync(s Sync) Option { return func(f *File) { f.sync = s } }

// Also gives the sinks every event after the file, with its number and in the same
// order. What they return refuses like a failure of the file, whatever its
// OnFailure is.
func Also(sinks ...Sink) Option { return func(f *File) { f.also = append(f.also, sinks...) } }

// NewFile opens the file for appending. The folder must exist or be creatable.
// With Log as failure a file that cannot be opened is an error all the same: that
// is a mistake in the configuration.
func NewFile(path string, failure OnFailure, log *slog.Logger, options ...Option) (*File, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	f := &File{path: path, failure: failure, log: log, run: NewRun(), open: openAppend, stop: make(chan struct{})}
	for _, o := range options {
		o(f)
	}
	if err := f.Reopen(); err != nil {
		var p *os.PathError
		reason := err
		if errors.As(err, &p) {
			reason = p.Err
		}
		return nil, fault.Wrap(fault.Config, err, "cannot open the audit log (%v); check audit.file", reason)
	}
	if f.sync == SyncInterval {
		f.stopped.Go(f.syncRegularly)
	}
	return f, nil
}

// NewRun is a name for a process, as in Event.Run.
func NewRun() string {
	run := make([]byte, 6)
	_, _ = rand.Read(run) // never fails (crypto/rand)
	return hex.EncodeToString(run)
}

func openAppend(path string) (io.WriteCloser, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Reopen opens the file anew under its name, for rotation: rename the file, then
// send SIGHUP to the server. When it fails the old file stays in use.
func (f *File) Reopen() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reopen()
}

func (f *File) reopen() error {
	out, err := f.open(f.path)
	if err != nil {
		return err
	}
	if f.out != nil {
		if f.sync != "" && f.sync != SyncNone && force(f.out) == nil {
			f.synced = f.seq
		}
		_ = f.out.Close()
	}
	f.out = out
	return nil
}

// force waits until what was written is on the disk.
func force(w io.Writer) error {
	if s, ok := w.(interface{ Sync() error }); ok {
		return s.Sync()
	}
	return nil
}

// syncTo returns when the event of that number is on the disk. One caller forces
// for all that wait.
func (f *File) syncTo(seq uint64) error {
	f.syncing.Lock()
	defer f.syncing.Unlock()
	f.mu.Lock()
	out, upTo := f.out, f.seq
	done := f.synced >= seq || out == nil
	f.mu.Unlock()
	if done {
		return nil
	}
	err := force(out)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err == nil:
		f.synced = max(f.synced, upTo)
	case f.synced >= seq: // reopening forced and closed it meanwhile
		err = nil
	default:
		f.bad = err
		f.log.Error("the audit log cannot be forced to the disk", "error", err)
	}
	return err
}

func (f *File) syncRegularly() {
	tick := time.NewTicker(SyncEvery)
	defer tick.Stop()
	for {
		select {
		case <-f.stop:
			return
		case <-tick.C:
		}
		f.mu.Lock()
		seq := f.seq
		f.mu.Unlock()
		_ = f.syncTo(seq)
	}
}

// Ready implements Sink. After a failure it tries to open the file again.
func (f *File) Ready() error {
	for _, s := range f.also {
		if err := s.Ready(); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bad == nil || f.failure == Log {
		return nil
	}
	err := f.reopen()
	if err == nil {
		// The next line starts on its own, whatever the failure left behind.
		if _, err = f.out.Write([]byte("\n")); err == nil {
			f.torn, f.bad = false, nil
			return nil
		}
	}
	f.bad = err
	return refused(err)
}

// Record implements Sink.
func (f *File) Record(e Event) error {
	seq, failed, also := f.record(e)
	if failed == nil && f.sync == SyncAlways {
		failed = f.syncTo(seq)
	}
	if failed != nil && f.failure != Log {
		return refused(failed)
	}
	return also
}

// record writes the event to the file and gives it to the other sinks, under one
// lock so that all have one order.
func (f *File) record(e Event) (seq uint64, failed, also error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.Time.IsZero() {
		e.Time = time.Now().UTC()
	}
	// A number is used once, also when writing fails: the gap shows the loss.
	f.seq++
	e.Run, e.Seq = f.run, f.seq
	failed = f.write(e)
	if failed == nil {
		if f.bad != nil {
			f.log.Warn("the audit log works again", "lost", f.lost)
		}
		f.bad, f.lost = nil, 0
	} else {
		f.bad = failed
		f.lost++
		f.log.Error("an audit event was not recorded", "seq", f.seq, "error", failed)
	}
	for _, s := range f.also {
		if err := s.Record(e); err != nil && also == nil {
			also = err
		}
	}
	return f.seq, failed, also
}

func (f *File) write(e Event) error {
	if f.out == nil {
		return errors.New("the audit log is closed")
	}
	var b bytes.Buffer
	if f.torn {
		b.WriteByte('\n')
	}
	encoder := json.NewEncoder(&b) // ends the line
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	n, err := f.out.Write(b.Bytes())
	f.torn = err != nil && (n > 0 || f.torn)
	return err
}

// Close forces the events to the disk, unless Sync is SyncNone, and closes the
// file. Events after it are not recorded. The sinks of Also stay open.
func (f *File) Close() error {
	f.mu.Lock()
	if f.out == nil {
		f.mu.Unlock()
		return nil
	}
	close(f.stop)
	var err error
	if f.sync != "" && f.sync != SyncNone {
		err = force(f.out)
	}
	err = errors.Join(err, f.out.Close())
	f.out = nil
	f.mu.Unlock()
	f.stopped.Wait()
	return err
}
