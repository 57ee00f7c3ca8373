package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func openCache(t *testing.T, dir string, max int64) *Cache {
	t.Helper()
	c, err := OpenCache(dir, max)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func keyOf(n int) cacheKey {
	return cacheKey{"store", Location{"b", fmt.Sprint("k", n)}, "e", 1000, 0, 1000}
}

func TestCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	c := openCache(t, dir, 20_000)
	if _, err := OpenCache(dir, 20_000); !errors.Is(err, ErrCacheUsed) {
		t.Errorf("two caches in one folder: %v", err)
	}
	part := pattern(1000)
	got := make([]byte, 1000)
	for i := range 30 {
		if c.get(keyOf(i), got) {
			t.Errorf("%d is there", i)
		}
		c.put(keyOf(i), part)
		if !c.get(keyOf(i), got) || !bytes.Equal(got, part) {
			t.Errorf("%d is not there", i)
		}
		c.get(keyOf(0), got) // is used all the time
	}
	if !c.get(keyOf(0), got) || c.get(keyOf(1), got) || !c.get(keyOf(29), got) {
		t.Error("not the ones that were used last are kept")
	}
	var size int64
	list, _ := os.ReadDir(dir)
	for _, e := range list {
		info, err := e.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info.Mode(), err)
		}
		size += info.Size()
	}
	if size > 20_000 || size < 15_000 {
		t.Errorf("%d bytes are kept", size)
	}
	// Any part of the key makes another one.
	k := keyOf(29)
	for _, other := range []cacheKey{
		{"store2", k.at, k.mark, k.size, k.offset, k.length},
		{k.store, Location{"c", k.at.Key}, k.mark, k.size, k.offset, k.length},
		{k.store, k.at, "f", k.size, k.offset, k.length},
		{k.store, k.at, k.mark, 1001, k.offset, k.length},
		{k.store, k.at, k.mark, k.size, 1, k.length},
		{k.store, k.at, "", k.size, k.offset, k.length},
	} {
		if c.get(other, got) {
			t.Errorf("%v is found for %v", k, other)
		}
	}
	c.put(keyOf(100), make([]byte, 10_000)) // too large a share
	if c.get(keyOf(100), make([]byte, 10_000)) {
		t.Error("one part takes half of the cache")
	}
	// Another process goes on with it; damaged and unfinished files are none.
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(dir, keyOf(29).name())
	body, err := os.ReadFile(damaged)
	if err != nil {
		t.Fatal(err)
	}
	body[500] ^= 1
	for name, b := range map[string][]byte{damaged: body, filepath.Join(dir, keyOf(28).name()): body[:100], filepath.Join(dir, "new-1"): body, filepath.Join(dir, "readme"): body} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c = openCache(t, dir, 20_000)
	if c.get(keyOf(29), got) || c.get(keyOf(28), got) || !c.get(keyOf(27), got) || !bytes.Equal(got, part) {
		t.Error("damaged files are not told from good ones")
	}
	if _, err := os.Stat(filepath.Join(dir, "new-1")); err == nil {
		t.Error("an unfinished file was left")
	}
	if _, err := os.Stat(filepath.Join(dir, "readme")); err != nil {
		t.Error("a file of somebody else was deleted")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	openCache(t, dir, 3_000) // smaller now
	if list, _ := os.ReadDir(dir); len(list) > 5 {
		t.Errorf("%d files", len(list))
	}
}

func TestCacheTogether(t *testing.T) {
	c := openCache(t, filepath.Join(t.TempDir(), "cache"), 10_000)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			got := make([]byte, 1000)
			for i := range 200 {
				n := (i*7 + w) % 20
				want := bytes.Repeat([]byte{byte(n)}, 1000)
				if c.get(keyOf(n), got) && !bytes.Equal(got, want) {
					t.Error("another part")
				}
				c.put(keyOf(n), want)
			}
		})
	}
	wg.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := int64(0)
	for _, n := range c.used.Values() {
		sum += n
	}
	if sum != c.size || c.size > c.max {
		t.Errorf("size %d, sum %d", c.size, sum)
	}
}

// TestCacheRights: what is kept is given to nobody whom the store does not let open the
// object, and not for one that took its place.
func TestCacheRights(t *testing.T) {
	m := newMemory(t)
	want := pattern(1 << 20)
	m.objects["/b/wh/f"] = want
	c := openCache(t, filepath.Join(t.TempDir(), "cache"), 10<<20)
	client := m.client(t, Options{Cache: c})
	read := func() ([]byte, error) {
		o, err := client.Files(context.Background(), inFolder).Open("s3://b/wh/f")
		if err != nil {
			return nil, err
		}
		p := make([]byte, 1000)
		_, err = o.ReadAt(p, 5000)
		return p, err
	}
	for range 2 {
		if p, err := read(); err != nil || !bytes.Equal(p, want[5000:6000]) {
			t.Fatal(err)
		}
	}
	if s := c.Status(); s.Hits != 1 || s.Misses != 1 || s.HitBytes == 0 || s.MissBytes != s.HitBytes {
		t.Errorf("%+v", s)
	}
	m.failing(func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusForbidden); return true })
	if _, err := read(); !errors.Is(err, ErrDenied) {
		t.Errorf("read from the cache without rights: %v", err)
	}
	m.failing(nil)
	m.objects["/b/wh/f"] = bytes.Repeat([]byte("y"), 1<<20)
	if p, err := read(); err != nil || strings.Trim(string(p), "y") != "" {
		t.Errorf("a replaced object is read as it was (%v)", err)
	}
}
