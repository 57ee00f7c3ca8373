package eval_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"sqe/rangerclient/eval"
	"sqe/rangerclient/model"
	"sqe/rangerclient/servicedef"
)

// TestBefore: of two masks on a column for one user, that one acts which Before and
// Meet say, whatever else they are on and for.
func TestBefore(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	acted := map[string]int{}
	for _, typ := range []string{"hive", "trino"} {
		def, err := servicedef.Definition(typ)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 600 {
			made := func(id int64) *model.Policy {
				p := &model.Policy{ID: id, Service: "s", Name: pick("a", "b", "c", "d") + fmt.Sprint(id), PolicyType: model.MaskPolicy, Resources: map[string]model.Resource{}}
				p.PolicyPriority = r.IntN(5) / 4
				set := func(element string, values ...string) {
					p.Resources[element] = model.Resource{Values: strings.Split(pick(values...), ","), Excludes: r.IntN(12) == 0}
				}
				if typ == "trino" {
					set("catalog", "c", "c", "*")
					set("schema", "n", "n", "n?", "*")
				} else {
					set("database", "n", "c.n", "N")
				}
				set("table", "t", "t,u", "T", "t*", "*")
				set("column", "x", "x,y", "*", "?")
				item := &model.Item{Users: strings.Split("ann,"+pick("bob", "bob,cid,dan"), ","), Accesses: []model.Access{{Type: "select"}}}
				if r.IntN(3) == 0 {
					item.Groups = []string{"public"}
				}
				item.DataMaskInfo = &model.DataMaskInfo{DataMaskType: "MASK_HASH"}
				p.DataMaskPolicyItems = []*model.Item{item}
				return p
			}
			x, y := made(1), made(2)
			request := func() *eval.Request {
				q := eval.NewRequest(&eval.Subject{User: "ann", Groups: []string{"public"}}, "select", time.Now())
				if typ == "trino" {
					q.With("catalog", false, "c").With("schema", false, "n")
				} else {
					q.With("database", false, "n", "c.n")
				}
				return q.With("table", false, "t").With("column", false, "x")
			}
			a, b := eval.Meet(def, x, request()), eval.Meet(def, y, request())
			want := "none"
			switch {
			case a.Meets && b.Meets && eval.Before(def, x, y), a.Meets && !b.Meets:
				want = x.Name
			case b.Meets:
				want = y.Name
			}
			if eval.Before(def, x, y) == eval.Before(def, y, x) {
				t.Fatalf("%s %d: %+v and %+v are in no order", typ, n, x, y)
			}
			e := eval.Compile(eval.Documents{Policies: &model.ServicePolicies{ServiceName: "s", ServiceDef: def, Policies: []*model.Policy{x, y}}}, eval.Options{})
			got := "none"
			if m := e.Mask(request(), eval.TagsFirst); m.Origin.Policy != nil {
				got = m.Origin.Policy.Name
			}
			if got != want {
				t.Fatalf("%s %d: %s acts, want %s of\n%+v\n%+v", typ, n, got, want, x, y)
			}
			if a.Exact && !a.Meets {
				t.Fatalf("%s %d: exact and elsewhere", typ, n)
			}
			acted[fmt.Sprint(a, b)]++
		}
	}
	if len(acted) < 9 { // none, by a pattern, exactly; each with each
		t.Errorf("not everything was tried: %v", acted)
	}
}
