package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"sqe/catalog/objects"
	"sqe/fault"
	"sqe/plan"
)

// Handle is what engine/scan needs of a table beside its plan.Table, in
// plan.Table.Handle. It is immutable.
type Handle struct {
	Table *table.Table
	// Snapshot is what is read; nil when the table has none.
	Snapshot *table.Snapshot
	// Schema is the schema that the fields of the plan.Table were made from.
	Schema *iceberg.Schema
	// ReadRestrictions is what the catalog demands of this principal's reads
	// (read-restrictions of loadTable), as it sent it; nil for nothing. Who reads the
	// table must enforce it.
	ReadRestrictions json.RawMessage
	// planner plans scans on the server, where the catalog demands it.
	planner func(context.Context, *Handle) ([]table.FileScanTask, error)

	// vended: the files are opened with credentials of one statement and principal.
	vended bool
	// confined: local files lie below root or are none of the table's.
	confined bool
	root     string
}

// ForOneStatement reports whether a table holds credentials that the catalog gave for
// one statement of one principal: it must not be kept longer, nor given to another one.
func ForOneStatement(t *plan.Table) bool {
	h, ok := t.Handle.(*Handle)
	return ok && h.vended
}

// Within reports whether a file may belong to the table. Where a catalog is another
// party, files of this machine beyond one folder may not, whatever its metadata say.
func (h *Handle) Within(location string) bool {
	if objects.Is(h.Table.Location()) {
		// What is in the object store is confined where it is opened.
		return objects.Is(location)
	}
	return !h.confined || belowEither(h.root, location)
}

// ReadRestrictions is what the catalog that loaded a table demands of its reads.
func ReadRestrictions(t *plan.Table) json.RawMessage {
	if h, ok := t.Handle.(*Handle); ok {
		return h.ReadRestrictions
	}
	return nil
}

// selected is a snapshot of a table and the schema to read it with: the schema of
// the snapshot for a snapshot id, a time and a tag, the schema of the table for
// the present and for branches, as the Iceberg reference implementation does.
type selected struct {
	snapshot *table.Snapshot
	schema   *iceberg.Schema
}

var errNoVersion = errors.New("the table has no such version")

// NoVersion reports whether err says that a table does not have the snapshot, time,
// branch or tag that was asked for. Its text is for those who may know which ones it
// has.
func NoVersion(err error) bool { return errors.Is(err, errNoVersion) }

func noVersion(format string, args ...any) error {
	return fault.Wrap(fault.BadStatement, errNoVersion, format, args...)
}

// choose finds the snapshot of an AsOf.
func choose(t *table.Table, name plan.TableName, at plan.AsOf) (selected, error) {
	meta := t.Metadata()
	present := selected{snapshot: meta.CurrentSnapshot(), schema: meta.CurrentSchema()}
	var s *table.Snapshot
	switch {
	case at.IsZero():
		return present, nil
	case at.Ref != "":
		for ref, r := range meta.Refs() {
			if ref != at.Ref {
				continue
			}
			if s = meta.SnapshotByID(r.SnapshotID); s == nil {
				return selected{}, fault.New(fault.Corrupt, "A branch or tag of table %s points to a snapshot that the table does not have", name)
			}
			if r.SnapshotRefType == table.BranchRef {
				return selected{snapshot: s, schema: present.schema}, nil
			}
		}
		if s == nil && at.Ref == table.MainBranch {
			return present, nil // a table without snapshots has no refs
		}
		if s == nil {
			return selected{}, noRef(name, at.Ref)
		}
	case at.Snapshot != 0:
		if s = meta.SnapshotByID(at.Snapshot); s == nil {
			return selected{}, noSnapshot(name, at.Snapshot)
		}
	default:
		id, ok := snapshotAt(meta, at.Time)
		if !ok {
			return selected{}, noVersion("Table %s had no snapshot at that time; `%s$history` lists when each became current", name, name.Name)
		}
		if s = meta.SnapshotByID(id); s == nil {
			return selected{}, noVersion("The snapshot of table %s at that time has expired; `%s$snapshots` lists those that are left", name, name.Name)
		}
	}
	if s.SchemaID == nil {
		return selected{snapshot: s, schema: present.schema}, nil
	}
	for _, sc := range meta.Schemas() {
		if sc.ID == *s.SchemaID {
			return selected{snapshot: s, schema: sc}, nil
		}
	}
	return selected{}, fault.New(fault.Corrupt, "A snapshot of table %s has a schema that the table does not have", name)
}

// snapshotAt is the snapshot that was current at a time: the last entry of the
// history that is not later. Several commits may fall into one millisecond.
func snapshotAt(meta table.Metadata, at time.Time) (int64, bool) {
	var id int64
	found := false
	ms := at.UnixMilli()
	for e := range meta.SnapshotLogs() {
		if e.TimestampMs <= ms {
			id, found = e.SnapshotID, true
		}
	}
	return id, found
}

// planTable makes the plan.Table of a loaded table.
func planTable(t *table.Table, name plan.TableName, at plan.AsOf, metadata string) (*plan.Table, error) {
	sel, err := choose(t, name, at)
	if err != nil {
		return nil, err
	}
	meta := t.Metadata()
	out := &plan.Table{
		Name:       name,
		UUID:       meta.TableUUID().String(),
		SchemaID:   sel.schema.ID,
		Version:    t.MetadataLocation(),
		Properties: map[string]string(meta.Properties()),
		Metadata:   metadata,
		Handle:     &Handle{Table: t, Snapshot: sel.snapshot, Schema: sel.schema},
	}
	if sel.snapshot != nil {
		out.SnapshotID = sel.snapshot.SnapshotID
	}
	if tagged(out.Properties) {
		tags, err := readTags(meta, out.Properties)
		if err != nil {
			return nil, err
		}
		out.Tags = tags.Tags()
	}
	if metadata != "" {
		fields, ok := metadataFields(metadata)
		if !ok {
			return nil, missing(name)
		}
		out.Fields = fields
		return out, nil
	}
	out.Fields = Fields(sel.schema)
	out.Beneath = beneath(sel.schema, out.Fields)
	out.Identifiers = identifierColumns(sel.schema)
	out.Formerly = otherNames(sel.schema, meta.Schemas())
	if present := meta.CurrentSchema(); present.ID != sel.schema.ID {
		out.Present = Fields(present)
	}
	return out, nil
}

// identifierColumns are the identifier fields of a schema when all of them are columns.
func identifierColumns(s *iceberg.Schema) []int {
	columns := map[int]bool{}
	for _, f := range s.Fields() {
		columns[f.ID] = true
	}
	for _, id := range s.IdentifierFieldIDs {
		if !columns[id] {
			return nil
		}
	}
	return slices.Clone(s.IdentifierFieldIDs)
}

func missing(name plan.TableName) error {
	return fault.New(fault.NotFound, "Table '%s' doesn't exist", name)
}
