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

// File appends events to a file, one JSON object a line. The file is made with
// mode 0600. A line is written with one system call.
type File struct {
	path    string
	failure OnFailure
	log     *slog.Logger

	mu   sync.Mutex
	out  io.WriteCloser
	run  string
	seq  uint64
	torn bool  // the last line may lack its end
	bad  error // why the last event was not recorded
	lost uint64
	open func(path string) (io.WriteCloser, error)
}

// NewFile opens the file for appending. The folder must exist or be creatable.
// With Log as failure a file that cannot be opened is an error all the same: that
// is a mistake in the configuration.
func NewFile(path string, failure OnFailure, log *slog.Logger) (*File, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	run := make([]byte, 6)
	_, _ = rand.Read(run) // never fails (crypto/rand)
	f := &File{path: path, failure: failure, log: log, run: hex.EncodeToString(run), open: openAppend}
	if err := f.Reopen(); err != nil {
		var p *os.PathError
		reason := err
		if errors.As(err, &p) {
			reason = p.Err
		}
		return nil, fault.Wrap(fault.Config, err, "cannot open the audit log (%v); check audit.file", reason)
	}
	return f, nil
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
		_ = f.out.Close()
	}
	f.out = out
	return nil
}

// Ready implements Sink. After a failure it tries to open the file again.
func (f *File) Ready() error {
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
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.Time.IsZero() {
		e.Time = time.Now().UTC()
	}
	// A number is used once, also when writing fails: the gap shows the loss.
	f.seq++
	e.Run, e.Seq = f.run, f.seq
	err := f.write(e)
	if err == nil {
		if f.bad != nil {
			f.log.Warn("the audit log works again", "lost", f.lost)
		}
		f.bad, f.lost = nil, 0
		return nil
	}
	f.bad = err
	f.lost++
	f.log.Error("an audit event was not recorded", "seq", f.seq, "error", err)
	if f.failure == Log {
		return nil
	}
	return refused(err)
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

// Close closes the file. Events after it are not recorded.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.out == nil {
		return nil
	}
	err := f.out.Close()
	f.out = nil
	return err
}
