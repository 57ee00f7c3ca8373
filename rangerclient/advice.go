package rangerclient

import (
	"fmt"
	"slices"
	"strings"

	"sqe/policy"
	"sqe/rangerclient/model"
)

// advise says what is allowed in the configuration of the policy server and
// probably not meant. Each entry says what to do.
func (s *State) advise() []policy.Finding {
	var out []policy.Finding
	say := func(format string, args ...any) {
		out = append(out, policy.Finding{Kind: policy.Advice, Text: fmt.Sprintf(format, args...)})
	}
	d := s.docs
	switch t := d.tables.TagPolicies; {
	case t == nil:
		say("service %s has no tag service, so no tag policy acts on rows and values; link one in the settings of the service (tagService)", d.tablesName)
	case t.ServiceDef != nil && (t.ServiceDef.RowFilterDef == nil || len(t.ServiceDef.RowFilterDef.AccessTypes) == 0):
		say("the tag service %s cannot hold row filters; a Ranger Admin offers them when ranger.servicedef.autopropagate.rowfilterdef.to.tag=true is set before its service definitions are made", t.ServiceName)
	}
	if d.roles == nil {
		say("the policy server gives no roles: items of policies for roles match only the roles that a login brings")
	}
	if d.users == nil {
		say("the policy server gives no users: groups and attributes are only those that a login brings; a Ranger Admin gives them to the users in userstore.download.auth.users of service %s, a folder in userstore.json", d.tablesName)
	}
	if d.tableTags == nil && d.tables.TagPolicies != nil {
		say("the policy server gives no tags: only tags of Iceberg tables count; name the user of this source in tag.download.auth.users of service %s", d.tablesName)
	}
	if d.objects == nil {
		say("no polaris-service is set: another source must decide who may read a table at all, or every table is refused")
	} else {
		for _, text := range s.objectAdvice() {
			say("%s", text)
		}
	}
	for _, p := range d.tables.Policies {
		if p.PolicyType == model.AccessPolicy && p.IsEnabled() && strings.HasPrefix(p.Name, "all - ") {
			say("service %s has the policies that Ranger makes with a service (%q and others); they are no gate for SQE, and a denial in them withholds columns: delete those that you do not need", d.tablesName, p.Name)
			break
		}
	}
	return out
}

// objectAdvice looks at how policies of the polaris service name the realm.
func (s *State) objectAdvice() []string {
	var foreign []string
	matching := 0
	for _, p := range s.docs.objects.Policies {
		root, ok := p.Resources["root"]
		if !ok || slices.ContainsFunc(root.Values, func(v string) bool { return v == s.options.Realm || strings.ContainsAny(v, "*?{") }) {
			matching++
			continue
		}
		foreign = append(foreign, root.Values...)
	}
	slices.Sort(foreign)
	foreign = slices.Compact(foreign)
	switch {
	case len(s.docs.objects.Policies) == 0:
		return []string{fmt.Sprintf("service %s has no policies, so nobody may read anything", s.docs.objectsName)}
	case len(foreign) > 0 && matching == 0:
		return []string{fmt.Sprintf("no policy of service %s is for the realm %q: they name %s; set realm in the configuration", s.docs.objectsName, s.options.Realm, strings.Join(foreign, ", "))}
	case len(foreign) > 0:
		return []string{fmt.Sprintf("policies of service %s for other realms than %q never act here: %s", s.docs.objectsName, s.options.Realm, strings.Join(foreign, ", "))}
	}
	return nil
}
