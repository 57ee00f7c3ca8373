// Package wire is the MySQL client/server protocol, server side: packets, the
// handshake, column definitions, rows encoded straight from Arrow buffers, and
// the parameters of prepared statements.
//
// Invariants: a length that the peer announced never makes an allocation of that
// size before the bytes arrived, and never more than the limit of the phase; the
// plain and the encrypted bytes of a connection are never mixed (what arrives
// before the TLS handshake ended is not read as a command); a value that MySQL
// cannot represent is an error or NULL as docs/protocol.md says, never a
// different value.
//
// The package must never decide who may connect, run a statement, or put a value
// of a row into an error. Source for every layout: the "MySQL Client/Server
// Protocol" part of MySQL's source documentation, 8.0.
package wire
