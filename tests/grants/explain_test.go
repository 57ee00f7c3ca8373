package grants

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"sqe/rangerclient/model"
)

// facts is everything that policies say, one string for each right of each grantee and
// for each label that is about a grant, as EXPLAIN words it.
func (l *lake) facts() map[string]bool {
	l.Helper()
	list, err := l.store.Policies(context.Background(), "polaris")
	if err != nil {
		l.Fatal(err)
	}
	out := map[string]bool{}
	for _, p := range list {
		about := p.Name + "|" + place(p)
		item := func(effect string, i *model.Item) {
			for kind, names := range map[string][]string{"USER ": i.Users, "GROUP ": i.Groups, "ROLE ": i.Roles} {
				for _, n := range names {
					for _, a := range i.Accesses {
						out[about+"|"+effect+"|"+kind+n+"|"+a.Type] = true
					}
				}
			}
		}
		for _, i := range p.PolicyItems {
			if item("allow", i); i.DelegateAdmin {
				item("grant option", i)
			}
		}
		for _, i := range p.DenyPolicyItems {
			item("deny", i)
		}
		for _, label := range p.PolicyLabels {
			if !strings.HasPrefix(label, "managed-by:") && !strings.HasPrefix(label, "sqe:by=") {
				out[about+"|label||"+label] = true
			}
		}
	}
	return out
}

// place is what a policy is on.
func place(p *model.Policy) string {
	var out []string
	for _, e := range []string{"catalog", "namespace", "table"} {
		if r, ok := p.Resources[e]; ok {
			out = append(out, e+"="+strings.Join(r.Values, ","))
		}
	}
	return strings.Join(out, ", ")
}

// TestExplainIsWhatIsWritten: the difference that EXPLAIN shows of a statement is the
// one that is then between the policies before and after it, with the same warnings but
// for those about its effect, and it writes nothing itself.
func TestExplainIsWhatIsWritten(t *testing.T) {
	for _, sink := range sinks {
		t.Run(sink, func(t *testing.T) {
			l, changing := openOver(t, sink), 0
			for _, user := range []string{"root", "ann"} {
				for _, text := range explained {
					if user == "ann" && !strings.Contains(text, "customers") {
						continue
					}
					if user == "ann" {
						l.root("GRANT SELECT, INSERT ON customers TO ann WITH GRANT OPTION")
						l.root("GRANT USE ON SCHEMA bank TO ben, dan, ROLE senior, GROUP eu")
					}
					before := l.facts()
					shown, told, err := l.ask(user, "EXPLAIN "+text)
					if !maps.Equal(l.facts(), before) {
						t.Fatalf("EXPLAIN %s writes", text)
					}
					_, warned, done := l.ask(user, text)
					if (err == nil) != (done == nil) || err != nil && err.Error() != done.Error() {
						t.Errorf("%s: EXPLAIN %s says %v, and then it is %v", user, text, err, done)
						continue
					}
					for _, w := range strings.Split(told, "\n") {
						if !strings.Contains(warned, w) {
							t.Errorf("%s: EXPLAIN %s warns %s, and then there is only %s", user, text, w, warned)
						}
					}
					after, want := l.facts(), map[string]bool{}
					for f := range after {
						if !before[f] {
							want[line(f, "add ")] = true
						}
					}
					for f := range before {
						if !after[f] {
							want[line(f, "remove ")] = true
						}
					}
					got := map[string]bool{}
					for _, row := range strings.Split(shown, "\n") {
						if cells := strings.Split(row, "|"); len(cells) == 6 {
							for _, what := range strings.Split(cells[5], ", ") {
								got[strings.Join([]string{cells[0], cells[1], cells[3], cells[4], what}, "|")] = true
							}
						}
					}
					if !maps.Equal(got, want) {
						t.Errorf("%s: EXPLAIN %s shows\n%s\nwritten is\n%s", user, text, strings.Join(slices.Sorted(maps.Keys(got)), "\n"), strings.Join(slices.Sorted(maps.Keys(want)), "\n"))
					}
					if len(want) > 0 {
						changing++
					}
				}
			}
			if changing < 20 {
				t.Errorf("%d statements changed something", changing)
			}
		})
	}
}

// line is a fact as one that is added or removed.
func line(fact, verb string) string {
	cells := strings.Split(fact, "|")
	cells[2] = verb + cells[2]
	return strings.Join(cells, "|")
}

// explained are statements of every kind, each on what those before it left.
var explained = []string{
	"GRANT SELECT ON customers TO dan",
	"GRANT SELECT ON customers TO dan",
	"GRANT SELECT, INSERT ON TABLE customers, payments TO ben, ROLE senior, GROUP eu WITH GRANT OPTION",
	"GRANT DROP ON customers TO dan, ROLE senior",
	"GRANT MODIFY ON payments TO PUBLIC",
	"GRANT SELECT ON sales.eu.de.t TO dan",
	"GRANT SELECT ON ALL TABLES IN SCHEMA sales.eu, FUTURE VIEWS IN SCHEMA sales TO dan, ROLE empty",
	"GRANT SELECT ON *.* TO cat",
	"GRANT USAGE ON *.* TO cat",
	"GRANT USE, CREATE, CREATE VIEW ON SCHEMA sales, sales.eu TO cat WITH GRANT OPTION",
	"GRANT MANAGE, CREATE NAMESPACE ON CATALOG lake TO cat",
	"DENY SELECT ON customers TO GROUP eu",
	"DENY INSERT, SELECT ON payments TO ben, ROLE senior",
	"DENY SELECT ON ALL TABLES IN CATALOG lake TO dan",
	"REVOKE GRANT OPTION FOR SELECT ON customers FROM ben",
	"REVOKE SELECT ON customers FROM dan, ROLE senior",
	"REVOKE SELECT ON customers FROM GROUP eu",
	"REVOKE INSERT ON payments FROM ben, ROLE senior",
	"REVOKE ALL ON *.* FROM cat, dan",
	"REVOKE ALL ON SCHEMA sales, sales.eu FROM cat",
	"REVOKE ALL ON customers, payments FROM ben, dan, ROLE senior, GROUP eu, PUBLIC",
	"REVOKE SELECT ON sales.eu.de.t FROM dan",
	"REVOKE ALL ON sales.eu.* FROM dan, ROLE empty",
	"REVOKE SELECT ON ALL VIEWS IN SCHEMA sales FROM dan, ROLE empty",
	"GRANT SELECT ON customers, payments TO dan, gone",
	"GRANT ALL ON customers TO dan",
	"DENY SELECT ON customers TO gone",
	"REVOKE SELECT ON customers FROM gone",
}
