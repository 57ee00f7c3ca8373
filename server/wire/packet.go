package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"
)

// ErrTooLarge is the error of a packet beyond the limit. The connection cannot be
// used afterwards: the rest of the packet is still on its way.
var ErrTooLarge = errors.New("packet too large")

// ErrSequence is the error of packets that arrive out of order.
var ErrSequence = errors.New("packets out of order")

// flushAt is the number of buffered bytes at which a Writer sends. It holds a few
// TLS records, so that the cost of a system call is spread over many rows.
const flushAt = 64 << 10

// Reader reads packets. It is used by one goroutine at a time.
type Reader struct {
	r   *bufio.Reader
	seq byte
}

// NewReader makes a Reader.
func NewReader(r io.Reader) *Reader { return &Reader{r: bufio.NewReaderSize(r, 8<<10)} }

// Packet reads one packet, in pieces of 16 MiB if it is longer, of at most limit
// bytes. The result belongs to the caller.
func (p *Reader) Packet(limit int) ([]byte, error) {
	return p.Next(func() (byte, int) { return p.seq, limit })
}

// Next is Packet for a reader that does not know what comes: when the head of the
// packet is there, expect says which number it must have and how large it may be.
func (p *Reader) Next(expect func() (seq byte, limit int)) ([]byte, error) {
	var data []byte
	limit := 0
	for first := true; ; first = false {
		var head [4]byte
		if _, err := io.ReadFull(p.r, head[:]); err != nil {
			return nil, err
		}
		if first {
			p.seq, limit = expect()
		}
		n := int(head[0]) | int(head[1])<<8 | int(head[2])<<16
		inOrder := head[3] == p.seq
		p.seq = head[3] + 1
		if !inOrder {
			return nil, ErrSequence
		}
		if n > limit-len(data) {
			return nil, ErrTooLarge
		}
		var err error
		if data, err = p.body(data, n); err != nil {
			return nil, err
		}
		if n < maxPayload {
			return data, nil
		}
	}
}

// body appends n bytes. It grows with what arrives, not with what was announced.
func (p *Reader) body(data []byte, n int) ([]byte, error) {
	const step = 256 << 10
	for n > 0 {
		k := min(n, step)
		at := len(data)
		data = append(data, make([]byte, k)...)
		if _, err := io.ReadFull(p.r, data[at:]); err != nil {
			return nil, err
		}
		n -= k
	}
	return data, nil
}

// Buffered is the number of bytes that were read from the connection and not yet
// from the Reader.
func (p *Reader) Buffered() int { return p.r.Buffered() }

// Writer writes packets into a buffer and sends it when it is full. It is used by
// one goroutine at a time. A packet that was begun and not ended leaves no trace:
// after a failure in the middle of a row an error packet may follow.
type Writer struct {
	conn    net.Conn
	buf     []byte
	start   int // where the header of the open packet is
	seq     byte
	timeout time.Duration
	err     error
}

// NewWriter makes a Writer whose sends take at most timeout each (0: forever).
func NewWriter(conn net.Conn, timeout time.Duration) *Writer {
	return &Writer{conn: conn, timeout: timeout}
}

// Sequence sets the number of the next packet: one more than the last one read.
func (w *Writer) Sequence(n byte) { w.seq = n }

// Next is the number that the next packet will have.
func (w *Writer) Next() byte { return w.seq }

// Begin opens a packet; append to the returned slice and give it to End.
func (w *Writer) Begin() []byte {
	w.start = len(w.buf)
	return append(w.buf, 0, 0, 0, 0)
}

// End closes the packet, and sends when enough is buffered. After an error every
// later call returns it.
func (w *Writer) End(b []byte) error {
	w.buf = b
	n := len(b) - w.start - 4
	if n >= maxPayload {
		w.split()
	} else {
		w.header(w.start, n)
	}
	if len(w.buf) >= flushAt {
		return w.Flush()
	}
	return w.err
}

func (w *Writer) header(at, n int) {
	binary.LittleEndian.PutUint32(w.buf[at:], uint32(n)|uint32(w.seq)<<24)
	w.seq++
}

// split turns the open packet into several. The last one is shorter than
// maxPayload, and may be empty.
func (w *Writer) split() {
	body := append([]byte(nil), w.buf[w.start+4:]...)
	w.buf = w.buf[:w.start]
	for {
		n := min(len(body), maxPayload)
		at := len(w.buf)
		w.buf = append(w.buf, 0, 0, 0, 0)
		w.header(at, n)
		w.buf = append(w.buf, body[:n]...)
		body = body[n:]
		if n < maxPayload {
			return
		}
	}
}

// Flush sends what is buffered.
func (w *Writer) Flush() error {
	if w.err != nil || len(w.buf) == 0 {
		w.buf = w.buf[:0]
		return w.err
	}
	if w.timeout > 0 {
		_ = w.conn.SetWriteDeadline(time.Now().Add(w.timeout))
	}
	_, err := w.conn.Write(w.buf)
	w.err = err
	if cap(w.buf) > 8*flushAt {
		w.buf = nil // one large row must not hold memory until the connection ends
	}
	w.buf = w.buf[:0]
	return err
}

func (w *Writer) packet(payload []byte) error { return w.End(append(w.Begin(), payload...)) }

// appendLenenc appends a length-encoded integer.
func appendLenenc(b []byte, n uint64) []byte {
	switch {
	case n < 251:
		return append(b, byte(n))
	case n < 1<<16:
		return append(b, 0xfc, byte(n), byte(n>>8))
	case n < 1<<24:
		return append(b, 0xfd, byte(n), byte(n>>8), byte(n>>16))
	}
	return binary.LittleEndian.AppendUint64(append(b, 0xfe), n)
}

// appendLenencString appends a length-encoded string.
func appendLenencString(b []byte, s string) []byte {
	return append(appendLenenc(b, uint64(len(s))), s...)
}

// OK is what an OK packet says.
type OK struct {
	Affected uint64
	Status   uint16
	Warnings uint16
	// Database, when not nil, is the database that the statement made current.
	Database *string
	// EOF marks the end of rows instead of a statement without rows.
	EOF bool
}

// OK writes an OK packet, or what ends rows for a client with capabilities caps.
func (w *Writer) OK(o OK, caps uint32) error {
	b := w.Begin()
	if o.EOF && caps&ClientDeprecateEOF == 0 {
		b = append(b, 0xfe)
		b = binary.LittleEndian.AppendUint16(b, o.Warnings)
		b = binary.LittleEndian.AppendUint16(b, o.Status)
		return w.End(b)
	}
	head := byte(0x00)
	if o.EOF {
		head = 0xfe
	}
	track := caps&ClientSessionTrack != 0 && o.Database != nil
	if track {
		o.Status |= StatusStateChanged
	}
	b = append(b, head)
	b = appendLenenc(b, o.Affected)
	b = append(b, 0) // last insert id
	b = binary.LittleEndian.AppendUint16(b, o.Status)
	b = binary.LittleEndian.AppendUint16(b, o.Warnings)
	if track {
		const schemaChanged = 0x01
		data := appendLenencString(nil, *o.Database)
		state := append([]byte{schemaChanged}, appendLenencString(nil, string(data))...)
		b = append(b, 0) // no info
		b = appendLenencString(b, string(state))
	}
	return w.End(b)
}

// Error is a MySQL error.
type Error struct {
	Number uint16
	State  string // SQLSTATE, 5 characters
	Text   string
}

// maxErrorText is MySQL's own bound (MYSQL_ERRMSG_SIZE); clients keep no more.
const maxErrorText = 512

// Error writes an error packet. Before the handshake response is known (caps 0)
// the packet has no SQLSTATE.
func (w *Writer) Error(e Error, caps uint32) error {
	b := append(w.Begin(), 0xff)
	b = binary.LittleEndian.AppendUint16(b, e.Number)
	if caps&ClientProtocol41 != 0 {
		b = append(b, '#')
		b = append(b, e.State...)
	}
	return w.End(append(b, truncate(e.Text, maxErrorText)...))
}

// truncate cuts s to at most n bytes, not inside a character.
func truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}

// LocalInfile asks the client to send its file of a name.
func (w *Writer) LocalInfile(name string) error {
	return w.End(append(append(w.Begin(), localInfile), name...))
}

// Text writes a packet that holds a text alone (COM_STATISTICS).
func (w *Writer) Text(s string) error { return w.packet([]byte(s)) }

// Err is why the connection cannot be written to any more, nil while it can.
func (w *Writer) Err() error { return w.err }
