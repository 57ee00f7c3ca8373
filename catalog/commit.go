package catalog

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/apache/iceberg-go"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"sqe/fault"
	"sqe/plan"
)

// A change that others get in the way of is made anew this often and this long.
const (
	maxAttempts = 100
	maxWaiting  = time.Minute
)

// errMoved: another writer was faster. iceberg-go's own loop must not know it: it
// would put the old snapshot on the new state without asking who made it.
var errMoved = errors.New("the table was changed since it was read")

// ErrUnknown is in the chain of the error of a change of which it is not known
// whether it took place: nothing that it refers to may be deleted.
var ErrUnknown = errors.New("it is not known whether the change was committed")

// staged is a change of a table that is not committed yet.
type staged struct {
	updates  []table.Update
	required []table.Requirement
	// discard deletes what was written for it, once it is known that the change did
	// not take place.
	discard func()
}

// prepare stages a change of a table as it is now. It may return what it staged
// with an error.
type prepare func(ctx context.Context, t *plan.Table) (staged, error)

// Commit implements Changer.
func (c *common) Commit(ctx context.Context, name plan.TableName, change TableChange) (*plan.Table, error) {
	return c.CommitBranch(ctx, name, table.MainBranch, change)
}

// CommitBranch implements Changer.
func (c *common) CommitBranch(ctx context.Context, name plan.TableName, branch string, change TableChange) (*plan.Table, error) {
	return c.change(ctx, name, func(ctx context.Context, t *plan.Table) (staged, error) {
		return stage(ctx, t, branch, change)
	})
}

// stage runs a change in a transaction.
func stage(ctx context.Context, t *plan.Table, branch string, change TableChange) (staged, error) {
	base := t.Handle.(*Handle).Table
	ref := refOf(base.Metadata(), branch)
	if branch != table.MainBranch && ref == nil {
		return staged{}, noRef(t.Name, branch)
	}
	if ref != nil && ref.SnapshotRefType != table.BranchRef {
		return staged{}, fault.New(fault.BadStatement, "'%s' is a tag of table %s; only a branch can be written", branch, t.Name)
	}
	var files recorder
	tx, err := files.of(base).NewTransactionOnBranchWithError(branch)
	if err != nil {
		return staged{}, fault.Wrap(fault.Corrupt, err, "The metadata of table %s cannot be changed", t.Name)
	}
	if branch != table.MainBranch {
		main := t.Handle.(*Handle)
		if t, err = planTable(base, t.Name, plan.AsOf{Ref: branch}, ""); err != nil {
			return staged{}, err
		}
		h := t.Handle.(*Handle)
		h.ReadRestrictions, h.planner, h.confined, h.root, h.vended = main.ReadRestrictions, main.planner, main.confined, main.root, main.vended
	}
	out := staged{discard: files.discard}
	if err := change(ctx, tx, t); err != nil {
		if f := interrupted(ctx, err); f != nil && fault.KindOf(err) == fault.Internal {
			err = f
		}
		return out, err
	}
	commit, err := tx.TableCommit()
	if err != nil {
		return out, fmt.Errorf("a change of table %s committed by itself: %w", t.Name, err)
	}
	out.updates, out.required = commit.Updates, commit.Requirements
	return out, nil
}

// change is the one way in which the metadata of a table that exists is changed.
func (c *common) change(ctx context.Context, name plan.TableName, p prepare) (*plan.Table, error) {
	leave, err := c.writers.enter(ctx, name)
	if err != nil {
		return nil, err
	}
	defer leave()
	t, _, err := c.attempt(ctx, name, p)
	return t, err
}

// attempt is change for who has entered already. It reports whether there was
// something to commit.
func (c *common) attempt(ctx context.Context, name plan.TableName, p prepare) (after *plan.Table, committed bool, err error) {
	start := time.Now()
	for n := 0; n < c.attempts && time.Since(start) < maxWaiting; n++ {
		if err := pause(ctx, n); err != nil {
			return nil, false, err
		}
		t, err := c.backend.fresh(ctx, name)
		if err != nil {
			return nil, false, err
		}
		var s staged
		err = guarded(func() error {
			s, err = p(ctx, t)
			return err
		})
		if err == nil && len(s.updates) == 0 {
			return t, false, nil
		}
		if err == nil {
			after, err = c.backend.swap(ctx, t, s)
		}
		if err != nil && s.discard != nil && !errors.Is(err, ErrUnknown) {
			_ = guarded(func() error { s.discard(); return nil })
		}
		switch {
		case errors.Is(err, errMoved):
			continue
		case err != nil:
			return nil, false, err
		}
		c.backend.evict(t)
		return after, true, nil
	}
	return nil, false, fault.New(fault.Conflict, "Table %s is being changed by others all the time; nothing was changed, try again", name)
}

// pause keeps writers that met from meeting again.
func pause(ctx context.Context, attempt int) error {
	if attempt == 0 {
		return nil
	}
	select {
	case <-time.After(time.Duration(rand.IntN(min(10*attempt, 200))+1) * time.Millisecond):
		return nil
	case <-ctx.Done():
		return interrupted(ctx, ctx.Err())
	}
}

// swap implements backend by a compare-and-swap of the pointer to the metadata file.
func (c *SQL) swap(ctx context.Context, t *plan.Table, s staged) (*plan.Table, error) {
	base := t.Handle.(*Handle).Table
	for _, r := range s.required {
		if err := r.Validate(base.Metadata()); err != nil {
			return nil, fault.Wrap(fault.Conflict, err, "Table %s is not as the statement read it; nothing was changed, try again", t.Name)
		}
	}
	meta, err := table.UpdateTableMetadata(base.Metadata(), s.updates, base.MetadataLocation())
	if err != nil {
		return nil, refused(err, t.Name)
	}
	if meta.Equals(base.Metadata()) {
		return t, nil
	}
	location, err := c.writeMetadata(ctx, meta, versionOf(base.MetadataLocation())+1)
	if err != nil {
		return nil, c.unwritten(ctx, err, t.Name)
	}
	query := `UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ?
		WHERE catalog_name = ? AND table_namespace = ? AND table_name = ? AND metadata_location = ?` + c.onlyTables()
	swapped := int64(0)
	res, err := c.db.ExecContext(ctx, query, location, base.MetadataLocation(), c.stored, namespaceKey(t.Name.Namespace), t.Name.Name, base.MetadataLocation())
	if err == nil {
		swapped, err = res.RowsAffected()
	}
	if err != nil {
		// Whether it was done is for the database to say.
		now, lost := c.location(context.WithoutCancel(ctx), c.locate, t.Name)
		switch {
		case lost != nil && !fault.Is(lost, fault.NotFound):
			return nil, fault.Wrap(fault.Unavailable, errors.Join(ErrUnknown, err, lost), "Catalog '%s' did not answer: it is not known whether table %s was changed; look at it before you repeat the statement", c.name, t.Name)
		case lost == nil && now == location:
			swapped = 1
		default:
			c.remove(ctx, location)
			if f := interrupted(ctx, err); f != nil {
				return nil, f
			}
			return nil, fault.Wrap(fault.Unavailable, err, "Catalog '%s' did not take the change of table %s; nothing was changed, try again, or ask an administrator to look at the log", c.name, t.Name)
		}
	}
	if swapped == 0 {
		c.remove(ctx, location)
		return nil, errMoved
	}
	c.removeOldMetadata(ctx, base.Metadata(), meta)
	after, err := planTable(c.tableAt(t.Name, meta, location), t.Name, plan.AsOf{}, "")
	if err != nil {
		return nil, fault.Wrap(fault.KindOf(err), errors.Join(ErrUnknown, err), "Table %s was changed, and cannot be read now: %s", t.Name, err)
	}
	return after, nil
}

func (c *SQL) with(base *table.Table, name plan.TableName, meta table.Metadata) *table.Table {
	return c.tableAt(name, meta, base.MetadataLocation())
}

// tableAt is a table whose metadata is known.
func (c *SQL) tableAt(name plan.TableName, meta table.Metadata, location string) *table.Table {
	return table.New(append(slices.Clone(name.Namespace), name.Name), meta, location, c.files.of(meta.Location()), readOnly{c})
}

// refused classifies an error of applying updates.
func refused(err error, name plan.TableName) error {
	switch {
	case errors.Is(err, iceberg.ErrInvalidSchema), errors.Is(err, iceberg.ErrInvalidArgument), errors.Is(err, iceberg.ErrInvalidPartitionSpec),
		errors.Is(err, iceberg.ErrInvalidFormatVersion):
		return fault.Wrap(fault.BadStatement, err, "Table %s cannot be changed so: %s", name, err)
	}
	return fault.Wrap(fault.Corrupt, err, "The metadata of table %s cannot be changed; an administrator must look at the log", name)
}

// unwritten classifies an error of writing a metadata file.
func (c *SQL) unwritten(ctx context.Context, err error, name plan.TableName) error {
	if f := interrupted(ctx, err); f != nil {
		return f
	}
	if f := StorageFault(err, "'"+name.String()+"'"); f != nil {
		return f
	}
	return fault.Wrap(fault.Unavailable, err, "The metadata of %s cannot be written; nothing was changed. An administrator must look at the log: the warehouse is full or read-only", name)
}

var versionPattern = regexp.MustCompile(`^v?(\d+)[-.]`)

// versionOf is the number in the name of a metadata file, 0 for none.
func versionOf(location string) int {
	if m := versionPattern.FindStringSubmatch(path.Base(location)); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			return n
		}
	}
	return 0
}

// writeMetadata writes a metadata file that nothing refers to yet.
func (c *SQL) writeMetadata(ctx context.Context, meta table.Metadata, version int) (location string, err error) {
	provider, err := table.LoadLocationProvider(meta.Location(), meta.Properties())
	if err != nil {
		return "", err
	}
	extension := ".metadata.json"
	packed := meta.Properties().Get(table.MetadataCompressionKey, table.MetadataCompressionDefault) == table.MetadataCompressionCodecGzip
	if packed {
		extension = ".gz.metadata.json"
	}
	location = provider.NewMetadataLocation(fmt.Sprintf("%05d-%s%s", version, uuid.NewString(), extension))
	body, err := json.Marshal(meta)
	if err != nil {
		return "", err
	}
	if packed {
		var small bytes.Buffer
		z := gzip.NewWriter(&small)
		_, err := z.Write(body)
		if err := errors.Join(err, z.Close()); err != nil {
			return "", err
		}
		body = small.Bytes()
	}
	return location, c.writeFile(ctx, location, body)
}

// writeFile writes a file and sees that it is on the disk: the catalog must never
// point to one that a power failure takes away.
func (c *SQL) writeFile(ctx context.Context, location string, body []byte) (err error) {
	storage, err := c.files.files(ctx, location)
	if err != nil {
		return err
	}
	writer, ok := storage.(icebergio.WriteFileIO)
	if !ok {
		return errors.New("the storage cannot be written")
	}
	out, err := writer.Create(location)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err != nil {
			_ = writer.Remove(location)
		}
	}()
	if _, err := out.Write(body); err != nil {
		return err
	}
	return flush(out)
}

func flush(out any) error {
	if f, ok := out.(interface{ Sync() error }); ok {
		return f.Sync()
	}
	return nil
}

// remove deletes a metadata file that nothing refers to, as well as it can, and the
// folder of a table that has no other.
func (c *SQL) remove(ctx context.Context, location string) {
	storage, err := c.files.files(context.WithoutCancel(ctx), location)
	if err == nil && storage.Remove(location) == nil {
		if store, file, ok := place(location); ok && store == "file" {
			removeEmpty(path.Dir(path.Dir(file)), file)
		}
	}
}

// removeOldMetadata deletes the metadata files that a commit dropped from the log,
// when the table asks for it.
func (c *SQL) removeOldMetadata(ctx context.Context, before, after table.Metadata) {
	if !after.Properties().GetBool(table.MetadataDeleteAfterCommitEnabledKey, table.MetadataDeleteAfterCommitEnabledDefault) {
		return
	}
	kept := slices.Collect(after.PreviousFiles())
	for old := range before.PreviousFiles() {
		if !slices.ContainsFunc(kept, func(k table.MetadataLogEntry) bool { return k.MetadataFile == old.MetadataFile }) &&
			below(before.Location(), old.MetadataFile) {
			c.remove(ctx, old.MetadataFile)
		}
	}
}

// evict implements backend.
func (c *SQL) evict(t *plan.Table) {
	key := tableKey{t.Version, t.Name.Key()}
	c.memory.forgetIf(func(k any) bool {
		made, ok := k.(planKey)
		return k == any(key) || ok && made.tableKey == key
	})
}

// readOnly is the catalog of the tables that are handed out: they commit through
// Commit and not by themselves.
type readOnly struct{ *SQL }

// LoadTable implements table.CatalogIO.
func (r readOnly) LoadTable(ctx context.Context, ident table.Identifier) (*table.Table, error) {
	return r.iceberg.LoadTable(ctx, ident)
}

// CommitTable implements table.CatalogIO.
func (readOnly) CommitTable(context.Context, table.Identifier, []table.Requirement, []table.Update) (table.Metadata, string, error) {
	return nil, "", errors.New("a table of a scan commits itself: use Changer.Commit")
}

func refOf(meta table.Metadata, name string) *table.SnapshotRef {
	for n, r := range meta.Refs() {
		if n == name {
			return &r
		}
	}
	return nil
}

func noRef(name plan.TableName, ref string) error {
	return noVersion("Table %s has no branch or tag '%s'; `%s$refs` lists them", name, ref, name.Name)
}
