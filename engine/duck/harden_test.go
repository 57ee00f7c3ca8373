package duck

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sqe/engine/scan"
	"sqe/fault"
	"sqe/plan"
)

// TestHardened sends text of its own to DuckDB: what no plan can say must be
// refused all the same.
func TestHardened(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	root := filepath.Join(dir, "wh")
	inside := writeFile(t, root, "people.parquet", batch(t, people...))
	secret := writeFile(t, outside, "secret.parquet", batch(t, people...))
	sibling := writeFile(t, dir+"/wh-other", "secret.parquet", batch(t, people...))
	link := filepath.Join(root, "link.parquet")
	if err := os.Symlink(secret, link); err != nil {
		t.Fatal(err)
	}
	in := open(t, Config{Roots: []string{root}, TempDir: filepath.Join(dir, "spill")})
	conn, db, err := in.take()
	if err != nil {
		t.Fatal(err)
	}
	defer in.give(conn, db, false)
	for _, ok := range []string{
		"SELECT count(*) FROM read_parquet(" + quote(inside) + ")",
		"SELECT 1",
	} {
		if err := execute(conn, ok); err != nil {
			t.Errorf("%s: %v", ok, err)
		}
	}
	for _, text := range []string{
		"SELECT * FROM read_parquet(" + quote(secret) + ")",
		"SELECT * FROM read_parquet(" + quote(sibling) + ")",
		"SELECT * FROM read_parquet(" + quote(root+"/../wh-other/secret.parquet") + ")",
		"SELECT * FROM read_text('/etc/hostname')",
		"SELECT * FROM glob('/etc/*')",
		"SELECT * FROM " + quote(secret),
		"COPY (SELECT 1) TO " + quote(outside+"/x.csv"),
		"ATTACH " + quote(outside+"/x.db"),
		"INSTALL httpfs",
		"LOAD httpfs",
		"LOAD " + quote(outside+"/x.duckdb_extension"),
		"SET memory_limit='10GB'",
		"SET enable_external_access=true",
		"SET lock_configuration=false",
		"SET allowed_directories=['/']",
		"SET GLOBAL TimeZone='Europe/Berlin'",
		"SET TimeZone='Europe/Berlin'",
		"RESET memory_limit",
		"PRAGMA threads=9",
		"SELECT getenv('PATH')",
		"EXPORT DATABASE " + quote(outside),
		"CREATE SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')",
		"SELECT * FROM read_parquet(" + quote(link) + ")",
		"SELECT * FROM sqe_stream('00000000000000000000000000000000')",
	} {
		if err := execute(conn, text); err == nil {
			t.Errorf("not refused: %s", text)
		}
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("something was written: %v %v", entries, err)
	}
}

// A path outside the roots that scan planning would give by mistake.
func TestFilesOutsideRoots(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	in := open(t, Config{Roots: []string{root}})
	path := writeFile(t, outside, "p.parquet", batch(t, people...))
	_, err := run(t, in, scanOf(1, people...), fixed(&scan.Input{Files: []scan.File{fileOf(path, people...)}}))
	if err == nil {
		t.Fatal("read a file outside the roots")
	}
	if !fault.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), "warehouse") {
		t.Errorf("the text does not say what to correct: %v", err)
	}
	if strings.Contains(err.Error(), outside) {
		t.Errorf("the text tells a path: %v", err)
	}
}

func TestErrorsTellNothing(t *testing.T) {
	dir := t.TempDir()
	in := open(t, Config{Roots: []string{dir}})
	secret := column{"ssn", plan.String, `["111-22-33A1"]`}
	path := writeFile(t, dir, "p.parquet", batch(t, secret, column{"n", plan.Int64, `[9223372036854775807]`}))
	cols := []column{secret, {"n", plan.Int64, ``}}
	s := scanOf(1, cols...)
	files := func(p string) Inputs { return fixed(&scan.Input{Files: []scan.File{fileOf(p, cols...)}}) }
	missing := filepath.Join(dir, "gone-111-22-33A1.parquet")
	broken := filepath.Join(dir, "broken.parquet")
	if err := os.WriteFile(broken, []byte("PAR1 111-22-33A1 this is no file"), 0o644); err != nil {
		t.Fatal(err)
	}
	short := filepath.Join(dir, "short.parquet")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := append([]byte(nil), whole...)
	for i := 4; i < len(damaged)/3; i++ {
		damaged[i] ^= 0x5a
	}
	if err := os.WriteFile(short, damaged, 0o644); err != nil {
		t.Fatal(err)
	}
	pick := func(e plan.Expr) plan.Node { return &plan.Project{Input: s, Items: []plan.Item{item(50, e)}} }
	for _, c := range []struct {
		name   string
		n      plan.Node
		inputs Inputs
		kind   fault.Kind
	}{
		{"overflow", pick(call("add", ref(s, 1), 1)), files(path), fault.OutOfRange},
		{"cast", pick(&plan.Cast{Operand: ref(s, 1), Typ: plan.Int32}), files(path), fault.OutOfRange},
		{"json", pick(call("json_extract", ref(s, 0), "$.a")), files(path), fault.BadStatement},
		{"missing", s, files(missing), fault.Corrupt},
		{"broken", s, files(broken), fault.Corrupt},
		{"damaged", s, files(short), fault.Corrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := run(t, in, c.n, c.inputs)
			if !fault.Is(err, c.kind) {
				t.Fatalf("got %v (%v)", err, unwrapped(err))
			}
			for _, secret := range []string{"111", "9223372036854775807", dir, "gone", "c1", "read_parquet"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the text tells %q: %v", secret, err)
				}
			}
		})
	}
}

// Damaged data files are an error of their own statement, never the end of the
// process and never that of the instance.
func TestDamagedFiles(t *testing.T) {
	dir := t.TempDir()
	in := open(t, Config{Roots: []string{dir}})
	good := filepath.Join(dir, "good.parquet")
	cols := append([]column{}, everyCol...)
	whole := withUUID(t, batch(t, everyCol...))
	cols = append(cols, column{"u", plan.UUID, ""})
	writeFile(t, dir, "good.parquet", whole)
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(5, 6))
	failed := 0
	for i := range 400 {
		bad := slices.Clone(data)
		switch i % 4 {
		case 0:
			bad = bad[:r.IntN(len(bad))]
		default:
			for range 1 + r.IntN(12) {
				bad[r.IntN(len(bad))] = byte(r.Uint32())
			}
		}
		path := filepath.Join(dir, fmt.Sprintf("bad%d.parquet", i))
		if err := os.WriteFile(path, bad, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := run(t, in, scanOf(1, cols...), fixed(&scan.Input{Files: []scan.File{fileOf(path, cols...)}, Rows: 2}))
		if err == nil {
			continue
		}
		failed++
		if k := fault.KindOf(err); k != fault.Corrupt && k != fault.OutOfRange && k != fault.Limit {
			t.Errorf("file %d: %s: %v", i, k, unwrapped(err))
		}
	}
	if failed < 100 {
		t.Errorf("only %d of 400 damaged files were noticed", failed)
	}
	s := scanOf(1, cols...)
	want(t, in, &plan.Aggregate{Input: s, Aggs: []plan.AggItem{agg(99, "count")}}, fixed(&scan.Input{Files: []scan.File{fileOf(good, cols...)}}), "2")
}
