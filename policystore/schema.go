package policystore

import (
	"context"
	"encoding/json"
	"fmt"

	"sqe/fault"
	"sqe/identity"
	"sqe/rangerclient/model"
	"sqe/rangerclient/servicedef"
)

// schemaVersion is the user_version of the files that this package writes. A later
// schema adds a step to prepare; what an earlier one wrote is kept.
const schemaVersion = 1

// Ids are never given twice (AUTOINCREMENT): a version of an id stands for one
// content for ever. A policy's doc is what downloads show of it; who wrote it when
// is beside it. Times are epoch milliseconds. zone_id 0 is no zone.
const schema = `
CREATE TABLE counters (name TEXT PRIMARY KEY, version INTEGER NOT NULL, time INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE servicedefs (
	id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, version INTEGER NOT NULL, doc BLOB NOT NULL);
CREATE TABLE services (
	id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, type TEXT NOT NULL, enabled INTEGER NOT NULL,
	tag_service INTEGER REFERENCES services (id), doc BLOB NOT NULL,
	policy_version INTEGER NOT NULL, policy_time INTEGER NOT NULL, tag_version INTEGER NOT NULL, tag_time INTEGER NOT NULL);
CREATE INDEX services_tag_service ON services (tag_service);
CREATE TABLE zones (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, doc BLOB NOT NULL);
CREATE TABLE zone_refs (
	zone_id INTEGER NOT NULL REFERENCES zones (id) ON DELETE CASCADE, kind TEXT NOT NULL, name TEXT NOT NULL,
	PRIMARY KEY (kind, name, zone_id)) WITHOUT ROWID;
CREATE INDEX zone_refs_zone ON zone_refs (zone_id);

CREATE TABLE policies (
	id INTEGER PRIMARY KEY AUTOINCREMENT, guid TEXT NOT NULL UNIQUE,
	service_id INTEGER NOT NULL REFERENCES services (id), zone_id INTEGER NOT NULL,
	name TEXT NOT NULL, signature TEXT NOT NULL, enabled INTEGER NOT NULL, version INTEGER NOT NULL,
	created_by TEXT NOT NULL, updated_by TEXT NOT NULL, create_time INTEGER NOT NULL, update_time INTEGER NOT NULL,
	doc BLOB NOT NULL, UNIQUE (service_id, zone_id, name), UNIQUE (service_id, signature));
CREATE INDEX policies_service ON policies (service_id, id);
CREATE TABLE policy_refs (
	policy_id INTEGER NOT NULL REFERENCES policies (id) ON DELETE CASCADE, kind TEXT NOT NULL, name TEXT NOT NULL,
	PRIMARY KEY (kind, name, policy_id)) WITHOUT ROWID;
CREATE INDEX policy_refs_policy ON policy_refs (policy_id);
CREATE TABLE policy_versions (
	policy_id INTEGER NOT NULL, version INTEGER NOT NULL, doc BLOB NOT NULL,
	PRIMARY KEY (policy_id, version)) WITHOUT ROWID;

CREATE TABLE roles (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, doc BLOB NOT NULL);
CREATE TABLE role_refs (
	role_id INTEGER NOT NULL REFERENCES roles (id) ON DELETE CASCADE, kind TEXT NOT NULL, name TEXT NOT NULL,
	PRIMARY KEY (kind, name, role_id)) WITHOUT ROWID;
CREATE INDEX role_refs_role ON role_refs (role_id);
CREATE TABLE users (
	id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, admin_roles TEXT NOT NULL, doc BLOB NOT NULL,
	password_hash TEXT NOT NULL);
CREATE TABLE groups (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, doc BLOB NOT NULL);
CREATE TABLE memberships (
	user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	group_id INTEGER NOT NULL REFERENCES groups (id) ON DELETE CASCADE,
	PRIMARY KEY (user_id, group_id)) WITHOUT ROWID;
CREATE INDEX memberships_group ON memberships (group_id);

CREATE TABLE tag_definitions (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, guid TEXT NOT NULL UNIQUE, doc BLOB NOT NULL);
CREATE TABLE tags (id INTEGER PRIMARY KEY AUTOINCREMENT, guid TEXT NOT NULL UNIQUE, shared INTEGER NOT NULL, doc BLOB NOT NULL);
CREATE TABLE tag_resources (
	id INTEGER PRIMARY KEY AUTOINCREMENT, guid TEXT NOT NULL UNIQUE,
	service_id INTEGER NOT NULL REFERENCES services (id) ON DELETE CASCADE,
	signature TEXT NOT NULL, doc BLOB NOT NULL, UNIQUE (service_id, signature));
CREATE TABLE tag_map (
	resource_id INTEGER NOT NULL REFERENCES tag_resources (id) ON DELETE CASCADE,
	tag_id INTEGER NOT NULL REFERENCES tags (id) ON DELETE CASCADE,
	PRIMARY KEY (resource_id, tag_id)) WITHOUT ROWID;
CREATE INDEX tag_map_tag ON tag_map (tag_id);

CREATE TABLE history (
	seq INTEGER PRIMARY KEY AUTOINCREMENT, time INTEGER NOT NULL, user TEXT NOT NULL, origin TEXT NOT NULL,
	what TEXT NOT NULL, id INTEGER NOT NULL, name TEXT NOT NULL, service TEXT NOT NULL, action TEXT NOT NULL,
	version INTEGER NOT NULL, doc BLOB);
CREATE INDEX history_object ON history (what, id);
`

// The counters of what is one for all services.
const (
	roleVersion      = "roles"
	userStoreVersion = "userstore"
	loginVersion     = "logins"
)

// The principals that every store has. Source: a fresh Ranger Admin 2.9.
const (
	adminUser   = "admin"
	publicGroup = "public"
)

// pseudoUsers stand for whoever asks and for whoever owns what is asked for.
var pseudoUsers = []string{"{USER}", "{OWNER}"}

// prepare brings the file to this schema: a new one is filled.
func (s *Store) prepare(ctx context.Context, path, adminPassword string) error {
	version := -1
	err := s.read(ctx, func(q *tx) error { return q.one(`PRAGMA user_version`, nil, &version) })
	if err != nil {
		return err
	}
	if version == schemaVersion {
		return s.whole(ctx)
	}
	if version > schemaVersion {
		return newer()
	}
	s.log.Warn("a policy store is made that holds no policy; if there was one, put its file back", "file", path)
	hash := ""
	if adminPassword == "" {
		s.log.Warn("a policy store is made whose user admin has no password and cannot log in")
	} else {
		if hash, err = identity.HashPassword(adminPassword); err != nil {
			return err
		}
	}
	return s.write(ctx, func(c *tx) error {
		// Another process may have come between.
		if err := c.one(`PRAGMA user_version`, nil, &version); err != nil || version == schemaVersion {
			return err
		}
		if version > schemaVersion {
			return newer()
		}
		if foreign, err := c.exists(`SELECT 1 FROM sqlite_master`); err != nil {
			return err
		} else if foreign {
			return fault.New(fault.Config, "The file of the policy store is another program's database; choose another path")
		}
		if err := c.exec(schema); err != nil {
			return err
		}
		if err := c.seed(hash); err != nil {
			return err
		}
		return c.exec(fmt.Sprintf(`PRAGMA user_version = %d`, schemaVersion))
	})
}

// whole refuses a damaged file. SQLite itself does not notice an index that has lost
// an entry, or a tag without its resource: with them policies would be lost in
// silence.
func (s *Store) whole(ctx context.Context) error {
	return s.read(ctx, func(q *tx) error {
		found, err := q.texts(`PRAGMA integrity_check(1)`)
		if err != nil {
			return err
		}
		torn, err := q.exists(`SELECT 1 FROM pragma_foreign_key_check`)
		if err != nil {
			return err
		}
		if torn || len(found) != 1 || found[0] != "ok" {
			return fault.New(fault.Unavailable, "The file of the policy store is damaged; put a backup of it, or an export, in its place")
		}
		return nil
	})
}

func newer() error {
	return fault.New(fault.Config, "The policy store was written by a newer version of the server; run that version, or choose another file")
}

// seed fills a new store.
func (t *tx) seed(adminHash string) error {
	for _, name := range []string{roleVersion, userStoreVersion, loginVersion} {
		if err := t.exec(`INSERT INTO counters VALUES (?, 1, ?)`, name, t.millis()); err != nil {
			return err
		}
	}
	for _, typ := range []string{"tag", "hive", "trino", "polaris"} {
		doc, err := servicedef.JSON(typ)
		if err != nil {
			return err
		}
		var d model.ServiceDef
		if err := json.Unmarshal(doc, &d); err != nil {
			return err
		}
		if err := t.exec(`INSERT INTO servicedefs VALUES (?, ?, 1, ?)`, d.ID, d.Name, compact(doc)); err != nil {
			return err
		}
	}
	if _, err := t.insert(`INSERT INTO groups (name, doc) VALUES (?, '{}')`, publicGroup); err != nil {
		return err
	}
	for _, u := range append([]string{adminUser}, pseudoUsers...) {
		roles, hash := roleUser, ""
		if u == adminUser {
			roles, hash = roleSysAdmin, adminHash
		}
		if _, err := t.insert(`INSERT INTO users (name, admin_roles, doc, password_hash) VALUES (?, ?, '{}', ?)`, u, roles, hash); err != nil {
			return err
		}
	}
	return nil
}

// advance raises a counter.
func (t *tx) advance(counter string) error {
	return t.exec(`UPDATE counters SET version = version + 1, time = ? WHERE name = ?`, t.millis(), counter)
}
