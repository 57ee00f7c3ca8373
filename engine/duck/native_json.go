package duck

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// badJSON fails the query: the text of the error is MySQL's, without the value.
func badJSON() { panic(nativeError(jsonMark + "text")) }

// parseJSON reads one JSON document; numbers keep their text.
func parseJSON(b []byte) any {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		badJSON()
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		badJSON()
	}
	return v
}

func jsonTypeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case bool:
		return "BOOLEAN"
	case string:
		return "STRING"
	case []any:
		return "ARRAY"
	case map[string]any:
		return "OBJECT"
	case json.Number:
		if !strings.ContainsAny(v.String(), ".eE") {
			if _, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
				return "INTEGER"
			}
			if _, err := strconv.ParseUint(v.String(), 10, 64); err == nil {
				return "UNSIGNED INTEGER"
			}
		}
	}
	return "DOUBLE"
}

// jsonKeys are the keys in MySQL's order: by length, then by bytes.
func jsonKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return keys
}

func appendJSONString(dst []byte, s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		badJSON()
	}
	return append(dst, bytes.TrimRight(b.Bytes(), "\n")...)
}

func jsonEqual(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		n, ok := b.(json.Number)
		if !ok {
			return false
		}
		x, okX := new(big.Rat).SetString(a.String())
		y, okY := new(big.Rat).SetString(n.String())
		return okX && okY && x.Cmp(y) == 0
	case []any:
		l, ok := b.([]any)
		return ok && slices.EqualFunc(a, l, jsonEqual)
	case map[string]any:
		m, ok := b.(map[string]any)
		if !ok || len(a) != len(m) {
			return false
		}
		for k, v := range a {
			w, ok := m[k]
			if !ok || !jsonEqual(v, w) {
				return false
			}
		}
		return true
	}
	return a == b
}

// jsonContains is MySQL's JSON_CONTAINS.
func jsonContains(target, candidate any) bool {
	if list, ok := target.([]any); ok {
		if want, ok := candidate.([]any); ok {
			for _, w := range want {
				if !slices.ContainsFunc(list, func(v any) bool { return jsonContains(v, w) }) {
					return false
				}
			}
			return true
		}
		return slices.ContainsFunc(list, func(v any) bool { return jsonContains(v, candidate) })
	}
	if m, ok := target.(map[string]any); ok {
		want, ok := candidate.(map[string]any)
		if !ok {
			return false
		}
		for k, w := range want {
			v, ok := m[k]
			if !ok || !jsonContains(v, w) {
				return false
			}
		}
		return true
	}
	switch candidate.(type) {
	case []any, map[string]any:
		return false
	}
	return jsonEqual(target, candidate)
}

// pathStep is .name (name) or [n] (index).
type pathStep struct {
	name  string
	index int // -1 for a name
}

// parsePath reads $, .name, ."name" and [n].
func parsePath(p string) ([]pathStep, bool) {
	if !strings.HasPrefix(p, "$") {
		return nil, false
	}
	p = p[1:]
	var steps []pathStep
	for p != "" {
		switch {
		case strings.HasPrefix(p, `."`):
			end := strings.IndexByte(p[2:], '"')
			if end < 0 || strings.ContainsRune(p[2:2+end], '\\') {
				return nil, false
			}
			steps = append(steps, pathStep{name: p[2 : 2+end], index: -1})
			p = p[end+3:]
		case p[0] == '.':
			n := 1
			for n < len(p) && (alphanumeric(rune(p[n])) || p[n] == '_' || p[n] == '$') {
				n++
			}
			if n == 1 || ('0' <= p[1] && p[1] <= '9') {
				return nil, false
			}
			steps = append(steps, pathStep{name: p[1:n], index: -1})
			p = p[n:]
		case p[0] == '[':
			end := strings.IndexByte(p, ']')
			if end < 0 {
				return nil, false
			}
			n, err := strconv.ParseUint(p[1:end], 10, 31)
			if err != nil {
				return nil, false
			}
			steps = append(steps, pathStep{index: int(n)})
			p = p[end+1:]
		default:
			return nil, false
		}
	}
	return steps, true
}

func simplePath(p string) bool {
	_, ok := parsePath(p)
	return ok && strings.IndexByte(p, 0) < 0
}

// jsonAt is the raw text of the value at a path; ok is false when there is none.
func jsonAt(b []byte, steps []pathStep) (json.RawMessage, bool) {
	v := json.RawMessage(b)
	for _, s := range steps {
		if s.index >= 0 {
			var list []json.RawMessage
			if json.Unmarshal(v, &list) != nil || len(bytes.TrimSpace(v)) == 0 || bytes.TrimSpace(v)[0] != '[' {
				if s.index == 0 && json.Valid(v) {
					continue // a value that is no array is its own first element
				}
				return nil, false
			}
			if s.index >= len(list) {
				return nil, false
			}
			v = list[s.index]
			continue
		}
		var m map[string]json.RawMessage
		if json.Unmarshal(v, &m) != nil {
			return nil, false
		}
		w, ok := m[s.name]
		if !ok {
			return nil, false
		}
		v = w
	}
	return v, true
}

func init() {
	register("json_checked", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		b := in[0].bytes(i)
		if !json.Valid(b) {
			badJSON()
		}
		return append(dst, b...), true
	}), textType, textType)
	register("json_unquote", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		b := in[0].bytes(i)
		if len(b) < 2 || b[0] != '"' || b[len(b)-1] != '"' {
			return append(dst, b...), true
		}
		var s string
		if json.Unmarshal(b, &s) != nil {
			badJSON()
		}
		return append(dst, s...), true
	}), textType, textType)
	register("json_type", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		return append(dst, jsonTypeName(parseJSON(in[0].bytes(i)))...), true
	}), textType, textType)
	register("json_extract", func(in []vector, out *output) {
		var steps []pathStep
		textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
			if steps == nil {
				// The path is a constant of the query.
				steps, _ = parsePath(strings.Clone(in[1].string(i)))
			}
			b := in[0].bytes(i)
			if !json.Valid(b) {
				badJSON()
			}
			v, ok := jsonAt(b, steps)
			return append(dst, v...), ok
		})(in, out)
	}, textType, textType, textType)
	register("json_length", rows(func(in []vector, out *output, i int) {
		n := 1
		switch v := parseJSON(in[0].bytes(i)).(type) {
		case []any:
			n = len(v)
		case map[string]any:
			n = len(v)
		}
		set(out, i, int64(n))
	}), longType, textType)
	register("json_keys", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		m, ok := parseJSON(in[0].bytes(i)).(map[string]any)
		if !ok {
			return dst, false
		}
		dst = append(dst, '[')
		for k, key := range jsonKeys(m) {
			if k > 0 {
				dst = append(dst, ", "...)
			}
			dst = appendJSONString(dst, key)
		}
		return append(dst, ']'), true
	}), textType, textType)
	register("json_contains", rows(func(in []vector, out *output, i int) {
		set(out, i, jsonContains(parseJSON(in[0].bytes(i)), parseJSON(in[1].bytes(i))))
	}), boolType, textType, textType)
}
