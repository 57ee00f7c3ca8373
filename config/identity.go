package config

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// IdentityProvider is one of [[identity-providers]].
type IdentityProvider struct {
	Name              string            `key:"name" required:"true" doc:"Name in logs and errors."`
	Kind              string            `key:"kind" default:"oidc" oneof:"oidc users" doc:"oidc: an OpenID Connect provider such as a realm of Keycloak. users: the place of [[users]] in the order; without such a section they come first."`
	Issuer            string            `key:"issuer" doc:"oidc, required: the address of the provider, exactly as its tokens name it (iss), such as \"https://keycloak.example/realms/lake\"."`
	Audience          []string          `key:"audience" doc:"oidc, required: a token must be for one of these (aud). Name this service alone: a token for another service must not open this one."`
	AuthorizedParties []string          `key:"authorized-parties" doc:"oidc: a token must have been issued to one of these clients (azp, else client_id); empty: to any client of the provider."`
	TokenUse          string            `key:"token-use" default:"access" oneof:"access id" doc:"oidc: which tokens count. access: access tokens. id: ID tokens, for providers whose access tokens nobody can verify; the audience is then the client that they are for. They are never shown to a catalog, and cannot be introspected: a user who logged out stays in until the token expires."`
	Algorithms        []string          `key:"algorithms" doc:"oidc: algorithms of signatures that count; empty: RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512 and EdDSA. None of them can be made with a key that clients know."`
	ClockSkew         Duration          `key:"clock-skew" default:"30s" doc:"oidc: how far the clocks of the provider and of this server may differ; at most 5m. A token counts that much longer."`
	KeysMaxAge        Duration          `key:"keys-max-age" default:"10m" min:"1s" doc:"oidc: how long the keys of the provider are used without asking again. When it does not answer then, logins are refused. A token with a key that is not known has the keys fetched at once, at most every 3 s."`
	NameClaim         string            `key:"name-claim" default:"preferred_username" doc:"oidc: the claim that names the principal. Exact: a token without it, or with control characters in it, is refused. A claim within objects is written with dots (\"a.b\")."`
	GroupsClaim       string            `key:"groups-claim" default:"groups" doc:"oidc: the claim that lists the groups; \"\": none."`
	StripGroupSlash   bool              `key:"strip-group-slash" default:"false" doc:"oidc: drop the slash with which Keycloak begins a group (\"/analytics\") when its mapper gives full paths."`
	RolesClaims       []string          `key:"roles-claims" doc:"oidc: the claims that list roles; empty: realm_access.roles, where Keycloak has the roles of a realm. [\"\"]: none."`
	Attributes        map[string]string `key:"attributes" doc:"oidc: attributes of the principal in policies, by the claim of each: { department = \"department\" }."`
	Prefix            string            `key:"prefix" doc:"oidc: put before names, groups and roles of this provider. With several providers each needs one of its own (one of them may have none): alice of one must not become alice of the other."`
	AdminRoles        []string          `key:"admin-roles" doc:"oidc: roles (without prefix) whose holders are administrators, as admin in [[users]]."`
	AdminGroups       []string          `key:"admin-groups" doc:"oidc: groups (without prefix) whose members are administrators."`
	ClientID          string            `key:"client-id" doc:"oidc: this server's client at the provider; needed for passwords and introspection."`
	ClientSecret      Secret            `key:"client-secret" doc:"oidc: the secret of the client."`
	ClientSecretFile  Path              `key:"client-secret-file" doc:"oidc: file that holds the secret instead (the first line)."`
	Passwords         bool              `key:"passwords" default:"false" doc:"oidc: take user names and passwords of the provider too, and exchange them for a token there (grant_type=password). This server then sees the passwords; prefer tokens."`
	ServiceClients    []string          `key:"service-clients" doc:"oidc: clients of the provider that may log in with their id and secret (grant_type=client_credentials). The principal is the one that their token names."`
	Scopes            []string          `key:"scopes" doc:"oidc: scopes to ask for when a password is exchanged."`
	Introspection     Duration          `key:"introspection-interval" default:"0s" doc:"oidc: ask the provider at each login whether the token is still active, and before a statement when the last answer is older than this: a user who logged out or was disabled is out after at most this time. \"0s\": not at all; they are out when the token expires."`
	Timeout           Duration          `key:"timeout" default:"5s" min:"100ms" doc:"oidc: time for one request to the provider."`
	AllowHTTP         bool              `key:"allow-http" default:"false" doc:"oidc: permit http:// to another machine; secrets and keys then travel in the clear."`
	CAFile            Path              `key:"ca-file" doc:"oidc: certificates (PEM) to trust beside the system's."`
}

// defaultRoles is where Keycloak has the roles of a realm.
const defaultRoles = "realm_access.roles"

var signatureAlgorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// checkIdentity finds providers that are half configured.
func (l *loader) checkIdentity(c *Config) {
	names, issuers, prefixes, users := map[string]bool{}, map[string]bool{}, map[string]bool{}, 0
	for i := range c.Identity {
		p, key := &c.Identity[i], fmt.Sprintf("identity-providers[%d]", i)
		if names[p.Name] {
			l.problem(key+".name", "%q is used twice; give each provider a name of its own", p.Name)
		}
		names[p.Name] = true
		if p.Kind == "users" {
			l.checkPlace(p, key)
			if users++; users > 1 {
				l.problem(key+".kind", "is users a second time; [[users]] have one place")
			}
			continue
		}
		l.checkOIDC(p, key)
		if p.Issuer != "" && issuers[p.Issuer] {
			l.problem(key+".issuer", "is that of another provider too; one of them decides about a token")
		}
		issuers[p.Issuer] = true
		if prefixes[p.Prefix] {
			l.problem(key+".prefix", "is that of another provider too: the same names would be the same principals")
		}
		prefixes[p.Prefix] = true
	}
}

// checkPlace finds settings of a provider in the section that is a place for [[users]].
func (l *loader) checkPlace(p *IdentityProvider, key string) {
	for name, set := range map[string]bool{
		"issuer": p.Issuer != "", "audience": len(p.Audience) > 0, "prefix": p.Prefix != "", "client-id": p.ClientID != "",
		"passwords": p.Passwords, "service-clients": len(p.ServiceClients) > 0, "introspection-interval": p.Introspection > 0,
		"admin-roles": len(p.AdminRoles) > 0, "admin-groups": len(p.AdminGroups) > 0, "authorized-parties": len(p.AuthorizedParties) > 0,
	} {
		if set {
			l.problem(key+"."+name, "is set beside kind = \"users\", which is only a place in the order; leave it out, or set kind = \"oidc\"")
		}
	}
}

// checkTogether finds settings that contradict each other.
func (l *loader) checkTogether(p *IdentityProvider, key string) {
	contradicts := func(name string, set bool, other string) {
		if set {
			l.problem(key+"."+name, "is set, and %s", other)
		}
	}
	if p.TokenUse == "id" {
		const only = "token-use = \"id\" takes ID tokens alone, with which there is none of this; leave one of them out"
		contradicts("passwords", p.Passwords, only)
		contradicts("service-clients", len(p.ServiceClients) > 0, only)
		contradicts("introspection-interval", p.Introspection > 0, only)
	}
	contradicts("scopes", len(p.Scopes) > 0 && !p.Passwords && len(p.ServiceClients) == 0, "neither passwords nor service-clients, which ask for scopes")
	contradicts("admin-groups", len(p.AdminGroups) > 0 && p.GroupsClaim == "", "groups-claim is \"\": nobody has groups")
	contradicts("strip-group-slash", p.StripGroupSlash && p.GroupsClaim == "", "groups-claim is \"\": nobody has groups")
	contradicts("admin-roles", len(p.AdminRoles) > 0 && len(p.RolesClaims) == 0, "roles-claims is [\"\"]: nobody has roles")
	if parties := p.AuthorizedParties; len(parties) > 0 {
		contradicts("passwords", p.Passwords && p.ClientID != "" && !slices.Contains(parties, p.ClientID), "authorized-parties does not have client-id, which these tokens are issued to")
		for _, c := range p.ServiceClients {
			contradicts("service-clients", !slices.Contains(parties, c), "authorized-parties does not have "+strconv.Quote(c)+", which its tokens are issued to")
		}
	}
	for name, list := range map[string][]string{
		"authorized-parties": p.AuthorizedParties, "service-clients": p.ServiceClients, "admin-roles": p.AdminRoles, "admin-groups": p.AdminGroups, "scopes": p.Scopes,
	} {
		if slices.Contains(list, "") {
			l.problem(key+"."+name, "holds an empty name")
		}
	}
	for attribute, claim := range p.Attributes {
		if attribute == "" || claim == "" {
			l.problem(key+".attributes", "holds an empty name")
		}
	}
}

func (l *loader) checkOIDC(p *IdentityProvider, key string) {
	u, err := url.Parse(p.Issuer)
	switch {
	case p.Issuer == "":
		l.problem(key+".issuer", "is missing: the address of the provider, as its tokens name it")
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		l.problem(key+".issuer", "must be like \"https://keycloak.example/realms/lake\"")
	case u.Scheme == "http" && !p.AllowHTTP && !loopback(u.Hostname()):
		l.problem(key+".issuer", "would fetch the keys in the clear; use https, or set allow-http = true")
	}
	if len(p.Audience) == 0 || slices.Contains(p.Audience, "") {
		l.problem(key+".audience", "is missing: without it a token for any other service would open this one")
	}
	for _, a := range p.Algorithms {
		if !slices.Contains(signatureAlgorithms, a) {
			l.problem(key+".algorithms", "has %q and must be of %s", a, strings.Join(signatureAlgorithms, ", "))
		}
	}
	if limit, _ := parseDuration("5m"); p.ClockSkew > limit {
		l.problem(key+".clock-skew", "must be at most %s", limit)
	}
	if p.NameClaim == "" {
		l.problem(key+".name-claim", "is empty: a principal has a name")
	}
	if p.ClientSecretFile != "" {
		p.ClientSecret = l.secretFile(key+".client-secret-file", key+".client-secret", p.ClientSecretFile, p.ClientSecret)
	}
	need := func(why string) {
		if p.ClientID == "" {
			l.problem(key+".client-id", "is missing, and %s needs it", why)
		}
	}
	if p.ClientSecret != "" {
		need("client-secret")
	}
	if p.Passwords {
		need("passwords")
	}
	if p.Introspection > 0 {
		need("introspection-interval")
		if p.ClientSecret == "" {
			l.problem(key+".client-secret", "is missing, and introspection-interval needs it: providers answer clients that they know")
		}
	}
	switch {
	case len(p.RolesClaims) == 0:
		p.RolesClaims = []string{defaultRoles}
	case slices.Equal(p.RolesClaims, []string{""}):
		p.RolesClaims = nil
	case slices.Contains(p.RolesClaims, ""):
		l.problem(key+".roles-claims", "holds an empty name")
	}
	l.checkTogether(p, key)
}
