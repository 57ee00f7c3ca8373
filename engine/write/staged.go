package write

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	icebergio "github.com/apache/iceberg-go/io"

	"sqe/fault"
)

// staged are the files that a write has made and that no commit has made visible.
type staged struct {
	fs icebergio.WriteFileIO

	mu    sync.Mutex
	paths []string
}

// add must be called before the file is created.
func (s *staged) add(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paths = append(s.paths, path)
}

// keep leaves every file where it is.
func (s *staged) keep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paths = nil
}

// folders removes the folders of a table on a local disk that hold nothing. Nobody
// else may write into the table: a folder could go in which a file is about to be.
func (s *staged) folders(location string) {
	root := spellings(location)
	if strings.Contains(root[0], "://") {
		return
	}
	for _, r := range root {
		var dirs []string
		_ = filepath.WalkDir(r, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, p)
			}
			return err
		})
		for _, d := range slices.Backward(dirs) {
			_ = os.Remove(d) // which a folder that holds something survives
		}
	}
}

// discard removes the files. cause is the error that is the reason, which comes back
// with the files that are left, for the log of the operator.
func (s *staged) discard(cause error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var left []string
	var errs []error
	for _, p := range s.paths {
		if err := s.fs.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			left = append(left, p)
			errs = append(errs, err)
		}
	}
	s.paths = nil
	if len(left) == 0 {
		return cause
	}
	trouble := fmt.Errorf("%d files of a failed write could not be removed (%s): %w", len(left), strings.Join(left, ", "), errors.Join(errs...))
	var f *fault.Fault
	if errors.As(cause, &f) {
		return fault.Wrap(f.Kind, errors.Join(f.Unwrap(), trouble), "%s", f.Text)
	}
	return errors.Join(cause, trouble)
}
