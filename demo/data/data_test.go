package data

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	icebergcatalog "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"sqe/catalog"
	"sqe/fault"
	"sqe/plan"
)

var ctx = context.Background()

func open(t *testing.T, dir string) *catalog.SQL {
	t.Helper()
	c, err := catalog.OpenSQLite("lake", filepath.Join(dir, "catalog.db"), filepath.Join(dir, "warehouse"), catalog.SQLOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func load(t *testing.T, c *catalog.SQL, name string) *plan.Table {
	t.Helper()
	got, err := c.Table(ctx, plan.TableName{Catalog: "lake", Namespace: []string{Namespace}, Name: name}, plan.AsOf{}, "")
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// rows reads a table with iceberg-go.
func rows(t *testing.T, p *plan.Table) []string {
	t.Helper()
	_, records, err := p.Handle.(*catalog.Handle).Table.Scan().ToArrowRecords(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for rec, err := range records {
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(rec.NumRows()) {
			var cells []string
			for _, c := range rec.Columns() {
				cells = append(cells, c.ValueStr(i))
			}
			out = append(out, strings.Join(cells, "|"))
		}
		rec.Release()
	}
	slices.Sort(out)
	return out
}

func TestWrite(t *testing.T) {
	c := open(t, t.TempDir())
	if err := Write(ctx, c); err != nil {
		t.Fatal(err)
	}
	customers := load(t, c, "customers")
	got := rows(t, customers)
	if len(got) != 12 || !slices.Contains(got, "1|Sanne de Vries|184729103|1978-03-14|NL91ABNA0417164300|NL|EU|AMS-01|true|false|12|+31-20-555-0101") ||
		!slices.Contains(got, "12|Grace Mensah|295830314|1965-10-21|GB29NWBK60161331926819|GH|NON_EU|LON-04|false|false|63|+233-30-555-0112") {
		t.Errorf("customers:\n%s", strings.Join(got, "\n"))
	}
	payments := load(t, c, "payments")
	got = rows(t, payments)
	if len(got) != 24 || !slices.Contains(got, "14|10|2021-10-23|27400|CH9300762011623852957|CH|SWIFT|true|6012") {
		t.Errorf("payments:\n%s", strings.Join(got, "\n"))
	}
	for _, p := range []*plan.Table{customers, payments} {
		if n := len(p.Handle.(*catalog.Handle).Table.Metadata().Snapshots()); n < 3 {
			t.Errorf("%s has %d snapshots", p.Name, n)
		}
		if p.Properties[stateProperty] != complete {
			t.Errorf("%s is %q", p.Name, p.Properties[stateProperty])
		}
	}
	tasks, err := customers.Handle.(*catalog.Handle).Table.Scan().PlanFiles(ctx)
	if err != nil || !slices.ContainsFunc(tasks, func(f table.FileScanTask) bool { return len(f.DeleteFiles) > 0 }) {
		t.Errorf("customers has no deletes: %v", err)
	}
	tasks, err = payments.Handle.(*catalog.Handle).Table.Scan(table.WithRowFilter(iceberg.EqualTo(iceberg.Reference("booked_at"), "2020-01-08"))).PlanFiles(ctx)
	if err != nil || len(tasks) != 1 {
		t.Errorf("a day is in %d files, %v", len(tasks), err)
	}
	if got := rows(t, load(t, c, "profiles")); len(got) != 6 {
		t.Errorf("profiles: %v", got)
	}
	if len(customers.Tags[3]) != 1 {
		t.Errorf("tags %v", customers.Tags)
	}
	v, err := c.View(ctx, plan.TableName{Catalog: "lake", Namespace: []string{Namespace}, Name: "eu_payments"})
	if err != nil || !strings.Contains(v.SQL, "residency_region") {
		t.Errorf("view %+v, %v", v, err)
	}
}

// TestAgain: a second call changes nothing, an interrupted one is repeated, and
// what others made stays.
func TestAgain(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	if err := c.Iceberg().CreateNamespace(ctx, table.Identifier{Namespace}, nil); err != nil {
		t.Fatal(err)
	}
	schema := iceberg.NewSchema(0, column(1, "own", iceberg.PrimitiveTypes.String))
	create := func(name string, props iceberg.Properties) {
		t.Helper()
		if _, err := c.Iceberg().CreateTable(ctx, table.Identifier{Namespace, name}, schema, icebergcatalog.WithProperties(props)); err != nil {
			t.Fatal(err)
		}
	}
	create("payments", iceberg.Properties{stateProperty: building})
	create("branch_access", nil)
	versions := map[string]string{}
	for round := range 2 {
		if err := Write(ctx, c); err != nil {
			t.Fatal(err)
		}
		for _, s := range tables {
			v := load(t, c, s.name).Version
			if round == 1 && versions[s.name] != v {
				t.Errorf("%s was written again", s.name)
			}
			versions[s.name] = v
		}
	}
	if got := rows(t, load(t, c, "payments")); len(got) != 24 {
		t.Errorf("the interrupted table has %d rows", len(got))
	}
	if f := load(t, c, "branch_access").Fields; len(f) != 1 || f[0].Name != "own" {
		t.Errorf("the table of somebody else became %v", f)
	}
}

func TestReadOnlyFolder(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	// A file stands where the folder of the tables should be.
	if err := os.WriteFile(filepath.Join(dir, "warehouse"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := Write(ctx, c)
	if !fault.Is(err, fault.Unavailable) || strings.Contains(err.Error(), dir) {
		t.Errorf("%v", err)
	}
}
