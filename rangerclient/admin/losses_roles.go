package admin

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"sqe/policy"
	"sqe/rangerclient/model"
)

// membership is a grantee and a role.
type membership struct {
	role    string
	grantee policy.Grantee
}

func (m membership) who() string { return string(m.grantee.Kind) + " " + m.grantee.Name }

// memberships are those that statements of this server gave and took. Roles have
// neither versions nor a history, and are saved whole: whoever saves one that was read
// before undoes what was changed meanwhile, and only memory can tell.
type memberships struct {
	mu     sync.Mutex
	wrote  map[membership]bool // whether it is one since
	losses map[membership]Loss
	lost   int64
}

// maxMemberships bounds what is remembered.
const maxMemberships = 100_000

func (m *memberships) remember(role string, list []policy.Grantee, is bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.wrote == nil {
		m.wrote, m.losses = map[membership]bool{}, map[membership]Loss{}
	}
	for _, g := range list {
		key := membership{role, g}
		if _, ok := m.wrote[key]; ok || len(m.wrote) < maxMemberships {
			m.wrote[key] = is
		}
		delete(m.losses, key)
	}
}

// forget is for a role that is dropped.
func (m *memberships) forget(role string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.wrote {
		if key.role == role {
			delete(m.wrote, key)
			delete(m.losses, key)
		}
	}
}

// differ lists what is not as it was written here and was not told yet. What was told
// and is as it was written again is lost no more.
func (m *memberships) differ(role *model.Role) []membership {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []membership
	for key, is := range m.wrote {
		if key.role != role.Name {
			continue
		}
		_, told := m.losses[key]
		switch now := hasMember(role, key.grantee); {
		case now == is:
			delete(m.losses, key)
		case !told:
			out = append(out, key)
		}
	}
	slices.SortFunc(out, func(a, b membership) int { return cmp.Compare(a.who(), b.who()) })
	return out
}

func hasMember(role *model.Role, g policy.Grantee) bool {
	return slices.ContainsFunc(*membersOf(role, g.Kind), func(m model.Member) bool { return m.Name == g.Name })
}

// list is what was lost in the last day and is not as it was.
func (m *memberships) list(now time.Time) (out []Loss, lost int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, l := range m.losses {
		if now.Sub(l.Noticed) > kept {
			delete(m.losses, key)
			delete(m.wrote, key)
			continue
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b Loss) int { return cmp.Compare(a.String(), b.String()) })
	return out, m.lost
}

// roleDoubt is why a membership is never given or taken again: nobody can tell a stale
// save from somebody who meant it.
const roleDoubt = "a role has no versions, so it may be meant"

// lookRoles compares roles, as a download has them, with what was written here. What
// seems to differ is looked up: the download may be older than a statement.
func (k *keeper) lookRoles(ctx context.Context, list []*model.Role) error {
	for _, r := range list {
		if len(k.members.differ(r)) == 0 {
			continue
		}
		if err := k.lookRole(ctx, r.Name); err != nil {
			return err
		}
	}
	return nil
}

func (k *keeper) lookRole(ctx context.Context, name string) error {
	k.lock.Lock()
	defer k.lock.Unlock()
	now, err := k.server.Role(ctx, name)
	if KindOf(err) == NotFound {
		k.members.forget(name)
		return nil
	}
	if err != nil {
		return err
	}
	for _, key := range k.members.differ(now) {
		if r, ok := k.server.(*REST); ok && now.UpdatedBy == r.Username() || !hasMember(now, key.grantee) && k.Exists(ctx, key.grantee) != nil {
			// Another server of SQE, or somebody of the same account, or a grantee that is gone
			// from the policy server.
			k.members.drop(key)
			continue
		}
		l := Loss{Service: k.service(), Role: name, By: now.UpdatedBy, Noticed: k.writer.watched.now(), Doubt: roleDoubt}
		if now.UpdateTime != 0 {
			l.At = time.UnixMilli(now.UpdateTime)
		}
		if l.What = []string{"lacks the " + key.who() + ", who was made a member"}; hasMember(now, key.grantee) {
			l.What = []string{"has the " + key.who() + " again, who was taken out"}
		}
		k.members.add(key, l)
		if k.config.Lost != nil {
			k.config.Lost(l)
		}
	}
	return nil
}

func (m *memberships) drop(key membership) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.wrote, key)
	delete(m.losses, key)
}

func (m *memberships) add(key membership, l Loss) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost++
	m.losses[key] = l
}
