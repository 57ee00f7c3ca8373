package restrictions

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/masks"
	"sqe/plan"
	"sqe/policy"
)

// PolicyName stands for the catalog's demand among the names of policies.
const PolicyName = "read-restrictions"

// Compile makes of read-restrictions, as the catalog sent them, what they demand of
// reads of t by the principal that they were sent to. No raw is no demand.
func Compile(raw json.RawMessage, t *plan.Table) *policy.Restrictions {
	out := &policy.Restrictions{Complete: true, Columns: map[int]policy.ColumnRule{}}
	if err := compile(raw, t, out); err != nil {
		return &policy.Restrictions{Complete: true, Refuse: "the catalog's " + PolicyName + " cannot be applied: " + err.Error()}
	}
	return out
}

// The members of read-restrictions.
const (
	rowFilter   = "required-row-filter"
	projections = "required-column-projections"
)

func compile(raw json.RawMessage, t *plan.Table, out *policy.Restrictions) error {
	if len(raw) == 0 {
		return nil
	}
	n, err := decode(raw)
	if err != nil || n == nil {
		return err
	}
	o, ok := n.(object)
	if !ok {
		return errors.New("they are no object")
	}
	if err := o.closed(nil, rowFilter, projections); err != nil {
		return err
	}
	origin := policy.Origin{Source: t.Name.Catalog, Policy: PolicyName}
	if f := o[rowFilter]; f != nil {
		b := &binder{table: t, scan: &plan.Scan{Table: t}}
		cond, err := b.predicate(f)
		if err != nil {
			return fmt.Errorf("row filter: %w", err)
		}
		if l, ok := cond.(*plan.Literal); !ok || l.Value != true {
			out.Filters = append(out.Filters, policy.RowFilter{SQL: text(f), Scan: b.scan, Cond: cond, Origin: origin})
		}
	}
	switch list := o[projections].(type) {
	case nil:
	case []any:
		return columns(list, t, origin, out)
	default:
		return errors.New("the column projections are no list")
	}
	return nil
}

// text shows a condition to administrators.
func text(n any) string {
	b, err := json.Marshal(n)
	if err != nil {
		return ""
	}
	return string(b)
}

// kinds of the actions. Source: ReadRestrictions, Action.
var kinds = map[string]policy.RuleKind{
	"mask-alphanum": policy.Mask, "show-first-4": policy.Mask, "show-last-4": policy.Mask,
	"replace-with-null": policy.Nullify, "mask-to-fixed-value": policy.Fixed,
	"truncate-to-year": policy.Mask, "truncate-to-month": policy.Mask,
	"sha-256-global": policy.Mask, "sha-256-query-local": policy.Mask,
}

// columns compiles the actions. What makes them contradict each other refuses the
// table; what is wrong with one of them concerns only who reads its column.
func columns(list []any, t *plan.Table, origin policy.Origin, out *policy.Restrictions) error {
	actions := map[int]string{}
	for _, n := range list {
		o, ok := n.(object)
		if !ok {
			return errors.New("a column projection is no object")
		}
		if err := o.closed([]string{"action", "field-id"}); err != nil {
			return err
		}
		action, isText := o["action"].(string)
		id, isNumber := whole(o["field-id"])
		if !isText || !isNumber || id < 0 || id > math.MaxInt32 {
			return errors.New("a column projection lacks the name of its action or the id of its field")
		}
		if _, ok := actions[int(id)]; ok {
			return fmt.Errorf("there are two projections on field id %d", id)
		}
		actions[int(id)] = action
	}
	known := map[int]bool{}
	for _, f := range t.Fields {
		if err := column(f, f, nil, actions, known, origin, out); err != nil {
			return err
		}
	}
	for id := range actions {
		if column, ok := t.Beneath[id]; ok {
			// It concerns those alone who read the column, which nobody can.
			known[id] = true
			out.Columns[column] = policy.ColumnRule{
				Kind: policy.Forbid, Fail: true, Origin: origin,
				Why: fmt.Sprintf("field id %d is inside a column of a type that cannot be read", id),
			}
		}
		// One of another schema of the table is not read here. One of none is not
		// understood.
		if _, other := t.Formerly[id]; !other && !known[id] {
			return fmt.Errorf("there is a projection on field id %d, which the table does not have", id)
		}
	}
	return nil
}

// column compiles the actions on f and inside it. above are the fields around f, the
// column first.
func column(f, top plan.Field, above []plan.Field, actions map[int]string, known map[int]bool, origin policy.Origin, out *policy.Restrictions) error {
	known[f.ID] = true
	if action, ok := actions[f.ID]; ok {
		plain := true
		for i, a := range above {
			if _, also := actions[a.ID]; also {
				return fmt.Errorf("there are projections on field id %d and on field id %d inside it", a.ID, f.ID)
			}
			inner := f
			if i+1 < len(above) {
				inner = above[i+1]
			}
			if a.Type.ID() == arrow.MAP && a.Children[0].ID == inner.ID {
				return fmt.Errorf("there is a projection on field id %d, which is the key of a map or inside one", f.ID)
			}
			plain = plain && a.Type.ID() == arrow.STRUCT
		}
		rule, err := rule(action, f, origin)
		if err == nil && !plain {
			err = fmt.Errorf("field id %d is inside a list or map, where single values cannot be masked yet", f.ID)
		}
		if err != nil {
			out.Columns[top.ID] = policy.ColumnRule{Kind: policy.Forbid, Fail: true, Why: err.Error(), Origin: origin}
		} else if _, forbidden := out.Columns[f.ID]; !forbidden {
			out.Columns[f.ID] = rule
		}
	}
	for _, c := range f.Children {
		if err := column(c, top, append(above, f), actions, known, origin, out); err != nil {
			return err
		}
	}
	return nil
}

func rule(action string, f plan.Field, origin policy.Origin) (policy.ColumnRule, error) {
	kind, ok := kinds[action]
	if !ok {
		return policy.ColumnRule{}, fmt.Errorf("the action %s is not known", brief(action))
	}
	// Any salt shows whether the action applies; the statement brings its own.
	if _, err := masks.New("iceberg:"+action, f, masks.Options{Salt: make([]byte, masks.MinSalt)}); err != nil {
		return policy.ColumnRule{}, err
	}
	return policy.ColumnRule{Kind: kind, Action: "iceberg:" + action, Origin: origin}, nil
}
