package config

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Import is [import].
type Import struct {
	Local       bool     `key:"local" default:"true" doc:"Take files that clients send (LOAD DATA LOCAL INFILE, sqe import). A client sends only what it reads itself; it lies in engine.temp-directory, without a name, while it is read."`
	Directories []string `key:"directories" doc:"Folders of this machine from which LOAD DATA INFILE and CREATE TABLE ... FROM INFILE may read. Whoever may create or write any table can read every file below them. None: no file of the server is read."`
	MaxBytes    Size     `key:"max-bytes" default:"16GiB" min:"1MiB" doc:"Largest file, also when it is unpacked."`
}

// checkImport makes the folders absolute.
func (l *loader) checkImport(c *Config) {
	for i, d := range c.Import.Directories {
		key := fmt.Sprintf("import.directories[%d]", i)
		if d != "" && !filepath.IsAbs(d) {
			d = filepath.Join(l.dir, d)
		}
		switch d = filepath.Clean(d); {
		case c.Import.Directories[i] == "" || strings.ContainsRune(d, 0):
			l.problem(key, "must be a folder")
		case d == string(filepath.Separator):
			l.problem(key, "is the whole file system, with the secrets of this server; name a folder for files that everybody may read")
		}
		c.Import.Directories[i] = d
	}
}
