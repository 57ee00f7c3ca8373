package scan

import (
	"context"
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"golang.org/x/sync/semaphore"

	"sqe/catalog/objects"
	"sqe/plan"
)

// group is a row group of a file that is read here.
type group struct {
	index int
	first int64 // the position of its first row in the file
	rows  int64
	// spans are the wanted column chunks, bytes their sizes together.
	spans []objects.Span
	bytes int64
}

// groupsOf lists the row groups of a file, but those on none of whose rows the
// condition of the scan can be true.
func (s *taskStream) groupsOf(r *file.Reader, t task, leaves []int) ([]group, error) {
	meta := r.MetaData()
	var out []group
	at := int64(0)
	for i := range meta.NumRowGroups() {
		rg := meta.RowGroup(i)
		g := group{index: i, first: at, rows: rg.NumRows()}
		at += rg.NumRows()
		if s.condition != nil && t.layout != nil {
			stats, err := groupStats(meta, rg, t.layout, s.cols)
			if err != nil {
				return nil, err
			}
			f := &dataFile{stats: stats, spec: s.handle.Table.Metadata().PartitionSpecByID(int(t.File.SpecID())), partition: t.File.Partition()}
			if f.spec != nil && s.condition(f)&isTrue == 0 {
				continue
			}
		}
		for _, leaf := range leaves {
			chunk, err := rg.ColumnChunk(leaf)
			if err != nil {
				return nil, err
			}
			from := chunk.DataPageOffset()
			if chunk.HasDictionaryPage() && chunk.DictionaryPageOffset() > 0 {
				from = min(from, chunk.DictionaryPageOffset())
			}
			g.spans = append(g.spans, objects.Span{Offset: from, Length: chunk.TotalCompressedSize()})
			g.bytes += chunk.TotalCompressedSize()
		}
		out = append(out, g)
	}
	return out, nil
}

// smallest is the leaf column with the fewest bytes.
func smallest(r *file.Reader) int {
	best, least := 0, int64(-1)
	for leaf := range r.MetaData().Schema.NumColumns() {
		sum := int64(0)
		for g := range r.MetaData().NumRowGroups() {
			chunk, err := r.MetaData().RowGroup(g).ColumnChunk(leaf)
			if err != nil {
				return 0 // reading will say what is wrong
			}
			sum += chunk.TotalCompressedSize()
		}
		if least < 0 || sum < least {
			best, least = leaf, sum
		}
	}
	return best
}

// groupStats are the statistics of the scan's columns in a row group: those of kinds of
// which a limit in Parquet is written as one in Iceberg.
func groupStats(meta *metadata.FileMetaData, rg *metadata.RowGroupMetaData, l *layout, cols []plan.ScanColumn) (stats, error) {
	out := stats{values: map[int]int64{}, nulls: map[int]int64{}, lower: map[int][]byte{}, upper: map[int][]byte{}}
	leaves := map[string]int{}
	for i := range meta.Schema.NumColumns() {
		if c := meta.Schema.Column(i); len(c.ColumnPath()) == 1 {
			leaves[c.Name()] = i
		}
	}
	for _, c := range cols {
		n, ok := l.byID[c.FieldID]
		if !ok || n.ambiguous || len(n.children) > 0 || plan.IsVirtual(c.FieldID) || !arrow.TypeEqual(n.typ, c.Type) {
			continue
		}
		leaf, ok := leaves[n.name]
		if !ok {
			continue
		}
		chunk, err := rg.ColumnChunk(leaf)
		if err != nil {
			return out, err
		}
		if set, err := chunk.StatsSet(); err != nil || !set {
			continue // unknown
		}
		st, err := chunk.Statistics()
		if err != nil || st == nil {
			continue
		}
		if st.HasNullCount() {
			out.values[c.FieldID], out.nulls[c.FieldID] = chunk.NumValues(), st.NullCount()
		}
		if !st.HasMinMax() {
			continue
		}
		if lo, hi := limitsOf(st, c.Type); lo != nil && hi != nil {
			out.lower[c.FieldID], out.upper[c.FieldID] = lo, hi
		}
	}
	return out, nil
}

func limitsOf(st metadata.TypedStatistics, t arrow.DataType) (lo, hi []byte) {
	switch st := st.(type) {
	case *metadata.Int32Statistics:
		if t.ID() == arrow.INT32 || t.ID() == arrow.DATE32 {
			return binary.LittleEndian.AppendUint32(nil, uint32(st.Min())), binary.LittleEndian.AppendUint32(nil, uint32(st.Max()))
		}
	case *metadata.Int64Statistics:
		if t.ID() == arrow.INT64 || t.ID() == arrow.TIMESTAMP {
			return binary.LittleEndian.AppendUint64(nil, uint64(st.Min())), binary.LittleEndian.AppendUint64(nil, uint64(st.Max()))
		}
	case *metadata.ByteArrayStatistics:
		if t.ID() == arrow.STRING {
			return append([]byte{}, st.Min()...), append([]byte{}, st.Max()...)
		}
	}
	return nil, nil
}

// ahead reads row groups of an object in advance: the first chunks of the next one are
// on their way while one is decoded. Of a file on the local disk nothing is read in
// advance.
type ahead struct {
	object *objects.Object
	budget *semaphore.Weighted
}

// pending is a row group that is on its way.
type pending struct {
	done chan error
	free func()
}

// start begins to read a row group. Where memory for that is short its chunks are read
// when they are needed, one after the other: nobody waits for the memory of others.
func (a ahead) start(ctx context.Context, g group) *pending {
	p := &pending{free: func() {}}
	if a.object == nil || !a.budget.TryAcquire(g.bytes) {
		return p
	}
	p.free = func() { a.budget.Release(g.bytes) }
	p.done = make(chan error, 1)
	go func() { p.done <- a.object.Prefetch(ctx, g.spans) }()
	return p
}

func (p *pending) wait() error {
	if p == nil || p.done == nil {
		return nil
	}
	err := <-p.done
	p.done = nil
	return err
}

// end gives the memory back, when what is on its way has come or ended.
func (p *pending) end() {
	if p == nil {
		return
	}
	_ = p.wait()
	p.free()
	p.free = func() {}
}

// each hands out the batches of row groups with the position of their first row.
func (a ahead) each(ctx context.Context, groups []group, read func(context.Context, group) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var now, next *pending
	defer func() {
		cancel()
		now.end()
		next.end()
	}()
	for i, g := range groups {
		if now = next; now == nil {
			now = a.start(ctx, g)
		}
		next = nil
		if err := now.wait(); err != nil {
			return err
		}
		if i+1 < len(groups) {
			next = a.start(ctx, groups[i+1])
		}
		if err := read(ctx, g); err != nil {
			return err
		}
		now.end()
	}
	return nil
}
