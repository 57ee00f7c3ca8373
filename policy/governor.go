package policy

import "sqe/plan"

// Governance is what the data policies of a source say of a table, whoever asks.
type Governance struct {
	// By identifies, sorted, everything that finds the table by its name: resources of
	// policies, tags of a policy server, a security zone, denials of the object gate.
	// Where two names have the same By, a table is treated the same under both.
	By []string
	// Named: some of By says more than that it is for every table there is.
	Named bool
	// Tagged are the ids of the fields that carry a tag of the policy server; 0 is the
	// table.
	Tagged map[int]bool
	// Texts are all SQL texts that may act on the table, those that differ for each
	// principal as well.
	Texts []string
}

// Governor is a State that can tell what its policies do to a table, whoever asks.
// A statement that changes tables asks it before a table or column gets another
// name or definition: a State that is none counts as one that governs the table.
type Governor interface {
	Governs(t *plan.Table) Governance
}
