package identity

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
)

// The parameters of new hashes. Source: OWASP Password Storage Cheat Sheet,
// argon2id with 19 MiB of memory.
const (
	hashMemory = 19 << 10 // KiB
	hashTime   = 2
	hashLanes  = 1
	saltLength = 16
	keyLength  = 32
)

// passwordHash is an argon2id hash with its parameters.
type passwordHash struct {
	memory, time uint32
	lanes        uint8
	salt, key    []byte
}

// HashPassword makes the argon2id hash of a password as a PHC string
// ("$argon2id$v=19$m=19456,t=2,p=1$salt$hash"). An empty password is refused.
func HashPassword(password string) (string, error) {
	if password == "" {
		return "", errors.New("the password is empty")
	}
	h := passwordHash{memory: hashMemory, time: hashTime, lanes: hashLanes, salt: make([]byte, saltLength)}
	_, _ = rand.Read(h.salt) // never fails (crypto/rand)
	h.key = h.derive(password, keyLength)
	return h.String(), nil
}

func (h passwordHash) derive(password string, length int) []byte {
	return argon2.IDKey([]byte(password), h.salt, h.time, h.memory, h.lanes, uint32(length))
}

// String is the PHC string.
func (h passwordHash) String() string {
	b := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.memory, h.time, h.lanes,
		b.EncodeToString(h.salt), b.EncodeToString(h.key))
}

// verify compares in constant time.
func (h passwordHash) verify(password string) bool {
	return subtle.ConstantTimeCompare(h.derive(password, len(h.key)), h.key) == 1
}

// parseHash reads a PHC string. Parameters that are too weak to protect a
// password, or so strong that a login would exhaust the machine, are errors. An error
// holds no part of the hash.
func parseHash(s string) (passwordHash, error) {
	var h passwordHash
	parts := strings.Split(s, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" {
		return h, errors.New("not an argon2id hash ($argon2id$v=19$m=...,t=...,p=...$salt$hash); make one with: sqe hash-password")
	}
	if parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return h, fmt.Errorf("argon2 version must be %d; make a new hash with: sqe hash-password", argon2.Version)
	}
	var end string
	n, _ := fmt.Sscanf(parts[3]+"\n", "m=%d,t=%d,p=%d%s", &h.memory, &h.time, &h.lanes, &end)
	if n != 3 || end != "" {
		return h, errors.New("the parameters are not m=...,t=...,p=...; make a new hash with: sqe hash-password")
	}
	switch {
	case h.memory < 8<<10 || h.memory > 1<<20:
		return h, errors.New("memory (m) must be between 8192 and 1048576 KiB; make a new hash with: sqe hash-password")
	case h.time < 1 || h.time > 16:
		return h, errors.New("time (t) must be between 1 and 16; make a new hash with: sqe hash-password")
	case h.lanes < 1 || h.lanes > 16:
		return h, errors.New("parallelism (p) must be between 1 and 16; make a new hash with: sqe hash-password")
	}
	var err error
	if h.salt, err = base64.RawStdEncoding.DecodeString(parts[4]); err != nil || len(h.salt) < 8 || len(h.salt) > 64 {
		return h, errors.New("the salt must be 8 to 64 bytes in base64 without padding; make a new hash with: sqe hash-password")
	}
	if h.key, err = base64.RawStdEncoding.DecodeString(parts[5]); err != nil || len(h.key) < 16 || len(h.key) > 64 {
		return h, errors.New("the hash must be 16 to 64 bytes in base64 without padding; make a new hash with: sqe hash-password")
	}
	return h, nil
}
