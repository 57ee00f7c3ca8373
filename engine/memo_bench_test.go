package engine

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/identity"
	"sqe/plan"
	"sqe/policy"
	"sqe/rewrite"
)

// still is a source whose state never changes.
type still struct{}

func (still) Name() string                 { return "still" }
func (still) State() (policy.State, error) { return still{}, nil }
func (still) Status() policy.Status        { return policy.Status{} }
func (still) Version() string              { return "0123456789abcdef01234567" }
func (still) Authorize(identity.Principal, policy.Object, policy.Privilege) policy.Decision {
	return policy.Decision{Allow: true}
}
func (still) Roles(identity.Principal) []string { return nil }
func (still) Restrict(identity.Principal, *plan.Table) (*policy.Restrictions, error) {
	return &policy.Restrictions{Complete: true}, nil
}

// BenchmarkRemembered is what a statement does to learn the rules of a table that
// are remembered: it takes the state of its source, names what the answer depends
// on, and looks it up. The object gate is asked beside this, and never remembered.
func BenchmarkRemembered(b *testing.B) {
	t := &plan.Table{Name: plan.TableName{Catalog: "main", Namespace: []string{"shop"}, Name: "orders"}, Version: "s3://bucket/warehouse/shop/orders/metadata/00042-0123456789abcdef.metadata.json", SchemaID: 3, SnapshotID: 7461234567890123456}
	for n := range 50 {
		t.Fields = append(t.Fields, plan.Field{ID: n + 1, Name: "c" + strconv.Itoa(n), Type: arrow.BinaryTypes.String})
	}
	e := &Engine{memo: newMemo(4096), sources: []policy.Source{still{}}}
	p := identity.Principal{Name: "user7", Groups: []string{"g1", "g2", "g3"}, Roles: []string{"reader", "x", "y"}}
	ctx, made := b.Context(), 0
	key := memoKey{policies: "still\x00" + still{}.Version() + "\x00", principal: p.Key(), table: tableKey(t)}
	_, err := e.memo.get(ctx, key, func() (*rewrite.Bound, []*plan.Table, time.Time, error) {
		made++
		return &rewrite.Bound{}, nil, time.Time{}, nil
	}, func(context.Context, *plan.Table) bool { return true })
	if err != nil || made != 1 {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		st := &statement{engine: e, principal: p, tables: map[string]*rewrite.Bound{}}
		if _, err := st.bound(ctx, t); err != nil {
			b.Fatal(err)
		}
	}
	if len(e.memo.entries) != 1 {
		b.Fatal("the answer was not remembered under this key")
	}
}
