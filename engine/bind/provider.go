package bind

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dolthub/go-mysql-server/sql"

	"sqe/engine/parse"
	"sqe/fault"
	"sqe/plan"
)

// provider answers go-mysql-server's questions about names from the Relations of
// the statement in the context. It implements sql.DatabaseProvider and
// sql.FunctionProvider.
type provider struct{}

// Database implements sql.DatabaseProvider. It makes no look-up: whether there is
// such a database shows when something in it is asked for.
func (p provider) Database(ctx *sql.Context, name string) (sql.Database, error) {
	// SHOW DATABASES lists this one wherever a provider knows it.
	if strings.EqualFold(name, "mysql") && !p.HasDatabase(ctx, name) {
		if !stateOf(ctx).query {
			return nil, sql.ErrDatabaseNotFound.New(name)
		}
		return mysqlSchema{}, nil
	}
	return database(name), nil
}

// HasDatabase implements sql.DatabaseProvider.
func (provider) HasDatabase(ctx *sql.Context, name string) bool {
	ok, err := stateOf(ctx).rel.HasDatabase(ctx, name)
	return ok && err == nil
}

// AllDatabases implements sql.DatabaseProvider.
func (provider) AllDatabases(ctx *sql.Context) []sql.Database {
	names, err := stateOf(ctx).rel.Databases(ctx)
	if err != nil {
		panic(failure{err}) // the interface has no error; recovered() returns it
	}
	names = keep(names, stateOf(ctx).narrow.databases)
	out := make([]sql.Database, len(names))
	for i, n := range names {
		out[i] = listed{database(n)}
	}
	return out
}

// listed is a database of a list, for information_schema: its tables show all
// their columns, and are loaded only when their columns are asked for. A table
// that cannot be loaded has none.
type listed struct{ database }

// GetTableInsensitive implements sql.Database.
func (d listed) GetTableInsensitive(ctx *sql.Context, name string) (sql.Table, bool, error) {
	return &lazyStub{ctx: ctx, database: d.database, name: name}, true, nil
}

// GetTableNames implements sql.Database.
func (d listed) GetTableNames(ctx *sql.Context) ([]string, error) {
	tables, err := d.database.GetTableNames(ctx)
	return keep(tables, stateOf(ctx).narrow.tables), err
}

// lazyStub is a stub that is loaded late. It implements sql.Table.
type lazyStub struct {
	ctx      *sql.Context
	database database
	name     string
	loaded   *stub
}

func (l *lazyStub) stub() *stub {
	if l.loaded == nil {
		l.loaded = &stub{name: l.name, relation: &Relation{Table: &plan.Table{}}}
		st := stateOf(l.ctx)
		if r, err := st.relation(l.ctx, string(l.database), l.name, plan.AsOf{}); err == nil && r.Table != nil {
			l.loaded = newStub(r, l.name, &statement{complete: true})
		}
	}
	return l.loaded
}

// lazyCatalog gives stubs that are loaded late, for a list that goes on where one
// of its tables cannot be loaded.
type lazyCatalog struct{ sql.Catalog }

// Table implements sql.Catalog.
func (lazyCatalog) Table(ctx *sql.Context, db, name string) (sql.Table, sql.Database, error) {
	return &lazyStub{ctx: ctx, database: database(db), name: name}, database(db), nil
}

func (l *lazyStub) Name() string               { return l.name }
func (l *lazyStub) String() string             { return l.name }
func (l *lazyStub) Schema() sql.Schema         { return l.stub().schema }
func (l *lazyStub) Collation() sql.CollationID { return sql.Collation_Default }

// Comment implements sql.CommentedTable.
func (l *lazyStub) Comment() string { return l.stub().Comment() }

// Partitions implements sql.Table.
func (l *lazyStub) Partitions(*sql.Context) (sql.PartitionIter, error) { return nil, errStub }

// PartitionRows implements sql.Table.
func (l *lazyStub) PartitionRows(*sql.Context, sql.Partition) (sql.RowIter, error) {
	return nil, errStub
}

// database is one namespace. It implements sql.ViewDatabase and
// sql.VersionedDatabase.
type database string

// Name implements sql.Database.
func (d database) Name() string { return string(d) }

func (d database) named(ctx *sql.Context, name string, at plan.AsOf) (sql.Table, bool, error) {
	if st := stateOf(ctx); name == targetTable && st.target != nil {
		return st.targetStub(), true, nil
	}
	r, err := stateOf(ctx).relation(ctx, string(d), name, at)
	if err != nil {
		return nil, false, err
	}
	if r.Table == nil {
		return nil, false, nil
	}
	return newStub(r, name, stateOf(ctx)), true, nil
}

// GetTableInsensitive implements sql.Database.
func (d database) GetTableInsensitive(ctx *sql.Context, name string) (sql.Table, bool, error) {
	return d.named(ctx, name, plan.AsOf{})
}

// GetTableInsensitiveAsOf implements sql.VersionedDatabase.
func (d database) GetTableInsensitiveAsOf(ctx *sql.Context, name string, asOf any) (sql.Table, bool, error) {
	at, err := asOfValue(asOf)
	if err != nil {
		return nil, false, err
	}
	return d.named(ctx, name, at)
}

// GetTableNames implements sql.Database.
func (d database) GetTableNames(ctx *sql.Context) ([]string, error) {
	tables, _, err := d.names(ctx)
	return tables, err
}

func (d database) names(ctx *sql.Context) (tables, views []string, err error) {
	if d == noDatabase {
		return nil, nil, errNoDatabase
	}
	rel := stateOf(ctx).rel
	ok, err := rel.HasDatabase(ctx, string(d))
	if err != nil {
		return nil, nil, err
	}
	if !ok {
		return nil, nil, fault.New(fault.NoDatabase, "Unknown database '%s'", string(d))
	}
	return rel.Names(ctx, string(d))
}

// GetTableNamesAsOf implements sql.VersionedDatabase.
func (d database) GetTableNamesAsOf(ctx *sql.Context, _ any) ([]string, error) {
	return d.GetTableNames(ctx)
}

// GetViewDefinition implements sql.ViewDatabase. go-mysql-server asks it before
// it asks for a table of that name.
func (d database) GetViewDefinition(ctx *sql.Context, name string) (sql.ViewDefinition, bool, error) {
	if name == targetTable && stateOf(ctx).target != nil {
		return sql.ViewDefinition{}, false, nil
	}
	r, err := stateOf(ctx).relation(ctx, string(d), name, plan.AsOf{})
	if err != nil {
		if fault.Is(err, fault.NotFound) {
			// Perhaps there is a table of that name at another time; the answer for
			// the present is remembered and comes again when it is asked for.
			return sql.ViewDefinition{}, false, nil
		}
		return sql.ViewDefinition{}, false, err
	}
	if r.View == nil {
		return sql.ViewDefinition{}, false, nil
	}
	// The binder expands views as often and as deep as they are named.
	st := stateOf(ctx)
	if st.views++; st.views > maxViews {
		return sql.ViewDefinition{}, false, fault.New(fault.Limit, "the statement expands more than %d views; a view may refer to itself, or views of views repeat too often", maxViews)
	}
	def := viewDefinition(name, r)
	st.definitions[def.CreateViewStatement] = true
	return def, true, nil
}

// maxViews bounds the views that one statement expands.
const maxViews = 256

// viewHead begins the definition of a view that is expanded.
func viewHead(name string) string {
	return "CREATE VIEW `" + strings.ReplaceAll(name, "`", "``") + "` AS "
}

func viewDefinition(name string, r *Relation) sql.ViewDefinition {
	head := viewHead(name)
	create := head + r.View.SQL
	if st, rest, err := parse.Parse(create); err == nil && rest == "" {
		if v, ok := st.(*parse.CreateView); ok {
			create = head + v.Query.Text // for those who parse it without us
		}
	}
	return sql.ViewDefinition{Name: name, TextDefinition: r.View.SQL, CreateViewStatement: create}
}

// AllViews implements sql.ViewDatabase.
func (d database) AllViews(ctx *sql.Context) ([]sql.ViewDefinition, error) {
	_, names, err := d.names(ctx)
	if err != nil {
		return nil, err
	}
	var out []sql.ViewDefinition
	for _, n := range keep(names, stateOf(ctx).narrow.tables) {
		r, err := stateOf(ctx).relation(ctx, string(d), n, plan.AsOf{})
		if err != nil || r.View == nil {
			// It is listed and may not be read: its name shows, its text does not.
			out = append(out, sql.ViewDefinition{Name: n})
			continue
		}
		out = append(out, viewDefinition(n, r))
	}
	return out, nil
}

// CreateView implements sql.ViewDatabase.
func (database) CreateView(*sql.Context, string, string, string) error {
	return fault.New(fault.Unsupported, "CREATE VIEW is not supported")
}

// DropView implements sql.ViewDatabase.
func (database) DropView(*sql.Context, string) error {
	return fault.New(fault.Unsupported, "DROP VIEW is not supported")
}

var (
	isNumber  = regexp.MustCompile(`^\d+$`)
	isTime    = regexp.MustCompile(`^\d{4}-\d\d?-\d\d?`)
	timeForms = []string{
		time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999",
		"2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02",
	}
)

// asOfValue reads the value of a time travel clause. FOR VERSION AS OF names a
// snapshot, branch or tag; every other form a time in UTC, or, when it does not
// look like one, a branch or tag.
func asOfValue(v any) (plan.AsOf, error) {
	switch v := v.(type) {
	case time.Time:
		return plan.AsOf{Time: v}, nil
	case string:
		if version, ok := strings.CutPrefix(v, parse.VersionPrefix); ok {
			if isNumber.MatchString(version) {
				id, err := strconv.ParseInt(version, 10, 64)
				if err == nil && id > 0 {
					return plan.AsOf{Snapshot: id}, nil
				}
			}
			if version == "" {
				return plan.AsOf{}, fault.New(fault.BadStatement, "FOR VERSION AS OF takes a snapshot id, or the name of a branch or tag")
			}
			return plan.AsOf{Ref: version}, nil
		}
		if isTime.MatchString(v) {
			for _, f := range timeForms {
				if t, err := time.ParseInLocation(f, v, time.UTC); err == nil {
					return plan.AsOf{Time: t}, nil
				}
			}
			return plan.AsOf{}, fault.New(fault.BadStatement, "the time of a time travel clause is not a time; write '2024-12-31 23:59:59' (UTC)")
		}
		if isNumber.MatchString(v) {
			id, err := strconv.ParseInt(v, 10, 64)
			if err == nil && id > 0 {
				return plan.AsOf{Snapshot: id}, nil
			}
		}
		if v != "" {
			return plan.AsOf{Ref: v}, nil
		}
	}
	return plan.AsOf{}, fault.New(fault.BadStatement, "a time travel clause takes a time, a snapshot id, or the name of a branch or tag")
}

// stub is a table without rows: it has a schema and errs when rows are asked for.
// It implements sql.Table.
type stub struct {
	relation *Relation
	name     string
	fields   []plan.Field // parallel to schema
	schema   sql.Schema
	shown    bool // to SHOW and information_schema, and not to a query
}

func newStub(r *Relation, name string, st *statement) *stub {
	s := &stub{relation: r, name: name, shown: st.complete}
	for _, f := range r.Table.Fields {
		if r.Withheld[f.ID] && !st.complete {
			continue
		}
		s.fields = append(s.fields, f)
		s.schema = append(s.schema, &sql.Column{Name: f.Name, Type: gmsType(f.Type), Source: name, Nullable: !f.Required, Comment: f.Doc, PrimaryKey: s.shown && slices.Contains(r.Table.Identifiers, f.ID)})
	}
	return s
}

func (s *stub) Name() string               { return s.name }
func (s *stub) String() string             { return s.name }
func (s *stub) Schema() sql.Schema         { return s.schema }
func (s *stub) Collation() sql.CollationID { return sql.Collation_Default }

// Comment implements sql.CommentedTable.
func (s *stub) Comment() string { return s.relation.Table.Properties["comment"] }

// Partitions implements sql.Table.
func (s *stub) Partitions(*sql.Context) (sql.PartitionIter, error) { return nil, errStub }

// PartitionRows implements sql.Table.
func (s *stub) PartitionRows(*sql.Context, sql.Partition) (sql.RowIter, error) { return nil, errStub }

var errStub = fmt.Errorf("a table without rows was asked for rows")

var (
	_ sql.VersionedDatabase = database("")
	_ sql.ViewDatabase      = database("")
	_ sql.Table             = (*stub)(nil)
)
