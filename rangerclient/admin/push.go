package admin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"sqe/rangerclient/model"
)

// push brings what is wanted onto the server, with everything that others write
// at the same time.
type push struct {
	*Writer
	first   *model.Policy           // what was read in the beginning
	seen    map[int64]*model.Policy // versions that were read, or written
	joined  map[int64]bool          // versions that are accounted for in want
	from    []int64                 // versions that want is made from
	known   *model.Policy           // the last version on the server that is accounted for
	want    *model.Policy           // what is to be
	others  *model.Policy           // what it would be without this edit
	written bool                    // something was sent and stored
}

func newPush(w *Writer, base, ours *model.Policy) *push {
	v := base.Version
	return &push{
		Writer: w, first: base, seen: map[int64]*model.Policy{v: base}, joined: map[int64]bool{v: true}, from: []int64{v},
		known: base, want: ours, others: base,
	}
}

// merges bounds how often it is merged. An edit that has overwritten another one
// must not give up before that is mended.
const merges = 64

func (p *push) run(ctx context.Context) error {
	for n := range merges {
		if n > 2 {
			if err := p.sleep(ctx); err != nil {
				return err
			}
		}
		p.want.ID, p.want.GUID, p.want.Version = p.known.ID, p.known.GUID, p.known.Version
		stamp(p.want, p.from)
		stored, err := p.put(ctx, p.known, p.want)
		if KindOf(err) == Conflict && p.written {
			if err := p.sleep(ctx); err != nil {
				return err
			}
			now, err := p.server.Policy(ctx, p.known.ID)
			if err != nil {
				return err
			}
			if now.Version > p.known.Version {
				p.seen[now.Version] = now
				if err := p.join(ctx, now.Version); err != nil {
					return err
				}
				p.known = now
			}
			continue
		}
		if err != nil {
			return err
		}
		before := p.known.Version
		p.written, p.known = true, clone(p.want)
		p.known.Version = stored.Version
		p.seen[stored.Version], p.joined[stored.Version], p.from = p.known, true, []int64{stored.Version}
		if stored.Version <= before+1 {
			return nil
		}
		sent := p.want
		if err := p.join(ctx, stored.Version-1); err != nil {
			return err
		}
		if same(p.want, sent) {
			return nil
		}
	}
	return errors.New("others change it so often that no merge comes to an end")
}

// join merges a version that somebody else wrote, and those that it was made
// from, into what is wanted.
func (p *push) join(ctx context.Context, version int64) error {
	news, err := p.news(ctx, version)
	if err != nil {
		return err
	}
	p.from = append(p.from, version)
	var clash error
	for _, v := range news {
		p.joined[v] = true
		theirs := p.seen[v]
		from, err := p.parents(ctx, v)
		if err != nil {
			return err
		}
		base, err := p.at(ctx, from[0])
		if err != nil {
			return err
		}
		if p.others, err = merge(base, theirs, p.others); err != nil {
			return fmt.Errorf("two others: %s", err.Error()) // no conflict with this edit
		}
		if clash != nil {
			continue
		}
		merged, err := merge(base, theirs, p.want)
		if err != nil {
			clash = err
			continue
		}
		p.want = merged
	}
	return clash
}

// news lists, ascending, a version and what it was made from, without what is
// accounted for.
func (p *push) news(ctx context.Context, version int64) ([]int64, error) {
	// Of a version all that was made from it is visited before it.
	mine, todo := maps.Clone(p.joined), map[int64]bool{version: true}
	for v := range mine {
		todo[v] = true
	}
	theirs := map[int64]bool{version: true}
	var out []int64
	for {
		open := false
		v := int64(0)
		for x := range todo {
			open = open || theirs[x] && !mine[x]
			v = max(v, x)
		}
		if !open {
			slices.Sort(out)
			return out, nil
		}
		delete(todo, v)
		if theirs[v] && !mine[v] {
			out = append(out, v)
		}
		from, err := p.parents(ctx, v)
		if err != nil {
			return nil, err
		}
		for _, f := range from {
			todo[f] = true
			mine[f] = mine[f] || mine[v]
			theirs[f] = theirs[f] || theirs[v]
		}
	}
}

// parents lists the versions that a version was made from; the first one is that
// with which it is to be compared. An SQE says so. Of any other it cannot be
// known: of the version before it and those that are accounted for, it is taken
// to be the one from which it differs least.
func (p *push) parents(ctx context.Context, version int64) ([]int64, error) {
	if version <= 1 {
		return nil, nil
	}
	this, err := p.at(ctx, version)
	if err != nil {
		return nil, err
	}
	copied := stampOf(this) != "" && slices.ContainsFunc(slices.Collect(maps.Keys(p.seen)), func(v int64) bool {
		return v < version && stampOf(p.seen[v]) == stampOf(this)
	})
	if from := stamped(this); len(from) > 0 && slices.Max(from) < version && !copied {
		return from, nil
	}
	if version <= p.first.Version {
		return []int64{version - 1}, nil
	}
	if _, err := p.at(ctx, version-1); err != nil {
		return nil, err
	}
	// A copy of a stamp tells more.
	evident := func(v int64) bool { return stampOf(p.seen[v]) == stampOf(this) }
	candidates := slices.DeleteFunc(slices.Sorted(maps.Keys(p.seen)), func(v int64) bool { return v >= version || v != version-1 && !p.joined[v] })
	if slices.ContainsFunc(candidates, evident) {
		candidates = slices.DeleteFunc(candidates, func(v int64) bool { return !evident(v) })
	}
	best, least := int64(0), 0
	for _, v := range candidates {
		if d := distance(p.seen[v], this); best == 0 || d < least {
			best, least = v, d
		}
	}
	return []int64{best}, nil
}

// at is the policy as it was at a version.
func (p *push) at(ctx context.Context, version int64) (*model.Policy, error) {
	if seen := p.seen[version]; seen != nil {
		return seen, nil
	}
	out, err := p.server.PolicyAt(ctx, p.first.ID, version)
	if err != nil {
		return nil, fmt.Errorf("version %d cannot be read: %w", version, err)
	}
	p.seen[version] = out
	return out, nil
}

// confirm reads back what was stored. Somebody who read an older version may have
// overwritten it since; another SQE then mends that, so it is given the time.
// Whether a later change of anybody else was meant cannot be known, so it is
// reported and not undone.
func (p *push) confirm(ctx context.Context) (*model.Policy, error) {
	version := p.known.Version
	for n := range attempts {
		now, err := absent(p.server.Policy(ctx, p.first.ID))
		switch {
		case err != nil:
			return nil, &Lost{p.want.Name, "it was stored, but cannot be read back", err}
		case now == nil:
			// Whoever deletes a policy that was changed meanwhile makes it again; either
			// way it is to be done to what is there then.
			return nil, &retry{&Lost{p.want.Name, "it was stored, and deleted by somebody else right after", nil}}
		case now.Version <= version, holds(p.first, p.want, now), p.follows(ctx, now, version):
			return now, nil
		}
		if meant, err := p.again(ctx, now, version); err == nil && meant {
			return now, nil
		}
		if n == attempts-1 {
			break
		}
		if err := p.sleep(ctx); err != nil {
			return nil, err
		}
	}
	return nil, &Lost{p.want.Name, fmt.Sprintf("it was stored as version %d and changed by somebody else right after; look at it", version), nil}
}

// again looks at what somebody else made of the policy after a version: whether they
// knew of it, and so meant what they did, and else brings back what was erased when
// that is asked for.
func (p *push) again(ctx context.Context, now *model.Policy, version int64) (meant bool, err error) {
	r, err := newReplay(ctx, p.server, now)
	if err != nil {
		return false, err
	}
	out, err := r.run(ctx, version)
	if err != nil {
		return false, err
	}
	if out.lossy == 0 {
		return r.knew(ctx, version)
	}
	if !p.watched.reapply || out.doubt != "" || same(out.want, now) {
		return false, nil
	}
	l := p.loss(r, now, out)
	back := newPush(p.Writer, now, out.want)
	if err := back.run(ctx); err != nil {
		return false, err
	}
	l.Restored = p.watched.now()
	p.watched.add(l)
	return false, nil // and look again
}

// follows reports whether a policy was made by SQEs from a version.
func (p *push) follows(ctx context.Context, now *model.Policy, version int64) bool {
	p.seen[now.Version] = now
	todo := []int64{now.Version}
	for n := 0; len(todo) > 0 && n < merges; n++ {
		v := todo[0]
		todo = todo[1:]
		if v == version {
			return true
		}
		if v < version {
			continue
		}
		if this, err := p.at(ctx, v); err == nil {
			todo = append(todo, stamped(this)...)
		}
	}
	return false
}

// stampOption is the option of a policy that says which versions it was made
// from, and of which content that is true: whoever changes the policy otherwise
// leaves the option as it is.
const stampOption = "sqe.made-from"

func digest(p *model.Policy) string {
	sum := sha256.Sum256([]byte(text(normal(p))))
	return hex.EncodeToString(sum[:8])
}

func stamp(p *model.Policy, from []int64) {
	p.Options = maps.Clone(p.Options)
	if p.Options == nil {
		p.Options = map[string]any{}
	}
	// No two stamps are the same, so that a copy tells which version it was made from.
	words := []string{"n" + strconv.FormatUint(rand.Uint64(), 36)}
	for _, v := range from {
		words = append(words, strconv.FormatInt(v, 10))
	}
	p.Options[stampOption] = strings.Join(append(words, digest(p)), " ")
}

// stamped lists the versions that a policy was made from, if it says so.
func stamped(p *model.Policy) []int64 {
	s, _ := p.Options[stampOption].(string)
	words := strings.Fields(s)
	if len(words) > 0 && strings.HasPrefix(words[0], "n") {
		words = words[1:]
	}
	if len(words) < 2 || words[len(words)-1] != digest(p) {
		return nil
	}
	var out []int64
	for _, w := range words[:len(words)-1] {
		v, err := strconv.ParseInt(w, 10, 64)
		if err != nil {
			return nil
		}
		out = append(out, v)
	}
	return out
}
