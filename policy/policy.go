// Package policy is the model that every policy source compiles into, and the
// rules by which answers of several sources become one.
//
// Two gates: Decision answers whether a principal may use an object at all (the
// object gate); Restrictions answers which rows, columns and values of a table a
// principal sees (the data gate). A statement must pass both.
//
// Invariants:
//
//   - The zero value of every type denies: a zero Decision allows nothing, and
//     Restrictions without Complete refuse the table.
//   - A source compiles its own language once for each policy version; State
//     answers from memory, does no I/O and is safe for concurrent use.
//   - Columns are named by Iceberg field id. A rename does not unmask.
//   - An error from a source fails the statement. It never means "no policy".
//
// The package must never read policies itself or know a source's format.
package policy

import (
	"strconv"
	"time"

	"sqe/identity"
	"sqe/plan"
)

// Privilege is what a principal wants to do with an object, in the vocabulary of
// Ranger's polaris service ("table-data-read", "namespace-list", ...).
type Privilege string

// The privileges that reading needs. Source: the polaris service definition.
const (
	CatalogList    Privilege = "catalog-list"
	NamespaceList  Privilege = "namespace-list"
	TableList      Privilege = "table-list"
	TableProps     Privilege = "table-properties-read"
	TableDataRead  Privilege = "table-data-read"
	ViewList       Privilege = "view-list"
	ViewProps      Privilege = "view-properties-read"
	NamespaceProps Privilege = "namespace-properties-read"
)

// Object is what a privilege is asked for: a catalog (Namespace and Name empty),
// a namespace (Name empty), or a table or view.
type Object struct {
	Catalog   string
	Namespace []string
	Name      string
	View      bool
	Owner     string
}

// TableObject is the object of a table name.
func TableObject(n plan.TableName) Object {
	return Object{Catalog: n.Catalog, Namespace: n.Namespace, Name: n.Name}
}

// Reason says why a Decision is what it is, for machines.
type Reason string

// The reasons of decisions.
const (
	NoGrant      Reason = "no-grant"
	Granted      Reason = "granted"
	ExplicitDeny Reason = "explicit-deny"
	SourceError  Reason = "source-error"
	// Restricted is no answer of the object gate: it allows, and what was asked is not
	// for those who see the table under a row filter or mask.
	Restricted Reason = "restricted"
	// NotDecided is the answer of a source that has no object gate. It neither
	// allows nor denies: when no source decides, the object is denied.
	NotDecided Reason = "not-decided"
)

// Decision is the answer of the object gate. The zero value denies and hides.
type Decision struct {
	Allow bool
	// Visible false: report the object as missing.
	Visible bool
	Reason  Reason
	By      []Origin
	// ByAddress: a policy looked at the address of the client, and from another one the
	// answer may be another one.
	ByAddress bool
}

// Origin says where a decision, filter or mask comes from. It is shown in full
// only to those who may see policies.
type Origin struct {
	Source  string `json:"source"`            // name of the configured source
	Service string `json:"service,omitempty"` // Ranger service
	Policy  string `json:"policy"`            // name of the policy
	ID      int64  `json:"id"`
	Version int64  `json:"version"`
	Zone    string `json:"zone,omitempty"` // Ranger security zone of the policy
	Tag     string `json:"tag,omitempty"`  // the tag that brought the policy here
	// TagFrom says where that tag is kept: "table" (a property of the table),
	// "policy server", or both.
	TagFrom string `json:"tag_from,omitempty"`
	// Earlier is the name through which the policy acts on a column, when that is not
	// the column's own: one that it bore before, or, for a tag, the name that
	// another column had then.
	Earlier string `json:"earlier,omitempty"`
	// Via says how the principal matched: "user", "group:NAME", "role:NAME",
	// "public", "owner".
	Via string `json:"via,omitempty"`
}

// RowFilter is a condition that a row must satisfy (be true, not NULL) to be seen.
type RowFilter struct {
	// SQL is a condition over the columns of the table, to be bound with the
	// rights of the policy. Never shown to users without the right to see policies.
	SQL string
	// Cond, when set, is the condition itself, over the columns of Scan (of the table,
	// made for this purpose): its language is not SQL and its source has bound it. SQL
	// is then its text for those who may see policies.
	Cond   plan.Expr
	Scan   *plan.Scan
	Origin Origin
}

// RuleKind orders column rules by strength.
type RuleKind uint8

// The kinds of column rules, weakest first. The zero value is not valid.
const (
	Mask    RuleKind = iota + 1 // an action of package masks
	Fixed                       // a constant of the type
	Nullify                     // NULL
	Forbid                      // the column cannot be used at all (withheld)
)

// ColumnRule is what happens to one field.
type ColumnRule struct {
	Kind RuleKind
	// Action names the mask in the vocabulary of package masks, e.g.
	// "MASK_SHOW_LAST_4", "CUSTOM", "iceberg:sha-256-global". For Forbid it is
	// empty.
	Action string
	// SQL is the expression of CUSTOM, with {col} for the column.
	SQL string
	// Why says in words for the administrator why the column is withheld (Forbid),
	// or NULL although no policy says so.
	Why string
	// Fail, of Forbid: a statement that shows the column fails, SELECT * included, which
	// else leaves out what is withheld.
	Fail   bool
	Origin Origin
}

// Exemption is a policy that exempts the principal from the masks of a field, or
// from row filters. Another policy may mask or filter all the same.
type Exemption struct {
	FieldID int // 0: the rows
	Origin  Origin
}

// Restrictions is everything that the rewriter needs for one table and one
// principal. It is immutable.
type Restrictions struct {
	// Complete is set by the source when it decided; without it the table is
	// refused.
	Complete bool
	// Refuse, when not empty, refuses the table with this cause (a filter that
	// cannot be decided). It is for administrators and logs.
	Refuse string
	// Filters are all applied (AND).
	Filters []RowFilter
	// Columns by field id, also of fields inside structs; absent means untouched.
	Columns map[int]ColumnRule
	// Also holds, by field id, the origins of further policies that ask for the
	// rule in Columns, when several do.
	Also map[int][]Origin
	// Exempt lists what exempted the principal from masks and filters.
	Exempt []Exemption
	// Notes are for the administrator: a mask on a column that never existed.
	Notes []string
	// ByAddress: a policy looked at the address of the client. Notes say which one.
	ByAddress bool
	// Expires is when the answer must be asked again; zero: with the next version.
	Expires time.Time
	// Uncacheable answers depended on the request beyond its principal, address and time.
	Uncacheable bool
}

// Unrestricted reports whether the table is seen whole and raw.
func (r *Restrictions) Unrestricted() bool {
	return r != nil && r.Complete && r.Refuse == "" && len(r.Filters) == 0 && len(r.Columns) == 0
}

// Source is a place that policies come from.
type Source interface {
	// Name is the name from the configuration.
	Name() string
	// State is the present policy state. It fails with fault.PolicyStale when the
	// state is older than the staleness bound or was never loaded.
	State() (State, error)
	// Status describes the source for SHOW POLICY STATUS, metrics and health.
	Status() Status
}

// State is an immutable snapshot of the policies, roles, users and tags of a
// source. A statement takes it once.
type State interface {
	// Version changes whenever any answer may change.
	Version() string
	// Authorize is the object gate.
	Authorize(p identity.Principal, o Object, priv Privilege) Decision
	// Restrict is the data gate for a table. An error refuses the statement.
	Restrict(p identity.Principal, t *plan.Table) (*Restrictions, error)
	// Roles lists the roles that p holds by this source, sorted.
	Roles(p identity.Principal) []string
}

// Grouper is a State that knows groups beside those of the login.
type Grouper interface {
	// Groups lists the groups of p that count in this source.
	Groups(p identity.Principal) []string
}

// Tagger is a State that knows tags beside those in the properties of a table.
type Tagger interface {
	// TableTags lists the tags of a table by field id, its own under id 0. They count
	// already in Restrict; this is for showing them.
	TableTags(t *plan.Table) map[int][]string
}

// FindingKind says how much a Finding weighs.
type FindingKind uint8

// The kinds of findings.
const (
	// Broken cannot be applied as it stands; Status.Problems has it too.
	Broken FindingKind = iota + 1
	// Silent is a part of a policy that never acts as policies and tables stand.
	Silent
	// Advice is about what is probably not meant.
	Advice
)

// Finding is something that those who administer policies should know.
type Finding struct {
	Kind FindingKind
	// Service, Policy and ID name the policy that it is about; ID 0: none.
	Service string
	Policy  string
	ID      int64
	Text    string // behind the name of the policy
}

func (f Finding) String() string {
	if f.ID == 0 {
		return f.Text
	}
	return "policy " + strconv.Quote(f.Policy) + " (id " + strconv.FormatInt(f.ID, 10) + ") " + f.Text
}

// PolicyText is an SQL text of a policy.
type PolicyText struct {
	Service string
	Policy  string
	ID      int64
	SQL     string
	// Column is set for the expression of a CUSTOM mask: what {col} stands for.
	Column string
	// Masked are the other columns that somebody for whom this mask is meant sees
	// masked; the expression may not name them.
	Masked []string
}

// Inspector is a State that can be looked at for what is wrong with its policies.
type Inspector interface {
	// Findings compares the policies with each other and with the tables, which are
	// all that there are; nil: not known, so only what needs none is found. Of a table
	// without Fields nothing but the name is known: nothing is said of its columns.
	Findings(tables []*plan.Table) []Finding
	// NamesTablesOf reports whether policies name tables of a namespace; nil: of any.
	// Those of other namespaces change nothing about what is Silent.
	NamesTablesOf(catalog string, namespace []string) bool
	// Unknown lists those of the tables without Fields that should be loaded next to find
	// what is Silent. It is empty when the tables say all that they can.
	Unknown(tables []*plan.Table) []*plan.Table
	// Texts lists the SQL texts of policies that name the table, without those that
	// differ for each principal.
	Texts(t *plan.Table) []PolicyText
}

// Status is the condition of a source.
type Status struct {
	Source      string        `json:"source"`
	Kind        string        `json:"kind"` // "folder", "ranger", ...
	Loaded      bool          `json:"loaded"`
	Fresh       bool          `json:"fresh"`
	Age         time.Duration `json:"age"` // since the last successful poll
	MaxAge      time.Duration `json:"max_age"`
	LastSuccess time.Time     `json:"last_success"`
	LastError   string        `json:"last_error,omitempty"` // holds no policy text
	// Versions by document: "policies/hive", "tags/hive", "roles", "users".
	Versions map[string]int64 `json:"versions"`
	Policies int              `json:"policies"`
	Problems []string         `json:"problems,omitempty"` // policies that cannot be applied
	// Notes tell of changes of policies that somebody else erased without knowing.
	// Lost and Restored count, since the start, those and the ones written again.
	Notes          []string `json:"notes,omitempty"`
	Lost, Restored int64    `json:"-"`
}
