package objects

import (
	"slices"
	"strings"
)

// Location is an object, or with Key as a prefix the folder of some.
type Location struct{ Bucket, Key string }

// schemes are the ways of writing s3, as Hadoop's three file systems are called.
var schemes = []string{"s3", "s3a", "s3n"}

// Parse reads "s3://bucket/key". The key is taken as it is written: nothing in it is
// an escape. A key with a part "." or ".." is refused: stores above file systems
// would leave the folder by it.
func Parse(location string) (Location, bool) {
	scheme, rest, ok := strings.Cut(location, "://")
	if !ok || !slices.Contains(schemes, strings.ToLower(scheme)) {
		return Location{}, false
	}
	bucket, key, _ := strings.Cut(rest, "/")
	if bucket == "" || strings.ContainsAny(bucket, "?#@:%\\ ") {
		return Location{}, false
	}
	for part := range strings.SplitSeq(key, "/") {
		if part == "." || part == ".." {
			return Location{}, false
		}
	}
	return Location{bucket, key}, true
}

// Is reports whether a location is meant for this package, right or wrong.
func Is(location string) bool {
	scheme, _, ok := strings.Cut(location, ":")
	return ok && slices.Contains(schemes, strings.ToLower(scheme))
}
