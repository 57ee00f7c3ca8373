// Package identity says who asks. It is vocabulary: it imports no service, no
// SQL library and no policy. Names compare byte by byte: no case folding, no
// trimming. The zero Principal is nobody and may do nothing.
package identity

import (
	"slices"
	"strings"
)

// Principal is an authenticated person or service.
type Principal struct {
	Name   string
	Groups []string
	// Roles that the identity provider asserts. Roles from policy stores are added
	// at evaluation.
	Roles []string
	// ActiveRoles narrows the roles (SET ROLE); nil means all.
	ActiveRoles []string
	Attributes  map[string]string
	// Admin may see policies in full, other people's statements and the status of
	// the server. It grants no access to data.
	Admin bool
}

// IsZero reports whether p is nobody.
func (p Principal) IsZero() bool { return p.Name == "" }

// Key is a string that differs for principals whose decisions may differ: name,
// groups, roles, active roles, attributes.
func (p Principal) Key() string {
	var b strings.Builder
	part := func(tag byte, list []string) {
		list = slices.Clone(list)
		slices.Sort(list)
		for _, s := range list {
			b.WriteByte(tag)
			b.WriteString(strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), "\x00", `\0`))
			b.WriteByte(0)
		}
	}
	part('u', []string{p.Name})
	part('g', p.Groups)
	part('r', p.Roles)
	if p.ActiveRoles != nil {
		b.WriteByte('A')
		part('a', p.ActiveRoles)
	}
	attrs := make([]string, 0, len(p.Attributes))
	for k, v := range p.Attributes {
		attrs = append(attrs, strings.ReplaceAll(k, "=", `\=`)+"="+v)
	}
	part('t', attrs)
	return b.String()
}
