package grants

import (
	"context"
	"strings"
	"testing"

	"sqe/fault"
	"sqe/rangerclient"
	"sqe/rangerclient/model"
)

// may asks whether users can read, and holds that to what is wanted.
func (l *lake) may(text string, want map[string]bool) {
	l.Helper()
	for user, yes := range want {
		_, _, err := l.ask(user, text)
		if (err == nil) != yes || err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Denied) {
			l.Errorf("%s: %s: %v, want %v", user, text, err, yes)
		}
	}
}

// TestGroupsAsRoles: a grant to a group is written for the role of its name, for those
// who have that role; a group without such a role is refused, and PUBLIC is what it
// is.
func TestGroupsAsRoles(t *testing.T) {
	for _, sink := range sinks {
		t.Run(sink, func(t *testing.T) {
			l, ctx := openWith(t, sink, settings{groupsAsRoles: true}), context.Background()
			if _, err := l.store.CreateGroup(ctx, &model.Group{Name: "teller"}); err != nil {
				t.Fatal(err)
			}
			const read = "SELECT COUNT(*) FROM customers"
			l.root("GRANT SELECT ON customers TO GROUP teller")
			l.may(read, map[string]bool{"ann": true, "cat": true, "ben": false, "dan": false})
			if p := l.policies(); !strings.Contains(p, "chm:ROLE:teller:SELECT") || strings.Contains(p, "GROUP") || strings.Contains(p, "[teller] [] false") {
				t.Errorf("there is\n%s", p)
			}
			l.root("DENY SELECT ON customers TO GROUP senior")
			l.may(read, map[string]bool{"ann": true, "cat": false})
			l.root("REVOKE SELECT ON customers FROM GROUP senior")
			l.may(read, map[string]bool{"cat": true})
			// The group eu is one of the server, but there is no role of that name.
			if _, _, err := l.ask("root", "GRANT SELECT ON customers TO GROUP eu"); !fault.Is(err, fault.NoPrincipal) || !strings.Contains(err.Error(), "no role eu") {
				t.Errorf("a group without a role: %v", err)
			}
			l.root("REVOKE SELECT ON customers FROM GROUP teller")
			l.root("GRANT SELECT ON customers TO PUBLIC")
			l.may(read, map[string]bool{"ann": true, "ben": true, "dan": true})
			l.root("REVOKE SELECT ON customers FROM PUBLIC")
			if p := l.policies(); p != "" {
				t.Errorf("left:\n%s", p)
			}
		})
	}
}

// TestNestedWildcards: with the setting all tables of a schema are also those of the
// schemas inside it, for grants and for denials, and the statement says so; without it
// a grant is for those directly in it.
func TestNestedWildcards(t *testing.T) {
	for _, c := range []struct {
		setting rangerclient.NestedWildcards
		deep    bool
		says    string
	}{{rangerclient.WildcardsAsPolaris, true, "also for the schemas inside lake.sales"}, {rangerclient.WildcardsPerSchema, false, "Polaris, and the engines behind it"}} {
		l := openWith(t, "store", settings{options: rangerclient.Options{NestedWildcards: c.setting}})
		l.root("GRANT CREATE TABLE ON SCHEMA sales, sales.eu TO dan")
		for _, table := range []string{"sales.t", "sales.eu.t"} {
			if _, _, err := l.ask("dan", "CREATE TABLE "+table+" (id INT)"); err != nil {
				t.Fatal(err)
			}
		}
		_, warnings, err := l.ask("root", "GRANT SELECT ON ALL TABLES IN SCHEMA sales TO ann")
		if err != nil || !strings.Contains(warnings, c.says) {
			t.Errorf("%q: %s %v", c.setting, warnings, err)
		}
		l.root("GRANT USE ON SCHEMA sales.eu TO ann")
		l.may("SELECT COUNT(*) FROM sales.t", map[string]bool{"ann": true, "ben": false})
		l.may("SELECT COUNT(*) FROM sales.eu.t", map[string]bool{"ann": c.deep, "ben": false})
		rows, _, err := l.ask("root", "CHECK ACCESS SELECT ON sales.eu.t FOR USER ann")
		if err != nil || strings.HasPrefix(rows, "true|") != c.deep {
			t.Errorf("%q: %s %v", c.setting, rows, err)
		}
		l.root("REVOKE SELECT ON ALL TABLES IN SCHEMA sales FROM ann")
		l.may("SELECT COUNT(*) FROM sales.t", map[string]bool{"ann": false})
	}
}

// TestRangerDecides: with the setting it is the policy server that says who may grant
// everything: its administrators, and those of the service; who is an administrator of
// this server alone may not.
func TestRangerDecides(t *testing.T) {
	for _, sink := range sinks {
		t.Run(sink, func(t *testing.T) {
			l, ctx := openWith(t, sink, settings{rangerDecides: true}), context.Background()
			denied := func(user, text string) {
				t.Helper()
				if _, _, err := l.ask(user, text); !fault.Is(err, fault.Denied) {
					t.Errorf("%s: %s: %v", user, text, err)
				}
			}
			allowed := func(user, text string) {
				t.Helper()
				if _, _, err := l.ask(user, text); err != nil {
					t.Errorf("%s: %s: %v", user, text, err)
				}
			}
			for _, text := range []string{
				"GRANT SELECT ON customers TO dan", "EXPLAIN GRANT SELECT ON customers TO dan", "DENY SELECT ON customers TO dan", "CREATE ROLE extra",
				"GRANT teller TO dan", "CALL system.cleanup_traversal()",
			} {
				denied("root", text) // unknown to the policy server
				denied("ann", text)
			}
			ann, err := l.store.User(ctx, "ann")
			if err != nil {
				t.Fatal(err)
			}
			ann.AdminRoles = []string{"ROLE_SYS_ADMIN"}
			if _, err := l.store.UpdateUser(ctx, ann); err != nil {
				t.Fatal(err)
			}
			s, err := l.store.Service(ctx, "polaris")
			if err != nil {
				t.Fatal(err)
			}
			s.Configs = model.Strings{"service.admin.users": "other, cat", "service.admin.groups": "nobody,eu"}
			if _, err := l.store.UpdateService(ctx, s); err != nil {
				t.Fatal(err)
			}
			allowed("ann", "GRANT SELECT ON customers TO dan")
			allowed("ann", "DENY SELECT ON customers TO cat")
			allowed("cat", "REVOKE SELECT ON customers FROM cat") // of the service, by name
			allowed("ben", "GRANT SELECT ON customers TO dan WITH GRANT OPTION")
			allowed("ann", "GRANT USE ON SCHEMA bank TO cat")
			allowed("dan", "GRANT SELECT ON customers TO cat") // may pass it on
			denied("dan", "GRANT SELECT ON payments TO cat")
			allowed("ann", "CREATE ROLE extra")
			allowed("ben", "DROP ROLE extra")
			denied("root", "DROP ROLE teller")
			l.may("SELECT COUNT(*) FROM customers", map[string]bool{"dan": true, "cat": true, "ben": false})
		})
	}
}

// TestManagedElsewhere: on a catalog whose access is managed elsewhere nothing is
// granted, and the refusal says where it is.
func TestManagedElsewhere(t *testing.T) {
	l := openWith(t, "store", settings{managedBy: map[string]string{"lake": "the roles of Polaris"}})
	for _, text := range []string{
		"GRANT SELECT ON customers TO ann", "DENY SELECT ON customers TO ann", "REVOKE SELECT ON customers FROM ann", "EXPLAIN GRANT USE ON SCHEMA bank TO ann",
		"GRANT CREATE NAMESPACE ON CATALOG lake TO ann",
	} {
		for _, user := range []string{"root", "ann"} {
			if _, _, err := l.ask(user, text); !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "not managed by this server, but by the roles of Polaris") {
				t.Errorf("%s: %s: %v", user, text, err)
			}
		}
	}
	if p := l.policies(); p != "" {
		t.Errorf("written:\n%s", p)
	}
}

// TestZones: what lies in a security zone is granted in that zone, where no other
// policy acts, and taken back there.
func TestZones(t *testing.T) {
	for _, sink := range sinks {
		t.Run(sink, func(t *testing.T) {
			l, ctx := openOver(t, sink), context.Background()
			l.root("GRANT SELECT ON customers, payments TO ann")
			_, err := l.store.CreateZone(ctx, &model.Zone{
				Name: "vault", AdminUsers: []string{"admin"}, AuditUsers: []string{"admin"},
				Services: map[string]model.ZoneService{"polaris": {Resources: []map[string][]string{{
					"root": {"*"}, "catalog": {"lake"}, "namespace": {"bank"}, "table": {"customers"},
				}}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := l.source.Reload(ctx); err != nil {
				t.Fatal(err)
			}
			l.may("SELECT COUNT(*) FROM customers", map[string]bool{"ann": false, "ben": false})
			l.may("SELECT COUNT(*) FROM payments", map[string]bool{"ann": true, "ben": false})
			l.root("GRANT SELECT ON customers TO ben")
			l.may("SELECT COUNT(*) FROM customers", map[string]bool{"ann": false, "ben": true})
			inside := 0
			list, err := l.store.Policies(ctx, "polaris")
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range list {
				if p.ZoneName == "vault" && strings.HasPrefix(p.Name, "sqe-grant-") {
					inside++
				}
			}
			if inside != 1 {
				t.Errorf("%d policies in the zone:\n%s", inside, l.policies())
			}
			if rows, _, err := l.ask("root", "CHECK ACCESS SELECT ON customers FOR USER ben"); err != nil || !strings.HasPrefix(rows, "true|") {
				t.Errorf("%s %v", rows, err)
			}
			if rows, _, err := l.ask("root", "CHECK ACCESS SELECT ON customers FOR USER ann"); err != nil || !strings.HasPrefix(rows, "false|") {
				t.Errorf("%s %v", rows, err)
			}
			if rows, _, err := l.ask("root", "SHOW ACCESS ON customers"); err != nil || !strings.Contains(rows, "USER|ben|SELECT|ALLOW") || strings.Contains(rows, "|ann|") {
				t.Errorf("%s %v", rows, err)
			}
			l.root("DENY SELECT ON customers TO GROUP eu")
			if rows, _, err := l.ask("root", "SHOW ACCESS ON customers"); err != nil || !strings.Contains(rows, "USER|ben|SELECT|DENY") || strings.Contains(rows, "ALLOW") {
				t.Errorf("%s %v", rows, err)
			}
			l.may("SELECT COUNT(*) FROM customers", map[string]bool{"ben": false})
			l.root("REVOKE SELECT ON customers FROM GROUP eu")
			l.may("SELECT COUNT(*) FROM customers", map[string]bool{"ben": true})
			l.root("REVOKE SELECT ON customers FROM ben")
			l.may("SELECT COUNT(*) FROM customers", map[string]bool{"ben": false})
			l.may("SELECT COUNT(*) FROM payments", map[string]bool{"ann": true})
		})
	}
}
