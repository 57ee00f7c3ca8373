package rest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestProbe: a catalog that wants a token is one, anything else is not; no token is
// sent, whatever the client has.
func TestProbe(t *testing.T) {
	status, body := 0, ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("a token was sent")
		}
		if r.URL.Path != "/api/v1/config" || r.URL.Query().Get("warehouse") != "lake" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	defer s.Close()
	client, err := NewHTTP(HTTPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	probe := func(uri string) error {
		t.Helper()
		c, err := New(Options{URI: uri, Warehouse: "lake", HTTP: client, Tokens: User("lake")})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.Probe(context.Background())
	}
	for _, x := range []struct {
		status     int
		body, want string
	}{
		{200, `{"defaults": {}, "overrides": {}}`, ""},
		{401, "", ""},
		{401, `{"error": {"type": "NotAuthorizedException", "message": "no", "code": 401}}`, ""},
		{403, "", ""},
		{404, `{"error": {"type": "NotFoundException", "message": "no", "code": 404}}`, "does not know the warehouse, or is at another address"},
		{404, "<html>", "answer 404"},
		{200, "<html>", "not one of an Iceberg REST catalog"},
		{500, "", "answer 500"},
	} {
		status, body = x.status, x.body
		if err := probe(s.URL + "/api"); x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%d %q: %v, want %q", x.status, x.body, err, x.want)
		}
	}
	status, body = 200, "{}"
	if err := probe(s.URL + "/other"); err == nil {
		t.Error("another path is taken for a catalog")
	}
	s.Close()
	if err := probe(s.URL + "/api"); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Error("nothing listens:", err)
	}
}
