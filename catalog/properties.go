package catalog

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"sqe/fault"
	"sqe/plan"
)

// UpdateProperties implements Catalog.
func (c *common) UpdateProperties(ctx context.Context, name plan.TableName, change PropertyChange) (*plan.Table, error) {
	return c.change(ctx, name, func(_ context.Context, t *plan.Table) (staged, error) {
		set, remove, err := change(t, maps.Clone(t.Properties))
		return staged{updates: propertyUpdates(t.Properties, set, remove)}, err
	})
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
		if _, ok := now[k]; ok && !slices.Contains(gone, k) {
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

// commentProperty holds the comment of a table, a view or a namespace.
const commentProperty = "comment"

// placeProperties say where files are written.
var placeProperties = []string{
	table.WriteDataPathKey, table.WriteMetadataPathKey, "write.object-storage.path", "write.folder-storage.path", "location",
}

// checkProperty refuses a property that a statement must not set or remove.
func (c *common) checkProperty(key string) error {
	trimmed := strings.ToLower(strings.TrimSpace(key))
	switch {
	case trimmed == "":
		return fault.New(fault.BadStatement, "A property must have a name")
	case Reserved(key):
		return fault.New(fault.BadStatement, "The property '%s' holds the tags; use SET TAGS and UNSET TAGS", key)
	case trimmed == strings.ToLower(table.DefaultNameMappingKey):
		// It says which column of an imported file is which field: a mask would go
		// with the field, and the values with the name.
		return fault.New(fault.BadStatement, "The property '%s' is kept by the engine that writes the files", key)
	case slices.Contains(table.ReservedProperties[:], trimmed):
		return fault.New(fault.BadStatement, "The property '%s' belongs to the table format and cannot be set", key)
	}
	return nil
}

// checkProperties is checkProperty for those that are set, with their values.
func (c *common) checkProperties(set map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if err := c.checkProperty(key); err != nil {
			return err
		}
		if slices.Contains(placeProperties, strings.ToLower(strings.TrimSpace(key))) && (c.warehouse == "" || !below(c.warehouse, set[key])) {
			return fault.New(fault.BadStatement, "The property '%s' must be a place below the warehouse of the catalog", key)
		}
	}
	return nil
}
