package importfile

import (
	"bytes"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/plan"
)

// candidate is a set of types that every value of a column has so far.
type candidate uint8

const (
	asBool candidate = 1 << iota
	asLong
	asDouble
	asDate
	asTime
	asTimestamp
	asTimestampTZ

	asAny = asBool | asLong | asDouble | asDate | asTime | asTimestamp | asTimestampTZ
)

// inference finds the narrowest type that holds every value of a column exactly.
type inference struct {
	can  candidate
	seen bool // a value that is not NULL
}

// look narrows the type by one value.
func (c *inference) look(v []byte) {
	c.seen = true
	if c.can == 0 {
		return
	}
	v = bytes.Trim(v, " \t")
	if len(v) == 0 || len(v) > 64 {
		c.can = 0
		return
	}
	drop := func(what candidate, fits func() bool) {
		if c.can&what != 0 && !fits() {
			c.can &^= what
		}
	}
	drop(asBool, func() bool { _, ok := parseBool(v); return ok && len(v) > 1 }) // 0 and 1 are numbers
	drop(asLong, func() bool { return isLong(v) })
	drop(asDouble, func() bool { return isDouble(v) })
	drop(asDate, func() bool { _, ok := parseDate(v); return ok })
	drop(asTime, func() bool { _, ok := parseClock(v, 6); return ok && len(v) > 5 })
	if c.can&(asTimestamp|asTimestampTZ) != 0 {
		_, zoned, ok := parseInstant(v, 6)
		switch {
		case !ok:
			c.can &^= asTimestamp | asTimestampTZ
		case zoned:
			c.can &^= asTimestamp
		default:
			c.can &^= asTimestampTZ
		}
	}
}

// isLong: a number with zeros before it, or a plus, is a code and not a number.
func isLong(v []byte) bool {
	d := bytes.TrimPrefix(v, []byte("-"))
	if len(d) == 0 || len(d) > 1 && d[0] == '0' || d[0] == '+' {
		return false
	}
	_, err := strconv.ParseInt(string(v), 10, 64)
	return err == nil
}

// isDouble: the digits come out again when the number is printed.
func isDouble(v []byte) bool {
	d := bytes.TrimPrefix(v, []byte("-"))
	if len(d) > 1 && d[0] == '0' && d[1] >= '0' && d[1] <= '9' || len(d) > 0 && d[0] == '+' {
		return false
	}
	n, ok := parseNumber(v)
	if !ok {
		return false
	}
	x, err := strconv.ParseFloat(string(v), 64)
	if err != nil {
		return false
	}
	digits := bytes.TrimRight(n.digits, "0")
	if len(digits) <= 15 {
		return len(digits) == 0 || x != 0
	}
	printed, ok := parseNumber(strconv.AppendFloat(nil, x, 'e', -1, 64))
	return ok && bytes.Equal(bytes.TrimRight(printed.digits, "0"), digits)
}

func (c *inference) result() arrow.DataType {
	switch {
	case !c.seen:
		return plan.String
	case c.can&asBool != 0:
		return plan.Bool
	case c.can&asLong != 0:
		return plan.Int64
	case c.can&asDouble != 0:
		return plan.Float64
	case c.can&asDate != 0:
		return plan.Date
	case c.can&asTime != 0:
		return plan.Time
	case c.can&asTimestamp != 0:
		return plan.Timestamp
	case c.can&asTimestampTZ != 0:
		return plan.TimestampTZ
	}
	return plan.String
}
