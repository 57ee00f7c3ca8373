package duck

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	duckdb "github.com/duckdb/duckdb-go-bindings"

	"sqe/plan"
)

// DuckDB copies each chunk of a result and counts 16 bytes for a text, however long it
// is: a text that a join repeats would be copied for each of 2,048 rows, many chunks
// ahead. So a result with long texts holds tokens of 12 bytes, which have place in
// DuckDB's string itself, and the texts are in the text store of the statement: each once,
// counted, and beyond a bound in a file.

const (
	// maxPlain bounds the texts of one chunk, all columns together, that stay with DuckDB.
	maxPlain = 512 << 10
	// tokenSize is the longest text that DuckDB keeps in place.
	tokenSize = 12
	// maxKept is what one statement keeps in memory of texts of its result.
	maxKept = 64 << 20
)

// textStores are those of running statements by key, as sources are.
var textStores sync.Map

// textBudget bounds what the text stores of an instance have together.
type textBudget struct {
	memory, spilled atomic.Int64
	limit, maxSpill int64  // maxSpill 0: no bound
	dir             string // "": nothing is spilled
}

// textStore has the texts of a statement's result between the threads that make it and
// the one that reads it.
type textStore struct {
	key    int64
	plain  int // of one column
	mark   [6]byte
	budget *textBudget
	any    atomic.Bool // there were tokens

	mu      sync.Mutex
	next    uint32
	groups  map[uint32]*group
	memory  int64
	file    *os.File
	size    int64    // of the file
	extents []*group // in the file, by offset
	err     error
}

// group has the distinct texts of one column of one chunk.
type group struct {
	ends   []uint64
	left   int // rows that were not read
	bytes  []byte
	offset int64 // in the file, when bytes is nil
}

// newTextStore makes the text store for a result; nil when it has no texts.
func newTextStore(cols []plan.Column) *textStore {
	n := 0
	for _, c := range cols {
		if holds(c.Type) {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	var random [14]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	k := &textStore{key: int64(binary.LittleEndian.Uint64(random[:]) >> 1), plain: max(16<<10, maxPlain/n), groups: map[uint32]*group{}}
	copy(k.mark[:], random[8:])
	return k
}

// holds reports whether values of a type may be long in a result.
func holds(t arrow.DataType) bool {
	s, err := sqlType(t)
	return err == nil && (s == "VARCHAR" || s == "BLOB")
}

func (k *textStore) begin(s *textBudget) {
	k.budget = s
	textStores.Store(k.key, k)
}

// end frees what nobody read. No thread of the statement runs any more.
func (k *textStore) end() {
	textStores.Delete(k.key)
	k.mu.Lock()
	defer k.mu.Unlock()
	for id := range k.groups {
		k.free(id)
	}
	if k.file != nil {
		_ = k.file.Close()
		k.file = nil
		k.budget.spilled.Add(-k.size)
	}
}

// free drops a group. The store is locked.
func (k *textStore) free(id uint32) {
	g := k.groups[id]
	delete(k.groups, id)
	if g.bytes != nil {
		n := int64(len(g.bytes))
		freeBytes(g.bytes)
		k.memory -= n
		k.budget.memory.Add(-n)
	} else if i := slices.Index(k.extents, g); i >= 0 {
		k.extents = slices.Delete(k.extents, i, i+1)
	}
}

// failure is why texts could not be kept, for the log; nil when they could.
func (k *textStore) failure() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// holdTexts is the native function: the texts themselves while they are short, else tokens.
func holdTexts(in []vector, out *output) {
	v, ok := textStores.Load(at[int64](in[0], 0))
	if !ok {
		panic(nativeError(memoryMark + "unknown"))
	}
	k, texts := v.(*textStore), in[1]
	sum, alike := 0, false
	for i := range out.n {
		if texts.null(i) {
			continue
		}
		b := texts.bytes(i)
		if len(b) > tokenSize {
			sum += len(b)
		} else if len(b) == tokenSize && [6]byte(b) == k.mark {
			alike = true
		}
	}
	if sum <= k.plain && !alike {
		out.same(texts)
		return
	}
	k.any.Store(true)
	g := &group{}
	entries := make([]uint16, out.n)
	var distinct [][]byte
	seen := map[*byte]uint16{} // texts that rows share
	size := uint64(0)
	for i := range out.n {
		if texts.null(i) {
			continue
		}
		g.left++
		b := texts.bytes(i)
		p := unsafe.SliceData(b)
		if len(b) > tokenSize {
			if e, ok := seen[p]; ok && len(distinct[e]) == len(b) {
				entries[i] = e
				continue
			}
		}
		entries[i] = uint16(len(distinct))
		if len(b) > tokenSize {
			seen[p] = entries[i]
		}
		distinct = append(distinct, b)
		size += uint64(len(b))
		g.ends = append(g.ends, size)
	}
	id, err := k.add(g, distinct, int64(size))
	if err != nil {
		noMemory()
	}
	var token [tokenSize]byte
	copy(token[:], k.mark[:])
	binary.LittleEndian.PutUint32(token[6:], id)
	for i := range out.n {
		if !texts.null(i) {
			binary.LittleEndian.PutUint16(token[10:], entries[i])
			out.text(i, string(token[:]))
		}
	}
}

// add takes the texts of a group, into memory while there is room.
func (k *textStore) add(g *group, texts [][]byte, size int64) (uint32, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	id := k.next
	k.next++ // around after more chunks than wait at a time
	s := k.budget
	if k.memory+size <= min(maxKept, s.limit/4) {
		if s.memory.Add(size) <= s.limit {
			b := takeBytes(int(size))
			g.bytes = b
			k.memory += size
			for _, t := range texts {
				b = b[copy(b, t):]
			}
			k.groups[id] = g
			return id, nil
		}
		s.memory.Add(-size)
	}
	if err := k.spill(g, texts, size); err != nil {
		if k.err == nil {
			k.err = err
		}
		return 0, err
	}
	k.groups[id] = g
	return id, nil
}

// spill writes the texts of a group to the file. The store is locked.
func (k *textStore) spill(g *group, texts [][]byte, size int64) error {
	s := k.budget
	if s.dir == "" {
		return errors.New("no directory for texts of a result")
	}
	if k.file == nil {
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			return err
		}
		f, err := os.CreateTemp(s.dir, "result-")
		if err != nil {
			return err
		}
		k.file = f
		if err := os.Remove(f.Name()); err != nil {
			return err
		}
	}
	// The first gap that is long enough: what was read makes room.
	at := 0
	g.offset = 0
	for at < len(k.extents) && k.extents[at].offset-g.offset < size {
		g.offset = k.extents[at].offset + k.extents[at].size()
		at++
	}
	if grown := g.offset + size - k.size; grown > 0 {
		if n := s.spilled.Add(grown); s.maxSpill > 0 && n > s.maxSpill {
			s.spilled.Add(-grown)
			return errors.New("the texts of results have no more room on the disk")
		}
		k.size += grown
	}
	w := bufio.NewWriterSize(io.NewOffsetWriter(k.file, g.offset), 64<<10)
	for _, t := range texts {
		if _, err := w.Write(t); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	k.extents = slices.Insert(k.extents, at, g)
	return nil
}

func (g *group) size() int64 { return int64(g.ends[len(g.ends)-1]) }

// keptText is the text of a row that has a token.
type keptText struct {
	id    uint32
	entry uint16
	group *group
}

// size is the length of the text in bytes.
func (x keptText) size() int {
	if x.entry == 0 {
		return int(x.group.ends[0])
	}
	return int(x.group.ends[x.entry] - x.group.ends[x.entry-1])
}

// of finds the text for a token; false when the bytes are none.
func (k *textStore) of(b []byte) (keptText, bool) {
	if len(b) != tokenSize || [6]byte(b) != k.mark {
		return keptText{}, false
	}
	x := keptText{id: binary.LittleEndian.Uint32(b[6:]), entry: binary.LittleEndian.Uint16(b[10:])}
	k.mu.Lock()
	x.group = k.groups[x.id]
	k.mu.Unlock()
	return x, x.group != nil && int(x.entry) < len(x.group.ends)
}

// read appends the text of a row to b.
func (k *textStore) read(b []byte, x keptText) ([]byte, error) {
	n := x.size()
	from := int64(x.group.ends[x.entry]) - int64(n)
	if x.group.bytes != nil {
		return append(b, x.group.bytes[from:from+int64(n)]...), nil
	}
	start := len(b)
	b = append(b, make([]byte, n)...)
	_, err := k.file.ReadAt(b[start:], x.group.offset+from)
	return b, err
}

// done says that a row was read.
func (k *textStore) done(x keptText) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if x.group.left--; x.group.left == 0 {
		k.free(x.id)
	}
}

// heldRows are the rows of a column of a chunk that have tokens; others have no group.
type heldRows []keptText

// tokens finds the rows of a column that have tokens; nil when none has.
func (k *textStore) tokens(v vector, n int) heldRows {
	if k == nil || !k.any.Load() {
		return nil
	}
	var out heldRows
	for i := range n {
		if v.null(i) {
			continue
		}
		if x, ok := k.of(v.bytes(i)); ok {
			if out == nil {
				out = make(heldRows, n)
			}
			out[i] = x
		}
	}
	return out
}

// filled is a batch in whose columns the tokens are the texts again. held[c] are the rows of the
// batch in column c. It takes the batch over.
func (k *textStore) filled(b arrow.RecordBatch, held []heldRows) (arrow.RecordBatch, error) {
	defer b.Release()
	cols := make([]arrow.Array, b.NumCols())
	for c := range cols {
		cols[c] = b.Column(c)
		if held[c] == nil {
			continue
		}
		a, err := k.column(cols[c], held[c])
		if err != nil {
			return nil, err
		}
		defer a.Release()
		cols[c] = a
	}
	return array.NewRecordBatch(b.Schema(), cols, b.NumRows()), nil
}

func (k *textStore) column(a arrow.Array, rows heldRows) (arrow.Array, error) {
	d := a.Data()
	var plain func(i int) []byte
	switch a := a.(type) {
	case *array.String:
		plain = func(i int) []byte { return []byte(a.Value(i)) }
	case *array.Binary:
		plain = a.Value
	default:
		return nil, errors.New("a column of texts of another type")
	}
	size := 0
	for i, x := range rows {
		if x.group != nil {
			size += x.size()
		} else if !a.IsNull(i) {
			size += len(plain(i))
		}
	}
	if size > math.MaxInt32 {
		return nil, errors.New("a batch of texts is too long")
	}
	offsets := make([]int32, 0, len(rows)+1)
	text := make([]byte, 0, size)
	for i, x := range rows {
		offsets = append(offsets, int32(len(text)))
		if x.group != nil {
			var err error
			if text, err = k.read(text, x); err != nil {
				return nil, err
			}
			k.done(x)
		} else if !a.IsNull(i) {
			text = append(text, plain(i)...)
		}
	}
	offsets = append(offsets, int32(len(text)))
	var valid *memory.Buffer
	if d.NullN() > 0 {
		bits := make([]byte, (len(rows)+7)/8)
		for i := range rows {
			if a.IsValid(i) {
				bits[i>>3] |= 1 << (i & 7)
			}
		}
		valid = memory.NewBufferBytes(bits)
	}
	buffers := []*memory.Buffer{valid, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(offsets)), memory.NewBufferBytes(text)}
	out := array.NewData(d.DataType(), len(rows), buffers, nil, d.NullN(), 0)
	defer out.Release()
	return array.MakeFromData(out), nil
}

func init() {
	for name, t := range map[string]nativeType{"hold": textType, "hold_blob": blobType} {
		register(name, holdTexts, t, longType, t)
		natives[len(natives)-1].volatile = true
	}
}

// held writes a column of the result so that its text store has what is long.
func (k *textStore) held(s string, t arrow.DataType) string {
	if k == nil || !holds(t) {
		return s
	}
	name := "hold"
	if st, _ := sqlType(t); st == "BLOB" {
		name = "hold_blob"
	}
	return native(name, strconv.FormatInt(k.key, 10)+"::BIGINT", s)
}

// same makes an argument the result, without a copy.
func (o *output) same(v vector) {
	duckdb.VectorReferenceVector(o.vector, v.vector)
	o.shared = true
}
