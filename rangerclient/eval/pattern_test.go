package eval

import (
	"errors"
	"testing"
)

// TestPatterns: a name or attribute is itself wherever a policy puts it. One that a
// pattern would read as more is refused there, and nowhere else.
func TestPatterns(t *testing.T) {
	const attribute, name = "region", "name"
	for _, x := range []struct {
		text  string
		from  string // which of the two the text puts into a pattern; "": none
		plain string // what becomes of it for plain values
	}{
		{"r LIKE ${{USER.region}}", attribute, "r LIKE 'EU'"},
		{"r NOT LIKE '${{USER.region}}%'", attribute, "r NOT LIKE 'EU%'"},
		{"r like concat('%', lower(${{USER.region}}), '%')", attribute, "r like concat('%', lower('EU'), '%')"},
		{"r LIKE (${{USER.region}})", attribute, "r LIKE ('EU')"},
		{"r LIKE CASE WHEN a = 1 AND b = 2 THEN ${{USER.region}} ELSE 'x' END", attribute, "r LIKE CASE WHEN a = 1 AND b = 2 THEN 'EU' ELSE 'x' END"},
		{"r RLIKE ${{USER.region}}", attribute, "r RLIKE 'EU'"},
		{"r REGEXP '^${{USER.region}}$'", attribute, "r REGEXP '^EU$'"},
		{"regexp_like(r, ${{USER.region}})", attribute, "regexp_like(r, 'EU')"},
		{"REGEXP_LIKE (r, concat('a', ${{USER.region}}), 'i') OR 1 = 0", attribute, "REGEXP_LIKE (r, concat('a', 'EU'), 'i') OR 1 = 0"},
		{"json_search(doc, 'one', ${{USER.region}}) IS NOT NULL", attribute, "json_search(doc, 'one', 'EU') IS NOT NULL"},
		{"r LIKE ${{USER.region}} ESCAPE '!'", attribute, "r LIKE 'EU' ESCAPE '!'"},
		{"EXISTS (SELECT 1 FROM (SELECT ${{USER.region}} AS p FROM m) x WHERE r LIKE p)", attribute, "EXISTS (SELECT 1 FROM (SELECT 'EU' AS p FROM m) x WHERE r LIKE p)"},
		{"a = 1 AND r LIKE CONCAT('%', CURRENT_USER(), '%')", name, "a = 1 AND r LIKE CONCAT('%', CURRENT_USER(), '%')"},
		{"r LIKE current_user", name, "r LIKE current_user"},
		{"r REGEXP session_user ()", name, "r REGEXP session_user ()"},
		{"r LIKE user()", name, "r LIKE user()"},
		{"r LIKE '${{USER._name}}'", name, "r LIKE 'ann'"},
		{"r = ${{USER.region}}", "", "r = 'EU'"},
		{"r LIKE 'A%' AND s = ${{USER.region}}", "", "r LIKE 'A%' AND s = 'EU'"},
		{"(r LIKE 'A%') = (s = ${{USER.region}})", "", "(r LIKE 'A%') = (s = 'EU')"},
		{"regexp_like(r, 'a') AND s IN (${{USER.region}})", "", "regexp_like(r, 'a') AND s IN ('EU')"},
		{"${{USER.region}} LIKE r", "", "'EU' LIKE r"},
		{"note = 'LIKE' AND r = ${{USER.region}}", "", "note = 'LIKE' AND r = 'EU'"},
		{"r LIKE 'A%' AND s IN (SELECT s FROM m WHERE u = ${{USER.region}})", "", "r LIKE 'A%' AND s IN (SELECT s FROM m WHERE u = 'EU')"},
		{"r LIKE user AND u = current_user()", "", "r LIKE user AND u = current_user()"},
		{"r LIKE '%' AND `like` = ${{USER.region}}", "", "r LIKE '%' AND `like` = 'EU'"},
	} {
		ask := func(user, region string) (string, error) {
			return (&Request{Subject: &Subject{User: user, Attributes: map[string]string{"region": region}}}).Expand(x.text, true)
		}
		if got, err := ask("ann", "EU"); err != nil || got != x.plain {
			t.Errorf("%s: %q, %v", x.text, got, err)
		}
		if InPattern(x.text) != (x.from != "") {
			t.Errorf("%s: InPattern says %v", x.text, InPattern(x.text))
		}
		for _, special := range []string{"%", "a_b", `a\`} {
			if _, err := ask("ann", special); errors.Is(err, errPattern) != (x.from == attribute) {
				t.Errorf("%s with the attribute %q: %v", x.text, special, err)
			}
			if _, err := ask(special, "EU"); errors.Is(err, errPattern) != (x.from == name) {
				t.Errorf("%s for %q: %v", x.text, special, err)
			}
		}
	}
	// What is special differs.
	for text, want := range map[string]bool{"r LIKE ${{USER.region}}": false, "r RLIKE ${{USER.region}}": true, "r LIKE ${{USER.region}} ESCAPE '.'": true} {
		_, err := (&Request{Subject: &Subject{Attributes: map[string]string{"region": "a.b"}}}).Expand(text, true)
		if errors.Is(err, errPattern) != want {
			t.Errorf("%s with a dot: %v", text, err)
		}
	}
}
