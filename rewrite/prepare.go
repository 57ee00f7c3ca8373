package rewrite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/fault"
	"sqe/masks"
	"sqe/plan"
	"sqe/policy"
)

// Binder turns policy texts into expressions over a scan of the table that it
// makes for this purpose. Ids of columns are unique within one answer only.
// Tables that the text reads besides are scans marked plan.Scan.Definer.
type Binder interface {
	// Condition binds a row filter: a boolean expression.
	Condition(ctx context.Context, t *plan.Table, sql string) (*plan.Scan, plan.Expr, error)
	// Value binds the expression of a CUSTOM mask.
	Value(ctx context.Context, t *plan.Table, sql string) (*plan.Scan, plan.Expr, error)
}

// Bound is the restrictions of one table for one principal, with their texts
// bound. It is immutable and may be shared between statements.
type Bound struct {
	table   *plan.Table
	filters []*template
	// columns by id of the top-level field, without the withheld ones.
	columns  map[int]*column
	withheld map[int]string
	fails    map[int]bool // of the withheld: see Fails
	record   TableRecord
}

// column is what happens to one top-level column.
type column struct {
	// mask is set for the vocabulary, unless it needs the salt of a statement.
	mask   masks.Mask
	salted func(salt []byte) (masks.Mask, error)
	custom *template
	// constant masks do not need the raw column to be read.
	constant bool
}

// template is an expression over its own scan; a statement gets a copy with its
// own ids.
type template struct {
	expr plan.Expr
	// reads are the columns of the scan that expr refers to.
	reads []plan.ScanColumn
}

// Withheld lists by field id the columns that cannot be used, with the reason for
// administrators. The caller must not change it.
func (b *Bound) Withheld() map[int]string { return b.withheld }

// Fails reports whether a withheld column may not be left out of what SELECT *
// means: the statement is to fail.
func (b *Bound) Fails(field int) bool { return b.fails[field] }

// Filtered reports whether a row filter may hide rows.
func (b *Bound) Filtered() bool { return len(b.filters) > 0 }

// Hides reports whether the user does not see the values of a top-level column as they
// are, or not at all.
func (b *Bound) Hides(field int) bool {
	_, withheld := b.withheld[field]
	return withheld || b.columns[field] != nil
}

// Record is what these restrictions do, whatever the statement is.
func (b *Bound) Record() TableRecord { return b.record }

// Prepare binds the restrictions of one table. The options need no salt.
//
// It fails with fault.PolicyBroken when the restrictions are incomplete, refuse
// the table, or hold a filter that cannot be bound. An outage while binding keeps
// its kind. Metadata tables are for PrepareMetadata.
func Prepare(ctx context.Context, t *plan.Table, r *policy.Restrictions, b Binder, o masks.Options) (*Bound, error) {
	switch {
	case r == nil || (!r.Complete && r.Refuse == ""):
		return nil, broken(t, errors.New("no policy source decided about the table"))
	case r.Refuse != "":
		return nil, broken(t, errors.New(r.Refuse))
	}
	if t.Metadata != "" {
		// Its fields are not those that rules are about, so that its own
		// restrictions would look empty.
		return nil, fault.New(fault.Internal, "the restrictions of a metadata table are those of its table")
	}
	p := &preparation{ctx: ctx, table: t, named: presentNames(t), restrictions: r, binder: b, options: o, names: map[int]string{}}
	p.name(t.Fields, "")
	// Filters first: when one refuses the table, nothing is said about its columns.
	out := &Bound{table: t, columns: map[int]*column{}, withheld: map[int]string{}}
	for _, f := range r.Filters {
		c, err := p.filter(f)
		if err != nil {
			return nil, err
		}
		out.filters = append(out.filters, c)
	}
	for _, f := range t.Fields {
		c, err := p.column(f)
		switch {
		case err == nil && c != nil:
			out.columns[f.ID] = c
		case p.outage(err):
			return nil, outage(t, err)
		case err != nil:
			out.withheld[f.ID] = err.Error()
			if rule, ok := p.rule(f.ID); ok && rule.Kind == policy.Forbid && rule.Fail {
				if out.fails == nil {
					out.fails = map[int]bool{}
				}
				out.fails[f.ID] = true
			}
		}
	}
	out.record = p.record(out)
	return out, nil
}

// PrepareMetadata makes the restrictions of a metadata table out of those of the
// table itself: of its present version, and of the snapshot that is asked for
// when that has another schema. There is nothing to filter or mask by in file
// paths, counts and bounds, which tell raw values and hidden rows; so the table
// is seen whole, or refused with fault.Denied when any row or column of the data
// is restricted.
func PrepareMetadata(t *plan.Table, data ...*Bound) (*Bound, error) {
	if t.Metadata == "" || len(data) == 0 {
		return nil, fault.New(fault.Internal, "a metadata table needs the restrictions of its table")
	}
	out := &Bound{table: t, withheld: map[int]string{}}
	out.record = TableRecord{Table: t.Name.String(), Metadata: t.Metadata, Snapshot: t.SnapshotID, Unrestricted: true}
	for _, d := range data {
		if d == nil || d.table.Metadata != "" || d.table.Name.Key() != t.Name.Key() || d.table.UUID != t.UUID {
			return nil, fault.New(fault.Internal, "the restrictions of table '%s' are those of another table", t.Name)
		}
		if !d.record.Unrestricted {
			return nil, fault.New(fault.Denied, "metadata of table '%s' cannot be read under a row filter or column mask; ask an administrator", t.Name)
		}
		for _, e := range d.record.Exempt {
			if !slices.Contains(out.record.Exempt, e) {
				out.record.Exempt = append(out.record.Exempt, e)
			}
		}
	}
	return out, nil
}

type preparation struct {
	ctx          context.Context
	table        *plan.Table
	named        *plan.Table // the table with the names that texts use
	restrictions *policy.Restrictions
	binder       Binder
	options      masks.Options
	names        map[int]string // dotted path of every field
}

func (p *preparation) name(fields []plan.Field, prefix string) {
	for _, f := range fields {
		p.names[f.ID] = prefix + f.Name
		p.name(f.Children, prefix+f.Name+".")
	}
}

func broken(t *plan.Table, cause error) error {
	return fault.Wrap(fault.PolicyBroken, cause, "a policy of table '%s' cannot be applied, so the table is refused; SHOW POLICY STATUS tells an administrator the cause", t.Name)
}

// outage reports whether err says nothing about the policy: then no column may
// be withheld for it and nothing may be cached.
func (p *preparation) outage(err error) bool {
	if err == nil {
		return false
	}
	if p.ctx.Err() != nil {
		return true
	}
	switch fault.KindOf(err) {
	case fault.Cancelled, fault.Timeout, fault.Unavailable, fault.Limit:
		return true
	}
	return false
}

// outage keeps the kind only: the text may name what a policy reads.
func outage(t *plan.Table, err error) error {
	kind := fault.KindOf(err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		kind = fault.Timeout
	case errors.Is(err, context.Canceled):
		kind = fault.Cancelled
	}
	return fault.Wrap(kind, err, "the policies of table '%s' cannot be prepared now; try again", t.Name)
}

// rule is the rule of a field that changes something.
func (p *preparation) rule(id int) (policy.ColumnRule, bool) {
	r, ok := p.restrictions.Columns[id]
	return r, ok && r.Masks()
}

func (p *preparation) filter(f policy.RowFilter) (*template, error) {
	scan, e := f.Scan, f.Cond
	var err error
	if e == nil {
		scan, e, err = p.binder.Condition(p.ctx, p.named, f.SQL)
	}
	// A number or text as a condition depends on rules of conversion, which a
	// filter must not: what is meant is not certain.
	if err == nil && e.Type().ID() != arrow.BOOL {
		err = errors.New("a row filter is not a condition")
	}
	var c *template
	if err == nil {
		c, err = newTemplate(p.table, scan, e, true)
	}
	switch {
	case p.outage(err):
		return nil, outage(p.table, err)
	case err != nil:
		// Never zero rows instead: an empty answer looks like a true one.
		return nil, broken(p.table, fmt.Errorf("row filter of policy %q: %w", f.Origin.Policy, err))
	}
	return c, nil
}

// newTemplate checks what a binder returned: the expression refers to its own
// scan, and tables in sub-queries are read with the rights of the policy.
func newTemplate(t *plan.Table, scan *plan.Scan, e plan.Expr, subqueries bool) (*template, error) {
	if scan == nil || e == nil || !sameTable(scan.Table, t) {
		return nil, errors.New("the expression is over another table")
	}
	c := &template{expr: e}
	for _, id := range plan.Refs(e) {
		i := slices.IndexFunc(scan.Cols, func(s plan.ScanColumn) bool { return s.ID == id })
		if i < 0 {
			return nil, errors.New("the expression refers to a column that is not of the table")
		}
		c.reads = append(c.reads, scan.Cols[i])
	}
	var err error
	plan.WalkExpr(e, func(e plan.Expr) bool {
		s, ok := e.(*plan.Subquery)
		if !ok {
			return err == nil
		}
		if !subqueries {
			err = errors.New("a mask cannot hold a sub-query")
			return false
		}
		plan.Walk(s.Plan, func(n plan.Node) bool {
			switch n := n.(type) {
			case *plan.Scan:
				if !n.Definer {
					err = errors.New("a table in a sub-query is not read with the rights of the policy")
				}
			case *plan.Guard, *plan.Foreign:
				err = fmt.Errorf("a policy cannot hold %T", n)
			}
			return err == nil
		})
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// instantiate is the expression over the raw columns of a statement's scan.
func (c *template) instantiate(ids *plan.IDs, raw func(plan.ScanColumn) plan.ColumnID) plan.Expr {
	renamed := make(map[plan.ColumnID]plan.ColumnID, len(c.reads))
	for _, r := range c.reads {
		renamed[r.ID] = raw(r)
	}
	return plan.RenumberExpr(c.expr, ids, renamed)
}

// column is what happens to a top-level field; nil when nothing does. An error
// withholds the column.
func (p *preparation) column(f plan.Field) (*column, error) {
	rule, ok := p.rule(f.ID)
	// CUSTOM is bound as text over the columns of the table, so that it exists for
	// top-level columns alone.
	if ok && rule.Kind == policy.Mask && rule.Action == masks.CustomSQL {
		if err := p.enclosing(f, rule); err != nil {
			return nil, err
		}
		c, err := p.custom(f, rule)
		if err != nil {
			return nil, err
		}
		return &column{custom: c}, nil
	}
	// Any salt shows whether the mask can be built; the statement brings its own.
	m, err := p.mask(f, make([]byte, masks.MinSalt))
	if err != nil || m == nil {
		return nil, err
	}
	if p.needsSalt(f) {
		return &column{salted: func(salt []byte) (masks.Mask, error) { return p.mask(f, salt) }}, nil
	}
	// Masks look at the type of the raw column, not at its value or id, so that one
	// expression tells whether the raw column is needed.
	probe := &plan.Ref{ID: 1, Typ: f.Type}
	return &column{mask: m, constant: len(plan.Refs(m(probe))) == 0}, nil
}

// mask is the mask of a field with everything inside it; nil when nothing is
// masked.
func (p *preparation) mask(f plan.Field, salt []byte) (masks.Mask, error) {
	o := p.options
	o.Salt = salt
	if rule, ok := p.rule(f.ID); ok {
		if err := p.enclosing(f, rule); err != nil {
			return nil, err
		}
		return ruleMask(f, rule, o)
	}
	if len(f.Children) == 0 {
		return nil, nil
	}
	if f.Type.ID() != arrow.STRUCT {
		// The elements of a list or map are not single values of a row.
		for _, c := range f.Children {
			if id, found := p.inside(c); found {
				return nil, fmt.Errorf("field %q is inside a list or map and cannot be masked", p.names[id])
			}
		}
		return nil, nil
	}
	// Other fields of the struct pass through raw; each masked one is replaced.
	type change struct {
		name string
		mask masks.Mask
	}
	var changes []change
	for _, c := range f.Children {
		m, err := p.mask(c, salt)
		if err != nil {
			return nil, err
		}
		if m == nil {
			continue
		}
		field, err := plan.NewStructField(&plan.Literal{Typ: f.Type}, c.Name)
		if err != nil || !arrow.TypeEqual(field.Typ, c.Type) {
			return nil, fmt.Errorf("field %q cannot be found by its name", p.names[c.ID])
		}
		changes = append(changes, change{c.Name, m})
	}
	if len(changes) == 0 {
		return nil, nil
	}
	return func(raw plan.Expr) plan.Expr {
		out := raw
		for _, c := range changes {
			field, err := plan.NewStructField(raw, c.name)
			if err != nil {
				panic(err) // checked above for the type of raw
			}
			out = plan.MustCall("struct_set", out, &plan.Literal{Value: c.name, Typ: plan.String}, c.mask(field))
		}
		// A struct that is NULL stays NULL, also where the mask of a field gives a
		// constant.
		return &plan.Case{
			Whens: []plan.When{{Cond: plan.MustCall("is_null", raw), Then: &plan.Literal{Typ: raw.Type()}}},
			Else:  out, Typ: raw.Type(),
		}
	}, nil
}

// ruleMask is the mask of a rule that is not CUSTOM.
func ruleMask(f plan.Field, rule policy.ColumnRule, o masks.Options) (masks.Mask, error) {
	switch rule.Kind {
	case policy.Forbid:
		if rule.Why != "" {
			return nil, errors.New(rule.Why)
		}
		return nil, errors.New("the policy forbids the column")
	case policy.Nullify:
		// Iceberg does not allow it on a required field. NULL that several sources
		// or Ranger led to makes the field nullable in this statement instead.
		if rule.Action == masks.IcebergNull {
			return masks.New(rule.Action, f, o)
		}
		return masks.New(masks.Null, f, o)
	case policy.Fixed:
		// A constant that a later vocabulary defines must not become this one.
		if rule.Action != "" && rule.Action != masks.IcebergFixed {
			return nil, fmt.Errorf("the constant %q is not known", rule.Action)
		}
		return masks.New(masks.IcebergFixed, f, o)
	case policy.Mask:
		if rule.Action == masks.CustomSQL {
			return nil, errors.New("CUSTOM does not apply to a field inside a column")
		}
		return masks.New(rule.Action, f, o)
	}
	return nil, errors.New("the rule has no kind")
}

// enclosing decides about rules on fields inside a field that has a rule itself.
// NULL in the place of the whole hides them as well; anything else would decide
// by chance which of the two holds. Inside one answer of Iceberg's catalog the
// two are an error in any case (specification, ReadRestrictions).
func (p *preparation) enclosing(f plan.Field, rule policy.ColumnRule) error {
	for _, c := range f.Children {
		id, found := p.inside(c)
		if !found {
			continue
		}
		inner := p.restrictions.Columns[id]
		iceberg := strings.HasPrefix(rule.Action, "iceberg:") && inner.Origin.Source == rule.Origin.Source
		if nullifies(rule) && !iceberg {
			continue
		}
		return fmt.Errorf("there are rules on the column and on field %q inside it", p.names[id])
	}
	return nil
}

func nullifies(rule policy.ColumnRule) bool {
	return rule.Kind == policy.Nullify || rule.Kind == policy.Forbid ||
		(rule.Kind == policy.Mask && (rule.Action == masks.Null || rule.Action == masks.IcebergNull))
}

// inside finds a rule on f or anything inside it.
func (p *preparation) inside(f plan.Field) (id int, found bool) {
	if _, ok := p.rule(f.ID); ok {
		return f.ID, true
	}
	for _, c := range f.Children {
		if id, ok := p.inside(c); ok {
			return id, true
		}
	}
	return 0, false
}

func (p *preparation) needsSalt(f plan.Field) bool {
	if rule, ok := p.rule(f.ID); ok && masks.NeedsSalt(rule.Action) {
		return true
	}
	return slices.ContainsFunc(f.Children, p.needsSalt)
}

// custom binds a CUSTOM mask. {col} stands for the column as an identifier, so
// that no name can be read as anything else.
func (p *preparation) custom(f plan.Field, rule policy.ColumnRule) (*template, error) {
	named, name, ok := ownName(p.named, f)
	if !ok {
		return nil, errors.New("the CUSTOM mask would read another column, which has the name of this one now")
	}
	sql := strings.ReplaceAll(rule.SQL, "{col}", "`"+strings.ReplaceAll(name, "`", "``")+"`")
	if strings.TrimSpace(sql) == "" {
		return nil, errors.New("the CUSTOM mask has no expression")
	}
	scan, e, err := p.binder.Value(p.ctx, named, sql)
	if p.outage(err) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("the expression of the CUSTOM mask cannot be bound: %w", err)
	}
	// A sub-query in a mask would read its table once for each row that is shown,
	// and what it reads would appear in the result.
	c, err := newTemplate(p.table, scan, e, false)
	if err != nil {
		return nil, err
	}
	// A mask reads raw values. One that reads another column masked for the same
	// principal would show what that column's mask hides.
	for _, r := range c.reads {
		if r.FieldID == f.ID {
			continue
		}
		other, ok := p.table.Field(r.FieldID)
		if !ok {
			return nil, errors.New("the expression of the CUSTOM mask names a column that is not of the table")
		}
		if _, masked := p.inside(other); masked {
			return nil, fmt.Errorf("the expression of the CUSTOM mask names column %q, which is masked too", other.Name)
		}
	}
	if c.expr, err = masks.Custom(e, f); err != nil {
		return nil, err
	}
	return c, nil
}
