package ops

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"sqe/fault"
	"sqe/policy"
)

// Metrics counts what the engine and the server do. It implements their observer
// interfaces and is safe for concurrent use.
type Metrics struct {
	registry    *prometheus.Registry
	statements  *prometheus.CounterVec
	durations   *prometheus.HistogramVec
	rows        prometheus.Counter
	foreign     *prometheus.CounterVec
	connections prometheus.Gauge
	logins      *prometheus.CounterVec
	// disagreements are those of a catalog with the policies.
	disagreements *prometheus.CounterVec

	kinds   *labels
	reasons *labels
}

// Sources are where gauges are read when Prometheus asks. All may be nil.
type Sources struct {
	// Policies is the condition of every policy source.
	Policies func() []policy.Status
	// Running and Queued are the numbers of statements that run and wait.
	Running, Queued func() int
	// Targetless is the number of policies that name a table or a column which does
	// not exist.
	Targetless func() int
	// ObjectCache is what the cache of parts of objects does; nil: there is none.
	ObjectCache func() ObjectCache
	// Audit is the condition of every audit output.
	Audit   func() []AuditOutput
	Version string
}

// The bounds of what a label may be. Beyond them it is "other".
const (
	maxKinds   = 64
	maxReasons = 100
	maxLabel   = 80
)

// NewMetrics makes the metrics.
func NewMetrics(s Sources) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		statements: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sqe_statements_total", Help: "Statements by kind and outcome (ok, or the kind of the error).",
		}, []string{"kind", "outcome"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "sqe_statement_duration_seconds", Help: "Time from the arrival of a statement to its last row.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800},
		}, []string{"kind"}),
		rows: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sqe_rows_returned_total", Help: "Rows sent to clients.",
		}),
		foreign: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sqe_row_executor_statements_total", Help: "Statements that ran in the row executor, by the class of the reason.",
		}, []string{"reason"}),
		connections: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "sqe_connections", Help: "Authenticated connections.",
		}),
		disagreements: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sqe_gate_disagreements_total", Help: "Calls that a catalog refused although the policies here allow them.",
		}, []string{"catalog", "operation"}),
		logins: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sqe_logins_total", Help: "Logins by outcome (ok, or the kind of the error).",
		}, []string{"outcome"}),
		kinds: newLabels(maxKinds), reasons: newLabels(maxReasons),
	}
	m.registry.MustRegister(m.statements, m.durations, m.rows, m.foreign, m.connections, m.logins, m.disagreements,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	gauge := func(name, help string, f func() int) {
		if f != nil {
			m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(f()) }))
		}
	}
	gauge("sqe_statements_running", "Statements that run now.", s.Running)
	gauge("sqe_statements_queued", "Statements that wait for a place to run.", s.Queued)
	gauge("sqe_policies_without_target", "Parts of policies that never act: on tables or columns that do not exist, for nobody, for another access.", s.Targetless)
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "sqe_build_info", Help: "Always 1.", ConstLabels: prometheus.Labels{"version": s.Version},
	})
	info.Set(1)
	m.registry.MustRegister(info)
	if s.Policies != nil {
		m.registry.MustRegister(policies{s.Policies})
	}
	if s.ObjectCache != nil {
		m.registry.MustRegister(objectCache{s.ObjectCache})
	}
	if s.Audit != nil {
		m.registry.MustRegister(auditOutputs{s.Audit})
	}
	return m
}

// Statement counts a statement that ended.
func (m *Metrics) Statement(kind, outcome string, seconds float64, rows int64) {
	kind = m.kinds.of(kind)
	m.statements.WithLabelValues(kind, outcomeLabel(outcome)).Inc()
	m.durations.WithLabelValues(kind).Observe(seconds)
	m.rows.Add(float64(max(rows, 0)))
}

// Foreign counts a statement that ran in the row executor.
func (m *Metrics) Foreign(reason string) { m.foreign.WithLabelValues(m.reasons.of(reason)).Inc() }

// Connections sets the number of authenticated connections.
func (m *Metrics) Connections(open int) { m.connections.Set(float64(open)) }

// Disagreement counts a call that a catalog refused and the policies here allow. The
// operation is one of a few ("load table").
func (m *Metrics) Disagreement(catalog, operation string) {
	m.disagreements.WithLabelValues(catalog, operation).Inc()
}

// Login counts a login.
func (m *Metrics) Login(outcome string) { m.logins.WithLabelValues(outcomeLabel(outcome)).Inc() }

func (m *Metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second, ErrorHandling: promhttp.ContinueOnError})
}

var outcomes = func() map[string]bool {
	out := map[string]bool{"ok": true, "denied": true}
	for k := fault.Kind(0); k.String() != ""; k++ {
		out[k.String()] = true
	}
	return out
}()

func outcomeLabel(s string) string {
	if outcomes[s] {
		return s
	}
	return "other"
}

// labels bounds the values of a label: to the first so many distinct ones, and to
// words in which no literal can hide.
type labels struct {
	mu   sync.Mutex
	max  int
	seen map[string]bool
}

func newLabels(most int) *labels { return &labels{max: most, seen: map[string]bool{}} }

func (l *labels) of(s string) string {
	s = sanitize(s)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.seen[s] {
		if len(l.seen) >= l.max {
			return "other"
		}
		l.seen[s] = true
	}
	return s
}

// sanitize drops quoted texts and numbers, which may be literals, and what is not
// plain text.
func sanitize(s string) string {
	var b strings.Builder
	quote := rune(0)
	for _, r := range s {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
				b.WriteByte('?')
			}
			continue
		case r == '\'' || r == '"' || r == '`':
			quote = r
			continue
		case r >= '0' && r <= '9':
			r = '#'
		case r < ' ' || r > '~':
			r = '?'
		}
		if b.WriteRune(r); b.Len() >= maxLabel {
			break
		}
	}
	if b.Len() == 0 {
		return "none"
	}
	return b.String()
}

// policies reads the condition of the policy sources when Prometheus asks.
type policies struct{ status func() []policy.Status }

var (
	policyAge = prometheus.NewDesc("sqe_policy_age_seconds", "Time since the last successful poll of a policy source.", []string{"source"}, nil)
	policyMax = prometheus.NewDesc("sqe_policy_max_age_seconds", "The age beyond which statements are refused.", []string{"source"}, nil)
	policyOK  = prometheus.NewDesc("sqe_policy_last_success_timestamp_seconds", "When the last successful poll was.", []string{"source"}, nil)
	policyNew = prometheus.NewDesc("sqe_policy_fresh", "1: policies are loaded and young enough to be used.", []string{"source"}, nil)
	policyBad = prometheus.NewDesc("sqe_policy_last_poll_failed", "1: the last poll of the source failed.", []string{"source"}, nil)
	policyNum = prometheus.NewDesc("sqe_policies", "Policies of the source.", []string{"source"}, nil)
	policyErr = prometheus.NewDesc("sqe_policy_problems", "Policies that cannot be applied.", []string{"source"}, nil)
	policyOut = prometheus.NewDesc("sqe_policy_lost_changes_total", "Changes of policies that somebody else erased by a write of an older version.", []string{"source"}, nil)
	policyIn  = prometheus.NewDesc("sqe_policy_restored_changes_total", "Such changes that were written again.", []string{"source"}, nil)
	policyVer = prometheus.NewDesc("sqe_policy_version", "Version of a document of the source.", []string{"source", "document"}, nil)
)

// Describe implements prometheus.Collector.
func (policies) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{policyAge, policyMax, policyOK, policyNew, policyBad, policyNum, policyErr, policyOut, policyIn, policyVer} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (p policies) Collect(ch chan<- prometheus.Metric) {
	flag := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	for _, s := range p.status() {
		send := func(d *prometheus.Desc, v float64) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, s.Source)
		}
		if s.Loaded {
			send(policyAge, s.Age.Seconds())
			send(policyOK, float64(s.LastSuccess.UnixMilli())/1000)
		}
		send(policyMax, s.MaxAge.Seconds())
		send(policyNew, flag(s.Loaded && s.Fresh))
		send(policyBad, flag(s.LastError != ""))
		send(policyNum, float64(s.Policies))
		send(policyErr, float64(len(s.Problems)))
		ch <- prometheus.MustNewConstMetric(policyOut, prometheus.CounterValue, float64(s.Lost), s.Source)
		ch <- prometheus.MustNewConstMetric(policyIn, prometheus.CounterValue, float64(s.Restored), s.Source)
		for document, v := range s.Versions {
			ch <- prometheus.MustNewConstMetric(policyVer, prometheus.GaugeValue, float64(v), s.Source, document)
		}
	}
}

// PoliciesFresh is the readiness check of the policy sources.
func PoliciesFresh(status func() []policy.Status) Check {
	return Check{Name: "policies", Err: func() error {
		for _, s := range status() {
			switch {
			case !s.Loaded:
				return fault.New(fault.PolicyStale, "the policies of source %q were never loaded", s.Source)
			case !s.Fresh:
				return fault.New(fault.PolicyStale, "the policies of source %q are older than %s", s.Source, s.MaxAge)
			}
		}
		return nil
	}}
}
