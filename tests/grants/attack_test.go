package grants

import (
	"context"
	"strings"
	"testing"

	"sqe/fault"
	"sqe/identity"
	"sqe/rangerclient/model"
)

// told is everything that a user learns from a statement.
func (l *lake) told(user, text string) string {
	rows, warnings, err := l.ask(user, text)
	if err != nil {
		return fault.KindOf(err).String() + ": " + err.Error()
	}
	return "ok " + rows + "\n" + warnings
}

// TestNoOracle: whoever may not grant learns from no statement about access which
// objects there are, who else has what, or who is denied something.
func TestNoOracle(t *testing.T) {
	l := open(t)
	// ann has something of her own, so that she is let in somewhere.
	l.root("GRANT SELECT ON payments TO ann")
	l.root("GRANT CREATE TABLE, CREATE VIEW ON SCHEMA sales TO dan")
	l.root("GRANT ALL ON CATALOG lake TO dan")
	statements := []string{
		"GRANT SELECT ON %s TO ben", "GRANT SELECT ON %s TO ann", "GRANT SELECT ON TABLE %s TO ben", "GRANT SELECT ON VIEW %s TO ben", "EXPLAIN GRANT SELECT ON %s TO ben",
		"GRANT DROP ON %s TO ben WITH GRANT OPTION", "GRANT SELECT ON %s TO nosuchuser", "GRANT SELECT ON %s TO ROLE teller, GROUP eu, PUBLIC",
		"REVOKE SELECT ON %s FROM ben", "REVOKE ALL ON TABLE %s FROM ben", "REVOKE ALL ON %s FROM ben", "REVOKE GRANT OPTION FOR SELECT ON %s FROM ben",
		"EXPLAIN REVOKE SELECT ON %s FROM ben", "EXPLAIN REVOKE ALL ON TABLE %s FROM ben", "REVOKE SELECT ON %s FROM ann", "REVOKE SELECT ON VIEW %s FROM ben",
		"DENY SELECT ON %s TO ben", "DENY SELECT ON %s TO root", "EXPLAIN DENY SELECT ON %s TO ben", "REVOKE USE ON SCHEMA sales FROM ben", "REVOKE ALL ON SCHEMA sales FROM ben",
		"SHOW GRANTS ON %s", "SHOW GRANTS ON TABLE %s", "SHOW GRANTS ON VIEW %s", "SHOW ACCESS ON %s", "SHOW GRANTS TO ben", "SHOW EFFECTIVE GRANTS FOR USER ben",
		"SHOW GRANTS", "SHOW EFFECTIVE GRANTS", "SHOW GRANTS ON SCHEMA sales", "SHOW GRANTS ON CATALOG lake",
		"CHECK ACCESS SELECT ON %s FOR USER ben", "CHECK ACCESS SELECT ON %s FOR USER ann", "CHECK ACCESS SELECT ON TABLE %s FOR USER ann", "CHECK ACCESS SELECT ON VIEW %s FOR USER ann",
		"CHECK ACCESS SELECT ON %s FOR ROLE teller", "CHECK ACCESS SELECT ON %s FOR ROLE senior", "EXPLAIN POLICY AS USER ben SELECT * FROM %s",
		"GRANT SELECT ON ALL TABLES IN SCHEMA sales TO ben", "REVOKE SELECT ON ALL TABLES IN SCHEMA sales FROM ben", "GRANT USE ON DATABASE hidden TO ben",
		"REVOKE USE ON DATABASE hidden FROM ben", "CALL system.cleanup_traversal()", "CALL system.cleanup_traversal(dry_run => TRUE)", "SHOW ROLE GRANTS FOR ROLE teller2",
		"SHOW ROLES", "SHOW ROLE GRANTS", "GRANT teller2 TO ann", "REVOKE teller2 FROM ben", "SHOW GRANTS FOR 'ben'@'%%'", "CREATE ROLE teller2", "DROP ROLE teller2",
	}
	all := func() map[string]string {
		out := map[string]string{}
		for _, s := range statements {
			text := strings.ReplaceAll(s, "%s", "sales.thing")
			out[text] = l.told("ann", strings.ReplaceAll(text, "%%", "%"))
		}
		return out
	}
	before := all()
	must := func(user, text string) {
		t.Helper()
		if _, _, err := l.ask(user, text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	same := func(world string) {
		t.Helper()
		for text, now := range all() {
			if now != before[text] {
				t.Errorf("%s: %s tells ann\n%s\nand else\n%s", world, text, now, before[text])
			}
		}
	}
	must("dan", "CREATE TABLE sales.thing (id INT)")
	same("there is a table")
	must("root", "GRANT SELECT ON sales.thing TO ben WITH GRANT OPTION")
	same("ben has it")
	must("root", "DENY SELECT ON sales.thing TO ben")
	same("ben is denied it")
	must("root", "REVOKE ALL ON TABLE sales.thing FROM ben")
	must("root", "CREATE ROLE teller2")
	must("root", "GRANT teller2 TO ben")
	same("ben has a role")
	must("root", "GRANT SELECT ON sales.thing TO ROLE teller2")
	same("a role of ben has it")
	must("root", "REVOKE ALL ON TABLE sales.thing FROM ROLE teller2")
	must("root", "GRANT SELECT ON customers TO ben")
	same("ben finds the catalog")
	must("root", "GRANT USE ON SCHEMA sales TO ben")
	same("ben finds the schema")
	must("root", "GRANT DROP ON sales.thing TO dan")
	must("dan", "DROP TABLE sales.thing")
	must("root", "REVOKE ALL ON TABLE sales.thing FROM dan")
	must("dan", "CREATE VIEW sales.thing AS SELECT 1 AS x")
	same("there is a view")
	// The control: what ann is given she is told of.
	must("root", "GRANT SELECT ON VIEW sales.thing TO ann")
	differs := 0
	for text, now := range all() {
		if now != before[text] {
			differs++
		}
	}
	if differs < 5 {
		t.Errorf("%d statements tell ann what she was given", differs)
	}
}

// TestNotMore: an owner passes on what it may and no more, by no spelling; and what is
// denied to it not at all.
func TestNotMore(t *testing.T) {
	l, ctx := open(t), context.Background()
	if _, err := l.store.CreateUser(ctx, &model.User{Name: "x:SELECT", Password: "Passw0rd-of-tests"}); err != nil {
		t.Fatal(err)
	}
	l.session(identity.Principal{Name: "x:SELECT"})
	l.root("GRANT SELECT ON customers TO ann WITH GRANT OPTION")
	l.root("GRANT USE ON SCHEMA bank TO dan, ben, 'x:SELECT'")
	before := l.policies()
	for _, text := range []string{
		"GRANT INSERT ON customers TO dan", "GRANT MODIFY ON customers TO ann", "GRANT DROP ON customers TO ann", "GRANT SELECT, DROP ON customers TO dan", "GRANT SELECT ON customers, payments TO dan",
		"GRANT SELECT ON ALL TABLES IN SCHEMA bank TO dan", "GRANT SELECT ON ALL TABLES IN CATALOG lake TO dan", "GRANT SELECT ON bank.* TO dan", "GRANT SELECT ON *.* TO dan", "GRANT SELECT ON * TO dan",
		"GRANT USE ON SCHEMA bank TO ann", "GRANT ALL ON CATALOG lake TO ann", "GRANT MANAGE ON CATALOG lake TO ann WITH GRANT OPTION", "GRANT SELECT ON SCHEMA bank TO dan", "GRANT SELECT ON CATALOG lake TO dan",
		"GRANT SELECT ON `customers*` TO dan", "GRANT SELECT ON `*` TO dan", "GRANT SELECT ON `custome?s` TO dan", "GRANT SELECT ON `bank`.`*` TO dan", "GRANT SELECT ON `%` TO dan",
		"GRANT SELECT ON `{USER}` TO dan", "GRANT SELECT ON `customers\\` TO dan", "GRANT SELECT ON `eu/x` TO dan", "GRANT SELECT ON customer_ TO dan", "GRANT SELECT ON CUSTOMERS TO dan",
		"GRANT SELECT ON customers TO '{USER}'", "GRANT SELECT ON customers TO `{OWNER}`", "GRANT SELECT ON customers TO ''", "GRANT SELECT ON customers TO '*'", "GRANT SELECT ON customers TO '%'@'%'",
		"GRANT SELECT ON customers TO ROLE '{USER}'", "GRANT SELECT ON customers TO USER public", "GRANT SELECT ON customers TO 'public'", "GRANT SELECT ON customers TO 'public'@'%'",
		"GRANT SELECT ON customers TO 'dan'@'localhost'", "GRANT SELECT (id) ON customers TO dan", "GRANT SELECT ON customers TO dan IDENTIFIED BY 'x'", "GRANT SELECT ON customers TO CURRENT_USER",
		"GRANT SELECT/*x*/,INSERT ON customers TO dan", "GRANT INSERT ON customers TO dan; GRANT SELECT ON customers TO dan", "/*!50000 GRANT INSERT ON customers TO dan */", "GRANT INSERT -- \n ON customers TO dan",
		"GRANT teller TO ann", "GRANT SELECT ON customers TO ROLE `" + strings.Repeat("r", 5000) + "`", "GRANT SELECT ON `" + strings.Repeat("ü", 3000) + "` TO dan",
		"DENY SELECT ON customers TO root", "DENY SELECT ON customers TO PUBLIC", "REVOKE ALL ON CATALOG lake FROM ann", "REVOKE INSERT ON customers FROM dan", "REVOKE SELECT ON payments FROM dan",
		"GRANT SELECT ON VIEW customers TO dan", "GRANT SELECT ON customers.history TO dan", "GRANT SELECT ON `customers$snapshots` TO dan",
	} {
		_, _, err := l.ask("ann", text)
		if now := l.policies(); now != before {
			t.Fatalf("%.200s: %v; there is\n%s\nbefore:\n%s", text, err, now, before)
		}
		if err == nil || fault.Is(err, fault.Internal) {
			t.Errorf("%.200s: %v", text, err)
		}
	}
	// What she may.
	for _, text := range []string{"GRANT SELECT ON customers TO 'dan'@'%'", "GRANT SELECT ON `lake`.`bank`.`customers` TO 'x:SELECT' WITH GRANT OPTION"} {
		if _, _, err := l.ask("ann", text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	l.may("SELECT COUNT(*) FROM customers", map[string]bool{"dan": true, "x:SELECT": true, "ben": false})
	rows, _, err := l.ask("root", "SHOW GRANTS TO USER 'x:SELECT'")
	if err != nil || strings.Count(rows, "SELECT|lake.bank.customers|USER|x:SELECT|ALLOW|ann|") != 1 {
		t.Errorf("SHOW GRANTS: %s %v", rows, err)
	}
	if rows := l.told("root", "SHOW GRANTS TO USER x"); strings.Contains(rows, "customers") {
		t.Errorf("a user x has what x:SELECT has: %s", rows)
	}
	if _, _, err := l.ask("ann", "REVOKE SELECT ON customers FROM 'x:SELECT', dan"); err != nil {
		t.Error(err)
	}
	l.may("SELECT COUNT(*) FROM customers", map[string]bool{"dan": false, "x:SELECT": false})
	// A denial ends passing on, by name and by group, and by a pattern.
	for _, deny := range []string{"SELECT ON customers TO ann", "SELECT ON customers TO GROUP eu", "SELECT ON ALL TABLES IN SCHEMA bank TO ROLE teller", "SELECT ON ALL TABLES IN CATALOG lake TO PUBLIC"} {
		l.root("DENY " + deny)
		if _, _, err := l.ask("ann", "GRANT SELECT ON customers TO dan"); !fault.Is(err, fault.Denied) {
			t.Errorf("DENY %s, and ann grants: %v", deny, err)
		}
		l.root("REVOKE " + strings.Replace(deny, " TO ", " FROM ", 1))
		l.root("GRANT SELECT ON customers TO ann WITH GRANT OPTION") // a REVOKE takes both
	}
	if _, _, err := l.ask("ann", "GRANT SELECT ON customers TO dan"); err != nil {
		t.Errorf("the control: %v", err)
	}
}

// TestOwnerByGroup: who may pass something on by a group that the policy server knows
// passes it on, and nobody else does.
func TestOwnerByGroup(t *testing.T) {
	l := open(t)
	l.root("GRANT SELECT ON customers TO GROUP eu WITH GRANT OPTION")
	l.root("GRANT USE ON SCHEMA bank TO dan, cat")
	if _, _, err := l.ask("cat", "GRANT SELECT ON customers TO dan"); !fault.Is(err, fault.Denied) {
		t.Errorf("cat, who is not in the group: %v", err)
	}
	if _, _, err := l.ask("ben", "GRANT SELECT ON customers TO dan"); err != nil {
		t.Error(err)
	}
	l.may("SELECT COUNT(*) FROM customers", map[string]bool{"dan": true, "cat": false})
}

// TestAudit: the audit event of a statement about access names the grantees, also when
// it is refused, and the object when it is done.
func TestAudit(t *testing.T) {
	l := open(t)
	for _, c := range []struct {
		user, text, grantees, outcome string
		changes                       int
	}{
		{"root", "GRANT SELECT ON customers, payments TO 'ann'@'%', ROLE teller", "USER ann, ROLE teller", "ok", 2},
		{"ann", "GRANT SELECT ON customers TO 'dan'@'%'", "USER dan", "denied", 0},
		{"root", "DENY SELECT ON customers TO GROUP eu", "GROUP eu", "ok", 1},
		{"root", "REVOKE SELECT ON customers FROM GROUP eu, PUBLIC", "GROUP eu, GROUP public", "ok", 1},
		{"root", "GRANT teller TO dan", "USER dan", "ok", 0},
		{"ann", "REVOKE teller FROM dan", "USER dan", "denied", 0},
		{"root", "SELECT 1", "", "ok", 0},
	} {
		if s, _, err := l.sessions[c.user].Query(context.Background(), c.text); err == nil && s.Rows != nil {
			_, _ = print(s)
		}
		l.mu.Lock()
		e := l.last
		l.mu.Unlock()
		if strings.Join(e.Grantees, ", ") != c.grantees || e.Outcome != c.outcome || len(e.Changes) != c.changes || e.User != c.user {
			t.Errorf("%s: %+v", c.text, e)
		}
	}
}
