package admin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"sqe/fault"
	"sqe/policy"
	"sqe/rangerclient/model"
)

// membership is a grantee and a role.
type membership struct {
	role    string
	grantee policy.Grantee
}

func (m membership) who() string { return string(m.grantee.Kind) + " " + m.grantee.Name }

// gave is whether a statement made somebody a member, or took one out.
type gave struct {
	in bool
	n  int64 // in the order of statements
}

// memberships are those that statements of this server gave and took. Roles have
// neither versions nor a history, and are saved whole: whoever saves one that was read
// before undoes what was changed meanwhile, and only memory can tell.
type memberships struct {
	mu     sync.Mutex
	ledger *ledger
	wrote  map[membership]gave
	losses map[membership]Loss
	n      int64
	// seen are roles as they were when all in them was as it was written; polled what the
	// downloads had of them last.
	seen   map[string]*model.Role
	polled map[string]string
	lost   int64
	again  int64
}

// openMemberships begins with what an earlier run of the server kept in a file; "":
// nothing is kept.
func openMemberships(file string, now time.Time) (*memberships, error) {
	m := &memberships{wrote: map[membership]gave{}, losses: map[membership]Loss{}, seen: map[string]*model.Role{}, polled: map[string]string{}}
	err := m.open(file, now)
	return m, err
}

// maxMemberships bounds what is remembered.
const maxMemberships = 100_000

// remember notes what a statement said of a role, and what it became.
func (m *memberships) remember(role *model.Role, list []policy.Grantee, in bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var lines []line
	for _, g := range list {
		key := membership{role.Name, g}
		if _, ok := m.wrote[key]; !ok && len(m.wrote) >= maxMemberships {
			continue
		}
		m.n++
		m.wrote[key] = gave{in, m.n}
		delete(m.losses, key)
		lines = append(lines, line{Role: role.Name, Kind: g.Kind, Name: g.Name, In: in})
	}
	m.seen[role.Name] = role
	return m.ledger.add(lines...)
}

// forget is for a role that is dropped.
func (m *memberships) forget(role string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := false
	for key := range m.wrote {
		if key.role == role {
			known = true
			delete(m.wrote, key)
			delete(m.losses, key)
		}
	}
	delete(m.seen, role)
	delete(m.polled, role)
	if !known {
		return nil
	}
	return m.ledger.add(line{Role: role, Gone: true})
}

// drop forgets one.
func (m *memberships) drop(key membership) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.wrote, key)
	delete(m.losses, key)
	return m.ledger.add(line{Role: key.role, Kind: key.grantee.Kind, Name: key.grantee.Name, Gone: true})
}

// add notes a loss.
func (m *memberships) add(key membership, l Loss) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost++
	m.losses[key] = l
	if !l.Restored.IsZero() {
		m.again++
		return nil
	}
	return m.ledger.add(line{Role: key.role, Kind: key.grantee.Kind, Name: key.grantee.Name, In: m.wrote[key].in, Told: &l})
}

// suspect lists roles of a download that are not as they were when it was looked last.
func (m *memberships) suspect(list []*model.Role) (names []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ours := map[string]bool{}
	for key := range m.wrote {
		ours[key.role] = true
	}
	for _, r := range list {
		is := text(r)
		if was, ok := m.polled[r.Name]; ours[r.Name] && (!ok || was != is) {
			names = append(names, r.Name)
		}
		if ours[r.Name] {
			m.polled[r.Name] = is
		}
	}
	return names
}

// undone lists what is not as it was written here; untold leaves out what was told
// already. What was told and is as it was written again is lost no more.
func (m *memberships) undone(role *model.Role) (all, untold []membership) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, w := range m.wrote {
		if key.role != role.Name {
			continue
		}
		l, told := m.losses[key]
		told = told && l.Restored.IsZero()
		switch {
		case hasMember(role, key.grantee) != w.in:
			all = append(all, key)
			if !told {
				untold = append(untold, key)
			}
		case told:
			delete(m.losses, key)
		}
	}
	byName := func(a, b membership) int { return cmp.Compare(a.who(), b.who()) }
	slices.SortFunc(all, byName)
	slices.SortFunc(untold, byName)
	if len(all) == 0 {
		m.seen[role.Name] = role
	}
	return all, untold
}

// Why a membership is not given or taken again.
const (
	roleDoubt     = "a role has no versions, so it may be meant"
	roleDoubtDown = "it was saved before this server looked, so it may be meant"
)

// doubt says why a save that undid something may be meant. A role does not tell from
// what it was made. A save that takes back exactly the last statements, some that gave
// and some that took, and changes something else beside, is one of a form that was
// opened before them: an author who meant to would have had to repeat the past in every
// point, and to edit something in the same moment. Any other may be meant.
func (m *memberships) doubt(now *model.Role, undone []membership) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.seen[now.Name]
	if was == nil {
		return roleDoubtDown
	}
	oldest, in, out := int64(0), false, false
	for _, key := range undone {
		w := m.wrote[key]
		if oldest == 0 || w.n < oldest {
			oldest = w.n
		}
		in, out = in || w.in, out || !w.in
	}
	for key, w := range m.wrote {
		if key.role == now.Name && w.n > oldest && !slices.Contains(undone, key) {
			return roleDoubt
		}
	}
	if !in || !out || text(without(was, undone)) == text(without(now, undone)) {
		return roleDoubt
	}
	return ""
}

// without is what somebody may edit of a role, without some members.
func without(r *model.Role, list []membership) *model.Role {
	out := &model.Role{Name: r.Name, Description: r.Description, Options: r.Options, Users: slices.Clone(r.Users), Groups: slices.Clone(r.Groups), Roles: slices.Clone(r.Roles)}
	for _, kind := range []policy.GranteeKind{policy.UserGrantee, policy.GroupGrantee, policy.RoleGrantee} {
		members := membersOf(out, kind)
		*members = slices.DeleteFunc(*members, func(x model.Member) bool {
			return slices.Contains(list, membership{r.Name, policy.Grantee{Kind: kind, Name: x.Name}})
		})
		slices.SortFunc(*members, func(a, b model.Member) int { return cmp.Compare(a.Name, b.Name) })
		if len(*members) == 0 {
			*members = nil
		}
	}
	return out
}

// inOrder lists all that is remembered, the oldest first.
func (m *memberships) inOrder() []membership {
	return slices.SortedFunc(maps.Keys(m.wrote), func(a, b membership) int { return cmp.Compare(m.wrote[a].n, m.wrote[b].n) })
}

func hasMember(role *model.Role, g policy.Grantee) bool {
	return slices.ContainsFunc(*membersOf(role, g.Kind), func(m model.Member) bool { return m.Name == g.Name })
}

// list is what was lost in the last day and is not as it was.
func (m *memberships) list(now time.Time) (out []Loss, lost, again int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, l := range m.losses {
		if now.Sub(l.Noticed) > kept {
			delete(m.losses, key)
			if l.Restored.IsZero() {
				delete(m.wrote, key)
			}
			continue
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b Loss) int { return cmp.Compare(a.String(), b.String()) })
	return out, m.lost, m.again
}

// lookRoles compares roles, as a download has them, with what was written here. What
// seems to differ is looked up: the download may be older than a statement.
func (k *keeper) lookRoles(ctx context.Context, list []*model.Role) (restored bool, err error) {
	for _, name := range k.members.suspect(list) {
		yes, err := k.lookRole(ctx, name)
		restored = restored || yes
		if err != nil {
			k.members.mu.Lock()
			delete(k.members.polled, name) // look again
			k.members.mu.Unlock()
			return restored, err
		}
	}
	return restored, nil
}

func (k *keeper) lookRole(ctx context.Context, name string) (restored bool, err error) {
	k.lock.Lock()
	defer k.lock.Unlock()
	now, err := k.server.Role(ctx, name)
	if KindOf(err) == NotFound {
		return false, k.members.forget(name)
	}
	if err != nil {
		return false, err
	}
	_, untold := k.members.undone(now)
	for _, key := range untold {
		if r, ok := k.server.(*REST); ok && now.UpdatedBy == r.Username() || !hasMember(now, key.grantee) && fault.Is(k.Exists(ctx, key.grantee), fault.NoPrincipal) {
			// Another server of SQE, or somebody of the same account, or a grantee that is gone
			// from the policy server.
			if err := k.members.drop(key); err != nil {
				return false, err
			}
		}
	}
	all, untold := k.members.undone(now)
	if len(untold) == 0 {
		return false, nil
	}
	doubt := k.members.doubt(now, all)
	if doubt == "" && k.config.ReapplyLost {
		if err := k.giveBack(ctx, now, all); err != nil {
			return false, err
		}
		restored = true
	}
	for _, key := range untold {
		l := Loss{Service: k.service(), Role: name, By: now.UpdatedBy, Noticed: k.writer.watched.now(), Doubt: doubt}
		if restored {
			l.Restored = l.Noticed
		}
		if now.UpdateTime != 0 {
			l.At = time.UnixMilli(now.UpdateTime)
		}
		if l.What = []string{"lacks the " + key.who() + ", who was made a member"}; hasMember(now, key.grantee) {
			l.What = []string{"has the " + key.who() + " again, who was taken out"}
		}
		if err := k.members.add(key, l); err != nil {
			return restored, err
		}
		if k.config.Lost != nil {
			k.config.Lost(l)
		}
	}
	return restored, nil
}

// giveBack makes the members of a role again what was written.
func (k *keeper) giveBack(ctx context.Context, now *model.Role, list []membership) error {
	var in, out []policy.Grantee
	for _, key := range list {
		if hasMember(now, key.grantee) {
			out = append(out, key.grantee)
		} else {
			in = append(in, key.grantee)
		}
	}
	if err := k.server.AlterRole(ctx, k.service(), now.Name, pending(now, in, true), pending(now, out, false)); err != nil {
		return err
	}
	again, err := k.server.Role(ctx, now.Name)
	if err != nil {
		return err
	}
	if left, _ := k.members.undone(again); len(left) > 0 {
		return fmt.Errorf("the members of role %q were written again, and are not there", now.Name)
	}
	return nil
}
