package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sqe/config"
)

// storeMarker is a file in the state directory that holds the identity of the policy
// store which this server made or used first at a path. Without it, a store whose file
// is lost would start anew with no policy, and where another source decides who may
// read which table nothing would be masked.
type storeMarker struct{ file string }

func markerOf(cfg *config.Config) (storeMarker, error) {
	path, err := filepath.Abs(string(cfg.Store.Path))
	if err != nil {
		return storeMarker{}, fmt.Errorf("policystore.path: %w", err)
	}
	sum := sha256.Sum256([]byte(path))
	return storeMarker{filepath.Join(string(cfg.Server.StateDirectory), "policystore-"+hex.EncodeToString(sum[:6]))}, nil
}

// known is the identity in the marker, "" when there is no marker.
func (m storeMarker) known() (string, error) {
	body, err := os.ReadFile(m.file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("the marker %s of the policy store cannot be read: %w", m.file, err)
	}
	id := strings.TrimSpace(string(body))
	if id == "" {
		return "", fmt.Errorf("the marker %s of the policy store is damaged; when the file of the store is the right one, remove the marker and start again", m.file)
	}
	return id, nil
}

// exists refuses a store whose file is gone.
func (m storeMarker) exists(path string) error {
	id, err := m.known()
	if err != nil || id == "" {
		return err
	}
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		return nil
	}
	return fmt.Errorf("the file of the policy store, %s, is gone or empty: put it, or a backup of it, back. "+
		"To begin with a store that holds no policy, remove %s and start again", path, m.file)
}

// same refuses another store than the one of before, and remembers the first.
func (m storeMarker) same(path, id string) error {
	known, err := m.known()
	switch {
	case err != nil:
		return err
	case known == id:
		return nil
	case known != "":
		return fmt.Errorf("the file of the policy store, %s, is another one than before: put the earlier one, or a backup of it, back. "+
			"To use this one from now on, remove %s and start again", path, m.file)
	}
	if err := os.MkdirAll(filepath.Dir(m.file), 0o700); err != nil {
		return fmt.Errorf("server.state-directory cannot be made: %w", err)
	}
	if err := writeDurably(m.file, id+"\n"); err != nil {
		return fmt.Errorf("the marker of the policy store cannot be written to server.state-directory: %w", err)
	}
	return nil
}

// writeDurably makes a file whose content is on disk, whole or not at all.
func writeDurably(path, content string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // once renamed there is none
	_, err = f.WriteString(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
