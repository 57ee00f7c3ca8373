package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// keyed lets only the credentials with one number through.
func keyed(m *memory, good *atomic.Int64) {
	m.failing(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.Header.Get("Authorization"), fmt.Sprintf("Credential=KEY%d/", good.Load())) && r.Header.Get("X-Amz-Security-Token") == fmt.Sprintf("token %d", good.Load()) {
			return false
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "<Error><Code>InvalidAccessKeyId</Code></Error>")
		return true
	})
}

func numbered(n int64, life time.Duration) Credentials {
	c := Credentials{AccessKeyID: fmt.Sprintf("KEY%d", n), SecretAccessKey: secretKey, SessionToken: fmt.Sprintf("token %d", n)}
	if life != 0 {
		c.Expires = time.Now().Add(life)
	}
	return c
}

// TestRenew: credentials that the store does not know any more are renewed once for all
// requests that meet this, and what was refused is sent again; reads and writes go on.
func TestRenew(t *testing.T) {
	m := newMemory(t)
	var good, asked atomic.Int64
	m.objects["/b/wh/f"] = pattern(300_000)
	keyed(m, &good)
	c, err := New(Options{Endpoint: m.URL, Credentials: numbered(0, 0), Renew: func(context.Context) (Credentials, error) {
		asked.Add(1)
		return numbered(good.Load(), 0), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	f := c.Files(context.Background(), inFolder)
	in, err := f.Open("s3://b/wh/f")
	if err != nil || asked.Load() != 0 {
		t.Fatal(err, asked.Load())
	}
	good.Add(1) // the first ones are revoked
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if _, err := in.ReadAt(make([]byte, 1000), int64(1000*i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if asked.Load() != 1 {
		t.Errorf("asked %d times for credentials", asked.Load())
	}
	w, err := f.Create("s3://b/wh/g")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		good.Add(1) // in the middle of an upload
		if _, err := w.Write(pattern(partSize)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil || len(m.objects["/b/wh/g"]) != 3*partSize {
		t.Errorf("%d bytes, %v", len(m.objects["/b/wh/g"]), err)
	}
	// The same ones once more are no others.
	before := good.Add(1)
	good.Add(1)
	c.holder.renew = func(context.Context) (Credentials, error) { return numbered(before-1, 0), nil }
	if _, err := f.Open("s3://b/wh/f"); !errors.Is(err, ErrDenied) {
		t.Error(err)
	}
	// That one may not do something is no reason to ask.
	n := asked.Load()
	c.holder.renew = func(context.Context) (Credentials, error) { asked.Add(1); return Credentials{}, nil }
	m.failing(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "<Error><Code>AccessDenied</Code></Error>")
		return true
	})
	if _, err := f.Open("s3://b/wh/f"); !errors.Is(err, ErrDenied) || asked.Load() != n {
		t.Error(err, asked.Load())
	}
}

// TestRenewInTime: credentials that say when they expire are replaced before, while
// those that were there still serve when nobody gives others; then it is an error with
// the reason.
func TestRenewInTime(t *testing.T) {
	now := time.Now()
	reason := errors.New("the reason")
	var asked int
	var fail error
	h := newHolder(Credentials{}, func(context.Context) (Credentials, error) {
		asked++
		c := numbered(int64(asked), 0)
		c.Expires = now.Add(time.Hour)
		return c, fail
	})
	h.now = func() time.Time { return now }
	c := numbered(0, 0)
	c.Expires = now.Add(100 * time.Second)
	h.set(c)
	ctx := context.Background()
	want := func(key string, times int, failed error) {
		t.Helper()
		got, err := h.get(ctx, nil)
		if got.AccessKeyID != key || asked != times || !errors.Is(err, failed) {
			t.Errorf("%s after %d times, %v, want %s after %d", got.AccessKeyID, asked, err, key, times)
		}
	}
	want("KEY0", 0, nil)
	now = now.Add(74 * time.Second)
	want("KEY0", 0, nil)
	now, fail = now.Add(2*time.Second), reason
	want("KEY0", 1, nil)
	want("KEY0", 1, nil) // not for each request
	now = now.Add(pauseAsk)
	want("KEY0", 2, nil)
	now = now.Add(time.Minute)
	want("", 3, reason)
	fail = nil
	want("KEY4", 4, nil)
	now = now.Add(58 * time.Minute)
	want("KEY4", 4, nil)
	now = now.Add(90 * time.Second)
	want("KEY5", 5, nil)
	// Who is cancelled does not take others along.
	over, cancel := context.WithCancel(ctx)
	cancel()
	now = now.Add(2 * time.Hour)
	if _, err := h.get(over, nil); !errors.Is(err, context.Canceled) && err != nil {
		t.Error(err)
	}
	want("KEY6", 6, nil)
}

// TestNotRenewed: the error says that credentials expired and why there are no others,
// and none of what they are.
func TestNotRenewed(t *testing.T) {
	m := newMemory(t)
	reason := errors.New("the reason")
	c, err := New(Options{Endpoint: m.URL, Credentials: numbered(0, -time.Second), Renew: func(context.Context) (Credentials, error) { return Credentials{}, reason }})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Files(context.Background(), inFolder).Open("s3://b/wh/f")
	if !errors.Is(err, ErrNotRenewed) || !errors.Is(err, reason) || len(m.requests()) != 0 {
		t.Error(err, m.requests())
	}
	if text := fmt.Sprintf("%v %+v %#v %v", err, err, err, c.holder); strings.Contains(text, "KEY0") || strings.Contains(text, "token 0") || strings.Contains(text, secretKey) {
		t.Error(text)
	}
}
