package policystore

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
)

// encode is JSON without escapes for HTML, as Ranger writes it.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// compact is a document without blanks; broken ones are returned as they are.
func compact(doc []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, doc) != nil {
		return doc
	}
	return b.Bytes()
}

// copyOf is a deep copy through JSON: what a caller changes later is its own.
func copyOf[T any](v *T) (*T, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	c := new(T)
	return c, json.Unmarshal(b, c)
}

// newGUID is a random UUID (RFC 9562, version 4).
func newGUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// object writes a JSON object member by member from parts that are JSON already,
// so that thousands of documents are joined and not encoded again.
type object struct{ bytes.Buffer }

// key begins a member; name is a JSON string.
func (o *object) key(name []byte) {
	if o.Len() == 0 {
		o.WriteByte('{')
	} else {
		o.WriteByte(',')
	}
	o.Write(name)
	o.WriteByte(':')
}

// member begins a member whose name needs no escapes.
func (o *object) member(name string) { o.key([]byte(strconv.Quote(name))) }

func (o *object) number(name string, n int64) {
	o.member(name)
	o.WriteString(strconv.FormatInt(n, 10))
}

func (o *object) raw(name string, doc []byte) {
	o.member(name)
	o.Write(doc)
}

// rawList leaves an empty list out, as Ranger does.
func (o *object) rawList(name string, docs [][]byte) {
	if len(docs) == 0 {
		return
	}
	o.member(name)
	o.WriteByte('[')
	for i, d := range docs {
		if i > 0 {
			o.WriteByte(',')
		}
		o.Write(d)
	}
	o.WriteByte(']')
}

func (o *object) value(name string, v any) error {
	b, err := encode(v)
	if err != nil {
		return err
	}
	o.raw(name, b)
	return nil
}

func (o *object) end() []byte {
	if o.Len() == 0 {
		o.WriteByte('{')
	}
	o.WriteByte('}')
	return o.Bytes()
}
