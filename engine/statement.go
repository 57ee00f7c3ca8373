package engine

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"regexp"
	"slices"
	"strings"
	"time"

	"sqe/catalog"
	"sqe/engine/bind"
	"sqe/fault"
	"sqe/identity"
	"sqe/plan"
	"sqe/policy"
	"sqe/restrictions"
	"sqe/rewrite"
)

// statement is what one statement knows: who asks, and one policy state, taken
// once, from which every answer comes.
type statement struct {
	engine    *Engine
	session   *Session
	principal identity.Principal
	started   time.Time

	states  []policy.State
	version string // of all states together
	// tables holds what the data gate said, by table version and schema.
	tables  map[string]*rewrite.Bound
	record  *rewrite.Record
	denial  []denial
	allowed []grant
	changed []permission
	// grantees of a statement about access, for the audit log.
	grantees []string
	salt     []byte
	ahead    readAhead
	// absent tells of catalogs that are not there for this session.
	absent []string
}

// denial is a refusal of the object gate, for the audit log.
type denial struct {
	object    policy.Object
	privilege policy.Privilege
	decision  policy.Decision
}

// grant is a table that the object gate let the principal read, and why, for the
// audit log.
type grant struct {
	table *plan.Table
	by    []policy.Origin
	// byAddress: it depends on the address of the client.
	byAddress bool
}

// policies takes the policy state of every source. A source that is too old
// refuses the statement.
func (st *statement) policies() ([]policy.State, error) {
	if st.states != nil {
		return st.states, nil
	}
	if len(st.engine.sources) == 0 {
		return nil, fault.New(fault.PolicyStale, "no policy source is configured, so every table is refused; add a [[policies]] section")
	}
	states := make([]policy.State, len(st.engine.sources))
	var version strings.Builder
	for i, src := range st.engine.sources {
		s, err := src.State()
		if err != nil {
			return nil, err
		}
		states[i] = s
		version.WriteString(src.Name())
		version.WriteByte(0)
		version.WriteString(s.Version())
		version.WriteByte(0)
	}
	st.states, st.version = states, version.String()
	return states, nil
}

// authorize asks the object gate of every source.
func (st *statement) authorize(o policy.Object, p policy.Privilege) (policy.Decision, error) {
	states, err := st.policies()
	if err != nil {
		return policy.Decision{}, err
	}
	decisions := make([]policy.Decision, len(states))
	for i, s := range states {
		decisions[i] = s.Authorize(st.principal, o, p)
	}
	return policy.MergeDecisions(decisions...), nil
}

func (st *statement) denied(o policy.Object, p policy.Privilege, d policy.Decision) {
	st.denial = append(st.denial, denial{object: o, privilege: p, decision: d})
}

// bound is the answer of the data gate for a table, with its texts bound.
func (st *statement) bound(ctx context.Context, t *plan.Table) (*rewrite.Bound, error) {
	states, err := st.policies()
	if err != nil {
		return nil, err
	}
	key := tableKey(t)
	if b, ok := st.tables[key]; ok {
		return b, nil
	}
	if t.Metadata != "" {
		b, err := st.metadata(ctx, t)
		if err == nil {
			st.tables[key] = b
		}
		return b, err
	}
	b, err := st.engine.memo.get(ctx, memoKey{policies: st.version, principal: st.reader(), table: key}, func() (*rewrite.Bound, []*plan.Table, time.Time, error) {
		return st.resolve(ctx, states, t)
	}, st.current)
	if err != nil {
		return nil, err
	}
	st.tables[key] = b
	return b, nil
}

// ofAnother reports whether the statement is one of somebody else, to be explained.
func (st *statement) ofAnother() bool {
	return st.session != nil && st.principal.Key() != st.session.principal.Key()
}

// reader identifies for whom answers are remembered.
func (st *statement) reader() string {
	if st.ofAnother() {
		return st.principal.Key() + "\x1eexplained"
	}
	return st.principal.Key()
}

// metadata is the answer for a metadata table: that of the table itself, now and
// at the snapshot whose schema names the columns of bounds.
func (st *statement) metadata(ctx context.Context, t *plan.Table) (*rewrite.Bound, error) {
	cat, ok := st.engine.catalogs.Get(t.Name.Catalog)
	if !ok {
		return nil, missing(t.Name.Catalog, t.Name.Name)
	}
	ats := []plan.AsOf{{}}
	if t.SnapshotID != 0 {
		ats = append(ats, plan.AsOf{Snapshot: t.SnapshotID})
	}
	var data []*rewrite.Bound
	for _, at := range ats {
		table, err := cat.Table(ctx, t.Name, at, "")
		if err != nil {
			return nil, err
		}
		b, err := st.bound(ctx, table)
		if err != nil {
			return nil, err
		}
		data = append(data, b)
	}
	b, err := rewrite.PrepareMetadata(t, data...)
	if fault.Is(err, fault.Denied) {
		st.restricted(t)
	}
	return b, err
}

// tableKey differs for whatever an answer about a table may depend on. What the
// catalog demands is a part: it can change without the table, and within a statement.
func tableKey(t *plan.Table) string {
	demand := ""
	if raw := catalog.ReadRestrictions(t); raw != nil {
		sum := sha256.Sum256(raw)
		demand = string(sum[:])
	}
	return demand + "\x1e" + t.Name.Key() + "\x1e" + t.Metadata + "\x1e" + t.Version + "\x1e" + itoa(int64(t.SchemaID)) + "\x1e" + itoa(t.SnapshotID)
}

// decidesAsUser reports whether a catalog may answer one user otherwise than another.
func (e *Engine) decidesAsUser(name string) bool {
	cat, _ := e.catalogs.Get(name)
	remote, ok := cat.(*catalog.REST)
	return ok && remote.PerUser()
}

// notSimulated is what an explanation for somebody else leaves out.
func notSimulated(catalog, user string) string {
	return "catalog " + catalog + " decides with the token of " + user + ", which is not simulated: it may hide the table from this user, or demand more of their reads (" + restrictions.PolicyName + ")"
}

// resolve asks every source for its restrictions, merges them and binds their
// texts with the rights of the policy. It reports the tables that the texts read
// and until when the answer holds.
func (st *statement) resolve(ctx context.Context, states []policy.State, t *plan.Table) (*rewrite.Bound, []*plan.Table, time.Time, error) {
	all := make([]*policy.Restrictions, len(states), len(states)+1)
	var expires time.Time
	for i, s := range states {
		r, err := s.Restrict(st.principal, t)
		if err != nil {
			return nil, nil, expires, err
		}
		all[i] = r
	}
	// The catalog speaks last: no source decides for it, and it for none.
	if raw := catalog.ReadRestrictions(t); raw != nil {
		all = append(all, restrictions.Compile(raw, t))
	}
	merged := policy.Merge(all...)
	if st.ofAnother() && st.engine.decidesAsUser(t.Name.Catalog) {
		merged.Notes = append(merged.Notes, notSimulated(t.Name.Catalog, st.principal.Name))
	}
	expires = merged.Expires
	if merged.Uncacheable {
		expires = st.started
	}
	var read []*plan.Table
	b, err := rewrite.Prepare(ctx, t, merged, st.policyBinder(states, &read), st.engine.masks)
	if err != nil {
		st.engine.broken.add(st.version, err)
		return nil, nil, expires, err
	}
	// What the texts read may hold credentials of this statement.
	if passing(merged) || slices.ContainsFunc(read, catalog.ForOneStatement) {
		expires = st.started
	}
	return b, read, expires, nil
}

// momentary finds what binding folds to a value of this moment or connection. It
// may find too much (a word in a text literal), which only costs time.
var momentary = regexp.MustCompile(`(?i)\b(now|curdate|curtime|current_date|current_time|current_timestamp|localtime|localtimestamp|utc_date|utc_time|utc_timestamp|sysdate|unix_timestamp|(session_|system_)?user\s*\()`)

// passing reports whether a text of the restrictions holds for this moment only,
// so that the next statement must bind it again.
func passing(r *policy.Restrictions) bool {
	for _, f := range r.Filters {
		if momentary.MatchString(f.SQL) {
			return true
		}
	}
	for _, c := range r.Columns {
		if momentary.MatchString(c.SQL) {
			return true
		}
	}
	return false
}

// current reports whether a table that a policy text reads is still at the
// version that was bound.
func (st *statement) current(ctx context.Context, t *plan.Table) bool {
	cat, ok := st.engine.catalogs.Get(t.Name.Catalog)
	if !ok {
		return false
	}
	now, err := cat.Table(ctx, t.Name, plan.AsOf{}, t.Metadata)
	return err == nil && now.Version == t.Version && bytes.Equal(catalog.ReadRestrictions(now), catalog.ReadRestrictions(t))
}

// saltBytes is the salt of this statement for query-local hashes.
func (st *statement) saltBytes() []byte {
	if st.salt == nil {
		st.salt = make([]byte, 16)
		_, _ = rand.Read(st.salt) // never fails (crypto/rand)
	}
	return st.salt
}

// policyBinder binds policy texts. It implements rewrite.Binder. Its session is
// the principal's own, with the roles that the policy sources give, but without
// anything that the user can set.
type policyBinder struct {
	st      *statement
	session *bind.Session
	read    *[]*plan.Table
}

func (st *statement) policyBinder(states []policy.State, read *[]*plan.Table) policyBinder {
	p := st.principal
	p.Roles = slices.Clone(p.Roles)
	for _, s := range states {
		p.Roles = append(p.Roles, s.Roles(st.principal)...)
	}
	if p.ActiveRoles != nil {
		// A role may have been taken away since it was activated.
		p.ActiveRoles = slices.DeleteFunc(slices.Clone(p.ActiveRoles), func(r string) bool { return !slices.Contains(p.Roles, r) })
	}
	return policyBinder{st: st, session: st.engine.binder.NewSession(0, p, ""), read: read}
}

// relations also makes the database of the protected table the current one, in
// which the text's names without a database are looked up.
func (b policyBinder) relations(t *plan.Table) bind.Relations {
	home := b.st.engine.catalogs.Database(t.Name.Catalog, t.Name.Namespace)
	b.session.SetDatabase(home)
	return definer{st: b.st, home: home, read: b.read}
}

// Condition implements rewrite.Binder.
func (b policyBinder) Condition(ctx context.Context, t *plan.Table, sql string) (*plan.Scan, plan.Expr, error) {
	return b.st.engine.binder.Condition(ctx, b.session, b.relations(t), t, sql)
}

// Value implements rewrite.Binder.
func (b policyBinder) Value(ctx context.Context, t *plan.Table, sql string) (*plan.Scan, plan.Expr, error) {
	return b.st.engine.binder.Value(ctx, b.session, b.relations(t), t, sql)
}
