package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCatalogKinds: each kind of catalog says what it lacks, and never a secret.
func TestCatalogKinds(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const head = "[[catalogs]]\nname = \"c\"\n"
	for _, x := range []struct{ text, want string }{
		{"path = \"x\"\nwarehouse = \"w\"", ""},
		{"path = \"x\"", "has no warehouse"},
		{"warehouse = \"w\"", "has no path"},
		{"kind = \"postgres\"\nwarehouse = \"w\"\ndsn = \"postgres://u:hush@h/d\"", ""},
		{"kind = \"postgres\"\nwarehouse = \"w\"\ndsn-file = \"secret\"", ""},
		{"kind = \"postgres\"\nwarehouse = \"w\"", "has no dsn"},
		{"kind = \"postgres\"\ndsn = \"postgres://u:hush@h/d\"", "has no warehouse"},
		{"kind = \"rest\"\nuri = \"https://c.example/api\"", ""},
		{"kind = \"rest\"\nuri = \"http://localhost:8181\"", ""},
		{"kind = \"rest\"", "has no uri"},
		{"kind = \"rest\"\nuri = \"c.example\"", "must be an address"},
		{"kind = \"rest\"\nuri = \"http://c.example\"", "would travel in the clear"},
		{"kind = \"rest\"\nuri = \"http://c.example\"\nallow-http = true", ""},
		{"kind = \"rest\"\nuri = \"https://u:hush@c.example\"", "have keys of their own"},
		{"kind = \"rest\"\nuri = \"https://c.example\"\ntoken = \"hush\"", "are for \"service\""},
		{"kind = \"rest\"\nuri = \"https://c.example\"\nidentity = \"service\"", "without credentials"},
		{"kind = \"rest\"\nuri = \"https://c.example\"\nidentity = \"service\"\ntoken = \"hush\"", ""},
		{"kind = \"rest\"\nuri = \"https://c.example\"\nidentity = \"service\"\ntoken = \"hush\"\ntoken-file = \"secret\"", "several credentials"},
		{"kind = \"rest\"\nuri = \"https://c.example\"\nidentity = \"service\"\nclient-id = \"i\"", "belong together"},
		{"kind = \"rest\"\nuri = \"https://c.example\"\nidentity = \"service\"\nclient-id = \"i\"\nclient-secret-file = \"secret\"", ""},
		{"kind = \"rest\"\nuri = \"https://c.example\"\nidentity = \"service\"\nclient-id = \"i\"\nclient-secret = \"hush\"\ntoken-uri = \"http://k.example\"", "token-uri is http"},
		{"kind = \"rest\"\nuri = \"https://c.example\"\nclient-cert = \"x\"", "client-key belong together"},
		{"kind = \"rest\"\nuri = \"https://c.example\"\nheaders = { authorization = \"hush\" }", "Authorization"},
	} {
		c, problems := read(head+x.text, dir, nil)
		var all []string
		for _, p := range problems {
			all = append(all, p.String())
		}
		text := strings.Join(all, "; ")
		switch {
		case strings.Contains(text, "hush"):
			t.Errorf("%s: a secret is shown: %s", x.text, text)
		case x.want == "" && text != "":
			t.Errorf("%s: %s", x.text, text)
		case !strings.Contains(text, x.want):
			t.Errorf("%s: %q, want %q", x.text, text, x.want)
		case x.want == "" && strings.Contains(x.text, "-file = ") && c.Catalogs[0].DSN+c.Catalogs[0].ClientSecret != "from-file":
			t.Errorf("%s: the file was not read", x.text)
		}
	}
}
