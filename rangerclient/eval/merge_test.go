package eval

import (
	"strings"
	"testing"
	"time"

	"sqe/rangerclient/model"
	"sqe/rangerclient/servicedef"
)

// merged is a case for what tags and resources say together. Its policies read
// "PRIORITY RESOURCE WHAT": RESOURCE is database.table, or #tag, and WHAT are items
// "+user" (allow), "-user" (deny), "!" (deny all else), "=user:MASK" (mask). The
// name of a policy is its place, from 1.
type merged struct {
	name, policies, tagged string // tagged: "database.table tag"
	user, want             string // "allowed 1", "denied 2", "denied", or the mask
}

// TestMerge: the answers are those of Ranger's own engine.
func TestMerge(t *testing.T) {
	for _, c := range []merged{
		{"a tag's denial stands", "0 db.t +u; 0 #A -u", "db.t A", "u", "denied 2"},
		{"an override lifts it", "1 db.t +u; 0 #A -u", "db.t A", "u", "allowed 1"},
		{"broad resources come first", "1 db.t +v; 1 db.* +u; 0 #A -u", "db.t A", "u", "allowed 2"},
		{"an override that says nothing lets it stand, and ends the evaluation", "1 db.* +v; 1 db.t +u; 0 #A -u", "db.t A", "u", "denied 3"},
		{"the same with denials, which come first", "1 db.t -v; 1 db.* +u; 0 #A -u", "db.t A", "u", "denied 3"},
		{"a policy without items says nothing", "1 db.t ; 1 db.* +u; 0 #A -u", "db.t A", "u", "allowed 2"},
		{"an allow by a policy with denials stands only before another", "1 db.t +u -v; 0 #A -u", "db.t A", "u", "denied 1"},
		{"one that is far from it does not count", "1 db.t +u -v; 0 db.x* +v; 0 #A -u", "db.t A", "u", "denied 1"},
		{"a pattern counts up to its wildcard", "1 db.t +u -v; 0 db.?x +v; 0 #A -u", "db.t A", "u", "allowed 1"},
		{"a lower tag does not deny what a higher one allows", "1 #A +u -v; 0 #B -u", "db.t A B", "u", "allowed 1"},
		{"at the same priority it does", "0 #A +u -v; 0 #B -u", "db.t A B", "u", "denied 2"},
		{"after a tag allows, a resource denies", "0 #A +u; 0 db.t -u", "db.t A", "u", "denied 2"},
		{"unless a policy without denials comes first", "0 #A +u; 1 db.t +v; 0 db.t -u", "db.t A", "u", "allowed 1"},
		{"also one that is only near", "0 #A +u; 1 db.?x +v; 0 db.t -u", "db.t A", "u", "allowed 1"},
		{"but not a distant one", "0 #A +u; 1 db.x +v; 0 db.t -u", "db.t A", "u", "denied 3"},
		{"or one below", "0 #A +u; 1 db.t.c +v; 0 db.t -u", "db.t A", "u", "allowed 1"},
		{"deny all else of a tag", "0 #A !; 0 db.t +u", "db.t A", "u", "denied 1"},
		{"a tag's mask before a resource's", "0 db.t.c =u:MASK; 0 #A =u:MASK_HASH", "db.t A", "u", "MASK_HASH of 2"},
		{"an override's mask before a tag's", "1 db.t.c =u:MASK; 0 #A =u:MASK_HASH", "db.t A", "u", "MASK of 1"},
		{"an override for somebody else ends it", "1 db.t.c =v:MASK; 1 db.t.c =u:MASK_NULL; 0 #A =u:MASK_HASH", "db.t A", "u", "MASK_HASH of 3"},
		{"without tags the first that matches", "0 db.t.c =v:MASK; 0 db.t.c =u:MASK_NULL", "", "u", "MASK_NULL of 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, column := c.documents(t)
			e := Compile(d, Options{})
			q := NewRequest(e.Subject(c.user, nil, nil, nil, nil), "select", time.Date(2026, 6, 15, 10, 0, 0, 0, time.UTC)).With("database", false, "db").With("table", false, "t")
			if column {
				q.With("column", false, "c")
			}
			e.FindTags(q)
			var got string
			if column {
				m := e.Mask(q, TagsFirst)
				got = m.Type + " of " + m.Origin.Policy.Name
			} else {
				a := e.Access(q)
				got = map[bool]string{true: "allowed", false: "denied"}[a.Allowed]
				if a.Origin.Policy != nil {
					got += " " + a.Origin.Policy.Name
				}
			}
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func (c merged) documents(t *testing.T) (d Documents, column bool) {
	t.Helper()
	def := func(typ string) *model.ServiceDef {
		d, err := servicedef.Definition(typ)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	one := int64(1)
	p := &model.ServicePolicies{ServiceName: "s", PolicyVersion: &one, ServiceDef: def("hive"), TagPolicies: &model.TagPolicies{ServiceName: "tag", PolicyVersion: &one, ServiceDef: def("tag")}}
	resource := func(text string) map[string]model.Resource {
		out := map[string]model.Resource{}
		for i, v := range strings.Split(text, ".") {
			out[[]string{"database", "table", "column"}[i]] = model.Resource{Values: []string{v}}
		}
		return out
	}
	for n, text := range strings.Split(c.policies, "; ") {
		f := strings.Fields(text)
		x := &model.Policy{ID: int64(n + 1), Name: string(rune('1' + n)), Service: "s", PolicyPriority: int(f[0][0] - '0')}
		prefix := ""
		if tag, ok := strings.CutPrefix(f[1], "#"); ok {
			prefix, x.Resources = "hive:", map[string]model.Resource{"tag": {Values: []string{tag}}}
			p.TagPolicies.Policies = append(p.TagPolicies.Policies, x)
		} else {
			x.Resources = resource(f[1])
			p.Policies = append(p.Policies, x)
		}
		for _, what := range f[2:] {
			i := &model.Item{Users: []string{what[1:]}, Accesses: []model.Access{{Type: prefix + "select"}}}
			switch what[0] {
			case '+':
				x.PolicyItems = append(x.PolicyItems, i)
			case '-':
				x.DenyPolicyItems = append(x.DenyPolicyItems, i)
			case '!':
				x.DenyAllElse = true
			case '=':
				column, x.PolicyType = true, model.MaskPolicy
				user, mask, _ := strings.Cut(what[1:], ":")
				i.Users, i.DataMaskInfo = []string{user}, &model.DataMaskInfo{DataMaskType: prefix + mask}
				x.DataMaskPolicyItems = append(x.DataMaskPolicyItems, i)
			}
		}
	}
	d.Policies = p
	if f := strings.Fields(c.tagged); len(f) > 0 {
		d.Tags = &model.ServiceTags{Op: "add_or_update", ServiceName: "s", TagVersion: &one, Tags: map[string]model.Tag{}, ResourceToTagIDs: map[string][]int64{}}
		d.Tags.ServiceResources = []model.ServiceResource{{ID: 1, ResourceElements: resource(f[0])}}
		for n, tag := range f[1:] {
			id := int64(n + 1)
			d.Tags.Tags[string(rune('1'+n))] = model.Tag{ID: id, Type: tag}
			d.Tags.ResourceToTagIDs["1"] = append(d.Tags.ResourceToTagIDs["1"], id)
		}
	}
	return d, column
}
