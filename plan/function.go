package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// FunctionKind says where a function may stand.
type FunctionKind uint8

// The kinds of functions. An aggregate may also be used as a window function.
const (
	ScalarFunction FunctionKind = iota
	AggregateFunction
	WindowFunction
)

// Function is an entry of the catalogue. Semantics are MySQL's unless Doc says
// otherwise. An executor that cannot compute a function exactly must refuse it.
type Function struct {
	Name string
	Kind FunctionKind
	// Result is the type for arguments of these types, or an error when the
	// function does not take them.
	Result func(args []arrow.DataType) (arrow.DataType, error)
	// Partial reports whether a call with arguments of these types can raise an
	// error on some value. nil means that it never can (it is total). Only total
	// expressions may move below a Guard.
	Partial func(args []arrow.DataType) bool
	// Volatile functions may differ between two calls with the same arguments.
	Volatile bool
}

// NewCall makes a call of the named function, with the type derived.
func NewCall(name string, args ...Expr) (*Call, error) {
	f, ok := Lookup(name)
	if !ok || f.Kind != ScalarFunction {
		return nil, fmt.Errorf("no scalar function %s", name)
	}
	t, err := f.Result(Types(args))
	if err != nil {
		return nil, err
	}
	return &Call{Func: f, Operands: args, Typ: t}, nil
}

// MustCall is NewCall for calls that the program itself composes from types that
// it has checked; it panics where NewCall fails.
func MustCall(name string, args ...Expr) *Call {
	c, err := NewCall(name, args...)
	if err != nil {
		panic(err)
	}
	return c
}

// Types lists the types of the expressions.
func Types(args []Expr) []arrow.DataType {
	out := make([]arrow.DataType, len(args))
	for i, a := range args {
		out[i] = a.Type()
	}
	return out
}

// Lookup finds a function of the catalogue by its canonical name.
func Lookup(name string) (*Function, bool) {
	f, ok := catalogue[name]
	return f, ok
}

// Functions lists the catalogue by name.
func Functions() []*Function {
	return slices.SortedFunc(maps.Values(catalogue), func(a, b *Function) int { return strings.Compare(a.Name, b.Name) })
}

var catalogue = map[string]*Function{}

func add(kind FunctionKind, result func([]arrow.DataType) (arrow.DataType, error), names ...string) {
	for _, n := range names {
		if catalogue[n] != nil {
			panic("function defined twice: " + n)
		}
		catalogue[n] = &Function{Name: n, Kind: kind, Result: result}
	}
}

func partial(test func([]arrow.DataType) bool, names ...string) {
	for _, n := range names {
		catalogue[n].Partial = test
	}
}

func always([]arrow.DataType) bool { return true }

func integerOrDecimal(args []arrow.DataType) bool {
	for _, a := range args {
		if arrow.IsFloating(a.ID()) {
			return false
		}
	}
	return true
}

func returns(t arrow.DataType, min, max int) func([]arrow.DataType) (arrow.DataType, error) {
	return func(args []arrow.DataType) (arrow.DataType, error) {
		if len(args) < min || (max >= 0 && len(args) > max) {
			return nil, fmt.Errorf("wrong number of arguments: %d", len(args))
		}
		return t, nil
	}
}

// first is the type of the first argument.
func first(min, max int) func([]arrow.DataType) (arrow.DataType, error) {
	return func(args []arrow.DataType) (arrow.DataType, error) {
		if len(args) < min || len(args) == 0 || (max >= 0 && len(args) > max) {
			return nil, fmt.Errorf("wrong number of arguments: %d", len(args))
		}
		return args[0], nil
	}
}

func common(min int) func([]arrow.DataType) (arrow.DataType, error) {
	return func(args []arrow.DataType) (arrow.DataType, error) {
		if len(args) < min {
			return nil, fmt.Errorf("wrong number of arguments: %d", len(args))
		}
		t := args[0]
		for _, a := range args[1:] {
			var ok bool
			if t, ok = CommonType(t, a); !ok {
				return nil, fmt.Errorf("no common type")
			}
		}
		return t, nil
	}
}

func init() {
	S, A, W := ScalarFunction, AggregateFunction, WindowFunction

	// Logic and comparison. Both sides of a comparison have one type; eq is
	// binary comparison for text.
	add(S, returns(Bool, 2, -1), "and", "or")
	add(S, returns(Bool, 1, 1), "not", "is_null", "is_nan", "is_true", "is_false")
	add(S, returns(Bool, 2, 2), "eq", "ne", "lt", "le", "gt", "ge", "null_safe_eq", "xor")
	add(S, common(1), "coalesce", "greatest", "least") // greatest and least: NULL when any argument is
	add(S, first(2, 2), "nullif")

	// Arithmetic. Operands are BIGINT, DOUBLE or DECIMAL; division by zero is
	// NULL; integer and decimal overflow is an error.
	add(S, arithmetic, "add", "sub")
	add(S, product, "mul")
	add(S, divide, "div") // MySQL's /: decimal scale + 4, or double
	add(S, returns(Int64, 2, 2), "int_div")
	add(S, common(2), "mod")
	add(S, magnitude, "neg", "abs")
	add(S, returns(Int64, 1, 1), "sign")
	add(S, integral, "floor", "ceil")
	// Exact numbers round half away from zero, floats half to even.
	add(S, rounding, "round", "truncate")
	add(S, returns(Float64, 1, 1), "sqrt", "exp", "ln", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "cot", "degrees", "radians")
	add(S, returns(Float64, 2, 2), "pow", "atan2", "log")
	add(S, returns(Float64, 0, 0), "pi")
	add(S, returns(Float64, 0, 1), "rand")
	catalogue["rand"].Volatile = true
	// Floats overflow too: MySQL has no infinity.
	partial(always, "add", "sub", "mul", "int_div", "div", "mod", "round", "truncate", "exp", "pow", "cot", "degrees")
	partial(integerOrDecimal, "neg", "abs", "floor", "ceil")

	// Text. Positions and lengths count code points; substr(s, 0) is ''.
	add(S, returns(String, 1, -1), "concat") // NULL when any argument is
	add(S, returns(String, 2, -1), "concat_ws")
	add(S, returns(String, 1, 1), "lower", "upper", "reverse", "hex", "md5", "sha1", "soundex", "quote", "unhex_text")
	add(S, returns(String, 1, 2), "trim", "ltrim", "rtrim")
	add(S, returns(String, 2, 2), "left", "right", "repeat", "sha2")
	add(S, returns(String, 2, 3), "substr")
	add(S, returns(String, 3, 3), "replace", "lpad", "rpad", "substring_index", "translate")
	add(S, returns(String, 4, 4), "insert_text")
	add(S, returns(String, 1, 1), "space")
	add(S, returns(Int64, 1, 1), "char_length", "byte_length", "bit_length", "ascii", "ord")
	add(S, returns(Int64, 2, 3), "locate") // locate(needle, hay[, from]), binary comparison
	add(S, returns(Int64, 2, -1), "field")
	add(S, returns(Int64, 2, 2), "strcmp", "find_in_set")
	add(S, returns(Bool, 2, 2), "regexp_like", "starts_with", "ends_with", "contains")
	add(S, returns(String, 1, 2), "format_number")
	partial(always, "concat", "concat_ws", "replace", "hex", "insert_text")         // size limits
	partial(always, "repeat", "space", "lpad", "rpad", "regexp_like", "unhex_text") // size limits, bad pattern

	// Bytes and digests: sha256 and hmac_sha256 give 32 bytes; hmac_sha256's
	// second argument is a literal key.
	add(S, returns(Binary, 1, 1), "utf8_bytes", "unhex", "sha256", "int_bytes_le", "long_bytes_le")
	add(S, returns(Binary, 2, 2), "hmac_sha256", "bytes_concat", "bytes_first")
	add(S, returns(Int32, 1, 1), "bytes_int_le")
	add(S, returns(Int64, 1, 1), "bytes_long_le")
	add(S, returns(String, 1, 1), "hex_lower") // binary to lower-case hex
	partial(always, "unhex")

	// Masks of text by character class: masks.Classes and masks.Alphanum are their
	// definitions. mask_classes(s, upper, lower, digit, other, keep_first,
	// keep_last, whole_when_short): all but s are literals (four texts, two BIGINT,
	// a boolean); '' keeps the class as it is. mask_ascii_classes takes the same.
	add(S, returns(String, 8, 8), "mask_classes", "mask_ascii_classes")
	// mask_alphanum(s, keep_first, keep_last): Iceberg's rule; BIGINT literals.
	add(S, returns(String, 3, 3), "mask_alphanum")

	// Dates. Parts and arithmetic take DATE or a timestamp.
	add(S, returns(Int64, 1, 1), "year", "quarter", "month", "day", "hour", "minute", "second", "microsecond", "dayofweek", "weekday", "dayofyear", "to_days", "unix_timestamp", "time_to_sec")
	add(S, returns(Int64, 1, 2), "week", "yearweek")
	add(S, returns(String, 1, 1), "dayname", "monthname")
	add(S, returns(String, 2, 2), "date_format") // second argument is a literal
	add(S, returns(Date, 1, 1), "last_day", "to_date", "from_days")
	add(S, returns(Date, 2, 2), "makedate")
	add(S, returns(Int64, 2, 2), "datediff")
	add(S, returns(Int64, 3, 3), "timestampdiff") // unit literal, from, to
	// date_add(value, amount, unit literal); interval arithmetic with MySQL's
	// end-of-month rule. A DATE stays DATE for units of a day and more.
	add(S, dateAdd, "date_add")
	add(S, returns(Timestamp, 1, 1), "from_unixtime", "to_timestamp")
	add(S, truncated, "date_trunc") // date_trunc(unit literal, value): the type of value
	add(S, returns(Date, 2, 2), "str_to_date_date")
	add(S, returns(Timestamp, 2, 2), "str_to_date_timestamp")
	partial(always, "date_add", "from_days", "makedate", "from_unixtime")

	// JSON. to_json turns a struct, list or map into JSON text.
	add(S, returns(JSON, 1, 1), "to_json", "parse_json")
	add(S, returns(JSON, 2, -1), "json_extract")
	add(S, returns(String, 1, 1), "json_unquote", "json_type")
	add(S, returns(Int64, 1, 2), "json_length")
	add(S, returns(JSON, 1, 2), "json_keys")
	add(S, returns(Bool, 1, 1), "json_valid")
	add(S, returns(Bool, 2, 3), "json_contains", "json_contains_path")
	add(S, returns(JSON, 0, -1), "json_object", "json_array")
	partial(always, "parse_json", "json_extract", "json_unquote", "json_type", "json_length", "json_keys", "json_contains", "json_contains_path", "json_object", "json_array")

	// Nested values, for masks inside a struct: struct_field(s, name literal),
	// struct_set(s, name literal, value).
	// struct_set is NULL where s is.
	add(S, structField, "struct_field")
	add(S, first(3, 3), "struct_set")
	// make_struct(value of each field in order), empty_list(), empty_map(): made by
	// NewStruct and NewEmpty, which set the type.
	add(S, untyped, "make_struct", "empty_list", "empty_map")

	// Iceberg's transforms; package transform is their definition. No statement can
	// name them: conditions of a catalog do. Of a date or timestamp, an instant in
	// UTC: iceberg_year, iceberg_month, iceberg_day, iceberg_hour (no date).
	// iceberg_bucket(n, x), iceberg_truncate(w, x): BIGINT literals above 0.
	add(S, returns(Int32, 1, 1), "iceberg_year", "iceberg_month", "iceberg_hour")
	add(S, returns(Date, 1, 1), "iceberg_day")
	add(S, returns(Int32, 2, 2), "iceberg_bucket")
	add(S, cut, "iceberg_truncate")
	partial(widest, "iceberg_truncate")

	// barrier(x) is x; no optimiser may move anything through it.
	add(S, first(1, 1), "barrier")

	add(A, returns(Int64, 0, 1), "count")
	add(A, sum, "sum")
	add(A, avg, "avg")
	add(A, first(1, 1), "min", "max", "any_value")
	add(A, returns(Float64, 1, 1), "stddev_pop", "stddev_samp", "var_pop", "var_samp")
	add(A, returns(String, 1, 1), "group_concat")
	add(A, returns(Int64, 1, 1), "bit_and", "bit_or", "bit_xor")
	add(A, returns(JSON, 1, 1), "json_arrayagg")
	add(A, returns(JSON, 2, 2), "json_objectagg")

	add(W, returns(Int64, 0, 0), "row_number", "rank", "dense_rank")
	add(W, returns(Int64, 1, 1), "ntile")
	add(W, returns(Float64, 0, 0), "percent_rank", "cume_dist")
	add(W, first(1, 3), "lag", "lead")
	add(W, first(1, 1), "first_value", "last_value")
	add(W, first(2, 2), "nth_value")
}

// CommonType is the type that both can be converted to without loss, as MySQL
// chooses it for UNION, CASE and COALESCE: numbers widen, DATE becomes a
// timestamp beside one, NULL gives way. Text does not mix with other types here:
// bind inserts the cast that MySQL would make.
func CommonType(a, b arrow.DataType) (arrow.DataType, bool) {
	switch {
	case arrow.TypeEqual(a, b):
		return a, true
	case a.ID() == arrow.NULL:
		return b, true
	case b.ID() == arrow.NULL:
		return a, true
	case a.ID() == arrow.BOOL && IsNumeric(b):
		return CommonType(Int64, b)
	case b.ID() == arrow.BOOL && IsNumeric(a):
		return CommonType(a, Int64)
	case IsNumeric(a) && IsNumeric(b):
		if arrow.IsFloating(a.ID()) || arrow.IsFloating(b.ID()) {
			return Float64, true
		}
		if IsInteger(a) && IsInteger(b) {
			if a.ID() == arrow.UINT64 || b.ID() == arrow.UINT64 {
				return Decimal(20, 0), true
			}
			return Int64, true
		}
		pa, sa := DecimalParams(a)
		pb, sb := DecimalParams(b)
		s := max(sa, sb)
		return Decimal(min(38, max(pa-sa, pb-sb)+s), s), true
	case IsTemporal(a) && IsTemporal(b):
		ta, okA := a.(*arrow.TimestampType)
		tb, okB := b.(*arrow.TimestampType)
		switch {
		case okA && okB:
			if ta.Unit == arrow.Nanosecond || tb.Unit == arrow.Nanosecond {
				return TimestampNS, true
			}
			return Timestamp, true
		case okA:
			return a, true
		default:
			return b, true
		}
	}
	return nil, false
}

// DecimalParams is precision and scale of a decimal, and of an integer type seen
// as a decimal.
func DecimalParams(t arrow.DataType) (precision, scale int32) {
	switch t := t.(type) {
	case *arrow.Decimal128Type:
		return t.Precision, t.Scale
	case *arrow.Decimal256Type:
		return t.Precision, t.Scale
	}
	switch t.ID() {
	case arrow.INT8, arrow.UINT8:
		return 3, 0
	case arrow.INT16, arrow.UINT16:
		return 5, 0
	case arrow.INT32, arrow.UINT32:
		return 10, 0
	case arrow.UINT64:
		return 20, 0
	default:
		return 19, 0
	}
}

func numericArgs(args []arrow.DataType, n int) error {
	if len(args) != n {
		return fmt.Errorf("wrong number of arguments: %d", len(args))
	}
	for _, a := range args {
		if !IsNumeric(a) && a.ID() != arrow.BOOL && a.ID() != arrow.NULL {
			return fmt.Errorf("argument is not a number")
		}
	}
	return nil
}

func arithmetic(args []arrow.DataType) (arrow.DataType, error) {
	if err := numericArgs(args, 2); err != nil {
		return nil, err
	}
	t, _ := CommonType(args[0], args[1])
	switch {
	case t.ID() == arrow.BOOL || IsInteger(t) || t.ID() == arrow.NULL:
		return Int64, nil
	case arrow.IsFloating(t.ID()):
		return Float64, nil
	}
	pa, sa := DecimalParams(args[0])
	pb, sb := DecimalParams(args[1])
	scale := max(sa, sb)
	return Decimal(min(38, max(pa-sa, pb-sb)+scale+1), scale), nil
}

// product is the type of a * b: MySQL adds the scales, up to 30.
func product(args []arrow.DataType) (arrow.DataType, error) {
	t, err := arithmetic(args)
	if err != nil || !arrow.IsDecimal(t.ID()) {
		return t, err
	}
	pa, sa := DecimalParams(args[0])
	pb, sb := DecimalParams(args[1])
	return Decimal(min(38, pa+pb), min(30, sa+sb)), nil
}

// magnitude is the type of -a and abs(a).
func magnitude(args []arrow.DataType) (arrow.DataType, error) {
	if err := numericArgs(args, 1); err != nil {
		return nil, err
	}
	if IsInteger(args[0]) || args[0].ID() == arrow.BOOL || args[0].ID() == arrow.NULL {
		return Int64, nil
	}
	return args[0], nil
}

func divide(args []arrow.DataType) (arrow.DataType, error) {
	if err := numericArgs(args, 2); err != nil {
		return nil, err
	}
	for _, a := range args {
		if arrow.IsFloating(a.ID()) {
			return Float64, nil
		}
	}
	_, s := DecimalParams(args[0])
	return Decimal(38, min(30, s+4)), nil
}

func integral(args []arrow.DataType) (arrow.DataType, error) {
	if err := numericArgs(args, 1); err != nil {
		return nil, err
	}
	if arrow.IsFloating(args[0].ID()) {
		return Float64, nil
	}
	return Int64, nil
}

func rounding(args []arrow.DataType) (arrow.DataType, error) {
	if len(args) == 0 || len(args) > 2 {
		return nil, fmt.Errorf("wrong number of arguments: %d", len(args))
	}
	if arrow.IsFloating(args[0].ID()) {
		return Float64, nil
	}
	if IsInteger(args[0]) || args[0].ID() == arrow.BOOL {
		return Int64, nil
	}
	return args[0], nil // bind narrows the scale with a cast
}

func sum(args []arrow.DataType) (arrow.DataType, error) {
	if err := numericArgs(args, 1); err != nil {
		return nil, err
	}
	if arrow.IsFloating(args[0].ID()) {
		return Float64, nil
	}
	_, s := DecimalParams(args[0])
	return Decimal(38, s), nil
}

func avg(args []arrow.DataType) (arrow.DataType, error) {
	if err := numericArgs(args, 1); err != nil {
		return nil, err
	}
	if arrow.IsFloating(args[0].ID()) {
		return Float64, nil
	}
	_, s := DecimalParams(args[0])
	return Decimal(38, min(30, s+4)), nil
}

func dateAdd(args []arrow.DataType) (arrow.DataType, error) {
	if len(args) != 3 || !IsTemporal(args[0]) {
		return nil, fmt.Errorf("date_add takes a date or timestamp")
	}
	return args[0], nil // bind casts a DATE to a timestamp for units below a day
}

func truncated(args []arrow.DataType) (arrow.DataType, error) {
	if len(args) != 2 || !IsTemporal(args[1]) {
		return nil, fmt.Errorf("date_trunc takes a date or timestamp")
	}
	return args[1], nil
}

// cut is the type of iceberg_truncate: a decimal can need one digit more.
func cut(args []arrow.DataType) (arrow.DataType, error) {
	if len(args) != 2 {
		return nil, fmt.Errorf("wrong number of arguments: %d", len(args))
	}
	if d, ok := args[1].(*arrow.Decimal128Type); ok {
		return Decimal(38, d.Scale), nil
	}
	return args[1], nil
}

// widest: one digit more than the most there can be.
func widest(args []arrow.DataType) bool {
	d, ok := args[1].(*arrow.Decimal128Type)
	return ok && d.Precision == 38
}

func structField(args []arrow.DataType) (arrow.DataType, error) {
	// The name is a literal; NewStructField knows it and sets the type.
	return nil, fmt.Errorf("use NewStructField")
}

func untyped([]arrow.DataType) (arrow.DataType, error) {
	// The arguments do not tell the names of the fields or the type of elements.
	return nil, fmt.Errorf("use NewStruct or NewEmpty")
}

// NewStruct makes a struct of type t from the values of its fields, in order.
func NewStruct(t *arrow.StructType, values []Expr) (*Call, error) {
	if len(values) != t.NumFields() {
		return nil, fmt.Errorf("%d values for %d fields", len(values), t.NumFields())
	}
	for i, v := range values {
		if !arrow.TypeEqual(v.Type(), t.Field(i).Type) {
			return nil, fmt.Errorf("the value of field %d has another type", i)
		}
	}
	return &Call{Func: catalogue["make_struct"], Operands: values, Typ: t}, nil
}

// NewEmpty makes the list or map of type t without elements.
func NewEmpty(t arrow.DataType) (*Call, error) {
	switch t.ID() {
	case arrow.LIST, arrow.LARGE_LIST:
		return &Call{Func: catalogue["empty_list"], Typ: t}, nil
	case arrow.MAP:
		return &Call{Func: catalogue["empty_map"], Typ: t}, nil
	}
	return nil, fmt.Errorf("not a list or map")
}

// NewStructField reads one field of a struct.
func NewStructField(s Expr, name string) (*Call, error) {
	st, ok := s.Type().(*arrow.StructType)
	if !ok {
		return nil, fmt.Errorf("not a struct")
	}
	f, ok := st.FieldByName(name)
	if !ok {
		return nil, fmt.Errorf("no field of that name")
	}
	return &Call{Func: catalogue["struct_field"], Operands: []Expr{s, &Literal{Value: name, Typ: String}}, Typ: f.Type}, nil
}
