package otlp

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Upper bounds of buckets: waits from a loopback round trip to a lost
// partition; errors of a delay from what a timer can hold to what a stalled
// machine does.
var (
	waitBuckets = buckets{
		100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
		1 * time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
		10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
		100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
		1 * time.Second, 2500 * time.Millisecond, 5 * time.Second,
		10 * time.Second, 25 * time.Second, 50 * time.Second, 100 * time.Second,
	}
	errorBuckets = buckets{
		-time.Millisecond, 0, 50 * time.Microsecond, 100 * time.Microsecond, 150 * time.Microsecond,
		250 * time.Microsecond, 500 * time.Microsecond, 1 * time.Millisecond, 2500 * time.Microsecond,
		5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
		100 * time.Millisecond, 250 * time.Millisecond, 1 * time.Second,
	}
)

type buckets []time.Duration

const maxBuckets = 20

// histogram counts durations by bucket: bounds[i-1] < d <= bounds[i].
type histogram struct {
	labels   attribute.Set
	bounds   buckets
	counts   [maxBuckets]uint64
	count    uint64
	sum      float64 // seconds: nanoseconds overflow within days of many connections
	min, max time.Duration
}

func newHistogram(b buckets, labels ...attribute.KeyValue) histogram {
	return histogram{labels: attribute.NewSet(labels...), bounds: b}
}

func (h *histogram) add(d time.Duration) {
	i := 0
	for i < len(h.bounds) && d > h.bounds[i] {
		i++
	}
	h.counts[i]++
	if h.count == 0 {
		h.min, h.max = d, d
	}
	h.count++
	h.sum += d.Seconds()
	h.min, h.max = min(h.min, d), max(h.max, d)
}

type points = []metricdata.HistogramDataPoint[float64]

// appendTo leaves out a histogram without values, as the SDK does.
func (h *histogram) appendTo(list points, start, now time.Time) points {
	if h.count == 0 {
		return list
	}
	p := metricdata.HistogramDataPoint[float64]{
		Attributes: h.labels, StartTime: start, Time: now, Count: h.count, Sum: h.sum,
		Bounds: make([]float64, len(h.bounds)), BucketCounts: make([]uint64, len(h.bounds)+1),
		Min: metricdata.NewExtrema(h.min.Seconds()), Max: metricdata.NewExtrema(h.max.Seconds()),
	}
	for i, b := range h.bounds {
		p.Bounds[i] = b.Seconds()
	}
	copy(p.BucketCounts, h.counts[:])
	return append(list, p)
}
