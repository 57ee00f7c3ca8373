package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/catalog"
	"sqe/engine/parse"
	"sqe/engine/write"
	"sqe/fault"
	"sqe/plan"
	"sqe/policy"
)

// createTableAs is CREATE [OR REPLACE] TABLE ... AS. The table appears with its rows
// or not at all. It stores what the user sees.
func (st *statement) createTableAs(ctx context.Context, x *parse.CreateTable, args []plan.Literal) (*Result, error) {
	o, err := st.named(x.Table)
	if err != nil {
		return nil, err
	}
	if err := st.mayCreate(ctx, "CREATE", "table", o, tableCreate); err != nil {
		return nil, err
	}
	if err := st.mayFill(o); err != nil {
		return nil, err
	}
	bound, err := st.bind(ctx, x.Query, args)
	if err != nil {
		return nil, err
	}
	governed, record, err := st.governBound(ctx, bound)
	if err != nil {
		return nil, err
	}
	st.record = record
	d, err := st.tableDefinition(ctx, x)
	if err != nil {
		return nil, err
	}
	if d.Fields, err = columnsAs(d.Fields, governed); err != nil {
		return nil, err
	}
	carried, err := st.carryNew(ctx, o.TableName, d.Fields, bound.Plan, governed)
	if err != nil {
		return nil, err
	}
	d.Tags = append(d.Tags, carried.tags()...)
	notes := slices.Concat(bound.Warnings, x.Warnings, carried.warnings())
	options, done := st.writeOptions(o)
	defer done()
	var res write.Result
	created, err := carried.creating(ctx, func() (created bool, err error) {
		if x.NoData {
			return st.createFilled(ctx, o, d, x, nil)
		}
		rows := func(*plan.Table) (write.Rows, error) { return st.run(ctx, governed) }
		res, err = write.Fill(ctx, rows, options, func(ctx context.Context, fill catalog.TableChange) error {
			created, err = st.createFilled(ctx, o, d, x, fill)
			if err == nil && !created {
				return errKept // an earlier try may have written rows
			}
			return err
		})
		if errors.Is(err, errKept) {
			err = nil
		}
		return created, err
	})
	switch {
	case fault.Is(err, fault.NoDatabase):
		return nil, unknownDatabase(o.database)
	case err != nil:
		return nil, err
	case !created:
		return st.warned(append(notes, "table '"+o.Name+"' exists")), nil
	}
	out := st.warned(notes)
	out.Affected = uint64(res.Inserted)
	return out, nil
}

// errKept: a table of the name is there, and IF NOT EXISTS keeps it.
var errKept = errors.New("the table exists")

// mayFill asks for the right to write rows into a table that is to be made, of which
// everybody may know who may create it.
func (st *statement) mayFill(o *object) error {
	lacking, _, err := st.may(policy.TableObject(o.TableName), tableDataWrite)
	if err != nil || lacking == "" {
		return err
	}
	return st.deniedRight("CREATE TABLE AS", "table", o.Name, lacking)
}

// createFilled is createNamed, tried again when something takes the name meanwhile.
func (st *statement) createFilled(ctx context.Context, o *object, d catalog.TableDefinition, x *parse.CreateTable, fill catalog.TableChange) (bool, error) {
	for range mostDefinitionTry {
		created, err := st.createNamed(ctx, o, d, ifTaken(x), fill)
		if !fault.Is(err, fault.Conflict) || ctx.Err() != nil {
			return created, err
		}
	}
	return false, fault.New(fault.Conflict, "the name '%s' is taken and given up by others all the time; nothing was changed, try again", o.Name)
}

// columnsAs are the columns of a table that is made of a query: those that the
// statement defines, or one for each column of the query.
func columnsAs(defined []plan.Field, rows plan.Node) ([]plan.Field, error) {
	cols := rows.Columns()
	if len(defined) > 0 {
		return nil, fault.New(fault.Unsupported, "CREATE TABLE AS takes its columns from the query; use CAST and AS in it, or CREATE TABLE and INSERT")
	}
	if len(cols) == 0 {
		return nil, fault.New(fault.BadStatement, "the query of CREATE TABLE AS yields no columns")
	}
	out := make([]plan.Field, len(cols))
	for i, c := range cols {
		f, err := fieldAs(c)
		if err != nil {
			return nil, err
		}
		if t, ok := nestedSource(rows, c.ID); ok {
			f.Type = t
		}
		out[i] = f
	}
	return out, nil
}

// fieldAs is the column that holds the values of a column of a query.
func fieldAs(c plan.Column) (plan.Field, error) {
	f := plan.Field{Name: c.Name, Type: c.Type}
	switch t := c.Type; {
	case t.ID() == arrow.NULL:
		return f, fault.New(fault.BadStatement, "column '%s' of the query has no type: it is always NULL; use CAST", c.Name)
	case plan.IsJSON(t), plan.IsString(t):
		f.Type = plan.String
	case t.ID() == arrow.UINT64:
		f.Type = plan.Decimal(20, 0) // BIGINT UNSIGNED
	default:
		iceberg, ok := catalog.IcebergPrimitive(t)
		if !ok {
			return f, fault.New(fault.Unsupported, "column '%s' of the query has the type %s, which a table cannot have; use CAST", c.Name, plan.TypeName(t))
		}
		if f.Type, ok = catalog.Primitive(iceberg); !ok {
			return f, fault.New(fault.Unsupported, "column '%s' of the query has the type %s, which a table cannot have; use CAST", c.Name, plan.TypeName(t))
		}
	}
	return f, nil
}

// nestedSource is the type of the struct, list or map of which a column is the JSON
// and nothing else. Whatever is inside may be NULL: a mask may have made it so.
func nestedSource(n plan.Node, id plan.ColumnID) (arrow.DataType, bool) {
	for n != nil {
		switch in := n.(type) {
		case *plan.Project:
			i := slices.IndexFunc(in.Items, func(it plan.Item) bool { return it.ID == id })
			if i < 0 {
				return nil, false
			}
			e := in.Items[i].Expr
			if c, ok := e.(*plan.Call); ok && c.Func.Name == "to_json" && len(c.Operands) == 1 {
				e = c.Operands[0]
			}
			if plan.IsNested(e.Type()) {
				return optional(e.Type()), true
			}
			r, ok := e.(*plan.Ref)
			if !ok {
				return nil, false
			}
			n, id = in.Input, r.ID
		case *plan.Guard, *plan.Filter, *plan.Sort, *plan.Limit, *plan.Distinct:
			n = in.Inputs()[0]
		case *plan.Join:
			i := slices.IndexFunc(in.Inputs(), func(side plan.Node) bool {
				return slices.ContainsFunc(side.Columns(), func(c plan.Column) bool { return c.ID == id })
			})
			if i < 0 {
				return nil, false
			}
			n = in.Inputs()[i]
		default:
			return nil, false
		}
	}
	return nil, false
}

// optional is a type in which every value but the key of a map may be NULL.
func optional(t arrow.DataType) arrow.DataType {
	switch t := t.(type) {
	case *arrow.StructType:
		fields := t.Fields()
		for i := range fields {
			fields[i].Type, fields[i].Nullable = optional(fields[i].Type), true
		}
		return arrow.StructOf(fields...)
	case *arrow.ListType:
		return arrow.ListOf(optional(t.Elem()))
	case *arrow.MapType:
		return arrow.MapOf(optional(t.KeyType()), optional(t.ItemType()))
	}
	return t
}
