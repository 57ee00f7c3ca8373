package eval

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dop251/goja"
)

// macros are the words that stand for calls in scripts. Source: Ranger's
// RangerRequestScriptEvaluator and RangerCommonConstants.
var macros = func() map[string]string {
	out := map[string]string{
		"HAS_TAG": "ctx.hasTag", "HAS_ANY_TAG": "ctx.hasAnyTag()", "HAS_NO_TAG": "!ctx.hasAnyTag()",
		"HAS_USER_ATTR": "ctx.hasUserAttr", "HAS_UG_ATTR": "ctx.hasUgAttr", "HAS_TAG_ATTR": "ctx.hasTagAttr",
		"IS_IN_GROUP": "ctx.isInGroup", "IS_IN_ROLE": "ctx.isInRole", "IS_IN_ANY_GROUP": "ctx.isInAnyGroup()", "IS_IN_ANY_ROLE": "ctx.isInAnyRole()",
		"IS_NOT_IN_ANY_GROUP": "!ctx.isInAnyGroup()", "IS_NOT_IN_ANY_ROLE": "!ctx.isInAnyRole()",
		"IS_ACCESS_TIME_AFTER": "ctx.isAccessTimeAfter", "IS_ACCESS_TIME_BEFORE": "ctx.isAccessTimeBefore", "IS_ACCESS_TIME_BETWEEN": "ctx.isAccessTimeBetween",
		"GET_USER_ATTR": "ctx.userAttr", "GET_USER_ATTR_Q": "ctx.userAttrQ",
	}
	for word, call := range map[string]string{"TAG_ATTR": "tagAttr", "UG_ATTR": "ugAttr"} {
		out["GET_"+word], out["GET_"+word+"_Q"] = "ctx."+call, "ctx."+call+"Q"
		out["GET_"+word+"_CSV"], out["GET_"+word+"_Q_CSV"] = "ctx."+call+"Csv", "ctx."+call+"CsvQ"
	}
	for word, call := range map[string]string{
		"TAG_NAMES": "tagNames", "UG_NAMES": "ugNames", "UR_NAMES": "urNames",
		"TAG_ATTR_NAMES": "tagAttrNames", "UG_ATTR_NAMES": "ugAttrNames", "USER_ATTR_NAMES": "userAttrNames",
	} {
		out["GET_"+word], out["GET_"+word+"_Q"] = "ctx."+call, "ctx."+call+"Q"
		out[word+"_CSV"], out[word+"_Q_CSV"] = "ctx."+call+"Csv()", "ctx."+call+"CsvQ()"
	}
	return out
}()

var macroWords = func() *regexp.Regexp {
	words := make([]string, 0, len(macros))
	for w := range macros {
		words = append(words, w)
	}
	slices.SortFunc(words, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return regexp.MustCompile(`\b(` + strings.Join(words, "|") + `)\b`)
}()

func expandMacros(source string) string {
	return macroWords.ReplaceAllStringFunc(source, func(w string) string { return macros[w] })
}

// list is what one of the functions that make lists has to list: "ugNames",
// "tagAttr" and so on. ok is false when there is no such function.
func (q *Request) list(function, argument string, groups, roles []string) (values []string, ok bool) {
	switch function {
	case "ugNames":
		return groups, true
	case "urNames":
		return sorted(roles), true
	case "tagNames":
		for i := range q.Tags {
			values = append(values, q.Tags[i].Type)
		}
		return slices.Compact(sorted(values)), true
	case "userAttr":
		if v, ok := q.Subject.Attributes[argument]; ok {
			values = []string{v}
		}
	case "ugAttr":
		for _, g := range groups {
			if v, ok := q.Subject.groupAttrs[g][argument]; ok {
				values = append(values, v)
			}
		}
	case "tagAttr":
		for i, t := range q.Tags {
			// The same tag on several resources counts once.
			same := func(o Tag) bool { return sameTag(o, t) }
			if v, ok := t.Attributes[argument]; ok && !slices.ContainsFunc(q.Tags[:i], same) {
				values = append(values, v)
			}
		}
		return sorted(values), true
	case "userAttrNames":
		for k := range q.Subject.Attributes {
			values = append(values, k)
		}
		return sorted(values), true
	case "ugAttrNames":
		for _, g := range groups {
			for k := range q.Subject.groupAttrs[g] {
				values = append(values, k)
			}
		}
		return slices.Compact(sorted(values)), true
	case "tagAttrNames":
		for i := range q.Tags {
			for k := range q.Tags[i].Attributes {
				values = append(values, k)
			}
		}
		return slices.Compact(sorted(values)), true
	default:
		return nil, false
	}
	return values, true
}

func sameTag(a, b Tag) bool {
	if a.Type != b.Type || a.Match != b.Match || len(a.Attributes) != len(b.Attributes) {
		return false
	}
	for k, v := range a.Attributes {
		if o, ok := b.Attributes[k]; !ok || o != v {
			return false
		}
	}
	return true
}

// tagAttribute finds an attribute on any tag of the request.
func (q *Request) tagAttribute(key string) (string, bool) {
	for i := range q.Tags {
		if v, ok := q.Tags[i].Attributes[key]; ok {
			return v, true
		}
	}
	return "", false
}

// bindLists gives scripts the functions that make text of lists: each plain,
// with quotes (Q), and in the two older forms (Csv, CsvQ). Their arguments after
// an attribute's name: what stands for an empty list, the separator, and the
// opening and closing quote.
func (q *Request) bindLists(rt *goja.Runtime, ctx *goja.Object, groups, roles []string) {
	for _, function := range []string{"tagNames", "ugNames", "urNames", "tagAttrNames", "ugAttrNames", "userAttrNames", "tagAttr", "ugAttr", "userAttr"} {
		named := strings.HasSuffix(function, "Attr")
		bind := func(name string, quote, old bool) {
			_ = ctx.Set(name, func(call goja.FunctionCall) goja.Value {
				args := call.Arguments
				key := ""
				if named {
					key = call.Argument(0).String()
					args = args[min(1, len(args)):]
				}
				if old {
					args = nil
				}
				arg := func(n int, otherwise string) string {
					switch {
					case n >= len(args):
						return otherwise
					case goja.IsNull(args[n]) || goja.IsUndefined(args[n]):
						return ""
					}
					return args[n].String()
				}
				values, _ := q.list(function, key, groups, roles)
				opening, closing := "", ""
				if quote {
					opening = arg(2, "'")
					closing = arg(3, opening)
				}
				quoted := make([]string, len(values))
				for i, v := range values {
					quoted[i] = opening + v + closing
				}
				text := strings.Join(quoted, arg(1, ","))
				if text == "" && arg(0, "") != "" {
					text = opening + arg(0, "") + closing
				}
				return rt.ToValue(text)
			})
		}
		bind(function, false, false)
		bind(function+"Q", true, false)
		bind(function+"Csv", false, true)
		bind(function+"CsvQ", true, true)
	}
}

// between reports whether the time of the request lies between two texts, "" for
// open, in the zone (default UTC); both ends count.
func (q *Request) between(rt *goja.Runtime, from, to, zone string) bool {
	at := time.UTC
	if zone != "" && zone != "undefined" {
		var err error
		if at, err = loadZone(zone); err != nil {
			panic(rt.NewTypeError("unknown time zone"))
		}
	}
	parse := func(s string) time.Time {
		for _, layout := range []string{"2006/01/02 15:04:05", "2006/01/02 15:04", "2006/01/02"} {
			if t, err := time.ParseInLocation(layout, s, at); err == nil {
				return t
			}
		}
		panic(rt.NewTypeError("a time does not parse"))
	}
	if from != "" && from != "null" && q.Time.Before(parse(from)) {
		return false
	}
	return to == "" || to == "null" || !q.Time.After(parse(to))
}
