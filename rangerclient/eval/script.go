package eval

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dop251/goja"
)

// Scripts of policies are JavaScript over the request: no I/O, no clock but the
// time of the request, no random numbers, and limits on time, stack and text. A
// script that fails, takes too long or answers with something else than true or
// false is undecided.

const (
	// By the clock, so that a busy machine must not matter.
	scriptTime  = 750 * time.Millisecond
	scriptDepth = 100
	scriptText  = 64 << 10 // bytes of source
)

// script is a compiled script.
type script struct {
	program *goja.Program
	plain   bool   // needs no limits on built-ins
	clock   bool   // looks at the time
	roles   bool   // looks at roles, which a session may have narrowed
	limited func() // is told that a limit was met; nil: nobody asks
}

var (
	split      = regexp.MustCompile(`\[\[\s*([^\[\]]+?)\s*(?:,\s*(?:'([^']*)'|"([^"]*)"))?\s*\]\]`)
	roleWords  = regexp.MustCompile(`\b(URNAMES|urNames|userRoles|getUserRoles|isInRole|isInAnyRole)`)
	clockWords = regexp.MustCompile(`\b(Date|accessTime|isAccess\w+|getAccessTime)\b`)
	errScript  = errors.New("its script failed")
	errNoValue = errors.New("its expression has no value")
)

func compileScript(source string) (*script, error) {
	if len(source) > scriptText {
		return nil, errors.New("its script is too long")
	}
	// [[x]] is x split at commas, [[x,'s']] split at s.
	source = split.ReplaceAllStringFunc(source, func(m string) string {
		p := split.FindStringSubmatch(m)
		sep := p[2] + p[3]
		if sep == "" {
			sep = ","
		}
		return "(" + p[1] + ").split('" + escapeJS(sep) + "')"
	})
	source = expandMacros(source)
	tree, plain, err := measured(source)
	if errors.Is(err, errLimit) {
		return nil, err
	}
	if err != nil {
		return nil, errors.New("its script does not parse")
	}
	p, err := goja.CompileAST(tree, false)
	if err != nil {
		return nil, errors.New("its script does not parse")
	}
	return &script{program: p, plain: plain, clock: clockWords.MatchString(source), roles: roleWords.MatchString(source)}, nil
}

func escapeJS(s string) string { return strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) }

// holds implements condition.
func (s *script) holds(q *Request) tri {
	out := s.decide(q, q.Subject.Active)
	if s.roles && !slices.Equal(q.Subject.Active, q.Subject.Held) && s.decide(q, q.Subject.Held) != out {
		return unknown
	}
	return out
}

func (s *script) decide(q *Request, roles []string) tri {
	v, ctx, err := s.run(q, roles)
	if err != nil {
		return unknown
	}
	if v == nil || goja.IsUndefined(v) || goja.IsNull(v) {
		v = ctx.Get("result")
	}
	if b, ok := v.Export().(bool); ok {
		return decided(b)
	}
	return unknown
}

// text runs the script for its value: texts, or a list of texts.
func (s *script) text(q *Request) ([]string, error) {
	v, _, err := s.run(q, q.Subject.Active)
	if err != nil {
		return nil, err
	}
	if v == nil || goja.IsUndefined(v) || goja.IsNull(v) {
		return nil, errNoValue
	}
	switch x := v.Export().(type) {
	case []any:
		var out []string
		for _, m := range x {
			t, ok := m.(string)
			if !ok {
				return nil, errNoValue
			}
			out = append(out, t)
		}
		return out, nil
	case string, bool, int64, float64:
		return []string{v.String()}, nil
	}
	return nil, errNoValue
}

func (s *script) run(q *Request, roles []string) (v goja.Value, ctx *goja.Object, err error) {
	defer func() {
		if recover() != nil {
			err = errScript
		}
	}()
	if s.clock {
		q.lasts(q.Time.Add(time.Second))
	}
	rt := goja.New()
	rt.SetMaxCallStackSize(scriptDepth)
	rt.SetTimeSource(func() time.Time { return q.Time })
	rt.SetRandSource(func() float64 { return 0 })
	limits := &limiter{rt: rt}
	_ = rt.GlobalObject().DefineDataProperty(measureName, rt.ToValue(limits.measure), goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_FALSE)
	if !s.plain {
		limits.guard()
	}
	ctx = q.bind(rt, roles)
	if !s.plain {
		limits.seal()
	}
	start := time.Now()
	stop := limits.watch()
	defer stop()
	v, err = rt.RunProgram(s.program)
	if limits.over.Load() || time.Since(start) >= scriptTime {
		if s.limited != nil {
			s.limited()
		}
		return nil, nil, errLimit
	}
	if err != nil {
		return nil, nil, errScript
	}
	return v, ctx, nil
}

// bind puts what scripts see into the runtime, under Ranger's names. Source:
// RangerRequestScriptEvaluator.
func (q *Request) bind(rt *goja.Runtime, roles []string) *goja.Object {
	object := func(m map[string]string, more ...string) *goja.Object {
		o := rt.NewObject()
		for k, v := range m {
			_ = o.Set(k, v)
		}
		for i := 0; i+1 < len(more); i += 2 {
			_ = o.Set(more[i], more[i+1])
		}
		return o
	}
	list := func(l []string) *goja.Object {
		out := make([]any, len(l))
		for i, s := range l {
			out[i] = s
		}
		return rt.NewArray(out...)
	}
	set := func(name string, v any) { _ = rt.Set(name, v) }
	groups := sorted(q.Subject.Groups)

	res := rt.NewObject()
	if q.tag != nil {
		_ = res.Set("tag", q.tag.Type) // the resource of a tag policy is the tag
	} else {
		for _, p := range q.elements {
			if len(p.names) > 0 {
				_ = res.Set(p.name, p.names[0].text)
			}
		}
	}
	if q.Owner != "" {
		_ = res.Set("_ownerUser", q.Owner)
	}
	ug, uga, single, multi := rt.NewObject(), rt.NewObject(), rt.NewObject(), map[string][]string{}
	for _, g := range groups {
		attrs := q.Subject.groupAttrs[g]
		_ = ug.Set(g, object(attrs, "_name", g))
		for k, v := range attrs {
			if len(multi[k]) == 0 {
				_ = single.Set(k, v)
			}
			multi[k] = append(multi[k], v)
		}
	}
	many := rt.NewObject()
	for k, v := range multi {
		_ = many.Set(k, list(v))
	}
	_ = uga.Set("sVal", single)
	_ = uga.Set("mVal", many)
	tagObject := func(t *Tag) *goja.Object {
		if t == nil {
			return rt.NewObject()
		}
		return object(t.Attributes, "_type", t.Type, "_matchType", matchNames[t.Match])
	}
	var tagNames []string
	tags := rt.NewObject()
	for i := range q.Tags {
		if !slices.Contains(tagNames, q.Tags[i].Type) {
			tagNames = append(tagNames, q.Tags[i].Type)
			_ = tags.Set(q.Tags[i].Type, tagObject(&q.Tags[i]))
		}
	}
	req := rt.NewObject()
	for k, v := range map[string]any{
		"accessType": q.Access, "accessTime": q.Time.UnixMilli(), "user": q.Subject.User, "userGroups": list(groups), "userRoles": list(roles),
		"resource": res,
	} {
		_ = req.Set(k, v)
	}
	absent := func(goja.FunctionCall) goja.Value { panic(rt.NewTypeError("not known")) }
	clientIP := func(call goja.FunctionCall) goja.Value {
		if a := q.address(); a != "" {
			return rt.ToValue(a)
		}
		return absent(call)
	}
	// Connections come straight from the client, so that both are one address.
	for _, name := range []string{"clientIPAddress", "remoteIPAddress"} {
		_ = req.DefineAccessorProperty(name, rt.ToValue(clientIP), nil, goja.FLAG_FALSE, goja.FLAG_TRUE)
	}
	_ = req.Set("forwardedAddresses", list(nil))
	for _, name := range []string{"action", "clientType", "clusterName", "clusterType", "requestData"} {
		_ = req.DefineAccessorProperty(name, rt.ToValue(absent), nil, goja.FLAG_FALSE, goja.FLAG_TRUE)
	}
	user := object(q.Subject.Attributes, "_name", q.Subject.User)
	for name, v := range map[string]any{
		"REQ": req, "RES": res, "USER": user, "UG": ug, "UGA": uga, "UGNAMES": list(groups), "URNAMES": list(roles),
		"TAG": tagObject(q.tag), "TAGS": tags, "TAGNAMES": list(tagNames),
	} {
		set(name, v)
	}
	whole := rt.NewObject()
	for name, v := range map[string]any{"request": req, "tags": rt.Get("TAGS"), "tagNames": rt.Get("TAGNAMES"), "tag": rt.Get("TAG")} {
		_ = whole.Set(name, v)
	}
	set("_ctx", whole)
	set("J", rt.Get("JSON").ToObject(rt).Get("stringify"))
	_, _ = rt.RunString(`Object.defineProperty(Object.getPrototypeOf([]), 'intersects', {value: function (o) { return o.some(x => this.indexOf(x) >= 0) }});`)

	ctx := rt.NewObject()
	_ = ctx.Set("result", false)
	has := func(l []string) func(string) bool { return func(s string) bool { return slices.Contains(l, s) } }
	attribute := func(key string) (string, bool) {
		if q.tag == nil {
			return "", false
		}
		v, ok := q.tag.Attributes[key]
		return v, ok
	}
	after := func(key string) bool { return accessedAfter{attribute: key}.holds(q) == yes }
	before := func(key string) bool {
		text, _ := attribute(key)
		t, ok := parseDate(text)
		return ok && !q.Time.After(t)
	}
	between := func(from, to, zone string) bool { return q.between(rt, from, to, zone) }
	attributeValue := func(call goja.FunctionCall) goja.Value {
		attributes, key := map[string]string(nil), call.Argument(0).String()
		if q.tag != nil {
			attributes = q.tag.Attributes
		}
		if len(call.Arguments) > 1 { // (type, name)
			attributes = nil
			for i := range q.Tags {
				if q.Tags[i].Type == key && len(q.Tags[i].Attributes) > 0 {
					attributes = q.Tags[i].Attributes
					break
				}
			}
			key = call.Argument(1).String()
		}
		if v, ok := attributes[key]; ok {
			return rt.ToValue(v)
		}
		return goja.Null()
	}
	optional := func(m map[string]string) func(string) any {
		return func(k string) any {
			if v, ok := m[k]; ok {
				return v
			}
			return nil
		}
	}
	var tagAttributes map[string]string
	if q.tag != nil {
		tagAttributes = q.tag.Attributes
	}
	context := func(call goja.FunctionCall) goja.Value {
		if v, ok := q.Context[call.Argument(0).String()]; ok {
			return rt.ToValue(v)
		}
		return absent(call)
	}
	var resource []string
	for _, p := range q.elements {
		if len(p.names) > 0 {
			resource = append(resource, p.names[0].text)
		}
	}
	for name, f := range map[string]any{
		"isAccessedAfter": after, "isAccessedBefore": before, "isInGroup": has(groups), "isInRole": has(roles), "hasTag": has(tagNames),
		"isInAnyGroup": func() bool { return len(groups) > 0 }, "isInAnyRole": func() bool { return len(roles) > 0 },
		"hasAnyTag":   func() bool { return len(tagNames) > 0 },
		"hasUserAttr": func(k string) bool { _, ok := q.Subject.Attributes[k]; return ok || k == "_name" },
		"hasUgAttr":   func(k string) bool { return k == "_name" && len(groups) > 0 || len(multi[k]) > 0 },
		"hasTagAttr":  func(k string) bool { _, ok := q.tagAttribute(k); return ok },
		"getUser":     func() string { return q.Subject.User }, "getUserGroups": func() any { return list(groups) }, "getUserRoles": func() any { return list(roles) },
		"getRequestContextAttribute": context, "getClientIPAddress": clientIP,
		"getResource": func() any {
			if len(q.Tags) == 0 { // Ranger knows it where there are tags
				return nil
			}
			return strings.Join(resource, "/")
		},
		"isAccessTypeAny":   func() bool { return q.Access == "" },
		"getAttributeValue": attributeValue, "getAllTagTypes": func() any { return list(tagNames) },
		"getCurrentTagType": func() any {
			if q.tag == nil {
				return nil
			}
			return q.tag.Type
		},
		"isAccessTimeAfter":   func(from, zone string) bool { return between(from, "", zone) },
		"isAccessTimeBefore":  func(to, zone string) bool { return between("", to, zone) },
		"isAccessTimeBetween": between,
		"setResult":           func(b bool) { _ = ctx.Set("result", b) }, "getResult": func() any { return ctx.Get("result") },
	} {
		_ = ctx.Set(name, f)
	}
	q.bindLists(rt, ctx, groups, roles)
	set("ctx", ctx)
	attrs := object(tagAttributes)
	_ = attrs.Set("get", optional(tagAttributes))
	set("tagAttr", attrs)
	set("tag", tagObject(q.tag))
	return ctx
}

var matchNames = map[MatchType]string{
	Self: "SELF", SelfAndAllDescendants: "SELF_AND_ALL_DESCENDANTS", Ancestor: "ANCESTOR", Descendant: "DESCENDANT",
}
