// Package masks holds every action that hides the value of a column: as an
// expression of the plan (New), and as a plain Go function (Apply) with
// which tests compare whatever an executor makes of the expression.
//
// The vocabulary is Ranger's Hive mask types (MASK, MASK_SHOW_LAST_4, ...) and
// the nine actions of Iceberg's read restrictions ("iceberg:mask-alphanum", ...).
//
// Invariants:
//
//   - A masked value has exactly the type of the column.
//   - Every expression is total: no value of a column can make it fail, because
//     an error would tell the value. It is made of functions that a vectorised
//     executor computes without regular expressions.
//   - What cannot be masked as asked is an error of New, never the raw value: the
//     caller withholds the column.
//   - Keys and salts are binary literals of the expression. plan.Format prints no
//     bytes of such literals; nothing else may print them either.
//
// The package must never decide who sees a mask, and never read configuration.
package masks

import (
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/plan"
)

// Ranger's mask types. Source: the hive service definition of Apache Ranger.
const (
	Redact       = "MASK"
	ShowLast4    = "MASK_SHOW_LAST_4"
	ShowFirst4   = "MASK_SHOW_FIRST_4"
	Hash         = "MASK_HASH"
	Null         = "MASK_NULL"
	None         = "MASK_NONE"
	DateShowYear = "MASK_DATE_SHOW_YEAR"
	// CustomSQL carries an expression of its own: see Custom.
	CustomSQL = "CUSTOM"
)

// Iceberg's actions. Source: the REST catalog specification, ReadRestrictions.
const (
	IcebergAlphanum        = "iceberg:mask-alphanum"
	IcebergShowFirst4      = "iceberg:show-first-4"
	IcebergShowLast4       = "iceberg:show-last-4"
	IcebergNull            = "iceberg:replace-with-null"
	IcebergFixed           = "iceberg:mask-to-fixed-value"
	IcebergTruncateYear    = "iceberg:truncate-to-year"
	IcebergTruncateMonth   = "iceberg:truncate-to-month"
	IcebergSHA256Global    = "iceberg:sha-256-global"
	IcebergSHA256QueryOnly = "iceberg:sha-256-query-local"
)

// Options are what actions need beside the column.
type Options struct {
	// HashKey is the key of MASK_HASH. Empty: MASK_HASH cannot be built.
	HashKey []byte
	// KeepShort leaves values of four characters or fewer raw under Ranger's
	// show-4 masks, as Hive and Kyuubi do. By default they are masked whole,
	// because "the last four" of four characters is everything.
	KeepShort bool
	// Rendering is whose characters Ranger's text masks write.
	Rendering Rendering
	// UnkeyedHash makes MASK_HASH of texts the digest of the peer that Rendering
	// names, without a key; everything else that would be hashed becomes NULL.
	// Whoever can guess a value can then tell it by its digest.
	UnkeyedHash bool
	// Salt is for iceberg:sha-256-query-local: at least 16 random bytes, new for
	// every statement.
	Salt []byte
}

// MinSalt is the least number of salt bytes that Iceberg's specification allows.
const MinSalt = 16

// A Mask makes the masked value out of the raw one, which has the type of the
// field that the mask was made for.
type Mask func(raw plan.Expr) plan.Expr

// known is the vocabulary.
var known = map[string]bool{
	Redact: true, ShowLast4: true, ShowFirst4: true, Hash: true, Null: true, None: true, DateShowYear: true, CustomSQL: true,
	IcebergAlphanum: true, IcebergShowFirst4: true, IcebergShowLast4: true, IcebergNull: true, IcebergFixed: true,
	IcebergTruncateYear: true, IcebergTruncateMonth: true, IcebergSHA256Global: true, IcebergSHA256QueryOnly: true,
}

// NeedsKey reports whether the action cannot be built without Options.HashKey.
func (o Options) NeedsKey(action string) bool { return action == Hash && !o.UnkeyedHash }

// NeedsSalt reports whether the action depends on Options.Salt, so that its
// expression must not outlive a statement.
func NeedsSalt(action string) bool { return action == IcebergSHA256QueryOnly }

var (
	errNoKey  = errors.New("no key for MASK_HASH is configured")
	errSalt   = fmt.Errorf("a salt of at least %d bytes is needed", MinSalt)
	errCustom = errors.New("CUSTOM is an expression of its own and is not built from a name")
)

// New makes the mask of an action for a field. It fails when the action is not
// known, does not apply to the field's type (Iceberg's actions), or lacks a key
// or salt.
//
// Ranger's actions give a typed NULL for types that they do not treat; Iceberg's
// specification makes that an error.
func New(action string, f plan.Field, o Options) (Mask, error) {
	switch action {
	case None:
		return func(raw plan.Expr) plan.Expr { return raw }, nil
	case Null:
		return constant(typedNull(f.Type)), nil
	case CustomSQL:
		return nil, errCustom
	case Redact, ShowFirst4, ShowLast4:
		if !plan.IsString(f.Type) {
			return constant(typedNull(f.Type)), nil
		}
		c, err := o.classes(action)
		if err != nil {
			return nil, err
		}
		return classMask(c, f.Type), nil
	case DateShowYear:
		if !plan.IsTemporal(f.Type) {
			return constant(typedNull(f.Type)), nil
		}
		return truncateMask(yearUnit, f.Type), nil
	case Hash:
		if o.UnkeyedHash {
			digest, err := o.unkeyed()
			if err != nil {
				return nil, err
			}
			if !plan.IsString(f.Type) {
				return constant(typedNull(f.Type)), nil
			}
			return digest.mask(f.Type), nil
		}
		if len(o.HashKey) == 0 {
			return nil, errNoKey
		}
		d, ok := digestOf(f.Type, true)
		if !ok {
			return constant(typedNull(f.Type)), nil
		}
		return d.mask(keyed(o.HashKey)), nil
	}
	if !strings.HasPrefix(action, "iceberg:") || !known[action] {
		return nil, fmt.Errorf("the mask %q is not known", action)
	}
	return newIceberg(action, f, o)
}

func newIceberg(action string, f plan.Field, o Options) (Mask, error) {
	switch action {
	case IcebergAlphanum, IcebergShowFirst4, IcebergShowLast4:
		if plan.IsString(f.Type) {
			k := alphanumKeep[action]
			return alphanumMask(k.first, k.last, f.Type), nil
		}
	case IcebergNull:
		if f.Required {
			return nil, fmt.Errorf("%s does not apply to a required field", action)
		}
		return constant(typedNull(f.Type)), nil
	case IcebergFixed:
		e, err := fixedExpr(f.Type)
		if err != nil {
			return nil, err
		}
		return constant(e), nil
	case IcebergTruncateYear, IcebergTruncateMonth:
		if plan.IsTemporal(f.Type) {
			return truncateMask(truncateUnit[action], f.Type), nil
		}
	case IcebergSHA256Global, IcebergSHA256QueryOnly:
		d, ok := digestOf(f.Type, false)
		if !ok {
			break
		}
		if action == IcebergSHA256Global {
			return d.mask(plainSHA), nil
		}
		if len(o.Salt) < MinSalt {
			return nil, errSalt
		}
		return d.mask(salted(o.Salt)), nil
	}
	return nil, fmt.Errorf("%s does not apply to type %s", action, plan.TypeName(f.Type))
}

// Custom makes the expression of a CUSTOM mask fit the column: exactly its type,
// with NULL for what cannot be converted.
func Custom(value plan.Expr, f plan.Field) (plan.Expr, error) {
	from := value.Type()
	switch {
	case arrow.TypeEqual(from, f.Type):
		return value, nil
	case from.ID() == arrow.NULL:
		return typedNull(f.Type), nil
	case plan.IsNested(f.Type) || plan.IsNested(from) || plan.IsJSON(from):
		// There is no conversion between shapes, and text of another shape would
		// not be a value of the column.
		return nil, fmt.Errorf("the expression gives %s, which is not converted to %s", plan.TypeName(from), plan.TypeName(f.Type))
	}
	return &plan.Cast{Operand: value, Typ: f.Type, Try: true}, nil
}

func typedNull(t arrow.DataType) plan.Expr { return &plan.Literal{Typ: t} }

func constant(e plan.Expr) Mask { return func(plan.Expr) plan.Expr { return e } }

// function finds a function that this package is written against; its absence is
// a defect of the program, not of a policy.
func function(name string) *plan.Function {
	f, ok := plan.Lookup(name)
	if !ok {
		panic("masks: no function " + name)
	}
	return f
}

// call makes a call with the type of the column: the catalogue says String or
// Binary where the column is LARGE_STRING or FIXED, and types must not change.
func call(f *plan.Function, t arrow.DataType, args ...plan.Expr) plan.Expr {
	return &plan.Call{Func: f, Operands: args, Typ: t}
}

func text(s string) plan.Expr { return &plan.Literal{Value: s, Typ: plan.String} }

func integer(n int) plan.Expr { return &plan.Literal{Value: int64(n), Typ: plan.Int64} }

func boolean(b bool) plan.Expr { return &plan.Literal{Value: b, Typ: plan.Bool} }
