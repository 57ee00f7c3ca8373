package ops

import "github.com/prometheus/client_golang/prometheus"

// ObjectCache is what a cache of parts of objects did since the start: parts that were
// found and not found, and their sizes; and its size on the disk.
type ObjectCache struct {
	Hits, Misses, HitBytes, MissBytes, Bytes int64
}

// objectCache reads the counts of a cache when Prometheus asks.
type objectCache struct{ status func() ObjectCache }

var (
	cacheHits      = prometheus.NewDesc("sqe_object_cache_hits_total", "Parts of objects that were in the cache.", nil, nil)
	cacheMisses    = prometheus.NewDesc("sqe_object_cache_misses_total", "Parts of objects that were not in the cache and came from a store.", nil, nil)
	cacheHitBytes  = prometheus.NewDesc("sqe_object_cache_hit_bytes_total", "Bytes that came from the cache.", nil, nil)
	cacheMissBytes = prometheus.NewDesc("sqe_object_cache_miss_bytes_total", "Bytes of parts that were not in the cache.", nil, nil)
	cacheBytes     = prometheus.NewDesc("sqe_object_cache_bytes", "Size of the cache on the disk.", nil, nil)
)

// Describe implements prometheus.Collector.
func (objectCache) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{cacheHits, cacheMisses, cacheHitBytes, cacheMissBytes, cacheBytes} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (o objectCache) Collect(ch chan<- prometheus.Metric) {
	s := o.status()
	count := func(d *prometheus.Desc, n int64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n))
	}
	count(cacheHits, s.Hits)
	count(cacheMisses, s.Misses)
	count(cacheHitBytes, s.HitBytes)
	count(cacheMissBytes, s.MissBytes)
	ch <- prometheus.MustNewConstMetric(cacheBytes, prometheus.GaugeValue, float64(s.Bytes))
}
