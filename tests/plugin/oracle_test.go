//go:build e2e

package plugin

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sqe/rangerclient/eval"
	"sqe/rangerclient/model"
)

var (
	sets     = flag.Int("sets", 450, "policy sets to compare with Ranger's engine")
	requests = flag.Int("requests", 50, "requests for each policy set")
	seed     = flag.Uint64("seed", 1, "seed of the first policy set")
	dump     = flag.String("dump", "", "folder for the policy sets of which a request differs, one file a seed")
	show     = flag.Int("show", 10, "differences to print")
)

// order is the order of elements from the top of a hierarchy downwards.
var order = []string{"root", "catalog", "namespace", "schema", "database", "table", "udf", "column", "policy", "principal", "url", "global", "sessionproperty", "trinouser"}

// refused is what SQE says where it cannot decide.
const refused = "refused"

// decide asks SQE's engine.
func decide(t testing.TB, e *eval.Engine, r request) answer {
	t.Helper()
	q := eval.NewRequest(e.Subject(r.User, r.Groups, nil, nil, nil), r.Access, time.UnixMilli(r.Time))
	q.Owner, q.ClientIP = r.Owner, r.IP
	for _, name := range order {
		if v, ok := r.Elements[name]; ok {
			q.With(name, false, v)
		}
	}
	e.FindTags(q)
	id := func(o eval.Origin) int64 {
		if o.Policy == nil {
			return -1
		}
		return o.Policy.ID
	}
	access := e.Access(q)
	out := answer{Allowed: access.Allowed, AccessPolicy: id(access.Origin)}
	switch m := e.Mask(q, eval.TagsFirst); {
	case m.Refuse != "":
		out.Mask = refused
	case m.Exempt && !m.Origin.Super:
		out.Mask, out.MaskPolicy = eval.MaskNone, id(m.Origin)
	case m.Type != "":
		out.Mask, out.MaskPolicy = m.Type, id(m.Origin)
		value, err := m.Expand(q)
		if err != nil {
			value = refused
		}
		out.Value = value
	}
	switch f := e.Filter(q, eval.AllPolicies); {
	case f.Refuse != "":
		text := refused
		out.Filter = &text
	case f.Exempt && !f.Origin.Super, f.SQL != "":
		text, err := f.Expand(q)
		if err != nil {
			text = refused
		}
		out.Filter, out.FilterPolicy = &text, id(f.Origin)
	}
	return out
}

// cold is the deviation "cold-policy": a tag denies, and Ranger, having used the
// policies of the resource before, skips one that has nothing for the request.
func (s *set) cold(sqe, ranger answer) bool {
	byTag := slices.ContainsFunc(s.docs.Policies.TagPolicies.Policies, func(p *model.Policy) bool { return p.ID == sqe.AccessPolicy })
	return !sqe.Allowed && byTag && ranger.Allowed && s.override(ranger.AccessPolicy)
}

// override reports whether the policy of the service has the higher priority.
func (s *set) override(id int64) bool {
	is := func(p *model.Policy) bool { return p.ID == id && p.PolicyPriority > 0 }
	found := slices.ContainsFunc(s.docs.Policies.Policies, is)
	for _, z := range s.docs.Policies.SecurityZones {
		found = found || slices.ContainsFunc(z.Policies, is)
	}
	return found
}

func text(s *string) string {
	if s == nil {
		return "none"
	}
	return strings.TrimSpace(*s)
}

// TestOracle asks both engines the same. What the engines may answer differently
// is in docs/decisions/ranger-deviations.md, and is not generated.
func TestOracle(t *testing.T) {
	j := start(t)
	type work struct {
		seed uint64
		set  *set
	}
	queue := make(chan work, 4)
	go func() {
		defer close(queue)
		for n := range *sets {
			s := newGenerator(*seed+uint64(n)).set(t, *requests)
			j.send(t, s)
			queue <- work{*seed + uint64(n), s}
		}
	}()
	n, allowed, masked, filtered, cold, different := 0, 0, 0, 0, 0, 0
	for w := range queue {
		e := eval.Compile(w.set.docs, eval.Options{StoreGroups: w.set.StoreGroups})
		var theirs reply
		j.receive(t, &theirs)
		if len(theirs.Answers) != len(w.set.Requests) {
			t.Fatalf("seed %d: %d answers to %d requests", w.seed, len(theirs.Answers), len(w.set.Requests))
		}
		for i, r := range w.set.Requests {
			a, b := decide(t, e, r), theirs.Answers[i]
			if b.Filter != nil { // deviation "quoted-macro": an empty list is NULL
				*b.Filter = strings.ReplaceAll(*b.Filter, "in ()", "in (NULL)")
			}
			b.Value = strings.ReplaceAll(b.Value, "in ()", "in (NULL)")
			n++
			if a.Allowed {
				allowed++
			}
			if a.Mask != "" {
				masked++
			}
			if a.Filter != nil {
				filtered++
			}
			var what []string
			if a.Allowed != b.Allowed && w.set.cold(a, b) {
				cold++
				a.AccessPolicy = b.AccessPolicy
			} else if a.Allowed != b.Allowed {
				what = append(what, "access")
			}
			if a.Mask != b.Mask || a.Value != b.Value {
				what = append(what, "mask")
			}
			if text(a.Filter) != text(b.Filter) {
				what = append(what, "filter")
			}
			if what == nil && (a.AccessPolicy != b.AccessPolicy || a.MaskPolicy != b.MaskPolicy || a.FilterPolicy != b.FilterPolicy) {
				what = append(what, "the policy named")
			}
			if what == nil {
				continue
			}
			if *dump != "" {
				body, _ := json.MarshalIndent(w.set, "", " ")
				if err := os.WriteFile(filepath.Join(*dump, strconv.FormatUint(w.seed, 10)+".json"), body, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if different++; different <= *show {
				question, _ := json.Marshal(r)
				mine, _ := json.Marshal(a)
				other, _ := json.Marshal(b)
				t.Errorf("seed %d, %s service, differs in %v:\n%s\n SQE    %s\n Ranger %s", w.seed, w.set.Type, what, question, mine, other)
			}
		}
	}
	t.Logf("seeds %d to %d, %d requests (access, mask and filter each): %d allowed, %d masked, %d filtered; %d left out as cold-policy, %d differ",
		*seed, *seed+uint64(*sets)-1, n, allowed, masked, filtered, cold, different)
	if cold*1000 > n {
		t.Errorf("%d times Ranger allows over the denial of a tag: too often for what policies that it has not used yet explain", cold)
	}
	if different > 0 {
		t.Errorf("%d requests are answered differently", different)
	}
	if allowed*20 < n || allowed > n*9/10 || masked*20 < n || filtered*40 < n {
		t.Error("the generator makes nothing worth comparing")
	}
}
