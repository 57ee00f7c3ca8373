//go:build e2e

package keycloak

import (
	"testing"

	"sqe/tests/sqetest"
)

// TestTokenLogin: a token as the password opens a session as the one it names,
// whose groups and roles decide what is seen.
func TestTokenLogin(t *testing.T) {
	s := serve(t, "tokens", provider())
	anna := kc.Token(t, "sqe-cli", "anna_analyst").Access
	for _, user := range []string{"", "anna_analyst"} {
		if got, err := login(t, s, user, anna).One(); err != nil || got != "anna_analyst@127.0.0.1" {
			t.Errorf("as %q: %s, %v", user, got, err)
		}
	}
	const query = "SELECT full_name, national_id FROM bank.customers ORDER BY cust_id LIMIT 3"
	carol := sqetest.Ask(within(t, patience), session(t, s, "", kc.Token(t, "sqe-cli", "carol").Access), query)
	masked := sqetest.Ask(within(t, patience), session(t, s, "", anna), query)
	if carol.Err != nil || masked.Err != nil || len(carol.Rows) != 3 || len(masked.Rows) != 3 {
		t.Fatal(carol.Text(), masked.Text())
	}
	if carol.Text() == masked.Text() {
		t.Error("an analyst sees what a data steward sees:", masked.Text())
	}
	auditor := sqetest.Ask(within(t, patience), session(t, s, "", kc.Token(t, "sqe-cli", "ext_auditor").Access), query)
	if auditor.Number() != 1146 {
		t.Error("who has no right reads:", auditor.Text())
	}
}
