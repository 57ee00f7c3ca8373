package bind

import (
	"math"
	"strconv"
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"

	"sqe/fault"
)

// baseConversion is CONV in the row executor. go-mysql-server's own fails for an empty
// text, takes no blanks before the number, and for one that is too large its first
// digits.
type baseConversion struct{ sql.Expression }

// WithChildren implements sql.Expression.
func (b *baseConversion) WithChildren(children ...sql.Expression) (sql.Expression, error) {
	e, err := b.Expression.WithChildren(children...)
	if err != nil {
		return nil, err
	}
	return &baseConversion{e}, nil
}

// CollationCoercibility implements sql.CollationCoercible.
func (b *baseConversion) CollationCoercibility(ctx *sql.Context) (sql.CollationID, byte) {
	return sql.GetCoercibility(ctx, b.Expression)
}

// Eval implements sql.Expression.
func (b *baseConversion) Eval(ctx *sql.Context, row sql.Row) (any, error) {
	var text string
	var bases [2]int64
	for i, c := range b.Children() {
		v, err := c.Eval(ctx, row)
		if err != nil || v == nil {
			return nil, err
		}
		if i == 0 {
			if text, err = textOf(ctx, v); err != nil {
				return nil, err
			}
			continue
		}
		n, _, err := types.Int64.Convert(ctx, v)
		base, ok := n.(int64)
		if err != nil || !ok || i > 2 {
			return nil, fault.New(fault.OutOfRange, "a base of CONV is out of range")
		}
		bases[i-1] = base
	}
	out, ok := conv(text, bases[0], bases[1])
	if !ok {
		return nil, nil
	}
	return out, nil
}

// conv is MySQL's CONV: the number at the beginning of s, at most 64 bits, in another
// base. A negative base is one of signed numbers. false is NULL.
func conv(s string, from, to int64) (string, bool) {
	base := func(b int64) (int, bool) {
		return int(max(b, -b)), 2 <= b && b <= 36 || -36 <= b && b <= -2
	}
	f, okFrom := base(from)
	t, okTo := base(to)
	if !okFrom || !okTo || s == "" {
		return "", false
	}
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	negative := strings.HasPrefix(s, "-")
	if negative || strings.HasPrefix(s, "+") {
		s = s[1:]
	}
	n := strings.IndexFunc(s, func(r rune) bool {
		_, err := strconv.ParseUint(string(r), f, 8)
		return err != nil
	})
	if n >= 0 {
		s = s[:n]
	}
	var v uint64
	if s != "" {
		var err error
		v, err = strconv.ParseUint(s, f, 64)
		most := uint64(math.MaxInt64)
		if negative {
			most++
		}
		switch {
		case from < 0 && (err != nil || v > most):
			v = most
		case err != nil:
			v, negative = math.MaxUint64, false
		}
	}
	if negative {
		v = -v
	}
	if to < 0 {
		return strings.ToUpper(strconv.FormatInt(int64(v), t)), true
	}
	return strings.ToUpper(strconv.FormatUint(v, t)), true
}
