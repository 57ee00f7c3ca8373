package eval

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

// addresses is the condition RangerIpMatcher: it holds when the address of the client
// is one of the values, or begins like one that ends in wildcards.
//
// An address that is not known is undecided, as is one that no value stands for when
// some values are not understood: Ranger compares those as texts, which no address
// equals, so that a denial for 10.0.0.0/8 would deny nobody.
type addresses struct {
	any      bool
	exact    []netip.Addr
	prefixes []string // in lower case, with the separator at the end
	loose    []string // what Ranger, and not this engine, takes for the beginning of an address
	foreign  []string // values that are not understood
}

// Source: RangerIpMatcher.digestPolicyIp.
var (
	anyAddress = regexp.MustCompile(`^(\*(\.\*)*|\*(:\*)*)?$`)
	wildcards4 = regexp.MustCompile(`(\.\*)+$`)
	wildcards6 = regexp.MustCompile(`(:\*)+$`)
	beginning4 = regexp.MustCompile(`^([0-9]{1,3}\.){1,3}$`)
	beginning6 = regexp.MustCompile(`^([0-9a-f]{0,4}:){1,7}$`)
)

func newAddresses(values []string) *addresses {
	c := &addresses{any: len(values) == 0}
	for _, v := range values {
		trailing, beginning, separator := wildcards6, beginning6, ":"
		if strings.Contains(v, ".") {
			trailing, beginning, separator = wildcards4, beginning4, "."
		}
		lower := strings.ToLower(v)
		if anyAddress.MatchString(v) {
			c.any = true
		} else if at := trailing.FindStringIndex(lower); at != nil {
			if p := lower[:at[0]] + separator; beginning.MatchString(p) {
				c.prefixes = append(c.prefixes, p)
			} else {
				c.foreign = append(c.foreign, v)
			}
		} else if a, err := netip.ParseAddr(v); err == nil && a.Zone() == "" {
			c.exact = append(c.exact, a.Unmap())
			if v != lower && separator == ":" {
				c.loose = append(c.loose, lower)
			}
		} else {
			c.foreign = append(c.foreign, v)
		}
	}
	return c
}

// problem says which values are not understood, "" when all are.
func (c *addresses) problem() string {
	if c.any || len(c.foreign) == 0 {
		return ""
	}
	return fmt.Sprintf("%q: no address, and no beginning of one before \".*\" or \":*\", so Ranger finds nobody there; for an address that no other value stands for it is undecided", c.foreign)
}

func (c *addresses) holds(q *Request) tri {
	if c.any {
		return yes
	}
	a, err := netip.ParseAddr(q.address())
	if err != nil {
		return unknown
	}
	a = a.WithZone("").Unmap()
	for _, x := range c.exact {
		if x == a {
			return yes
		}
	}
	// Java writes IPv6 addresses with all their groups, Go shortens them.
	texts := []string{a.String(), written(a)}
	for _, text := range texts {
		for _, p := range c.prefixes {
			if strings.HasPrefix(text, p) {
				return yes
			}
		}
	}
	for _, text := range texts {
		for _, p := range c.loose {
			if strings.HasPrefix(text, p) {
				return unknown
			}
		}
	}
	if len(c.foreign) > 0 {
		return unknown
	}
	return no
}

// written is the address as Java writes it: 2001:db8:0:0:0:0:0:1.
func written(a netip.Addr) string {
	if !a.Is6() {
		return a.String()
	}
	b := a.As16()
	groups := make([]string, 8)
	for i := range groups {
		groups[i] = fmt.Sprintf("%x", uint16(b[2*i])<<8|uint16(b[2*i+1]))
	}
	return strings.Join(groups, ":")
}
