package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"sqe/engine"
	"sqe/fault"
	"sqe/identity"
	"sqe/plan"
	"sqe/policy"
)

// addressSource shows rows by the address of the session, and lets nobody read from
// outside.
type addressSource struct{ *source }

type addressState struct{ policy.State }

func (a addressSource) State() (policy.State, error) {
	s, err := a.source.State()
	return addressState{s}, err
}

func (addressState) Authorize(p identity.Principal, _ policy.Object, _ policy.Privilege) policy.Decision {
	ok := strings.HasPrefix(p.Address, "10.0.0.")
	return policy.Decision{Allow: ok, Visible: ok, Reason: policy.NoGrant, ByAddress: true}
}

func (addressState) Restrict(p identity.Principal, _ *plan.Table) (*policy.Restrictions, error) {
	return &policy.Restrictions{
		Complete: true, ByAddress: true, Notes: []string{"looked at " + p.Address},
		Filters: []policy.RowFilter{{SQL: "cust_id <= " + strings.TrimPrefix(p.Address, "10.0.0.")}},
	}, nil
}

// TestAddress: answers of the gates that depend on the address of the session are
// those of this session, whatever was asked before from elsewhere by the same user,
// also after a reset, in a session that was renewed, and in a prepared statement.
func TestAddress(t *testing.T) {
	f := openWith(t, func(o *engine.Options) { o.Sources = []policy.Source{addressSource{o.Sources[0].(*source)}} })
	from := func(remote string) *engine.Session {
		who := identity.Principal{Name: "root", Admin: true, Address: "10.0.0.12"} // a login does not say where it comes from
		l := &lease{who: who}
		s, err := f.OpenLogin(identity.Login{Principal: who, Continue: l.Continue}, engine.ConnInfo{ID: 7, RemoteAddr: remote})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
	const q = "SELECT count(*) FROM bank.customers"
	three, five, outside, nowhere := from("10.0.0.3:1"), from("10.0.0.5:1"), from("192.168.1.1:1"), from("pipe")
	for range 2 {
		must(t, three, q, "3")
		must(t, five, q, "5")
		refused(t, outside, q, fault.NotFound)
		refused(t, nowhere, q, fault.NotFound)
		three.Reset()
	}
	for s, want := range map[*engine.Session]string{three: "10.0.0.3", five: "10.0.0.5"} {
		p, err := s.Prepare(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		if res, err := s.Execute(context.Background(), p, nil); err != nil {
			t.Error(err)
		} else {
			_ = res.Rows.Close()
		}
		for _, statement := range []string{"EXPLAIN POLICY " + q, "SHOW EFFECTIVE POLICY ON bank.customers", "EXPLAIN POLICY FORMAT=JSON " + q, "SHOW EFFECTIVE POLICY FOR USER ann ON bank.customers"} {
			got, err := query(s, statement)
			if err != nil || !strings.Contains(got, "looked at "+want) || !strings.Contains(got, "depends on the address of the client ("+want+")") {
				t.Errorf("%s: %v\n%s", statement, err, got)
			}
		}
	}
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			s := from(fmt.Sprintf("10.0.0.%d:1", n+1))
			for range 5 {
				if got, err := query(s, q); err != nil || got != fmt.Sprint(n+1) {
					t.Errorf("10.0.0.%d: %q, %v", n+1, got, err)
				}
			}
		})
	}
	wg.Wait()
}
