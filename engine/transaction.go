package engine

import (
	"sqe/engine/parse"
	"sqe/fault"
)

// transaction is what a session knows of the transaction that its client believes to
// be in. There is none: every statement commits by itself.
type transaction struct {
	begun    bool
	readOnly bool
	// wrote: a statement of it has changed rows.
	wrote bool
}

// step is a statement that begins or ends a transaction. A rollback that does not take
// back what was written says so, as MySQL does of tables without transactions.
func (st *statement) step(s parse.TransactionStep) (*Result, error) {
	t := &st.session.transaction
	var notes []string
	switch s {
	case parse.BeginStep, parse.BeginReadOnly:
		*t = transaction{begun: true, readOnly: s == parse.BeginReadOnly}
	case parse.CommitStep:
		*t = transaction{}
	case parse.RollbackStep:
		if t.wrote {
			notes = []string{"rows that the transaction changed were not rolled back: every statement commits by itself; CALL system.rollback_to_snapshot brings a table back"}
		}
		*t = transaction{}
	}
	return st.warned(notes), nil
}

// writes is asked before a statement changes anything.
func (st *statement) writes() error {
	if t := &st.session.transaction; t.readOnly || st.session.vars.ReadOnly() {
		return fault.New(fault.ReadOnly, "Cannot execute statement in a READ ONLY transaction; SET SESSION TRANSACTION READ WRITE, or end the transaction")
	}
	return nil
}

// wrote remembers that rows were changed and are there for good.
func (st *statement) wrote() {
	t := &st.session.transaction
	t.wrote = t.begun || !st.session.vars.Autocommit()
}
