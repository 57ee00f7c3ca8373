package policies

import (
	"context"
	"path/filepath"
	"testing"

	"sqe/identity"
	"sqe/plan"
	"sqe/policy"
	"sqe/policystore"
	"sqe/rangerclient"
)

func open(t *testing.T) policy.State {
	t.Helper()
	ctx := context.Background()
	store, err := policystore.Open(ctx, filepath.Join(t.TempDir(), "policies.db"), policystore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if err := Seed(ctx, store, "demo"); err != nil {
		t.Fatal(err)
	}
	s, err := rangerclient.OpenStore(rangerclient.StoreConfig{Name: "store", Store: store, PolarisService: PolarisService, DataService: HiveService})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	st, err := s.State()
	if err != nil {
		t.Fatalf("%v: %s", err, s.Status().LastError)
	}
	if p := s.Status().Problems; len(p) > 0 {
		t.Fatalf("problems: %q", p)
	}
	return st
}

func customers() *plan.Table {
	t := &plan.Table{Name: plan.TableName{Catalog: "demo", Namespace: []string{"bank"}, Name: "customers"}, Tags: map[int][]plan.Tag{3: {{Name: "PII"}}, 5: {{Name: "PII"}}}}
	for i, n := range []string{"cust_id", "full_name", "national_id", "dob", "iban", "nationality", "residency_region", "branch", "consent_marketing", "pep_flag", "risk_score", "phone"} {
		t.Fields = append(t.Fields, plan.Field{ID: i + 1, Name: n, Type: plan.String})
	}
	return t
}

func TestPeople(t *testing.T) {
	st := open(t)
	table := policy.Object{Catalog: "demo", Namespace: []string{"bank"}, Name: "customers"}
	for _, x := range []struct {
		user   string
		reads  bool
		filter string
		masks  map[string]string
	}{
		{"admin", true, "", nil},
		{"carol", true, "", nil},
		{"alice", true, "residency_region = 'EU'", map[string]string{
			"national_id": "MASK_SHOW_LAST_4", "iban": "MASK_HASH", "dob": "MASK_DATE_SHOW_YEAR", "phone": "MASK_NULL",
		}},
		{"bob", true, "consent_marketing = true", map[string]string{
			"full_name": "MASK", "national_id": "MASK", "iban": "MASK", "dob": "MASK_DATE_SHOW_YEAR", "risk_score": "MASK_NULL",
		}},
		{"dave", false, "1 = 0", map[string]string{
			"full_name": "MASK_NULL", "national_id": "MASK_NULL", "iban": "MASK_NULL", "dob": "MASK_NULL", "risk_score": "MASK_NULL", "phone": "MASK_NULL",
		}},
	} {
		p := identity.Principal{Name: x.user}
		if d := st.Authorize(p, table, policy.TableDataRead); d.Allow != x.reads || d.Visible != x.reads {
			t.Errorf("%s: %+v", x.user, d)
		}
		tab := customers()
		r, err := st.Restrict(p, tab)
		if err != nil || !r.Complete || r.Refuse != "" || len(r.Notes) > 0 {
			t.Fatalf("%s: %+v %v", x.user, r, err)
		}
		filter := ""
		for _, f := range r.Filters {
			filter += f.SQL
		}
		if filter != x.filter {
			t.Errorf("%s: filter %q", x.user, filter)
		}
		if len(r.Columns) != len(x.masks) {
			t.Errorf("%s: %d masks, want %d", x.user, len(r.Columns), len(x.masks))
		}
		for _, f := range tab.Fields {
			if r.Columns[f.ID].Action != x.masks[f.Name] {
				t.Errorf("%s: %s has %q, want %q", x.user, f.Name, r.Columns[f.ID].Action, x.masks[f.Name])
			}
		}
	}
	for _, name := range []string{"branch_access", "no_such_table"} {
		o := policy.Object{Catalog: "demo", Namespace: []string{"bank"}, Name: name}
		if d := st.Authorize(identity.Principal{Name: "alice"}, o, policy.TableDataRead); d.Allow || d.Visible {
			t.Errorf("alice sees %s", name)
		}
	}
	if d := st.Authorize(identity.Principal{Name: "carol"}, policy.Object{Catalog: "demo", Namespace: []string{"bank"}, Name: "branch_access"}, policy.TableDataRead); !d.Allow {
		t.Error("carol does not see branch_access")
	}
}
