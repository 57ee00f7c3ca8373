//go:build e2e

package keycloak

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sqe/tests/sqetest"
)

// connectorScript is Oracle's client with MySQL 9's method for tokens, and
// COM_CHANGE_USER to somebody else.
const connectorScript = `
import sys, mysql.connector
port, token_file, second = int(sys.argv[1]), sys.argv[2], open(sys.argv[3]).read()
def one(c, text):
    k = c.cursor(); k.execute(text); row = k.fetchone(); k.close(); return row[0]
c = mysql.connector.connect(host="127.0.0.1", port=port, user=sys.argv[4], use_pure=True, ssl_verify_cert=False,
    auth_plugin="authentication_openid_connect_client", openid_token_file=token_file)
print(one(c, "SELECT CURRENT_USER()"))
c = mysql.connector.connect(host="127.0.0.1", port=port, user="anna_analyst", password=open(token_file).read(), use_pure=True, ssl_verify_cert=False)
print(one(c, "SELECT CURRENT_USER()"))
c.cmd_query("SET @mine = 'anna'")
c.cmd_change_user(username="carol", password=second)
print(one(c, "SELECT CURRENT_USER()"))
print(one(c, "SELECT @mine"))
try:
    c.cmd_change_user(username="root", password=second)
    print("changed")
except mysql.connector.Error as e:
    print(e.errno)
`

// TestConnector: mysql-connector-python logs in with a token file by MySQL 9's
// method and with a token as the password, and changes the user of a connection.
func TestConnector(t *testing.T) {
	s := serve(t, "tokens", provider())
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	anna := fleet.secret(kc.Token(t, "sqe-cli", "anna_analyst").Access)
	script := write("client.py", connectorScript)
	python := filepath.Join(sqetest.Cache(), "venv", "bin", "python")
	run := func(user, second string) string {
		t.Helper()
		cmd := exec.CommandContext(within(t, patience), python, script, strconv.Itoa(s.Port), write("anna.jwt", anna), write("second", second), user)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	got := strings.Fields(run("anna_analyst", "demo"))
	want := "anna_analyst@127.0.0.1 anna_analyst@127.0.0.1 carol@127.0.0.1 None 1045"
	if strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}
	cmd := exec.CommandContext(within(t, patience), python, script, strconv.Itoa(s.Port), filepath.Join(dir, "anna.jwt"), filepath.Join(dir, "second"), "carol")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "Access denied for user 'carol'") {
		t.Errorf("another name than the token's: %v, %s", err, out)
	}
}

// TestWithoutTLS: where plain connections are allowed a token never travels in the
// clear; it does not fit into what is encrypted with the server's public key.
func TestWithoutTLS(t *testing.T) {
	s := serve(t, "tokens", provider())
	path, err := exec.LookPath("mariadb")
	if err != nil {
		t.Fatal(err)
	}
	anna := fleet.secret(kc.Token(t, "sqe-cli", "anna_analyst").Access)
	for _, tls := range []string{"--skip-ssl", "--ssl"} {
		cmd := exec.CommandContext(within(t, patience), path, "--no-defaults", "-h127.0.0.1", "-P"+strconv.Itoa(s.Port), "-uanna_analyst", tls, "--skip-ssl-verify-server-cert", "-BNe", "SELECT CURRENT_USER()")
		cmd.Env = append(os.Environ(), "MYSQL_PWD="+anna)
		out, err := cmd.CombinedOutput()
		if tls == "--ssl" {
			if err != nil || strings.TrimSpace(string(out)) != "anna_analyst@127.0.0.1" {
				t.Errorf("with TLS: %v, %s", err, out)
			}
			continue
		}
		if err == nil || !strings.Contains(string(out), "3159") {
			t.Errorf("without TLS: %v, %s", err, out)
		}
	}
}
