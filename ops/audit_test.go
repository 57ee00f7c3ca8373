package ops

import (
	"strings"
	"testing"
)

// TestAuditMetrics: each output has its numbers.
func TestAuditMetrics(t *testing.T) {
	outputs := []AuditOutput{{Output: "solr", Queued: 4, Bytes: 900, Sent: 7, SetAside: 2, Dropped: 1, Failing: true}, {Output: "file", Sent: 9}}
	get := serve(t, NewMetrics(Sources{Audit: func() []AuditOutput { return outputs }}))
	_, page := get("/metrics")
	for _, want := range []string{
		`sqe_audit_queued_events{output="solr"} 4`, `sqe_audit_spool_bytes{output="solr"} 900`, `sqe_audit_sent_total{output="solr"} 7`,
		`sqe_audit_set_aside_total{output="solr"} 2`, `sqe_audit_dropped_total{output="solr"} 1`, `sqe_audit_failing{output="solr"} 1`,
		`sqe_audit_failing{output="file"} 0`, `sqe_audit_sent_total{output="file"} 9`,
	} {
		if !strings.Contains(page, want+"\n") {
			t.Errorf("the page lacks %s", want)
		}
	}
	outputs[0].Failing = false
	if _, page = get("/metrics"); !strings.Contains(page, `sqe_audit_failing{output="solr"} 0`) {
		t.Error("the page is not read anew")
	}
}
