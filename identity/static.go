package identity

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"maps"
	"net"
	"runtime"
	"slices"
	"sync"

	"sqe/fault"
)

// User is a user of the configuration.
type User struct {
	Principal Principal
	// PasswordHash is an argon2id PHC string.
	PasswordHash string
}

// Static are the users of the configuration. It is immutable but for a cache of
// verified passwords, and safe for concurrent use.
type Static struct {
	users  map[string]staticUser
	hasher *hasher
}

type staticUser struct {
	principal Principal
	hash      passwordHash
}

// NewStatic checks the users and makes a provider of them. The error lists every
// problem.
func NewStatic(users []User) (*Static, error) {
	s := &Static{users: make(map[string]staticUser, len(users))}
	var problems []error
	var costliest *passwordHash
	for _, u := range users {
		name := u.Principal.Name
		h, err := parseHash(u.PasswordHash)
		switch {
		case name == "":
			err = fmt.Errorf("a user has no name")
		case err != nil:
			err = fmt.Errorf("user %q: password-hash: %w", name, err)
		default:
			if _, twice := s.users[name]; twice {
				err = fmt.Errorf("user %q is defined twice", name)
			}
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		s.users[name] = staticUser{principal: u.Principal, hash: h}
		if costliest == nil || cost(h) > cost(*costliest) {
			costliest = &h
		}
	}
	if len(problems) > 0 {
		return nil, joined(problems)
	}
	s.hasher = newHasher(costliest)
	return s, nil
}

func cost(h passwordHash) uint64 { return uint64(h.memory) * uint64(h.time) }

// joined is a fault that lists every problem.
func joined(problems []error) error {
	text := ""
	for i, p := range problems {
		if i > 0 {
			text += "\n"
		}
		text += p.Error()
	}
	return fault.New(fault.Config, "%s", text)
}

// Recognizes implements Provider.
func (s *Static) Recognizes(user, _ string) bool {
	_, ok := s.users[user]
	return ok
}

// Authenticate implements Authenticator.
func (s *Static) Authenticate(ctx context.Context, user, password string, remote net.Addr) (Login, error) {
	u, known := s.users[user]
	if !known {
		if err := s.hasher.waste(ctx, password); err != nil {
			return Login{}, err
		}
		return Login{}, Denied(user, remote, ReasonPassword)
	}
	ok, err := s.hasher.verify(ctx, user, password, u.hash)
	if err != nil {
		return Login{}, err
	}
	if !ok {
		return Login{}, Denied(user, remote, ReasonPassword)
	}
	return Login{Principal: clone(u.principal)}, nil
}

// clone keeps a session from changing what other sessions share.
func clone(p Principal) Principal {
	p.Groups, p.Roles = slices.Clone(p.Groups), slices.Clone(p.Roles)
	p.ActiveRoles, p.Attributes = slices.Clone(p.ActiveRoles), maps.Clone(p.Attributes)
	return p
}

// hasher computes argon2id hashes, few at a time: each takes megabytes and
// milliseconds, and a flood of logins must not take the machine from the
// statements that run. What was verified once is remembered as an HMAC under a
// key that never leaves the process, so that reconnecting is quick.
type hasher struct {
	slots chan struct{}
	key   [32]byte
	dummy passwordHash

	mu       sync.Mutex
	verified map[string][sha256.Size]byte // by user; users are as many as configured
}

// newHasher makes a hasher whose dummy work is that of like, or of a new hash.
func newHasher(like *passwordHash) *hasher {
	h := &hasher{
		slots:    make(chan struct{}, max(1, runtime.NumCPU()/2)),
		verified: map[string][sha256.Size]byte{},
		dummy:    passwordHash{memory: hashMemory, time: hashTime, lanes: hashLanes},
	}
	if like != nil {
		h.dummy.memory, h.dummy.time, h.dummy.lanes = like.memory, like.time, like.lanes
	}
	h.dummy.salt, h.dummy.key = make([]byte, saltLength), make([]byte, keyLength)
	_, _ = rand.Read(h.dummy.salt)
	_, _ = rand.Read(h.dummy.key)
	_, _ = rand.Read(h.key[:])
	return h
}

func (h *hasher) verify(ctx context.Context, user, password string, hash passwordHash) (bool, error) {
	print := h.fingerprint(user, password, hash)
	known := func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		known, ok := h.verified[user]
		return ok && hmac.Equal(known[:], print[:])
	}
	if known() {
		return true, nil
	}
	if err := h.acquire(ctx); err != nil {
		return false, err
	}
	defer h.release()
	// A pool of a thousand connections opens at once: the first one does the work,
	// those that waited behind it find it done.
	if known() {
		return true, nil
	}
	if !hash.verify(password) {
		return false, nil
	}
	h.mu.Lock()
	h.verified[user] = print
	h.mu.Unlock()
	return true, nil
}

// waste does the work of a verification that fails.
func (h *hasher) waste(ctx context.Context, password string) error {
	if err := h.acquire(ctx); err != nil {
		return err
	}
	defer h.release()
	_ = h.dummy.verify(password)
	return nil
}

func (h *hasher) fingerprint(user, password string, hash passwordHash) (out [sha256.Size]byte) {
	m := hmac.New(sha256.New, h.key[:])
	for _, part := range []string{user, password, hash.String()} {
		fmt.Fprintf(m, "%d:%s", len(part), part)
	}
	m.Sum(out[:0])
	return out
}

func (h *hasher) acquire(ctx context.Context) error {
	select {
	case h.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fault.Wrap(fault.Limit, context.Cause(ctx), "too many logins at once; try again")
	}
}

func (h *hasher) release() { <-h.slots }
