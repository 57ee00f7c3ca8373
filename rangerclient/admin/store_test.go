package admin_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sqe/fault"
	"sqe/plan"
	"sqe/policy"
	"sqe/policystore"
	"sqe/policystore/rest"
	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

func openStore(t *testing.T) *policystore.Store {
	t.Helper()
	s, err := policystore.Open(context.Background(), filepath.Join(t.TempDir(), "policies.db"), policystore.Options{AdminPassword: "Passw0rd1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestTransferWithStore(t *testing.T) {
	admin.Transfers(t, func() admin.Server { return openStore(t) })
}

// openREST is a store behind its REST face, administered as a Ranger Admin is.
func openREST(t *testing.T) *admin.REST {
	t.Helper()
	face := httptest.NewServer(rest.New(openStore(t), rest.Options{}))
	t.Cleanup(face.Close)
	r, err := admin.OpenREST(admin.RESTConfig{URL: face.URL, Username: "admin", Password: "Passw0rd1"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTransferWithREST(t *testing.T) {
	admin.Transfers(t, func() admin.Server { return openREST(t) })
}

// TestAdministratorOverREST: what is written in the words of SQL comes back as it
// was, through the documents of a Ranger Admin.
func TestAdministratorOverREST(t *testing.T) {
	ctx := context.Background()
	s := openREST(t)
	for _, x := range []*model.Service{{Name: "tags", Type: "tag"}, {Name: "lake", Type: "hive", TagService: "tags", Configs: model.Strings{"username": "x", "password": "x", "jdbc.driverClassName": "x", "jdbc.url": "x"}}} {
		if _, err := s.CreateService(ctx, x); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.CreateRole(ctx, &model.Role{Name: "analyst"}); err != nil {
		t.Fatal(err)
	}
	a, err := admin.New(s, admin.Config{Source: "ranger", DataService: "lake", ProjectTags: true, Reload: func(context.Context) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	by := policy.Author{User: "root", From: "10.0.0.7"}
	table := plan.TableName{Catalog: "bank", Namespace: []string{"eu"}, Name: "customers"}
	items := []policy.Item{{Grantees: []policy.Grantee{{Kind: policy.RoleGrantee, Name: "analyst"}}, Mask: "MASK_NULL"}}
	want := []policy.Definition{
		{Name: "on columns", Kind: policy.MaskDefinition, Table: table, Columns: []string{"email", "iban"}, Items: items, Override: true, ValidUntil: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), Description: "d"},
		{Name: "rows", Kind: policy.FilterDefinition, Table: table, Items: []policy.Item{{Grantees: items[0].Grantees, SQL: "region = 'eu' AND x < 1"}}, Description: "d"},
		{Name: "on a tag", Kind: policy.MaskDefinition, Tag: "PII", Items: items, Description: "d", Disabled: true},
	}
	for _, d := range want {
		if err := a.Create(ctx, by, d, false); err != nil {
			t.Fatal(err)
		}
	}
	got, err := a.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range want {
		n := slices.IndexFunc(got, func(s policy.Stored) bool { return s.Name == d.Name })
		if n < 0 || len(got[n].Beyond) > 0 {
			t.Fatalf("%s: %+v", d.Name, got)
		}
		if diff := cmp.Diff(d, got[n].Definition, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-written +read):\n%s", diff)
		}
	}
	refused := func(err error, kind fault.Kind, word string) {
		t.Helper()
		if !fault.Is(err, kind) || !strings.Contains(err.Error(), word) {
			t.Errorf("got %v, want to be told %q", err, word)
		}
	}
	taken, ghost := want[0], want[1]
	taken.Name, ghost.Name = "another", "for a ghost"
	ghost.Table.Name = "other"
	ghost.Items = []policy.Item{{Grantees: []policy.Grantee{{Kind: policy.UserGrantee, Name: "ghost"}}, SQL: "TRUE"}}
	unknown := want[0]
	unknown.Name, unknown.Columns, unknown.Items = "unknown", []string{"x"}, []policy.Item{{Grantees: items[0].Grantees, Mask: "MASK_BOGUS"}}
	refused(a.Create(ctx, by, taken, false), fault.BadStatement, `ALTER POLICY "on columns" ADD`)
	refused(a.Create(ctx, by, want[0], false), fault.BadStatement, "OR REPLACE")
	refused(a.Create(ctx, by, ghost, false), fault.NoPrincipal, `"ghost"`)
	refused(a.Create(ctx, by, unknown, false), fault.BadStatement, "mask")
	refused(a.Drop(ctx, by, "nosuch"), fault.NotFound, "nosuch")
	if err := a.Create(ctx, by, want[1], true); err != nil {
		t.Error(err)
	}
	if err := a.Alter(ctx, by, "rows", policy.Change{Add: []policy.Item{{Grantees: []policy.Grantee{{Kind: policy.GroupGrantee, Name: "public"}}, SQL: "FALSE"}}}, nil); err != nil {
		t.Error(err)
	}
	if err := a.Drop(ctx, by, "on a tag"); err != nil {
		t.Error(err)
	}
	before := map[string][]string{"iban": {"PII", "FIN"}, "email": {"PII"}}
	after := map[string][]string{"iban": {"PII"}, "phone": {"PII"}}
	for _, step := range []struct{ before, after map[string][]string }{{nil, before}, {before, after}} {
		if err := a.ProjectTags(ctx, by, &plan.Table{Name: table}, step.before, step.after); err != nil {
			t.Fatal(err)
		}
		doc, err := s.Tags(ctx, "lake")
		if err != nil {
			t.Fatal(err)
		}
		have := map[string][]string{}
		for _, r := range doc.ServiceResources {
			for _, id := range doc.ResourceToTagIDs[strconv.FormatInt(r.ID, 10)] {
				c := r.ResourceElements["column"].Values[0]
				have[c] = append(have[c], doc.Tags[strconv.FormatInt(id, 10)].Type)
			}
		}
		if diff := cmp.Diff(step.after, have, cmpopts.SortSlices(strings.Compare)); diff != "" {
			t.Errorf("tags (-want +got):\n%s", diff)
		}
	}
}

// TestWritersOfStore: the store keeps what the merge needs.
func TestWritersOfStore(t *testing.T) {
	ctx := context.Background()
	s := openStore(t)
	for _, x := range []*model.Service{{Name: "tags", Type: "tag"}, {Name: "lake", Type: "hive", TagService: "tags", Configs: model.Strings{"username": "x", "password": "x", "jdbc.driverClassName": "x", "jdbc.url": "x"}}} {
		if _, err := s.CreateService(ctx, x); err != nil {
			t.Fatal(err)
		}
	}
	admin.Writers(t, s, 3, 4, func(name string) {
		if _, err := s.CreateUser(ctx, &model.User{Name: name, Password: "Passw0rd1"}); err != nil {
			t.Fatal(fmt.Errorf("user %s: %w", name, err))
		}
	})
}
