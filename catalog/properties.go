package catalog

import (
	"context"
	"errors"
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"sqe/fault"
	"sqe/plan"
)

// writers lets one change of a table run at a time. Two tables may share a place.
type writers struct {
	seed   maphash.Seed
	places [64]chan struct{}
}

func newWriters() *writers {
	w := &writers{seed: maphash.MakeSeed()}
	for i := range w.places {
		w.places[i] = make(chan struct{}, 1)
	}
	return w
}

func (w *writers) enter(ctx context.Context, name plan.TableName) (leave func(), err error) {
	place := w.places[maphash.String(w.seed, name.Key())%uint64(len(w.places))]
	select {
	case place <- struct{}{}:
		return func() { <-place }, nil
	case <-ctx.Done():
		return nil, interrupted(ctx, ctx.Err())
	}
}

// maxAttempts bounds how often a change is made anew because another process
// committed meanwhile.
const maxAttempts = 20

// UpdateProperties implements Catalog.
func (c *SQL) UpdateProperties(ctx context.Context, name plan.TableName, change PropertyChange) (*plan.Table, error) {
	leave, err := c.writers.enter(ctx, name)
	if err != nil {
		return nil, err
	}
	defer leave()
	for attempt := range maxAttempts {
		if attempt > 0 {
			// Writers that met must not meet again.
			select {
			case <-time.After(time.Duration(rand.IntN(10*attempt)+1) * time.Millisecond):
			case <-ctx.Done():
				return nil, interrupted(ctx, ctx.Err())
			}
		}
		t, err := c.Table(ctx, name, plan.AsOf{}, "")
		if err != nil {
			return nil, err
		}
		set, remove, err := change(t, maps.Clone(t.Properties))
		if err != nil {
			return nil, err
		}
		updates := propertyUpdates(t.Properties, set, remove)
		if len(updates) == 0 {
			return t, nil
		}
		meta := t.Handle.(*Handle).Table.Metadata()
		reqs := []table.Requirement{table.AssertTableUUID(meta.TableUUID()), unchanged{meta}}
		err = guarded(func() error {
			_, _, err := c.iceberg.CommitTable(ctx, append(slices.Clone(name.Namespace), name.Name), reqs, updates)
			return err
		})
		switch {
		case err == nil:
			c.evict(t)
			return c.Table(ctx, name, plan.AsOf{}, "")
		case errors.Is(err, errChanged), errors.Is(err, table.ErrCommitFailed):
			continue
		}
		return nil, c.uncommitted(ctx, name, err)
	}
	return nil, fault.New(fault.Conflict, "Table %s is being changed by others all the time; nothing was changed, try again", name)
}

// propertyUpdates leaves out what is so already.
func propertyUpdates(now, set map[string]string, remove []string) []table.Update {
	changed := iceberg.Properties{}
	for k, v := range set {
		if old, ok := now[k]; !ok || old != v {
			changed[k] = v
		}
	}
	var gone []string
	for _, k := range remove {
		if _, ok := now[k]; ok {
			gone = append(gone, k)
		}
	}
	var out []table.Update
	if len(changed) > 0 {
		out = append(out, table.NewSetPropertiesUpdate(changed))
	}
	if len(gone) > 0 {
		out = append(out, table.NewRemovePropertiesUpdate(gone))
	}
	return out
}

var errChanged = errors.New("the table was changed since it was read")

// unchanged requires that nobody has changed the properties or the schemas of the
// table: a change of properties that was decided on others would undo theirs. The
// catalog checks it against what it loads itself, and swaps only that.
type unchanged struct{ read table.Metadata }

// Validate implements table.Requirement.
func (u unchanged) Validate(now table.Metadata) error {
	if now == nil || now.CurrentSchema().ID != u.read.CurrentSchema().ID || len(now.Schemas()) != len(u.read.Schemas()) ||
		!maps.Equal(now.Properties(), u.read.Properties()) {
		return errChanged
	}
	return nil
}

// GetType implements table.Requirement.
func (unchanged) GetType() string { return "assert-properties" }

// evict drops what is cached of a table version that is no longer the present one.
func (c *SQL) evict(t *plan.Table) {
	key := tableKey{t.Version, t.Name.Key()}
	c.tables.Remove(key)
	for _, k := range c.plans.Keys() {
		if k.tableKey == key {
			c.plans.Remove(k)
		}
	}
}

// uncommitted classifies an error of a commit.
func (c *SQL) uncommitted(ctx context.Context, name plan.TableName, err error) error {
	if f := interrupted(ctx, err); f != nil {
		return f
	}
	return fault.Wrap(fault.Unavailable, err, "The properties of table %s cannot be written; an administrator must look at the log", name)
}
