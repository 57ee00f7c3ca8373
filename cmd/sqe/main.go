// Command sqe is the SQL engine: the server, the demo and a client shell.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// version is set by the linker.
var version = ""

// command is one word after "sqe". run returns an error whose text says what to
// do next.
type command struct {
	name, summary string
	run           func(ctx context.Context, args []string, stdout io.Writer) error
}

var commands = []command{
	{"serve", "run the server: sqe serve -c sqe.toml", serveCommand},
	{"demo", "run a server with sample data, users and policies", demoCommand},
	{"sql", "a client shell: sqe sql -u alice -P 3307", shellCommand},
	{"import", "make a table of a CSV or Parquet file: sqe import -u admin -D bank trips.csv", importCommand},
	{"login", "log in at an identity provider: sqe login --issuer https://keycloak.example/realms/lake", loginCommand},
	{"token", "print the token of that login, renewed when it has expired", tokenCommand},
	{"logout", "end that login", logoutCommand},
	{"check", "check the configuration and the policies: sqe check -c sqe.toml", checkCommand},
	{"policies", "export or import policies: sqe policies export --store policies.db DIR", policiesCommand},
	{"hash-password", "read a password and print what [[users]] password-hash takes", hashCommand},
	{"version", "print the version", versionCommand},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	name := "help"
	if len(args) > 0 {
		name = args[0]
	}
	for _, c := range commands {
		if c.name != name {
			continue
		}
		err := c.run(ctx, args[1:], stdout)
		switch {
		case err == nil, errors.Is(err, flag.ErrHelp):
			return 0
		default:
			fmt.Fprintf(stderr, "sqe %s: %v\n", name, err)
			return 1
		}
	}
	out, code := stderr, 2
	if name == "help" || name == "-h" || name == "--help" {
		out, code = stdout, 0
	} else {
		fmt.Fprintf(stderr, "sqe: there is no command %q\n\n", name)
	}
	fmt.Fprintln(out, "usage: sqe COMMAND [options]; sqe COMMAND --help explains one")
	fmt.Fprintln(out)
	for _, c := range commands {
		fmt.Fprintf(out, "  %-14s %s\n", c.name, c.summary)
	}
	return code
}

func versionCommand(_ context.Context, _ []string, stdout io.Writer) error {
	_, err := fmt.Fprintln(stdout, "sqe", versionText())
	return err
}

// versionText is the linked version, or what the build recorded of the source.
func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				return s.Value[:12]
			}
		}
	}
	return "unknown"
}
