package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sqe/fault"
	"sqe/identity"
	"sqe/policy"
)

func read(t *testing.T, path string) []Event {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []Event
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if lines.Text() == "" {
			continue
		}
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("line %q: %v", lines.Text(), err)
		}
		out = append(out, e)
	}
	return out
}

// TestComplete: events of many goroutines are all there, each on one line, in
// the order of their numbers.
func TestComplete(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "audit.jsonl")
	f, err := NewFile(path, Refuse, nil)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	const writers, each = 8, 100
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				e := Event{Type: "statement", Statement: fmt.Sprintf("SELECT ?\n-- %d %d", w, i), Rows: int64(i)}
				e.Of(identity.Principal{Name: "alice", Groups: []string{"g"}})
				e.Ended(nil)
				if err := f.Record(e); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	events := read(t, path)
	if len(events) != writers*each {
		t.Fatalf("%d events, want %d", len(events), writers*each)
	}
	for i, e := range events {
		if e.Seq != uint64(i+1) || e.Run == "" || e.Run != events[0].Run || e.Time.IsZero() || e.User != "alice" || e.Outcome != "ok" {
			t.Fatalf("event %d: %+v", i, e)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Error("mode", info.Mode(), err)
	}
	if err := f.Record(Event{}); !fault.Is(err, fault.Unavailable) {
		t.Error("after Close:", err)
	}
}

// TestAppendAndRotate: an existing file is continued, and Reopen follows a rename.
func TestAppendAndRotate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	for range 2 {
		f, err := NewFile(path, Refuse, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Record(Event{Type: "login"}); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	events := read(t, path)
	if len(events) != 2 || events[0].Run == events[1].Run {
		t.Fatalf("%+v", events)
	}
	f, err := NewFile(path, Refuse, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	_ = f.Record(Event{Kind: "before"})
	if err := f.Reopen(); err != nil {
		t.Fatal(err)
	}
	_ = f.Record(Event{Kind: "after"})
	if old, now := read(t, path+".1"), read(t, path); len(old) != 3 || len(now) != 1 || now[0].Kind != "after" || now[0].Seq != 2 {
		t.Errorf("%+v %+v", old, now)
	}
}

// failing fails when told to, after half of the line.
type failing struct {
	io.WriteCloser
	fail *bool
}

func (w failing) Write(p []byte) (int, error) {
	if *w.fail {
		n, _ := w.WriteCloser.Write(p[:len(p)/2])
		return n, errors.New("no space left on device")
	}
	return w.WriteCloser.Write(p)
}

// TestFailure: a sink that fails refuses, says so before the next statement, and
// recovers; a torn line spoils no other; the gap in the numbers shows the loss.
func TestFailure(t *testing.T) {
	for _, mode := range []OnFailure{Refuse, Log} {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		f, err := NewFile(path, mode, nil)
		if err != nil {
			t.Fatal(err)
		}
		fail := false
		f.open = func(p string) (io.WriteCloser, error) {
			w, err := openAppend(p)
			return failing{w, &fail}, err
		}
		if err := f.Reopen(); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Ready(), f.Record(Event{Kind: "one"})); err != nil {
			t.Fatal(err)
		}
		fail = true
		err = f.Record(Event{Kind: "two"})
		ready := f.Ready()
		if mode == Refuse && (!fault.Is(err, fault.Unavailable) || !fault.Is(ready, fault.Unavailable) || strings.Contains(err.Error(), "space")) {
			t.Errorf("%s: %v, %v", mode, err, ready)
		}
		if mode == Log && (err != nil || ready != nil) {
			t.Errorf("%s: %v, %v", mode, err, ready)
		}
		fail = false
		if err := errors.Join(f.Ready(), f.Record(Event{Kind: "three"})); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
		f.Close()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var whole []Event
		for _, line := range strings.Split(string(text), "\n") {
			var e Event
			if json.Unmarshal([]byte(line), &e) == nil {
				whole = append(whole, e)
			}
		}
		if len(whole) != 2 || whole[0].Seq != 1 || whole[1].Seq != 3 || whole[1].Kind != "three" {
			t.Errorf("%s: %s", mode, text)
		}
	}
}

// forced counts the calls of Sync, and fails them when told to.
type forced struct {
	io.WriteCloser
	calls *atomic.Int64
	fail  *atomic.Bool
}

func (w forced) Sync() error {
	w.calls.Add(1)
	if w.fail.Load() {
		return errors.New("input/output error")
	}
	return nil
}

// TestSync: events are forced to the disk before Record returns, or soon, or not
// at all, as configured; what cannot be forced counts as not recorded.
func TestSync(t *testing.T) {
	for _, mode := range []Sync{SyncNone, SyncInterval, SyncAlways} {
		var calls atomic.Int64
		var fail atomic.Bool
		f, err := NewFile(filepath.Join(t.TempDir(), "audit.jsonl"), Refuse, nil, WithSync(mode))
		if err != nil {
			t.Fatal(err)
		}
		f.mu.Lock()
		f.open = func(p string) (io.WriteCloser, error) {
			w, err := openAppend(p)
			return forced{w, &calls, &fail}, err
		}
		f.mu.Unlock()
		if err := f.Reopen(); err != nil {
			t.Fatal(err)
		}
		if err := f.Record(Event{Kind: "one"}); err != nil {
			t.Fatal(err)
		}
		switch mode {
		case SyncAlways:
			if calls.Load() != 1 {
				t.Errorf("%d calls before Record returned", calls.Load())
			}
			fail.Store(true)
			if err := f.Record(Event{Kind: "two"}); !fault.Is(err, fault.Unavailable) {
				t.Errorf("an event that cannot be forced was taken: %v", err)
			}
			fail.Store(false)
			if err := errors.Join(f.Ready(), f.Record(Event{Kind: "three"})); err != nil {
				t.Errorf("after the failure: %v", err)
			}
		case SyncInterval:
			for end := time.Now().Add(time.Minute); calls.Load() == 0 && time.Now().Before(end); {
				time.Sleep(10 * time.Millisecond)
			}
			if calls.Load() == 0 {
				t.Error("never forced")
			}
		}
		before := calls.Load()
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if closing := calls.Load() - before; mode == SyncNone && calls.Load() != 0 || mode != SyncNone && closing < 1 {
			t.Errorf("%s: %d calls, %d at Close", mode, calls.Load(), closing)
		}
	}
}

// TestSyncTogether: events that wait at the same time share a call, and each
// returns after a call that began when it was written.
func TestSyncTogether(t *testing.T) {
	var calls, written atomic.Int64
	var fail atomic.Bool
	f, err := NewFile(filepath.Join(t.TempDir(), "audit.jsonl"), Refuse, nil, WithSync(SyncAlways))
	if err != nil {
		t.Fatal(err)
	}
	f.open = func(p string) (io.WriteCloser, error) {
		w, err := openAppend(p)
		return slow{forced{w, &calls, &fail}, &written, 50}, err
	}
	if err := f.Reopen(); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if err := f.Record(Event{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	f.mu.Lock()
	synced, seq := f.synced, f.seq
	f.mu.Unlock()
	// One began before all were written, and one after.
	if synced != seq || seq != 50 || calls.Load() > 2 {
		t.Errorf("%d of %d events forced, with %d calls", synced, seq, calls.Load())
	}
	f.Close()
}

// slow takes so long to force that so many events are written meanwhile.
type slow struct {
	forced
	written *atomic.Int64
	until   int64
}

func (w slow) Write(p []byte) (int, error) {
	defer w.written.Add(1)
	return w.forced.Write(p)
}

func (w slow) Sync() error {
	for end := time.Now().Add(time.Minute); w.written.Load() < w.until && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	return w.forced.Sync()
}

// full is a sink that refuses.
type full struct{ Discard }

func (full) Ready() error       { return fault.New(fault.Unavailable, "full") }
func (full) Record(Event) error { return fault.New(fault.Unavailable, "full") }

// TestAlso: a sink beside the file gets the events with their numbers, also those
// that the file lost, and what it refuses is refused.
func TestAlso(t *testing.T) {
	var seen recorder
	f, err := NewFile(filepath.Join(t.TempDir(), "audit.jsonl"), Refuse, nil, Also(&seen))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Ready(), f.Record(Event{Kind: "a"})); err != nil {
		t.Error(err)
	}
	f.Close()
	if err := f.Record(Event{Kind: "b"}); !fault.Is(err, fault.Unavailable) {
		t.Error(err)
	}
	if len(seen.events) != 2 || seen.events[0].Run == "" || seen.events[0].Seq != 1 || seen.events[1].Seq != 2 || seen.events[1].Time.IsZero() {
		t.Errorf("%+v", seen.events)
	}
	f, err = NewFile(filepath.Join(t.TempDir(), "audit.jsonl"), Log, nil, Also(full{}))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Ready() == nil || f.Record(Event{}) == nil {
		t.Error("what the other sink refuses was taken")
	}
}

// recorder keeps events.
type recorder struct {
	Discard
	events []Event
}

func (r *recorder) Record(e Event) error {
	r.events = append(r.events, e)
	return nil
}

// TestUnopenable: a log that cannot be opened is a mistake in the configuration,
// in either mode.
func TestUnopenable(t *testing.T) {
	for _, mode := range []OnFailure{Refuse, Log} {
		if _, err := NewFile(t.TempDir(), mode, nil); !fault.Is(err, fault.Config) || !strings.Contains(err.Error(), "audit.file") {
			t.Errorf("%s: %v", mode, err)
		}
	}
}

// TestEnded: of an error only the kind and the text for the user are recorded.
func TestEnded(t *testing.T) {
	secret := errors.New("row 7 holds 'Müller'")
	tests := []struct {
		err           error
		outcome, text string
	}{
		{nil, "ok", ""},
		{fault.New(fault.Denied, "denied for table t"), "denied", "denied for table t"},
		{fault.Wrap(fault.Timeout, secret, "too long"), "timeout", "too long"},
		{fmt.Errorf("wrapped %w", fault.Wrap(fault.Withheld, secret, "withheld")), "denied", "withheld"},
		{secret, "internal", ""},
		{fault.Wrap(fault.Internal, secret, "Müller"), "internal", ""},
	}
	for _, tt := range tests {
		var e Event
		e.Ended(tt.err)
		if e.Outcome != tt.outcome || e.Error != tt.text {
			t.Errorf("%v: %q %q", tt.err, e.Outcome, e.Error)
		}
		if text, _ := json.Marshal(e); strings.Contains(string(text), "Müller") {
			t.Errorf("the event holds the cause: %s", text)
		}
	}
}

// TestFormat pins the names of the members: other programs read them.
func TestFormat(t *testing.T) {
	e := Event{
		Type: "statement", User: "alice", Groups: []string{"g"}, Remote: "10.0.0.1:1", Connection: 3, Statement: "SELECT ?", Kind: "query",
		Tables:   []Table{{Name: "c.n.t", Snapshot: 5}},
		Policies: []Action{{Table: "c.n.t", Column: "x", What: "mask", Origin: policy.Origin{Source: "folder", Policy: "p", ID: 7, Version: 2}}},
		Denials:  []Denial{{Object: "c.n.u", Privilege: "table-data-read", Reason: policy.NoGrant}},
		Rows:     1, DurationMS: 2.5, Outcome: "ok",
	}
	got, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"run":"","seq":0,"time":"0001-01-01T00:00:00Z","type":"statement","user":"alice","groups":["g"],"remote":"10.0.0.1:1","connection":3,` +
		`"statement":"SELECT ?","kind":"query","tables":[{"name":"c.n.t","snapshot":5}],` +
		`"policies":[{"table":"c.n.t","column":"x","what":"mask","origin":{"source":"folder","policy":"p","id":7,"version":2}}],` +
		`"denials":[{"object":"c.n.u","privilege":"table-data-read","reason":"no-grant"}],"rows":1,"duration_ms":2.5,"outcome":"ok"}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
