package catalog

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"sqe/catalog/rest"
	"sqe/plan"
)

// BenchmarkCommit is a commit of one property on a table of many versions.
func BenchmarkCommit(b *testing.B) {
	c, _ := lake(b)
	made(b, c, "t", humans)
	i := 0
	for b.Loop() {
		i++
		_, err := c.UpdateProperties(ctx, name("ns", "t"), func(*plan.Table, map[string]string) (map[string]string, []string, error) {
			return map[string]string{"k": fmt.Sprint(i)}, nil, nil
		})
		must(b, err)
	}
}

// BenchmarkRESTTable: a table that the catalog showed to this user within the bound.
func BenchmarkRESTTable(b *testing.B) {
	f := newFakeREST(b)
	c := f.open(b)
	alice := as("alice")
	for b.Loop() {
		if _, err := c.Table(alice, orders, plan.AsOf{}, ""); err != nil {
			b.Fatal(err)
		}
	}
	if n := len(f.seen()); n > 2 {
		b.Errorf("%d requests", n)
	}
}

// BenchmarkRESTAgain: a table of 1,000 snapshots that has not changed, asked for again
// after the bound: with the whole answer, and with its mark. "first" is a table that was
// not known at all.
func BenchmarkRESTAgain(b *testing.B) {
	for _, how := range []string{"whole", "mark", "first"} {
		b.Run(how, func(b *testing.B) {
			f := newFakeREST(b)
			f.meta = wideMetadata(b, 1, 20, 1000)
			text, err := json.Marshal(map[string]any{"metadata-location": "s3://lake/ns/t1/metadata/x.metadata.json", "metadata": f.meta})
			must(b, err)
			f.before = func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case !strings.HasSuffix(r.URL.Path, "/tables/orders"):
					return false
				case r.Header.Get("If-None-Match") != "":
					w.WriteHeader(http.StatusNotModified)
				default:
					w.Header().Set("ETag", `"1"`)
					_, _ = w.Write(text)
				}
				return true
			}
			c := remote(b, f.URL, rest.Options{}, RESTOptions{Local: f.dir, Bound: -1, TrustETags: how == "mark"})
			alice := as("alice")
			must(b, second(c.Table(alice, orders, plan.AsOf{}, "")))
			for b.Loop() {
				if how == "first" {
					c.changed(orders)
					c.client.KeepMetadata(64 << 20)
				}
				if _, err := c.Table(alice, orders, plan.AsOf{}, ""); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(text)), "bytes/answer")
		})
	}
}
