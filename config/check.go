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
		if p.PolarisService == "" && p.DataService == "" {
			l.problem(key, "names no service: set polaris-service, data-service or both")
		}
		if p.MaxStaleness < p.PollInterval {
			l.problem(key+".max-staleness", "is shorter than poll-interval (%s): tables would be refused between two polls", p.PollInterval)
		}
	}
	users := map[string]bool{}
	for i, u := range c.Users {
		if users[u.Name] {
			l.problem(fmt.Sprintf("users[%d].name", i), "%q is used twice; a user is defined once", u.Name)
		}
		users[u.Name] = true
	}
	l.checkMasks(c)
}

func (l *loader) checkCatalogs(c *Config) {
	if len(c.Catalogs) == 0 {
		l.problem("catalogs", "is missing: add a [[catalogs]] section")
		return
	}
	names := map[string]bool{}
	defaults := 0
	for i, cat := range c.Catalogs {
		key := fmt.Sprintf("catalogs[%d]", i)
		if names[cat.Name] {
			l.problem(key+".name", "%q is used twice; give each catalog a name of its own", cat.Name)
		}
		names[cat.Name] = true
		if strings.ContainsAny(cat.Name, ".`\x00") {
			l.problem(key+".name", "holds a dot or a back-quote, which separate names in SQL; choose another name")
		}
		if cat.Default {
			if defaults++; defaults > 1 {
				l.problem(key+".default", "is true for several catalogs; leave one")
			}
		}
	}
	switch {
	case len(c.Catalogs) == 1:
		c.Catalogs[0].Default = true
	case defaults == 0:
		l.problem("catalogs", "has no default: set default = true in one of them")
	}
}

// minHashKey is the least length of the key of MASK_HASH, in bytes.
const minHashKey = 16

func (l *loader) checkMasks(c *Config) {
	m := &c.Masks
	if m.HashKeyFile != "" {
		if m.HashKey != "" {
			l.problem("masks.hash-key-file", "is set beside hash-key: set one of them")
			return
		}
		text, err := os.ReadFile(string(m.HashKeyFile))
		if err != nil {
			l.problem("masks.hash-key-file", "cannot be read (%s)", reason(err))
			return
		}
		line, _, _ := strings.Cut(string(text), "\n")
		m.HashKey = Secret(strings.TrimRight(line, "\r"))
		if len(m.HashKey) < minHashKey {
			l.problem("masks.hash-key-file", "holds fewer than %d characters in its first line", minHashKey)
		}
		return
	}
	if m.HashKey != "" && len(m.HashKey) < minHashKey {
		l.problem("masks.hash-key", "has fewer than %d characters", minHashKey)
	}
}
