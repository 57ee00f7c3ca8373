package catalog

import (
	"bytes"
	"errors"
	"io"
	"path"
	"strings"

	"github.com/apache/iceberg-go"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/twmb/avro/ocf"
)

// isManifestList reports whether a file that iceberg-go makes is a manifest list.
func isManifestList(name string) bool {
	base := path.Base(name)
	return strings.HasPrefix(base, "snap-") && strings.HasSuffix(base, ".avro")
}

// summarized is a manifest list that is mended when it is complete. iceberg-go 0.7.0
// writes the bound of a partition whose value is an empty text or binary as none, which
// other engines take for "there are only NULLs", so that their filters lose its rows.
type summarized struct {
	bytes.Buffer
	to   icebergio.FileWriter
	meta table.Metadata
}

// Close implements io.Closer.
func (s *summarized) Close() error {
	body, err := mendSummaries(s.Bytes(), s.meta)
	if err == nil {
		_, err = s.to.Write(body)
	}
	return errors.Join(err, s.to.Close())
}

// mendSummaries gives missing bounds of texts and binaries the value that they had.
// Where a partition field holds NULLs alone that says less than could be said, and
// nothing wrong.
func mendSummaries(list []byte, meta table.Metadata) ([]byte, error) {
	in, err := ocf.NewReader(bytes.NewReader(list))
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }()
	var records []map[string]any
	mended := false
	for {
		var r map[string]any
		err := in.Decode(&r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if mendSummary(r, meta) {
			mended = true
		}
		records = append(records, r)
	}
	if !mended {
		return list, nil
	}
	own := map[string][]byte{}
	for k, v := range in.Metadata() {
		if !strings.HasPrefix(k, "avro.") {
			own[k] = v
		}
	}
	var out bytes.Buffer
	w, err := ocf.NewWriter(&out, in.Schema(), ocf.WithSchema(string(in.Metadata()["avro.schema"])), ocf.WithMetadata(own), ocf.WithCodec(ocf.DeflateCodec(-1)))
	if err != nil {
		return nil, err
	}
	for i := range records {
		if err := w.Encode(&records[i]); err != nil {
			return nil, err
		}
	}
	err = w.Close() // it writes what is left
	return out.Bytes(), err
}

// mendSummary mends the record of one manifest.
func mendSummary(r map[string]any, meta table.Metadata) bool {
	id, ok := r["partition_spec_id"].(int32)
	fields, isList := r["partitions"].([]any)
	spec := meta.PartitionSpecByID(int(id))
	if !ok || !isList || spec == nil {
		return false
	}
	mended := false
	for i, f := range fields {
		summary, ok := f.(map[string]any)
		if !ok || i >= spec.NumFields() || !ofText(spec.Field(i), meta) {
			continue
		}
		for _, bound := range []string{"lower_bound", "upper_bound"} {
			if summary[bound] == nil {
				summary[bound] = []byte{}
				mended = true
			}
		}
	}
	return mended
}

// ofText reports whether the values of a partition field are texts or binaries.
func ofText(f iceberg.PartitionField, meta table.Metadata) bool {
	for _, schema := range meta.Schemas() {
		source, ok := schema.FindFieldByID(f.SourceID())
		if !ok {
			continue
		}
		switch f.Transform.ResultType(source.Type).(type) {
		case iceberg.StringType, iceberg.BinaryType:
			return true
		}
		return false
	}
	return false
}
