//go:build e2e

package policyserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sqe/policystore"
	"sqe/policystore/rest"
	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

const (
	prefix   = "sqect_"
	password = "Passw0rd1"
)

// The server under test, and the names of what all tests share.
var (
	server            *admin.REST
	base              string
	account, secret   string
	ranger            bool // a Ranger Admin
	hive, polaris     = prefix + "hive", prefix + "polaris"
	tagService        = prefix + "tag"
	alice, bob, carol = prefix + "alice", prefix + "bob", prefix + "carol"
	engine            = prefix + "engine" // may download everything, and administers the services
	readers           = prefix + "readers"
	analyst           = prefix + "analyst"
)

// Users that a service lets do one thing each.
var keyUsers = map[string]string{
	"policy.download.auth.users": prefix + "k_policy", "policy.grantrevoke.auth.users": prefix + "k_grant",
	"tag.download.auth.users": prefix + "k_tag", "userstore.download.auth.users": prefix + "k_users",
	"service.admin.users": prefix + "k_admin",
}

var ctx = context.Background()

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) (code int) {
	base, account, secret = os.Getenv("SQE_RANGER_URL"), "admin", "admin"
	if base != "" {
		ranger = true
		if a := os.Getenv("SQE_RANGER_ADMIN"); a != "" {
			account, secret, _ = strings.Cut(a, ":")
		}
	} else {
		stop, err := embedded()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer stop()
	}
	var err error
	if server, err = admin.OpenREST(admin.RESTConfig{URL: base, Username: account, Password: secret, AllowHTTP: true, Timeout: 2 * time.Minute}); err == nil {
		if err = sweep(); err == nil {
			err = furnish()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code = m.Run()
	if err := sweep(); err != nil {
		fmt.Fprintln(os.Stderr, "cleaning up:", err)
		return 1
	}
	return code
}

// embedded starts the store.
func embedded() (stop func(), err error) {
	secret = "Adm1n" + password
	dir, err := os.MkdirTemp("", "policyserver")
	if err != nil {
		return nil, err
	}
	store, err := policystore.Open(ctx, filepath.Join(dir, "policies.db"), policystore.Options{AdminPassword: secret})
	if err != nil {
		return nil, err
	}
	s, err := rest.Listen("127.0.0.1:0", nil, rest.New(store, rest.Options{}))
	if err != nil {
		return nil, err
	}
	go func() { _ = s.Serve() }()
	base = "http://" + s.Addr().String()
	return func() {
		_ = s.Shutdown(ctx)
		_ = store.Close()
		_ = os.RemoveAll(dir)
	}, nil
}

// sweep removes what an earlier run, or this one, left.
func sweep() error {
	ours := func(name string) bool { return strings.HasPrefix(name, prefix) }
	zones, err := server.Zones(ctx)
	if err != nil {
		return err
	}
	for _, z := range zones {
		if ours(z.Name) {
			if err := server.DeleteZone(ctx, z.Name); err != nil {
				return err
			}
		}
	}
	services, err := server.Services(ctx)
	if err != nil {
		return err
	}
	// Those that are linked before the ones that they are linked to.
	slices.SortStableFunc(services, func(a, b *model.Service) int { return strings.Compare(b.TagService, a.TagService) })
	for _, s := range services {
		if ours(s.Name) {
			if err := server.DeleteService(ctx, s.Name); err != nil {
				return err
			}
		}
	}
	roles, err := server.Roles(ctx)
	if err != nil {
		return err
	}
	for _, r := range roles { // roles may contain each other
		if ours(r.Name) {
			r.Users, r.Groups, r.Roles = nil, nil, nil
			if _, err := server.UpdateRole(ctx, r); err != nil {
				return err
			}
		}
	}
	for _, r := range roles {
		if ours(r.Name) {
			if err := server.DeleteRole(ctx, r.Name); err != nil {
				return err
			}
		}
	}
	users, err := server.Users(ctx)
	if err != nil {
		return err
	}
	for _, u := range users {
		if ours(u.Name) {
			if err := server.DeleteUser(ctx, u.Name); err != nil {
				return err
			}
		}
	}
	groups, err := server.Groups(ctx)
	if err != nil {
		return err
	}
	for _, g := range groups {
		if ours(g.Name) {
			if err := server.DeleteGroup(ctx, g.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// furnish makes the services, users, groups and roles that all tests share.
func furnish() error {
	if _, err := server.CreateGroup(ctx, &model.Group{Name: readers, Description: "readers"}); err != nil {
		return err
	}
	users := []string{alice, bob, carol, engine}
	for _, name := range keyUsers {
		users = append(users, name)
	}
	for _, name := range users {
		u := &model.User{Name: name, FirstName: name, Password: password, AdminRoles: []string{"ROLE_USER"}}
		if name == bob {
			u.Groups = []string{readers}
			u.Attributes = map[string]string{"dept": "analytics", "region": "US"}
		}
		if _, err := server.CreateUser(ctx, u); err != nil {
			return fmt.Errorf("user %s: %w", name, err)
		}
	}
	if _, err := server.CreateRole(ctx, &model.Role{Name: analyst, Users: []model.Member{{Name: bob}}}); err != nil {
		return err
	}
	for _, s := range []*model.Service{{Name: tagService, Type: "tag"}, {Name: hive, Type: "hive", TagService: tagService}, {Name: polaris, Type: "polaris", TagService: tagService}} {
		if err := makeService(s); err != nil {
			return fmt.Errorf("service %s: %w", s.Name, err)
		}
	}
	return nil
}

// makeService creates a service without policies.
func makeService(s *model.Service) error {
	s.Configs = model.Strings{}
	for key, user := range keyUsers {
		s.Configs[key] = user + "," + engine
	}
	if s.Type == "hive" {
		for k, v := range map[string]string{"username": account, "password": "unused", "jdbc.driverClassName": "none", "jdbc.url": "none"} {
			s.Configs[k] = v
		}
	}
	if _, err := server.CreateService(ctx, s); err != nil {
		return err
	}
	policies, err := server.Policies(ctx, s.Name)
	if err != nil {
		return err
	}
	if !ranger && len(policies) > 0 {
		return fmt.Errorf("the store made %d policies by itself", len(policies))
	}
	for _, p := range policies {
		if err := server.DeletePolicy(ctx, p.ID); err != nil {
			return err
		}
	}
	return nil
}

// reply is what the server answered.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// send sends a request as it is; user "" is nobody.
func send(t *testing.T, user, method, path string, body any) reply {
	t.Helper()
	var content io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		content = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		content = bytes.NewReader(text)
	}
	r, err := http.NewRequest(method, base+"/service/"+path, content)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "policyserver-test")
	if content != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	switch user {
	case "":
	case account:
		r.SetBasicAuth(user, secret)
	default:
		r.SetBasicAuth(user, password)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, text}
}

// into decodes the body of an answer that must have that status.
func (r reply) into(t *testing.T, status int, v any) {
	t.Helper()
	if r.status != status {
		t.Fatalf("status %d, want %d: %s", r.status, status, r.body)
	}
	if v == nil {
		return
	}
	if err := json.Unmarshal(r.body, v); err != nil {
		t.Fatalf("%v: %s", err, r.body)
	}
}

func esc(name string) string { return url.PathEscape(name) }

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// wantKind holds an error to what it means.
func wantKind(t *testing.T, err error, kind admin.Kind, what string) {
	t.Helper()
	if admin.KindOf(err) != kind {
		t.Errorf("%s: %v, want %s", what, err, kind)
	}
}

// on is a policy of the hive service on a table of the test's own database.
func on(t *testing.T, table string, items ...*model.Item) *model.Policy {
	return &model.Policy{
		Service: hive, Name: t.Name() + " " + table, Resources: map[string]model.Resource{
			"database": {Values: []string{database(t)}}, "table": {Values: []string{table}}, "column": {Values: []string{"*"}},
		},
		PolicyItems: items,
	}
}

func database(t *testing.T) string {
	return strings.ToLower(strings.NewReplacer("/", "_", " ", "_").Replace(t.Name()))
}

func allow(user string, accesses ...string) *model.Item {
	i := &model.Item{Users: []string{user}}
	for _, a := range accesses {
		i.Accesses = append(i.Accesses, model.Access{Type: a})
	}
	return i
}

// make creates a policy that goes with the test.
func create(t *testing.T, p *model.Policy) *model.Policy {
	t.Helper()
	made := must[*model.Policy](t)(server.CreatePolicy(ctx, p))
	t.Cleanup(func() {
		if err := server.DeletePolicy(ctx, made.ID); err != nil && admin.KindOf(err) != admin.NotFound {
			t.Error(err)
		}
	})
	return made
}
