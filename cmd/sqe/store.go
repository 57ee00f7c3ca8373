package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"sqe/config"
	"sqe/policy"
	"sqe/policystore"
	"sqe/policystore/rest"
	"sqe/rangerclient"
	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
	"sqe/server"
)

// openStore opens the embedded policy store. One that holds no service is new: then
// the services that sources read are made. In any other, a data service that is not
// there was deleted or is misspelt, and an empty one in its place would protect
// nothing: the source refuses every statement until it is there.
func (in *instance) openStore(ctx context.Context) error {
	cfg := in.config.Store
	if cfg.Path == "" {
		return nil
	}
	marker, err := markerOf(in.config)
	if err != nil {
		return err
	}
	if err := marker.exists(string(cfg.Path)); err != nil {
		return err
	}
	store, err := policystore.Open(ctx, string(cfg.Path), policystore.Options{AdminPassword: cfg.AdminPassword.Reveal(), Log: in.log})
	if err != nil {
		return err
	}
	in.closing(func() { _ = store.Close() })
	if err := marker.same(string(cfg.Path), store.ID()); err != nil {
		return err
	}
	in.store = store
	services, err := store.Services(ctx)
	if err != nil {
		return err
	}
	for _, p := range in.config.Policies {
		if p.Kind != "store" {
			continue
		}
		if _, err := store.Service(ctx, p.DataService); admin.KindOf(err) == admin.NotFound && len(services) > 0 {
			in.log.Warn("the policy store has no such data service, so statements are refused until there is one; is data-service misspelt?", "source", p.Name, "service", p.DataService)
			continue
		}
		if err := ensureServices(ctx, store, p); err != nil {
			return fmt.Errorf("policy store, services of source %s: %w", p.Name, err)
		}
	}
	return ensurePrincipals(ctx, store, in.config.Users)
}

// followWait is how long a write to the store waits for one source to read it.
const followWait = 5 * time.Second

// followStore has every write to the store, also one over REST, return only when the
// sources that read the store decide by it.
func (in *instance) followStore(sources []policy.Source) {
	for i, p := range in.config.Policies {
		if p.Kind != "store" {
			continue
		}
		reload := sources[i].(*rangerclient.Source).Reload
		in.store.OnChange(func() {
			ctx, cancel := context.WithTimeout(context.Background(), followWait)
			defer cancel()
			_ = reload(ctx) // is logged there, and tried again by the source
		})
	}
}

// ensurePrincipals makes the users, groups and roles of the configuration known to
// the store by name, so that policies can name them. Who is in which group or role
// stays with the configuration.
func ensurePrincipals(ctx context.Context, server admin.Server, users []config.User) error {
	// exists is an error of a look-up, or of the creation that lost a race.
	exists := func(err error) error {
		if admin.KindOf(err) == admin.Exists {
			return nil
		}
		return err
	}
	for _, u := range users {
		if _, err := server.User(ctx, u.Name); admin.KindOf(err) == admin.NotFound {
			if _, err := server.CreateUser(ctx, &model.User{Name: u.Name}); exists(err) != nil {
				return fmt.Errorf("policy store, user %s: %w", u.Name, err)
			}
		}
		for _, name := range u.Groups {
			if _, err := server.Group(ctx, name); admin.KindOf(err) == admin.NotFound {
				if _, err := server.CreateGroup(ctx, &model.Group{Name: name}); exists(err) != nil {
					return fmt.Errorf("policy store, group %s: %w", name, err)
				}
			}
		}
		for _, name := range u.Roles {
			if _, err := server.Role(ctx, name); admin.KindOf(err) == admin.NotFound {
				if _, err := server.CreateRole(ctx, &model.Role{Name: name}); exists(err) != nil {
					return fmt.Errorf("policy store, role %s: %w", name, err)
				}
			}
		}
	}
	return nil
}

// ensureServices makes the services of a source that a new store lacks: of type
// hive for rows and values, polaris for objects, with a tag service between them.
func ensureServices(ctx context.Context, server admin.Server, p config.Policy) error {
	ensure := func(s *model.Service) error {
		_, err := server.Service(ctx, s.Name)
		if admin.KindOf(err) != admin.NotFound {
			return err
		}
		_, err = server.CreateService(ctx, s)
		return err
	}
	if _, err := server.Service(ctx, p.DataService); admin.KindOf(err) == admin.NotFound {
		tags := p.DataService + "_tag"
		if err := ensure(&model.Service{Name: tags, Type: "tag"}); err != nil {
			return err
		}
		// Ranger wants to know how to reach a hive service; nobody uses it here.
		unused := model.Strings{"username": "none", "password": "none", "jdbc.driverClassName": "none", "jdbc.url": "none"}
		if err := ensure(&model.Service{Name: p.DataService, Type: "hive", TagService: tags, Configs: unused}); err != nil {
			return err
		}
	}
	if p.PolarisService == "" {
		return nil
	}
	data, err := server.Service(ctx, p.DataService)
	if err != nil {
		return err
	}
	return ensure(&model.Service{Name: p.PolarisService, Type: "polaris", TagService: data.TagService})
}

// serveStore lets plugins of other engines and administrators reach the store
// over REST, where the configuration says so.
func (in *instance) serveStore() error {
	cfg := in.config.Store
	if in.store == nil || cfg.Listen == "" {
		return nil
	}
	var certificate *tls.Certificate
	if !cfg.PlainHTTP {
		cert, err := storeCertificate(in.config)
		if err != nil {
			return err
		}
		certificate = &cert
	}
	face, err := rest.Listen(cfg.Listen, certificate, rest.New(in.store, rest.Options{Log: in.log}))
	if err != nil {
		return err
	}
	in.storeFace = face
	in.closing(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = face.Shutdown(ctx)
	})
	return nil
}

func storeCertificate(cfg *config.Config) (tls.Certificate, error) {
	if cfg.Store.TLSCert == "" {
		return certificate(cfg)
	}
	return server.LoadCertificate(string(cfg.Store.TLSCert), string(cfg.Store.TLSKey))
}
