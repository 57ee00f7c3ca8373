package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// version is one state of an object.
type version struct {
	size int64
	mark string // the store's ETag
	time time.Time
}

// tail reads the last n bytes of an object, or all of it where it is smaller, and
// tells which version it is.
func (c *Client) tail(ctx context.Context, at Location, n int64) (v version, data []byte, err error) {
	empty := false
	err = c.do(ctx, "read", 0, func(ctx context.Context, alive func()) error {
		out, err := c.api.GetObject(ctx, &s3.GetObjectInput{Bucket: &at.Bucket, Key: &at.Key, Range: aws.String(fmt.Sprintf("bytes=-%d", n))})
		if err != nil {
			// An empty object has no last bytes.
			empty = classify("read", err).Status == http.StatusRequestedRangeNotSatisfiable
			return err
		}
		defer func() { _ = out.Body.Close() }()
		alive()
		v = version{mark: aws.ToString(out.ETag), time: aws.ToTime(out.LastModified), size: aws.ToInt64(out.ContentLength)}
		first := int64(0)
		if strings.HasSuffix(aws.ToString(out.ContentRange), "/0") {
			v.size = 0 // some stores say so of an empty object
		} else if out.ContentRange != nil {
			var last int64
			if first, last, v.size, err = contentRange(*out.ContentRange); err != nil || last != v.size-1 {
				return errNonsense
			}
		}
		if v.size-first > n || v.size < first {
			return errNonsense
		}
		data, err = readAll(out.Body, v.size-first, alive)
		return err
	})
	if err == nil || !empty {
		return v, data, err
	}
	err = c.do(ctx, "read", 0, func(ctx context.Context, _ func()) error {
		out, err := c.api.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &at.Bucket, Key: &at.Key})
		if err != nil {
			return err
		}
		if aws.ToInt64(out.ContentLength) != 0 {
			return errNonsense
		}
		v = version{mark: aws.ToString(out.ETag), time: aws.ToTime(out.LastModified)}
		return nil
	})
	return v, nil, err
}

// fetch fills p with the bytes from off on of a version.
func (c *Client) fetch(ctx context.Context, at Location, v version, p []byte, off int64) error {
	got := 0
	return c.do(ctx, "read", 0, func(ctx context.Context, alive func()) error {
		first, last := off+int64(got), off+int64(len(p))-1
		out, err := c.api.GetObject(ctx, &s3.GetObjectInput{Bucket: &at.Bucket, Key: &at.Key, Range: aws.String(fmt.Sprintf("bytes=%d-%d", first, last))})
		if err != nil {
			if e := classify("read", err); e.Status == http.StatusRequestedRangeNotSatisfiable {
				return &Error{Operation: "read", Status: e.Status, is: ErrChanged}
			}
			return err
		}
		defer func() { _ = out.Body.Close() }()
		alive()
		f, l, size, err := contentRange(aws.ToString(out.ContentRange))
		switch {
		case aws.ToString(out.ETag) != v.mark || err == nil && size != v.size:
			return &Error{Operation: "read", is: ErrChanged}
		case err != nil || f != first || l != last:
			return errNonsense
		}
		n, err := io.ReadFull(living{out.Body, alive}, p[got:])
		got += n
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	})
}

// living tells of each byte that comes.
type living struct {
	io.Reader
	alive func()
}

func (l living) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if n > 0 {
		l.alive()
	}
	return n, err
}

func readAll(from io.Reader, n int64, alive func()) ([]byte, error) {
	if n < 0 || n > mostAtOnce {
		return nil, errNonsense
	}
	data := make([]byte, n)
	_, err := io.ReadFull(living{from, alive}, data)
	if err == io.EOF && n > 0 {
		err = io.ErrUnexpectedEOF
	}
	return data, err
}

// mostAtOnce is the largest object or part that is taken into memory in one piece.
const mostAtOnce = 1 << 30

// contentRange reads "bytes 5-9/10".
func contentRange(s string) (first, last, size int64, err error) {
	rest, ok := strings.CutPrefix(s, "bytes ")
	span, total, ok2 := strings.Cut(rest, "/")
	from, to, ok3 := strings.Cut(span, "-")
	if !ok || !ok2 || !ok3 {
		return 0, 0, 0, errNonsense
	}
	first, e1 := strconv.ParseInt(from, 10, 64)
	last, e2 := strconv.ParseInt(to, 10, 64)
	size, e3 := strconv.ParseInt(total, 10, 64)
	if errors.Join(e1, e2, e3) != nil || first < 0 || last < first || size <= last {
		return 0, 0, 0, errNonsense
	}
	return first, last, size, nil
}

// pathError is how iceberg-go wants an error: without the place, which is known to
// whoever asked.
func pathError(operation string, err error) error {
	return &fs.PathError{Op: operation, Path: "an object of the table", Err: err}
}
