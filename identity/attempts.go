package identity

import (
	"container/list"
	"sync"
	"time"
)

// How many logins may fail before an address must wait, and how fast failures
// are forgotten. An address may be that of many people (a proxy, a pool), so its
// limit is much wider than that of one name at an address.
const (
	failuresByName    = 10
	failuresByAddress = 100
	forgetByName      = 6 * time.Second // one failure is forgotten in this time
	forgetByAddress   = 600 * time.Millisecond
	maxTracked        = 10_000 // entries; the least recently used ones are dropped
)

// attempts counts failed logins in leaky buckets. Names alone are not counted:
// anybody could then lock anybody out.
type attempts struct {
	mu    sync.Mutex
	max   int
	now   func() time.Time
	by    map[attemptKey]*list.Element
	order list.List // of *bucket, most recently used first
}

type attemptKey struct{ host, user string }

type bucket struct {
	key   attemptKey
	level float64
	at    time.Time
}

func newAttempts(most int) *attempts {
	return &attempts{max: most, now: time.Now, by: map[attemptKey]*list.Element{}}
}

// keys are the buckets of a login. The name of the address bucket is not a valid
// user name.
func keys(host, user string) (name, address attemptKey) {
	const longest = 128 // a name is from the network: bound what is kept
	if len(user) > longest {
		user = user[:longest]
	}
	return attemptKey{host, "u" + user}, attemptKey{host, ""}
}

// blocked is how long a login must wait; 0: not at all.
func (a *attempts) blocked(host, user string) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	name, address := keys(host, user)
	return max(a.wait(name, failuresByName, forgetByName), a.wait(address, failuresByAddress, forgetByAddress))
}

func (a *attempts) wait(k attemptKey, most float64, forget time.Duration) time.Duration {
	e, ok := a.by[k]
	if !ok {
		return 0
	}
	b := e.Value.(*bucket)
	level := b.level - float64(a.now().Sub(b.at))/float64(forget)
	if level <= most-1 {
		return 0
	}
	return time.Duration((level - (most - 1)) * float64(forget))
}

func (a *attempts) failed(host, user string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	name, address := keys(host, user)
	a.add(name, forgetByName)
	a.add(address, forgetByAddress)
}

func (a *attempts) add(k attemptKey, forget time.Duration) {
	now := a.now()
	e, ok := a.by[k]
	if !ok {
		e = a.order.PushFront(&bucket{key: k, at: now})
		a.by[k] = e
		if len(a.by) > a.max {
			last := a.order.Back()
			a.order.Remove(last)
			delete(a.by, last.Value.(*bucket).key)
		}
	}
	a.order.MoveToFront(e)
	b := e.Value.(*bucket)
	b.level = max(0, b.level-float64(now.Sub(b.at))/float64(forget)) + 1
	b.at = now
}

// succeeded forgets the failures of the name at the address.
func (a *attempts) succeeded(host, user string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	name, _ := keys(host, user)
	if e, ok := a.by[name]; ok {
		a.order.Remove(e)
		delete(a.by, name)
	}
}
