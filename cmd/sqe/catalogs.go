package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"sqe/catalog"
	"sqe/catalog/objects"
	"sqe/catalog/rest"
	"sqe/config"
	"sqe/fault"
	"sqe/ops"
)

// openCatalogs opens every catalog, the default one first, and lists the folders
// that the executor may read. refused is told what REST catalogs refuse.
func openCatalogs(cfg *config.Config, cache *objects.Cache, log *slog.Logger, refused func(context.Context, catalog.Refusal)) (*catalog.Registry, []string, error) {
	var all []catalog.Catalog
	var roots []string
	fail := func(err error) (*catalog.Registry, []string, error) {
		for _, c := range all {
			_ = c.Close()
		}
		return nil, nil, err
	}
	for _, c := range cfg.Catalogs {
		cat, err := openCatalog(c, cache, log, refused)
		if err != nil {
			return fail(err)
		}
		if c.Default {
			all = append([]catalog.Catalog{cat}, all...)
		} else {
			all = append(all, cat)
		}
		if c.Warehouse != "" && !objects.Is(string(c.Warehouse)) {
			roots = append(roots, string(c.Warehouse))
		}
	}
	r, err := catalog.NewRegistry(all...)
	if err != nil {
		return fail(err)
	}
	return r, roots, nil
}

func openCatalog(c config.Catalog, cache *objects.Cache, log *slog.Logger, refused func(context.Context, catalog.Refusal)) (catalog.Catalog, error) {
	store, err := objectStore(c, cache)
	if err != nil {
		return nil, err
	}
	o := catalog.SQLOptions{StoredName: c.StoredName, Memory: int64(c.Memory)}
	if c.Kind != "rest" && objects.Is(string(c.Warehouse)) {
		if o.Objects, err = objects.New(store); err != nil {
			return nil, fault.Wrap(fault.Config, err, "catalog %s: %s", c.Name, err)
		}
	}
	switch c.Kind {
	case "sqlite":
		return catalog.OpenSQLite(c.Name, string(c.Path), string(c.Warehouse), o)
	case "postgres":
		return catalog.OpenPostgres(c.Name, c.DSN.Reveal(), string(c.Warehouse), o)
	case "rest":
		return openREST(c, store, log, refused)
	}
	return nil, fault.New(fault.Config, "catalog %s has the unknown kind %s", c.Name, c.Kind)
}

// objectStore says how the object store of a catalog is reached.
func objectStore(c config.Catalog, cache *objects.Cache) (objects.Options, error) {
	client, err := objects.NewHTTP(objects.HTTPOptions{CAFile: string(c.CAFile)})
	if err != nil {
		return objects.Options{}, fault.Wrap(fault.Config, err, "catalog %s: %s", c.Name, err)
	}
	return objects.Options{
		Endpoint: c.S3Endpoint, Region: c.S3Region, VirtualHosts: !c.S3PathStyle, HTTP: client, Timeout: time.Duration(c.S3Timeout), Cache: cache,
		Credentials: objects.Credentials{AccessKeyID: c.S3Access.Reveal(), SecretAccessKey: c.S3Secret.Reveal()},
	}, nil
}

// openObjectCache is nil when nothing is to be kept.
func openObjectCache(cfg *config.Config) (*objects.Cache, error) {
	if cfg.Cache.Size == 0 {
		return nil, nil
	}
	cache, err := objects.OpenCache(string(cfg.Cache.Directory), int64(cfg.Cache.Size))
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "the folder of the object cache cannot be used: %s", err)
	}
	return cache, nil
}

// cacheStatus is nil where there is no cache.
func cacheStatus(cache *objects.Cache) func() ops.ObjectCache {
	if cache == nil {
		return nil
	}
	return func() ops.ObjectCache { return ops.ObjectCache(cache.Status()) }
}

// openREST opens a REST catalog, which sends nothing yet.
func openREST(c config.Catalog, store objects.Options, log *slog.Logger, refused func(context.Context, catalog.Refusal)) (catalog.Catalog, error) {
	bad := func(err error) error { return fault.Wrap(fault.Config, err, "catalog %s: %s", c.Name, err) }
	client, err := rest.NewHTTP(rest.HTTPOptions{
		CAFile: string(c.CAFile), CertFile: string(c.ClientCert), KeyFile: string(c.ClientKey), Timeout: time.Duration(c.Timeout),
	})
	if err != nil {
		return nil, bad(err)
	}
	tokens, err := catalogTokens(c, client)
	if err != nil {
		return nil, bad(err)
	}
	delegation := c.Delegation
	if delegation == "none" {
		delegation = ""
	}
	r, err := rest.New(rest.Options{
		URI: c.URI, Warehouse: c.RESTWarehouse, Prefix: c.Prefix, Headers: c.Headers, Tokens: tokens, Delegation: delegation,
		HTTP: client, AllowHTTP: c.AllowHTTP, PageSize: c.PageSize,
	})
	if err != nil {
		return nil, bad(err)
	}
	bound := time.Duration(c.MaxAge)
	if bound == 0 {
		bound = -1 // each time
	}
	o := catalog.RESTOptions{Bound: bound, TrustETags: c.TrustETags, Memory: int64(c.Memory), Log: log, Refused: refused, Objects: catalog.ObjectStores{Options: store, AllowHTTP: c.AllowHTTP}}
	if objects.Is(string(c.Warehouse)) {
		o.Objects.Warehouse = string(c.Warehouse)
	} else {
		o.Local = string(c.Warehouse)
	}
	return catalog.OpenREST(c.Name, r, o)
}

func catalogTokens(c config.Catalog, client *http.Client) (rest.Tokens, error) {
	switch c.Identity {
	case "user":
		return rest.User(c.Name), nil
	case "none":
		return rest.Anonymous(), nil
	case "service":
		if c.ClientID == "" {
			return rest.Static(c.Name, c.Token.Reveal(), string(c.TokenFile)), nil
		}
		address := c.TokenURI
		if address == "" {
			address = strings.TrimSuffix(strings.TrimSuffix(c.URI, "/"), "/v1") + "/v1/oauth/tokens"
		}
		return rest.Service(rest.ClientCredentials{
			Catalog: c.Name, URL: address, ID: c.ClientID, Secret: c.ClientSecret.Reveal(),
			Scope: c.Scope, Audience: c.Audience, Resource: c.Resource, HTTP: client,
		}), nil
	}
	return nil, fmt.Errorf("identity is %q", c.Identity)
}
