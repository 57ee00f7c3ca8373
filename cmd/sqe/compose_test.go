package main

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"sqe/config"
)

// composition is what is looked at of docker/compose.yaml.
type composition struct {
	Services map[string]struct {
		Image string
		Build struct{ Context, Dockerfile string }
		// A list of names, or conditions by name.
		DependsOn   yaml.Node `yaml:"depends_on"`
		Healthcheck yaml.Node
		Volumes     []string
		Ports       []string
		NetworkMode string `yaml:"network_mode"`
	}
	Volumes map[string]any
}

const docker = "../../docker"

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func readComposition(t *testing.T) composition {
	t.Helper()
	var c composition
	if err := yaml.Unmarshal([]byte(readFile(t, docker+"/compose.yaml")), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCompose checks docker/compose.yaml as far as that goes without an engine:
// images of one version, files that are there, ports for this machine alone, and
// services that exist.
func TestCompose(t *testing.T) {
	c := readComposition(t)
	for _, name := range []string{"keycloak", "ranger-db", "ranger-admin", "polaris", "s3", "engine", "sqe"} {
		if _, ok := c.Services[name]; !ok {
			t.Errorf("there is no service %s", name)
		}
	}
	pinned := regexp.MustCompile(`^[a-z0-9./-]+:(\$\{[A-Z_]+:-)?[A-Za-z]*\.?\d[\w.:-]*\}?$`)
	for name, s := range c.Services {
		switch {
		case s.Image != "" && !pinned.MatchString(s.Image):
			t.Errorf("%s: the image %s has no version", name, s.Image)
		case s.Image == "":
			if _, err := os.Stat(filepath.Join(docker, s.Build.Context, s.Build.Dockerfile)); err != nil || s.Build.Dockerfile == "" {
				t.Errorf("%s has no image, and what it is built from is missing: %v", name, err)
			}
		}
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			if !strings.HasPrefix(from, ".") {
				if _, ok := c.Volumes[from]; !ok {
					t.Errorf("%s: the volume %s is not declared", name, from)
				}
				continue
			}
			if _, err := os.Stat(filepath.Join(docker, from)); err != nil || !strings.HasSuffix(v, ":ro") {
				t.Errorf("%s: %s is missing or may be written: %v", name, v, err)
			}
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s: port %s is open to other machines", name, p)
			}
		}
		for i, other := range s.DependsOn.Content {
			conditions := s.DependsOn.Kind == yaml.MappingNode
			if conditions && i%2 == 1 {
				continue
			}
			o, ok := c.Services[other.Value]
			if !ok || conditions && o.Healthcheck.IsZero() {
				t.Errorf("%s waits for %s, which does not exist or cannot say that it is there", name, other.Value)
			}
		}
	}
	for _, script := range []string{"suite", "ranger/start", "stack/bootstrap", "stack/suite"} {
		if out, err := exec.Command("bash", "-n", filepath.Join(docker, script)).CombinedOutput(); err != nil {
			t.Errorf("%s: %v %s", script, err, out)
		}
	}
}

// TestComposeConfigurations: the configurations of the containers are read, and name
// servers that there are.
func TestComposeConfigurations(t *testing.T) {
	c := readComposition(t)
	cfg, err := config.Load(docker + "/stack/sqe.toml")
	if err != nil {
		t.Fatal(err)
	}
	addresses := []string{cfg.Catalogs[0].URI, cfg.Catalogs[0].S3Endpoint, cfg.Policies[0].URL, cfg.Identity[0].Issuer}
	properties := map[string]string{}
	for _, line := range strings.Split(readFile(t, docker+"/stack/polaris.properties"), "\n") {
		if k, v, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			properties[k] = v
			if strings.HasPrefix(v, "http") {
				addresses = append(addresses, v)
			}
		}
	}
	known := map[string]string{"keycloak": "8080", "polaris": "8181", "s3": "9000", "ranger-admin": "6080"}
	for _, a := range addresses {
		u, err := url.Parse(a)
		if err != nil {
			t.Fatal(err)
		}
		s, ok := c.Services[u.Hostname()]
		if !ok || known[u.Hostname()] != u.Port() || !slices.ContainsFunc(s.Ports, func(p string) bool { return strings.HasSuffix(p, ":"+u.Port()) }) {
			t.Errorf("%s is no service with that port", a)
		}
	}
	if len(addresses) != 6 {
		t.Errorf("addresses: %v", addresses)
	}
	// Both read the same policies, for tokens of the same issuer.
	if got := properties["quarkus.oidc.auth-server-url"]; got != cfg.Identity[0].Issuer {
		t.Errorf("Polaris takes tokens of %s, SQE of %s", got, cfg.Identity[0].Issuer)
	}
	const ranger = "polaris.authorization.ranger."
	for key, want := range map[string]string{
		ranger + "service-name":                              cfg.Policies[0].PolarisService,
		ranger + "authz.default.policy.rest.url":             cfg.Policies[0].URL,
		ranger + "authz.default.policy.rest.client.username": cfg.Policies[0].Username,
		ranger + "authz.default.policy.rest.client.password": cfg.Policies[0].Password.Reveal(),
		ranger + "authz.default.use.rangerGroups":            "true",
		"polaris.authorization.type":                         "ranger",
		"polaris.oidc.principal-mapper.name-claim-path":      "preferred_username",
	} {
		if properties[key] != want {
			t.Errorf("%s is %q", key, properties[key])
		}
	}
	// What the guide says of Polaris is what the container has.
	guide := readFile(t, "../../docs/stack.md")
	_, block, _ := strings.Cut(guide, "```properties\n")
	block, _, ok := strings.Cut(block, "```")
	if !ok {
		t.Fatal("docs/stack.md shows no properties")
	}
	for _, line := range strings.Split(strings.TrimSpace(block), "\n") {
		key, value, _ := strings.Cut(line, "=")
		got, ok := properties[key]
		if !ok || value != got && !strings.Contains(value, "example") && value != "..." && !strings.HasPrefix(value, "/") {
			t.Errorf("the guide has %s, and the container %q", line, got)
		}
	}
	// Whom the script makes known is in the realm.
	realm := readFile(t, "../../tests/keycloaktest/realms/sqe-realm.json")
	for _, m := range regexp.MustCompile(`(\w+):(engineering|analytics|governance)\b`).FindAllStringSubmatch(readFile(t, docker+"/stack/bootstrap"), -1) {
		if !strings.Contains(realm, `"username": "`+m[1]+`"`) {
			t.Errorf("%s is not in the realm", m[1])
		}
	}
}
