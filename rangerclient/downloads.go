package rangerclient

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"sqe/rangerclient/model"
)

// downloads is the loader of a policy server: it asks for each document by the
// version that it has. One poll runs at a time.
type downloads struct {
	server string // which server, so that documents of another one are not taken for its own
	// snapshotFile keeps the last good documents for a restart while the server is
	// away; empty: none is kept.
	snapshotFile                string
	polarisService, dataService string
	now                         func() time.Time
	// fetch downloads one document; nil when there is nothing newer than version,
	// which is -1 for whatever there is.
	fetch    func(ctx context.Context, d document, version int64) ([]byte, error)
	kindName string

	bodies map[string][]byte // of the last poll that fetched everything, by document
	saved  time.Time
}

func (r *downloads) kind() string { return r.kindName }

// documentKind is one of the four kinds of downloads.
type documentKind int

const (
	policiesDocument documentKind = iota
	tagsDocument
	rolesDocument
	usersDocument
)

// document is one download: a kind of a service.
type document struct {
	name    string // as in Status
	kind    documentKind
	service string
}

// address is the path of the document at a Ranger Admin, and the parameters that
// ask for what is newer than version, as changes where there is a version.
// Source: Ranger's plugins.
func (d document) address(version int64) (path string, query url.Values) {
	service, known := url.PathEscape(d.service), "lastKnownVersion"
	query = url.Values{}
	switch d.kind {
	case policiesDocument:
		path = "/service/plugins/secure/policies/download/"
		query.Set("supportsPolicyDeltas", strconv.FormatBool(version >= 0))
	case tagsDocument:
		path = "/service/tags/secure/download/"
		query.Set("supportsTagDeltas", strconv.FormatBool(version >= 0))
	case rolesDocument:
		path, known = "/service/roles/secure/download/", "lastKnownRoleVersion"
	default:
		path, known = "/service/xusers/secure/download/", "lastKnownUserStoreVersion"
	}
	query.Set(known, strconv.FormatInt(version, 10))
	return path + service, query
}

func (r *downloads) documents() []document {
	list := []document{
		{"policies/" + r.dataService, policiesDocument, r.dataService},
		{"tags/" + r.dataService, tagsDocument, r.dataService},
		{"roles", rolesDocument, r.dataService},
		{"users", usersDocument, r.dataService},
	}
	if r.polarisService != "" {
		list = append(list,
			document{"policies/" + r.polarisService, policiesDocument, r.polarisService},
			document{"tags/" + r.polarisService, tagsDocument, r.polarisService})
	}
	return list
}

func (r *downloads) load(ctx context.Context, prev *documents) (*documents, error) {
	known := map[string]int64{}
	if prev != nil {
		known = prev.versions()
	}
	bodies := map[string][]byte{}
	changed := prev == nil
	for _, d := range r.documents() {
		version := int64(-1)
		if v, ok := known[d.name]; ok && r.bodies[d.name] != nil {
			version = v
		}
		body, err := r.fetchWhole(ctx, d, version)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.name, err)
		}
		switch {
		case body != nil:
			changed = true
			bodies[d.name] = body
		case r.bodies[d.name] != nil:
			bodies[d.name] = r.bodies[d.name]
		case d.kind == policiesDocument:
			return nil, fmt.Errorf("%s: the policy server has none", d.name)
		}
	}
	if !changed {
		return prev, nil
	}
	docs, err := r.parse(bodies)
	if err != nil {
		return nil, err
	}
	if err := notOlder(prev, docs); err != nil {
		return nil, err
	}
	r.bodies = bodies
	return docs, nil
}

// fetchWhole downloads a document. Where the server answers with changes that
// cannot be applied to what is there, it is asked for everything.
func (r *downloads) fetchWhole(ctx context.Context, d document, version int64) ([]byte, error) {
	answer, err := r.fetch(ctx, d, version)
	if err != nil || answer == nil {
		return nil, err
	}
	before := r.bodies[d.name]
	if version < 0 {
		before = nil // everything was asked for
	}
	body, err := d.whole(before, answer)
	if err == nil && !bytes.Equal(body, answer) {
		// Applied changes must give a document that holds together.
		switch d.kind {
		case policiesDocument:
			_, err = model.DecodePolicies(body, d.service)
		case tagsDocument:
			_, err = model.DecodeTags(body, d.service)
		}
	}
	if err == nil || version < 0 {
		return body, err
	}
	return r.fetchWhole(ctx, d, -1)
}

// parse reads the bodies of one poll.
func (r *downloads) parse(bodies map[string][]byte) (*documents, error) {
	d := &documents{objectsName: r.polarisService, tablesName: r.dataService}
	names := make([]string, 0, len(bodies))
	for name := range bodies {
		names = append(names, name)
	}
	slices.Sort(names)
	hash := sha256.New()
	for _, name := range names {
		fmt.Fprintf(hash, "%s %d\n", name, len(bodies[name]))
		hash.Write(bodies[name])
	}
	d.fingerprint = hex.EncodeToString(hash.Sum(nil)[:12])
	var err error
	if d.tables, err = dataPolicies(bodies["policies/"+r.dataService], r.dataService); err != nil {
		return nil, err
	}
	if b := bodies["tags/"+r.dataService]; b != nil {
		if d.tableTags, err = wholeTags(b, r.dataService); err != nil {
			return nil, err
		}
	}
	if b := bodies["roles"]; b != nil {
		if d.roles, err = model.DecodeRoles(b); err != nil {
			return nil, err
		}
	}
	if b := bodies["users"]; b != nil {
		if d.users, err = model.DecodeUserStore(b); err != nil {
			return nil, err
		}
	}
	if r.polarisService == "" {
		return d, nil
	}
	if d.objects, err = objectPolicies(bodies["policies/"+r.polarisService], r.polarisService); err != nil {
		return nil, err
	}
	if b := bodies["tags/"+r.polarisService]; b != nil {
		if d.objectTags, err = wholeTags(b, r.polarisService); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// snapshot is the file of the last good documents.
type snapshot struct {
	Format    int                        `json:"format"`
	Server    string                     `json:"server"`
	Time      time.Time                  `json:"time"` // of the last successful poll
	Documents map[string]json.RawMessage `json:"documents"`
}

// store keeps the documents of a successful poll at that time. When nothing
// changed only the time is new, which is written a few times within the staleness
// bound.
func (r *downloads) store(at time.Time, changed bool, bound time.Duration) error {
	if r.snapshotFile == "" || !changed && at.Sub(r.saved) < bound/4 {
		return nil
	}
	s := snapshot{Format: 1, Server: r.server, Time: at, Documents: map[string]json.RawMessage{}}
	for name, body := range r.bodies {
		s.Documents[name] = body
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(r.snapshotFile), ".snapshot-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = tmp.Write(text)
	if err == nil {
		err = tmp.Sync()
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), r.snapshotFile)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
		return err
	}
	r.saved = at
	return nil
}

// restore reads the documents that an earlier run stored, and the time at which
// they were true.
func (r *downloads) restore() (*documents, time.Time, error) {
	if r.snapshotFile == "" {
		return nil, time.Time{}, nil
	}
	text, err := os.ReadFile(r.snapshotFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil, time.Time{}, nil
	}
	var s snapshot
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	switch {
	case err != nil:
		return nil, time.Time{}, errors.New("the stored policies cannot be read")
	case s.Format != 1 || s.Server != r.server:
		return nil, time.Time{}, errors.New("the stored policies are those of another server")
	case s.Time.After(r.now()):
		return nil, time.Time{}, errors.New("the stored policies come from the future")
	}
	bodies := map[string][]byte{}
	for name, body := range s.Documents {
		bodies[name] = body
	}
	docs, err := r.parse(bodies)
	if err != nil {
		return nil, time.Time{}, err
	}
	r.bodies = bodies
	return docs, s.Time, nil
}
