package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sqe/policystore"
	"sqe/rangerclient/model"
)

func runPolicies(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := policiesCommand(context.Background(), args, &out)
	return out.String(), err
}

// TestPoliciesMove: from a store to a folder to another store, through the
// command, and a second time without a change.
func TestPoliciesMove(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	from, to, folder := filepath.Join(dir, "from.db"), filepath.Join(dir, "to.db"), filepath.Join(dir, "folder")
	s, err := policystore.Open(ctx, from, policystore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []*model.Service{{Name: "tags", Type: "tag"}, {Name: "lake", Type: "trino", TagService: "tags", Configs: model.Strings{"username": "x", "password": "x", "jdbc.driverClassName": "x", "jdbc.url": "x"}}} {
		if _, err := s.CreateService(ctx, x); err != nil {
			t.Fatal(err)
		}
	}
	filter := "a < 1"
	p := &model.Policy{
		Service: "lake", Name: "few rows", PolicyType: model.RowFilterPolicy,
		Resources: map[string]model.Resource{"catalog": {Values: []string{"c"}}, "schema": {Values: []string{"s"}}, "table": {Values: []string{"t"}}},
		RowFilterPolicyItems: []*model.Item{{
			Groups: []string{"public"}, Accesses: []model.Access{{Type: "select"}}, RowFilterInfo: &model.RowFilterInfo{FilterExpr: &filter},
		}},
	}
	if _, err := s.CreatePolicy(ctx, p); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if out, err := runPolicies(t, "export", "--store", from, folder); err != nil || !strings.Contains(out, "2 services") {
		t.Fatal(out, err)
	}
	body, err := os.ReadFile(filepath.Join(folder, "policies_lake.json"))
	if err != nil || !strings.Contains(string(body), `"a < 1"`) {
		t.Fatalf("%s %v", body, err)
	}
	if out, err := runPolicies(t, "import", "--store", to, "--dry-run", folder); err != nil || !strings.Contains(out, `create policy "few rows" of lake`) || !strings.Contains(out, "would be made") {
		t.Fatal(out, err)
	}
	if _, err := os.Stat(to); err == nil {
		t.Error("a dry run made a store")
	}
	if out, err := runPolicies(t, "import", "--store", to, folder); err != nil || !strings.Contains(out, `create policy "few rows" of lake`) {
		t.Fatal(out, err)
	}
	if out, err := runPolicies(t, "import", "--store", to, "--prune", folder); err != nil || out != "0 changes made\n" {
		t.Fatal(out, err)
	}
	// A service that the folder lacks stays, and what its policies name: it is not
	// counted as deleted.
	if s, err = policystore.Open(ctx, to, policystore.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateService(ctx, &model.Service{Name: "more_tags", Type: "tag"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateRole(ctx, &model.Role{Name: "kept"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreatePolicy(ctx, &model.Policy{
		Service: "more_tags", Name: "other", Resources: map[string]model.Resource{"tag": {Values: []string{"PII"}}},
		PolicyItems: []*model.Item{{Roles: []string{"kept"}, Accesses: []model.Access{{Type: "trino:select"}}}},
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if out, err := runPolicies(t, "import", "--store", to, "--prune", folder); err != nil || !strings.HasSuffix(out, "note: role kept is still referred to and stays\n0 changes made\n") {
		t.Fatal(out, err)
	}
	if s, err = policystore.Open(ctx, to, policystore.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteService(ctx, "more_tags"); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteRole(ctx, "kept"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(dir, "again")
	if _, err := runPolicies(t, "export", "--store", to, again); err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(filepath.Join(again, "policies_lake.json"))
	if err != nil || !bytes.Equal(body, other) {
		t.Errorf("exported again it differs: %v\n%s\n%s", err, body, other)
	}
}

// TestPoliciesPassword: who may write the file may let its users log in.
func TestPoliciesPassword(t *testing.T) {
	ctx := context.Background()
	file := filepath.Join(t.TempDir(), "store.db")
	s, err := policystore.Open(ctx, file, policystore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	stdin := os.Stdin
	defer func() { os.Stdin = stdin }()
	set := func(user, password string) error {
		in := filepath.Join(t.TempDir(), "password")
		if err := os.WriteFile(in, []byte(password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if os.Stdin, err = os.Open(in); err != nil {
			t.Fatal(err)
		}
		defer os.Stdin.Close()
		_, err := runPolicies(t, "password", "--store", file, user)
		return err
	}
	for user, password := range map[string]string{"admin": "short", "nobody": "Long-enough-1"} {
		if err := set(user, password); err == nil {
			t.Errorf("%s, %s: taken", user, password)
		}
	}
	if _, err := s.Login(ctx, "admin", "Long-enough-1"); err == nil {
		t.Error("logs in without a password")
	}
	if err := set("admin", "Long-enough-1"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Login(ctx, "admin", "Long-enough-1"); err != nil {
		t.Error(err)
	}
}

func TestPoliciesRefuses(t *testing.T) {
	dir := t.TempDir()
	for what, args := range map[string][]string{
		"say export, import":       {},
		"password needs --store":   {"password", "admin"},
		"name of one user":         {"password", "--store", "x"},
		"of the policy store does": {"password", "--store", filepath.Join(dir, "nosuch.db"), "admin"},
		"needs one folder":         {"export", "--store", "x"},
		"name one place":           {"export", dir},
		"one place":                {"export", "--store", "x", "--url", "y", dir},
		"--username":               {"export", "--url", "https://ranger.example", dir},
		"which is named with -c":   {"export", "--store", "x", "--source", "y", dir},
		"does not exist":           {"export", "--store", filepath.Join(dir, "nosuch.db"), dir},
		"are for import":           {"export", "--store", "x", "--prune", dir},
		"no document policies_":    {"import", "--store", filepath.Join(dir, "new.db"), dir},
		"password-file cannot be ": {"export", "--url", "https://ranger.example", "--username", "u", "--password-file", filepath.Join(dir, "nosuch"), dir},
	} {
		if out, err := runPolicies(t, args...); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%q: %s%v", args, out, err)
		}
	}
}
