// Package rangerclient makes a policy source of Apache Ranger's documents: the
// policies of a polaris service answer the object gate, those of a hive or trino
// service, with their tag policies, tags, roles and users, the data gate.
//
// The documents are compiled once into an immutable State behind an atomic
// pointer. A poll that fails for any reason (a missing, truncated, foreign, older
// or unparsable document) leaves the State in place, is reported by Status, and
// lets it age; past the staleness bound Source.State fails with
// fault.PolicyStale.
//
// # How names meet
//
// Object gate: root is the realm, catalog the name of the catalog. A namespace
// a.b.c is "a/b/c"; a table t in it is namespace "a", table "b/c/t", as Polaris'
// authorizer writes them, with "/" inside a name escaped by a backslash. A
// wildcard in table stops at a level of the namespace for whatever gives, unless
// namespace is "*" too.
//
// Data gate, hive: database is the dotted namespace, and the catalog and the
// dotted namespace ("sales_wh.bank"); a policy on either covers the table. Trino:
// catalog, schema (the dotted namespace), table. A column goes by its present
// name and by every name that its field id bore in an earlier schema; a field
// inside a struct by the dotted path. Access policies of the data service are not
// an object gate; but a column that one of them denies is withheld.
package rangerclient
