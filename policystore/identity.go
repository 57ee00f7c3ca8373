package policystore

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"
)

// storeIdentity is the row of counters that holds the identity of the file.
const storeIdentity = "identity"

// ID is the identity of the file: random, made with it, and the same in its copies.
// Another file in its place, or a new one, has another.
func (s *Store) ID() string { return s.id }

// identify reads the identity, and gives one to a file that has none.
func (s *Store) identify(ctx context.Context) error {
	var id int64
	read := func(t *tx) error {
		return optional(t.one(`SELECT version FROM counters WHERE name = ?`, []any{storeIdentity}, &id))
	}
	if err := s.read(ctx, read); err != nil {
		return err
	}
	if id == 0 {
		err := s.commit(ctx, func(c *tx) error {
			if err := read(c); err != nil || id != 0 {
				return err
			}
			var b [8]byte
			_, _ = rand.Read(b[:]) // never fails (crypto/rand)
			id = int64(binary.BigEndian.Uint64(b[:])&math.MaxInt64) | 1
			return c.exec(`INSERT INTO counters VALUES (?, ?, ?)`, storeIdentity, id, c.millis())
		})
		if err != nil {
			return err
		}
	}
	s.id = fmt.Sprintf("%016x", id)
	return nil
}
