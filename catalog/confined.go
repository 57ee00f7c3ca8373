package catalog

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"sqe/fault"
)

// confined are the local files below one folder. Where a catalog is another
// party, its metadata must not lead to other files of this machine.
type confined struct {
	icebergio.LocalFS
	root string
}

var (
	_ icebergio.WriteFileIO = confined{}
	_ icebergio.ReadFileIO  = confined{}
	_ icebergio.ListableIO  = confined{}
)

// confine gives the files of a table that lies at a location.
func confine(location, root string) (icebergio.IO, error) {
	store, _, ok := place(location)
	switch {
	case !ok:
		return nil, fault.New(fault.Corrupt, "The catalog gives a table a location that is none; an administrator must look at the table in the catalog")
	case store != "file":
		return nil, fault.Wrap(fault.Unsupported, icebergio.ErrIOSchemeNotFound, "The table lies in a kind of storage that SQE cannot read")
	case root == "" || !belowEither(root, location):
		return nil, fault.New(fault.Unsupported, "The table lies outside the folder from which files of this catalog are read; an administrator can set it in the configuration (warehouse)")
	}
	return confined{root: root}, nil
}

// slashes writes "file:/x", as some catalogs do, as "file:///x".
func slashes(location string) string {
	if rest, ok := strings.CutPrefix(location, "file:/"); ok && !strings.HasPrefix(rest, "/") {
		return "file:///" + rest
	}
	return location
}

// belowEither reports whether a location lies in a folder, whichever way its percent signs
// are read: as escapes, or as themselves, which is how local files are opened.
func belowEither(folder, location string) bool {
	location = slashes(location)
	return below(folder, location) && (!strings.Contains(location, "%") || below(folder, strings.ReplaceAll(location, "%", "%25")))
}

// file is a name that is in the folder.
func (c confined) file(name string) (string, error) {
	name = slashes(name)
	if !belowEither(c.root, name) {
		return "", &fs.PathError{Op: "open", Path: "a file of the table", Err: errOutside}
	}
	return name, nil
}

var errOutside = errors.New("it lies outside the folder of the catalog")

// Open implements icebergio.IO.
func (c confined) Open(name string) (icebergio.File, error) {
	name, err := c.file(name)
	if err != nil {
		return nil, err
	}
	return c.LocalFS.Open(name)
}

// Remove implements icebergio.IO.
func (c confined) Remove(name string) error {
	name, err := c.file(name)
	if err != nil {
		return err
	}
	return c.LocalFS.Remove(name)
}

// RemoveAll is not possible: nothing here deletes folders with what is in them.
func (c confined) RemoveAll(string) error { return errors.ErrUnsupported }

// ReadFile implements icebergio.ReadFileIO.
func (c confined) ReadFile(name string) ([]byte, error) {
	name, err := c.file(name)
	if err != nil {
		return nil, err
	}
	return c.LocalFS.ReadFile(name)
}

// Create implements icebergio.WriteFileIO.
func (c confined) Create(name string) (icebergio.FileWriter, error) {
	name, err := c.file(name)
	if err != nil {
		return nil, err
	}
	return c.LocalFS.Create(name)
}

// WriteFile implements icebergio.WriteFileIO.
func (c confined) WriteFile(name string, content []byte) error {
	name, err := c.file(name)
	if err != nil {
		return err
	}
	return c.LocalFS.WriteFile(name, content)
}

// WalkDir implements icebergio.ListableIO.
func (c confined) WalkDir(root string, fn fs.WalkDirFunc) error {
	root, err := c.file(root)
	if err != nil {
		return err
	}
	return c.LocalFS.WalkDir(root, fn)
}

// ReadDir lists a folder.
func (c confined) ReadDir(name string) ([]fs.DirEntry, error) {
	name, err := c.file(name)
	if err != nil {
		return nil, err
	}
	return c.LocalFS.ReadDir(name)
}

// committed is the catalog of the tables that are handed out: they commit through
// Commit and not by themselves.
type committed struct{}

// LoadTable implements table.CatalogIO.
func (committed) LoadTable(context.Context, table.Identifier) (*table.Table, error) {
	return nil, errors.New("a table of a scan does not load itself: use Catalog.Table")
}

// CommitTable implements table.CatalogIO.
func (committed) CommitTable(context.Context, table.Identifier, []table.Requirement, []table.Update) (table.Metadata, string, error) {
	return nil, "", errors.New("a table of a scan does not commit itself: use Changer.Commit")
}
