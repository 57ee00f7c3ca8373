package engine

import (
	"context"
	"maps"
	"slices"

	"sqe/identity"
	"sqe/masks"
	"sqe/plan"
	"sqe/policy"
	"sqe/rewrite"
)

// CheckFilter reports why a row filter cannot be applied to a table, for a check
// of the policies before they are used.
func (e *Engine) CheckFilter(ctx context.Context, t *plan.Table, sql string) error {
	return e.check(ctx, t, &policy.Restrictions{Complete: true, Filters: []policy.RowFilter{{SQL: sql}}})
}

// CheckMask reports why a CUSTOM mask of a top-level column cannot be built for
// somebody who sees the columns of others masked.
func (e *Engine) CheckMask(ctx context.Context, t *plan.Table, column int, sql string, others []int) error {
	rules := map[int]policy.ColumnRule{}
	for _, id := range others {
		rules[id] = policy.ColumnRule{Kind: policy.Nullify}
	}
	rules[column] = policy.ColumnRule{Kind: policy.Mask, Action: masks.CustomSQL, SQL: sql}
	return e.check(ctx, t, &policy.Restrictions{Complete: true, Columns: rules})
}

func (e *Engine) check(ctx context.Context, t *plan.Table, r *policy.Restrictions) error {
	s := &Session{engine: e, principal: identity.Principal{Name: "check"}, process: &process{}}
	s.Reset()
	var read []*plan.Table
	b, err := rewrite.Prepare(ctx, t, r, s.begin().policyBinder(nil, &read), e.masks)
	if err != nil {
		return err
	}
	// The reason of the first field, so that a message does not depend on the map.
	why := b.Withheld()
	if len(why) == 0 {
		return nil
	}
	return withheld(why[slices.Min(slices.Collect(maps.Keys(why)))])
}

type withheld string

func (w withheld) Error() string { return string(w) }
