package engine_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"go.uber.org/goleak"

	"sqe/audit"
	"sqe/catalog"
	"sqe/demo/data"
	"sqe/engine"
	"sqe/engine/duck"
	"sqe/engine/scan"
	"sqe/fault"
	"sqe/identity"
	"sqe/masks"
	"sqe/plan"
	"sqe/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source is a policy source whose state a test sets.
type source struct {
	mu    sync.Mutex
	state state
	err   error
}

func (s *source) Name() string { return "test" }

func (s *source) State() (policy.State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	return s.state, nil
}

func (s *source) Status() policy.Status {
	return policy.Status{Source: "test", Kind: "test", Loaded: true}
}

func (s *source) set(f func(*state)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.state)
}

// state allows those in readers to read everything; restrict restricts.
type state struct {
	version  string
	readers  map[string]bool
	restrict func(p identity.Principal, t *plan.Table) *policy.Restrictions
	findings func([]*plan.Table) []policy.Finding
	texts    func(t *plan.Table) []policy.PolicyText
	tags     func(t *plan.Table) map[int][]string
}

func (s state) TableTags(t *plan.Table) map[int][]string {
	if s.tags == nil {
		return nil
	}
	return s.tags(t)
}

func (s state) Findings(tables []*plan.Table) []policy.Finding {
	if s.findings == nil {
		return nil
	}
	return s.findings(tables)
}

func (s state) Texts(t *plan.Table) []policy.PolicyText {
	if s.texts == nil {
		return nil
	}
	return s.texts(t)
}

func (s state) NamesTablesOf(string, []string) bool { return s.findings != nil }

func (s state) Unknown(tables []*plan.Table) []*plan.Table { return tables }

func (s state) Version() string { return s.version }

func (s state) Authorize(p identity.Principal, _ policy.Object, _ policy.Privilege) policy.Decision {
	ok := s.readers[p.Name]
	return policy.Decision{Allow: ok, Visible: ok, Reason: policy.NoGrant}
}

func (s state) Restrict(p identity.Principal, t *plan.Table) (*policy.Restrictions, error) {
	if s.restrict == nil {
		return &policy.Restrictions{Complete: true}, nil
	}
	return s.restrict(p, t), nil
}

func (s state) Roles(identity.Principal) []string { return nil }

// journal keeps audit events, or fails.
type journal struct {
	mu     sync.Mutex
	events []audit.Event
	fail   error
	when   string // "ready" or "record"
}

func (j *journal) Ready() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.when == "ready" {
		return j.fail
	}
	return nil
}

func (j *journal) Record(e audit.Event) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.when == "record" {
		return j.fail
	}
	j.events = append(j.events, e)
	return nil
}

func (j *journal) last() audit.Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.events[len(j.events)-1]
}

type fixture struct {
	*engine.Engine
	source    *source
	journal   *journal
	warehouse string
}

func open(t *testing.T) *fixture {
	t.Helper()
	return openWith(t, func(*engine.Options) {})
}

func openWith(t testing.TB, change func(*engine.Options)) *fixture {
	t.Helper()
	dir := t.TempDir()
	cat, err := catalog.OpenSQLite("lake", filepath.Join(dir, "catalog.db"), filepath.Join(dir, "warehouse"), catalog.SQLOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cat.Close() })
	if err := data.Write(context.Background(), cat); err != nil {
		t.Fatal(err)
	}
	registry, err := catalog.NewRegistry(cat)
	if err != nil {
		t.Fatal(err)
	}
	executor, err := duck.Open(duck.Config{Roots: []string{filepath.Join(dir, "warehouse")}, Threads: 1, MemoryLimit: 256 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = executor.Close() })
	f := &fixture{
		source:  &source{state: state{version: "1", readers: map[string]bool{"ann": true, "eve": true}}},
		journal: &journal{}, warehouse: filepath.Join(dir, "warehouse"),
	}
	o := engine.Options{
		Catalogs: registry, Sources: []policy.Source{f.source}, Duck: executor, Scans: scan.New(scan.Options{}),
		Masks: masks.Options{HashKey: []byte("a key for the tests of the engine")}, Audit: f.journal,
		StatementTimeout: time.Minute, Version: "8.0.36-SQE",
	}
	change(&o)
	f.Engine = engine.New(o)
	return f
}

func (f *fixture) session(t *testing.T, name string) *engine.Session {
	t.Helper()
	s, err := f.Open(identity.Principal{Name: name}, engine.ConnInfo{ID: uint32(len(name)), RemoteAddr: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// query runs a statement and prints its rows, cells separated by bars.
func query(s *engine.Session, text string) (string, error) {
	res, _, err := s.Query(context.Background(), text)
	if err != nil {
		return "", err
	}
	return print(res)
}

func print(res *engine.Result) (string, error) {
	if res.Rows == nil {
		return "", nil
	}
	defer func() { _ = res.Rows.Close() }()
	var lines []string
	for {
		b, err := res.Rows.Next()
		if err == io.EOF {
			return strings.Join(lines, "\n"), nil
		}
		if err != nil {
			return "", err
		}
		lines = append(lines, text(b)...)
		b.Release()
	}
}

func text(b arrow.RecordBatch) []string {
	var out []string
	for r := range int(b.NumRows()) {
		cells := make([]string, b.NumCols())
		for c := range cells {
			if cells[c] = "NULL"; !b.Column(c).IsNull(r) {
				cells[c] = strings.Clone(b.Column(c).ValueStr(r)) // the batch is released before it is read
			}
		}
		out = append(out, strings.Join(cells, "|"))
	}
	return out
}

func must(t *testing.T, s *engine.Session, text, want string) {
	t.Helper()
	got, err := query(s, text)
	if err != nil {
		t.Fatalf("%s: %v (%v)", text, err, errors.Unwrap(err))
	}
	if got != want {
		t.Errorf("%s:\n%s\nwant:\n%s", text, got, want)
	}
}

func refused(t *testing.T, s *engine.Session, text string, kind fault.Kind) error {
	t.Helper()
	got, err := query(s, text)
	if err == nil {
		t.Fatalf("%s gave rows, it must be refused:\n%s", text, got)
	}
	if !fault.Is(err, kind) {
		t.Errorf("%s: %v is %s, want %s", text, err, fault.KindOf(err), kind)
	}
	return err
}

// column finds the field id of a column.
func column(t *plan.Table, name string) int {
	f, ok := t.FieldNamed(name)
	if !ok {
		panic("no column " + name)
	}
	return f.ID
}

// masked restricts everybody but ann on customers: two rows, masked.
func masked(p identity.Principal, t *plan.Table) *policy.Restrictions {
	r := &policy.Restrictions{Complete: true, Columns: map[int]policy.ColumnRule{}}
	if p.Name == "ann" || t.Name.Name != "customers" {
		return r
	}
	r.Filters = []policy.RowFilter{{SQL: "cust_id IN (1, 2) AND residency_region = 'EU'", Origin: policy.Origin{Source: "test", Policy: "rows", ID: 7, Version: 3}}}
	r.Columns[column(t, "national_id")] = policy.ColumnRule{Kind: policy.Mask, Action: "MASK_SHOW_LAST_4", Origin: policy.Origin{Source: "test", Policy: "mask", ID: 8, Version: 1}}
	return r
}

func TestTwoPeopleOneStatement(t *testing.T) {
	f := open(t)
	f.source.set(func(s *state) { s.restrict = masked })
	const q = "SELECT cust_id, national_id FROM bank.customers WHERE cust_id < 4 ORDER BY cust_id"
	must(t, f.session(t, "ann"), q, "1|184729103\n2|295830214\n3|306941325")
	must(t, f.session(t, "eve"), q, "1|xxxxx9103\n2|xxxxx0214")
	e := f.journal.last()
	if e.User != "eve" || e.Rows != 2 || e.Outcome != "ok" || len(e.Policies) != 2 || e.Policies[0].Origin.ID != 7 {
		t.Errorf("the audit event does not say what happened: %+v", e)
	}
	if strings.Contains(e.Statement, "4") {
		t.Errorf("the fingerprint holds a literal: %s", e.Statement)
	}
}

// TestPolicyVersions: a change of policy holds for the next statement, also of a
// session and a prepared statement that saw the former one.
func TestPolicyVersions(t *testing.T) {
	f := open(t)
	eve := f.session(t, "eve")
	const q = "SELECT count(*) FROM bank.customers"
	must(t, eve, q, "12")
	p, err := eve.Prepare(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	run := func(want string) {
		t.Helper()
		res, err := eve.Execute(context.Background(), p, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := print(res); err != nil || got != want {
			t.Errorf("prepared: %s (%v), want %s", got, err, want)
		}
	}
	run("12")
	f.source.set(func(s *state) { s.version, s.restrict = "2", masked })
	run("2")
	must(t, eve, q, "2")
	must(t, f.session(t, "ann"), q, "12")
}

// TestOneStateForAStatement: a statement takes the policy state once, so that no
// two of its tables are read under different policies.
func TestOneStateForAStatement(t *testing.T) {
	f := open(t)
	eve := f.session(t, "eve")
	var mu sync.Mutex
	versions := map[string]bool{}
	see := func(v string) func(identity.Principal, *plan.Table) *policy.Restrictions {
		return func(p identity.Principal, tb *plan.Table) *policy.Restrictions {
			mu.Lock()
			versions[v] = true
			mu.Unlock()
			// Whoever resolves the first table changes the policies for the next.
			f.source.set(func(s *state) { s.version += "x" })
			return &policy.Restrictions{Complete: true}
		}
	}
	f.source.set(func(s *state) { s.restrict = see("a") })
	must(t, eve, "SELECT count(*) FROM bank.customers c JOIN bank.payments p ON p.cust_id = c.cust_id", "24")
	if len(versions) != 1 {
		t.Errorf("several states answered one statement: %v", versions)
	}
}

// TestClosed: whatever cannot be decided is refused with an error of its own,
// never answered with rows or with none.
func TestClosed(t *testing.T) {
	f := open(t)
	ann := f.session(t, "ann")
	root, err := f.Open(identity.Principal{Name: "root", Admin: true}, engine.ConnInfo{ID: 99})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(root.Close)
	const q = "SELECT count(*) FROM bank.customers"
	must(t, ann, q, "12")
	for name, c := range map[string]struct {
		r    *policy.Restrictions
		kind fault.Kind
	}{
		"nothing decided":          {&policy.Restrictions{}, fault.PolicyBroken},
		"a filter is no condition": {&policy.Restrictions{Complete: true, Filters: []policy.RowFilter{{SQL: "region = "}}}, fault.PolicyBroken},
		"a filter names no column": {&policy.Restrictions{Complete: true, Filters: []policy.RowFilter{{SQL: "nowhere = 1"}}}, fault.PolicyBroken},
		"an empty filter":          {&policy.Restrictions{Complete: true, Filters: []policy.RowFilter{{SQL: ""}}}, fault.PolicyBroken},
		"a filter with two":        {&policy.Restrictions{Complete: true, Filters: []policy.RowFilter{{SQL: "1=1) OR (1=1"}}}, fault.PolicyBroken},
		"a source refuses":         {&policy.Restrictions{Complete: true, Refuse: "it cannot decide"}, fault.PolicyBroken},
	} {
		t.Run(name, func(t *testing.T) {
			f.source.set(func(s *state) {
				s.version = name
				s.restrict = func(identity.Principal, *plan.Table) *policy.Restrictions { return c.r }
			})
			err := refused(t, ann, q, c.kind)
			if strings.Contains(err.Error(), "nowhere") || strings.Contains(err.Error(), "1=1") {
				t.Errorf("the error holds the policy's text: %v", err)
			}
			if status, err := query(ann, "SHOW POLICY STATUS"); err != nil || strings.Contains(status, "lake.bank.customers") {
				t.Errorf("everybody is told the cause: %s, %v", status, err)
			}
			if status, err := query(root, "SHOW POLICY STATUS"); err != nil || !strings.Contains(status, "lake.bank.customers") {
				t.Errorf("the administrator is not told the cause: %s, %v", status, err)
			}
			refused(t, ann, "SELECT 1 WHERE EXISTS (SELECT 1 FROM bank.customers)", c.kind)
		})
	}
	f.source.set(func(s *state) { s.version, s.restrict = "again", nil })
	if status, err := query(root, "SHOW POLICY STATUS"); err != nil || strings.Contains(status, "lake.bank.customers") {
		t.Errorf("what was corrected is still told: %s, %v", status, err)
	}
	must(t, ann, q, "12")
	f.source.mu.Lock()
	f.source.err = fault.New(fault.PolicyStale, "policies are older than 60s")
	f.source.mu.Unlock()
	refused(t, ann, q, fault.PolicyStale)
	must(t, ann, "SELECT 1", "1")
}

// TestMomentaryFilters: a filter that names the time is bound for each statement,
// not remembered with the time of the first one.
func TestMomentaryFilters(t *testing.T) {
	f := open(t)
	ann := f.session(t, "ann")
	for _, c := range []struct {
		filter string
		moves  bool
	}{
		{"unix_timestamp(now(6)) * 0 + microsecond(now(6)) >= 0", true},
		{"cust_id > 0", false},
	} {
		asked := 0
		f.source.set(func(s *state) {
			s.version = c.filter
			s.restrict = func(identity.Principal, *plan.Table) *policy.Restrictions {
				asked++
				return &policy.Restrictions{Complete: true, Filters: []policy.RowFilter{{SQL: c.filter}}}
			}
		})
		for range 3 {
			must(t, ann, "SELECT count(*) FROM bank.customers", "12")
		}
		if (asked == 3) != c.moves {
			t.Errorf("%s was resolved %d times in 3 statements", c.filter, asked)
		}
	}
}

// TestHidden: a table that may not be read and one that does not exist give the
// same error, down to the text.
func TestHidden(t *testing.T) {
	f := open(t)
	mallory := f.session(t, "mallory")
	there := refused(t, mallory, "SELECT * FROM bank.customers", fault.NotFound)
	missing := refused(t, mallory, "SELECT * FROM bank.customerz", fault.NotFound)
	if strings.ReplaceAll(there.Error(), "customers", "customerz") != missing.Error() {
		t.Errorf("%q and %q tell the two apart", there, missing)
	}
	if e := f.journal.last(); e.Outcome == "ok" {
		t.Errorf("a refusal was recorded as %q", e.Outcome)
	}
	must(t, f.session(t, "ann"), "SELECT count(*) FROM bank.customers", "12")
}

// TestAuditFails: a statement whose event cannot be recorded does not succeed.
func TestAuditFails(t *testing.T) {
	f := open(t)
	ann := f.session(t, "ann")
	must(t, ann, "SELECT count(*) FROM bank.customers", "12")
	for _, when := range []string{"ready", "record"} {
		f.journal.mu.Lock()
		f.journal.when, f.journal.fail = when, fault.New(fault.Unavailable, "the audit log is full")
		f.journal.mu.Unlock()
		refused(t, ann, "SELECT count(*) FROM bank.customers", fault.Unavailable)
		refused(t, ann, "USE bank", fault.Unavailable)
		refused(t, ann, "SELEC", fault.Unavailable)
	}
	f.journal.mu.Lock()
	f.journal.fail = nil
	f.journal.mu.Unlock()
	must(t, ann, "SELECT count(*) FROM bank.customers", "12")
}

// TestPanic: a panic in a statement denies, is recorded without its value, and
// leaves the session usable.
func TestPanic(t *testing.T) {
	f := open(t)
	ann := f.session(t, "ann")
	f.source.set(func(s *state) {
		s.version = "panics"
		s.restrict = func(identity.Principal, *plan.Table) *policy.Restrictions { panic("184729103") }
	})
	err := refused(t, ann, "SELECT * FROM bank.customers", fault.Internal)
	if strings.Contains(err.Error(), "184729103") {
		t.Errorf("the error holds the value: %v", err)
	}
	if e := f.journal.last(); e.Outcome != "internal" || strings.Contains(e.Error, "184729103") {
		t.Errorf("the event is %+v", e)
	}
	f.source.set(func(s *state) { s.version, s.restrict = "fine", nil })
	must(t, ann, "SELECT count(*) FROM bank.customers", "12")
}

// TestNobody: a session without a principal does not exist.
func TestNobody(t *testing.T) {
	f := open(t)
	if _, err := f.Open(identity.Principal{}, engine.ConnInfo{}); !fault.Is(err, fault.Auth) {
		t.Errorf("a session for nobody: %v", err)
	}
}

func TestKill(t *testing.T) {
	f := open(t)
	ann, eve := f.session(t, "ann"), f.session(t, "evelyn")
	f.source.set(func(s *state) { s.readers["evelyn"] = true })
	started := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		close(started)
		_, err := query(ann, "SELECT count(*) FROM bank.payments a, bank.payments b, bank.payments c, bank.payments d, bank.payments e, bank.payments f, bank.payments g, bank.payments h WHERE a.amount_eur + b.amount_eur + c.amount_eur + d.amount_eur + e.amount_eur + f.amount_eur + g.amount_eur + h.amount_eur < 0")
		done <- err
	}()
	<-started
	for {
		if text, _ := ann.Running(); text != "" {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err := f.KillQuery(3, identity.Principal{Name: "evelyn"}); !fault.Is(err, fault.NoThread) {
		t.Errorf("evelyn may end ann's statement: %v", err)
	}
	refused(t, eve, "KILL QUERY 3", fault.NoThread)
	if err := f.KillQuery(3, identity.Principal{Name: "root", Admin: true}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if !fault.Is(err, fault.Cancelled) {
			t.Errorf("the killed statement ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the killed statement still runs")
	}
	must(t, ann, "SELECT 1", "1")
}
