package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"sqe/catalog/rest"
	"sqe/fault"
	"sqe/plan"
)

// swap implements backend. The protocol has no compare-and-swap of the whole
// metadata: everything of the base that can be required is.
func (c *REST) swap(ctx context.Context, t *plan.Table, s staged) (*plan.Table, error) {
	base := t.Handle.(*Handle).Table
	for _, r := range s.required {
		if err := r.Validate(base.Metadata()); err != nil {
			return nil, fault.Wrap(fault.Conflict, err, "Table %s is not as the statement read it; nothing was changed, try again", t.Name)
		}
	}
	wanted, err := table.UpdateTableMetadata(base.Metadata(), s.updates, base.MetadataLocation())
	if err != nil {
		return nil, refused(err, t.Name)
	}
	if wanted.Equals(base.Metadata()) {
		return t, nil
	}
	required, err := requirements(base.Metadata(), s)
	if err != nil {
		return nil, err
	}
	answer, err := c.client.Commit(ctx, t.Name.Namespace, t.Name.Name, required, settled(base.Metadata(), wanted, s.updates))
	switch {
	case err == nil:
		// The answer to a commit has no demands; those of the load hold on.
		h := t.Handle.(*Handle)
		if answer.ReadRestrictions == nil {
			answer.ReadRestrictions = h.ReadRestrictions
		}
		if h.ServerPlanned() {
			answer.Config["scan-planning-mode"] = "server"
		}
		return c.after(t.Name, answer, base.FS, "changed")
	case statusOf(err) == http.StatusConflict:
		return nil, errMoved
	case !unknown(err):
		return nil, c.tableFault(ctx, err, t.Name, false)
	}
	return c.ask(ctx, err, t, wanted, required)
}

// settled names a schema, partition spec or sort order that the table has already by
// its id. Other implementations refuse to make the last added one the present one
// when it was there before.
func settled(base, wanted table.Metadata, updates []table.Update) []table.Update {
	known := map[string]bool{
		table.UpdateAddSchema:    slices.ContainsFunc(base.Schemas(), func(s *iceberg.Schema) bool { return s.ID == wanted.CurrentSchema().ID }),
		table.UpdateAddSpec:      slices.ContainsFunc(base.PartitionSpecs(), func(s iceberg.PartitionSpec) bool { return s.ID() == wanted.DefaultPartitionSpec() }),
		table.UpdateAddSortOrder: slices.ContainsFunc(base.SortOrders(), func(o table.SortOrder) bool { return o.OrderID() == wanted.DefaultSortOrder() }),
	}
	var out []table.Update
	for _, u := range updates {
		switch a := u.Action(); {
		case known[a]:
		case a == table.UpdateSetCurrentSchema && known[table.UpdateAddSchema]:
			out = append(out, table.NewSetCurrentSchemaUpdate(wanted.CurrentSchema().ID))
		case a == table.UpdateSetDefaultSpec && known[table.UpdateAddSpec]:
			out = append(out, table.NewSetDefaultSpecUpdate(wanted.DefaultPartitionSpec()))
		case a == table.UpdateSetDefaultSortOrder && known[table.UpdateAddSortOrder]:
			out = append(out, table.NewSetDefaultSortOrderUpdate(wanted.DefaultSortOrder()))
		default:
			out = append(out, u)
		}
	}
	return out
}

// unknown reports whether a change that failed may have been done all the same.
func unknown(err error) bool {
	var e *rest.Error
	return errors.As(err, &e) && e.Outcome == rest.Unknown
}

// after is a table as a commit left it. opened is as for admit.
func (c *REST) after(name plan.TableName, answer *rest.Table, opened table.FSysF, done string) (*plan.Table, error) {
	c.changed(name)
	loaded, err := c.admit(name, answer, opened, c.loadedAgain(name, answer))
	if err == nil {
		var t *plan.Table
		if t, err = loaded.plan(name, plan.AsOf{}, ""); err == nil {
			return t, nil
		}
	}
	return nil, fault.Wrap(fault.KindOf(err), errors.Join(ErrUnknown, err), "Table %s was %s, and cannot be read now: %s", name, done, err)
}

// requirements are those of a change and everything else that can be required of
// the base.
func requirements(base table.Metadata, s staged) ([]table.Requirement, error) {
	out := []table.Requirement{
		table.AssertTableUUID(base.TableUUID()),
		table.AssertCurrentSchemaID(base.CurrentSchema().ID),
		table.AssertLastAssignedFieldID(base.LastColumnID()),
		table.AssertDefaultSpecID(base.DefaultPartitionSpec()),
		table.AssertDefaultSortOrderID(base.DefaultSortOrder()),
	}
	if last := base.LastPartitionSpecID(); last != nil {
		out = append(out, table.AssertLastAssignedPartitionID(*last))
	}
	refs := []string{table.MainBranch}
	for _, u := range s.updates {
		text, err := json.Marshal(u)
		if err != nil {
			return nil, err
		}
		var named struct {
			Ref string `json:"ref-name"`
		}
		if json.Unmarshal(text, &named) == nil && named.Ref != "" && named.Ref != table.MainBranch {
			refs = append(refs, named.Ref)
		}
	}
	for _, name := range refs {
		var id *int64
		if r := refOf(base, name); r != nil {
			id = &r.SnapshotID
		}
		out = append(out, table.AssertRefSnapshotID(name, id))
	}
	return out, nil
}

// How long and how often it is asked what became of a commit.
const (
	askFor   = 15 * time.Second
	askTimes = 3
)

// ask finds out whether a commit was done of which the catalog did not say so.
// cause is what it said.
func (c *REST) ask(ctx context.Context, cause error, t *plan.Table, wanted table.Metadata, required []table.Requirement) (*plan.Table, error) {
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), askFor)
	defer cancel()
	base := t.Handle.(*Handle).Table
	var mine []int64
	for _, s := range wanted.Snapshots() {
		if base.SnapshotByID(s.SnapshotID) == nil {
			mine = append(mine, s.SnapshotID)
		}
	}
	for n := range askTimes {
		if n > 0 {
			time.Sleep(300 * time.Millisecond)
		}
		answer, err := c.client.LoadTable(asking, t.Name.Namespace, t.Name.Name, "")
		if rest.Is(err, http.StatusNotFound) {
			// Dropped, or renamed by others: with or without the change.
			break
		}
		if err != nil || answer.Location == base.MetadataLocation() {
			continue // it may still be on its way
		}
		done := len(mine) > 0
		for _, id := range mine {
			done = done && answer.Metadata.SnapshotByID(id) != nil
		}
		if done || len(mine) == 0 && alike(answer.Metadata, wanted) {
			return c.after(t.Name, answer, base.FS, "changed")
		}
		for _, r := range required {
			if len(mine) > 0 && r.Validate(answer.Metadata) != nil {
				return nil, errMoved // another writer was faster: it can never be done any more
			}
		}
	}
	c.changed(t.Name)
	return nil, fault.Wrap(fault.Unavailable, errors.Join(ErrUnknown, cause), "Catalog '%s' did not answer: it is not known whether table %s was changed; look at it before you repeat the statement", c.name, t.Name)
}

// alike reports whether metadata are what a change wanted, but for the times.
func alike(a, b table.Metadata) bool {
	return a.CurrentSchema().Equals(b.CurrentSchema()) && a.CurrentSchema().ID == b.CurrentSchema().ID &&
		a.DefaultPartitionSpec() == b.DefaultPartitionSpec() && a.DefaultSortOrder() == b.DefaultSortOrder() &&
		sameProperties(a.Properties(), b.Properties()) && sameRefs(a, b)
}

func sameProperties(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}

func sameRefs(a, b table.Metadata) bool {
	n := 0
	for name, r := range a.Refs() {
		n++
		if other := refOf(b, name); other == nil || other.SnapshotID != r.SnapshotID || other.SnapshotRefType != r.SnapshotRefType {
			return false
		}
	}
	for range b.Refs() {
		n--
	}
	return n == 0
}

// createTable implements backend. With rows or tags the table is staged and then
// created with them: it appears whole or not at all.
func (c *REST) createTable(ctx context.Context, name plan.TableName, d TableDefinition, fill TableChange) (*plan.Table, error) {
	n, err := c.defined(name, d)
	if err != nil {
		return nil, err
	}
	// The catalog makes a location of the names, in which engines would read these
	// characters as the end of the path.
	if strings.ContainsAny(strings.Join(name.Namespace, "")+name.Name, "?#") {
		return nil, fault.New(fault.BadStatement, "A table of catalog '%s', and the database that holds it, cannot have a name with ? or #", c.name)
	}
	seen, err := c.hasNamespace(ctx, name.Namespace)
	if err != nil {
		return nil, err
	}
	props := map[string]string{formatProperty: strconv.Itoa(n.version)}
	for k, v := range n.props {
		props[k] = v
	}
	order := n.order
	asked := rest.NewTable{Name: name.Name, Schema: n.schema, Spec: &n.spec, Order: &order, Properties: props, Stage: fill != nil || len(d.Tags) > 0}
	// Whoever may not look at the namespace must not see by one more request that it is there.
	if seen {
		asked.Location = c.place(ctx, name, asked)
	}
	answer, err := c.client.CreateTable(ctx, name.Namespace, asked)
	if asked.Location != "" && elsewhere(err) {
		asked.Location = "" // this catalog insists on its own
		answer, err = c.client.CreateTable(ctx, name.Namespace, asked)
	}
	switch {
	case err == nil && !asked.Stage:
		return c.after(name, answer, nil, "created")
	case err == nil:
		return c.createStaged(ctx, name, d, fill, asked, answer, seen)
	case statusOf(err) == http.StatusConflict:
		c.changed(name)
		return nil, exists(name)
	case unknown(err) && !asked.Stage:
		c.changed(name)
		return nil, fault.Wrap(fault.Unavailable, errors.Join(ErrUnknown, err), "Catalog '%s' did not answer: it is not known whether '%s' was created; look before you repeat the statement", c.name, name)
	}
	return nil, c.createFault(ctx, err, name, seen)
}

// createStaged creates the table of an answer, with tags and rows.
func (c *REST) createStaged(ctx context.Context, name plan.TableName, d TableDefinition, fill TableChange, asked rest.NewTable, answer *rest.Table, seen bool) (_ *plan.Table, err error) {
	updates := creation(answer.Metadata)
	again := c.stagedAgain(name, asked, answer, seen)
	meta := answer.Metadata
	if len(d.Tags) > 0 {
		set, err := tagProperties(meta, meta.CurrentSchema().Fields(), d.Tags)
		if err != nil {
			return nil, err
		}
		add := table.NewSetPropertiesUpdate(set)
		updates = append(updates, add)
		if meta, err = table.UpdateTableMetadata(meta, []table.Update{add}, ""); err != nil {
			return nil, refused(err, name)
		}
	}
	var s staged
	defer func() {
		if err != nil && s.discard != nil && !errors.Is(err, ErrUnknown) {
			_ = guarded(func() error { s.discard(); return nil })
		}
	}()
	if fill != nil {
		answer := *answer
		answer.Metadata = meta
		var empty *restTable
		if empty, err = c.admit(name, &answer, nil, again); err != nil {
			return nil, err
		}
		var planned *plan.Table
		if planned, err = empty.plan(name, plan.AsOf{}, ""); err != nil {
			return nil, err
		}
		if err = guarded(func() (err error) {
			s, err = stage(ctx, planned, table.MainBranch, fill)
			return err
		}); err != nil {
			return nil, err
		}
		updates = append(updates, s.updates...)
	}
	created, err := c.client.Commit(ctx, name.Namespace, name.Name, []table.Requirement{table.AssertCreate()}, updates)
	switch {
	case err == nil:
		return c.after(name, created, c.tableAt(name, answer, nil, again).FS, "created")
	case statusOf(err) == http.StatusConflict:
		c.changed(name)
		return nil, exists(name)
	case !unknown(err):
		return nil, c.createFault(ctx, err, name, seen)
	}
	c.changed(name)
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), askFor)
	defer cancel()
	now, lost := c.client.LoadTable(asking, name.Namespace, name.Name, "")
	if lost == nil && now.Metadata.TableUUID() == meta.TableUUID() {
		return c.after(name, now, nil, "created")
	}
	if lost == nil {
		return nil, exists(name) // of another one
	}
	return nil, fault.Wrap(fault.Unavailable, errors.Join(ErrUnknown, err, lost), "Catalog '%s' did not answer: it is not known whether '%s' was created; look before you repeat the statement", c.name, name)
}

// creation says how a table comes to be what an answer staged.
func creation(meta table.Metadata) []table.Update {
	spec, order := meta.PartitionSpec(), meta.SortOrder()
	out := []table.Update{
		table.NewAssignUUIDUpdate(meta.TableUUID()), table.NewUpgradeFormatVersionUpdate(meta.Version()),
		table.NewAddSchemaUpdate(meta.CurrentSchema()), table.NewSetCurrentSchemaUpdate(-1),
		table.NewAddPartitionSpecUpdate(&spec, true), table.NewSetDefaultSpecUpdate(-1),
		table.NewAddSortOrderUpdate(&order), table.NewSetDefaultSortOrderUpdate(-1),
		table.NewSetLocationUpdate(meta.Location()),
	}
	if props := meta.Properties(); len(props) > 0 {
		out = append(out, table.NewSetPropertiesUpdate(props))
	}
	return out
}

// DropTable implements Changer. With purge the server deletes the files, as it sees
// fit, and does not say how many.
func (c *REST) DropTable(ctx context.Context, name plan.TableName, purge bool) (Purged, error) {
	leave, err := c.writers.enter(ctx, name)
	if err != nil {
		return Purged{}, err
	}
	defer leave()
	err = c.client.DropTable(ctx, name.Namespace, name.Name, purge)
	c.changed(name)
	return Purged{}, c.dropped(ctx, err, name)
}

// dropped is the fault for the answer to the drop of a table or view.
func (c *REST) dropped(ctx context.Context, err error, name plan.TableName) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rest.ErrName):
		err = missing(name)
	case unknown(err):
		return fault.Wrap(fault.Unavailable, errors.Join(ErrUnknown, err), "Catalog '%s' did not answer: it is not known whether '%s' was dropped; look before you repeat the statement", c.name, name)
	}
	if !fault.Is(err, fault.NotFound) {
		err = c.tableFault(ctx, err, name, false)
	}
	return err
}

// RenameTable implements Changer.
func (c *REST) RenameTable(ctx context.Context, from, to plan.TableName) error {
	leave, err := c.writers.enter(ctx, from)
	if err != nil {
		return err
	}
	defer leave()
	return c.rename(ctx, from, to, false)
}

func (c *REST) rename(ctx context.Context, from, to plan.TableName, view bool) error {
	if from.Catalog != to.Catalog {
		return fault.New(fault.Unsupported, "A table or view cannot be moved to another catalog; create it there and copy the rows")
	}
	if err := checkName(to.Name); err != nil {
		return err
	}
	seen, err := c.hasNamespace(ctx, to.Namespace)
	if err != nil {
		return err
	}
	err = c.client.Rename(ctx, view, from.Namespace, from.Name, to.Namespace, to.Name)
	c.changed(from, to)
	switch {
	case err == nil:
		return nil
	case statusOf(err) == http.StatusConflict:
		return exists(to)
	case rest.IsType(err, "NoSuchNamespaceException"), !seen && c.hides(ctx, err, plan.TableName{Namespace: to.Namespace}):
		return noNamespace(to.Namespace)
	case unknown(err):
		return fault.Wrap(fault.Unavailable, errors.Join(ErrUnknown, err), "Catalog '%s' did not answer: it is not known whether '%s' was renamed; look before you repeat the statement", c.name, from)
	case rest.Is(err, http.StatusNotFound):
		return missing(from)
	}
	return c.tableFault(ctx, err, from, false)
}
