package ranger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"sqe/audit"
)

// WhenFull says what happens when a spool has reached its limit.
type WhenFull string

// The values of WhenFull.
const (
	DropOldest WhenFull = "drop-oldest" // the oldest events are lost, counted and logged
	Refuse     WhenFull = "refuse"      // statements are refused until there is room
)

// errFull is the answer of a spool that must not drop anything.
var errFull = errors.New("the spool has reached its limit")

// maxSegment is the most bytes of one file of a spool.
const maxSegment = 8 << 20

// spool is a queue of lines in files of one folder, NUMBER.jsonl, the oldest
// first. Lines are appended to the newest file, which is never one of an earlier
// process: a line that a crash tore stays at the end of its file, where it is
// noticed and skipped. The file "cursor" says up to where the lines were taken; it
// is replaced as a whole, and when it is lost lines are taken twice.
//
// One goroutine appends and one takes. The other methods are for everybody.
type spool struct {
	dir   string
	limit int64
	full  WhenFull
	sync  audit.Sync
	lock  *os.File
	// more is signalled after an append.
	more    chan struct{}
	refuses atomic.Bool

	mu       sync.Mutex
	segments []*segment // at least one once something was appended
	out      *os.File   // the newest segment, nil when it must be made
	next     uint64     // number of the next segment
	size     int64
	taken    position // up to where lines were taken
	dropped  uint64
	dirty    bool
}

// segment is one file.
type segment struct {
	number uint64
	size   int64
	lines  int // complete lines
	taken  int // of them
}

// position is a place in the spool: everything before it was taken.
type position struct {
	Segment uint64 `json:"segment"`
	Offset  int64  `json:"offset"`
}

// item is a line of the spool, without its end.
type item struct {
	line []byte
	next position // after it
}

func openSpool(dir string, limit int64, full WhenFull, s audit.Sync) (*spool, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil, errors.New("another process uses it")
	}
	p := &spool{dir: dir, limit: limit, full: full, sync: s, lock: lock, more: make(chan struct{}, 1), next: 1}
	if err := p.restore(); err != nil {
		_ = lock.Close()
		return nil, err
	}
	return p, nil
}

// restore reads what an earlier process left.
func (p *spool) restore() error {
	names, err := filepath.Glob(filepath.Join(p.dir, "*.jsonl"))
	if err != nil {
		return err
	}
	slices.Sort(names)
	if text, err := os.ReadFile(filepath.Join(p.dir, "cursor")); err == nil {
		_ = json.Unmarshal(text, &p.taken) // broken: from the beginning
	}
	for _, name := range names {
		var number uint64
		if n, err := fmt.Sscanf(filepath.Base(name), "%d.jsonl", &number); n != 1 || err != nil || number == 0 {
			continue
		}
		s := &segment{number: number}
		if err := s.count(name, p.taken); err != nil {
			return err
		}
		p.segments = append(p.segments, s)
		p.size += s.size
		p.next = number + 1
	}
	p.next = max(p.next, p.taken.Segment+1)
	p.removeTaken()
	p.noteFull()
	return nil
}

// count counts the lines of the file, and those before the position.
func (s *segment) count(name string, taken position) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	buf := make([]byte, 256<<10)
	for {
		n, err := f.Read(buf)
		s.lines += bytes.Count(buf[:n], []byte{'\n'})
		if here := taken.Offset - s.size; taken.Segment == s.number && here > 0 {
			s.taken += bytes.Count(buf[:min(int64(n), here)], []byte{'\n'})
		}
		s.size += int64(n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if taken.Segment > s.number {
		s.taken = s.lines
	}
	return nil
}

func (p *spool) path(number uint64) string {
	return filepath.Join(p.dir, fmt.Sprintf("%016d.jsonl", number))
}

// append adds complete lines. After an error none of them is in the spool, except
// that some may be when writing failed half-way: they are then in it twice.
func (p *spool) append(lines []byte) error {
	out, err := p.place(int64(len(lines)))
	if err != nil {
		return err
	}
	// Without the lock: a slow disk keeps nobody else waiting.
	n, err := out.Write(lines)
	if err == nil && p.sync == audit.SyncAlways {
		err = out.Sync()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	newest := p.segments[len(p.segments)-1]
	newest.size += int64(n)
	newest.lines += bytes.Count(lines[:n], []byte{'\n'})
	p.size += int64(n)
	p.dirty = true
	p.noteFull()
	if err != nil {
		// A torn line may stand at the end: the next lines go to another file.
		_ = out.Close()
		p.out = nil
		return err
	}
	select {
	case p.more <- struct{}{}:
	default:
	}
	return nil
}

// place makes room for so many bytes and gives the file to append them to.
func (p *spool) place(bytes int64) (*os.File, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.noteFull()
	if err := p.makeRoom(bytes); err != nil {
		return nil, err
	}
	if p.out == nil || p.segments[len(p.segments)-1].size >= p.segmentLimit() {
		if err := p.roll(); err != nil {
			return nil, err
		}
	}
	return p.out, nil
}

// noteFull keeps whether the spool refuses more, for who must not wait to know.
func (p *spool) noteFull() {
	p.refuses.Store(p.full == Refuse && p.size >= p.limit-p.segmentLimit())
}

func (p *spool) segmentLimit() int64 { return min(maxSegment, max(p.limit/8, 1)) }

// makeRoom drops the oldest files, or fails, when the limit would be passed.
func (p *spool) makeRoom(bytes int64) error {
	for p.size+bytes > p.limit && len(p.segments) > 0 {
		oldest := p.segments[0]
		if oldest.lines > oldest.taken {
			if p.full == Refuse {
				return errFull
			}
			p.dropped += uint64(oldest.lines - oldest.taken)
		}
		if len(p.segments) == 1 && p.out != nil {
			_ = p.out.Close()
			p.out = nil
		}
		if err := p.remove(); err != nil {
			return err
		}
	}
	return nil
}

// remove removes the oldest file.
func (p *spool) remove() error {
	oldest := p.segments[0]
	if err := os.Remove(p.path(oldest.number)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	p.size -= oldest.size
	p.segments = p.segments[1:]
	return nil
}

// roll begins a new file.
func (p *spool) roll() error {
	if p.out != nil {
		if p.sync == audit.SyncInterval {
			_ = p.out.Sync()
		}
		_ = p.out.Close()
		p.out = nil
	}
	f, err := os.OpenFile(p.path(p.next), os.O_APPEND|os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		p.next++
		return err
	}
	p.out = f
	p.segments = append(p.segments, &segment{number: p.next})
	p.next++
	if p.sync != audit.SyncNone {
		// So that the name of the file is on the disk as well.
		if dir, err := os.Open(p.dir); err == nil {
			_ = dir.Sync()
			_ = dir.Close()
		}
	}
	return nil
}

// force waits until what was appended is on the disk.
func (p *spool) force() error {
	p.mu.Lock()
	out, dirty := p.out, p.dirty
	p.dirty = false
	p.mu.Unlock()
	if !dirty || out == nil {
		return nil
	}
	err := out.Sync()
	if errors.Is(err, os.ErrClosed) {
		return nil // rolled meanwhile, which forces
	}
	return err
}

// peek reads lines that were not taken yet: at most so many, and about so many
// bytes. torn counts ends of files that a crash tore.
func (p *spool) peek(most, size int) (items []item, torn int, err error) {
	for {
		p.mu.Lock()
		at, end, last, ok := p.start()
		p.mu.Unlock()
		if !ok {
			return nil, torn, nil
		}
		items, rest, err := p.read(at, end, most, size)
		if err != nil {
			return nil, torn, err
		}
		if len(items) > 0 {
			return items, torn, nil
		}
		if last {
			return nil, torn, nil
		}
		// The file is finished; what is left in it has no end.
		if rest > 0 {
			torn++
		}
		if err := p.take(position{at.Segment + 1, 0}, 0); err != nil {
			return nil, torn, err
		}
	}
}

// start is where to read on, and where the file ends for now; last says that it
// may grow.
func (p *spool) start() (at position, end int64, last, ok bool) {
	for i, s := range p.segments {
		if s.number < p.taken.Segment {
			continue
		}
		at = position{Segment: s.number}
		if s.number == p.taken.Segment {
			at.Offset = min(p.taken.Offset, s.size)
		}
		return at, s.size, i == len(p.segments)-1 && p.out != nil, true
	}
	return position{}, 0, false, false
}

// read reads complete lines of one file up to its end. rest is the number of bytes
// there that are no complete line.
func (p *spool) read(at position, end int64, most, size int) (items []item, rest int, err error) {
	f, err := os.Open(p.path(at.Segment))
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, nil // dropped meanwhile, or removed by somebody
	}
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }()
	for {
		whole := int64(size) >= end-at.Offset
		buf := make([]byte, min(int64(size), end-at.Offset))
		n, err := f.ReadAt(buf, at.Offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, 0, err
		}
		text := buf[:n]
		for len(items) < most {
			i := bytes.IndexByte(text, '\n')
			if i < 0 {
				break
			}
			at.Offset += int64(i) + 1
			items = append(items, item{line: text[:i:i], next: at})
			text = text[i+1:]
		}
		if len(items) > 0 || whole {
			return items, len(text), nil
		}
		size *= 2 // a line that is longer
	}
}

// take marks what stands before the position as taken: so many lines.
func (p *spool) take(to position, lines int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.segments {
		if s.number == to.Segment {
			s.taken = min(s.taken+lines, s.lines)
		}
	}
	p.taken = to
	p.removeTaken()
	p.noteFull()
	text, err := json.Marshal(to)
	if err != nil {
		return err
	}
	name := filepath.Join(p.dir, "cursor")
	if err := os.WriteFile(name+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// removeTaken removes the files of which all was taken.
func (p *spool) removeTaken() {
	for len(p.segments) > 0 && p.segments[0].number < p.taken.Segment {
		if p.remove() != nil {
			return // at the next time
		}
	}
}

// state is what Stats shows.
func (p *spool) state() (lines int, size int64, dropped uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.segments {
		lines += s.lines - s.taken
	}
	return lines, p.size, p.dropped
}

func (p *spool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var err error
	if p.out != nil {
		if p.sync != audit.SyncNone {
			err = p.out.Sync()
		}
		err = errors.Join(err, p.out.Close())
		p.out = nil
	}
	return errors.Join(err, p.lock.Close())
}

// reason is an error without the path that it is about.
func reason(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Op + ": " + p.Err.Error()
	}
	return strings.TrimSpace(err.Error())
}
