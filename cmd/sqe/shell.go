package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/go-sql-driver/mysql"
	"github.com/peterh/liner"
	"golang.org/x/term"

	"sqe/engine/parse"
)

// shellCommand is a small client over the same protocol as every other one.
func shellCommand(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("sql", flag.ContinueOnError)
	at := connectionFlags(flags)
	execute := flags.String("e", "", "run these statements and exit")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: sqe sql [options]\nThe password is asked for, or taken from SQE_PASSWORD. After sqe login its token is used.")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	db, err := at.open()
	if err != nil {
		return err
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if *execute != "" {
		_, err := statements(ctx, conn, *execute, stdout, os.Stderr)
		return err
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		text, err := io.ReadAll(os.Stdin)
		if err != nil {
			return err
		}
		_, err = statements(ctx, conn, string(text), stdout, os.Stderr)
		return err
	}
	return interact(ctx, conn, func() (*sql.Conn, error) {
		next, err := db.Conn(ctx)
		if err == nil {
			_ = conn.Close()
			conn = next
		}
		return conn, err
	}, stdout)
}

// interact reads statements, each ended by a semicolon, until end of file. again
// makes a new connection when the server ended this one because its token expired.
func interact(ctx context.Context, conn *sql.Conn, again func() (*sql.Conn, error), stdout io.Writer) error {
	line := liner.NewLiner()
	defer line.Close()
	line.SetCtrlCAborts(true)
	history := historyFile()
	if f, err := os.Open(history); err == nil {
		_, _ = line.ReadHistory(f)
		_ = f.Close()
	}
	fmt.Fprintln(stdout, "Statements end with ;  Ctrl-D ends the shell.")
	var text strings.Builder
	for {
		prompt := "sqe> "
		if text.Len() > 0 {
			prompt = "  -> "
		}
		in, err := line.Prompt(prompt)
		switch {
		case errors.Is(err, liner.ErrPromptAborted):
			text.Reset()
			continue
		case errors.Is(err, io.EOF):
			fmt.Fprintln(stdout)
			saveHistory(line, history)
			return nil
		case err != nil:
			return err
		}
		text.WriteString(in)
		text.WriteByte('\n')
		if !strings.HasSuffix(strings.TrimSpace(in), ";") {
			continue
		}
		statement := strings.TrimSpace(text.String())
		text.Reset()
		line.AppendHistory(strings.ReplaceAll(statement, "\n", " "))
		rest, err := statements(ctx, conn, statement, stdout, stdout)
		if over(err) { // the statement did not run
			if conn, err = again(); err == nil {
				fmt.Fprintln(stdout, "Logged in again; database and variables are those of the start.")
				_, err = statements(ctx, conn, rest, stdout, stdout)
			}
		}
		if err != nil {
			fmt.Fprintln(stdout, "error:", err)
		}
	}
}

// over reports whether the server ended the session because its token expired.
func over(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && e.Number == 1045
}

func historyFile() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "sqe", "history")
}

// saveHistory keeps the history for the owner only: statements may hold values.
func saveHistory(line *liner.State, path string) {
	if path == "" || os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_, _ = line.WriteHistory(f)
	_ = f.Close()
}

// statements runs the statements of a text one by one, and prints the result and the
// warnings of each. rest is what did not run when one fails, that one included. The
// driver passes over the answers without rows of a text of several.
func statements(ctx context.Context, conn *sql.Conn, text string, stdout, warnings io.Writer) (rest string, err error) {
	for rest = text; ; {
		one, more := first(rest)
		run := results
		if changesRows(one) {
			run = changed
		}
		if err := run(ctx, conn, one, stdout); err != nil {
			if strings.HasPrefix(err.Error(), "local file ") { // the driver's own, before anything is sent
				err = errors.New("this shell sends no files: use sqe import, or another client that has LOAD DATA LOCAL")
			}
			return rest, err
		}
		printWarnings(ctx, conn, one, warnings)
		if rest = more; rest == "" {
			return "", nil
		}
	}
}

// first cuts a text behind its first statement. One that cannot be read goes to the
// server with all that follows, which says why.
func first(text string) (one, rest string) {
	_, rest, err := parse.Parse(text)
	if err != nil || !strings.HasSuffix(text, rest) {
		return text, ""
	}
	return strings.TrimSuffix(text, rest), rest
}

// changesRows reports whether a statement changes rows and answers with their number
// alone.
func changesRows(text string) bool {
	text = strings.TrimSpace(text)
	word, _, _ := strings.Cut(strings.ReplaceAll(text, "\n", " "), " ")
	switch strings.ToLower(word) {
	case "insert", "update", "delete", "merge":
		return true
	}
	return false
}

// changed runs a statement that changes rows, and prints how many.
func changed(ctx context.Context, conn *sql.Conn, text string, stdout io.Writer) error {
	res, err := conn.ExecContext(ctx, text)
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "ok, %s\n", counted(int(n), "row"))
	return err
}

func results(ctx context.Context, conn *sql.Conn, text string, stdout io.Writer) error {
	rows, err := conn.QueryContext(ctx, text)
	if err != nil {
		return err
	}
	defer rows.Close()
	for {
		if err := printRows(rows, stdout); err != nil {
			return err
		}
		if !rows.NextResultSet() {
			return rows.Err()
		}
	}
}

// printRows prints one result set as a table.
func printRows(rows *sql.Rows, stdout io.Writer) error {
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	if len(columns) == 0 {
		_, err = fmt.Fprintln(stdout, "ok")
		return err
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(columns, "\t"))
	rule := make([]string, len(columns))
	for i, c := range columns {
		rule[i] = strings.Repeat("-", len(c))
	}
	fmt.Fprintln(w, strings.Join(rule, "\t"))
	cells := make([]sql.RawBytes, len(columns))
	targets := make([]any, len(columns))
	for i := range cells {
		targets[i] = &cells[i]
	}
	n := 0
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		line := make([]string, len(cells))
		for i, c := range cells {
			line[i] = "NULL"
			if c != nil {
				line[i] = printable(string(c), len(columns) == 1 || strings.HasPrefix(columns[i], "Create "))
			}
		}
		printRow(w, line)
		n++
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "(%s)\n", counted(n, "row"))
	return err
}

// printRow prints the cells of a row, a text of several lines below each other.
func printRow(w io.Writer, cells []string) {
	for more := true; more; {
		more = false
		line := make([]string, len(cells))
		for i, c := range cells {
			var rest bool
			line[i], cells[i], rest = strings.Cut(c, "\n")
			more = more || rest
		}
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
}

// printWarnings prints the warnings of the text of statements that just ran.
func printWarnings(ctx context.Context, conn *sql.Conn, text string, w io.Writer) {
	if first := strings.Fields(text); len(first) > 0 && strings.EqualFold(first[0], "show") {
		return // SHOW WARNINGS has printed them itself
	}
	rows, err := conn.QueryContext(ctx, "SHOW WARNINGS")
	if err != nil {
		return // what was asked for has been answered
	}
	defer rows.Close()
	for rows.Next() {
		var level, code, message string
		if rows.Scan(&level, &code, &message) == nil {
			fmt.Fprintf(w, "%s: %s\n", strings.ToLower(level), printable(message, false))
		}
	}
}

// counted is a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// printable keeps control characters of data away from the terminal. Lines of a
// text stay lines where they do not break a table.
func printable(s string, lines bool) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' && lines:
			return r
		case r < ' ' || r == 0x7f:
			return '·'
		}
		return r
	}, s)
}
