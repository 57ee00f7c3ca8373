package parse

import (
	"strings"
	"testing"

	"sqe/fault"
)

func TestShowGrants(t *testing.T) {
	for text, user := range map[string]string{
		"SHOW GRANTS":                         "",
		"show grants for current_user":        "",
		"SHOW GRANTS FOR CURRENT_USER()":      "",
		"SHOW GRANTS FOR bob":                 "bob",
		"SHOW GRANTS FOR 'bob'@'%'":           "bob",
		"SHOW GRANTS FOR 'b''ob'@`localhost`": "b'ob",
	} {
		stmt, rest, err := Parse(text)
		g, ok := stmt.(*ShowGrants)
		if err != nil || !ok || rest != "" || g.User != user {
			t.Errorf("%s: %#v, %v", text, stmt, err)
		}
	}
	for _, text := range []string{"SHOW GRANTS FOR", "SHOW GRANTS ON t", "SHOW GRANTS FOR CURRENT_USER(1)"} {
		if stmt, _, err := Parse(text); err == nil {
			t.Errorf("%s gives %#v", text, stmt)
		}
	}
}

// TestGrantIsRefused: the refusal says what gives access, whatever stands behind the
// word.
func TestGrantIsRefused(t *testing.T) {
	for _, text := range []string{
		"GRANT SELECT ON bank.customers TO sam", "grant analyst to role x", "REVOKE SELECT ON bank.customers FROM sam",
		"DENY SELECT ON TABLE bank.customers TO ROLE x", "GRANT", "DENY SELECT ON t TO 's3cr3t'",
	} {
		_, _, err := Parse(text)
		if !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "policy of the polaris service") || !strings.Contains(err.Error(), "docs/policy-store.md") || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, _, err := Parse("SELECT a AS deny FROM t"); err != nil { // the control
		t.Error(err)
	}
}
