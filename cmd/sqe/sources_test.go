package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"sqe/audit"
	"sqe/config"
	"sqe/rangerclient/admin"
)

// events keeps audit events.
type events []audit.Event

func (*events) Ready() error { return nil }

func (e *events) Record(x audit.Event) error {
	*e = append(*e, x)
	return nil
}

// TestLost: a change of a policy that somebody erased is in the log and in the audit
// log, and whether it was written again.
func TestLost(t *testing.T) {
	var log bytes.Buffer
	var kept events
	in := &instance{log: slog.New(slog.NewTextHandler(&log, nil))}
	l := admin.Loss{Service: "polaris", Policy: "sqe-grant-lake", ID: 7, Version: 4, By: "script", What: []string{"allow items of user ann"}}
	in.lost(l) // before there is an audit log
	in.sink.Store(&auditLog{Sink: &kept})
	in.lost(l)
	l.Restored = time.Now()
	in.lost(l)
	if len(kept) != 2 || kept[0].Kind != "lost" || kept[1].Kind != "restored" {
		t.Fatalf("%+v", kept)
	}
	for _, e := range kept {
		if e.Type != "policy" || e.User != "script" || !strings.Contains(e.Reason, "erased allow items of user ann") {
			t.Errorf("%+v", e)
		}
	}
	if n := strings.Count(log.String(), "sqe-grant-lake"); n != 3 {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
}

// TestAccessManagedBy: which catalogs are managed elsewhere.
func TestAccessManagedBy(t *testing.T) {
	catalogs := []config.Catalog{
		{Name: "lake", Kind: "sqlite"},
		{Name: "polaris", Kind: "rest", Identity: "user"},
		{Name: "service", Kind: "rest", Identity: "service"},
		{Name: "other", Kind: "rest", Identity: "user", ManagedBy: "somebody"},
	}
	for _, c := range []struct {
		policies []config.Policy
		want     []string
	}{
		{nil, []string{"other", "polaris"}},
		{[]config.Policy{{Kind: "folder", PolarisService: "polaris"}, {Kind: "store"}}, []string{"other", "polaris"}},
		{[]config.Policy{{Kind: "ranger", PolarisService: "polaris"}}, []string{"other"}},
	} {
		got := accessManagedBy(&config.Config{Catalogs: catalogs, Policies: c.policies})
		if len(got) != len(c.want) || got["other"] != "somebody" || (got["polaris"] != "") != (len(c.want) == 2) {
			t.Errorf("%+v: %v", c.policies, got)
		}
	}
}
