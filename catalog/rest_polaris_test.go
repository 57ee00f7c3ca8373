package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sqe/catalog/rest"
	"sqe/fault"
	"sqe/identity"
	"sqe/plan"
)

// recorded is a call to a live Polaris and what it answered.
type recorded struct {
	Name, User, Method, Path string
	Status                   int
	Error                    json.RawMessage
}

// bodies says which file holds the body of calls that were recorded for several
// users, by the part of the name before the user's.
var bodies = map[string]string{
	"authz-namespaces": "namespaces", "authz-tables": "tables", "authz-orders": "table", "authz-vended": "table-vended",
	"authz-salaries": "table-create-salaries", "authz-hr": "table-create-hr", "authz-nested": "table-create-nested", "authz-commit": "commit",
}

// polaris answers as the recorded server did; the token is the name of the user.
func polaris(t *testing.T) *httptest.Server {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "polaris", "index.json"))
	must(t, err)
	var all []recorded
	must(t, json.Unmarshal(text, &all))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok || user == "stranger" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/config") || r.URL.Query().Get("parent") != "" {
			user = "root" // was recorded for root alone, and is open to all
		}
		vended := r.Header.Get("X-Iceberg-Access-Delegation") != ""
		for _, c := range all {
			if c.User != user || c.Method != r.Method || c.Path != r.URL.RequestURI() || strings.HasPrefix(c.Name, "authz-orders-") == vended && strings.HasSuffix(c.Path, "/sales/tables/orders") && c.Method == "GET" {
				continue
			}
			w.WriteHeader(c.Status)
			if c.Status >= 400 {
				_, _ = fmt.Fprintf(w, `{"error": %s}`, c.Error)
				return
			}
			file := c.Name
			if b, ok := bodies[strings.TrimSuffix(c.Name, "-"+c.User)]; ok {
				file = b
			}
			body, err := os.ReadFile(filepath.Join("testdata", "polaris", file+".json"))
			if err != nil {
				t.Errorf("%s has no body", c.Name)
			}
			_, _ = w.Write(body)
			return
		}
		if r.URL.Query().Get("parent") != "" {
			_, _ = w.Write([]byte(`{"namespaces": [], "next-page-token": null}`))
			return
		}
		if strings.HasSuffix(r.URL.Path, "/views") {
			_, _ = w.Write([]byte(`{"identifiers": [], "next-page-token": null}`))
			return
		}
		t.Errorf("%s %s of %s was not recorded", r.Method, r.URL.RequestURI(), user)
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(s.Close)
	return s
}

// token is a credential that never ends.
type token string

func (k token) Token(context.Context) (string, error) { return string(k), nil }

// as is a context of a user with a token.
func as(user string) context.Context {
	return identity.WithCredential(identity.WithPrincipal(context.Background(), identity.Principal{Name: user}), token(user))
}

// remote opens a REST catalog for a test.
func remote(t testing.TB, uri string, o rest.Options, ro RESTOptions) *REST {
	t.Helper()
	h, err := rest.NewHTTP(rest.HTTPOptions{Timeout: 5 * time.Second})
	must(t, err)
	o.URI, o.HTTP = uri, h
	if o.Tokens == nil {
		o.Tokens = rest.User("lake")
	}
	client, err := rest.New(o)
	must(t, err)
	if ro.Log == nil {
		ro.Log = slog.New(slog.DiscardHandler)
	}
	c, err := OpenREST("lake", client, ro)
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

func TestPolaris(t *testing.T) {
	s := polaris(t)
	c := remote(t, s.URL+"/api/catalog", rest.Options{Warehouse: "lake", Delegation: "vended-credentials"}, RESTOptions{Local: "/warehouse"})
	yes, no := fault.Kind(0), fault.NotFound
	orders, salaries, people := name("sales", "orders"), name("sales", "salaries"), name("hr", "people")
	deep := plan.TableName{Catalog: "lake", Namespace: []string{"sales", "eu"}, Name: "orders"}
	for user, want := range map[string][4]fault.Kind{
		"alice": {yes, yes, no, yes}, "bob": {yes, no, no, yes}, "carol": {yes, yes, yes, yes},
		"anna_analyst": {no, yes, no, yes}, "ext_auditor": {no, no, no, no},
	} {
		for i, n := range []plan.TableName{orders, salaries, people, deep} {
			got, err := c.Table(as(user), n, plan.AsOf{}, "")
			if want[i] == yes && err == nil && len(got.Fields) > 0 && !strings.HasPrefix(got.Version, "file:/warehouse") {
				t.Errorf("%s: %s lies at %s", user, n, got.Version)
			}
			if fault.KindOf(err) != want[i] {
				t.Errorf("%s: %s: %v, want %v", user, n, err, want[i])
			}
			if err != nil && err.Error() != missing(n).Error() {
				t.Errorf("%s can tell a hidden table from a missing one: %v", user, err)
			}
		}
	}
	for _, user := range []string{"alice", "bob"} {
		_, err := c.Table(as(user), name("sales", "nope"), plan.AsOf{}, "")
		wants(t, "missing", err, fault.NotFound, "Table 'lake.sales.nope' doesn't exist")
	}
	// Whoever may see the metadata alone may not read the data; a catalog that is asked
	// for the metadata alone shows the table.
	bare := remote(t, s.URL+"/api/catalog/v1/", rest.Options{Warehouse: "lake"}, RESTOptions{Local: "/warehouse"})
	if _, err := bare.Table(as("anna_analyst"), orders, plan.AsOf{}, ""); err != nil {
		t.Error(err)
	}
	got, err := c.Namespaces(as("alice"))
	if err != nil || !slices.EqualFunc(got, [][]string{{"hr"}, {"sales"}, {"sales", "eu"}}, slices.Equal) {
		t.Errorf("%q %v", got, err)
	}
	if got, err := c.Tables(as("bob"), []string{"sales"}); err != nil || !slices.Equal(got, []string{"orders", "salaries"}) {
		t.Errorf("%q %v", got, err)
	}
	if got, err := c.Tables(as("ext_auditor"), []string{"sales"}); err != nil || len(got) != 0 {
		t.Errorf("%q %v", got, err)
	}
	// Changes.
	set := func(*plan.Table, map[string]string) (map[string]string, []string, error) {
		return map[string]string{"a": "b"}, nil, nil
	}
	if _, err := c.UpdateProperties(as("alice"), orders, set); err != nil {
		t.Error(err)
	}
	_, err = c.UpdateProperties(as("bob"), orders, set)
	wants(t, "bob may read", err, fault.Denied, "does not permit you to do this with 'lake.sales.orders'")
	_, err = c.UpdateProperties(as("ext_auditor"), orders, set)
	wants(t, "ext_auditor may not know", err, fault.NotFound, "doesn't exist")
	_, err = c.DropTable(as("bob"), orders, false)
	wants(t, "bob may not drop", err, fault.Denied, "does not permit")
	// No token, and one that Polaris does not know: an empty 401.
	_, err = c.Table(ctx, orders, plan.AsOf{}, "")
	wants(t, "no token", err, fault.Auth, "this session has none")
	_, err = c.Table(as("stranger"), orders, plan.AsOf{}, "")
	wants(t, "unknown token", err, fault.Auth, "refuses the token of this session")
}
