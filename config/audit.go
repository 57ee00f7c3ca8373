package config

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
)

// outputName is what may name a folder and a label of a metric.
var outputName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// checkAudit finds what the outputs of audit events lack.
func (l *loader) checkAudit(c *Config) {
	names, files := map[string]bool{}, map[Path]bool{c.Audit.File: true}
	for i := range c.Outputs {
		o, key := &c.Outputs[i], fmt.Sprintf("audit-outputs[%d]", i)
		switch {
		case o.Name == "": // missing, which is said elsewhere
		case !outputName.MatchString(o.Name):
			l.problem(key+".name", "names a folder: use letters, digits, - and _")
		case names[strings.ToLower(o.Name)]:
			l.problem(key+".name", "%q is used twice; give each output a name of its own", o.Name)
		}
		names[strings.ToLower(o.Name)] = true
		if o.Kind == "file" {
			switch {
			case o.File == "":
				l.problem(key+".file", "is missing: name the file")
			case files[o.File]:
				l.problem(key+".file", "is written by something else too; give each output and audit.file a file of its own")
			}
			files[o.File] = true
			continue
		}
		l.checkRemote(o, key)
		if c.Audit.Spool == "" {
			l.problem("audit.spool-directory", "is empty, and an audit output needs it")
		}
	}
}

func (l *loader) checkRemote(o *AuditOutput, key string) {
	u, err := url.Parse(o.URL)
	switch {
	case o.URL == "":
		l.problem(key+".url", "is missing: name the server that takes the events")
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		l.problem(key+".url", "must be like \"https://solr.example:8983/solr/ranger_audits\"")
	case u.User != nil:
		l.problem(key+".url", "holds a user or password; they have keys of their own")
	case u.Scheme == "http" && !o.AllowHTTP && !loopback(u.Hostname()):
		l.problem(key+".url", "would send events in the clear; use https, or set allow-http = true")
	}
	if o.PasswordFile != "" {
		o.Password = l.secretFile(key+".password-file", key+".password", o.PasswordFile, o.Password)
	}
	if o.Password != "" && o.Username == "" {
		l.problem(key+".username", "is missing: a password needs a user")
	}
	if (o.ClientCert == "") != (o.ClientKey == "") {
		l.problem(key+".client-cert", "and client-key belong together: set both or neither")
	}
}

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
