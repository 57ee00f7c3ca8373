package config

import (
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
)

var version = regexp.MustCompile(`^\d+\.\d+\.\d+[!-~]*$`)

// check finds what is wrong between keys.
func (l *loader) check(c *Config) {
	if (c.Server.TLSCert == "") != (c.Server.TLSKey == "") {
		set, missing := "server.tls-cert", "server.tls-key"
		if c.Server.TLSCert == "" {
			set, missing = missing, set
		}
		l.problem(set, "is set without %s: set both or neither", missing)
	}
	if !version.MatchString(c.Server.Version) {
		l.problem("server.version", "must start like a version of MySQL, such as \"8.0.36-SQE\"")
	}
	if c.Ops.Address != "" {
		if _, _, err := net.SplitHostPort(c.Ops.Address); err != nil {
			l.problem("ops.address", "must be host:port, such as \"127.0.0.1:9307\"")
		}
	}
	l.checkCatalogs(c)
	names := map[string]bool{}
	for i, p := range c.Policies {
		key := fmt.Sprintf("policies[%d]", i)
		if names[p.Name] {
			l.problem(key+".name", "%q is used twice; give each source a name of its own", p.Name)
		}
		names[p.Name] = true
		l.checkSource(&c.Policies[i], key)
		if p.MaxStaleness < p.PollInterval {
			l.problem(key+".max-staleness", "is shorter than poll-interval (%s): tables would be refused between two polls", p.PollInterval)
		}
	}
	l.checkStore(c)
	l.checkImport(c)
	users := map[string]bool{}
	for i, u := range c.Users {
		if users[u.Name] {
			l.problem(fmt.Sprintf("users[%d].name", i), "%q is used twice; a user is defined once", u.Name)
		}
		users[u.Name] = true
	}
	l.checkIdentity(c)
	l.checkMasks(c)
	l.checkAudit(c)
}

// checkSource finds what a source of its kind lacks.
func (l *loader) checkSource(p *Policy, key string) {
	if p.ProjectTags && p.Kind == "folder" {
		l.problem(key+".project-tags", "is set for a folder, which SQE never writes")
	}
	switch p.Kind {
	case "folder":
		if p.Directory == "" {
			l.problem(key+".directory", "is missing: name the folder that holds the documents")
		}
		return
	case "store":
		return
	}
	if p.URL == "" {
		l.problem(key+".url", "is missing: name the Ranger Admin")
	}
	if p.Username == "" {
		l.problem(key+".username", "is missing: name a user that may download policies")
	}
	if p.PasswordFile != "" {
		p.Password = l.secretFile(key+".password-file", key+".password", p.PasswordFile, p.Password)
	}
	if p.AdminPassFile != "" {
		p.AdminPassword = l.secretFile(key+".admin-password-file", key+".admin-password", p.AdminPassFile, p.AdminPassword)
	}
	if p.AdminUsername == "" && p.AdminPassword != "" {
		l.problem(key+".admin-username", "is missing beside its password")
	}
	if (p.ClientCert == "") != (p.ClientKey == "") {
		l.problem(key+".client-cert", "and client-key belong together: set both or neither")
	}
}

// checkStore finds what is wrong with the embedded store.
func (l *loader) checkStore(c *Config) {
	s := &c.Store
	for i, p := range c.Policies {
		if p.Kind == "store" && s.Path == "" {
			l.problem(fmt.Sprintf("policies[%d].kind", i), "is store, and there is none: set path in [policystore]")
		}
	}
	if s.AdminPassFile != "" {
		s.AdminPassword = l.secretFile("policystore.admin-password-file", "policystore.admin-password", s.AdminPassFile, s.AdminPassword)
	}
	if (s.TLSCert == "") != (s.TLSKey == "") {
		l.problem("policystore.tls-cert", "and tls-key belong together: set both or neither")
	}
	if s.Listen == "" {
		return
	}
	host, _, err := net.SplitHostPort(s.Listen)
	switch {
	case s.Path == "":
		l.problem("policystore.listen", "is set, and there is no store: set path")
	case err != nil:
		l.problem("policystore.listen", "must be host:port, such as \"0.0.0.0:6182\"")
	case s.PlainHTTP && host != "localhost" && (net.ParseIP(host) == nil || !net.ParseIP(host).IsLoopback()):
		l.problem("policystore.plain-http", "is allowed on a loopback address only, since passwords travel in the clear")
	}
}

// secretFile reads a secret from the first line of a file.
func (l *loader) secretFile(key, other string, path Path, set Secret) Secret {
	if set != "" {
		l.problem(key, "is set beside %s: set one of them", other)
		return ""
	}
	text, err := os.ReadFile(string(path))
	if err != nil {
		l.problem(key, "cannot be read (%s)", reason(err))
		return ""
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return Secret(strings.TrimRight(line, "\r"))
}

// minHashKey is the least length of the key of MASK_HASH, in bytes.
const minHashKey = 16

func (l *loader) checkMasks(c *Config) {
	m := &c.Masks
	if m.UnkeyedHash && m.Rendering == "sqe" {
		l.problem("masks.unkeyed-hash", "needs rendering \"trino\" or \"spark\": SQE's own hash always has a key")
	}
	key := "masks.hash-key"
	if m.HashKeyFile != "" {
		before := len(l.problems)
		m.HashKey = l.secretFile("masks.hash-key-file", "hash-key", m.HashKeyFile, m.HashKey)
		key = "masks.hash-key-file"
		if len(l.problems) > before {
			return
		}
	} else if m.HashKey == "" {
		return
	}
	if len(m.HashKey) < minHashKey {
		l.problem(key, "has fewer than %d characters", minHashKey)
	}
}
