package eval

import (
	"strings"
	"testing"
	"time"

	"sqe/rangerclient/model"
)

// TestRecurrences: "MINUTE HOUR DAY-OF-MONTH DAY-OF-WEEK MONTH YEAR", "." for a
// blank field. The answers are those of Ranger's own engine.
func TestRecurrences(t *testing.T) {
	for _, c := range []struct {
		schedule string
		hours    int
		at       string
		want     bool
	}{
		{"0 9 . 2-6 * *", 8, "2026-06-15 10:00", true}, // a Monday
		{"0 9 . 2-6 * *", 8, "2026-06-15 17:00", true}, // both ends count
		{"0 9 . 2-6 * *", 8, "2026-06-15 17:01", false},
		{"0 9 . 2-6 * *", 8, "2026-06-14 10:00", false},
		// Over midnight: days of the week do, days of the month only over the first.
		{"0 22 . 2 * *", 8, "2026-06-16 03:00", true},
		{"0 22 15 . * *", 8, "2026-06-15 23:00", true},
		{"0 22 15 . * *", 8, "2026-06-16 03:00", true},
		{"0 22 * . * *", 8, "2026-06-16 03:00", false},
		{"0 22 * . * *", 8, "2026-07-01 03:00", true},
		{"0 22 30 . * *", 8, "2026-07-01 03:00", true},
		// A month that moves back keeps the day.
		{"30 9 . * 2,4,6,8,10,12 *", 32, "2026-07-01 13:56", false},
		{"30 9 . * 2,4,6,8,10,12 *", 32, "2026-06-30 13:56", true},
		// Lower fields are not raised to their largest members.
		{"0 9,17 . 6 * *", 20, "2026-06-20 10:00", false},
		{"0 9 31 . * *", 24, "2026-06-01 08:00", true},
		{"0 9 31 . * *", 24, "2026-07-01 08:00", false},
		{"0 * . * * 2027", 1, "2026-06-15 10:00", false},
		{"* * . * * *", 1, "2026-06-15 10:00", true},
		// The later of the two days counts.
		{"0 9 1 2 * *", 2, "2026-06-15 10:00", true},
		{"0 9 1 2 * *", 2, "2026-06-01 10:00", true},
		{"0 9 2 2 * *", 2, "2026-06-02 10:00", true},
	} {
		var m model.Recurrence
		f := strings.Fields(strings.ReplaceAll(c.schedule, ".", "_"))
		for i := range f {
			if f[i] == "_" {
				f[i] = ""
			}
		}
		m.Schedule.Minute, m.Schedule.Hour, m.Schedule.DayOfMonth, m.Schedule.DayOfWeek, m.Schedule.Month, m.Schedule.Year = f[0], f[1], f[2], f[3], f[4], f[5]
		m.Interval.Hours = c.hours
		r, err := newRecurrence(&m)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse("2006-01-02 15:04", c.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.applies(at); got != c.want {
			t.Errorf("%q for %d h at %s: %t", c.schedule, c.hours, c.at, got)
		}
	}
}

func TestDatesOfTags(t *testing.T) {
	for text, want := range map[string]string{
		"2026/06/15": "2026-06-15T00:00:00Z", "2026/6/5": "2026-06-05T00:00:00Z", "2026/06/15 10:30:00": "2026-06-15T00:00:00Z",
		"2026-06-15T10:30:00.250Z": "2026-06-15T10:30:00.25Z", "2026-06-15": "", "2026-06-15T10:30:00Z": "", "2026/13/01": "", "2026/02/30": "", "soon": "", "": "",
	} {
		got := ""
		if at, ok := parseDate(text); ok {
			got = at.Format(time.RFC3339Nano)
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
