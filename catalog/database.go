package catalog

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
)

// database runs statements that are written with "?" for parameters.
type database struct {
	*sql.DB
	// numbered: the parameters are $1, $2 and so on there.
	numbered bool
	// lock, where it is not "", makes a transaction wait for another one of its kind.
	// It has one parameter, the name of the catalog.
	lock string
}

// transaction is one of a database.
type transaction struct {
	*sql.Tx
	numbered bool
}

// numbered writes the parameters of a statement as $1, $2 and so on. None of the
// statements here holds a question mark that is not one.
func numbered(yes bool, query string) string {
	if !yes {
		return query
	}
	var out strings.Builder
	for n, part := range strings.Split(query, "?") {
		if n > 0 {
			out.WriteString("$" + strconv.Itoa(n))
		}
		out.WriteString(part)
	}
	return out.String()
}

func (d *database) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return d.DB.ExecContext(ctx, numbered(d.numbered, query), args...)
}

func (d *database) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return d.DB.QueryContext(ctx, numbered(d.numbered, query), args...)
}

// Prepare prepares a statement.
func (d *database) Prepare(query string) (*sql.Stmt, error) {
	return d.DB.Prepare(numbered(d.numbered, query))
}

// begin starts a transaction, which reads and writes without others between.
func (d *database) begin(ctx context.Context, catalog string) (*transaction, error) {
	tx, err := d.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	if d.lock != "" {
		if _, err := tx.ExecContext(ctx, d.lock, catalog); err != nil {
			_ = tx.Rollback()
			return nil, err
		}
	}
	return &transaction{tx, d.numbered}, nil
}

func (t *transaction) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return t.Tx.ExecContext(ctx, numbered(t.numbered, query), args...)
}

func (t *transaction) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return t.Tx.QueryContext(ctx, numbered(t.numbered, query), args...)
}

func (t *transaction) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return t.Tx.QueryRowContext(ctx, numbered(t.numbered, query), args...)
}
