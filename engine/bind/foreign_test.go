package bind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/datadriven"

	"sqe/engine/parse"
	"sqe/fault"
	"sqe/plan"
)

// handMade yields n rows whose values follow from their types: integers count
// from 1, text is "s1", "s2", ...
type handMade struct {
	columns []plan.Column
	rows    int
	done    bool
	closed  *int
}

func (h *handMade) Next() (arrow.RecordBatch, error) {
	if h.done {
		return nil, io.EOF
	}
	h.done = true
	fields := make([]arrow.Field, len(h.columns))
	for i, c := range h.columns {
		fields[i] = arrow.Field{Name: c.Name, Type: c.Type, Nullable: true}
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	for r := 1; r <= h.rows; r++ {
		for i := range h.columns {
			switch f := b.Field(i).(type) {
			case *array.Int64Builder:
				f.Append(int64(r))
			case *array.Int32Builder:
				f.Append(int32(r))
			case *array.StringBuilder:
				f.Append(fmt.Sprintf("s%d", r))
			case *array.Decimal128Builder:
				f.Append(decimal128.FromI64(int64(r) * 100))
			case *array.Float64Builder:
				f.Append(float64(r) / 2)
			case *array.BooleanBuilder:
				f.Append(r%2 == 1)
			case *array.Date32Builder:
				f.Append(arrow.Date32(r))
			case *array.TimestampBuilder:
				f.Append(arrow.Timestamp(r * 1e6))
			case *array.ExtensionBuilder:
				f.StorageBuilder().(*array.StringBuilder).Append(fmt.Sprintf(`{"city": "c%d"}`, r))
			default:
				f.AppendNull()
			}
		}
	}
	return b.NewRecordBatch(), nil
}

func (h *handMade) Close() error {
	if h.closed != nil {
		*h.closed++
	}
	return nil
}

// runText binds a statement that goes to the row executor and runs it over
// hand-made rows.
func runText(t *testing.T, b *Binder, s *Session, text string, rows int, limits Limits) (string, error) {
	t.Helper()
	st, _, err := parse.Parse(text)
	if err != nil {
		return "", err
	}
	w := tinyWorld()
	out, err := b.Bind(context.Background(), s, w, st.(*parse.SQL), nil)
	if err != nil {
		return "", err
	}
	s.SetWarnings(out.Warnings)
	f, ok := out.Plan.(*plan.Foreign)
	if !ok {
		return plan.Format(out.Plan), nil
	}
	closed := 0
	children := make([]Rows, len(f.Children))
	for i, c := range f.Children {
		children[i] = &handMade{columns: c.Columns(), rows: rows, closed: &closed}
	}
	r, err := b.RunForeign(context.Background(), s, w, f, children, limits)
	if err != nil {
		return "", err
	}
	var sb strings.Builder
	for {
		batch, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			_ = r.Close()
			return "", err
		}
		for i := range int(batch.NumRows()) {
			for j := range int(batch.NumCols()) {
				if j > 0 {
					sb.WriteString(" | ")
				}
				sb.WriteString(batch.Column(j).ValueStr(i))
			}
			sb.WriteByte('\n')
		}
		batch.Release()
	}
	if err := r.Close(); err != nil {
		return "", err
	}
	if closed != len(children) {
		t.Errorf("%s: %d of %d children were closed", text, closed, len(children))
	}
	return sb.String(), nil
}

func TestForeign(t *testing.T) {
	datadriven.Walk(t, "testdata/foreign", func(t *testing.T, path string) {
		b, s := newBinder(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			st, _, err := parse.Parse(d.Input)
			if err != nil {
				return fmt.Sprintf("error: %v\n", err)
			}
			own, ok := st.(*parse.SQL)
			if !ok {
				return "not SQL\n"
			}
			out, err := b.Bind(context.Background(), s, tinyWorld(), own, nil)
			if err != nil {
				return fmt.Sprintf("error: %v\n", err)
			}
			head := ""
			if f, ok := out.Plan.(*plan.Foreign); ok {
				for _, c := range f.Children {
					head += "child: " + plan.Format(c)
				}
				head += "reason: " + f.Reason + "\n"
			}
			res, err := runText(t, b, s, d.Input, 3, Limits{})
			if err != nil {
				return head + fmt.Sprintf("error: %v\n", err)
			}
			return head + res
		})
	})
}

func TestForeignLimits(t *testing.T) {
	b, s := newBinder(t)
	const text = "select elt(a, 'x') from t"
	if _, err := runText(t, b, s, text, 100, Limits{Rows: 100}); err != nil {
		t.Fatal(err)
	}
	for _, l := range []Limits{{Rows: 99}, {Bytes: 1000}} {
		if _, err := runText(t, b, s, text, 100, l); !fault.Is(err, fault.Limit) {
			t.Errorf("%+v: %v", l, err)
		}
	}
}

// Statements of one Binder have a bound together, and give back what they had.
func TestForeignTogether(t *testing.T) {
	b, s := newBinder(t)
	const text = "select elt(a, 'x') from t"
	limits := Limits{Together: 1 << 20}
	for _, held := range []int64{0, 1<<20 - 1000, 0} {
		b.rows.Store(held) // by others
		_, err := runText(t, b, s, text, 100, limits)
		if held == 0 && err != nil || held > 0 && !fault.Is(err, fault.Limit) {
			t.Errorf("while others hold %d bytes: %v", held, err)
		}
		if left := b.rows.Load(); left != held {
			t.Errorf("%d bytes are held after the statement, by others %d", left, held)
		}
	}
	if _, err := runText(t, b, s, text, 100, Limits{Together: 1000}); !fault.Is(err, fault.Limit) {
		t.Errorf("one statement with more than all may have: %v", err)
	}
	if left := b.rows.Load(); left != 0 {
		t.Errorf("%d bytes are held after the statements", left)
	}
}

// A stub must never yield rows, whatever way it is reached.
func TestStubHasNoRows(t *testing.T) {
	w := tinyWorld()
	st := newStatement(w, nil)
	s := newStub(w.relations["db.t"], "t", st)
	if _, err := s.Partitions(nil); err == nil {
		t.Error("partitions")
	}
	if _, err := s.PartitionRows(nil, nil); err == nil {
		t.Error("rows")
	}
}
