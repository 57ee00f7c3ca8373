package sqetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// Querier is a pool or a connection.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Answer is everything that a client gets for one text of statements.
type Answer struct {
	Columns []string   // of the last result set
	Rows    [][]string // of all result sets; NULL is Null
	Err     error
	// Warnings is what SHOW WARNINGS answered afterwards.
	Warnings [][]string
}

// Null stands for NULL in Rows.
const Null = "␀"

// Said is the answer as one line for each row, with values separated by "|", or
// "ERROR: " and what the server says.
func (a Answer) Said() string {
	if e := (*mysql.MySQLError)(nil); errors.As(a.Err, &e) {
		return "ERROR: " + e.Message
	}
	if a.Err != nil {
		return "ERROR: " + a.Err.Error()
	}
	out := make([]string, len(a.Rows))
	for i, r := range a.Rows {
		out[i] = strings.ReplaceAll(strings.Join(r, "|"), Null, "NULL")
	}
	return strings.Join(out, "\n")
}

// Ask runs a text and reads everything.
func Ask(ctx context.Context, q Querier, text string, args ...any) Answer {
	a := ask(ctx, q, text, args...)
	if _, ok := q.(*sql.Conn); ok {
		a.Warnings = ask(ctx, q, "SHOW WARNINGS").Rows
	}
	return a
}

func ask(ctx context.Context, q Querier, text string, args ...any) (a Answer) {
	rows, err := q.QueryContext(ctx, text, args...)
	if err != nil {
		return Answer{Err: err}
	}
	defer rows.Close()
	for {
		if a.Columns, a.Err = rows.Columns(); a.Err != nil {
			return a
		}
		cells := make([]sql.NullString, len(a.Columns))
		targets := make([]any, len(cells))
		for i := range cells {
			targets[i] = &cells[i]
		}
		for rows.Next() {
			if a.Err = rows.Scan(targets...); a.Err != nil {
				return a
			}
			row := make([]string, len(cells))
			for i, c := range cells {
				row[i] = Null
				if c.Valid {
					row[i] = c.String
				}
			}
			a.Rows = append(a.Rows, row)
		}
		if a.Err = rows.Err(); a.Err != nil {
			return a
		}
		if !rows.NextResultSet() {
			a.Err = rows.Err()
			return a
		}
	}
}

// Number is the MySQL error number of the answer, 0 when there is none.
func (a Answer) Number() uint16 {
	var e *mysql.MySQLError
	if errors.As(a.Err, &e) {
		return e.Number
	}
	return 0
}

// Text is everything in the answer as one text, to search in.
func (a Answer) Text() string {
	var b strings.Builder
	b.WriteString(strings.Join(a.Columns, "\t"))
	for _, r := range slices.Concat(a.Rows, a.Warnings) {
		b.WriteString("\n" + strings.Join(r, "\t"))
	}
	if a.Err != nil {
		b.WriteString("\n" + a.Err.Error())
	}
	return b.String()
}

// Sorted is the rows in an order of their own, for comparing results without an
// order.
func (a Answer) Sorted() []string {
	out := make([]string, len(a.Rows))
	for i, r := range a.Rows {
		out[i] = strings.Join(r, "\t")
	}
	slices.Sort(out)
	return out
}

// One is the only value of the answer.
func (a Answer) One() (string, error) {
	if a.Err != nil {
		return "", a.Err
	}
	if len(a.Rows) != 1 || len(a.Rows[0]) != 1 {
		return "", fmt.Errorf("not one value: %v", a.Rows)
	}
	return a.Rows[0][0], nil
}
