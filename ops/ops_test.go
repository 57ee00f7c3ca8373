package ops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sqe/fault"
	"sqe/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serve(t *testing.T, m *Metrics, checks ...Check) func(path string) (int, string) {
	t.Helper()
	s, err := Listen("127.0.0.1:0", m, checks)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve() }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	t.Cleanup(func() {
		if err := errors.Join(s.Shutdown(context.Background()), <-done); err != nil {
			t.Error(err)
		}
	})
	return func(path string) (int, string) {
		t.Helper()
		r, err := client.Get("http://" + s.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(text)
	}
}

func TestMetrics(t *testing.T) {
	status := []policy.Status{{
		Source: "folder", Loaded: true, Fresh: true, Age: 2 * time.Second, MaxAge: time.Minute, LastSuccess: time.Unix(1_700_000_000, 0),
		LastError: "broken", Versions: map[string]int64{"policies/hive": 7}, Policies: 12, Lost: 3, Restored: 2, Problems: []string{"p"},
	}, {Source: "ranger"}}
	m := NewMetrics(Sources{Policies: func() []policy.Status { return status }, Running: func() int { return 3 }, Queued: func() int { return 1 }, Version: "v1", ObjectCache: func() ObjectCache { return ObjectCache{11, 12, 13, 14, 15} }})
	m.Statement("query", "ok", 0.2, 10)
	m.Statement("query", "denied", 0.2, 0)
	m.Statement("query", "something new", 0.2, -1)
	m.Foreign("function week(x, 'secret') with 42")
	m.Connections(5)
	m.Disagreement("lake", "load table")
	m.Login("auth")
	get := serve(t, m)
	code, text := get("/metrics")
	if code != 200 {
		t.Fatal(code)
	}
	for _, want := range []string{
		`sqe_statements_total{kind="query",outcome="ok"} 1`, `sqe_statements_total{kind="query",outcome="denied"} 1`,
		`sqe_statements_total{kind="query",outcome="other"} 1`, `sqe_statement_duration_seconds_count{kind="query"} 3`,
		`sqe_rows_returned_total 10`, `sqe_row_executor_statements_total{reason="function week(x, ?) with ##"} 1`,
		`sqe_connections 5`, `sqe_gate_disagreements_total{catalog="lake",operation="load table"} 1`, `sqe_logins_total{outcome="auth"} 1`, `sqe_statements_running 3`, `sqe_statements_queued 1`,
		`sqe_policy_age_seconds{source="folder"} 2`, `sqe_policy_fresh{source="folder"} 1`, `sqe_policy_fresh{source="ranger"} 0`,
		`sqe_policy_last_poll_failed{source="folder"} 1`, `sqe_policy_version{document="policies/hive",source="folder"} 7`,
		`sqe_policies{source="folder"} 12`, `sqe_policy_problems{source="folder"} 1`, `sqe_policy_lost_changes_total{source="folder"} 3`,
		`sqe_policy_restored_changes_total{source="folder"} 2`, `sqe_build_info{version="v1"} 1`,
		"sqe_object_cache_hits_total 11", "sqe_object_cache_misses_total 12", "sqe_object_cache_hit_bytes_total 13",
		"sqe_object_cache_miss_bytes_total 14", "sqe_object_cache_bytes 15",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("missing: %s", want)
		}
	}
	for _, never := range []string{"secret", "42", `sqe_policy_age_seconds{source="ranger"}`} {
		for _, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(line, "sqe_") && strings.Contains(line, never) {
				t.Errorf("%q is shown: %s", never, line)
			}
		}
	}
}

// TestBounded: whatever the reasons are, the number of series is bounded.
func TestBounded(t *testing.T) {
	m := NewMetrics(Sources{})
	for i := range 10_000 {
		word := fmt.Sprintf("%c%c%c%c", 'a'+i%26, 'a'+i/26%26, 'a'+i/676%26, 'a'+i/17576%26)
		m.Foreign(word)
		m.Statement(word, word, 1, 1)
	}
	_, text := serve(t, m)("/metrics")
	if n := strings.Count(text, "sqe_row_executor_statements_total{"); n != maxReasons+1 {
		t.Errorf("%d reasons", n)
	}
	if n := strings.Count(text, "sqe_statements_total{"); n != maxKinds+1 {
		t.Errorf("%d kinds", n)
	}
}

func TestHealth(t *testing.T) {
	var problem error
	status := []policy.Status{{Source: "folder", Loaded: true, Fresh: true}}
	get := serve(t, NewMetrics(Sources{}), PoliciesFresh(func() []policy.Status { return status }), Check{"catalog", func() error { return problem }})
	expect := func(wantCode int, want string) {
		t.Helper()
		if code, text := get("/readyz"); code != wantCode || strings.TrimSpace(text) != want {
			t.Errorf("%d %s, want %d %s", code, text, wantCode, want)
		}
		if code, text := get("/healthz"); code != 200 || text != "ok\n" {
			t.Errorf("healthz: %d %s", code, text)
		}
	}
	expect(200, `{"ready":true}`)
	status[0].Fresh, status[0].MaxAge = false, time.Minute
	expect(503, `{"ready":false,"problems":{"policies":"the policies of source \"folder\" are older than 1m0s"}}`)
	status[0].Fresh = true
	problem = fault.New(fault.Unavailable, "the catalog does not answer")
	expect(503, `{"ready":false,"problems":{"catalog":"the catalog does not answer"}}`)
	problem = errors.New("dial secret-host: refused")
	expect(503, `{"ready":false,"problems":{"catalog":"not ready; the log of the server has the reason"}}`)
	if code, _ := get("/debug/pprof/"); code != 404 {
		t.Error("a page that nobody asked for:", code)
	}
}

func TestPortInUse(t *testing.T) {
	s, err := Listen("127.0.0.1:0", NewMetrics(Sources{}), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Shutdown(context.Background()) }()
	if _, err := Listen(s.Addr().String(), NewMetrics(Sources{}), nil); !fault.Is(err, fault.Config) || !strings.Contains(err.Error(), "ops.address") {
		t.Error(err)
	}
}

func TestLogger(t *testing.T) {
	var b strings.Builder
	l, err := NewLogger(&b, "warn", "json")
	if err != nil {
		t.Fatal(err)
	}
	l.Info("no")
	l.Warn("yes", "k", "line\nbreak")
	if got := b.String(); strings.Contains(got, `"no"`) || !strings.Contains(got, `"k":"line\nbreak"`) || strings.Count(got, "\n") != 1 {
		t.Error(got)
	}
	for _, bad := range [][2]string{{"loud", "text"}, {"info", "xml"}} {
		if _, err := NewLogger(&b, bad[0], bad[1]); !fault.Is(err, fault.Config) {
			t.Error(bad, err)
		}
	}
}
