package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sqe/fault"
	"sqe/policy"
	"sqe/rangerclient"
	"sqe/rangerclient/model"
)

// Config configures an Administrator.
type Config struct {
	Source      string // name of the policy source that reads what is written
	DataService string // of type hive or trino
	// PolarisService is listed, and policies of it may be dropped; empty: none.
	PolarisService string
	Options        rangerclient.Options
	ProjectTags    bool
	// GroupsAsRoles writes a grant to a group as one to the role of its name, for an
	// object gate that knows no groups.
	GroupsAsRoles bool
	// RangerDecides: who may grant everything is whom the policy server lets administer
	// it or the polaris service, whatever this server knows of them.
	RangerDecides bool
	// Reload makes the source see what was written; it returns when it does.
	Reload func(context.Context) error
	// ReapplyLost writes changes again that a stale write of somebody else erased.
	// Lost is told of such changes; nil: nobody is.
	ReapplyLost bool
	Lost        func(Loss)
	// RolesFile keeps what statements said of the members of roles for the next start of
	// the server; "": nothing is kept.
	RolesFile string
}

// Administrator is policy.Administrator for a policy server.
type Administrator struct {
	config Config
	server Server
	writer *Writer
	keeper *keeper
}

var _ policy.Administrator = (*Administrator)(nil)

// New makes the Administrator of a server. It asks the server nothing yet.
func New(s Server, c Config) (*Administrator, error) {
	if c.Source == "" || c.DataService == "" || c.Reload == nil {
		return nil, fault.New(fault.Config, "administration of policies needs a source, its data service and a way to reload it")
	}
	a := &Administrator{config: c, server: s, writer: NewWriter(s)}
	a.writer.WatchLosses(c.ReapplyLost, c.Lost)
	members, err := openMemberships(c.RolesFile, a.writer.watched.now())
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "policy source %s: %s", c.Source, err)
	}
	a.keeper = &keeper{Administrator: a, members: members}
	return a, nil
}

// Writer is what everything else that writes policies of the server must use.
func (a *Administrator) Writer() *Writer { return a.writer }

// Source implements policy.Administrator.
func (a *Administrator) Source() string { return a.config.Source }

// Projects implements policy.Administrator.
func (a *Administrator) Projects() bool { return a.config.ProjectTags }

// language asks the server what the data service is.
func (a *Administrator) language(ctx context.Context) (*language, error) {
	s, err := a.server.Service(ctx, a.config.DataService)
	if err != nil {
		return nil, a.fault(err, a.config.DataService)
	}
	if s.Type != "hive" && s.Type != "trino" {
		return nil, fault.New(fault.Config, "service %s of %s is of type %s, which has no row filters and masks; data-service of policy source %s must be of type hive or trino", s.Name, a.server.Name(), s.Type, a.config.Source)
	}
	return &language{component: s.Type, service: s.Name, tagService: s.TagService, databaseKey: a.config.Options.DatabaseKey}, nil
}

// services are those that the source reads.
func (a *Administrator) services(l *language) []string {
	out := []string{l.service}
	for _, s := range []string{l.tagService, a.config.PolarisService} {
		if s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// done makes the source see a change.
func (a *Administrator) done(ctx context.Context, what string) error {
	if err := a.config.Reload(ctx); err != nil {
		return fault.Wrap(fault.Unavailable, err, "%s is stored on %s, but is not yet in force here: source %s could not be read again. It is tried again by itself; SHOW POLICY STATUS shows the cause", what, a.server.Name(), a.config.Source)
	}
	return nil
}

// Create implements policy.Administrator. A table in a security zone gets the
// policy in that zone: there no other policy acts.
func (a *Administrator) Create(ctx context.Context, by policy.Author, d policy.Definition, replace bool) error {
	ctx = WithAuthor(ctx, Author{User: by.User, From: by.From})
	l, err := a.language(ctx)
	if err != nil {
		return err
	}
	want, err := l.policyFor(d)
	if err != nil {
		return err
	}
	if d.Tag == "" {
		if want.ZoneName, err = a.zone(ctx, l, d, want); err != nil {
			return err
		}
	}
	at := Place{Service: want.Service, Zone: want.ZoneName, Name: d.Name}
	_, err = a.writer.Edit(ctx, at, func(p *model.Policy) (*model.Policy, error) {
		next := clone(want)
		switch {
		case p == nil:
			return next, nil
		case !replace:
			return nil, fault.New(fault.BadStatement, "CREATE POLICY: policy %q exists already in service %s; CREATE OR REPLACE POLICY replaces it, ALTER POLICY changes it", d.Name, p.Service)
		case p.PolicyType != next.PolicyType:
			return nil, fault.New(fault.BadStatement, "CREATE POLICY: policy %q in service %s is of another kind, which cannot be changed; drop it first or choose another name", d.Name, p.Service)
		}
		next.PolicyLabels, next.Options = p.PolicyLabels, p.Options
		if next.Description == "" {
			next.Description = p.Description
		}
		return next, nil
	})
	if err != nil {
		return a.fault(err, want.Service)
	}
	return a.done(ctx, fmt.Sprintf("policy %q", d.Name))
}

// zone is the security zone that a table lies in.
func (a *Administrator) zone(ctx context.Context, l *language, d policy.Definition, want *model.Policy) (string, error) {
	zones, err := a.server.Zones(ctx)
	if KindOf(err) == Forbidden {
		// Not everybody who may write policies may read zones. Where no policy is
		// in a zone there is none: a zone is made with policies of its own.
		list, err := a.server.Policies(ctx, l.service)
		if err != nil {
			return "", a.fault(err, l.service)
		}
		if slices.ContainsFunc(list, func(p *model.Policy) bool { return p.ZoneName != "" }) {
			return "", fault.New(fault.Denied, "the user with which SQE writes to %s may not read security zones, so it cannot tell in which one the table lies; give it the permission for the module Security Zone", a.server.Name())
		}
		return "", nil
	}
	if err != nil {
		return "", a.fault(err, l.service)
	}
	for _, z := range zones {
		if z.Enabled != nil && !*z.Enabled {
			continue
		}
		for _, r := range z.Services[l.service].Resources {
			if covers(r, l, d, want) {
				return z.Name, nil
			}
		}
	}
	return "", nil
}

// covers reports whether a resource of a zone holds the table of a definition.
func covers(zone map[string][]string, l *language, d policy.Definition, want *model.Policy) bool {
	names := map[string][]string{}
	for k, v := range want.Resources {
		names[k] = v.Values
	}
	if l.component != "trino" {
		// However the policy names the database, the reader compares both.
		dotted := strings.Join(d.Table.Namespace, ".")
		names["database"] = []string{dotted, d.Table.Catalog + "." + dotted}
	}
	for element, patterns := range zone {
		have, ok := names[element]
		if !ok { // columns of a policy on the whole table
			have = []string{""}
		}
		if !slices.ContainsFunc(patterns, func(p string) bool {
			return slices.ContainsFunc(have, func(n string) bool { return wildcard(strings.ToLower(p), strings.ToLower(n)) })
		}) {
			return false
		}
	}
	return len(zone) > 0
}

// wildcard matches Ranger's patterns: * is any text, ? is one character.
func wildcard(pattern, name string) bool {
	p, n := []rune(pattern), []rune(name)
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(n) {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == n[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}

// one finds the policy of a name among the services.
func (a *Administrator) one(ctx context.Context, services []string, statement, name string) (*model.Policy, error) {
	var found []*model.Policy
	for _, s := range services {
		list, err := a.server.Policies(ctx, s)
		if err != nil {
			return nil, a.fault(err, s)
		}
		for _, p := range list {
			if p.Name == name {
				found = append(found, p)
			}
		}
	}
	switch len(found) {
	case 0:
		return nil, a.noPolicy(name)
	case 1:
		return found[0], nil
	}
	var places []string
	for _, p := range found {
		where := "service " + p.Service
		if p.ZoneName != "" {
			where += ", zone " + p.ZoneName
		}
		places = append(places, where)
	}
	return nil, fault.New(fault.BadStatement, "%s: there are %d policies named %q (%s); rename all but one in the policy server first", statement, len(found), name, strings.Join(places, "; "))
}

func (a *Administrator) noPolicy(name string) error {
	return fault.New(fault.NotFound, "there is no policy %q on %s; SHOW POLICIES lists them", name, a.server.Name())
}

// Drop implements policy.Administrator.
func (a *Administrator) Drop(ctx context.Context, by policy.Author, name string) error {
	ctx = WithAuthor(ctx, Author{User: by.User, From: by.From})
	l, err := a.language(ctx)
	if err != nil {
		return err
	}
	p, err := a.one(ctx, a.services(l), "DROP POLICY", name)
	if err != nil {
		return err
	}
	_, err = a.writer.Edit(ctx, Place{Service: p.Service, ID: p.ID}, func(now *model.Policy) (*model.Policy, error) {
		if now == nil || now.Name != name {
			return nil, a.noPolicy(name)
		}
		return nil, nil
	})
	if err != nil {
		return a.fault(err, p.Service)
	}
	return a.done(ctx, fmt.Sprintf("that policy %q is dropped", name))
}

// List implements policy.Administrator.
func (a *Administrator) List(ctx context.Context) ([]policy.Stored, error) {
	l, err := a.language(ctx)
	if err != nil {
		return nil, err
	}
	var out []policy.Stored
	for _, s := range a.services(l) {
		list, err := a.server.Policies(ctx, s)
		if err != nil {
			return nil, a.fault(err, s)
		}
		for _, p := range list {
			if p.Service == "" {
				p.Service = s
			}
			out = append(out, l.stored(p))
		}
	}
	slices.SortStableFunc(out, func(x, y policy.Stored) int {
		return strings.Compare(x.Service+"\x00"+x.Name+"\x00"+x.Zone, y.Service+"\x00"+y.Name+"\x00"+y.Zone)
	})
	return out, nil
}
