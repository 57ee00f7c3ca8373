package config

import (
	"fmt"
	"path/filepath"
	"reflect"
	"sort"
	"strconv"
	"strings"
)

// loader decodes the tree of the file into the structs of Config, by their tags.
type loader struct {
	dir      string
	lines    map[string]int
	env      map[string]string // key -> environment variable that set it
	problems []Problem
}

func (l *loader) problem(key, format string, args ...any) {
	p := Problem{Key: key, Text: fmt.Sprintf(format, args...)}
	if name, ok := l.env[key]; ok {
		p.From = "environment variable " + name
	} else if line, ok := l.lines[key]; ok {
		p.From = fmt.Sprintf("line %d", line)
	}
	l.problems = append(l.problems, p)
}

// environmentPrefix starts the variables that override keys:
// SQE_<SECTION>__<KEY>, with _ for -, and SQE_<SECTION>__<NUMBER>__<KEY> for the
// sections that occur several times.
const environmentPrefix = "SQE_"

// environment puts the variables into the tree, as text.
func (l *loader) environment(tree map[string]any, environment []string) {
	l.env = map[string]string{}
	sorted := append([]string(nil), environment...)
	sort.Strings(sorted)
	for _, v := range sorted {
		name, value, _ := strings.Cut(v, "=")
		rest, ok := strings.CutPrefix(name, environmentPrefix)
		if !ok || !strings.Contains(rest, "__") {
			continue
		}
		parts := strings.Split(strings.ReplaceAll(strings.ToLower(rest), "__", "\x00"), "\x00")
		for i := range parts {
			parts[i] = strings.ReplaceAll(parts[i], "_", "-")
		}
		l.override(tree, name, parts, value)
	}
}

func (l *loader) override(tree map[string]any, variable string, parts []string, value string) {
	section := parts[0]
	fail := func(text string) {
		l.problems = append(l.problems, Problem{From: "environment variable " + variable, Text: text})
	}
	switch list := tree[section].(type) {
	case []map[string]any:
		if len(parts) != 3 {
			fail(fmt.Sprintf("the section %s occurs several times: write SQE_%s__0__KEY for the first", section, strings.ToUpper(section)))
			return
		}
		n, err := strconv.Atoi(parts[1])
		if err != nil || n < 0 || n >= len(list) {
			fail(fmt.Sprintf("there is no %s number %s in the file (the first is 0)", section, parts[1]))
			return
		}
		list[n][parts[2]] = fromEnvironment(value)
		l.env[fmt.Sprintf("%s[%d].%s", section, n, parts[2])] = variable
	case map[string]any, nil:
		if len(parts) != 2 {
			fail("names no key; write SQE_<SECTION>__<KEY>")
			return
		}
		m, _ := list.(map[string]any)
		if m == nil {
			m = map[string]any{}
			tree[section] = m
		}
		m[parts[1]] = fromEnvironment(value)
		l.env[section+"."+parts[1]] = variable
	default:
		fail(fmt.Sprintf("%s is not a section", section))
	}
}

// fromEnvironment is a value that is a text whatever the type of its key.
type fromEnvironment string

func (l *loader) decode(c *Config, tree map[string]any) {
	l.table("", reflect.ValueOf(c).Elem(), tree)
}

// table fills a struct. Every key of the tree must have a field.
func (l *loader) table(path string, into reflect.Value, tree map[string]any) {
	known := map[string]bool{}
	for _, f := range fields(into.Type()) {
		known[f.key] = true
		value, set := tree[f.key]
		key := join(path, f.key)
		field := into.FieldByIndex(f.index)
		switch {
		case f.section:
			l.section(key, field, value, set)
		case set:
			l.value(key, f, field, value)
		case f.required:
			// The place of a missing key is that of its section.
			l.problems = append(l.problems, l.missing(path, f))
		case f.def != "":
			l.value(key, f, field, fromEnvironment(f.def))
		}
	}
	keys := make([]string, 0, len(tree))
	for k := range tree {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		if !known[k] {
			l.problem(join(path, k), "is not a known key%s", suggestion(k, known))
		}
	}
}

func (l *loader) missing(path string, f field) Problem {
	p := Problem{Key: join(path, f.key), Text: "is missing: " + f.doc}
	if line, ok := l.lines[path]; ok {
		p.From = fmt.Sprintf("line %d", line)
	}
	return p
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// section fills a struct or a list of structs.
func (l *loader) section(key string, into reflect.Value, value any, set bool) {
	if into.Kind() == reflect.Struct {
		m, ok := value.(map[string]any)
		if set && !ok {
			l.problem(key, "must be a section: write [%s]", key)
			return
		}
		l.table(key, into, m)
		return
	}
	if !set {
		return
	}
	list, ok := value.([]map[string]any)
	if !ok {
		l.problem(key, "must be a section that may occur several times: write [[%s]]", key)
		return
	}
	out := reflect.MakeSlice(into.Type(), len(list), len(list))
	for i, m := range list {
		l.table(fmt.Sprintf("%s[%d]", key, i), out.Index(i), m)
	}
	into.Set(out)
}

// value fills one key.
func (l *loader) value(key string, f field, into reflect.Value, value any) {
	text, isText := value.(string)
	env, isEnv := value.(fromEnvironment)
	if isEnv {
		text, isText = string(env), true
	}
	want := func(what string) { l.problem(key, "must be %s", what) }
	switch p := into.Addr().Interface().(type) {
	case *Duration:
		if !isText {
			want(`a duration such as "10s"`)
			return
		}
		d, err := parseDuration(text)
		if err != nil {
			l.problem(key, "%s", err)
			return
		}
		low, _ := parseDuration(f.min)
		if d < low {
			l.problem(key, "must be at least %s", low)
		}
		*p = d
	case *Size:
		if !isText {
			want(`a number of bytes with a unit, such as "64MiB"`)
			return
		}
		s, err := parseSize(text)
		if err != nil {
			l.problem(key, "%s", err)
			return
		}
		low, _ := parseSize(f.min)
		if high, err := parseSize(f.max); s < low || err == nil && s > high {
			l.problem(key, "must be %s", bounds(f))
		}
		*p = s
	case *Path:
		if !isText {
			want("a path in quotes")
			return
		}
		if text != "" && !filepath.IsAbs(text) {
			text = filepath.Join(l.dir, text)
		}
		if text == "" && f.required {
			want("a path, and is empty")
		}
		*p = Path(text)
	case *Place:
		if !isText {
			want("a path or an address in quotes")
			return
		}
		if text != "" && !strings.Contains(text, "://") && !filepath.IsAbs(text) {
			text = filepath.Join(l.dir, text)
		}
		*p = Place(text)
	case *Secret:
		if !isText {
			want("a text in quotes")
			return
		}
		if text == "" && f.required {
			want("set, and is empty")
		}
		*p = Secret(text)
	case *string:
		if !isText {
			want("a text in quotes")
			return
		}
		if text == "" && f.required {
			want("set, and is empty")
		}
		if len(f.oneOf) > 0 && !contains(f.oneOf, text) {
			l.problem(key, "is %q and must be %s", text, alternatives(f.oneOf))
		}
		*p = text
	case *bool:
		b, ok := value.(bool)
		if isEnv {
			b, ok = text == "true", text == "true" || text == "false"
		}
		if !ok {
			want("true or false")
			return
		}
		*p = b
	case *int:
		n, ok := value.(int64)
		if isEnv {
			parsed, err := strconv.ParseInt(text, 10, 64)
			n, ok = parsed, err == nil
		}
		if !ok {
			want("a whole number")
			return
		}
		low, lerr := strconv.ParseInt(f.min, 10, 64)
		high, herr := strconv.ParseInt(f.max, 10, 64)
		if lerr == nil && n < low || herr == nil && n > high {
			l.problem(key, "must be %s", bounds(f))
		}
		*p = int(n)
	case *[]string:
		list, ok := texts(value)
		if isEnv {
			list, ok = splitList(text), true
		}
		if !ok {
			want(`a list of texts: ["a", "b"]`)
			return
		}
		*p = list
	case *map[string]string:
		m, ok := table(value)
		if !ok {
			want(`a table of texts: { key = "value" }`)
			return
		}
		*p = m
	default:
		panic(fmt.Sprintf("config: the key %s has the type %s, which has no decoder", key, into.Type()))
	}
}

func texts(value any) ([]string, bool) {
	list, ok := value.([]any)
	if !ok {
		return nil, false
	}
	out := make([]string, 0, len(list))
	for _, v := range list {
		s, ok := v.(string)
		if !ok {
			return nil, false
		}
		out = append(out, s)
	}
	return out, true
}

func splitList(s string) []string {
	var out []string
	for _, part := range strings.Split(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

func table(value any) (map[string]string, bool) {
	m, ok := value.(map[string]any)
	if !ok {
		return nil, false
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		s, ok := v.(string)
		if !ok {
			return nil, false
		}
		out[k] = s
	}
	return out, true
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// alternatives is `"a", "b" or "c"`.
func alternatives(list []string) string {
	var b strings.Builder
	for i, s := range list {
		switch {
		case i == 0:
		case i == len(list)-1:
			b.WriteString(" or ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(strconv.Quote(s))
	}
	return b.String()
}

func bounds(f field) string {
	switch {
	case f.max == "":
		return "at least " + f.min
	case f.min == "":
		return "at most " + f.max
	}
	return "between " + f.min + " and " + f.max
}

// suggestion names the known key that is nearest to a wrong one.
func suggestion(key string, known map[string]bool) string {
	best, at := "", 3
	names := make([]string, 0, len(known))
	for k := range known {
		names = append(names, k)
	}
	sort.Strings(names)
	for _, k := range names {
		if d := distance(strings.ReplaceAll(key, "_", "-"), k); d < at {
			best, at = k, d
		}
	}
	if best == "" {
		return "; docs/configuration.md lists them"
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// distance is the Levenshtein distance.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := last
			if a[i] != b[j] {
				cost++
			}
			last = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
