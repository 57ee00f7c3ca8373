package ranger

import (
	"encoding/json"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"sqe/audit"
	"sqe/policy"
)

// Service is a Ranger service.
type Service struct {
	Name string
	Type string // name of its service definition: "hive", "trino", "polaris"
	ID   int    // id of its service definition
}

// Source is a policy source: the name that policy.Origin carries, and what its
// policies are about.
type Source struct {
	Name  string
	Realm string // root of the resources of the object service
	// WithCatalog: the databases of a hive service are "catalog.namespace".
	WithCatalog bool
	// Services names the services of objects (none: the zero Service) and of data.
	// It is asked for each event, because the types are known once the policies
	// were read.
	Services func() (objects, data Service)
}

// Naming is what events say of whoever wrote them.
type Naming struct {
	Agent   string // such as "sqe"
	Host    string
	Cluster string
}

const (
	enforcer = "ranger-acl"
	logType  = "RangerAudit"
	cliType  = "MYSQL"
	// maxData is the most characters of a statement that an event holds, as in
	// Ranger (MAX_REQUEST_DATA_FIELD_SIZE).
	maxData = 1800
	// noPolicy is Ranger's policy id of a decision without a policy.
	noPolicy = -1
)

// converter turns audit events into Ranger's. It is safe for concurrent use.
type converter struct {
	naming  Naming
	sources []Source
	seq     atomic.Int64
}

// events is what the plugins of Ranger would have written about the statement: of
// each table the access to the object, the access to its columns, each row filter
// and each mask; of a refused statement what was refused and nothing else (so do
// the plugins). Logins and statements without tables give none.
func (c *converter) events(e audit.Event) []Event {
	if e.Type != "statement" {
		return nil
	}
	s := statement{converter: c, event: &e, out: make([]Event, 0, 4)}
	s.denials()
	if len(s.out) > 0 && e.Outcome != "ok" {
		return s.finish()
	}
	s.changes()
	var done []string
	for i := range e.Tables {
		if t := &e.Tables[i]; !slices.Contains(done, t.Name) {
			done = append(done, t.Name)
			s.table(t)
		}
	}
	return s.finish()
}

// statement collects the events of one statement.
type statement struct {
	*converter
	event *audit.Event
	out   []Event
}

func (s *statement) source(name string) *Source {
	for i := range s.sources {
		if s.sources[i].Name == name {
			return &s.sources[i]
		}
	}
	return nil
}

// services are the services of the source that a policy comes from. An unknown
// source has the service that the policy names.
func (s *statement) services(o policy.Origin) (objects, data Service, from Source) {
	src := s.source(o.Source)
	if src == nil || src.Services == nil {
		return Service{Name: o.Service}, Service{Name: o.Service}, Source{}
	}
	objects, data = src.Services()
	if objects.Name == "" {
		objects = data
	}
	return objects, data, *src
}

// decider is the source to name where no policy decided.
func (s *statement) decider() policy.Origin {
	for _, src := range s.sources {
		if src.Services == nil {
			continue
		}
		if objects, _ := src.Services(); objects.Name != "" {
			return policy.Origin{Source: src.Name}
		}
	}
	if len(s.sources) > 0 {
		return policy.Origin{Source: s.sources[0].Name}
	}
	return policy.Origin{}
}

// add adds an event that a policy of a service caused, unless the same is there.
func (s *statement) add(svc Service, o policy.Origin, e Event, more info) {
	e.Repo, e.RepoType = svc.Name, svc.ID
	e.Policy, e.Zone = noPolicy, o.Zone
	if o.ID != 0 {
		version := o.Version
		e.Policy, e.Version = o.ID, &version
	}
	more.Policy, more.Via = o.Policy, o.Via
	if o.Tag != "" {
		e.Tags = addTag(e.Tags, o.Tag)
	}
	if more != (info{}) {
		text, _ := json.Marshal(more) // of texts: never fails
		e.Info = string(text)
	}
	for i := range s.out {
		x := &s.out[i]
		if x.Repo == e.Repo && x.Resource == e.Resource && x.Access == e.Access && x.Action == e.Action && x.Policy == e.Policy &&
			x.Info == e.Info && x.Result == e.Result {
			return
		}
	}
	s.out = append(s.out, e)
}

// addTag adds a tag in the form of Ranger's RangerTagForEval; its attributes are
// not known here.
func addTag(tags []string, name string) []string {
	text, _ := json.Marshal(struct {
		Type string `json:"type"`
	}{name}) // never fails
	if slices.Contains(tags, string(text)) {
		return tags
	}
	return append(tags, string(text))
}

// denials adds what was refused.
func (s *statement) denials() {
	for _, d := range s.event.Denials {
		by := d.By
		if len(by) == 0 {
			by = []policy.Origin{s.decider()}
		}
		for _, o := range by {
			objects, _, src := s.services(o)
			resource, kind := object(path(d.Path, d.Object), src, d.Privilege)
			s.add(objects, o, Event{
				Access: accessOf(d.Privilege), Action: d.Privilege, Resource: resource, ResType: kind, Reason: string(d.Reason),
			}, info{})
		}
	}
	if len(s.event.Denials) > 0 || s.event.Outcome != "denied" {
		return
	}
	// A statement that named withheld columns: they are what was refused.
	for _, a := range s.event.Policies {
		if a.What != "withheld" || a.Unused {
			continue
		}
		_, data, src := s.services(a.Origin)
		r := rules(data.Type)
		s.add(data, a.Origin, Event{
			Access: r.read, Action: "select", Resource: join(append(r.table(path(nil, a.Table), src), a.Column)), ResType: r.column,
			Reason: "withheld",
		}, info{})
	}
}

// changes adds what the object gate let the principal change.
func (s *statement) changes() {
	for _, c := range s.event.Changes {
		by := c.By
		if len(by) == 0 {
			by = []policy.Origin{s.decider()}
		}
		for _, o := range by {
			objects, _, src := s.services(o)
			for _, p := range c.Privileges {
				resource, kind := object(path(c.Path, c.Object), src, p)
				s.add(objects, o, Event{Access: accessOf(p), Action: p, Resource: resource, ResType: kind, Result: 1}, info{})
			}
		}
	}
}

// table adds the accesses to one table.
func (s *statement) table(t *audit.Table) {
	at := path(t.Path, t.Name)
	var allowed policy.Origin
	var granted bool
	var tags []string
	for _, a := range s.event.Policies {
		if a.Table != t.Name {
			continue
		}
		if a.Origin.Tag != "" && !a.Unused {
			tags = addTag(tags, a.Origin.Tag)
		}
		if a.What != "allow" {
			continue
		}
		if !granted {
			allowed, granted = a.Origin, true
		}
		objects, _, src := s.services(a.Origin)
		resource, kind := object(at, src, string(policy.TableDataRead))
		s.add(objects, a.Origin, Event{
			Access: accessOf(string(policy.TableDataRead)), Action: string(policy.TableDataRead), Resource: resource, ResType: kind, Result: 1,
		}, s.info(t))
	}
	if !granted {
		allowed = s.decider()
	}
	_, data, src := s.services(allowed)
	r := rules(data.Type)
	resource, kind := r.table(at, src), r.tableKind
	if columns := s.columns(t); len(columns) > 0 {
		resource, kind = append(resource, strings.Join(columns, ",")), r.column
	}
	s.add(data, allowed, Event{Access: r.read, Action: "select", Resource: join(resource), ResType: kind, Result: 1, Tags: tags}, s.info(t))
	for _, a := range s.event.Policies {
		if a.Table == t.Name && !a.Unused {
			s.rule(a, at, t)
		}
	}
}

// rule adds what a row filter or a mask did. An exemption leaves no event: Ranger's
// plugins write none for MASK_NONE. A withheld column was not read.
func (s *statement) rule(a audit.Action, at []string, t *audit.Table) {
	_, data, src := s.services(a.Origin)
	r := rules(data.Type)
	more := s.info(t)
	switch a.What {
	case "row-filter":
		s.add(data, a.Origin, Event{Access: r.filter, Action: "select", Resource: join(r.table(at, src)), ResType: r.tableKind, Result: 1}, more)
	case "mask", "fixed", "null":
		access := a.Action
		if access == "" {
			access = strings.ToUpper(a.What)
		}
		more.Mask = access
		if r.mask != "" {
			access = r.mask
		}
		s.add(data, a.Origin, Event{Access: access, Action: "select", Resource: join(append(r.table(at, src), a.Column)), ResType: r.column, Result: 1}, more)
	}
}

// columns are those that the statement refers to, at every snapshot of the table.
func (s *statement) columns(t *audit.Table) []string {
	var out []string
	for i := range s.event.Tables {
		if x := &s.event.Tables[i]; x.Name == t.Name {
			for _, c := range x.Columns {
				if !slices.Contains(out, c) {
					out = append(out, c)
				}
			}
		}
	}
	return out
}

// info is additional_info, which Ranger leaves to each plugin.
type info struct {
	Mask     string `json:"mask,omitempty"`
	Via      string `json:"matched-by,omitempty"`
	Outcome  string `json:"outcome,omitempty"`
	Policy   string `json:"policy-name,omitempty"`
	Snapshot string `json:"snapshot,omitempty"`
	Table    string `json:"table,omitempty"`
}

func (s *statement) info(t *audit.Table) info {
	out := info{Table: t.Name}
	for i := range s.event.Tables {
		if x := &s.event.Tables[i]; x.Name == t.Name && x.Snapshot != 0 {
			if out.Snapshot != "" {
				out.Snapshot += ","
			}
			out.Snapshot += strconv.FormatInt(x.Snapshot, 10)
		}
	}
	if s.event.Outcome != "ok" {
		out.Outcome = s.event.Outcome
	}
	return out
}

// finish fills in what all events of the statement share.
func (s *statement) finish() []Event {
	e := s.event
	data := e.Statement
	if len(data) > maxData {
		runes := []rune(data)
		data = string(runes[:min(len(runes), maxData)])
	}
	ip := e.Remote
	if host, _, err := net.SplitHostPort(e.Remote); err == nil {
		ip = host
	}
	at, session := e.Time.UTC().Format(timeLayout), e.Run+"-"+strconv.FormatUint(uint64(e.Connection), 10)
	id := e.Run + "-" + strconv.FormatUint(e.Seq, 10) + "-"
	for i := range s.out {
		x := &s.out[i]
		x.User, x.Time, x.Agent, x.Host, x.Cluster = e.User, at, s.naming.Agent, s.naming.Host, s.naming.Cluster
		x.Enforcer, x.LogType, x.CliType, x.CliIP, x.Data = enforcer, logType, cliType, ip, data
		// The id tells where the event stands in the audit log of this process, and
		// makes a second arrival of it harmless.
		x.ID = id + strconv.Itoa(i)
		x.Session = session
		x.Seq, x.Count, x.Duration = s.seq.Add(1), 1, int64(e.DurationMS)
	}
	return s.out
}

// accessOf names what a privilege of the object service lets somebody do.
func accessOf(privilege string) string {
	if privilege == string(policy.TableDataRead) {
		return "SELECT"
	}
	return strings.ToUpper(strings.ReplaceAll(privilege, "-", "_"))
}

// path are the parts of a name. Without them the text is split, which is wrong
// only for names that hold dots.
func path(parts []string, text string) []string {
	if len(parts) > 0 {
		return parts
	}
	return strings.Split(text, ".")
}

func join(parts []string) string { return strings.Join(parts, "/") }

// object names an object as Polaris' Ranger authorizer does: root, catalog,
// levels of the namespace and table, and the kind of its last part.
func object(at []string, src Source, privilege string) (resource, kind string) {
	parts := make([]string, 0, len(at)+1)
	if src.Realm != "" {
		parts = append(parts, src.Realm)
	}
	for _, p := range at {
		parts = append(parts, strings.ReplaceAll(p, "/", `\/`))
	}
	kind = "table"
	switch {
	case privilege == "namespace-create" && len(at) == 1: // a new one in the catalog
		kind = "catalog"
	case strings.HasPrefix(privilege, "namespace-"), privilege == "table-create", privilege == "view-create":
		kind = "namespace"
	case strings.HasPrefix(privilege, "catalog-"):
		kind = "catalog"
	}
	return join(parts), kind
}

// dialect is how the plugin of a type of data service writes its events.
type dialect struct {
	read, filter string // the accesses
	mask         string // the access of a mask; "": the type of the mask
	tableKind    string
	column       string
	// catalog: resources begin with the catalog.
	catalog bool
}

// rules: sources are Ranger's RangerHiveAuditHandler, and Trino's
// RangerSystemAccessControl with Ranger's RangerDefaultAuditHandler (which writes
// an event for each column where this writes one for all).
func rules(serviceType string) dialect {
	if serviceType == "trino" {
		return dialect{read: "SelectFromColumns", filter: "getRowFilters", mask: "getColumnMask", tableKind: "table", column: "column", catalog: true}
	}
	return dialect{read: "SELECT", filter: "ROW_FILTER", tableKind: "@table", column: "@column"}
}

// table is the resource of a table: database and table, or catalog, schema and
// table.
func (d dialect) table(at []string, src Source) []string {
	if len(at) < 3 {
		return slices.Clone(at)
	}
	catalog, namespace, name := at[0], strings.Join(at[1:len(at)-1], "."), at[len(at)-1]
	switch {
	case d.catalog:
		return []string{catalog, namespace, name}
	case src.WithCatalog:
		return []string{catalog + "." + namespace, name}
	}
	return []string{namespace, name}
}
