package ranger

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sqe/audit"
	"sqe/fault"
	"sqe/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver is a server that takes events, and fails as it is told.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	got      []Event
	requests int
	largest  int
	// answer, when set, decides about a request: 0 takes the events.
	answer func(n int, events []Event) int
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	var events []Event
	if err := json.Unmarshal(body, &events); err != nil {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	r.largest = max(r.largest, len(events))
	if r.answer != nil {
		if status := r.answer(r.requests, events); status != 0 {
			w.WriteHeader(status)
			return
		}
	}
	r.got = append(r.got, events...)
}

// users are the users of the events that arrived: each event of these tests has
// its own.
func (r *receiver) users() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, e := range r.got {
		out = append(out, e.User)
	}
	return out
}

func remote(name, url string) Output {
	return Output{Name: name, Kind: ToHTTP, Remote: Remote{URL: url, Timeout: time.Minute}, Format: Array, Limit: 64 << 20, WhenFull: DropOldest, firstWait: 5 * time.Millisecond}
}

func openSink(t *testing.T, dir string, outputs ...Output) *Sink {
	t.Helper()
	c := testConverter("hive")
	s, err := Open(Options{Naming: c.naming, Sources: c.sources, Outputs: outputs, Spool: dir, Sync: audit.SyncInterval})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// one is a statement that becomes one event, of that user.
func one(user string) audit.Event {
	return audit.Event{Type: "statement", User: user, Statement: "SELECT ?", Outcome: "not-found", Denials: []audit.Denial{{Object: "c.n.t", Privilege: "table-data-read", Reason: policy.NoGrant}}}
}

func record(t *testing.T, s *Sink, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if err := s.Record(one(fmt.Sprintf("u%06d", i))); err != nil {
			t.Fatal(err)
		}
	}
}

func names(from, to int) []string {
	var out []string
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprintf("u%06d", i))
	}
	return out
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !f(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

func closeSink(s *Sink) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s.Close(ctx)
}

// TestDelivery: everything arrives, once and in order, in batches.
func TestDelivery(t *testing.T) {
	r := newReceiver(t)
	s := openSink(t, t.TempDir(), remote("http", r.URL))
	record(t, s, 0, 3000)
	closeSink(s)
	if got := r.users(); !slices.Equal(got, names(0, 3000)) {
		t.Fatalf("%d events arrived", len(got))
	}
	if st := s.Stats()[0]; st.Sent != 3000 || st.Queued != 0 || st.Dropped != 0 || st.LastError != "" || st.LastSent.IsZero() {
		t.Errorf("%+v", st)
	}
	if r.largest < 2 || r.largest > maxBatch {
		t.Errorf("the largest batch had %d events", r.largest)
	}
	if err := s.Record(one("late")); err != nil {
		t.Error(err) // lost and counted, but no statement fails
	}
	if st := s.Stats()[0]; st.Dropped != 1 {
		t.Errorf("%+v", st)
	}
}

// TestOutage: while a receiver fails, whatever the failure that may pass, nothing
// is lost and Record does not wait; when it is back everything arrives in order.
func TestOutage(t *testing.T) {
	for _, status := range []int{500, 503, 429, 401, 403, 404, 302, 408} {
		r := newReceiver(t)
		r.answer = func(n int, _ []Event) int {
			if n <= 4 {
				return status
			}
			return 0
		}
		s := openSink(t, t.TempDir(), remote("http", r.URL))
		record(t, s, 0, 50)
		eventually(t, fmt.Sprint(status), func() bool { return len(r.users()) == 50 })
		if got := r.users(); !slices.Equal(got, names(0, 50)) {
			t.Errorf("%d: %v", status, got)
		}
		closeSink(s)
		if st := s.Stats()[0]; st.SetAside != 0 || st.Dropped != 0 || st.Sent != 50 {
			t.Errorf("%d: %+v", status, st)
		}
	}
}

// TestSlow: a receiver that does not answer keeps nobody waiting.
func TestSlow(t *testing.T) {
	release := make(chan struct{})
	r := newReceiver(t)
	hang := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.ReadAll(req.Body)
		select {
		case <-release:
		case <-req.Context().Done():
		}
	}))
	defer hang.Close()
	defer close(release)
	dir := t.TempDir()
	s := openSink(t, dir, remote("http", hang.URL))
	begun := time.Now()
	record(t, s, 0, 1000)
	if took := time.Since(begun); took > 30*time.Second { // the receiver would keep it waiting for a minute
		t.Errorf("recording took %s", took)
	}
	eventually(t, "spooled", func() bool { return s.Stats()[0].Bytes > 0 && s.Stats()[0].Queued == 1000 })
	begun = time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	s.Close(ctx)
	cancel()
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("Close took %s", took)
	}
	// The next process sends them to a receiver that answers.
	s = openSink(t, dir, remote("http", r.URL))
	if st := s.Stats()[0]; st.Queued != 1000 && st.Sent == 0 {
		t.Errorf("%+v", st)
	}
	closeSink(s)
	if got := r.users(); !slices.Equal(got, names(0, 1000)) {
		t.Errorf("%d events arrived", len(got))
	}
}

// TestRestart: over many short processes, with a receiver that fails now and then,
// every event arrives, in order apart from what is sent again, and what is sent
// again has the same id.
func TestRestart(t *testing.T) {
	r := newReceiver(t)
	r.answer = func(n int, _ []Event) int {
		if n%3 == 0 {
			return 503
		}
		return 0
	}
	dir := t.TempDir()
	for i := range 10 {
		s := openSink(t, dir, remote("http", r.URL))
		record(t, s, i*30, i*30+30)
		if i%2 == 0 {
			ctx, cancel := context.WithCancel(context.Background())
			cancel() // no time to send
			s.Close(ctx)
		} else {
			closeSink(s)
		}
	}
	r.mu.Lock()
	r.answer = nil
	r.mu.Unlock()
	s := openSink(t, dir, remote("http", r.URL))
	closeSink(s)
	ids := map[string]string{}
	var first []string
	for _, e := range r.got {
		if user, ok := ids[e.ID]; ok && user != e.User {
			t.Fatalf("two events have the id %s", e.ID)
		} else if !ok {
			first = append(first, e.User)
		}
		ids[e.ID] = e.User
	}
	if !slices.Equal(first, names(0, 300)) {
		t.Errorf("%d events arrived: %v", len(first), first)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "http", "*.jsonl"))
	if len(left) > 1 {
		t.Errorf("files that were sent are left: %v", left)
	}
}

// TestPoison: events that the receiver will never take are set aside; all others
// arrive, in order, and nothing stops.
func TestPoison(t *testing.T) {
	for _, status := range []int{400, 413, 415, 422} {
		bad := []string{"u000003", "u000017", "u000039"}
		r := newReceiver(t)
		r.answer = func(_ int, events []Event) int {
			for _, e := range events {
				if slices.Contains(bad, e.User) {
					return status
				}
			}
			return 0
		}
		var log bytes.Buffer
		dir := t.TempDir()
		c := testConverter("hive")
		s, err := Open(Options{Sources: c.sources, Outputs: []Output{remote("http", r.URL)}, Spool: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		record(t, s, 0, 40)
		closeSink(s)
		want := slices.DeleteFunc(names(0, 40), func(u string) bool { return slices.Contains(bad, u) })
		if got := r.users(); !slices.Equal(got, want) {
			t.Errorf("%d: %v", status, got)
		}
		if st := s.Stats()[0]; st.SetAside != 3 || st.Sent != 37 || st.Queued != 0 || st.Dropped != 0 {
			t.Errorf("%d: %+v", status, st)
		}
		text, err := os.ReadFile(filepath.Join(dir, "http", "dead-letters"))
		if err != nil {
			t.Fatal(err)
		}
		var aside []string
		for line := range strings.Lines(string(text)) {
			var d struct {
				Why   string
				Event Event
			}
			if err := json.Unmarshal([]byte(line), &d); err != nil || !strings.Contains(d.Why, fmt.Sprint(status)) {
				t.Fatalf("%q: %v", line, err)
			}
			aside = append(aside, d.Event.User)
		}
		if !slices.Equal(aside, bad) || !strings.Contains(log.String(), "level=ERROR") {
			t.Errorf("%d: %v, log %s", status, aside, &log)
		}
	}
}

// TestFull: a full spool drops its oldest events and counts them, or refuses
// statements, as configured; when the receiver is back things go on.
func TestFull(t *testing.T) {
	for _, when := range []WhenFull{DropOldest, Refuse} {
		up := false
		r := newReceiver(t)
		r.answer = func(int, []Event) int {
			if up {
				return 0
			}
			return 503
		}
		out := remote("http", r.URL)
		out.Limit, out.WhenFull = 200<<10, when
		s := openSink(t, t.TempDir(), out)
		recorded, refusals := 0, 0
		for i := range 3000 {
			if err := s.Ready(); err != nil {
				if !fault.Is(err, fault.Unavailable) {
					t.Fatal(err)
				}
				refusals++
				continue
			}
			record(t, s, i, i+1)
			recorded++
			if i%10 == 0 {
				eventually(t, "the file follows", func() bool {
					lines, _, _ := s.outputs[0].writer.state()
					return lines == 0 || s.Ready() != nil
				})
			}
		}
		eventually(t, "written", func() bool { lines, _, _ := s.outputs[0].writer.state(); return lines == 0 || when == Refuse })
		st := s.Stats()[0]
		if st.Bytes > out.Limit {
			t.Errorf("%s: %d bytes", when, st.Bytes)
		}
		if when == DropOldest && (refusals > 0 || st.Dropped == 0) || when == Refuse && (refusals == 0 || st.Dropped > 0) {
			t.Errorf("%s: %d refusals, %+v", when, refusals, st)
		}
		r.mu.Lock()
		up = true
		r.mu.Unlock()
		eventually(t, "sent", func() bool { return s.Stats()[0].Queued == 0 })
		eventually(t, "ready after the receiver is back", func() bool { return s.Ready() == nil })
		closeSink(s)
		st = s.Stats()[0]
		if got := r.users(); uint64(len(got))+st.Dropped != uint64(recorded) || !slices.IsSorted(got) {
			t.Errorf("%s: %d recorded, %d arrived, %d dropped", when, recorded, len(got), st.Dropped)
		}
	}
}

// TestTorn: what a crash leaves behind, half a line, zeros, a lost or broken
// cursor, is skipped or sent twice, and never stops what follows.
func TestTorn(t *testing.T) {
	down := "http://127.0.0.1:1/" // nobody listens
	for name, damage := range map[string]struct {
		do     func(t *testing.T, file, dir string)
		lost   uint64 // dropped or set aside
		hidden int    // of the ten events
	}{
		"half a line": {func(t *testing.T, file, _ string) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, text[:len(text)-40], 0o600); err != nil {
				t.Fatal(err)
			}
		}, 1, 1},
		"zeros": {func(t *testing.T, file, _ string) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			i := bytes.IndexByte(text, '\n')
			copy(text[i+1:], make([]byte, 50))
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}, 1, 1},
		"a broken cursor": {func(t *testing.T, _, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "cursor"), []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, 0, 0},
		"a cursor beyond the end": {func(t *testing.T, _, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "cursor"), []byte(`{"segment":1,"offset":99999999}`), 0o600); err != nil {
				t.Fatal(err)
			}
		}, 0, 10},
		"nothing": {func(*testing.T, string, string) {}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openSink(t, dir, remote("http", down))
			record(t, s, 0, 10)
			eventually(t, "spooled", func() bool { return s.Stats()[0].Bytes > 0 })
			ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			s.Close(ctx)
			cancel()
			files, _ := filepath.Glob(filepath.Join(dir, "http", "*.jsonl"))
			if len(files) != 1 {
				t.Fatal(files)
			}
			if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v %v", info.Mode(), err)
			}
			damage.do(t, files[0], filepath.Join(dir, "http"))
			r := newReceiver(t)
			s = openSink(t, dir, remote("http", r.URL))
			record(t, s, 10, 20)
			closeSink(s)
			got := r.users()
			if len(got) != 20-damage.hidden || !slices.Equal(got[len(got)-10:], names(10, 20)) {
				t.Errorf("%v", got)
			}
			if st := s.Stats()[0]; st.Dropped+st.SetAside != damage.lost || st.Queued != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// TestOneProcess: two processes cannot use one spool.
func TestOneProcess(t *testing.T) {
	dir := t.TempDir()
	s := openSink(t, dir, remote("http", "http://127.0.0.1:1/"))
	if _, err := Open(Options{Outputs: []Output{remote("http", "http://127.0.0.1:1/")}, Spool: dir}); !fault.Is(err, fault.Config) {
		t.Errorf("%v", err)
	}
	closeSink(s)
	s = openSink(t, dir, remote("http", "http://127.0.0.1:1/"))
	closeSink(s)
}

// TestFile: the file has the lines of Ranger, and follows a rename at Reopen.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "ranger.jsonl")
	s := openSink(t, t.TempDir(), Output{Name: "file", Kind: ToFile, Path: path})
	record(t, s, 0, 100)
	eventually(t, "written", func() bool { return s.Stats()[0].Sent == 100 })
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if err := s.Reopen(); err != nil {
		t.Fatal(err)
	}
	record(t, s, 100, 150)
	closeSink(s)
	var got []string
	for _, p := range []string{path + ".1", path} {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range split(text) {
			var e Event
			if err := json.Unmarshal(line, &e); err != nil || e.LogType != "RangerAudit" {
				t.Fatalf("%s: %v", line, err)
			}
			got = append(got, e.User)
		}
		if info, err := os.Stat(p); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info.Mode(), err)
		}
	}
	if !slices.Equal(got, names(0, 150)) {
		t.Errorf("%d lines: %v", len(got), got)
	}
}

// TestNumbers: behind the audit log an event has the number that it has there.
func TestNumbers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "ranger.jsonl")
	s := openSink(t, dir, Output{Name: "file", Kind: ToFile, Path: path})
	f, err := audit.NewFile(filepath.Join(dir, "audit.jsonl"), audit.Refuse, nil, audit.Also(s), audit.WithSync(audit.SyncAlways))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				if err := f.Record(one(fmt.Sprintf("u%d-%d", i, j))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	closeSink(s)
	read := func(path string) [][]byte {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return split(text)
	}
	own, rangers := read(filepath.Join(dir, "audit.jsonl")), read(path)
	if len(own) != 400 || len(rangers) != 400 {
		t.Fatalf("%d and %d events", len(own), len(rangers))
	}
	for i := range own {
		var a audit.Event
		var b Event
		if err := json.Unmarshal(own[i], &a); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(rangers[i], &b); err != nil {
			t.Fatal(err)
		}
		if b.ID != fmt.Sprintf("%s-%d-0", a.Run, a.Seq) || a.User != b.User || a.Seq != uint64(i+1) {
			t.Fatalf("%+v, %+v", a, b)
		}
	}
}

// TestKilled: a process that is killed while it records loses at most what it held
// in memory: of what was in its spool everything arrives, in order and whole, over
// many such deaths.
func TestKilled(t *testing.T) {
	if dir := os.Getenv("AUDIT_TEST_DIR"); dir != "" {
		s := openSink(t, dir, remote("http", "http://127.0.0.1:1/"))
		for i := 0; ; i++ { // until it is killed
			if err := s.Record(one(fmt.Sprintf("%s-%06d", os.Getenv("AUDIT_TEST_RUN"), i))); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Microsecond)
		}
	}
	dir := t.TempDir()
	const runs = 6
	spooled := func() (n int) {
		names, _ := filepath.Glob(filepath.Join(dir, "http", "*.jsonl"))
		for _, name := range names {
			text, _ := os.ReadFile(name)
			n += bytes.Count(text, []byte{'\n'})
		}
		return n
	}
	for run := range runs {
		before := spooled()
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		cmd.Env = append(os.Environ(), "AUDIT_TEST_DIR="+dir, fmt.Sprintf("AUDIT_TEST_RUN=run%d", run))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the process records", func() bool { return spooled() > before+50*run })
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
	}
	want := spooled()
	r := newReceiver(t)
	s := openSink(t, dir, remote("http", r.URL))
	closeSink(s)
	got := r.users()
	if len(got) != want || !slices.IsSorted(got) {
		t.Errorf("%d events arrived, %d were in the spool, in order: %v", len(got), want, slices.IsSorted(got))
	}
	last := map[string]int{}
	for _, u := range got {
		name, number, _ := strings.Cut(u, "-")
		n, err := strconv.Atoi(number)
		if err != nil || n != last[name] {
			t.Fatalf("after %d events of %s came %s", last[name], name, u)
		}
		last[name]++
	}
	if len(last) != runs {
		t.Errorf("events of %d processes arrived", len(last))
	}
	if st := s.Stats()[0]; st.SetAside != 0 || st.Queued != 0 {
		t.Errorf("%+v", st)
	}
}

func BenchmarkRecord(b *testing.B) {
	hang := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		_, _ = io.ReadAll(req.Body)
		<-req.Context().Done()
	}))
	defer hang.Close()
	c := testConverter("hive")
	s, err := Open(Options{Sources: c.sources, Outputs: []Output{remote("http", hang.URL)}, Spool: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	e := audit.Event{
		Type: "statement", Run: "r", Seq: 1, User: "alice", Statement: "SELECT id, ssn FROM t WHERE id = ?", Outcome: "ok",
		Tables: []audit.Table{{Name: "c.n.t", Snapshot: 1, Columns: []string{"id", "ssn"}}},
		Policies: []audit.Action{
			{Table: "c.n.t", What: "allow", Origin: policy.Origin{Source: "ranger", Policy: "a", ID: 1, Version: 1}},
			{Table: "c.n.t", What: "mask", Column: "ssn", Action: "MASK", Origin: policy.Origin{Source: "ranger", Policy: "m", ID: 2, Version: 1}},
		},
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Record(e); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	s.Close(ctx)
}
