package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is a time span, written as "10s", "1m30s" or "8h".
type Duration time.Duration

// String is the shortest such text.
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

func parseDuration(s string) (Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf(`must be a duration such as "500ms", "10s" or "8h"`)
	}
	return Duration(d), nil
}

// Size is a number of bytes, written as "64MiB" or "1.5GB".
type Size int64

var units = []struct {
	suffix string
	bytes  float64
}{
	{"TiB", 1 << 40},
	{"GiB", 1 << 30},
	{"MiB", 1 << 20},
	{"KiB", 1 << 10},
	{"TB", 1e12},
	{"GB", 1e9},
	{"MB", 1e6},
	{"kB", 1e3},
	{"B", 1},
}

// String is the text with the largest unit that divides the number.
func (s Size) String() string {
	for _, u := range units[:4] {
		if n := int64(u.bytes); s != 0 && int64(s)%n == 0 {
			return strconv.FormatInt(int64(s)/n, 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

func parseSize(text string) (Size, error) {
	bad := fmt.Errorf(`must be a number of bytes with a unit, such as "64MiB" or "1GiB"`)
	for _, u := range units {
		number, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(n >= 0) || n*u.bytes > math.MaxInt64/2 {
			return 0, bad
		}
		return Size(n * u.bytes), nil
	}
	return 0, bad
}

// Path is a path in the file system. Load makes it absolute: a relative path is
// relative to the folder of the configuration file.
type Path string

// Place is a folder of the file system, made absolute as a Path is, or one of an
// object store, such as "s3://bucket/folder".
type Place string

// Secret is a text that is never printed: every way of formatting it gives
// "[secret]". Reveal gives the text.
type Secret string

// Reveal is the text itself.
func (s Secret) Reveal() string { return string(s) }

// String hides the text.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "[secret]"
}

// GoString hides the text.
func (s Secret) GoString() string { return strconv.Quote(s.String()) }

// Format hides the text for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// MarshalText hides the text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
