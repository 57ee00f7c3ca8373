package objects

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"
)

// mostDeleted is how many objects one request deletes. Source: Amazon S3 API,
// DeleteObjects.
const mostDeleted = 1000

// DeleteFiles implements icebergio.BulkRemovableIO: it tells which objects are gone,
// and in its error once for each of the others why it is not.
func (f *Files) DeleteFiles(ctx context.Context, locations []string) ([]string, error) {
	type store struct {
		client *Client
		bucket string
	}
	var errs []error
	var order []store
	byStore := map[store][]string{}
	for _, l := range locations {
		c, at, err := f.at(l)
		if err != nil {
			errs = append(errs, pathError("remove", err))
			continue
		}
		to := store{c, at.Bucket}
		if byStore[to] == nil {
			order = append(order, to)
		}
		byStore[to] = append(byStore[to], l)
	}
	var done []string
	for _, to := range order {
		for some := range slices.Chunk(byStore[to], mostDeleted) {
			failed := to.client.deleteSome(ctx, to.bucket, some)
			for _, l := range some {
				switch err := failed[l]; {
				case err == nil || errors.Is(err, fs.ErrNotExist):
					done = append(done, l)
				default:
					errs = append(errs, pathError("remove", err))
				}
			}
		}
	}
	return done, errors.Join(errs...)
}

// deleteSome deletes the objects of a bucket, and tells of which it failed. A store that
// does not take several in one request gets one for each.
func (c *Client) deleteSome(ctx context.Context, bucket string, locations []string) map[string]error {
	failed := map[string]error{}
	if !c.single.Load() {
		err := c.deleteTogether(ctx, bucket, locations, failed)
		if err == nil {
			return failed
		}
		if !errors.Is(err, ErrRefused) {
			for _, l := range locations {
				failed[l] = err
			}
			return failed
		}
		c.single.Store(true)
	}
	each := make([]error, len(locations))
	var g errgroup.Group
	g.SetLimit(atOnce)
	for i, l := range locations {
		g.Go(func() error {
			at, _ := Parse(l)
			each[i] = c.do(ctx, "remove", 0, func(ctx context.Context, _ func()) error {
				_, err := c.api.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &at.Bucket, Key: &at.Key})
				return err
			})
			return nil
		})
	}
	_ = g.Wait() // none fails
	for i, l := range locations {
		if each[i] != nil {
			failed[l] = each[i]
		}
	}
	return failed
}

// deleteTogether deletes objects with one request. The store answers for each of them
// (Amazon S3 API, DeleteObjects: Errors).
func (c *Client) deleteTogether(ctx context.Context, bucket string, locations []string, failed map[string]error) error {
	keys := make([]types.ObjectIdentifier, len(locations))
	byKey := map[string][]string{}
	for i, l := range locations {
		at, _ := Parse(l)
		keys[i].Key = aws.String(at.Key)
		byKey[at.Key] = append(byKey[at.Key], l)
	}
	return c.do(ctx, "remove", 0, func(ctx context.Context, _ func()) error {
		out, err := c.api.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &bucket, Delete: &types.Delete{Objects: keys, Quiet: aws.Bool(true)}})
		if err != nil {
			return err
		}
		clear(failed)
		for _, e := range out.Errors {
			for _, l := range byKey[aws.ToString(e.Key)] {
				failed[l] = refusal(plain(aws.ToString(e.Code)))
			}
		}
		return nil
	})
}

// refusal is why one of several objects was not deleted, by the code that the store gave.
func refusal(code string) *Error {
	e := &Error{Operation: "remove", Code: code, is: ErrRefused}
	switch {
	case code == "NoSuchKey" || code == "NoSuchVersion":
		e.is = fs.ErrNotExist
	case deniedCodes[code]:
		e.is, e.Status = ErrDenied, http.StatusForbidden
	case code == "InternalError" || code == "SlowDown" || code == "ServiceUnavailable":
		e.is = ErrUnavailable
	}
	return e
}
