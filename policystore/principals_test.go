package policystore

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"sqe/fault"
	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

func counterOf(t testing.TB, s *Store, name string) (version int64) {
	t.Helper()
	if err := s.read(t.Context(), func(q *tx) (err error) {
		version, _, err = q.counter(name)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return version
}

func TestRoles(t *testing.T) {
	s := seeded(t)
	ctx := as("admin")
	in := func(names ...string) (m []model.Member) {
		for _, n := range names {
			m = append(m, model.Member{Name: n})
		}
		return m
	}
	for name, r := range map[string]*model.Role{
		"user":  {Name: "r", Users: in("alice", "ghost")},
		"group": {Name: "r", Groups: in("ghost")},
		"role":  {Name: "r", Roles: in("ghost")},
	} {
		_, err := s.CreateRole(ctx, r)
		t.Log(name)
		refused(t, err, admin.UnknownPrincipal, 0)
		if e, ok := err.(*admin.Error); ok && (e.Name != "ghost" || !strings.Contains(strings.ToLower(e.Reason), name+" with name: ghost does not exist")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := s.CreateRole(ctx, &model.Role{Name: " "})
	refused(t, err, admin.Invalid, 4003)

	// An empty role, a cycle, and a role in itself.
	before := counterOf(t, s, roleVersion)
	a := get(s.CreateRole(ctx, &model.Role{Name: "a"}))(t)
	b := get(s.CreateRole(ctx, &model.Role{Name: "b", Roles: in("a", "b")}))(t)
	a.Roles = in("b")
	a = get(s.UpdateRole(as("carol"), a))(t)
	if a.CreatedBy != "admin" || a.UpdatedBy != "carol" {
		t.Errorf("the role is %+v", a)
	}
	if v := counterOf(t, s, roleVersion); v != before+3 {
		t.Errorf("the version went from %d to %d with three changes", before, v)
	}
	// Roles do not move the policies.
	if v := get(s.Service(ctx, "hive"))(t).PolicyVersion; v != 1 {
		t.Errorf("policy version %d", v)
	}

	// What is named is neither deleted nor renamed.
	refused(t, s.DeleteRole(ctx, "a"), admin.InUse, 0)
	b.Roles = in("b")
	must(t)(s.UpdateRole(ctx, b))
	p := get(s.CreatePolicy(ctx, changed(access("t", "select"), func(p *model.Policy) { p.PolicyItems[0].Roles = []string{"a"} })))(t)
	err = s.DeleteRole(ctx, "a")
	refused(t, err, admin.InUse, 0)
	if e, ok := err.(*admin.Error); ok && e.Reason != "Role 'a' can not be deleted as it is referenced in one or more policies" {
		t.Error(err)
	}
	a.Name = "renamed"
	_, err = s.UpdateRole(ctx, a)
	refused(t, err, admin.InUse, 0)
	if err := s.DeletePolicy(ctx, p.ID); err != nil {
		t.Fatal(err)
	}
	must(t)(s.UpdateRole(ctx, a))
	a.Name = "auditor"
	_, err = s.UpdateRole(ctx, a)
	refused(t, err, admin.Exists, 0)
	if err := s.DeleteRole(ctx, "renamed"); err != nil {
		t.Error(err)
	}
	if err := s.DeleteRole(ctx, "b"); err != nil { // it contains itself
		t.Error(err)
	}
	_, err = s.UpdateRole(ctx, &model.Role{ID: 999, Name: "x"})
	refused(t, err, admin.NotFound, 0)
	// Without an id the name counts.
	if r := get(s.UpdateRole(ctx, &model.Role{Name: "auditor", Description: "new"}))(t); r.ID == 0 || len(get(s.Role(ctx, "auditor"))(t).Users) != 0 {
		t.Errorf("the role is %+v", r)
	}
}

func TestUsersAndGroups(t *testing.T) {
	s := seeded(t)
	ctx := as("admin")
	before := counterOf(t, s, userStoreVersion)
	u := get(s.CreateUser(ctx, &model.User{Name: "dave", Password: "Passw0rd1", FirstName: "D", Email: "d@example.com", Groups: []string{"external", "analytics"}, Attributes: map[string]string{"a": "1"}}))(t)
	if u.Password != "" || fmt.Sprint(u.Groups) != "[analytics external]" || fmt.Sprint(u.AdminRoles) != "[ROLE_USER]" || u.ID == 0 {
		t.Errorf("the user is %+v", u)
	}
	if v := counterOf(t, s, userStoreVersion); v != before+1 {
		t.Errorf("the version went from %d to %d", before, v)
	}
	body := string(get(s.DownloadUserStore(ctx, "hive", -1))(t))
	if !strings.Contains(body, `"dave":{"_emailAddress":"d@example.com","_isInternal":"true","a":"1"}`) || !strings.Contains(body, `"dave":["analytics","external"]`) {
		t.Errorf("the download is %s", body)
	}
	if strings.Contains(body, "argon2") {
		t.Error("a download holds a hash")
	}
	for name, c := range map[string]struct {
		u    model.User
		kind admin.Kind
	}{
		"no name":       {model.User{}, admin.Invalid},
		"taken":         {model.User{Name: "alice"}, admin.Exists},
		"weak password": {model.User{Name: "x", Password: "password"}, admin.Invalid},
		"unknown group": {model.User{Name: "x", Groups: []string{"ghosts"}}, admin.UnknownPrincipal},
		"unknown role":  {model.User{Name: "x", AdminRoles: []string{"ROLE_GOD"}}, admin.Invalid},
		"bad address":   {model.User{Name: "x", Email: "a@b@c"}, admin.Invalid},
	} {
		_, err := s.CreateUser(ctx, &c.u)
		t.Log(name)
		refused(t, err, c.kind, 0)
	}
	_, err := s.User(ctx, "x")
	refused(t, err, admin.NotFound, 0)

	// An update without a password keeps it.
	u.Groups, u.AdminRoles = nil, []string{"ROLE_SYS_ADMIN"}
	must(t)(s.UpdateUser(ctx, u))
	if a := get(s.Login(ctx, "dave", "Passw0rd1"))(t); !a.IsAdmin() {
		t.Errorf("the account is %+v", a)
	}
	u.Name = "renamed"
	_, err = s.UpdateUser(ctx, u)
	refused(t, err, admin.Invalid, 0)
	_, err = s.UpdateUser(ctx, &model.User{Name: "ghost"})
	refused(t, err, admin.NotFound, 0)

	// What something names stays.
	must(t)(s.CreateZone(ctx, fixtureOf[model.Zone](t, "zone_create_request")))
	p := get(s.CreatePolicy(ctx, changed(access("t", "select"), func(p *model.Policy) {
		p.PolicyItems[0].Users, p.PolicyItems[0].Groups = []string{"dave"}, []string{"external"}
	})))(t)
	for _, name := range []string{"dave", "alice", "{USER}", "{OWNER}", "carol"} { // policy, role, server, server, role and zone
		refused(t, s.DeleteUser(ctx, name), admin.InUse, 0)
	}
	refused(t, s.DeleteGroup(ctx, "external"), admin.InUse, 0)
	refused(t, s.DeleteGroup(ctx, "public"), admin.InUse, 0)
	if err := s.DeletePolicy(ctx, p.ID); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteGroup(ctx, "external"); err != nil {
		t.Error(err)
	}
	if g := get(s.User(ctx, "ext_auditor"))(t).Groups; len(g) != 0 {
		t.Errorf("groups %v after theirs was deleted", g)
	}
	if err := s.DeleteUser(ctx, "admin"); err != nil { // dave remains
		t.Error(err)
	}
	refused(t, s.DeleteUser(ctx, "dave"), admin.Invalid, 0)
	_, err = s.UpdateUser(ctx, &model.User{Name: "dave"})
	refused(t, err, admin.Invalid, 0)
	must(t)(s.UpdateGroup(ctx, &model.Group{Name: "analytics", Description: "d", Attributes: map[string]string{"k": "v"}}))
	if g := get(s.Group(ctx, "analytics"))(t); g.Description != "d" || g.Attributes["k"] != "v" {
		t.Errorf("the group is %+v", g)
	}
	_, err = s.CreateGroup(ctx, &model.Group{Name: "analytics"})
	refused(t, err, admin.Exists, 0)
	_, err = s.Group(ctx, "nosuch")
	refused(t, err, admin.NotFound, 0)
}

func TestLogin(t *testing.T) {
	at := &clock{time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
	s := open(t, seededFile(t), Options{Now: at.now})
	ctx := t.Context()
	if a := get(s.Login(ctx, "admin", adminPassword))(t); a.Name != "admin" || !a.IsAdmin() {
		t.Errorf("the account is %+v", a)
	}
	if a := get(s.Login(ctx, "engine", "Passw0rd1"))(t); a.IsAdmin() {
		t.Errorf("the account is %+v", a)
	}
	want := ""
	for user, password := range map[string]string{"admin": "wrong", "ghost": "Passw0rd1", "alice": "", "{USER}": "", "engine": adminPassword} {
		_, err := s.Login(ctx, user, password)
		refused(t, err, admin.Unauthenticated, 0)
		if want == "" {
			want = err.Error()
		}
		if err.Error() != want {
			t.Errorf("refusals differ: %q and %q", want, err)
		}
	}

	// A right password clears the count; the fifth wrong one in a row locks.
	wrong := func(n int) {
		for range n {
			_, err := s.Login(ctx, "engine", "wrong")
			refused(t, err, admin.Unauthenticated, 0)
		}
	}
	wrong(3)
	must(t)(s.Login(ctx, "engine", "Passw0rd1"))
	wrong(4)
	must(t)(s.Login(ctx, "engine", "Passw0rd1"))
	wrong(5)
	_, err := s.Login(ctx, "engine", "Passw0rd1")
	refused(t, err, admin.Unauthenticated, 0)
	must(t)(s.Login(ctx, "admin", adminPassword)) // others are not locked
	// Nor does the time tell who is locked out, and so that there is such a user.
	least := func(user, password string) time.Duration {
		best := time.Hour
		for range 5 {
			begin := time.Now()
			_, _ = s.Login(ctx, user, password)
			best = min(best, time.Since(begin))
		}
		return best
	}
	for _, password := range []string{"wrong", "Passw0rd1"} {
		// What else the machine does may slow down the one and not the other, but not always.
		for try := 1; ; try++ {
			known, unknown := least("engine", password), least("ghost", password)
			if known <= 4*unknown && unknown <= 4*known {
				break
			}
			if try == 10 {
				t.Fatalf("a user who is locked out takes %s, an unknown one %s", known, unknown)
			}
		}
	}
	at.at = at.at.Add(299 * time.Second)
	_, err = s.Login(ctx, "engine", "Passw0rd1")
	refused(t, err, admin.Unauthenticated, 0)
	at.at = at.at.Add(time.Second)
	must(t)(s.Login(ctx, "engine", "Passw0rd1"))

	// A changed password counts at once, and the old one no longer.
	if err := s.SetPassword(as("admin"), "engine", "N3w password"); err != nil {
		t.Fatal(err)
	}
	must(t)(s.Login(ctx, "engine", "N3w password"))
	_, err = s.Login(ctx, "engine", "Passw0rd1")
	refused(t, err, admin.Unauthenticated, 0)
	refused(t, s.SetPassword(ctx, "engine", "short"), admin.Invalid, 0)
	refused(t, s.SetPassword(ctx, "engine", ""), admin.Invalid, 0)
	refused(t, s.SetPassword(ctx, "ghost", "N3w password"), admin.NotFound, 0)
	if err := s.DeleteUser(as("admin"), "engine"); err != nil {
		t.Fatal(err)
	}
	_, err = s.Login(ctx, "engine", "N3w password")
	refused(t, err, admin.Unauthenticated, 0)

	// The history knows of passwords only that they changed.
	for _, c := range get(s.History(ctx, HistoryFilter{}))(t) {
		if strings.Contains(string(c.Document), "argon2") || strings.Contains(string(c.Document), "assw0rd") {
			t.Errorf("the history of %s %s holds a password", c.What, c.Name)
		}
	}
	if c := get(s.History(ctx, HistoryFilter{What: "password"}))(t); len(c) != 1 || c[0].Name != "engine" || c[0].User != "admin" {
		t.Errorf("the history of passwords is %+v", c)
	}
}

// Wrong passwords lock a user out at the address that they come from, and from
// everywhere only when they are many.
func TestLockedOutByAddress(t *testing.T) {
	at := &clock{time.Now()}
	s := open(t, t.TempDir()+"/policies.db", Options{AdminPassword: adminPassword, Now: at.now})
	from := func(address string) context.Context {
		return admin.WithAuthor(t.Context(), admin.Author{From: address})
	}
	tries := func(address, password string) bool {
		_, err := s.Login(from(address), "admin", password)
		if err != nil {
			refused(t, err, admin.Unauthenticated, 0)
		}
		return err == nil
	}
	for n := range 20 { // connections of one client, and addresses of one network
		tries(fmt.Sprintf("192.0.2.1:%d", 1000+n), "wrong")
		tries(fmt.Sprintf("2001:db8:1:2::%x", n), "wrong")
	}
	for address, want := range map[string]bool{
		"192.0.2.1": false, "192.0.2.1:7": false, "::ffff:192.0.2.1": false, "2001:db8:1:2:3::4": false,
		"192.0.2.2": true, "2001:db8:1:3::1": true, "": true,
	} {
		if tries(address, adminPassword) != want {
			t.Errorf("a right password from %q: %t", address, !want)
		}
	}
	// A right password elsewhere does not clear what a stranger tried.
	if tries("192.0.2.1", adminPassword) {
		t.Error("a right password from elsewhere unlocks")
	}
	for n := range wrongPasswordsAnywhere {
		tries(fmt.Sprintf("198.51.100.%d", n), "wrong")
	}
	if tries("192.0.2.2", adminPassword) {
		t.Error("guesses from many addresses do not lock")
	}
	at.at = at.at.Add(lockTime)
	if !tries("192.0.2.2", adminPassword) || !tries("192.0.2.1", adminPassword) {
		t.Error("a user stays locked out")
	}
}

// A password that could not be set otherwise is none for a new store either.
func TestWeakAdminPassword(t *testing.T) {
	for _, weakOne := range []string{"abc", "password1", "PASSWORD1", "Password", "Pass1"} {
		path := t.TempDir() + "/policies.db"
		if _, err := Open(t.Context(), path, Options{AdminPassword: weakOne}); !fault.Is(err, fault.Config) || strings.Contains(err.Error(), weakOne) {
			t.Errorf("%s: %v", weakOne, err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Error("a file was made")
		}
	}
	s := open(t, t.TempDir()+"/policies.db", Options{AdminPassword: "Passw0rd"})
	must(t)(s.Login(t.Context(), "admin", "Passw0rd"))
}

// With no password admin cannot log in.
func TestNoAdminPassword(t *testing.T) {
	s := open(t, t.TempDir()+"/policies.db", Options{})
	_, err := s.Login(t.Context(), "admin", "")
	refused(t, err, admin.Unauthenticated, 0)
	if err := s.SetPassword(t.Context(), "admin", adminPassword); err != nil {
		t.Fatal(err)
	}
	must(t)(s.Login(t.Context(), "admin", adminPassword))
}
