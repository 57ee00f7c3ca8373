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
	"sync/atomic"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/go-sql-driver/mysql"
	"golang.org/x/term"
)

// importMode says what becomes of the table.
type importMode struct{ append, replace bool }

// importCommand sends files to a server, which makes tables of them.
func importCommand(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("import", flag.ContinueOnError)
	at := connectionFlags(flags)
	table := flags.String("table", "", "table, or database.table; without it each file becomes a table of its own name")
	format := flags.String("format", "", "csv or parquet, where the name of a file does not say it")
	var mode importMode
	create := flags.Bool("create", false, "make a new table (what happens without -append and -replace)")
	flags.BoolVar(&mode.append, "append", false, "add the rows to a table that is there; columns are found by name")
	flags.BoolVar(&mode.replace, "replace", false, "replace the table, if there is one")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), `usage: sqe import [options] FILE...
Makes a table of a Parquet or CSV file (.parquet, .csv, .tsv, .csv.gz, .tsv.gz). The first line of a CSV file names its
columns. The password is asked for, or taken from SQE_PASSWORD.`)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("name a file: sqe import -u admin -D bank trips.csv")
	}
	if n := count(*create, mode.append, mode.replace); n > 1 {
		return errors.New("-create, -append and -replace exclude each other")
	}
	switch *format {
	case "", "csv", "parquet":
	default:
		return fmt.Errorf("there is no format %q; there are csv and parquet", *format)
	}
	for _, path := range flags.Args() {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if info.IsDir() {
			return fmt.Errorf("%s is a folder; name files", path)
		}
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
	defer conn.Close()
	for _, path := range flags.Args() {
		name := *table
		if name == "" {
			name = tableName(path)
		}
		if err := importFile(ctx, db, conn, path, name, *format, mode, stdout); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
		if *table != "" {
			mode = importMode{append: true} // the other files go to the same table
		}
	}
	return nil
}

func count(flags ...bool) int {
	n := 0
	for _, f := range flags {
		if f {
			n++
		}
	}
	return n
}

// tableName makes the name of a table of that of a file.
func tableName(path string) string {
	name, _, _ := strings.Cut(strings.TrimLeft(filepath.Base(path), "."), ".")
	name = strings.Map(func(r rune) rune {
		if r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return '_'
	}, name)
	if name == "" || unicode.IsDigit(rune(name[0])) {
		name = "t" + name
	}
	return name
}

// quotedTable quotes each part of a name.
func quotedTable(name string) string {
	parts := strings.Split(name, ".")
	for i, p := range parts {
		parts[i] = "`" + strings.ReplaceAll(p, "`", "``") + "`"
	}
	return strings.Join(parts, ".")
}

var imports atomic.Int64

// importFile sends one file.
func importFile(ctx context.Context, db *sql.DB, conn *sql.Conn, path, table, format string, mode importMode, stdout io.Writer) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	bar := newProgress(os.Stderr, filepath.Base(path), info.Size(), term.IsTerminal(int(os.Stderr.Fd())))
	// The name of the reader ends like the file, which says the format.
	reader := fmt.Sprintf("%d/%s", imports.Add(1), filepath.Base(path))
	mysql.RegisterReaderHandler(reader, func() io.Reader { return bar.reading(f) })
	defer mysql.DeregisterReaderHandler(reader)
	from := "LOCAL INFILE '" + strings.NewReplacer(`\`, `\\`, "'", "''").Replace("Reader::"+reader) + "'"
	if format != "" {
		format = " FORMAT " + strings.ToUpper(format)
	}
	var statement string
	switch {
	case mode.append:
		statement = "LOAD DATA " + from + " INTO TABLE " + quotedTable(table) + format + " BY NAME"
	case mode.replace:
		statement = "CREATE OR REPLACE TABLE " + quotedTable(table) + " FROM " + from + format
	default:
		statement = "CREATE TABLE " + quotedTable(table) + " FROM " + from + format
	}
	var id string
	if err := conn.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&id); err != nil {
		return err
	}
	bar.stage = func() string { return stageOf(ctx, db, id) }
	started := time.Now()
	stop := bar.show()
	res, err := conn.ExecContext(ctx, statement)
	stop()
	if err != nil {
		return advised(err, statement)
	}
	rows, err := res.RowsAffected()
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(stdout, "%s: %s in %s\n", table, counted(int(rows), "row"), time.Since(started).Round(10*time.Millisecond)); err != nil {
		return err
	}
	return describe(ctx, conn, table, stdout)
}

// advised adds to an error of the server what to write on the command line.
func advised(err error, statement string) error {
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return err
	}
	switch {
	case e.Number == 1046:
		return fmt.Errorf("%w; name one with -D, or write -table database.table", err)
	case e.Number == 1050:
		return fmt.Errorf("%w; -append adds the rows to it, -replace makes it anew, -table gives another name", err)
	case e.Number == 1146 && strings.HasPrefix(statement, "LOAD DATA "):
		return fmt.Errorf("%w; -append needs a table that is there: name it with -table, or leave -append out", err)
	case e.Number == 1210 && strings.Contains(e.Message, "does not say its format"):
		return errors.New("the name of the file does not say its format; write -format csv or -format parquet")
	}
	return err
}

// stageOf is what the server says of the statement of a connection; "" when it does
// not.
func stageOf(ctx context.Context, db *sql.DB, id string) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	rows, err := db.QueryContext(ctx, "SHOW PROCESSLIST")
	if err != nil {
		return "" // the answer to the statement tells more
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return ""
	}
	cells := make([]sql.NullString, len(names))
	targets := make([]any, len(names))
	at := map[string]int{}
	for i, n := range names {
		targets[i], at[n] = &cells[i], i
	}
	for rows.Next() {
		if rows.Scan(targets...) == nil && cells[at["Id"]].String == id {
			return printable(cells[at["State"]].String, false)
		}
	}
	return ""
}

// describe prints the columns of a table.
func describe(ctx context.Context, conn *sql.Conn, table string, stdout io.Writer) error {
	rows, err := conn.QueryContext(ctx, "SHOW COLUMNS FROM "+quotedTable(table))
	if err != nil {
		return err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	cells := make([]sql.RawBytes, len(names))
	targets := make([]any, len(names))
	for i := range cells {
		targets[i] = &cells[i]
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		fmt.Fprintf(w, "  %s\t%s\n", printable(string(cells[0]), false), printable(string(cells[1]), false))
	}
	return errors.Join(rows.Err(), w.Flush())
}
