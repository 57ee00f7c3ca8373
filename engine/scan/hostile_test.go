package scan

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// TestSchemaOfWriter: what a writer put beside the data says nothing and costs
// nothing. This one would ask for gigabytes.
func TestSchemaOfWriter(t *testing.T) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}, nil))
	b.Field(0).(*array.Int64Builder).AppendValues([]int64{1, 2, 3}, nil)
	var out bytes.Buffer
	w, err := pqarrow.NewFileWriter(b.Schema(), &out, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(b.NewRecordBatch()); err != nil {
		t.Fatal(err)
	}
	huge := binary.LittleEndian.AppendUint32([]byte{0xff, 0xff, 0xff, 0xff}, 0x7ffffff0)
	if err := w.AppendKeyValueMetadata("ARROW:schema", base64.StdEncoding.EncodeToString(append(huge, make([]byte, 16)...))); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a.parquet")
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := decodeAll(context.Background(), nil, path); err != nil {
		t.Error(err)
	}
}
