package eval

import (
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"sqe/rangerclient/model"
)

// nasty are scripts that would work or allocate without end.
var nasty = map[string]string{
	"backtracking":            `/(?=a)(a+)+$/.test('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab')`,
	"backtracking twice":      `try { /(?=a)(a+)+$/.test('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab') } catch (e) {}; true`,
	"backtracking negated":    `!/(a+)+\1$/.test('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab')`,
	"backtracking by replace": `'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab'.replace(/(?=a)(a+)+$/g, 'x') == ''`,
	"backtracking by text":    `'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab'.match('(?=a)(a+)+$') == null`,
	"large expression":        `new RegExp('((a{0,100}){0,100}){0,100}b').test('a')`,
	"large literal":           `/((a{0,100}){0,100}){0,100}b/.test('a')`,
	"fill":                    `new Array(30000000).fill(1).length > 0`,
	"fill by constructor":     `[].constructor(30000000).fill(1).length > 0`,
	"fill by length":          `a = []; a.length = 30000000; a.fill(1); true`,
	"from":                    `Array.from({length: 30000000}).length > 0`,
	"apply":                   `Array.apply(null, {length: 30000000}).length > 0`,
	"repeat":                  `'x'.repeat(1e9).length > 0`,
	"repeat by method":        `Object.getPrototypeOf('').repeat.call('x', 1e9).length > 0`,
	"repeat by key":           `'x'['rep' + 'eat'](1e9).length > 0`,
	"repeat by constant key":  `'x'['repeat'](1e9).length > 0`,
	"padStart":                `'x'.padStart(1e9).length > 0`,
	"padEnd":                  `'x'.padEnd(1e9, 'abc').length > 0`,
	"join":                    `Array(30000000).join('x').length > 0`,
	"join of large":           `[1,1,1,1,1,1,1,1,1,1].map(() => 'x'.repeat(60000)).join('').length > 0`,
	"concat":                  `s = 'x'; for (i = 0; i < 40; i++) s = s.concat(s); true`,
	"doubling":                `s = 'x'; for (i = 0; i < 40; i++) s += s; true`,
	"doubling with plus":      `s = 'x'; for (i = 0; i < 40; i++) s = s + s; true`,
	"doubling in template":    "s = 'x'; for (i = 0; i < 40; i++) s = `${s}${s}`; true",
	"doubling a member":       `o = {s: 'x'}; [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32].forEach(() => { o.s += o.s }); true`,
	"doubling a list":         `a = [1]; for (i = 0; i < 40; i++) a = a.concat(a); true`,
	"spreading a list":        `a = [1]; for (i = 0; i < 40; i++) a = [...a, ...a]; true`,
	"pushing a list":          `a = [1]; for (i = 0; i < 40; i++) a.push(...a); true`,
	"replace":                 `'x'.repeat(60000).replace(/x/g, 'y'.repeat(60000)).length > 0`,
	"replace with text":       `'x'.repeat(60000).replace(/x/g, '$&$&$&$&$&$&').length > 0`,
	"replace by function":     `big = 'y'.repeat(60000); 'x'.repeat(60000).replace(/x/g, () => big).length > 0`,
	"replace by built-in":     `'x'.repeat(60000).replace(/x/g, Object.getPrototypeOf('').toString.bind('y'.repeat(60000))).length > 0`,
	"search in search":        `a = Array.from({length: 60000}).fill(1); a.map(Object.getPrototypeOf([]).indexOf.bind(a, 2)).length > 0`,
	"JSON":                    `a = [1]; for (i = 0; i < 40; i++) a = [a, a]; JSON.stringify(a).length > 0`,
	"JSON by macro":           `a = [1]; for (i = 0; i < 40; i++) a = [a, a]; J(a).length > 0`,
	"JSON, deep":              `a = []; for (i = 0; i < 200000; i++) a = [a]; JSON.stringify(a).length > 0`,
	"text of lists":           `a = ['x']; for (i = 0; i < 40; i++) a = [a, a]; ('' + a).length > 0`,
	"text of lists, deep":     `a = []; for (i = 0; i < 200000; i++) a = [a]; String(a).length == 0`,
	"flat":                    `a = [1]; for (i = 0; i < 40; i++) a = [a, a]; a.flat(100).length > 0`,
	"objects":                 `a = []; while (true) a.push({x: 1})`,
	"objects in objects":      `a = {}; while (true) a = {a: a, b: [1, 2, 3]}`,
	"members":                 `o = {}; i = 0; while (true) o['k' + i++] = i`,
	"buffer":                  `new ArrayBuffer(1e9).byteLength > 0`,
	"typed list":              `new Float64Array(1e8).length > 0`,
	"big integer":             `(2n ** 100000000n) > 0n`,
	"big integer by function": `BigInt(2) ** BigInt(100000000) > 0`,
	"eval":                    `eval("s = 'x'; for (i = 0; i < 40; i++) s += s; true")`,
	"Function":                `[].map.constructor("s = 'x'; for (i = 0; i < 40; i++) s += s; return true")()`,
	"generator":               `(function* () {}).constructor("s = 'x'; for (i = 0; i < 40; i++) s += s; return true")().next().done`,
	"async function":          `(async function () {}).constructor("s = 'x'; for (i = 0; i < 40; i++) s += s")(); true`,
	"join of objects":         `big = 'y'.repeat(60000); o = {toString() { return big }}; Array.from({length: 60000}).fill(o).join('').length > 0`,
	"concat of objects":       `big = 'y'.repeat(60000); o = {toString() { return big }}; 'x'.concat(...Array.from({length: 60000}).fill(o)).length > 0`,
	"repeat of an object":     `big = 'y'.repeat(60000); ''.repeat.call({toString() { return big }}, 1e5).length > 0`,
	"repeat by an object":     `n = 0; 'x'.repeat({valueOf() { return n++ ? 1e9 : 1 }}).length > 0`,
	"a length that changes":   `n = 0; Array.from({get length() { return n++ ? 1e8 : 1 }}).length > 0`,
	"a length of an object":   `n = 0; Array.from({length: {valueOf() { return n++ ? 1e8 : 1 }}}).length > 0`,
	"a defined length":        `n = 0; o = {}; Object.defineProperty(o, 'length', {get() { return n++ ? 1e8 : 1 }}); Array.from(o).length > 0`,
	"a created length":        `n = 0; Array.from(Object.create({}, {length: {get() { return n++ ? 1e8 : 1 }}})).length > 0 || Array.from({length: 1e8}).length > 0`,
	"an inherited length":     `Array.from({__proto__: {length: 1e8}}).length > 0`,
	"an expression of text":   `new RegExp({toString() { return '((a{0,100}){0,100}){0,100}b' }}).test('a')`,
	"raw":                     `String.raw({raw: {length: 1e9}}).length > 0`,
	"spread of a length":      `a = []; a.length = 3e8; [...a].length > 0`,
	"set of a length":         `a = []; a.length = 3e8; new Set(a).size > 0`,
	"rest of a length":        `a = []; a.length = 3e8; [x, ...r] = a; r.length > 0`,
	"arguments of a length":   `a = []; a.length = 3e8; Math.max(...a) > 0`,
	"loop":                    `while (true) {}`,
	"loop that catches":       `while (true) { try { while (true) {} } catch (e) {} }`,
	"recursion":               `(function f() { try { return f() } catch (e) { return f() } })()`,
	"sort":                    `while (true) Array.from({length: 60000}).map((x, i) => -i).sort()`,
	"split":                   `a = []; while (true) a.push('x'.repeat(60000).split(''))`,
}

// A script that would take long or allocate much is undecided: never an answer,
// soon, and at little memory.
func TestScriptLimits(t *testing.T) {
	for name, source := range nasty {
		t.Run(name, func(t *testing.T) {
			runtime.GC()
			var before, now runtime.MemStats
			runtime.ReadMemStats(&before)
			peak, done, watched := uint64(0), make(chan struct{}), make(chan struct{})
			go func() {
				defer close(watched)
				for {
					runtime.ReadMemStats(&now)
					peak = max(peak, now.HeapInuse+now.StackInuse)
					select {
					case <-done:
						return
					case <-time.After(3 * time.Millisecond):
					}
				}
			}()
			start := time.Now()
			got := unknown
			s, err := compileScript(source)
			if err == nil {
				got = s.holds(scriptRequest())
			}
			took := time.Since(start)
			close(done)
			<-watched
			if got != unknown {
				t.Errorf("it is decided: %d", got)
			}
			if took > slowdown*1500*time.Millisecond {
				t.Errorf("it took %s", took)
			}
			grown := int64(peak) - int64(before.HeapInuse+before.StackInuse)
			if grown > 100<<20 {
				t.Errorf("it took %d MiB", grown>>20)
			}
			t.Logf("%s, %d MiB, %v", took.Round(time.Millisecond), grown>>20, err)
		})
	}
}

// What policies do with texts, lists and expressions is not in the way of limits.
func TestScriptsWithinLimits(t *testing.T) {
	for source, want := range map[string]tri{
		`'x'.repeat(1000).length == 1000 && 'x'.padStart(5, 'ab') == 'ababx' && 'a'.concat('b', 'c') == 'abc'`:                                     yes,
		`s = ''; for (i = 0; i < 1000; i++) s += 'x'; s.length == 1000`:                                                                            yes,
		"`${USER.region}-${1 + 1}` == 'EU-2' && 1 + 2 === 3 && 'a' + 1 == 'a1'":                                                                    yes,
		`o = {n: 1, s: 'a'}; i = 0; a = [1, 2]; a[i++] += 5; o.s += 'b'; a[0] == 6 && i == 1 && o.s == 'ab'`:                                       yes,
		`new Array(3).fill(1).join('-') == '1-1-1' && Array(2).length == 2 && [1, [2, 3]].flat().length == 3 && Array.isArray(new Array(3))`:       yes,
		`[] instanceof Array && /x/ instanceof RegExp && new RegExp('A', 'i').test('a') && RegExp('b').test('abc')`:                                yes,
		`/^\d{3}-\d{2}-\d{4}$/.test('123-45-6789') && /^([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}$/.test('1:2:3:4:5:6:7:8')`:                                yes,
		`/^(?=.*\d)(?=.*[a-z]).{4,8}$/.test('abc123') && !/^(?!x)/.test('x')`:                                                                      yes,
		`'a-b-c'.replace(/-/g, '$&$&') == 'a--b--c' && 'abc'.replace(/[b]/, m => m.toUpperCase()) == 'aBc' && 'aXa'.replaceAll('a', 'b') == 'bXb'`: yes,
		`JSON.stringify({a: [1, {b: 'x'}]}) == '{"a":[1,{"b":"x"}]}' && J([1]) == '[1]' && JSON.parse('[1,2]').length == 2`:                        yes,
		`'a,b'.split(',').map(x => x + x).join() == 'aa,bb' && String([1, [2, 3]]) == '1,2,3' && Object.keys({a: 1}).length == 1`:                  yes,
		`Math.max.apply(null, [1, 2, 3]) == 3 && [3, 1, 2].sort().reverse()[0] == 3 && [...'abc'].length == 3 && 'abc'.match(/b/).index == 1`:      yes,
		`UGNAMES.filter(g => /^s/.test(g)).length == 1 && USER['region'] == 'EU' && 'a_b'.match('_') != null`:                                      yes,
	} {
		s, err := compileScript(source)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if got := s.holds(scriptRequest()); got != want {
			_, _, err := s.run(scriptRequest(), nil)
			t.Errorf("%s: %d, want %d: %v", source, got, want, err)
		}
	}
	s, err := compileScript(`/(?=a)(a+)+$/.test('aaaab') || USER.region == 'EU'`)
	if err != nil || s.holds(scriptRequest()) != yes {
		t.Error("an expression that ends soon is decided")
	}
}

// The log names a policy whose condition met a limit, once; what the condition gives
// is then not given.
func TestScriptLimitIsLogged(t *testing.T) {
	var out strings.Builder
	var problems []Problem
	c := newCompiler("hive", &model.ServiceDef{}, "", nil, 0, &problems)
	c.log = slog.New(slog.NewTextHandler(&out, nil))
	conditions := func(id int64, source string) []condition {
		return c.compileConditions(&model.Policy{ID: id}, []model.Condition{{Type: "_expression", Values: []string{source}}})
	}
	for range 3 {
		for _, cond := range append(conditions(7, `USER.region == 'EU'`), conditions(8, `USER.region == 'EU'.repeat(1)`)...) {
			if cond.holds(scriptRequest()) != yes {
				t.Fatal("a small condition is decided")
			}
		}
	}
	if out.Len() > 0 || len(problems) > 0 {
		t.Fatalf("logged: %s %v", out.String(), problems)
	}
	large := conditions(9, `'x'.repeat(1e9) == USER.region`)
	for range 3 {
		if large[0].holds(scriptRequest()) != unknown {
			t.Error("it is decided")
		}
	}
	if strings.Count(out.String(), "policy=9") != 1 || strings.Contains(out.String(), "repeat") {
		t.Errorf("logged: %s", out.String())
	}
}

// Source that nests deeply is soon refused, and does not exhaust the stack.
func TestDeepScripts(t *testing.T) {
	defer func(start time.Time) {
		if took := time.Since(start); took > slowdown*3*time.Second {
			t.Errorf("it took %s", took)
		}
	}(time.Now())
	for _, part := range []string{"(", "[", "!", "{", "a.", "a[", "a+", "-", "`${", "a?", "function f(){", "x=>", "a(", "if(a)"} {
		if s, err := compileScript(strings.Repeat(part, (scriptText-10)/len(part)) + "1"); err == nil && s.holds(scriptRequest()) == yes {
			t.Errorf("%s is true", part)
		}
	}
}
