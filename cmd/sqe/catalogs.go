package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"sqe/catalog"
	"sqe/catalog/rest"
	"sqe/config"
	"sqe/fault"
)

// openCatalogs opens every catalog, the default one first, and lists the folders
// that the executor may read.
func openCatalogs(cfg *config.Config, log *slog.Logger) (*catalog.Registry, []string, error) {
	var all []catalog.Catalog
	var roots []string
	fail := func(err error) (*catalog.Registry, []string, error) {
		for _, c := range all {
			_ = c.Close()
		}
		return nil, nil, err
	}
	for _, c := range cfg.Catalogs {
		cat, err := openCatalog(c, log)
		if err != nil {
			return fail(err)
		}
		if c.Default {
			all = append([]catalog.Catalog{cat}, all...)
		} else {
			all = append(all, cat)
		}
		if c.Warehouse != "" {
			roots = append(roots, string(c.Warehouse))
		}
	}
	r, err := catalog.NewRegistry(all...)
	if err != nil {
		return fail(err)
	}
	return r, roots, nil
}

func openCatalog(c config.Catalog, log *slog.Logger) (catalog.Catalog, error) {
	switch c.Kind {
	case "sqlite":
		return catalog.OpenSQLite(c.Name, string(c.Path), string(c.Warehouse), catalog.SQLOptions{StoredName: c.StoredName})
	case "postgres":
		return catalog.OpenPostgres(c.Name, c.DSN.Reveal(), string(c.Warehouse), catalog.SQLOptions{StoredName: c.StoredName})
	case "rest":
		return openREST(c, log)
	}
	return nil, fault.New(fault.Config, "catalog %s has the unknown kind %s", c.Name, c.Kind)
}

// openREST opens a REST catalog, which sends nothing yet.
func openREST(c config.Catalog, log *slog.Logger) (catalog.Catalog, error) {
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
	return catalog.OpenREST(c.Name, r, catalog.RESTOptions{Local: string(c.Warehouse), Bound: bound, Log: log})
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
