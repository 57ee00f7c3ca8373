package catalog

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"go.uber.org/goleak"

	"sqe/fault"
	"sqe/plan"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("CATALOG_TEST_COMMIT_IN"); dir != "" {
		commitForever(dir)
	}
	goleak.VerifyTestMain(m)
}

func TestCommit(t *testing.T) {
	c, dir := lake(t)
	made(t, c, "t", humans)
	n := name("ns", "t")
	got, err := c.Commit(ctx, n, func(ctx context.Context, tx *table.Transaction, tb *plan.Table) error {
		return errors.Join(rows(`[{"id": 1}]`)(ctx, tx, tb), tx.SetProperties(iceberg.Properties{"k": "v"}))
	})
	must(t, err)
	if got.Properties["k"] != "v" || scanned(t, got) != 1 || versionOf(got.Version) != 1 {
		t.Errorf("%s %v", got.Version, got.Properties)
	}
	if same := loaded(t, c, "t"); same.Version != got.Version || same.SnapshotID != got.SnapshotID {
		t.Error("what is returned is not what is read")
	}
	// Nothing staged is no commit.
	same, err := c.Commit(ctx, n, func(context.Context, *table.Transaction, *plan.Table) error { return nil })
	if err != nil || same.Version != got.Version {
		t.Errorf("nothing staged: %v", err)
	}
	before := files(t, dir)
	boom := fault.New(fault.OutOfRange, "boom")
	_, err = c.Commit(ctx, n, func(ctx context.Context, tx *table.Transaction, tb *plan.Table) error {
		return errors.Join(rows(`[{"id": 2}]`)(ctx, tx, tb), boom)
	})
	if !errors.Is(err, boom) || loaded(t, c, "t").Version != got.Version {
		t.Errorf("a failure: %v", err)
	}
	leftovers(t, dir, before)
	// A change cannot commit by itself, nor can a table that was handed out.
	_, err = c.Commit(ctx, n, func(ctx context.Context, tx *table.Transaction, _ *plan.Table) error {
		if err := tx.SetProperties(iceberg.Properties{"k": "w"}); err != nil {
			return err
		}
		_, err := tx.Commit(ctx)
		return err
	})
	if err == nil || loaded(t, c, "t").Version != got.Version {
		t.Errorf("a commit by itself: %v", err)
	}
	if _, err := c.Commit(ctx, n, func(context.Context, *table.Transaction, *plan.Table) error { panic("x") }); err == nil {
		t.Error("a panic")
	}
	_, err = c.Commit(ctx, name("ns", "none"), func(context.Context, *table.Transaction, *plan.Table) error { return nil })
	wants(t, "no table", err, fault.NotFound, "none")
	cancelled, cancel := context.WithCancel(ctx)
	_, err = c.Commit(cancelled, n, func(ctx context.Context, tx *table.Transaction, tb *plan.Table) error {
		defer cancel()
		return rows(`[{"id": 2}]`)(ctx, tx, tb)
	})
	wants(t, "cancelled before the swap", err, fault.Cancelled, "")
	leftovers(t, dir, before)
	if loaded(t, c, "t").Version != got.Version {
		t.Error("a cancelled commit took place")
	}
}

// TestCommitFails: a catalog or a store that does not take a change leaves the table
// as it was, and nothing behind.
func TestCommitFails(t *testing.T) {
	c, dir := lake(t)
	first := made(t, c, "t", humans)
	n := name("ns", "t")
	change := func() error { _, err := c.Commit(ctx, n, rows(`[{"id": 1}]`)); return err }
	before := files(t, dir)
	for _, op := range []string{"UPDATE", "INSERT", "DELETE"} {
		_, err := c.db.Exec(`CREATE TRIGGER refuse_` + op + ` BEFORE ` + op + ` ON iceberg_tables BEGIN SELECT RAISE(ABORT, 'secret path'); END`)
		must(t, err)
	}
	_, _, err := c.CreateTable(ctx, name("ns", "u"), humans, CreateOptions{Fill: rows(`[{"id": 1}]`)})
	wants(t, "create", err, fault.Unavailable, "log")
	_, err = c.DropTable(ctx, n, true)
	wants(t, "drop", err, fault.Unavailable, "log")
	wants(t, "rename", c.RenameTable(ctx, n, name("ns", "u")), fault.Unavailable, "log")
	wants(t, "view", createView(c, name("ns", "v"), "SELECT 1"), fault.Unavailable, "log")
	if err := change(); !fault.Is(err, fault.Unavailable) || errors.Is(err, ErrUnknown) || strings.Contains(err.Error(), "secret") {
		t.Errorf("commit: %v", err)
	}
	leftovers(t, dir, before)
	for _, op := range []string{"UPDATE", "INSERT", "DELETE"} {
		_, err := c.db.Exec(`DROP TRIGGER refuse_` + op)
		must(t, err)
	}
	if got := loaded(t, c, "t"); got.Version != first.Version || got.SnapshotID != 0 {
		t.Error("a failed commit changed the table")
	}

	// The store takes no metadata: there is a file where a folder has to be.
	folder := filepath.Dir(mustPath(first.Version))
	must(t, os.Rename(folder, folder+".away"))
	must(t, os.WriteFile(folder, nil, 0o600))
	_, err = c.AlterTable(ctx, n, []Change{CommentTable{"x"}})
	wants(t, "no store", err, fault.Unavailable, "nothing was changed")
	if strings.Contains(err.Error(), dir) {
		t.Errorf("a path: %v", err)
	}
	must(t, os.Remove(folder))
	must(t, os.Rename(folder+".away", folder))
	must(t, change())

	// The database is gone in the middle: nobody knows, and nothing is deleted.
	before = files(t, dir)
	_, err = c.Commit(ctx, n, func(ctx context.Context, tx *table.Transaction, tb *plan.Table) error {
		defer func() { _ = c.Close() }()
		return rows(`[{"id": 2}]`)(ctx, tx, tb)
	})
	if !errors.Is(err, ErrUnknown) || !fault.Is(err, fault.Unavailable) {
		t.Errorf("a closed catalog: %v", err)
	}
	if after := files(t, dir); len(after) != len(before)+4 { // data, manifest, list, metadata
		t.Errorf("%d files more", len(after)-len(before))
	}
}

// leftovers complains of new files that are no data files: those belong to who
// wrote them.
func leftovers(t testing.TB, dir string, before []string) {
	t.Helper()
	for _, f := range files(t, dir) {
		if !slices.Contains(before, f) && !strings.HasSuffix(f, ".parquet") {
			t.Errorf("left %s", f)
		}
	}
}

// TestCommitMeets: a change is made anew on what another writer committed, and its
// first try leaves nothing; a writer who always meets others gets a conflict.
func TestCommitMeets(t *testing.T) {
	dir := t.TempDir()
	c, other := open(t, dir), open(t, dir)
	must(t, c.CreateNamespace(ctx, []string{"ns"}, nil, false))
	made(t, c, "t", humans)
	n := name("ns", "t")
	calls := 0
	got, err := c.Commit(ctx, n, func(ctx context.Context, tx *table.Transaction, tb *plan.Table) error {
		if calls++; calls < 3 {
			if _, err := other.Commit(ctx, n, rows(fmt.Sprintf(`[{"id": %d}]`, calls))); err != nil {
				return err
			}
		}
		return rows(`[{"id": 9}]`)(ctx, tx, tb)
	})
	must(t, err)
	if calls != 3 || scanned(t, got) != 3 {
		t.Errorf("%d calls, %d rows", calls, scanned(t, got))
	}
	metadata, lists := 0, 0
	for _, f := range files(t, dir) {
		switch {
		case strings.HasSuffix(f, ".metadata.json"):
			metadata++
		case strings.Contains(filepath.Base(f), "snap-"):
			lists++
		}
	}
	if metadata != 4 || lists != 3 {
		t.Errorf("%d metadata files and %d manifest lists for 4 versions and 3 snapshots", metadata, lists)
	}
	calls, c.attempts = 0, 7
	_, err = c.Commit(ctx, n, func(ctx context.Context, tx *table.Transaction, _ *plan.Table) error {
		calls++
		k := fmt.Sprint(calls)
		_, err := other.AlterTable(ctx, n, []Change{SetProperties{map[string]string{"calls": k}}})
		return errors.Join(err, tx.SetProperties(iceberg.Properties{"mine": k}))
	})
	wants(t, "others all the time", err, fault.Conflict, "try again")
	if now := loaded(t, c, "t"); now.Properties["mine"] != "" || now.Properties["calls"] != fmt.Sprint(calls) || calls != 7 {
		t.Errorf("%v after %d calls", now.Properties, calls)
	}
	// The table is dropped, or another one, while the change is staged.
	_, err = c.Commit(ctx, n, func(ctx context.Context, tx *table.Transaction, tb *plan.Table) error {
		_, err := other.DropTable(ctx, n, false)
		return errors.Join(err, rows(`[{"id": 1}]`)(ctx, tx, tb))
	})
	wants(t, "dropped meanwhile", err, fault.NotFound, "t")
}

// TestCommitTogether: eight writers through two catalogs on one file, as in two
// processes. Each commits or is told of a conflict, and no row is lost or doubled.
func TestCommitTogether(t *testing.T) {
	dir := t.TempDir()
	both := []*SQL{open(t, dir), open(t, dir)}
	must(t, both[0].CreateNamespace(ctx, []string{"ns"}, nil, false))
	made(t, both[0], "t", humans)
	n := name("ns", "t")
	var mu sync.Mutex
	done := map[int]bool{}
	conflicts := 0
	for round := range 20 {
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				id := round*8 + w
				c := both[w%2]
				var err error
				switch {
				case w == 7 && round%4 == 0:
					// A change of the schema among them.
					_, err = c.AlterTable(ctx, n, []Change{AddColumn{Path: []string{fmt.Sprintf("c%d", id)}, Field: fld("", plan.Int32)}})
				case w == 6:
					_, err = c.UpdateProperties(ctx, n, func(*plan.Table, map[string]string) (map[string]string, []string, error) {
						return map[string]string{fmt.Sprint(id): "x"}, nil, nil
					})
				default:
					_, err = c.Commit(ctx, n, rows(fmt.Sprintf(`[{"id": %d}]`, id)))
				}
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					done[id] = true
				case fault.Is(err, fault.Conflict):
					conflicts++
				default:
					t.Errorf("%d: %v", id, err)
				}
			})
		}
		wg.Wait()
	}
	if len(done)+conflicts != 160 || len(done) < 150 {
		t.Errorf("%d commits and %d conflicts", len(done), conflicts)
	}
	for _, c := range both {
		got := loaded(t, c, "t")
		if versionOf(got.Version) != len(done) {
			t.Errorf("version %d after %d commits", versionOf(got.Version), len(done))
		}
		var want int64
		for id := range done {
			switch {
			case id%8 == 7 && id/8%4 == 0:
				if _, ok := got.FieldNamed(fmt.Sprintf("c%d", id)); !ok {
					t.Errorf("column %d is lost", id)
				}
			case id%8 == 6:
				if got.Properties[fmt.Sprint(id)] != "x" {
					t.Errorf("property %d is lost", id)
				}
			default:
				want++
			}
		}
		if n := scanned(t, got); n != want {
			t.Errorf("%d rows, want %d", n, want)
		}
	}
	if left := len(both[0].writers.held) + len(both[1].writers.held); left != 0 {
		t.Errorf("%d locks are held", left)
	}
}

// TestCreateTogether: of many that create one table, one does.
func TestCreateTogether(t *testing.T) {
	dir := t.TempDir()
	both := []*SQL{open(t, dir), open(t, dir)}
	for round := range 5 {
		n := name("ns", fmt.Sprintf("t%d", round))
		var wg sync.WaitGroup
		var mu sync.Mutex
		made, kept, views := 0, 0, 0
		for w := range 8 {
			wg.Go(func() {
				c := both[w%2]
				if err := c.CreateNamespace(ctx, []string{"ns"}, nil, true); err != nil {
					t.Errorf("namespace: %v", err)
				}
				var created bool
				var err error
				if w == 3 {
					created, err = c.CreateView(ctx, n, ViewDefinition{SQL: "SELECT 1", Fields: humans.Fields}, ViewOptions{})
				} else {
					_, created, err = c.CreateTable(ctx, n, humans, CreateOptions{IfTaken: Keep})
				}
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err != nil && !fault.Is(err, fault.Exists):
					t.Error(err)
				case created && w == 3:
					views++
				case created:
					made++
				case err == nil:
					kept++
				}
			})
		}
		wg.Wait()
		if made+views != 1 || (made == 1 && kept != 6) {
			t.Errorf("round %d: %d tables and %d views created, %d kept", round, made, views, kept)
		}
	}
}

// commitForever is the process that is killed: it says the number of each row
// whose commit is known.
func commitForever(dir string) {
	c, err := OpenSQLite("lake", filepath.Join(dir, "catalog.db"), filepath.Join(dir, "ware house%41"), SQLOptions{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for i := 1; ; i++ {
		if _, err := c.Commit(context.Background(), name("ns", "t"), rows(`[{"id": 1}]`)); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("row", i)
	}
}

// TestKilled: after a kill at any point the table opens at a committed snapshot,
// with every row whose commit was told, and at most one more.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	must(t, c.CreateNamespace(ctx, []string{"ns"}, nil, false))
	made(t, c, "t", humans)
	want := int64(0)
	for round := range 6 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "CATALOG_TEST_COMMIT_IN="+dir)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		told := int64(0)
		killed := false
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if !strings.HasPrefix(lines.Text(), "row ") {
				t.Errorf("round %d: %s", round, lines.Text())
			}
			if told++; told >= 3 && !killed {
				killed = true
				time.AfterFunc(time.Duration(rand.IntN(20000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
			}
		}
		_ = cmd.Wait()
		got := loaded(t, c, "t")
		n := scanned(t, got)
		if n != want+told && n != want+told+1 {
			t.Errorf("round %d: %d rows, %d were told", round, n, want+told)
		}
		want = n
		if n := scanned(t, appended(t, c, "t", `[{"id": 2}]`)); n != want+1 {
			t.Errorf("round %d: the table cannot be written: %d rows", round, n)
		}
		want++
	}
}

// TestMetadataFiles: packed ones are read by others, and old ones go when the table
// asks for it.
func TestMetadataFiles(t *testing.T) {
	dir := t.TempDir()
	c, other := open(t, dir), open(t, dir)
	must(t, c.CreateNamespace(ctx, []string{"ns"}, nil, false))
	d := humans
	d.Properties = map[string]string{
		"write.metadata.compression-codec": "gzip", "write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "2",
	}
	made(t, c, "t", d)
	for i := range 5 {
		_, err := c.AlterTable(ctx, name("ns", "t"), []Change{CommentTable{fmt.Sprint(i)}})
		must(t, err)
	}
	got, err := other.Table(ctx, name("ns", "t"), plan.AsOf{}, "")
	must(t, err)
	if got.Properties["comment"] != "4" || !strings.HasSuffix(got.Version, ".gz.metadata.json") || versionOf(got.Version) != 5 {
		t.Errorf("%s %v", got.Version, got.Properties)
	}
	if _, err := other.Iceberg().LoadTable(ctx, table.Identifier{"ns", "t"}); err != nil {
		t.Error(err)
	}
	all := files(t, dir)
	if len(all) != 3 {
		t.Errorf("%d metadata files: %v", len(all), all)
	}
	// A codec that is not known to every engine is left out.
	_, err = c.AlterTable(ctx, name("ns", "t"), []Change{SetProperties{map[string]string{"write.metadata.compression-codec": "zstd"}}})
	must(t, err)
	if got := loaded(t, c, "t"); strings.Contains(got.Version, ".gz.") || strings.Contains(got.Version, "zstd") {
		t.Error(got.Version)
	}
}

func TestChanging(t *testing.T) {
	if _, err := Changing(named{name: "fixed"}); !fault.Is(err, fault.Unsupported) {
		t.Error(err)
	}
	c, _ := lake(t)
	if got, err := Changing(c); err != nil || got != Changer(c) {
		t.Error(err)
	}
}
