package rest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/view"
)

// Table is what the catalog answered about a table, for the scope that asked.
type Table struct {
	// Location is where the metadata lie; where the server does not say, a text that is
	// another one for other metadata. It is empty for a table that is only staged.
	Location string
	Metadata table.Metadata
	// Config is what the server adds for this access. It may hold credentials.
	Config map[string]string
	// Credentials are those for places.
	Credentials []StorageCredential
	// ReadRestrictions is what the catalog demands of the reader, as it was sent; nil
	// when it sent none.
	ReadRestrictions json.RawMessage
	// ETag is the mark to load again with; "" for none.
	ETag string
}

// StorageCredential is for what lies below a prefix.
type StorageCredential struct {
	Prefix string            `json:"prefix"`
	Config map[string]string `json:"config"`
}

// Format shows nothing of an answer, which may hold credentials.
func (*Table) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("rest.Table")) }

// Format hides the credentials for every verb.
func (StorageCredential) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("[secret]")) }

// ScanPlanning is who plans the scans of the table: "client" or "server".
func (t *Table) ScanPlanning() string {
	if m := strings.ToLower(t.Config["scan-planning-mode"]); m != "" {
		return m
	}
	return "client"
}

// loaded is LoadTableResult, and CommitTableResponse, which has less.
type loaded struct {
	Location     string              `json:"metadata-location"`
	Metadata     json.RawMessage     `json:"metadata"`
	Config       map[string]string   `json:"config"`
	Credentials  []StorageCredential `json:"storage-credentials"`
	Restrictions said                `json:"read-restrictions"`
}

// ErrMetadata: the metadata that the catalog sent cannot be understood.
var ErrMetadata = errors.New("the metadata cannot be understood")

func (l *loaded) table(ctx context.Context, c *Client, operation string, a answer, outcome Outcome) (out *Table, err error) {
	out = &Table{Location: l.Location, Config: l.Config, Credentials: l.Credentials, ETag: a.header.Get("ETag")}
	if l.Restrictions != nil && string(l.Restrictions) != "null" {
		out.ReadRestrictions = json.RawMessage(l.Restrictions)
	}
	if out.Config == nil {
		out.Config = map[string]string{}
	}
	fail := func(err error) (*Table, error) {
		return nil, &Error{Operation: operation, Outcome: outcome, cause: err}
	}
	if len(l.Metadata) == 0 {
		return fail(errNonsense)
	}
	if out.Metadata, err = c.metadata.parse(l.Metadata, !IsAside(ctx)); err != nil {
		return fail(fmt.Errorf("%w: %w", ErrMetadata, err))
	}
	return out, nil
}

// located gives a table without a place one by its content.
func (t *Table) located(l *loaded) *Table {
	if t.Location == "" {
		sum := sha256.Sum256(l.Metadata)
		t.Location = "sha256:" + hex.EncodeToString(sum[:])
	}
	return t
}

// said is a member of an answer that must not be there twice: of two, encoding/json
// takes the last.
type said json.RawMessage

// UnmarshalJSON implements json.Unmarshaler.
func (s *said) UnmarshalJSON(b []byte) error {
	if *s != nil {
		return errors.New("a member is there twice")
	}
	*s = bytes.Clone(b)
	return nil
}

// guarded turns a panic over a malformed answer into an error.
func guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("panic over an answer")
		}
	}()
	return f()
}

type metadataOnlyKey struct{}

// MetadataOnly marks calls that are about the definition of tables and not about their
// rows: no access to data is asked for, and so no right to it.
func MetadataOnly(ctx context.Context) context.Context {
	return context.WithValue(ctx, metadataOnlyKey{}, true)
}

// IsMetadataOnly reports whether a context was marked by MetadataOnly.
func IsMetadataOnly(ctx context.Context) bool { return ctx.Value(metadataOnlyKey{}) != nil }

type asideKey struct{}

// Aside marks calls that the server makes for itself, beside those of statements: what
// they read is not kept, so that nothing that statements need makes way for it.
func Aside(ctx context.Context) context.Context {
	return context.WithValue(ctx, asideKey{}, true)
}

// IsAside reports whether a context was marked by Aside.
func IsAside(ctx context.Context) bool { return ctx.Value(asideKey{}) != nil }

func (c *Client) delegation(ctx context.Context) map[string]string {
	if c.o.Delegation == "" || IsMetadataOnly(ctx) {
		return map[string]string{}
	}
	return map[string]string{"X-Iceberg-Access-Delegation": c.o.Delegation}
}

// LoadTable loads a table. With the mark of an earlier answer to the same scope it
// is nil when the catalog says that nothing has changed since. That is said of the
// metadata alone (specification, ETag of loadTable): whoever heeds the restrictions or the
// credentials of an answer sends no mark. Without one, no cache on the way may answer
// either.
func (c *Client) LoadTable(ctx context.Context, namespace []string, name, etag string) (*Table, error) {
	var said loaded
	r := call{operation: "load table", method: http.MethodGet, header: c.delegation(ctx), into: &said}
	if etag != "" {
		r.header["If-None-Match"] = etag
	} else {
		r.header["Cache-Control"] = "no-cache, no-store"
	}
	a, err := c.answered(ctx, r, namespace, "tables", name)
	if err != nil || a.status == http.StatusNotModified {
		return nil, err
	}
	t, err := said.table(ctx, c, r.operation, a, NotDone)
	if err != nil {
		return nil, err
	}
	return t.located(&said), nil
}

// credentialsEndpoint is the call for other credentials for a table.
const credentialsEndpoint = "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials"

// LoadCredentials asks for credentials for the files of a table that was loaded. It is
// false where the server does not say that it has such a call.
func (c *Client) LoadCredentials(ctx context.Context, namespace []string, name string) ([]StorageCredential, bool, error) {
	s, err := c.settings(ctx)
	if err != nil || !s.endpoints[credentialsEndpoint] {
		return nil, false, err
	}
	var said struct {
		Credentials []StorageCredential `json:"storage-credentials"`
	}
	err = c.at(ctx, call{operation: "load credentials", method: http.MethodGet, header: c.delegation(ctx), into: &said}, namespace, "tables", name, "credentials")
	return said.Credentials, true, err
}

// NewTable is what a table is to be.
type NewTable struct {
	Name       string                 `json:"name"`
	Schema     *iceberg.Schema        `json:"schema"`
	Spec       *iceberg.PartitionSpec `json:"partition-spec,omitempty"`
	Order      *table.SortOrder       `json:"write-order,omitempty"`
	Properties map[string]string      `json:"properties"`
	// Location is where it is to lie; "" leaves that to the server.
	Location string `json:"location,omitempty"`
	// Stage asks what the table would be, and creates none.
	Stage bool `json:"stage-create"`
}

// CreateTable creates a table, or stages one. The server assigns the ids.
func (c *Client) CreateTable(ctx context.Context, namespace []string, n NewTable) (*Table, error) {
	var said loaded
	r := call{operation: "create table", method: http.MethodPost, header: c.delegation(ctx), body: n, into: &said}
	outcome := Unknown
	if n.Stage {
		r.operation, outcome = "stage table", NotDone
	}
	a, err := c.answered(ctx, r, namespace, "tables")
	if err != nil {
		return nil, err
	}
	t, err := said.table(ctx, c, r.operation, a, outcome)
	if err != nil || n.Stage {
		return t, err
	}
	return t.located(&said), nil
}

// Commit changes a table if what is required holds; fails with 409 if not. The
// answer has neither restrictions nor credentials.
func (c *Client) Commit(ctx context.Context, namespace []string, name string, required []table.Requirement, updates []table.Update) (*Table, error) {
	if required == nil {
		required = []table.Requirement{}
	}
	var said loaded
	r := call{operation: "commit table", method: http.MethodPost, into: &said, body: map[string]any{
		"identifier": identifier{namespace, name}, "requirements": required, "updates": updates,
	}}
	a, err := c.answered(ctx, r, namespace, "tables", name)
	if err != nil {
		return nil, err
	}
	t, err := said.table(ctx, c, r.operation, a, Unknown)
	if err != nil {
		return nil, err
	}
	return t.located(&said), nil
}

// View is what the catalog answered about a view.
type View struct {
	Location string
	Metadata view.Metadata
}

type loadedView struct {
	Location string          `json:"metadata-location"`
	Metadata json.RawMessage `json:"metadata"`
}

func (l *loadedView) view(operation string, outcome Outcome) (*View, error) {
	out := &View{Location: l.Location}
	err := guarded(func() (err error) {
		out.Metadata, err = view.ParseMetadataBytes(l.Metadata)
		return err
	})
	if err != nil {
		return nil, &Error{Operation: operation, Outcome: outcome, cause: fmt.Errorf("%w: %w", ErrMetadata, err)}
	}
	if out.Location == "" {
		sum := sha256.Sum256(l.Metadata)
		out.Location = "sha256:" + hex.EncodeToString(sum[:])
	}
	return out, nil
}

// LoadView loads a view.
func (c *Client) LoadView(ctx context.Context, namespace []string, name string) (*View, error) {
	var said loadedView
	r := call{operation: "load view", method: http.MethodGet, into: &said}
	if err := c.at(ctx, r, namespace, "views", name); err != nil {
		return nil, err
	}
	return said.view(r.operation, NotDone)
}

// NewView is what a view is to be.
type NewView struct {
	Name       string            `json:"name"`
	Schema     *iceberg.Schema   `json:"schema"`
	Version    *view.Version     `json:"view-version"`
	Properties map[string]string `json:"properties"`
}

// CreateView creates a view.
func (c *Client) CreateView(ctx context.Context, namespace []string, n NewView) error {
	return c.at(ctx, call{operation: "create view", method: http.MethodPost, body: n, into: &loadedView{}}, namespace, "views")
}

// CommitView changes a view.
func (c *Client) CommitView(ctx context.Context, namespace []string, name string, required []view.Requirement, updates []view.Update) error {
	return c.at(ctx, call{operation: "commit view", method: http.MethodPost, into: &loadedView{}, body: map[string]any{
		"identifier": identifier{namespace, name}, "requirements": required, "updates": updates,
	}}, namespace, "views", name)
}
