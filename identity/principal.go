// Package identity says who asks. It is vocabulary: it imports no service, no
// SQL library and no policy. Names compare byte by byte: no case folding, no
// trimming. The zero Principal is nobody and may do nothing.
package identity

import (
	"net/netip"
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
	// Address is the IP address from which the session came, without a port (Address),
	// and "" when it is not known: conditions of policies look at it.
	Address string
	// Admin may see policies in full, other people's statements and the status of
	// the server. It grants no access to data.
	Admin bool
}

// IsZero reports whether p is nobody.
func (p Principal) IsZero() bool { return p.Name == "" }

// Key is a string that differs for principals whose decisions may differ: name,
// groups, roles, active roles, attributes, address.
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
	part('i', []string{p.Address})
	return b.String()
}

// Address is the IP address in "host:port", "" when there is none. One address has
// one text: IPv4 is written as such, and the zone of a local IPv6 address, which says
// by which interface it came, is left out.
func Address(remote string) string {
	a, err := netip.ParseAddrPort(remote)
	if err != nil {
		return ""
	}
	return a.Addr().WithZone("").Unmap().String()
}
