package engine_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sqe/audit"
	"sqe/engine"
	"sqe/fault"
	"sqe/identity"
	"sqe/plan"
	"sqe/policy"
)

// granting is a state that says which policy granted a read.
type granting struct{ state }

var reading = policy.Origin{Source: "test", Policy: "readers", ID: 4, Version: 9}

func (g granting) Authorize(p identity.Principal, o policy.Object, priv policy.Privilege) policy.Decision {
	d := g.state.Authorize(p, o, priv)
	if d.Allow {
		d.Reason, d.By = policy.Granted, []policy.Origin{reading}
	}
	return d
}

type grantingSource struct{ *source }

func (s grantingSource) State() (policy.State, error) {
	st, err := s.source.State()
	if err != nil {
		return nil, err
	}
	return granting{st.(state)}, nil
}

// TestAuditEvent: an event says which policy let the principal read, which columns
// the statement refers to, and what acted on them; of a column that the statement
// does not refer to it says so; a refused table leaves no trace but its denial.
func TestAuditEvent(t *testing.T) {
	f := openWith(t, func(o *engine.Options) { o.Sources = []policy.Source{grantingSource{o.Sources[0].(*source)}} })
	f.source.set(func(s *state) { s.restrict = masked })
	eve := f.session(t, "eve")
	customers := []string{"lake", "bank", "customers"}
	filter, mask := policy.Origin{Source: "test", Policy: "rows", ID: 7, Version: 3}, policy.Origin{Source: "test", Policy: "mask", ID: 8, Version: 1}

	must(t, eve, "SELECT cust_id, national_id FROM bank.customers ORDER BY cust_id LIMIT 1", "1|xxxxx9103")
	e := f.journal.last()
	if len(e.Tables) != 1 || !slices.Equal(e.Tables[0].Path, customers) || !slices.Equal(sorted(e.Tables[0].Columns), []string{"cust_id", "national_id"}) {
		t.Errorf("%+v", e.Tables)
	}
	if d := cmp.Diff([]audit.Action{
		{Table: "lake.bank.customers", What: "allow", Origin: reading},
		{Table: "lake.bank.customers", What: "row-filter", Origin: filter},
		{Table: "lake.bank.customers", Column: "national_id", What: "mask", Action: "MASK_SHOW_LAST_4", Origin: mask},
	}, e.Policies); d != "" {
		t.Error(d)
	}

	must(t, eve, "SELECT COUNT(cust_id) FROM bank.customers", "2")
	e = f.journal.last()
	if len(e.Tables) != 1 || !slices.Equal(e.Tables[0].Columns, []string{"cust_id"}) || len(e.Policies) != 3 || !e.Policies[2].Unused || e.Policies[1].Unused {
		t.Errorf("%+v", e)
	}

	refused(t, f.session(t, "mallory"), "SELECT cust_id FROM bank.customers", fault.NotFound)
	e = f.journal.last()
	if len(e.Tables)+len(e.Policies) != 0 || len(e.Denials) != 1 || !slices.Equal(e.Denials[0].Path, customers) {
		t.Errorf("%+v", e)
	}
}

// TestAuditWithheld: a statement that is refused because it names a withheld column
// leaves which policy withholds it, and nothing of the other columns.
func TestAuditWithheld(t *testing.T) {
	f := open(t)
	origin := policy.Origin{Source: "test", Policy: "no", ID: 5, Version: 1}
	f.source.set(func(s *state) {
		s.restrict = func(_ identity.Principal, t *plan.Table) *policy.Restrictions {
			r := &policy.Restrictions{Complete: true, Columns: map[int]policy.ColumnRule{}}
			if t.Name.Name == "customers" {
				for _, c := range []string{"national_id", "residency_region"} {
					r.Columns[column(t, c)] = policy.ColumnRule{Kind: policy.Forbid, Why: "no", Origin: origin}
				}
			}
			return r
		}
	})
	eve := f.session(t, "eve")
	refused(t, eve, "SELECT national_id FROM bank.customers", fault.Withheld)
	e := f.journal.last()
	want := []audit.Action{{Table: "lake.bank.customers", Column: "national_id", What: "withheld", Origin: origin}}
	if d := cmp.Diff(want, e.Policies); d != "" || e.Outcome != "denied" || len(e.Tables) != 0 {
		t.Errorf("%s %+v", d, e)
	}
	// The control: without the column the statement runs.
	must(t, eve, "SELECT COUNT(cust_id) > 0 FROM bank.customers", "true")
	if e := f.journal.last(); e.Outcome != "ok" || len(e.Tables) != 1 {
		t.Errorf("%+v", e)
	}
}

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

// TestWhyRaw: of what somebody sees raw the audit log, EXPLAIN POLICY and SHOW
// EFFECTIVE POLICY name the policy and the column that it exempts; a column that
// the statement does not refer to says so, and others see no policy.
func TestWhyRaw(t *testing.T) {
	f := openWith(t, func(*engine.Options) {})
	rows, iban, phone := policy.Origin{Policy: "rows", ID: 1}, policy.Origin{Policy: "mask iban", ID: 2}, policy.Origin{Policy: "mask phone", ID: 3}
	f.source.set(func(s *state) {
		s.restrict = func(p identity.Principal, t *plan.Table) *policy.Restrictions {
			r := &policy.Restrictions{Complete: true}
			if p.Name == "ann" {
				r.Exempt = []policy.Exemption{{FieldID: column(t, "phone"), Origin: phone}, {FieldID: column(t, "iban"), Origin: iban}, {Origin: rows}, {FieldID: 999, Origin: rows}}
			}
			return r
		}
	})
	ann := f.as(t, identity.Principal{Name: "ann", Admin: true})
	exempt := func() (out []audit.Action) {
		for _, a := range f.journal.last().Policies {
			if a.What == "exempt" {
				out = append(out, a)
			}
		}
		return out
	}
	must(t, ann, "SELECT iban FROM bank.customers ORDER BY cust_id LIMIT 1", "NL91ABNA0417164300")
	const customers = "lake.bank.customers"
	if d := cmp.Diff([]audit.Action{
		{Table: customers, What: "exempt", Origin: rows},
		{Table: customers, Column: "phone", What: "exempt", Unused: true, Origin: phone},
		{Table: customers, Column: "iban", What: "exempt", Origin: iban},
	}, exempt(), cmpopts.SortSlices(func(a, b audit.Action) bool { return a.Origin.ID < b.Origin.ID })); d != "" {
		t.Error(d)
	}
	must(t, ann, "EXPLAIN POLICY SELECT iban FROM bank.customers",
		customers+"||no restriction||\n"+customers+"||exempt|rows (id 1)|\n"+customers+"|iban|exempt|mask iban (id 2)|")
	must(t, ann, "SHOW EFFECTIVE POLICY ON bank.customers", "exempt||exempt|rows (id 1)\nexempt|iban|exempt|mask iban (id 2)\nexempt|phone|exempt|mask phone (id 3)")
	// One who is no administrator is not told, and one who is not exempt is not said to be.
	must(t, f.as(t, identity.Principal{Name: "ann"}), "EXPLAIN POLICY SELECT iban FROM bank.customers", customers+"||no restriction||")
	must(t, f.as(t, identity.Principal{Name: "eve", Admin: true}), "EXPLAIN POLICY SELECT iban FROM bank.customers", customers+"||no restriction||")
	must(t, f.as(t, identity.Principal{Name: "eve"}), "SELECT COUNT(iban) FROM bank.customers", "12")
	if got := exempt(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
