package policystore

import (
	"context"
	"net"
	"net/netip"
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
// Source: Ranger Admin 2.9 with default settings, where it does not matter who sent
// them: anybody could lock out the user of an engine. Here the few count by address
// (admin.Author.From), and many more from wherever they come.
const (
	wrongPasswords         = 5
	wrongPasswordsAnywhere = 50
	lockTime               = 300 * time.Second
)

// logins knows the password hashes as of a version of them, and who failed. What
// was verified once is remembered by identity.Static as a keyed hash.
type logins struct {
	now func() time.Time

	mu      sync.Mutex
	version int64
	users   *identity.Static
	failed  map[string][]wrongPassword // by user, the latest last
}

// wrongPassword is one that was tried.
type wrongPassword struct {
	at   time.Time
	from string // host of the client, empty when it is not known
}

// hostOf is the address that failures are counted by: without the port, which
// changes with each connection, and of IPv6 the network, of which one client has all.
func hostOf(ctx context.Context) string {
	from := admin.AuthorOf(ctx).From
	if host, _, err := net.SplitHostPort(from); err == nil {
		from = host
	}
	a, err := netip.ParseAddr(from)
	if err != nil {
		return from
	}
	if a = a.Unmap().WithZone(""); a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.String()
		}
	}
	return a.String()
}

// Login checks a password, for the client that ctx names as the author. Every refusal is the same *admin.Error, whatever its
// reason: wrong password, no such user, or locked out.
func (s *Store) Login(ctx context.Context, user, password string) (*Account, error) {
	denied := refuse(admin.Unauthenticated, "", "Authentication Failed")
	l, from := &s.logins, hostOf(ctx)
	users, err := s.passwords(ctx)
	if err != nil {
		return nil, err
	}
	if l.locked(user, from) {
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
			if l.fail(user, from) {
				s.log.Warn("a user of the policy store is locked out after wrong passwords", "user", user, "from", from, "seconds", lockTime.Seconds())
			}
		}
		return nil, denied
	}
	// Wrong guesses may have run beside this one: one that was right too late is not
	// told apart from them.
	if l.locked(user, from) {
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
	// What others tried stays counted.
	left := slices.DeleteFunc(l.failed[user], func(f wrongPassword) bool { return f.from == from })
	if len(left) == 0 {
		delete(l.failed, user)
	} else {
		l.failed[user] = left
	}
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

func (l *logins) locked(user, from string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over(user, from)
}

// over reports whether there were too many wrong passwords, and forgets those of
// long ago.
func (l *logins) over(user, from string) bool {
	now, here := l.now(), 0
	f := slices.DeleteFunc(l.failed[user], func(x wrongPassword) bool { return now.Sub(x.at) >= lockTime })
	if len(f) == 0 {
		delete(l.failed, user)
		return false
	}
	l.failed[user] = f
	for _, x := range f {
		if x.from == from {
			here++
		}
	}
	return here >= wrongPasswords || len(f) >= wrongPasswordsAnywhere
}

// fail counts a wrong password, and reports whether it was one too many.
func (l *logins) fail(user, from string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == nil {
		l.failed = map[string][]wrongPassword{}
	}
	l.failed[user] = append(l.failed[user], wrongPassword{l.now(), from})
	return l.over(user, from)
}
