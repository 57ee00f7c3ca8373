package rewrite

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sqe/plan"
	"sqe/policy"
)

// Record says which policies touched which tables and columns of a statement.
// EXPLAIN POLICY, the audit log and cache keys read it. It holds policy texts:
// Public is for those who may not see policies.
type Record struct {
	Tables []TableRecord `json:"tables"`
}

// TableRecord is what the policies do to one table. Its lists are shared between
// statements and must not be changed.
type TableRecord struct {
	Table    string `json:"table"`
	Metadata string `json:"metadata,omitempty"` // kind of metadata table
	Snapshot int64  `json:"snapshot,omitempty"`
	// Unrestricted: the principal sees the table whole and raw.
	Unrestricted bool           `json:"unrestricted,omitempty"`
	Filters      []FilterRecord `json:"filters,omitempty"`
	Columns      []ColumnRecord `json:"columns,omitempty"`
	// Reads lists the tables that the filters read with the rights of the policy.
	Reads  []string       `json:"reads,omitempty"`
	Exempt []ExemptRecord `json:"exempt,omitempty"`
	Notes  []string       `json:"notes,omitempty"`
	// Used lists the ids of the top-level fields that the statement refers to,
	// sorted.
	Used []int `json:"used,omitempty"`
}

// FilterRecord is one row filter.
type FilterRecord struct {
	Effect string         `json:"effect"`
	SQL    string         `json:"sql,omitempty"`
	Origin *policy.Origin `json:"origin,omitempty"`
}

// ColumnRecord is what happens to one field.
type ColumnRecord struct {
	Field  int    `json:"field"`
	Column string `json:"column"` // dotted for a field inside a struct
	Effect string `json:"effect"`
	// Rule is "mask", "fixed", "null" or "withheld".
	Rule   string          `json:"rule,omitempty"`
	Action string          `json:"action,omitempty"`
	SQL    string          `json:"sql,omitempty"`
	Origin *policy.Origin  `json:"origin,omitempty"`
	Also   []policy.Origin `json:"also,omitempty"`
	Why    string          `json:"why,omitempty"`

	top int // the top-level field that holds the field
}

// ExemptRecord is a policy that exempts from the masks of a field, or from row
// filters.
type ExemptRecord struct {
	Field  int           `json:"field,omitempty"`  // 0: the rows
	Column string        `json:"column,omitempty"` // dotted for a field inside a struct
	Origin policy.Origin `json:"origin"`

	top int
}

// Line is one row of EXPLAIN POLICY.
type Line struct{ Table, Column, Effect, Policy, Why string }

// The words that everybody may read.
const (
	rowsFiltered   = "rows are filtered"
	columnMasked   = "column is masked"
	columnFixed    = "column shows a constant"
	columnNull     = "column shows NULL"
	columnWithheld = "column is withheld"
	tableWhole     = "no restriction"
)

// What only administrators read.
const (
	exempt = "exempt"
	note   = "note"
)

var ruleWords = map[policy.RuleKind]struct{ rule, effect string }{
	policy.Mask:    {"mask", columnMasked},
	policy.Fixed:   {"fixed", columnFixed},
	policy.Nullify: {"null", columnNull},
	policy.Forbid:  {"withheld", columnWithheld},
}

// record is built once with the restrictions.
func (p *preparation) record(b *Bound) TableRecord {
	t, r := p.table, p.restrictions
	out := TableRecord{
		Table: t.Name.String(), Metadata: t.Metadata, Snapshot: t.SnapshotID,
		Notes: slices.Clone(r.Notes),
	}
	for i, f := range r.Filters {
		origin := f.Origin
		out.Filters = append(out.Filters, FilterRecord{Effect: rowsFiltered, SQL: f.SQL, Origin: &origin})
		out.Reads = append(out.Reads, reads(b.filters[i].expr)...)
	}
	slices.Sort(out.Reads)
	out.Reads = slices.Compact(out.Reads)
	seen := map[int]bool{}
	for _, f := range t.Fields {
		out.Columns = p.columnRecords(out.Columns, f, f, b, seen)
	}
	for _, e := range r.Exempt {
		out.Exempt = p.exemptRecord(out.Exempt, e)
	}
	var missing []int
	for id, rule := range r.Columns {
		switch {
		case !seen[id]:
			missing = append(missing, id)
		case !rule.Masks():
			out.Exempt = p.exemptRecord(out.Exempt, policy.Exemption{FieldID: id, Origin: rule.Origin})
		}
	}
	// The rows first, then fields; the rules come from a map.
	slices.SortStableFunc(out.Exempt, func(a, b ExemptRecord) int { return cmp.Compare(a.Field, b.Field) })
	// Field ids are never used again, so that a rule for an id that this schema
	// lacks has nothing to protect here. It is said, because a policy that protects
	// nothing is often a mistake.
	slices.Sort(missing)
	for _, id := range missing {
		out.Notes = append(out.Notes, fmt.Sprintf("a rule on field id %d protects nothing: the schema of this snapshot does not have the field", id))
	}
	out.Unrestricted = len(out.Filters) == 0 && len(out.Columns) == 0
	return out
}

// columnRecords appends the rules on f and inside it; top is the column that
// holds f.
func (p *preparation) columnRecords(out []ColumnRecord, f, top plan.Field, b *Bound, seen map[int]bool) []ColumnRecord {
	seen[f.ID] = true
	if rule, ok := p.rule(f.ID); ok {
		words := ruleWords[rule.Kind]
		origin := rule.Origin
		c := ColumnRecord{
			Field: f.ID, Column: p.names[f.ID], Rule: words.rule, Effect: words.effect,
			Action: rule.Action, SQL: rule.SQL, Origin: &origin, Also: p.restrictions.Also[f.ID], Why: rule.Why,
			top: top.ID,
		}
		// One field that cannot be masked withholds the column that holds it.
		if why, ok := b.withheld[top.ID]; ok {
			c.Rule, c.Effect, c.Why = "withheld", columnWithheld, why
		}
		out = append(out, c)
	}
	for _, c := range f.Children {
		out = p.columnRecords(out, c, top, b, seen)
	}
	return out
}

// exemptRecord appends an exemption, unless it is there or the schema of this
// snapshot does not have the field.
func (p *preparation) exemptRecord(out []ExemptRecord, e policy.Exemption) []ExemptRecord {
	record := ExemptRecord{Field: e.FieldID, Column: p.names[e.FieldID], Origin: e.Origin}
	if e.FieldID != 0 {
		i := slices.IndexFunc(p.table.Fields, func(f plan.Field) bool { return holds(f, e.FieldID) })
		if i < 0 {
			return out
		}
		record.top = p.table.Fields[i].ID
	}
	if slices.Contains(out, record) {
		return out
	}
	return append(out, record)
}

// holds reports whether the field is f or inside it.
func holds(f plan.Field, id int) bool {
	return f.ID == id || slices.ContainsFunc(f.Children, func(c plan.Field) bool { return holds(c, id) })
}

// reads lists the tables in the sub-queries of a filter.
func reads(e plan.Expr) []string {
	var out []string
	plan.WalkExpr(e, func(e plan.Expr) bool {
		if s, ok := e.(*plan.Subquery); ok {
			plan.Walk(s.Plan, func(n plan.Node) bool {
				if scan, ok := n.(*plan.Scan); ok {
					out = append(out, scan.Table.Name.String())
				}
				return true
			})
		}
		return true
	})
	return out
}

// Public is the record in general words: that rows are filtered and which columns
// are masked, but not how, why or by which policy.
func (r *Record) Public() *Record {
	out := &Record{Tables: make([]TableRecord, len(r.Tables))}
	for i, t := range r.Tables {
		p := TableRecord{
			Table: t.Table, Metadata: t.Metadata, Snapshot: t.Snapshot,
			Unrestricted: t.Unrestricted, Used: t.Used,
		}
		if len(t.Filters) > 0 {
			// One line, however many policies there are: their number is the
			// administrator's.
			p.Filters = []FilterRecord{{Effect: rowsFiltered}}
		}
		for _, c := range t.Columns {
			p.Columns = append(p.Columns, ColumnRecord{Field: c.Field, Column: c.Column, Effect: c.Effect, top: c.top})
		}
		out.Tables[i] = p
	}
	return out
}

// Lines is the record as rows of text, tables in the order of the statement: what
// acts on the columns that the statement uses, and which columns are withheld.
func (r *Record) Lines() []Line {
	var out []Line
	for _, t := range r.Tables {
		name := t.Table
		if t.Metadata != "" {
			name += "$" + t.Metadata
		}
		if t.Unrestricted {
			out = append(out, Line{Table: name, Effect: tableWhole})
		}
		for _, f := range t.Filters {
			out = append(out, Line{Table: name, Effect: f.Effect, Policy: OriginText(f.Origin), Why: because(f.SQL, reached("", f.Origin))})
		}
		for _, c := range t.Columns {
			if c.Effect != columnWithheld && !slices.Contains(t.Used, c.top) {
				continue
			}
			why := strings.TrimSpace(c.Action + " " + c.SQL)
			if c.Why != "" {
				why = strings.TrimSpace(why + ": " + c.Why)
			}
			why = because(strings.TrimPrefix(why, ": "), reached(c.Column, c.Origin))
			policies := OriginText(c.Origin)
			for _, o := range c.Also {
				policies += "; " + OriginText(&o)
				why = because(why, reached(c.Column, &o))
			}
			out = append(out, Line{Table: name, Column: c.Column, Effect: c.Effect, Policy: policies, Why: why})
		}
		for _, e := range t.Exempt {
			if t.Acts(e) {
				out = append(out, Line{Table: name, Column: e.Column, Effect: exempt, Policy: OriginText(&e.Origin)})
			}
		}
		for _, n := range t.Notes {
			out = append(out, Line{Table: name, Effect: note, Why: n})
		}
	}
	return out
}

// Acts reports whether an exemption matters to the statement: it is of the rows, or
// of a column that is used. A metadata table is seen because of all of them.
func (t TableRecord) Acts(e ExemptRecord) bool {
	return e.Field == 0 || t.Metadata != "" || slices.Contains(t.Used, e.top)
}

// reached says by which name a policy reached a column, when not by its own.
func reached(column string, o *policy.Origin) string {
	switch {
	case o == nil || o.Earlier == "":
		return ""
	case o.Earlier == column:
		return "through a tag that was put on another column of the name " + column
	}
	return "through the earlier name " + o.Earlier
}

func because(reasons ...string) string {
	return strings.Join(slices.DeleteFunc(reasons, func(s string) bool { return s == "" }), "; ")
}

// Origins lists every policy that acted, each once, for the audit log.
func (t TableRecord) Origins() []policy.Origin {
	var out []policy.Origin
	add := func(o *policy.Origin) {
		if o != nil && !slices.Contains(out, *o) {
			out = append(out, *o)
		}
	}
	for _, f := range t.Filters {
		add(f.Origin)
	}
	for _, c := range t.Columns {
		add(c.Origin)
		for _, o := range c.Also {
			add(&o)
		}
	}
	return out
}

// OriginText names a policy for administrators.
func OriginText(o *policy.Origin) string {
	if o == nil {
		return ""
	}
	var parts []string
	part := func(name, value string) {
		if value != "" {
			parts = append(parts, name+value)
		}
	}
	if o.ID != 0 {
		part("id ", fmt.Sprint(o.ID))
	}
	if o.Version != 0 {
		part("version ", fmt.Sprint(o.Version))
	}
	part("source ", o.Source)
	part("service ", o.Service)
	if o.TagFrom != "" {
		part("tag ", o.Tag+" of the "+o.TagFrom)
	} else {
		part("tag ", o.Tag)
	}
	part("as ", o.Via)
	if len(parts) == 0 {
		return o.Policy
	}
	return o.Policy + " (" + strings.Join(parts, ", ") + ")"
}
