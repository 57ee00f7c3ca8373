package rest

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"

	"sqe/rangerclient/admin"
)

// auditPath is where plugins send what they decided. A Ranger Admin 2.9 has no such
// call, its plugins write to Solr and the like; those that follow can post to an
// audit server. Source: RangerAuditServerDestination of Ranger's agents-audit.
const auditPath = "/api/audit/access"

func (h *Handler) auditRoutes() {
	if h.o.Audit == nil {
		h.o.Audit = h.logAudit
	}
	h.handle(http.MethodPost, "audit/access", anybody, (*call).audit)
}

// audit takes the reports of whom the service lets download its policies.
func (c *call) audit() (any, error) {
	name := c.query("serviceName")
	service, err := c.store.Service(c.ctx, name)
	if admin.KindOf(err) == admin.NotFound && c.account.IsAdmin() {
		return nil, bad("serviceName names no service")
	}
	if err != nil && admin.KindOf(err) != admin.NotFound {
		return nil, err
	}
	if !c.account.IsAdmin() && (err != nil || !listed(service.Configs[mayPolicies], c.account.Name)) {
		return nil, forbidden("User doesn't have permission to report accesses")
	}
	var events []json.RawMessage
	if err := c.read(&events); err != nil {
		return nil, err
	}
	for _, e := range events {
		if err := c.o.Audit(c.ctx, c.account.Name, name, e); err != nil {
			return nil, err
		}
	}
	return map[string]int{"total": len(events)}, nil
}

// logAudit writes the decision of a report to the log, and not the statement: it
// may hold values of rows.
func (h *Handler) logAudit(ctx context.Context, user, service string, event json.RawMessage) error {
	var e struct {
		User     string `json:"reqUser"`
		Time     any    `json:"evtTime"`
		Access   string `json:"access"`
		Resource string `json:"resource"`
		Result   int    `json:"result"`
		Policy   int64  `json:"policy"`
		Client   string `json:"cliIP"`
	}
	if err := json.Unmarshal(event, &e); err != nil {
		return malformed("a report of an access is an object as Ranger's plugins write it")
	}
	h.o.Log.LogAttrs(ctx, slog.LevelInfo, "a plugin reports an access", slog.String("service", service), slog.String("reporter", user),
		slog.String("user", e.User), slog.Any("time", e.Time), slog.String("access", e.Access), slog.String("resource", e.Resource),
		slog.Bool("allowed", e.Result == 1), slog.Int64("policy", e.Policy), slog.String("client", e.Client))
	return nil
}
