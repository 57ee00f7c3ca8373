package write

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"sqe/fault"
)

// dataFile is a finished data file.
type dataFile struct {
	path      string
	spec      iceberg.PartitionSpec
	partition map[int]any
	rows      int64
	size      int64
	sortOrder int
	metrics   fileMetrics
	sizes     map[int]int64
	splits    []int64
}

// build makes the entry of a manifest.
func (f *dataFile) build(firstRow *int64) iceberg.DataFile {
	b, err := iceberg.NewDataFileBuilder(f.spec, iceberg.EntryContentData, f.path, iceberg.ParquetFile, f.partition, nil, nil, f.rows, f.size)
	if err != nil {
		panic(err) // the arguments are those of a file that was written
	}
	b.ColumnSizes(f.sizes).ValueCounts(f.metrics.values).NullValueCounts(f.metrics.nulls).NaNValueCounts(f.metrics.nans).
		LowerBoundValues(f.metrics.lower).UpperBoundValues(f.metrics.upper).SplitOffsets(f.splits)
	if f.sortOrder != 0 {
		b.SortOrderID(f.sortOrder)
	}
	if firstRow != nil {
		b.FirstRowID(*firstRow)
	}
	return b.Build()
}

// layout is how data files are written.
type layout struct {
	schema     *arrow.Schema
	iceberg    *iceberg.Schema
	modes      map[int]mode
	properties *parquet.WriterProperties
	target     int64 // bytes of a file
	group      int64 // bytes of a row group, about, before they are encoded
	groupRows  int64
}

func newLayout(schema *arrow.Schema, ice *iceberg.Schema, order table.SortOrder, props iceberg.Properties) (*layout, error) {
	codec, err := codecOf(props)
	if err != nil {
		return nil, err
	}
	dictionary := !strings.EqualFold(props["parquet.enable.dictionary"], "false")
	options := []parquet.WriterProperty{
		parquet.WithVersion(parquet.V2_LATEST),
		parquet.WithDataPageVersion(parquet.DataPageV1),
		parquet.WithCompression(codec),
		parquet.WithDictionaryDefault(dictionary),
		parquet.WithDictionaryPageSizeLimit(int64(props.GetInt(table.ParquetDictSizeBytesKey, table.ParquetDictSizeBytesDefault))),
		parquet.WithDataPageSize(int64(props.GetInt(table.ParquetPageSizeBytesKey, table.ParquetPageSizeBytesDefault))),
		parquet.WithMaxRowGroupLength(1 << 40),
		parquet.WithStats(true),
		// Source: Iceberg specification, appendix A, "Parquet".
		parquet.WithStoreDecimalAsInteger(true),
		parquet.WithAllocator(memory.DefaultAllocator),
		parquet.WithCreatedBy("SQE"),
	}
	if n, err := strconv.Atoi(props[table.ParquetCompressionLevelKey]); err == nil {
		options = append(options, parquet.WithCompressionLevel(n))
	} else if codec == compress.Codecs.Zstd {
		// The encoder is written in Go: at its next level it takes a third of the time of a
		// large write, for a few per cent of the size.
		options = append(options, parquet.WithCompressionLevel(1))
	}
	// A dictionary that saves nothing costs most of the time: it is given up after the
	// first page, as Java's writer does. (arrow-go does so by itself only without
	// compression.)
	leaves, err := pqarrow.ToParquet(schema, parquet.NewWriterProperties(options...), pqarrow.NewArrowWriterProperties())
	if err != nil {
		return nil, err
	}
	for i := range leaves.NumColumns() {
		options = append(options, parquet.WithDictionaryCostFallbackFor(leaves.Column(i).Path(), true))
	}
	return &layout{
		schema: schema, iceberg: ice, modes: modes(ice, order, props),
		properties: parquet.NewWriterProperties(options...),
		target:     int64(max(1, props.GetInt(table.WriteTargetFileSizeBytesKey, table.WriteTargetFileSizeBytesDefault))),
		group:      int64(max(1, props.GetInt(table.ParquetRowGroupSizeBytesKey, table.ParquetRowGroupSizeBytesDefault))),
		groupRows:  int64(max(1, props.GetInt(table.ParquetRowGroupLimitKey, table.ParquetRowGroupLimitDefault))),
	}, nil
}

func codecOf(props iceberg.Properties) (compress.Compression, error) {
	switch name := strings.ToLower(props.Get(table.ParquetCompressionKey, table.ParquetCompressionDefault)); name {
	case "zstd":
		return compress.Codecs.Zstd, nil
	case "snappy":
		return compress.Codecs.Snappy, nil
	case "gzip":
		return compress.Codecs.Gzip, nil
	case "brotli":
		return compress.Codecs.Brotli, nil
	case "lz4", "lz4raw", "lz4_raw":
		return compress.Codecs.Lz4Raw, nil
	case "uncompressed", "none":
		return compress.Codecs.Uncompressed, nil
	default:
		return 0, fault.New(fault.Unsupported, "The table wants Parquet files with the compression '%s', which SQE cannot write", name)
	}
}

// openFile is a data file that is being written; without out it is not there yet.
type openFile struct {
	layout  *layout
	part    *partition
	spec    iceberg.PartitionSpec
	path    string
	out     *counter
	parquet *pqarrow.FileWriter
	metrics *metrics
	rows    int64
	// buffered is about how many bytes the present row group keeps in memory.
	buffered  int64
	groupRows int64
	held      arrow.RecordBatch
	used      int64 // when it was used last
	// pending are rows that are not encoded yet, of which waiting is the size.
	pending []arrow.RecordBatch
	waiting int64
}

// counter counts what is written.
type counter struct {
	to icebergio.FileWriter
	n  int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.n += int64(n)
	return n, err
}

// create makes the file.
func (f *openFile) create(fs icebergio.WriteFileIO, path string) error {
	out, err := fs.Create(path)
	if err != nil {
		return err
	}
	f.path, f.out, f.metrics = path, &counter{to: out}, newMetrics(f.layout.iceberg, f.layout.modes)
	// The Arrow schema is not stored: readers see what the Parquet schema says.
	f.parquet, err = pqarrow.NewFileWriter(f.layout.schema, f.out, f.layout.properties, pqarrow.NewArrowWriterProperties())
	return err
}

// write takes rows. The last ones are held back, so that a row group that flush begins
// is not empty when no more rows come.
func (f *openFile) write(rec arrow.RecordBatch) error {
	if f.buffered >= f.layout.group || f.groupRows >= f.layout.groupRows {
		if err := f.flush(); err != nil {
			return err
		}
	}
	if err := f.put(); err != nil {
		return err
	}
	rec.Retain()
	f.held = rec
	f.buffered += sizeOf(rec)
	return nil
}

// put encodes the rows that are held back.
func (f *openFile) put() error {
	rec := f.held
	if rec == nil {
		return nil
	}
	f.held = nil
	defer rec.Release()
	if err := f.parquet.WriteBuffered(rec); err != nil {
		return err
	}
	f.metrics.add(rec)
	f.rows += rec.NumRows()
	f.groupRows += rec.NumRows()
	return nil
}

// flush ends the row group and puts its bytes into the file.
func (f *openFile) flush() error {
	if f.groupRows == 0 || f.held == nil {
		return nil
	}
	if err := f.parquet.NewBufferedRowGroupChecked(); err != nil {
		return err
	}
	f.groupRows = 0
	f.buffered = sizeOf(f.held)
	return f.put()
}

// size is about how large the file is by now.
func (f *openFile) size() int64 {
	n := f.out.n
	if f.rows > 0 {
		n += f.parquet.RowGroupTotalBytesWritten()
	}
	return n
}

func (f *openFile) close() (*dataFile, error) {
	if err := f.put(); err != nil {
		return nil, err
	}
	if err := f.parquet.Close(); err != nil {
		return nil, err
	}
	if err := f.out.to.Close(); err != nil {
		return nil, err
	}
	meta, err := f.parquet.FileMetadata()
	if err != nil {
		return nil, err
	}
	if meta.GetNumRows() != f.rows {
		return nil, fmt.Errorf("a file has %d rows, %d were written", meta.GetNumRows(), f.rows)
	}
	done := &dataFile{path: f.path, spec: f.spec, rows: f.rows, size: f.out.n, metrics: f.metrics.result()}
	if f.part != nil {
		done.partition = f.part.values
	}
	return done, done.describe(meta)
}

// abort gives up the file; it is still there.
func (f *openFile) abort() {
	for _, p := range f.pending {
		p.Release()
	}
	f.pending = nil
	if f.held != nil {
		f.held.Release()
		f.held = nil
	}
	if f.out != nil {
		_ = f.out.to.Close()
	}
}

// describe takes from the footer what is known of columns on disk.
func (f *dataFile) describe(meta *metadata.FileMetaData) error {
	f.sizes = map[int]int64{}
	for g := range meta.NumRowGroups() {
		group := meta.RowGroup(g)
		for c := range group.NumColumns() {
			chunk, err := group.ColumnChunk(c)
			if err != nil {
				return err
			}
			if c == 0 {
				at := chunk.DataPageOffset()
				if chunk.HasDictionaryPage() && chunk.DictionaryPageOffset() > 0 {
					at = min(at, chunk.DictionaryPageOffset())
				}
				f.splits = append(f.splits, at)
			}
			if id := meta.Schema.Column(c).SchemaNode().FieldID(); id > 0 {
				f.sizes[int(id)] += chunk.TotalCompressedSize()
			}
		}
	}
	return nil
}

var errStopped = errors.New("the writer was stopped")
