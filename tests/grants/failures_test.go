package grants

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sqe/fault"
)

// kinds of failures of a policy server, for a request that writes.
var kinds = map[string]func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc){
	"forbidden": func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte("<html>login</html>"))
	},
	"ok and nothing, not done": func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) { w.WriteHeader(http.StatusOK) },
	"ok and nothing, but done": func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		serve(httptest.NewRecorder(), r)
		w.WriteHeader(http.StatusOK)
	},
	"cut off, not done": func(http.ResponseWriter, *http.Request, http.HandlerFunc) { panic(http.ErrAbortHandler) },
	"cut off, but done": func(_ http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		serve(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	},
	"error": func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) {
		w.WriteHeader(http.StatusInternalServerError)
	},
}

// TestFailures: whichever write of a grant on three levels fails, in whatever way, the
// statement is done as a whole, or everything is exactly as before, and what it says
// is so.
func TestFailures(t *testing.T) {
	l := openOver(t, "rest")
	l.root("GRANT SELECT ON customers TO ROLE teller")
	l.root("GRANT USE ON SCHEMA bank TO ben")
	for _, c := range []struct{ prepare, statement, back string }{
		{"", "GRANT SELECT ON TABLE payments TO dan", "REVOKE SELECT ON payments FROM dan"},
		{"", "GRANT SELECT, DROP ON TABLE sales.eu.t, payments TO ben, ROLE senior, GROUP eu", "REVOKE SELECT, DROP ON TABLE sales.eu.t, payments FROM ben, ROLE senior, GROUP eu"},
		{"GRANT SELECT ON TABLE payments TO dan", "REVOKE SELECT ON TABLE payments FROM dan", ""},
		{"", "DENY SELECT ON TABLE customers TO GROUP eu", "REVOKE SELECT ON TABLE customers FROM GROUP eu"},
	} {
		writes := func(f func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc, n int) bool) func() {
			n := 0
			l.broken = func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) bool {
				if r.Method != http.MethodGet {
					n++
				}
				return f(w, r, serve, n)
			}
			return func() { l.broken = nil }
		}
		run := func(text string) {
			if text != "" {
				l.root(text)
			}
		}
		run(c.prepare)
		before := l.policies()
		total := 0
		stop := writes(func(_ http.ResponseWriter, _ *http.Request, _ http.HandlerFunc, n int) bool { total = n; return false })
		l.root(c.statement)
		stop()
		after := l.policies()
		run(c.back)
		run(c.prepare)
		if strip(l.policies()) != strip(before) {
			t.Fatalf("%s and back leaves\n%s\nbefore:\n%s", c.statement, l.policies(), before)
		}
		for kind, fails := range kinds {
			for at := 1; at <= total; at++ {
				before := l.policies()
				stop := writes(func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc, n int) bool {
					if r.Method == http.MethodGet || n != at {
						return false
					}
					fails(w, r, serve)
					return true
				})
				_, _, err := l.ask("root", c.statement)
				stop()
				switch now := l.policies(); {
				case err == nil && strip(now) == strip(after):
					run(c.back)
					run(c.prepare)
				case err == nil:
					t.Errorf("%s, write %d: %s: it says that it is done, and there is\n%s\nwant\n%s", c.statement, at, kind, now, after)
				case now != before:
					t.Errorf("%s, write %d: %s: %v; there is\n%s\nbefore:\n%s", c.statement, at, kind, err, now, before)
				case fault.KindOf(err) == fault.Internal || strings.Contains(err.Error(), "could not be taken back"):
					t.Errorf("%s, write %d: %s: %v", c.statement, at, kind, err)
				}
				if strip(l.policies()) != strip(before) {
					t.Fatalf("%s, write %d: %s: the test cannot go on with\n%s", c.statement, at, kind, l.policies())
				}
			}
		}
		// From some write on the server is away, also for what would take back.
		for at := 1; at <= total; at++ {
			before := l.policies()
			stop := writes(func(_ http.ResponseWriter, r *http.Request, _ http.HandlerFunc, n int) bool {
				if n >= at {
					panic(http.ErrAbortHandler)
				}
				return false
			})
			_, _, err := l.ask("root", c.statement)
			stop()
			now := l.policies()
			switch {
			case err == nil || !fault.Is(err, fault.Unavailable):
				t.Errorf("%s, away from write %d on: %v", c.statement, at, err)
			case now != before && !strings.Contains(err.Error(), "could not be taken back"),
				now == before && strings.Contains(err.Error(), "could not be taken back"):
				t.Errorf("%s, away from write %d on: %v; there is\n%s\nbefore:\n%s", c.statement, at, err, now, before)
			}
			// As it says, repeating makes it whole.
			l.root(c.statement)
			if now := l.policies(); strip(now) != strip(after) {
				t.Errorf("%s, repeated: there is\n%s\nwant\n%s", c.statement, now, after)
			}
			run(c.back)
			run(c.prepare)
			if strip(l.policies()) != strip(before) {
				t.Fatalf("%s, away from write %d on: the test cannot go on with\n%s", c.statement, at, l.policies())
			}
		}
		run(map[bool]string{true: "REVOKE SELECT ON TABLE payments FROM dan"}[c.prepare != ""])
	}
}
