package engine

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"sqe/engine/importfile"
	"sqe/engine/parse"
	"sqe/fault"
)

// Import says which files statements may read. The zero value is none.
type Import struct {
	// Local lets clients send files of their own.
	Local bool
	// Directories hold the files of the server that may be read, by everybody who may
	// write the table that they go to. What is not below one of them, links followed,
	// does not exist.
	Directories []string
	// MaxBytes is the largest file, also when it is unpacked; 0 is no bound.
	MaxBytes int64
	// Spool is the folder in which the file of a client lies while it is read, without
	// a name; "" is that of the operating system.
	Spool string
}

// infile is the open file of a statement.
type infile struct {
	importfile.File
	file *os.File
	// named: columns are found by their names in the file.
	named bool
}

// Close closes the file; that of a client is gone then.
func (in *infile) Close() { _ = in.file.Close() }

// openInfile opens the file of a statement. header: a text file must name its
// columns; else its rows have so many fields.
func (st *statement) openInfile(ctx context.Context, x *parse.Infile, header bool, fields int) (*infile, error) {
	o, err := fileOptions(x, header)
	if err != nil {
		return nil, err
	}
	o.MaxBytes = st.engine.imports.MaxBytes
	if !o.Header {
		o.Fields = fields
	}
	in := &infile{named: o.Kind == importfile.Parquet || o.Header}
	if x.Local {
		in.file, err = st.receive(ctx, x.Name)
	} else {
		in.file, err = st.engine.imports.open(x.Name)
	}
	if err != nil {
		return nil, err
	}
	if in.File, err = importfile.Open(ctx, in.file, o); err != nil {
		in.Close()
		return nil, err
	}
	return in, nil
}

// fileOptions are the options that a statement gives, with the defaults of the
// format.
// header says that a text file must name its columns.
func fileOptions(x *parse.Infile, header bool) (importfile.Options, error) {
	var o importfile.Options
	kind, separator, gzip := importfile.KindOf(x.Name)
	described := x.Terminated != nil || x.Enclosed != nil || x.Escaped != nil || x.Lines != nil || x.Ignore >= 0
	switch {
	case x.Format == "parquet", x.Format == "" && kind == importfile.Parquet:
		if described {
			return o, fault.New(fault.BadStatement, "FIELDS, LINES and IGNORE are for text files; a Parquet file needs none of them")
		}
		o.Kind = importfile.Parquet
		return o, nil
	case x.Format == "csv", kind == importfile.CSV, x.Terminated != nil:
		o.Kind = importfile.CSV
	default:
		return o, fault.New(fault.BadStatement, "the name of the file does not say its format; write FORMAT PARQUET or FORMAT CSV behind the table")
	}
	o.Gzip = gzip
	o.Terminated, o.Enclosed = ",", '"'
	if separator != "" {
		o.Terminated = separator
	}
	if x.Terminated != nil {
		o.Terminated = *x.Terminated
	}
	if x.Lines != nil && *x.Lines != "\n" {
		o.Lines = *x.Lines
	}
	char := func(to *byte, s *string) {
		if s != nil {
			*to = 0
			if *s != "" {
				*to = (*s)[0]
			}
		}
	}
	char(&o.Enclosed, x.Enclosed)
	char(&o.Escaped, x.Escaped)
	for _, c := range []byte{o.Enclosed, o.Escaped} {
		if c != 0 && (strings.IndexByte(o.Terminated, c) >= 0 || strings.IndexByte(o.Lines, c) >= 0 || c == '\n') {
			return o, fault.New(fault.BadStatement, "one character cannot both end a field or a line and enclose or escape what is in it")
		}
	}
	if o.Enclosed != 0 && o.Enclosed == o.Escaped {
		o.Escaped = 0 // a quote inside is written twice, which is always understood
	}
	// The header is the last line that is passed over, the first one when none are.
	o.Ignore = max(0, x.Ignore)
	if o.Header = header; header && x.Ignore < 0 {
		o.Ignore = 1
	}
	if header && o.Ignore == 0 {
		return o, fault.New(fault.BadStatement, "the columns are to be found by the names in the file, and IGNORE 0 LINES says that it has no line with names; name the columns in brackets at the end of the statement")
	}
	return o, nil
}

// errNoFile is the one error for a file that is not there, is none, or lies where
// nothing may be read.
var errNoFile = fault.New(fault.BadStatement, "There is no such file in the directories from which this server loads files (import.directories); ask an administrator, or send the file with LOCAL INFILE")

// open opens a file of the server. A link that leads out of the directories is not
// followed, whenever it is made.
func (i *Import) open(name string) (*os.File, error) {
	if len(i.Directories) == 0 {
		return nil, fault.New(fault.Unsupported, "this server loads no files of its own, since import.directories names none; send the file with LOCAL INFILE, or ask an administrator")
	}
	for _, dir := range i.Directories {
		f, err := openBelow(dir, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, errNoFile
		}
		info, err := f.Stat()
		if err != nil || !info.Mode().IsRegular() {
			_ = f.Close()
			return nil, errNoFile
		}
		if i.MaxBytes > 0 && info.Size() > i.MaxBytes {
			_ = f.Close()
			return nil, tooLarge()
		}
		return f, nil
	}
	return nil, errNoFile
}

func tooLarge() error {
	return fault.New(fault.Limit, "the file is larger than import.max-bytes allows; divide it, or ask an administrator")
}

// openBelow opens a file below a directory, by its path in it or an absolute one.
// It waits for nobody who might open the other end of a pipe.
func openBelow(dir, name string) (*os.File, error) {
	if filepath.IsAbs(name) {
		rel, err := filepath.Rel(dir, filepath.Clean(name))
		if err != nil {
			return nil, fs.ErrNotExist
		}
		name = rel
	}
	if !filepath.IsLocal(name) {
		return nil, fs.ErrNotExist
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	return root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// receive asks the client for a file and keeps it, without a name, until it is
// closed.
func (st *statement) receive(ctx context.Context, name string) (_ *os.File, err error) {
	limits := &st.engine.imports
	switch {
	case !limits.Local:
		return nil, fault.New(fault.Unsupported, "this server takes no files of clients (import.local is off); ask an administrator")
	case st.session.info.LocalFile == nil:
		return nil, errNoLocal
	}
	f, err := os.CreateTemp(limits.Spool, "import-*")
	if err == nil {
		// Whatever happens to this process, nothing is left.
		if err = os.Remove(f.Name()); err != nil {
			_ = f.Close()
		}
	}
	if err != nil {
		return nil, unspooled(err)
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	in, err := st.session.info.LocalFile(ctx, name)
	if err != nil {
		return nil, err
	}
	var n int64
	buf := make([]byte, 256<<10)
	for {
		k, err := in.Read(buf)
		if n += int64(k); limits.MaxBytes > 0 && n > limits.MaxBytes {
			return nil, tooLarge()
		}
		if _, werr := f.Write(buf[:k]); werr != nil {
			return nil, unspooled(werr)
		}
		switch {
		case err == io.EOF:
			return f, nil
		case err != nil:
			return nil, err
		}
		st.progress("receiving: " + counted(n>>20) + " MiB")
	}
}

// errNoLocal says that the client does not send files.
var errNoLocal = fault.New(fault.Unsupported, "the client does not send files; turn that on (mysql and mariadb --local-infile=1, JDBC allowLoadLocalInfile=true, PyMySQL local_infile=True), send the statement as text and not prepared, or use sqe import")

func unspooled(err error) error {
	return fault.Wrap(fault.Unavailable, err, "the file cannot be kept while it is read: the folder for temporary data is full or cannot be written; nothing was loaded. An administrator must look at the log")
}
