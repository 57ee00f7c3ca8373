package catalog

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	icebergcatalog "github.com/apache/iceberg-go/catalog"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/view"
	"github.com/google/uuid"

	"sqe/fault"
	"sqe/plan"
)

// The dialects whose text SQE reads, preferred first, and the one it writes.
var dialects = []string{"sqe", "mysql"}

// planView makes the View of a loaded view; stored is the name by which the
// catalog calls itself in its files.
func planView(v *view.View, name plan.TableName, stored string) (*View, error) {
	current := v.CurrentVersion()
	out := &View{
		Name: name, UUID: v.Metadata().ViewUUID().String(), Version: v.MetadataLocation(),
		Catalog: name.Catalog, Namespace: slices.Clone(current.DefaultNamespace),
		Properties: map[string]string(v.Properties()),
	}
	if s := v.CurrentSchema(); s != nil {
		out.Fields = Fields(s)
	}
	if current.DefaultCatalog != "" && current.DefaultCatalog != stored {
		out.Catalog = current.DefaultCatalog
	}
	if len(out.Namespace) == 0 {
		out.Namespace = slices.Clone(name.Namespace)
	}
	var others []string
	for _, d := range dialects {
		for _, r := range current.Representations {
			if strings.EqualFold(r.Dialect, d) && r.Type == "sql" {
				out.SQL = r.Sql
				return out, nil
			}
		}
	}
	for _, r := range current.Representations {
		others = append(others, r.Dialect)
	}
	return nil, fault.New(fault.Unsupported, "View '%s' has its text only in the dialect %s; give it one in the dialect sqe or mysql", name, strings.Join(others, ", "))
}

// mostViewMetadata is the largest view metadata that is read, in bytes.
const mostViewMetadata = 64 << 20

// readView reads the metadata of a view, which Spark compresses by default and
// which iceberg-go's own loader reads uncompressed only.
func readView(ctx context.Context, ident []string, location string, props iceberg.Properties) (*view.View, error) {
	storage, err := icebergio.LoadFS(ctx, props, location)
	if err != nil {
		return nil, err
	}
	f, err := storage.Open(location)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	buffered := bufio.NewReader(f)
	var in io.Reader = buffered
	if magic, err := buffered.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		if in, err = gzip.NewReader(buffered); err != nil {
			return nil, err
		}
	}
	body, err := io.ReadAll(io.LimitReader(in, mostViewMetadata))
	if err != nil {
		return nil, err
	}
	meta, err := view.ParseMetadataBytes(body)
	if err != nil {
		return nil, err
	}
	return view.New(ident, meta, location), nil
}

// CreateView stores a view whose text is in the dialect "sqe". Unqualified names
// in the text are looked up in the namespace of the view. A name that is taken is
// fault.Conflict, a namespace that does not exist fault.NotFound.
func (c *SQL) CreateView(ctx context.Context, name plan.TableName, text string, columns *iceberg.Schema, props map[string]string) error {
	if !c.hasViews {
		return fault.New(fault.Unsupported, "Catalog '%s' has an old layout without views", c.name)
	}
	for _, find := range []func() error{
		func() error { _, err := c.location(ctx, c.locate, name); return err },
		func() error { _, err := c.location(ctx, c.locateView, name); return err },
	} {
		if err := find(); err == nil {
			return fault.New(fault.Conflict, "Table or view '%s' already exists", name)
		} else if !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	nsProps, err := c.iceberg.LoadNamespaceProperties(ctx, name.Namespace)
	if errors.Is(err, icebergcatalog.ErrNoSuchNamespace) {
		return fault.Wrap(fault.NotFound, err, "Unknown database '%s'", JoinDatabase(name.Namespace...))
	} else if err != nil {
		return c.failed(ctx, err)
	}
	version, err := view.NewVersion(1, columns.ID,
		view.Representations{view.NewRepresentation(text, dialects[0])}, name.Namespace, view.WithDefaultViewCatalog(c.stored))
	if err != nil {
		return fault.Wrap(fault.BadStatement, err, "The view has no text")
	}
	location := nsProps.Get("location", "")
	if location == "" {
		location, err = url.JoinPath(c.props["warehouse"], namespaceKey(name.Namespace)+".db")
	}
	if err == nil {
		location, err = url.JoinPath(location, name.Name)
	}
	if err != nil {
		return fault.Wrap(fault.Config, err, "The warehouse of catalog '%s' is no location", c.name)
	}
	builder, err := view.NewMetadataBuilder()
	if err != nil {
		return err
	}
	meta, err := builder.SetLoc(location).SetCurrentVersion(version, columns).SetProperties(props).Build()
	if err != nil {
		return err
	}
	body, err := json.Marshal(meta.Metadata)
	if err != nil {
		return err
	}
	file, err := url.JoinPath(location, "metadata", "00000-"+uuid.NewString()+".metadata.json")
	if err != nil {
		return err
	}
	storage, err := icebergio.LoadFS(ctx, c.props, file)
	if err != nil {
		return c.failed(ctx, err)
	}
	writer, ok := storage.(icebergio.WriteFileIO)
	if !ok {
		return fault.New(fault.Unsupported, "The warehouse of catalog '%s' cannot be written", c.name)
	}
	if err := writer.WriteFile(file, body); err != nil {
		return fault.Wrap(fault.Unavailable, err, "The warehouse of catalog '%s' cannot be written", c.name)
	}
	_, err = c.db.ExecContext(ctx, `INSERT INTO iceberg_tables
		(catalog_name, table_namespace, table_name, metadata_location, iceberg_type) VALUES (?, ?, ?, ?, 'VIEW')`,
		c.stored, namespaceKey(name.Namespace), name.Name, file)
	if err != nil {
		_ = writer.Remove(file)
		// The primary key is the last word when two writers are at it.
		if _, lost := c.location(ctx, c.locateView, name); lost == nil {
			return fault.Wrap(fault.Conflict, err, "Table or view '%s' already exists", name)
		}
		return c.failed(ctx, err)
	}
	return nil
}
