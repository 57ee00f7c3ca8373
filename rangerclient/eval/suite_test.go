package eval

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sqe/rangerclient/model"
	"sqe/rangerclient/servicedef"
)

var suite = flag.String("suite", "", "folder with test cases in the format of Ranger's policy engine tests (agents-common/src/test/resources/policyengine), read as well")

// suiteFile is a file of cases in the format that Ranger's TestPolicyEngine
// reads, as far as this engine answers it: policies, requests and what must come
// out. ServiceType names one of the known definitions in place of serviceDef.
type suiteFile struct {
	ServiceName   string
	ServiceDef    *suiteDef
	ServiceType   string
	Policies      []*model.Policy
	TagPolicyInfo *struct {
		ServiceName string
		ServiceDef  *suiteDef
		TagPolicies []*model.Policy
	}
	ServiceTags     *model.ServiceTags
	SecurityZones   map[string]*model.ZonePolicies
	ServiceConfig   model.Strings
	UserRoles       map[string][]string
	GroupRoles      map[string][]string
	RoleRoles       map[string][]string
	SuperUsers      []string
	SuperGroups     []string
	Tests           []suiteTest
	UpdatedPolicies json.RawMessage
}

type suiteDef struct {
	model.ServiceDef
	ContextEnrichers []struct{ EnricherOptions model.Strings }
}

type suiteTest struct {
	Name    string
	Request struct {
		Resource struct {
			Elements  map[string]any
			OwnerUser string
		}
		AccessType            string
		User                  string
		UserGroups            []string
		UserRoles             []string
		AccessTime            string
		RemoteIPAddress       string
		ResourceMatchingScope string
		// By element; "SELF" is the default.
		ResourceElementMatchingScopes map[string]string
		Context                       map[string]any
	}
	UserAttributes  map[string]map[string]string
	GroupAttributes map[string]map[string]string
	Result          *struct{ IsAllowed bool }
	DataMaskResult  *struct {
		AdditionalInfo struct{ MaskType, MaskedValue *string }
		PolicyID       int64
	}
	RowFilterResult *struct {
		AdditionalInfo struct{ FilterExpr *string }
		PolicyID       int64
	}
	// Refused is what this engine answers where it cannot decide.
	Refused bool
}

func TestSuite(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	if *suite != "" {
		more, err := filepath.Glob(filepath.Join(*suite, "test_policyengine_*.json"))
		if err != nil || len(more) == 0 {
			t.Fatalf("no cases in -suite: %v", err)
		}
		files = append(files, more...)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".json"), func(t *testing.T) { runSuite(t, f) })
	}
}

func runSuite(t *testing.T, path string) {
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var f suiteFile
	if err := json.Unmarshal(body, &f); err != nil {
		t.Fatalf("not understood: %v", err)
	}
	e := f.compile(t, filepath.Dir(path), nil)
	for _, x := range f.Tests {
		why := x.unasked()
		if why == "" {
			why = f.unknown(&x)
		}
		if why != "" {
			t.Logf("not asked, %s: %s", why, x.Name)
			continue
		}
		t.Run(x.Name, func(t *testing.T) {
			engine := e
			if x.UserAttributes != nil || x.GroupAttributes != nil {
				engine = f.compile(t, filepath.Dir(path), &model.UserStore{UserAttrMapping: x.UserAttributes, GroupAttrMapping: x.GroupAttributes})
			}
			x.run(t, engine)
		})
	}
}

func (f *suiteFile) compile(t *testing.T, dir string, users *model.UserStore) *Engine {
	t.Helper()
	p := &model.ServicePolicies{ServiceName: f.ServiceName, Policies: f.Policies, SecurityZones: f.SecurityZones, ServiceConfig: model.Strings{}}
	for k, v := range f.ServiceConfig {
		p.ServiceConfig[k] = v
	}
	p.ServiceConfig["ranger.plugin.super.users"] += "," + strings.Join(f.SuperUsers, ",")
	p.ServiceConfig["ranger.plugin.super.groups"] += "," + strings.Join(f.SuperGroups, ",")
	tags := f.ServiceTags
	enrichers := func(d *suiteDef) {
		for _, c := range d.ContextEnrichers {
			if name := c.EnricherOptions["serviceTagsFileName"]; name != "" {
				body, err := os.ReadFile(filepath.Join(dir, filepath.Base(name)))
				if err != nil {
					t.Fatal(err)
				}
				tags = &model.ServiceTags{}
				if err := json.Unmarshal(body, tags); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if f.ServiceDef != nil {
		p.ServiceDef = &f.ServiceDef.ServiceDef
		enrichers(f.ServiceDef)
	} else {
		def, err := servicedef.Definition(f.ServiceType)
		if err != nil {
			t.Fatal(err)
		}
		p.ServiceDef = def
	}
	if i := f.TagPolicyInfo; i != nil {
		p.TagPolicies = &model.TagPolicies{ServiceName: i.ServiceName, Policies: i.TagPolicies}
		if i.ServiceDef != nil {
			p.TagPolicies.ServiceDef = &i.ServiceDef.ServiceDef
			enrichers(i.ServiceDef)
		} else {
			def, err := servicedef.Definition("tag")
			if err != nil {
				t.Fatal(err)
			}
			p.TagPolicies.ServiceDef = def
		}
	}
	roles := &model.Roles{}
	for member, list := range f.UserRoles {
		for _, r := range list {
			roles.RangerRoles = append(roles.RangerRoles, &model.Role{Name: r, Users: []model.Member{{Name: member}}})
		}
	}
	for member, list := range f.GroupRoles {
		for _, r := range list {
			roles.RangerRoles = append(roles.RangerRoles, &model.Role{Name: r, Groups: []model.Member{{Name: member}}})
		}
	}
	for member, list := range f.RoleRoles {
		for _, r := range list {
			roles.RangerRoles = append(roles.RangerRoles, &model.Role{Name: r, Roles: []model.Member{{Name: member}}})
		}
	}
	return Compile(Documents{Policies: p, Tags: tags, Roles: roles, Users: users}, Options{})
}

// unasked says why a case is about something that this engine is never asked.
func (x *suiteTest) unasked() string {
	switch {
	case x.Request.AccessType == "" || x.Request.AccessType == "_any":
		return "any access"
	case x.Request.AccessType == "_super_user":
		return "the access of super users itself"
	case x.Request.Context["ACCESSTYPES"] != nil || x.Request.Context["ALLACCESSTYPES"] != nil || x.Request.Context["ALLACCESSTYPEGROUPS"] != nil:
		return "several accesses at once"
	case x.Request.ResourceMatchingScope != "":
		return "a listing scope"
	case slices.ContainsFunc(slices.Collect(maps.Values(x.Request.ResourceElementMatchingScopes)), func(s string) bool { return s != "SELF" }):
		return "a listing scope"
	case x.Request.Context["REQUESTED_RESOURCES"] != nil:
		return "resources accessed together"
	case x.Result == nil && x.DataMaskResult == nil && x.RowFilterResult == nil:
		return "no access, mask or row filter"
	}
	return ""
}

// unknown says why a case needs what Ranger's plugin library has only for its own
// tests and examples.
func (f *suiteFile) unknown(x *suiteTest) string {
	if f.ServiceDef == nil {
		return ""
	}
	for _, d := range f.ServiceDef.PolicyConditions {
		if strings.HasSuffix(d.Evaluator, ".RangerSimpleMatcher") && x.Request.Context != nil {
			return "a condition of Ranger's examples"
		}
	}
	for _, e := range f.ServiceDef.ContextEnrichers {
		if e.EnricherOptions["geolocation.meta.prefix"] != "" && x.Request.RemoteIPAddress != "" {
			return "the place of an address"
		}
	}
	return ""
}

// suiteTag is a tag in the context of a request.
type suiteTag struct {
	Type            string
	Attributes      model.Strings
	Options         model.Strings
	MatchType       string
	ValidityPeriods []model.Schedule
}

func (x *suiteTest) request(t *testing.T, e *Engine) *Request {
	t.Helper()
	when := time.Now()
	if s := x.Request.AccessTime; s != "" {
		var err error
		for _, layout := range []string{"20060102-15:04:05.000-0700", "20060102-15:04:05.000Z0700"} {
			if when, err = time.Parse(layout, s); err == nil {
				break
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	asserted := x.Request.UserRoles
	list, hasTags := x.Request.Context["TAGS"].(string)
	if hasTags {
		asserted = nil
	}
	q := NewRequest(e.Subject(x.Request.User, x.Request.UserGroups, asserted, nil, nil), x.Request.AccessType, when)
	q.Owner, q.ClientIP = x.Request.Resource.OwnerUser, x.Request.RemoteIPAddress
	q.Below = x.Request.ResourceMatchingScope == "SELF_OR_DESCENDANTS"
	for k, v := range x.Request.Context {
		if text, ok := v.(string); ok && k != "TAGS" {
			if q.Context == nil {
				q.Context = map[string]string{}
			}
			q.Context[k] = text
		}
	}
	if q.Access == "_any" {
		q.Access = ""
	}
	var names []string
	for n := range x.Request.Resource.Elements {
		names = append(names, n)
	}
	order := e.kinds[0].order
	for i := range names {
		for j := i; j > 0 && order[names[j]] < order[names[j-1]]; j-- {
			names[j], names[j-1] = names[j-1], names[j]
		}
	}
	for _, n := range names {
		switch v := x.Request.Resource.Elements[n].(type) {
		case string:
			q.With(n, false, v)
		case []any:
			var all []string
			for _, s := range v {
				all = append(all, fmt.Sprint(s))
			}
			q.With(n, false, all...)
		}
	}
	if !hasTags {
		e.FindTags(q)
		return q
	}
	if list == "" {
		return q
	}
	var tags []suiteTag
	list = strings.ReplaceAll(list, "'", `"`)
	if err := json.Unmarshal([]byte(list), &tags); err != nil {
		t.Fatalf("tags: %v", err)
	}
	for _, s := range tags {
		m, ok := map[string]MatchType{"": Self, "SELF": Self, "ANCESTOR": Ancestor, "DESCENDANT": Descendant, "SELF_AND_ALL_DESCENDANTS": SelfAndAllDescendants}[s.MatchType]
		if !ok {
			t.Fatalf("match type %s", s.MatchType)
		}
		tag := Tag{Type: s.Type, Attributes: s.Attributes, Match: m}
		periods := s.ValidityPeriods
		if text := s.Options["TAG_VALIDITY_PERIODS"]; text != "" {
			if err := json.Unmarshal([]byte(text), &periods); err != nil {
				t.Fatal(err)
			}
		}
		var err error
		if tag.validity, err = newSchedules(periods); err != nil {
			tag.undecided = true
		}
		q.Tags = append(q.Tags, tag)
	}
	return q
}

func (x *suiteTest) run(t *testing.T, e *Engine) {
	q := x.request(t, e)
	if x.Result != nil {
		if a := e.Access(q); a.Allowed != x.Result.IsAllowed {
			t.Errorf("allowed %t, want %t (%+v)", a.Allowed, x.Result.IsAllowed, a.Origin)
		}
	}
	if x.DataMaskResult != nil {
		r := e.evaluate(model.MaskPolicy, q, AllPolicies)
		want := x.DataMaskResult
		var typ, value *string
		if r.item != nil {
			typ = &r.item.mask.DataMaskType
			if v := r.item.mask.ValueExpr; v != "" {
				a := MaskAnswer{Value: v, tag: r.tag}
				v, err := a.Expand(q)
				if err != nil {
					t.Errorf("value %s: %v", a.Value, err)
				}
				value = &v
			}
		}
		if (r.refuse != "") != x.Refused {
			t.Errorf("refused %q", r.refuse)
		} else if !same(typ, want.AdditionalInfo.MaskType) || !same(value, want.AdditionalInfo.MaskedValue) || !x.Refused && id(e.Mask(q, TagsFirst).Origin) != want.PolicyID {
			t.Errorf("mask %s %s of policy %d, want %s %s of %d", text(typ), text(value), id(e.Mask(q, TagsFirst).Origin), text(want.AdditionalInfo.MaskType), text(want.AdditionalInfo.MaskedValue), want.PolicyID)
		}
	}
	if x.RowFilterResult != nil {
		r := e.evaluate(model.RowFilterPolicy, q, AllPolicies)
		want := x.RowFilterResult
		var sql *string
		if r.item != nil {
			a := FilterAnswer{SQL: *r.item.filter, tag: r.tag}
			s, err := a.Expand(q)
			if err != nil {
				t.Errorf("filter %s: %v", a.SQL, err)
			}
			sql = &s
		}
		if (r.refuse != "") != x.Refused {
			t.Errorf("refused %q", r.refuse)
		} else if !same(sql, want.AdditionalInfo.FilterExpr) || !x.Refused && id(e.Filter(q, AllPolicies).Origin) != want.PolicyID {
			t.Errorf("filter %s of policy %d, want %s of %d", text(sql), id(e.Filter(q, AllPolicies).Origin), text(want.AdditionalInfo.FilterExpr), want.PolicyID)
		}
	}
}

func id(o Origin) int64 {
	if o.Policy == nil {
		return -1
	}
	return o.Policy.ID
}

func same(a, b *string) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

func text(s *string) string {
	if s == nil {
		return "none"
	}
	return fmt.Sprintf("%q", *s)
}
