//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sqe/tests/lab"
	"sqe/tests/sqetest"
)

// rangerEvent is what these tests read of an event.
type rangerEvent struct {
	ID       string `json:"id"`
	User     string `json:"reqUser"`
	RepoType int    `json:"repoType"`
	Repo     string `json:"repo"`
	Access   string `json:"access"`
	Resource string `json:"resource"`
	ResType  string `json:"resType"`
	Result   int    `json:"result"`
	Policy   int    `json:"policy"`
	Version  int    `json:"policy_version"`
	Data     string `json:"reqData"`
}

// fakeSolr takes documents when it is up.
type fakeSolr struct {
	mu   sync.Mutex
	up   bool
	docs []map[string]any
	raw  bytes.Buffer
}

func (f *fakeSolr) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.up || r.URL.Path != "/solr/ranger_audits/update" {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	var docs []map[string]any
	if err := json.Unmarshal(body, &docs); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	f.docs = append(f.docs, docs...)
	f.raw.Write(body)
	fmt.Fprint(w, `{"responseHeader":{"status":0,"QTime":1}}`)
}

// TestRangerAudit: what Ranger's plugins would have written about real statements
// is in the file and, after an outage and after the server was killed, in the Solr;
// no literal is.
func TestRangerAudit(t *testing.T) {
	solr := &fakeSolr{}
	web := httptest.NewServer(solr)
	defer web.Close()
	dir := filepath.Join(t.TempDir(), "audit")
	s, err := startLab(dir, map[string]string{"masks": fmt.Sprintf(`
[[audit-outputs]]
name = "ranger"
kind = "file"
file = "ranger.jsonl"

[[audit-outputs]]
name = "solr"
kind = "solr"
url = "%s/solr/ranger_audits"
`, web.URL)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	pat := s.Conn(t, "pat", sqetest.Database("lab"))
	ask := func(text string) sqetest.Answer { return sqetest.Ask(context.Background(), pat, text) }
	if a := ask("SELECT id, ssn FROM people WHERE region <> 'LiteralOfTheUser'"); a.Err != nil || len(a.Rows) == 0 {
		t.Fatalf("%+v", a)
	}
	if a := ask("SELECT * FROM forbidden WHERE id = 'LiteralOfTheUser'"); a.Err == nil {
		t.Fatal("a table that nobody granted was read")
	}
	if a := ask("SELECT a FROM withheld"); a.Err == nil {
		t.Fatal("a withheld column was read")
	}
	file := filepath.Join(dir, "ranger.jsonl")
	var events []rangerEvent
	var text []byte
	soon(t, "the events are in the file", func() bool {
		events = nil
		text, _ = os.ReadFile(file)
		for line := range strings.Lines(string(text)) {
			var e rangerEvent
			if json.Unmarshal([]byte(line), &e) == nil {
				events = append(events, e)
			}
		}
		return slices.ContainsFunc(events, func(e rangerEvent) bool { return e.Resource == "lab/withheld/a" })
	})
	for _, want := range []rangerEvent{
		{RepoType: 205, Repo: "polaris", Access: "SELECT", Resource: "POLARIS/" + lab.Catalog + "/lab/people", ResType: "table", Result: 1},
		{RepoType: 3, Repo: "hive", Access: "ROW_FILTER", Resource: "lab/people", ResType: "@table", Result: 1},
		{RepoType: 3, Repo: "hive", Access: "MASK_SHOW_LAST_4", Resource: "lab/people/ssn", ResType: "@column", Result: 1},
		{RepoType: 205, Repo: "polaris", Access: "SELECT", Resource: "POLARIS/" + lab.Catalog + "/lab/forbidden", ResType: "table", Result: 0},
		{RepoType: 3, Repo: "hive", Access: "SELECT", Resource: "lab/withheld/a", ResType: "@column", Result: 0},
	} {
		if !slices.ContainsFunc(events, func(e rangerEvent) bool {
			ok := e.User == "pat" && (e.Policy > 0 && e.Version > 0 || e.Result == 0)
			e.ID, e.User, e.Policy, e.Version, e.Data = "", "", 0, 0, ""
			return ok && e == want
		}) {
			t.Errorf("no event is like %+v:\n%s", want, text)
		}
	}
	if bytes.Contains(text, []byte("LiteralOfTheUser")) || !bytes.Contains(text, []byte("reqData")) {
		t.Errorf("literals, or no statements:\n%s", text)
	}
	// The Solr was down all the time, and the server dies without notice.
	spooled := filepath.Join(dir, "audit-spool", "solr", "*.jsonl")
	soon(t, "the events are in the spool", func() bool {
		names, _ := filepath.Glob(spooled)
		n := 0
		for _, name := range names {
			part, _ := os.ReadFile(name)
			n += bytes.Count(part, []byte{'\n'})
		}
		return n >= len(events)
	})
	if err := s.Crash(); err != nil {
		t.Fatal(err)
	}
	solr.mu.Lock()
	solr.up = true
	solr.mu.Unlock()
	again, err := sqetest.Serve(filepath.Join(dir, "sqe.toml"), s.Port)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Stop() }()
	soon(t, "the events of the killed server arrived", func() bool {
		solr.mu.Lock()
		defer solr.mu.Unlock()
		return len(solr.docs) >= len(events)
	})
	solr.mu.Lock()
	defer solr.mu.Unlock()
	for i, e := range events {
		if d := solr.docs[i]; d["id"] != e.ID || d["resource"] != e.Resource || d["policyVersion"] == nil && e.Version > 0 || !strings.HasSuffix(fmt.Sprint(d["evtTime"]), "Z") {
			t.Errorf("document %d is %v, the event %+v", i, d, e)
		}
	}
	if bytes.Contains(solr.raw.Bytes(), []byte("LiteralOfTheUser")) {
		t.Error("a literal was sent")
	}
}

func soon(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}
