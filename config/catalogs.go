package config

import (
	"fmt"
	"net"
	"net/url"
	"strings"
)

// Catalog is one of [[catalogs]].
type Catalog struct {
	Name       string `key:"name" required:"true" doc:"Name in SQL: the first part of catalog.namespace.table."`
	Kind       string `key:"kind" default:"sqlite" oneof:"sqlite postgres rest" doc:"sqlite: the tables of the JDBC catalog in an SQLite file. postgres: the same in a PostgreSQL database. rest: an Iceberg REST catalog, such as Apache Polaris."`
	Warehouse  Place  `key:"warehouse" doc:"Folder below which the data and metadata files of tables lie, such as \"/data/lake\" or \"s3://bucket/lake\"; files elsewhere are not read. sqlite, postgres: required. rest: without one no local files are read, and of an object store those for which the catalog gives credentials."`
	Default    bool   `key:"default" default:"false" doc:"Its namespaces appear as plain databases. May be left out when there is one catalog."`
	ManagedBy  string `key:"access-managed-by" doc:"Where access to the catalog is managed, when that is not in the policies of this server, such as \"the roles of Polaris, https://polaris.example\". GRANT, DENY and REVOKE on it are then refused with these words; \"\": here."`
	TagLineage string `key:"tag-lineage" default:"carry" oneof:"carry warn refuse" doc:"What a statement does that writes values of tagged columns into a table of this catalog: put the tags on the columns that get them, warn only, or refuse (docs/policies.md, \"Tags travel\")."`

	Memory Size `key:"metadata-memory" default:"128MiB" min:"1MiB" doc:"Memory for what is known of tables, views and lists of this catalog, of all users together, as estimated; the least used goes first. 10,000 tables of 20 columns and a few snapshots take about 128MiB."`

	Path Path `key:"path" doc:"sqlite, required: the SQLite file."`

	DSN        Secret `key:"dsn" doc:"postgres, required: address of the database, such as \"postgres://sqe:secret@db.example/iceberg?sslmode=verify-full\". The tables are made when they are missing."`
	DSNFile    Path   `key:"dsn-file" doc:"postgres: file that holds the address instead (the first line)."`
	StoredName string `key:"stored-name" doc:"sqlite, postgres: name of the catalog in the database, where several share one; \"\": name."`

	URI           string            `key:"uri" doc:"rest, required: address of the catalog without /v1, such as \"https://polaris.example:8181/api/catalog\"."`
	RESTWarehouse string            `key:"rest-warehouse" doc:"rest: what the server calls the catalog, where it has several (for Polaris always)."`
	Prefix        string            `key:"prefix" doc:"rest: prefix of the paths; \"\": the one that the server says."`
	Identity      string            `key:"identity" default:"user" oneof:"user service none" doc:"rest: who the catalog sees. user: each user, by the token of the session; a session without one is refused. service: this server, for all users, by token or client-id; then only the policies say who may see what. none: nobody, for a catalog that asks for no token."`
	Token         Secret            `key:"token" doc:"rest, service: the token."`
	TokenFile     Path              `key:"token-file" doc:"rest, service: file that holds the token instead (the first line); it is read for each request, so that it may be renewed."`
	ClientID      string            `key:"client-id" doc:"rest, service: client for the grant client_credentials at token-uri."`
	ClientSecret  Secret            `key:"client-secret" doc:"rest, service: the secret of the client."`
	ClientSecFile Path              `key:"client-secret-file" doc:"rest, service: file that holds the secret instead (the first line)."`
	TokenURI      string            `key:"token-uri" doc:"rest, service: the token endpoint, such as \"https://keycloak.example/realms/lake/protocol/openid-connect/token\"; \"\": /v1/oauth/tokens of the catalog."`
	Scope         string            `key:"scope" doc:"rest, service: scope to ask for; Polaris' own endpoint wants \"PRINCIPAL_ROLE:ALL\"."`
	Audience      string            `key:"audience" doc:"rest, service: audience to ask for."`
	Resource      string            `key:"resource" doc:"rest, service: resource to ask for."`
	Headers       map[string]string `key:"headers" doc:"rest: headers to send with each request: { Polaris-Realm = \"POLARIS\" }."`
	Delegation    string            `key:"access-delegation" default:"vended-credentials" oneof:"vended-credentials none" doc:"rest: what is asked for when a table is loaded. vended-credentials: the catalog then wants to see the right to the data. none: the right to the metadata is enough for it, so that reading is open to whoever has that unless policies here say otherwise."`
	MaxAge        Duration          `key:"visibility-max-age" default:"5s" max:"1h" doc:"rest: how long an answer of the catalog is used again for the same user: what is withdrawn there, and what others change, shows after this time at the latest. \"0s\": it is asked each time."`
	TrustETags    bool              `key:"trust-etags" default:"false" doc:"rest: load a table again with the ETag of the last answer, which spares the catalog the answer when it has not changed. Only for a catalog that sends no read-restrictions, or whose ETags change with them: Iceberg's stand for the metadata alone, and a changed restriction would not act until the table changes."`
	PageSize      int               `key:"page-size" default:"0" min:"0" max:"100000" doc:"rest: ask for lists in pages of that many names; 0: as the server likes."`
	Timeout       Duration          `key:"timeout" default:"30s" min:"100ms" doc:"rest: time for one request."`
	AllowHTTP     bool              `key:"allow-http" default:"false" doc:"rest, and object stores: permit http:// to another machine; tokens and data then travel in the clear."`
	CAFile        Path              `key:"ca-file" doc:"rest, and object stores: certificates (PEM) to trust beside the system's."`
	ClientCert    Path              `key:"client-cert" doc:"rest: certificate (PEM) of this server as a client."`
	ClientKey     Path              `key:"client-key" doc:"rest: key of that certificate."`

	S3Endpoint   string   `key:"s3-endpoint" doc:"Address of the object store of an s3:// warehouse, such as \"https://minio.example:9000\"; \"\": Amazon S3 of s3-region. rest: it is used instead of an endpoint that the catalog names."`
	S3Region     string   `key:"s3-region" default:"us-east-1" doc:"Region of the object store."`
	S3PathStyle  bool     `key:"s3-path-style" default:"true" doc:"Ask for https://endpoint/bucket/key; false: for https://bucket.endpoint/key."`
	S3Access     Secret   `key:"s3-access-key-id" doc:"Access key of the object store. sqlite, postgres: required for an s3:// warehouse. rest: only for a catalog that gives no credentials with a table; every user then reads with these."`
	S3Secret     Secret   `key:"s3-secret-access-key" doc:"The secret of the access key."`
	S3SecretFile Path     `key:"s3-secret-access-key-file" doc:"File that holds the secret instead (the first line)."`
	S3Timeout    Duration `key:"s3-timeout" default:"30s" min:"100ms" doc:"How long the object store may be silent before a request is sent again; after four times the statement fails."`
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
		l.checkCatalog(&c.Catalogs[i], key)
	}
	switch {
	case len(c.Catalogs) == 1:
		c.Catalogs[0].Default = true
	case defaults == 0:
		l.problem("catalogs", "has no default: set default = true in one of them")
	}
}

// checkCatalog finds what a catalog of its kind lacks.
func (l *loader) checkCatalog(c *Catalog, key string) {
	if c.Kind != "rest" && c.Warehouse == "" {
		l.problem(key, "has no warehouse: name the folder below which the files of tables lie")
	}
	switch c.Kind {
	case "sqlite":
		if c.Path == "" {
			l.problem(key, "has no path: name the SQLite file")
		}
	case "postgres":
		if c.DSNFile != "" {
			c.DSN = l.secretFile(key+".dsn-file", key+".dsn", c.DSNFile, c.DSN)
		} else if c.DSN == "" {
			l.problem(key, "has no dsn: give the address of the database")
		}
	case "rest":
		l.checkREST(c, key)
	}
	l.checkS3(c, key)
}

// checkS3 finds what the object store of a catalog lacks.
func (l *loader) checkS3(c *Catalog, key string) {
	if c.S3SecretFile != "" {
		c.S3Secret = l.secretFile(key+".s3-secret-access-key-file", key+".s3-secret-access-key", c.S3SecretFile, c.S3Secret)
	}
	if (c.S3Access == "") != (c.S3Secret == "") {
		l.problem(key+".s3-access-key-id", "and s3-secret-access-key belong together: set both or neither")
	}
	if c.S3Endpoint != "" {
		l.checkTokenAddress(key+".s3-endpoint", c.S3Endpoint, c.AllowHTTP)
	}
	scheme, rest, remote := strings.Cut(string(c.Warehouse), "://")
	bucket, _, _ := strings.Cut(rest, "/")
	switch {
	case !remote, scheme == "file":
	case scheme != "s3":
		l.problem(key+".warehouse", "is in a kind of storage that SQE does not know: name a folder, or s3://bucket/folder")
	case bucket == "" || strings.ContainsAny(rest, "?#") || strings.Contains("/"+rest+"/", "/../") || strings.Contains("/"+rest+"/", "/./"):
		l.problem(key+".warehouse", "must be written as s3://bucket/folder")
	case c.Kind != "rest" && c.S3Access == "":
		l.problem(key+".s3-access-key-id", "is missing: the warehouse is in an object store, which wants s3-access-key-id and s3-secret-access-key")
	}
}

func (l *loader) checkREST(c *Catalog, key string) {
	if c.URI == "" {
		l.problem(key, "has no uri: give the address of the catalog")
	} else {
		l.checkTokenAddress(key+".uri", c.URI, c.AllowHTTP)
	}
	if (c.ClientCert == "") != (c.ClientKey == "") {
		l.problem(key+".client-cert", "and client-key belong together: set both or neither")
	}
	for h := range c.Headers {
		if strings.EqualFold(h, "Authorization") {
			l.problem(key+".headers", "holds Authorization, which identity sets")
		}
	}
	if c.ClientSecFile != "" {
		c.ClientSecret = l.secretFile(key+".client-secret-file", key+".client-secret", c.ClientSecFile, c.ClientSecret)
	}
	token, client := c.Token != "" || c.TokenFile != "", c.ClientID != "" || c.ClientSecret != ""
	switch {
	case c.Identity != "service" && (token || client):
		l.problem(key+".identity", "is %q, and a token or client is set: those are for \"service\"", c.Identity)
	case c.Identity != "service":
	case token && client, c.Token != "" && c.TokenFile != "":
		l.problem(key+".identity", "is \"service\" with several credentials: set one of token, token-file and client-id")
	case !token && !client:
		l.problem(key+".identity", "is \"service\" without credentials: set token, token-file, or client-id with client-secret")
	case client && (c.ClientID == "" || c.ClientSecret == ""):
		l.problem(key+".client-id", "and client-secret belong together: set both")
	}
	if c.TokenURI != "" {
		l.checkTokenAddress(key+".token-uri", c.TokenURI, c.AllowHTTP)
	}
}

// checkTokenAddress refuses an address that tokens must not be sent to.
func (l *loader) checkTokenAddress(key, address string, allowHTTP bool) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		l.problem(key, "must be an address such as \"https://catalog.example\"")
	case u.User != nil:
		l.problem(key, "holds a user or password, which have keys of their own")
	case u.Scheme == "http" && !allowHTTP && u.Hostname() != "localhost" && (net.ParseIP(u.Hostname()) == nil || !net.ParseIP(u.Hostname()).IsLoopback()):
		l.problem(key, "is http to another machine: tokens would travel in the clear; use https, or set allow-http")
	}
}
