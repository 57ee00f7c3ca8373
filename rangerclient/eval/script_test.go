package eval

import (
	"strings"
	"testing"
	"time"
)

func scriptRequest() *Request {
	s := &Subject{
		User: "ann", Groups: []string{"sales", "emea"}, Held: []string{"analyst", "auditor"}, Active: []string{"analyst", "auditor"},
		Attributes: map[string]string{"region": "EU", "sites": "a,b,c", "level": "3"},
		groupAttrs: map[string]map[string]string{"sales": {"dept": "x"}, "emea": {"dept": "y"}},
	}
	q := NewRequest(s, "select", time.Date(2026, 6, 15, 10, 0, 0, 0, time.UTC)).With("database", false, "shop").With("table", false, "t")
	q.Owner = "olga"
	q.Tags = []Tag{{Type: "PII", Attributes: map[string]string{"level": "high", "score": "1", "from": "2026/01/01"}, Match: Self}, {Type: "FIN", Match: Ancestor}}
	q.tag = &q.Tags[0]
	return q
}

func TestScripts(t *testing.T) {
	for source, want := range map[string]tri{
		`true`: yes, `false`: no, `USER.region == 'EU'`: yes, `USER.region == 'US'`: no, `USER.none == 'x'`: no,
		`USER._name == 'ann' && REQ.accessType == 'select' && RES.tag == 'PII' && RES._ownerUser == 'olga'`: yes,
		`IS_IN_GROUP('sales') && !IS_IN_GROUP('hr')`:                                                        yes, `IS_IN_ROLE('auditor')`: yes, `IS_IN_ROLE('x') || IS_IN_ANY_ROLE`: yes,
		`IS_NOT_IN_ANY_GROUP`: no, `UGNAMES.includes('emea')`: yes, `URNAMES.indexOf('analyst') >= 0`: yes, `UG.sales.dept == 'x'`: yes,
		`UGA.mVal['dept'].length == 2 && UGA.sVal['dept'] == 'y'`: yes, `[[USER.sites]].includes('b')`: yes, `[[USER.sites,',']].intersects(['z','c'])`: yes,
		`TAG.level == 'high' && TAG._type == 'PII'`: yes, `TAGNAMES.includes('FIN')`: yes, `TAGS.PII.score < 2`: yes, `HAS_TAG('FIN') && !HAS_TAG('X')`: yes, `HAS_NO_TAG`: no,
		`HAS_USER_ATTR('region') && HAS_TAG_ATTR('level') && HAS_UG_ATTR('dept')`: yes, `GET_USER_ATTR('region') == 'EU'`: yes, `UG_NAMES_CSV == 'emea,sales'`: yes,
		`if (tagAttr.get('score') < 2) ctx.result = true;`: yes, `if (tagAttr.get('score') > 2) ctx.result = true;`: no, `ctx.isAccessedAfter('from')`: yes, `ctx.isAccessedBefore('from')`: no, `ctx.isAccessedBefore('missing')`: no,
		`IS_ACCESS_TIME_AFTER('2026/06/15 10:00')`: yes, `IS_ACCESS_TIME_BETWEEN('2026/06/15', '2026/06/15 11:30', 'Europe/Berlin')`: no, `IS_ACCESS_TIME_BEFORE('2026/06/16')`: yes,
		`new Date().getTime() == REQ.accessTime`: yes, `Math.random() == 0`: yes,
		// What fails, or says neither yes nor no, is undecided.
		`1`: unknown, `'true'`: unknown, `no.such.thing`: unknown, `throw 'x'`: unknown, `while (true) {}`: unknown, `(function f() { return f() })()`: unknown,
		`REQ.clientIPAddress == '1.2.3.4'`: unknown, `ctx.getRequestContextAttribute('country') == 'US'`: unknown, `require('fs')`: unknown, `IS_ACCESS_TIME_AFTER('soon')`: unknown,
		`java.lang.Runtime`: unknown,
	} {
		s, err := compileScript(source)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if got := s.holds(scriptRequest()); got != want {
			t.Errorf("%s: %d, want %d", source, got, want)
		}
	}
	for _, source := range []string{"a b", "(", strings.Repeat(" ", scriptText) + "true"} {
		if _, err := compileScript(source); err == nil {
			t.Errorf("%.20q compiles", source)
		}
	}
}

// TestScriptsOfNarrowedRoles: a script over roles that a session has narrowed is
// undecided where the two sets of roles give different answers.
func TestScriptsOfNarrowedRoles(t *testing.T) {
	q := scriptRequest()
	q.Subject.Active = []string{"analyst"}
	for source, want := range map[string]tri{`IS_IN_ROLE('auditor')`: unknown, `!IS_IN_ROLE('auditor')`: unknown, `IS_IN_ROLE('analyst')`: yes, `IS_IN_GROUP('sales')`: yes} {
		s, err := compileScript(source)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.holds(q); got != want {
			t.Errorf("%s: %d, want %d", source, got, want)
		}
	}
}

// TestScriptsKeepApart: what one script leaves behind, the next does not see.
func TestScriptsKeepApart(t *testing.T) {
	first, err := compileScript(`Object.getPrototypeOf([]).includes = function () { return true }; left = 1; USER.region = 'US'; true`)
	if err != nil {
		t.Fatal(err)
	}
	second, err := compileScript(`typeof left == 'undefined' && USER.region == 'EU' && !UGNAMES.includes('x')`)
	if err != nil {
		t.Fatal(err)
	}
	q := scriptRequest()
	if first.holds(q) != yes || second.holds(q) != yes {
		t.Error("a script saw another one")
	}
}

func TestExpand(t *testing.T) {
	for text, want := range map[string]string{
		`a = ${{USER.region}}`: `a = 'EU'`, `a = '${{USER.region}}'`: `a = 'EU'`, `a <= ${{USER.level}}`: `a <= 3`, `a = ${{GET_USER_ATTR_Q('level')}}`: `a = '3'`,
		`a = "x'y" and b = ${{USER._name}}`: `a = "x'y" and b = 'ann'`, `a = 'it''s' and b = ${{USER._name}}`: `a = 'it''s' and b = 'ann'`,
		`a = 'back\'slash' and b = ${{USER._name}}`: `a = 'back\'slash' and b = 'ann'`,
		`g in (${{UG_NAMES_Q_CSV}})`:                `g in ('emea','sales')`, `r in (${{GET_UR_NAMES_Q()}})`: `r in ('analyst','auditor')`, `d in (${{GET_UG_ATTR_Q_CSV('dept')}})`: `d in ('y','x')`,
		`l = ${{TAG.level}}`: `l = 'high'`, `t in (${{TAG_NAMES_Q_CSV}})`: `t in ('FIN','PII')`,
		`a = ${{USER.region.toLowerCase()}}`: `a = 'eu'`, `s in (${{[[USER.sites]]}})`: `s in ('a','b','c')`, `a = ${{RES.tag}}`: `a = 'PII'`,
		`nothing`:            `nothing`,
		`a = ${{USER.none}}`: ``, `a = ${{TAG.none}}`: ``, `a = ${{`: ``, `a = ${{}}`: ``, "`${{USER.region}}` = 1": ``, `a = "${{USER.region}}"`: ``, `-- ${{USER.region}}`: ``, `/* ${{USER.region}} */ a`: ``,
		`# ${{USER.region}}`: ``, `a = '${{UG_NAMES_Q_CSV}}'`: ``, `a = ${{throw 1}}`: ``, `a = ${{null}}`: ``, `a = ${{({})}}`: ``, `a = ${{while(true){}}}`: ``,
	} {
		got, err := scriptRequest().Expand(text, true)
		if want == "" && err == nil || want != "" && (err != nil || got != want) {
			t.Errorf("%s: %q %v, want %q", text, got, err, want)
		}
	}
	for _, value := range []string{`'`, `\`, `\'`, `'; drop table x; --`, "a\x00b", `1 or 1=1`, `１`, `--`, `0x41`, `1e9`} {
		q := scriptRequest()
		q.Subject.Attributes["region"] = value
		got, err := q.Expand("a = ${{USER.region}}", true)
		if err != nil || got != "a = '"+strings.NewReplacer(`\`, `\\`, `'`, `''`, "\x00", `\0`).Replace(value)+"'" {
			t.Errorf("%q becomes %s %v", value, got, err)
		}
	}
}

func FuzzWildcard(f *testing.F) {
	for _, s := range [][2]string{{"a*b?c", "axxbyc"}, {"**", ""}, {"?", "ä"}, {"*a*a*", "aaaa"}, {"x/*", `x/y\/z`}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 12 || len(text) > 12 {
			return
		}
		if got, want := wildcard(pattern, text, false), slow([]rune(pattern), []rune(text)); got != want && valid(pattern) && valid(text) {
			t.Errorf("%q %q: %t", pattern, text, got)
		}
		if wildcard(pattern, text, true) && !wildcard(pattern, text, false) {
			t.Errorf("%q %q: the narrow reading matches more", pattern, text)
		}
	})
}

func valid(s string) bool { return !strings.ContainsRune(strings.ToValidUTF8(s, "\uFFFD"), '\uFFFD') }

func slow(p, s []rune) bool {
	switch {
	case len(p) == 0:
		return len(s) == 0
	case p[0] == '*':
		return slow(p[1:], s) || len(s) > 0 && slow(p, s[1:])
	case len(s) == 0:
		return false
	}
	return (p[0] == '?' || p[0] == s[0]) && slow(p[1:], s[1:])
}
