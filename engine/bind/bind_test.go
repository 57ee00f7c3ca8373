package bind

import (
	"context"
	"sort"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/catalog"
	"sqe/engine/parse"
	"sqe/fault"
	"sqe/identity"
	"sqe/plan"
)

// world answers names from a map of "database.name". It implements Relations.
type world struct {
	relations map[string]*Relation
	asked     []string
}

func (w *world) Relation(_ context.Context, database, name string, at plan.AsOf) (*Relation, error) {
	key := database + "." + name
	if at.Snapshot != 0 || at.Ref != "" || !at.Time.IsZero() {
		w.asked = append(w.asked, key+"@"+at.Ref)
	}
	if r, ok := w.relations[key]; ok {
		return r, nil
	}
	return nil, errNoTable(database, name)
}

func (w *world) Databases(context.Context) ([]string, error) {
	seen := map[string]bool{}
	var out []string
	for k := range w.relations {
		db := k[:strings.LastIndexByte(k, '.')]
		if !seen[db] {
			seen[db] = true
			out = append(out, db)
		}
	}
	return out, nil
}

func (w *world) HasDatabase(ctx context.Context, database string) (bool, error) {
	all, _ := w.Databases(ctx)
	for _, d := range all {
		if d == database {
			return true, nil
		}
	}
	return false, nil
}

func (w *world) Names(_ context.Context, database string) (tables, views []string, err error) {
	for k, r := range w.relations {
		if db := k[:strings.LastIndexByte(k, '.')]; db == database {
			if r.Table != nil {
				tables = append(tables, k[len(db)+1:])
			} else {
				views = append(views, k[len(db)+1:])
			}
		}
	}
	sort.Strings(tables)
	sort.Strings(views)
	return tables, views, nil
}

func field(id int, name string, t arrow.DataType) plan.Field {
	return plan.Field{ID: id, Name: name, Type: t}
}

func table(name string, fields ...plan.Field) *Relation {
	return &Relation{Table: &plan.Table{Name: plan.TableName{Catalog: "lake", Namespace: []string{"db"}, Name: name}, Fields: fields}}
}

func view(text string) *Relation {
	return &Relation{View: &catalog.View{SQL: text, Catalog: "lake", Namespace: []string{"db"}}}
}

func tinyWorld() *world {
	address := arrow.StructOf(arrow.Field{Name: "city", Type: plan.String, Nullable: true})
	keyed := table("w", field(1, "k", plan.Int64), field(2, "v", plan.String))
	keyed.Table.Identifiers = []int{2, 1}
	return &world{relations: map[string]*Relation{
		"db.t": table("t", field(1, "a", plan.Int64), field(2, "b", plan.String), field(3, "c", plan.Decimal(10, 2)), field(4, "d", plan.Date),
			field(5, "ts", plan.Timestamp), field(6, "f", plan.Float64), field(7, "ok", plan.Bool), field(8, "n", plan.Int32)),
		"db.u":       table("u", field(1, "a", plan.Int64), field(2, "x", plan.String), field(3, "y", plan.Int64)),
		"db.nested":  table("nested", field(1, "id", plan.Int64), field(2, "address", address)),
		"db.v":       view("select a, b from t where c > 1"),
		"db.vv":      view("select v.a as aa, u.x from v join u on v.a = u.a"),
		"db.bad":     view("select nothing from t"),
		"db.circle":  view("select a from circle"),
		"db.ping":    view("select * from pong"),
		"db.pong":    view("select * from ping"),
		"cat.ns.z.w": keyed,
		"db.secret": {
			Table:    table("secret", field(1, "id", plan.Int64), field(2, "ssn", plan.String), field(3, "name", plan.String)).Table,
			Withheld: map[int]bool{2: true},
		},
	}}
}

func alice() identity.Principal {
	return identity.Principal{Name: "alice", Roles: []string{"analyst"}}
}

func newBinder(t testing.TB) (*Binder, *Session) {
	t.Helper()
	b := New(Options{Version: "test", DefaultDatabase: "db"})
	return b, b.NewSession(7, alice(), "10.0.0.1:1234")
}

func mustParse(t testing.TB, text string) *parse.SQL {
	t.Helper()
	st, _, err := parse.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return st.(*parse.SQL)
}

func bindText(t testing.TB, text string) (*Bound, error) {
	t.Helper()
	st, _, err := parse.Parse(text)
	if err != nil {
		return nil, err
	}
	b, s := newBinder(t)
	return b.Bind(context.Background(), s, tinyWorld(), st.(*parse.SQL), nil)
}

func TestKinds(t *testing.T) {
	for text, kind := range map[string]fault.Kind{
		"select nothing from t":          fault.NoColumn,
		"select t.nothing from t":        fault.NoColumn,
		"select a from missing":          fault.NotFound,
		"select a from db.missing":       fault.NotFound,
		"select a from x.y.missing":      fault.NotFound,
		"select a from t, u":             fault.BadStatement,
		"select * from circle":           fault.Limit,
		"select * from ping":             fault.Limit,
		"select * from bad":              fault.NotFound,
		"select ssn from secret":         fault.Withheld,
		"select 1 from secret where ssn": fault.Withheld,
		"select nofunc(a) from t":        fault.NoFunction,
		"select a from t group by b":     fault.BadStatement,
		"set global sql_mode = ''":       fault.Denied,
		"create user u":                  fault.Unsupported,
		"set sql_mode = 'ansi'":          fault.Unsupported,
		"set @@session.sql_mode = concat(@@sql_mode, ',PIPES_AS_CONCAT')": fault.Unsupported,
		"set time_zone = '+02:00'":                       fault.Unsupported,
		"select found_rows()":                            fault.Unsupported,
		"select t.a from t join cat.ns.z.w t on 1":       fault.BadStatement,
		"select db.t.a from db.t, `db`.T":                fault.BadStatement,
		"select a from t union select a, b from t":       fault.BadStatement,
		"select distinct a from t order by b":            fault.BadStatement,
		"select a from t where a = (select a, x from u)": fault.BadStatement,
	} {
		if _, err := bindText(t, text); !fault.Is(err, kind) {
			t.Errorf("%s: %v (%v)", text, err, fault.KindOf(err))
		}
	}
}

// A statement that is right beside each wrong one.
func TestAccepted(t *testing.T) {
	for _, text := range []string{
		"set sql_mode = 'STRICT_TRANS_TABLES'", "set time_zone = '+00:00'", "set time_zone = 'SYSTEM'", "select t.a from t join cat.ns.z.w t2 on 1",
		"select distinct a, b from t order by b", "set names utf8mb4", "set character_set_results = NULL", "set @a = 1, autocommit = 1",
		"select @@session.auto_increment_increment, @@tx_isolation, @@license", "SELECT @@session.transaction_read_only",
	} {
		if _, err := bindText(t, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestSelectLimit(t *testing.T) {
	b, s := newBinder(t)
	if _, err := runText(t, b, s, "set sql_select_limit = 5", 0, Limits{}); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"select a from t": "limit 5", "select a from t limit 9": "limit 9"} {
		out, err := b.Bind(context.Background(), s, tinyWorld(), mustParse(t, text), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := plan.Format(out.Plan); !strings.Contains(got, want) {
			t.Errorf("%s: %s", text, got)
		}
	}
}
