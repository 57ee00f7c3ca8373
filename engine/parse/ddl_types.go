package parse

import (
	"fmt"
	"strconv"
	"strings"

	"sqe/fault"
)

// MaxTypeNesting is how deep types may nest, and how many parts a name may have.
const MaxTypeNesting = 100

// MaxFields bounds the columns of a statement, those inside columns included.
const MaxFields = 10_000

// TypeKind is a type of the Iceberg specification.
type TypeKind string

// The types, by their names in the Iceberg specification.
const (
	TypeBoolean       TypeKind = "boolean"
	TypeInt           TypeKind = "int"
	TypeLong          TypeKind = "long"
	TypeFloat         TypeKind = "float"
	TypeDouble        TypeKind = "double"
	TypeDecimal       TypeKind = "decimal"
	TypeDate          TypeKind = "date"
	TypeTime          TypeKind = "time"
	TypeTimestamp     TypeKind = "timestamp"
	TypeTimestampTZ   TypeKind = "timestamptz"
	TypeTimestampNS   TypeKind = "timestamp_ns"
	TypeTimestampTZNS TypeKind = "timestamptz_ns"
	TypeString        TypeKind = "string"
	TypeUUID          TypeKind = "uuid"
	TypeFixed         TypeKind = "fixed"
	TypeBinary        TypeKind = "binary"
	TypeStruct        TypeKind = "struct"
	TypeList          TypeKind = "list"
	TypeMap           TypeKind = "map"
)

// Type is the type of a column.
type Type struct {
	Kind             TypeKind
	Precision, Scale int // of a decimal
	Length           int // of fixed, in bytes
	// Fields are those of a struct, "element" of a list, "key" and "value" of a
	// map.
	Fields []Field
}

// Field is a column, or a field inside one.
type Field struct {
	Name     string
	Type     Type
	Required bool // NOT NULL
	Comment  string
}

// String gives the type as the Iceberg specification writes it.
func (t Type) String() string {
	switch t.Kind {
	case TypeDecimal:
		return fmt.Sprintf("decimal(%d,%d)", t.Precision, t.Scale)
	case TypeFixed:
		return fmt.Sprintf("fixed[%d]", t.Length)
	case TypeStruct, TypeList, TypeMap:
		parts := make([]string, len(t.Fields))
		for i, f := range t.Fields {
			if parts[i] = f.Type.String(); t.Kind == TypeStruct {
				parts[i] = f.Name + ": " + parts[i]
			}
			if f.Required && (t.Kind != TypeMap || i > 0) {
				parts[i] += " not null"
			}
		}
		return string(t.Kind) + "<" + strings.Join(parts, ", ") + ">"
	}
	return string(t.Kind)
}

// plainTypes are the names of types without anything behind them but a width that
// means nothing.
var plainTypes = map[string]TypeKind{
	"boolean": TypeBoolean, "bool": TypeBoolean,
	"tinyint": TypeInt, "smallint": TypeInt, "mediumint": TypeInt, "int": TypeInt, "integer": TypeInt,
	"int1": TypeInt, "int2": TypeInt, "int3": TypeInt, "int4": TypeInt, "byte": TypeInt, "short": TypeInt,
	"bigint": TypeLong, "long": TypeLong, "int8": TypeLong,
	"date": TypeDate, "uuid": TypeUUID,
	"string": TypeString, "text": TypeString, "tinytext": TypeString, "mediumtext": TypeString, "longtext": TypeString, "clob": TypeString,
	"varchar": TypeString, "char": TypeString, "character": TypeString, "nchar": TypeString, "nvarchar": TypeString,
	"varbinary": TypeBinary, "blob": TypeBinary, "tinyblob": TypeBinary, "mediumblob": TypeBinary, "longblob": TypeBinary, "bytes": TypeBinary, "bytea": TypeBinary,
}

// The types that another product has and Iceberg, or SQE, has not.
var unknownTypes = map[string]string{
	"bit": "use BOOLEAN, BIGINT or BINARY(n)", "serial": "use BIGINT NOT NULL", "hugeint": "use DECIMAL(38,0)", "interval": "store a number of days or seconds",
	"variant": "use JSON, which stores text", "geometry": "store well-known text or binary", "geography": "store well-known text or binary",
	"point": "store well-known text or binary", "linestring": "store well-known text or binary", "polygon": "store well-known text or binary",
	"vector": "use ARRAY<FLOAT>",
}

const aType = "a type (INT, BIGINT, DOUBLE, DECIMAL(p,s), DATE, TIMESTAMP, STRING, STRUCT<...>, ...)"

// Warnings that types and column attributes give.
const (
	warnLength    = "lengths of text and binary columns are not enforced"
	warnUnsigned  = "UNSIGNED and ZEROFILL have no effect but a type wide enough for the values"
	warnEnum      = "ENUM and SET columns are text: their values are not enforced"
	warnJSON      = "JSON columns are text: that it is JSON is not enforced"
	warnCharset   = "CHARACTER SET and COLLATE have no effect: text is UTF-8 and compares byte by byte"
	warnYear      = "YEAR columns are INT"
	warnFloatSize = "the digits of FLOAT and DOUBLE are not enforced"
)

// typeReader reads types and notes what it ignores.
type typeReader struct {
	*parser
	fields   int
	warnings []string
	from     *Infile // of CREATE TABLE ... FROM INFILE
}

// warn adds a warning once.
func (r *typeReader) warn(text string) {
	for _, w := range r.warnings {
		if w == text {
			return
		}
	}
	r.warnings = append(r.warnings, text)
}

// field counts a column or a field inside one.
func (r *typeReader) field() error {
	if r.fields++; r.fields > MaxFields {
		return fault.New(fault.Limit, "the statement has more than %d columns, those inside columns included", MaxFields)
	}
	return nil
}

// typ reads a type.
func (r *typeReader) typ(depth int) (Type, error) {
	if depth > MaxTypeNesting {
		return Type{}, fault.New(fault.Limit, "a type nests more than %d types", MaxTypeNesting)
	}
	if r.pos >= len(r.tokens) || r.tokens[r.pos].kind != word {
		return Type{}, r.expected(aType)
	}
	at, w := r.pos, r.word(0)
	if w == "national" {
		r.pos++
		w = r.word(0)
	}
	r.pos++
	switch w {
	case "struct", "row":
		return r.structType(depth)
	case "array", "list":
		t := Type{Kind: TypeList}
		err := r.elements(depth, &t, "element")
		return t, err
	case "map":
		t := Type{Kind: TypeMap}
		err := r.elements(depth, &t, "key", "value")
		if err == nil {
			t.Fields[0].Required = true
		}
		return t, err
	case "float", "double", "real", "float4", "float8":
		return r.floating(w)
	case "decimal", "dec", "numeric":
		return r.decimal(at)
	case "fixed":
		return r.fixed(at)
	case "binary":
		if r.at("(") {
			return r.fixed(at)
		}
		return Type{Kind: TypeBinary}, nil
	case "time", "timestamp", "timestamptz", "timestamp_ntz", "timestamp_ltz", "datetime", "timestamp_ns", "timestamptz_ns":
		return r.temporal(at, w)
	case "year":
		r.warn(warnYear)
		_, err := r.numbers(0, 1)
		return Type{Kind: TypeInt}, err
	case "json":
		r.warn(warnJSON)
		return Type{Kind: TypeString}, nil
	case "enum", "set":
		return r.enumeration()
	}
	if advice, ok := unknownTypes[w]; ok {
		return Type{}, refuse("the type "+strings.ToUpper(w), advice)
	}
	kind, ok := plainTypes[w]
	if !ok {
		r.pos = at
		return Type{}, r.expected(aType)
	}
	return r.plain(kind, w)
}

func (r *typeReader) plain(kind TypeKind, w string) (Type, error) {
	if (w == "char" || w == "character" || w == "nchar") && (r.accept("varying") || r.accept("large", "object")) {
		w = "varchar"
	}
	if w == "long" && r.accept("varchar") {
		return r.textAttributes(Type{Kind: TypeString})
	}
	var sizes []int
	switch kind {
	case TypeInt, TypeLong, TypeString, TypeBinary:
		var err error
		if sizes, err = r.numbers(0, 1); err != nil {
			return Type{}, err
		}
	}
	switch kind {
	case TypeInt, TypeLong:
		if w == "tinyint" && len(sizes) == 1 && sizes[0] == 1 {
			kind = TypeBoolean
		}
		unsigned := false
		for {
			switch {
			case r.accept("unsigned"), r.accept("zerofill"):
				unsigned = true
				continue
			case r.accept("signed"):
				continue
			}
			break
		}
		if unsigned {
			r.warn(warnUnsigned)
			switch {
			case kind == TypeLong:
				return Type{Kind: TypeDecimal, Precision: 20}, nil
			case kind == TypeBoolean:
				kind = TypeInt
			case w == "int" || w == "integer" || w == "int4":
				kind = TypeLong
			}
		}
	case TypeString:
		if len(sizes) > 0 {
			r.warn(warnLength)
		}
		return r.textAttributes(Type{Kind: TypeString})
	case TypeBinary:
		if len(sizes) > 0 {
			r.warn(warnLength)
		}
	}
	return Type{Kind: kind}, nil
}

// textAttributes passes CHARACTER SET and COLLATE behind a text type.
func (r *typeReader) textAttributes(t Type) (Type, error) {
	for {
		ok, err := r.charset()
		if err != nil || !ok {
			return t, err
		}
		r.warn(warnCharset)
	}
}

// charset passes [DEFAULT] CHARACTER SET [=] name, COLLATE [=] name and their
// short forms.
func (p *parser) charset() (bool, error) {
	i := 0
	if p.word(0) == "default" {
		i = 1
	}
	switch w := p.word(i); {
	case (w == "character" || w == "char") && p.word(i+1) == "set":
		p.pos += i + 2
	case w == "charset", w == "collate":
		p.pos += i + 1
	case i == 0 && (w == "ascii" || w == "unicode" || w == "byte"):
		p.pos++
		return true, nil
	default:
		return false, nil
	}
	p.acceptPunct("=")
	if p.accept("binary") {
		return true, nil
	}
	_, err := p.name("the name of a character set or collation")
	return true, err
}

// numbers reads (n, ...) with as many numbers as said; none when no bracket
// follows and none are needed.
func (p *parser) numbers(least, most int) ([]int, error) {
	if !p.at("(") && least == 0 {
		return nil, nil
	}
	if err := p.need("("); err != nil {
		return nil, err
	}
	var out []int
	for {
		n, err := p.integer("a number", 1<<31-1)
		if err != nil {
			return nil, err
		}
		if out = append(out, int(n)); len(out) < most && p.acceptPunct(",") {
			continue
		}
		if len(out) < least {
			return nil, p.expected(",")
		}
		return out, p.need(")")
	}
}

// integer reads a whole number from 0 to most.
func (p *parser) integer(what string, most int64) (int64, error) {
	if p.pos < len(p.tokens) && p.tokens[p.pos].kind == number {
		n, err := strconv.ParseInt(p.str(p.pos), 10, 64)
		if err == nil && n <= most {
			p.pos++
			return n, nil
		}
	}
	return 0, p.expected(what)
}

func (r *typeReader) decimal(at int) (Type, error) {
	n, err := r.numbers(0, 2)
	if err != nil {
		return Type{}, err
	}
	t := Type{Kind: TypeDecimal, Precision: 10}
	if len(n) > 0 {
		t.Precision = n[0]
	}
	if len(n) > 1 {
		t.Scale = n[1]
	}
	if t.Precision < 1 || t.Precision > 38 || t.Scale > t.Precision {
		return Type{}, syntaxAt(r.text, r.tokens[at].start, "a DECIMAL has 1 to 38 digits, and not more of them behind the point")
	}
	for r.accept("unsigned") || r.accept("zerofill") {
		r.warn(warnUnsigned)
	}
	return t, nil
}

func (r *typeReader) fixed(at int) (Type, error) {
	n, err := r.numbers(1, 2)
	if err != nil {
		return Type{}, err
	}
	if len(n) == 2 || n[0] < 1 {
		return Type{}, syntaxAt(r.text, r.tokens[at].start, "FIXED and BINARY have one length in bytes, at least 1; a number with digits behind the point is DECIMAL(p,s)")
	}
	return Type{Kind: TypeFixed, Length: n[0]}, nil
}

func (r *typeReader) floating(w string) (Type, error) {
	t := Type{Kind: TypeDouble}
	if w == "float" || w == "float4" {
		t.Kind = TypeFloat
	}
	if w == "double" {
		r.accept("precision")
	}
	n, err := r.numbers(0, 2)
	if err != nil {
		return Type{}, err
	}
	switch {
	case len(n) == 2:
		r.warn(warnFloatSize)
	case len(n) == 1 && w == "float" && n[0] > 24:
		t.Kind = TypeDouble
	}
	for r.accept("unsigned") || r.accept("zerofill") {
		r.warn(warnUnsigned)
	}
	return t, nil
}

func (r *typeReader) temporal(at int, w string) (Type, error) {
	n, err := r.numbers(0, 1)
	if err != nil {
		return Type{}, err
	}
	digits := 6
	if len(n) == 1 {
		digits = n[0]
	}
	zone := w == "timestamptz" || w == "timestamp_ltz" || w == "timestamptz_ns"
	if w == "timestamp" || w == "time" {
		switch {
		case r.accept("with", "time", "zone"), r.accept("with", "local", "time", "zone"):
			zone = true
		case r.accept("without", "time", "zone"):
		}
	}
	nano := strings.HasSuffix(w, "_ns") || digits > 6
	switch {
	case digits > 9, w == "time" && digits > 6:
		return Type{}, syntaxAt(r.text, r.tokens[at].start, "a TIME has at most 6 digits of a second, a TIMESTAMP 9")
	case w == "time" && zone:
		return Type{}, refuse("TIME WITH TIME ZONE", "use TIME, or TIMESTAMP WITH TIME ZONE")
	case w == "time":
		return Type{Kind: TypeTime}, nil
	case zone && nano:
		return Type{Kind: TypeTimestampTZNS}, nil
	case zone:
		return Type{Kind: TypeTimestampTZ}, nil
	case nano:
		return Type{Kind: TypeTimestampNS}, nil
	}
	return Type{Kind: TypeTimestamp}, nil
}

// enumeration passes the values of ENUM or SET.
func (r *typeReader) enumeration() (Type, error) {
	r.warn(warnEnum)
	if err := r.need("("); err != nil {
		return Type{}, err
	}
	for n := 1; ; n++ {
		if _, err := r.textValue("a value in quotes"); err != nil {
			return Type{}, err
		}
		if more, err := r.more(n); err != nil {
			return Type{}, err
		} else if !more {
			break
		}
	}
	if err := r.need(")"); err != nil {
		return Type{}, err
	}
	return r.textAttributes(Type{Kind: TypeString})
}

// open reads < or ( and returns the bracket that closes it.
func (r *typeReader) open() (string, error) {
	switch {
	case r.acceptPunct("<"):
		return ">", nil
	case r.acceptPunct("("):
		return ")", nil
	}
	return "", r.expected("< and the types inside")
}

// shut takes the closing bracket, also when it is the first half of >>.
func (r *typeReader) shut(bracket string) error {
	if bracket == ">" && r.at(">>") {
		r.tokens[r.pos].start++
		r.tokens[r.pos].after = true
		return nil
	}
	if !r.acceptPunct(bracket) {
		return r.expected(", or " + bracket)
	}
	return nil
}

// elements reads <type, ...> with a type for each name.
func (r *typeReader) elements(depth int, t *Type, names ...string) error {
	bracket, err := r.open()
	if err != nil {
		return err
	}
	for i, name := range names {
		if i > 0 {
			if err := r.need(","); err != nil {
				return err
			}
		}
		if err := r.field(); err != nil {
			return err
		}
		f := Field{Name: name}
		if f.Type, err = r.typ(depth + 1); err != nil {
			return err
		}
		f.Required = r.accept("not", "null")
		t.Fields = append(t.Fields, f)
	}
	return r.shut(bracket)
}

// structType reads <name[:] type [NOT NULL] [COMMENT 'text'], ...>.
func (r *typeReader) structType(depth int) (Type, error) {
	t := Type{Kind: TypeStruct}
	bracket, err := r.open()
	if err != nil {
		return t, err
	}
	seen := map[string]bool{}
	for {
		if err := r.field(); err != nil {
			return t, err
		}
		at := r.pos
		f := Field{}
		if f.Name, err = r.identPart("the name of a field"); err != nil {
			return t, err
		}
		if seen[strings.ToLower(f.Name)] {
			return t, syntaxAt(r.text, r.tokens[at].start, "the field stands twice")
		}
		seen[strings.ToLower(f.Name)] = true
		r.acceptPunct(":")
		if f.Type, err = r.typ(depth + 1); err != nil {
			return t, err
		}
		f.Required = r.accept("not", "null")
		if !f.Required {
			r.accept("null")
		}
		if r.accept("comment") {
			if f.Comment, err = r.textValue("a comment in quotes"); err != nil {
				return t, err
			}
		}
		t.Fields = append(t.Fields, f)
		if !r.acceptPunct(",") {
			return t, r.shut(bracket)
		}
	}
}
