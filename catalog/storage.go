package catalog

import (
	"context"
	"errors"
	"strings"

	icebergio "github.com/apache/iceberg-go/io"

	"sqe/catalog/objects"
	"sqe/fault"
)

// storage opens the files of a catalog whose places are known from the configuration.
type storage struct {
	warehouse string
	// client is that of the warehouse in an object store; nil for one on the local disk.
	client *objects.Client
}

// files gives the files among which a location is. Those of an object store are the
// ones of the warehouse alone: the credentials may open more, and where a table's
// metadata lead is written by whoever may write the table.
func (s storage) files(ctx context.Context, location string) (icebergio.IO, error) {
	switch {
	case objects.Is(location) && s.client == nil:
		return nil, fault.Wrap(fault.Unsupported, icebergio.ErrIOSchemeNotFound, "The table lies in an object store, and its catalog has none; an administrator can set its warehouse in the configuration")
	case objects.Is(location):
		return s.client.Files(ctx, func(l string) bool { return below(s.warehouse, l) }), nil
	case s.client != nil:
		return nil, fault.Wrap(fault.Unsupported, icebergio.ErrIOSchemeNotFound, "The table lies outside the object store of its catalog")
	}
	return icebergio.LoadFS(ctx, nil, location)
}

// of is files for iceberg-go's tables.
func (s storage) of(location string) func(context.Context) (icebergio.IO, error) {
	return func(ctx context.Context) (icebergio.IO, error) { return s.files(ctx, location) }
}

// StorageFault is the fault of a failed access to an object store, nil for any other
// error. whose says whose files were meant, such as "table 'a.b'".
func StorageFault(err error, whose string) error {
	switch {
	case errors.Is(err, objects.ErrDenied):
		return fault.Wrap(fault.Unavailable, err, "The object store does not let the server reach the files of %s; an administrator must look at the log, and at the credentials and rights of the catalog's storage", whose)
	case errors.Is(err, objects.ErrBucket):
		return fault.Wrap(fault.Unavailable, err, "The object store has no such bucket for the files of %s; an administrator must look at the log, and at the endpoint and region of the catalog's storage", whose)
	case errors.Is(err, objects.ErrUnavailable):
		return fault.Wrap(fault.Unavailable, err, "The object store with the files of %s does not answer; try again, or ask an administrator to look at the log", whose)
	case errors.Is(err, objects.ErrRefused):
		return fault.Wrap(fault.Unavailable, err, "The object store does not take a request for the files of %s; an administrator must look at the log", whose)
	case errors.Is(err, objects.ErrChanged):
		return fault.Wrap(fault.Corrupt, err, "A file of %s was replaced while it was read; try again, and ask an administrator who writes into its folder", whose)
	case errors.Is(err, objects.ErrOutside):
		return fault.Wrap(fault.Unsupported, err, "A file of %s lies outside the folder from which files of its catalog are read", whose)
	}
	return nil
}

// objectPlace splits a location in an object store. The key is what it is: neither is
// anything in it an escape, nor do two slashes mean one.
func objectPlace(location string) (store, file string, ok bool) {
	at, ok := objects.Parse(location)
	return "s3://" + at.Bucket, "/" + strings.TrimPrefix(at.Key, "/"), ok
}
