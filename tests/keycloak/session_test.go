//go:build e2e

package keycloak

import (
	"database/sql"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"sqe/tests/sqetest"
)

const introspecting = `client-id = "sqe"
client-secret = "sqe-secret"
introspection-interval = "1s"`

// short is a session of alice with a token of three seconds, in which use succeeded
// before it ended. On a busy machine that may take some tries.
func short(t *testing.T, s *sqetest.Server, use func(*sql.Conn) error) *sql.Conn {
	t.Helper()
	for try := 1; ; try++ {
		token := kc.Token(t, "sqe-short", "alice").Access
		ends := time.Unix(int64(claimsOf(t, token)["exp"].(float64)), 0)
		db := open(s, "alice", token)
		t.Cleanup(func() { _ = db.Close() })
		c, err := db.Conn(within(t, patience))
		if err == nil {
			t.Cleanup(func() { _ = c.Close() })
			err = use(c)
		}
		if err == nil {
			return c
		}
		if time.Now().Before(ends) || try == 20 {
			t.Fatalf("a token of three seconds, while it holds: %v", err)
		}
	}
}

// TestExpiry: a session ends at the first statement after its token expired, and
// its connection with it.
func TestExpiry(t *testing.T) {
	s := serve(t, "expiry", provider(`clock-skew = "0s"`)+usersLast)
	c := short(t, s, func(c *sql.Conn) error { return sqetest.Ask(within(t, patience), c, "SELECT 1").Err })
	// A pool hands this one on when a ping is answered.
	pooled := short(t, s, func(c *sql.Conn) error { return c.PingContext(within(t, patience)) })
	time.Sleep(3500 * time.Millisecond)
	if err := pooled.PingContext(within(t, patience)); err == nil {
		t.Error("a ping of a session that is over was answered")
	}
	got := sqetest.Ask(within(t, patience), c, "SELECT 1")
	if got.Number() != 1045 || !strings.Contains(got.Err.Error(), "expired; log in again") {
		t.Fatal(got.Text())
	}
	if err := c.PingContext(within(t, patience)); err == nil {
		t.Error("the connection is still open")
	}
}

// TestPasswords: names and passwords are exchanged at the provider, sessions that
// can be refreshed go on beyond their token, and services log in with their secret.
func TestPasswords(t *testing.T) {
	s := serve(t, "passwords", provider(`client-id = "sqe-short"`, `passwords = true`, `service-clients = ["etl"]`, `clock-skew = "0s"`)+usersLast)
	c := session(t, s, "alice", "alice-pw")
	for range 4 {
		got := sqetest.Ask(within(t, patience), c, "SELECT CURRENT_USER()")
		if who, err := got.One(); err != nil || who != "alice@127.0.0.1" {
			t.Fatal("the session was not refreshed:", who, err)
		}
		time.Sleep(1500 * time.Millisecond)
	}
	if got, err := login(t, s, "etl", "etl-secret").One(); err != nil || got != "service-account-etl@127.0.0.1" {
		t.Errorf("a service: %s, %v", got, err)
	}
	for name, try := range map[string][2]string{
		"wrong password":      {"alice", "wrong-password"},
		"name in other case":  {"ALICE", "alice-pw"}, // Keycloak takes it
		"e-mail address":      {"alice@sqe.test", "alice-pw"},
		"disabled":            {"disabled_dan", "disabled_dan-pw"},
		"wrong secret":        {"etl", "wrong-secret"},
		"client not listed":   {"polaris", "polaris-secret"},
		"user of the demo":    {"dave", "demo"}, // the provider comes first, and decides alone
		"nobody":              {"nobody", "nobody-pw"},
		"password of another": {"bob", "alice-pw"},
	} {
		if got := login(t, s, try[0], try[1]); got.Number() != 1045 {
			t.Errorf("%s: %s", name, got.Text())
		}
	}
}

// TestOrder: users of the configuration come first unless they are given a place.
func TestOrder(t *testing.T) {
	s := serve(t, "tokens", provider())
	if got, err := login(t, s, "dave", "demo").One(); err != nil || got != "dave@127.0.0.1" {
		t.Error("a user of the configuration:", got, err)
	}
	// alice is one too: her place in the order decides, also about a token.
	if got := login(t, s, "alice", kc.Token(t, "sqe-cli", "alice").Access); got.Number() != 1045 {
		t.Error(got.Text())
	}
}

// TestLogout: with introspection who logged out is out at once for new logins, and
// within the bound for sessions; a disabled user too. Without it the token counts.
func TestLogout(t *testing.T) {
	s := serve(t, "introspection", provider(introspecting))
	plain := serve(t, "tokens", provider())
	tokens := kc.Token(t, "sqe-cli", "anna_analyst")
	c := session(t, s, "", tokens.Access)
	if got := sqetest.Ask(within(t, patience), c, "SELECT 1"); got.Err != nil {
		t.Fatal(got.Err)
	}
	kc.Logout(t, "sqe-cli", tokens.Refresh)
	if got := login(t, s, "", tokens.Access); got.Number() != 1045 {
		t.Error("a token is used after logout:", got.Text())
	}
	if e := logins(t, s); e[len(e)-1].Reason != "inactive" {
		t.Errorf("%+v", e[len(e)-1])
	}
	time.Sleep(1100 * time.Millisecond)
	if got := sqetest.Ask(within(t, patience), c, "SELECT 1"); got.Number() != 1045 || !strings.Contains(got.Err.Error(), "ended this session") {
		t.Error("a session goes on after logout:", got.Text())
	}
	if got := login(t, plain, "", tokens.Access); got.Err != nil {
		t.Error("without introspection the bound is the token's expiry:", got.Text())
	}

	c = session(t, s, "", kc.Token(t, "sqe-cli", "ext_auditor").Access)
	kc.Enable(t, "ext_auditor", false)
	t.Cleanup(func() { kc.Enable(t, "ext_auditor", true) })
	time.Sleep(1100 * time.Millisecond)
	if got := sqetest.Ask(within(t, patience), c, "SELECT 1"); got.Number() != 1045 {
		t.Error("a session of a disabled user goes on:", got.Text())
	}
}

// TestSetRole: SET ROLE narrows to roles of one's own, and a reset of the
// connection ends that.
func TestSetRole(t *testing.T) {
	s := serve(t, "tokens", provider())
	c := session(t, s, "", kc.Token(t, "sqe-cli", "carol").Access)
	ask := func(text string) sqetest.Answer { return sqetest.Ask(within(t, patience), c, text) }
	const query = "SELECT COUNT(*) FROM bank.customers"
	if got := ask(query); got.Err != nil {
		t.Fatal(got.Err)
	}
	// data_steward, of the token and of Ranger's store, is what lets her read.
	for text, want := range map[string]uint16{
		"SET ROLE NONE": 1146, "SET ROLE sqe_admin": 1146, "SET ROLE ALL": 0, "SET ROLE data_steward": 0, "SET ROLE DEFAULT": 0, "SET ROLE 'sqe_admin', data_steward": 0,
	} {
		if got := ask(text); got.Err != nil {
			t.Errorf("%s: %v", text, got.Err)
		}
		if got := ask(query); got.Number() != want {
			t.Errorf("after %s: %s", text, got.Text())
		}
	}
	ask("SET ROLE NONE")
	for _, role := range []string{"analyst", "DATA_STEWARD", "`data_steward `", "no_such_role"} {
		if got := ask("SET ROLE " + role); got.Number() != 1142 {
			t.Errorf("SET ROLE %s: %s", role, got.Text())
		}
	}
	if got := ask(query); got.Number() != 1146 {
		t.Error("a refused SET ROLE changed something:", got.Text())
	}
}

// TestRotation: when Keycloak signs with a new key, the server takes it without a
// restart.
func TestRotation(t *testing.T) {
	s := serve(t, "tokens", provider())
	before := kc.Token(t, "sqe-cli", "anna_analyst").Access
	if got := login(t, s, "", before); got.Err != nil {
		t.Fatal(got.Err)
	}
	var realm map[string]any
	kc.Admin(t, http.MethodGet, "sqe", "", nil, &realm)
	kc.Admin(t, http.MethodPost, "sqe", "components", map[string]any{
		"name": "a newer key", "providerId": "rsa-generated", "providerType": "org.keycloak.keys.KeyProvider", "parentId": realm["id"],
		"config": map[string][]string{"priority": {strconv.FormatInt(time.Now().Unix(), 10)}, "enabled": {"true"}, "active": {"true"}, "algorithm": {"RS256"}, "keySize": {"2048"}},
	}, nil)
	after := kc.Token(t, "sqe-cli", "anna_analyst").Access
	if strings.Split(before, ".")[0] == strings.Split(after, ".")[0] {
		t.Fatal("Keycloak signs with the old key")
	}
	start := time.Now()
	for {
		got := login(t, s, "", after)
		if got.Err == nil {
			break
		}
		// The keys are fetched at most every 3 s because of a key that is not known.
		if got.Number() != 1045 || time.Since(start) > patience {
			t.Fatal(got.Text())
		}
		time.Sleep(1500 * time.Millisecond) // not so often that the address must wait
	}
	t.Logf("the new key was taken after %s", time.Since(start).Round(time.Millisecond))
	if got := login(t, s, "", before); got.Err != nil {
		t.Error("a token of the older key, which Keycloak still names:", got.Text())
	}
}

// TestDown: while Keycloak does not answer, sessions go on and new logins get a
// clear error.
func TestDown(t *testing.T) {
	s := serve(t, "down", provider(`keys-max-age = "2s"`, `timeout = "1s"`, `client-id = "sqe-cli"`, `passwords = true`)+usersLast)
	token := kc.Token(t, "sqe-cli", "anna_analyst").Access
	c := session(t, s, "", token)
	kc.Freeze(t)
	thawed := false
	thaw := func() {
		if !thawed {
			kc.Thaw(t)
			thawed = true
		}
	}
	t.Cleanup(thaw)
	time.Sleep(2100 * time.Millisecond)
	if got := sqetest.Ask(within(t, patience), c, "SELECT COUNT(*) FROM bank.customers"); got.Err != nil {
		t.Error("a session that was there:", got.Text())
	}
	for name, try := range map[string][2]string{"token": {"", token}, "password": {"anna_analyst", "anna_analyst-pw"}} {
		got := login(t, s, try[0], try[1])
		if got.Number() != 1429 || !strings.Contains(got.Err.Error(), "the identity provider does not answer") {
			t.Errorf("%s: %s", name, got.Text())
		}
	}
	thaw()
	deadline := time.Now().Add(patience)
	for {
		got := login(t, s, "", token)
		if got.Err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("Keycloak is back:", got.Text())
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// TestAudit: a login is recorded as the one that the token names, with groups and
// roles.
func TestAudit(t *testing.T) {
	s := serve(t, "tokens", provider())
	if got := login(t, s, "", kc.Token(t, "sqe-cli", "carol").Access); got.Err != nil {
		t.Fatal(got.Err)
	}
	e := logins(t, s)
	last, _ := json.Marshal(e[len(e)-1])
	if e[len(e)-1].User != "carol" || e[len(e)-1].Outcome != "ok" {
		t.Errorf("%s", last)
	}
}
