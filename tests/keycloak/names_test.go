//go:build e2e

package keycloak

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"sqe/identity/oidc/oidctest"
	"sqe/tests/sqetest"
)

// TestNames: principals and roles whose names differ by case, a blank or the form of a
// letter alone are others, wherever a name counts: at the login, in CURRENT_USER(), in
// policies and what is remembered of them, in SET ROLE, in the audit log.
func TestNames(t *testing.T) {
	made := oidctest.New()
	t.Cleanup(made.Close)
	s := serve(t, "names", fmt.Sprintf("\n[[identity-providers]]\nname = \"made up\"\nissuer = %q\naudience = [\"sqe\"]\n", made.URL)+usersLast)
	token := func(name, role string) string {
		return made.Sign(changed(made.Claims(name), "groups", []string{}, "realm_access", map[string]any{"roles": []string{role}}))
	}
	const query = "SELECT COUNT(*) > 0 FROM bank.customers"
	others := []struct{ name, role string }{
		{"Nina", "Data_Steward"},
		{"nina ", "data_steward "},
		{" nina", " data_steward"},
		{"NINA", "DATA_STEWARD"},
		{"nína", "data_stéward"},
		{"nina\u00a0", "data_steward\u00a0"},
		// The names of users whom policies name, by whom no role is needed.
		{"Carol", "none"},
		{"carol ", "none"},
	}
	good := session(t, s, "nina", token("nina", "data_steward"))
	for range 2 { // the second time from what is remembered
		if got, err := sqetest.Ask(within(t, patience), good, query).One(); err != nil || got != "1" {
			t.Fatal(got, err)
		}
		for _, x := range others {
			c := session(t, s, "", token(x.name, x.role))
			ask := func(text string) sqetest.Answer { return sqetest.Ask(within(t, patience), c, text) }
			if got, err := ask("SELECT CONCAT('<', USER(), '> <', CURRENT_USER(), '>')").One(); err != nil || got != fmt.Sprintf("<%s@127.0.0.1> <%s@127.0.0.1>", x.name, x.name) {
				t.Errorf("%q: %q, %v", x.name, got, err)
			}
			if got := ask(query); got.Number() != 1146 {
				t.Errorf("%q with the role %q reads: %s", x.name, x.role, got.Text())
			}
			if got := ask("SET ROLE `data_steward`"); got.Number() != 1142 {
				t.Errorf("%q takes the role data_steward: %s", x.name, got.Text())
			}
			if got := ask("SET ROLE `" + x.role + "`"); got.Err != nil {
				t.Errorf("%q does not get the own role %q: %s", x.name, x.role, got.Text())
			}
			if e := logins(t, s); e[len(e)-1].User != x.name || e[len(e)-1].Outcome != "ok" {
				t.Errorf("audited as %+v", e[len(e)-1])
			}
		}
	}
	// A name that the token does not have exactly is nobody's.
	for _, user := range []string{"Nina", "nina ", " nina", "nína"} {
		if got := login(t, s, user, token("nina", "data_steward")); got.Number() != 1045 {
			t.Errorf("%q: %s", user, got.Text())
		}
	}
	// Nor does another spelling find a user of the configuration.
	for _, user := range []string{"Dave", "dave "} {
		if got := login(t, s, user, "demo"); got.Number() != 1045 {
			t.Errorf("%q: %s", user, got.Text())
		}
	}
	if got := login(t, s, "dave", "demo"); got.Err != nil {
		t.Error(got.Text())
	}
}

// TestTwoRealms: two realms of one Keycloak, each with an alice, make two people: each
// token is its realm's, and groups and roles of one count nothing in the other.
func TestTwoRealms(t *testing.T) {
	other := fmt.Sprintf("\n[[identity-providers]]\nname = \"other\"\nissuer = %q\naudience = [\"sqe\"]\nprefix = \"other:\"\nadmin-roles = [\"none\"]\n", kc.Issuer("other"))
	s := serve(t, "realms", provider()+other+usersLast)
	alice, stranger := kc.Token(t, "sqe-cli", "alice").Access, kc.TokenOf(t, "other", "sqe-cli", "alice").Access
	const query = "SELECT COUNT(*) > 0 FROM bank.customers"
	hers, theirs := session(t, s, "alice", alice), session(t, s, "other:alice", stranger)
	for range 2 {
		if got, err := sqetest.Ask(within(t, patience), hers, query).One(); err != nil || got != "1" {
			t.Error("alice:", got, err)
		}
		// She has sqe_admin and data_engineer there, and is in engineering.
		if got := sqetest.Ask(within(t, patience), theirs, query); got.Number() != 1146 {
			t.Error("alice of the other realm reads:", got.Text())
		}
		if got, err := sqetest.Ask(within(t, patience), theirs, "SELECT CURRENT_USER()").One(); err != nil || got != "other:alice@127.0.0.1" {
			t.Error(got, err)
		}
	}
	if got := sqetest.Ask(within(t, patience), theirs, "SHOW POLICIES"); got.Err == nil {
		t.Error("an administrator of the other realm:", got.Text())
	}
	for _, x := range [][2]string{{"alice", stranger}, {"other:alice", alice}, {"other:other:alice", stranger}} {
		if got := login(t, s, x[0], x[1]); got.Number() != 1045 {
			t.Errorf("%s: %s", x[0], got.Text())
		}
	}
}

// from connects from another address of the loopback interface.
func from(address string) sqetest.Option {
	mysql.RegisterDialContext(address, func(ctx context.Context, to string) (net.Conn, error) {
		return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}).DialContext(ctx, "tcp", to)
	})
	return func(c *mysql.Config) { c.Net = address }
}

// TestLimits: tokens that are refused make first the name at the address wait, then the
// address; others at other addresses do not wait. It is audited.
func TestLimits(t *testing.T) {
	s := serve(t, "expiry", provider(`clock-skew = "0s"`)+usersLast)
	good := kc.Token(t, "sqe-cli", "bob").Access
	forged := good[:len(good)-8] + "AAAAAAAA"
	try := func(address, user, token string) uint16 {
		db := open(s, user, token, from(address))
		defer db.Close()
		return sqetest.Ask(within(t, patience), db, "SELECT 1").Number()
	}
	const limit = 1041
	// Failures are forgotten meanwhile, the more of them the longer they take: the next
	// good token may just be taken. Where none ever waits, no round ends.
	for round := 1; ; round++ {
		n := 0
		for ; n < 10 || round > 1 && n < 100; n++ {
			if got := try("127.0.0.5", "bob", forged); got == limit && n >= 10 {
				break
			} else if got != 1045 {
				t.Fatal(n, got)
			}
		}
		if try("127.0.0.5", "bob", good) == limit {
			break
		}
		if round == 20 {
			t.Fatalf("a good token is taken after %d forged ones", n)
		}
	}
	if e := logins(t, s); e[len(e)-1].Outcome != "limit" || e[len(e)-1].User != "bob" {
		t.Errorf("%+v", e[len(e)-1])
	}
	if got := try("127.0.0.6", "bob", good); got != 0 {
		t.Error("the name at another address:", got)
	}
	if got := try("127.0.0.5", "anna_analyst", kc.Token(t, "sqe-cli", "anna_analyst").Access); got != 0 {
		t.Error("another name at the address:", got)
	}
	// Several at a time, so that failures come faster than they are forgotten.
	var guesses, refused atomic.Int64
	var all sync.WaitGroup
	deadline := time.Now().Add(patience)
	for range 8 {
		all.Go(func() {
			for time.Now().Before(deadline) {
				if try("127.0.0.7", fmt.Sprint("guess", guesses.Add(1)), forged) != limit {
					continue
				}
				if n := guesses.Load(); n < 100 {
					t.Error("the address waits after", n)
				}
				// Unless one more failure was forgotten just now.
				if try("127.0.0.7", "bob", good) == limit {
					refused.Add(1)
					return
				}
			}
		})
	}
	all.Wait()
	if refused.Load() == 0 {
		t.Error("an address that tries names does not wait")
	}
	if got := try("127.0.0.6", "bob", good); got != 0 {
		t.Error("another address:", got)
	}
}

// resetScript fills a session with all that it can hold, and looks what is left.
const resetScript = `
import sys, mysql.connector
port, token, second, how = int(sys.argv[1]), open(sys.argv[2]).read(), open(sys.argv[3]).read(), sys.argv[4]
c = mysql.connector.connect(host="127.0.0.1", port=port, user="carol", password=token, use_pure=True, ssl_verify_cert=False, database="bank")
def one(text):
    try:
        k = c.cursor(); k.execute(text); rows = k.fetchall() if k.with_rows else "ok"; k.close(); return rows
    except mysql.connector.Error as e:
        return e.errno
looks = ["SELECT DATABASE()", "SELECT @mine", "SELECT @@sql_mode", "SELECT @@time_zone", "SELECT @@autocommit", "SELECT @@transaction_read_only", "SELECT @@max_execution_time",
    "SELECT CURRENT_ROLE()", "SHOW WARNINGS", "SELECT COUNT(*) > 0 FROM bank.customers", "EXECUTE kept", "SELECT @@character_set_results"]
fresh = [one(x) for x in looks]
for text in ["USE information_schema", "SET @mine = 'secret'", "SET sql_mode = 'ANSI_QUOTES'", "SET time_zone = '+05:00'", "SET autocommit = 0",
        "SET SESSION TRANSACTION READ ONLY", "SET max_execution_time = 77", "PREPARE kept FROM 'SELECT 1'", "SET ROLE NONE", "SELECT 1/0", "START TRANSACTION READ ONLY"]:
    one(text)
k = c.cursor(prepared=True)
k.execute("SELECT ? + 1", (41,)); k.fetchall()
used = [one(x) for x in looks]
print("changed", sum(a != b for a, b in zip(fresh, used)), [(x, a, b) for x, a, b in zip(looks, fresh, used)])
handle = list(c._prepared_statements)[0] if getattr(c, "_prepared_statements", None) else 1
if how == "reset":
    c.cmd_reset_connection()
else:
    c.cmd_change_user(username="dave", password="demo")
    print("as", one("SELECT CURRENT_USER()"))
    c.cmd_change_user(username="carol", password=second, database="bank")
for x, before in zip(looks, fresh):
    now = one(x)
    if now != before:
        print("left", x, before, now)
`

// TestReset: after a reset of the connection, and after the user was changed there and
// back, nothing of the former session is left.
func TestReset(t *testing.T) {
	s := serve(t, "tokens", provider())
	dir := t.TempDir()
	h := home{t, dir}
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	token := write("token", fleet.secret(kc.Token(t, "sqe-cli", "carol").Access))
	second := write("second", "demo") // carol is a user of the configuration too, who comes first here
	script := write("reset.py", resetScript)
	s2 := serve(t, "expiry", provider(`clock-skew = "0s"`)+usersLast)
	for how, x := range map[string]struct {
		server        *sqetest.Server
		first, second string
	}{"reset": {s2, token, token}, "change": {s2, token, token}, "change of a user": {s, second, second}} {
		kind, _, _ := strings.Cut(how, " ")
		out, problem, err := h.run(filepath.Join(sqetest.Cache(), "venv", "bin", "python"), script, fmt.Sprint(x.server.Port), x.first, x.second, kind)
		if err != nil {
			t.Errorf("%s: %v: %s", how, err, problem)
		}
		var changed int
		if _, err := fmt.Sscanf(out, "changed %d", &changed); err != nil || changed < 6 { // database, variables, access mode, limit of time, prepared statement, roles
			t.Errorf("%s: the session holds nothing: %s", how, out)
		}
		if strings.Contains(out, "left") || kind == "change" && !strings.Contains(out, "dave@127.0.0.1") {
			t.Errorf("%s: %s", how, out)
		}
	}
}
