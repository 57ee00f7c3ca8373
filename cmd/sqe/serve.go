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
	password, err := readPassword()
	if err != nil {
		return err
	}
	hash, err := identity.HashPassword(password)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, hash)
	return err
}

// readPassword reads the password from the terminal, or one line of standard input.
func readPassword() (string, error) {
	var password string
	var err error
	if term.IsTerminal(int(os.Stdin.Fd())) {
		password, err = askPassword()
	} else {
		password, err = bufio.NewReader(os.Stdin).ReadString('\n')
		if errors.Is(err, io.EOF) {
			err = nil
		}
		password = strings.TrimRight(password, "\r\n")
	}
	if err == nil && password == "" {
		err = errors.New("the password is empty")
	}
	return password, err
}

// askPassword reads a password from the terminal that is standard input, without
// showing it.
func askPassword() (string, error) {
	fmt.Fprint(os.Stderr, "password: ")
	b, err := term.ReadPassword(int(os.Stdin.Fd()))
	fmt.Fprintln(os.Stderr)
	return string(b), err
}
