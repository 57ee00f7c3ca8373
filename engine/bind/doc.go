// Package bind resolves names, types and scopes of a statement with
// go-mysql-server and translates the bound tree, before any of that library's
// optimiser rules ran, into package plan.
//
// Invariants: the tables that go-mysql-server sees are stubs that hold a schema
// and no data; a stub that is asked for rows returns an error. What cannot be
// translated becomes a plan.Foreign at the root, whose children are the largest
// sub-trees that can be; their rows come from governed plans only. In statements
// that change rows an expression that cannot be becomes a plan.RowCall. The package
// must never read table data, evaluate a policy, or let an error text of
// go-mysql-server that may hold a value reach a user.
package bind
