package duck

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"sqe/engine/scan"
	"sqe/fault"
	"sqe/plan"
)

// long makes a text of n times four digits for the rows of numbers.
func long(n plan.Node, times int) plan.Expr {
	return call("repeat", call("right", call("lpad", &plan.Cast{Operand: ref(n, 0), Typ: plan.String}, 4, "0"), 4), times)
}

// each reads all rows, and calls f with each batch and the rows before it.
func each(t *testing.T, in *Instance, n plan.Node, inputs Inputs, f func(b arrow.RecordBatch, before int)) error {
	t.Helper()
	rows, err := in.Run(t.Context(), n, inputs)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	before := 0
	for {
		b, err := rows.Next()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		f(b, before)
		before += int(b.NumRows())
		b.Release()
	}
}

// empty fails unless nothing of a result is kept.
func empty(t *testing.T, in *Instance) {
	t.Helper()
	if m, s := in.budget.memory.Load(), in.budget.spilled.Load(); m != 0 || s != 0 {
		t.Errorf("%d bytes in memory and %d on the disk are kept after the statements", m, s)
	}
	textStores.Range(func(any, any) bool {
		t.Error("a text store is left")
		return false
	})
}

// TestSharedTextsOnce: of a text that all rows of a join share, DuckDB and the text store have
// one, whatever the number of rows; every row comes with all of it.
func TestSharedTextsOnce(t *testing.T) {
	in := open(t, Config{MemoryLimit: 128 << 20, Threads: 2, TempDir: t.TempDir()})
	one := numbers(1)
	const size = 4 << 20
	wide := &plan.Project{Input: one, Items: []plan.Item{item(100, long(one, size/4))}}
	const rows = 300
	n := &plan.Join{Kind: plan.Cross, Left: wide, Right: &plan.Values{
		Cols: []plan.Column{{ID: 50, Type: plan.Int64}}, Rows: slices.Repeat([][]plan.Expr{{lit(1)}}, rows),
	}}
	seen, most := 0, int64(0)
	err := each(t, in, n, nil, func(b arrow.RecordBatch, _ int) {
		most = max(most, in.budget.memory.Load()+in.budget.spilled.Load())
		col := b.Column(0).(*array.String)
		for i := range int(b.NumRows()) {
			if s := col.Value(i); len(s) != size || s[:4] != "0000" || s[size-4:] != "0000" {
				t.Fatalf("row %d has %d bytes", seen, len(s))
			}
			seen++
		}
	})
	if err != nil || seen != rows {
		t.Errorf("%d rows, %v", seen, err)
	}
	if most == 0 || most > 4*size {
		t.Errorf("%d bytes were kept for one text of %d", most, size)
	}
	empty(t, in)
}

// TestLongAndShortTexts: rows come as they are and in their order, whatever length their
// texts have, in memory and on the disk; NULL stays NULL.
func TestLongAndShortTexts(t *testing.T) {
	const rows = 6000
	for name, limit := range map[string]int64{"in memory": 1 << 30, "on the disk": 64 << 20} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			in := open(t, Config{MemoryLimit: 1 << 30, Threads: 2, TempDir: filepath.Join(dir, "tmp")})
			if limit < 1<<30 {
				in.budget.limit = 1 << 20
			}
			n := numbers(rows)
			id := ref(n, 0)
			blob := &plan.Cast{Operand: call("concat", "b", long(n, 500)), Typ: plan.Binary}
			third := func(e plan.Expr) plan.Expr {
				return &plan.Case{Whens: []plan.When{{Cond: call("ne", call("mod", id, 3000), 0), Then: e}}, Typ: e.Type()}
			}
			sorted := &plan.Sort{Input: &plan.Project{Input: n, Items: []plan.Item{
				item(1, id), item(2, third(long(n, 1000))), item(3, call("right", long(n, 1), 3)), item(4, blob),
			}}, Keys: []plan.SortKey{{Expr: id}}}
			sorted.Keys[0].Expr = &plan.Ref{ID: 1, Typ: plan.Int64}
			spilled := int64(0)
			err := each(t, in, sorted, nil, func(b arrow.RecordBatch, before int) {
				spilled = max(spilled, in.budget.spilled.Load())
				for i := range int(b.NumRows()) {
					at := 1000 * (before + i)
					digits := fmt.Sprintf("%04d", at%10000)
					if s := strings.TrimLeft(fmt.Sprint(at), ""); len(s) > 4 {
						digits = s[:4] // LPAD cuts what is longer
					}
					if got := b.Column(0).(*array.Int64).Value(i); got != int64(at) {
						t.Fatalf("row %d is %d", before+i, got)
					}
					a := b.Column(1).(*array.String)
					if at%3000 == 0 != a.IsNull(i) {
						t.Fatalf("row %d: NULL is %v", before+i, a.IsNull(i))
					}
					if a.IsValid(i) && a.Value(i) != strings.Repeat(digits, 1000) {
						t.Fatalf("row %d has %d bytes, %.8q", before+i, len(a.Value(i)), a.Value(i))
					}
					if got := b.Column(2).(*array.String).Value(i); got != digits[1:] {
						t.Fatalf("row %d has %q", before+i, got)
					}
					if got := b.Column(3).(*array.Binary).Value(i); !bytes.Equal(got, []byte("b"+strings.Repeat(digits, 500))) {
						t.Fatalf("row %d has a blob of %d bytes", before+i, len(got))
					}
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if onDisk := spilled > 0; onDisk != (limit < 1<<30) {
				t.Errorf("%d bytes were on the disk", spilled)
			}
			empty(t, in)
			if files, err := os.ReadDir(filepath.Join(dir, "tmp")); err == nil && len(files) > 0 {
				t.Errorf("%v is left in the directory", files)
			}
		})
	}
}

// TestTextsWithoutRoom: where the texts of a result have no room, neither in memory nor on the
// disk, the statement fails as one that needs too much memory, and gives back what it has.
func TestTextsWithoutRoom(t *testing.T) {
	n := numbers(4000)
	wide := &plan.Project{Input: n, Items: []plan.Item{item(1, long(n, 1000))}}
	for name, prepare := range map[string]func(in *Instance){
		"no directory for texts":   func(in *Instance) { in.budget.dir = "" },
		"no more room on the disk": func(in *Instance) { in.budget.maxSpill = 1 << 20 },
	} {
		in := open(t, Config{MemoryLimit: 1 << 30, Threads: 2, TempDir: t.TempDir()})
		in.budget.limit = 1 << 20
		if err := each(t, in, wide, nil, func(arrow.RecordBatch, int) {}); err != nil {
			t.Errorf("%s, with room: %v", name, err)
		}
		prepare(in)
		err := each(t, in, wide, nil, func(arrow.RecordBatch, int) {})
		if cause := errors.Unwrap(err); !fault.Is(err, fault.Limit) || cause == nil || !strings.Contains(cause.Error(), name) {
			t.Errorf("%s: %v (%v)", name, err, cause)
		}
		empty(t, in)
	}
}

// TestTokens: a text that looks like a token is a text.
func TestTokens(t *testing.T) {
	k := newTextStore([]plan.Column{{Type: plan.String}})
	k.begin(&textBudget{limit: 1 << 20})
	defer k.end()
	g := &group{ends: []uint64{3, 8}, left: 2}
	id, err := k.add(g, [][]byte{[]byte("abc"), []byte("defgh")}, 8)
	if err != nil {
		t.Fatal(err)
	}
	token := func(mark [6]byte, id uint32, entry uint16) []byte {
		return []byte(string(mark[:]) + string([]byte{byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24), byte(entry), byte(entry >> 8)}))
	}
	for i, want := range []string{"abc", "defgh"} {
		x, ok := k.of(token(k.mark, id, uint16(i)))
		if !ok {
			t.Fatalf("entry %d is not known", i)
		}
		if got, err := k.read(nil, x); string(got) != want || err != nil || x.size() != len(want) {
			t.Errorf("entry %d is %q, %d, %v", i, got, x.size(), err)
		}
	}
	other := k.mark
	other[0]++
	for name, b := range map[string][]byte{"another mark": token(other, id, 0), "another group": token(k.mark, id+1, 0), "another entry": token(k.mark, id, 2), "shorter": token(k.mark, id, 0)[:11]} {
		if _, ok := k.of(b); ok {
			t.Errorf("%s is taken for a token", name)
		}
	}
}

// TestLongTextsOfTable: texts of a table that a few rows of another repeat.
func TestLongTextsOfTable(t *testing.T) {
	dir := t.TempDir()
	in := open(t, Config{MemoryLimit: 128 << 20, Roots: []string{dir}, TempDir: t.TempDir()})
	cols := []column{{"doc", plan.String, fmt.Sprintf("[%q, null, %q, %q]", strings.Repeat("a", 1<<20), "short", strings.Repeat("b", 3<<20))}}
	s := scanOf(1, cols...)
	inputs := fixed(&scan.Input{Files: []scan.File{fileOf(writeFile(t, dir, "docs.parquet", batch(t, cols...)), cols...)}, Rows: 4})
	n := &plan.Join{Kind: plan.Cross, Left: s, Right: &plan.Values{
		Cols: []plan.Column{{ID: 50, Type: plan.Int64}}, Rows: slices.Repeat([][]plan.Expr{{lit(1)}}, 500),
	}}
	lengths := map[int]int{}
	if err := each(t, in, n, inputs, func(b arrow.RecordBatch, _ int) {
		a := b.Column(0).(*array.String)
		for i := range a.Len() {
			if a.IsNull(i) {
				lengths[-1]++
			} else {
				lengths[len(a.Value(i))]++
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	for _, l := range []int{-1, 5, 1 << 20, 3 << 20} {
		if lengths[l] != 500 {
			t.Errorf("%d rows of length %d", lengths[l], l)
		}
	}
	empty(t, in)
}
