package rangerclient

import (
	"context"
	"log/slog"
	"time"

	"sqe/fault"
)

// Downloader is a policy server in this process: the embedded store. Each method
// returns the body that a Ranger Admin would send, nil when known is its version.
type Downloader interface {
	DownloadPolicies(ctx context.Context, service string, known int64) ([]byte, error)
	DownloadTags(ctx context.Context, service string, known int64) ([]byte, error)
	DownloadRoles(ctx context.Context, service string, known int64) ([]byte, error)
	DownloadUserStore(ctx context.Context, service string, known int64) ([]byte, error)
	// Changed is closed at the next change.
	Changed() <-chan struct{}
}

// StoreConfig configures a source that reads a policy store in this process.
type StoreConfig struct {
	Name            string // name of the source
	Store           Downloader
	PolarisService  string // empty: no object gate
	DataService     string
	RefreshInterval time.Duration // 0: DefaultRefreshInterval; a change is read at once
	MaxStaleness    time.Duration // 0: DefaultMaxStaleness
	Options         Options
	Now             func() time.Time
	Log             *slog.Logger
}

// OpenStore opens a source that follows a policy store. It fails only for a
// configuration that can never work.
func OpenStore(c StoreConfig) (*Source, error) {
	switch {
	case c.Name == "" || c.Store == nil:
		return nil, fault.New(fault.Config, "a policy source needs a name and a store")
	case c.DataService == "":
		return nil, fault.Wrap(fault.Config, errNoService, "policy source %s: %s", c.Name, errNoService)
	}
	if err := c.Options.check(); err != nil {
		return nil, fault.Wrap(fault.Config, err, "policy source %s: %s", c.Name, err)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	s := open(&Source{
		name: c.Name, options: c.Options, loader: &downloads{
			polarisService: c.PolarisService, dataService: c.DataService, now: c.Now, kindName: "store",
			fetch: func(ctx context.Context, d document, version int64) ([]byte, error) {
				switch d.kind {
				case policiesDocument:
					return c.Store.DownloadPolicies(ctx, d.service, version)
				case tagsDocument:
					return c.Store.DownloadTags(ctx, d.service, version)
				case rolesDocument:
					return c.Store.DownloadRoles(ctx, d.service, version)
				default:
					return c.Store.DownloadUserStore(ctx, d.service, version)
				}
			},
		}, interval: c.RefreshInterval, maxStaleness: c.MaxStaleness, now: c.Now, log: c.Log,
	})
	s.follow(c.Store.Changed)
	return s, nil
}

// follow reads the policies whenever changed says so. The channel is taken before
// they are read, so that no change between the two is missed.
func (s *Source) follow(changed func() <-chan struct{}) {
	ctx := s.ctx
	s.done.Add(1)
	go func() {
		defer s.done.Done()
		for next := changed(); ; {
			// What changed before next was taken is read here.
			s.nudge()
			select {
			case <-ctx.Done():
				return
			case <-next:
				next = changed()
			}
		}
	}()
}

// nudge asks the refresher to poll now.
func (s *Source) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
