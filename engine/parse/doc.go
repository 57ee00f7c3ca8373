// Package parse turns SQL text into statements: those of the MySQL grammar, with
// names of any depth folded into what that grammar knows, and SQE's own, which are
// values. Among these are all that change rows, tables, views and schemas; the
// queries and expressions inside them are of the MySQL grammar again, with names
// that are resolved by whoever binds them.
//
// Invariants: a statement is cut, folded and fingerprinted by tokens, so that
// nothing inside a string, a comment or a quoted name is ever taken for syntax;
// the MySQL grammar sees the text of those tokens without comments, so that both
// always agree on what is a comment; text never makes the package panic or
// recurse without bound; an error says where it is (line, column) and what was
// expected. The package knows no names of objects and must never log or return a
// literal of a statement other than inside the statement itself.
package parse
