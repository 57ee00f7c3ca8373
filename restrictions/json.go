package restrictions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"
)

// object is a JSON object. Other nodes are nil, bool, json.Number, string and []any.
type object map[string]any

// Bounds of what is read: a hostile answer must not exhaust the stack.
const (
	deepest   = 200
	mostNodes = 200_000
)

// decode reads one JSON text strictly: objects without members of the same name, text
// that is text, nothing behind it.
func decode(raw []byte) (any, error) {
	switch {
	case !utf8.Valid(raw):
		return nil, errors.New("it is not valid UTF-8")
	case !json.Valid(raw):
		return nil, errors.New("it is not JSON")
	case loneSurrogate(raw):
		return nil, errors.New("a text holds half a character")
	}
	d := &decoder{json.NewDecoder(bytes.NewReader(raw)), 0}
	d.UseNumber()
	return d.node(0)
}

type decoder struct {
	*json.Decoder
	nodes int
}

func (d *decoder) node(depth int) (any, error) {
	d.nodes++
	if depth > deepest || d.nodes > mostNodes {
		return nil, fmt.Errorf("it is nested deeper than %d, or has more than %d parts", deepest, mostNodes)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			n, err := d.node(depth + 1)
			if err != nil {
				return nil, err
			}
			list = append(list, n)
		}
		_, err := d.Token()
		return list, err
	case json.Delim('{'):
		o := object{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			name := key.(string)
			if _, ok := o[name]; ok {
				return nil, fmt.Errorf("an object has two members %s", brief(name))
			}
			if o[name], err = d.node(depth + 1); err != nil {
				return nil, err
			}
		}
		_, err := d.Token()
		return o, err
	}
	return t, nil
}

// loneSurrogate finds an escape that is half of a pair; encoding/json would put
// another character in its place.
func loneSurrogate(raw []byte) bool {
	unit := func(i int) (uint64, bool) {
		if i+6 > len(raw) || raw[i] != '\\' || raw[i+1] != 'u' {
			return 0, false
		}
		n, err := strconv.ParseUint(string(raw[i+2:i+6]), 16, 32)
		return n, err == nil
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		n, ok := unit(i)
		switch {
		case !ok:
			i++ // the escaped character
		case n >= 0xd800 && n < 0xdc00:
			if low, ok := unit(i + 6); !ok || low < 0xdc00 || low > 0xdfff {
				return true
			}
			i += 11
		case n >= 0xdc00 && n <= 0xdfff:
			return true
		default:
			i += 5
		}
	}
	return false
}

// closed checks that an object has all members of must and no others but those of may.
func (o object) closed(must []string, may ...string) error {
	for _, m := range must {
		if _, ok := o[m]; !ok {
			return fmt.Errorf("an object lacks the member %s", brief(m))
		}
	}
	for k := range o {
		if !slices.Contains(must, k) && !slices.Contains(may, k) {
			return fmt.Errorf("an object has the unknown member %s", brief(k))
		}
	}
	return nil
}

// brief quotes a word of the catalog's for a reason.
func brief(s string) string {
	if len(s) > 40 {
		s = s[:40] + "..."
	}
	return strconv.Quote(s)
}

// whole is an integer of JSON, written as one.
func whole(n any) (int64, bool) {
	number, ok := n.(json.Number)
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseInt(number.String(), 10, 64)
	return v, err == nil
}
