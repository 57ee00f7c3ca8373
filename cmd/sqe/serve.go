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

	"sqe/config"
	"sqe/identity"
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
