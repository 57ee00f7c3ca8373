package engine_test

import (
	"context"
	"strings"
	"testing"

	"sqe/fault"
	"sqe/identity"
	"sqe/plan"
)

// TestWritesAreRefused: statements that would write are known and refused, and
// leave everything as it was.
func TestWritesAreRefused(t *testing.T) {
	f := open(t)
	s := f.as(t, identity.Principal{Name: "ann"})
	const count = "SELECT COUNT(*) FROM bank.customers"
	before, err := query(s, count)
	if err != nil || before == "0" {
		t.Fatalf("%s, %v", before, err)
	}
	for _, text := range []string{
		"CREATE TABLE bank.t AS SELECT * FROM bank.customers", "CREATE OR REPLACE TABLE bank.customers AS SELECT 1", "TRUNCATE TABLE bank.customers",
		"INSERT INTO bank.customers DEFAULT VALUES", "INSERT OVERWRITE bank.customers SELECT * FROM bank.customers", "UPDATE bank.customers SET iban = NULL",
		"DELETE FROM bank.customers", "MERGE INTO bank.customers t USING bank.customers s ON t.iban = s.iban WHEN MATCHED THEN DELETE",
		"CREATE INDEX i ON bank.customers (iban)",
	} {
		err := refused(t, s, text, fault.Unsupported)
		if err != nil && !strings.HasPrefix(err.Error(), "writing is not supported") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"EXPLAIN DELETE FROM bank.customers", "EXPLAIN ANALYZE DELETE FROM bank.customers", "EXPLAIN POLICY INSERT INTO bank.customers DEFAULT VALUES"} {
		refused(t, s, text, fault.Unsupported)
	}
	after, err := query(s, count)
	if err != nil || after != before {
		t.Errorf("%s: %s, before it was %s; %v", count, after, before, err)
	}
}

// TestPreparedWrites: a prepared statement that writes has its parameters.
func TestPreparedWrites(t *testing.T) {
	f := open(t)
	s := f.as(t, identity.Principal{Name: "ann"})
	p, err := s.Prepare(context.Background(), "INSERT INTO bank.customers (iban) VALUES (?), (?)")
	if err != nil || p.Params != 2 {
		t.Fatalf("%+v, %v", p, err)
	}
	one := plan.Literal{Typ: plan.String, Value: "x"}
	if _, err := s.Execute(context.Background(), p, []plan.Literal{one, one}); !fault.Is(err, fault.Unsupported) {
		t.Errorf("%v", err)
	}
	if _, err := s.Execute(context.Background(), p, []plan.Literal{one}); !fault.Is(err, fault.BadStatement) {
		t.Errorf("%v", err)
	}
}
