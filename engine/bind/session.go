package bind

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/mysql_db"

	"sqe/fault"
	"sqe/identity"
	"sqe/plan"
)

// Session is what statements of one connection share: variables, sql_mode,
// warnings and the current database. One statement at a time uses it.
type Session struct {
	gms       *boundedSession
	principal identity.Principal
	warned    atomic.Uint32
	warnings  []string
	told      bool // since the statement began
}

// NewSession makes a session. remote is the address of the client, for
// CURRENT_USER() and USER().
func (b *Binder) NewSession(id uint32, p identity.Principal, remote string) *Session {
	host := "%"
	if remote != "" {
		host = hostOf(remote)
	}
	s := &Session{
		gms: &boundedSession{
			BaseSession: sql.NewBaseSessionWithClientServer("", sql.Client{User: p.Name, Address: host}, id),
			sizes:       map[string]int64{},
		},
		principal: p,
	}
	ctx := sql.NewContext(context.Background(), sql.WithSession(s.gms))
	for name, value := range map[string]any{
		"version": b.version(), "version_comment": "SQE", "time_zone": "+00:00", "system_time_zone": "UTC",
		"collation_connection": "utf8mb4_0900_bin", "collation_database": "utf8mb4_0900_bin", "collation_server": "utf8mb4_0900_bin",
		"lower_case_table_names": int8(0), "read_only": int8(0), "secure_file_priv": "NULL",
	} {
		// A variable that this version of the library does not have stays unknown.
		_ = s.gms.InitSessionVariable(ctx, name, value)
	}
	s.SetDatabase(b.options.DefaultDatabase)
	// Relations shows no view that may not be seen, so its text may be shown.
	privileges := mysql_db.NewPrivilegeSet()
	privileges.AddGlobalStatic(sql.PrivilegeType_ShowView)
	s.gms.SetPrivilegeSet(privileges, 1)
	return s
}

// SetPrincipal changes the roles and groups of the principal, not the name.
func (s *Session) SetPrincipal(p identity.Principal) {
	p.Name = s.principal.Name
	s.principal = p
}

func hostOf(remote string) string {
	for i := len(remote) - 1; i >= 0; i-- {
		if remote[i] == ':' {
			return remote[:i]
		}
	}
	return remote
}

// noDatabase is the current database of go-mysql-server's session when none is
// selected: without a current one the library refuses every view, also one with a
// full name. It cannot be typed, and nothing is found in it.
const noDatabase = "\x00none"

var errNoDatabase = fault.New(fault.NoDatabase, "No database selected; USE one, or write database.table")

// Database is the current database, "" when none is selected.
func (s *Session) Database() string { return selected(s.gms.GetCurrentDatabase()) }

func selected(database string) string {
	if database == noDatabase {
		return ""
	}
	return database
}

// SetDatabase selects a database, or none. That it exists is for the caller to
// check.
func (s *Session) SetDatabase(name string) {
	if name == "" {
		name = noDatabase
	}
	s.gms.SetCurrentDatabase(name)
}

// UserVariable is the value of @name.
func (s *Session) UserVariable(name string) (plan.Literal, bool) {
	ctx := sql.NewContext(context.Background(), sql.WithSession(s.gms))
	typ, value, err := s.gms.GetUserVariable(ctx, name)
	if err != nil || typ == nil {
		return plan.Literal{Typ: plan.Null}, false
	}
	l, err := literalOf(value, typ)
	if err != nil {
		return plan.Literal{Typ: plan.Null}, false
	}
	return *l, true
}

// Autocommit reports whether each statement is a transaction of its own, and ReadOnly
// whether transactions may not write: as the session's variables say.
func (s *Session) Autocommit() bool { return s.variable("autocommit", true) }

// ReadOnly is at Autocommit.
func (s *Session) ReadOnly() bool { return s.variable("transaction_read_only", false) }

func (s *Session) variable(name string, otherwise bool) bool {
	v, err := s.gms.GetSessionVariable(sql.NewContext(context.Background(), sql.WithSession(s.gms)), name)
	if err != nil {
		return otherwise
	}
	return truthy(v, otherwise)
}

func truthy(v any, otherwise bool) bool {
	switch v := v.(type) {
	case bool:
		return v
	case int8:
		return v != 0
	case int64:
		return v != 0
	}
	return otherwise
}

// SetWarnings replaces the warnings of the last statement, which SHOW WARNINGS
// lists.
func (s *Session) SetWarnings(texts []string) {
	s.warnings, s.told = texts, true
	s.restoreWarnings()
}

// Began begins a statement: SHOW WARNINGS lists those of the one before until it has
// its own.
func (s *Session) Began() { s.told = false }

// Failed ends a statement that failed: without warnings of its own it has none.
func (s *Session) Failed() {
	if !s.told {
		s.SetWarnings(nil)
	}
}

// AddWarning adds a warning, unless the statement has it already.
func (s *Session) AddWarning(text string) {
	if !s.told {
		s.SetWarnings([]string{text})
	} else if !slices.Contains(s.warnings, text) {
		s.SetWarnings(append(slices.Clip(s.warnings), text))
	}
}

// restoreWarnings drops warnings that are not ours.
func (s *Session) restoreWarnings() {
	texts := s.warnings
	s.gms.ClearWarnings()
	for _, t := range texts {
		s.gms.Warn(&sql.Warning{Level: "Warning", Code: 1105, Message: t})
	}
	s.warned.Store(uint32(len(texts)))
}

// WarningCount is the number of warnings that SHOW WARNINGS would list.
func (s *Session) WarningCount() uint16 { return uint16(min(s.warned.Load(), 65535)) }
