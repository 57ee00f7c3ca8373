package duck

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/fault"
	"sqe/plan"
)

// toJSON is a value as JSON text.
func toJSON(s string, from arrow.DataType, try bool) (string, error) {
	if plan.IsString(from) {
		if !try {
			return "", fault.New(fault.Unsupported, "text cannot be converted to JSON here")
		}
		return "CASE WHEN json_valid(" + s + ") THEN " + s + " END", nil
	}
	v, err := jsonValue(s, from)
	return "CASE WHEN " + s + " IS NOT NULL THEN cast(to_json(" + v + ") AS VARCHAR) END", err
}

// jsonValue is a value of which DuckDB's to_json makes what is documented:
// numbers and decimals as numbers, truth values as true and false, dates and
// times as text in UTC, binary as lower-case hexadecimal, UUID as text.
func jsonValue(s string, t arrow.DataType) (string, error) { return jsonValueAt(s, t, 0) }

// jsonValueAt is jsonValue inside so many lists and maps, whose elements need
// names of their own.
func jsonValueAt(s string, t arrow.DataType, depth int) (string, error) {
	e := "e" + itoa(depth)
	switch {
	case plan.IsJSON(t):
		return cast(s, "JSON"), nil
	case plan.IsUUID(t):
		return cast(s, "VARCHAR"), nil
	case isBinary(t):
		return "lower(hex(" + s + "))", nil
	case isTimestamp(t), t.ID() == arrow.TIME64:
		return toText(s, t)
	}
	if !needsText(t) {
		return s, nil
	}
	switch t := t.(type) {
	case *arrow.StructType:
		fields := ""
		for i, f := range t.Fields() {
			name, err := quoteName(f.Name)
			if err != nil {
				return "", err
			}
			v, err := jsonValueAt("struct_extract("+s+", "+quote(f.Name)+")", f.Type, depth)
			if err != nil {
				return "", err
			}
			if i > 0 {
				fields += ", "
			}
			fields += name + " := " + v
		}
		return "CASE WHEN " + s + " IS NOT NULL THEN struct_pack(" + fields + ") END", nil
	case *arrow.MapType:
		k, err := jsonValueAt(e+".key", t.KeyType(), depth+1)
		if err != nil {
			return "", err
		}
		v, err := jsonValueAt(e+".value", t.ItemType(), depth+1)
		if err != nil {
			return "", err
		}
		return "map_from_entries(list_transform(map_entries(" + s + "), lambda " + e + ": struct_pack(key := " + k + ", value := " + v + ")))", nil
	case arrow.ListLikeType:
		v, err := jsonValueAt(e, t.Elem(), depth+1)
		return "list_transform(" + s + ", lambda " + e + ": " + v + ")", err
	}
	return s, nil
}

// room has the first text among the values of a JSON array or object, which is each
// step-th of args, check that all of them have room together.
func (c *compiler) room(args []string, operands []plan.Expr, step int) error {
	first, texts := -1, []string(nil)
	for i := step - 1; i < len(args); i += step {
		if t := operands[i].Type(); !plan.IsString(t) && !plan.IsJSON(t) {
			continue
		}
		s, err := c.expr(operands[i])
		if err != nil {
			return err
		}
		if first < 0 {
			first = i
		}
		texts = append(texts, cast(s, "VARCHAR"))
	}
	if len(texts) < 2 {
		return nil
	}
	if args[first] = native("room", texts...); plan.IsJSON(operands[first].Type()) {
		args[first] = cast(args[first], "JSON")
	}
	return nil
}

// needsText reports whether a type holds something that DuckDB would not write
// as documented.
func needsText(t arrow.DataType) bool {
	switch t := t.(type) {
	case *arrow.StructType:
		for _, f := range t.Fields() {
			if needsText(f.Type) {
				return true
			}
		}
		return false
	case *arrow.MapType:
		return needsText(t.KeyType()) || needsText(t.ItemType())
	case arrow.ListLikeType:
		return needsText(t.Elem())
	}
	return plan.IsUUID(t) || isBinary(t) || isTimestamp(t) || t.ID() == arrow.TIME64
}

func initJSON() {
	scalars["to_json"] = func(c *compiler, e *plan.Call) (string, error) {
		s, err := c.expr(e.Operands[0])
		if err != nil {
			return "", err
		}
		t := e.Operands[0].Type()
		if plan.IsString(t) {
			return "CASE WHEN " + s + " IS NOT NULL THEN cast(to_json(" + s + ") AS VARCHAR) END", nil
		}
		return toJSON(s, t, false)
	}
	scalars["parse_json"] = func(c *compiler, e *plan.Call) (string, error) {
		s, err := c.document(e, 0)
		return native("json_checked", s), err
	}
	scalars["json_valid"] = func(c *compiler, e *plan.Call) (string, error) {
		s, err := c.document(e, 0)
		return "json_valid(" + s + ")", err
	}
	scalars["json_unquote"] = func(c *compiler, e *plan.Call) (string, error) {
		s, err := c.document(e, 0)
		return native("json_unquote", s), err
	}
	scalars["json_type"] = func(c *compiler, e *plan.Call) (string, error) {
		s, err := c.document(e, 0)
		return native("json_type", s), err
	}
	scalars["json_extract"] = func(c *compiler, e *plan.Call) (string, error) {
		if len(e.Operands) != 2 {
			return "", refused(e)
		}
		return c.extracted(e)
	}
	for _, name := range []string{"json_length", "json_keys"} {
		scalars[name] = func(c *compiler, e *plan.Call) (string, error) {
			s, err := c.document(e, 0)
			if len(e.Operands) == 2 {
				s, err = c.extracted(e)
			}
			return native(name, s), err
		}
	}
	scalars["json_contains"] = func(c *compiler, e *plan.Call) (string, error) {
		if len(e.Operands) != 2 {
			return "", refused(e)
		}
		a, err := c.document(e, 0)
		if err != nil {
			return "", err
		}
		b, err := c.document(e, 1)
		return native("json_contains", a, b), err
	}
	scalars["json_array"] = func(c *compiler, e *plan.Call) (string, error) {
		args := make([]string, len(e.Operands))
		for i, o := range e.Operands {
			s, err := c.expr(o)
			if err != nil {
				return "", err
			}
			if args[i], err = jsonValue(s, o.Type()); err != nil {
				return "", err
			}
		}
		if err := c.room(args, e.Operands, 1); err != nil {
			return "", err
		}
		return cast("json_array("+strings.Join(args, ", ")+")", "VARCHAR"), nil
	}
	scalars["json_object"] = func(c *compiler, e *plan.Call) (string, error) {
		if len(e.Operands)%2 != 0 {
			return "", refused(e)
		}
		args := make([]string, len(e.Operands))
		seen := map[string]bool{}
		for i, o := range e.Operands {
			if i%2 == 0 {
				k, err := constant[string](e, i)
				if err != nil {
					return "", err
				}
				if seen[k] {
					return "", refused(e)
				}
				seen[k] = true
				if args[i], err = text(k); err != nil {
					return "", err
				}
				continue
			}
			s, err := c.expr(o)
			if err != nil {
				return "", err
			}
			if args[i], err = jsonValue(s, o.Type()); err != nil {
				return "", err
			}
		}
		if err := c.room(args, e.Operands, 2); err != nil {
			return "", err
		}
		return cast("json_object("+strings.Join(args, ", ")+")", "VARCHAR"), nil
	}
	scalars["struct_field"] = func(c *compiler, e *plan.Call) (string, error) {
		st, ok := e.Operands[0].Type().(*arrow.StructType)
		name, err := constant[string](e, 1)
		if err != nil || !ok {
			return "", refused(e)
		}
		f, ok := st.FieldByName(name)
		if !ok {
			return "", refused(e)
		}
		s, err := c.expr(e.Operands[0])
		if err != nil {
			return "", err
		}
		return converted("struct_extract("+s+", "+quote(name)+")", f.Type, e.Typ)
	}
	scalars["struct_set"] = func(c *compiler, e *plan.Call) (string, error) {
		st, ok := e.Operands[0].Type().(*arrow.StructType)
		name, err := constant[string](e, 1)
		if err != nil || !ok {
			return "", refused(e)
		}
		s, err := c.expr(e.Operands[0])
		if err != nil {
			return "", err
		}
		found := false
		values := make([]string, st.NumFields())
		for i, f := range st.Fields() {
			if f.Name == name {
				found = true
				if values[i], err = c.as(e.Operands[2], f.Type); err != nil {
					return "", err
				}
				continue
			}
			values[i] = "struct_extract(" + s + ", " + quote(f.Name) + ")"
		}
		if !found {
			return "", refused(e)
		}
		p, err := structPack(st, values)
		if err != nil {
			return "", err
		}
		t, err := sqlType(e.Typ)
		return cast("CASE WHEN "+s+" IS NOT NULL THEN "+p+" END", t), err
	}
	scalars["make_struct"] = func(c *compiler, e *plan.Call) (string, error) {
		st, ok := e.Typ.(*arrow.StructType)
		if !ok || st.NumFields() != len(e.Operands) {
			return "", refused(e)
		}
		values := make([]string, len(e.Operands))
		for i, o := range e.Operands {
			var err error
			if values[i], err = c.as(o, st.Field(i).Type); err != nil {
				return "", err
			}
		}
		p, err := structPack(st, values)
		if err != nil {
			return "", err
		}
		t, err := sqlType(e.Typ)
		return cast(p, t), err
	}
	scalars["empty_list"] = func(_ *compiler, e *plan.Call) (string, error) {
		t, err := sqlType(e.Typ)
		return cast("[]", t), err
	}
	scalars["empty_map"] = func(_ *compiler, e *plan.Call) (string, error) {
		t, err := sqlType(e.Typ)
		return cast("MAP {}", t), err
	}
}

// structPack makes a struct. DuckDB ignores the case of field names, so that two
// that differ in nothing else cannot be told apart.
func structPack(st *arrow.StructType, values []string) (string, error) {
	seen := map[string]bool{}
	parts := make([]string, len(values))
	for i, f := range st.Fields() {
		k := strings.ToLower(f.Name)
		if seen[k] {
			return "", fault.New(fault.Unsupported, "a struct has two fields whose names differ only in case (%s)", f.Name)
		}
		seen[k] = true
		name, err := quoteName(f.Name)
		if err != nil {
			return "", err
		}
		parts[i] = name + " := " + values[i]
	}
	return "struct_pack(" + strings.Join(parts, ", ") + ")", nil
}

// document is an operand that is JSON text, or text that should be.
func (c *compiler) document(e *plan.Call, i int) (string, error) {
	t := e.Operands[i].Type()
	if !plan.IsJSON(t) && !plan.IsString(t) && !isNull(t) {
		return "", refused(e)
	}
	s, err := c.expr(e.Operands[i])
	return cast(s, "VARCHAR"), err
}

// extracted is the value at a path.
func (c *compiler) extracted(e *plan.Call) (string, error) {
	p, err := constant[string](e, 1)
	if err != nil {
		return "", err
	}
	if !simplePath(p) {
		return "", fault.New(fault.Unsupported, "the path of %s cannot be computed: it uses more than .name, .\"name\" and [n]", strings.ToUpper(e.Func.Name))
	}
	s, err := c.document(e, 0)
	if err != nil {
		return "", err
	}
	return native("json_extract", s, quote(p)), nil
}
