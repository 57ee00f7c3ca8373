package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestDeleteFiles: objects go a thousand with a request, each that stays is told of
// with its reason, and a store that does not take several gets them one by one.
func TestDeleteFiles(t *testing.T) {
	m := newMemory(t)
	fill := func() (all []string) {
		m.objects = map[string][]byte{}
		for i := range 2500 {
			name := fmt.Sprintf("wh/f%04d", i)
			if i%1000 == 7 {
				name = fmt.Sprintf("wh/kept%04d", i)
			}
			m.objects["/b/"+name] = []byte("x")
			all = append(all, "s3://b/"+name)
		}
		m.failing(nil)
		return append(all, "s3://b/elsewhere/f")
	}
	all := fill()
	c := m.client(t, Options{})
	done, err := c.Files(context.Background(), inFolder).DeleteFiles(context.Background(), all)
	if len(done) != 2497 || len(m.objects) != 3 || slices.ContainsFunc(done, func(l string) bool { return strings.Contains(l, "kept") }) {
		t.Errorf("%d deleted, %d left", len(done), len(m.objects))
	}
	if !errors.Is(err, ErrDenied) || !errors.Is(err, ErrOutside) || strings.Count(err.Error(), "AccessDenied") != 3 {
		t.Error(err)
	}
	if n := len(m.requests()); n != 3 {
		t.Errorf("%d requests", n)
	}
	for _, code := range []string{"501 NotImplemented", "405 MethodNotAllowed", "400 MissingContentMD5"} {
		all = fill()
		status, name, _ := strings.Cut(code, " ")
		m.failing(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost {
				return false
			}
			w.WriteHeader(map[string]int{"501": 501, "405": 405, "400": 400}[status])
			_, _ = io.WriteString(w, "<Error><Code>"+name+"</Code></Error>")
			return true
		})
		c := m.client(t, Options{})
		done, err := c.Files(context.Background(), inFolder).DeleteFiles(context.Background(), all)
		if len(done) != 2500 || len(m.objects) != 0 || !errors.Is(err, ErrOutside) {
			t.Errorf("%s: %d deleted, %d left, %v", code, len(done), len(m.objects), err)
		}
		if n := len(m.requests()); n != 2501 {
			t.Errorf("%s: %d requests", code, n)
		}
	}
	// One that is down or refuses the keys is not asked for each object.
	all = fill()
	m.failing(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "<Error><Code>AccessDenied</Code></Error>")
		return true
	})
	done, err = m.client(t, Options{}).Files(context.Background(), inFolder).DeleteFiles(context.Background(), all)
	if len(done) != 0 || !errors.Is(err, ErrDenied) || len(m.requests()) != 3 {
		t.Errorf("%d deleted, %v, %d requests", len(done), err, len(m.requests()))
	}
}
