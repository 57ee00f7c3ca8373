//go:build e2e

package parity

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sqe/tests/sqetest"
)

// absent is what holds says of a table that is not there.
const absent = "no table"

// changeRows runs a captured statement that is to change the rows of table as its user.
// It is equal when SQE refuses where the peer refused, or changes as many rows as the
// peer says and the table holds what that of the peer held.
//
// Afterwards the table holds what the peer's held, whatever SQE made of it, so that
// the captured statements that follow find what they found there.
func changeRows(t *testing.T, peer *Peer, pools map[string]*sql.DB, held map[string]Held, c Case, table string) (got string, equal bool) {
	t.Helper()
	statement := peer.translate(c.SQL)
	before, snapshot := holds(t, pools["raw"], table), current(pools["raw"], table)
	unseen := hidden(t, pools[c.User], table, before)
	a := execute(pools[c.User], statement)
	after := holds(t, pools["raw"], table)
	if a.Err != nil && after != before {
		t.Errorf("%s %s: %s\nfails with %v, and the table holds\n%s\ninstead of\n%s", c.Case, c.User, c.SQL, a.Err, after, before)
	}
	if now := hidden(t, pools[c.User], table, after); a.Err == nil && now != unseen {
		t.Errorf("%s %s: %s\nRows that the user does not see were\n%s\nand now they are\n%s", c.Case, c.User, c.SQL, unseen, now)
	}
	want, h := before, held[c.Case]
	if c.Error == "" {
		if h.Rows == nil {
			t.Fatalf("%s %s: %s\nnothing says what the table holds afterwards", c.Case, c.User, c.SQL)
		}
		want = h.text()
	}
	if equal = after == want; equal {
		switch {
		case c.Error != "" || a.Err != nil:
			equal = Equal(c, a)
		case len(c.Rows) > 0:
			equal = Expected(c) == Outcome(c, a)
		}
	}
	got = Outcome(c, a)
	if a.Err == nil {
		got = a.Rows[0][0] + " rows changed"
		if after != before {
			got += "; then " + after
		}
	}
	if after != want {
		restore(t, pools["admin"], table, before, want, snapshot, h)
		if now := holds(t, pools["raw"], table); now != want {
			t.Fatalf("%s: the table holds\n%s\nafter it was put back to\n%s", c.Case, now, want)
		}
	}
	return got, equal
}

// execute runs a statement; the only value of the answer is how many rows changed.
func execute(db *sql.DB, statement string) sqetest.Answer {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	res, err := db.ExecContext(ctx, statement)
	if err != nil {
		return sqetest.Answer{Err: err}
	}
	n, err := res.RowsAffected()
	return sqetest.Answer{Rows: [][]string{{fmt.Sprint(n)}}, Err: err}
}

// holds is what is in a table, as one text, to who sees all of it.
func holds(t *testing.T, db *sql.DB, table string) string {
	t.Helper()
	a := sqetest.Ask(context.Background(), db, "SELECT * FROM "+quotedName(table))
	if a.Number() == 1146 {
		return absent
	}
	if a.Err != nil {
		t.Fatal(a.Err)
	}
	rows := make([]string, len(a.Rows))
	for i, r := range a.Rows {
		cells := make([]string, len(r))
		for j, v := range r {
			cells[j] = ours(v, "")
		}
		rows[i] = strings.Join(cells, " | ")
	}
	slices.Sort(rows)
	return fmt.Sprintf("%d rows\n", len(rows)) + strings.Join(rows, "\n")
}

// restore makes a table hold what it held in the peer, which is want. Before the
// statement it held before, in this snapshot.
func restore(t *testing.T, admin *sql.DB, table, before, want, snapshot string, h Held) {
	t.Helper()
	name := quotedName(table)
	var statements []string
	switch {
	case want == absent:
		statements = []string{"DROP TABLE " + name}
	case h.Columns != "":
		statements = []string{"DROP TABLE IF EXISTS " + name, "CREATE TABLE " + name + " (" + h.Columns + ")", "INSERT INTO " + name + " VALUES " + h.values()}
	case want == before && snapshot != "": // the peer refused, or changed nothing
		statements = []string{"CALL system.rollback_to_snapshot('" + table + "', " + snapshot + ")"}
	case len(h.Rows) == 0:
		statements = []string{"DELETE FROM " + name}
	default:
		statements = []string{"INSERT OVERWRITE " + name + " VALUES " + h.values()}
	}
	for _, s := range statements {
		if a := sqetest.Ask(context.Background(), admin, s); a.Err != nil {
			t.Fatalf("%s: %v", s, a.Err)
		}
	}
}

// hidden is the part of these rows of a table, whose first column is an id, that a
// user does not see.
func hidden(t *testing.T, db *sql.DB, table, rows string) string {
	t.Helper()
	a := sqetest.Ask(context.Background(), db, "SELECT id FROM "+quotedName(table))
	if a.Err != nil && !slices.Contains(refusals, a.Number()) {
		t.Fatal(a.Err)
	}
	var out []string
	for _, r := range strings.Split(rows, "\n")[1:] {
		id, _, _ := strings.Cut(r, " | ")
		if id != "" && !slices.Contains(a.Sorted(), id) {
			out = append(out, r)
		}
	}
	return strings.Join(out, "\n")
}

// current is the present snapshot of a table, if there is one.
func current(db *sql.DB, table string) string {
	id, err := sqetest.Ask(context.Background(), db, "SELECT snapshot_id FROM "+quotedName(table+"$refs")+" WHERE name = 'main'").One()
	if err != nil {
		return ""
	}
	return id
}

func quotedName(table string) string {
	database, name, _ := strings.Cut(table, ".")
	return database + ".`" + name + "`"
}
