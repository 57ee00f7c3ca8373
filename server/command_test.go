package server

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/go-sql-driver/mysql"

	"sqe/engine"
	"sqe/fault"
	"sqe/plan"
	"sqe/server/wire"
)

// TestStatements: several statements in one text run in order, with a client
// that asked for it; an error ends them; without it the text is refused.
func TestStatements(t *testing.T) {
	s := start(t, nil)
	db := s.db(func(c *mysql.Config) { c.MultiStatements = true })
	rows, err := db.Query("select 1; set; select database(); select 1")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for more := true; more; more = rows.NextResultSet() {
		for rows.Next() {
			var v string
			if err := rows.Scan(&v); err != nil {
				t.Fatal(err)
			}
			got = append(got, v)
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil || strings.Join(got, ",") != "1,,1" {
		t.Error(got, err)
	}
	if _, err := db.Exec("set; bad statement; never"); number(err) != 1064 {
		t.Error(err)
	}
	s.engine.mu.Lock()
	if last := s.engine.texts[len(s.engine.texts)-1]; last != "bad statement" {
		t.Errorf("%q ran after an error", last)
	}
	s.engine.mu.Unlock()
	closed := &batches{}
	s.answer("first", func(context.Context, []plan.Literal) (*engine.Result, error) {
		return &engine.Result{Columns: benchColumns, Rows: closed}, nil
	})
	if _, err := s.db(nil).Exec("first; second"); number(err) != 1064 || !strings.Contains(err.Error(), "multi statements") || !closed.closed.Load() {
		t.Error(err)
	}
	s.engine.mu.Lock()
	if last := s.engine.texts[len(s.engine.texts)-1]; last != "first" {
		t.Errorf("%q ran", last)
	}
	s.engine.mu.Unlock()
}

func TestAffected(t *testing.T) {
	s := start(t, nil)
	res, err := s.db(nil).Exec("set")
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := res.RowsAffected(); n != 3 {
		t.Error(n)
	}
	r := rawLogin(t, s)
	r.command(wire.ComQuery, "set")
	if p := r.read(); string(p) != "\x00\x03\x00\x02\x00\x02\x00" { // affected, id, autocommit, warnings
		t.Errorf("%q", p)
	}
}

// failingRows yields a batch, then an error, or fails when closed.
func failingRows(err, closeErr error) *batches {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	defer b.Release()
	b.Append("x")
	col := b.NewArray()
	defer col.Release()
	columns := []plan.Column{{Name: "c", Type: plan.String}}
	return &batches{list: []arrow.RecordBatch{record(columns, col)}, err: err, closeErr: closeErr}
}

// TestErrorAmongRows: an error after the first rows reaches the client with its
// text, also one that comes only when the rows are closed, and the connection
// goes on.
func TestErrorAmongRows(t *testing.T) {
	s := start(t, nil)
	db := s.db(nil)
	db.SetMaxOpenConns(1)
	columns := []plan.Column{{Name: "c", Type: plan.String}}
	far := array.NewDate32Builder(memory.DefaultAllocator)
	far.AppendValues([]arrow.Date32{0, 3_000_000}, nil)
	dates := []plan.Column{{Name: "c", Type: plan.Date}}
	for name, tt := range map[string]struct {
		columns []plan.Column
		rows    *batches
		want    uint16
	}{
		"an error":   {columns, failingRows(fault.New(fault.Timeout, "too long"), nil), 3024},
		"closing":    {columns, failingRows(nil, fault.New(fault.Unavailable, "no audit log")), 1429},
		"a value":    {dates, &batches{list: []arrow.RecordBatch{record(dates, far.NewArray())}}, 1690},
		"wrong kind": {dates, failingRows(nil, nil), 1105},
		"no form":    {[]plan.Column{{Name: "c", Type: arrow.ListOf(plan.Int32)}}, failingRows(nil, nil), 1105},
	} {
		s.answer("rows", func(context.Context, []plan.Literal) (*engine.Result, error) {
			return &engine.Result{Columns: tt.columns, Rows: tt.rows}, nil
		})
		rows, err := db.Query("rows")
		if err == nil {
			for rows.Next() {
			}
			err = rows.Err()
			_ = rows.Close()
		}
		if number(err) != tt.want {
			t.Errorf("%s: %v, want %d", name, err, tt.want)
		}
		if !tt.rows.closed.Load() {
			t.Errorf("%s: the rows were not closed", name)
		}
	}
	for _, bad := range []*engine.Result{nil, {Columns: columns}} {
		s.answer("rows", func(context.Context, []plan.Literal) (*engine.Result, error) { return bad, nil })
		if _, err := db.Exec("rows"); number(err) != 1105 {
			t.Error(err)
		}
	}
	if err := db.Ping(); err != nil || s.engine.open.Load() != 1 {
		t.Error(err, s.engine.open.Load())
	}
}

func TestCommands(t *testing.T) {
	s := start(t, nil)
	r := rawLogin(t, s)
	ok := "\x00\x00\x00\x02\x00\x00\x00"
	expect := func(name, want string) {
		t.Helper()
		if p := r.read(); string(p) != want {
			t.Errorf("%s: %q, want %q", name, p, want)
		}
	}
	r.command(wire.ComPing, "")
	expect("ping", ok)
	r.command(wire.ComInitDB, "bank")
	expect("init db", ok)
	r.command(wire.ComInitDB, "secret")
	if p := r.read(); failure(p) != 1049 {
		t.Errorf("%q", p)
	}
	r.command(wire.ComStatistics, "")
	if p := r.read(); !strings.HasPrefix(string(p), "Uptime: ") || !strings.HasSuffix(string(p), "Questions: 0") {
		t.Errorf("%q", p)
	}
	r.command(wire.ComSetOption, "\x00\x00")
	expect("set option", "\xfe\x00\x00\x02\x00\x00\x00")
	r.command(wire.ComSetOption, "\x07\x00")
	if p := r.read(); failure(p) != 1047 {
		t.Errorf("%q", p)
	}
	s.answer("SELECT * FROM `a``b` LIMIT 0", func(context.Context, []plan.Literal) (*engine.Result, error) {
		return &engine.Result{Columns: typedColumns[:2], Rows: &batches{}}, nil
	})
	r.command(wire.ComFieldList, "a`b\x00%")
	if p := r.read(); !strings.HasPrefix(string(p), "\x03def\x00\x00\x00\x01b\x00\x0c") || p[len(p)-1] != 0xfb {
		t.Errorf("%q", p)
	}
	r.read()
	expect("field list", "\xfe\x00\x00\x02\x00\x00\x00")
	r.command(wire.ComFieldList, "forbidden\x00")
	if p := r.read(); failure(p) != 1064 {
		t.Errorf("%q", p)
	}
	s.answer("KILL 77", func(context.Context, []plan.Literal) (*engine.Result, error) {
		return nil, fault.New(fault.NoThread, "no session")
	})
	r.command(wire.ComProcessKill, "\x4d\x00\x00\x00")
	if p := r.read(); failure(p) != 1094 {
		t.Errorf("%q", p)
	}
	for _, unknown := range []wire.Command{0x00, 0x05, 0x06, 0x08, 0x0d, 0x12, 0x13, 0x1d, 0x1e, 0x20, 0xff} {
		r.command(unknown, "x")
		if p := r.read(); failure(p) != 1047 {
			t.Errorf("%x: %q", unknown, p)
		}
	}
	for _, short := range []wire.Command{wire.ComStmtExecute, wire.ComStmtReset, wire.ComProcessKill, wire.ComSetOption, wire.ComFieldList} {
		r.command(short, "")
		if p := r.read(); failure(p) != 1835 {
			t.Errorf("%x: %q", short, p)
		}
	}
	r.command(wire.ComResetConnection, "")
	expect("reset", ok)
	// The connection would otherwise go on as somebody else than the client thinks.
	r.command(wire.ComChangeUser, "bob\x00")
	if p := r.read(); failure(p) != 1835 || !r.closed() {
		t.Errorf("%q", p)
	}
}

// TestEmptyCommand: a packet without a command ends the connection.
func TestEmptyCommand(t *testing.T) {
	s := start(t, nil)
	r := rawLogin(t, s)
	r.out.Sequence(0)
	r.write(nil)
	if !r.closed() {
		t.Error("still open")
	}
}

func TestReset(t *testing.T) {
	s := start(t, nil)
	db := s.db(func(c *mysql.Config) { c.DBName = "bank" })
	db.SetMaxOpenConns(1)
	r := rawLogin(t, s)
	r.command(wire.ComStmtPrepare, "params")
	r.read()
	r.command(wire.ComResetConnection, "")
	r.read()
	r.command(wire.ComStmtExecute, "\x01\x00\x00\x00\x00\x01\x00\x00\x00")
	if p := r.read(); failure(p) != 1243 {
		t.Errorf("a prepared statement survived: %q", p)
	}
}

// TestPrepared: parameters arrive with their types, a statement runs several
// times, a statement that was closed is gone.
func TestPrepared(t *testing.T) {
	s := start(t, nil)
	db := s.db(nil)
	st, err := db.Prepare("params ? ? ? ? ?")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var got string
		err := st.QueryRow(int64(-5), "é", 1.5, []byte{0xff}, nil).Scan(&got)
		if want := "int64:-5 utf8:é float64:1.5 binary:[255] null:<nil>"; err != nil || got != want {
			t.Errorf("%q, want %q (%v)", got, want, err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Prepare("bad ?"); number(err) != 1064 {
		t.Error(err)
	}
	r := rawLogin(t, s)
	for _, id := range []string{"\x01\x00\x00\x00", "\x09\x00\x00\x00"} {
		r.command(wire.ComStmtExecute, id+"\x00\x01\x00\x00\x00")
		if p := r.read(); failure(p) != 1243 {
			t.Errorf("%q", p)
		}
		r.command(wire.ComStmtFetch, id+"\x01\x00\x00\x00")
		if p := r.read(); failure(p) != 1421 {
			t.Errorf("%q", p)
		}
	}
}

// TestLongData: a large parameter comes in pieces; beyond the limit the next
// execution fails and the one after it works.
func TestLongData(t *testing.T) {
	s := start(t, func(o *Options) { o.MaxPacket = 1 << 20 })
	db := s.db(func(c *mysql.Config) { c.MaxAllowedPacket = 20_000 }) // pieces of this size
	st, err := db.Prepare("params ? ?")
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	big := strings.Repeat("é", 100_000)
	var got string
	if err := st.QueryRow(big, 7).Scan(&got); err != nil || got != "utf8:"+big+" int64:7" {
		t.Error(len(got), err)
	}
	if err := st.QueryRow(strings.Repeat("x", 2<<20), 7).Scan(&got); number(err) != 1041 {
		t.Error(err)
	}
	if err := st.QueryRow("small", 7).Scan(&got); err != nil || got != "utf8:small int64:7" {
		t.Error(got, err)
	}
	r := rawLogin(t, s)
	r.command(wire.ComStmtPrepare, "params ?")
	for range 2 {
		r.read()
	}
	r.command(wire.ComStmtSendLongData, "\x01\x00\x00\x00\x05\x00data") // no such parameter
	r.command(wire.ComStmtExecute, "\x01\x00\x00\x00\x00\x01\x00\x00\x00\x01\x01\x06\x00")
	if p := r.read(); failure(p) != 1210 {
		t.Errorf("%q", p)
	}
	r.command(wire.ComStmtSendLongData, "\x01\x00\x00\x00\x00\x00data")
	r.command(wire.ComStmtReset, "\x01\x00\x00\x00") // drops it
	r.read()
	r.command(wire.ComStmtExecute, "\x01\x00\x00\x00\x00\x01\x00\x00\x00\x01\x01\x06\x00")
	r.read()
	r.read()
	if p := r.read(); !strings.HasSuffix(string(p), "null:<nil>") {
		t.Errorf("%q", p)
	}
}

// TestSpeed holds the encoder and the protocol to what they allocate for a row, client
// included, so that a mistake that costs much is seen: the benchmarks have the figures,
// and the time depends on what else the machine does.
func TestSpeed(t *testing.T) {
	s := start(t, nil)
	batch := benchBatch()
	const rows = 100 * batchRows
	s.answer("stream", func(context.Context, []plan.Literal) (*engine.Result, error) {
		return &engine.Result{Columns: benchColumns, Rows: &repeated{batch: batch, n: rows / batchRows}}, nil
	})
	db := s.db(nil)
	count(t, db, "stream", false, rows)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	count(t, db, "stream", false, rows)
	took := time.Since(begin)
	runtime.ReadMemStats(&after)
	objects, size := float64(after.Mallocs-before.Mallocs)/rows, float64(after.TotalAlloc-before.TotalAlloc)/rows
	t.Logf("%.0f rows a second, %.2f objects and %.0f bytes allocated for a row", rows/took.Seconds(), objects, size)
	if objects > 12 || size > 400 {
		t.Errorf("%.2f objects and %.0f bytes are allocated for a row", objects, size)
	}
}
