package config

import (
	"strings"
	"testing"
)

const someCatalog = "[[catalogs]]\nname = \"c\"\npath = \"c.db\"\nwarehouse = \"w\"\n"

const goodProvider = someCatalog + `
[[identity-providers]]
name = "keycloak"
issuer = "https://keycloak.example/realms/lake"
audience = ["sqe"]
`

// TestIdentityProviders: a provider that is half configured is an error at the key
// that is missing; the whole one beside it is none.
func TestIdentityProviders(t *testing.T) {
	second := "\n[[identity-providers]]\nname = \"other\"\nissuer = \"https://other.example\"\naudience = [\"sqe\"]\n"
	c, problems := read(goodProvider+second+"prefix = \"o:\"\n\n[[identity-providers]]\nname = \"local\"\nkind = \"users\"\n", "/", nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if p := c.Identity[0]; p.NameClaim != "preferred_username" || len(p.RolesClaims) != 1 || p.RolesClaims[0] != "realm_access.roles" || p.ClockSkew.String() != "30s" {
		t.Errorf("%+v", p)
	}
	for _, x := range []struct{ text, key, want string }{
		{strings.Replace(goodProvider, "audience = [\"sqe\"]", "", 1), "audience", "is missing"},
		{strings.Replace(goodProvider, "[\"sqe\"]", "[]", 1), "audience", "is missing"},
		{strings.Replace(goodProvider, "[\"sqe\"]", "[\"\"]", 1), "audience", "is missing"},
		{strings.Replace(goodProvider, "issuer = \"https://keycloak.example/realms/lake\"", "", 1), "issuer", "is missing"},
		{strings.Replace(goodProvider, "https://keycloak", "http://keycloak", 1), "issuer", "in the clear"},
		{strings.Replace(goodProvider, "https://keycloak", "keycloak", 1), "issuer", "must be like"},
		{strings.Replace(goodProvider, "https://", "https://user:secret-text@", 1), "issuer", "must be like"},
		{goodProvider + "algorithms = [\"RS256\", \"HS256\"]", "algorithms", "HS256"},
		{goodProvider + "algorithms = [\"none\"]", "algorithms", "none"},
		{goodProvider + "clock-skew = \"1h\"", "clock-skew", "at most 5m"},
		{goodProvider + "name-claim = \"\"", "name-claim", "is empty"},
		{goodProvider + "passwords = true", "client-id", "passwords needs it"},
		{goodProvider + "client-secret = \"secret-text\"", "client-id", "client-secret needs it"},
		{goodProvider + "client-id = \"sqe\"\nintrospection-interval = \"30s\"", "client-secret", "introspection-interval needs it"},
		{goodProvider + "client-id = \"sqe\"\nclient-secret = \"secret-text\"\nclient-secret-file = \"f\"", "client-secret-file", "set one of them"},
		{goodProvider + "client-secret-file = \"no such file\"", "client-secret-file", "cannot be read"},
		{goodProvider + "token-use = \"both\"", "token-use", "must be"},
		{goodProvider + "token-use = \"id\"\nclient-id = \"sqe\"\npasswords = true", "passwords", "takes ID tokens alone"},
		{goodProvider + "token-use = \"id\"\nservice-clients = [\"etl\"]", "service-clients", "takes ID tokens alone"},
		{goodProvider + "token-use = \"id\"\nclient-id = \"sqe\"\nclient-secret = \"x\"\nintrospection-interval = \"30s\"", "introspection-interval", "takes ID tokens alone"},
		{goodProvider + "scopes = [\"openid\"]", "scopes", "neither passwords nor service-clients"},
		{goodProvider + "groups-claim = \"\"\nadmin-groups = [\"boss\"]", "admin-groups", "nobody has groups"},
		{goodProvider + "groups-claim = \"\"\nstrip-group-slash = true", "strip-group-slash", "nobody has groups"},
		{goodProvider + "roles-claims = [\"\"]\nadmin-roles = [\"boss\"]", "admin-roles", "nobody has roles"},
		{goodProvider + "client-id = \"sqe\"\npasswords = true\nauthorized-parties = [\"sqe-cli\"]", "passwords", "does not have client-id"},
		{goodProvider + "service-clients = [\"etl\"]\nauthorized-parties = [\"sqe-cli\"]", "service-clients", "does not have \"etl\""},
		{goodProvider + "authorized-parties = [\"\"]", "authorized-parties", "empty name"},
		{goodProvider + "service-clients = [\"\"]", "service-clients", "empty name"},
		{goodProvider + "admin-roles = [\"\"]", "admin-roles", "empty name"},
		{goodProvider + "attributes = { department = \"\" }", "attributes", "empty name"},
		{goodProvider + "roles-claims = [\"a\", \"\"]", "roles-claims", "empty name"},
		{strings.Replace(goodProvider, "issuer =", "kind = \"users\"\nissuer =", 1), "issuer", "only a place in the order"},
		{strings.Replace(goodProvider, "issuer =", "kind = \"users\"\npasswords = true\nissuer =", 1), "passwords", "only a place in the order"},
		{goodProvider + "kind = \"saml\"", "kind", "must be"},
		{goodProvider + second, "prefix", "same principals"},
		{goodProvider + strings.Replace(second, "https://other.example", "https://keycloak.example/realms/lake", 1) + "prefix = \"o:\"", "issuer", "another provider"},
		{goodProvider + "\n[[identity-providers]]\nname = \"a\"\nkind = \"users\"\n[[identity-providers]]\nname = \"b\"\nkind = \"users\"\n", "kind", "one place"},
	} {
		_, problems := read(x.text, t.TempDir(), nil)
		found := false
		for _, p := range problems {
			found = found || strings.HasSuffix(p.Key, "]."+x.key) && strings.Contains(p.Text, x.want)
			if strings.Contains(p.String(), "secret-text") {
				t.Errorf("a secret is shown: %s", p)
			}
		}
		if !found {
			t.Errorf("%s: %q is not among %v", x.key, x.want, problems)
		}
	}
	for _, good := range []string{
		"token-use = \"id\"", "client-id = \"sqe\"\npasswords = true\nservice-clients = [\"etl\"]\nauthorized-parties = [\"sqe\", \"etl\"]\nscopes = [\"openid\"]",
		"groups-claim = \"\"\nroles-claims = [\"\"]",
	} {
		if _, problems := read(goodProvider+good+"\n", "/", nil); len(problems) > 0 {
			t.Errorf("%s: %v", good, problems)
		}
	}
}
