// Package ranger gives audit events the form of Apache Ranger's access audit
// events and takes them where Ranger's plugins take theirs: to a file, to Solr
// (from where a Ranger Admin shows them) or to an HTTP endpoint.
//
// Invariants: Record never waits for a disk or a network; what is sent was
// appended to a spool on disk before and leaves it only when its receiver took it,
// so that each event arrives at least once, in the order in which it was recorded;
// what is lost, because a spool is full or its disk too slow, is counted and
// logged. An event holds the fingerprint of a statement and no literal of it.
//
// The package must never decide about access or whether a statement may run,
// except that an output whose spool is full refuses when it was configured to.
package ranger
