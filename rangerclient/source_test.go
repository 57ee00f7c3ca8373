package rangerclient

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sqe/fault"
	"sqe/identity"
	"sqe/plan"
	"sqe/policy"
)

// clock is a clock that tests move.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// captured copies the captured documents of a Ranger Admin 2.9 into a folder
// under the names that a folder source reads.
func captured(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for from, to := range map[string]string{
		"policies_download_hive.json": "policies_hive.json", "policies_download_polaris.json": "policies_polaris.json",
		"tags_download_hive.json": "tags_hive.json", "tags_download_polaris.json": "tags_polaris.json",
		"roles_download.json": "roles.json", "userstore_download.json": "userstore.json",
	} {
		write(t, dir, to, read(t, from))
	}
	return dir
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "ranger-2.9", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t testing.TB, dir, name string, body []byte) {
	t.Helper()
	tmp := filepath.Join(dir, ".tmp")
	if err := os.WriteFile(tmp, body, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(tmp, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

// openCaptured opens the captured documents with a clock of 2026-06-15 10:00 UTC.
func openCaptured(t testing.TB, dir string, o Options) (*Source, *clock) {
	t.Helper()
	c := &clock{t: time.Date(2026, 6, 15, 10, 0, 0, 0, time.UTC)}
	s, err := OpenFolder(FolderConfig{
		Name: "folder", Dir: dir, PolarisService: "polaris", DataService: "hive",
		RefreshInterval: time.Hour, Options: o, Now: c.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, c
}

func stateOf(t testing.TB, s *Source) policy.State {
	t.Helper()
	st, err := s.State()
	if err != nil {
		t.Fatalf("%v (%s)", err, s.Status().LastError)
	}
	return st
}

// table makes a table whose fields are strings, with ids from 1.
func table(name string, columns ...string) *plan.Table {
	parts := strings.Split(name, ".")
	t := &plan.Table{Name: plan.TableName{Catalog: parts[0], Namespace: parts[1 : len(parts)-1], Name: parts[len(parts)-1]}, Tags: map[int][]plan.Tag{}, Formerly: map[int][]string{}}
	for i, c := range columns {
		t.Fields = append(t.Fields, plan.Field{ID: i + 1, Name: c, Type: plan.String})
	}
	return t
}

func restrict(t testing.TB, st policy.State, user string, tab *plan.Table) *policy.Restrictions {
	t.Helper()
	r, err := st.Restrict(identity.Principal{Name: user}, tab)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Complete {
		t.Fatal("an answer without Complete")
	}
	return r
}

// customers has the columns of the captured mask policies on sales.customers.
var customers = []string{"id", "email", "phone", "card", "ssn", "name", "born", "notes"}

func actions(r *policy.Restrictions, tab *plan.Table) map[string]string {
	out := map[string]string{}
	for _, f := range tab.Fields {
		if rule, ok := r.Columns[f.ID]; ok {
			out[f.Name] = rule.Action
			if rule.Kind == policy.Forbid {
				out[f.Name] = "withheld"
			}
		}
	}
	return out
}

func equal(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

func TestCapturedMasks(t *testing.T) {
	s, _ := openCaptured(t, captured(t), Options{})
	st := stateOf(t, s)
	tab := table("lake.sales.customers", customers...)
	// bob is in group analytics by the user store.
	all := map[string]string{
		"email": "MASK_HASH", // of the tag PII, before the resource policy's MASK
		"phone": "MASK_SHOW_LAST_4", "card": "MASK_SHOW_FIRST_4", "ssn": "MASK_HASH",
		"name": "MASK_NULL", "born": "MASK_DATE_SHOW_YEAR", "notes": "CUSTOM",
	}
	for _, x := range []struct {
		user string
		want map[string]string
	}{
		{"bob", all},
		{"carol", map[string]string{}}, // role data_steward: exempt everywhere
		{"stranger", map[string]string{"email": "MASK_HASH"}}, // the tag policy is for public
	} {
		if got := actions(restrict(t, st, x.user, tab), tab); !equal(got, x.want) {
			t.Errorf("%s: masks %v, want %v", x.user, got, x.want)
		}
	}
	bob := restrict(t, st, "bob", tab)
	if r := bob.Columns[8]; r.SQL != "substr({col}, 1, 1)" || r.Kind != policy.Mask || r.Origin.ID != 20 || r.Origin.Via != "group:analytics" {
		t.Errorf("notes: %+v", r)
	}
	if r := bob.Columns[6]; r.Kind != policy.Nullify {
		t.Errorf("name: %+v", r)
	}
	if r := bob.Columns[2]; r.Origin.Tag != "PII" || r.Origin.ID != 27 || r.Origin.Service != "tag" {
		t.Errorf("email: %+v", r)
	}
	var exempt []string
	for _, e := range restrict(t, st, "carol", tab).Exempt {
		exempt = append(exempt, fmt.Sprint(e.FieldID, " ", e.Origin.ID))
	}
	if want := "2 27, 3 15, 4 16, 5 17, 6 18, 7 19, 8 20"; strings.Join(exempt, ", ") != want {
		t.Errorf("carol is exempt by %q, want %q", exempt, want)
	}
}

func TestCapturedFilters(t *testing.T) {
	s, _ := openCaptured(t, captured(t), Options{})
	st := stateOf(t, s)
	tab := table("lake.sales.orders", "id", "region", "amount")
	for user, want := range map[string][]string{
		"bob":          {"region = 'US'"},
		"anna_analyst": {"amount < 1000", "region = 'EU'"}, // of the tag FINANCE, and of the resource
		"alice":        {"1=0"},
		"stranger":     {"1=0"},
	} {
		var got []string
		for _, f := range restrict(t, st, user, tab).Filters {
			got = append(got, f.SQL)
		}
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%s: filters %q, want %q", user, got, want)
		}
	}
	ranger, _ := openCaptured(t, captured(t), Options{FilterCombination: FiltersAsRanger})
	if r := restrict(t, stateOf(t, ranger), "anna_analyst", tab); len(r.Filters) != 1 || r.Filters[0].SQL != "amount < 1000" {
		t.Errorf("as Ranger: %+v", r.Filters)
	}
}

func TestCapturedObjects(t *testing.T) {
	s, _ := openCaptured(t, captured(t), Options{})
	st := stateOf(t, s)
	orders := policy.Object{Catalog: "warehouse", Namespace: []string{"sales"}, Name: "orders"}
	for _, x := range []struct {
		user           string
		o              policy.Object
		priv           policy.Privilege
		allow, visible bool
	}{
		{"alice", orders, policy.TableDataRead, true, true},
		{"bob", orders, policy.TableDataRead, true, true},
		{"bob", orders, "table-data-write", false, true},
		{"alice", orders, "table-data-write", true, true},
		{"stranger", orders, policy.TableDataRead, false, false},
		{"alice", policy.Object{Catalog: "warehouse", Namespace: []string{"sales"}, Name: "other"}, policy.TableDataRead, false, false},
		{"alice", policy.Object{Catalog: "other", Namespace: []string{"sales"}, Name: "orders"}, policy.TableDataRead, false, false},
		{"alice", policy.Object{Catalog: "warehouse", Namespace: []string{"sales"}}, policy.NamespaceList, true, true},
		{"bob", policy.Object{Catalog: "warehouse", Namespace: []string{"sales"}}, policy.NamespaceList, false, false},
		{"stranger", policy.Object{Catalog: "warehouse"}, policy.CatalogList, true, true},
		{"", orders, policy.TableDataRead, false, false},
		{"alice", policy.Object{}, policy.TableDataRead, false, false},
		{"alice", orders, "", false, false},
	} {
		d := st.Authorize(identity.Principal{Name: x.user}, x.o, x.priv)
		if d.Allow != x.allow || d.Visible != x.visible {
			t.Errorf("%s %s on %+v: %+v", x.user, x.priv, x.o, d)
		}
	}
	realm, _ := openCaptured(t, captured(t), Options{Realm: "other"})
	if d := stateOf(t, realm).Authorize(identity.Principal{Name: "alice"}, orders, policy.TableDataRead); d.Allow {
		t.Error("a policy of another realm allows")
	}
}

// TestPollKeepsLastGood: whatever is wrong with a document, the state stays, the
// failure is reported, and past the bound nothing is decided any more.
func TestPollKeepsLastGood(t *testing.T) {
	good := read(t, "policies_download_hive.json")
	for name, body := range map[string][]byte{
		"truncated":       good[:len(good)/2],
		"empty":           {},
		"not JSON":        []byte("<html>login</html>"),
		"another service": bytes.Replace(good, []byte(`"serviceName": "hive"`), []byte(`"serviceName": "hive2"`), 1),
		"older":           bytes.Replace(good, []byte(`"policyVersion": 51`), []byte(`"policyVersion": 50`), 1),
		"no version":      bytes.Replace(good, []byte(`"policyVersion": 51`), []byte(`"x": 51`), 1),
		"trailing":        append(append([]byte{}, good...), good...),
		"not UTF-8":       bytes.Replace(good, []byte(`sales`), []byte("s\xffles"), 1),
		"null item":       bytes.Replace(good, []byte(`"policyItems": [`), []byte(`"policyItems": [ null,`), 1),
		"unknown kind":    bytes.Replace(good, []byte(`"policyType": 1`), []byte(`"policyType": 7`), 1),
		"a delta":         read(t, "policies_download_hive_delta.json"),
		"gone":            nil,
	} {
		t.Run(name, func(t *testing.T) {
			dir := captured(t)
			s, c := openCaptured(t, dir, Options{})
			before := stateOf(t, s)
			if bytes.Equal(body, good) {
				t.Fatal("the broken document is the good one")
			}
			if body == nil {
				if err := os.Remove(filepath.Join(dir, "policies_hive.json")); err != nil {
					t.Fatal(err)
				}
			} else {
				write(t, dir, "policies_hive.json", body)
			}
			c.advance(30 * time.Second)
			if err := s.Reload(context.Background()); err == nil {
				t.Fatal("the poll succeeded")
			} else if strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), "region =") {
				t.Errorf("the error tells too much: %v", err)
			}
			if st := stateOf(t, s); st != before {
				t.Error("the state was replaced")
			}
			if x := s.Status(); x.LastError == "" || !x.Fresh || x.Age != 30*time.Second {
				t.Errorf("status %+v", x)
			}
			c.advance(31 * time.Second)
			if _, err := s.State(); !fault.Is(err, fault.PolicyStale) {
				t.Errorf("a stale state answers: %v", err)
			}
			// It recovers by itself.
			write(t, dir, "policies_hive.json", bytes.Replace(good, []byte(`"policyVersion": 51`), []byte(`"policyVersion": 52`), 1))
			if err := s.Reload(context.Background()); err != nil {
				t.Fatal(err)
			}
			if st := stateOf(t, s); st == before || st.Version() == before.Version() {
				t.Error("the new document is not in force")
			}
			if x := s.Status(); x.LastError != "" || x.Versions["policies/hive"] != 52 {
				t.Errorf("status %+v", x)
			}
		})
	}
}

func TestStartWithoutState(t *testing.T) {
	dir := t.TempDir()
	s, _ := openCaptured(t, dir, Options{})
	if _, err := s.State(); !fault.Is(err, fault.PolicyStale) {
		t.Fatalf("a source without documents answers: %v", err)
	}
	if x := s.Status(); x.Loaded || x.Fresh || x.LastError == "" {
		t.Errorf("status %+v", x)
	}
}

func TestFolderConfig(t *testing.T) {
	for _, c := range []FolderConfig{
		{},
		{Name: "x", Dir: "y"},
		{Name: "x", Dir: "y", DataService: "../z"},
		{Name: "x", Dir: "y", DataService: "hive", Options: Options{MaskPrecedence: "neither"}},
	} {
		if _, err := OpenFolder(c); !fault.Is(err, fault.Config) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestWatch: a change of the folder is seen without a poll.
func TestWatch(t *testing.T) {
	dir := captured(t)
	s, _ := openCaptured(t, dir, Options{})
	before := stateOf(t, s).Version()
	write(t, dir, "roles.json", bytes.Replace(read(t, "roles_download.json"), []byte(`"roleVersion": 6`), []byte(`"roleVersion": 7`), 1))
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if stateOf(t, s).Version() != before {
			return
		}
	}
	t.Error("the change was not seen")
}
