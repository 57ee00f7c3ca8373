package catalog

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"sqe/catalog/rest"
	"sqe/plan"
)

// forgetful makes a catalog say "not modified" whenever it may, as one does whose ETags
// stand for the metadata. It counts that, and the tables that it was asked for without a
// mark and past every cache.
func forgetful(f *fakeREST) (unmodified, afresh *int) {
	unmodified, afresh = new(int), new(int)
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.Header.Get("If-None-Match") != "":
			*unmodified++
			w.WriteHeader(http.StatusNotModified)
			return true
		case strings.HasSuffix(r.URL.Path, "/tables/orders") && r.Header.Get("Cache-Control") == "no-cache, no-store":
			*afresh++
		}
		return false
	}
	return unmodified, afresh
}

// say sets more members of the answers about the table.
func (f *fakeREST) say(extra map[string]any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.extra = extra
}

// TestRESTMarks: a catalog that says "not modified" of the metadata hides no change of
// what it demands of reads, nor of who plans the scans, beyond the bound. It does where
// the administrator trusts its marks: so the catalog of this test would hide it.
func TestRESTMarks(t *testing.T) {
	demanding := func(raw string) map[string]any {
		return map[string]any{"read-restrictions": json.RawMessage(raw)}
	}
	hides, shows := `{"required-row-filter":false}`, `{"required-row-filter":true}`
	for _, bound := range []time.Duration{-1, 5 * time.Second} {
		for _, trusted := range []bool{false, true} {
			for what, only := range map[string]bool{"rows": false, "definition": true} {
				f := newFakeREST(t)
				unmodified, afresh := forgetful(f)
				c := remote(t, f.URL, rest.Options{}, RESTOptions{Local: f.dir, Bound: bound, TrustETags: trusted})
				now := time.Now()
				c.now = func() time.Time { return now }
				alice := as("alice")
				if only {
					alice = MetadataOnly(alice)
				}
				first := ""
				for i, want := range []string{"", hides, shows, hides, ""} {
					f.say(demanding(want))
					if want == "" {
						f.say(nil)
					}
					got, err := c.Table(alice, orders, plan.AsOf{}, "")
					must(t, err)
					if trusted {
						want = first
					}
					if demand := string(ReadRestrictions(got)); demand != want {
						t.Errorf("bound %v, trusted %v, %s: answer %d demands %q, want %q", bound, trusted, what, i, demand, want)
					}
					now = now.Add(5 * time.Second)
				}
				if wantUnmodified := map[bool]int{true: 4}[trusted]; *unmodified != wantUnmodified || *afresh != 5-wantUnmodified {
					t.Errorf("bound %v, trusted %v, %s: %d times not modified, and %d times afresh", bound, trusted, what, *unmodified, *afresh)
				}
			}
		}
	}
	// What a write reads.
	for _, trusted := range []bool{false, true} {
		f := newFakeREST(t)
		forgetful(f)
		c := remote(t, f.URL, rest.Options{}, RESTOptions{Local: f.dir, Bound: time.Hour, TrustETags: trusted})
		must(t, second(c.Table(as("alice"), orders, plan.AsOf{}, "")))
		f.say(demanding(hides))
		got, err := c.fresh(as("alice"), orders)
		must(t, err)
		if demand := string(ReadRestrictions(got)); (demand == hides) == trusted {
			t.Errorf("trusted %v: a write reads under %q", trusted, demand)
		}
	}
	// Who plans the scans: asked in each statement from then on.
	for _, trusted := range []bool{false, true} {
		f := newFakeREST(t)
		forgetful(f)
		c := remote(t, f.URL, rest.Options{}, RESTOptions{Local: f.dir, Bound: -1, TrustETags: trusted})
		for _, mode := range []string{"client", "server", "client"} {
			f.say(map[string]any{"config": map[string]string{"scan-planning-mode": mode}})
			got, err := c.Table(as("alice"), orders, plan.AsOf{}, "")
			must(t, err)
			if by := got.Handle.(*Handle).ServerPlanned(); by != (mode == "server" && !trusted) {
				t.Errorf("trusted %v, mode %s: planned by the server is %v", trusted, mode, by)
			}
		}
	}
}

// TestRESTSameAnswer: an answer that says what the last one said is read and not made
// a table of again; one that differs in anything is.
func TestRESTSameAnswer(t *testing.T) {
	f := newFakeREST(t)
	forgetful(f)
	c := remote(t, f.URL, rest.Options{}, RESTOptions{Local: f.dir, Bound: 5 * time.Second})
	now := time.Now()
	c.now = func() time.Time { return now }
	var last *plan.Table
	load := func(same bool) {
		t.Helper()
		f.seen()
		now = now.Add(5 * time.Second)
		got, err := c.Table(as("alice"), orders, plan.AsOf{}, "")
		must(t, err)
		if asked := f.seen(); len(asked) == 0 {
			t.Error("the catalog was not asked")
		}
		if last != nil && (got == last) != same {
			t.Errorf("the same table: %v, want %v", got == last, same)
		}
		last = got
		// It is used again for as long as any other answer.
		now = now.Add(4900 * time.Millisecond)
		again, err := c.Table(as("alice"), orders, plan.AsOf{}, "")
		must(t, err)
		if asked := f.seen(); len(asked) != 0 || again != got {
			t.Errorf("asked within the bound: %q", asked)
		}
	}
	load(false)
	load(true)
	f.say(map[string]any{"read-restrictions": json.RawMessage(`{"required-row-filter":true}`)})
	load(false)
	load(true)
	f.say(map[string]any{"read-restrictions": json.RawMessage(`{"required-row-filter":false}`)})
	load(false)
	f.say(map[string]any{"read-restrictions": json.RawMessage(`null`)})
	load(false)
	f.say(map[string]any{"config": map[string]string{"a": "b"}})
	load(false)
	load(true)
	f.mu.Lock()
	f.version++
	f.mu.Unlock()
	load(false)
	load(true)
	// One with credentials is for one statement, and was never kept.
	f.say(map[string]any{"config": map[string]string{"a": "b", "s3.access-key-id": "x"}})
	now = now.Add(5 * time.Second)
	for range 2 {
		f.seen()
		got, err := c.Table(as("alice"), orders, plan.AsOf{}, "")
		must(t, err)
		if len(f.seen()) == 0 || got == last {
			t.Error("an answer with credentials was used again")
		}
		last = got
	}
}
