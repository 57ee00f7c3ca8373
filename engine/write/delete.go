package write

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	icebergio "github.com/apache/iceberg-go/io"
)

// deletedTogether is how many files are deleted before it is told which of them are
// gone: as many as an object store deletes with one request.
const deletedTogether = 1000

// deleteFiles deletes files in their order, many at a time where the storage can, one by
// one with remove where it cannot. each is told of every file, with the error of one that
// is still there. It ends early with ctx alone.
func deleteFiles(ctx context.Context, storage icebergio.IO, files []string, remove func(string) error, each func(i int, err error)) error {
	bulk, ok := storage.(icebergio.BulkRemovableIO)
	if !ok {
		for i, p := range files {
			if err := ctx.Err(); err != nil {
				return err
			}
			err := remove(p)
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			each(i, err)
		}
		return nil
	}
	n := 0
	for some := range slices.Chunk(files, deletedTogether) {
		if err := ctx.Err(); err != nil {
			return err
		}
		done, err := bulk.DeleteFiles(ctx, some)
		if err == nil && len(done) < len(some) {
			err = fs.ErrInvalid // it must say why
		}
		gone := make(map[string]bool, len(done))
		for _, p := range done {
			gone[p] = true
		}
		for _, p := range some {
			if gone[p] {
				each(n, nil)
			} else {
				each(n, err)
			}
			n++
		}
	}
	return nil
}
