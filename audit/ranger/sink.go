package ranger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"sqe/audit"
	"sqe/fault"
)

// Kind is the kind of an output.
type Kind string

// The kinds.
const (
	ToFile Kind = "file"
	ToSolr Kind = "solr"
	ToHTTP Kind = "http"
)

// Output is one place for events.
type Output struct {
	Name string // unique; names the folder of the spool too
	Kind Kind
	Path string // of ToFile

	// Of the others:
	Remote    Remote
	Format    Format // of ToHTTP
	Limit     int64  // of the spool, in bytes
	WhenFull  WhenFull
	firstWait time.Duration // for tests; 0: the default
}

// Options are the options of Open.
type Options struct {
	Naming  Naming
	Sources []Source // in the order of the configuration
	Outputs []Output
	Spool   string     // the folder that holds the folders of the spools
	Sync    audit.Sync // of files and spools
	Log     *slog.Logger
}

// Stats is the condition of an output. Counters begin at the start of the process,
// Queued includes what earlier processes left.
type Stats struct {
	Output string
	Kind   Kind
	// Queued are the events that were recorded and did not arrive yet; Bytes is the
	// size of the spool.
	Queued int
	Bytes  int64
	// Sent arrived, SetAside were rejected by the receiver, Dropped are lost.
	Sent, SetAside, Dropped uint64
	LastError               string // "": the last attempt worked
	LastSent                time.Time
}

// Sink gives events to outputs. It implements audit.Sink and is safe for
// concurrent use.
type Sink struct {
	converter *converter
	outputs   []*output
	run       string

	mu     sync.Mutex // the order of events is that of their numbers
	seq    uint64
	buffer bytes.Buffer
}

// output is one of a sink.
type output struct {
	Output
	sync   audit.Sync
	writer *writer
	file   *file // of ToFile; else the others:
	spool  *spool
	sender *sender
	target *httpTarget
	sent   uint64 // of ToFile, under mu
	mu     sync.Mutex
}

// Open opens the outputs. An error is a mistake in the configuration, or a folder
// that cannot be used; that a receiver does not answer is none.
func Open(o Options) (*Sink, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Sync == "" {
		o.Sync = audit.SyncInterval
	}
	if o.Naming.Host == "" {
		o.Naming.Host, _ = os.Hostname() // unknown: left out
	}
	s := &Sink{converter: &converter{naming: o.Naming, sources: o.Sources}, run: audit.NewRun()}
	for _, out := range o.Outputs {
		opened, err := open(out, o)
		if err != nil {
			s.Close(context.Background())
			return nil, fault.Wrap(fault.Config, err, "the audit output %q cannot be opened: %s", out.Name, reason(err))
		}
		s.outputs = append(s.outputs, opened)
	}
	return s, nil
}

func open(out Output, o Options) (*output, error) {
	x := &output{Output: out, sync: o.Sync}
	var err error
	switch out.Kind {
	case ToFile:
		if x.file, err = openFile(out.Path); err != nil {
			return nil, err
		}
		write := func(lines []byte) error {
			err := x.file.write(lines)
			if err == nil {
				x.mu.Lock()
				x.sent += count(lines)
				x.mu.Unlock()
			}
			return err
		}
		x.writer = newWriter(out.Name, o.Log, o.Sync, write, x.file.force)
		if o.Sync == audit.SyncAlways {
			x.writer.write = func(lines []byte) error { return errors.Join(write(lines), x.file.force()) }
		}
		return x, nil
	case ToSolr:
		x.target, err = newSolr(out.Remote)
	case ToHTTP:
		x.target, err = newHTTP(out.Remote, out.Format)
	default:
		err = fmt.Errorf("there is no kind %q", out.Kind)
	}
	if err != nil {
		return nil, err
	}
	if x.spool, err = openSpool(filepath.Join(o.Spool, out.Name), out.Limit, out.WhenFull, o.Sync); err != nil {
		return nil, fmt.Errorf("its spool: %s", reason(err))
	}
	first := firstWait
	if out.firstWait > 0 {
		first = out.firstWait
	}
	x.writer = newWriter(out.Name, o.Log, o.Sync, x.spool.append, x.spool.force)
	x.sender = startSender(out.Name, o.Log, x.spool, x.target, first)
	return x, nil
}

func count(lines []byte) uint64 {
	n := uint64(0)
	for _, b := range lines {
		if b == '\n' {
			n++
		}
	}
	return n
}

// Ready implements audit.Sink. It fails when the spool of an output that must not
// lose events is full.
func (s *Sink) Ready() error {
	for _, o := range s.outputs {
		if o.spool == nil || o.WhenFull != Refuse {
			continue
		}
		if _, _, broken := o.writer.state(); o.spool.refuses.Load() || broken != nil {
			return fault.New(fault.Unavailable, "the audit events of the last statements could not be sent, and their spool is full, so statements are refused; tell the administrator")
		}
	}
	return nil
}

// Record implements audit.Sink. It never waits for a disk or a network.
func (s *Sink) Record(e audit.Event) error {
	if e.Type != "statement" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Run == "" {
		s.seq++
		e.Run, e.Seq = s.run, s.seq
	}
	if e.Time.IsZero() {
		e.Time = time.Now().UTC()
	}
	events := s.converter.events(e)
	if len(events) == 0 {
		return nil
	}
	text, err := lines(&s.buffer, events)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "an audit event cannot be written")
	}
	lost := false
	for _, o := range s.outputs {
		if !o.writer.add(text, len(events)) && o.WhenFull == Refuse && o.spool != nil {
			lost = true
		}
	}
	if lost {
		return fault.New(fault.Unavailable, "an audit event could not be kept, so the statement is refused; tell the administrator")
	}
	return nil
}

// Reopen opens the files of outputs anew, after they were renamed for rotation.
func (s *Sink) Reopen() error {
	var errs []error
	for _, o := range s.outputs {
		if o.file != nil {
			errs = append(errs, o.file.reopen())
		}
	}
	return errors.Join(errs...)
}

// Stats is the condition of each output.
func (s *Sink) Stats() []Stats {
	out := make([]Stats, len(s.outputs))
	for i, o := range s.outputs {
		st := Stats{Output: o.Name, Kind: o.Kind}
		waiting, lost, broken := o.writer.state()
		st.Queued, st.Dropped = waiting, lost
		if o.spool == nil {
			o.mu.Lock()
			st.Sent = o.sent
			o.mu.Unlock()
		} else {
			lines, size, dropped := o.spool.state()
			st.Queued, st.Bytes = st.Queued+lines, size
			o.sender.mu.Lock()
			st.Sent, st.SetAside, st.LastError, st.LastSent = o.sender.sent, o.sender.setAside, o.sender.lastError, o.sender.lastSent
			st.Dropped += dropped + o.sender.torn
			o.sender.mu.Unlock()
		}
		if broken != nil {
			st.LastError = reason(broken)
		}
		out[i] = st
	}
	return out
}

// diskTime is how long Close waits for a disk that does not answer.
const diskTime = 2 * time.Second

// Close writes what waits in memory to the disk, sends what it can until ctx ends,
// and closes the outputs. What was not sent stays in the spools for the next start.
func (s *Sink) Close(ctx context.Context) {
	var all sync.WaitGroup
	for _, o := range s.outputs {
		all.Go(func() { o.close(ctx) })
	}
	all.Wait()
}

func (o *output) close(ctx context.Context) {
	flushed := o.writer.close(diskTime)
	if o.file != nil {
		if flushed {
			_ = o.file.close(o.sync)
		}
		return
	}
	o.sender.close(ctx)
	o.target.close()
	if flushed {
		_ = o.spool.close()
	}
}

var _ audit.Sink = (*Sink)(nil)
