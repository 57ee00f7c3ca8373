package eval

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"sqe/rangerclient/model"
)

// schedule is a compiled validity schedule.
type schedule struct {
	start, end  time.Time // zero: open
	recurrences []*recurrence
}

const scheduleLayout = "2006/01/02 15:04:05"

func newSchedules(list []model.Schedule) ([]*schedule, error) {
	var out []*schedule
	for i := range list {
		s, err := newSchedule(&list[i])
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func newSchedule(m *model.Schedule) (*schedule, error) {
	zone := time.UTC
	if z := strings.TrimSpace(m.TimeZone); z != "" {
		var err error
		if zone, err = loadZone(z); err != nil {
			return nil, errors.New("the time zone of a validity schedule is not known")
		}
	}
	s := &schedule{}
	for _, x := range []struct {
		text string
		to   *time.Time
	}{{m.StartTime, &s.start}, {m.EndTime, &s.end}} {
		if strings.TrimSpace(x.text) == "" {
			continue
		}
		t, err := time.ParseInLocation(scheduleLayout, x.text, zone)
		if err != nil {
			return nil, errors.New("a time of a validity schedule does not parse")
		}
		*x.to = t
	}
	for i := range m.Recurrences {
		r, err := newRecurrence(&m.Recurrences[i])
		if err != nil {
			return nil, err
		}
		s.recurrences = append(s.recurrences, r)
	}
	return s, nil
}

// loadZone knows IANA names and GMT+1, UTC+01:00 and the like.
func loadZone(name string) (*time.Location, error) {
	if l, err := time.LoadLocation(name); err == nil && !strings.EqualFold(name, "local") {
		return l, nil
	}
	rest, ok := strings.CutPrefix(name, "GMT")
	if !ok {
		if rest, ok = strings.CutPrefix(name, "UTC"); !ok {
			return nil, errors.New("unknown time zone")
		}
	}
	if len(rest) < 2 || rest[0] != '+' && rest[0] != '-' {
		return nil, errors.New("unknown time zone")
	}
	hours, minutes, colon := strings.Cut(rest[1:], ":")
	if !colon && len(hours) == 4 {
		hours, minutes = hours[:2], hours[2:]
	}
	h, err := strconv.Atoi(hours)
	if err != nil || h > 23 {
		return nil, errors.New("unknown time zone")
	}
	m := 0
	if minutes != "" {
		if m, err = strconv.Atoi(minutes); err != nil || m > 59 {
			return nil, errors.New("unknown time zone")
		}
	}
	offset := h*3600 + m*60
	if rest[0] == '-' {
		offset = -offset
	}
	return time.FixedZone(name, offset), nil
}

// anyValid reports whether there are no schedules or one of them holds at now.
func anyValid(list []*schedule, now time.Time) bool {
	for _, s := range list {
		if s.valid(now) {
			return true
		}
	}
	return len(list) == 0
}

func (s *schedule) valid(now time.Time) bool {
	if !s.start.IsZero() && now.Before(s.start) || !s.end.IsZero() && now.After(s.end) {
		return false
	}
	for _, r := range s.recurrences {
		if r.applies(now) {
			return true
		}
	}
	return len(s.recurrences) == 0
}

// next is the first instant after now at which valid may change.
func (s *schedule) next(now time.Time) time.Time {
	var out time.Time
	consider := func(t time.Time) {
		if t.After(now) && (out.IsZero() || t.Before(out)) {
			out = t
		}
	}
	if !s.start.IsZero() {
		consider(s.start)
	}
	if !s.end.IsZero() {
		consider(s.end.Add(time.Millisecond)) // the end is inclusive
	}
	if len(s.recurrences) > 0 {
		consider(now.Truncate(time.Minute).Add(time.Minute))
	}
	return out
}

// recurrence is a repeated start with a length; it is computed in UTC, as
// Ranger's engine does in a JVM that runs in UTC.
type recurrence struct {
	minute, hour, dayOfMonth, dayOfWeek, month, year *numbers
	length                                           time.Duration
}

// numbers is a set of numbers of a recurrence field; nil: the field is blank.
type numbers struct {
	every bool
	set   map[int]bool
	lo    int
	hi    int
}

func newNumbers(text string, lo, hi int) (*numbers, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	n := &numbers{set: map[int]bool{}, lo: lo, hi: hi}
	for _, part := range strings.Split(text, ",") {
		part = strings.TrimSpace(part)
		if part == "*" {
			n.every = true
			continue
		}
		from, to, isRange := strings.Cut(part, "-")
		a, err := strconv.Atoi(strings.TrimSpace(from))
		b := a
		if err == nil && isRange {
			b, err = strconv.Atoi(strings.TrimSpace(to))
		}
		if err != nil || a < lo || b > hi || b < a {
			return nil, errors.New("a recurrence of a validity schedule does not parse")
		}
		for i := a; i <= b; i++ {
			n.set[i] = true
		}
	}
	return n, nil
}

func (n *numbers) has(i int) bool { return n.every || n.set[i] }

// atMost returns the largest member that is at most i; borrowed is true when
// there is none and the largest member of all is returned.
func (n *numbers) atMost(i int) (v int, borrowed bool) {
	for v = i; v >= n.lo; v-- {
		if v <= n.hi && n.has(v) {
			return v, false
		}
	}
	for v = n.hi; v >= n.lo; v-- {
		if n.has(v) {
			return v, true
		}
	}
	return 0, true
}

func newRecurrence(m *model.Recurrence) (*recurrence, error) {
	r := &recurrence{length: time.Duration(m.Interval.Days)*24*time.Hour +
		time.Duration(m.Interval.Hours)*time.Hour + time.Duration(m.Interval.Minutes)*time.Minute}
	var err error
	for _, f := range []struct {
		text   string
		to     **numbers
		lo, hi int
	}{
		{m.Schedule.Minute, &r.minute, 0, 59},
		{m.Schedule.Hour, &r.hour, 0, 23},
		{m.Schedule.DayOfMonth, &r.dayOfMonth, 1, 31},
		{m.Schedule.DayOfWeek, &r.dayOfWeek, 1, 7},
		{m.Schedule.Month, &r.month, 1, 12},
		{m.Schedule.Year, &r.year, 2017, 2100},
	} {
		if *f.to, err = newNumbers(f.text, f.lo, f.hi); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// applies finds the latest scheduled instant at or before now and reports whether
// now is at most the length after it, both ends included. Fields are found one by
// one with a borrow from the next higher one; a lower field is not raised to its
// largest member when a higher one moves back (as Ranger does).
func (r *recurrence) applies(now time.Time) bool {
	if r.length <= 0 {
		return true
	}
	now = now.UTC()
	if r.minute == nil || r.hour == nil || r.month == nil || r.year == nil {
		return false
	}
	minute, borrow := r.minute.atMost(now.Minute())
	h := now.Hour()
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	day := today
	if borrow {
		if h--; h < 0 {
			h = 23
			day = day.AddDate(0, 0, -1)
		}
	}
	hour, borrow := r.hour.atMost(h)
	if borrow {
		day = day.AddDate(0, 0, -1)
	}
	var latest time.Time
	// Ranger forgets to step back a day in the days of a month, but not over the
	// first of a month: a span that began the evening before does not reach over
	// midnight.
	dayOfMonth := day
	if day.Before(today) && today.Day() != 1 {
		dayOfMonth = today
	}
	for _, f := range []struct {
		set *numbers
		day time.Time
		of  func(time.Time) int
	}{
		{r.dayOfMonth, dayOfMonth, func(t time.Time) int { return t.Day() }},
		{r.dayOfWeek, day, func(t time.Time) int { return int(t.Weekday()) + 1 }},
	} {
		if f.set == nil {
			continue
		}
		// The day may move back over the end of a month, so months and years are
		// looked at with the day. Two leap periods are the longest gap.
		for d, n := f.day, 0; n < 366*9 && d.Year() >= 2017; d, n = d.AddDate(0, 0, -1), n+1 {
			if f.set.has(f.of(d)) && r.month.has(int(d.Month())) && r.year.has(d.Year()) {
				if d.After(latest) {
					latest = d
				}
				break
			}
		}
	}
	if latest.IsZero() {
		return false
	}
	at := time.Date(latest.Year(), latest.Month(), latest.Day(), hour, minute, 0, 0, time.UTC)
	return !at.After(now) && !now.After(at.Add(r.length))
}
