package rangerclient

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"sqe/identity"
	"sqe/policy"
	"sqe/rangerclient/eval"
	"sqe/rangerclient/model"
)

// documents are the bodies of one poll.
type documents struct {
	objects, tables         *model.ServicePolicies
	objectTags, tableTags   *model.ServiceTags
	roles                   *model.Roles
	users                   *model.UserStore
	fingerprint             string
	objectsName, tablesName string
}

// versions lists what Status and the version of a State show.
func (d *documents) versions() map[string]int64 {
	out := map[string]int64{}
	put := func(name string, v *int64) {
		if v != nil {
			out[name] = *v
		}
	}
	if d.objects != nil {
		put("policies/"+d.objectsName, d.objects.PolicyVersion)
	}
	if d.tables != nil {
		put("policies/"+d.tablesName, d.tables.PolicyVersion)
	}
	if d.objectTags != nil {
		put("tags/"+d.objectsName, d.objectTags.TagVersion)
	}
	if d.tableTags != nil {
		put("tags/"+d.tablesName, d.tableTags.TagVersion)
	}
	if d.roles != nil {
		put("roles", d.roles.RoleVersion)
	}
	if d.users != nil {
		put("users", d.users.Version)
	}
	return out
}

// policies are those of the services.
func (d *documents) policies() []*model.Policy {
	var out []*model.Policy
	for _, s := range []*model.ServicePolicies{d.objects, d.tables} {
		if s != nil {
			out = append(out, s.Policies...)
		}
	}
	return out
}

func (d *documents) roleList() []*model.Role {
	if d.roles == nil {
		return nil
	}
	return d.roles.RangerRoles
}

// State is a compiled snapshot of all documents. It implements policy.State.
type State struct {
	options Options
	source  string
	version string
	now     func() time.Time
	objects *eval.Engine // nil: no object gate
	tables  *eval.Engine

	objectSubjects, tableSubjects subjects

	docs  *documents
	texts bearers
	named struct {
		once      sync.Once
		databases []value // of which policies name tables
	}
}

// newState compiles documents. log, which may be left out, is told of policies whose
// scripts meet a limit.
func newState(source string, o Options, d *documents, now func() time.Time, log ...*slog.Logger) *State {
	s := &State{options: o, source: source, version: d.fingerprint, now: now, docs: d}
	eo := eval.Options{StoreGroups: o.Groups != GroupsFromIdentity}
	if len(log) > 0 {
		eo.Log = log[0]
	}
	if d.objects != nil {
		s.objects = eval.Compile(eval.Documents{Policies: d.objects, Tags: d.objectTags, Roles: d.roles, Users: d.users}, eo)
	}
	s.tables = eval.Compile(eval.Documents{Policies: d.tables, Tags: d.tableTags, Roles: d.roles, Users: d.users}, eo)
	return s
}

// Version implements policy.State.
func (s *State) Version() string { return s.version }

// policies is the number of policies that may apply.
func (s *State) policies() int {
	n := s.tables.Policies()
	if s.objects != nil {
		n += s.objects.Policies()
	}
	return n
}

// Problems lists policies that cannot be applied as they stand, for
// administrators.
func (s *State) Problems() []string {
	var out []string
	if s.objects != nil {
		out = append(out, s.objects.Problems()...)
	}
	return append(out, s.tables.Problems()...)
}

// asker is who asks, and from which address ("": not known).
type asker struct {
	*eval.Subject
	address string
}

func (s *State) subject(e *eval.Engine, p identity.Principal) asker {
	remembered := &s.tableSubjects
	if e == s.objects {
		remembered = &s.objectSubjects
	}
	return asker{address: p.Address, Subject: remembered.get(p, func(p identity.Principal) *eval.Subject {
		groups := p.Groups
		if s.options.Groups == GroupsFromRanger {
			groups = nil
		}
		return e.Subject(p.Name, groups, p.Roles, p.ActiveRoles, p.Attributes)
	})}
}

// Roles implements policy.State: all roles that p holds, whichever are active.
func (s *State) Roles(p identity.Principal) []string {
	if p.IsZero() {
		return nil
	}
	out := slices.Clone(s.subject(s.tables, p).Held)
	slices.Sort(out)
	return out
}

// Groups implements policy.Grouper.
func (s *State) Groups(p identity.Principal) []string {
	if p.IsZero() {
		return nil
	}
	return slices.Clone(s.subject(s.tables, p).Groups)
}

func (s *State) origin(e *eval.Engine, o eval.Origin) policy.Origin {
	out := policy.Origin{Source: s.source, Service: e.Service(), Tag: o.Tag, TagFrom: o.TagFrom, Earlier: o.Earlier, Via: o.Via}
	switch {
	case o.Super:
		out.Policy, out.Via = "super user of the service", "user"
	case o.Policy != nil:
		out.Service, out.Policy, out.ID, out.Version, out.Zone = o.Policy.Service, o.Policy.Name, o.Policy.ID, o.Policy.Version, o.Policy.Zone
	}
	return out
}

// The privileges of which one makes an object visible.
var (
	tablePrivileges     = []policy.Privilege{policy.TableList, policy.TableProps, policy.TableDataRead}
	viewPrivileges      = []policy.Privilege{policy.ViewList, policy.ViewProps}
	namespacePrivileges = []policy.Privilege{policy.NamespaceList, policy.NamespaceProps}
	catalogPrivileges   = []policy.Privilege{policy.CatalogList, "catalog-properties-read"}
)

// Authorize implements policy.State. An object is Visible when a privilege that
// shows it is granted on the object itself; that something inside a namespace is
// visible is for the caller to find out.
func (s *State) Authorize(p identity.Principal, o policy.Object, priv policy.Privilege) policy.Decision {
	if s.objects == nil {
		return policy.Decision{Reason: policy.NotDecided}
	}
	if p.IsZero() {
		return policy.Decision{Reason: policy.NoGrant}
	}
	return s.authorize(s.subject(s.objects, p), o, priv)
}

func (s *State) authorize(who asker, o policy.Object, priv policy.Privilege) (d policy.Decision) {
	if o.Catalog == "" || priv == "" || o.Name != "" && len(o.Namespace) == 0 {
		return policy.Decision{Reason: policy.NoGrant}
	}
	q := s.objectRequest(who, o)
	s.objects.FindTags(q)
	d.Reason = policy.NoGrant
	q.Access = string(priv)
	a := s.objects.Access(q)
	switch {
	case a.Allowed:
		d.Allow, d.Reason = true, policy.Granted
	case a.Denied:
		d.Reason = policy.ExplicitDeny
	}
	if a.Origin.Policy != nil || a.Origin.Super {
		d.By = []policy.Origin{s.origin(s.objects, a.Origin)}
	}
	shows := namespacePrivileges
	switch {
	case o.View:
		shows = viewPrivileges
	case o.Name != "":
		shows = tablePrivileges
	case len(o.Namespace) == 0:
		shows = catalogPrivileges
	}
	defer func() { d.ByAddress = len(q.ByAddress()) > 0 }()
	if d.Allow && slices.Contains(shows, priv) {
		d.Visible = true
		return d
	}
	for _, x := range shows {
		if x == priv {
			continue
		}
		q.Access = string(x)
		if s.objects.Access(q).Allowed {
			d.Visible = true
			break
		}
	}
	return d
}

// objectRequest names the object as Polaris' Ranger authorizer does.
func (s *State) objectRequest(who asker, o policy.Object) *eval.Request {
	q := eval.NewRequest(who.Subject, string(policy.TableList), s.now())
	q.Owner, q.ClientIP = o.Owner, who.address
	q.With("root", false, s.options.Realm).With("catalog", false, o.Catalog)
	switch {
	case o.Name != "":
		q.With("namespace", false, escapeLevel(o.Namespace[0]))
		rest := escapeLevel(o.Name)
		for i := len(o.Namespace) - 1; i > 0; i-- {
			rest = escapeLevel(o.Namespace[i]) + "/" + rest
		}
		q.With("table", s.options.NestedWildcards != WildcardsAsPolaris, rest)
	case len(o.Namespace) > 0:
		levels := make([]string, len(o.Namespace))
		for i, l := range o.Namespace {
			levels[i] = escapeLevel(l)
		}
		q.With("namespace", false, strings.Join(levels, "/"))
	}
	return q
}

func escapeLevel(name string) string { return strings.ReplaceAll(name, "/", `\/`) }

var _ policy.State = (*State)(nil)
