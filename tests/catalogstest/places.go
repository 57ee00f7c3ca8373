package catalogstest

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go/table"

	"sqe/catalog"
	"sqe/plan"
)

// odd are names with characters that an address, a path, a pattern or a shell takes for
// something else.
var odd = []string{
	"with blank", "ünïcödé", "a.b", "50%", "sl/ash", "qu'ote", `qu"ote`, "plus+sign", "quest?ion", "ha#sh", "Upper", "a%2Eb", "semi;colon", "日本",
	"am&p=er", "br[ack]ets", "ti~lde", "col:on", "cur{l}y", "^caret|pipe", "do$llar@at!,(x)*",
}

// same is a location that every engine reads alike, whether it takes percent signs for
// escapes or not.
var same = regexp.MustCompile(`^[-A-Za-z0-9._~/:@!$&'()*+,;=]+$`)

// places: no file of a table is named by a location that engines read differently, and
// on the local disk each lies where its name says, letter for letter: whatever the names
// of the table and its namespace are.
func (s *suite) places(t *testing.T) {
	namespace(t, s.c, "places")
	for _, odd := range odd {
		if s.Refuses != nil && s.Refuses(odd) || s.Unusable != nil && s.Unusable(odd) {
			continue
		}
		for _, ns := range [][]string{{"places"}, {"places", odd}} {
			if s.Insists != nil && s.Insists(ns, odd) {
				continue
			}
			if len(ns) > 1 {
				namespace(t, s.c, ns...)
			}
			n := plan.TableName{Catalog: "lake", Namespace: ns, Name: odd}
			made(t, s.c, n, people)
			must(t, second(s.c.Commit(ctx, n, Rows(`[{"id": 1}]`))))
			filled := plan.TableName{Catalog: "lake", Namespace: ns, Name: odd + "_filled"}
			_, _, err := s.c.CreateTable(ctx, filled, people, catalog.CreateOptions{Fill: Rows(`[{"id": 1}]`)})
			must(t, err)
			for _, n := range []plan.TableName{n, filled} {
				tb := load(t, s.other, n)
				if counted(t, tb) != 1 {
					t.Errorf("%q has not one row", n)
				}
				for _, f := range files(t, tb) {
					if !same.MatchString(f) {
						t.Errorf("%q has a file %s", n, f)
					}
					local, is := strings.CutPrefix(f, "file:")
					if !is {
						continue
					}
					if _, err := os.Stat("/" + strings.TrimLeft(local, "/")); err != nil {
						t.Errorf("%q: %v", n, err)
					}
				}
			}
			if names, err := s.c.Tables(ctx, ns); err != nil || !slices.Contains(names, odd) {
				t.Errorf("%q are in %q: %v (%v)", names, ns, err, errors.Unwrap(err))
			}
		}
	}
}

// files are the locations of a table, its metadata and the files of its latest snapshot,
// as its metadata name them.
func files(t testing.TB, tb *plan.Table) []string {
	t.Helper()
	h := tb.Handle.(*catalog.Handle)
	out := []string{h.Table.Location(), h.Table.MetadataLocation(), h.Snapshot.ManifestList}
	fs, err := h.Table.FS(ctx)
	must(t, err)
	manifests, err := h.Snapshot.Manifests(fs)
	must(t, err)
	for _, m := range manifests {
		out = append(out, m.FilePath())
	}
	tasks, err := h.Table.Scan(table.WithSnapshotID(h.Snapshot.SnapshotID)).PlanFiles(ctx)
	must(t, err)
	for _, task := range tasks {
		out = append(out, task.File.FilePath())
	}
	return out
}
