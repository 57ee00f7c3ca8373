package catalog

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"sqe/fault"
	"sqe/plan"
)

// TagsProperty is the table property that holds the tags of a table: a JSON
// object from the Iceberg field id in decimal digits ("0" is the table itself) to
// a list of tags, for example
//
//	{"3": [{"name": "PII", "attributes": {"level": "high"}}]}
//
// Field ids and not names, so that a renamed column keeps its tags and a new
// column with an old name has none.
const TagsProperty = "sqe.tags"

// ParseTags reads the value of TagsProperty; lastColumn is the highest field id
// that the table ever assigned. A value that is not exactly of that form is
// fault.PolicyBroken: tags that cannot be read may protect something.
func ParseTags(value string, lastColumn int) (map[int][]plan.Tag, error) {
	broken := func(why string) error {
		return fault.New(fault.PolicyBroken, "The tags of the table cannot be read (%s); an administrator must correct the table property %s", why, TagsProperty)
	}
	type tag struct {
		Name       string            `json:"name"`
		Attributes map[string]string `json:"attributes"`
	}
	d := json.NewDecoder(strings.NewReader(value))
	d.DisallowUnknownFields()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, broken("not a JSON object")
	}
	out := map[int][]plan.Tag{}
	seen := map[string]bool{}
	// Key by key, because a map would silently keep the last of two equal keys.
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, broken("not a JSON object")
		}
		text, _ := key.(string)
		id, err := strconv.Atoi(text)
		if err != nil || strconv.Itoa(id) != text || id < 0 || id > lastColumn || seen[text] {
			return nil, broken("a key is not the id of a field, or stands twice")
		}
		seen[text] = true
		var tags []tag
		if err := d.Decode(&tags); err != nil {
			return nil, broken("a value is not a list of tags")
		}
		names := map[string]bool{}
		for _, t := range tags {
			if t.Name == "" || names[t.Name] {
				return nil, broken("a tag has no name or stands twice")
			}
			names[t.Name] = true
			out[id] = append(out[id], plan.Tag(t))
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, broken("not a JSON object")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, broken("text after the JSON object")
	}
	return out, nil
}

// FormatTags is the inverse of ParseTags.
func FormatTags(tags map[int][]plan.Tag) (string, error) {
	type tag struct {
		Name       string            `json:"name"`
		Attributes map[string]string `json:"attributes,omitempty"`
	}
	raw := map[string][]tag{}
	for id, list := range tags {
		for _, t := range list {
			raw[strconv.Itoa(id)] = append(raw[strconv.Itoa(id)], tag(t))
		}
	}
	b, err := json.Marshal(raw)
	return string(b), err
}
