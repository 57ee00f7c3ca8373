package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"

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
	var raw map[string][]struct {
		Name       string            `json:"name"`
		Attributes map[string]string `json:"attributes"`
	}
	d := json.NewDecoder(bytes.NewReader([]byte(value)))
	d.DisallowUnknownFields()
	if err := d.Decode(&raw); err != nil || raw == nil {
		return nil, broken("not a JSON object of lists of tags")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, broken("text after the JSON object")
	}
	out := make(map[int][]plan.Tag, len(raw))
	for key, tags := range raw {
		id, err := strconv.Atoi(key)
		if err != nil || strconv.Itoa(id) != key || id < 0 || id > lastColumn {
			return nil, broken("a key is not the id of a field")
		}
		names := map[string]bool{}
		for _, t := range tags {
			if t.Name == "" || names[t.Name] {
				return nil, broken("a tag has no name or stands twice")
			}
			names[t.Name] = true
			out[id] = append(out[id], plan.Tag{Name: t.Name, Attributes: t.Attributes})
		}
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
