package policystore

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
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
	s := fresh(t)
	seedStore(t, s)
	return s
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

var _ = bytes.Equal
