package parse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

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
	for _, text := range []string{"SHOW GRANTS FOR", "SHOW GRANTS ON", "SHOW GRANTS t", "SHOW GRANTS FOR CURRENT_USER(1)", "SHOW GRANTS ON t u", "SHOW GRANTS FOR bob eve"} {
		if stmt, _, err := Parse(text); !fault.Is(err, fault.Syntax) {
			t.Errorf("%s gives %#v, %v", text, stmt, err)
		}
	}
}

// TestGrants runs testdata/grants: what the statements about access mean, one in
// each line.
func TestGrants(t *testing.T) {
	datadriven.RunTest(t, "testdata/grants", func(t *testing.T, d *datadriven.TestData) string {
		var out strings.Builder
		for _, text := range strings.Split(d.Input, "\n") {
			stmt, rest, err := Parse(text)
			switch {
			case err != nil:
				fmt.Fprintf(&out, "%s: %v\n", fault.KindOf(err), err)
			case rest != "":
				fmt.Fprintf(&out, "%T and %q\n", stmt, rest)
			default:
				fmt.Fprintf(&out, "%s\n", show(stmt))
			}
		}
		return out.String()
	})
}

func show(stmt Statement) string {
	name := strings.TrimPrefix(fmt.Sprintf("%T", stmt), "*parse.")
	switch s := stmt.(type) {
	case *ExplainGrant:
		return name + " " + show(s.Grant)
	case *ExplainPolicy:
		return fmt.Sprintf("%s JSON:%v As:%+v %s", name, s.JSON, s.As, show(s.Stmt))
	case *ListGrants:
		if s.On != nil {
			return fmt.Sprintf("%s on %+v", name, *s.On)
		}
		return fmt.Sprintf("%s to %+v", name, *s.To)
	case *ShowRoleGrants:
		if s.For != nil {
			return fmt.Sprintf("%s for %+v", name, *s.For)
		}
	case *SQL:
		return s.Text
	}
	return fmt.Sprintf("%s %s", name, strings.TrimPrefix(fmt.Sprintf("%+v", stmt), "&"))
}

// TestGrantSecrets: no refusal repeats a literal.
func TestGrantSecrets(t *testing.T) {
	for _, text := range []string{
		"GRANT SELECT ON t TO bob IDENTIFIED BY 's3cr3t'", "GRANT 's3cr3t' ON t TO bob", "GRANT SELECT ON t TO bob 's3cr3t'",
		"DENY SELECT ON t 's3cr3t'", "CREATE ROLE r IDENTIFIED BY 's3cr3t'", "CHECK ACCESS SELECT ON t FOR bob 's3cr3t'",
	} {
		if _, _, err := Parse(text); err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, _, err := Parse("SELECT a AS deny, b AS role FROM t"); err != nil { // the control
		t.Error(err)
	}
}
