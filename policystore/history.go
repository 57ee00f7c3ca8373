package policystore

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

// What a change is about (Change.What), and what it did (Change.Action).
const (
	whatServiceDef = "servicedef"
	whatService    = "service"
	whatPolicy     = "policy"
	whatZone       = "zone"
	whatRole       = "role"
	whatUser       = "user"
	whatGroup      = "group"
	whatTags       = "tags"
	whatPassword   = "password"

	actionCreate = "create"
	actionUpdate = "update"
	actionDelete = "delete"
)

// Change is an entry of the history.
type Change struct {
	Seq  int64     // ascending in the order of the changes
	Time time.Time // in UTC
	// User made the change, from the address From; empty when the caller did not
	// say (admin.WithAuthor).
	User, From string
	// What is "policy", "role", "tags", "zone", "service", "servicedef", "user",
	// "group" or "password".
	What    string
	ID      int64  // of the object
	Name    string // of the object
	Service string // of a policy or tags
	Action  string // "create", "update" or "delete"
	Version int64  // of the object afterwards, for a deleted one before; 0: it has none
	// Document is the object afterwards as JSON; of a policy see PolicyAt, of tags
	// it is what was imported.
	Document json.RawMessage
}

// HistoryFilter selects changes; what is zero is not asked for.
type HistoryFilter struct {
	What, Service, Name, User string
	ID                        int64
	Since, Until              time.Time // both inclusive
	Before                    int64     // only entries with a lower Seq, for paging
	Limit                     int       // 0: all
}

// change is an entry that is about to be written.
type change struct {
	what          string
	id            int64
	name, service string
	action        string
	version       int64
}

// record writes an entry, with the object as it is now unless that is nil.
func (t *tx) record(h change, after any) error {
	var doc []byte
	if after != nil {
		var err error
		if doc, err = encode(after); err != nil {
			return err
		}
	}
	return t.exec(`INSERT INTO history (time, user, origin, what, id, name, service, action, version, doc)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		t.millis(), t.author.User, t.author.From, h.what, h.id, h.name, h.service, h.action, h.version, doc)
}

// History lists changes, the latest first.
func (s *Store) History(ctx context.Context, f HistoryFilter) ([]Change, error) {
	where, args := []string{"1"}, []any{}
	add := func(asked bool, condition string, arg any) {
		if asked {
			where, args = append(where, condition), append(args, arg)
		}
	}
	add(f.What != "", "what = ?", f.What)
	add(f.Service != "", "service = ?", f.Service)
	add(f.Name != "", "name = ?", f.Name)
	add(f.User != "", "user = ?", f.User)
	add(f.ID != 0, "id = ?", f.ID)
	add(!f.Since.IsZero(), "time >= ?", f.Since.UnixMilli())
	add(!f.Until.IsZero(), "time <= ?", f.Until.UnixMilli())
	add(f.Before != 0, "seq < ?", f.Before)
	limit := f.Limit
	if limit <= 0 {
		limit = -1
	}
	var all []Change
	err := s.read(ctx, func(q *tx) error {
		return q.each(`SELECT seq, time, user, origin, what, id, name, service, action, version, doc FROM history
			WHERE `+strings.Join(where, " AND ")+` ORDER BY seq DESC LIMIT ?`, append(args, limit), func(scan func(...any) error) error {
			var c Change
			var at int64
			var doc []byte
			if err := scan(&c.Seq, &at, &c.User, &c.From, &c.What, &c.ID, &c.Name, &c.Service, &c.Action, &c.Version, &doc); err != nil {
				return err
			}
			c.Time = time.UnixMilli(at).UTC()
			if len(doc) > 0 {
				c.Document = doc
			}
			all = append(all, c)
			return nil
		})
	})
	return all, err
}

// PolicyVersions implements admin.Server; the versions of deleted policies are
// kept.
func (s *Store) PolicyVersions(ctx context.Context, id int64) ([]int64, error) {
	var all []int64
	err := s.read(ctx, func(q *tx) error {
		return q.each(`SELECT version FROM policy_versions WHERE policy_id = ? ORDER BY version`, []any{id}, func(scan func(...any) error) error {
			var v int64
			err := scan(&v)
			all = append(all, v)
			return err
		})
	})
	if err == nil && len(all) == 0 {
		return nil, noSuchID("RangerPolicy")
	}
	return all, err
}

// PolicyAt implements admin.Server.
func (s *Store) PolicyAt(ctx context.Context, id, version int64) (*model.Policy, error) {
	p := &model.Policy{}
	err := s.read(ctx, func(q *tx) error {
		var doc []byte
		err := optional(q.one(`SELECT doc FROM policy_versions WHERE policy_id = ? AND version = ?`, []any{id, version}, &doc))
		switch {
		case err != nil:
			return err
		case doc == nil:
			return refuse(admin.NotFound, "", "No version %d of policy with id %d is known", version, id)
		}
		return json.Unmarshal(doc, p)
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}
