//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sqe/tests/lab"
	"sqe/tests/sqetest"
)

// leakCase is a statement that pat (governed) and root (the control) both run.
// Whatever pat gets must hold no secret: rows, names, errors, warnings.
type leakCase struct {
	name string
	sql  string
	args []any // then the statement is prepared and executed twice
	want want
}

// want says how the case proves that it could leak at all.
type want int

const (
	// raw: root's answer holds secrets, pat gets rows without.
	raw want = iota
	// probe: root finds something (rows; no lone 0 or NULL), pat finds nothing.
	probe
	// differ: no secrets on either side; the answers differ, since pat's are made
	// of other rows or values. Both succeed.
	differ
	// hiddenError: the statement fails on a hidden row: for root, not for pat.
	hiddenError
	// mayFail: raw for root; pat may get an error (without secrets).
	mayFail
	// quiet: works for both and shows no secret to pat; there is nothing to find.
	quiet
	// refused: pat gets an error, root an answer.
	refused
)

// Row 1 of people is visible and masked for pat, row 3 is hidden.
const (
	ssn1, name1, email1, note1 = "'100-00-1000'", "'Ana Quill 0'", "'user0@eu.example'", "'Q0 says hush-0'"
	ssn3, name3                = "'114-02-1026'", "'Chloé Straße 2'"
	dob1                       = "'1950-02-02'"
	salary1                    = "31000007.00"
)

var leakCases = []leakCase{
	// Reading, in every shape.
	{"plain", "SELECT * FROM people", nil, raw},
	{"named columns", "SELECT ssn, name, email, salary, note FROM people", nil, raw},
	{"qualified", "SELECT lab.people.ssn FROM lab.people", nil, raw},
	{"catalog in front", "SELECT ssn FROM lake.lab.people", nil, raw},
	{"catalog in front, quoted", "SELECT `ssn` FROM `lake`.`lab`.`people`", nil, raw},
	{"aliased", "SELECT p.ssn AS people, p.name ssn FROM people AS p", nil, raw},
	{"alias of another name", "SELECT people.ssn FROM orders people2, people WHERE people2.id = people.id", nil, raw},
	{"upper case", "SELECT SSN, P.NAME FROM people p", nil, raw},
	{"joined with itself", "SELECT a.ssn, b.ssn FROM people a JOIN people b ON a.id = b.id", nil, raw},
	{"joined on the masked column", "SELECT a.name FROM people a JOIN people b ON a.email = b.email", nil, raw},
	{"natural join", "SELECT ssn FROM people a NATURAL JOIN people b", nil, mayFailQuiet}, // no row has no NULL
	{"join using", "SELECT a.ssn, b.note FROM people a JOIN people b USING (id, k)", nil, raw},
	{"left join", "SELECT o.id, p.ssn FROM orders o LEFT JOIN people p ON p.id = o.person", nil, raw},
	{"right join", "SELECT o.memo, p.ssn FROM people p RIGHT JOIN orders o ON p.id = o.person", nil, raw},
	{"cross join", "SELECT p.ssn, o.memo FROM people p, orders o WHERE o.id < 4", nil, raw},
	{"table statement", "TABLE people", nil, raw},
	{"cte once", "WITH c AS (SELECT * FROM people) SELECT ssn FROM c", nil, raw},
	{"cte twice", "WITH c AS (SELECT id, ssn FROM people) SELECT a.ssn, b.ssn FROM c a, c b WHERE a.id = b.id", nil, raw},
	{"cte named like the table", "WITH people AS (SELECT id, ssn FROM lab.people) SELECT * FROM people", nil, raw},
	{"cte in a cte", "WITH a AS (SELECT * FROM people), b AS (SELECT ssn, note FROM a) SELECT * FROM b", nil, raw},
	{"recursive cte", "WITH RECURSIVE r AS (SELECT id, ssn FROM people WHERE id = 1 UNION ALL SELECT p.id, p.ssn FROM people p JOIN r ON p.id = r.id + 1) SELECT * FROM r", nil, raw},
	{"derived table", "SELECT d.s FROM (SELECT ssn AS s FROM people) d", nil, raw},
	{"derived in derived", "SELECT * FROM (SELECT * FROM (SELECT note, email FROM people) a) b", nil, raw},
	{"lateral", "SELECT p.id, l.ssn FROM people p, LATERAL (SELECT q.ssn FROM people q WHERE q.id = p.id) l", nil, raw},
	{"values join", "SELECT p.ssn FROM people p JOIN (VALUES ROW(1), ROW(3)) v(id) ON v.id = p.id", nil, mayFail},
	{"union with itself", "SELECT ssn FROM people UNION SELECT ssn FROM people", nil, raw},
	{"union all", "SELECT name FROM people UNION ALL SELECT memo FROM orders", nil, raw},
	{"union of a literal", "SELECT 'x' UNION SELECT email FROM people", nil, raw},
	{"intersect", "SELECT ssn FROM people INTERSECT SELECT ssn FROM people", nil, raw},
	{"except", "SELECT ssn FROM people EXCEPT SELECT 'nothing'", nil, raw},
	{"scalar sub-query in select", "SELECT (SELECT ssn FROM people WHERE id = 1)", nil, raw},
	{"scalar sub-query of hidden rows", "SELECT (SELECT max(ssn) FROM people)", nil, differ},
	{"correlated in select", "SELECT o.id, (SELECT p.name FROM people p WHERE p.id = o.person) FROM orders o", nil, raw},
	{"sub-query in from of sub-query", "SELECT (SELECT max(s) FROM (SELECT name AS s FROM people WHERE id = 1) d)", nil, raw},
	{"sub-query in order by", "SELECT id, note FROM people p ORDER BY (SELECT max(ssn) FROM people q WHERE q.id = p.id)", nil, raw},
	{"sub-query in group by", "SELECT (SELECT max(q.ssn) FROM people q WHERE q.id = p.id) s, count(*) FROM people p GROUP BY s", nil, mayFail},
	{"sub-query in having", "SELECT region, max(note) FROM people GROUP BY region HAVING max(age) >= (SELECT max(age) FROM people WHERE region = 'EU')", nil, raw},
	{"sub-query in case", "SELECT CASE WHEN id = 1 THEN (SELECT ssn FROM people WHERE id = 1) ELSE 'x' END FROM people", nil, raw},
	{"sub-query in join condition", "SELECT p.name FROM people p JOIN orders o ON o.person = p.id AND p.id IN (SELECT id FROM people)", nil, raw},
	{"two levels of correlation", "SELECT p.note FROM people p WHERE EXISTS (SELECT 1 FROM orders o WHERE o.person = p.id AND EXISTS (SELECT 1 FROM people q WHERE q.id = p.id AND q.id = o.person))", nil, raw},

	// Probing with values.
	{"equal to a raw value", "SELECT id FROM people WHERE ssn = " + ssn1, nil, probe},
	{"equal to a hidden value", "SELECT id FROM people WHERE ssn = " + ssn3, nil, probe},
	{"hidden row by name", "SELECT id FROM people WHERE name = " + name3, nil, probe},
	{"hidden row by id", "SELECT id FROM people WHERE id = 3", nil, probe},
	{"hidden region", "SELECT id FROM people WHERE region = 'US'", nil, probe},
	{"the filter turned around", "SELECT id FROM people WHERE NOT (region = 'EU')", nil, probe},
	{"hidden rows with an or", "SELECT id FROM people WHERE region = 'US' OR (region <> 'EU' AND 1 = 1)", nil, probe},
	{"filter column null", "SELECT id FROM people WHERE region IS NULL", nil, probe},
	{"like", "SELECT id FROM people WHERE ssn LIKE '100-%'", nil, probe},
	{"regexp", "SELECT id FROM people WHERE note REGEXP 'hush-0$'", nil, probe},
	{"between", "SELECT id FROM people WHERE ssn BETWEEN '100-00-0000' AND '100-00-9999'", nil, probe},
	{"in a list", "SELECT id FROM people WHERE name IN (" + name1 + ", " + name3 + ")", nil, probe},
	{"greater on a nulled number", "SELECT id FROM people WHERE salary > 0", nil, probe},
	{"salary", "SELECT id FROM people WHERE salary = " + salary1, nil, probe},
	{"date of birth", "SELECT id FROM people WHERE dob = " + dob1, nil, probe},
	{"month of birth", "SELECT id FROM people WHERE MONTH(dob) > 1", nil, probe},
	{"length of a mask", "SELECT id FROM people WHERE CHAR_LENGTH(note) > 4", nil, probe},
	{"substring", "SELECT id FROM people WHERE SUBSTR(ssn, 1, 3) = '100'", nil, probe},
	{"null-safe equal", "SELECT id FROM people WHERE email <=> " + email1, nil, probe},
	{"row constructor", "SELECT id FROM people WHERE (id, ssn) = (1, " + ssn1 + ")", nil, probe},
	{"in sub-query", "SELECT 1 FROM orders WHERE id = 1 AND " + ssn1 + " IN (SELECT ssn FROM people)", nil, probe},
	{"exists", "SELECT 1 FROM orders WHERE id = 1 AND EXISTS (SELECT * FROM people WHERE ssn = " + ssn3 + ")", nil, probe},
	{"any", "SELECT 1 FROM orders WHERE id = 1 AND " + name3 + " = ANY (SELECT name FROM people)", nil, mayFailQuiet},
	{"having on a masked column", "SELECT max(id) FROM people GROUP BY id HAVING max(note) = " + note1, nil, probe},
	{"case over a hidden value", "SELECT id FROM people WHERE CASE WHEN ssn = " + ssn1 + " THEN 1 ELSE 0 END = 1", nil, probe},
	{"join with typed values", "SELECT p.id FROM people p JOIN (SELECT " + ssn1 + " AS s UNION SELECT " + ssn3 + ") v ON v.s = p.ssn", nil, probe},
	{"count of a raw value", "SELECT count(*) FROM people WHERE ssn = " + ssn3, nil, probe},
	{"sum of a condition", "SELECT sum(name = " + name1 + ") FROM people", nil, probe},
	{"hash computed by hand", "SELECT id FROM people WHERE SHA2(email, 256) = SHA2(" + email1 + ", 256)", nil, probe},
	{"probe through a view", "SELECT id FROM people_view WHERE ssn = " + ssn1, nil, probe},
	{"probe through a cte", "WITH c AS (SELECT * FROM people) SELECT id FROM c WHERE ssn = " + ssn3, nil, probe},
	{"prepared probe", "SELECT id FROM people WHERE ssn = ?", []any{"114-02-1026"}, probe},
	{"prepared probe of a number", "SELECT id FROM people WHERE id = ?", []any{3}, probe},

	// Aggregates, windows, order.
	{"count", "SELECT count(*) FROM people", nil, differ},
	{"count of a masked column", "SELECT count(salary), count(DISTINCT ssn) FROM people", nil, differ},
	{"min and max", "SELECT min(ssn), max(ssn), min(note), max(email) FROM people", nil, raw},
	{"sum and average", "SELECT sum(salary), avg(salary) FROM people", nil, differ},
	{"group by", "SELECT ssn, count(*) FROM people GROUP BY ssn", nil, raw},
	{"group by position", "SELECT name, max(note) FROM people GROUP BY 1 ORDER BY 2", nil, raw},
	{"group by the filter column", "SELECT region, count(*) FROM people GROUP BY region", nil, differ},
	{"distinct", "SELECT DISTINCT note FROM people", nil, raw},
	{"order by a masked column", "SELECT name FROM people ORDER BY ssn", nil, raw},
	{"order by and limit", "SELECT ssn FROM people ORDER BY salary DESC LIMIT 5", nil, raw},
	{"limit and offset", "SELECT email FROM people ORDER BY id LIMIT 10 OFFSET 3", nil, raw},
	{"loose group by", "SELECT region, note FROM people GROUP BY region", nil, mayFailQuiet},
	{"group_concat", "SELECT group_concat(ssn) FROM people", nil, mayFail},
	{"json_arrayagg", "SELECT json_arrayagg(email) FROM people", nil, mayFail},
	{"window", "SELECT id, row_number() OVER (ORDER BY ssn) FROM people ORDER BY id", nil, differ},
	{"window values", "SELECT lag(ssn) OVER (ORDER BY id), first_value(note) OVER (PARTITION BY region ORDER BY id) FROM people", nil, raw},
	{"window over the count", "SELECT DISTINCT count(*) OVER () FROM people", nil, differ},
	{"rollup", "SELECT region, count(*) FROM people GROUP BY ROLLUP(region)", nil, mayFailQuiet},
	{"exists of everything", "SELECT EXISTS (SELECT 1 FROM people WHERE region = 'US')", nil, differ},

	// Views.
	{"view", "SELECT * FROM people_view", nil, raw},
	{"view over a view", "SELECT ssn, name FROM people_view2", nil, raw},
	{"narrow view", "SELECT count(*) FROM narrow", nil, differ},
	{"rows of a narrow view", "SELECT id FROM narrow WHERE id = 3", nil, probe},
	{"joined view", "SELECT v.ssn, p.note FROM people_view v JOIN people p ON p.id = v.id", nil, raw},

	// Expressions over masked columns.
	{"concatenation", "SELECT CONCAT(name, '/', ssn) FROM people", nil, raw},
	{"cast", "SELECT CAST(note AS CHAR), CAST(salary AS CHAR) FROM people", nil, raw},
	{"cast to a number", "SELECT CAST(ssn AS SIGNED) FROM people", nil, mayFailQuiet},
	{"hex", "SELECT HEX(note) FROM people WHERE id < 6", nil, differ},
	{"reverse twice", "SELECT REVERSE(REVERSE(note)) FROM people", nil, raw},
	{"replace", "SELECT REPLACE(email, '@', '@') FROM people", nil, raw},
	{"coalesce", "SELECT COALESCE(salary, 0), IFNULL(name, 'none') FROM people", nil, raw},
	{"json over a masked column", "SELECT JSON_OBJECT('a', name, 'b', ssn) FROM people", nil, mayFail},
	{"json_extract of a masked column", "SELECT JSON_EXTRACT(note, '$.a') FROM people", nil, mayFailQuiet},
	{"json_quote", "SELECT JSON_QUOTE(note) FROM people", nil, mayFailQuiet},
	{"arithmetic", "SELECT salary + 0.00 FROM people", nil, raw},
	{"arithmetic on text", "SELECT note + 0 FROM people", nil, mayFailQuiet},
	{"date arithmetic", "SELECT DATEDIFF(dob, '1950-01-01') FROM people ORDER BY id", nil, differ},
	{"error on a hidden row", "SELECT id FROM people WHERE IF(id = 3, 9223372036854775807 + id, 1) > 0", nil, hiddenError},
	{"error on a hidden value", "SELECT id FROM people WHERE CASE WHEN name = " + name3 + " THEN 9223372036854775807 + id ELSE 1 END > 0", nil, hiddenError},
	{"error in a sum over hidden rows", "SELECT sum(CASE WHEN region = 'US' THEN 9223372036854775807 + id ELSE 1 END) FROM people", nil, hiddenError},

	// Sessions.
	{"user variable", "SET @x = (SELECT ssn FROM people WHERE id = 1); SELECT @x", nil, raw},
	{"select into a variable", "SELECT note INTO @y FROM people WHERE id = 1; SELECT @y", nil, mayFailQuiet},
	{"variable in a probe", "SET @s = " + ssn3 + "; SELECT id FROM people WHERE ssn = @s", nil, probe},
	{"multi-statement", "SELECT 1; SELECT ssn FROM people; SELECT note FROM people", nil, raw},
	{"prepared text", "PREPARE s FROM 'SELECT ssn, note FROM people WHERE id < ?'; SET @n = 9; EXECUTE s USING @n; EXECUTE s USING @n", nil, raw},
	{"prepared binary", "SELECT ssn, note, salary FROM people WHERE id < ?", []any{9}, raw},
	{"comment", "SELECT /* ssn */ ssn FROM people -- all of them", nil, raw},
	{"executable comment", "SELECT /*!40000 ssn, */ note FROM people", nil, raw},
	{"other database selected", "USE information_schema; SELECT ssn FROM lab.people", nil, raw},

	// Time travel.
	{"version as of", "SELECT * FROM people FOR VERSION AS OF {snapshot}", nil, raw},
	{"as of", "SELECT ssn FROM people AS OF {snapshot}", nil, mayFail},
	{"timestamp as of", "SELECT note FROM people FOR TIMESTAMP AS OF '{now}'", nil, raw},
	{"version of a hidden row", "SELECT id FROM people FOR VERSION AS OF {snapshot} WHERE id = 3", nil, probe},
	{"two versions joined", "SELECT a.ssn, b.ssn FROM people FOR VERSION AS OF {snapshot} a JOIN people b ON a.id = b.id", nil, mayFail},

	// Metadata.
	{"explain", "EXPLAIN SELECT ssn FROM people WHERE ssn = " + ssn1, nil, quiet},
	{"explain analyze", "EXPLAIN ANALYZE SELECT ssn FROM people", nil, quiet},
	{"explain policy", "EXPLAIN POLICY SELECT ssn FROM people", nil, quiet},
	{"explain policy as json", "EXPLAIN POLICY FORMAT JSON SELECT ssn FROM people", nil, quiet},
	{"describe", "DESCRIBE people", nil, quiet},
	{"show create table", "SHOW CREATE TABLE people", nil, quiet},
	{"show create view", "SHOW CREATE TABLE people_view", nil, quiet},
	{"show full columns", "SHOW FULL COLUMNS FROM people", nil, quiet},
	{"show index", "SHOW INDEX FROM people", nil, quiet},
	{"show table status", "SHOW TABLE STATUS", nil, quiet},
	{"information_schema.tables", "SELECT * FROM information_schema.tables WHERE table_schema = 'lab'", nil, quiet},
	{"information_schema.columns", "SELECT * FROM information_schema.columns WHERE table_schema = 'lab'", nil, quiet},
	{"information_schema.statistics", "SELECT * FROM information_schema.statistics", nil, quiet},
	{"information_schema.views", "SELECT * FROM information_schema.views", nil, quiet},
	{"information_schema.processlist", "SELECT * FROM information_schema.processlist", nil, quiet},
	{"process list", "SHOW FULL PROCESSLIST", nil, quiet},
	{"variables", "SHOW VARIABLES", nil, quiet},
	{"files table", "SELECT * FROM `people$files`", nil, refused},
	{"snapshots table", "SELECT * FROM `people$snapshots`", nil, refused},
	{"partitions table", "SELECT * FROM `people$partitions`", nil, refused},
	{"manifests table", "SELECT * FROM `people$manifests`", nil, refused},
	{"history table", "SELECT * FROM `people$history`", nil, refused},

	// The special tables.
	{"mask that reads another column", "SELECT a FROM crossing", nil, raw},
	{"mask that reads a masked column", "SELECT a FROM chained", nil, refused},
	{"star without the withheld column", "SELECT * FROM chained", nil, raw},
	{"unknown mask", "SELECT a FROM unknown", nil, refused},
	{"star beside an unknown mask", "SELECT * FROM unknown", nil, raw},
	{"withheld in where", "SELECT id FROM unknown WHERE a = 'secret-unknown-a-1'", nil, refused},
	{"withheld in order by", "SELECT id FROM unknown ORDER BY a", nil, refused},
	{"withheld in a count", "SELECT count(a) FROM unknown", nil, refused},
	{"withheld in a sub-query", "SELECT id FROM unknown WHERE EXISTS (SELECT 1 FROM unknown u WHERE u.a = unknown.b)", nil, refused},
	{"withheld through natural join", "SELECT count(*) FROM unknown x JOIN unknown y USING (a)", nil, refused},
	{"all columns withheld, named", "SELECT b FROM withheld", nil, refused},
	{"all columns withheld, count", "SELECT count(*) FROM withheld", nil, quiet},
	{"filter that does not parse", "SELECT id FROM unfiltered", nil, refused},
	{"count under a filter that does not parse", "SELECT count(*) FROM unfiltered", nil, refused},
	{"filter on a missing column", "SELECT * FROM missing", nil, refused},
	{"mask on a missing column", "SELECT * FROM ghost", nil, raw},
	{"filter with a sub-query", "SELECT count(*) FROM scoped", nil, differ},
	{"rows under a filter with a sub-query", "SELECT * FROM scoped", nil, raw},
	{"the mapping table itself", "SELECT * FROM mapping", nil, refused},
	{"no grant", "SELECT * FROM forbidden", nil, refused},
	{"no grant in a sub-query", "SELECT id FROM people WHERE EXISTS (SELECT 1 FROM forbidden)", nil, refused},
	{"describe without grant", "DESCRIBE forbidden", nil, refused},
	{"struct", "SELECT profile FROM nested", nil, raw},
	{"struct as json", "SELECT JSON_EXTRACT(profile, '$.phone') FROM nested", nil, raw},
	{"struct by arrow", "SELECT profile->'$.phone', profile->>'$.phone' FROM nested", nil, raw},
	{"city beside a masked phone", "SELECT profile->>'$.city' FROM nested WHERE profile->>'$.phone' LIKE 'secret%'", nil, probe},
	{"list", "SELECT phones FROM nested", nil, raw},
	{"element of a list", "SELECT JSON_EXTRACT(phones, '$[0]') FROM nested", nil, raw},
	{"map", "SELECT attributes FROM nested", nil, raw},
	{"nested star", "SELECT * FROM nested", nil, raw},
}

// mayFailQuiet is for statements that may be refused for both and show no secret
// to root either, such as casts of text to numbers.
const mayFailQuiet = refused + 1

func TestLeaks(t *testing.T) {
	s := labServer(t)
	secrets := lab.Secrets()
	pat, root := s.Conn(t, "pat", sqetest.Database("lab")), s.Conn(t, "root", sqetest.Database("lab"))
	snapshot, err := sqetest.Ask(within(t, patience), root, "SELECT max(snapshot_id) FROM (SELECT snapshot_id FROM `people$snapshots` ORDER BY committed_at DESC LIMIT 1) s").One()
	if err != nil {
		t.Errorf("no snapshot of people: %v", err)
		snapshot = "0"
	}
	place := strings.NewReplacer("{snapshot}", snapshot, "{now}", time.Now().UTC().Add(time.Hour).Format("2006-01-02 15:04:05"))
	for _, c := range leakCases {
		t.Run(c.name, func(t *testing.T) {
			ctx := within(t, patience)
			text := place.Replace(c.sql)
			mine := sqetest.Ask(ctx, pat, text, c.args...)
			if len(c.args) > 0 {
				// Twice: the second execution must be governed as the first.
				again := sqetest.Ask(ctx, pat, text, c.args...)
				mine.Rows = append(mine.Rows, again.Rows...)
			}
			control := sqetest.Ask(ctx, root, text, c.args...)
			if strings.HasPrefix(text, "USE ") {
				sqetest.Ask(ctx, pat, "USE lab")
				sqetest.Ask(ctx, root, "USE lab")
			}
			if found := holds(mine.Text(), secrets); found != "" && !strings.Contains(text, found) {
				t.Errorf("LEAK of %q: %s", found, mine.Text())
			}
			c.judge(t, mine, control, secrets)
		})
	}
}

func (c leakCase) judge(t *testing.T, mine, control sqetest.Answer, secrets []string) {
	t.Helper()
	switch c.want {
	case hiddenError:
		if control.Err == nil {
			t.Errorf("the control must fail on the hidden row: %s", control.Text())
		}
		if mine.Err != nil {
			t.Errorf("an error tells of a hidden row: %v", mine.Err)
		}
		return
	case mayFailQuiet:
		return
	}
	if control.Err != nil {
		t.Errorf("the control must succeed: %v", control.Err)
		return
	}
	if c.want == refused {
		if mine.Err == nil {
			t.Errorf("must be refused: %s", mine.Text())
		}
		return
	}
	if mine.Err != nil && c.want != mayFail {
		t.Errorf("must succeed: %v", mine.Err)
		return
	}
	switch c.want {
	case raw, mayFail:
		if holds(control.Text(), secrets) == "" {
			t.Errorf("the control must see secrets, or this case proves nothing: %s", control.Text())
		}
		if len(mine.Rows) == 0 && mine.Err == nil {
			t.Errorf("no rows at all: the case proves nothing")
		}
	case probe:
		if !finds(control) {
			t.Errorf("the control must find something: %v", control.Rows)
		}
		if finds(mine) {
			t.Errorf("LEAK: a probe for a hidden value succeeds: %v", mine.Rows)
		}
	case differ:
		if strings.Join(mine.Sorted(), "\n") == strings.Join(control.Sorted(), "\n") {
			t.Errorf("the answers must differ: %v", mine.Rows)
		}
	}
}

// holds finds one of the secrets in a text.
func holds(text string, secrets []string) string {
	for _, s := range secrets {
		if strings.Contains(text, s) {
			return s
		}
	}
	return ""
}

// finds reports whether a probe found something: a row that is no lone zero or
// NULL.
func finds(a sqetest.Answer) bool {
	for _, r := range a.Rows {
		if len(r) != 1 || (r[0] != "0" && r[0] != null && r[0] != "0.0") {
			return true
		}
	}
	return false
}

// TestQuietPlaces: after all that, the logs, the audit log, the metrics and the
// process list hold no secret, although statements with secrets in their text ran.
func TestQuietPlaces(t *testing.T) {
	s := labServer(t)
	secrets := lab.Secrets()
	root := s.Conn(t, "root", sqetest.Database("lab"))
	// The control: somebody did see secrets, and typed some.
	for _, text := range []string{"SELECT * FROM people", "SELECT id FROM people WHERE ssn = " + ssn3, "SELECT no_such_function('secret-owner')"} {
		sqetest.Ask(within(t, patience), root, text)
	}
	if found := holds(s.Output(), secrets); found != "" {
		t.Errorf("the log holds %q", found)
	}
	auditText, err := os.ReadFile(labAudit(s))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(auditText), "pat") && !strings.Contains(string(auditText), "root") {
		t.Error("the audit log names nobody: nothing was searched")
	}
	if found := holds(string(auditText), secrets); found != "" {
		t.Errorf("the audit log holds %q", found)
	}
	address, err := s.Operations()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
		r, err := http.Get(address + path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		body, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if path == "/metrics" && len(body) == 0 {
			t.Error("no metrics: nothing was searched")
		}
		if found := holds(string(body), secrets); found != "" {
			t.Errorf("%s holds %q", path, found)
		}
	}
}

// TestProcessList: a running statement shows its shape and not its literals, and
// only to its own user and administrators.
func TestProcessList(t *testing.T) {
	s := labServer(t)
	root, other, pat := s.Conn(t, "root", sqetest.Database("lab")), s.Conn(t, "root"), s.Conn(t, "pat")
	ctx := within(t, 2*patience)
	running, end := context.WithCancel(ctx)
	defer end()
	done := make(chan sqetest.Answer, 1)
	go func() { done <- sqetest.Ask(running, root, slow("ssn <> "+ssn3)) }()
	found := false
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		a := sqetest.Ask(ctx, other, "SHOW FULL PROCESSLIST")
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		if strings.Contains(a.Text(), "114-02-1026") {
			t.Fatalf("the process list holds a literal: %s", a.Text())
		}
		if found = strings.Contains(strings.ToLower(a.Text()), "ssn"); found {
			break
		}
	}
	if !found {
		t.Error("the running statement is not in the process list of an administrator")
	}
	if a := sqetest.Ask(ctx, pat, "SHOW FULL PROCESSLIST"); a.Err != nil || strings.Contains(a.Text(), "root") {
		t.Errorf("pat sees the sessions of others: %s", a.Text())
	}
	end()
	<-done
	gone(t, s, "root", "people")
}

// slow is a statement over people that takes hours.
func slow(condition string) string {
	return fmt.Sprintf("SELECT count(*) FROM people a, people b, people c, people d, people e, people f, people g WHERE a.%s AND a.id + b.id * c.id - d.id * e.id > 77", condition)
}

// TestPolicyChange: a policy that changes between two executions of a prepared
// statement acts on the second.
func TestPolicyChange(t *testing.T) {
	s := labServer(t)
	db := s.Open("pat", sqetest.Database("lab"))
	defer db.Close()
	ctx := within(t, 2*time.Minute)
	prepared, err := db.PrepareContext(ctx, "SELECT count(*), count(b) FROM ghost WHERE id > ?")
	if err != nil {
		t.Fatal(err)
	}
	defer prepared.Close()
	counts := func() (n, b int) {
		t.Helper()
		if err := prepared.QueryRowContext(ctx, 0).Scan(&n, &b); err != nil {
			t.Fatal(err)
		}
		return n, b
	}
	if n, b := counts(); n != 4 || b != 4 {
		t.Fatalf("before the change: %d rows, %d values of b; want 4 and 4", n, b)
	}
	t.Cleanup(func() {
		if err := lab.NewPolicies().Write(labPolicies(s)); err != nil {
			t.Error(err)
		}
	})
	changed := lab.NewPolicies()
	changed.Filter("ghost", "region = 'EU'")
	changed.Mask("ghost", "b", "MASK_NULL", "")
	if err := changed.Write(labPolicies(s)); err != nil {
		t.Fatal(err)
	}
	var n, b int
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if n, b = counts(); n == 2 && b == 0 {
			return
		}
	}
	t.Errorf("After the change: %d rows, %d values of b; want 2 and 0", n, b)
}

func labAudit(s *sqetest.Server) string    { return filepath.Join(s.Dir, "audit.jsonl") }
func labPolicies(s *sqetest.Server) string { return filepath.Join(s.Dir, "policies") }
