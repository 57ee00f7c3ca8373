package objects

import (
	"context"
	"io"
	"io/fs"
	"path"
	"sync"
	"time"

	icebergio "github.com/apache/iceberg-go/io"
	"golang.org/x/sync/errgroup"
)

// Files are the objects of a store that one statement may reach, as iceberg-go's
// files. What it is asked for goes on until its context ends; only deleting does not
// end with it, so that a statement that is cancelled can clear up.
type Files struct {
	ctx context.Context
	// pick gives the client for a location; nil: there is none for it.
	pick func(location string) *Client
}

var (
	_ icebergio.WriteFileIO     = (*Files)(nil)
	_ icebergio.ReadFileIO      = (*Files)(nil)
	_ icebergio.ListableIO      = (*Files)(nil)
	_ icebergio.BulkRemovableIO = (*Files)(nil)
)

// Files gives those objects that within permits.
func (c *Client) Files(ctx context.Context, within func(location string) bool) *Files {
	return FilesOf(ctx, func(location string) *Client {
		if within(location) {
			return c
		}
		return nil
	})
}

// FilesOf gives those objects for which pick has a client.
func FilesOf(ctx context.Context, pick func(location string) *Client) *Files {
	return &Files{ctx, pick}
}

func (f *Files) at(location string) (*Client, Location, error) {
	at, ok := Parse(location)
	if !ok || at.Key == "" {
		return nil, Location{}, ErrOutside
	}
	c := f.pick(location)
	if c == nil {
		return nil, Location{}, ErrOutside
	}
	return c, at, nil
}

// tailSize is how much of the end of an object comes with opening it: most footers of
// Parquet files, and most metadata files as a whole.
const tailSize = 64 << 10

// Open implements icebergio.IO.
func (f *Files) Open(location string) (icebergio.File, error) {
	c, at, err := f.at(location)
	if err != nil {
		return nil, pathError("open", err)
	}
	v, tail, err := c.tail(f.ctx, at, tailSize)
	if err != nil {
		return nil, pathError("open", err)
	}
	return &Object{ctx: f.ctx, client: c, at: at, version: v, tail: tail}, nil
}

// ReadFile implements icebergio.ReadFileIO.
func (f *Files) ReadFile(location string) ([]byte, error) {
	in, err := f.Open(location)
	if err != nil {
		return nil, err
	}
	o := in.(*Object)
	if o.version.size > mostAtOnce {
		return nil, pathError("read", errNonsense)
	}
	out := make([]byte, o.version.size)
	if _, err := o.ReadAt(out, 0); err != nil && err != io.EOF {
		return nil, err
	}
	return out, nil
}

// Span is a part of an object.
type Span struct{ Offset, Length int64 }

// Object is an open object. ReadAt and Prefetch may be called by several goroutines.
type Object struct {
	ctx     context.Context
	client  *Client
	at      Location
	version version
	tail    []byte
	pos     int64
	ahead   []byte // what Read has in advance, from aheadAt on
	aheadAt int64

	mu    sync.Mutex
	parts []part
}

// part is what Prefetch has read.
type part struct {
	Span
	data []byte
}

// Size is how many bytes the object has.
func (o *Object) Size() int64 { return o.version.size }

// ReadAt implements io.ReaderAt.
func (o *Object) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fs.ErrInvalid
	}
	if off >= o.version.size {
		return 0, io.EOF
	}
	var end error
	if n := o.version.size - off; int64(len(p)) > n {
		p, end = p[:n], io.EOF
	}
	if len(p) == 0 {
		return 0, end
	}
	if first := o.version.size - int64(len(o.tail)); off >= first {
		return copy(p, o.tail[off-first:]), end
	}
	if o.taken(p, off) {
		return len(p), end
	}
	if err := o.load(o.ctx, p, off); err != nil {
		return 0, pathError("read", err)
	}
	return len(p), end
}

// load reads through the cache.
func (o *Object) load(ctx context.Context, p []byte, off int64) error {
	key := cacheKey{o.client.store, o.at, o.version.mark, o.version.size, off, int64(len(p))}
	if o.client.cache.get(key, p) {
		return nil
	}
	if err := o.client.fetch(ctx, o.at, o.version, p, off); err != nil {
		return err
	}
	o.client.cache.put(key, p)
	return nil
}

// taken gives what was read in advance. It is given once: a part that has been read to
// its end is not kept.
func (o *Object) taken(p []byte, off int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, q := range o.parts {
		if off < q.Offset || off+int64(len(p)) > q.Offset+q.Length {
			continue
		}
		copy(p, q.data[off-q.Offset:])
		if off+int64(len(p)) == q.Offset+q.Length {
			o.parts = append(o.parts[:i], o.parts[i+1:]...)
		}
		return true
	}
	return false
}

const (
	// gap is up to how many unwanted bytes between two parts are read rather than
	// asked for separately.
	gap = 256 << 10
	// request is about how large a request is: larger parts come in several, side by
	// side.
	request = 8 << 20
	// atOnce is how many requests run for one call of Prefetch.
	atOnce = 8
)

// Prefetch reads parts of the object in advance, several at a time, so that ReadAt
// finds them. They are kept until they have been read.
func (o *Object) Prefetch(ctx context.Context, spans []Span) error {
	var g *errgroup.Group
	g, ctx = errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	var parts []part
	first := o.version.size - int64(len(o.tail))
	var missing []part
	for _, s := range spans {
		if s.Offset < 0 || s.Length <= 0 || s.Length > mostAtOnce || s.Offset+s.Length > o.version.size || s.Offset >= first {
			continue // ReadAt will say what is wrong, or has it
		}
		q := part{s, make([]byte, s.Length)}
		parts = append(parts, q)
		if !o.client.cache.get(o.key(s), q.data) {
			missing = append(missing, q)
		}
	}
	for _, group := range coalesced(missing) {
		from, to := group[0].Offset, group[len(group)-1].Offset+group[len(group)-1].Length
		if len(group) == 1 {
			// One part, in pieces.
			for at := from; at < to; at += request {
				n := min(request, to-at)
				g.Go(func() error { return o.client.fetch(ctx, o.at, o.version, group[0].data[at-from:at-from+n], at) })
			}
			continue
		}
		g.Go(func() error {
			whole := make([]byte, to-from)
			if err := o.client.fetch(ctx, o.at, o.version, whole, from); err != nil {
				return err
			}
			for _, q := range group {
				copy(q.data, whole[q.Offset-from:])
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return pathError("read", err)
	}
	for _, q := range missing {
		o.client.cache.put(o.key(q.Span), q.data)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.parts = append(o.parts, parts...)
	return nil
}

func (o *Object) key(s Span) cacheKey {
	return cacheKey{o.client.store, o.at, o.version.mark, o.version.size, s.Offset, s.Length}
}

// Read implements io.Reader.
func (o *Object) Read(p []byte) (int, error) {
	if o.pos >= o.version.size {
		return 0, io.EOF
	}
	if len(p) == 0 {
		return 0, nil
	}
	if first := o.version.size - int64(len(o.tail)); o.pos >= first {
		n := copy(p, o.tail[o.pos-first:])
		o.pos += int64(n)
		return n, nil
	}
	if o.pos < o.aheadAt || o.pos >= o.aheadAt+int64(len(o.ahead)) {
		n := min(request, o.version.size-int64(len(o.tail))-o.pos)
		ahead := make([]byte, n)
		if err := o.client.fetch(o.ctx, o.at, o.version, ahead, o.pos); err != nil {
			return 0, pathError("read", err)
		}
		o.ahead, o.aheadAt = ahead, o.pos
	}
	n := copy(p, o.ahead[o.pos-o.aheadAt:])
	o.pos += int64(n)
	return n, nil
}

// Seek implements io.Seeker.
func (o *Object) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += o.pos
	case io.SeekEnd:
		offset += o.version.size
	}
	if offset < 0 {
		return 0, fs.ErrInvalid
	}
	o.pos = offset
	return offset, nil
}

// Close implements io.Closer.
func (o *Object) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.parts, o.ahead = nil, nil
	return nil
}

// Stat implements fs.File.
func (o *Object) Stat() (fs.FileInfo, error) {
	return entry{path.Base(o.at.Key), o.version.size, o.version.time, false}, nil
}

// entry is an object in a list.
type entry struct {
	name string
	size int64
	time time.Time
	dir  bool
}

func (e entry) Name() string               { return e.name }
func (e entry) Size() int64                { return e.size }
func (e entry) ModTime() time.Time         { return e.time }
func (e entry) IsDir() bool                { return e.dir }
func (e entry) Sys() any                   { return nil }
func (e entry) Info() (fs.FileInfo, error) { return e, nil }
func (e entry) Type() fs.FileMode          { return e.Mode().Type() }
func (e entry) Mode() fs.FileMode {
	if e.dir {
		return fs.ModeDir
	}
	return 0
}

// coalesced groups parts that are near to one another, in their order in the object,
// so that a group is one request.
func coalesced(parts []part) [][]part {
	sortParts(parts)
	var out [][]part
	for _, q := range parts {
		if n := len(out); n > 0 {
			g := out[n-1]
			last := g[len(g)-1]
			if q.Offset-(last.Offset+last.Length) <= gap && q.Offset+q.Length-g[0].Offset <= request {
				out[n-1] = append(g, q)
				continue
			}
		}
		out = append(out, []part{q})
	}
	return out
}
