package masks

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/plan"
)

// Apply is the plain meaning of every action on one value, in the representation
// of plan.Literal.Value; nil is NULL. Tests hold the expressions of New to it. It
// fails exactly where New fails.
//
// The value of a struct that mask-to-fixed-value gives is []any in the order of
// the fields; that of a list or map is an empty []any.
func Apply(action string, f plan.Field, value any, o Options) (any, error) {
	if _, err := New(action, f, o); err != nil {
		return nil, err
	}
	if action == IcebergFixed {
		// NULL is replaced too: whether there was a value is hidden.
		return fixedGo(f.Type)
	}
	if value == nil {
		return nil, nil
	}
	switch action {
	case None:
		return value, nil
	case Null, IcebergNull:
		return nil, nil
	case Redact, ShowFirst4, ShowLast4:
		s, ok := value.(string)
		if !ok || !plan.IsString(f.Type) {
			return nil, nil
		}
		c, err := o.classes(action)
		if err != nil {
			return nil, err
		}
		return Classes(s, c), nil
	case IcebergAlphanum, IcebergShowFirst4, IcebergShowLast4:
		k := alphanumKeep[action]
		return Alphanum(value.(string), k.first, k.last), nil
	case DateShowYear, IcebergTruncateYear:
		return truncateGo("year", f.Type, value)
	case IcebergTruncateMonth:
		return truncateGo("month", f.Type, value)
	}
	if action == Hash && o.UnkeyedHash {
		digest, err := o.unkeyed()
		s, ok := value.(string)
		if err != nil || !ok || !plan.IsString(f.Type) {
			return nil, err
		}
		return digest.apply(s), nil
	}
	d, ok := digestOf(f.Type, action == Hash)
	if !ok {
		return nil, nil // MASK_HASH of a type that is not hashed
	}
	raw := d.encode(value)
	switch action {
	case Hash:
		return d.decode(HMAC(raw, o.HashKey)), nil
	case IcebergSHA256Global:
		sum := sha256.Sum256(raw)
		return d.decode(sum[:]), nil
	case IcebergSHA256QueryOnly:
		sum := sha256.Sum256(slices.Concat(o.Salt, raw))
		return d.decode(sum[:]), nil
	}
	return nil, fmt.Errorf("the mask %q is not known", action)
}

func truncateGo(unit string, t arrow.DataType, value any) (any, error) {
	switch v := value.(type) {
	case arrow.Date32:
		if start, ok := Truncate(unit, int64(v), t); ok {
			return arrow.Date32(start), nil
		}
	case arrow.Timestamp:
		if start, ok := Truncate(unit, int64(v), t); ok {
			return arrow.Timestamp(start), nil
		}
	}
	return nil, nil
}
