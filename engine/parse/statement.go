package parse

import (
	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// Statement is one statement. The set of implementations is closed.
type Statement interface{ statement() }

// Kind says what becomes of a statement of the MySQL grammar.
type Kind uint8

// The kinds of SQL statements.
const (
	Other       Kind = iota // known to the grammar and to nobody else
	Query                   // SELECT, UNION, WITH, VALUES, TABLE
	Show                    // SHOW, DESCRIBE: answered from what the principal may see
	Set                     // SET of variables
	Transaction             // BEGIN, COMMIT, ROLLBACK, savepoints, table locks: accepted, without effect
	Write                   // CREATE, ALTER and DROP of what Iceberg does not have: indexes, users
)

// SQL is a statement of the MySQL grammar.
type SQL struct {
	Text   string // folded, without comments
	AST    sqlparser.Statement
	Kind   Kind
	Params int // number of ? placeholders
	// Param is the index of the first of them in the statement that the SQL is a
	// part of; 0 when it is the whole statement.
	Param int
	// Step is what a statement of the kind Transaction does.
	Step TransactionStep
}

// TransactionStep is a step of a transaction.
type TransactionStep uint8

// The steps. The zero value is none that matters: savepoints, table locks.
const (
	NoStep TransactionStep = iota
	BeginStep
	BeginReadOnly
	CommitStep
	RollbackStep // also to a savepoint
)

// Explain is EXPLAIN [ANALYZE] [FORMAT = name] statement.
type Explain struct {
	Analyze bool
	Format  string // lower case; "" when none was named
	Stmt    Statement
}

// ExplainPolicy is EXPLAIN POLICY [FORMAT [=] JSON] [AS USER name ...] statement.
type ExplainPolicy struct {
	JSON bool
	As   *Impersonation // nil: oneself
	Stmt Statement
}

// ShowPolicyStatus is SHOW POLICY STATUS.
type ShowPolicyStatus struct{}

// ShowProcesslist is SHOW [FULL] PROCESSLIST.
type ShowProcesslist struct{ Full bool }

// ShowGrants is SHOW GRANTS [FOR user]; User is "" for oneself.
type ShowGrants struct{ User string }

// Kill is KILL [CONNECTION | QUERY] id.
type Kill struct {
	ID    uint32
	Query bool
}

// Prepare is PREPARE name FROM 'text' | @variable. Var has no @.
type Prepare struct{ Name, Text, Var string }

// ExecuteStmt is EXECUTE name [USING @a, ...]. Vars have no @.
type ExecuteStmt struct {
	Name string
	Vars []string
}

// Deallocate is DEALLOCATE PREPARE name.
type Deallocate struct{ Name string }

// SetRole is SET ROLE NONE | ALL | DEFAULT | name, ...
type SetRole struct {
	All, None, Default bool
	Names              []string
}

// Use is USE database, with a name of any depth (JoinDatabase).
type Use struct{ Database string }

func (*SQL) statement()              {}
func (*Explain) statement()          {}
func (*ExplainPolicy) statement()    {}
func (*ShowPolicyStatus) statement() {}
func (*ShowProcesslist) statement()  {}
func (*Kill) statement()             {}
func (*ShowGrants) statement()       {}
func (*Prepare) statement()          {}
func (*ExecuteStmt) statement()      {}
func (*Deallocate) statement()       {}
func (*SetRole) statement()          {}
func (*Use) statement()              {}
