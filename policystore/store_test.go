package policystore

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sqe/fault"
	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
	"sqe/rangerclient/servicedef"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(victimFile); path != "" {
		victim(path)
		return
	}
	goleak.VerifyTestMain(m)
}

// clock is a time that tests set.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

const adminPassword = "Adm1nPassword"

// open is a store that is closed with the test.
func open(t testing.TB, path string, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func fresh(t testing.TB) *Store {
	return open(t, filepath.Join(t.TempDir(), "policies.db"), Options{AdminPassword: adminPassword})
}

// seeded is a store with the services, users, groups and roles that the captured
// requests name.
func seeded(t testing.TB) *Store {
	t.Helper()
	return open(t, seededFile(t), Options{})
}

var seed struct {
	sync.Once
	file []byte
}

// seededFile is a copy of the file of such a store, which is made once.
func seededFile(t testing.TB) string {
	t.Helper()
	seed.Do(func() {
		path := filepath.Join(t.TempDir(), "policies.db")
		s := open(t, path, Options{AdminPassword: adminPassword})
		seedStore(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		seed.file = get(os.ReadFile(path))(t)
	})
	path := filepath.Join(t.TempDir(), "policies.db")
	if err := os.WriteFile(path, seed.file, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func seedStore(t testing.TB, s *Store) {
	t.Helper()
	ctx := as("admin")
	must(t)(s.CreateService(ctx, &model.Service{Type: "tag", Name: "tag"}))
	must(t)(s.CreateService(ctx, &model.Service{Type: "hive", Name: "hive", TagService: "tag", Configs: hiveConfigs()}))
	must(t)(s.CreateService(ctx, &model.Service{Type: "polaris", Name: "polaris", TagService: "tag"}))
	for _, g := range []string{"engineering", "analytics", "governance", "external"} {
		must(t)(s.CreateGroup(ctx, &model.Group{Name: g}))
	}
	for _, u := range []model.User{
		{Name: "alice", Groups: []string{"engineering"}, Attributes: map[string]string{"dept": "engineering", "region": "EU"}},
		{Name: "bob", Groups: []string{"analytics"}, Attributes: map[string]string{"dept": "analytics", "region": "US"}},
		{Name: "carol", Groups: []string{"governance"}, Attributes: map[string]string{"dept": "governance", "region": "EU"}},
		{Name: "anna_analyst", Groups: []string{"analytics"}, Attributes: map[string]string{"dept": "analytics", "region": "EU"}},
		{Name: "ext_auditor", Groups: []string{"external"}, Attributes: map[string]string{"dept": "external", "region": "EU"}},
		{Name: "engine", Password: "Passw0rd1"},
	} {
		must(t)(s.CreateUser(ctx, &u))
	}
	member := func(names ...string) (m []model.Member) {
		for _, n := range names {
			m = append(m, model.Member{Name: n})
		}
		return m
	}
	for _, r := range []model.Role{
		{Name: "data_engineer", Users: member("alice")},
		{Name: "data_analyst", Users: member("bob", "anna_analyst")},
		{Name: "auditor", Users: member("ext_auditor")},
		{Name: "data_steward", Users: member("carol")},
	} {
		r.Description = r.Name
		must(t)(s.CreateRole(ctx, &r))
	}
}

func hiveConfigs() model.Strings {
	return model.Strings{
		"username": "engine", "password": "secret", "jdbc.driverClassName": "org.apache.hive.jdbc.HiveDriver",
		"jdbc.url": "jdbc:hive2://127.0.0.1:10000", "policy.download.auth.users": "engine",
	}
}

// as is a context of an author.
func as(user string) context.Context {
	return admin.WithAuthor(context.Background(), admin.Author{User: user, From: "192.0.2.7"})
}

func must(t testing.TB) func(any, error) {
	t.Helper()
	return func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}

func get[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	return get(os.ReadFile(filepath.Join("testdata", name+".json")))(t)
}

func fixtureOf[T any](t testing.TB, name string) *T {
	t.Helper()
	v := new(T)
	if err := json.Unmarshal(fixture(t, name), v); err != nil {
		t.Fatal(err)
	}
	return v
}

// refused wants a refusal of a kind and code.
func refused(t testing.TB, err error, kind admin.Kind, code int) {
	t.Helper()
	e, ok := err.(*admin.Error)
	if !ok || e.Kind != kind || e.Code != code {
		t.Errorf("got %v, want a refusal %s with code %d", err, kind, code)
	}
}

func stat(path string) (os.FileMode, error) {
	i, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return i.Mode().Perm(), nil
}

// A new store has Ranger's definitions, one administrator and everybody's group.
func TestFreshStore(t *testing.T) {
	s := fresh(t)
	ctx := t.Context()
	for _, typ := range []string{"hive", "trino", "polaris", "tag"} {
		want := get(servicedef.JSON(typ))(t)
		same(t, typ, []byte(get(s.ServiceDef(ctx, typ))(t)), want)
	}
	if n := len(get(s.ServiceDefs(ctx))(t)); n != 4 {
		t.Errorf("%d definitions", n)
	}
	u := get(s.User(ctx, "admin"))(t)
	if len(u.AdminRoles) != 1 || u.AdminRoles[0] != "ROLE_SYS_ADMIN" || u.Password != "" {
		t.Errorf("admin is %+v", u)
	}
	must(t)(s.Group(ctx, "public"))
	if n := len(get(s.Services(ctx))(t)); n != 0 {
		t.Errorf("%d services", n)
	}
	_, err := s.ServiceDef(ctx, "nosuch")
	refused(t, err, admin.NotFound, 0)
}

// TestMadeAloud: a store that is made may be one that got lost.
func TestMadeAloud(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policies.db")
	for _, want := range []bool{true, false} {
		var log bytes.Buffer
		open(t, path, Options{AdminPassword: adminPassword, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if got := strings.Contains(log.String(), path); got != want {
			t.Errorf("the log is %q", log.String())
		}
	}
}

// A file that is no store is left as it is.
func TestForeignFile(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("this is not a database\n", 100)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), text, Options{}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a text was opened: %v", err)
	}
	other := filepath.Join(dir, "other.db")
	s := open(t, other, Options{})
	if err := s.write(t.Context(), func(c *tx) error { return c.exec(`PRAGMA user_version = 99`) }); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), other, Options{}); !fault.Is(err, fault.Config) {
		t.Errorf("a store of a newer version was opened: %v", err)
	}
	if err := s.write(t.Context(), func(c *tx) error { return c.exec(`PRAGMA user_version = 0`) }); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), other, Options{}); !fault.Is(err, fault.Config) {
		t.Errorf("another program's database was opened: %v", err)
	}
}

// TestDamagedFile: a store that would lose something in silence is not opened.
func TestDamagedFile(t *testing.T) {
	// root is the page of an index, which has one page here, or table.
	root := func(path, name string) (offset int64) {
		s := open(t, path, Options{})
		must(t)(s.CreatePolicy(as("admin"), access("one", "select")))
		must(t)(s.CreatePolicy(as("admin"), access("two", "select")))
		err := s.read(t.Context(), func(q *tx) error {
			var page, size int64
			if err := q.one(`SELECT rootpage FROM sqlite_master WHERE name = ?`, []any{name}, &page); err != nil {
				return err
			}
			err := q.one(`PRAGMA page_size`, nil, &size)
			offset = (page - 1) * size
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return offset
	}
	for _, name := range []string{"policies_service", "sqlite_autoindex_services_1", "memberships", "role_refs"} {
		path := seededFile(t)
		at := root(path, name)
		if err := open(t, path, Options{}).Close(); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		// The last entry is not counted: SQLite reads on without it. Source:
		// "B-tree Pages" of its file format.
		content[at+4]--
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := Open(t.Context(), path, Options{}); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v %v", name, s, err)
		}
	}

	path := seededFile(t)
	root(path, "policies")
	db, err := sql.Open("sqlite", path)
	if err == nil {
		_, err = db.ExecContext(t.Context(), `DELETE FROM services`)
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if s, err := Open(t.Context(), path, Options{}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("policies without a service: %v %v", s, err)
	}
}

// Whoever waits for a change is woken by the next one, and only by a change.
func TestChanged(t *testing.T) {
	s := seeded(t)
	woken := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	c := s.Changed()
	_, err := s.CreatePolicy(as("admin"), access("t", "fly"))
	refused(t, err, admin.Invalid, 3022)
	if woken(c) {
		t.Error("a refused change was announced")
	}
	must(t)(s.CreatePolicy(as("admin"), access("t", "select")))
	if !woken(c) {
		t.Error("a change was not announced")
	}
	if woken(s.Changed()) {
		t.Error("the next change was announced before it was made")
	}
}

// Who follows the store has read a change when the call that made it returns; what
// was refused is not told.
func TestFollowers(t *testing.T) {
	s := seeded(t)
	seen := 0
	s.OnChange(func() { seen = len(get(s.Policies(context.Background(), "hive"))(t)) })
	before := len(get(s.Policies(t.Context(), "hive"))(t))
	_, err := s.CreatePolicy(as("admin"), access("t", "fly"))
	refused(t, err, admin.Invalid, 3022)
	if seen != 0 {
		t.Error("a refused change was told")
	}
	p := get(s.CreatePolicy(as("admin"), access("t", "select")))(t)
	if seen != before+1 {
		t.Errorf("%d policies were seen, not %d", seen, before+1)
	}
	if err := s.DeletePolicy(as("admin"), p.ID); err != nil || seen != before {
		t.Errorf("%d policies were seen, not %d: %v", seen, before, err)
	}
}

// A file keeps its identity, and no other file has it.
func TestIdentity(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policies.db")
	s := open(t, path, Options{})
	id := s.ID()
	must(t)(s.CreateGroup(as("admin"), &model.Group{Name: "g"}))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(copied, get(os.ReadFile(path))(t), 0o600); err != nil {
		t.Fatal(err)
	}
	if again, copy := open(t, path, Options{}).ID(), open(t, copied, Options{}).ID(); id == "" || again != id || copy != id {
		t.Errorf("the identity %q became %q, in a copy %q", id, again, copy)
	}
	if other := fresh(t).ID(); other == id {
		t.Error("two files have one identity")
	}
	// A file of before there were identities gets one.
	s = open(t, path, Options{})
	if err := s.write(t.Context(), func(c *tx) error { return c.exec(`DELETE FROM counters WHERE name = 'identity'`) }); err != nil {
		t.Fatal(err)
	}
	if given := open(t, path, Options{}).ID(); given == "" || given == id || given != open(t, path, Options{}).ID() {
		t.Errorf("the file got the identity %q", given)
	}
}
