package masks

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/plan"
)

// peerCases are answers of Trino 476 with its Ranger access control and of Spark
// 3.5 with Kyuubi AuthZ 1.12: MASK, MASK_SHOW_LAST_4 and MASK_SHOW_FIRST_4, with
// short values kept as both do. An empty text stands for "the same as raw".
var peerCases = []struct {
	in           string
	trino, spark [3]string
}{
	{"Hello-1", [3]string{"Xxxxx-0", "XXXlo-1", "HellXXX"}, [3]string{"XxxxxUn", "Xxxlo-1", "HellxUn"}},
	{"abcd", [3]string{"xxxx", "", ""}, [3]string{"xxxx", "", ""}},
	{"abc", [3]string{"xxx", "", ""}, [3]string{"xxx", "", ""}},
	{"", [3]string{}, [3]string{}},
	{"Zürich Ünï 中文 🙂", [3]string{"Xüxxxx Üxï 中文 🙂", "XXXXXXXXXXX中文 🙂", "ZüriXXXXXXXXXXX"}, [3]string{"XUxxxxUUxUUUUUU", "XUxxxxUUxUU中文 🙂", "ZürixxUUxUUUUUU"}},
	{"  a B\t1 ", [3]string{"  x X\t0 ", "XXXXB\t1 ", "  a XXXX"}, [3]string{"UUxUXUnU", "UUxUB\t1 ", "  a XUnU"}},
	{"4111-1111-1111-1234", [3]string{"0000-0000-0000-0000", "XXXXXXXXXXXXXXX1234", "4111XXXXXXXXXXXXXXX"}, [3]string{"nnnnUnnnnUnnnnUnnnn", "nnnnUnnnnUnnnnU1234", "4111UnnnnUnnnnUnnnn"}},
	{"O'Brien_x.y@Z9", [3]string{"X'Xxxxx_x.x@X0", "XXXXXXXXXXy@Z9", "O'BrXXXXXXXXXX"}, [3]string{"XUXxxxxUxUxUXn", "XUXxxxxUxUy@Z9", "O'BrxxxUxUxUXn"}},
	{"abcde", [3]string{"xxxxx", "Xbcde", "abcdX"}, [3]string{"xxxxx", "xbcde", "abcdx"}},
}

func TestRendering(t *testing.T) {
	for _, c := range peerCases {
		for rendering, want := range map[Rendering][3]string{RenderTrino: c.trino, RenderSpark: c.spark} {
			for i, action := range []string{Redact, ShowLast4, ShowFirst4} {
				w := want[i]
				if w == "" {
					w = c.in
				}
				got := both(t, action, field(plan.String), c.in, Options{Rendering: rendering, KeepShort: true})
				if got != w {
					t.Errorf("%s in the rendering of %s: %q is %q, want %q", action, rendering, c.in, got, w)
				}
				// Without short-values = "keep" nothing short is shown, whoever renders.
				got = both(t, action, field(plan.String), c.in, Options{Rendering: rendering})
				if len([]rune(c.in)) <= 4 && c.in != "" && strings.ContainsAny(got.(string), "abcd") {
					t.Errorf("%s in the rendering of %s shows the short value %q as %q", action, rendering, c.in, got)
				}
			}
		}
	}
}

func TestUnkeyedHash(t *testing.T) {
	for _, c := range []struct {
		rendering Rendering
		in, want  string
	}{
		{RenderTrino, "Hello-1", "29100D84F087BEF18455443F430FAC2210821D7D40F3F1A72CFB4C92CDCA3200"},
		{RenderTrino, "", "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855"},
		{RenderSpark, "Hello-1", "eae13dcf35936b8262497f88437d81b9"},
		{RenderSpark, "Zürich Ünï 中文 🙂", "f64b8af2fa04930c6f84f9747f569d2c"},
		{RenderSpark, "", "d41d8cd98f00b204e9800998ecf8427e"},
	} {
		o := Options{Rendering: c.rendering, UnkeyedHash: true, HashKey: []byte("not used")}
		if got := both(t, Hash, field(plan.String), c.in, o); got != c.want {
			t.Errorf("%s: %q is hashed to %v", c.rendering, c.in, got)
		}
		if o.NeedsKey(Hash) {
			t.Error("a hash without a key needs one")
		}
		// Types with few values would be read off a table of digests.
		for _, typ := range []arrow.DataType{plan.Int32, plan.Int64, plan.Binary, plan.Date} {
			if got := both(t, Hash, field(typ), sample(typ), o); got != nil {
				t.Errorf("%s: %s is hashed to %v without a key", c.rendering, typ, got)
			}
		}
		// The rendering alone is no decision against the key.
		o.UnkeyedHash = false
		if got := both(t, Hash, field(plan.String), c.in, o); got == c.want || len(got.(string)) != 64 {
			t.Errorf("%s: a hash with a key is %v", c.rendering, got)
		}
		o.HashKey = nil
		if _, err := New(Hash, field(plan.String), o); err == nil {
			t.Errorf("%s: hashed without a key and without unkeyed-hash", c.rendering)
		}
	}
}

// TestRenderingIsKnown: a misspelt rendering builds no mask instead of another's.
func TestRenderingIsKnown(t *testing.T) {
	for _, o := range []Options{{Rendering: "hive"}, {Rendering: "SPARK"}, {Rendering: "hive", UnkeyedHash: true}, {UnkeyedHash: true}, {Rendering: RenderSQE, UnkeyedHash: true}} {
		actions := []string{Hash}
		if !o.UnkeyedHash {
			actions = []string{Redact, ShowFirst4, ShowLast4}
		}
		for _, action := range actions {
			if _, err := New(action, field(plan.String), o); err == nil {
				t.Errorf("%s was built with %+v", action, o)
			}
			if _, err := Apply(action, field(plan.String), "raw", o); err == nil {
				t.Errorf("%s was applied with %+v", action, o)
			}
		}
	}
	for _, c := range textCases {
		if a, b := both(t, c.action, field(plan.String), c.in, Options{}), both(t, c.action, field(plan.String), c.in, Options{Rendering: RenderSQE}); a != b {
			t.Errorf("%s(%q): the default is %v, sqe is %v", c.action, c.in, a, b)
		}
	}
}

// TestRenderingOnEveryType: no rendering shows a raw value of a type that is not
// text, or changes a type.
func TestRenderingOnEveryType(t *testing.T) {
	for _, rendering := range []Rendering{RenderTrino, RenderSpark} {
		o := Options{Rendering: rendering, KeepShort: true, UnkeyedHash: true}
		for _, action := range []string{Redact, ShowFirst4, ShowLast4, Hash} {
			for _, typ := range allTypes {
				if got := both(t, action, field(typ), sample(typ), o); plan.IsString(typ) == (got == nil) || equal(got, sample(typ)) {
					t.Errorf("%s: %s of %s is %v", rendering, action, typ, got)
				}
			}
		}
	}
}
