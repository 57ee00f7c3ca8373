package policysql

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"sqe/fault"
	"sqe/plan"
	"sqe/policy"
	"sqe/rangerclient/model"
)

// mayDefine lets root make and change tables.
func (l *lake) mayDefine() {
	l.Helper()
	ctx := context.Background()
	if _, err := l.store.CreateUser(ctx, &model.User{Name: "root", Password: "Passw0rd-of-tests"}); err != nil {
		l.Fatal(err)
	}
	yes := true
	grant := func(name string, resources []string, accesses ...policy.Privilege) {
		p := &model.Policy{Service: "polaris", Name: name, Enabled: &yes, AuditEnabled: &yes, Resources: map[string]model.Resource{}}
		for _, r := range resources {
			p.Resources[r] = model.Resource{Values: []string{"*"}}
		}
		p.Resources["namespace"] = model.Resource{Values: []string{"bank"}}
		item := &model.Item{Users: []string{"root"}}
		for _, a := range accesses {
			item.Accesses = append(item.Accesses, model.Access{Type: string(a), Allowed: &yes})
		}
		p.PolicyItems = []*model.Item{item}
		if _, err := l.store.CreatePolicy(ctx, p); err != nil {
			l.Fatal(err)
		}
	}
	grant("root makes", []string{"root", "catalog", "namespace"}, "table-create")
	grant("root changes", []string{"root", "catalog", "namespace", "table"}, "table-data-write", "table-drop", "table-schema-add", "table-schema-set-current",
		"table-snapshot-ref-set", "table-partition-spec-add", "table-properties-set", "table-properties-remove")
	// Any change by SQL makes the source read what was written.
	l.write("CREATE POLICY reread ON TABLE payments COLUMN MASK MASK_NULL TO USER ben ON COLUMN pay_id")
	l.write("DROP POLICY reread")
}

func (l *lake) snapshot(name string) int64 {
	l.Helper()
	t, err := l.catalog.Table(context.Background(), plan.TableName{Catalog: "lake", Namespace: []string{"bank"}, Name: name}, plan.AsOf{}, "")
	if err != nil {
		l.Fatal(err)
	}
	return t.SnapshotID
}

// TestVersionsUnderPolicies: what policies say of a column holds for the same field in
// every version of the table, whatever it was called then and whatever else had its name:
// for masks, filters and denials, by the name of a column and by a tag in the properties
// of the table. Nothing that ann may not see now is seen as of then; control sees it.
func TestVersionsUnderPolicies(t *testing.T) {
	const mask = "CREATE POLICY p ON TABLE people COLUMN MASK MASK_NULL TO USER ann ON COLUMN ssn"
	const tagged = "CREATE POLICY p ON TAG SECRET COLUMN MASK MASK_NULL TO USER ann"
	const filter = "CREATE POLICY p ON TABLE people ROW FILTER TO USER ann USING (region = 'EU')"
	l := open(t)
	l.mayDefine()
	for _, x := range []struct {
		name   string
		before []string // of the snapshot; policies by tag need the tag then or now
		after  []string
		ask    string // as of the snapshot
		secret string
		refuse bool
	}{
		{"a mask, then a rename", nil, []string{mask, "ALTER TABLE people RENAME COLUMN ssn TO tax"}, "SELECT ssn FROM people", "s-1", false},
		{"a rename, then a mask by the new name", nil, []string{"ALTER TABLE people RENAME COLUMN note TO aside", "ALTER TABLE people RENAME COLUMN ssn TO note", strings.Replace(mask, "COLUMN ssn", "COLUMN note", 1)}, "SELECT ssn FROM people", "s-1", false},
		{"a mask, dropped and added again", nil, []string{mask, "ALTER TABLE people DROP COLUMN ssn", "ALTER TABLE people ADD COLUMN ssn STRING"}, "SELECT ssn FROM people", "s-1", false},
		{"dropped, then a mask on the new one", nil, []string{"ALTER TABLE people DROP COLUMN ssn", "ALTER TABLE people ADD COLUMN ssn STRING", mask}, "SELECT ssn FROM people", "s-1", false},
		{"a mask, two names exchanged", nil, []string{mask, "ALTER TABLE people RENAME COLUMN ssn TO x", "ALTER TABLE people RENAME COLUMN note TO ssn", "ALTER TABLE people RENAME COLUMN x TO note"}, "SELECT ssn FROM people", "s-1", false},
		{"a mask, another order", nil, []string{mask, "ALTER TABLE people MODIFY COLUMN ssn STRING FIRST"}, "SELECT ssn FROM people", "s-1", false},
		{"a mask inside a struct", nil, []string{strings.Replace(mask, "COLUMN ssn", "COLUMN at.phone", 1), "ALTER TABLE people RENAME COLUMN at.phone TO tel", "ALTER TABLE people RENAME COLUMN at TO where_"}, "SELECT at FROM people", "p-1", false},
		{"a struct, the new name", nil, []string{"ALTER TABLE people RENAME COLUMN at.phone TO tel", strings.Replace(mask, "COLUMN ssn", "COLUMN at.tel", 1)}, "SELECT at FROM people", "p-1", false},
		{"two names inside a struct exchanged", nil, []string{
			strings.Replace(mask, "COLUMN ssn", "COLUMN at.phone", 1), "ALTER TABLE people RENAME COLUMN at.phone TO x", "ALTER TABLE people RENAME COLUMN at.city TO phone", "ALTER TABLE people RENAME COLUMN at.x TO city",
		}, "SELECT at FROM people", "p-1", false},
		{"a tag, then a rename", []string{"ALTER TABLE people SET TAGS (ssn = (SECRET))"}, []string{tagged, "ALTER TABLE people RENAME COLUMN ssn TO tax"}, "SELECT ssn FROM people", "s-1", false},
		{"a rename, then a tag", nil, []string{"ALTER TABLE people RENAME COLUMN ssn TO tax", "ALTER TABLE people SET TAGS (tax = (SECRET))", tagged}, "SELECT ssn FROM people", "s-1", false},
		{"a tag, two names exchanged", []string{"ALTER TABLE people SET TAGS (ssn = (SECRET))"}, []string{tagged, "ALTER TABLE people RENAME COLUMN ssn TO x", "ALTER TABLE people RENAME COLUMN note TO ssn", "ALTER TABLE people RENAME COLUMN x TO note"}, "SELECT ssn FROM people", "s-1", false},
		{"a CUSTOM mask of a dropped column", nil, []string{"CREATE POLICY p ON TABLE people COLUMN MASK CUSTOM TO USER ann ON COLUMN ssn USING (concat(left(ssn, 1), '*'))", "ALTER TABLE people DROP COLUMN ssn"}, "SELECT ssn FROM people", "s-1", false},
		{"a CUSTOM mask that reads a name of another column", nil, []string{
			"ALTER TABLE people RENAME COLUMN note TO x", "ALTER TABLE people RENAME COLUMN region TO note", "ALTER TABLE people RENAME COLUMN x TO region",
			"CREATE POLICY p ON TABLE people COLUMN MASK CUSTOM TO USER ann ON COLUMN ssn USING (concat('*', note))",
		}, "SELECT ssn FROM people", "n-1", false},
		{"a filter, then a rename", nil, []string{"ALTER TABLE people RENAME COLUMN region TO area", strings.Replace(filter, "region =", "area =", 1)}, "SELECT id, region FROM people", "US", false},
		{"a filter, two names exchanged", nil, []string{"ALTER TABLE people RENAME COLUMN region TO x", "ALTER TABLE people RENAME COLUMN birth TO region", "ALTER TABLE people RENAME COLUMN x TO birth", filter}, "SELECT id, birth FROM people", "CA", false},
		{"a filter, its column is another one now", nil, []string{"ALTER TABLE people DROP COLUMN region", "ALTER TABLE people ADD COLUMN region STRING", filter}, "SELECT id, birth FROM people", "EU", true},
		{"a filter on a field of a struct, exchanged", nil, []string{
			"ALTER TABLE people RENAME COLUMN at.city TO x", "ALTER TABLE people RENAME COLUMN at.land TO city", "ALTER TABLE people RENAME COLUMN at.x TO land",
			"CREATE POLICY p ON TABLE people ROW FILTER TO USER ann USING (at->>'$.city' = 'EU')",
		}, "SELECT id, birth FROM people", "EU", true},
	} {
		t.Run(x.name, func(t *testing.T) {
			l.T = t
			l.write("CREATE TABLE people (id BIGINT, region STRING, birth STRING, ssn STRING, note STRING, at STRUCT<phone STRING, city STRING, land STRING>)")
			l.write(`INSERT INTO people VALUES (1, 'EU', 'CA', 's-1', 'n-1', '{"phone": "p-1", "city": "EU", "land": "CH"}'), (2, 'US', 'EU', 's-2', 'n-2', '{"phone": "p-2", "city": "US", "land": "EU"}')`)
			for _, s := range x.before {
				l.write(s)
			}
			l.write("ALTER TABLE people CREATE TAG then_")
			at := fmt.Sprint(" FOR VERSION AS OF ", l.snapshot("people"))
			for _, s := range x.after {
				l.write(s)
			}
			defer l.write("DROP TABLE people")
			defer l.write("DROP POLICY p")
			for _, at := range []string{at, " FOR VERSION AS OF 'then_'"} {
				got, err := ask(l.user("ann"), x.ask+at)
				switch {
				case x.refuse && !fault.Is(err, fault.BadStatement):
					t.Errorf("ann: %q, %v; want a refusal", got, err)
				case !x.refuse && err != nil && !fault.Is(err, fault.Withheld):
					t.Errorf("ann: %v", err)
				case strings.Contains(got, x.secret), err != nil && strings.Contains(err.Error(), x.secret):
					t.Errorf("ann sees %q, %v", got, err)
				}
				if got, err := ask(l.user("control"), x.ask+at); err != nil || !strings.Contains(got, x.secret) && !strings.HasPrefix(x.secret, "n-") {
					t.Errorf("control sees %q, %v", got, err)
				}
			}
		})
	}
}
