//go:build e2e

package stack

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sqe/tests/s3"
	"sqe/tests/sqetest"
)

// bucket is that of the catalog's warehouse: the folder of the same name is the bucket
// of a store above the folder of the catalog.
const bucket = "warehouse"

// vendor is a proxy before the catalog that makes of its folder a bucket of a real
// object store, and gives credentials of the store with each table, as Polaris does:
// temporary ones, for one table, and as much as the person of the token may do there.
// Who may load the table the catalog decides.
type vendor struct {
	*httptest.Server
	t     *testing.T
	store *s3.Store
	keys  *s3.Keys
	gate  *gate

	mu    sync.Mutex
	how   giving
	given map[string]lent // by the id of the key
	// renewals counts the answers to requests for credentials alone.
	renewals int
	// answers are those that hold keys.
	answers []string
}

// giving says how a vendor gives credentials.
type giving struct {
	life time.Duration
	// silent: it does not say when they expire.
	silent bool
	// form is where they stand: "prefixes", "config", "both", "nested" (two for parts of
	// the folder and one for nothing), "signing" or "none".
	form string
	// endpoint: there is a call for credentials alone.
	endpoint bool
	// commits: they stand in answers to commits too.
	commits bool
	// may is what somebody may do in a folder ("warehouse/sales/orders"); nil: alice
	// everything, others read.
	may func(who, folder string) string
	// refuse answers requests for credentials alone, and with loads those for tables.
	refuse func(who string) int
	loads  bool
}

// lent is to whom a key was given, and for what.
type lent struct {
	s3.Key
	who, folder string
}

var writing = []string{"s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"}

func usual(who, folder string) string {
	if who == "alice" {
		return s3.Policy(folder, writing...)
	}
	return s3.Policy(folder, "s3:GetObject")
}

func startVendor(t *testing.T) *vendor {
	t.Helper()
	lake.ours(t)
	v := &vendor{t: t, given: map[string]lent{}, how: giving{life: time.Hour, form: "prefixes", endpoint: true}}
	v.store, v.keys = s3.StartKeyed(t, filepath.Dir(lake.Files))
	v.gate = startGate(t, v.store.Endpoint)
	to, err := url.Parse(lake.Address)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Header.Del("Accept-Encoding")
			body, err := io.ReadAll(r.In.Body)
			if err != nil {
				t.Error(err)
			}
			body = bytes.ReplaceAll(body, []byte("s3://"+bucket+"/"), []byte("file://"+lake.Files+"/"))
			r.Out.Body, r.Out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		},
		ModifyResponse: v.answer,
	}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v.mu.Lock()
		refuse, loads := v.how.refuse, v.how.loads
		v.mu.Unlock()
		table, alone := strings.CutSuffix(r.URL.EscapedPath(), "/credentials")
		if alone || loads && tablePath.MatchString(r.URL.EscapedPath()) && r.Method == http.MethodGet {
			if refuse != nil {
				if status := refuse(person(r)); status != 0 {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(status)
					fmt.Fprintf(w, `{"error": {"message": "no credentials now", "type": "ForbiddenException", "code": %d}}`, status)
					return
				}
			}
		}
		if alone {
			// Who may load the table may have its credentials.
			r.URL.Path, r.URL.RawPath = "", ""
			if r.URL, err = url.Parse(table); err != nil {
				t.Error(err)
			}
			r.Header.Set("X-Alone", "yes")
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(v.Close)
	return v
}

// person is the name in the token of a request, which the catalog has verified where it
// has answered.
func person(r *http.Request) string {
	parts := strings.Split(r.Header.Get("Authorization"), ".")
	if len(parts) != 3 {
		return ""
	}
	text, _ := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Name string `json:"preferred_username"`
	}
	_ = json.Unmarshal(text, &claims)
	return claims.Name
}

var tablePath = regexp.MustCompile(`/namespaces/[^/]+/tables(/[^/]+)?$`)

// answer changes an answer of the catalog.
func (v *vendor) answer(r *http.Response) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if r.StatusCode == http.StatusOK {
		for _, local := range []string{"file://" + lake.Files + "/", "file:" + lake.Files + "/"} {
			body = bytes.ReplaceAll(body, []byte(local), []byte("s3://"+bucket+"/"))
		}
		if body, err = v.changed(r.Request, body); err != nil {
			return err
		}
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}

func (v *vendor) changed(r *http.Request, body []byte) ([]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var is map[string]any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	switch {
	case strings.HasSuffix(r.URL.Path, "/v1/config"):
		if err := d.Decode(&is); err != nil {
			return nil, err
		}
		const call = "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials"
		list, _ := is["endpoints"].([]any)
		list = slices.DeleteFunc(list, func(x any) bool { return x == call })
		if v.how.endpoint {
			list = append(list, call)
		}
		is["endpoints"] = list
		return json.Marshal(is)
	case !tablePath.MatchString(r.URL.EscapedPath()) || r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/tables"):
		return body, nil
	}
	commit := r.Method == http.MethodPost && !strings.HasSuffix(r.URL.Path, "/tables")
	if err := d.Decode(&is); err != nil || commit && !v.how.commits {
		return body, err
	}
	meta, _ := is["metadata"].(map[string]any)
	location, _ := meta["location"].(string)
	folder := strings.TrimPrefix(location, "s3://")
	who, may := person(r), v.how.may
	if may == nil {
		may = usual
	}
	store := map[string]any{"s3.endpoint": v.gate.address, "s3.path-style-access": "true", "client.region": "us-east-1"}
	key := func(policy string) map[string]any {
		k := v.keys.Give(v.t, policy, v.how.life)
		v.given[k.ID] = lent{k, who, folder}
		out := map[string]any{"s3.access-key-id": k.ID, "s3.secret-access-key": k.Secret, "s3.session-token": k.Token}
		if !v.how.silent {
			out["s3.session-token-expires-at-ms"] = strconv.FormatInt(k.Expires.UnixMilli(), 10)
		}
		return out
	}
	put := func(into, from map[string]any) map[string]any {
		for k, x := range from {
			into[k] = x
		}
		return into
	}
	config, credentials := put(map[string]any{}, store), []any{}
	form := v.how.form
	switch form {
	case "signing":
		config["s3.remote-signing-enabled"] = "true"
	case "config":
		config = put(config, key(may(who, folder)))
	case "both":
		// What stands in the configuration is for clients that know no prefixes.
		config = put(config, key(s3.Policy(folder+"/nothing", "s3:GetObject")))
		fallthrough
	case "prefixes":
		credentials = append(credentials, map[string]any{"prefix": location, "config": key(may(who, folder))})
	case "nested":
		for _, part := range []string{"", "/data", "/metadata"} {
			policy := may(who, folder+part)
			if part == "" {
				policy = s3.Policy(folder+"/nothing", "s3:GetObject")
			}
			credentials = append(credentials, map[string]any{"prefix": location + part, "config": key(policy)})
		}
	}
	alone := r.Header.Get("X-Alone") != ""
	if alone {
		v.renewals++
		is = map[string]any{}
		if form == "config" { // the answer has nothing else
			credentials = append(credentials, map[string]any{"prefix": location, "config": key(may(who, folder))})
		}
	} else {
		own, _ := is["config"].(map[string]any)
		if own == nil {
			own = map[string]any{}
		}
		is["config"] = put(own, config)
	}
	if len(credentials) > 0 {
		is["storage-credentials"] = credentials
	}
	text, err := json.Marshal(is)
	v.answers = append(v.answers, string(text))
	return text, err
}

// gives changes how credentials are given.
func (v *vendor) gives(change func(*giving)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	change(&v.how)
}

func (v *vendor) renewed() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.renewals
}

// uses are the requests that the store got since a mark, each with to whom its key was
// given. A key that was not given to anybody is an error.
func (v *vendor) uses(since int) (out []used) {
	v.t.Helper()
	all := v.store.Uses(v.t)
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, u := range all[min(since, len(all)):] {
		to, ok := v.given[u.Key]
		if !ok && u.Status == "200" {
			v.t.Errorf("%s of %s with the key %q, which nobody has", u.Operation, u.Object, u.Key)
		}
		out = append(out, used{u, to})
	}
	return out
}

type used struct {
	s3.Use
	by lent
}

func (v *vendor) mark() int { return len(v.store.Uses(v.t)) }

// alone holds all requests since a mark to keys of one person, in the folders for which
// they were given.
func (v *vendor) alone(since int, who string, least int) {
	v.t.Helper()
	all := v.uses(since)
	if len(all) < least {
		v.t.Errorf("%d requests to the store, want %d at least: it did not look", len(all), least)
	}
	for _, u := range all {
		switch {
		case u.Key == "-" && u.Status == "403": // with a key that had ended
		case u.by.who != who:
			v.t.Errorf("a statement of %s: %s of %s with the key of %q", who, u.Operation, u.Object, u.by.who)
		case u.Operation != "s3_DeleteObjects" && !strings.HasPrefix(u.Object, "warehouse/-") && !strings.HasPrefix(u.Object, u.by.folder+"/"):
			v.t.Errorf("a statement of %s: %s of %s with a key for %s", who, u.Operation, u.Object, u.by.folder)
		}
	}
}

// gate is a proxy before the store that can hold one request back.
type gate struct {
	address string
	mu      sync.Mutex
	stop    func(*http.Request) bool
	stopped chan struct{}
	goOn    chan struct{}
}

func startGate(t *testing.T, store string) *gate {
	t.Helper()
	to, err := url.Parse(store)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		// The signature is for the address that was asked.
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = to.Scheme, to.Host, r.In.Host
	}, ErrorLog: log.New(io.Discard, "", 0)} // of requests that a failed statement gave up
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		var wait chan struct{}
		if g.stop != nil && g.stop(r) {
			wait, g.stop = g.goOn, nil
			close(g.stopped)
		}
		g.mu.Unlock()
		if wait != nil {
			<-wait
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	g.address = s.URL
	return g
}

// during runs a statement, and something else while its first request for which stop is
// true waits. It tells whether there was one.
func (g *gate) during(t *testing.T, stop func(*http.Request) bool, statement func() sqetest.Answer, what func()) sqetest.Answer {
	t.Helper()
	g.mu.Lock()
	g.stop, g.stopped, g.goOn = stop, make(chan struct{}), make(chan struct{})
	stopped, goOn := g.stopped, g.goOn
	g.mu.Unlock()
	answer := make(chan sqetest.Answer, 1)
	go func() { answer <- statement() }()
	select {
	case <-stopped:
		what()
		close(goOn)
	case a := <-answer:
		t.Errorf("the statement ended before the store was asked: %v %v", a.Rows, a.Err)
		g.mu.Lock()
		g.stop = nil
		g.mu.Unlock()
		return a
	case <-time.After(patience):
		t.Fatal("the store was not asked")
	}
	return <-answer
}

func dataFile(method string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.Method == method && strings.HasSuffix(r.URL.Path, ".parquet") }
}
