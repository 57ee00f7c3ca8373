//go:build e2e

package keycloak

import (
	"database/sql"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sqe/tests/sqetest"
)

// TestManyLogins: 500 logins with tokens, eight at a time and each on a connection of
// its own, succeed, also when each is introspected. It prints how many there were in a
// minute.
func TestManyLogins(t *testing.T) {
	for name, s := range map[string]*sqetest.Server{"tokens": serve(t, "tokens", provider()), "introspection": serve(t, "introspection", provider(introspecting))} {
		token := kc.Token(t, "sqe-cli", "anna_analyst").Access
		const logins, clients = 500, 8
		var left atomic.Int64
		left.Store(logins)
		var wg sync.WaitGroup
		start := time.Now()
		for range clients {
			wg.Go(func() {
				for left.Add(-1) >= 0 {
					db := open(s, "anna_analyst", token)
					err := db.PingContext(within(t, patience))
					closed(t, db, err)
				}
			})
		}
		wg.Wait()
		took := time.Since(start)
		t.Logf("%s: %d logins in %s, %.0f a minute", name, logins, took.Round(time.Millisecond), logins/took.Minutes())
	}
}

func closed(t testing.TB, db *sql.DB, err error) {
	t.Helper()
	if cerr := db.Close(); err != nil || cerr != nil {
		t.Error(err, cerr)
	}
}
