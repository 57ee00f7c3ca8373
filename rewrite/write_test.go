package rewrite

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"sqe/fault"
	"sqe/plan"
)

// changing reads what a test says of a write: "change TABLE [overwrite]", a line for each branch
// (insert|update|delete FIELD=COLUMN...), "keep FIELD=COLUMN..." for what the rows have
// of the old row, and the columns _file, _pos and branch when
// the plan has them.
func (w *world) changing(text string) (*plan.Write, *plan.IDs, error) {
	out := &plan.Write{}
	type branch struct {
		op     plan.WriteOp
		values []string
	}
	var branches []branch
	var keep []string
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		if w.directive(line) {
			continue
		}
		words := strings.Fields(line)
		op := map[string]plan.WriteOp{"insert": plan.InsertRow, "update": plan.UpdateRow, "delete": plan.DeleteRow}
		switch {
		case len(words) > 0 && words[0] == "change":
			out.Target = w.tables[words[1]]
			out.Overwrite = len(words) > 2 && words[2] == "overwrite"
		case len(words) > 0 && words[0] == "keep":
			keep = words[1:]
		case len(words) > 0 && op[words[0]] != 0:
			branches = append(branches, branch{op[words[0]], words[1:]})
		default:
			lines = append(lines, line)
		}
	}
	b := newBuilder(w.tables)
	root, err := b.plan(strings.Join(lines, "\n"))
	if err != nil {
		return nil, nil, err
	}
	out.Rows = root
	column := func(name string) plan.ColumnID {
		for _, c := range root.Columns() {
			if c.Name == name {
				return c.ID
			}
		}
		return 0
	}
	out.File, out.Pos, out.Branch = column("_file"), column("_pos"), column("branch")
	for _, k := range keep {
		field, name, _ := strings.Cut(k, "=")
		f, ok := out.Target.FieldNamed(field)
		if !ok || column(name) == 0 {
			return nil, nil, fmt.Errorf("no %s or %s", field, name)
		}
		if out.Kept == nil {
			out.Kept = map[int]plan.ColumnID{}
		}
		out.Kept[f.ID] = column(name)
	}
	for _, br := range branches {
		wb := plan.WriteBranch{Op: br.op}
		for _, v := range br.values {
			field, name, _ := strings.Cut(v, "=")
			f, ok := out.Target.FieldNamed(field)
			if !ok || column(name) == 0 {
				return nil, nil, fmt.Errorf("no %s or %s", field, name)
			}
			if wb.Values == nil {
				wb.Values = map[int]plan.ColumnID{}
			}
			wb.Values[f.ID] = column(name)
		}
		out.Branches = append(out.Branches, wb)
	}
	return out, &b.ids, nil
}

func (w *world) lookup(s *plan.Scan) (*Bound, error) { return w.prepare(s.Table) }

// changed governs and completes a write, and verifies it at each step.
func (w *world) changed(text string) (*plan.Write, *Changes, *Record, error) {
	wr, ids, err := w.changing(text)
	if err != nil {
		return nil, nil, nil, err
	}
	before := plan.Format(wr.Rows)
	governed, record, err := GovernWrite(wr, ids, w.lookup, func() []byte { return testSalt })
	if err != nil {
		return nil, nil, nil, err
	}
	if plan.Format(wr.Rows) != before {
		return nil, nil, nil, errors.New("GovernWrite changed the plan that it was given")
	}
	if err := VerifyWrite(governed); err != nil {
		return nil, nil, nil, err
	}
	c, err := Complete(governed, ids, w.lookup)
	if err != nil {
		return nil, nil, nil, err
	}
	return governed, c, record, VerifyChanges(c)
}

// TestWriteGolden runs testdata/write/*. govern prints the governed rows, complete
// the rows for the writer after Pushdown, record the tables of the record.
func TestWriteGolden(t *testing.T) {
	datadriven.Walk(t, "testdata/write", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var governed *plan.Write
			var c *Changes
			var record *Record
			err := func() (err error) {
				defer recovered(&err)
				governed, c, record, err = newWorld().changed(d.Input)
				return err
			}()
			var f *fault.Fault
			switch {
			case errors.As(err, &f):
				return fmt.Sprintf("%s: %s\n", f.Kind, f.Text)
			case err != nil:
				d.Fatalf(t, "%v", err)
			}
			switch d.Cmd {
			case "govern":
				return plan.Format(governed.Rows)
			case "record":
				var b strings.Builder
				for _, r := range record.Tables {
					fmt.Fprintf(&b, "%s used %v\n", r.Table, r.Used)
				}
				return b.String()
			}
			c.Rows = Pushdown(c.Rows)
			if err := VerifyChanges(c); err != nil {
				d.Fatalf(t, "%v", err)
			}
			out := fmt.Sprintf("op #%d at #%d #%d permitted #%d fields %v\n", c.Op, c.File, c.Pos, c.Permitted, c.Fields)
			for i, l := range c.Fill {
				if l != nil {
					out += fmt.Sprintf("fill %s = %s\n", c.Target.Fields[i].Name, plan.FormatExpr(l))
				}
			}
			return out + plan.Format(c.Rows)
		})
	})
}
