package bind

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dolthub/go-mysql-server/sql"

	"sqe/plan"
)

// constants are folded to a literal when the statement is bound.
var constants = map[string]bool{
	"now": true, "current_timestamp": true, "localtime": true, "localtimestamp": true, "curdate": true, "current_date": true, "curtime": true, "current_time": true,
	"utc_timestamp": true, "utc_date": true, "utc_time": true, "sysdate": true, "database": true, "schema": true, "version": true, "connection_id": true, "user": true, "current_user": true,
	"session_user": true, "system_user": true, "last_insert_id": true,
}

// constant folds a function of the session or of the statement's time.
func (t *translator) constant(name string, e sql.Expression) plan.Expr {
	switch name {
	case "now", "current_timestamp", "localtime", "localtimestamp", "utc_timestamp", "sysdate":
		at := t.now().Truncate(1e9)
		if c := e.Children(); len(c) == 1 {
			if l, ok := t.expr(c[0]).(*plan.Literal); ok {
				if p, ok := l.Value.(int64); ok && p >= 0 && p <= 6 {
					unit := int64(1e9)
					for ; p > 0; p-- {
						unit /= 10
					}
					at = t.now().Truncate(timeUnit(unit))
				}
			}
		}
		return timestampLiteral(at)
	case "curdate", "current_date", "utc_date":
		return dateLiteral(t.now())
	case "curtime", "current_time", "utc_time":
		n := t.now()
		return &plan.Literal{Value: arrow.Time64(int64(n.Hour()*3600+n.Minute()*60+n.Second()) * 1e6), Typ: plan.Time}
	case "version":
		return text(t.binder.version())
	case "database", "schema":
		if db := selected(t.ctx.GetCurrentDatabase()); db != "" {
			return text(db)
		}
		return null(plan.String)
	}
	if name == "session_user" || name == "system_user" {
		c := t.ctx.Client()
		return text(c.User + "@" + c.Address)
	}
	return t.folded(e)
}
