package catalog

import (
	"context"
	"errors"
	"testing"

	icebergio "github.com/apache/iceberg-go/io"

	"sqe/catalog/objects"
	"sqe/fault"
)

func TestBelowInObjectStores(t *testing.T) {
	for _, c := range []struct {
		folder, location string
		want             bool
	}{
		{"s3://b/wh", "s3://b/wh/t/f", true},
		{"s3://b/wh/", "s3a://b/wh/t/f", true}, // one file system, three names
		{"s3n://b/wh", "s3://b/wh/f%2e%20", true},
		{"s3://b", "s3://b/f", true},
		{"s3://b/wh", "s3://b/wh//f", true},
		{"s3://b/wh", "s3://b/wh", false},
		{"s3://b/wh", "s3://b/wh2/f", false},
		{"s3://b/wh", "s3://c/wh/f", false},
		{"s3://b/wh", "s3://b/wh/../f", false},
		{"s3://b/wh", "s3://b/wh/./f", false},
		{"s3://b/wh/t", "s3://b/wh//t/f", false},
		{"s3://b/wh", "s3://B/wh/f", false},
		{"s3://b/wh", "s3://b%2fwh/f", false},
		{"s3://b/wh", "s3://x@b/wh/f", false},
		{"s3://b/wh", "/wh/f", false},
		{"s3://b/wh", "file:///wh/f", false},
		{"/wh", "s3://b/wh/f", false},
		{"/", "s3:/wh/f", false},
	} {
		if got := below(c.folder, c.location); got != c.want {
			t.Errorf("below(%q, %q): %v", c.folder, c.location, got)
		}
	}
}

// TestStorageOfAWarehouse: which files a catalog opens by where its warehouse is.
func TestStorageOfAWarehouse(t *testing.T) {
	client, err := objects.New(objects.Options{Endpoint: "http://127.0.0.1:1", Attempts: 1, Credentials: objects.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	remote, local := storage{"s3://b/wh", client}, storage{"/wh", nil}
	for _, c := range []struct {
		s        storage
		location string
		want     bool
	}{
		{remote, "s3://b/wh/t", true},
		{remote, "/wh/t", false},
		{remote, "file:///etc", false},
		{remote, "gs://b/wh", false},
		{local, "/wh/t", true},
		{local, "s3://b/wh/t", false},
		{local, "gs://b/wh", false},
	} {
		_, err := c.s.files(ctx, c.location)
		if (err == nil) != c.want || err != nil && !errors.Is(err, icebergio.ErrIOSchemeNotFound) {
			t.Errorf("%s from %s: %v", c.location, c.s.warehouse, err)
		}
	}
	fs, err := remote.files(ctx, "s3://b/wh/t")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Open("s3://b/other/f"); !errors.Is(err, objects.ErrOutside) || !fault.Is(StorageFault(err, "x"), fault.Unsupported) {
		t.Error(err)
	}
	if _, err := fs.Open("s3://b/wh/t/f"); !errors.Is(err, objects.ErrUnavailable) || !fault.Is(StorageFault(err, "x"), fault.Unavailable) {
		t.Error(err)
	}
	if _, err := OpenSQLite("lake", t.TempDir()+"/c.db", "s3://b/wh", SQLOptions{Create: true}); !fault.Is(err, fault.Config) {
		t.Errorf("a warehouse in a store without credentials: %v", err)
	}
}
