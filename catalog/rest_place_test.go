package catalog

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/apache/iceberg-go/table"
)

func TestRespelled(t *testing.T) {
	for _, x := range []struct {
		location string
		names    []string
		want     string // with the new part of the last folder as *
	}{
		{"s3://b/lake/sales/with blank", []string{"sales", "with blank"}, "s3://b/lake/sales/with_blank-*"},
		{"s3://b/lake/sales/with%20blank/", []string{"sales", "with blank"}, "s3://b/lake/sales/with_20blank-*"},
		{"file:/lake/o d/ü/日本", []string{"o d", "ü", "日本"}, "file:/lake/o_d/_/__-*"},
		{"file:///lake/a b.c.db/t", []string{"a b", "c", "t"}, "file:///lake/a_b.c.db/t-*"},
		{"s3://b/50%/50%-7f", []string{"50%", "50%"}, "s3://b/50_/50_-7f-*"},
		// What is not made of the names is not ours to spell.
		{"file:///my lake/sales/with blank", []string{"sales", "with blank"}, ""},
		{"s3://b/my lake/sales/x", []string{"sales", "x y"}, ""},
	} {
		got := respelled(x.location, x.names)
		before, after, _ := strings.Cut(x.want, "*")
		if x.want == "" && got != "" || !strings.HasPrefix(got, before) || x.want != "" && (len(got) != len(before)+32 || after != "" || escapes(got)) {
			t.Errorf("%s is %s, want %s", x.location, got, x.want)
		}
	}
}

// TestRESTPlace: for a name that an address escapes SQE proposes a location that needs no
// escapes; the catalog may insist on its own; and what is hidden is asked for as often as
// what is missing.
func TestRESTPlace(t *testing.T) {
	for what, x := range map[string]struct {
		name     string
		refusal  int    // of a table with a location
		root     string // below the folder of the files
		hidden   bool
		proposed bool // in the end
		created  bool
		posts    int
	}{
		"plain":   {name: "t", created: true, posts: 1},
		"odd":     {name: "o d", proposed: true, created: true, posts: 2},
		"refused": {name: "o d", refusal: 403, created: true, posts: 3},
		"bad":     {name: "o d", refusal: 400, created: true, posts: 3},
		"root":    {name: "o d", root: "/my lake", created: true, posts: 2},
		"hidden":  {name: "o d", hidden: true, posts: 1},
	} {
		t.Run(what, func(t *testing.T) {
			f := newFakeREST(t)
			location, posts := "", 0
			f.before = func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case x.hidden && r.URL.Path != "/v1/config":
					posts += map[bool]int{true: 1}[r.Method == http.MethodPost]
					refuse(w, 403, "ForbiddenException")
					return true
				case r.Method != http.MethodPost || r.URL.Path != "/v1/namespaces/sales/tables":
					return false
				}
				posts++
				var asked struct {
					Location string
					Stage    bool `json:"stage-create"`
				}
				text, _ := io.ReadAll(r.Body)
				if json.Unmarshal(text, &asked) != nil || asked.Location != "" && x.refusal != 0 {
					refuse(w, x.refusal, "ForbiddenException")
					return true
				}
				location = asked.Location
				at := location
				if at == "" {
					at = "file://" + f.dir + x.root + "/sales/" + x.name
				}
				meta, err := table.UpdateTableMetadata(f.meta, []table.Update{table.NewSetLocationUpdate(at)}, "")
				if err != nil {
					refuse(w, 500, "Error")
					return true
				}
				_ = json.NewEncoder(w).Encode(map[string]any{"metadata-location": at + "/metadata/x.metadata.json", "metadata": meta})
				return true
			}
			c := f.open(t)
			_, created, err := c.CreateTable(as("alice"), name("sales", x.name), humans, CreateOptions{})
			if created != x.created || (err == nil) != x.created {
				t.Errorf("created %v: %v", created, err)
			}
			if (location != "") != x.proposed || x.proposed && (escapes(location) || !strings.HasPrefix(location, fmt.Sprintf("file://%s/sales/o_d-", f.dir))) {
				t.Errorf("proposed %q", location)
			}
			if posts != x.posts {
				t.Errorf("%d requests, want %d", posts, x.posts)
			}
		})
	}
}
