package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sqe/catalog"
	"sqe/catalog/rest"
	"sqe/engine"
	"sqe/identity"
	"sqe/identity/oidc"
	"sqe/identity/oidc/oidctest"
	"sqe/plan"
	"sqe/policy"
	"sqe/rangerclient"
	"sqe/rangerclient/model"
	"sqe/rangerclient/servicedef"
)

// downloads writes what a Ranger with a polaris service would send: alice may read the
// tables of the namespace "shop", beside so many policies on other tables.
func downloads(t testing.TB, others int) string {
	t.Helper()
	dir := t.TempDir()
	object := func(id int, namespace, table string, i *model.Item) *model.Policy {
		p := &model.Policy{ID: int64(id), Name: fmt.Sprint("p", id), Service: "objects", Resources: map[string]model.Resource{}, PolicyItems: []*model.Item{i}}
		for k, v := range map[string]string{"root": "POLARIS", "catalog": "hub", "namespace": namespace, "table": table} {
			p.Resources[k] = model.Resource{Values: []string{v}}
		}
		return p
	}
	read := func(users ...string) *model.Item {
		return &model.Item{Users: users, Accesses: []model.Access{{Type: "table-data-read"}}}
	}
	policies := []*model.Policy{object(1, "shop", "*", read("alice"))}
	for i := range others {
		policies = append(policies, object(i+2, "shop", fmt.Sprint("other", i), read(fmt.Sprint("user", i))))
	}
	for service, typ := range map[string]string{"objects": "polaris", "data": "hive"} {
		def, err := servicedef.JSON(typ)
		if err != nil {
			t.Fatal(err)
		}
		all := policies
		if typ == "hive" {
			all = []*model.Policy{}
		}
		text, err := json.Marshal(map[string]any{"serviceName": service, "policyVersion": 1, "policies": all, "serviceDef": json.RawMessage(def)})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "policies_"+service+".json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// everything is a policy source without policies.
type everything struct{}

func (everything) Name() string                 { return "everything" }
func (everything) State() (policy.State, error) { return everything{}, nil }
func (everything) Status() policy.Status        { return policy.Status{} }
func (everything) Version() string              { return "1" }
func (everything) Authorize(identity.Principal, policy.Object, policy.Privilege) policy.Decision {
	return policy.Decision{Allow: true, Visible: true}
}
func (everything) Roles(identity.Principal) []string { return nil }
func (everything) Restrict(identity.Principal, *plan.Table) (*policy.Restrictions, error) {
	return &policy.Restrictions{Complete: true}, nil
}

// remembered is a catalog of one table, which it has in memory.
type remembered struct {
	catalog.Catalog
	table *plan.Table
}

func (r remembered) Table(context.Context, plan.TableName, plan.AsOf, string) (*plan.Table, error) {
	return r.table, nil
}

// BenchmarkGates is what a warm statement costs with a token of OpenID Connect, a polaris
// service with 10,000 policies and a REST catalog that is asked as the user, beside the
// same statement on the same files without any of the three, of a catalog that has the
// table in memory: taken turn by turn, each figure a median. "prepare" binds the
// statement, and runs nothing.
func BenchmarkGates(b *testing.B) {
	s := &shop{}
	server := httptest.NewServer(s)
	b.Cleanup(server.Close)
	issuer := oidctest.New()
	b.Cleanup(issuer.Close)
	provider, err := oidc.New(oidc.Options{Name: "keycloak", Issuer: issuer.URL, Audiences: []string{"sqe"}})
	if err != nil {
		b.Fatal(err)
	}
	login, err := provider.Authenticate(context.Background(), "alice", issuer.Sign(issuer.Claims("alice")), nil)
	if err != nil {
		b.Fatal(err)
	}
	ranger, err := rangerclient.OpenFolder(rangerclient.FolderConfig{Name: "ranger", Dir: downloads(b, 10_000), PolarisService: "objects", DataService: "data"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = ranger.Close() })
	plain := openWith(b, func(o *engine.Options) {
		o.Sources = []policy.Source{everything{}}
		lake, _ := o.Catalogs.Get("lake")
		if o.Catalogs, err = catalog.NewRegistry(remembered{lake, mustTable(b, lake, "customers")}); err != nil {
			b.Fatal(err)
		}
	})
	gated := openWith(b, func(o *engine.Options) {
		o.Sources = []policy.Source{ranger}
		lake, _ := o.Catalogs.Get("lake")
		customers := mustTable(b, lake, "customers").Handle.(*catalog.Handle).Table
		s.meta = customers.Metadata()
		client, err := rest.New(rest.Options{URI: server.URL, Tokens: rest.User("hub"), HTTP: server.Client(), AllowHTTP: true})
		if err != nil {
			b.Fatal(err)
		}
		dir := filepath.Dir(filepath.Dir(strings.TrimPrefix(customers.Location(), "file://")))
		remote, err := catalog.OpenREST("hub", client, catalog.RESTOptions{Local: filepath.Dir(dir), Bound: time.Hour, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = remote.Close() })
		if o.Catalogs, err = catalog.NewRegistry(remote, lake); err != nil {
			b.Fatal(err)
		}
	})
	without, err := plain.Open(identity.Principal{Name: "alice"}, engine.ConnInfo{ID: 1, RemoteAddr: "test"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(without.Close)
	with, err := gated.OpenLogin(login, engine.ConnInfo{ID: 1, RemoteAddr: "test"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(with.Close)
	for _, x := range []struct{ name, plain, gated string }{
		{"one table", "SELECT COUNT(*) FROM bank.customers", "SELECT COUNT(*) FROM shop.orders"},
		{
			"three tables", "SELECT COUNT(*) FROM bank.customers a JOIN bank.customers b USING (cust_id) JOIN bank.customers c USING (cust_id)",
			"SELECT COUNT(*) FROM shop.orders a JOIN shop.items b USING (cust_id) JOIN shop.people c USING (cust_id)",
		},
	} {
		for _, kind := range []string{"prepare", "query"} {
			run := func(session *engine.Session, text string) time.Duration {
				start := time.Now()
				if kind == "prepare" {
					if _, err := session.Prepare(context.Background(), text); err != nil {
						b.Fatal(err)
					}
				} else if _, err := query(session, text); err != nil {
					b.Fatal(err)
				}
				return time.Since(start)
			}
			b.Run(x.name+"/"+kind, func(b *testing.B) {
				for range 20 {
					run(without, x.plain)
					run(with, x.gated)
				}
				s.seen()
				var off, on []time.Duration
				for b.Loop() {
					off, on = append(off, run(without, x.plain)), append(on, run(with, x.gated))
				}
				if asked := s.seen(); len(asked) != 0 {
					b.Fatalf("warm statements sent %q", asked)
				}
				slices.Sort(off)
				slices.Sort(on)
				b.ReportMetric(float64(off[len(off)/2].Nanoseconds())/1000, "plain-µs")
				b.ReportMetric(float64(on[len(on)/2].Nanoseconds())/1000, "gated-µs")
				b.ReportMetric(float64((on[len(on)/2]-off[len(off)/2]).Nanoseconds())/1000, "overhead-µs")
			})
		}
	}
}
