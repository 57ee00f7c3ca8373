package objects

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// memory is a store in memory without signatures, which can fail.
type memory struct {
	*httptest.Server
	mu      sync.Mutex
	objects map[string][]byte
	parts   map[string][]byte
	asked   []string
	fail    func(w http.ResponseWriter, r *http.Request) bool
}

func newMemory(t *testing.T) *memory {
	m := &memory{objects: map[string][]byte{}, parts: map[string][]byte{}}
	m.Server = httptest.NewServer(http.HandlerFunc(m.serve))
	t.Cleanup(m.Close)
	return m
}

func (m *memory) serve(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	m.asked = append(m.asked, r.Method+" "+r.URL.Path+" "+r.Header.Get("Range"))
	fail := m.fail
	m.mu.Unlock()
	if r.ContentLength > 0 {
		// A server that answers before it has read everything may break the connection
		// before the client has the answer.
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	if fail != nil && fail(w, r) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	name, query := r.URL.Path, r.URL.Query()
	switch {
	case r.Method == http.MethodPost && query.Has("uploads"):
		_, _ = io.WriteString(w, "<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>")
	case r.Method == http.MethodPut && query.Get("partNumber") != "":
		body, _ := io.ReadAll(r.Body)
		m.parts[query.Get("partNumber")] = body
		w.Header().Set("ETag", `"p`+query.Get("partNumber")+`"`)
	case r.Method == http.MethodPost && query.Get("uploadId") != "":
		var all []byte
		for n := 1; m.parts[strconv.Itoa(n)] != nil; n++ {
			all = append(all, m.parts[strconv.Itoa(n)]...)
		}
		m.objects[name] = all
		_, _ = io.WriteString(w, "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>")
	case r.Method == http.MethodPost && query.Has("delete"):
		var asked struct {
			Keys []string `xml:"Object>Key"`
		}
		_ = xml.NewDecoder(r.Body).Decode(&asked)
		fmt.Fprint(w, "<DeleteResult>")
		for _, k := range asked.Keys {
			if strings.HasPrefix(k, "wh/kept") {
				fmt.Fprintf(w, "<Error><Key>%s</Key><Code>AccessDenied</Code></Error>", k)
				continue
			}
			delete(m.objects, name+"/"+k)
		}
		fmt.Fprint(w, "</DeleteResult>")
	case r.Method == http.MethodDelete && query.Get("uploadId") != "":
		m.parts = map[string][]byte{}
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodDelete:
		delete(m.objects, name)
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPut:
		m.objects[name], _ = io.ReadAll(r.Body)
	case query.Get("list-type") == "2":
		var keys []string
		for k := range m.objects {
			if k, ok := strings.CutPrefix(k, "/b/"); ok && strings.HasPrefix(k, query.Get("prefix")) && k > query.Get("continuation-token") {
				keys = append(keys, k)
			}
		}
		slices.Sort(keys)
		more := len(keys) > 2
		keys = keys[:min(2, len(keys))]
		fmt.Fprint(w, "<ListBucketResult>")
		for _, k := range keys {
			fmt.Fprintf(w, "<Contents><Key>%s</Key><Size>%d</Size><LastModified>2024-01-02T03:04:05Z</LastModified></Contents>", k, len(m.objects["/b/"+k]))
		}
		if more {
			fmt.Fprintf(w, "<IsTruncated>true</IsTruncated><NextContinuationToken>%s</NextContinuationToken>", keys[len(keys)-1])
		}
		fmt.Fprint(w, "</ListBucketResult>")
	default:
		body, ok := m.objects[name]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "<Error><Code>NoSuchKey</Code></Error>")
			return
		}
		w.Header().Set("ETag", fmt.Sprintf(`"%d-%x"`, len(body), body[:min(8, len(body))]))
		http.ServeContent(w, r, "", time.Unix(1700000000, 0), bytes.NewReader(body))
	}
}

// requests are those since failing was called.
func (m *memory) requests() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.asked)
}

func (m *memory) failing(f func(http.ResponseWriter, *http.Request) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail, m.asked = f, nil
}

const accessKey, secretKey = "THEACCESSKEY", "the-secret-key"

func (m *memory) client(t *testing.T, o Options) *Client {
	t.Helper()
	o.Endpoint, o.Credentials = m.URL, Credentials{AccessKeyID: accessKey, SecretAccessKey: secretKey, SessionToken: "the-session"}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func inFolder(location string) bool { return strings.HasPrefix(location, "s3://b/wh/") }

func pattern(n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(i>>8) ^ byte(i*7)
	}
	return out
}

func TestReadAndWrite(t *testing.T) {
	m := newMemory(t)
	f := m.client(t, Options{}).Files(context.Background(), inFolder)
	for _, n := range []int{0, 1, 100, tailSize, tailSize + 1, partSize, partSize + 1, 2*partSize + 5} {
		name := fmt.Sprintf("s3://b/wh/f %d%%", n)
		want := pattern(n)
		w, err := f.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		m.parts = map[string][]byte{}
		for chunk := range slices.Chunk(want, 1_000_003) {
			if _, err := w.Write(chunk); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := f.ReadFile(name)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: ReadFile gives %d (%v)", n, len(got), err)
		}
		in, err := f.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(in); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: Read gives %d (%v)", n, len(got), err)
		}
		if end, err := in.Seek(0, io.SeekEnd); err != nil || end != int64(n) {
			t.Errorf("%d bytes: the end is at %d (%v)", n, end, err)
		}
		if n > 100 {
			if _, err := in.Seek(-50, io.SeekCurrent); err != nil {
				t.Error(err)
			}
			if got, err := io.ReadAll(in); err != nil || !bytes.Equal(got, want[n-50:]) {
				t.Errorf("%d bytes: the last 50 are wrong (%v)", n, err)
			}
			p := make([]byte, 30)
			if k, err := in.ReadAt(p, 40); k != 30 || err != nil || !bytes.Equal(p, want[40:70]) {
				t.Errorf("%d bytes: ReadAt gives %d (%v)", n, k, err)
			}
			if k, err := in.ReadAt(p, int64(n)-10); k != 10 || err != io.EOF || !bytes.Equal(p[:10], want[n-10:]) {
				t.Errorf("%d bytes: ReadAt beyond the end gives %d (%v)", n, k, err)
			}
		}
		if info, err := in.Stat(); err != nil || info.Size() != int64(n) {
			t.Errorf("%v %v", info, err)
		}
		_ = in.Close()
		if err := f.Remove(name); err != nil {
			t.Error(err)
		}
		if _, err := f.Open(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a removed object: %v", err)
		}
	}
}

func TestPrefetch(t *testing.T) {
	m := newMemory(t)
	want := pattern(4 << 20)
	m.objects["/b/wh/f"] = want
	f := m.client(t, Options{}).Files(context.Background(), inFolder)
	in, err := f.Open("s3://b/wh/f")
	if err != nil {
		t.Fatal(err)
	}
	o := in.(*Object)
	m.failing(nil)
	spans := []Span{{1000, 5000}, {7000, 3000}, {2 << 20, 100_000}, {-1, 5}, {4 << 20, 100}, {4<<20 - 10, 5}}
	if err := o.Prefetch(context.Background(), spans); err != nil {
		t.Fatal(err)
	}
	if len(m.requests()) != 2 { // the first two are near to each other
		t.Errorf("requests: %q", m.requests())
	}
	m.failing(func(w http.ResponseWriter, _ *http.Request) bool { t.Error("another request"); return false })
	for _, s := range spans[:3] {
		p := make([]byte, s.Length)
		if n, err := o.ReadAt(p, s.Offset); n != len(p) || err != nil || !bytes.Equal(p, want[s.Offset:s.Offset+s.Length]) {
			t.Errorf("%v: %d %v", s, n, err)
		}
	}
	if len(o.parts) != 0 {
		t.Errorf("%d parts stay in memory", len(o.parts))
	}
}

func TestOutside(t *testing.T) {
	m := newMemory(t)
	for _, k := range []string{"/b/wh/f", "/b/other/f", "/c/wh/f"} {
		m.objects[k] = []byte("x")
	}
	f := m.client(t, Options{}).Files(context.Background(), inFolder)
	if _, err := f.ReadFile("s3://b/wh/f"); err != nil {
		t.Fatal(err)
	}
	m.failing(nil)
	for _, name := range []string{
		"s3://b/other/f", "s3://c/wh/f", "s3://b/wh/../other/f", "s3://b/wh/./f", "s3://b/wh", "s3://b", "s3://", "/b/wh/f", "file:///b/wh/f", "s3:/b/wh/f",
		"s3://b@c/wh/f", "s3://b?x/wh/f", "gs://b/wh/f", "",
	} {
		_, e1 := f.Open(name)
		_, e2 := f.ReadFile(name)
		_, e3 := f.Create(name)
		_, e4 := f.DeleteFiles(context.Background(), []string{name})
		for i, err := range []error{e1, e2, e3, e4, f.Remove(name), f.WriteFile(name, []byte("y"))} {
			if !errors.Is(err, ErrOutside) {
				t.Errorf("%q: %d gives %v", name, i, err)
			}
		}
	}
	if err := f.WalkDir("s3://b/other", func(string, fs.DirEntry, error) error { return nil }); !errors.Is(err, ErrOutside) {
		t.Error(err)
	}
	if len(m.requests()) > 0 {
		t.Errorf("the store was asked: %q", m.requests())
	}
}

func TestWalk(t *testing.T) {
	m := newMemory(t)
	for _, k := range []string{"a", "b/c", "b/d", "e", "f/"} {
		m.objects["/b/wh/t/"+k] = []byte(k)
	}
	m.objects["/b/wh/t2/x"] = []byte("x")
	f := m.client(t, Options{}).Files(context.Background(), inFolder)
	var got []string
	err := f.WalkDir("s3a://b/wh/t", func(string, fs.DirEntry, error) error { return nil })
	if !errors.Is(err, ErrOutside) {
		t.Error("inFolder knows no s3a:", err)
	}
	if err := f.WalkDir("s3://b/wh/t", func(p string, d fs.DirEntry, err error) error {
		info, e := d.Info()
		if err != nil || e != nil || d.IsDir() || info.ModTime().Year() != 2024 {
			t.Error(p, err, e, info)
		}
		got = append(got, p)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"s3://b/wh/t/a", "s3://b/wh/t/b/c", "s3://b/wh/t/b/d", "s3://b/wh/t/e"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestFailures: what each failure is, how often it is tried, and that nothing that a
// store says is repeated.
func TestFailures(t *testing.T) {
	m := newMemory(t)
	m.objects["/b/wh/f"] = pattern(1 << 20)
	f := m.client(t, Options{Attempts: 3}).Files(context.Background(), inFolder)
	impatient := m.client(t, Options{Timeout: 200 * time.Millisecond, Attempts: 3}).Files(context.Background(), inFolder)
	says := func(status int, code string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("X-Amz-Request-Id", "R1")
			w.WriteHeader(status)
			fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s %s</Message></Error>", code, accessKey, secretKey)
			return true
		}
	}
	for _, c := range []struct {
		name  string
		fail  func(http.ResponseWriter, *http.Request) bool
		is    error
		asked int
	}{
		{"denied", says(403, "AccessDenied"), ErrDenied, 1},
		{"expired", says(400, "ExpiredToken"), ErrDenied, 1},
		{"unknown key as 404", says(404, "InvalidAccessKeyId"), ErrDenied, 1},
		{"no object", says(404, "NoSuchKey"), fs.ErrNotExist, 1},
		{"another 404", says(404, "SomethingElse"), ErrRefused, 1},
		{"no bucket", says(404, "NoSuchBucket"), ErrBucket, 1},
		{"other region", says(301, "PermanentRedirect"), ErrBucket, 1},
		{"broken", says(500, "InternalError"), ErrUnavailable, 3},
		{"overload", says(503, "SlowDown"), ErrUnavailable, 3},
		{"wrong", says(400, "InvalidArgument"), ErrRefused, 1},
		{"a code that is a secret", says(400, "the key is\n"+secretKey), ErrRefused, 1},
		{"silent", func(_ http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		}, ErrUnavailable, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			m.failing(c.fail)
			from := f
			if c.name == "silent" {
				from = impatient
			}
			_, err := from.Open("s3://b/wh/f")
			if !errors.Is(err, c.is) {
				t.Errorf("%v, want %v", err, c.is)
			}
			if len(m.requests()) != c.asked {
				t.Errorf("asked %d times, want %d", len(m.requests()), c.asked)
			}
			for _, secret := range []string{accessKey, secretKey, "the-session"} {
				if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), secret) {
					t.Errorf("the error shows a key: %v", err)
				}
			}
			m.failing(nil)
			if _, err := f.Open("s3://b/wh/f"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCutOff: a body that breaks off is read on from where it ended.
func TestCutOff(t *testing.T) {
	m := newMemory(t)
	want := pattern(1 << 20)
	m.objects["/b/wh/f"] = want
	o, err := m.client(t, Options{Attempts: 5}).Files(context.Background(), inFolder).Open("s3://b/wh/f")
	if err != nil {
		t.Fatal(err)
	}
	left := 3
	m.failing(func(w http.ResponseWriter, r *http.Request) bool {
		if left--; left < 0 {
			return false
		}
		var from, to int
		_, _ = fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to)
		w.Header().Set("ETag", fmt.Sprintf(`"%d-%x"`, len(want), want[:8]))
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(want)))
		w.Header().Set("Content-Length", strconv.Itoa(to-from+1))
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write(want[from : from+1000])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	p := make([]byte, 100_000)
	if _, err := o.ReadAt(p, 5000); err != nil || !bytes.Equal(p, want[5000:105_000]) {
		t.Errorf("wrong bytes or %v", err)
	}
	if len(m.requests()) != 4 || !strings.HasSuffix(m.requests()[3], "bytes=8000-104999") {
		t.Errorf("%q", m.requests())
	}
}

// TestChanged: an object that is replaced while it is read is not mixed with its
// successor.
func TestChanged(t *testing.T) {
	m := newMemory(t)
	m.objects["/b/wh/f"] = pattern(1 << 20)
	o, err := m.client(t, Options{}).Files(context.Background(), inFolder).Open("s3://b/wh/f")
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range [][]byte{bytes.Repeat([]byte("x"), 1<<20), pattern(1<<20 + 1), []byte("short")} {
		m.objects["/b/wh/f"] = body
		if _, err := o.ReadAt(make([]byte, 100), 5000); !errors.Is(err, ErrChanged) {
			t.Errorf("%d bytes: %v", len(body), err)
		}
	}
}

// TestCancelled: requests end with their context; clearing up does not.
func TestCancelled(t *testing.T) {
	m := newMemory(t)
	m.objects["/b/wh/f"] = []byte("x")
	ctx, cancel := context.WithCancel(context.Background())
	f := m.client(t, Options{}).Files(ctx, inFolder)
	w, err := f.Create("s3://b/wh/g")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(pattern(partSize + 1)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := f.Open("s3://b/wh/f"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := w.Close(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if len(m.parts) > 0 || m.objects["/b/wh/g"] != nil {
		t.Error("an upload was left")
	}
	if err := f.Remove("s3://b/wh/f"); err != nil || m.objects["/b/wh/f"] != nil {
		t.Error("not removed:", err)
	}
}

func TestCredentials(t *testing.T) {
	for _, c := range []Credentials{{}, {AccessKeyID: "a"}, {SecretAccessKey: "b"}} {
		// Those of the environment must not come in their place.
		t.Setenv("AWS_ACCESS_KEY_ID", "x")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "y")
		if _, err := New(Options{Credentials: c}); !errors.Is(err, ErrCredentials) {
			t.Error(err)
		}
	}
	m := newMemory(t)
	c := m.client(t, Options{})
	o := Options{Credentials: Credentials{AccessKeyID: accessKey, SecretAccessKey: secretKey, SessionToken: "the-session"}}
	text, _ := json.Marshal(struct{ Is Credentials }{o.Credentials})
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "options", o, "client", c, "credentials", o.Credentials)
	all := fmt.Sprintf("%v %+v %#v %s %v %+v %#v %q %x", o, o, o, o.Credentials, c, c, c, o.Credentials, o.Credentials) + string(text) + log.String()
	for _, secret := range []string{accessKey, secretKey, "the-session", fmt.Sprintf("%x", secretKey)} {
		if strings.Contains(all, secret) {
			t.Errorf("printed: %s", all)
		}
	}
	for _, endpoint := range []string{"store", "ftp://x", "http://", "http://user:pw@x"} {
		o.Endpoint = endpoint
		if _, err := New(o); err == nil || strings.Contains(err.Error(), "pw") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}
