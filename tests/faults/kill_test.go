//go:build e2e

package faults

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var (
	seed   = flag.Uint64("seed", 1, "of what happens when; 0 takes a new one")
	rounds = flag.Int("rounds", 21, "how often the server is killed")
)

// contents are the rows of a table, the value v by id.
type contents map[int64]int64

// signature is what contents give to the query of signatureOf.
func (c contents) signature() string {
	if len(c) == 0 {
		return "0 ␀ ␀ ␀"
	}
	var ids, values, both int64
	for id, v := range c {
		ids += id
		values += v
		both += id * v % 1000003
	}
	return fmt.Sprint(len(c), ids, values, both)
}

func signatureOf(name string) string {
	return "SELECT COUNT(*), SUM(id), SUM(v), SUM((id * v) % 1000003) FROM s." + name
}

// sourceRows is how many rows a statement brings.
const sourceRows = 100_000

// operation is a statement that is about to run, and what it makes of a table.
type operation struct {
	kind, text string
	after      contents
}

// victim is a table in the state that its last acknowledged statement left.
type victim struct {
	name string
	rows contents
	next int64 // an id that was never used
}

func (v *victim) operation(rnd *rand.Rand) operation {
	kinds := []string{"insert", "insert", "merge", "merge", "merge", "delete", "update", "replace", "truncate", "rewrite", "expire"}
	if len(v.rows) < sourceRows {
		kinds = []string{"insert", "replace", "merge"}
	} else if len(v.rows) > 4*sourceRows {
		kinds = []string{"replace", "truncate"}
	}
	o := operation{kind: kinds[rnd.IntN(len(kinds))], after: maps.Clone(v.rows)}
	m, r := int64(3+rnd.IntN(5)), int64(rnd.IntN(3))
	switch o.kind {
	case "insert":
		o.text = fmt.Sprintf("INSERT INTO s.%s SELECT id + %d, v FROM s.src", v.name, v.next)
		for i := range int64(sourceRows) {
			o.after[i+v.next] = 7 * i
		}
	case "merge":
		// Some rows are there, some are not.
		from := max(0, v.next-sourceRows/2)
		o.text = fmt.Sprintf(`MERGE INTO s.%s AS t USING (SELECT id + %d AS id, v FROM s.src WHERE id %% %d = %d) AS u ON t.id = u.id
			WHEN MATCHED THEN UPDATE SET v = t.v + u.v + 1 WHEN NOT MATCHED THEN INSERT (id, v) VALUES (u.id, u.v)`, v.name, from, m, r)
		for i := r; i < sourceRows; i += m {
			if old, ok := v.rows[i+from]; ok {
				o.after[i+from] = old + 7*i + 1
			} else {
				o.after[i+from] = 7 * i
			}
		}
	case "delete":
		o.text = fmt.Sprintf("DELETE FROM s.%s WHERE id %% %d = %d", v.name, m, r)
		maps.DeleteFunc(o.after, func(id, _ int64) bool { return id%m == r })
	case "update":
		o.text = fmt.Sprintf("UPDATE s.%s SET v = v - id WHERE id %% %d = %d", v.name, m, r)
		for id, old := range v.rows {
			if id%m == r {
				o.after[id] = old - id
			}
		}
	case "replace":
		// The properties of the table stay.
		o.text = fmt.Sprintf("CREATE OR REPLACE TABLE s.%s AS SELECT id, v + %d AS v FROM s.src", v.name, m)
		o.after = contents{}
		for i := range int64(sourceRows) {
			o.after[i] = 7*i + m
		}
	case "rewrite":
		o.text = fmt.Sprintf("CALL system.rewrite_data_files(table => 's.%s', options => map('rewrite-all', 'true'))", v.name)
	case "expire":
		o.text = fmt.Sprintf("CALL system.expire_snapshots(table => 's.%s', older_than => '%s')", v.name, tomorrow())
	case "truncate":
		o.text, o.after = "TRUNCATE TABLE s."+v.name, contents{}
	}
	return o
}

// TestKill kills the server again and again in the middle of writes. It starts again
// by itself; a statement that was acknowledged took place, one that was not did as a
// whole or not at all; and what is left over is found and removed.
func TestKill(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("-seed %d", *seed)
	rnd := rand.New(rand.NewPCG(*seed, 1))
	s := newSite(t, catalogKinds[0], 1, nil)
	s.digits()
	s.do("CREATE TABLE s.src AS SELECT i AS id, i * 7 AS v FROM (" + numbers(sourceRows) + ") AS n")
	s.want(signatureOf("src"), contentsOfSource().signature())
	var victims []*victim
	for _, m := range modes {
		s.do(fmt.Sprintf("CREATE TABLE s.%s (id BIGINT, v BIGINT) PARTITIONED BY (BUCKET(3, id)) TBLPROPERTIES (%s)", m.name, m.properties))
		victims = append(victims, &victim{name: m.name, rows: contents{}})
	}
	took := map[string]time.Duration{} // by kind of operation
	var killed, done, orphans, torn int
	// On a machine on which none dies in the middle by chance, some more.
	enough := func() bool { return *rounds < 20 || killed > 0 && torn > 0 }
	for round := 0; round < *rounds || !enough() && round < 10**rounds; round++ {
		v := victims[round%len(victims)]
		o := v.operation(rnd)
		create := rnd.IntN(6) == 0
		if create {
			o = operation{kind: "create", text: fmt.Sprintf("CREATE TABLE s.new%d AS SELECT id, v FROM s.src", round), after: contentsOfSource()}
		}
		// Most of the time the server dies when the statement writes.
		expected := took[o.kind]
		if expected == 0 {
			expected = 200 * time.Millisecond
		}
		delay := expected/4 + time.Duration(rnd.Int64N(int64(expected)))
		start := time.Now()
		result := make(chan error, 1)
		go func() {
			_, err := s.exec(0, o.text)
			if err == nil {
				took[o.kind] = time.Since(start)
			}
			result <- err
		}()
		time.Sleep(delay)
		s.must(s.servers[0].Crash())
		acknowledged := <-result
		s.start(0)
		if create {
			s.created(fmt.Sprintf("new%d", round), o, acknowledged == nil)
			continue
		}
		switch got := s.see(signatureOf(v.name)); {
		case got == o.after.signature():
			v.rows = o.after
			if o.kind == "replace" {
				v.next = 0
			}
			for id := range v.rows {
				v.next = max(v.next, id+1)
			}
			done++
		case acknowledged == nil:
			t.Fatalf("round %d: %s was acknowledged, and then the table holds %s, want %s", round, o.text, got, o.after.signature())
		case got == v.rows.signature():
			killed++
		default:
			t.Fatalf("round %d: after %s the table holds %s, want %s or %s", round, o.text, got, v.rows.signature(), o.after.signature())
		}
		if n := s.sweep(v.name, signatureOf(v.name)); n > 0 {
			orphans += n
			torn++
		}
		s.want(signatureOf(v.name), v.rows.signature())
	}
	t.Logf("%d statements took place, %d did not; %d orphans of %d statements", done, killed, orphans, torn)
	if !enough() {
		t.Error("no statement was killed in the middle: the test shows less than it should")
	}
	// Every table can still be changed.
	for _, v := range victims {
		s.do("INSERT INTO s." + v.name + " VALUES (-1, 5)")
		v.rows[-1] = 5
		s.want(signatureOf(v.name), v.rows.signature())
		s.clean(v.name)
	}
	s.want(signatureOf("src"), contentsOfSource().signature())
}

func contentsOfSource() contents {
	out := contents{}
	for i := range int64(sourceRows) {
		out[i] = 7 * i
	}
	return out
}

// created checks a table whose creation was killed: it is there as a whole, or not at
// all and can be created.
func (s *site) created(name string, o operation, acknowledged bool) {
	s.Helper()
	switch got := s.see("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 's' AND table_name = '" + name + "'"); {
	case got == "1":
	case acknowledged:
		s.Fatalf("%s was acknowledged, and there is no table", o.text)
	default:
		if _, err := s.exec(0, "SELECT * FROM s."+name); number(err) != 1146 {
			s.Errorf("SELECT from a table that was not created: %v", err)
		}
		s.do(o.text)
	}
	s.want(signatureOf(name), o.after.signature())
	s.sweep(name, signatureOf(name))
	// Where nothing came of the first try, its files lie in a folder of their own,
	// which has the name of the table.
	at := s.metadata(name)
	entries, err := os.ReadDir(filepath.Join(filepath.Dir(at), "..", ".."))
	s.must(err)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), name+"-") && !strings.Contains(at, e.Name()) {
			for _, f := range s.filesIn(filepath.Join(filepath.Dir(at), "..", "..", e.Name())) {
				s.Logf("left of a table that was not created: %s", filepath.Base(f))
			}
		}
	}
}

// TestSpilledRows: rows that a killed server had put aside on the disk are gone when
// it runs again.
func TestSpilledRows(t *testing.T) {
	s := newSite(t, catalogKinds[0], 1, map[string]string{"engine": "memory-limit = \"96MiB\"\nthreads = 2"})
	s.small(modes[0].properties)
	temp := filepath.Join(filepath.Dir(s.configs[0]), "tmp")
	spilled := func() (n int) {
		for _, f := range s.filesIn(temp) {
			if info, err := os.Stat(f); err == nil && info.Size() > 0 {
				n++
			}
		}
		return n
	}
	result := make(chan error, 1)
	go func() {
		_, err := s.exec(0, "INSERT INTO s.t SELECT COUNT(*), MIN(h) FROM (SELECT DISTINCT SHA2(CAST(i AS CHAR), 256) AS h FROM ("+numbers(10_000_000)+") AS n) AS m")
		result <- err
	}()
	for deadline := time.Now().Add(3 * time.Minute); spilled() == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing was put aside: the test shows nothing")
		}
	}
	s.must(s.servers[0].Crash())
	if err := <-result; err == nil {
		t.Fatal("the statement ended")
	}
	if spilled() == 0 {
		t.Fatal("nothing was left: the test shows nothing")
	}
	s.start(0)
	if n := spilled(); n > 0 {
		t.Errorf("%d files of rows are left: %v", n, s.filesIn(temp))
	}
	s.want("SELECT id, v FROM s.t ORDER BY id", smallRows)
	s.clean("t")
}
