package engine

import (
	"context"
	"sort"
	"strconv"
	"sync"
	"time"

	"sqe/fault"
	"sqe/identity"
)

// process is what the process list knows about a session. It holds the
// fingerprint of the running statement, never its text: a text may hold values.
type process struct {
	id        uint32
	principal identity.Principal
	remote    string

	mu        sync.Mutex
	database  string
	statement string // "" when idle
	progress  string // how far the running statement is, for people
	since     time.Time
	cancel    context.CancelCauseFunc
}

// processes is the registry of open sessions, by connection id.
type processes struct {
	mu     sync.Mutex
	byID   map[uint32]*process
	closer func(id uint32)
}

func (p *processes) add(pr *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byID == nil {
		p.byID = map[uint32]*process{}
	}
	p.byID[pr.id] = pr
}

// remove drops the entry of pr; a newer session that reused the id stays.
func (p *processes) remove(pr *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byID[pr.id] == pr {
		delete(p.byID, pr.id)
	}
}

// begin marks the session as running a statement and returns the function that
// ends it.
func (pr *process) begin(fingerprint string, cancel context.CancelCauseFunc) (end func()) {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	pr.statement, pr.progress, pr.since, pr.cancel = fingerprint, "", time.Now(), cancel
	return func() {
		pr.mu.Lock()
		defer pr.mu.Unlock()
		pr.statement, pr.progress, pr.since, pr.cancel = "", "", time.Now(), nil
	}
}

// progress tells the process list how far the statement is, in a few words like
// "rewriting: 12 of 80 files". It may be called from any goroutine, once for each
// batch or file. The text counts what the principal may know of: its owner sees it
// and administrators do. It never holds a value or a path.
func (st *statement) progress(text string) {
	pr := st.session.process
	pr.mu.Lock()
	defer pr.mu.Unlock()
	if pr.statement != "" { // a worker may be late
		pr.progress = text
	}
}

// counted is a number with its thousands separated, for people.
func counted(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// kill cancels the running statement of session id, and closes its connection
// unless queryOnly. Everybody may kill their own sessions, an administrator
// everybody's. A foreign session and a missing one give the same error, so that
// nobody learns which ids exist.
func (p *processes) kill(id uint32, queryOnly bool, by identity.Principal) error {
	p.mu.Lock()
	pr := p.byID[id]
	closer := p.closer
	p.mu.Unlock()
	if pr == nil || by.IsZero() || (pr.principal.Name != by.Name && !by.Admin) {
		return fault.New(fault.NoThread, "no session with id %d that you may end; SHOW PROCESSLIST lists yours", id)
	}
	pr.mu.Lock()
	cancel := pr.cancel
	pr.mu.Unlock()
	if cancel != nil {
		cancel(fault.New(fault.Cancelled, "the statement was ended by KILL"))
	}
	if !queryOnly && closer != nil {
		closer(id)
	}
	return nil
}

// processInfo is one line of the process list.
type processInfo struct {
	id                                              uint32
	user, remote, database, state, progress, status string
	seconds                                         int64
}

// list shows an administrator every session, everybody else their own.
func (p *processes) list(to identity.Principal) []processInfo {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []processInfo
	for _, pr := range p.byID {
		if !to.Admin && pr.principal.Name != to.Name {
			continue
		}
		pr.mu.Lock()
		info := processInfo{
			id: pr.id, user: pr.principal.Name, remote: pr.remote, database: pr.database,
			state: "Sleep", status: pr.statement, seconds: int64(time.Since(pr.since).Seconds()),
		}
		if pr.statement != "" {
			info.state, info.progress = "Query", pr.progress
		}
		pr.mu.Unlock()
		out = append(out, info)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].id < out[j].id })
	return out
}
