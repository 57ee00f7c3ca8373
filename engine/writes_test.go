package engine_test

import (
	"context"
	"testing"

	"sqe/fault"
	"sqe/identity"
	"sqe/plan"
)

// TestPreparedWrites: a prepared statement that writes has its parameters, and takes
// them.
func TestPreparedWrites(t *testing.T) {
	f := openDDL(t)
	f.do(f.sue, "CREATE TABLE t (id BIGINT, name STRING)")
	p, err := f.sue.Prepare(context.Background(), "INSERT INTO t (id, name) VALUES (?, ?), (2, ?)")
	if err != nil || p.Params != 3 {
		t.Fatalf("%+v, %v", p, err)
	}
	x := plan.Literal{Typ: plan.String, Value: "x"}
	res, err := f.sue.Execute(context.Background(), p, []plan.Literal{{Typ: plan.Int64, Value: int64(1)}, x, x})
	if err != nil || res.Affected != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	if _, err := f.sue.Execute(context.Background(), p, []plan.Literal{x}); !fault.Is(err, fault.BadStatement) {
		t.Errorf("%v", err)
	}
	must(t, f.sue, "SELECT id, name FROM t ORDER BY id", "1|x\n2|x")
}

// TestNoIndexes: what MySQL has besides is refused.
func TestNoIndexes(t *testing.T) {
	f := open(t)
	s := f.as(t, identity.Principal{Name: "ann"})
	refused(t, s, "CREATE INDEX i ON bank.customers (iban)", fault.Unsupported)
	refused(t, s, "EXPLAIN ANALYZE DELETE FROM bank.customers", fault.Unsupported)
}
