package policystore

import "strings"

// tagDefinitionFor is the definition of tag policies as a download for a service
// of another type shows it: with the access types of that type alone, without
// their prefix. Mask types stay as they are. Source: captured downloads of a
// Ranger Admin 2.9.
func tagDefinitionFor(doc []byte, typ string) ([]byte, error) {
	def, err := parseTree(doc)
	if err != nil {
		return nil, err
	}
	prefix := typ + ":"
	strip(def, "accessTypes", prefix)
	strip(def, "markerAccessTypes", prefix)
	for _, part := range []string{"dataMaskDef", "rowFilterDef"} {
		if p, ok := def[part].(tree); ok {
			strip(p, "accessTypes", prefix)
		}
	}
	return encode(def)
}

// strip keeps of a list of access types those of one type, and those of none.
func strip(in tree, key, prefix string) {
	own := func(name any) (string, bool) {
		text, _ := name.(string)
		return strings.TrimPrefix(text, prefix), strings.HasPrefix(text, prefix) || !strings.Contains(text, ":")
	}
	types, _ := in[key].([]any)
	var kept []any
	for _, t := range types {
		access, _ := t.(tree)
		name, ok := own(access["name"])
		if !ok {
			continue
		}
		access["name"] = name
		grants, _ := access["impliedGrants"].([]any)
		var implied []any
		for _, g := range grants {
			if name, ok := own(g); ok {
				implied = append(implied, name)
			}
		}
		if access["impliedGrants"] = implied; implied == nil {
			delete(access, "impliedGrants")
		}
		kept = append(kept, access)
	}
	if in[key] = kept; kept == nil {
		delete(in, key)
	}
}
