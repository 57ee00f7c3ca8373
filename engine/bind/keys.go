package bind

import (
	"slices"

	"github.com/dolthub/go-mysql-server/sql"
)

// primaryKey shows the identifier fields of a table as MySQL's tools look for them.
// Queries never get it: nothing is looked up by it, and nobody enforces that it is
// unique. It implements sql.Index.
type primaryKey struct {
	database, table string
	columns         []string
}

// GetIndexes implements sql.IndexAddressable.
func (s *stub) GetIndexes(ctx *sql.Context) ([]sql.Index, error) {
	if !s.shown || len(s.relation.Table.Identifiers) == 0 {
		return nil, nil
	}
	k := &primaryKey{database: ctx.GetCurrentDatabase(), table: s.name}
	for _, id := range s.relation.Table.Identifiers {
		if i := slices.Index(fieldIDs(s), id); i >= 0 {
			k.columns = append(k.columns, s.name+"."+s.fields[i].Name)
		}
	}
	return []sql.Index{k}, nil
}

func fieldIDs(s *stub) []int {
	out := make([]int, len(s.fields))
	for i, f := range s.fields {
		out[i] = f.ID
	}
	return out
}

// IndexedAccess implements sql.IndexAddressable: there is none.
func (*stub) IndexedAccess(*sql.Context, sql.IndexLookup) sql.IndexedTable { return nil }

// PreciseMatch implements sql.IndexAddressable.
func (*stub) PreciseMatch() bool { return false }

// GetIndexes implements sql.IndexAddressable.
func (l *lazyStub) GetIndexes(ctx *sql.Context) ([]sql.Index, error) { return l.stub().GetIndexes(ctx) }

// IndexedAccess implements sql.IndexAddressable: there is none.
func (*lazyStub) IndexedAccess(*sql.Context, sql.IndexLookup) sql.IndexedTable { return nil }

// PreciseMatch implements sql.IndexAddressable.
func (*lazyStub) PreciseMatch() bool { return false }

func (*primaryKey) ID() string                                        { return "PRIMARY" }
func (k *primaryKey) Database() string                                { return k.database }
func (k *primaryKey) Table() string                                   { return k.table }
func (k *primaryKey) Expressions() []string                           { return k.columns }
func (*primaryKey) IsUnique() bool                                    { return true }
func (*primaryKey) IsSpatial() bool                                   { return false }
func (*primaryKey) IsFullText() bool                                  { return false }
func (*primaryKey) IsVector() bool                                    { return false }
func (*primaryKey) Comment() string                                   { return "" }
func (*primaryKey) IndexType() string                                 { return "BTREE" }
func (*primaryKey) IsGenerated() bool                                 { return false }
func (*primaryKey) ColumnExpressionTypes() []sql.ColumnExpressionType { return nil }
func (*primaryKey) CanSupport(*sql.Context, ...sql.Range) bool        { return false }
func (*primaryKey) CanSupportOrderBy(sql.Expression) bool             { return false }
func (*primaryKey) PrefixLengths() []uint16                           { return nil }

var (
	_ sql.IndexAddressableTable = (*stub)(nil)
	_ sql.IndexAddressableTable = (*lazyStub)(nil)
)
