// Package parity compares SQE with engines that enforce the same Ranger policies
// over the same tables: Spark with Kyuubi's plugin and Trino with its Ranger
// access control.
//
// testdata/spark.json and trino.json are what these engines answered, statement by
// statement. SQE answers each of them as the same user under the same policies,
// with the rendering of the peer. An answer is equal, or its difference is listed
// in testdata/<peer>-differences.json with a reason that
// docs/decisions/peer-differences.md explains.
//
// Statements that change rows run in the captured order on tables like those of the
// capture. testdata/<peer>-rows.json is what the peer's tables held after each, and
// what they are made to hold where SQE did something else.
//
// Invariants: a difference that is not listed fails, and so does a listed one that
// does not occur. Policies and tables are written here, never by the product.
package parity
