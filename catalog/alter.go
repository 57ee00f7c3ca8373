package catalog

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"sqe/fault"
	"sqe/plan"
)

// alteration is what becomes of a table: its metadata as it was, and the parts that
// changes have made of it so far.
type alteration struct {
	catalog *common
	name    plan.TableName
	meta    table.Metadata
	schemaBuilder

	columns     []iceberg.NestedField
	identifiers []int
	partitions  []iceberg.PartitionField
	sort        table.SortOrder
	// changed parts
	newColumns, newPartitions, newSort, replaced bool

	properties map[string]string
	tags       []TaggedPath
}

func (c *common) alteration(name plan.TableName, meta table.Metadata) *alteration {
	a := &alteration{
		catalog: c, name: name, meta: meta,
		schemaBuilder: schemaBuilder{version: meta.Version(), last: meta.LastColumnID()},
		// CurrentSchema and Fields give copies.
		columns: meta.CurrentSchema().Fields(), identifiers: slices.Clone(meta.CurrentSchema().IdentifierFieldIDs),
		sort: meta.SortOrder(), properties: maps.Clone(meta.Properties()),
	}
	spec := meta.PartitionSpec()
	for _, f := range spec.Fields() {
		a.partitions = append(a.partitions, f)
	}
	if a.properties == nil {
		a.properties = map[string]string{}
	}
	return a
}

// AlterTable implements Changer.
func (c *common) AlterTable(ctx context.Context, name plan.TableName, changes []Change) (*plan.Table, error) {
	return c.change(ctx, name, func(_ context.Context, t *plan.Table) (staged, error) {
		a := c.alteration(name, t.Handle.(*Handle).Table.Metadata())
		for _, ch := range changes {
			if err := ch.alter(a); err != nil {
				return staged{}, err
			}
		}
		updates, err := a.updates()
		return staged{updates: updates}, err
	})
}

// updates says how the table becomes what the alteration made of it.
func (a *alteration) updates() ([]table.Update, error) {
	if a.meta.Version() < 2 && a.version < 2 && (a.newPartitions || a.replaced) {
		return nil, fault.New(fault.Unsupported, "Table %s has format version 1; set the property format-version to 2 first", a.name)
	}
	var out []table.Update
	if a.version != a.meta.Version() {
		out = append(out, table.NewUpgradeFormatVersionUpdate(a.version))
	}
	schema := iceberg.NewSchemaWithIdentifiers(0, a.identifiers, a.columns...)
	if err := a.check(schema); err != nil {
		return nil, err
	}
	if a.replaced && refOf(a.meta, table.MainBranch) != nil {
		out = append(out, table.NewRemoveSnapshotRefUpdate(table.MainBranch))
	}
	if a.newColumns {
		out = append(out, table.NewAddSchemaUpdate(schema), table.NewSetCurrentSchemaUpdate(-1))
	}
	if a.newPartitions {
		spec, err := specOf(schema, a.partitions)
		if err != nil {
			return nil, err
		}
		out = append(out, table.NewAddPartitionSpecUpdate(&spec, false), table.NewSetDefaultSpecUpdate(-1))
	}
	if a.newSort {
		order := a.sort
		out = append(out, table.NewAddSortOrderUpdate(&order), table.NewSetDefaultSortOrderUpdate(-1))
	}
	if err := a.retag(out); err != nil {
		return nil, err
	}
	var removed []string
	for k := range a.meta.Properties() {
		if _, ok := a.properties[k]; !ok {
			removed = append(removed, k)
		}
	}
	slices.Sort(removed)
	return append(out, propertyUpdates(a.meta.Properties(), a.properties, removed)...), nil
}

// check refuses a schema that the layout of the table does not fit.
func (a *alteration) check(schema *iceberg.Schema) error {
	if !a.newColumns {
		return nil
	}
	if _, err := iceberg.IndexByName(schema); err != nil {
		return fault.Wrap(fault.BadStatement, err, "Two columns of table %s have the same name: %s", a.name, err)
	}
	for _, f := range a.partitions {
		if _, void := f.Transform.(iceberg.VoidTransform); void {
			continue
		}
		if _, ok := schema.FindFieldByID(f.SourceID()); !ok {
			return fault.New(fault.BadStatement, "Table %s is partitioned by the column; drop the partition field '%s' first", a.name, f.Name)
		}
		for _, c := range a.columns {
			if c.Name == f.Name && c.ID != f.SourceID() {
				return fault.New(fault.BadStatement, "Table %s has a partition field of the name '%s'; choose another name for the column", a.name, f.Name)
			}
		}
	}
	for _, f := range a.sort.Fields() {
		if _, ok := schema.FindFieldByID(f.SourceID()); !ok {
			return fault.New(fault.BadStatement, "Table %s is sorted by the column; change the sort order first", a.name)
		}
	}
	for _, id := range a.identifiers {
		f, ok := schema.FindFieldByID(id)
		if !ok || !f.Required {
			return fault.New(fault.BadStatement, "The column is one of those that identify a row of table %s; drop the identifier field (or the PRIMARY KEY) first", a.name)
		}
	}
	return nil
}

// retag keeps the tags with their fields, under their new names.
func (a *alteration) retag(updates []table.Update) error {
	if (!a.newColumns || !tagged(a.properties)) && len(a.tags) == 0 {
		return nil
	}
	tags, err := readTags(a.meta, a.properties)
	if err != nil {
		return err
	}
	after, err := table.UpdateTableMetadata(a.meta, updates, "")
	if err != nil {
		return refused(err, a.name)
	}
	tags.follow(after)
	if err := tags.add(a.columns, a.tags); err != nil {
		return err
	}
	set, remove, err := tags.Properties()
	if err != nil {
		return err
	}
	maps.Copy(a.properties, set)
	for _, k := range remove {
		delete(a.properties, k)
	}
	return nil
}

// follow is the tags of the same table with another schema.
func (s *TagSet) follow(after table.Metadata) {
	s.names = namesOf(after)
	s.lend()
}

// add puts tags on columns by their paths.
func (s *TagSet) add(columns []iceberg.NestedField, tags []TaggedPath) error {
	for _, t := range tags {
		id := 0
		if len(t.Path) > 0 {
			if err := edit(&columns, t.Path, func(siblings *[]iceberg.NestedField, i int, _ bool) error {
				id = (*siblings)[i].ID
				return nil
			}); err != nil {
				return err
			}
		}
		for _, tag := range t.Tags {
			had := s.at(id, tag.Name)
			own := had != nil && !had.Inherited
			if err := s.Set(id, tag); err != nil {
				return err
			}
			// One that only takes must not begin to give by being copied.
			s.at(id, tag.Name).Inherited = tag.Inherited && !own
		}
	}
	return nil
}

// replace gives the table a new definition.
func (a *alteration) replace(d TableDefinition) error {
	version, err := d.version()
	if err != nil {
		return err
	}
	if d.FormatVersion == 0 && d.Properties[formatProperty] == "" {
		version = max(2, a.version)
	}
	if version < a.version {
		return fault.New(fault.BadStatement, "Table %s has format version %d, and cannot go back to %d", a.name, a.version, version)
	}
	a.version = version
	if a.columns, err = a.fields(d.Fields, 0); err != nil {
		return err
	}
	if a.identifiers, err = identifiersOf(a.columns, d.Identifiers); err != nil {
		return err
	}
	if a.partitions, a.sort, err = d.layout(a.columns); err != nil {
		return err
	}
	a.newColumns, a.newPartitions, a.newSort, a.replaced = true, true, true, true
	maps.DeleteFunc(a.properties, func(k, _ string) bool { return !Reserved(k) })
	a.tags = d.Tags
	return a.setProperties(d.properties())
}

const formatProperty = table.PropertyFormatVersion

// version is the format version that a definition asks for.
func (d TableDefinition) version() (int, error) {
	version, given := d.FormatVersion, d.Properties[formatProperty]
	if given != "" {
		n, err := strconv.Atoi(given)
		if err != nil || (version != 0 && version != n) {
			return 0, fault.New(fault.BadStatement, "The property %s must be 2 or 3", formatProperty)
		}
		version = n
	}
	switch version {
	case 0:
		if needsThree(d.Fields) {
			return 3, nil
		}
		return 2, nil
	case 2, 3:
		return version, nil
	}
	return 0, fault.New(fault.BadStatement, "Tables have format version 2 or 3")
}

// needsThree reports whether a field has what format version 2 has not: a default, or
// nanoseconds.
func needsThree(fields []plan.Field) bool {
	return slices.ContainsFunc(fields, func(f plan.Field) bool {
		ts, ok := f.Type.(*arrow.TimestampType)
		return f.Default != nil || ok && ts.Unit == arrow.Nanosecond || needsThree(f.Children)
	})
}

// properties are those of the definition that are stored as such.
func (d TableDefinition) properties() map[string]string {
	out := maps.Clone(d.Properties)
	if out == nil {
		out = map[string]string{}
	}
	delete(out, formatProperty)
	if d.Comment != "" {
		out[commentProperty] = d.Comment
	}
	return out
}

func (d TableDefinition) layout(columns []iceberg.NestedField) (partitions []iceberg.PartitionField, order table.SortOrder, err error) {
	for _, p := range d.Partitions {
		f, err := partitionField(columns, p)
		if err != nil {
			return nil, order, err
		}
		partitions = append(partitions, f)
	}
	order, err = sortOf(columns, d.Sort)
	return partitions, order, err
}

func (ch AddPartition) alter(a *alteration) error {
	f, err := partitionField(a.columns, ch.Field)
	if err != nil {
		return err
	}
	// A field that the table had before is the same again, with its old id.
	for _, spec := range a.meta.PartitionSpecs() {
		for _, old := range spec.Fields() {
			if old.SourceID() == f.SourceID() && old.Transform.String() == f.Transform.String() && (ch.Field.Name == "" || old.Name == f.Name) {
				f.FieldID, f.Name = old.FieldID, old.Name
			}
		}
	}
	a.partitions, a.newPartitions = append(slices.Clone(a.partitions), f), true
	return nil
}

func (ch DropPartition) alter(a *alteration) error {
	match := func(f iceberg.PartitionField) bool { return strings.EqualFold(f.Name, ch.Field.Name) }
	if ch.Field.Name == "" {
		want, err := partitionField(a.columns, ch.Field)
		if err != nil {
			return err
		}
		match = func(f iceberg.PartitionField) bool {
			return f.SourceID() == want.SourceID() && f.Transform.String() == want.Transform.String()
		}
	}
	k := slices.IndexFunc(a.partitions, match)
	if k < 0 {
		return fault.New(fault.BadStatement, "Table %s has no such partition field; SHOW CREATE TABLE lists them", a.name)
	}
	a.partitions, a.newPartitions = slices.Delete(slices.Clone(a.partitions), k, k+1), true
	return nil
}

func (ch ReplacePartition) alter(a *alteration) error {
	if err := (DropPartition{Field: ch.Old}).alter(a); err != nil {
		return err
	}
	return AddPartition{Field: ch.New}.alter(a)
}

func (ch SetSort) alter(a *alteration) (err error) {
	a.sort, err = sortOf(a.columns, ch.Fields)
	a.newSort = true
	return err
}

func (ch SetProperties) alter(a *alteration) error { return a.setProperties(ch.Properties) }

func (a *alteration) setProperties(set map[string]string) error {
	set = maps.Clone(set)
	if v, ok := set[formatProperty]; ok {
		n, err := strconv.Atoi(v)
		if err != nil || n < a.version || n > 3 || n < 2 {
			return fault.New(fault.BadStatement, "Table %s has format version %d; the property %s can only raise it, to 3 at most", a.name, a.version, formatProperty)
		}
		a.version = n
		delete(set, formatProperty)
	}
	if err := a.catalog.checkProperties(set); err != nil {
		return err
	}
	maps.Copy(a.properties, set)
	return nil
}

func (ch RemoveProperties) alter(a *alteration) error {
	for _, k := range ch.Names {
		if err := a.catalog.checkProperty(k); err != nil {
			return err
		}
		delete(a.properties, k)
	}
	return nil
}

func (ch CommentTable) alter(a *alteration) error {
	if ch.Comment == "" {
		delete(a.properties, commentProperty)
	} else {
		a.properties[commentProperty] = ch.Comment
	}
	return nil
}
