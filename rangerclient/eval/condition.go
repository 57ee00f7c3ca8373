package eval

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"sqe/rangerclient/model"
)

// condition decides one condition of an item or policy.
type condition interface {
	holds(q *Request) tri
}

// undecided is a condition that this engine cannot decide.
type undecided struct{}

func (undecided) holds(*Request) tri { return unknown }

func (c *compiler) compileConditions(p *model.Policy, list []model.Condition) []condition {
	var out []condition
	for _, m := range list {
		cond, why := c.condition(m)
		if why != "" {
			c.problem(p, "condition %q: %s; what the item gives is not given, what it takes stays taken", m.Type, why)
			cond = undecided{}
		}
		if a, ok := cond.(*addresses); ok && a.problem() != "" {
			c.problem(p, "condition %q: %s", m.Type, a.problem())
		}
		if s, ok := cond.(*script); ok && c.log != nil {
			var once sync.Once
			s.limited = func() {
				once.Do(func() {
					c.log.Warn("a condition of a policy needs too much time or memory: what its item gives is not given, what it takes stays taken",
						"service", c.service, "policy", p.ID)
				})
			}
		}
		if cond != nil {
			out = append(out, cond)
		}
	}
	return out
}

func nonBlank(values []string) []string {
	var out []string
	for _, v := range values {
		if strings.TrimSpace(v) != "" {
			out = append(out, strings.TrimSpace(v))
		}
	}
	return out
}

func (c *compiler) condition(m model.Condition) (condition, string) {
	d, ok := c.conditions[m.Type]
	if !ok {
		if m.Type != "_expression" {
			return nil, "the service does not define it"
		}
		d.Evaluator = "RangerScriptConditionEvaluator"
	}
	class := d.Evaluator[strings.LastIndex(d.Evaluator, ".")+1:]
	values := nonBlank(m.Values)
	switch class {
	case "RangerScriptTemplateConditionEvaluator":
		script := strings.ReplaceAll(strings.TrimRight(strings.TrimSpace(d.EvaluatorOptions["scriptTemplate"]), ";"), `"`, "'")
		attr, ok := strings.CutPrefix(script, "ctx.isAccessedAfter('")
		if ok {
			attr, ok = strings.CutSuffix(attr, "')")
		}
		if !ok {
			return nil, "its script is not known"
		}
		if len(m.Values) == 0 || strings.TrimSpace(m.Values[0]) == "" {
			return nil, "" // a blank value leaves no script: no effect
		}
		v := strings.TrimSpace(m.Values[0])
		return accessedAfter{attr, strings.EqualFold(v, "no") || strings.EqualFold(v, "false")}, ""
	case "RangerIpMatcher":
		return newAddresses(m.Values), ""
	case "RangerTimeOfDayMatcher":
		return newTimeOfDay(values)
	case "RangerTagsAllPresentConditionEvaluator":
		return tagsPresent{values, "all"}, ""
	case "RangerAnyOfExpectedTagsPresentConditionEvaluator":
		return tagsPresent{values, "any"}, ""
	case "RangerNoneOfExpectedTagsPresentConditionEvaluator":
		return tagsPresent{values, "none"}, ""
	case "RangerContextAttributeValueInCondition", "RangerContextAttributeValueNotInCondition":
		name := d.EvaluatorOptions["attributeName"]
		if name == "" {
			return nil, "it names no attribute"
		}
		return contextValue{name, values, strings.Contains(class, "NotIn")}, ""
	case "RangerScriptConditionEvaluator":
		return newScript(values)
	}
	return nil, "evaluator " + class + " is not known"
}

// accessedAfter holds when the present is after the date in an attribute of the
// tag; a date that is missing or does not parse counts as passed.
type accessedAfter struct {
	attribute string
	reverse   bool
}

// The two forms of dates that Ranger reads by itself. What follows a date is not
// looked at, so a time after the first form counts as midnight.
var (
	plainDate = regexp.MustCompile(`^[ \t]*(\d{1,6})/[ \t]*(\d{1,2})/[ \t]*(\d{1,2})`)
	atlasDate = regexp.MustCompile(`^[ \t]*(\d{1,6})-[ \t]*(\d{1,2})-[ \t]*(\d{1,2})T[ \t]*(\d{1,2}):[ \t]*(\d{1,2}):[ \t]*(\d{1,2})\.[ \t]*(\d{1,3})Z`)
)

func parseDate(s string) (time.Time, bool) {
	m := plainDate.FindStringSubmatch(s)
	if m == nil {
		if m = atlasDate.FindStringSubmatch(s); m == nil {
			return time.Time{}, false
		}
	}
	var n [7]int
	for i, digits := range m[1:] {
		n[i], _ = strconv.Atoi(digits)
	}
	t := time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], n[6]*int(time.Millisecond), time.UTC)
	// A thirteenth month or a sixtieth minute is none.
	ok := n[0] > 0 && int(t.Month()) == n[1] && t.Day() == n[2] && n[3] < 24 && n[4] < 60 && n[5] < 60
	return t, ok
}

func (c accessedAfter) holds(q *Request) tri {
	after := true
	if q.tag != nil {
		if t, ok := parseDate(q.tag.Attributes[c.attribute]); ok {
			after = !q.Time.Before(t)
			q.lasts(t)
		}
	}
	return decided(after != c.reverse)
}

func decided(b bool) tri {
	if b {
		return yes
	}
	return no
}

// timeOfDay holds within spans of the day, in minutes, in UTC.
type timeOfDay struct{ spans [][2]int }

func newTimeOfDay(values []string) (condition, string) {
	c := timeOfDay{}
	for _, v := range values {
		from, to, ok := strings.Cut(v, "-")
		a, okA := minuteOfDay(from)
		b, okB := minuteOfDay(to)
		if !ok || !okA || !okB {
			return nil, "a span of the day does not parse"
		}
		c.spans = append(c.spans, [2]int{a, b})
	}
	if len(c.spans) == 0 {
		return nil, ""
	}
	return c, ""
}

func minuteOfDay(s string) (int, bool) {
	s = strings.ToLower(strings.ReplaceAll(strings.TrimSpace(s), " ", ""))
	for _, layout := range []string{"3pm", "3:04pm", "15:04"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.Hour()*60 + t.Minute(), true
		}
	}
	return 0, false
}

func (c timeOfDay) holds(q *Request) tri {
	q.lasts(q.Time.Truncate(time.Minute).Add(time.Minute))
	t := q.Time.UTC()
	now := t.Hour()*60 + t.Minute()
	for _, s := range c.spans {
		in := now >= s[0] && now <= s[1]
		if s[0] > s[1] { // over midnight
			in = now >= s[0] || now <= s[1]
		}
		if in {
			return yes
		}
	}
	return no
}

// tagsPresent looks at all tags of the request.
type tagsPresent struct {
	values []string
	need   string
}

func (c tagsPresent) holds(q *Request) tri {
	n := 0
	for _, v := range c.values {
		for i := range q.Tags {
			if q.Tags[i].Type == v {
				n++
				break
			}
		}
	}
	switch c.need {
	case "all":
		return decided(n == len(c.values))
	case "any":
		return decided(n > 0 || len(c.values) == 0)
	}
	return decided(n == 0)
}

// contextValue looks at an attribute of the request; one that is not known is
// undecided.
type contextValue struct {
	name    string
	values  []string
	reverse bool
}

func (c contextValue) holds(q *Request) tri {
	v, ok := q.Context[c.name]
	if !ok {
		return unknown
	}
	return decided(contains(c.values, v) != c.reverse)
}

// newScript compiles a script condition; a blank one has no effect.
func newScript(values []string) (condition, string) {
	if len(values) == 0 {
		return nil, ""
	}
	s, err := compileScript(values[0])
	if err != nil {
		return nil, err.Error()
	}
	return s, ""
}
