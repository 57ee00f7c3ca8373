package rangerclient

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sqe/rangerclient/model"
)

// TestCapturedChanges: what a live Ranger Admin sent as changes gives a whole
// document.
func TestCapturedChanges(t *testing.T) {
	d := document{"policies/hive", policiesDocument, "hive"}
	body, err := d.whole(read(t, "policies_download_hive.json"), read(t, "policies_download_hive_delta.json"))
	if err != nil {
		t.Fatal(err)
	}
	was, err := model.DecodePolicies(read(t, "policies_download_hive.json"), "hive")
	if err != nil {
		t.Fatal(err)
	}
	is, err := dataPolicies(body, "hive")
	if err != nil {
		t.Fatal(err)
	}
	if *is.PolicyVersion != 60 || len(is.Policies) != len(was.Policies) || len(is.TagPolicies.Policies) != len(was.TagPolicies.Policies)+1 {
		t.Errorf("version %d, %d policies of %d, %d tag policies of %d", *is.PolicyVersion, len(is.Policies), len(was.Policies), len(is.TagPolicies.Policies), len(was.TagPolicies.Policies))
	}
	if diff := cmp.Diff(was.Policies, is.Policies); diff != "" {
		t.Error(diff)
	}
	for name, zone := range was.SecurityZones {
		if diff := cmp.Diff(zone.Policies, is.SecurityZones[name].Policies); diff != "" {
			t.Errorf("zone %s: %s", name, diff)
		}
	}
	d = document{"tags/hive", tagsDocument, "hive"}
	body, err = d.whole(read(t, "tags_download_hive.json"), read(t, "tags_download_hive_delta.json"))
	if err != nil {
		t.Fatal(err)
	}
	tags, err := wholeTags(body, "hive")
	if err != nil || *tags.TagVersion != 6 || tags.Tags["5"].Attributes["level"] != "mid" {
		t.Errorf("%v %+v", err, tags)
	}
}

// policyDocument is a download of numbered policies with these contents.
func policyDocument(version int, resource, tag, zone map[int]string, deltas bool, changes [3][]object) []byte {
	list := func(policies map[int]string, serviceType string) []object {
		out := []object{}
		for id := range 40 {
			if name, ok := policies[id]; ok {
				out = append(out, object{"id": id, "name": name, "serviceType": serviceType, "policyType": 0, "isEnabled": true, "unknown": "kept"})
			}
		}
		return out
	}
	def := object{"name": "hive", "resources": []object{{"name": "database"}}}
	doc := object{
		"serviceName": "hive", "policyVersion": version, "serviceDef": def,
		"tagPolicies": object{"serviceName": "tag", "serviceDef": object{"name": "tag", "resources": []object{{"name": "tag"}}}},
	}
	z := object{"zoneName": "z"}
	if deltas {
		doc["policyDeltas"] = append(append([]object{}, changes[0]...), changes[1]...)
		z["policyDeltas"] = append([]object{}, changes[2]...)
	} else {
		doc["policies"] = list(resource, "hive")
		doc["tagPolicies"].(object)["policies"] = list(tag, "tag")
		z["policies"] = list(zone, "hive")
	}
	doc["securityZones"] = object{"z": z}
	b, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	return b
}

type object = map[string]any

// TestChangesGiveTheWhole: whatever changes, the document of before with the
// changes is the whole document.
func TestChangesGiveTheWhole(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var state [3]map[int]string
		var changes [3][]object
		id := 0
		for k := range state {
			state[k] = map[int]string{}
			for range r.IntN(6) {
				id++
				state[k][id] = fmt.Sprint("policy ", id)
			}
		}
		before := policyDocument(1, state[0], state[1], state[2], false, changes)
		for range r.IntN(6) {
			k := r.IntN(3)
			serviceType := []string{"hive", "tag", "hive"}[k]
			change := func(kind, id int, name string) {
				changes[k] = append(changes[k], object{"id": 1000 + id, "changeType": kind, "policy": object{
					"id": id, "name": name, "serviceType": serviceType, "policyType": 0, "isEnabled": true, "unknown": "kept",
				}})
			}
			switch any := anyOf(r, state[k]); {
			case any == 0 || r.IntN(3) == 0:
				id++
				state[k][id] = fmt.Sprint("new ", id)
				change(policyCreated, id, state[k][id])
			case r.IntN(2) == 0:
				state[k][any] += " changed"
				change(policyUpdated, any, state[k][any])
			default:
				change(policyDeleted, any, state[k][any])
				delete(state[k], any)
			}
		}
		answer := policyDocument(2, nil, nil, nil, true, changes)
		want := policyDocument(2, state[0], state[1], state[2], false, changes)
		got, err := document{"policies/hive", policiesDocument, "hive"}.whole(before, answer)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		var a, b any
		if json.Unmarshal(got, &a) != nil || json.Unmarshal(want, &b) != nil {
			t.Fatalf("seed %d: no JSON", seed)
		}
		if diff := cmp.Diff(b, a); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}

func anyOf(r *rand.Rand, m map[int]string) int {
	for id := range 40 {
		if _, ok := m[id]; ok && r.IntN(2) == 0 {
			return id
		}
	}
	return 0
}

// TestUnusableChangesAskForEverything: the next request of the same poll asks for
// the whole document, and no policy is lost meanwhile.
func TestUnusableChangesAskForEverything(t *testing.T) {
	for name, answer := range map[string]string{
		"unknown kind":       `{"serviceName":"hive","policyVersion":60,"policyDeltas":[{"changeType":5,"policy":{"id":1,"serviceType":"hive"}}]}`,
		"no policy":          `{"serviceName":"hive","policyVersion":60,"policyDeltas":[{"changeType":2}]}`,
		"no service type":    `{"serviceName":"hive","policyVersion":60,"policyDeltas":[{"changeType":0,"policy":{"id":1}}]}`,
		"policies as well":   `{"serviceName":"hive","policyVersion":60,"policies":[{"id":1}],"policyDeltas":[{"changeType":2,"policy":{"id":1,"serviceType":"hive"}}]}`,
		"a zone that is new": `{"serviceName":"hive","policyVersion":60,"policyDeltas":[],"securityZones":{"new":{"zoneName":"new","policyDeltas":[]}}}`,
		"no definition":      `{"serviceName":"hive","policyVersion":60,"policyDeltas":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			a, server := newAdmin(t)
			s := openREST(t, restConfig(server, start()))
			before := s.Status().Policies
			var whole atomic.Int64
			good := read(t, "policies_download_hive.json")
			a.set(func() {
				a.broken = func(w http.ResponseWriter, r *http.Request) {
					switch {
					case !strings.Contains(r.URL.Path, "/policies/download/hive"):
						w.WriteHeader(http.StatusNotModified)
					case r.URL.Query().Get("lastKnownVersion") == "-1":
						whole.Add(1)
						_, _ = w.Write(good)
					default:
						fmt.Fprint(w, answer)
					}
				}
			})
			if err := s.Reload(t.Context()); err != nil {
				t.Fatal(err)
			}
			if whole.Load() != 1 || s.Status().Policies != before {
				t.Errorf("%d whole documents, %d policies of %d", whole.Load(), s.Status().Policies, before)
			}
		})
	}
}
