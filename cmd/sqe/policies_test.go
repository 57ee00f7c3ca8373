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
	if out, err := runPolicies(t, "import", "--store", to, folder); err != nil || !strings.Contains(out, `create policy "few rows" of lake`) {
		t.Fatal(out, err)
	}
	if out, err := runPolicies(t, "import", "--store", to, "--prune", folder); err != nil || out != "0 changes made\n" {
		t.Fatal(out, err)
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

func TestPoliciesRefuses(t *testing.T) {
	dir := t.TempDir()
	for what, args := range map[string][]string{
		"say export or import":     {},
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
