// Package policystore is the embedded policy server: it keeps policies, roles,
// users, groups, zones, services, service definitions and tags in Apache Ranger's
// JSON model in one SQLite file and answers as a Ranger Admin 2.9 does, to writes
// (admin.Server) and to the downloads of plugins.
//
// Invariants: a change is one transaction together with its entry in the history,
// on disk before it is answered; one writer at a time; a version never stands for
// two contents; every version of every policy is kept, deleted ones too; a
// document that a plugin reads was written whole; the file is readable by its
// owner alone and holds passwords only as argon2id hashes.
//
// Where the store is stricter than Ranger on purpose: a user or group that a
// policy, role or zone still names is not deleted (Ranger removes the name from
// the policies, which changes who may do what); the last administrator stays; a
// tag document with an unknown op, or with a resource that the service cannot
// have, is refused, and so is a policy without any resource; two zones may not
// match a common resource, wherever the wildcards are; a password of a service's
// connection is not kept. Where it does less: a new service or zone gets no default
// policies; services, users and groups cannot be renamed.
//
// The package must never decide who may read or change something: its HTTP face
// and the engine ask Login and their own rules first.
package policystore
