package objects

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	icebergio "github.com/apache/iceberg-go/io"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

func sortParts(parts []part) {
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.Offset, b.Offset) })
}

// partSize is how large the parts are in which a large object is written; what is less
// is written at once. A writer holds one in memory.
const partSize = 8 << 20

// Create implements icebergio.WriteFileIO. There is an object when the writer has been
// closed without an error; else there is none.
func (f *Files) Create(location string) (icebergio.FileWriter, error) {
	c, at, err := f.at(location)
	if err != nil {
		return nil, pathError("create", err)
	}
	if err := f.ctx.Err(); err != nil {
		return nil, pathError("create", err)
	}
	return &writer{ctx: f.ctx, client: c, at: at}, nil
}

// WriteFile implements icebergio.WriteFileIO.
func (f *Files) WriteFile(location string, content []byte) error {
	w, err := f.Create(location)
	if err != nil {
		return err
	}
	_, err = w.Write(content)
	return errors.Join(err, w.Close())
}

type writer struct {
	ctx    context.Context
	client *Client
	at     Location
	buf    []byte
	upload *string // of an object in parts
	parts  []types.CompletedPart
	failed error
	closed bool
}

// Write implements io.Writer.
func (w *writer) Write(p []byte) (int, error) {
	if w.closed {
		return 0, fs.ErrClosed
	}
	n := 0
	for len(p) > 0 && w.failed == nil {
		some := min(len(p), partSize-len(w.buf))
		w.buf = append(w.buf, p[:some]...)
		p = p[some:]
		n += some
		if len(w.buf) == partSize {
			w.fail(w.flush())
		}
	}
	return n, w.failed
}

// ReadFrom implements io.ReaderFrom.
func (w *writer) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{w}, r)
}

// Close implements io.Closer.
func (w *writer) Close() error {
	if w.closed {
		return w.failed
	}
	w.closed = true
	if w.failed == nil {
		w.fail(w.finish())
	}
	if w.failed != nil {
		w.abort()
	}
	w.buf = nil
	return w.failed
}

func (w *writer) fail(err error) {
	if err != nil {
		w.failed = pathError("write", err)
	}
}

// flush sends a part.
func (w *writer) flush() error {
	c, ctx := w.client, w.ctx
	if w.upload == nil {
		err := c.do(ctx, "write", 0, func(ctx context.Context, _ func()) error {
			out, err := c.api.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &w.at.Bucket, Key: &w.at.Key})
			if err == nil {
				w.upload = out.UploadId
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	number := aws.Int32(int32(len(w.parts) + 1))
	err := c.do(ctx, "write", int64(len(w.buf)), func(ctx context.Context, _ func()) error {
		out, err := c.api.UploadPart(ctx, &s3.UploadPartInput{Bucket: &w.at.Bucket, Key: &w.at.Key, UploadId: w.upload, PartNumber: number, Body: bytes.NewReader(w.buf)})
		if err == nil {
			w.parts = append(w.parts, types.CompletedPart{ETag: out.ETag, PartNumber: number})
		}
		return err
	})
	w.buf = w.buf[:0]
	return err
}

func (w *writer) finish() error {
	c, ctx := w.client, w.ctx
	if w.upload == nil {
		return c.do(ctx, "write", int64(len(w.buf)), func(ctx context.Context, _ func()) error {
			_, err := c.api.PutObject(ctx, &s3.PutObjectInput{Bucket: &w.at.Bucket, Key: &w.at.Key, Body: bytes.NewReader(w.buf)})
			return err
		})
	}
	if len(w.buf) > 0 {
		if err := w.flush(); err != nil {
			return err
		}
	}
	return c.do(ctx, "write", 0, func(ctx context.Context, _ func()) error {
		_, err := c.api.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
			Bucket: &w.at.Bucket, Key: &w.at.Key, UploadId: w.upload, MultipartUpload: &types.CompletedMultipartUpload{Parts: w.parts},
		})
		return err
	})
}

// abort lets the store forget the parts that it has.
func (w *writer) abort() {
	if w.upload == nil {
		return
	}
	_ = w.client.clearing(w.ctx, "write", func(ctx context.Context) error {
		_, err := w.client.api.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &w.at.Bucket, Key: &w.at.Key, UploadId: w.upload})
		return err
	})
}

// mostClearing is how long clearing up goes on after its statement has ended.
const mostClearing = 30 * time.Second

// clearing does what must be done although the statement has ended.
func (c *Client) clearing(ctx context.Context, operation string, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), mostClearing)
	defer cancel()
	return c.do(ctx, operation, 0, func(ctx context.Context, _ func()) error { return call(ctx) })
}

// Remove implements icebergio.IO. An object that is not there is no error: the store
// does not say.
func (f *Files) Remove(location string) error {
	c, at, err := f.at(location)
	if err != nil {
		return pathError("remove", err)
	}
	err = c.clearing(f.ctx, "remove", func(ctx context.Context) error {
		_, err := c.api.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &at.Bucket, Key: &at.Key})
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return pathError("remove", err)
	}
	return nil
}

// WalkDir implements icebergio.ListableIO. There are no folders in a store: fn gets the
// objects below root alone, each as "s3://bucket/key" in the way root is written.
func (f *Files) WalkDir(root string, fn fs.WalkDirFunc) error {
	at, ok := Parse(root)
	if !ok || at.Key == "" {
		return pathError("list", ErrOutside)
	}
	c := f.pick(strings.TrimSuffix(root, "/") + "/x")
	if c == nil {
		return pathError("list", ErrOutside)
	}
	scheme := root[:len(root)-len(at.Bucket)-1-len(at.Key)]
	prefix := at.Key
	if prefix[len(prefix)-1] != '/' {
		prefix += "/"
	}
	var token *string
	for {
		var out *s3.ListObjectsV2Output
		err := c.do(f.ctx, "list", 0, func(ctx context.Context, _ func()) (err error) {
			out, err = c.api.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &at.Bucket, Prefix: &prefix, ContinuationToken: token})
			return err
		})
		if err != nil {
			return pathError("list", err)
		}
		for _, o := range out.Contents {
			key := aws.ToString(o.Key)
			if key == "" || key[len(key)-1] == '/' {
				continue // a mark of a folder
			}
			err := fn(scheme+at.Bucket+"/"+key, entry{path.Base(key), aws.ToInt64(o.Size), aws.ToTime(o.LastModified), false}, nil)
			if errors.Is(err, fs.SkipAll) || errors.Is(err, fs.SkipDir) {
				return nil
			}
			if err != nil {
				return err
			}
		}
		if token = out.NextContinuationToken; token == nil || !aws.ToBool(out.IsTruncated) {
			return nil
		}
	}
}
