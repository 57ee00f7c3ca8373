package policystore

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sqe/rangerclient/model"
)

// signature is Ranger's resource signature of a policy: equal for two policies
// that may not exist together in a service. A disabled policy has one of its own.
// Source: spec of RangerPolicyResourceSignature in Ranger 2.9; the hash of a text
// in Java's notation.
func signature(p *model.Policy) string {
	resource := elements(p.Resources)
	if len(p.AdditionalResources) > 0 {
		all := []string{resource}
		for _, r := range p.AdditionalResources {
			all = append(all, elements(r))
		}
		slices.Sort(all)
		resource = list(all)
	}
	if len(p.ValiditySchedules) > 0 {
		var all []string
		for _, s := range p.ValiditySchedules {
			all = append(all, scheduleText(s))
		}
		resource += list(all)
	}
	if p.PolicyPriority != 0 {
		resource += fmt.Sprint(p.PolicyPriority)
	}
	resource += p.ZoneName
	if len(p.Conditions) > 0 {
		byType := map[string]string{}
		for _, c := range p.Conditions {
			byType[c.Type] = list(slices.Sorted(slices.Values(c.Values)))
		}
		resource += "{RangerPolicyConditions=" + treeMap(byType) + "}"
	}
	if !p.IsEnabled() {
		resource += p.GUID
	}
	return hashed(fmt.Sprintf("{version=1,type=%d,resource=%s}", p.PolicyType, resource))
}

// resourceSignature is the signature of a resource that carries tags.
func resourceSignature(e map[string]model.Resource) string {
	return hashed("{version=1,resource=" + elements(e) + "}")
}

func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func elements(of map[string]model.Resource) string {
	m := map[string]string{}
	for name, r := range of {
		m[name] = fmt.Sprintf("{values=%s,excludes=%t,recursive=%t}", list(slices.Sorted(slices.Values(r.Values))), r.Excludes, r.Recursive)
	}
	return treeMap(m)
}

// treeMap is a sorted map in Java's notation.
func treeMap(m map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, k+"="+m[k])
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func scheduleText(s model.Schedule) string {
	null := func(text string) string {
		if text == "" {
			return "null"
		}
		return text
	}
	var all []string
	for _, r := range s.Recurrences {
		t, i := r.Schedule, r.Interval
		all = append(all, fmt.Sprintf("{RangerValidityRecurrence= { Schedule={ minute=%s, hour=%s, dayOfMonth=%s, dayOfWeek=%s, month=%s, year=%s }ValidityInterval={ Interval={days=%d, hours=%d, minutes=%d } }",
			null(t.Minute), null(t.Hour), null(t.DayOfMonth), null(t.DayOfWeek), null(t.Month), null(t.Year), i.Days, i.Hours, i.Minutes))
	}
	return fmt.Sprintf("RangerValiditySchedule={, startTime=%s, endTime=%s, timeZone=%s, recurrences=%s}",
		null(s.StartTime), null(s.EndTime), null(s.TimeZone), list(all))
}
