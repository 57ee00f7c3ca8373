package policystore

import (
	"bytes"
	"encoding/json"
	"slices"
)

// markers are the access types that stand for all of a category, in Ranger's
// order; the last one stands for all. Source: service definitions as a Ranger
// Admin 2.9 serves them.
var markers = []struct{ name, category string }{
	{"_CREATE", "CREATE"}, {"_READ", "READ"}, {"_UPDATE", "UPDATE"}, {"_DELETE", "DELETE"}, {"_MANAGE", "MANAGE"}, {"_ALL", ""},
}

// itemSpan keeps the items that definitions bring to the tag definition apart: an
// item n of the definition d is d*itemSpan+n there.
const itemSpan = 1001

// tree is a JSON object of which this package knows a part.
type tree = map[string]any

func parseTree(doc []byte) (t tree, err error) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	err = d.Decode(&t)
	return t, err
}

// items are the objects of a list.
func items(in tree, key string) (all []tree) {
	raw, _ := in[key].([]any)
	for _, x := range raw {
		if t, ok := x.(tree); ok {
			all = append(all, t)
		}
	}
	return all
}

// itemID is the id of an item, read or given here; 0 for none.
func itemID(t tree) int64 {
	switch n := t["itemId"].(type) {
	case json.Number:
		id, _ := n.Int64()
		return id
	case int64:
		return n
	}
	return 0
}

// withMarkers gives a definition the marker access types of its access types: they
// imply what those imply as well.
func withMarkers(def tree) {
	types := items(def, "accessTypes")
	last := int64(0)
	for _, t := range types {
		last = max(last, itemID(t))
	}
	var made []any
	for _, m := range markers {
		last++
		var implied []any
		for _, t := range types {
			if m.category != "" && t["category"] != m.category {
				continue
			}
			grants, _ := t["impliedGrants"].([]any)
			for _, name := range append([]any{t["name"]}, grants...) {
				if !slices.Contains(implied, name) {
					implied = append(implied, name)
				}
			}
		}
		marker := tree{"itemId": last, "name": m.name, "label": m.name}
		if implied != nil {
			marker["impliedGrants"] = implied
		}
		made = append(made, marker)
	}
	def["markerAccessTypes"] = made
}

// intoTags adds to the definition of tag policies what a policy on a tag may say
// about a service of another type: its access types, masks and row filters, with
// the name of the type before theirs.
func intoTags(tags, def tree, id int64, name string) {
	prefixed := func(t tree) tree {
		n := tree{"itemId": id*itemSpan + itemID(t)}
		for k, v := range t {
			if k != "itemId" {
				n[k] = v
			}
		}
		text, _ := t["name"].(string)
		n["name"] = name + ":" + text
		if grants, ok := t["impliedGrants"].([]any); ok {
			own := slices.Clone(grants)
			for i, g := range own {
				text, _ := g.(string)
				own[i] = name + ":" + text
			}
			n["impliedGrants"] = own
		}
		return n
	}
	add := func(to, from tree, key string) {
		all, _ := to[key].([]any)
		for _, t := range items(from, key) {
			all = append(all, prefixed(t))
		}
		if all != nil {
			to[key] = all
		}
	}
	add(tags, def, "accessTypes")
	for part, keys := range map[string][]string{"dataMaskDef": {"accessTypes", "maskTypes"}, "rowFilterDef": {"accessTypes"}} {
		from, ok := def[part].(tree)
		if !ok {
			continue
		}
		to, ok := tags[part].(tree)
		if !ok {
			// A mask or filter of a tag is on the tag.
			to = tree{"resources": tags["resources"]}
			tags[part] = to
		}
		for _, key := range keys {
			add(to, from, key)
		}
	}
	withMarkers(tags)
}

// propagate writes a new definition into that of tag policies, which all downloads
// with tag policies hold.
func (t *tx) propagate(def tree, id int64, name string) error {
	doc, err := t.definitionDoc(tagType)
	if err != nil {
		return err
	}
	tags, err := parseTree(doc)
	if err != nil {
		return err
	}
	intoTags(tags, def, id, name)
	var version int64
	if err := t.one(`SELECT version + 1 FROM servicedefs WHERE name = ?`, []any{tagType}, &version); err != nil {
		return err
	}
	tags["version"], tags["updateTime"] = version, t.millis()
	if doc, err = encode(tags); err != nil {
		return err
	}
	if err := t.exec(`UPDATE servicedefs SET version = ?, doc = ? WHERE name = ?`, version, doc, tagType); err != nil {
		return err
	}
	return t.exec(`UPDATE services SET policy_version = policy_version + 1, policy_time = ?1
		WHERE type = ?2 OR tag_service IN (SELECT id FROM services WHERE type = ?2)`, t.millis(), tagType)
}
