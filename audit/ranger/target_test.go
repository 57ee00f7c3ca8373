package ranger

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func eventLine(t *testing.T, user string) []byte {
	t.Helper()
	text, err := lines(new(bytes.Buffer), testConverter("hive").events(one(user)))
	if err != nil {
		t.Fatal(err)
	}
	return text[:len(text)-1]
}

// TestSolr: documents go to the update handler of the collection, over TLS with
// the configured certificate, with the login; an error inside an answer with
// status 200 counts.
func TestSolr(t *testing.T) {
	var status atomic.Int32
	solr := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if r.Method != http.MethodPost || r.URL.Path != "/solr/ranger_audits/update" || r.URL.Query().Get("commitWithin") == "" || user != "u" || password != "p" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		body, _ := io.ReadAll(r.Body)
		var docs []map[string]any
		if json.Unmarshal(body, &docs) != nil || len(docs) != 2 || docs[0]["id"] == nil || docs[1]["reqUser"] != "b" || !strings.HasSuffix(docs[0]["evtTime"].(string), "Z") {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"responseHeader": map[string]any{"status": status.Load()}})
	}))
	defer solr.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: solr.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	batch := [][]byte{eventLine(t, "a"), eventLine(t, "b")}
	send := func(r Remote) error {
		t.Helper()
		target, err := newSolr(r)
		if err != nil {
			t.Fatal(err)
		}
		defer target.close()
		return target.send(context.Background(), batch)
	}
	good := Remote{URL: solr.URL + "/solr/ranger_audits", Username: "u", Password: "p", CAFile: ca, Timeout: 5 * time.Second}
	if err := send(good); err != nil {
		t.Error(err)
	}
	slash := good
	slash.URL += "/"
	if err := send(slash); err != nil {
		t.Error(err)
	}
	status.Store(500)
	if err := send(good); err == nil {
		t.Error("an error of the Solr was taken for success")
	}
	status.Store(0)
	strange := good
	strange.CAFile = ""
	if err := send(strange); err == nil {
		t.Error("an unknown certificate was trusted")
	}
	wrong := good
	wrong.Password = "wrong-password"
	if err := send(wrong); err == nil || strings.Contains(err.Error(), "wrong-password") {
		t.Errorf("%v", err)
	}
}

// TestSolrSchema: a document has no field that the collection does not know: a Solr
// would reject it. The names are those of the schema that Ranger ships
// (solr_for_audit_setup, managed-schema).
func TestSolrSchema(t *testing.T) {
	known := strings.Fields(`access action agent agentHost cliIP cliType cluster reqContext enforcer event_count event_dur_ms evtTime id
		logType policy proxyUsers reason repo repoType req_caller_id req_self_id reqData reqUser resType resource result seq_num sess
		tags tags_str text zoneName policyVersion datasets projects datasetIds`)
	kind := reflect.TypeFor[solrDoc]()
	for i := range kind.NumField() {
		name, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
		if !slices.Contains(known, name) {
			t.Errorf("the collection has no field %q", name)
		}
	}
}

// TestNoRedirect: the login does not follow to another server.
func TestNoRedirect(t *testing.T) {
	var reached atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer other.Close()
	first := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer first.Close()
	target, err := newHTTP(Remote{URL: first.URL, Username: "u", Password: "p", Timeout: 5 * time.Second}, Array)
	if err != nil {
		t.Fatal(err)
	}
	defer target.close()
	if err := target.send(context.Background(), [][]byte{eventLine(t, "a")}); err == nil || reached.Load() {
		t.Errorf("%v, reached %v", err, reached.Load())
	}
}

// TestLines: the other format is one object a line.
func TestLines(t *testing.T) {
	var body, contentType string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		body, contentType = string(text), r.Header.Get("Content-Type")
	}))
	target, err := newHTTP(Remote{URL: server.URL, Timeout: 5 * time.Second}, Lines)
	if err != nil {
		t.Fatal(err)
	}
	a, b := eventLine(t, "a"), eventLine(t, "b")
	if err := target.send(context.Background(), [][]byte{a, b}); err != nil {
		t.Error(err)
	}
	target.close()
	server.Close()
	if body != string(a)+"\n"+string(b)+"\n" || contentType != "application/x-ndjson" {
		t.Errorf("%s %q", contentType, body)
	}
}

// TestRetryAfter: a receiver says when it wants to be asked again, and what it
// answers to a bad batch is told without the events.
func TestRetryAfter(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/bad" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"msg":"unknown field 'x'","code":400}}`)
			return
		}
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	send := func(path string) error {
		target, err := newHTTP(Remote{URL: server.URL + path, Timeout: 5 * time.Second}, Array)
		if err != nil {
			t.Fatal(err)
		}
		defer target.close()
		return target.send(context.Background(), [][]byte{eventLine(t, "a")})
	}
	if l, ok := send("/busy").(*later); !ok || l.after != 7*time.Second {
		t.Errorf("%+v", l)
	}
	if r, ok := send("/bad").(*rejected); !ok || r.why != "the receiver answered 400 Bad Request: unknown field 'x'" {
		t.Errorf("%+v", r)
	}
}
