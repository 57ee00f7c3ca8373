package policy

// Prober is a State that can tell what is given to a grantee by its own name: to a
// role or a group without anybody in it, to a user with the groups and roles that
// the source knows of.
type Prober interface {
	Probe(g Grantee, o Object, p Privilege) Decision
}
