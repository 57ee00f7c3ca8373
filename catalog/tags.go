package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sqe/fault"
	"sqe/plan"
)

// The two table properties that hold the tags of a table. The tags in both count.
const (
	// TagsProperty is a JSON object from the Iceberg field id in decimal digits ("0"
	// is the table itself) to a list of tags, for example
	//
	//	{"3": [{"name": "PII", "attributes": {"level": "high"}, "column": "ssn", "schema": 0}]}
	//
	// Field ids and not names, so that a renamed column keeps its tags. "column" is
	// the name under which the tag stands in ColumnTagsProperty as well, and "schema"
	// the highest id of a schema then: names that fields bore until then are settled.
	// "inherited" marks a tag that may belong to another field (plan.Tag.Inherited),
	// "lent" one that does, and "carried" one that came with values from another field.
	TagsProperty = "sqe.tags"
	// ColumnTagsProperty is a JSON object from the name of a column (dotted for a
	// field inside one) to a list of names of tags, for example
	//
	//	{"ssn": ["PII"]}
	//
	// The Rust SQE reads and writes it.
	ColumnTagsProperty = "sqe.column-tags"
)

// Reserved reports whether a table property holds tags, so that it is changed by
// the statements for tags only, which ask who may do so.
func Reserved(key string) bool {
	key = strings.TrimSpace(key)
	return strings.EqualFold(key, TagsProperty) || strings.EqualFold(key, ColumnTagsProperty)
}

// storedTag is a tag in TagsProperty.
type storedTag struct {
	Name       string            `json:"name"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Column     string            `json:"column,omitempty"`
	Schema     *int              `json:"schema,omitempty"`
	Inherited  bool              `json:"inherited,omitempty"`
	Lent       bool              `json:"lent,omitempty"`
	Carried    bool              `json:"carried,omitempty"`
}

// columnEntry is one key of ColumnTagsProperty.
type columnEntry struct {
	column string
	tags   []string
}

// unreadable refuses a table: tags that cannot be read may protect something.
func unreadable(property, why string) error {
	return fault.New(fault.PolicyBroken, "The tags of the table cannot be read (%s); an administrator must correct the table property %s", why, property)
}

type member struct {
	key   string
	value json.RawMessage
}

var errNoObject = errors.New("not a JSON object, or a key of it stands twice")

// members reads a JSON object key by key, because a map would silently keep the
// last of two equal keys.
func members(text []byte) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errNoObject
	}
	var out []member
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		key, ok := t.(string)
		if err != nil || !ok || seen[key] {
			return nil, errNoObject
		}
		seen[key] = true
		m := member{key: key}
		if err := d.Decode(&m.value); err != nil {
			return nil, errNoObject
		}
		out = append(out, m)
	}
	if _, err := d.Token(); err != nil {
		return nil, errNoObject
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errNoObject
	}
	return out, nil
}

// list reads a JSON list; null is none.
func list(text json.RawMessage) ([]json.RawMessage, bool) {
	var out []json.RawMessage
	if err := json.Unmarshal(text, &out); err != nil || out == nil {
		return nil, false
	}
	return out, true
}

func text(raw json.RawMessage) (string, bool) {
	var s *string
	if err := json.Unmarshal(raw, &s); err != nil || s == nil {
		return "", false
	}
	return *s, true
}

func truth(raw json.RawMessage) (value, ok bool) {
	var b *bool
	if err := json.Unmarshal(raw, &b); err != nil || b == nil {
		return false, false
	}
	return *b, true
}

// parseTags reads the value of TagsProperty; lastColumn is the highest field id
// that the table ever assigned. A value that is not exactly of its form is
// fault.PolicyBroken.
func parseTags(value string, lastColumn int) (map[int][]storedTag, error) {
	entries, err := members([]byte(value))
	if err != nil {
		return nil, unreadable(TagsProperty, err.Error())
	}
	out := map[int][]storedTag{}
	for _, e := range entries {
		id, err := strconv.Atoi(e.key)
		if err != nil || strconv.Itoa(id) != e.key || id < 0 || id > lastColumn {
			return nil, unreadable(TagsProperty, "a key is not the id of a field")
		}
		tags, ok := list(e.value)
		if !ok {
			return nil, unreadable(TagsProperty, "a value is not a list of tags")
		}
		names := map[string]bool{}
		for _, raw := range tags {
			t, ok := parseTag(raw)
			if !ok || t.Name == "" || names[t.Name] {
				return nil, unreadable(TagsProperty, "a tag is not of the form that it must have, has no name or stands twice")
			}
			names[t.Name] = true
			out[id] = append(out[id], t)
		}
	}
	return out, nil
}

func parseTag(raw json.RawMessage) (t storedTag, ok bool) {
	parts, err := members(raw)
	if err != nil {
		return t, false
	}
	for _, p := range parts {
		ok = true
		switch p.key {
		case "name":
			t.Name, ok = text(p.value)
		case "column":
			t.Column, ok = text(p.value)
		case "schema":
			ok = json.Unmarshal(p.value, &t.Schema) == nil && t.Schema != nil
		case "inherited":
			t.Inherited, ok = truth(p.value)
		case "lent":
			t.Lent, ok = truth(p.value)
		case "carried":
			t.Carried, ok = truth(p.value)
		case "attributes":
			var attributes []member
			attributes, err = members(p.value)
			ok = err == nil
			for _, a := range attributes {
				if t.Attributes == nil {
					t.Attributes = map[string]string{}
				}
				v, isText := text(a.value)
				t.Attributes[a.key], ok = v, ok && isText
			}
		default:
			ok = false
		}
		if !ok {
			return t, false
		}
	}
	return t, ok
}

// parseColumnTags reads the value of ColumnTagsProperty.
func parseColumnTags(value string) ([]columnEntry, error) {
	entries, err := members([]byte(value))
	if err != nil {
		return nil, unreadable(ColumnTagsProperty, err.Error())
	}
	out := make([]columnEntry, 0, len(entries))
	for _, e := range entries {
		tags, ok := list(e.value)
		if !ok {
			return nil, unreadable(ColumnTagsProperty, "a value is not a list of names of tags")
		}
		c := columnEntry{column: e.key}
		for _, raw := range tags {
			name, ok := text(raw)
			if !ok || name == "" {
				return nil, unreadable(ColumnTagsProperty, "a tag has no name")
			}
			if !slices.Contains(c.tags, name) {
				c.tags = append(c.tags, name)
			}
		}
		out = append(out, c)
	}
	return out, nil
}

// FormatTags is a value of TagsProperty for a table that is being created.
func FormatTags(tags map[int][]plan.Tag) (string, error) {
	stored := map[int][]storedTag{}
	for id, list := range tags {
		for _, t := range list {
			stored[id] = append(stored[id], storedTag{Name: t.Name, Attributes: t.Attributes})
		}
	}
	return formatTags(stored)
}

// formatTags is the inverse of parseTags.
func formatTags(tags map[int][]storedTag) (string, error) {
	raw := map[string][]storedTag{}
	for id, list := range tags {
		if len(list) > 0 {
			raw[strconv.Itoa(id)] = list
		}
	}
	b, err := json.Marshal(raw)
	return string(b), err
}

// formatColumnTags is the inverse of parseColumnTags, with sorted keys.
func formatColumnTags(tags map[string][]string) (string, error) {
	tags = maps.Clone(tags)
	maps.DeleteFunc(tags, func(_ string, list []string) bool { return len(list) == 0 })
	b, err := json.Marshal(tags)
	return string(b), err
}
