package ops

import "github.com/prometheus/client_golang/prometheus"

// AuditOutput is the condition of a place where audit events go.
type AuditOutput struct {
	Output                  string // its name
	Queued                  int    // events that did not arrive yet
	Bytes                   int64  // of its spool
	Sent, SetAside, Dropped uint64
	Failing                 bool // the last attempt failed
}

// auditOutputs reads the condition of the outputs when Prometheus asks.
type auditOutputs struct{ outputs func() []AuditOutput }

var (
	auditQueued   = prometheus.NewDesc("sqe_audit_queued_events", "Audit events that did not arrive yet.", []string{"output"}, nil)
	auditBytes    = prometheus.NewDesc("sqe_audit_spool_bytes", "Size of the spool of an audit output.", []string{"output"}, nil)
	auditSent     = prometheus.NewDesc("sqe_audit_sent_total", "Audit events that arrived.", []string{"output"}, nil)
	auditSetAside = prometheus.NewDesc("sqe_audit_set_aside_total", "Audit events that the receiver rejected.", []string{"output"}, nil)
	auditDropped  = prometheus.NewDesc("sqe_audit_dropped_total", "Audit events that are lost to an output.", []string{"output"}, nil)
	auditFailing  = prometheus.NewDesc("sqe_audit_failing", "1: the last attempt to send or write audit events failed.", []string{"output"}, nil)
)

// Describe implements prometheus.Collector.
func (auditOutputs) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{auditQueued, auditBytes, auditSent, auditSetAside, auditDropped, auditFailing} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (a auditOutputs) Collect(ch chan<- prometheus.Metric) {
	for _, o := range a.outputs() {
		send := func(d *prometheus.Desc, t prometheus.ValueType, v float64) {
			ch <- prometheus.MustNewConstMetric(d, t, v, o.Output)
		}
		send(auditQueued, prometheus.GaugeValue, float64(o.Queued))
		send(auditBytes, prometheus.GaugeValue, float64(o.Bytes))
		send(auditSent, prometheus.CounterValue, float64(o.Sent))
		send(auditSetAside, prometheus.CounterValue, float64(o.SetAside))
		send(auditDropped, prometheus.CounterValue, float64(o.Dropped))
		failing := 0.0
		if o.Failing {
			failing = 1
		}
		send(auditFailing, prometheus.GaugeValue, failing)
	}
}
