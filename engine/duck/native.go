package duck

/*
#include "native.h"
void sqeScalar(void *info, void *input, void *output);
void sqeFree(void *p);
*/
import "C"

import (
	"fmt"
	"runtime/debug"
	"sync"
	"unsafe"

	duckdb "github.com/duckdb/duckdb-go-bindings"
)

// nativeFunction is a scalar function of this package, called by DuckDB with
// whole vectors. run is called by many threads at once. A row for which it sets
// nothing is NULL.
type nativeFunction struct {
	name   string
	params []nativeType
	result nativeType
	run    func(in []vector, out *output)
	// varargs: any arguments follow the params.
	varargs bool
	// volatile: DuckDB calls it for each row, whatever the arguments are.
	volatile bool
}

// nativeType is a DuckDB type of an argument or a result.
type nativeType struct {
	id    duckdb.Type
	scale uint8 // of DECIMAL(38, scale)
}

var (
	textType      = nativeType{id: duckdb.TypeVarchar}
	blobType      = nativeType{id: duckdb.TypeBlob}
	boolType      = nativeType{id: duckdb.TypeBoolean}
	intType       = nativeType{id: duckdb.TypeInteger}
	ulongType     = nativeType{id: duckdb.TypeUBigInt}
	longType      = nativeType{id: duckdb.TypeBigInt}
	hugeType      = nativeType{id: duckdb.TypeHugeInt}
	floatType     = nativeType{id: duckdb.TypeFloat}
	doubleType    = nativeType{id: duckdb.TypeDouble}
	dateType      = nativeType{id: duckdb.TypeDate}
	timeType      = nativeType{id: duckdb.TypeTime}
	timestampType = nativeType{id: duckdb.TypeTimestamp}
)

func decimalType(scale uint8) nativeType { return nativeType{id: duckdb.TypeDecimal, scale: scale} }

func (t nativeType) create() duckdb.LogicalType {
	if t.id == duckdb.TypeDecimal {
		return duckdb.CreateDecimalType(38, t.scale)
	}
	return duckdb.CreateLogicalType(t.id)
}

// natives holds every native function; extra info of a function has its index.
var natives []*nativeFunction

func register(name string, run func(in []vector, out *output), result nativeType, params ...nativeType) {
	natives = append(natives, &nativeFunction{name: "sqe_" + name, params: params, result: result, run: run})
}

// registerNatives makes the native functions known to a database, whose statements may
// have about limit bytes of their texts outside of what DuckDB counts, each half of it.
func registerNatives(conn duckdb.Connection, limit int64) error {
	account := C.sqe_account(C.int64_t(max(limit, 4*maxVector))) // for good: a database is seldom replaced
	for i, f := range natives {
		sf := duckdb.CreateScalarFunction()
		duckdb.ScalarFunctionSetName(sf, f.name)
		for _, p := range f.params {
			t := p.create()
			duckdb.ScalarFunctionAddParameter(sf, t)
			duckdb.DestroyLogicalType(&t)
		}
		if f.varargs {
			t := duckdb.CreateLogicalType(duckdb.TypeAny)
			duckdb.ScalarFunctionSetVarargs(sf, t)
			duckdb.DestroyLogicalType(&t)
		}
		if f.volatile {
			duckdb.ScalarFunctionSetVolatile(sf)
		}
		t := f.result.create()
		duckdb.ScalarFunctionSetReturnType(sf, t)
		duckdb.DestroyLogicalType(&t)
		duckdb.ScalarFunctionSetSpecialHandling(sf)
		extra := C.malloc(C.sizeof_sqe_native)
		*(*C.sqe_native)(extra) = C.sqe_native{function: C.int64_t(i), account: account}
		duckdb.ScalarFunctionSetExtraInfo(sf, extra, unsafe.Pointer(C.sqeFree))
		C.sqe_native_counts(sf.Ptr)
		duckdb.ScalarFunctionSetFunction(sf, unsafe.Pointer(C.sqeScalar))
		state := duckdb.RegisterScalarFunction(conn, sf)
		duckdb.DestroyScalarFunction(&sf)
		if state != duckdb.StateSuccess {
			return fmt.Errorf("DuckDB refused the function %s", f.name)
		}
	}
	return nil
}

// takeBytes gives bytes that Go's heap does not have, so that they are gone as soon as
// freeBytes takes them. n is not 0.
func takeBytes(n int) []byte { return unsafe.Slice((*byte)(C.malloc(C.size_t(n))), n) }

func freeBytes(b []byte) { C.free(unsafe.Pointer(unsafe.SliceData(b))) }

//export sqeFree
func sqeFree(p unsafe.Pointer) { C.free(p) }

// sqeScalar is what DuckDB calls. A panic must not reach C: it would end the
// process.
//
//export sqeScalar
func sqeScalar(info, input, output unsafe.Pointer) {
	fi := duckdb.FunctionInfo{Ptr: info}
	defer func() {
		if p := recover(); p != nil {
			msg := panicMark
			if e, ok := p.(nativeError); ok {
				msg = string(e)
			} else {
				msg += fmt.Sprintf("%T\n%s", p, debug.Stack())
			}
			duckdb.ScalarFunctionSetError(fi, msg)
		}
	}()
	f := natives[(*C.sqe_native)(duckdb.ScalarFunctionGetExtraInfo(fi)).function]
	f.call(info, duckdb.DataChunk{Ptr: input}, duckdb.Vector{Ptr: output})
}

// nativeError is what a native function panics with to fail the query.
type nativeError string

func (f *nativeFunction) call(info unsafe.Pointer, chunk duckdb.DataChunk, result duckdb.Vector) {
	n := int(duckdb.DataChunkGetSize(chunk))
	if n == 0 {
		return
	}
	s := scratchPool.Get().(*scratch)
	defer scratchPool.Put(s)
	s.in = s.in[:0]
	arguments := len(f.params)
	if f.varargs {
		arguments = int(duckdb.DataChunkGetColumnCount(chunk))
	}
	for i := range arguments {
		v := duckdb.DataChunkGetVector(chunk, duckdb.IdxT(i))
		s.in = append(s.in, vector{vector: v, data: duckdb.VectorGetData(v), valid: (*uint64)(duckdb.VectorGetValidity(v))})
	}
	o := &s.out
	o.n, o.vector, o.shared = n, result, false
	o.info, o.counted = info, uncounted
	o.data = duckdb.VectorGetData(result)
	o.bytes, o.ends = o.bytes[:0], o.ends[:0]
	o.null = grow(o.null, n)
	for i := range o.null {
		o.null[i] = 1
	}
	f.run(s.in, o)
	if o.shared {
		return
	}
	if f.result.id == duckdb.TypeVarchar || f.result.id == duckdb.TypeBlob {
		for len(o.ends) < n {
			o.ends = append(o.ends, uint64(len(o.bytes)))
		}
		if len(o.bytes) == 0 {
			o.bytes = append(o.bytes, 0)
		}
		failed := C.sqe_assign_strings(info, result.Ptr, C.uint64_t(n), (*C.char)(unsafe.Pointer(&o.bytes[0])),
			(*C.uint64_t)(unsafe.Pointer(&o.ends[0])), (*C.uint8_t)(unsafe.Pointer(&o.null[0])))
		if cap(o.bytes) > 1<<20 {
			o.bytes = nil
		}
		if failed != 0 {
			noMemory()
		}
	}
	var mask []uint64
	for i, null := range o.null {
		if null == 0 {
			continue
		}
		if mask == nil {
			if C.sqe_ensure_validity(result.Ptr) != 0 {
				noMemory()
			}
			mask = unsafe.Slice((*uint64)(duckdb.VectorGetValidity(result)), (n+63)/64)
		}
		mask[i>>6] &^= 1 << (i & 63)
	}
}

// maxVector bounds the texts that one call of a function makes, of at most 2,048 rows:
// they are outside of what DuckDB counts.
const maxVector = 128 << 20

// noMemory says what DuckDB says when it does not get the memory for a result.
func noMemory() { panic(nativeError(memoryMark + "result")) }

func grow(b []uint8, n int) []uint8 {
	if cap(b) < n {
		return make([]uint8, n)
	}
	return b[:n]
}

// vector is one flat argument of a native function.
type vector struct {
	vector duckdb.Vector
	data   unsafe.Pointer
	valid  *uint64 // nil: every row is valid
}

func (v vector) null(i int) bool {
	return v.valid != nil && unsafe.Slice(v.valid, i>>6+1)[i>>6]&(1<<(i&63)) == 0
}

func at[T any](v vector, i int) T {
	return *(*T)(unsafe.Add(v.data, uintptr(i)*unsafe.Sizeof(*new(T))))
}

// stringView is DuckDB's string: up to 12 bytes in place, else 4 bytes and a
// pointer.
type stringView struct {
	length uint32
	prefix [4]byte
	ptr    unsafe.Pointer
}

// bytes is the text or blob of a row. It is only valid during the call.
func (v vector) bytes(i int) []byte {
	p := unsafe.Add(v.data, uintptr(i)*unsafe.Sizeof(stringView{}))
	n := *(*uint32)(p)
	if n <= 12 {
		return unsafe.Slice((*byte)(unsafe.Add(p, 4)), n)
	}
	return unsafe.Slice((*byte)((*stringView)(p).ptr), n)
}

func (v vector) string(i int) string {
	b := v.bytes(i)
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// output is the result of a native function. Text rows are set in ascending
// order: their bytes are appended to bytes.
type output struct {
	n     int
	data  unsafe.Pointer
	null  []uint8
	bytes []byte
	ends  []uint64
	// info is DuckDB's of the call; counted are the bytes that were asked for.
	info    unsafe.Pointer
	counted int
	// vector is the result itself; shared says that it is an argument already.
	vector duckdb.Vector
	shared bool
}

// begin makes sure that rows before i have their ends.
func (o *output) begin(i int) {
	for len(o.ends) < i {
		o.ends = append(o.ends, uint64(len(o.bytes)))
	}
}

// end ends the text of row i, which is then not NULL.
func (o *output) end(i int) {
	o.ends = append(o.ends, uint64(len(o.bytes)))
	o.null[i] = 0
	if len(o.bytes) > o.counted {
		o.count()
	}
}

// uncounted is how many bytes are made without asking for them.
const uncounted = 1 << 20

// count asks for the bytes of the texts that are being made.
func (o *output) count() {
	more := max(len(o.bytes), 2*o.counted) - o.counted
	if len(o.bytes) > maxVector || C.sqe_reserve(o.info, C.int64_t(more)) != 0 {
		o.bytes = nil
		noMemory()
	}
	o.counted += more
}

func (o *output) text(i int, s string) {
	o.begin(i)
	o.bytes = append(o.bytes, s...)
	o.end(i)
}

func set[T any](o *output, i int, v T) {
	*(*T)(unsafe.Add(o.data, uintptr(i)*unsafe.Sizeof(v))) = v
	o.null[i] = 0
}

type scratch struct {
	in  []vector
	out output
}

var scratchPool = sync.Pool{New: func() any { return new(scratch) }}

// rows calls f for each row in which no argument is NULL.
func rows(f func(in []vector, out *output, i int)) func([]vector, *output) {
	return func(in []vector, out *output) {
	next:
		for i := range out.n {
			for _, v := range in {
				if v.null(i) {
					continue next
				}
			}
			f(in, out, i)
		}
	}
}

// textRows is rows for functions that append to a text result; f returns false
// for NULL.
func textRows(f func(dst []byte, in []vector, i int) ([]byte, bool)) func([]vector, *output) {
	return rows(func(in []vector, out *output, i int) {
		out.begin(i)
		n := len(out.bytes)
		b, ok := f(out.bytes, in, i)
		if !ok {
			out.bytes = b[:n]
			return
		}
		out.bytes = b
		out.end(i)
	})
}
