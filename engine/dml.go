package engine

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"sqe/engine/bind"
	"sqe/engine/parse"
	"sqe/engine/write"
	"sqe/fault"
	"sqe/plan"
	"sqe/policy"
	"sqe/rewrite"
)

// mostChangeTries is how often a statement that changes rows is run: another writer
// may change what it read, and then it must read again.
const mostChangeTries = 8

// isChange reports whether a statement changes rows.
func isChange(stmt parse.Statement) bool {
	switch x := stmt.(type) {
	case *parse.Insert, *parse.Update, *parse.Delete, *parse.Merge, *parse.Truncate:
		return true
	case *parse.CreateTable:
		return x.Query != nil
	}
	return false
}

// changeRows runs a statement that changes rows.
func (st *statement) changeRows(ctx context.Context, stmt parse.Statement, args []plan.Literal) (*Result, error) {
	switch x := stmt.(type) {
	case *parse.CreateTable:
		return st.createTableAs(ctx, x, args)
	case *parse.Truncate:
		return st.truncate(ctx, x)
	}
	command, ref := changed(stmt)
	o, err := st.mayWrite(ctx, command, ref)
	if err != nil {
		return nil, err
	}
	return st.again(ctx, func() (*Result, error) {
		c, err := st.changes(ctx, stmt, args)
		if err != nil {
			return nil, err
		}
		if c.Target.Name.Key() != o.Key() {
			return nil, fault.New(fault.Internal, "the statement changes another table than the one that was asked for")
		}
		return st.write(ctx, o, stmt, c)
	})
}

// changed is the command of a statement and the table that it changes.
func changed(stmt parse.Statement) (command string, ref parse.TableRef) {
	switch x := stmt.(type) {
	case *parse.Insert:
		return "INSERT", x.Table
	case *parse.Update:
		return "UPDATE", x.Table
	case *parse.Delete:
		return "DELETE", x.Table
	case *parse.Merge:
		return "MERGE", x.Table
	}
	return "", parse.TableRef{}
}

// mayWrite asks for the right to change the rows of a table. Nothing is read or
// staged before.
func (st *statement) mayWrite(ctx context.Context, command string, ref parse.TableRef) (*object, error) {
	o, err := st.named(ref)
	if err != nil {
		return nil, err
	}
	return o, st.orView(ctx, o, st.mayTable(ctx, command, o, tableDataWrite, policy.TableDataRead))
}

// orView is the error for a name of no table, when it is that of a view which the
// principal may see.
func (st *statement) orView(ctx context.Context, o *object, err error) error {
	if fault.Is(err, fault.NotFound) {
		if kind, known := st.occupant(ctx, o); known == nil && kind == byView {
			return fault.New(fault.Unsupported, "'%s' is a view and its rows cannot be changed; change the tables that it reads", o.Name)
		}
	}
	return err
}

// again runs a statement anew when others changed meanwhile what it had read.
func (st *statement) again(ctx context.Context, run func() (*Result, error)) (*Result, error) {
	allowed := len(st.allowed)
	for try := 1; ; try++ {
		res, err := run()
		if !fault.Is(err, fault.Conflict) || try == mostChangeTries || ctx.Err() != nil {
			return res, err
		}
		st.allowed, st.record = st.allowed[:allowed], nil
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Duration(rand.Int64N(int64(try) * int64(20*time.Millisecond)))):
		}
	}
}

// changes are those of a statement, verified, so that they may run.
type changes struct {
	*rewrite.Changes
	governed  plan.Node            // what the rows are made from, to be shown to the user
	hidden    func(field int) bool // what the user does not see of the target
	overwrite bool
	partition []bind.Partition
	carried   *carriage // the tags that the new values bring with them
}

// changes is the way of a statement that changes rows to changes that may run.
func (st *statement) changes(ctx context.Context, stmt parse.Statement, args []plan.Literal) (*changes, error) {
	relations{st}.prefetchNamed(ctx, parse.NamesOf(stmt), st.session.vars.Database())
	bound, err := st.engine.binder.BindWrite(ctx, st.session.vars, relations{st}, stmt, args)
	if err != nil {
		return nil, err
	}
	lookup := func(s *plan.Scan) (*rewrite.Bound, error) { return st.bound(ctx, s.Table) }
	governed, record, err := rewrite.GovernWrite(bound.Write, bound.IDs, lookup, st.saltBytes)
	if err != nil {
		return nil, err
	}
	st.record = record
	target, err := st.bound(ctx, bound.Write.Target)
	if err != nil {
		return nil, err
	}
	if err := mayOverwrite(target, bound); err != nil {
		return nil, err
	}
	if err := rewrite.VerifyWrite(governed); err != nil {
		return nil, err
	}
	c, err := rewrite.Complete(governed, bound.IDs, lookup)
	if err != nil {
		return nil, err
	}
	carried, err := st.carryInto(ctx, bound.Write, governed)
	if err != nil {
		return nil, err
	}
	st.session.vars.SetWarnings(append(bound.Warnings, carried.warnings()...))
	c.Rows = rewrite.Pushdown(c.Rows)
	// Moving predicates may not open what the rewrite closed.
	if err := rewrite.VerifyChanges(c); err != nil {
		return nil, err
	}
	return &changes{Changes: c, governed: governed.Rows, hidden: target.Hides, overwrite: governed.Overwrite, partition: bound.Partition, carried: carried}, nil
}

// mayOverwrite refuses INSERT OVERWRITE ... PARTITION where the user does not see what
// decides the partition of a row: which rows are gone would tell.
func mayOverwrite(target *rewrite.Bound, bound *bind.BoundWrite) error {
	if len(bound.Partition) == 0 {
		return nil
	}
	t := bound.Write.Target
	by, err := write.PartitionedBy(t)
	if err != nil {
		return err
	}
	for _, id := range by {
		if f, _ := t.Field(id); target.Hides(id) {
			return fault.New(fault.Denied, "column '%s' of table '%s' is masked for you, so that you cannot replace partitions by it; use DELETE and INSERT", f.Name, t.Name)
		}
	}
	return nil
}

// byRow names the functions of a plan that the row executor computes.
func byRow(n plan.Node) []string {
	var out []string
	plan.Walk(n, func(n plan.Node) bool {
		for _, e := range n.Exprs() {
			plan.WalkExpr(e, func(e plan.Expr) bool {
				if c, ok := e.(*plan.RowCall); ok {
					out = append(out, "the function "+strings.ToUpper(c.Name))
				}
				return true
			})
		}
		return true
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// write runs changes and commits them.
func (st *statement) write(ctx context.Context, o *object, stmt parse.Statement, c *changes) (*Result, error) {
	options, done := st.writeOptions(o)
	defer done()
	options.Committer = c.carried.committer(options.Committer)
	options.Hidden = c.hidden
	out, err := st.run(ctx, c.Rows)
	if err != nil {
		return nil, err
	}
	rows, err := newChangeRows(out, c.Changes)
	if err != nil {
		_ = out.Close()
		return nil, err
	}
	var res write.Result
	switch {
	case len(c.partition) > 0:
		res, err = overwritePartition(ctx, c, rows, options)
	case c.overwrite:
		res, err = write.Overwrite(ctx, c.Target, write.All, rows, options)
	case c.File != 0:
		res, err = write.Change(ctx, c.Target, rows, layout(stmt, c), options)
	default:
		res, err = write.Append(ctx, c.Target, rows, options)
	}
	if err != nil {
		return nil, err
	}
	st.wrote()
	affected := uint64(res.Inserted)
	if !c.overwrite {
		affected += uint64(res.Updated + res.Deleted)
	}
	return &Result{Affected: affected, Warnings: st.session.vars.WarningCount()}, nil
}

func layout(stmt parse.Statement, c *changes) write.Layout {
	l := write.Layout{Op: 0, File: 1, Position: 2, Command: write.MergeCommand}
	switch stmt.(type) {
	case *parse.Delete:
		l.Command = write.DeleteCommand
	case *parse.Update:
		l.Command = write.UpdateCommand
	}
	for i := range c.Fields {
		l.Columns = append(l.Columns, 3+i)
	}
	return l
}

// overwritePartition is INSERT OVERWRITE ... PARTITION: with values it replaces what
// has them, without any the partitions that get rows.
func overwritePartition(ctx context.Context, c *changes, rows Rows, o write.Options) (write.Result, error) {
	values := make([]write.PartitionValue, len(c.partition))
	for i, p := range c.partition {
		values[i].Field = p.Field
		if p.Value == nil {
			continue
		}
		a, err := repeated(p.Value, 1)
		if err != nil {
			_ = rows.Close()
			return write.Result{}, err
		}
		defer a.Release()
		values[i].Value = a
	}
	return write.OverwritePartition(ctx, c.Target, values, rows, o)
}

// truncate is TRUNCATE TABLE.
func (st *statement) truncate(ctx context.Context, x *parse.Truncate) (*Result, error) {
	o, err := st.mayWrite(ctx, "TRUNCATE", x.Table)
	if err != nil {
		return nil, err
	}
	return st.again(ctx, func() (*Result, error) {
		t, err := o.load(ctx)
		if err != nil {
			return nil, st.orView(ctx, o, err)
		}
		b, err := st.bound(ctx, t)
		if err != nil {
			return nil, err
		}
		if b.Filtered() {
			return nil, fault.New(fault.Denied, "a row filter hides rows of table '%s' from you, and TRUNCATE would remove them; use DELETE", o.Name)
		}
		options, done := st.writeOptions(o)
		defer done()
		if _, err := write.Overwrite(ctx, t, write.All, nil, options); err != nil {
			return nil, err
		}
		st.wrote()
		return &Result{}, nil // as in MySQL, the number of rows is not told
	})
}
