// Package config reads the configuration: a TOML file, then the environment.
//
// Invariants: an unknown key, a wrong type or a value out of range is an error;
// every problem is reported at once, with its place and what to do; a secret is
// never printed, not even in the error about it. A value that is not set has its
// default after Load.
//
// The package must never open what the configuration names (other than the key
// file of the masks) or decide what it means.
package config

// Config is the whole configuration. The tags say everything about a key: its
// name, default, what it is for, and its bounds; docs/configuration.md is
// generated from them.
type Config struct {
	Server   Server             `key:"server" doc:"The MySQL port."`
	Ops      Ops                `key:"ops" doc:"Metrics and health."`
	Engine   Engine             `key:"engine" doc:"How statements run."`
	Catalogs []Catalog          `key:"catalogs" doc:"Where tables are. At least one; one of them is the default, whose namespaces appear as plain databases."`
	Cache    ObjectCache        `key:"object-cache" doc:"Parts of data files of object stores that are kept on the local disk, to be read again without the store."`
	Policies []Policy           `key:"policies" doc:"Where policies come from. Without one every table is refused."`
	Store    Store              `key:"policystore" doc:"The embedded policy store: Ranger's policies, roles, users and tags in one SQLite file, for where nobody runs a Ranger. A [[policies]] section of kind \"store\" reads it."`
	Import   Import             `key:"import" doc:"Files that become tables or rows: LOAD DATA INFILE, CREATE TABLE ... FROM INFILE and sqe import (docs/sql.md)."`
	Masks    Masks              `key:"masks" doc:"How masks work."`
	Users    []User             `key:"users" doc:"Users with passwords."`
	Identity []IdentityProvider `key:"identity-providers" doc:"Who else may log in, and how they are known: docs/keycloak.md is the guide. They are asked in this order, after [[users]]; the first that recognises a login decides alone."`
	Audit    Audit              `key:"audit" doc:"The audit log: one JSON object a line for each statement and login. The file is made with mode 0600; to rotate it, rename it and send SIGHUP."`
	Outputs  []AuditOutput      `key:"audit-outputs" doc:"Where audit events go beside the audit log, in the form in which Ranger's plugins write them: a file, a Solr (from where a Ranger Admin shows them), or any HTTP server. docs/operations.md says what an event holds. None of them keeps a statement waiting."`
	Log      Log                `key:"log" doc:"The log of the server, on standard error."`

	// Dir is the folder of the file, absolute.
	Dir string
}

// Server is [server].
type Server struct {
	Address          string   `key:"address" default:"127.0.0.1" doc:"Address to listen on; \"0.0.0.0\" or \"::\" for all."`
	Port             int      `key:"port" default:"3306" min:"0" max:"65535" doc:"Port to listen on; 0 takes a free one."`
	TLSCert          Path     `key:"tls-cert" doc:"Certificate (with its chain), PEM. Without one a self-signed certificate is made and kept in state-directory."`
	TLSKey           Path     `key:"tls-key" doc:"Private key of the certificate, PEM."`
	RequireTLS       bool     `key:"require-tls" default:"true" doc:"Refuse clients without TLS. With false they may connect; their password then travels encrypted with a public key (RSA), everything else in the clear."`
	StateDirectory   Path     `key:"state-directory" default:"state" doc:"Folder for what the server makes itself, such as its certificate."`
	MaxConnections   int      `key:"max-connections" default:"1000" min:"1" max:"100000" doc:"Connections at the same time; more are refused with error 1040."`
	StatementTimeout Duration `key:"statement-timeout" default:"1h" doc:"A statement that runs longer is ended with error 3024; \"0s\": never."`
	IdleTimeout      Duration `key:"idle-timeout" default:"8h" min:"1s" doc:"A connection without a statement for this long is closed."`
	WriteTimeout     Duration `key:"write-timeout" default:"60s" min:"1s" doc:"A connection whose client takes no data for this long is closed."`
	HandshakeTimeout Duration `key:"handshake-timeout" default:"10s" min:"1s" doc:"Time for a login."`
	ShutdownTimeout  Duration `key:"shutdown-timeout" default:"10s" doc:"How long running statements may go on when the server is told to stop."`
	MaxPacket        Size     `key:"max-packet" default:"64MiB" min:"1MiB" max:"1GiB" doc:"Largest statement, and largest set of parameters of a prepared statement."`
	Version          string   `key:"version" default:"8.0.36-SQE" doc:"Version that clients see. Many decide by it what the server can do: keep it at 8.0."`
}

// Ops is [ops].
type Ops struct {
	Address string `key:"address" default:"127.0.0.1:9307" doc:"host:port for /metrics, /healthz and /readyz; \"\" turns them off. The pages need no login and hold no data."`
}

// Engine is [engine].
type Engine struct {
	MemoryLimit   Size `key:"memory-limit" default:"1GiB" min:"64MiB" doc:"Memory for the rows of running statements together; beyond it they spill to temp-directory."`
	Threads       int  `key:"threads" default:"0" min:"0" max:"1024" doc:"Threads that run statements; 0: one for each processor."`
	WriteMemory   Size `key:"write-memory" default:"256MiB" min:"16MiB" doc:"Memory for rows that statements write and that are not in files yet, together. A statement gets half of what is left, and 16MiB at least."`
	TempDirectory Path `key:"temp-directory" default:"tmp" doc:"Folder for what does not fit into memory. It holds rows while statements run."`
	TempLimit     Size `key:"temp-limit" default:"0B" doc:"Most that may lie in temp-directory; 0B: what the disk holds."`
	MaxConcurrent int  `key:"max-concurrent" default:"16" min:"1" max:"10000" doc:"Statements that run at the same time; more wait."`
	RowLimit      int  `key:"row-executor-rows" default:"1000000" min:"1" doc:"Rows that the row executor may read or yield in one statement (docs/sql.md says what needs it)."`
	ByteLimit     Size `key:"row-executor-bytes" default:"256MiB" min:"1MiB" doc:"Memory for the rows of one statement in the row executor."`
}

// ObjectCache is [object-cache].
type ObjectCache struct {
	Size      Size `key:"size" default:"0B" doc:"Most that is kept; 0B keeps nothing. What is kept are rows as the data files hold them, in files with mode 0600 that only the server may read: also those of a table that was dropped since, until newer ones take their place."`
	Directory Path `key:"directory" default:"object-cache" doc:"Folder for them. Nothing else may lie in it; it may be deleted while the server does not run."`
}

// Policy is one of [[policies]].
type Policy struct {
	Name           string   `key:"name" required:"true" doc:"Name in EXPLAIN POLICY, the audit log and metrics."`
	Kind           string   `key:"kind" default:"folder" oneof:"folder ranger store" doc:"folder: Ranger's own JSON documents in a folder. ranger: a Ranger Admin that is polled. store: the embedded policy store."`
	Directory      Path     `key:"directory" doc:"folder: the folder. It is watched; a change takes effect as a whole."`
	URL            string   `key:"url" doc:"ranger: address of the Ranger Admin, such as \"https://ranger.example:6182\"."`
	Username       string   `key:"username" doc:"ranger: a user that may download policies, tags, roles and users of both services."`
	Password       Secret   `key:"password" doc:"ranger: the password of the user. Five wrong ones lock a Ranger account, so after a refusal nothing is asked for 60 s."`
	PasswordFile   Path     `key:"password-file" doc:"ranger: file that holds the password instead (the first line)."`
	AdminUsername  string   `key:"admin-username" doc:"ranger: a user that may change policies and roles of the services, for policies written in SQL; \"\": the user above."`
	AdminPassword  Secret   `key:"admin-password" doc:"ranger: the password of that user."`
	AdminPassFile  Path     `key:"admin-password-file" doc:"ranger: file that holds that password instead (the first line)."`
	ProjectTags    bool     `key:"project-tags" default:"false" doc:"ranger, store: write tags that are set in SQL also to the tag store of the policy server, for other engines. A tag change fails as a whole when that fails."`
	GroupsAsRoles  bool     `key:"grant-groups-as-roles" default:"false" doc:"ranger, store: GRANT and DENY to a group are written for the role of its name, for a catalog that knows no groups."`
	ReapplyLost    bool     `key:"reapply-lost-grants" default:"false" doc:"ranger, store: a change of policies that somebody else erased by writing an older version back is written again. It is reported in any case."`
	GrantAuthority string   `key:"grant-authority" default:"server" oneof:"server ranger" doc:"ranger, store: who may GRANT, DENY and REVOKE everything. server: users with admin = true. ranger: administrators of the policy server (ROLE_SYS_ADMIN) and those in service.admin.users or service.admin.groups of polaris-service. Whoever was given something WITH GRANT OPTION may pass that on in any case."`
	AllowHTTP      bool     `key:"allow-http" default:"false" doc:"ranger: permit http:// to another machine; the password then travels in the clear."`
	CAFile         Path     `key:"ca-file" doc:"ranger: certificates (PEM) to trust beside the system's."`
	ClientCert     Path     `key:"client-cert" doc:"ranger: certificate (PEM) of this server as a client."`
	ClientKey      Path     `key:"client-key" doc:"ranger: key of that certificate."`
	SnapshotFile   Path     `key:"snapshot-file" doc:"ranger: keeps the last good policies for a restart while the Ranger Admin is away, within max-staleness."`
	Timeout        Duration `key:"timeout" default:"10s" min:"100ms" doc:"ranger: time for one request."`
	PolarisService string   `key:"polaris-service" doc:"Name of the Ranger service for access to objects; \"\": the source has none."`
	DataService    string   `key:"data-service" required:"true" doc:"Name of the Ranger service, of type hive or trino, for row filters and masks."`
	Realm          string   `key:"realm" default:"POLARIS" doc:"Root of the resources in policies of polaris-service."`
	Groups         string   `key:"groups" default:"both" oneof:"both identity ranger" doc:"Whose groups count: those of the login, those of Ranger's user store, or both."`
	DatabaseKey    string   `key:"database-key" default:"both" oneof:"both namespace catalog.namespace last-level" doc:"What the database of a hive policy names: \"ns1.ns2\", \"catalog.ns1.ns2\", either, or \"ns1.ns2\" and \"ns2\" alone."`
	MaskPrecedence string   `key:"mask-precedence" default:"tag" oneof:"tag resource" doc:"Which mask acts where a tag policy and a policy on the column both have one."`
	Filters        string   `key:"filter-combination" default:"all" oneof:"all ranger" doc:"all: the row filters of tags and of the table both hold. ranger: one, as Ranger's engine gives."`
	ColumnAccess   string   `key:"column-access" default:"deny" oneof:"deny ignore" doc:"deny: a column on which the data service denies select is withheld."`
	NestedWild     string   `key:"nested-wildcards" default:"schema" oneof:"schema polaris" doc:"What * in the table of a policy of polaris-service stands for. schema: the tables directly in the schema, unless the schema is * too. polaris: also those of the schemas inside it, as Polaris takes it."`
	PollInterval   Duration `key:"poll-interval" default:"10s" min:"100ms" doc:"How often the source is asked for changes."`
	MaxStaleness   Duration `key:"max-staleness" default:"60s" min:"1s" doc:"When the source was not read for this long every statement on tables is refused (error 9001)."`
}

// Store is [policystore].
type Store struct {
	Path          Path   `key:"path" doc:"The SQLite file; it is made when it is missing. \"\": there is no store."`
	AdminPassword Secret `key:"admin-password" doc:"Password of the store's user admin, set when the file is made. Without one nobody can log in over REST."`
	AdminPassFile Path   `key:"admin-password-file" doc:"File that holds that password instead (the first line)."`
	Listen        string `key:"listen" doc:"host:port on which the store answers as a Ranger Admin does, to the plugins of other engines and to administrators; \"\": it does not."`
	TLSCert       Path   `key:"tls-cert" doc:"Certificate (with its chain), PEM. Without one that of the server is used."`
	TLSKey        Path   `key:"tls-key" doc:"Private key of the certificate, PEM."`
	PlainHTTP     bool   `key:"plain-http" default:"false" doc:"Serve without TLS. Only on a loopback address: passwords travel in the clear."`
}

// Masks is [masks].
type Masks struct {
	HashKey     Secret `key:"hash-key" doc:"Key of MASK_HASH, at least 16 characters. Needed when a policy uses MASK_HASH; without it the server does not start."`
	HashKeyFile Path   `key:"hash-key-file" doc:"File that holds the key instead (the first line)."`
	ShortValues string `key:"short-values" default:"mask" oneof:"mask keep" doc:"Values of four characters or fewer under Ranger's show-4 masks: mask them whole, or keep them as Hive does."`
	Rendering   string `key:"rendering" default:"sqe" oneof:"sqe trino spark" doc:"Whose characters Ranger's text masks write: SQE's own, or those of Trino or of Spark with Kyuubi, which treat letters of ASCII only."`
	UnkeyedHash bool   `key:"unkeyed-hash" default:"false" doc:"MASK_HASH of text is the digest that Trino (SHA-256) or Spark (MD5) would make, without a key, and NULL for other types. Only with rendering \"trino\" or \"spark\". Weaker: whoever can guess a value can recognise it."`
}

// User is one of [[users]].
type User struct {
	Name         string            `key:"name" required:"true" doc:"Name to log in with; exact, case included."`
	PasswordHash Secret            `key:"password-hash" required:"true" doc:"argon2id hash of the password; sqe hash-password makes one."`
	Groups       []string          `key:"groups" doc:"Groups of the user in policies."`
	Roles        []string          `key:"roles" doc:"Roles of the user in policies, beside those that policy sources give."`
	Attributes   map[string]string `key:"attributes" doc:"Attributes of the user in policies."`
	Admin        bool              `key:"admin" default:"false" doc:"May see policies in full, other people's statements and the status of the server. Gives no access to data."`
}

// Audit is [audit].
type Audit struct {
	File      Path   `key:"file" default:"audit.jsonl" doc:"The file; \"\" turns the audit log off."`
	OnFailure string `key:"on-failure" default:"refuse" oneof:"refuse log" doc:"When an event cannot be recorded: refuse statements, or log the failure and go on."`
	Sync      string `key:"sync" default:"interval" oneof:"none interval always" doc:"When events are forced from memory to the disk, should the machine lose power (nothing is lost when the process ends or is killed). none: when the operating system does. interval: every second. always: before the statement ends; statements that end together share one call. It holds for audit-outputs too, which no statement waits for."`
	Spool     Path   `key:"spool-directory" default:"audit-spool" doc:"Folder in which events wait until an audit output took them, one folder for each."`
	Agent     string `key:"agent" default:"sqe" doc:"Name of this server's kind in events for Ranger (agent)."`
	AgentHost string `key:"agent-host" doc:"Name of this server in events for Ranger (agentHost); \"\": the name of the machine."`
	Cluster   string `key:"cluster" doc:"Name of the cluster in events for Ranger (cluster)."`
}

// AuditOutput is one of [[audit-outputs]].
type AuditOutput struct {
	Name         string   `key:"name" required:"true" doc:"Name in metrics and logs, and of its folder in spool-directory: letters, digits, - and _."`
	Kind         string   `key:"kind" required:"true" oneof:"file solr http" doc:"file: one event a line. solr: a Solr collection with Ranger's schema. http: an HTTP server that takes events in a POST."`
	File         Path     `key:"file" doc:"file: the file, made with mode 0600; to rotate it, rename it and send SIGHUP."`
	URL          string   `key:"url" doc:"solr: address of the collection, such as \"https://solr.example:8983/solr/ranger_audits\". http: address to POST to."`
	Format       string   `key:"format" default:"array" oneof:"array lines" doc:"http: a batch is one JSON array, or one JSON object a line."`
	Username     string   `key:"username" doc:"solr, http: user for basic authentication."`
	Password     Secret   `key:"password" doc:"solr, http: the password of the user."`
	PasswordFile Path     `key:"password-file" doc:"solr, http: file that holds the password instead (the first line)."`
	AllowHTTP    bool     `key:"allow-http" default:"false" doc:"solr, http: permit http:// to another machine; events and the password then travel in the clear."`
	CAFile       Path     `key:"ca-file" doc:"solr, http: certificates (PEM) to trust beside the system's."`
	ClientCert   Path     `key:"client-cert" doc:"solr, http: certificate (PEM) of this server as a client."`
	ClientKey    Path     `key:"client-key" doc:"solr, http: key of that certificate."`
	Timeout      Duration `key:"timeout" default:"30s" min:"100ms" doc:"solr, http: time for one batch."`
	SpoolLimit   Size     `key:"spool-limit" default:"1GiB" min:"1MiB" doc:"solr, http: most that waits on the disk; about a million events fit into 1GiB."`
	WhenFull     string   `key:"when-full" default:"drop-oldest" oneof:"drop-oldest refuse" doc:"solr, http: when that is reached: drop the oldest events, which are counted, logged and still in the audit log; or refuse statements until there is room."`
}

// Log is [log].
type Log struct {
	Level  string `key:"level" default:"info" oneof:"debug info warn error" doc:"The least level that is written."`
	Format string `key:"format" default:"text" oneof:"text json" doc:"Format of a line."`
}
