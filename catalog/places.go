package catalog

import (
	"context"
	"errors"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	icebergcatalog "github.com/apache/iceberg-go/catalog"
	"github.com/google/uuid"

	"sqe/catalog/objects"
	"sqe/fault"
	"sqe/plan"
)

// below reports whether a location lies in a folder, however the two are written:
// a path or a URI, with links or without. What cannot be told is not below.
func below(folder, location string) bool {
	store, root, ok := place(folder)
	if !ok {
		return false
	}
	other, file, ok := place(location)
	return ok && store == other && strings.HasPrefix(file, strings.TrimSuffix(root, "/")+"/")
}

// place splits a location into the store and the path in it.
func place(location string) (store, file string, ok bool) {
	if objects.Is(location) {
		return objectPlace(location)
	}
	store, file = "file", location
	if strings.Contains(location, "://") || strings.HasPrefix(strings.ToLower(location), "file:") {
		u, err := url.Parse(location)
		if err != nil || u.RawQuery != "" || u.Fragment != "" {
			return "", "", false
		}
		store, file = strings.ToLower(u.Scheme)+"://"+u.Host, u.Path
		if strings.EqualFold(u.Scheme, "file") {
			if store = "file"; u.Opaque != "" || (u.Host != "" && !strings.EqualFold(u.Host, "localhost")) {
				return "", "", false
			}
		}
	}
	if !path.IsAbs(file) {
		return "", "", false
	}
	for part := range strings.SplitSeq(file, "/") {
		if part == ".." {
			return "", "", false
		}
	}
	file = path.Clean(file)
	if store == "file" {
		file = resolved(file)
	}
	return store, file, true
}

// resolved follows the links of a path as far as there is something.
func resolved(file string) string {
	rest := ""
	for dir := filepath.FromSlash(file); ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return path.Join(filepath.ToSlash(real), rest)
		}
		if dir == filepath.Dir(dir) {
			return file
		}
		rest = path.Join(filepath.Base(dir), rest)
	}
}

// newLocation is the folder of a new table or view. No other one ever has it: a
// table that is renamed keeps its folder, and a purge or a search for orphan files
// in a shared one would take files of another table.
func (c *SQL) newLocation(ctx context.Context, name plan.TableName) (string, error) {
	props, err := c.iceberg.LoadNamespaceProperties(ctx, name.Namespace)
	if errors.Is(err, icebergcatalog.ErrNoSuchNamespace) {
		return "", noNamespace(name.Namespace)
	} else if err != nil {
		return "", c.failed(ctx, err)
	}
	id := uuid.New()
	folder := fileName(name.Name) + "-" + strings.ReplaceAll(id.String(), "-", "")
	base := props.Get("location", "")
	switch {
	case base == "":
		base = c.props["warehouse"]
		folder = path.Join(fileName(strings.Join(name.Namespace, "."))+".db", folder)
	case !below(c.props["warehouse"], base):
		return "", fault.New(fault.BadStatement, "The location of database '%s' is not below the warehouse of the catalog; correct its property location", JoinDatabase(name.Namespace...))
	}
	location, err := url.JoinPath(base, folder)
	if err != nil {
		return "", fault.Wrap(fault.Config, err, "The warehouse of catalog '%s' is no location", c.name)
	}
	return location, nil
}

// fileName makes a name fit for a folder, whatever it holds.
func fileName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '_'
	}, name)
	if len(name) > 64 {
		name = name[:64]
	}
	if name = strings.TrimLeft(name, "."); name == "" {
		return "_"
	}
	return name
}
