package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"sqe/audit"
	"sqe/catalog"
	"sqe/engine"
	"sqe/identity"
	"sqe/masks"
	"sqe/plan"
	"sqe/policy"
	"sqe/policystore"
	"sqe/rangerclient"
	"sqe/rangerclient/admin"
)

// checkCommand reports everything that is wrong with a configuration and its
// policies at once, without serving.
func checkCommand(ctx context.Context, args []string, stdout io.Writer) error {
	cfg, err := configFlag("check", args)
	if err != nil {
		return err
	}
	var problems []error
	catalogs, _, err := openCatalogs(cfg)
	if err != nil {
		problems = append(problems, err)
	} else {
		defer func() { _ = catalogs.Close() }()
	}
	in := &instance{config: cfg, log: slog.New(slog.DiscardHandler)}
	defer in.Close()
	if err := in.existingStore(ctx); err != nil {
		return err
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
	if catalogs != nil {
		problems = append(problems, policyProblems(catalogs, sources, maskOptions)...)
	}
	users := make([]identity.User, len(cfg.Users))
	for i, u := range cfg.Users {
		users[i] = identity.User{Principal: identity.Principal{Name: u.Name}, PasswordHash: u.PasswordHash.Reveal()}
	}
	if _, err := identity.NewStatic(users); err != nil {
		problems = append(problems, err)
	}
	for _, a := range append(sourceAdvice(sources), in.administrationAdvice(ctx)...) {
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

// existingStore opens the embedded store to look at it; it makes none.
func (in *instance) existingStore(ctx context.Context) error {
	path := string(in.config.Store.Path)
	if path == "" {
		return nil
	}
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("the policy store %s is not there yet; sqe serve makes it", path)
	}
	store, err := policystore.Open(ctx, path, policystore.Options{Log: in.log})
	if err != nil {
		return err
	}
	in.closing(func() { _ = store.Close() })
	in.store = store
	return nil
}

// sourceAdvice is what the documents of the sources give reason to say.
func sourceAdvice(sources []policy.Source) []string {
	var out []string
	for _, s := range sources {
		state, err := s.State()
		if err != nil {
			continue // reported as a problem
		}
		if adviser, ok := state.(interface{ Advice() []string }); ok {
			for _, a := range adviser.Advice() {
				out = append(out, fmt.Sprintf("policy source %s: %s", s.Name(), a))
			}
		}
	}
	return out
}

// administrationAdvice asks each policy server whether policies can be written
// there.
func (in *instance) administrationAdvice(ctx context.Context) []string {
	var out []string
	for _, p := range in.config.Policies {
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

// policyProblems reports policies that name tables or columns which do not exist,
// and texts that cannot be bound.
func policyProblems(catalogs *catalog.Registry, sources []policy.Source, o masks.Options) []error {
	tables, problems := allTables(context.Background(), catalogs)
	for _, f := range withoutTarget(sources, tables) {
		problems = append(problems, fmt.Errorf("policy source %s: %s", f.source, f.text))
	}
	eng := engine.New(engine.Options{Catalogs: catalogs, Sources: sources, Masks: o, Audit: audit.Discard{}})
	for _, s := range sources {
		state, err := s.State()
		if err != nil {
			continue // reported before
		}
		if texts, ok := state.(interface {
			Texts(t *plan.Table) []rangerclient.Text
		}); ok {
			for _, t := range tables {
				for _, text := range texts.Texts(t) {
					if err := bindText(eng, t, text); err != nil {
						problems = append(problems, fmt.Errorf("policy source %s: policy %q (id %d) on table %s: %w", s.Name(), text.Policy, text.ID, t.Name, err))
					}
				}
			}
		}
	}
	return problems
}

// bindText binds a row filter or a CUSTOM mask as a statement would.
func bindText(eng *engine.Engine, t *plan.Table, text rangerclient.Text) error {
	var err error
	if f, ok := t.FieldNamed(text.Column); text.Column != "" && ok {
		var others []int
		for _, name := range text.Masked {
			if other, ok := t.FieldNamed(name); ok {
				others = append(others, other.ID)
			}
		}
		err = eng.CheckMask(context.Background(), t, f.ID, text.SQL, others)
	} else {
		err = eng.CheckFilter(context.Background(), t, text.SQL)
	}
	// Whoever checks may read policies: the cause says more than the text for users.
	if cause := errors.Unwrap(err); cause != nil {
		return cause
	}
	return err
}

// allTables loads the tables of every catalog.
func allTables(ctx context.Context, catalogs *catalog.Registry) (tables []*plan.Table, problems []error) {
	for _, cat := range catalogs.All() {
		namespaces, err := cat.Namespaces(ctx)
		if err != nil {
			problems = append(problems, fmt.Errorf("catalog %s: %w", cat.Name(), err))
		}
		for _, ns := range namespaces {
			names, err := cat.Tables(ctx, ns)
			if err != nil {
				problems = append(problems, fmt.Errorf("catalog %s: %w", cat.Name(), err))
			}
			for _, name := range names {
				t, err := cat.Table(ctx, plan.TableName{Catalog: cat.Name(), Namespace: ns, Name: name}, plan.AsOf{}, "")
				if err != nil {
					problems = append(problems, fmt.Errorf("catalog %s: %w", cat.Name(), err))
					continue
				}
				tables = append(tables, t)
			}
		}
	}
	return tables, problems
}
