package checks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// module is the path of this module.
const module = "sqe"

// goPackage is what `go list -json` says of a package.
type goPackage struct {
	ImportPath string
	Dir        string
	Doc        string
	GoFiles    []string
	CgoFiles   []string
	Imports    []string
	Deps       []string
	Standard   bool
}

// root is the folder of the repository.
func root() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

// packages lists the packages of the module, tests/ included.
func packages(dir string) ([]goPackage, error) {
	cmd := exec.Command("go", "list", "-tags", "duckdb_arrow,e2e", "-json=ImportPath,Dir,Doc,GoFiles,CgoFiles,Imports,Deps,Standard", "./...")
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, stderr.String())
	}
	var list []goPackage
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
}

// local is the import path without the module: "engine/duck".
func local(importPath string) string {
	return strings.TrimPrefix(strings.TrimPrefix(importPath, module), "/")
}

// under reports whether path is dir or lies below it.
func under(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+"/")
}

// trackedFile is a text file that git knows, or would with the next commit.
type trackedFile struct {
	path string // relative to the root, with slashes
	text []byte
}

// trackedFiles reads every text file that is tracked or neither tracked nor
// ignored. A file with a NUL byte counts as binary, as in git.
func trackedFiles(dir string) ([]trackedFile, error) {
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files (the checks run in a clone): %w", err)
	}
	var files []trackedFile
	for _, name := range strings.Split(strings.TrimRight(string(out), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, not committed yet
		}
		if err != nil {
			return nil, err
		}
		if bytes.IndexByte(text[:min(len(text), 8000)], 0) >= 0 {
			continue
		}
		files = append(files, trackedFile{name, text})
	}
	return files, nil
}

// lineOf is the number of the line that holds the byte at offset.
func lineOf(text []byte, offset int) int {
	return 1 + bytes.Count(text[:offset], []byte("\n"))
}
