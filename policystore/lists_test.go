package policystore

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

// Lists are in the order of ids and whole.
func TestLists(t *testing.T) {
	s := seeded(t)
	ctx := as("admin")
	for n := range 3 {
		must(t)(s.CreatePolicy(ctx, access(fmt.Sprint("t", 3-n), "select")))
	}
	must(t)(s.CreatePolicy(ctx, onPolaris()))
	names := func(of ...string) string { return fmt.Sprint(of) }
	var policies, users, groups, roles, services []string
	for _, p := range get(s.Policies(ctx, "hive"))(t) {
		policies = append(policies, p.Name)
	}
	for _, u := range get(s.Users(ctx))(t) {
		users = append(users, u.Name)
	}
	for _, g := range get(s.Groups(ctx))(t) {
		groups = append(groups, g.Name)
	}
	for _, r := range get(s.Roles(ctx))(t) {
		roles = append(roles, r.Name)
	}
	for _, r := range get(s.Services(ctx))(t) {
		services = append(services, r.Name)
	}
	for _, c := range []struct{ got, want string }{
		{names(policies...), names("access t3", "access t2", "access t1")},
		{names(users...), names("admin", "{USER}", "{OWNER}", "alice", "bob", "carol", "anna_analyst", "ext_auditor", "engine")},
		{names(groups...), names("public", "engineering", "analytics", "governance", "external")},
		{names(roles...), names("data_engineer", "data_analyst", "auditor", "data_steward")},
		{names(services...), names("tag", "hive", "polaris")},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
	_, err := s.Policies(ctx, "nosuch")
	refused(t, err, admin.NotFound, 0)
}

// A policy may come with a guid of its own; nobody else's.
func TestPolicyGUID(t *testing.T) {
	s := seeded(t)
	ctx := as("admin")
	p := get(s.CreatePolicy(ctx, changed(access("t", "select"), func(p *model.Policy) { p.GUID = "its-own" })))(t)
	if p.GUID != "its-own" {
		t.Errorf("the guid is %s", p.GUID)
	}
	_, err := s.CreatePolicy(ctx, changed(access("other", "select"), func(p *model.Policy) { p.GUID = "its-own" }))
	refused(t, err, admin.Exists, 0)
}

// A caller who has gone leaves nothing half done, and no lock.
func TestCancelledWriter(t *testing.T) {
	s := seeded(t)
	ctx, cancel := context.WithCancel(as("admin"))
	cancel()
	if _, err := s.CreatePolicy(ctx, access("t", "select")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if n := len(get(s.Policies(t.Context(), "hive"))(t)); n != 0 {
		t.Errorf("%d policies", n)
	}
	must(t)(s.CreatePolicy(as("admin"), access("t", "select")))
}

// Tags that "delete" names by their guid are gone, wherever they are.
func TestDeleteTagsByGUID(t *testing.T) {
	s := seeded(t)
	ctx := as("admin")
	if err := s.ImportTags(ctx, carries("add_or_update", map[string][]string{"a": {"PII", "TEMP"}})); err != nil {
		t.Fatal(err)
	}
	d := get(s.Tags(ctx, "hive"))(t)
	gone := &model.ServiceTags{ServiceName: "hive", Op: "delete", Tags: map[string]model.Tag{}}
	for id, x := range d.Tags {
		if x.Type == "TEMP" {
			gone.Tags[id] = x
		}
	}
	if err := s.ImportTags(ctx, gone); err != nil {
		t.Fatal(err)
	}
	after := get(s.Tags(ctx, "hive"))(t)
	if carried(after) != "a:PII" || *after.TagVersion != *d.TagVersion+1 {
		t.Errorf("%s in version %d after %d", carried(after), *after.TagVersion, *d.TagVersion)
	}
}
