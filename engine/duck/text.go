package duck

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/fault"
	"sqe/plan"
)

// onText makes a scalar whose operands are all text.
func onText(format func(a []string) string) scalar {
	return func(c *compiler, e *plan.Call) (string, error) {
		a, err := c.texts(e)
		if err != nil {
			return "", err
		}
		return format(a), nil
	}
}

// onTextAndNumbers makes a scalar whose first operands are text and whose
// operands from numbers on are integers.
func onTextAndNumbers(name string, isNumber func(i int) bool) scalar {
	return func(c *compiler, e *plan.Call) (string, error) {
		args := make([]string, len(e.Operands))
		for i := range args {
			var err error
			if isNumber(i) {
				args[i], err = c.number(e, i, plan.Int64)
			} else {
				args[i], err = c.text(e, i)
			}
			if err != nil {
				return "", err
			}
		}
		return native(name, args...), nil
	}
}

func initText() {
	for _, name := range []string{"concat", "concat_ws", "replace", "lower", "upper", "reverse", "soundex", "unhex_text"} {
		scalars[name] = onText(func(a []string) string { return native(name, a...) })
	}
	scalars["quote"] = onText(func(a []string) string { return "coalesce(" + native("quote", a...) + ", 'NULL')" })
	for _, name := range []string{"md5", "sha1"} {
		scalars[name] = func(c *compiler, e *plan.Call) (string, error) {
			if isBinary(e.Operands[0].Type()) {
				s, err := c.expr(e.Operands[0])
				return name + "(" + s + ")", err
			}
			s, err := c.text(e, 0)
			return name + "(" + s + ")", err
		}
	}
	scalars["sha2"] = func(c *compiler, e *plan.Call) (string, error) {
		s, err := c.bytes(e, 0)
		if err != nil {
			return "", err
		}
		n, err := c.number(e, 1, plan.Int64)
		return native("sha2", s, n), err
	}
	scalars["hex"] = func(c *compiler, e *plan.Call) (string, error) {
		t := e.Operands[0].Type()
		switch {
		case plan.IsInteger(t) && t.ID() != arrow.UINT64, t.ID() == arrow.BOOL:
			s, err := c.number(e, 0, plan.Int64)
			return native("hex_number", s), err
		case isBinary(t):
			s, err := c.expr(e.Operands[0])
			return native("hex", s), err
		case plan.IsString(t), isNull(t):
			s, err := c.text(e, 0)
			return native("hex", "encode("+s+")"), err
		}
		return "", refused(e)
	}
	for _, name := range []string{"trim", "ltrim", "rtrim"} {
		scalars[name] = onText(func(a []string) string {
			if len(a) == 1 {
				a = append(a, "' '")
			}
			return native(name, a...)
		})
	}
	second := func(i int) bool { return i == 1 }
	for _, name := range []string{"left", "right", "repeat", "lpad", "rpad"} {
		scalars[name] = onTextAndNumbers(name, second)
	}
	scalars["space"] = func(c *compiler, e *plan.Call) (string, error) {
		n, err := c.number(e, 0, plan.Int64)
		return native("repeat", "' '", n), err
	}
	scalars["substr"] = func(c *compiler, e *plan.Call) (string, error) {
		s, err := onTextAndNumbers("substr", func(i int) bool { return i > 0 })(c, e)
		if err != nil || len(e.Operands) == 3 {
			return s, err
		}
		return strings.TrimSuffix(s, ")") + ", CAST('9223372036854775807' AS BIGINT))", nil
	}
	scalars["insert_text"] = onTextAndNumbers("insert_text", func(i int) bool { return i == 1 || i == 2 })
	scalars["substring_index"] = onTextAndNumbers("substring_index", func(i int) bool { return i == 2 })
	scalars["translate"] = onText(func(a []string) string { return "translate(" + strings.Join(a, ", ") + ")" })
	lengths := map[string]struct{ text, binary string }{
		"char_length": {"length(%)", "octet_length(%)"},
		"byte_length": {"strlen(%)", "octet_length(%)"},
		"bit_length":  {"(strlen(%) * 8)", "(octet_length(%) * 8)"},
	}
	for name, f := range lengths {
		scalars[name] = func(c *compiler, e *plan.Call) (string, error) {
			if isBinary(e.Operands[0].Type()) {
				s, err := c.expr(e.Operands[0])
				return strings.Replace(f.binary, "%", s, 1), err
			}
			s, err := c.text(e, 0)
			return strings.Replace(f.text, "%", s, 1), err
		}
	}
	for _, name := range []string{"ascii", "ord"} {
		scalars[name] = onText(func(a []string) string { return native(name, a...) })
	}
	scalars["locate"] = func(c *compiler, e *plan.Call) (string, error) {
		s, err := onTextAndNumbers("locate", func(i int) bool { return i == 2 })(c, e)
		if err != nil || len(e.Operands) == 3 {
			return s, err
		}
		return strings.TrimSuffix(s, ")") + ", CAST('1' AS BIGINT))", nil
	}
	scalars["field"] = func(c *compiler, e *plan.Call) (string, error) {
		t, err := comparison(plan.Types(e.Operands)...)
		if err != nil {
			return "", err
		}
		x, err := c.as(e.Operands[0], t)
		if err != nil {
			return "", err
		}
		s := "CASE"
		for i, o := range e.Operands[1:] {
			v, err := c.as(o, t)
			if err != nil {
				return "", err
			}
			s += " WHEN " + x + " = " + v + " THEN " + itoa(i+1)
		}
		return cast(s+" ELSE 0 END", "BIGINT"), nil
	}
	scalars["strcmp"] = onText(func(a []string) string {
		return cast("CASE WHEN "+a[0]+" = "+a[1]+" THEN 0 WHEN "+a[0]+" < "+a[1]+" THEN -1 WHEN "+a[0]+" > "+a[1]+" THEN 1 END", "BIGINT")
	})
	scalars["find_in_set"] = onText(func(a []string) string { return native("find_in_set", a...) })
	for _, name := range []string{"starts_with", "ends_with", "contains"} {
		scalars[name] = onText(func(a []string) string { return name + "(" + strings.Join(a, ", ") + ")" })
	}
	scalars["regexp_like"] = func(c *compiler, e *plan.Call) (string, error) {
		p, err := constant[string](e, 1)
		if err != nil {
			return "", err
		}
		p, ok := portablePattern(p)
		if !ok {
			return "", fault.New(fault.Unsupported, "the regular expression cannot be computed: it uses more than literals, ., classes of single characters and ranges, groups, |, ^, $ and the quantifiers")
		}
		s, err := c.text(e, 0)
		if err != nil {
			return "", err
		}
		q, err := text(p)
		return "regexp_matches(" + s + ", " + q + ")", err
	}
	scalars["format_number"] = func(c *compiler, e *plan.Call) (string, error) {
		d := int64(0)
		if len(e.Operands) == 2 {
			var err error
			if d, err = constant[int64](e, 1); err != nil {
				return "", err
			}
		}
		d = max(0, min(d, 30))
		s, err := c.number(e, 0, plan.Decimal(38, int32(d)))
		return native("commas", cast(s, "VARCHAR")), err
	}

	scalars["utf8_bytes"] = onText(func(a []string) string { return "encode(" + a[0] + ")" })
	scalars["unhex"] = onText(func(a []string) string { return native("unhex", a...) })
	for _, name := range []string{"sha256", "hex_lower", "bytes_int_le", "bytes_long_le"} {
		scalars[name] = func(c *compiler, e *plan.Call) (string, error) {
			s, err := c.bytes(e, 0)
			return native(name, s), err
		}
	}
	scalars["int_bytes_le"] = func(c *compiler, e *plan.Call) (string, error) {
		s, err := c.number(e, 0, plan.Int32)
		return native("int_bytes_le", s), err
	}
	scalars["long_bytes_le"] = func(c *compiler, e *plan.Call) (string, error) {
		s, err := c.number(e, 0, plan.Int64)
		return native("long_bytes_le", s), err
	}
	scalars["bytes_concat"] = func(c *compiler, e *plan.Call) (string, error) {
		a, err := c.bytes(e, 0)
		if err != nil {
			return "", err
		}
		b, err := c.bytes(e, 1)
		return "(" + a + " || " + b + ")", err
	}
	scalars["bytes_first"] = func(c *compiler, e *plan.Call) (string, error) {
		n, err := constant[int64](e, 1)
		if err != nil {
			return "", err
		}
		s, err := c.bytes(e, 0)
		return native("bytes_first", s, cast(quote(itoa(int(n))), "BIGINT")), err
	}
	scalars["hmac_sha256"] = func(c *compiler, e *plan.Call) (string, error) {
		key, err := constant[[]byte](e, 1)
		if err != nil {
			return "", err
		}
		s, err := c.bytes(e, 0)
		return native("hmac_sha256", s, blob(key)), err
	}
	for _, name := range []string{"mask_classes", "mask_ascii_classes"} {
		scalars[name] = func(c *compiler, e *plan.Call) (string, error) { return c.maskClasses(name, e) }
	}
	scalars["mask_alphanum"] = func(c *compiler, e *plan.Call) (string, error) {
		s, err := c.text(e, 0)
		if err != nil {
			return "", err
		}
		counts, err := characterCounts(e, 1, 2)
		if err != nil {
			return "", err
		}
		return native("mask_alphanum", append([]string{s}, counts...)...), nil
	}
}

func (c *compiler) maskClasses(name string, e *plan.Call) (string, error) {
	s, err := c.text(e, 0)
	if err != nil {
		return "", err
	}
	args := []string{s}
	for i := 1; i <= 4; i++ {
		v, err := constant[string](e, i)
		if err != nil {
			return "", err
		}
		q, err := text(v)
		if err != nil {
			return "", err
		}
		args = append(args, q)
	}
	counts, err := characterCounts(e, 5, 6)
	if err != nil {
		return "", err
	}
	whole, err := constant[bool](e, 7)
	if err != nil {
		return "", err
	}
	return native(name, append(append(args, counts...), map[bool]string{true: "TRUE", false: "FALSE"}[whole])...), nil
}

// characterCounts are the operands from first to last, which are literals.
func characterCounts(e *plan.Call, first, last int) ([]string, error) {
	var out []string
	for i := first; i <= last; i++ {
		v, err := constant[int64](e, i)
		if err != nil {
			return nil, err
		}
		if v < 0 || v > 1<<30 {
			return nil, refused(e)
		}
		out = append(out, cast(quote(itoa(int(v))), "BIGINT"))
	}
	return out, nil
}

// bytes is an operand as a blob; text gives its UTF-8 bytes.
func (c *compiler) bytes(e *plan.Call, i int) (string, error) {
	t := e.Operands[i].Type()
	if isBinary(t) || isNull(t) {
		return c.as(e.Operands[i], plan.Binary)
	}
	s, err := c.text(e, i)
	return "encode(" + s + ")", err
}
