package rangerclient

import "errors"

// Groups says which groups of a user count.
type Groups string

// The sources of groups.
const (
	GroupsFromBoth     Groups = "" // of the identity provider and of Ranger's user store
	GroupsFromIdentity Groups = "identity"
	GroupsFromRanger   Groups = "ranger"
)

// DatabaseKey says what a hive policy's database is compared with.
type DatabaseKey string

// The keys. For table c.a.b.t: catalog c, namespace a.b.
const (
	KeyBoth             DatabaseKey = "" // "a.b" and "c.a.b"
	KeyNamespace        DatabaseKey = "namespace"
	KeyCatalogNamespace DatabaseKey = "catalog.namespace"
	KeyOriginal         DatabaseKey = "last-level" // "a.b" and "b"
)

// MaskPrecedence says which mask acts where a tag and a resource policy both have
// one.
type MaskPrecedence string

// The precedences.
const (
	TagMasksFirst      MaskPrecedence = "" // as Ranger
	ResourceMasksFirst MaskPrecedence = "resource"
)

// FilterCombination says what holds where several row filters could.
type FilterCombination string

// The combinations.
const (
	FiltersAll      FilterCombination = "" // those of tags (also of tags on columns) and of the resource, each by first match
	FiltersAsRanger FilterCombination = "ranger"
)

// ColumnAccess says what access policies of the data service do.
type ColumnAccess string

// The choices.
const (
	ColumnAccessDenies  ColumnAccess = "" // a column on which select is denied is withheld
	ColumnAccessIgnored ColumnAccess = "ignore"
)

// NestedWildcards says what * in the table of a polaris policy matches.
type NestedWildcards string

// The choices.
const (
	WildcardsPerSchema NestedWildcards = ""        // the tables directly in the schema, unless the schema is * too
	WildcardsAsPolaris NestedWildcards = "polaris" // also those of the schemas inside it
)

// DefaultRealm is the realm of a Polaris that was given no other.
const DefaultRealm = "POLARIS"

// Options are how Ranger's policies are read, whatever their source.
type Options struct {
	// Realm is the root of the resources of the polaris service; empty: "POLARIS".
	Realm             string
	Groups            Groups
	DatabaseKey       DatabaseKey
	MaskPrecedence    MaskPrecedence
	FilterCombination FilterCombination
	ColumnAccess      ColumnAccess
	NestedWildcards   NestedWildcards
}

// check completes the options and refuses values that are none.
func (o *Options) check() error {
	if o.Realm == "" {
		o.Realm = DefaultRealm
	}
	switch o.Groups {
	case GroupsFromBoth, GroupsFromIdentity, GroupsFromRanger:
	default:
		return errors.New("groups must be identity, ranger, or empty for both")
	}
	switch o.DatabaseKey {
	case KeyBoth, KeyNamespace, KeyCatalogNamespace, KeyOriginal:
	default:
		return errors.New("database-key must be namespace, catalog.namespace, last-level, or empty for namespace and catalog.namespace")
	}
	switch o.MaskPrecedence {
	case TagMasksFirst, ResourceMasksFirst:
	case "tag":
		o.MaskPrecedence = TagMasksFirst
	default:
		return errors.New("mask-precedence must be tag or resource")
	}
	switch o.FilterCombination {
	case FiltersAll, FiltersAsRanger:
	case "all":
		o.FilterCombination = FiltersAll
	default:
		return errors.New("filter-combination must be all or ranger")
	}
	switch o.NestedWildcards {
	case WildcardsPerSchema, WildcardsAsPolaris:
	default:
		return errors.New("nested-wildcards must be polaris, or empty so that * stands for the tables directly in a schema")
	}
	switch o.ColumnAccess {
	case ColumnAccessDenies, ColumnAccessIgnored:
	default:
		return errors.New("column-access must be ignore, or empty so that a denied column is withheld")
	}
	return nil
}
