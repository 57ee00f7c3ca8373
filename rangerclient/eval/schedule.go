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
		t, err := time.Parse(scheduleLayout, x.text)
		if err != nil {
			return nil, errors.New("a time of a validity schedule does not parse")
		}
		// Ranger takes the zone's offset at this time in UTC, which is another one
		// within hours of a change of clocks.
		_, offset := t.In(zone).Zone()
		*x.to = t.Add(-time.Duration(offset) * time.Second)
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
}

func newNumbers(text string, lo, hi int) (*numbers, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	n := &numbers{set: map[int]bool{}}
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

// atMost finds the largest member that is at most i and, when there is none, the
// largest that is at most highest, with a borrow from the next higher field. A
// blank field is whatever is asked for. ok is false when nothing was found in as
// many steps as the field has numbers.
func (n *numbers) atMost(i, lo, hi, highest int) (v int, borrow, ok bool) {
	v = i
	if n == nil {
		if v < lo {
			v = highest
		}
		return v, false, true
	}
	for range hi - lo + 1 {
		if v < lo {
			v, borrow = highest, true
		}
		if n.has(v) {
			return v, borrow, true
		}
		v--
	}
	return 0, false, false
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
// one with a borrow from the next higher one, as Ranger does
// (RangerValidityScheduleEvaluator), with what that brings along: lower fields are
// not raised to their largest members when a higher one moves back, a day that
// the month lacks runs into the next, and everything is in UTC.
func (r *recurrence) applies(now time.Time) bool {
	if r.length <= 0 {
		return true
	}
	now = now.UTC()
	minute, borrow, ok := r.minute.atMost(now.Minute(), 0, 59, 59)
	if !ok {
		return false
	}
	h := now.Hour()
	if borrow {
		h--
	}
	hour, borrow, ok := r.hour.atMost(h, 0, 23, 23)
	if !ok {
		return false
	}
	var at time.Time
	for _, f := range []struct {
		days *numbers
		find func(time.Time, int, int, bool) (time.Time, bool)
	}{{r.dayOfMonth, r.onDayOfMonth}, {r.dayOfWeek, r.onDayOfWeek}} {
		if f.days == nil {
			continue
		}
		t, ok := f.find(now, hour, minute, borrow)
		if ok {
			t, ok = r.inMonth(t)
		}
		if !ok {
			return false
		}
		if at.IsZero() || t.After(at) {
			at = t
		}
	}
	return !at.IsZero() && !at.After(now) && !now.After(at.Add(r.length))
}

// daysBefore is the number of days of the month before that of t.
func daysBefore(t time.Time) int {
	return time.Date(t.Year(), t.Month(), 0, 0, 0, 0, 0, time.UTC).Day()
}

// onDayOfMonth finds the latest day of the month. borrow: it is to be a day before
// today. Ranger forgets that, except on the first of a month.
func (r *recurrence) onDayOfMonth(now time.Time, hour, minute int, borrow bool) (time.Time, bool) {
	day := now
	if borrow && now.Day() == 1 {
		day = now.AddDate(0, 0, -1)
	}
	for range 24 { // every day of a month comes at least once in two years, bar the 29th of February
		if d, before, ok := r.dayOfMonth.atMost(day.Day(), 1, 31, daysBefore(day)); ok {
			month := day.Month()
			if before {
				month--
			}
			return time.Date(day.Year(), month, d, hour, minute, 0, 0, time.UTC), true
		}
		day = time.Date(day.Year(), day.Month()-1, min(day.Day(), daysBefore(day)), 0, 0, 0, 0, time.UTC)
	}
	return time.Time{}, false
}

// onDayOfWeek finds the latest day of the week, 1 being Sunday.
func (r *recurrence) onDayOfWeek(now time.Time, hour, minute int, borrow bool) (time.Time, bool) {
	today := int(now.Weekday()) + 1
	wanted, back := today, 0
	if borrow {
		wanted, back = today-1, 1
	}
	d, before, ok := r.dayOfWeek.atMost(wanted, 1, 7, 7)
	if !ok {
		return time.Time{}, false
	}
	switch {
	case !before:
		back = today - d
	case today-d != back:
		back = 7 + today - d
	}
	return time.Date(now.Year(), now.Month(), now.Day()-back, hour, minute, 0, 0, time.UTC), true
}

// inMonth moves t back to a month and year of the recurrence.
func (r *recurrence) inMonth(t time.Time) (time.Time, bool) {
	month, borrow, ok := r.month.atMost(int(t.Month()), 1, 12, 12)
	if !ok {
		return t, false
	}
	y := t.Year()
	if borrow {
		y--
	}
	year, _, ok := r.year.atMost(y, 2017, 2100, 2100)
	return time.Date(year, time.Month(month), t.Day(), t.Hour(), t.Minute(), 0, 0, time.UTC), ok
}
