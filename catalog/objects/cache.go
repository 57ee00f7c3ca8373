package objects

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// cacheKey names a part of one version of an object.
type cacheKey struct {
	store          string
	at             Location
	mark           string
	size           int64
	offset, length int64
}

// name is the name of the file of a part.
func (k cacheKey) name() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %d %d %d", k.store, k.at.Bucket, k.at.Key, k.mark, k.size, k.offset, k.length))
	return hex.EncodeToString(sum[:])
}

// Cache keeps parts of objects in files of one folder, up to a size; the ones that were
// not used for longest go first. It is safe for concurrent use.
//
// It is looked into only for an object that has been opened, which the store has allowed
// with the credentials of whoever reads, and only for the version that the store then
// named: an object that was replaced is not found. A file that was not written to its
// end, or that was damaged, counts as missing.
type Cache struct {
	dir  string
	max  int64
	lock *os.File

	mu   sync.Mutex
	used *simplelru.LRU[string, int64] // sizes by name
	size int64

	hits, misses, hitBytes, missBytes atomic.Int64
}

const (
	// cacheHeader is the length of what stands before a part in its file: a mark, and the
	// checksum of the part.
	cacheHeader  = 12
	cacheMark    = "SQEpart1"
	temporary    = "new-"
	mostEntries  = 10_000_000
	largestShare = 8 // a part is at most an eighth of the cache
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrCacheUsed: another process uses the folder of a cache.
var ErrCacheUsed = errors.New("another server uses the folder")

// OpenCache opens the cache in a folder, which it makes, for at most max bytes. What an
// earlier process left there is used again.
func OpenCache(dir string, max int64) (*Cache, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(ErrCacheUsed, lock.Close())
	}
	c := &Cache{dir: dir, max: max, lock: lock}
	c.used, _ = simplelru.NewLRU(mostEntries, func(name string, size int64) { // the number is positive
		c.size -= size
		_ = os.Remove(filepath.Join(dir, name))
	})
	if err := c.recall(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return c, nil
}

// recall finds what lies in the folder.
func (c *Cache) recall() error {
	list, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	var found []fs.FileInfo
	for _, e := range list {
		if strings.HasPrefix(e.Name(), temporary) {
			_ = os.Remove(filepath.Join(c.dir, e.Name()))
			continue
		}
		if raw, err := hex.DecodeString(e.Name()); err != nil || len(raw) != sha256.Size {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			found = append(found, info)
		}
	}
	slices.SortFunc(found, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, f := range found {
		c.add(f.Name(), f.Size())
	}
	return nil
}

// add must be called with the lock, or before others know of the cache.
func (c *Cache) add(name string, size int64) {
	if old, ok := c.used.Peek(name); ok {
		c.size -= old
	}
	c.used.Add(name, size)
	for c.size += size; c.size > c.max; {
		if _, _, ok := c.used.RemoveOldest(); !ok {
			return
		}
	}
}

// Close lets another process use the folder.
func (c *Cache) Close() error {
	if c == nil {
		return nil
	}
	return c.lock.Close()
}

// CacheStatus is what a cache has done since it was opened, and how large it is.
type CacheStatus struct {
	// Hits and Misses are parts that were found and not found, HitBytes and MissBytes
	// their sizes.
	Hits, Misses, HitBytes, MissBytes int64
	Bytes                             int64 // on the disk now
}

// Status tells what the cache does; nothing where there is none.
func (c *Cache) Status() CacheStatus {
	if c == nil {
		return CacheStatus{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return CacheStatus{c.hits.Load(), c.misses.Load(), c.hitBytes.Load(), c.missBytes.Load(), c.size}
}

// get fills p with a part, if it is there.
func (c *Cache) get(key cacheKey, p []byte) bool {
	if c == nil || key.mark == "" {
		return false
	}
	name := key.name()
	c.mu.Lock()
	_, ok := c.used.Get(name)
	c.mu.Unlock()
	if ok {
		err := c.read(name, p)
		if err == nil {
			c.hits.Add(1)
			c.hitBytes.Add(int64(len(p)))
			return true
		}
		c.mu.Lock()
		c.used.Remove(name)
		c.mu.Unlock()
	}
	c.misses.Add(1)
	c.missBytes.Add(int64(len(p)))
	return false
}

func (c *Cache) read(name string, p []byte) error {
	f, err := os.Open(filepath.Join(c.dir, name))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	var header [cacheHeader]byte
	if _, err := io.ReadFull(f, header[:]); err != nil {
		return err
	}
	if _, err := io.ReadFull(f, p); err != nil {
		return err
	}
	if !bytes.Equal(header[:8], []byte(cacheMark)) || binary.LittleEndian.Uint32(header[8:]) != crc32.Checksum(p, castagnoli) {
		return errors.New("a damaged part")
	}
	return nil
}

// put keeps a part, as well as it can.
func (c *Cache) put(key cacheKey, p []byte) {
	if c == nil || key.mark == "" || int64(len(p)) > c.max/largestShare {
		return
	}
	name := key.name()
	if c.write(name, p) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(name, cacheHeader+int64(len(p)))
}

func (c *Cache) write(name string, p []byte) (err error) {
	f, err := os.CreateTemp(c.dir, temporary+"*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	header := binary.LittleEndian.AppendUint32([]byte(cacheMark), crc32.Checksum(p, castagnoli))
	_, e1 := f.Write(header)
	_, e2 := f.Write(p)
	if err := errors.Join(e1, e2, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(c.dir, name))
}
