package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"

	"sqe/audit"
	"sqe/catalog"
	"sqe/config"
	"sqe/engine"
	"sqe/fault"
	"sqe/masks"
	"sqe/plan"
	"sqe/policy"
	"sqe/policystore"
	"sqe/rangerclient/admin"
	"sqe/server"
)

// checkCommand reports everything that is wrong with a configuration and its
// policies at once, without serving.
func checkCommand(ctx context.Context, args []string, stdout io.Writer) error {
	cfg, err := configFlag("check", args)
	if err != nil {
		return err
	}
	var problems []error
	catalogs, _, err := openCatalogs(cfg, nil, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		problems = append(problems, err)
	} else {
		defer func() { _ = catalogs.Close() }()
	}
	for i := range cfg.Policies {
		cfg.Policies[i].SnapshotFile = "" // the server is asked, not what it said before
	}
	in := &instance{config: cfg, log: slog.New(slog.DiscardHandler)}
	defer in.Close()
	var advice []string
	made, err := in.existingStore(ctx)
	switch {
	case err != nil:
		return err
	case !made:
		// Of a store that is to be made there is nothing to say yet.
		advice = append(advice, fmt.Sprintf("the policy store %s is not there yet; sqe serve makes it", cfg.Store.Path))
		cfg.Policies = slices.DeleteFunc(slices.Clone(cfg.Policies), func(p config.Policy) bool { return p.Kind == "store" })
	}
	sources, err := in.openSources()
	if err != nil {
		problems = append(problems, err)
	}
	for _, s := range sources {
		status := s.Status()
		if !status.Loaded {
			problems = append(problems, fmt.Errorf("policy source %s cannot be read: %s", status.Source, status.LastError))
		}
		for _, p := range status.Problems {
			problems = append(problems, fmt.Errorf("policy source %s: %s", status.Source, p))
		}
	}
	maskOptions := maskOptions(cfg)
	problems = append(problems, keyProblems(sources, maskOptions)...)
	var tables []*plan.Table // nil: not known
	var personal []catalog.Catalog
	if catalogs != nil {
		var failed []error
		tables, personal, failed = allTables(ctx, catalogs)
		problems = append(problems, failed...)
		if tables == nil && len(failed) == 0 {
			tables = []*plan.Table{}
		}
		advice = append(advice, emptyCatalogs(ctx, catalogs, personal)...)
		for _, c := range personal {
			tables = nil
			advice = append(advice, fmt.Sprintf("catalog %s decides by the token of each user: its tables, and what policies say of them, were not looked at", c.Name()))
		}
	}
	findings := engine.Findings(sources, tables)
	if catalogs != nil {
		eng := engine.New(engine.Options{Catalogs: catalogs, Sources: sources, Masks: maskOptions, Audit: audit.Discard{}})
		for _, f := range eng.BindTexts(ctx, tables, nil, 0) {
			problems = append(problems, fmt.Errorf("policy source %s: %s", f.Source, f))
		}
	}
	for _, f := range findings {
		switch text := fmt.Sprintf("policy source %s: %s", f.Source, f); f.Kind {
		case policy.Silent:
			problems = append(problems, errors.New(text))
		case policy.Advice:
			advice = append(advice, text)
		}
	}
	wrong, more := identityFindings(ctx, cfg)
	problems, advice = append(problems, wrong...), append(advice, more...)
	wrong, more = surroundings(ctx, cfg, personal)
	problems, advice = append(problems, wrong...), append(advice, more...)
	for _, a := range append(advice, in.administrationAdvice(ctx, sources)...) {
		if _, err := fmt.Fprintln(stdout, "advice:", a); err != nil {
			return err
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("%s\n%w", counted(len(problems), "problem"), errors.Join(problems...))
	}
	_, err = fmt.Fprintln(stdout, "the configuration and the policies are in order")
	return err
}

// existingStore opens the embedded store to look at it; it makes none, and reports
// whether there is the one of the configuration. A store that was there before and is
// not now is an error, as at the start of the server.
func (in *instance) existingStore(ctx context.Context) (made bool, err error) {
	path := string(in.config.Store.Path)
	if path == "" {
		return true, nil
	}
	marker, err := markerOf(in.config)
	if err != nil {
		return false, err
	}
	if err := marker.exists(path); err != nil {
		return false, err
	}
	if _, err := os.Stat(path); err != nil {
		return false, nil
	}
	store, err := policystore.Open(ctx, path, policystore.Options{Log: in.log})
	if err != nil {
		return false, err
	}
	in.closing(func() { _ = store.Close() })
	in.store = store
	return true, nil
}

// administrationAdvice asks each policy server whether policies can be written
// there. One that cannot be read is a problem already, and not asked again: wrong
// passwords lock an account.
func (in *instance) administrationAdvice(ctx context.Context, sources []policy.Source) []string {
	var out []string
	for i, p := range in.config.Policies {
		if i >= len(sources) || !sources[i].Status().Loaded {
			continue
		}
		server, err := in.policyServer(p)
		if server == nil || err != nil {
			continue
		}
		service, err := server.Service(ctx, p.DataService)
		switch {
		case admin.KindOf(err) == admin.Forbidden:
			out = append(out, fmt.Sprintf("policy source %s: policies cannot be written in SQL with this user; set admin-username to an administrator of %s, or to a user in service.admin.users of service %s", p.Name, server.Name(), p.DataService))
		case err != nil:
			out = append(out, fmt.Sprintf("policy source %s: whether policies can be written in SQL is not known: %v", p.Name, err))
		case !service.IsEnabled():
			out = append(out, fmt.Sprintf("policy source %s: service %s is disabled on %s", p.Name, p.DataService, server.Name()))
		}
	}
	return out
}

// keyProblems reports policies that use a mask which needs a key that is not
// configured: the server does not start with them.
func keyProblems(sources []policy.Source, o masks.Options) []error {
	if len(o.HashKey) > 0 {
		return nil
	}
	var out []error
	for _, s := range sources {
		state, err := s.State()
		if err != nil {
			continue // it cannot be read; every statement is refused anyway
		}
		lister, ok := state.(interface{ MaskActions() []string })
		if !ok {
			continue
		}
		for _, a := range lister.MaskActions() {
			if o.NeedsKey(a) {
				out = append(out, fmt.Errorf("policies of %s use %s and there is no key for it; set masks.hash-key-file", s.Name(), a))
			}
		}
	}
	return out
}

// emptyCatalogs tells of catalogs without anything in them, which is how a wrong name
// of one looks.
func emptyCatalogs(ctx context.Context, catalogs *catalog.Registry, personal []catalog.Catalog) (advice []string) {
	for _, cat := range catalogs.All() {
		if slices.Contains(personal, cat) {
			continue
		}
		if namespaces, err := cat.Namespaces(ctx); err == nil && len(namespaces) == 0 {
			advice = append(advice, fmt.Sprintf("catalog %s is empty; if it should not be, name (sqlite, postgres: or stored-name) must be that under which its tables were written", cat.Name()))
		}
	}
	return advice
}

// unreadable is the error of a catalog, with what the log of a server would say: sqe
// check has none.
func unreadable(cat catalog.Catalog, err error) error {
	if cause := server.Cause(err); cause != "" {
		return fmt.Errorf("catalog %s: %w (%s)", cat.Name(), err, cause)
	}
	return fmt.Errorf("catalog %s: %w", cat.Name(), err)
}

// allTables loads the tables of every catalog, but for those that show them to each
// user alone.
func allTables(ctx context.Context, catalogs *catalog.Registry) (tables []*plan.Table, personal []catalog.Catalog, problems []error) {
	for _, cat := range catalogs.All() {
		namespaces, err := cat.Namespaces(ctx)
		if fault.Is(err, fault.Auth) {
			personal = append(personal, cat)
			continue
		}
		if err != nil {
			problems = append(problems, unreadable(cat, err))
		}
		for _, ns := range namespaces {
			names, err := cat.Tables(ctx, ns)
			if err != nil {
				problems = append(problems, unreadable(cat, err))
			}
			for _, name := range names {
				t, err := cat.Table(ctx, plan.TableName{Catalog: cat.Name(), Namespace: ns, Name: name}, plan.AsOf{}, "")
				if err != nil {
					problems = append(problems, unreadable(cat, err))
					continue
				}
				tables = append(tables, t)
			}
		}
	}
	return tables, personal, problems
}
