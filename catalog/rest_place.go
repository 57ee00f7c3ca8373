package catalog

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"

	"sqe/catalog/rest"
	"sqe/plan"
)

// place proposes the location of a new table where the catalog would make one of names
// that an address has to escape: "" leaves it to the catalog. Engines differ in whether a
// percent sign in a location is an escape, so that one would not find the files of
// another. Names stay as they are.
func (c *REST) place(ctx context.Context, name plan.TableName, asked rest.NewTable) string {
	names := append(slices.Clone(name.Namespace), name.Name)
	if !slices.ContainsFunc(names, escapes) {
		return ""
	}
	asked.Stage = true
	// What is wrong with the table the catalog says when it is created.
	staged, err := c.client.CreateTable(MetadataOnly(ctx), name.Namespace, asked)
	if err != nil || !escapes(staged.Metadata.Location()) {
		return ""
	}
	return respelled(staged.Metadata.Location(), names)
}

// elsewhere reports whether a catalog may have refused a table for the location that was
// proposed.
func elsewhere(err error) bool {
	status := statusOf(err)
	return status == http.StatusBadRequest || status == http.StatusForbidden || status == http.StatusUnprocessableEntity
}

// escapes reports whether a location, or a name in one, holds what an address escapes.
func escapes(location string) bool {
	return strings.ContainsFunc(location, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("-._~/:@!$&'()*+,;=", r)
	})
}

// respelled writes the folders of a location that are made of names so that nothing in
// it need be escaped; the last one is new. "" where that is not possible.
func respelled(location string, names []string) string {
	made := func(folder string) bool {
		is := func(folder string) bool {
			folder = strings.TrimSuffix(folder, ".db")
			return folder == strings.Join(names[:len(names)-1], ".") || slices.ContainsFunc(names, func(n string) bool { return escapes(n) && strings.Contains(folder, n) })
		}
		plain, err := url.PathUnescape(folder)
		return is(folder) || err == nil && is(plain)
	}
	folders := strings.Split(strings.TrimRight(location, "/"), "/")
	for i, f := range folders {
		if escapes(f) && made(f) {
			folders[i] = fileName(f)
		}
	}
	folders[len(folders)-1] = fileName(folders[len(folders)-1]) + "-" + strings.ReplaceAll(uuid.NewString(), "-", "")
	if out := strings.Join(folders, "/"); !escapes(out) {
		return out
	}
	return ""
}
