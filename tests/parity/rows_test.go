//go:build e2e

package parity

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"sqe/tests/sqetest"
)

// written are statements that change rows through SQE, by who runs them. Trino reads
// the tables after each.
var written = []struct{ user, sql string }{
	{"admin", "INSERT OVERWRITE sem.dmlf VALUES (1, 'EU', '111-11-1111'), (2, 'US', '222-22-2222'), (3, 'EU', '333-33-3333'), (4, 'US', '444-44-4444')"},
	{"admin", "ALTER TABLE sem.dmlf SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read')"},
	{"s_write", "INSERT INTO sem.dmlf VALUES (6, 'EU', 'six'), (7, 'EU', NULL)"},
	{"s_write", "UPDATE sem.dmlf SET ssn = concat('u', id)"},
	{"s_write", "DELETE FROM sem.dmlf WHERE id IN (1, 2)"},
	{"s_write", "MERGE INTO sem.dmlf t USING (SELECT 3 AS id, 'three' AS v UNION ALL SELECT 4, 'four' UNION ALL SELECT 6, 'x') s ON t.id = s.id " +
		"WHEN MATCHED AND s.v = 'x' THEN DELETE WHEN MATCHED THEN UPDATE SET ssn = s.v WHEN NOT MATCHED THEN INSERT (id, region, ssn) VALUES (s.id, 'EU', s.v)"},
	{"admin", "CREATE TABLE sem.written PARTITIONED BY (region, BUCKET(2, id)) TBLPROPERTIES ('write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read') " +
		"AS SELECT o.id, o.region, o.amount, CAST(o.amount AS DECIMAL(12,2)) AS exact, o.signed_on, t.ts, t.tn, t.b, t.bin, t.r, t.s FROM sem.orders o LEFT JOIN masks.types t ON t.id = o.id"},
	{"admin", "UPDATE sem.written SET amount = amount / 3, exact = exact / 3, tn = '2026-02-28 23:59:59.999999', region = 'US' WHERE id >= 3"},
	{"admin", "DELETE FROM sem.written WHERE region IS NULL OR amount < 5"},
	{"admin", "INSERT INTO sem.written (id, region, s, bin, exact) VALUES (10, 'EU', 'Zürich 🙂', x'00FF', -0.005), (11, NULL, '', x'', 9999999999.99)"},
	{"admin", "MERGE INTO sem.written t USING sem.orders s ON t.id = s.id WHEN MATCHED THEN UPDATE SET s = s.email WHEN NOT MATCHED THEN INSERT (id, region, signed_on) VALUES (s.id, s.region, s.signed_on) WHEN NOT MATCHED BY SOURCE AND t.id = 10 THEN DELETE"},
	{"admin", "CALL system.rewrite_data_files(table => 'sem.written')"},
	{"admin", "INSERT OVERWRITE sem.written PARTITION (region = 'EU') (id, s) SELECT id + 100, s FROM sem.written WHERE region = 'EU'"},
	{"admin", "TRUNCATE TABLE sem.written"},
}

// rows holds Trino to read what SQE wrote into the catalog that they share: as who
// sees everything, and as who wrote it under a row filter.
func (b *both) rows(t *testing.T) {
	started, most := time.Now(), 0
	for _, w := range written {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		a := sqetest.Ask(ctx, b.servers["ranger"][w.user], w.sql)
		cancel()
		if a.Err != nil {
			t.Fatalf("%s: %s: %v", w.user, w.sql, a.Err)
		}
		reads := []Case{{User: "raw", SQL: "SELECT * FROM sem.dmlf ORDER BY id, region"}, {User: "s_write", SQL: "SELECT * FROM sem.dmlf ORDER BY id, region"}}
		if strings.Contains(w.sql, "sem.written") {
			reads = []Case{{User: "raw", SQL: "SELECT * FROM sem.written ORDER BY id"}}
		}
		for _, r := range reads {
			theirs, message, ours := b.ask(t, r)
			if theirs.Error != "" {
				t.Fatalf("%s\nthen %s: %s\nTrino: %s", w.sql, r.User, r.SQL, message)
			}
			most = max(most, len(theirs.Rows))
			for name, a := range ours {
				if !Equal(theirs, a) {
					t.Errorf("%s\nthen %s: %s\nTrino: %s\nSQE with a source of kind %s (%v): %s", w.sql, r.User, r.SQL, Expected(theirs), name, a.Err, Outcome(theirs, a))
				}
			}
		}
	}
	// What nobody but the filter kept from being changed, as Trino reads it.
	theirs, message, _ := b.ask(t, Case{User: "raw", SQL: "SELECT * FROM sem.dmlf ORDER BY id, region"})
	want := "4 | US | 444-44-4444"
	if got := Expected(theirs); !strings.Contains(got, want) || !strings.Contains(got, "3 | EU | three") || strings.Contains(got, "6 | ") {
		t.Errorf("Trino reads %s %s", got, message)
	}
	if most < 4 {
		t.Errorf("no more than %d rows were compared", most)
	}
	t.Logf("%d statements in %v", len(written), time.Since(started).Round(time.Millisecond))
}

var leftBehindRE = regexp.MustCompile(`\b(copy|target|dml|dmlf|dmlm)\b`)

// theirRows runs in Trino what the capture changed, and holds it to the captured
// answers, the tables to what they held there, and SQE to read that.
func (b *both) theirRows(t *testing.T, cases []Case) {
	held, err := Trino.Held()
	if err != nil {
		t.Fatal(err)
	}
	raw := b.servers["ranger"]["raw"]
	started, changed, reads, refused := time.Now(), 0, 0, 0
	for _, c := range cases {
		table, changes := c.changes()
		if !leftBehindRE.MatchString(c.SQL) || live(c) {
			continue
		}
		before := ""
		if changes {
			before = holds(t, raw, table)
		}
		theirs, message, ours := b.trinoFirst(t, c, !changes)
		if theirs.Error != c.Error || (c.Error == "" && Expected(theirs) != Expected(c)) {
			t.Errorf("%s %s: %s\nTrino answers %s (%s)\ninstead of %s", c.Case, c.User, c.SQL, Expected(theirs), message, Expected(c))
		}
		for name, a := range ours {
			if !Equal(theirs, a) {
				t.Errorf("%s %s: %s\nTrino: %s\nSQE with a source of kind %s (%v): %s", c.Case, c.User, c.SQL, Expected(theirs), name, a.Err, Outcome(theirs, a))
			}
		}
		if !changes {
			reads++
			continue
		}
		want := before
		if c.Error == "" {
			changed++
			want = held[c.Case].text()
		} else {
			refused++
		}
		if got := holds(t, raw, table); got != want {
			t.Errorf("%s %s: %s\nthen the table holds\n%s\ninstead of\n%s", c.Case, c.User, c.SQL, got, want)
		}
	}
	if changed < len(held) || refused < 30 || reads < 10 {
		t.Errorf("only %d changes, %d refusals and %d reads were compared", changed, refused, reads)
	}
	t.Logf("%d changes, %d refusals and %d reads in %v", changed, refused, reads, time.Since(started).Round(time.Millisecond))
}

// trinoFirst runs a statement on Trino, and then on SQE if it only reads.
func (b *both) trinoFirst(t *testing.T, c Case, reads bool) (theirs Case, message string, ours map[string]sqetest.Answer) {
	t.Helper()
	if reads {
		return b.ask(t, c)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	theirs, message, err := b.trino.ask(ctx, c.User, c.SQL)
	if err != nil {
		t.Fatal(err)
	}
	return theirs, message, nil
}
