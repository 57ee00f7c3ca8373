package server

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTypes: every type arrives in both protocols (floats are
// formatted by the driver; package wire tests their text).
func TestTypes(t *testing.T) {
	s := start(t, nil)
	db := s.db(nil)
	want := []string{
		"1", "-7", "NULL", "18446744073709551615", "0.1", "1.5e+300", "-0.05", "2022-01-08", "01:02:03.000004",
		"2023-11-14 22:13:20.000005", "héllo\x00", "\x00\xff", "01234567-89ab-cdef-0123-456789abcdef", `{"a": [1]}`, "NULL",
	}
	read := func(rows *sql.Rows, err error) []string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		got := make([]string, len(want))
		for rows.Next() {
			cells := make([]sql.RawBytes, len(want))
			into := make([]any, len(want))
			for i := range cells {
				into[i] = &cells[i]
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			for i, c := range cells {
				if got[i] = string(c); c == nil {
					got[i] = "NULL"
				}
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return got
	}
	if diff := cmp.Diff(want, read(db.Query("types"))); diff != "" {
		t.Error("text protocol:", diff)
	}
	st, err := db.Prepare("types")
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if diff := cmp.Diff(want, read(st.Query())); diff != "" {
		t.Error("binary protocol:", diff)
	}

	rows, err := db.Query("types")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range types {
		nullable, _ := c.Nullable()
		name := c.DatabaseTypeName()
		if nullable {
			name += "?"
		}
		names = append(names, name)
	}
	const wantNames = "TINYINT INT BIGINT? UNSIGNED BIGINT FLOAT? DOUBLE? DECIMAL DATE TIME DATETIME TEXT BLOB CHAR JSON NULL?"
	if got := strings.Join(names, " "); got != wantNames {
		t.Errorf("types\n got %s\nwant %s", got, wantNames)
	}
}
