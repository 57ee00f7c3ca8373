package objects

// cacheKey names a part of one version of an object.
type cacheKey struct {
	store          string
	at             Location
	mark           string
	size           int64
	offset, length int64
}

// Cache keeps parts of objects on the local disk.
type Cache struct{}

// OpenCache opens a cache.
func OpenCache(string, int64) (*Cache, error) { return nil, nil }

func (c *Cache) get(cacheKey, []byte) bool { return false }

func (c *Cache) put(cacheKey, []byte) {}
