package duck

import (
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	duckdb "github.com/duckdb/duckdb-go-bindings"
)

// How many bytes of text are made into one batch, and how many one row may have. The
// rows of a chunk of DuckDB may share one text; in a batch each has its own, which no
// limit of DuckDB counts.
const (
	maxPart = 32 << 20
	maxRow  = 256 << 20
)

// parts are the rows of a chunk that come in several batches.
type parts struct {
	chunk duckdb.DataChunk
	ends  []int // of the batches that are still to come
	from  int
	held  []heldRows // by column; nil when the chunk has all its texts
}

// batchesOf finds where the batches of a chunk end, and which of its texts k has. It
// reports false when a row is longer than one may be.
func batchesOf(chunk duckdb.DataChunk, k *textStore) (p parts, ok bool) {
	rows := int(duckdb.DataChunkGetSize(chunk))
	p.chunk = chunk
	var texts []vector
	var held []heldRows // parallel to texts
	columns := duckdb.DataChunkGetColumnCount(chunk)
	for c := range columns {
		v := duckdb.DataChunkGetVector(chunk, c)
		t := duckdb.VectorGetColumnType(v)
		if id := duckdb.GetTypeId(t); id == duckdb.TypeVarchar || id == duckdb.TypeBlob {
			x := vector{data: duckdb.VectorGetData(v), valid: (*uint64)(duckdb.VectorGetValidity(v))}
			h := k.tokens(x, rows)
			texts, held = append(texts, x), append(held, h)
			if h != nil {
				if p.held == nil {
					p.held = make([]heldRows, columns)
				}
				p.held[c] = h
			}
		}
		duckdb.DestroyLogicalType(&t)
	}
	sum := 0
	for i := range rows {
		n := 0
		for j, v := range texts {
			switch {
			case v.null(i):
			case held[j] != nil && held[j][i].group != nil:
				n += held[j][i].size()
			default:
				n += len(v.bytes(i))
			}
		}
		if n > maxRow {
			return p, false
		}
		if sum > 0 && sum+n > maxPart {
			p.ends = append(p.ends, i)
			sum = 0
		}
		sum += n
	}
	p.ends = append(p.ends, rows)
	return p, true
}

// next makes the next batch.
func (p *parts) next(options duckdb.ArrowOptions, schema *arrow.Schema, k *textStore) (arrow.RecordBatch, error) {
	end := p.ends[0]
	p.ends = p.ends[1:]
	n := end - p.from
	chosen := duckdb.CreateSelectionVector(duckdb.IdxT(n))
	defer duckdb.DestroySelectionVector(&chosen)
	rows := unsafe.Slice(duckdb.SelectionVectorGetDataPtr(chosen), n)
	for i := range rows {
		rows[i] = duckdb.SelT(p.from + i)
	}
	from := p.from
	p.from = end
	types := make([]duckdb.LogicalType, duckdb.DataChunkGetColumnCount(p.chunk))
	for c := range types {
		types[c] = duckdb.VectorGetColumnType(duckdb.DataChunkGetVector(p.chunk, duckdb.IdxT(c)))
	}
	part := duckdb.CreateDataChunk(types)
	defer duckdb.DestroyDataChunk(&part)
	for c := range types {
		v := duckdb.DataChunkGetVector(part, duckdb.IdxT(c))
		duckdb.VectorReferenceVector(v, duckdb.DataChunkGetVector(p.chunk, duckdb.IdxT(c)))
		duckdb.SliceVector(v, chosen, duckdb.IdxT(n))
		duckdb.DestroyLogicalType(&types[c])
	}
	duckdb.DataChunkSetSize(part, duckdb.IdxT(n))
	b, ed := duckdb.DataChunkToArrowArray(options, schema, part)
	if err := dataError(&ed); err != nil || p.held == nil {
		return b, err
	}
	held := make([]heldRows, len(p.held))
	for c, h := range p.held {
		if h != nil {
			held[c] = h[from:end]
		}
	}
	return k.filled(b, held)
}

func (p *parts) close() {
	if p.chunk.Ptr != nil {
		duckdb.DestroyDataChunk(&p.chunk)
	}
	p.ends, p.held = nil, nil
}
