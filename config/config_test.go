package config

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sqe/fault"
)

var update = flag.Bool("update", false, "write docs/configuration.md")

// TestDocument: the page lists every key as the structs have it.
func TestDocument(t *testing.T) {
	const path = "../docs/configuration.md"
	if *update {
		if err := os.WriteFile(path, []byte(Document()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(page), Document()); diff != "" {
		t.Errorf("docs/configuration.md is not what the structs say; run: go generate ./config\n%s", diff)
	}
	for _, want := range []string{"| `port` | `3306` | number |", "| `max-packet` | `\"64MiB\"` | size |", "| `password-hash` | required | secret |", "## [[users]]"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

const minimal = `
[[catalogs]]
name = "demo"
path = "catalog.db"
warehouse = "/lake"
`

func TestDefaults(t *testing.T) {
	c, problems := read(minimal, "/etc/sqe", nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := &Config{
		Dir: "/etc/sqe",
		Server: Server{
			Address: "127.0.0.1", Port: 3306, RequireTLS: true, StateDirectory: "/etc/sqe/state", MaxConnections: 1000,
			StatementTimeout: Duration(time.Hour), IdleTimeout: Duration(8 * time.Hour), WriteTimeout: Duration(time.Minute),
			HandshakeTimeout: Duration(10 * time.Second), ShutdownTimeout: Duration(10 * time.Second), MaxPacket: 64 << 20, Version: "8.0.36-SQE",
		},
		Ops:    Ops{Address: "127.0.0.1:9307"},
		Engine: Engine{MemoryLimit: 1 << 30, WriteMemory: 256 << 20, TempDirectory: "/etc/sqe/tmp", MaxConcurrent: 16, RowLimit: 1_000_000, ByteLimit: 256 << 20},
		Cache:  ObjectCache{Directory: "/etc/sqe/object-cache"},
		Catalogs: []Catalog{{
			Name: "demo", Kind: "sqlite", Path: "/etc/sqe/catalog.db", Warehouse: "/lake", Default: true, TagLineage: "carry", Memory: 128 << 20,
			Identity: "user", Delegation: "vended-credentials", MaxAge: Duration(5 * time.Second), Timeout: Duration(30 * time.Second),
			S3Region: "us-east-1", S3PathStyle: true, S3Timeout: Duration(30 * time.Second),
		}},
		Import: Import{Local: true, MaxBytes: 16 << 30},
		Masks:  Masks{ShortValues: "mask", Rendering: "sqe"},
		Audit:  Audit{File: "/etc/sqe/audit.jsonl", OnFailure: "refuse", Sync: "interval", Spool: "/etc/sqe/audit-spool", Agent: "sqe"},
		Log:    Log{Level: "info", Format: "text"},
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
}

func TestEverything(t *testing.T) {
	c, problems := read(`
[server]
address = "::"
port = 3307
max-packet = "1.5GB"
idle-timeout = "90s"
max-connections = 5
require-tls = false

[[catalogs]]
name = "a"
kind = "sqlite"
path = "a.db"
warehouse = "w"
[[catalogs]]
name = "b"
path = "../b.db"
warehouse = "w"
default = true

[[policies]]
name = "folder"
directory = "policies"
data-service = "hive"
poll-interval = "1s"
max-staleness = "60s"

[masks]
hash-key = "0123456789abcdef"
short-values = "keep"

[[users]]
name = "alice"
password-hash = "h"
groups = ["g1", "g2"]
admin = true
[users.attributes]
region = "EU"

[audit]
file = ""
`, "/d", nil)
	// 1.5 GB is over the largest packet: the control of the limit.
	if len(problems) != 1 || problems[0].Key != "server.max-packet" {
		t.Fatal(problems)
	}
	if c.Server.Port != 3307 || c.Server.RequireTLS || c.Server.IdleTimeout != Duration(90*time.Second) || c.Audit.File != "" {
		t.Errorf("%+v", c)
	}
	if c.Catalogs[0].Default || !c.Catalogs[1].Default || c.Catalogs[1].Path != "/b.db" {
		t.Errorf("%+v", c.Catalogs)
	}
	u := c.Users[0]
	if u.Attributes["region"] != "EU" || !u.Admin || len(u.Groups) != 2 || u.PasswordHash.Reveal() != "h" {
		t.Errorf("%+v", u)
	}
}

func TestEnvironment(t *testing.T) {
	env := []string{
		"SQE_SERVER__PORT=4000", "SQE_SERVER__REQUIRE_TLS=false", "SQE_LOG__LEVEL=debug", "SQE_CATALOGS__0__WAREHOUSE=elsewhere",
		"SQE_ENGINE__MEMORY_LIMIT=2GiB", "SQE_PASSWORD=not ours", "HOME=/x",
	}
	c, problems := read(minimal, "/d", env)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if c.Server.Port != 4000 || c.Server.RequireTLS || c.Log.Level != "debug" || c.Catalogs[0].Warehouse != "/d/elsewhere" || c.Engine.MemoryLimit != 2<<30 {
		t.Errorf("%+v", c)
	}
	_, problems = read(minimal, "/d", []string{
		"SQE_SERVER__PORT=many", "SQE_SERVER__PROT=1", "SQE_CATALOGS__NAME=x", "SQE_CATALOGS__7__NAME=x", "SQE_NOTHING__X=1", "SQE_SERVER__REQUIRE_TLS=yes",
	})
	text := fmt.Sprint(problems)
	for _, want := range []string{
		"SQE_SERVER__PORT: server.port must be a whole number", "SQE_SERVER__PROT: server.prot is not a known key; did you mean port?",
		"SQE_CATALOGS__NAME: the section catalogs occurs several times", "there is no catalogs number 7", "nothing is not a known key",
		"SQE_SERVER__REQUIRE_TLS: server.require-tls must be true or false",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("missing %q in %s", want, text)
		}
	}
}

// TestProblems: everything is reported at once, each with its line.
func TestProblems(t *testing.T) {
	_, problems := read(`[server]
port = 70000
prot = 3306
tls-cert = 7
idle-timeout = "soon"
max-packet = "big"
write-timeout = "1ms"
require-tls = "yes"

[[catalogs]]
kind = "hive"
path = "x"

[log]
level = "loud"

[[users]]
name = "alice"
password-hash = ["my-secret-hash"]
roles = "all"

[extra]
x = 1
`, "/d", nil)
	var got []string
	for _, p := range problems {
		got = append(got, p.String())
	}
	want := []string{
		`line 2: server.port must be between 0 and 65535`,
		`line 3: server.prot is not a known key; did you mean port?`,
		`line 4: server.tls-cert must be a path in quotes`,
		`line 5: server.idle-timeout must be a duration such as "500ms", "10s" or "8h"`,
		`line 6: server.max-packet must be a number of bytes with a unit, such as "64MiB" or "1GiB"`,
		`line 7: server.write-timeout must be at least 1s`,
		`line 8: server.require-tls must be true or false`,
		`line 11: catalogs[0].kind is "hive" and must be "sqlite", "postgres" or "rest"`,
		`line 15: log.level is "loud" and must be "debug", "info", "warn" or "error"`,
		`line 19: users[0].password-hash must be a text in quotes`,
		`line 20: users[0].roles must be a list of texts: ["a", "b"]`,
		`line 22: extra is not a known key; docs/configuration.md lists them`,
		`line 10: catalogs[0].name is missing: Name in SQL: the first part of catalog.namespace.table.`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, p := range got {
		if strings.Contains(p, "my-secret-hash") {
			t.Error("a secret is shown:", p)
		}
	}
}

// TestBetweenKeys: mistakes that no key shows alone.
func TestBetweenKeys(t *testing.T) {
	user := "[[users]]\nname = \"a\"\npassword-hash = \"x\"\n"
	second := "[[catalogs]]\nname = \"two\"\npath = \"x\"\nwarehouse = \"w\"\n"
	policy := "[[policies]]\nname = \"p\"\ndirectory = \"d\"\ndata-service = \"hive\"\n"
	tests := []struct{ name, text, want string }{
		{"no catalog", "", "catalogs is missing: add a [[catalogs]] section"},
		{"certificate without key", minimal + "[server]\ntls-cert = \"c\"", "server.tls-cert is set without server.tls-key"},
		{"key without certificate", minimal + "[server]\ntls-key = \"c\"", "server.tls-key is set without server.tls-cert"},
		{"no default", minimal + second, "catalogs has no default"},
		{"two defaults", minimal + "default = true\n" + second + "default = true", "true for several catalogs"},
		{"catalog twice", minimal + "default = true\n" + minimal, `catalogs[1].name "demo" is used twice`},
		{"dot in a name", strings.Replace(minimal, "demo", "a.b", 1), "holds a dot"},
		{"user twice", minimal + user + user, `users[1].name "a" is used twice`},
		{"policies twice", minimal + policy + policy, `policies[1].name "p" is used twice`},
		{"no service", minimal + strings.Replace(policy, "data-service = \"hive\"", "", 1), "policies[0].data-service is missing"},
		{"no folder", minimal + "[[policies]]\nname = \"p\"\ndata-service = \"hive\"", "policies[0].directory is missing"},
		{"no address", minimal + "[[policies]]\nname = \"p\"\nkind = \"ranger\"\ndata-service = \"hive\"\nusername = \"u\"", "policies[0].url is missing"},
		{"no user", minimal + "[[policies]]\nname = \"p\"\nkind = \"ranger\"\ndata-service = \"hive\"\nurl = \"https://r\"", "policies[0].username is missing"},
		{"no password file", minimal + "[[policies]]\nname = \"p\"\nkind = \"ranger\"\ndata-service = \"hive\"\nurl = \"https://r\"\nusername = \"u\"\npassword-file = \"missing\"", "policies[0].password-file cannot be read"},
		{"stale at once", minimal + policy + "poll-interval = \"1m\"\nmax-staleness = \"1s\"", "shorter than poll-interval (1m)"},
		{"short key", minimal + "[masks]\nhash-key = \"tiny\"", "masks.hash-key has fewer than 16 characters"},
		{"two keys", minimal + "[masks]\nhash-key = \"0123456789abcdef\"\nhash-key-file = \"f\"", "beside hash-key"},
		{"unkeyed hash", minimal + "[masks]\nunkeyed-hash = true", "masks.unkeyed-hash needs rendering"},
		{"rendering", minimal + "[masks]\nrendering = \"hive\"", "masks.rendering"},
		{"no key file", minimal + "[masks]\nhash-key-file = \"missing\"", "cannot be read (no such file"},
		{"version", minimal + "[server]\nversion = \"new\"", "must start like a version"},
		{"ops address", minimal + "[ops]\naddress = \"9307\"", "must be host:port"},
		{"empty name", strings.Replace(minimal, "demo", "", 1), "catalogs[0].name must be set, and is empty"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, problems := read(tt.text, t.TempDir(), nil)
			if len(problems) == 0 || !strings.Contains(fmt.Sprint(problems), tt.want) {
				t.Errorf("got %v, want %q", problems, tt.want)
			}
		})
	}
}

func TestNotTOML(t *testing.T) {
	_, problems := read("[masks]\nhash-key = \"top-secret-value\nx = 1", "/d", nil)
	if len(problems) != 1 || problems[0].From != "line 2" {
		t.Fatal(problems)
	}
	if strings.Contains(problems[0].String(), "top-secret") {
		t.Error("a secret is shown:", problems[0])
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sqe.toml")
	if _, err := Load(path); !fault.Is(err, fault.Config) || !strings.Contains(err.Error(), "does not exist") {
		t.Error(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("key", "0123456789abcdef0123\nsecond line\n")
	write("sqe.toml", minimal+"[masks]\nhash-key-file = \"key\"\n")
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if c.Masks.HashKey.Reveal() != "0123456789abcdef0123" || c.Dir != dir {
		t.Errorf("%+v", c)
	}
	write("sqe.toml", "[server]\nport = 1.5\n[ops]\naddress = 7\n")
	_, err = Load(path)
	var list *Problems
	if !fault.Is(err, fault.Config) || !errors.As(err, &list) || len(list.List) != 2 || strings.Count(err.Error(), "\n") != 2 {
		t.Error(err)
	}
}

// TestSecret: no way of printing shows it.
func TestSecret(t *testing.T) {
	c := Config{Users: []User{{Name: "alice", PasswordHash: "hidden"}}, Masks: Masks{HashKey: "hidden"}}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		text = fmt.Appendf(text, format, c)
		text = fmt.Appendf(text, format, c.Masks.HashKey)
	}
	if strings.Contains(string(text), "hidden") || strings.Contains(string(text), "68696464656e") {
		t.Errorf("%s", text)
	}
	if c.Masks.HashKey.Reveal() != "hidden" {
		t.Error("Reveal")
	}
}

func TestTexts(t *testing.T) {
	for text, want := range map[string]Size{"0B": 0, "64MiB": 64 << 20, "1.5GB": 1_500_000_000, "2 kB": 2000, "7B": 7, "3TiB": 3 << 40} {
		if got, err := parseSize(text); err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "7", "x MiB", "-1B", "1e300TiB", "NaNB", "1 PB"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
	for s, want := range map[Size]string{64 << 20: "64MiB", 1_500: "1500B", 0: "0B", 1 << 40: "1TiB"} {
		if s.String() != want {
			t.Errorf("%d: %s", s, s)
		}
	}
	for d, want := range map[time.Duration]string{time.Hour: "1h", 90 * time.Second: "1m30s", time.Minute: "1m", 0: "0s"} {
		if Duration(d).String() != want {
			t.Errorf("%s: %s", d, Duration(d))
		}
	}
}
