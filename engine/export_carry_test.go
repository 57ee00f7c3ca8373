package engine

import (
	"context"

	"sqe/catalog"
	"sqe/engine/parse"
	"sqe/engine/write"
	"sqe/fault"
	"sqe/plan"
	"sqe/rewrite"
)

// CarryInto does what a statement that changes rows does with the tags of its
// sources, and commits them with what change stages. It runs nothing.
func CarryInto(ctx context.Context, s *Session, text string, by write.Committer, change catalog.TableChange) (warnings []string, err error) {
	stmt, _, err := parse.Parse(text)
	if err != nil {
		return nil, err
	}
	st := s.begin()
	bound, err := s.engine.binder.BindWrite(ctx, s.vars, relations{st}, stmt, nil)
	if err != nil {
		return nil, err
	}
	governed, _, err := rewrite.GovernWrite(bound.Write, bound.IDs, func(s *plan.Scan) (*rewrite.Bound, error) { return st.bound(ctx, s.Table) }, st.saltBytes)
	if err != nil {
		return nil, err
	}
	c, err := st.carryInto(ctx, bound.Write, governed)
	if err != nil {
		return nil, err
	}
	_, err = c.committer(by).Commit(ctx, bound.Write.Target.Name, change)
	return c.warnings(), err
}

// CarryNew does what CREATE TABLE AS does with the tags of the sources of its query.
func CarryNew(ctx context.Context, s *Session, target plan.TableName, text string, create func(fields []plan.Field, tags []catalog.TaggedPath) (bool, error)) (warnings []string, err error) {
	stmt, _, err := parse.Parse(text)
	if err != nil {
		return nil, err
	}
	sql, ok := stmt.(*parse.SQL)
	if !ok {
		return nil, fault.New(fault.BadStatement, "not a query")
	}
	st := s.begin()
	bound, err := s.engine.binder.Bind(ctx, s.vars, relations{st}, sql, nil)
	if err != nil {
		return nil, err
	}
	governed, _, err := rewrite.Govern(bound.Plan, bound.IDs, func(s *plan.Scan) (*rewrite.Bound, error) { return st.bound(ctx, s.Table) }, st.saltBytes)
	if err != nil {
		return nil, err
	}
	var fields []plan.Field
	for _, c := range bound.Plan.Columns() {
		fields = append(fields, plan.Field{Name: c.Name, Type: c.Type})
	}
	c, err := st.carryNew(ctx, target, fields, bound.Plan, governed)
	if err != nil {
		return nil, err
	}
	_, err = c.creating(ctx, func() (bool, error) { return create(fields, c.tags()) })
	return c.warnings(), err
}
