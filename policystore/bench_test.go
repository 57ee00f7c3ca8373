package policystore

import (
	"fmt"
	"path/filepath"
	"testing"
)

// large is a store with so many policies, written in one transaction.
func large(b *testing.B, policies int) *Store {
	b.Helper()
	s := open(b, filepath.Join(b.TempDir(), "policies.db"), Options{})
	seedStore(b, s)
	err := s.write(as("admin"), func(c *tx) error {
		for n := range policies {
			p := access(fmt.Sprint("table", n), "select", "update")
			p.GUID, p.Version = newGUID(), 1
			if err := c.putPolicy(p, nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func BenchmarkTenThousandPolicies(b *testing.B) {
	s := large(b, 10_000)
	ctx := b.Context()
	version := get(s.Service(ctx, "hive"))(b).PolicyVersion
	b.Run("unchanged", func(b *testing.B) {
		for b.Loop() {
			if body, err := s.DownloadPolicies(ctx, "hive", version); err != nil || body != nil {
				b.Fatal(len(body), err)
			}
		}
	})
	b.Run("full again", func(b *testing.B) {
		for b.Loop() {
			body, err := s.DownloadPolicies(ctx, "hive", -1)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(body)))
		}
	})
	b.Run("full after a change", func(b *testing.B) {
		for b.Loop() {
			s.downloads = downloadCache{}
			body, err := s.DownloadPolicies(ctx, "hive", -1)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(body)))
		}
	})
	n := 0
	b.Run("create", func(b *testing.B) {
		for b.Loop() {
			n++
			if _, err := s.CreatePolicy(as("admin"), access(fmt.Sprint("new", n), "select")); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Policies(ctx, "hive"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
