package policystore

import (
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // zones by name, whatever the machine has

	"sqe/rangerclient/model"
)

// scheduleTime is the format of the ends of a schedule.
const scheduleTime = "2006/01/02 15:04:05"

// invalidSchedule is Ranger's code for a schedule that means nothing.
const invalidSchedule = 3029

// checkSchedule finds what is wrong with a validity schedule. Source: Ranger's
// RangerValidityScheduleValidator.
func checkSchedule(f *failures, s model.Schedule) {
	bad := func(field, reason string) { f.add(invalidSchedule, field, "", wrong, "%s", reason) }
	if s.StartTime == "" && s.EndTime == "" && len(s.Recurrences) == 0 {
		bad("startTime,endTime,recurrences", "empty values")
		return
	}
	start, startErr := time.Parse(scheduleTime, s.StartTime)
	if s.StartTime != "" && startErr != nil {
		bad("startTime", "invalid value")
	}
	end, endErr := time.Parse(scheduleTime, s.EndTime)
	if s.EndTime != "" && endErr != nil {
		bad("endTime", "invalid value")
	}
	if startErr == nil && endErr == nil && !start.Before(end) {
		bad("startTime", "endTime is not later than startTime")
	}
	if strings.TrimSpace(s.TimeZone) != "" {
		if _, err := time.LoadLocation(s.TimeZone); err != nil {
			bad("timeZone", "invalid timeZone")
		}
	}
	for _, r := range s.Recurrences {
		checkRecurrence(bad, r)
	}
}

func checkRecurrence(bad func(field, reason string), r model.Recurrence) {
	i, t := r.Interval, r.Schedule
	if i.Days < 0 || i.Hours < 0 || i.Hours > 23 || i.Minutes < 0 || i.Minutes > 59 || i.Days+i.Hours+i.Minutes == 0 {
		bad("interval", "invalid interval")
	}
	if strings.TrimSpace(t.DayOfMonth) == "" && strings.TrimSpace(t.DayOfWeek) == "" {
		bad("validitySchedule", "empty dayOfMonth and dayOfWeek")
	}
	for _, x := range []struct {
		field, value string
		low, high    int
		signs        string // beside digits and commas
		optional     bool
	}{
		{"minute", t.Minute, 0, 59, "", false},
		{"hour", t.Hour, 0, 23, "*-", false},
		{"dayOfMonth", t.DayOfMonth, 1, 31, "*-", true},
		{"dayOfWeek", t.DayOfWeek, 1, 7, "*-", true},
		{"month", t.Month, 1, 12, "*-", false},
		{"year", t.Year, 2017, 2100, "*-", false},
	} {
		value := strings.Join(strings.Fields(x.value), "")
		switch {
		case value == "" && !x.optional:
			bad(x.field, "No value provided")
		case strings.Trim(value, "0123456789,"+x.signs) != "":
			bad(x.field, "invalid character(s)")
		default:
			for _, spec := range strings.Split(value, ",") {
				if reason := checkRange(spec, x.low, x.high); spec != "" && reason != "" {
					bad(x.field, reason)
				}
			}
		}
	}
}

// checkRange says what is wrong with "5", "*" or "2-6"; "" for nothing.
func checkRange(spec string, low, high int) string {
	bounds := strings.Split(spec, "-")
	if len(bounds) > 2 {
		return "incorrect range spec: " + spec
	}
	last := low
	for _, b := range bounds {
		if b == "*" {
			last = high
			continue
		}
		n, err := strconv.Atoi(b)
		switch {
		case err != nil:
			return "incorrect range spec: " + spec
		case n < low || n > high:
			return "incorrect value: " + b + ". valid range: (" + strconv.Itoa(low) + ", " + strconv.Itoa(high) + ")"
		case n < last:
			return "incorrect range: " + spec
		}
		last = n
	}
	return ""
}
