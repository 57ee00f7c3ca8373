package grants

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"sqe/catalog"
	"sqe/catalog/rest"
)

// wide is a REST catalog of many namespaces, s0 to s299, each with others inside it and
// with the tables "t" and "other" and the view "v". S7 differs from s7 by its case alone.
type wide struct {
	mu       sync.Mutex
	requests []string
}

func (h *wide) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	say := func(x any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(x)
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
	if parts[0] == "config" {
		say(map[string]any{"endpoints": []string{"GET /v1/{prefix}/namespaces/{namespace}/views/{view}"}})
		return
	}
	what := strings.Join(parts, "/")
	parent := r.URL.Query().Get("parent")
	if parent != "" {
		what += " in " + strings.ReplaceAll(parent, "\x1f", ".")
	}
	h.mu.Lock()
	h.requests = append(h.requests, strings.ReplaceAll(what, "\x1f", "."))
	h.mu.Unlock()
	switch {
	case len(parts) == 1 && parent == "":
		all := [][]string{{"S7"}}
		for i := range 300 {
			all = append(all, []string{fmt.Sprint("s", i)})
		}
		say(map[string]any{"namespaces": all})
	case len(parts) == 1 && !strings.Contains(parent, "\x1f"):
		say(map[string]any{"namespaces": [][]string{{parent, "eu"}, {parent, "us"}}})
	case len(parts) == 1:
		say(map[string]any{"namespaces": [][]string{}})
	case len(parts) == 3:
		all := []any{}
		for _, n := range map[string][]string{"tables": {"t", "other"}, "views": {"v"}}[parts[2]] {
			all = append(all, map[string]any{"namespace": strings.Split(parts[1], "\x1f"), "name": n})
		}
		say(map[string]any{"identifiers": all})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// asked are the requests since the last call, but for the configuration.
func (h *wide) asked() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.requests
	h.requests = nil
	slices.Sort(out)
	return out
}

type noToken struct{}

func (noToken) Token(context.Context) (rest.Token, error) { return rest.Token{}, nil }
func (noToken) Refused(rest.Token) bool                   { return false }

// TestRequests: to grant on something the catalog is asked for what lies beside it, once
// for each list, and for nothing of the hundreds of other namespaces.
func TestRequests(t *testing.T) {
	h := &wide{}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	client, err := rest.New(rest.Options{URI: server.URL, Tokens: noToken{}, HTTP: server.Client(), AllowHTTP: true})
	if err != nil {
		t.Fatal(err)
	}
	// Nothing is kept from one question to the next.
	remote, err := catalog.OpenREST("hub", client, catalog.RESTOptions{Bound: -1, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = remote.Close() })
	l := openWith(t, "store", settings{catalogs: []catalog.Catalog{remote}})
	h.asked()
	table := func(ns string) []string {
		return []string{"namespaces/" + ns + "/tables", "namespaces/" + ns + "/views"}
	}
	for _, x := range []struct {
		text string
		asks []string
		says string // a part of the warning, or of the error
	}{
		{"GRANT SELECT ON hub.s1.t TO USER ben", append(table("s1"), "namespaces"), ""},
		{"GRANT SELECT, DROP ON hub.s1.t, hub.s1.other, VIEW hub.s1.v TO USER ben, cat", append(table("s1"), "namespaces"), ""},
		{"GRANT SELECT ON hub.s1.t, hub.s2.t TO USER ben", slices.Concat(table("s1"), table("s2"), []string{"namespaces"}), ""},
		{"GRANT SELECT ON hub.s1.eu.t TO USER ben", append(table("s1.eu"), "namespaces", "namespaces in s1"), ""},
		{"GRANT USE ON SCHEMA hub.s1 TO USER ben", []string{"namespaces"}, ""},
		{"GRANT SELECT ON ALL TABLES IN SCHEMA hub.s1.eu TO USER ben", []string{"namespaces", "namespaces in s1"}, "directly in hub.s1.eu"},
		{"GRANT MANAGE ON CATALOG hub TO USER ben", nil, "for the catalog itself"},
		{"GRANT SELECT ON hub.s7.t TO USER ben", slices.Concat(table("S7"), table("s7"), []string{"namespaces"}), "it is also for hub.S7.t"},
		{"GRANT SELECT ON hub.s1.EU.t TO USER ben", slices.Concat(table("s1.EU"), table("s1.eu"), []string{"namespaces", "namespaces in s1"}), ""},
		{"GRANT SELECT ON hub.s1.T TO USER ben", append(table("s1"), "namespaces"), "there is no 'hub.s1.T' but 'hub.s1.t'"},
		{"GRANT USE ON SCHEMA hub.s1.EU TO USER ben", []string{"namespaces", "namespaces in s1"}, "there is no 'hub.s1.EU' but 'hub.s1.eu'"},
		{"GRANT USE ON SCHEMA hub.S7 TO USER ben", []string{"namespaces"}, "it is also for hub.s7"},
		{"REVOKE SELECT ON hub.s1.t FROM USER ben", table("s1"), ""},
	} {
		_, said, err := l.ask("root", x.text)
		if err != nil {
			said = err.Error()
		}
		if x.says == "" && err != nil || !strings.Contains(said, x.says) {
			t.Errorf("%s: it says %q", x.text, said)
		}
		if got, want := h.asked(), slices.Sorted(slices.Values(x.asks)); !slices.Equal(got, want) {
			t.Errorf("%s: it asks\n%q, want\n%q", x.text, got, want)
		}
	}
}
