package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sqe/fault"
	"sqe/plan"
	"sqe/policy"
)

// SourceFinding is a finding about the policies of a source.
type SourceFinding struct {
	Source string
	policy.Finding
}

// Findings looks at the policies of all sources and compares them with the tables,
// which are all that there are. It binds no texts.
func Findings(sources []policy.Source, tables []*plan.Table) []SourceFinding {
	var out []SourceFinding
	for _, s := range sources {
		state, err := s.State()
		if err != nil {
			continue // Status tells
		}
		if inspector, ok := state.(policy.Inspector); ok {
			for _, f := range inspector.Findings(tables) {
				out = append(out, SourceFinding{s.Name(), f})
			}
		}
	}
	return out
}

// BindTexts binds the row filters and CUSTOM masks of policies over the tables that
// they name, as a statement would, and finds those that do not bind. of selects
// policies; nil: all. At most limit texts are bound, unless it is 0: of each policy
// with one more it is found that not all of its texts were looked at.
func (e *Engine) BindTexts(ctx context.Context, tables []*plan.Table, of func(source, service string, id int64) bool, limit int) []SourceFinding {
	var out []SourceFinding
	seen := map[SourceFinding]bool{}
	say := func(f SourceFinding) {
		if !seen[f] {
			seen[f] = true
			out = append(out, f)
		}
	}
	bound := 0
	for _, s := range e.sources {
		state, err := s.State()
		if err != nil {
			continue // Status tells
		}
		inspector, ok := state.(policy.Inspector)
		if !ok {
			continue
		}
		for _, t := range tables {
			for _, text := range inspector.Texts(t) {
				if of != nil && !of(s.Name(), text.Service, text.ID) {
					continue
				}
				f := SourceFinding{s.Name(), policy.Finding{Kind: policy.Broken, Service: text.Service, Policy: text.Policy, ID: text.ID}}
				var err error
				more := limit == 0 || bound < limit
				if more {
					bound++
					err = e.bindText(ctx, t, text)
				}
				switch {
				case !more || ctx.Err() != nil:
					f.Kind, f.Text = policy.Advice, "has texts that were not bound now, because there are many; sqe check binds all"
					say(f)
				case err != nil:
					f.Text = fmt.Sprintf("on table %s: %s", t.Name, placed(strings.TrimPrefix(err.Error(), `row filter of policy "": `)))
					say(f)
				}
			}
		}
	}
	return out
}

// bindText binds a row filter or a CUSTOM mask.
func (e *Engine) bindText(ctx context.Context, t *plan.Table, text policy.PolicyText) error {
	var err error
	if f, ok := t.FieldNamed(text.Column); text.Column != "" && ok {
		var others []int
		for _, name := range text.Masked {
			if other, ok := t.FieldNamed(name); ok {
				others = append(others, other.ID)
			}
		}
		err = e.CheckMask(ctx, t, f.ID, text.SQL, others)
	} else {
		err = e.CheckFilter(ctx, t, text.SQL)
	}
	// Whoever checks may read policies: the cause says more than the text for users.
	if cause := errors.Unwrap(err); cause != nil && fault.Is(err, fault.PolicyBroken) {
		return cause
	}
	return err
}
