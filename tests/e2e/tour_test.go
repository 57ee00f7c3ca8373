//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sqe/tests/sqetest"
)

// TestThreePeople: one query, three people, three answers, and a fourth who gets
// none.
func TestThreePeople(t *testing.T) {
	const text = "SELECT cust_id, full_name, national_id, dob, phone FROM bank.customers ORDER BY cust_id"
	for _, c := range []struct {
		user string
		rows int
		has  [][]string // rows that must be among them
	}{
		{"carol", 12, [][]string{{"1", "Sanne de Vries", "184729103", "1978-03-14", "+31-20-555-0101"}, {"12", "Grace Mensah", "295830314", "1965-10-21", "+233-30-555-0112"}}},
		{"admin", 12, [][]string{{"10", "Olga Petrova", "073618092", "1980-08-19", "+41-44-555-0110"}}},
		{"alice", 7, [][]string{{"1", "Sanne de Vries", "xxxxx9103", "1978-01-01", null}, {"7", "Ana Silva", "xxxxx5769", "1996-01-01", null}}},
		{"bob", 6, [][]string{{"1", "Xxxxx xx Xxxxx", "nnnnnnnnn", "1978-01-01", "+31-20-555-0101"}, {"9", "Xxx Xxxxx", "nnnnnnnnn", "1988-01-01", "+65-6555-0109"}}},
	} {
		a := ask(t, c.user, text)
		if a.Err != nil {
			t.Errorf("%s: %v", c.user, a.Err)
			continue
		}
		if len(a.Rows) != c.rows {
			t.Errorf("%s sees %d rows, want %d", c.user, len(a.Rows), c.rows)
		}
		all := strings.Join(a.Sorted(), "\n") + "\n"
		for _, r := range c.has {
			if !strings.Contains(all, strings.Join(r, "\t")+"\n") {
				t.Errorf("%s does not see %q among\n%s", c.user, r, all)
			}
		}
	}
	forbidden, missing := ask(t, "dave", text), ask(t, "dave", "SELECT 1 FROM bank.no_such_table")
	if forbidden.Number() == 0 || forbidden.Number() != missing.Number() {
		t.Errorf("dave: a table that he may not read says %v, one that does not exist %v", forbidden.Err, missing.Err)
	}
	if a, b := fmt.Sprint(forbidden.Err), fmt.Sprint(missing.Err); strings.ReplaceAll(a, "customers", "T") != strings.ReplaceAll(b, "no_such_table", "T") {
		t.Errorf("dave can tell a table that he may not read from one that does not exist: %q, %q", a, b)
	}
	if a := ask(t, "dave", "SHOW DATABASES"); a.Err != nil || strings.Contains(a.Text(), "bank") {
		t.Errorf("dave sees the database: %s", a.Text())
	}
}

// bankSecrets are values of the bank that neither alice nor bob may see.
var bankSecrets = []string{
	"184729103", "295830214", "306941325", "417052436", "528163547", "639274658", "740385769", "851496870", "962507981", "073618092",
	"184729203", "295830314", // national_id
	"NL91ABNA0417164300", "PL27114020040000300201355387", "SE4550000000058398257466", "US64SVBKUS6S3300958879", "SG12DBSS1234567890",
	"CH9300762011623852957", "AE070331234567890123456", "GB29NWBK60161331926819", // iban
	"1978-03-14", "1985-07-02", "1969-11-23", "1974-12-08", "1965-10-21", // dob
	"Michael Brennan", "Olga Petrova", "Grace Mensah", // hidden from alice; masked or hidden for bob
}

// TestBankSecrets: nothing that the sample policies hide comes out of the sample
// tables, whoever of the two asks.
func TestBankSecrets(t *testing.T) {
	for _, table := range []string{"customers", "payments", "profiles", "eu_payments"} {
		text := "SELECT * FROM bank." + table
		control := ask(t, "carol", text)
		if control.Err != nil {
			t.Errorf("carol, %s: %v", table, control.Err)
		}
		if (table == "customers" || table == "payments") && holds(control.Text(), bankSecrets) == "" {
			t.Errorf("carol sees no secret in %s: the search proves nothing", table)
		}
		for _, user := range []string{"alice", "bob"} {
			a := ask(t, user, text)
			if a.Err != nil {
				t.Errorf("%s, %s: %v", user, table, a.Err)
			}
			if found := holds(a.Text(), bankSecrets); found != "" {
				t.Errorf("LEAK: %s sees %q in %s", user, found, table)
			}
		}
	}
}

// TestExplainPolicy: an administrator is told which policies act, others in
// general words.
func TestExplainPolicy(t *testing.T) {
	const text = "EXPLAIN POLICY SELECT national_id FROM bank.customers"
	alice, admin := ask(t, "alice", text), ask(t, "admin", text)
	if alice.Err != nil || admin.Err != nil {
		t.Fatal(alice.Err, admin.Err)
	}
	for _, word := range []string{"residency_region", "rows of bank.customers", "mask bank.customers"} {
		if strings.Contains(alice.Text(), word) {
			t.Errorf("alice is shown %q: %s", word, alice.Text())
		}
	}
	if !strings.Contains(alice.Text(), "national_id") {
		t.Errorf("alice is not told that national_id is masked: %s", alice.Text())
	}
	if !strings.Contains(admin.Text(), "customers") {
		t.Errorf("the administrator is told nothing: %s", admin.Text())
	}
}

// shown is a statement in the README and what it says it answers:
//
//	```sql
//	-- as alice
//	SELECT 1;
//	```
//	```text
//	(the output of sqe sql)
//	```
var shown = regexp.MustCompile("(?s)```sql\n-- as ([a-z]+)\n(.*?)```\\s*```text\n(.*?)```")

// TestReadme: the output in the README is what the demo prints.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(sqetest.Root(), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	tour := shown.FindAllStringSubmatch(string(text), -1)
	if len(tour) < 3 {
		t.Errorf("the README shows %d statements with their output, want at least 3 (```sql, -- as USER, then ```text)", len(tour))
	}
	bin, err := sqetest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range tour {
		user, statement, want := m[1], strings.TrimSpace(m[2]), m[3]
		cmd := exec.Command(bin, "sql", "-u", user, "-P", fmt.Sprint(demo.Port), "-e", statement)
		cmd.Env = append(os.Environ(), "SQE_PASSWORD=demo")
		out, err := cmd.CombinedOutput()
		if normal(string(out)) != normal(want) {
			t.Errorf("%s, as %s (%v):\n%s\nthe README shows:\n%s", statement, user, err, out, want)
		}
	}
}

// A hash depends on the key that each demo makes for itself, a duration on the
// machine.
var varying = regexp.MustCompile(`\b[0-9a-f]{8,64}(\.\.\.|…)?|\btime: [0-9.]+[µm]?s`)

func normal(text string) string {
	var lines []string
	for _, l := range strings.Split(strings.TrimSpace(text), "\n") {
		lines = append(lines, strings.Join(strings.Fields(varying.ReplaceAllString(l, "VARIES")), " "))
	}
	return strings.Join(lines, "\n")
}
