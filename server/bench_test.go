package server

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/go-sql-driver/mysql"

	"sqe/engine"
	"sqe/plan"
	"sqe/server/wire"
)

// The shape of l_orderkey, l_partkey, l_quantity, l_extendedprice, l_returnflag,
// l_shipdate, l_shipmode, l_comment.
var benchColumns = []plan.Column{
	{Name: "orderkey", Type: plan.Int64},
	{Name: "partkey", Type: plan.Int64},
	{Name: "quantity", Type: plan.Decimal(15, 2)},
	{Name: "price", Type: plan.Decimal(15, 2)},
	{Name: "discount", Type: plan.Float64},
	{Name: "shipdate", Type: plan.Date},
	{Name: "shipmode", Type: plan.String},
	{Name: "comment", Type: plan.String},
}

const batchRows = 2048

func benchBatch() arrow.RecordBatch {
	mem := memory.DefaultAllocator
	k, p := array.NewInt64Builder(mem), array.NewInt64Builder(mem)
	q := array.NewDecimal128Builder(mem, &arrow.Decimal128Type{Precision: 15, Scale: 2})
	e := array.NewDecimal128Builder(mem, &arrow.Decimal128Type{Precision: 15, Scale: 2})
	f, d := array.NewFloat64Builder(mem), array.NewDate32Builder(mem)
	m, c := array.NewStringBuilder(mem), array.NewStringBuilder(mem)
	for i := range batchRows {
		k.Append(int64(i) * 2931)
		p.Append(int64(i) * 97)
		q.Append(decimal128.FromI64(int64(i%50) * 100))
		e.Append(decimal128.FromI64(int64(i)*7919 + 90_000))
		f.Append(float64(i%11) / 100)
		d.Append(arrow.Date32(8000 + i%2500))
		m.Append([]string{"AIR", "TRUCK", "REG AIR", "SHIP"}[i%4])
		c.Append("egular courts above the"[:10+i%13])
	}
	var arrays []arrow.Array
	for _, b := range []array.Builder{k, p, q, e, f, d, m, c} {
		arrays = append(arrays, b.NewArray())
	}
	return record(benchColumns, arrays...)
}

// repeated yields one batch n times.
type repeated struct {
	batch arrow.RecordBatch
	n     int
}

func (r *repeated) Close() error { return nil }

func (r *repeated) Next() (arrow.RecordBatch, error) {
	if r.n == 0 {
		return nil, io.EOF
	}
	r.n--
	r.batch.Retain()
	return r.batch, nil
}

// BenchmarkStream sends a million rows of eight columns to go-sql-driver.
func BenchmarkStream(b *testing.B) {
	const rows = 1_000_000 / batchRows * batchRows
	for _, plain := range []bool{false, true} {
		for _, binary := range []bool{false, true} {
			b.Run(fmt.Sprintf("tls=%v/prepared=%v", !plain, binary), func(b *testing.B) {
				s := start(b, func(o *Options) { o.PlainAllowed = true })
				batch := benchBatch()
				s.answer("stream", func(context.Context, []plan.Literal) (*engine.Result, error) {
					return &engine.Result{Columns: benchColumns, Rows: &repeated{batch: batch, n: rows / batchRows}}, nil
				})
				db := s.db(func(c *mysql.Config) {
					if plain {
						c.TLS = nil
					}
				})
				if err := db.Ping(); err != nil {
					b.Fatal(err)
				}
				b.ResetTimer()
				for range b.N {
					count(b, db, "stream", binary, rows)
				}
				b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
}

func count(b testing.TB, db *sql.DB, text string, binary bool, want int) {
	b.Helper()
	var rows *sql.Rows
	var err error
	if binary {
		st, perr := db.Prepare(text)
		if perr != nil {
			b.Fatal(perr)
		}
		defer st.Close()
		rows, err = st.Query()
	} else {
		rows, err = db.Query(text)
	}
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	cells := make([]sql.RawBytes, len(benchColumns))
	into := make([]any, len(cells))
	for i := range cells {
		into[i] = &cells[i]
	}
	n := 0
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			b.Fatal(err)
		}
		n++
	}
	if err := rows.Err(); err != nil || n != want {
		b.Fatal(n, err)
	}
}

// discard is a connection that takes everything.
type discard struct{ net.Conn }

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkSelectOne is the time of a statement that does nothing, through the
// protocol with TLS.
func BenchmarkSelectOne(b *testing.B) {
	s := start(b, nil)
	db := s.db(nil)
	for b.Loop() {
		var one string
		if err := db.QueryRow("select 1").Scan(&one); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEncode measures the encoder alone.
func BenchmarkEncode(b *testing.B) {
	batch := benchBatch()
	for _, p := range []wire.Protocol{wire.TextProtocol, wire.BinaryProtocol} {
		b.Run(fmt.Sprintf("prepared=%v", p == wire.BinaryProtocol), func(b *testing.B) {
			w := wire.NewWriter(discard{}, 0)
			e := wire.NewEncoder(benchColumns, p)
			for range b.N {
				if err := e.Write(w, batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(batchRows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			b.ReportAllocs()
		})
	}
}
