package rangerclient

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// A Ranger Admin that is set up for it answers with changes instead of a whole
// document (ranger.admin.supports.policy.deltas, ....tag.deltas). They are applied
// to the body of before, so that everything behind knows whole documents only.
// What cannot be applied to the letter is an error, on which the whole document is
// asked for. Sources: RangerPolicyDeltaUtil, RangerServiceTagsDeltaUtil.

// members are those of a JSON object, as they stand.
type members map[string]json.RawMessage

// Kinds of changes of a policy.
const (
	policyCreated = iota
	policyUpdated
	policyDeleted
)

// policyDelta is one change; Policy keeps its members.
type policyDelta struct {
	ChangeType *int            `json:"changeType"`
	Policy     json.RawMessage `json:"policy"`
}

// policyHead is what applying a change needs of a policy.
type policyHead struct {
	ID          int64  `json:"id"`
	ServiceType string `json:"serviceType"`
	Enabled     *bool  `json:"isEnabled"`
}

// tagServiceType is the service type of tag policies.
const tagServiceType = "tag"

// whole makes a whole body of an answer: the answer itself, or, where it holds
// changes, before with the changes applied.
func (d document) whole(before, answer []byte) ([]byte, error) {
	var head struct {
		PolicyDeltas json.RawMessage    `json:"policyDeltas"`
		Zones        map[string]members `json:"securityZones"`
		IsDelta      bool               `json:"isDelta"`
	}
	if json.Unmarshal(answer, &head) != nil {
		return answer, nil // whoever reads it says what is wrong
	}
	// An empty list is a change too: what was made and deleted since leaves none, and
	// the policies are not in the answer.
	changes := head.PolicyDeltas != nil
	for _, z := range head.Zones {
		changes = changes || z["policyDeltas"] != nil
	}
	switch {
	case d.kind == policiesDocument && changes:
		return applyPolicyChanges(before, answer)
	case d.kind == tagsDocument && head.IsDelta:
		return applyTagChanges(before, answer)
	}
	return answer, nil
}

func applyPolicyChanges(before, answer []byte) ([]byte, error) {
	was, is, err := both(before, answer)
	if err != nil {
		return nil, err
	}
	deltas, err := deltasOf(is)
	if err != nil {
		return nil, err
	}
	if err := is.edit(was, deltas, false); err != nil {
		return nil, err
	}
	if is["tagPolicies"], err = within(was["tagPolicies"], is["tagPolicies"], func(was, is members) error {
		return is.edit(was, deltas, true)
	}); err != nil {
		return nil, err
	}
	var zonesWere, zones map[string]json.RawMessage
	if err := errors.Join(optional(was["securityZones"], &zonesWere), optional(is["securityZones"], &zones)); err != nil {
		return nil, err
	}
	for name, zone := range zones {
		if zones[name], err = within(zonesWere[name], zone, func(was, is members) error {
			deltas, err := deltasOf(is)
			if err != nil {
				return err
			}
			return is.edit(was, deltas, false)
		}); err != nil {
			return nil, fmt.Errorf("zone %q: %w", name, err)
		}
	}
	if len(zones) > 0 {
		if is["securityZones"], err = json.Marshal(zones); err != nil {
			return nil, err
		}
	}
	return json.Marshal(is)
}

func both(before, answer []byte) (was, is members, err error) {
	if before == nil {
		return nil, nil, errors.New("the server sends changes of a document that is not there")
	}
	return was, is, errors.Join(json.Unmarshal(before, &was), json.Unmarshal(answer, &is))
}

func optional(text json.RawMessage, into any) error {
	if len(text) == 0 {
		return nil
	}
	return json.Unmarshal(text, into)
}

// within applies changes inside a member; one that is new must be whole.
func within(before, answer json.RawMessage, apply func(was, is members) error) (json.RawMessage, error) {
	if len(answer) == 0 || string(answer) == "null" {
		return answer, nil
	}
	var was, is members
	if err := errors.Join(optional(before, &was), json.Unmarshal(answer, &is)); err != nil {
		return nil, err
	}
	if was == nil {
		return nil, errors.New("the server sends changes of something that is new")
	}
	if err := apply(was, is); err != nil {
		return nil, err
	}
	return json.Marshal(is)
}

// deltasOf takes the changes out of m.
func deltasOf(m members) ([]policyDelta, error) {
	var out []policyDelta
	err := optional(m["policyDeltas"], &out)
	delete(m, "policyDeltas")
	return out, err
}

// edit makes the policies of m those of before with the changes for tag policies,
// or for all others.
func (m members) edit(before members, deltas []policyDelta, tags bool) error {
	if len(m["policies"]) > 0 && string(m["policies"]) != "null" && string(m["policies"]) != "[]" {
		return errors.New("the server sends policies beside changes of them")
	}
	var list []json.RawMessage
	if err := optional(before["policies"], &list); err != nil {
		return err
	}
	byID := map[int64]json.RawMessage{}
	for _, p := range list {
		var head policyHead
		if err := json.Unmarshal(p, &head); err != nil {
			return err
		}
		byID[head.ID] = p
	}
	for _, d := range deltas {
		var head policyHead
		if d.ChangeType == nil || *d.ChangeType < policyCreated || *d.ChangeType > policyDeleted || len(d.Policy) == 0 {
			return errors.New("a change is of a kind that needs the whole document")
		}
		if err := json.Unmarshal(d.Policy, &head); err != nil {
			return err
		}
		if head.ID == 0 || head.ServiceType == "" {
			return errors.New("a change does not say of which policy it is")
		}
		if (head.ServiceType == tagServiceType) != tags {
			continue
		}
		delete(byID, head.ID)
		if *d.ChangeType != policyDeleted && (head.Enabled == nil || *head.Enabled) {
			byID[head.ID] = d.Policy
		}
	}
	list = list[:0]
	for _, id := range slices.SortedFunc(maps.Keys(byID), cmp.Compare[int64]) {
		list = append(list, byID[id])
	}
	text, err := json.Marshal(list)
	m["policies"] = text
	return err
}

// applyTagChanges: a definition, tag or resource with a new body replaces the one
// of its id; a tag without a type and a resource without a signature are gone.
func applyTagChanges(before, answer []byte) ([]byte, error) {
	was, is, err := both(before, answer)
	if err != nil {
		return nil, err
	}
	for _, member := range []struct{ name, gone string }{{"tagDefinitions", "name"}, {"tags", "type"}} {
		var objects, changed map[string]members
		if err := errors.Join(optional(was[member.name], &objects), optional(is[member.name], &changed)); err != nil {
			return nil, err
		}
		if objects == nil {
			objects = map[string]members{}
		}
		for id, o := range changed {
			if empty(o[member.gone]) {
				delete(objects, id)
			} else {
				objects[id] = o
			}
		}
		if is[member.name], err = json.Marshal(objects); err != nil {
			return nil, err
		}
	}
	var resources, changed []members
	var tagIDs, changedIDs map[string]json.RawMessage
	if err := errors.Join(optional(was["serviceResources"], &resources), optional(is["serviceResources"], &changed),
		optional(was["resourceToTagIds"], &tagIDs), optional(is["resourceToTagIds"], &changedIDs)); err != nil {
		return nil, err
	}
	if tagIDs == nil {
		tagIDs = map[string]json.RawMessage{}
	}
	for _, r := range changed {
		id := string(r["id"])
		if id == "" {
			return nil, errors.New("a change does not say of which resource it is")
		}
		resources = slices.DeleteFunc(resources, func(x members) bool { return string(x["id"]) == id })
		if empty(r["resourceSignature"]) {
			delete(tagIDs, id)
		} else {
			resources = append(resources, r)
		}
	}
	maps.Copy(tagIDs, changedIDs)
	if is["serviceResources"], err = json.Marshal(resources); err != nil {
		return nil, err
	}
	if is["resourceToTagIds"], err = json.Marshal(tagIDs); err != nil {
		return nil, err
	}
	is["isDelta"] = json.RawMessage("false")
	return json.Marshal(is)
}

func empty(text json.RawMessage) bool {
	return len(text) == 0 || string(text) == "null" || string(text) == `""`
}
