package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sqe/config"
	"sqe/policystore"
	"sqe/rangerclient/model"
)

const restPassword = "Admin-passw0rd"

// demoConfiguration prepares the demo with a store that is served over REST.
func demoConfiguration(t *testing.T, dir string) *config.Config {
	t.Helper()
	path, err := prepareDemo(t.Context(), dir, 3307, 3308)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Server.Port, cfg.Ops.Address = 0, ""
	cfg.Store.Listen, cfg.Store.PlainHTTP = "127.0.0.1:0", true
	return cfg
}

// request sends a document to the REST interface of the store.
func request(t *testing.T, in *instance, method, path string, body any) []byte {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	q, err := http.NewRequestWithContext(t.Context(), method, "http://"+in.storeFace.Addr().String()+"/service/public/v2/api/"+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	q.SetBasicAuth("admin", restPassword)
	q.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	out, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %d %s %v", method, path, a.StatusCode, out, err)
	}
	return out
}

// A change over REST is in force when it is answered: the statement after it never
// sees the policies of before.
func TestChangesOverRESTActAtOnce(t *testing.T) {
	cfg := demoConfiguration(t, t.TempDir())
	in, err := start(cfg, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := in.store.SetPassword(t.Context(), "admin", restPassword); err != nil {
		t.Fatal(err)
	}
	all, err := in.store.Policies(t.Context(), "hive")
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(all, func(p *model.Policy) bool {
		return p.PolicyType == model.RowFilterPolicy && slices.Contains(p.Resources["table"].Values, "customers")
	})
	if at < 0 {
		t.Fatal("the demo has no row filter on customers")
	}
	var policy map[string]any
	if err := json.Unmarshal(request(t, in, http.MethodGet, fmt.Sprintf("policy/%d", all[at].ID), nil), &policy); err != nil {
		t.Fatal(err)
	}
	items, _ := policy["rowFilterPolicyItems"].([]any)
	_, port, _ := net.SplitHostPort(in.server.Addr().String())
	var n int
	if _, err := fmt.Sscan(port, &n); err != nil {
		t.Fatal(err)
	}
	db, err := connect("127.0.0.1", n, "carol", always("demo"), "", false)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows := func() (rows int) {
		t.Helper()
		if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM bank.customers").Scan(&rows); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	if rows() < 10 {
		t.Fatal("carol sees too few rows for this test")
	}
	stale := 0
	for round := range 200 {
		want := 1 + round%5
		policy["rowFilterPolicyItems"] = append([]any{map[string]any{
			"users": []string{"carol"}, "accesses": []any{map[string]any{"type": "select", "isAllowed": true}},
			"rowFilterInfo": map[string]any{"filterExpr": fmt.Sprintf("cust_id <= %d", want)},
		}}, items...)
		request(t, in, http.MethodPut, fmt.Sprintf("policy/%d", all[at].ID), policy)
		if rows() != want {
			stale++
		}
	}
	if stale > 0 {
		t.Errorf("%d of 200 statements saw the policies of before", stale)
	}
}

// A store whose file is lost, empty or another one stops the server before it serves;
// the file of before, also as a copy, starts it, and so does saying that it is meant.
func TestLostStore(t *testing.T) {
	dir := t.TempDir()
	cfg := demoConfiguration(t, dir)
	file := string(cfg.Store.Path)
	begins := func() error {
		in := &instance{config: cfg}
		defer in.Close()
		return in.openStore(context.Background())
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(begins())
	must(begins())
	marker, err := markerOf(cfg)
	must(err)
	refused := func(what string) {
		t.Helper()
		err := begins()
		if err == nil {
			t.Fatalf("%s: the server starts", what)
		}
		for _, says := range []string{marker.file, "put "} {
			if !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v, without %q", what, err, says)
			}
		}
	}
	before, err := os.ReadFile(file)
	must(err)
	must(os.Rename(file, file+".kept"))
	refused("the file is gone")
	if _, err := os.Stat(file); err == nil {
		t.Error("a refused start makes a file")
	}
	must(os.WriteFile(file, nil, 0o600))
	refused("the file is empty")
	must(os.Remove(file))
	other, err := policystore.Open(t.Context(), file, policystore.Options{})
	must(err)
	must(other.Close())
	refused("the file is another one")
	must(os.WriteFile(file, before, 0o600))
	must(begins())

	must(os.Remove(file))
	must(os.Remove(marker.file))
	must(begins()) // a new store, meant
	must(begins())
	if info, err := os.Stat(marker.file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the marker is %v %v", info, err)
	}
	must(os.WriteFile(marker.file, nil, 0o600))
	if err := begins(); err == nil || !strings.Contains(err.Error(), "remove") {
		t.Errorf("with an empty marker: %v", err)
	}
	must(os.Remove(marker.file))
	must(os.Mkdir(marker.file, 0o700))
	if err := begins(); err == nil {
		t.Error("it starts with a marker that cannot be read")
	}
	if left, _ := filepath.Glob(filepath.Join(string(cfg.Server.StateDirectory), "policystore-*-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// A data service that a store of before does not have, because it is misspelt or was
// deleted, is not made: an empty one would protect nothing.
func TestMisspeltService(t *testing.T) {
	for name, decided := range map[string]bool{"hive": true, "hvie": false} {
		cfg := demoConfiguration(t, t.TempDir())
		cfg.Policies[0].DataService = name
		in := &instance{config: cfg, log: slog.New(slog.DiscardHandler)}
		defer in.Close()
		if err := in.openStore(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := in.store.Service(t.Context(), name); (err == nil) != decided {
			t.Errorf("service %s: %v", name, err)
		}
		sources, err := in.openSources()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sources[0].State(); (err == nil) != decided {
			t.Errorf("source of %s: %v", name, err)
		}
	}
}
