package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"sqe/audit"
	"sqe/catalog"
	"sqe/config"
	"sqe/engine"
	"sqe/identity"
	"sqe/masks"
	"sqe/plan"
	"sqe/policy"
	"sqe/rangerclient"
)

// configFlag is -c of serve and check.
func configFlag(name string, args []string) (*config.Config, error) {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	path := flags.String("c", "sqe.toml", "configuration file")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected %q; the configuration is named with -c", flags.Arg(0))
	}
	return config.Load(*path)
}

// serveCommand runs the server until it is told to stop.
func serveCommand(ctx context.Context, args []string, stdout io.Writer) error {
	cfg, err := configFlag("serve", args)
	if err != nil {
		return err
	}
	in, err := start(cfg, os.Stderr)
	if err != nil {
		return err
	}
	defer in.Close()
	fmt.Fprintf(stdout, "sqe %s serves MySQL clients on %s\n", versionText(), in.server.Addr())
	return in.Wait(ctx)
}

// checkCommand reports everything that is wrong with a configuration and its
// policies at once, without serving.
func checkCommand(_ context.Context, args []string, stdout io.Writer) error {
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
	in := &instance{config: cfg}
	defer in.Close()
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
	if len(problems) > 0 {
		return fmt.Errorf("%s\n%w", counted(len(problems), "problem"), errors.Join(problems...))
	}
	_, err = fmt.Fprintln(stdout, "the configuration and the policies are in order")
	return err
}

// hashCommand prints the hash of a password for [[users]].
func hashCommand(_ context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("hash-password", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: sqe hash-password\nReads the password from the terminal, or one line of standard input.")
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	var password string
	if term.IsTerminal(int(os.Stdin.Fd())) {
		var err error
		if password, err = askPassword(); err != nil {
			return err
		}
	} else {
		line, err := bufio.NewReader(os.Stdin).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		password = strings.TrimRight(line, "\r\n")
	}
	if password == "" {
		return errors.New("the password is empty")
	}
	hash, err := identity.HashPassword(password)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, hash)
	return err
}

// askPassword reads a password from the terminal that is standard input, without
// showing it.
func askPassword() (string, error) {
	fmt.Fprint(os.Stderr, "password: ")
	b, err := term.ReadPassword(int(os.Stdin.Fd()))
	fmt.Fprintln(os.Stderr)
	return string(b), err
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
	tables, problems := allTables(catalogs)
	eng := engine.New(engine.Options{Catalogs: catalogs, Sources: sources, Masks: o, Audit: audit.Discard{}})
	for _, s := range sources {
		state, err := s.State()
		if err != nil {
			continue // reported before
		}
		if checker, ok := state.(interface {
			Check(tables []*plan.Table) []string
		}); ok {
			for _, text := range checker.Check(tables) {
				problems = append(problems, fmt.Errorf("policy source %s: %s", s.Name(), text))
			}
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
func allTables(catalogs *catalog.Registry) (tables []*plan.Table, problems []error) {
	ctx := context.Background()
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
