package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"sqe/engine/parse"
	"sqe/fault"
	"sqe/plan"
	"sqe/rewrite"
)

func isEOF(err error) bool { return errors.Is(err, io.EOF) }

// explain shows the plan that would run. An administrator sees it whole,
// everybody else without policy texts and literals.
func (st *statement) explain(ctx context.Context, x *parse.Explain, args []plan.Literal) (*Result, error) {
	switch x.Format {
	case "", "tree", "traditional", "plan":
	default:
		return nil, unsupported("EXPLAIN FORMAT=" + strings.ToUpper(x.Format))
	}
	head, governed, err := st.explained(ctx, x.Stmt, args)
	if err != nil {
		return nil, err
	}
	if x.Analyze && head != "" {
		return nil, fault.New(fault.Unsupported, "EXPLAIN ANALYZE would change rows; use EXPLAIN, or run the statement")
	}
	format := plan.FormatPublic
	if st.principal.Admin {
		format = plan.Format
	}
	lines := strings.Split(strings.TrimRight(format(governed), "\n"), "\n")
	if head != "" {
		lines = append([]string{head}, lines...)
	}
	if f, ok := governed.(*plan.Foreign); ok && f.Reason != "" {
		lines = append(lines, "row executor: "+f.Reason)
	}
	for _, reason := range byRow(governed) {
		lines = append(lines, "row executor: "+reason)
	}
	if x.Analyze {
		started := time.Now()
		rows, err := st.run(ctx, governed)
		if err != nil {
			return nil, err
		}
		n, err := count(rows)
		if err != nil {
			return nil, err
		}
		lines = append(lines, fmt.Sprintf("rows: %d, time: %s", n, time.Since(started).Round(10*time.Microsecond)))
	}
	out := table("plan")
	for _, l := range lines {
		out.row(l)
	}
	return out.result(), nil
}

// explained is the governed plan of a statement, and for one that changes rows what it
// does with the rows of the plan, which is for administrators shown with what the
// policies make of it. Who may not run it may not see it.
func (st *statement) explained(ctx context.Context, stmt parse.Statement, args []plan.Literal) (head string, governed plan.Node, err error) {
	switch x := stmt.(type) {
	case *parse.SQL:
		if x.Kind == parse.Write {
			return "", nil, unsupported("EXPLAIN of this statement")
		}
		governed, st.record, err = st.govern(ctx, x, args)
		return "", governed, err
	case *parse.Insert, *parse.Update, *parse.Delete, *parse.Merge:
		command, ref := changed(stmt)
		o, err := st.mayWrite(ctx, command, ref)
		if err != nil {
			return "", nil, err
		}
		c, err := st.changes(ctx, stmt, args)
		if err != nil {
			return "", nil, err
		}
		// What is made of the rows besides holds the row filters of the table, outside
		// of any guard: their texts, and tables that the user may not know of.
		governed = c.governed
		if st.principal.Admin {
			governed = c.Rows
		}
		return strings.ToLower(command) + " " + o.TableName.String(), governed, nil
	}
	return "", nil, unsupported("EXPLAIN of this statement")
}

func count(rows Rows) (n int64, err error) {
	defer func() { _ = rows.Close() }()
	for {
		b, err := rows.Next()
		if isEOF(err) {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
		n += b.NumRows()
		b.Release()
	}
}

// explainPolicy says for each table and column which policy acts and why: in
// full to an administrator, in general words to everybody else.
func (st *statement) explainPolicy(ctx context.Context, x *parse.ExplainPolicy, args []plan.Literal) (*Result, error) {
	who := st
	var unknown, notes []string
	if x.As != nil {
		var err error
		if who, unknown, notes, err = st.impersonated(ctx, x.As); err != nil {
			return nil, err
		}
	}
	if _, _, err := who.explained(ctx, x.Stmt, args); err != nil {
		if len(unknown) > 0 {
			err = fault.Wrap(fault.KindOf(err), err, "%s (%s)", err, strings.Join(unknown, "; "))
		}
		return nil, err
	}
	st.record = who.record
	record := who.gated(st.record)
	if !st.principal.Admin {
		record = record.Public()
	}
	if x.JSON {
		text, err := json.MarshalIndent(record, "", "  ")
		if err != nil {
			return nil, err
		}
		out := table("policy")
		out.row(string(text))
		return st.noticed(out, append(unknown, notes...)), nil
	}
	out := table("table", "column", "effect", "policy", "why")
	for _, l := range record.Lines() {
		out.row(l.Table, l.Column, l.Effect, l.Policy, l.Why)
	}
	return st.noticed(out, append(unknown, notes...)), nil
}

// gated is the record with notes on what the object gate looked at.
func (st *statement) gated(r *rewrite.Record) *rewrite.Record {
	if r == nil {
		return nil
	}
	out := &rewrite.Record{Tables: slices.Clone(r.Tables)}
	for i := range out.Tables {
		t := &out.Tables[i]
		if g, ok := st.granted(t); ok && g.byAddress {
			t.Notes = append(slices.Clip(t.Notes), gateByAddress(st.principal))
		}
	}
	return out
}

// policyStatus is SHOW POLICY STATUS. Everybody may see whether the policies are
// fresh; what is wrong with one is for administrators.
func (st *statement) policyStatus() (*Result, error) {
	out := table("source", "kind", "fresh", "age_seconds", "max_staleness_seconds", "last_success", "versions", "policies", "last_error", "problems")
	_, _ = st.policies() // for their version; that they are too old is a row here, no error
	broken := st.engine.broken.list(st.version)
	for _, s := range st.engine.Status() {
		versions, err := json.Marshal(s.Versions)
		if err != nil {
			return nil, err
		}
		lastError, problems := s.LastError, strings.Join(slices.Concat(s.Problems, broken, s.Notes), "; ")
		if !st.principal.Admin {
			lastError, problems = "", ""
			if s.LastError != "" {
				lastError = "the last poll failed; an administrator sees why"
			}
		}
		last := ""
		if !s.LastSuccess.IsZero() {
			last = s.LastSuccess.UTC().Format(time.RFC3339)
		}
		out.row(s.Source, s.Kind, yes(s.Fresh), itoa(int64(s.Age.Seconds())), itoa(int64(s.MaxAge.Seconds())),
			last, string(versions), itoa(int64(s.Policies)), lastError, problems)
	}
	return out.result(), nil
}

// processList is SHOW PROCESSLIST.
func (st *statement) processList() (*Result, error) {
	out := table("Id", "User", "Host", "db", "Command", "Time", "State", "Info")
	for _, p := range st.engine.processes.list(st.principal) {
		out.row(itoa(int64(p.id)), p.user, p.remote, p.database, p.state, itoa(p.seconds), p.progress, p.status)
	}
	return out.result(), nil
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// textTable is a small result, mostly of text.
type textTable struct {
	columns []plan.Column
	builder *array.RecordBuilder
}

func table(columns ...string) *textTable {
	typed := make([]plan.Column, len(columns))
	for i, c := range columns {
		typed[i].Name = c
	}
	return typedTable(typed...)
}

// typedTable has columns of text, plan.Bool and plan.Int64; a column without a
// type is text.
func typedTable(columns ...plan.Column) *textTable {
	t := &textTable{}
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		if c.Type == nil {
			c.Type = plan.String
		}
		c.ID = plan.ColumnID(i + 1)
		t.columns = append(t.columns, c)
		fields[i] = arrow.Field{Name: c.Name, Type: c.Type}
	}
	t.builder = array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	return t
}

// row appends a row of strings, bool and int64, as the columns are.
func (t *textTable) row(values ...any) {
	for i, v := range values {
		appendLiteral(t.builder.Field(i), v)
	}
}

func (t *textTable) result() *Result {
	return &Result{Columns: t.columns, Rows: &oneBatch{batch: t.builder.NewRecordBatch()}}
}

// oneBatch yields one batch.
type oneBatch struct{ batch arrow.RecordBatch }

func (o *oneBatch) Next() (arrow.RecordBatch, error) {
	if o.batch == nil {
		return nil, io.EOF
	}
	b := o.batch
	o.batch = nil
	return b, nil
}

func (o *oneBatch) Close() error {
	if o.batch != nil {
		o.batch.Release()
		o.batch = nil
	}
	return nil
}
