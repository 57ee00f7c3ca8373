// Package policyserver holds one contract for policy servers: the embedded store
// behind its HTTP face, and a Ranger Admin.
//
// Without settings the store runs in the process of the tests. With SQE_RANGER_URL
// ("http://ranger:6080") and SQE_RANGER_ADMIN ("user:password", default
// "admin:admin") the same tests run against that server; whatever they make there
// bears the prefix "sqect_" and is removed before and after.
//
// The tests know one difference by design: a Ranger Admin makes policies of its
// own with each new service, and in each new zone; the store makes none. The store
// may refuse more: what it refuses beyond a Ranger Admin is named where it is
// tested.
package policyserver
