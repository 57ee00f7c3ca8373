package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"sqe/audit"
	"sqe/catalog"
	"sqe/config"
	"sqe/engine"
	"sqe/engine/bind"
	"sqe/engine/duck"
	"sqe/engine/scan"
	"sqe/identity"
	"sqe/masks"
	"sqe/ops"
	"sqe/policy"
	"sqe/policystore"
	"sqe/policystore/rest"
	"sqe/server"
)

// instance is everything that one server process holds. Close gives it back in
// the opposite order.
type instance struct {
	config *config.Config
	log    *slog.Logger
	server *server.Server
	ops    *ops.Server
	// store is the embedded policy store and storeFace its REST interface, nil where
	// none is configured.
	store     *policystore.Store
	storeFace *rest.Server
	failed    chan error
	closers   []func()
	sink      atomic.Pointer[auditLog]
}

// start builds a server from its configuration and begins to serve.
func start(cfg *config.Config, logTo io.Writer) (*instance, error) {
	in := &instance{config: cfg, failed: make(chan error, 3)}
	if err := in.build(logTo); err != nil {
		in.Close()
		return nil, err
	}
	go func() { in.failed <- in.server.Serve() }()
	if in.ops != nil {
		go func() { in.failed <- in.ops.Serve() }()
	}
	if in.storeFace != nil {
		go func() { in.failed <- in.storeFace.Serve() }()
	}
	return in, nil
}

func (in *instance) build(logTo io.Writer) error {
	cfg := in.config
	log, err := ops.NewLogger(logTo, cfg.Log.Level, cfg.Log.Format)
	if err != nil {
		return err
	}
	in.log = log
	cache, err := openObjectCache(cfg)
	if err != nil {
		return err
	}
	in.closing(func() { _ = cache.Close() })
	both := &gates{}
	catalogs, roots, err := openCatalogs(cfg, cache, log, both.refused)
	if err != nil {
		return err
	}
	in.closing(func() { _ = catalogs.Close() })
	if err := in.openStore(context.Background()); err != nil {
		return err
	}
	sources, err := in.openSources()
	if err != nil {
		return err
	}
	in.followStore(sources)
	administrators, err := in.openAdministrators(sources)
	if err != nil {
		return err
	}
	if err := in.serveStore(); err != nil {
		return err
	}
	maskOptions := maskOptions(cfg)
	if problems := keyProblems(sources, maskOptions); len(problems) > 0 {
		return errors.Join(problems...)
	}
	if temp := string(cfg.Engine.TempDirectory); temp != "" {
		release, err := ownTemp(temp)
		if err != nil {
			return err
		}
		in.closing(release)
	}
	executor, err := openExecutor(cfg, roots)
	if err != nil {
		return err
	}
	in.closing(func() { _ = executor.Close() })
	sink, err := in.openAudit(sources)
	if err != nil {
		return err
	}
	in.sink.Store(sink)
	in.watchPolicies(sources, administrators)
	var eng *engine.Engine
	metrics := ops.NewMetrics(ops.Sources{
		Policies:   func() []policy.Status { return statuses(sources) },
		Running:    func() int { return int(executor.Stats().Running) },
		Queued:     func() int { return int(executor.Stats().Queued) },
		Targetless: in.watchTargets(catalogs, sources),
		Audit:      sink.metrics,
		Version:    versionText(),

		ObjectCache: cacheStatus(cache),
	})
	disagreed := metrics.Disagreement
	both.sources.Store(&sources)
	both.count.Store(&disagreed)
	eng = engine.New(engine.Options{
		Catalogs: catalogs, Sources: sources, Duck: executor, Scans: scan.New(scan.Options{}), Masks: maskOptions,
		Audit: sink, StatementTimeout: time.Duration(cfg.Server.StatementTimeout),
		WriteMemory: int64(cfg.Engine.WriteMemory),
		RowLimit:    bind.Limits{Rows: int64(cfg.Engine.RowLimit), Bytes: int64(cfg.Engine.ByteLimit), Together: int64(max(cfg.Engine.MemoryLimit, cfg.Engine.ByteLimit))},
		Version:     cfg.Server.Version, Observer: metrics, Log: log,
		Administrators: administrators,
		Import: engine.Import{
			Local: cfg.Import.Local, Directories: cfg.Import.Directories, MaxBytes: int64(cfg.Import.MaxBytes), Spool: string(cfg.Engine.TempDirectory),
		},
		Principals: func(name string) (identity.Principal, bool) { return configured(cfg, name) },
		TagLineage: tagLineage(cfg), ManagedBy: accessManagedBy(cfg),
	})
	if err := in.listen(eng, metrics, sink); err != nil {
		return err
	}
	eng.SetConnectionCloser(in.server.CloseConnection)
	return in.listenOps(metrics, sources)
}

// tagLineage says for each catalog what happens to the tags of written values.
func tagLineage(cfg *config.Config) map[string]engine.TagLineage {
	out := map[string]engine.TagLineage{}
	for _, c := range cfg.Catalogs {
		switch c.TagLineage {
		case "warn":
			out[c.Name] = engine.WarnOfTags
		case "refuse":
			out[c.Name] = engine.RefuseTags
		}
	}
	return out
}

func maskOptions(cfg *config.Config) masks.Options {
	return masks.Options{
		HashKey: []byte(cfg.Masks.HashKey.Reveal()), KeepShort: cfg.Masks.ShortValues == "keep",
		Rendering: masks.Rendering(cfg.Masks.Rendering), UnkeyedHash: cfg.Masks.UnkeyedHash,
	}
}

// watchTargets compares policies with the tables while the server runs, and tells
// how many name something that does not exist.
func (in *instance) watchTargets(catalogs *catalog.Registry, sources []policy.Source) func() int {
	t := &targets{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.watch(ctx, catalogs, sources)
	}()
	in.closing(func() {
		cancel()
		<-done
	})
	return t.Missing
}

func (in *instance) closing(f func()) { in.closers = append(in.closers, f) }

// Close ends what start began, latest first.
func (in *instance) Close() {
	for i := len(in.closers) - 1; i >= 0; i-- {
		in.closers[i]()
	}
	in.closers = nil
}

// Wait serves until ctx ends or a listener fails.
func (in *instance) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-in.failed:
		return err
	}
}

func openExecutor(cfg *config.Config, roots []string) (*duck.Instance, error) {
	return duck.Open(duck.Config{
		MemoryLimit: int64(cfg.Engine.MemoryLimit), Threads: cfg.Engine.Threads, TempDir: string(cfg.Engine.TempDirectory),
		MaxTempSize: int64(cfg.Engine.TempLimit), Roots: roots, MaxConcurrent: cfg.Engine.MaxConcurrent,
	})
}

func (in *instance) listen(eng *engine.Engine, metrics *ops.Metrics, sink audit.Sink) error {
	cfg := in.config
	providers, remote, err := openIdentity(cfg, in.log)
	if err != nil {
		return err
	}
	in.loadIdentity(remote)
	cert, err := certificate(cfg)
	if err != nil {
		return err
	}
	in.server, err = server.Listen(server.Options{
		Address: net.JoinHostPort(cfg.Server.Address, strconv.Itoa(cfg.Server.Port)),
		Open: func(l identity.Login, info engine.ConnInfo) (server.Session, error) {
			return eng.OpenLogin(l, info)
		},
		Authenticator: identity.NewChain(providers...), TLS: server.TLSConfig(cert), PlainAllowed: !cfg.Server.RequireTLS,
		Version: cfg.Server.Version, MaxConnections: cfg.Server.MaxConnections,
		HandshakeTimeout: time.Duration(cfg.Server.HandshakeTimeout), IdleTimeout: time.Duration(cfg.Server.IdleTimeout),
		WriteTimeout: time.Duration(cfg.Server.WriteTimeout), MaxPacket: int(cfg.Server.MaxPacket), LocalFiles: cfg.Import.Local,
		Logins: func(l server.LoginEvent) error { return sink.Record(loginEvent(l)) }, Observer: metrics, Log: in.log,
	})
	if err != nil {
		return err
	}
	in.closing(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(cfg.Server.ShutdownTimeout))
		defer cancel()
		in.server.Shutdown(ctx)
	})
	return nil
}

func principal(u config.User) identity.Principal {
	return identity.Principal{Name: u.Name, Groups: u.Groups, Roles: u.Roles, Attributes: u.Attributes, Admin: u.Admin}
}

// configured finds what the configuration says of a user.
func configured(cfg *config.Config, name string) (identity.Principal, bool) {
	for _, u := range cfg.Users {
		if u.Name == name {
			return principal(u), true
		}
	}
	return identity.Principal{}, false
}

func certificate(cfg *config.Config) (tls.Certificate, error) {
	if cfg.Server.TLSCert != "" {
		return server.LoadCertificate(string(cfg.Server.TLSCert), string(cfg.Server.TLSKey))
	}
	dir := string(cfg.Server.StateDirectory)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return tls.Certificate{}, fmt.Errorf("server.state-directory cannot be made: %w", err)
	}
	return server.GeneratedCertificate(dir)
}

func loginEvent(l server.LoginEvent) audit.Event {
	e := audit.Event{Type: "login", Remote: l.RemoteAddr, Connection: l.ConnectionID}
	e.Of(l.Principal)
	if l.Err != nil {
		e.User, e.Reason = l.User, string(identity.ReasonOf(l.Err))
	}
	e.Ended(l.Err)
	return e
}

func (in *instance) listenOps(metrics *ops.Metrics, sources []policy.Source) error {
	if in.config.Ops.Address == "" {
		return nil
	}
	var err error
	in.ops, err = ops.Listen(in.config.Ops.Address, metrics, []ops.Check{
		{Name: "policies", Err: ops.PoliciesFresh(func() []policy.Status { return statuses(sources) }).Err},
	})
	if err != nil {
		return err
	}
	in.closing(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = in.ops.Shutdown(ctx)
	})
	return nil
}
