package oidc

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"sqe/identity"
)

// principal reads who a token is about.
func (p *Provider) principal(claims map[string]any) (identity.Principal, error) {
	var none identity.Principal
	c := p.o.Claims
	name, _ := find(claims, c.Name).(string)
	if !nameable(name) {
		return none, ReasonName
	}
	groups, ok := p.names(claims, c.Groups)
	if !ok {
		return none, ReasonClaims
	}
	if c.StripGroupSlash {
		for i, g := range groups {
			groups[i] = strings.TrimPrefix(g, "/")
		}
	}
	var roles []string
	for _, path := range c.Roles {
		more, ok := p.names(claims, path)
		if !ok {
			return none, ReasonClaims
		}
		for _, r := range more {
			if !slices.Contains(roles, r) {
				roles = append(roles, r)
			}
		}
	}
	out := identity.Principal{Name: p.o.Prefix + name, Admin: overlap(roles, p.o.AdminRoles) || overlap(groups, p.o.AdminGroups)}
	out.Groups, out.Roles = prefixed(p.o.Prefix, groups), prefixed(p.o.Prefix, roles)
	for attribute, path := range c.Attributes {
		v := find(claims, path)
		if v == nil {
			continue
		}
		text, ok := scalar(v)
		if !ok {
			return none, ReasonClaims
		}
		if out.Attributes == nil {
			out.Attributes = map[string]string{}
		}
		out.Attributes[attribute] = text
	}
	return out, nil
}

// names reads a list of names. A claim that is missing is an empty list.
func (p *Provider) names(claims map[string]any, path string) ([]string, bool) {
	v := find(claims, path)
	if path == "" || v == nil {
		return nil, true
	}
	list, ok := texts(v)
	return list, ok && !slices.ContainsFunc(list, func(s string) bool { return !nameable(s) })
}

func prefixed(prefix string, list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = prefix + s
	}
	return out
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

// find looks a claim up: by its whole name first, since names may hold dots
// ("https://example.com/roles"), then as names within objects.
func find(claims map[string]any, path string) any {
	if v, ok := claims[path]; ok {
		return v
	}
	first, rest, nested := strings.Cut(path, ".")
	if !nested {
		return nil
	}
	inner, _ := claims[first].(map[string]any)
	return find(inner, rest)
}

// texts reads a text, or a list of texts. Nothing else is either.
func texts(v any) ([]string, bool) {
	if s, ok := v.(string); ok {
		return []string{s}, true
	}
	list, ok := v.([]any)
	if !ok {
		return nil, false
	}
	out := make([]string, len(list))
	for i, e := range list {
		if out[i], ok = e.(string); !ok {
			return nil, false
		}
	}
	return out, true
}

// scalar is the text of an attribute; a list is separated by commas.
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, utf8.ValidString(v)
	case json.Number:
		return v.String(), true
	case bool:
		if v {
			return "true", true
		}
		return "false", true
	case []any:
		list, ok := texts(v)
		return strings.Join(list, ","), ok
	}
	return "", false
}

// maxName bounds a name, in bytes.
const maxName = 256

// nameable reports whether a text can be a name of a person, group or role. It is
// taken as it is or not at all.
func nameable(s string) bool {
	return s != "" && len(s) <= maxName && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}
