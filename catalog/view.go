package catalog

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
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
func readView(ctx context.Context, ident []string, location string, files storage) (*view.View, error) {
	storage, err := files.files(ctx, location)
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

// CreateView implements Changer. The text is stored in the dialect "sqe". A view
// that is replaced keeps its uuid, its former versions and its place. One that has
// text in another dialect is not replaced: that text would stay what it was.
func (c *common) CreateView(ctx context.Context, name plan.TableName, d ViewDefinition, o ViewOptions) (bool, error) {
	if err := c.backend.viewsPossible(ctx); err != nil {
		return false, err
	}
	if err := checkName(append([]string{name.Name}, name.Namespace...)...); err != nil {
		return false, err
	}
	v, err := c.definedView(name, d)
	if err != nil {
		return false, err
	}
	for n := range maxAttempts {
		if err := pause(ctx, n); err != nil {
			return false, err
		}
		err := c.backend.hasView(ctx, name)
		switch {
		case err == nil && o.IfTaken == Keep:
			return false, nil
		case err == nil && o.IfTaken == Replace:
			done, err := c.backend.replaceView(ctx, name, v)
			if err != nil || done {
				return done, err
			}
			continue
		case err == nil:
			return false, exists(name)
		case !fault.Is(err, fault.NotFound):
			return false, err
		}
		err = c.backend.createView(ctx, name, v)
		if fault.Is(err, fault.Exists) && o.IfTaken != Refuse {
			if fault.Is(c.backend.hasTable(ctx, name), fault.NotFound) {
				continue // another one was faster
			}
		}
		return err == nil, err
	}
	return false, fault.New(fault.Conflict, "View %s is being changed by others all the time; nothing was changed, try again", name)
}

// definedView makes the parts of a new view.
func (c *common) definedView(name plan.TableName, d ViewDefinition) (v newView, err error) {
	if err := c.checkProperties(d.Properties); err != nil {
		return v, err
	}
	build := schemaBuilder{version: 3}
	columns, err := build.fields(d.Fields, 0)
	if err != nil {
		return v, err
	}
	v.schema = iceberg.NewSchema(0, columns...)
	namespace := d.Namespace
	if len(namespace) == 0 {
		namespace = name.Namespace
	}
	v.version, err = view.NewVersion(1, 0, view.Representations{view.NewRepresentation(d.SQL, dialects[0])}, namespace, view.WithDefaultViewCatalog(c.backend.storedName()))
	if err != nil {
		return v, fault.Wrap(fault.BadStatement, err, "The view has no text")
	}
	if v.props = maps.Clone(d.Properties); v.props == nil {
		v.props = map[string]string{}
	}
	if d.Comment != "" {
		v.props[commentProperty] = d.Comment
	}
	return v, nil
}

func (c *SQL) viewsPossible(context.Context) error {
	if !c.hasViews {
		return fault.New(fault.Unsupported, "Catalog '%s' has an old layout without views", c.name)
	}
	return nil
}

// createView implements backend.
func (c *SQL) createView(ctx context.Context, name plan.TableName, v newView) error {
	if err := c.inTransaction(ctx, func(tx *transaction) error { return c.taken(ctx, tx, name) }); err != nil {
		return err
	}
	folder, err := c.newLocation(ctx, name)
	if err != nil {
		return err
	}
	builder, err := view.NewMetadataBuilder()
	if err != nil {
		return err
	}
	meta, err := builder.SetLoc(folder).SetCurrentVersion(v.version, v.schema).SetProperties(v.props).Build()
	if err != nil {
		return fault.Wrap(fault.BadStatement, err, "View %s cannot be stored so: %s", name, err)
	}
	file, err := c.writeView(ctx, name, meta, 0)
	if err != nil {
		return err
	}
	return c.insert(ctx, name, file, "VIEW")
}

func (c *SQL) writeView(ctx context.Context, name plan.TableName, meta *view.MetadataBuildResult, version int) (string, error) {
	body, err := json.Marshal(meta.Metadata)
	if err != nil {
		return "", err
	}
	file, err := url.JoinPath(meta.Location(), "metadata", fmt.Sprintf("%05d-%s.metadata.json", version, uuid.NewString()))
	if err != nil {
		return "", err
	}
	if err := c.writeFile(ctx, file, body); err != nil {
		return "", c.unwritten(ctx, err, name)
	}
	return file, nil
}

// replaceView implements backend.
func (c *SQL) replaceView(ctx context.Context, name plan.TableName, v newView) (bool, error) {
	location, err := c.location(ctx, c.locateView, name)
	if fault.Is(err, fault.NotFound) {
		return false, nil // it was dropped meanwhile
	} else if err != nil {
		return false, err
	}
	var old *view.View
	err = guarded(func() (err error) {
		old, err = readView(ctx, append(slices.Clone(name.Namespace), name.Name), location, c.files)
		return err
	})
	if err != nil {
		return false, broken(ctx, err, name)
	}
	meta, err := newVersion(name, old, v)
	if err != nil {
		return false, err
	}
	file, err := c.writeView(ctx, name, meta, versionOf(location)+1)
	if err != nil {
		return false, err
	}
	res, err := c.db.ExecContext(ctx, `UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ?
		WHERE catalog_name = ? AND table_namespace = ? AND table_name = ? AND metadata_location = ?`+c.onlyViews(),
		file, location, c.stored, namespaceKey(name.Namespace), name.Name, location)
	n := int64(0)
	if err == nil {
		n, err = res.RowsAffected()
	}
	if now, lost := c.location(context.WithoutCancel(ctx), c.locateView, name); err != nil && lost == nil && now == file {
		return true, nil
	} else if err != nil && lost != nil {
		return false, fault.Wrap(fault.Unavailable, errors.Join(ErrUnknown, err, lost), "Catalog '%s' did not answer: it is not known whether view %s was replaced", c.name, name)
	}
	if n == 0 {
		c.remove(ctx, file)
	}
	if err != nil {
		return false, c.failed(ctx, err)
	}
	return n > 0, nil
}

// newVersion adds a version to a view.
func newVersion(name plan.TableName, old *view.View, v newView) (*view.MetadataBuildResult, error) {
	for _, r := range old.CurrentVersion().Representations {
		if !strings.EqualFold(r.Dialect, dialects[0]) {
			return nil, fault.New(fault.Unsupported, "View '%s' has text in the dialect %s as well, which SQE cannot write; drop it first", name, r.Dialect)
		}
	}
	builder, err := view.MetadataBuilderFromBase(old.Metadata())
	if err != nil {
		return nil, fault.Wrap(fault.Corrupt, err, "The metadata of view %s cannot be changed", name)
	}
	for k := range old.Properties() {
		if _, ok := v.props[k]; !ok {
			builder.RemoveProperties([]string{k})
		}
	}
	builder.SetProperties(v.props)
	if id, ok := formerVersion(old.Metadata(), v.version, v.schema); ok {
		builder.SetCurrentVersionID(id)
	} else {
		builder.SetCurrentVersion(v.version, v.schema)
	}
	meta, err := builder.Build()
	if err != nil {
		return nil, fault.Wrap(fault.BadStatement, err, "View %s cannot be stored so: %s", name, err)
	}
	return meta, nil
}

// formerVersion finds the version of a view that is the same as a new one, which
// iceberg-go (0.7) would add a second time and then refuse.
func formerVersion(meta view.Metadata, version *view.Version, schema *iceberg.Schema) (int64, bool) {
	for _, s := range meta.Schemas() {
		if !s.Equals(schema) {
			continue
		}
		as := version.Clone()
		as.SchemaID = s.ID
		for _, v := range meta.Versions() {
			if v.Equals(as) {
				return v.VersionID, true
			}
		}
	}
	return 0, false
}

// DropView implements Changer. Only the file that the catalog points to is deleted:
// a view has no list of the others.
func (c *SQL) DropView(ctx context.Context, name plan.TableName, ifExists bool) error {
	for n := range maxAttempts {
		if err := pause(ctx, n); err != nil {
			return err
		}
		location, err := c.location(ctx, c.locateView, name)
		if fault.Is(err, fault.NotFound) && ifExists {
			return nil
		}
		if err != nil && !fault.Is(err, fault.Corrupt) {
			return err
		}
		switch done, err := c.delete(ctx, name, location, c.onlyViews()); {
		case err != nil:
			return err
		case done:
			if below(c.props["warehouse"], location) {
				c.remove(ctx, location)
			}
			return nil
		}
	}
	return fault.New(fault.Conflict, "View %s is being changed by others all the time; it was not dropped, try again", name)
}

// RenameView implements Changer.
func (c *SQL) RenameView(ctx context.Context, from, to plan.TableName) error {
	return c.rename(ctx, from, to, c.onlyViews())
}
