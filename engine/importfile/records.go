package importfile

import (
	"bytes"
	"io"

	"sqe/fault"
)

// records cuts a text file into records and fields, as MySQL's LOAD DATA does: it
// says of each field whether it was enclosed, which tells NULL from an empty text,
// bounds a record, and knows escapes, none of which encoding/csv does.
type records struct {
	src io.Reader
	buf []byte
	pos int
	eof bool

	terminated, lines []byte
	anyLine           bool // a line feed, with or without a carriage return
	enclosed, escaped byte
	line              int64 // the number of the line that comes next, from 1

	// The record that was read last: its fields one after the other, where each ends,
	// and what it is.
	data  []byte
	ends  []int
	kinds []fieldKind
	at    int64 // the line where it begins
}

type fieldKind uint8

const (
	plain fieldKind = iota
	quoted
	null
)

func newRecords(src io.Reader, o Options) *records {
	r := &records{src: src, buf: make([]byte, 0, 256<<10), terminated: []byte(o.Terminated), enclosed: o.Enclosed, escaped: o.Escaped, line: 1}
	r.lines, r.anyLine = []byte(o.Lines), o.Lines == ""
	if r.anyLine {
		r.lines = []byte{'\n'}
	}
	return r
}

// field is the i-th field of the record; null says that it is NULL.
func (r *records) field(i int) (value []byte, isNull bool) {
	from := 0
	if i > 0 {
		from = r.ends[i-1]
	}
	return r.data[from:r.ends[i]], r.kinds[i] == null
}

// blank reports whether the record is a line with nothing on it.
func (r *records) blank() bool { return len(r.ends) == 1 && r.kinds[0] == null && len(r.data) == 0 }

// fill reads more; it keeps what is not consumed.
func (r *records) fill() error {
	if r.eof {
		return nil
	}
	if r.pos > 0 {
		r.buf = r.buf[:copy(r.buf, r.buf[r.pos:])]
		r.pos = 0
	}
	for empty := 0; empty < 100; empty++ {
		n, err := r.src.Read(r.buf[len(r.buf):cap(r.buf)])
		r.buf = r.buf[:len(r.buf)+n]
		switch {
		case err == io.EOF:
			r.eof = true
			return nil
		case err != nil:
			return err
		case n > 0:
			return nil
		}
	}
	return io.ErrNoProgress
}

// ahead makes sure that n bytes are there, unless the file ends before.
func (r *records) ahead(n int) error {
	for len(r.buf)-r.pos < n && !r.eof {
		if err := r.fill(); err != nil {
			return err
		}
	}
	return nil
}

// follows reports whether s comes next.
func (r *records) follows(s []byte) (bool, error) {
	if r.pos < len(r.buf) && r.buf[r.pos] != s[0] {
		return false, nil
	}
	if err := r.ahead(len(s)); err != nil {
		return false, err
	}
	return bytes.HasPrefix(r.buf[r.pos:], s), nil
}

// next reads a record, or io.EOF.
func (r *records) next() error {
	r.data, r.ends, r.kinds, r.at = r.data[:0], r.ends[:0], r.kinds[:0], r.line
	if err := r.ahead(1); err != nil {
		return err
	}
	if r.pos == len(r.buf) {
		return io.EOF
	}
	for {
		last, err := r.readField()
		if err != nil || last {
			return err
		}
		if len(r.ends) > MaxColumns {
			return fault.New(fault.Limit, "line %d of the file has more than %d fields; check FIELDS TERMINATED BY", r.at, MaxColumns)
		}
	}
}

// readField reads a field and what ends it; last says that the record ends with it.
func (r *records) readField() (last bool, err error) {
	from := len(r.data)
	kind := plain
	if err := r.ahead(1); err != nil {
		return false, err
	}
	if r.enclosed != 0 && r.pos < len(r.buf) && r.buf[r.pos] == r.enclosed {
		r.pos++
		kind = quoted
		if err := r.readQuoted(); err != nil {
			return false, err
		}
	}
	escapedNull := false
	for {
		if err := r.ahead(1); err != nil {
			return false, err
		}
		if r.pos == len(r.buf) {
			last = true
			break
		}
		if end, err := r.follows(r.terminated); err != nil {
			return false, err
		} else if end {
			r.pos += len(r.terminated)
			break
		}
		if end, err := r.follows(r.lines); err != nil {
			return false, err
		} else if end {
			r.pos += len(r.lines)
			r.line++
			if r.anyLine && kind == plain && len(r.data) > from && r.data[len(r.data)-1] == '\r' {
				r.data = r.data[:len(r.data)-1]
			}
			last = true
			break
		}
		b := r.buf[r.pos]
		if kind == quoted {
			if r.anyLine && b == '\r' {
				if err := r.ahead(2); err != nil {
					return false, err
				}
				if r.pos+1 == len(r.buf) || r.buf[r.pos+1] == '\n' {
					r.pos++
					continue
				}
			}
			return false, fault.New(fault.BadStatement, "line %d of the file has characters behind the quote that ends a field; write a quote inside twice, or check FIELDS ENCLOSED BY", r.at)
		}
		if r.escaped != 0 && b == r.escaped {
			if err := r.ahead(2); err != nil {
				return false, err
			}
			if r.pos+1 < len(r.buf) {
				if r.buf[r.pos+1] == 'N' && len(r.data) == from {
					escapedNull = true
				}
				r.escape()
				continue
			}
		}
		// Up to the next byte that may mean something.
		n := 1
		rest := r.buf[r.pos:]
		for n < len(rest) && rest[n] != r.terminated[0] && rest[n] != r.lines[0] && (r.escaped == 0 || rest[n] != r.escaped) {
			n++
		}
		if err := r.take(n); err != nil {
			return false, err
		}
	}
	if kind == plain {
		v := r.data[from:]
		switch {
		case len(v) == 0, escapedNull && string(v) == "N", r.escaped == 0 && string(v) == `\N`, r.enclosed != 0 && string(v) == "NULL":
			r.data = r.data[:from]
			kind = null
		}
	}
	r.ends, r.kinds = append(r.ends, len(r.data)), append(r.kinds, kind)
	return last, nil
}

// take adds n bytes to the record.
func (r *records) take(n int) error {
	if len(r.data)+n > MaxRow {
		return fault.New(fault.Limit, "a row that begins at line %d of the file is longer than %d MiB; check FIELDS ENCLOSED BY and LINES TERMINATED BY, or divide it", r.at, MaxRow>>20)
	}
	r.data = append(r.data, r.buf[r.pos:r.pos+n]...)
	r.pos += n
	return nil
}

// readQuoted reads up to the quote that ends the field.
func (r *records) readQuoted() error {
	for {
		if err := r.ahead(1); err != nil {
			return err
		}
		if r.pos == len(r.buf) {
			return fault.New(fault.BadStatement, "a quote in the row that begins at line %d of the file is never closed; the file is cut off, or check FIELDS ENCLOSED BY", r.at)
		}
		b := r.buf[r.pos]
		switch {
		case b == r.enclosed:
			if err := r.ahead(2); err != nil {
				return err
			}
			if r.pos+1 == len(r.buf) || r.buf[r.pos+1] != r.enclosed {
				r.pos++
				return nil
			}
			r.pos++
			if err := r.take(1); err != nil {
				return err
			}
			continue
		case r.escaped != 0 && b == r.escaped:
			if err := r.ahead(2); err != nil {
				return err
			}
			if r.pos+1 < len(r.buf) {
				r.escape()
				continue
			}
		}
		n := 1
		rest := r.buf[r.pos:]
		for n < len(rest) && rest[n] != r.enclosed && (r.escaped == 0 || rest[n] != r.escaped) {
			n++
		}
		r.line += int64(bytes.Count(rest[:n], []byte{'\n'}))
		if err := r.take(n); err != nil {
			return err
		}
	}
}

// escape takes an escaped character. Source: MySQL's manual, LOAD DATA.
func (r *records) escape() {
	b := r.buf[r.pos+1]
	r.pos += 2
	switch b {
	case '0':
		b = 0
	case 'b':
		b = '\b'
	case 'n':
		b = '\n'
	case 'r':
		b = '\r'
	case 't':
		b = '\t'
	case 'Z':
		b = 26
	case '\n':
		r.line++
	}
	r.data = append(r.data, b)
}
