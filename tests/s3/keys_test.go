//go:build e2e

package s3

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sqe/catalog/objects"
)

// TestTemporaryKeys: what the other tests rely upon. A key opens what its policy says and nothing
// else, until it ends; and the store says which key each request came with.
func TestTemporaryKeys(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "lake"), 0o755); err != nil {
		t.Fatal(err)
	}
	store, keys := StartKeyed(t, dir)
	files := func(k Key) *objects.Files {
		c, err := objects.New(objects.Options{Endpoint: store.Endpoint, Credentials: objects.Credentials{AccessKeyID: k.ID, SecretAccessKey: k.Secret, SessionToken: k.Token}})
		if err != nil {
			t.Fatal(err)
		}
		return c.Files(context.Background(), func(string) bool { return true })
	}
	writer, reader := keys.Give(t, Policy("lake/a", "s3:GetObject", "s3:PutObject"), time.Hour), keys.Give(t, Policy("lake/a", "s3:GetObject"), time.Hour)
	check := func(what string, err error, denied bool) {
		t.Helper()
		if denied != errors.Is(err, objects.ErrDenied) || !denied && err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	check("the writer writes", files(writer).WriteFile("s3://lake/a/f", []byte("x")), false)
	check("the writer writes elsewhere", files(writer).WriteFile("s3://lake/b/f", []byte("x")), true)
	check("the reader writes", files(reader).WriteFile("s3://lake/a/g", []byte("x")), true)
	_, err := files(reader).ReadFile("s3://lake/a/f")
	check("the reader reads", err, false)
	forged := reader
	forged.Token = writer.Token
	_, err = files(forged).ReadFile("s3://lake/a/f")
	check("a key with the token of another one", err, true)
	seen := map[string]string{}
	for _, u := range store.Uses(t) {
		if u.Status == "200" {
			seen[u.Key] += u.Operation + " " + u.Object + ","
		}
	}
	if len(seen) != 2 || seen[writer.ID] != "s3_PutObject lake/a/f," || seen[reader.ID] != "s3_GetObject lake/a/f," {
		t.Errorf("the store says %v of %s and %s", seen, writer.ID, reader.ID)
	}
	keys.Change(t, func(k Key) Key {
		if k.ID == writer.ID {
			k.Policy = reader.Policy
		} else {
			k.Expires = time.Now().Add(-time.Second)
		}
		return k
	})
	check("the writer that was narrowed", files(writer).WriteFile("s3://lake/a/f", []byte("y")), true)
	_, err = files(writer).ReadFile("s3://lake/a/f")
	check("the writer that was narrowed reads", err, false)
	_, err = files(reader).ReadFile("s3://lake/a/f")
	check("the reader that expired", err, true)
}
