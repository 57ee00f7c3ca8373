package catalog

import (
	"context"
	"maps"
	"slices"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"sqe/fault"
	"sqe/plan"
)

// Carry gives a field tags of those that its values come from, and reports whether
// it had not all of them. A tag that the field or the table has already, of whatever
// kind, stays as it is; a field that the table does not have gets none.
//
// A carried tag is Inherited: who may write rows may cause it, and so it must never
// open a column by an exemption that its policy gives.
func (s *TagSet) Carry(id int, tags ...plan.Tag) (added bool) {
	if _, ok := s.names.present[id]; !ok {
		return false
	}
	for _, t := range tags {
		if had := s.at(id, t.Name); had != nil && had.Lent {
			// Its own from now on, whatever becomes of the field that lends it.
			had.Lent, had.Carried, added = false, true, true
			continue
		}
		if t.Name == "" || s.at(id, t.Name) != nil || s.at(0, t.Name) != nil {
			continue
		}
		s.tags[id] = append(s.tags[id], fieldTag{storedTag: storedTag{Name: t.Name, Attributes: maps.Clone(t.Attributes), Inherited: true, Carried: true}})
		added = true
	}
	return added
}

// WithTags is change, and in the same commit the tags that fields carry from now on
// (TagSet.Carry). They are added to those that the table has at that moment, so that
// none that others set meanwhile is lost.
func WithTags(change TableChange, carried map[int][]plan.Tag) TableChange {
	return func(ctx context.Context, tx *table.Transaction, t *plan.Table) error {
		if err := change(ctx, tx, t); err != nil {
			return err
		}
		set, err := ReadTags(t)
		if err != nil {
			return err
		}
		added := false
		for _, id := range slices.Sorted(maps.Keys(carried)) {
			added = set.Carry(id, carried[id]...) || added
		}
		if !added {
			return nil
		}
		props, remove, err := set.Properties()
		if err != nil {
			return err
		}
		if slices.ContainsFunc(remove, func(k string) bool { _, ok := t.Properties[k]; return ok }) {
			return fault.New(fault.Internal, "tags would be lost by adding some")
		}
		return tx.SetProperties(iceberg.Properties(props))
	}
}
