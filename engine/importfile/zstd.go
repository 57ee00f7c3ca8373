package importfile

import (
	"bytes"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/parquet/compress"
)

// boundedZstd unpacks a page into the memory that the page asked for and no more. The
// codec of arrow-go 18.8.0 unpacks whatever is there: a megabyte can hold many
// gigabytes. It holds for every Parquet file that arrow-go reads in this process.
type boundedZstd struct{ compress.Codec }

func init() {
	codec, err := compress.GetCodec(compress.Codecs.Zstd)
	if err != nil {
		panic(err) // arrow-go without zstd
	}
	compress.RegisterCodec(compress.Codecs.Zstd, boundedZstd{codec})
}

var errLongPage = errors.New("a page holds more than it says")

// DecodeWithError implements compress.ErrorCodec. A nil dst takes everything.
func (z boundedZstd) DecodeWithError(dst, src []byte) ([]byte, error) {
	stream, ok := z.Codec.(compress.StreamingCodec)
	if dst == nil || !ok {
		return compress.Decode(z.Codec, dst, src)
	}
	r := stream.NewReader(bytes.NewReader(src))
	defer func() { _ = r.Close() }()
	n, err := io.ReadFull(r, dst)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return dst[:n], nil
	}
	if err != nil {
		return nil, err
	}
	var one [1]byte
	if n, err := io.ReadFull(r, one[:]); n > 0 {
		return nil, errLongPage
	} else if err != io.EOF {
		return nil, err
	}
	return dst, nil
}

// Decode implements compress.Codec.
func (z boundedZstd) Decode(dst, src []byte) []byte {
	out, err := z.DecodeWithError(dst, src)
	if err != nil {
		panic(err)
	}
	return out
}
