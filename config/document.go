package config

import (
	"fmt"
	"reflect"
	"strings"
)

//go:generate go test -run TestDocument -update .

// field is what the tags of a field say.
type field struct {
	index    []int
	key      string
	def      string
	doc      string
	min, max string
	oneOf    []string
	required bool
	section  bool
	typ      reflect.Type
}

// fields lists the keys of a struct, in order.
func fields(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		sf := t.Field(i)
		key := sf.Tag.Get("key")
		if key == "" {
			continue
		}
		f := field{
			index: sf.Index, key: key, def: sf.Tag.Get("default"), doc: sf.Tag.Get("doc"), min: sf.Tag.Get("min"), max: sf.Tag.Get("max"),
			oneOf: strings.Fields(sf.Tag.Get("oneof")), required: sf.Tag.Get("required") == "true", typ: sf.Type,
		}
		elem := sf.Type
		if elem.Kind() == reflect.Slice {
			elem = elem.Elem()
		}
		f.section = elem.Kind() == reflect.Struct
		out = append(out, f)
	}
	return out
}

// kind names the type of a key for people.
func (f field) kind() string {
	switch reflect.Zero(f.typ).Interface().(type) {
	case Duration:
		return "duration"
	case Size:
		return "size"
	case Path:
		return "path"
	case Place:
		return "path or address"
	case Secret:
		return "secret"
	case bool:
		return "true or false"
	case int:
		return "number"
	case []string:
		return "list of texts"
	case map[string]string:
		return "table of texts"
	}
	return "text"
}

const preface = `# Configuration

<!-- Generated from the structs of package config: go generate ./config -->

SQE reads one TOML file: ` + "`sqe serve -c sqe.toml`" + `. ` + "`sqe check -c sqe.toml`" + ` reports everything that is wrong at once. A key
that is not listed here is an error.

- **duration**: a text such as ` + "`\"500ms\"`, `\"10s\"`, `\"1m30s\"` or `\"8h\"`" + `.
- **size**: a text such as ` + "`\"64MiB\"` or `\"1GiB\"` (also kB, MB, GB, KiB, TB, TiB, B)" + `.
- **path**: relative paths are relative to the folder of the file.
- **secret**: never printed, not in logs and not in error messages.

Every key can be set by an environment variable, which wins over the file: ` + "`SQE_<SECTION>__<KEY>`" + `, in capitals and with
` + "`_` for `-`" + `: ` + "`SQE_SERVER__MAX_CONNECTIONS=50`" + `. In sections that may occur several times the number comes between,
from 0: ` + "`SQE_USERS__0__PASSWORD_HASH=...`" + ` (the section must be in the file). A list is separated by commas. Tables of texts
cannot be set in this way.
`

// Document is docs/configuration.md.
func Document() string {
	var b strings.Builder
	b.WriteString(preface)
	for _, s := range fields(reflect.TypeFor[Config]()) {
		title, t := "["+s.key+"]", s.typ
		if t.Kind() == reflect.Slice {
			title, t = "["+title+"]", t.Elem()
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| key | default | unit | meaning |\n|---|---|---|---|\n", title, s.doc)
		for _, f := range fields(t) {
			def := "none"
			switch {
			case f.required:
				def = "required"
			case f.def != "" && quoted(f):
				def = "`\"" + f.def + "\"`"
			case f.def != "":
				def = "`" + f.def + "`"
			}
			meaning := strings.ReplaceAll(f.doc, "|", `\|`)
			if len(f.oneOf) > 1 {
				meaning += " One of " + alternatives(f.oneOf) + "."
			}
			if f.min != "" || f.max != "" {
				limits := bounds(f)
				meaning += " " + strings.ToUpper(limits[:1]) + limits[1:] + "."
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.key, def, f.kind(), meaning)
		}
	}
	return b.String()
}

// quoted reports whether the default is written in quotes in TOML.
func quoted(f field) bool {
	k := f.typ.Kind()
	return k == reflect.String || f.kind() == "duration" || f.kind() == "size"
}
