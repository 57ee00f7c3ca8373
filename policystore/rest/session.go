package rest

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"sync"
	"time"

	"sqe/policystore"
	"sqe/rangerclient/admin"
)

// cookieName is the session cookie of a Ranger Admin.
const cookieName = "RANGERADMINSESSIONID"

// maxSessions bounds the memory of sessions; the oldest ends first.
const maxSessions = 10_000

// sessions save checking the password for every request: that is slow on purpose.
type sessions struct {
	lasts time.Duration
	now   func() time.Time
	key   []byte        // of the fingerprints, of this process
	slow  chan struct{} // takes part in a check of a password

	mu    sync.Mutex
	of    map[[sha256.Size]byte]session // by the hash of the token
	epoch uint64                        // how often a user was forgotten
}

type session struct {
	user        string
	fingerprint []byte // of user and password
	ends        time.Time
}

func newSessions(lasts time.Duration, now func() time.Time) *sessions {
	// Each check of a password takes tens of megabytes.
	return &sessions{lasts: lasts, now: now, key: randomKey(), slow: make(chan struct{}, 4), of: map[[sha256.Size]byte]session{}}
}

func (s *sessions) fingerprint(user, password string) []byte {
	m := hmac.New(sha256.New, s.key)
	m.Write([]byte(user))
	m.Write([]byte{0})
	m.Write([]byte(password))
	return m.Sum(nil)
}

// find is the session of the cookie, if there is one that has not ended.
func (s *sessions) find(r *http.Request) (session, bool) {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return session{}, false
	}
	at := sha256.Sum256([]byte(cookie.Value))
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.of[at]
	if ok && !s.now().Before(found.ends) {
		delete(s.of, at)
		ok = false
	}
	return found, ok
}

// age is what begin wants to know of the moment before a login.
func (s *sessions) age() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.epoch
}

// begin makes a session and returns its token, "" when a user was forgotten since:
// it may have been this one, whose password was right before and is no more.
func (s *sessions) begin(user, password string, since uint64) string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	token := hex.EncodeToString(b[:])
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch != since {
		return ""
	}
	if len(s.of) >= maxSessions {
		s.makeRoom(now)
	}
	s.of[sha256.Sum256([]byte(token))] = session{user: user, fingerprint: s.fingerprint(user, password), ends: now.Add(s.lasts)}
	return token
}

func (s *sessions) makeRoom(now time.Time) {
	var oldest [sha256.Size]byte
	var ends time.Time
	for k, v := range s.of {
		if !now.Before(v.ends) {
			delete(s.of, k)
		} else if ends.IsZero() || v.ends.Before(ends) {
			oldest, ends = k, v.ends
		}
	}
	if len(s.of) >= maxSessions {
		delete(s.of, oldest)
	}
}

func (s *sessions) forget(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch++
	for k, v := range s.of {
		if v.user == user {
			delete(s.of, k)
		}
	}
}

// authenticate is the account of a request. A session that comes with a password
// counts only for that user and password; what the user may do is read anew.
func (h *Handler) authenticate(w http.ResponseWriter, r *http.Request) (*policystore.Account, error) {
	user, password, basic := r.BasicAuth()
	if found, ok := h.sessions.find(r); ok && (!basic || hmac.Equal(found.fingerprint, h.sessions.fingerprint(user, password))) {
		u, err := h.store.User(r.Context(), found.user)
		if err == nil {
			return &policystore.Account{Name: u.Name, AdminRoles: u.AdminRoles}, nil
		}
		if admin.KindOf(err) != admin.NotFound {
			return nil, err
		}
		h.sessions.forget(found.user)
	}
	if !basic || user == "" {
		return nil, errLogin
	}
	since := h.sessions.age()
	account, err := h.login(admin.WithAuthor(r.Context(), admin.Author{From: remote(r)}), user, password)
	if err != nil {
		if admin.KindOf(err) == admin.Unauthenticated {
			h.o.Log.Warn("a login to the policy store was refused", "user", clipped(user), "from", remote(r))
		}
		return nil, err
	}
	if token := h.sessions.begin(account.Name, password, since); token != "" {
		http.SetCookie(w, &http.Cookie{
			Name: cookieName, Value: token, Path: "/", MaxAge: int(h.o.Session.Seconds()),
			HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode,
		})
	}
	return account, nil
}

// clipped is the beginning of what somebody sent who is not logged in: it must not
// fill the log.
func clipped(text string) string {
	if len(text) > 100 {
		return text[:100] + "..."
	}
	return text
}

func (h *Handler) login(ctx context.Context, user, password string) (*policystore.Account, error) {
	select {
	case h.sessions.slow <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-h.sessions.slow }()
	return h.store.Login(ctx, user, password)
}
