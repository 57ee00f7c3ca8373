//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"sqe/tests/sqetest"
)

// clientCase is one text that every client runs as a user who sees everything.
type clientCase struct {
	SQL    string   `json:"sql"`
	Params []string `json:"params,omitempty"` // then the client prepares the statement
	Multi  bool     `json:"multi,omitempty"`

	rows  [][]string // all rows, or
	some  []string   // a row that must be among them, or
	errno int        // the number of the error
}

func rows(r ...[]string) [][]string { return r }
func row(cells ...string) []string  { return cells }

const null = sqetest.Null

var clientCases = []clientCase{
	{SQL: "SELECT 1", rows: rows(row("1"))},
	{SQL: "SELECT NULL, '', 'x', -7, 3.14, 1e3", rows: rows(row(null, "", "x", "-7", "3.14", "1000"))},
	{SQL: "SELECT 'Grüße 🎉', 'a''b', 'back\\\\slash', 'tab\\there' = CONCAT('tab', CHAR(9 USING utf8mb4), 'here')", rows: rows(row("Grüße 🎉", "a'b", `back\slash`, "1"))},
	{SQL: "SELECT CAST('2024-02-29' AS DATE), CAST('2024-02-29 23:59:59.5' AS DATETIME(6))", rows: rows(row("2024-02-29", "2024-02-29 23:59:59.500000"))},
	{SQL: "SELECT CAST(12345678901234567.89 AS DECIMAL(20,2)), 9223372036854775807, -9223372036854775808", rows: rows(row("12345678901234567.89", "9223372036854775807", "-9223372036854775808"))},
	{SQL: "SELECT count(*) FROM bank.customers", rows: rows(row("12"))},
	{SQL: "SELECT cust_id, full_name, dob, consent_marketing, risk_score FROM bank.customers WHERE cust_id <= 2 ORDER BY cust_id", rows: rows(row("1", "Sanne de Vries", "1978-03-14", "1", "12"), row("2", "Marek Kowalski", "1985-07-02", "0", "34"))},
	{SQL: "SELECT amount_eur FROM bank.payments WHERE pay_id = 14", rows: rows(row("27400"))},
	{SQL: "SELECT counterparty_country, count(*) FROM bank.payments GROUP BY counterparty_country HAVING count(*) > 2 ORDER BY 1", rows: rows(row("CH", "3"))},
	{SQL: "SELECT full_name FROM bank.customers WHERE cust_id = ? AND residency_region = ?", Params: []string{"8", "NON_EU"}, rows: rows(row("Michael Brennan"))},
	{SQL: "SELECT count(*) FROM bank.payments WHERE booked_at >= ?", Params: []string{"2024-01-01"}, rows: rows(row("5"))},
	{SQL: "SELECT 1; SELECT 2", Multi: true, rows: rows(row("1"), row("2"))},
	{SQL: "SHOW DATABASES", some: row("bank")},
	{SQL: "SHOW TABLES FROM bank", some: row("customers")},
	{SQL: "SELECT table_name FROM information_schema.tables WHERE table_schema = 'bank' AND table_name = 'payments'", rows: rows(row("payments"))},
	{SQL: "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = 'bank' AND table_name = 'customers' AND column_name IN ('cust_id', 'dob') ORDER BY ordinal_position", rows: rows(row("cust_id", "bigint"), row("dob", "date"))},
	{SQL: "SELECT @@version_comment IS NOT NULL, @@max_allowed_packet > 0, CONNECTION_ID() > 0", rows: rows(row("1", "1", "1"))},
	{SQL: "SET NAMES utf8mb4", rows: rows()},
	{SQL: "SET SQL_SELECT_LIMIT=18446744073709551615", rows: rows()}, // how tools lift it
	{SQL: "SELECT NOW() > '2000-01-01', COUNT(*) > 100 FROM information_schema.collations", rows: rows(row("1", "1"))},
	{SQL: "SELECT DATABASE()", rows: rows(row(null))},
	{SQL: "SELECT FROM WHERE", errno: 1064},
	{SQL: "SELECT 1 FROM bank.no_such_table", errno: 1146},
	{SQL: "SELECT no_such_column FROM bank.customers", errno: 1054},
	{SQL: "USE no_such_database", errno: 1049},
	{SQL: "SELECT no_such_function(1)", errno: 1305},
}

// typeCases read every column type of Iceberg, at its limits, from the laboratory.
var typeCases = []clientCase{
	{SQL: "SELECT c_boolean, c_int, c_long FROM lab.types ORDER BY id", rows: rows(row("1", "2147483647", "9223372036854775807"), row("0", "-2147483648", "-9223372036854775808"), row(null, null, null))},
	{SQL: "SELECT c_float, c_double, c_decimal FROM lab.types ORDER BY id", rows: rows(row("1.5", "1e300", "1234567890123456789012345678.0123456789"), row("-0.25", "-2.5", "-0.0000000001"), row(null, null, null))},
	{SQL: "SELECT c_date, c_timestamp, c_timestamptz FROM lab.types ORDER BY id LIMIT 1", rows: rows(row("9999-12-31", "2024-02-29 12:34:56.789012", "2024-02-29 12:34:56.789012"))},
	{SQL: "SELECT c_date, CAST(c_timestamp AS CHAR), CAST(c_timestamptz AS CHAR) FROM lab.types WHERE id > 1 ORDER BY id", rows: rows(row("1970-01-01", "1970-01-01 00:00:00.000000", "1969-12-31 23:59:59.000000"), row(null, null, null))},
	{SQL: "SELECT c_time FROM lab.types WHERE id = 1", rows: rows(row("23:59:59.999999"))},
	{SQL: "SELECT c_string, c_uuid FROM lab.types ORDER BY id", rows: rows(row("Zürich 🏦", "f79c3e09-677c-4bbd-a479-3f349cb785e7"), row("", "00000000-0000-0000-0000-000000000000"), row(null, null))},
	{SQL: "SELECT HEX(c_fixed), HEX(c_binary) FROM lab.types ORDER BY id", rows: rows(row("DEADBEEF", "00FF"), row("00000000", ""), row(null, null))},
	{SQL: "SELECT c_int, c_decimal, c_string FROM lab.types WHERE id = ?", Params: []string{"2"}, rows: rows(row("-2147483648", "-0.0000000001", ""))},
	{SQL: "SELECT id FROM lab.types WHERE c_timestamp > ? AND c_decimal > ?", Params: []string{"2000-01-01 00:00:00", "0"}, rows: rows(row("1"))},
	{SQL: "SELECT profile, phones FROM lab.nested ORDER BY id LIMIT 1", rows: rows(row(`{"city":"Gent","phone":"secret-phone-1"}`, `["secret-list-1","secret-list-2"]`))},
}

// clientAnswer is what a client program prints for a case.
type clientAnswer struct {
	Rows  [][]*string `json:"rows"`
	Errno int         `json:"errno"`
	Error string      `json:"error"`
}

// login is where a client connects and as whom.
type login struct {
	server *sqetest.Server
	user   string
}

func TestClients(t *testing.T) {
	programs := filepath.Join(sqetest.Root(), "tests", "e2e", "clients")
	python := filepath.Join(sqetest.Cache(), "venv", "bin", "python")
	clients := []struct {
		name string
		run  func(t *testing.T, at login, cases []clientCase) []clientAnswer
	}{
		{"go-sql-driver", goClient},
		{"mariadb", mariadbClient},
		{"pymysql", func(t *testing.T, at login, c []clientCase) []clientAnswer {
			return program(t, c, python, "-B", filepath.Join(programs, "pymysql_client.py"), "127.0.0.1", fmt.Sprint(at.server.Port), at.user, "demo")
		}},
		{"connector-python", func(t *testing.T, at login, c []clientCase) []clientAnswer {
			return program(t, c, python, "-B", filepath.Join(programs, "connector_client.py"), "127.0.0.1", fmt.Sprint(at.server.Port), at.user, "demo")
		}},
		{"mysql2", func(t *testing.T, at login, c []clientCase) []clientAnswer {
			return program(t, c, "node", filepath.Join(programs, "mysql2_client.mjs"), "127.0.0.1", fmt.Sprint(at.server.Port), at.user, "demo", filepath.Join(sqetest.Cache(), "node"))
		}},
		{"connector-j", jdbcClient},
	}
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			for _, suite := range []struct {
				at    login
				cases []clientCase
			}{{login{demo, "carol"}, clientCases}, {login{labServer(t), "root"}, typeCases}} {
				answers := c.run(t, suite.at, suite.cases)
				if len(answers) != len(suite.cases) {
					t.Fatalf("%d answers to %d cases", len(answers), len(suite.cases))
				}
				for i, want := range suite.cases {
					want.check(t, answers[i])
				}
			}
		})
	}
}

func (c clientCase) check(t *testing.T, got clientAnswer) {
	t.Helper()
	if c.errno != 0 || got.Errno != 0 || got.Error != "" {
		if got.Errno != c.errno {
			t.Errorf("%s\n got: error %d %s\nwant: error %d", c.SQL, got.Errno, got.Error, c.errno)
		}
		return
	}
	if c.some != nil {
		for _, r := range got.Rows {
			if sameCells(r[:1], c.some) {
				return
			}
		}
		t.Errorf("%s\n got: %s\nwant: a row %v", c.SQL, show(got.Rows), c.some)
		return
	}
	ok := len(got.Rows) == len(c.rows)
	for i := 0; ok && i < len(c.rows); i++ {
		ok = sameCells(got.Rows[i], c.rows[i])
	}
	if !ok {
		t.Errorf("%s\n got: %s\nwant: %v", c.SQL, show(got.Rows), c.rows)
	}
}

// sameCells compares numbers as numbers: clients write 27400 and 27400.0.
func sameCells(got []*string, want []string) bool {
	if len(got) != len(want) {
		return false
	}
	for i, g := range got {
		if g == nil || want[i] == null {
			if g != nil || want[i] != null {
				return false
			}
			continue
		}
		if *g == want[i] {
			continue
		}
		// Spaces in JSON are the client's.
		if strings.ContainsAny(want[i], "{[") && strings.ReplaceAll(*g, " ", "") == want[i] {
			continue
		}
		x, err1 := strconv.ParseFloat(*g, 64)
		y, err2 := strconv.ParseFloat(want[i], 64)
		if err1 != nil || err2 != nil || x != y || (strings.Contains(want[i], ".") && len(want[i]) > 15) {
			return false
		}
	}
	return true
}

func show(rows [][]*string) string {
	var b strings.Builder
	for _, r := range rows {
		for i, c := range r {
			if i > 0 {
				b.WriteString(" | ")
			}
			if c == nil {
				b.WriteString("NULL")
			} else {
				b.WriteString(*c)
			}
		}
		b.WriteString("; ")
	}
	return b.String()
}

// program runs a client program that speaks JSON.
func program(t *testing.T, cases []clientCase, name string, args ...string) []clientAnswer {
	t.Helper()
	in, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	out := output(t, string(in), name, args...)
	var answers []clientAnswer
	if err := json.Unmarshal(out, &answers); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return answers
}

// output runs a program to its end and returns what it printed.
func output(t *testing.T, stdin, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(within(t, 2*time.Minute), name, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s (tests/install installs it): %v\n%s%s", name, err, errs.String(), out.String())
	}
	return out.Bytes()
}

func goClient(t *testing.T, at login, cases []clientCase) []clientAnswer {
	conn := at.server.Conn(t, at.user)
	answers := make([]clientAnswer, len(cases))
	for i, c := range cases {
		args := make([]any, len(c.Params))
		for j, p := range c.Params {
			args[j] = p
		}
		answers[i] = fromAnswer(sqetest.Ask(within(t, patience), conn, c.SQL, args...))
	}
	return answers
}

func fromAnswer(a sqetest.Answer) (out clientAnswer) {
	if a.Err != nil {
		return clientAnswer{Errno: int(a.Number()), Error: a.Err.Error()}
	}
	for _, r := range a.Rows {
		out.Rows = append(out.Rows, cells(r, null))
	}
	return out
}

// cells turns the text that stands for NULL into nil.
func cells(texts []string, nullText string) []*string {
	out := make([]*string, len(texts))
	for i := range texts {
		if texts[i] != nullText {
			out[i] = &texts[i]
		}
	}
	return out
}

var mariadbError = regexp.MustCompile(`ERROR ([0-9]+) \(`)

// mariadb runs the command-line client over TLS.
func mariadb(t *testing.T, at login, text string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(within(t, patience), "mariadb", "--no-defaults", "--ssl", "--default-character-set=utf8mb4",
		"-h", "127.0.0.1", "-P", fmt.Sprint(at.server.Port), "-u", at.user, "-pdemo", "--batch", "--raw", "--skip-column-names", "-e", text)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func mariadbClient(t *testing.T, at login, cases []clientCase) []clientAnswer {
	answers := make([]clientAnswer, len(cases))
	for i, c := range cases {
		text := c.SQL
		if len(c.Params) > 0 {
			text = "PREPARE s FROM '" + strings.ReplaceAll(c.SQL, "'", "''") + "'; "
			var names []string
			for j, p := range c.Params {
				names = append(names, fmt.Sprintf("@p%d", j))
				text += fmt.Sprintf("SET @p%d = '%s'; ", j, p)
			}
			text += "EXECUTE s USING " + strings.Join(names, ", ")
		}
		out, err := mariadb(t, at, text)
		if err != nil {
			answers[i].Error = out
			if m := mariadbError.FindStringSubmatch(out); m != nil {
				answers[i].Errno, _ = strconv.Atoi(m[1])
			}
			continue
		}
		for _, line := range strings.Split(strings.TrimSuffix(out, "\n"), "\n") {
			if out != "" {
				answers[i].Rows = append(answers[i].Rows, cells(strings.Split(line, "\t"), "NULL"))
			}
		}
	}
	return answers
}

// jdbc compiles the program for Connector/J and feeds it lines.
func jdbc(t *testing.T, at login, lines []string) []clientAnswer {
	t.Helper()
	jars, err := filepath.Glob(filepath.Join(sqetest.Cache(), "java", "mysql-connector-j-*.jar"))
	if err != nil || len(jars) == 0 {
		t.Fatalf("Connector/J is missing; run tests/install (%v)", err)
	}
	classes := t.TempDir()
	output(t, "", "javac", "-d", classes, filepath.Join(sqetest.Root(), "tests", "e2e", "clients", "JdbcClient.java"))
	out := output(t, strings.Join(lines, "\n"), "java", "-cp", classes+string(os.PathListSeparator)+jars[0], "JdbcClient", "127.0.0.1", fmt.Sprint(at.server.Port), at.user, "demo")
	var answers []clientAnswer
	for _, line := range strings.Split(strings.TrimSuffix(string(out), "\n"), "\n") {
		parts := strings.Split(line, "\x01")
		var a clientAnswer
		if parts[0] == "error" {
			number, text, _ := strings.Cut(parts[1], "\t")
			a.Errno, _ = strconv.Atoi(number)
			a.Error = text
		} else if len(parts) > 1 && (len(parts) > 2 || parts[1] != "") {
			for _, r := range parts[1:] {
				a.Rows = append(a.Rows, cells(strings.Split(r, "\t"), null))
			}
		}
		answers = append(answers, a)
	}
	return answers
}

func jdbcClient(t *testing.T, at login, cases []clientCase) []clientAnswer {
	var lines []string
	for _, c := range cases {
		kind := "query"
		if len(c.Params) > 0 {
			kind = "prepared"
		}
		lines = append(lines, strings.Join(append([]string{kind, c.SQL}, c.Params...), "\t"))
	}
	return jdbc(t, at, lines)
}

// TestJDBCMetadata: what BI tools ask Connector/J for.
func TestJDBCMetadata(t *testing.T) {
	for _, text := range []string{
		"CREATE SCHEMA keyed", "CREATE TABLE keyed.orders (id BIGINT NOT NULL, line INT NOT NULL, note STRING, PRIMARY KEY (line, id))",
	} {
		if a := ask(t, "admin", text); a.Err != nil {
			t.Fatalf("%s: %v", text, a.Err)
		}
	}
	t.Cleanup(func() {
		for _, text := range []string{"DROP TABLE keyed.orders", "DROP SCHEMA keyed"} {
			if a := ask(t, "admin", text); a.Err != nil {
				t.Errorf("%s: %v", text, a.Err)
			}
		}
	})
	asked := []struct{ user, what, has string }{
		{"alice", "catalogs", "bank"},
		{"alice", "privileges\tbank\tcustomers", "customers | SELECT"},
		{"alice", "column privileges\tbank\tcustomers", ""},
		{"alice", "keys\tbank\tcustomers", ""},
		{"alice", "indexes\tbank\tcustomers", ""},
		{"alice", "imported\tbank\tcustomers", ""},
		{"alice", "types", "BIGINT"},
		{"admin", "keys\tkeyed\torders", "id | 2 | PRIMARY; line | 1 | PRIMARY"},
		{"admin", "indexes\tkeyed\torders", "PRIMARY | 0 | 1 | line; PRIMARY | 0 | 2 | id"},
	}
	for _, user := range []string{"alice", "admin"} {
		var lines, has []string
		for _, x := range asked {
			if x.user == user {
				lines, has = append(lines, x.what), append(has, x.has)
			}
		}
		answers := jdbc(t, login{demo, user}, lines)
		if len(answers) != len(lines) {
			t.Fatalf("%s: %d answers to %d questions", user, len(answers), len(lines))
		}
		for i, a := range answers {
			if s := show(a.Rows); a.Error != "" || has[i] == "" && s != "" || !strings.Contains(s, has[i]) {
				t.Errorf("%s asks for %q: %s %s, want %q", user, lines[i], s, a.Error, has[i])
			}
		}
	}
	answers := jdbc(t, login{demo, "carol"}, []string{"tables\tbank", "columns\tbank\tcustomers"})
	if len(answers) != 2 || answers[0].Error != "" || answers[1].Error != "" {
		t.Fatalf("%+v\n%s", answers, tail(demo.Output()))
	}
	if s := show(answers[0].Rows); !strings.Contains(s, "bank | customers") {
		t.Errorf("the tables of bank: %s", s)
	}
	if s := show(answers[1].Rows); !strings.Contains(s, "cust_id | BIGINT") || !strings.Contains(s, "dob | DATE") {
		t.Errorf("the columns of customers: %s", s)
	}
}

// TestLogin: a wrong password and an unknown user get the same error; TLS is what
// an ordinary client gets.
func TestLogin(t *testing.T) {
	clear := demo.Open("carol", func(c *mysql.Config) { c.TLS = nil })
	defer clear.Close()
	if a := (sqetest.Answer{Err: clear.PingContext(within(t, patience))}); a.Number() != 3159 {
		t.Errorf("a login without TLS: %v, want error 3159", a.Err)
	}
	var texts []string
	for _, user := range []string{"carol", "nobody"} {
		db := demo.Open(user, wrongPassword)
		err := db.PingContext(within(t, patience))
		_ = db.Close()
		a := sqetest.Answer{Err: err}
		if a.Number() != 1045 {
			t.Errorf("%s with a wrong password: %v, want error 1045", user, err)
			continue
		}
		texts = append(texts, strings.ReplaceAll(err.Error(), user, "USER"))
	}
	if len(texts) == 2 && texts[0] != texts[1] {
		t.Errorf("a wrong password says %q, an unknown user %q: they must not be told apart", texts[0], texts[1])
	}
}

// TestPyIceberg: another engine opens the catalog of the demo and reads the same
// rows, deleted ones left out.
func TestPyIceberg(t *testing.T) {
	python := filepath.Join(sqetest.Cache(), "venv", "bin", "python")
	out := string(output(t, "", python, "-B", filepath.Join(sqetest.Root(), "tests", "e2e", "clients", "pyiceberg_client.py"),
		"demo", filepath.Join(demo.Dir, "catalog.db"), "bank.customers", "bank.payments", "bank.profiles"))
	for _, table := range []string{"customers", "payments", "profiles"} {
		n, err := ask(t, "admin", "SELECT count(*) FROM bank."+table).One()
		if err != nil {
			t.Error(err)
		}
		if !strings.Contains(out, "bank."+table+" "+n+"\n") {
			t.Errorf("SQE counts %s rows in %s, PyIceberg says\n%s", n, table, out)
		}
	}
}
