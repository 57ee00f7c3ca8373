//go:build e2e

package stack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sqe/tests/keycloaktest"
	"sqe/tests/sqetest"
)

// pollInterval is how often the catalog reads its policies.
const pollInterval = time.Second

// account is a user of the policy store.
type account struct{ name, password string }

// Who administers the policy store, and who reads it.
var (
	admin  = account{"admin", "Store-passw0rd"}
	engine = account{"engine", "Engine-passw0rd"}
)

// The parts of a run, one of each.
var (
	kc     *keycloaktest.Keycloak
	lake   *restCatalog
	sqe    *sqetest.Server
	store  string // address of the policy store, with /service
	folder string
	people = &keycloaktest.People{Local: []string{"static"}}
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if folder, err = os.MkdirTemp("", "sqe-stack-"); err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if kc, err = keycloaktest.Start(filepath.Join(folder, "keycloak")); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, kc.Stop()) }()
	if err := begin(); err != nil {
		return 1, err
	}
	people.Keycloak, people.Server = kc, sqe
	code = m.Run()
	err = errors.Join(people.Close(), sqe.Stop(), lake.Stop(), people.Leaked(sqe, admin.password, engine.password))
	if strings.Contains(sqe.Output(), "panic") {
		err = errors.Join(err, errors.New("sqe panicked"))
	}
	if (code != 0 || err != nil) && lake.log != nil {
		fmt.Fprintf(os.Stderr, "sqe wrote:\n%s\nthe catalog wrote:\n%s\n", tail(sqe.Output()), tail(lake.log.String()))
	}
	return code, err
}

func tail(text string) string { return text[max(0, len(text)-6000):] }

// begin starts SQE with the configuration of the guide, makes the people known to its
// policy store, and starts the catalog.
func begin() error {
	var ports [4]int
	for i := range ports {
		var err error
		if ports[i], err = sqetest.FreePort(); err != nil {
			return err
		}
	}
	lakeFolder := filepath.Join(folder, "lake")
	given, err := givenServers()
	if err != nil {
		return err
	}
	// The tables of the demo are a second catalog, in which SQE decides alone.
	demo, err := sqetest.Demo(filepath.Join(folder, "demo"))
	if err == nil {
		err = demo.Stop()
	}
	if err != nil {
		return err
	}
	hash, err := sqetest.HashPassword("demo")
	if err != nil {
		return err
	}
	sections, err := guide("toml", 0)
	if err != nil {
		return err
	}
	login, policies, _ := strings.Cut(sections, "[policystore]")
	if given == nil {
		store = fmt.Sprintf("http://127.0.0.1:%d/service", ports[1])
		policies, err = replaced("[policystore]"+policies, `"0.0.0.0:6182"`, fmt.Sprintf("\"127.0.0.1:%d\"\nplain-http = true", ports[1]))
		lake = &restCatalog{Address: fmt.Sprintf("http://127.0.0.1:%d", ports[2]), Files: filepath.Join(lakeFolder, "warehouse")}
	} else {
		lake, store = given, os.Getenv("SQE_STACK_RANGER")+"/service"
		policies, err = rangerPolicies()
	}
	if err != nil {
		return err
	}
	config, err := replaced(login,
		"https://keycloak.example/realms/lake", kc.Issuer("sqe"), "https://polaris.example:8181/api/catalog", lake.Address, "/data/lake", lake.Files)
	if err != nil {
		return err
	}
	config += policies
	config = fmt.Sprintf("[server]\nport = %d\n\n[ops]\naddress = \"127.0.0.1:%d\"\n\n", ports[0], ports[3]) + config + fmt.Sprintf(`
[[identity-providers]]
name = "local"
kind = "users"

[[users]]
name = "static"
password-hash = %q

[[catalogs]]
name = "archive"
kind = "sqlite"
path = "demo/catalog.db"
warehouse = "demo/warehouse"
stored-name = "demo"
`, hash)
	for name, text := range map[string]string{"sqe.toml": config, "store-admin.password": admin.password + "\n", "engine.password": engine.password + "\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	if sqe, err = sqetest.Serve(filepath.Join(folder, "sqe.toml"), ports[0]); err != nil {
		return err
	}
	if given != nil {
		return nil
	}
	if err := introduce(); err != nil {
		return errors.Join(err, sqe.Stop())
	}
	lake, err = startCatalog(lakeFolder, ports[2], kc.Issuer("sqe"), strings.TrimSuffix(store, "/service"), engine.name, engine.password)
	if err != nil {
		return errors.Join(err, sqe.Stop())
	}
	return nil
}

// givenServers is a catalog that runs already, with a Ranger Admin in the place of
// the store and a Keycloak that keycloaktest finds; nil when the suite starts them.
// The people and services of docs/stack.md are there, and schemas of another run are
// not. docker/stack/suite sets the environment for docker/compose.yaml.
func givenServers() (*restCatalog, error) {
	address := os.Getenv("SQE_STACK_CATALOG")
	if address == "" {
		return nil, nil
	}
	for variable, who := range map[string]*account{"SQE_STACK_RANGER_ADMIN": &admin, "SQE_STACK_RANGER_USER": &engine} {
		name, password, ok := strings.Cut(os.Getenv(variable), ":")
		if !ok {
			return nil, fmt.Errorf("set %s to user:password", variable)
		}
		*who = account{name, password}
	}
	if os.Getenv("SQE_STACK_RANGER") == "" || os.Getenv("SQE_STACK_FILES") == "" {
		return nil, errors.New("set SQE_STACK_RANGER to the address of the policy server and SQE_STACK_FILES to the warehouse of the catalog")
	}
	return &restCatalog{Address: address, Prefix: os.Getenv("SQE_STACK_PREFIX"), Files: os.Getenv("SQE_STACK_FILES")}, nil
}

// rangerPolicies is the guide's section for policies from a Ranger Admin.
func rangerPolicies() (string, error) {
	policies, err := guide("toml", 1)
	if err != nil {
		return "", err
	}
	return replaced(policies, "https://ranger.example:6182", strings.TrimSuffix(store, "/service"), `username = "engine"`, fmt.Sprintf("username = %q", engine.name),
		`admin-username = "admin"`, fmt.Sprintf("admin-username = %q", admin.name))
}

// introduce makes people known to the policy store, with the commands of the guide.
func introduce() error {
	script, err := guide("sh", 0)
	if err == nil {
		script, err = replaced(script, "https://sqe.example:6182/service", store)
	}
	if err != nil {
		return err
	}
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
	cmd.Env = append(os.Environ(), "STORE_PASSWORD="+admin.password, "ENGINE_PASSWORD="+engine.password)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("the commands of docs/stack.md: %w\n%s", err, out)
	}
	return nil
}

// guide is block n of a language in docs/stack.md.
func guide(language string, n int) (string, error) {
	text, err := os.ReadFile(filepath.Join(sqetest.Root(), "docs", "stack.md"))
	if err != nil {
		return "", err
	}
	found := regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(found) <= n {
		return "", fmt.Errorf("docs/stack.md has %d blocks of %s", len(found), language)
	}
	return found[n][1], nil
}

// replaced replaces texts, each of which must be there.
func replaced(text string, pairs ...string) (string, error) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			return "", fmt.Errorf("docs/stack.md has no %s any more", pairs[i])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text, nil
}

func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// as runs a statement as somebody.
func as(t testing.TB, name, statement string) sqetest.Answer {
	t.Helper()
	return sqetest.Ask(within(t, patience), people.Session(t, name), statement)
}

// patience is how long a change of policies may take to reach the catalog.
const patience = 2 * time.Minute

// becomes waits until a statement is answered so, and returns how long that took.
func becomes(t testing.TB, name, statement, want string) time.Duration {
	t.Helper()
	start, got := time.Now(), ""
	for time.Since(start) < patience {
		if got = as(t, name, statement).Said(); got == want {
			return time.Since(start)
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("%s: %s\n%s\nwant\n%s", name, statement, got, want)
	return 0
}

// is holds a statement to its answer.
func is(t testing.TB, name, statement, want string) {
	t.Helper()
	if got := as(t, name, statement).Said(); got != want {
		t.Errorf("%s: %s\n%s\nwant\n%s", name, statement, got, want)
	}
}

// does runs a statement that must succeed, and waits for the catalog to permit it.
func does(t testing.TB, name, statement string) {
	t.Helper()
	var a sqetest.Answer
	for start := time.Now(); time.Since(start) < patience; time.Sleep(50 * time.Millisecond) {
		if a = as(t, name, statement); a.Err == nil {
			return
		}
	}
	t.Fatalf("%s: %s: %v", name, statement, a.Err)
}

// control is the status with which the catalog itself answers somebody's request.
func control(t testing.TB, name, path string) int {
	t.Helper()
	status, _, err := ask(within(t, patience), http.MethodGet, lake.Address+path, people.Token(t, name), nil)
	if err != nil {
		t.Fatal(err)
	}
	return status
}

// controls waits until the catalog itself answers so.
func controls(t testing.TB, name, path string, want int) time.Duration {
	t.Helper()
	start, got := time.Now(), 0
	for time.Since(start) < patience {
		if got = control(t, name, path); got == want {
			return time.Since(start)
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("%s: %s: %d, want %d", name, path, got, want)
	return 0
}
