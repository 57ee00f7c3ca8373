package policystore

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"sqe/fault"
	"sqe/identity"
	"sqe/rangerclient/admin"
)

// Account is who logged in.
type Account struct {
	Name       string
	AdminRoles []string
}

// IsAdmin reports whether the account may do everything.
func (a *Account) IsAdmin() bool { return slices.Contains(a.AdminRoles, roleSysAdmin) }

// A user is locked out for a while after some wrong passwords in as long a while.
// Source: Ranger Admin 2.9 with default settings.
const (
	wrongPasswords = 5
	lockTime       = 300 * time.Second
)

// logins knows the password hashes as of a version of them, and who failed. What
// was verified once is remembered by identity.Static as a keyed hash.
type logins struct {
	now func() time.Time

	mu      sync.Mutex
	version int64
	users   *identity.Static
	failed  map[string][]time.Time // by user, the latest last
}

// Login checks a password. Every refusal is the same *admin.Error, whatever its
// reason: wrong password, no such user, or locked out.
func (s *Store) Login(ctx context.Context, user, password string) (*Account, error) {
	denied := refuse(admin.Unauthenticated, "", "Authentication Failed")
	l := &s.logins
	users, err := s.passwords(ctx)
	if err != nil {
		return nil, err
	}
	if l.locked(user) {
		// As slow as for a user that there is not, who is never locked out: nobody has
		// the empty name.
		if _, err := users.Authenticate(ctx, "", password, nil); err != nil && !fault.Is(err, fault.Auth) {
			return nil, err
		}
		return nil, denied
	}
	if _, err := users.Authenticate(ctx, user, password, nil); err != nil {
		if !fault.Is(err, fault.Auth) {
			return nil, err
		}
		if users.Recognizes(user, password) {
			if l.fail(user) {
				s.log.Warn("a user of the policy store is locked out after wrong passwords", "user", user, "seconds", lockTime.Seconds())
			}
		}
		return nil, denied
	}
	// Wrong guesses may have run beside this one: one that was right too late is not
	// told apart from them.
	if l.locked(user) {
		return nil, denied
	}
	a := &Account{Name: user}
	err = s.read(ctx, func(q *tx) error {
		var roles string
		err := optional(q.one(`SELECT admin_roles FROM users WHERE name = ?`, []any{user}, &roles))
		a.AdminRoles = strings.Fields(roles)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(a.AdminRoles) == 0 { // deleted meanwhile
		return nil, denied
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.failed, user)
	return a, nil
}

// passwords are the users who have one, read again when a password changed.
func (s *Store) passwords(ctx context.Context) (*identity.Static, error) {
	l := &s.logins
	l.mu.Lock()
	defer l.mu.Unlock()
	err := s.read(ctx, func(q *tx) error {
		var version int64
		if err := q.one(`SELECT version FROM counters WHERE name = ?`, []any{loginVersion}, &version); err != nil {
			return err
		}
		if l.users != nil && l.version == version {
			return nil
		}
		var all []identity.User
		if err := q.each(`SELECT name, password_hash FROM users WHERE password_hash <> ''`, nil, func(scan func(...any) error) error {
			var u identity.User
			err := scan(&u.Principal.Name, &u.PasswordHash)
			all = append(all, u)
			return err
		}); err != nil {
			return err
		}
		users, err := identity.NewStatic(all)
		if err == nil {
			l.users, l.version = users, version
		}
		return err
	})
	return l.users, err
}

func (l *logins) locked(user string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.failed[user]
	if len(f) < wrongPasswords {
		return false
	}
	if l.now().Sub(f[len(f)-1]) < lockTime {
		return true
	}
	delete(l.failed, user)
	return false
}

// fail counts a wrong password, and reports whether it was one too many.
func (l *logins) fail(user string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	f := slices.DeleteFunc(l.failed[user], func(t time.Time) bool { return now.Sub(t) >= lockTime })
	if l.failed == nil {
		l.failed = map[string][]time.Time{}
	}
	l.failed[user] = append(f, now)
	return len(l.failed[user]) >= wrongPasswords
}
