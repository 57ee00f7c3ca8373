package grants

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"sqe/fault"
	"sqe/policy"
)

func grantee(text string) policy.Grantee {
	kind, name, ok := strings.Cut(text, ":")
	if !ok {
		kind, name = "user", text
	}
	return policy.Grantee{Kind: policy.GranteeKind(kind), Name: name}
}

// objectOf reads "wh", "wh.sales", "wh.sales.orders", deeper ones with "/" between
// levels; "view" before it is a view.
func objectOf(text string) Object {
	name, view := strings.CutPrefix(text, "view:")
	parts := strings.Split(name, ".")
	o := Object{Catalog: parts[0], View: view}
	if len(parts) > 1 {
		o.Namespace = strings.Split(parts[1], "/")
	}
	if len(parts) > 2 {
		o.Name = parts[2]
	}
	return o
}

// TestStatements runs testdata/statements: what statements make of policies.
func TestStatements(t *testing.T) {
	datadriven.Walk(t, "testdata/statements", func(t *testing.T, path string) {
		snapshot := &Snapshot{Root: Any}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "policy" {
				snapshot.Policies = append(snapshot.Policies, readPolicy(t, d))
				return ""
			}
			var out strings.Builder
			s := statementOf(t, d)
			o, err := s.Run(snapshot)
			if err != nil {
				return fmt.Sprintf("%s: %v\n", fault.KindOf(err), err)
			}
			snapshot = o.After
			for _, c := range o.Changes {
				fmt.Fprintf(&out, "%s:%s\n", c.Resource, map[bool]string{true: " (no policy any more)"}[c.After == nil])
				for _, x := range Diff(c.Before, c.After) {
					fmt.Fprintf(&out, "  %s %s %s %s: %s\n", map[bool]string{true: "+", false: "-"}[x.Added], x.Effect, x.Grantee.Kind, x.Grantee.Name, strings.Join(x.What, " "))
				}
			}
			for _, n := range o.Notices {
				fmt.Fprintln(&out, "notice:", n)
			}
			if out.Len() == 0 {
				return "nothing\n"
			}
			return out.String()
		})
	})
}

// statementOf reads "grant SELECT,INSERT on wh.sales.orders to role:analyst by
// carol [option]", with one part a line or separated by blanks.
func statementOf(t *testing.T, d *datadriven.TestData) *Statement {
	t.Helper()
	s := &Statement{Verb: Verb(strings.ToUpper(d.Cmd)), By: "carol", Administrator: true}
	var privileges []string
	for _, a := range d.CmdArgs {
		for _, v := range a.Vals {
			switch a.Key {
			case "privileges":
				privileges = append(privileges, strings.ReplaceAll(v, "_", " "))
			case "on":
				for _, p := range privileges {
					s.Targets = append(s.Targets, Target{p, objectOf(v)})
				}
			case "to", "from":
				s.Grantees = append(s.Grantees, grantee(v))
			case "by":
				s.By, s.Administrator = v, false
				s.Identities = append(s.Identities, policy.Grantee{Kind: policy.UserGrantee, Name: v})
			default:
				t.Fatalf("%s: %s", d.Pos, a.Key)
			}
		}
		if a.Key == "option" {
			s.Option = true
		}
	}
	return s
}

// readPolicy reads a policy that somebody made: elements in the arguments, items
// and labels in the lines.
func readPolicy(t *testing.T, d *datadriven.TestData) *Policy {
	t.Helper()
	p := &Policy{Elements: map[string][]string{"root": {Any}}}
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "name":
			p.Name = a.Vals[0]
		case "special":
			p.Special = a.Vals
		default:
			p.Elements[a.Key] = a.Vals
		}
	}
	for _, line := range strings.Split(d.Input, "\n") {
		f := strings.Fields(line)
		if f[0] == "label" {
			p.Labels = append(p.Labels, f[1])
			continue
		}
		i := Item{Types: f[2:], Delegate: f[0] == "delegate", Fixed: f[0] == "conditional"}
		for _, g := range strings.Split(f[1], ",") {
			g := grantee(g)
			*i.of(g.Kind) = append(*i.of(g.Kind), g.Name)
		}
		if f[0] == "deny" {
			p.Deny = append(p.Deny, i)
		} else {
			p.Allow = append(p.Allow, i)
		}
	}
	return p
}

// TestMendAndClean: what another writer took away or left is made what it must be.
func TestMendAndClean(t *testing.T) {
	s := &Statement{Verb: Grant, Targets: []Target{{"SELECT", objectOf("wh.sales/eu.orders")}}, Grantees: []policy.Grantee{grantee("dave")}, By: "carol", Administrator: true}
	out, err := s.Run(&Snapshot{Root: Any})
	if err != nil {
		t.Fatal(err)
	}
	whole := out.After
	for _, p := range whole.Policies {
		at, _ := p.resource()
		if at.Level() == TableLevel {
			continue
		}
		mended := s.Mend(whole.With(at, nil))
		if len(mended.Changes) != 1 || len(Diff(mended.After.At(at), p)) > 0 {
			t.Errorf("without the policy on %s: %+v", at, mended.Changes)
		}
	}
	var table Resource
	for _, p := range whole.Policies {
		if at, _ := p.resource(); at.Level() == TableLevel {
			table = at
		}
	}
	left := whole.With(table, nil)
	for _, p := range left.Policies { // as a system that labels no traversal leaves it
		p.Labels = nil
	}
	if cleaned := Clean(left, "carol"); len(cleaned.After.Policies) > 0 || len(cleaned.Notices) != 3 {
		t.Errorf("left: %+v", cleaned)
	}
	// What somebody else made stays.
	for _, p := range left.Policies {
		p.Name = "by hand " + p.Name
	}
	if cleaned := Clean(left, "carol"); len(cleaned.Changes) > 0 {
		t.Errorf("cleaned: %+v", cleaned.Changes)
	}
}

// fact is a grant or a denial of the model.
type fact struct {
	grantee   policy.Grantee
	object    string // of objectOf
	privilege string
}

// TestRandomStatements holds what statements make of policies to a model that knows
// only which grants and denials there are: whatever was done before, the policies
// are exactly the plans of those.
func TestRandomStatements(t *testing.T) {
	objects := []string{"wh", "wh.sales", "wh.sales/eu", "wh.hr", "wh.sales.orders", "wh.sales.*", "wh.sales/eu.orders", "wh.sales/eu/de.orders", "wh.*.*", "view:wh.sales.v", "wh.hr.people"}
	grantees := []policy.Grantee{grantee("ann"), grantee("role:ann"), grantee("group:ann"), {Kind: policy.UserGrantee, Name: "bob:x"}}
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 7))
		snapshot := &Snapshot{Root: Any}
		grants, denials := map[fact]bool{}, map[fact]bool{}
		var log []string
		for range 60 {
			text := objects[rng.IntN(len(objects))]
			o, g := objectOf(text), grantees[rng.IntN(len(grantees))]
			privilege := Privileges()[rng.IntN(15)]
			verb := []Verb{Grant, Grant, Deny, Revoke, Revoke}[rng.IntN(5)]
			s := &Statement{
				Verb: verb, Targets: []Target{{privilege, o}}, Grantees: []policy.Grantee{g},
				By: "carol", Administrator: true, Option: verb != Deny && rng.IntN(6) == 0,
			}
			log = append(log, fmt.Sprintf("%s %s ON %s %v option=%v", verb, privilege, text, g, s.Option))
			out, err := s.Run(snapshot)
			name, _, planErr := Plan(Any, privilege, o)
			everything := verb == Revoke && privilege == All && !s.Option
			if everything {
				name, planErr = All, nil
			}
			if (err == nil) != (planErr == nil) {
				t.Fatalf("%s: %v, planned %v", strings.Join(log, "\n"), err, planErr)
			}
			if err != nil {
				continue
			}
			f := fact{g, text, name}
			switch {
			case verb == Grant:
				grants[f] = true
			case verb == Deny:
				denials[f] = true
			case s.Option:
			case everything:
				for _, m := range []map[fact]bool{grants, denials} {
					for x := range m {
						if x.grantee == g && x.object == text {
							delete(m, x)
						}
					}
				}
			default:
				delete(grants, f)
				delete(denials, f)
			}
			again, err := s.Run(out.After)
			if err != nil || len(again.Changes) > 0 {
				t.Fatalf("%s: the same statement again changes %+v, %v", strings.Join(log, "\n"), again.Changes, err)
			}
			if len(out.Changes) == 0 && verb != Revoke && len(out.After.Policies) == 0 {
				t.Fatalf("%s: nothing was done", log[len(log)-1])
			}
			snapshot = out.After
			compare(t, snapshot, grants, denials, log)
			if m := s.Mend(snapshot); len(m.Changes) > 0 {
				t.Fatalf("%s: there is something to mend: %+v", strings.Join(log, "\n"), m.Changes)
			}
			if c := Clean(snapshot, "carol"); len(c.Changes) > 0 {
				t.Fatalf("%s: there is something to clean: %+v", strings.Join(log, "\n"), c.Changes)
			}
		}
		// When all is taken back nothing is left.
		for _, m := range []map[fact]bool{grants, denials} {
			for f := range m {
				s := &Statement{Verb: Revoke, Targets: []Target{{f.privilege, objectOf(f.object)}}, Grantees: []policy.Grantee{f.grantee}, By: "carol", Administrator: true}
				if f.privilege == All {
					delete(m, f)
				}
				out, err := s.Run(snapshot)
				if err != nil {
					t.Fatal(err)
				}
				snapshot = out.After
			}
		}
		if len(snapshot.Policies) > 0 {
			t.Fatalf("%s: %d policies are left, such as %+v", strings.Join(log, "\n"), len(snapshot.Policies), snapshot.Policies[0])
		}
	}
}

func compare(t *testing.T, s *Snapshot, grants, denials map[fact]bool, log []string) {
	t.Helper()
	type key struct {
		resource Resource
		grantee  policy.Grantee
	}
	want, deny := map[key][]string{}, map[key][]string{}
	for f := range grants {
		_, steps, err := Plan(Any, f.privilege, objectOf(f.object))
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range steps {
			k := key{step.Resource, f.grantee}
			want[k] = union(want[k], step.Types)
		}
	}
	for f := range denials {
		_, steps, _ := Plan(Any, f.privilege, objectOf(f.object))
		k := key{steps[len(steps)-1].Resource, f.grantee}
		deny[k] = union(deny[k], steps[len(steps)-1].Types)
	}
	have, denied := map[key][]string{}, map[key][]string{}
	for _, p := range s.Policies {
		r, _ := p.resource()
		if len(p.Allow)+len(p.Deny) == 0 {
			t.Errorf("the policy on %s says nothing", r)
		}
		for m, list := range map[*map[key][]string][]Item{&have: p.Allow, &denied: p.Deny} {
			for _, i := range list {
				if i.empty() || len(i.Types) == 0 {
					t.Errorf("an item on %s says nothing: %+v", r, i)
				}
				for _, g := range i.grantees() {
					k := key{r, g}
					(*m)[k] = union((*m)[k], i.Types)
				}
			}
		}
	}
	for what, m := range map[string][2]map[key][]string{"allowed": {want, have}, "denied": {deny, denied}} {
		for k, types := range m[0] {
			if !slices.Equal(types, m[1][k]) {
				t.Fatalf("%s\n%s on %s to %v: %s\nwant %s", strings.Join(log, "\n"), what, k.resource, k.grantee, m[1][k], types)
			}
		}
		for k, types := range m[1] {
			if len(m[0][k]) == 0 {
				t.Fatalf("%s\n%s on %s to %v, which nothing asks for: %s", strings.Join(log, "\n"), what, k.resource, k.grantee, types)
			}
		}
	}
}
