package policysql

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"sqe/identity"
)

// evolve changes the schema of the customers as another engine does.
func (l *lake) evolve(change func(*table.UpdateSchema) *table.UpdateSchema) {
	l.Helper()
	ctx := context.Background()
	t, err := l.catalog.Iceberg().LoadTable(ctx, table.Identifier{"bank", "customers"})
	if err != nil {
		l.Fatal(err)
	}
	tx := t.NewTransaction()
	if err := change(tx.UpdateSchema(true, true)).Commit(); err != nil {
		l.Fatal(err)
	}
	if _, err := tx.Commit(ctx); err != nil {
		l.Fatal(err)
	}
}

// stored lists the tags in the policy store by column.
func (l *lake) stored() string {
	l.Helper()
	d, err := l.store.Tags(context.Background(), "hive")
	if err != nil {
		l.Fatal(err)
	}
	out := map[string][]string{}
	for _, r := range d.ServiceResources {
		column := strings.Join(r.ResourceElements["column"].Values, ",")
		for _, id := range d.ResourceToTagIDs[fmt.Sprint(r.ID)] {
			out[column] = append(out[column], d.Tags[fmt.Sprint(id)].Type)
		}
		slices.Sort(out[column])
	}
	var words []string
	for _, c := range slices.Sorted(maps.Keys(out)) {
		if len(out[c]) > 0 {
			words = append(words, c+":"+strings.Join(out[c], ","))
		}
	}
	return strings.Join(words, " ")
}

func (l *lake) says(s string, want ...string) {
	l.Helper()
	got, err := ask(l.root, s)
	if err != nil {
		l.Fatalf("%s: %v", s, err)
	}
	for _, w := range want {
		if !strings.Contains(got, w) {
			l.Errorf("%s says %q, want %q in it", s, got, w)
		}
	}
}

// TestTagsAndPolicies: from a tag in SQL to what users see, through both places in
// which it is kept, and what another engine's change of the table does to it.
func TestTagsAndPolicies(t *testing.T) {
	const phone = "SELECT phone FROM customers WHERE cust_id = 1"
	for _, projects := range []bool{false, true} {
		t.Run(fmt.Sprintf("project-tags %v", projects), func(t *testing.T) {
			l := openWith(t, projects)
			l.write("ALTER TABLE customers UNSET TAGS (iban, national_id)")
			value, err := ask(l.user("control"), phone)
			if err != nil || len(value) < 5 {
				t.Fatalf("%q %v", value, err)
			}
			all := func(eu string) map[string]string { return map[string]string{"ann": eu, "ben": eu, "control": value} }
			hidden := func(path string) {
				t.Helper()
				got, err := ask(l.user("ann"), strings.ReplaceAll(phone, "phone", path))
				if err != nil || got == value || !strings.HasSuffix(got, value[len(value)-4:]) {
					t.Errorf("ann sees %q %v of %s", got, err, path)
				}
			}
			l.write("CREATE POLICY contact ON TAG CONTACT COLUMN MASK MASK_SHOW_LAST_4 TO GROUP eu")
			l.sees(phone, all(value))
			l.write("ALTER TABLE customers MODIFY COLUMN phone SET MASKING POLICY contact")
			hidden("phone")
			if got, _ := ask(l.user("control"), phone); got != value {
				t.Errorf("control sees %q", got)
			}
			explained, kept, source := "", "", "phone|CONTACT|table"
			switch {
			case projects:
				explained, kept, source = "tag CONTACT of the table and policy server", "phone:CONTACT", source+", policy source store"
			default:
				explained = "tag CONTACT of the table"
			}
			if got := l.stored(); got != kept {
				t.Errorf("the store has %q, want %q", got, kept)
			}
			l.says("SHOW TAGS ON customers", source)
			// The administrator is no member of eu: as ann she is told why.
			ann := l.session(identity.Principal{Name: "ann", Admin: true})
			if got, err := ask(ann, "EXPLAIN POLICY SELECT phone FROM customers"); err != nil || !strings.Contains(got, explained) {
				t.Errorf("%q %v", got, err)
			}
			l.evolve(func(u *table.UpdateSchema) *table.UpdateSchema { return u.RenameColumn([]string{"phone"}, "mobile") })
			hidden("mobile")
			if got, err := ask(ann, "EXPLAIN POLICY SELECT mobile FROM customers"); err != nil || !strings.Contains(got, "through the earlier name phone") {
				t.Errorf("%q %v", got, err)
			}
			l.write("ALTER TABLE customers ALTER COLUMN mobile UNSET TAG CONTACT")
			l.sees(strings.ReplaceAll(phone, "phone", "mobile"), all(value))
			if got := l.stored(); got != "" {
				t.Errorf("the store keeps %q", got)
			}
			l.write("ALTER TABLE customers SET TAGS (mobile = (CONTACT))")
			hidden("mobile")
			l.evolve(func(u *table.UpdateSchema) *table.UpdateSchema { return u.DeleteColumn([]string{"mobile"}) })
			l.evolve(func(u *table.UpdateSchema) *table.UpdateSchema {
				return u.AddColumn([]string{"mobile"}, iceberg.PrimitiveTypes.String, "", false, nil)
			})
			l.sees(strings.ReplaceAll(phone, "phone", "mobile"), map[string]string{"ann": "NULL", "ben": "NULL", "control": "NULL"})
			if got, err := ask(ann, "EXPLAIN POLICY SELECT mobile FROM customers"); err != nil || !strings.Contains(got, "MASK_SHOW_LAST_4") {
				t.Errorf("the new column is open: %q %v", got, err)
			}
			l.write("ALTER TABLE customers UNSET TAGS (mobile)")
			if got, err := ask(ann, "EXPLAIN POLICY SELECT mobile FROM customers"); err != nil || strings.Contains(got, "MASK_SHOW_LAST_4") || l.stored() != "" {
				t.Errorf("the new column cannot be freed: %q %v, store %q", got, err, l.stored())
			}
		})
	}
}

// TestManyTaggers: no change of tags is lost, and the table and the store agree.
func TestManyTaggers(t *testing.T) {
	l := openWith(t, true)
	const samples = "iban:PII national_id:PII"
	if got := l.stored(); got != "" {
		t.Fatalf("the store has %s", got)
	}
	l.says("CALL system.reproject_column_tags(table => 'customers')", "lake.bank.customers|projected|2|")
	if got := l.stored(); got != samples {
		t.Errorf("the store has %s", got)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		s := l.session(identity.Principal{Name: fmt.Sprintf("root%d", i), Admin: true})
		wg.Go(func() {
			if _, err := ask(s, fmt.Sprintf("ALTER TABLE customers MODIFY COLUMN phone SET TAG T%d", i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := l.stored(); got != samples+" phone:T0,T1,T2,T3,T4,T5,T6,T7" {
		t.Errorf("the store has %s", got)
	}
	for i := range 8 {
		l.says("SHOW TAGS ON customers", fmt.Sprintf("phone|T%d|table, policy source store", i))
	}
	l.write("ALTER TABLE customers UNSET TAGS (phone)")
	if got := l.stored(); got != samples {
		t.Errorf("the store has %s", got)
	}
}
