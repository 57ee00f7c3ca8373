//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestToolStatements: what DBeaver, Metabase, Superset, Tableau and mysqldump send when
// they connect, open a table and group by time, as they write it.
func TestToolStatements(t *testing.T) {
	for _, c := range []struct{ text, has string }{
		{"SHOW ERRORS", ""},
		{"SHOW COUNT(*) WARNINGS", "0"},
		{"SHOW COUNT(*) ERRORS", "0"},
		{"SELECT @@have_ssl, @@warning_count, @@error_count", "YES\t0\t0"},
		{"SHOW VARIABLES LIKE 'have_ssl'", "have_ssl\tYES"},
		{"SHOW CREATE DATABASE bank", "CREATE DATABASE `bank`"},
		{"SHOW INDEX FROM bank.customers", ""},
		{"SHOW GRANTS FOR CURRENT_USER", "GRANT SELECT ON `bank`.`customers`"},
		{"SHOW TABLE STATUS FROM bank LIKE 'customers'", "customers"},
		{"SHOW FULL FIELDS FROM `bank`.`customers`", "national_id"},
		{"SELECT /*!40001 SQL_NO_CACHE */ * FROM `bank`.`customers`", "xxxxx9103"},
		{"SELECT * FROM (SELECT * FROM bank.customers) AS virtual_table LIMIT 0", ""},
		{"SELECT QUOTE(full_name), QUOTE(NULL) FROM bank.customers WHERE cust_id = 1", "'Sanne de Vries'\tNULL"},
		{"SELECT UTC_DATE() = CURDATE(), UTC_DATE = DATE(UTC_TIMESTAMP()), UTC_TIME() IS NULL, UTC_TIME IS NULL", "1\t1\t0\t0"},
		// Metabase groups by week so. The mask leaves the first day of the year of birth.
		{"SELECT STR_TO_DATE(CONCAT(YEARWEEK(dob), ' Sunday'), '%X%V %W') AS w, COUNT(*) FROM bank.customers WHERE cust_id = 2 GROUP BY w", "1984-12-30\t1"},
		{"SELECT STR_TO_DATE(CONCAT(DATE_FORMAT(dob, '%Y-%m'), '-01'), '%Y-%m-%d') AS m, COUNT(*) FROM bank.customers WHERE cust_id = 2 GROUP BY m", "1985-01-01\t1"},
		{"SELECT CAST(cust_id AS CHAR), CAST(dob AS DATETIME), EXTRACT(QUARTER FROM dob), TIMESTAMPDIFF(YEAR, dob, '2024-06-01') FROM bank.customers WHERE cust_id = 2", "2\t1985-01-01 00:00:00.000000\t1\t39"},
		{"SELECT residency_region, COUNT(DISTINCT CASE WHEN consent_marketing THEN cust_id END) n FROM bank.customers GROUP BY 1 HAVING n > 0", "EU\t4"},
	} {
		a := ask(t, "alice", c.text)
		text := strings.Join(a.Sorted(), "\n")
		if a.Err != nil || c.has == "" && text != "" || !strings.Contains(text, c.has) {
			t.Errorf("%s: %q %v, want %q", c.text, text, a.Err, c.has)
		}
	}
	// A database that somebody may not see answers as one that is not there.
	hidden, missing := ask(t, "dave", "SHOW CREATE DATABASE bank"), ask(t, "alice", "SHOW CREATE DATABASE nowhere")
	if hidden.Number() != 1049 || missing.Number() != 1049 || fmt.Sprint(missing.Err) != strings.ReplaceAll(fmt.Sprint(hidden.Err), "bank", "nowhere") {
		t.Errorf("a hidden database says %v, a missing one %v; want error 1049 of both", hidden.Err, missing.Err)
	}
}
