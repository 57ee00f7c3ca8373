package config

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var place = regexp.MustCompile(`^line \d+: `)

// TestAuditOutputs: outputs that lack something are told what; those that do not
// are taken.
func TestAuditOutputs(t *testing.T) {
	const good = `
[[audit-outputs]]
name = "ranger-file"
kind = "file"
file = "ranger.jsonl"

[[audit-outputs]]
name = "solr"
kind = "solr"
url = "https://solr.example:8983/solr/ranger_audits"
username = "u"
password = "hidden-secret"

[[audit-outputs]]
name = "near"
kind = "http"
url = "http://127.0.0.1:8080/audit?x=1"

[[audit-outputs]]
name = "far"
kind = "http"
url = "http://collector.example/audit"
allow-http = true
format = "lines"
`
	c, problems := read(minimal+good, "/etc/sqe", nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if o := c.Outputs; len(o) != 4 || o[0].File != "/etc/sqe/ranger.jsonl" || o[1].Password.Reveal() != "hidden-secret" || o[1].SpoolLimit != 1<<30 || o[1].WhenFull != "drop-oldest" || o[3].Format != "lines" {
		t.Errorf("%+v", o)
	}
	_, problems = read(minimal+`
[audit]
file = "same.jsonl"

[[audit-outputs]]
name = "../up"
kind = "file"
file = "same.jsonl"

[[audit-outputs]]
name = "solr"
kind = "solr"
password = "hidden-secret"

[[audit-outputs]]
name = "Solr"
kind = "http"
url = "http://collector.example/audit"
client-cert = "c.pem"

[[audit-outputs]]
name = "x"
kind = "http"
url = "https://user:hidden-secret@collector.example/"

[[audit-outputs]]
name = "y"
kind = "http"
url = "collector.example"

[[audit-outputs]]
name = "z"
kind = "file"
`, "/d", nil)
	var got []string
	for _, p := range problems {
		got = append(got, place.ReplaceAllString(p.String(), ""))
	}
	want := []string{
		`audit-outputs[0].file is written by something else too; give each output and audit.file a file of its own`,
		`audit-outputs[0].name names a folder: use letters, digits, - and _`,
		`audit-outputs[1].url is missing: name the server that takes the events`,
		`audit-outputs[1].username is missing: a password needs a user`,
		`audit-outputs[2].client-cert and client-key belong together: set both or neither`,
		`audit-outputs[2].name "Solr" is used twice; give each output a name of its own`,
		`audit-outputs[2].url would send events in the clear; use https, or set allow-http = true`,
		`audit-outputs[3].url holds a user or password; they have keys of their own`,
		`audit-outputs[4].url must be like "https://solr.example:8983/solr/ranger_audits"`,
		`audit-outputs[5].file is missing: name the file`,
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, p := range problems {
		if strings.Contains(p.String(), "hidden-secret") {
			t.Error("a secret is shown:", p)
		}
	}
}
