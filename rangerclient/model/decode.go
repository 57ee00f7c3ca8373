package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// decode parses one JSON document and nothing after it. Its errors name no value
// of the document: they may reach a status page.
func decode(body []byte, what string, into any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return fmt.Errorf("%s: the document is empty", what)
	}
	if !utf8.Valid(body) {
		return fmt.Errorf("%s: the document is not UTF-8", what)
	}
	if err := json.Unmarshal(body, into); err != nil {
		var syntax *json.SyntaxError
		var typ *json.UnmarshalTypeError
		switch {
		case errors.As(err, &typ):
			return fmt.Errorf("%s: %s is of a wrong type at byte %d", what, typ.Field, typ.Offset)
		case !errors.As(err, &syntax):
			return fmt.Errorf("%s: the document cannot be read", what)
		case syntax.Offset >= int64(len(body)):
			return fmt.Errorf("%s: the document is truncated", what)
		}
		// The text may be whole and something behind it.
		d := json.NewDecoder(bytes.NewReader(body))
		if d.Decode(&json.RawMessage{}) == nil {
			return fmt.Errorf("%s: there is something after the document", what)
		}
		return fmt.Errorf("%s: broken JSON at byte %d", what, syntax.Offset)
	}
	return nil
}

// Strings is a map of texts. Numbers and booleans are taken as their text, null as
// absent, as Ranger's own reader does.
type Strings map[string]string

// UnmarshalJSON implements json.Unmarshaler.
func (s *Strings) UnmarshalJSON(b []byte) error {
	// Nearly always all of them are texts.
	var texts map[string]*string
	if json.Unmarshal(b, &texts) == nil {
		if texts == nil {
			return nil
		}
		*s = make(Strings, len(texts))
		for k, v := range texts {
			if v != nil {
				(*s)[k] = *v
			}
		}
		return nil
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	if raw == nil {
		return nil
	}
	*s = make(Strings, len(raw))
	for k, v := range raw {
		switch {
		case string(v) == "null":
		case v[0] == '"':
			var text string
			if err := json.Unmarshal(v, &text); err != nil {
				return err
			}
			(*s)[k] = text
		case v[0] == '{' || v[0] == '[':
			return fmt.Errorf("%q is not a text", k)
		default:
			(*s)[k] = string(v)
		}
	}
	return nil
}

// DecodePolicies reads the body of a policy download of the service.
func DecodePolicies(body []byte, service string) (*ServicePolicies, error) {
	what := "policies of " + service
	p := &ServicePolicies{}
	if err := decode(body, what, p); err != nil {
		return nil, err
	}
	switch {
	case p.ServiceName != service:
		return nil, fmt.Errorf("%s: the document belongs to another service", what)
	case p.PolicyVersion == nil:
		return nil, fmt.Errorf("%s: the document has no policyVersion", what)
	case p.ServiceDef == nil || p.ServiceDef.Name == "" || len(p.ServiceDef.Resources) == 0:
		return nil, fmt.Errorf("%s: the document has no service definition", what)
	}
	for _, list := range [][]*Policy{p.Policies, tagList(p)} {
		for _, x := range list {
			if err := x.check(what); err != nil {
				return nil, err
			}
		}
	}
	for name, z := range p.SecurityZones {
		if z == nil {
			return nil, fmt.Errorf("%s: security zone %q is null", what, name)
		}
		for _, x := range z.Policies {
			if err := x.check(what); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

func tagList(p *ServicePolicies) []*Policy {
	if p.TagPolicies == nil {
		return nil
	}
	return p.TagPolicies.Policies
}

// check refuses what evaluation could not tell from "no policy".
func (p *Policy) check(what string) error {
	if p == nil {
		return fmt.Errorf("%s: a policy is null", what)
	}
	if p.PolicyType < AccessPolicy || p.PolicyType > AuditPolicy {
		return fmt.Errorf("%s: policy %d is of the unknown type %d", what, p.ID, p.PolicyType)
	}
	for _, list := range [][]*Item{p.PolicyItems, p.DenyPolicyItems, p.AllowExceptions, p.DenyExceptions, p.DataMaskPolicyItems, p.RowFilterPolicyItems} {
		for _, i := range list {
			if i == nil {
				return fmt.Errorf("%s: an item of policy %d is null", what, p.ID)
			}
		}
	}
	return nil
}

// DecodeTags reads the body of a tag download of the service.
func DecodeTags(body []byte, service string) (*ServiceTags, error) {
	what := "tags of " + service
	t := &ServiceTags{}
	if err := decode(body, what, t); err != nil {
		return nil, err
	}
	switch {
	case t.ServiceName != service:
		return nil, fmt.Errorf("%s: the document belongs to another service", what)
	case t.TagVersion == nil:
		return nil, fmt.Errorf("%s: the document has no tagVersion", what)
	}
	for id, list := range t.ResourceToTagIDs {
		for _, tag := range list {
			if _, ok := t.Tags[fmt.Sprint(tag)]; !ok {
				return nil, fmt.Errorf("%s: resource %s carries tag %d, which the document does not define", what, id, tag)
			}
		}
	}
	return t, nil
}

// DecodeRoles reads the body of a role download.
func DecodeRoles(body []byte) (*Roles, error) {
	r := &Roles{}
	if err := decode(body, "roles", r); err != nil {
		return nil, err
	}
	if r.RoleVersion == nil {
		return nil, errors.New("roles: the document has no roleVersion")
	}
	for _, role := range r.RangerRoles {
		if role == nil || role.Name == "" {
			return nil, errors.New("roles: a role is null or has no name")
		}
	}
	return r, nil
}

// DecodeUserStore reads the body of a user store download.
func DecodeUserStore(body []byte) (*UserStore, error) {
	u := &UserStore{}
	if err := decode(body, "user store", u); err != nil {
		return nil, err
	}
	if u.Version == nil {
		return nil, errors.New("user store: the document has no userStoreVersion")
	}
	return u, nil
}
