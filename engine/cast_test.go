package engine_test

import (
	"fmt"
	"testing"

	"sqe/fault"
)

// TestCastOfText: CAST of a text to a number is MySQL's where it is one and fails where it
// is none, compiled or not; who does not see a row is not told by it.
func TestCastOfText(t *testing.T) {
	f, eve := people(t)
	s := f.sue
	const none = "fails"
	f.do(s, "CREATE TABLE t (id INT, s STRING)")
	for i, c := range []struct{ text, signed, unsigned, decimal, double string }{
		{"'12'", "12", "12", "12", "12"},
		{"' +5 '", "5", "5", "5", "5"},
		{"'1.7'", "1", "1", "1.7", "1.7"},
		{"'-3.5'", "-3", "18446744073709551613", "-3.5", "-3.5"},
		{"'.5'", "0", "0", "0.5", "0.5"},
		{"'1e2'", "1", "1", "100", "100"},
		{"'1.005'", "1", "1", "1.01", "1.005"},
		{"NULL", "NULL", "NULL", "NULL", "NULL"},
		{"'-9223372036854775808'", "-9223372036854775808", "9223372036854775808", none, "-9.223372036854776e+18"},
		{"'18446744073709551615'", none, "18446744073709551615", none, "1.8446744073709552e+19"},
		{"'99999999999999999999'", none, none, none, "1e+20"},
		{"'1e999'", "1", "1", none, none},
		{"''", none, none, none, none},
		{"'-'", none, none, none, none},
		{"'abc'", none, none, none, none},
		{"'7 apples'", none, none, none, none},
	} {
		f.do(s, fmt.Sprintf("INSERT INTO t VALUES (%d, %s)", i, c.text))
		for to, want := range map[string]string{"SIGNED": c.signed, "UNSIGNED": c.unsigned, "DECIMAL(10,2)": c.decimal, "DOUBLE": c.double} {
			for _, text := range []string{"s", "elt(1, s)"} {
				q := fmt.Sprintf("SELECT CAST(%s AS %s) FROM t WHERE id = %d", text, to, i)
				if want == none {
					refused(t, s, q, fault.OutOfRange)
				} else {
					must(t, s, q, want)
				}
			}
		}
	}
	// A row that eve does not see makes no error for her.
	f.do(s, "UPDATE people SET name = concat(id, '0')")
	f.do(s, "UPDATE people SET name = 'none' WHERE region = 'US'")
	refused(t, s, "SELECT SUM(CAST(name AS SIGNED)) FROM people", fault.OutOfRange)
	must(t, eve, "SELECT COUNT(*) FROM people WHERE CAST(left(name, 1) AS SIGNED) > 1", "1")
	must(t, eve, "SELECT SUM(CAST(elt(1, left(name, 1)) AS DOUBLE)) FROM people", "3")
}
