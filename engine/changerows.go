package engine

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"sqe/fault"
	"sqe/plan"
	"sqe/rewrite"
)

// changeRows gives the rows of changes the columns that a writer takes, in its
// order: the operation and the place of the old row where there is one, and the new
// row. It refuses rows that the row filters of the table do not permit.
type changeRows struct {
	Rows
	table     *plan.Table
	columns   []int           // of a batch; -1 is a constant
	constants []*plan.Literal // parallel to columns
	permitted int             // of a batch; -1 without one
	schema    *arrow.Schema
}

func newChangeRows(rows Rows, c *rewrite.Changes) (*changeRows, error) {
	index := map[plan.ColumnID]int{}
	for i, col := range c.Rows.Columns() {
		index[col.ID] = i
	}
	r := &changeRows{Rows: rows, table: c.Target, permitted: -1}
	take := func(id plan.ColumnID) error {
		i, ok := index[id]
		if !ok {
			return errors.New("a column of the changes is missing")
		}
		r.columns, r.constants = append(r.columns, i), append(r.constants, nil)
		return nil
	}
	if c.File != 0 {
		for _, id := range []plan.ColumnID{c.Op, c.File, c.Pos} {
			if err := take(id); err != nil {
				return nil, err
			}
		}
	}
	for i, id := range c.Fields {
		if id == 0 && i < len(c.Fill) && c.Fill[i] != nil {
			r.columns, r.constants = append(r.columns, -1), append(r.constants, c.Fill[i])
			continue
		}
		if err := take(id); err != nil {
			return nil, err
		}
	}
	if c.Permitted != 0 {
		i, ok := index[c.Permitted]
		if !ok {
			return nil, errors.New("the check of new rows is missing")
		}
		r.permitted = i
	}
	return r, nil
}

// Next implements Rows.
func (r *changeRows) Next() (arrow.RecordBatch, error) {
	b, err := r.Rows.Next()
	if err != nil {
		return nil, err
	}
	defer b.Release()
	if err := r.check(b); err != nil {
		return nil, err
	}
	columns := make([]arrow.Array, len(r.columns))
	defer func() {
		for i, at := range r.columns {
			if at < 0 && columns[i] != nil {
				columns[i].Release()
			}
		}
	}()
	fields := make([]arrow.Field, len(r.columns))
	for i, at := range r.columns {
		if at >= int(b.NumCols()) {
			return nil, fmt.Errorf("column %d of a batch of %d", at, b.NumCols())
		}
		if at >= 0 {
			columns[i], fields[i] = b.Column(at), b.Schema().Field(at)
			continue
		}
		if columns[i], err = repeated(r.constants[i], int(b.NumRows())); err != nil {
			return nil, err
		}
		fields[i] = arrow.Field{Name: "constant", Type: columns[i].DataType(), Nullable: true}
	}
	if r.schema == nil {
		r.schema = arrow.NewSchema(fields, nil)
	}
	return array.NewRecordBatch(r.schema, columns, b.NumRows()), nil
}

// check refuses a batch with a row that is not permitted, or of which that is not
// known.
func (r *changeRows) check(b arrow.RecordBatch) error {
	if r.permitted < 0 {
		return nil
	}
	if r.permitted >= int(b.NumCols()) {
		return errors.New("the check of new rows is missing")
	}
	ok, isBool := b.Column(r.permitted).(*array.Boolean)
	if !isBool {
		return errors.New("the check of new rows is no condition")
	}
	for i := range ok.Len() {
		if !ok.IsValid(i) || !ok.Value(i) {
			return fault.New(fault.Denied, "the statement would make rows in table '%s' that its row filter hides from you; nothing was changed, write rows that you may see", r.table.Name.Name)
		}
	}
	return nil
}

// repeated is a column of n times the same value.
func repeated(l *plan.Literal, n int) (arrow.Array, error) {
	if l.Value == nil {
		return array.MakeArrayOfNull(memory.DefaultAllocator, storage(l.Typ), n), nil
	}
	b := array.NewBuilder(memory.DefaultAllocator, storage(l.Typ))
	defer b.Release()
	b.Reserve(n)
	for range n {
		if !appendLiteral(b, l.Value) {
			return nil, fault.New(fault.Unsupported, "the default value of a column cannot be written; give the column a value")
		}
	}
	return b.NewArray(), nil
}
