package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"sqe/config"
	"sqe/policystore"
	"sqe/rangerclient/admin"
)

const policiesUsage = `usage: sqe policies export [where] [options] DIR
       sqe policies import [where] [options] DIR
       sqe policies password --store FILE USER

export writes everything that a policy server holds into a folder of JSON
documents: services and their definitions, policies, security zones, roles, users
(without passwords), groups and tags. The folder can be read by a policy source of
kind "folder". import brings such a folder to a policy server; a second time it
changes nothing. Users are made with a password that nobody knows. password sets that
of a user of an embedded policy store, also of admin; it reads it from the terminal, or
one line of standard input.

where is one of
  -c FILE --source NAME                    a policy source of the configuration
  --store FILE                             an embedded policy store
  --url URL --username NAME --password-file FILE [--ca-file FILE] [--allow-http]
                                           a Ranger Admin

options:`

// policiesCommand moves policies between servers and folders.
func policiesCommand(ctx context.Context, args []string, stdout io.Writer) error {
	verb := ""
	if len(args) > 0 {
		verb = args[0]
	}
	where := &policyPlace{}
	flags := flag.NewFlagSet("policies", flag.ContinueOnError)
	where.flags(flags)
	prune := flags.Bool("prune", false, "import: delete what the folder does not have (no services, no administrators of the server, and nobody with whom SQE or another engine logs in)")
	dry := flags.Bool("dry-run", false, "import: say what would change and change nothing")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), policiesUsage)
		flags.PrintDefaults()
	}
	switch verb {
	case "export", "import", "password":
	case "-h", "-help", "--help", "help":
		flags.SetOutput(stdout)
		flags.Usage()
		return flag.ErrHelp
	default:
		return errors.New("say export, import or password; sqe policies --help explains them")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if verb == "password" {
		if where.store == "" || flags.NArg() != 1 {
			return errors.New("password needs --store FILE and the name of one user")
		}
		return setStorePassword(ctx, where.store, flags.Arg(0), stdout)
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("%s needs one folder, after the options", verb)
	}
	dir := flags.Arg(0)
	defer where.close()
	if verb == "export" {
		if *prune || *dry {
			return errors.New("--prune and --dry-run are for import")
		}
		return exportPolicies(ctx, where, dir, stdout)
	}
	return importPolicies(ctx, where, dir, admin.TransferOptions{Prune: *prune, DryRun: *dry}, stdout)
}

func exportPolicies(ctx context.Context, where *policyPlace, dir string, stdout io.Writer) error {
	b, err := where.read(ctx)
	if err != nil {
		return err
	}
	if err := b.WriteFolder(dir); err != nil {
		return err
	}
	policies := 0
	for _, list := range b.Policies {
		policies += len(list)
	}
	what := "policies"
	if policies == 1 {
		what = "policy"
	}
	_, err = fmt.Fprintf(stdout, "%d %s of %s, %s, %s, %s and %s\n", policies, what, counted(len(b.Services), "service"),
		counted(len(b.Zones), "zone"), counted(len(b.Roles), "role"), counted(len(b.Users), "user"), counted(len(b.Groups), "group"))
	return err
}

// setStorePassword sets the password of a user of an embedded policy store. Who may
// write the file may do so.
func setStorePassword(ctx context.Context, file, name string, stdout io.Writer) error {
	if _, err := os.Stat(file); err != nil {
		return errors.New("the file of the policy store does not exist or cannot be read")
	}
	password, err := readPassword()
	if err != nil {
		return err
	}
	store, err := policystore.Open(ctx, file, policystore.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	switch err := store.SetPassword(commandLine(ctx), name, password); admin.KindOf(err) {
	case admin.Invalid:
		return errors.New("a password needs 8 characters or more, with a capital letter, a small one and a digit")
	case admin.NotFound:
		return fmt.Errorf("the policy store has no user %q", name)
	default:
		if err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(stdout, "the password is set")
	return err
}

// commandLine says who writes: whoever runs the command.
func commandLine(ctx context.Context) context.Context {
	author := admin.Author{From: "command line"}
	if u, err := user.Current(); err == nil {
		author.User = u.Username
	}
	return admin.WithAuthor(ctx, author)
}

func importPolicies(ctx context.Context, where *policyPlace, dir string, o admin.TransferOptions, stdout io.Writer) error {
	b, err := admin.ReadFolder(dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(where.store); o.DryRun && where.store != "" && err != nil {
		// A new store would be made, and a dry run makes nothing.
		scratch, err := os.MkdirTemp("", "sqe-dry-run-")
		if err != nil {
			return err
		}
		where.closers = append(where.closers, func() { _ = os.RemoveAll(scratch) })
		where.store = filepath.Join(scratch, "store.db")
	}
	server, err := where.server(ctx, true)
	if err != nil {
		return err
	}
	o.Keep = where.logins
	changes := 0
	o.Change = func(what string) { changes++; fmt.Fprintln(stdout, what) }
	o.Note = func(what string) { fmt.Fprintln(stdout, "note: "+what) }
	if err := b.Apply(commandLine(ctx), admin.NewWriter(server), o); err != nil {
		return fmt.Errorf("%w\nwhat is listed above it is done; run it again when the cause is mended", err)
	}
	verb := "made"
	if o.DryRun {
		verb = "would be made"
	}
	_, err = fmt.Fprintf(stdout, "%s %s\n", counted(changes, "change"), verb)
	return err
}

// policyPlace is where policies are kept.
type policyPlace struct {
	config, source                      string
	store                               string
	url, username, passwordFile, caFile string
	allowHTTP                           bool
	closers                             []func()
	logins                              []string // with whom a configured source logs in
}

func (p *policyPlace) flags(f *flag.FlagSet) {
	f.StringVar(&p.config, "c", "", "configuration file")
	f.StringVar(&p.config, "config", "", "configuration file")
	f.StringVar(&p.source, "source", "", "name of a policy source of the configuration; may be left out when there is one")
	f.StringVar(&p.store, "store", "", "file of an embedded policy store; import makes it when it is missing")
	f.StringVar(&p.url, "url", "", "address of a Ranger Admin")
	f.StringVar(&p.username, "username", "", "with --url: an administrator of it")
	f.StringVar(&p.passwordFile, "password-file", "", "with --url: file whose first line is the password")
	f.StringVar(&p.caFile, "ca-file", "", "with --url: certificates (PEM) to trust beside the system's")
	f.BoolVar(&p.allowHTTP, "allow-http", false, "with --url: permit http:// to another machine; the password then travels in the clear")
}

func (p *policyPlace) close() {
	for _, f := range slices.Backward(p.closers) {
		f()
	}
}

func (p *policyPlace) check() error {
	n := 0
	for _, x := range []string{p.config, p.store, p.url} {
		if x != "" {
			n++
		}
	}
	switch {
	case n != 1:
		return errors.New("name one place of policies: -c FILE --source NAME, --store FILE or --url URL")
	case p.source != "" && p.config == "":
		return errors.New("--source names a source of the configuration, which is named with -c")
	case p.url != "" && (p.username == "" || p.passwordFile == ""):
		return errors.New("--url needs --username and --password-file")
	}
	return nil
}

// read reads everything, of a folder source too.
func (p *policyPlace) read(ctx context.Context) (*admin.Bundle, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if p.config != "" {
		_, source, err := p.configured()
		if err != nil {
			return nil, err
		}
		if source.Kind == "folder" {
			return admin.ReadFolder(string(source.Directory))
		}
	}
	server, err := p.server(ctx, false)
	if err != nil {
		return nil, err
	}
	return admin.Read(ctx, server)
}

// configured finds the source in the configuration.
func (p *policyPlace) configured() (*config.Config, config.Policy, error) {
	cfg, err := config.Load(p.config)
	if err != nil {
		return nil, config.Policy{}, err
	}
	if p.source == "" && len(cfg.Policies) == 1 {
		return cfg, cfg.Policies[0], nil
	}
	var names []string
	for _, x := range cfg.Policies {
		if x.Name == p.source {
			return cfg, x, nil
		}
		names = append(names, x.Name)
	}
	return nil, config.Policy{}, fmt.Errorf("name a policy source of the configuration with --source; it has: %s", strings.Join(names, ", "))
}

// server opens the policy server.
func (p *policyPlace) server(ctx context.Context, write bool) (admin.Server, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	switch {
	case p.store != "":
		if _, err := os.Stat(p.store); err != nil && !write {
			return nil, errors.New("the file of the policy store does not exist or cannot be read")
		}
		s, err := policystore.Open(ctx, p.store, policystore.Options{})
		if err != nil {
			return nil, err
		}
		p.closers = append(p.closers, func() { _ = s.Close() })
		return s, nil
	case p.url != "":
		body, err := os.ReadFile(p.passwordFile)
		if err != nil {
			return nil, errors.New("--password-file cannot be read")
		}
		password, _, _ := strings.Cut(string(body), "\n")
		return admin.OpenREST(admin.RESTConfig{
			URL: p.url, Username: p.username, Password: strings.TrimSuffix(password, "\r"), CAFile: p.caFile, AllowHTTP: p.allowHTTP,
		})
	}
	cfg, source, err := p.configured()
	if err != nil {
		return nil, err
	}
	for _, name := range []string{source.Username, source.AdminUsername} {
		if name != "" {
			p.logins = append(p.logins, name)
		}
	}
	in := &instance{config: cfg}
	p.closers = append(p.closers, in.Close)
	if source.Kind == "store" {
		if err := in.openStore(ctx); err != nil {
			return nil, err
		}
	}
	server, err := in.policyServer(source)
	if err == nil && server == nil {
		err = fmt.Errorf("source %s is a folder: copy the documents there, it is read when they change", source.Name)
	}
	return server, err
}
