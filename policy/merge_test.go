package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func origin(source string) Origin { return Origin{Source: source, Policy: "p-" + source} }

func mask(source, action string) ColumnRule {
	return ColumnRule{Kind: Mask, Action: action, Origin: origin(source)}
}

func rule(source string, kind RuleKind) ColumnRule {
	return ColumnRule{Kind: kind, Origin: origin(source)}
}

func custom(source, sql string) ColumnRule {
	return ColumnRule{Kind: Mask, Action: "CUSTOM", SQL: sql, Origin: origin(source)}
}

func only(r ColumnRule) *Restrictions {
	return &Restrictions{Complete: true, Columns: map[int]ColumnRule{7: r}}
}

// TestMergeColumnRules: what two sources say about one field. Both orders must
// give the same rule.
func TestMergeColumnRules(t *testing.T) {
	for _, c := range []struct {
		name string
		a, b ColumnRule
		want ColumnRule // Origin is not compared
	}{
		{"equal masks are one", mask("a", "MASK"), mask("b", "MASK"), mask("", "MASK")},
		{"different masks become NULL", mask("a", "MASK"), mask("b", "MASK_HASH"), rule("", Nullify)},
		{"equal expressions are one", custom("a", "left({col}, 1)"), custom("b", "left({col}, 1)"), custom("", "left({col}, 1)")},
		{"different expressions become NULL", custom("a", "left({col}, 1)"), custom("b", "left({col}, 2)"), rule("", Nullify)},
		{"show-4 of Ranger and Iceberg are different", mask("a", "MASK_SHOW_LAST_4"), mask("b", "iceberg:show-last-4"), rule("", Nullify)},
		{"forbid beats NULL", rule("a", Forbid), rule("b", Nullify), rule("", Forbid)},
		{"forbid beats a constant", rule("a", Forbid), rule("b", Fixed), rule("", Forbid)},
		{"forbid beats a mask", rule("a", Forbid), mask("b", "MASK"), rule("", Forbid)},
		{"forbid and forbid", ColumnRule{Kind: Forbid, Why: "x", Origin: origin("a")}, rule("b", Forbid), rule("", Forbid)},
		{"NULL beats a constant", rule("a", Nullify), rule("b", Fixed), rule("", Nullify)},
		{"NULL beats a mask", rule("a", Nullify), mask("b", "MASK"), rule("", Nullify)},
		{"MASK_NULL beats a mask", mask("a", "MASK_NULL"), mask("b", "MASK"), mask("", "MASK_NULL")},
		{"MASK_NULL beats a constant", mask("a", "MASK_NULL"), mask("b", "iceberg:mask-to-fixed-value"), mask("", "MASK_NULL")},
		{"two words for NULL", mask("a", "MASK_NULL"), mask("b", "iceberg:replace-with-null"), rule("", Nullify)},
		{"a kind and a word for NULL", rule("a", Nullify), mask("b", "MASK_NULL"), rule("", Nullify)},
		{"a constant beats a mask", rule("a", Fixed), mask("b", "MASK"), rule("", Fixed)},
		{"a constant by action beats a mask", mask("a", "iceberg:mask-to-fixed-value"), mask("b", "MASK"), mask("", "iceberg:mask-to-fixed-value")},
		{"no mask yields to a mask", mask("a", "MASK_NONE"), mask("b", "MASK"), mask("", "MASK")},
		{"no mask yields to forbid", mask("a", "MASK_NONE"), rule("b", Forbid), rule("", Forbid)},
		{"no mask twice", mask("a", "MASK_NONE"), mask("b", "MASK_NONE"), mask("", "MASK_NONE")},
	} {
		for i, got := range []*Restrictions{Merge(only(c.a), only(c.b)), Merge(only(c.b), only(c.a))} {
			r := got.Columns[7]
			if r.Kind != c.want.Kind || r.Action != c.want.Action || r.SQL != c.want.SQL {
				t.Errorf("%s (order %d): got kind %d %s %s", c.name, i, r.Kind, r.Action, r.SQL)
			}
			if !got.Complete || got.Refuse != "" {
				t.Errorf("%s: refused: %s", c.name, got.Refuse)
			}
		}
	}
}

// TestMergeIsMonotone: whatever a third source says, what two asked for is not
// weakened.
func TestMergeIsMonotone(t *testing.T) {
	rules := []ColumnRule{
		mask("a", "MASK_NONE"), mask("b", "MASK"), mask("c", "MASK_HASH"), custom("d", "1"), mask("e", "MASK_NULL"),
		mask("f", "iceberg:replace-with-null"), rule("g", Fixed), rule("h", Nullify), rule("i", Forbid),
	}
	for _, x := range rules {
		for _, y := range rules {
			two := Merge(only(x), only(y)).Columns[7]
			for _, z := range rules {
				three := Merge(only(x), only(y), only(z)).Columns[7]
				if three.strength() < two.strength() || three.strength() < z.strength() {
					t.Errorf("%v, %v and %v become %v", x, y, z, three)
				}
				if again := Merge(Merge(only(x), only(y)), only(z)).Columns[7]; again.strength() != three.strength() {
					t.Errorf("%v, %v and %v: merging in steps gives %v, at once %v", x, y, z, again, three)
				}
			}
		}
	}
}

func TestMergeOrigins(t *testing.T) {
	got := Merge(only(mask("a", "MASK")), only(mask("b", "MASK")), only(mask("c", "MASK")))
	if d := cmp.Diff(map[int][]Origin{7: {origin("b"), origin("c")}}, got.Also); d != "" {
		t.Error(d)
	}
	// A mask that a stronger rule replaced did not act.
	got = Merge(only(mask("a", "MASK")), only(mask("b", "MASK")), only(rule("c", Forbid)))
	if got.Columns[7].Origin != origin("c") || len(got.Also) != 0 {
		t.Errorf("%v, also %v", got.Columns[7].Origin, got.Also)
	}
	// Two that became NULL acted both.
	got = Merge(only(mask("a", "MASK")), only(mask("b", "MASK_HASH")))
	if got.Columns[7].Origin != origin("a") || len(got.Also[7]) != 1 || got.Columns[7].Why == "" {
		t.Errorf("%+v, also %v", got.Columns[7], got.Also)
	}
	// An exemption by one source is on record when another one masks.
	got = Merge(only(mask("a", "MASK_NONE")), only(mask("b", "MASK")))
	if d := cmp.Diff([]Exemption{{FieldID: 7, Origin: origin("a")}}, got.Exempt); d != "" {
		t.Error(d)
	}
	// What was merged already keeps its origins.
	got = Merge(Merge(only(mask("a", "MASK")), only(mask("b", "MASK"))), only(mask("c", "MASK")))
	if len(got.Also[7]) != 2 {
		t.Errorf("also %v", got.Also)
	}
}

func TestMergeFilters(t *testing.T) {
	a := &Restrictions{Complete: true, Filters: []RowFilter{{SQL: "x > 1", Origin: origin("a")}}}
	b := &Restrictions{Complete: true, Filters: []RowFilter{{SQL: "y > 1", Origin: origin("b")}, {SQL: "z > 1", Origin: origin("b")}}}
	got := Merge(a, b)
	if len(got.Filters) != 3 || !got.Complete {
		t.Errorf("got %v", got.Filters)
	}
	if len(a.Filters) != 1 || len(b.Filters) != 2 {
		t.Error("an input changed")
	}
}

// TestMergeRefuses: every way in which a source did not decide refuses the table,
// beside a source that decided (the control: two that decided do not).
func TestMergeRefuses(t *testing.T) {
	whole := &Restrictions{Complete: true}
	if got := Merge(whole, whole); !got.Unrestricted() {
		t.Error("two sources without restrictions restrict")
	}
	for _, c := range []struct {
		name string
		in   []*Restrictions
	}{
		{"no source", nil},
		{"a missing answer", []*Restrictions{whole, nil}},
		{"a zero answer", []*Restrictions{{}, whole}},
		{"an incomplete answer with a mask", []*Restrictions{whole, {Columns: map[int]ColumnRule{1: mask("a", "MASK")}}}},
		{"a refusal", []*Restrictions{whole, {Complete: true, Refuse: "a filter cannot be decided"}}},
		{"an incomplete refusal", []*Restrictions{{Refuse: "down"}, whole}},
		{"a rule without a kind", []*Restrictions{only(ColumnRule{Action: "MASK"}), whole}},
		{"a mask without an action", []*Restrictions{only(ColumnRule{Kind: Mask}), whole}},
		{"an unknown kind", []*Restrictions{only(ColumnRule{Kind: 9}), whole}},
	} {
		got := Merge(c.in...)
		if got.Refuse == "" || got.Unrestricted() {
			t.Errorf("%s does not refuse", c.name)
		}
	}
	got := Merge(&Restrictions{Complete: true, Refuse: "one"}, &Restrictions{Complete: true, Refuse: "two"})
	if !strings.Contains(got.Refuse, "one") || !strings.Contains(got.Refuse, "two") {
		t.Errorf("a cause is lost: %s", got.Refuse)
	}
}

func TestMergeExpires(t *testing.T) {
	early, late := time.Unix(100, 0), time.Unix(200, 0)
	for _, c := range []struct {
		a, b, want time.Time
	}{
		{time.Time{}, time.Time{}, time.Time{}},
		{early, time.Time{}, early},
		{time.Time{}, early, early},
		{late, early, early},
		{early, late, early},
	} {
		got := Merge(&Restrictions{Complete: true, Expires: c.a}, &Restrictions{Complete: true, Expires: c.b})
		if !got.Expires.Equal(c.want) {
			t.Errorf("%v and %v: %v", c.a, c.b, got.Expires)
		}
	}
	if !Merge(&Restrictions{Complete: true}, &Restrictions{Complete: true, Uncacheable: true}).Uncacheable {
		t.Error("an answer that depended on the request may be cached")
	}
}

func TestMergeDecisions(t *testing.T) {
	yes := Decision{Allow: true, Visible: true, Reason: Granted, By: []Origin{origin("yes")}}
	no := Decision{Visible: true, Reason: NoGrant, By: []Origin{origin("no")}}
	hidden := Decision{Reason: NoGrant}
	deny := Decision{Visible: true, Reason: ExplicitDeny, By: []Origin{origin("deny")}}
	broken := Decision{Reason: SourceError}
	silent := Decision{Reason: NotDecided}
	for _, c := range []struct {
		name           string
		in             []Decision
		allow, visible bool
		reason         Reason
	}{
		{"nobody", nil, false, false, NotDecided},
		{"one yes", []Decision{yes}, true, true, Granted},
		{"two yes", []Decision{yes, yes}, true, true, Granted},
		{"a source without an object gate does not matter", []Decision{silent, yes}, true, true, Granted},
		{"sources without an object gate alone deny", []Decision{silent, silent}, false, false, NotDecided},
		{"one no", []Decision{yes, no}, false, true, NoGrant},
		{"hidden by one", []Decision{yes, hidden}, false, false, NoGrant},
		{"deny explains more than no grant", []Decision{no, deny, yes}, false, true, ExplicitDeny},
		{"an error denies", []Decision{yes, broken}, false, false, SourceError},
		{"the zero decision denies and hides", []Decision{yes, {}}, false, false, ""},
		{"an undecided source cannot allow", []Decision{{Allow: true, Visible: true, Reason: NotDecided}}, false, false, NotDecided},
	} {
		got := MergeDecisions(c.in...)
		if got.Allow != c.allow || got.Visible != c.visible || got.Reason != c.reason {
			t.Errorf("%s: got %+v", c.name, got)
		}
	}
	if got := MergeDecisions(yes, deny); len(got.By) != 1 || got.By[0].Source != "deny" {
		t.Errorf("a denial is by those who denied: %v", got.By)
	}
	if got := MergeDecisions(yes, yes); len(got.By) != 2 {
		t.Errorf("an allowance is by all: %v", got.By)
	}
}

func TestUnrestricted(t *testing.T) {
	var zero *Restrictions
	if zero.Unrestricted() || (&Restrictions{}).Unrestricted() || (&Restrictions{Complete: true, Refuse: "x"}).Unrestricted() {
		t.Error("nothing said is not unrestricted")
	}
}
