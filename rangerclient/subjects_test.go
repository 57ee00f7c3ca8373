package rangerclient

import (
	"slices"
	"strconv"
	"testing"

	"sqe/identity"
	"sqe/policy"
)

// TestSubjects: a principal is remembered as it is, never under the name alone.
func TestSubjects(t *testing.T) {
	f := newBuild(t)
	f.object("root=POLARIS catalog=c namespace=n table=t", item("group sales role reader", "table-data-read"))
	st := f.state(Options{})
	o := policy.Object{Catalog: "c", Namespace: []string{"n"}, Name: "t"}
	may := func(p identity.Principal) bool { return st.Authorize(p, o, policy.TableDataRead).Allow }
	groups := []string{"sales"}
	for range 2 {
		for _, c := range []struct {
			p    identity.Principal
			want bool
		}{
			{identity.Principal{Name: "ann"}, false},
			{identity.Principal{Name: "ann", Groups: groups}, true},
			{identity.Principal{Name: "ann", Groups: []string{"hr"}}, false},
			{identity.Principal{Name: "ann", Roles: []string{"reader"}}, true},
			{identity.Principal{Name: "ann", Roles: []string{"reader"}, ActiveRoles: []string{}}, false},
			{identity.Principal{Name: "ann", Roles: []string{"reader"}, ActiveRoles: []string{"reader"}}, true},
			{identity.Principal{Name: "bob"}, false},
		} {
			if got := may(c.p); got != c.want {
				t.Errorf("%+v: %t", c.p, got)
			}
		}
	}
	// What was remembered does not change with the caller's list.
	if !may(identity.Principal{Name: "ann", Groups: groups}) {
		t.Error("denied")
	}
	groups[0] = "hr"
	if may(identity.Principal{Name: "ann", Groups: groups}) {
		t.Error("a principal in another group was taken for the one before")
	}
	if !may(identity.Principal{Name: "ann", Groups: []string{"sales"}}) {
		t.Error("denied")
	}
	// However many come, they are answered.
	for n := range maxSubjects + 100 {
		name := "u" + strconv.Itoa(n)
		if p := (identity.Principal{Name: name, Groups: []string{"sales"}}); !may(p) || may(identity.Principal{Name: name}) {
			t.Fatal(name)
		}
	}
	kept := 0
	st.objectSubjects.byName.Range(func(any, any) bool { kept++; return true })
	if kept > maxSubjects {
		t.Errorf("%d are remembered", kept)
	}
	if !slices.Equal(st.Roles(identity.Principal{Name: "x", Roles: []string{"b", "a"}}), []string{"a", "b"}) {
		t.Error("roles")
	}
}
