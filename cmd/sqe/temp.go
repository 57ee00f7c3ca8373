package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ownTemp makes the folder for rows that do not fit into memory, and takes it for this
// process until release. What a server that was killed has left there are rows, raw
// ones too, and is deleted, unless another server lives that has the folder.
func ownTemp(dir string) (release func(), err error) {
	fail := func(err error) (func(), error) {
		return func() {}, fmt.Errorf("engine.temp-directory cannot be used: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fail(err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fail(err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return func() {}, nil
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "duckdb_temp_") && !e.IsDir() {
			if gone := os.Remove(filepath.Join(dir, e.Name())); !errors.Is(gone, fs.ErrNotExist) {
				err = errors.Join(err, gone)
			}
		}
	}
	if err != nil {
		_ = lock.Close()
		return fail(err)
	}
	return func() { _ = lock.Close() }, nil
}
