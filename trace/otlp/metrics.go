package otlp

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// Buckets, in seconds: waits from a loopback round trip to a lost partition;
// errors of a delay from what a timer can hold to what a stalled machine does.
var (
	waitBuckets = []float64{
		0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
		0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100,
	}
	errorBuckets = []float64{
		-0.001, 0, 0.00005, 0.0001, 0.00015, 0.00025, 0.0005, 0.001, 0.0025,
		0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1,
	}
)

// metrics records the waits of every exchange. One goroutine uses it. What
// costs time, making sets of labels, is done once per set.
type metrics struct {
	operation, wait, delayError metric.Float64Histogram

	known  map[string]bool
	series map[seriesKey]*series
	links  map[string][]metric.RecordOption
}

type seriesKey struct {
	protocol                          wire.Protocol
	link, operation, concern, outcome string
}

// series holds the ready-made labels of one seriesKey.
type series struct {
	operation []metric.RecordOption
	parts     [5][]metric.RecordOption
}

func newMetrics(m metric.Meter) (*metrics, error) {
	var errs [3]error
	r := &metrics{
		known:  knownOperations(),
		series: make(map[seriesKey]*series),
		links:  make(map[string][]metric.RecordOption),
	}
	r.operation, errs[0] = m.Float64Histogram("wirewait.operation.duration", metric.WithUnit("s"),
		metric.WithDescription("From the first byte of a request to the last of its reply, as the client sees it."),
		metric.WithExplicitBucketBoundaries(waitBuckets...))
	r.wait, errs[1] = m.Float64Histogram("wirewait.wait.duration", metric.WithUnit("s"),
		metric.WithDescription("The same time by part: receive, request, server, replication, reply."),
		metric.WithExplicitBucketBoundaries(waitBuckets...))
	r.delayError, errs[2] = m.Float64Histogram("wirewait.delay.error", metric.WithUnit("s"),
		metric.WithDescription("How much longer an exchange was held than it was to be."),
		metric.WithExplicitBucketBoundaries(errorBuckets...))
	return r, errors.Join(errs[:]...)
}

func (m *metrics) record(f *trace.Finished) {
	if f.Background() {
		return
	}
	ctx := context.Background()
	s := m.labels(f)
	m.operation.Record(ctx, f.Waits.Total.Seconds(), s.operation...)
	if f.Missing() {
		return // its parts end where its connection did
	}
	for i, p := range f.Waits.Parts() {
		if p.Name == trace.PartReplication && p.Time == 0 {
			continue // not seen, which is not the same as none
		}
		m.wait.Record(ctx, p.Time.Seconds(), s.parts[i]...)
	}
	if f.Waits.Planned > 0 {
		m.delayError.Record(ctx, (f.Waits.Achieved - f.Waits.Planned).Seconds(), m.link(f.Conn.Link)...)
	}
}

func (m *metrics) labels(f *trace.Finished) *series {
	k := seriesKey{f.Protocol, f.Conn.Link, f.Operation, concernLabel(f), outcomeLabel(f)}
	if !m.known[k.operation] {
		k.operation = trace.Other
	}
	s := m.series[k]
	if s == nil {
		s = newSeries(k)
		m.series[k] = s
	}
	return s
}

func newSeries(k seriesKey) *series {
	common := []attribute.KeyValue{
		system(k.protocol),
		semconv.DBOperationName(k.operation),
		keyLink.String(k.link),
	}
	common = appendString(common, keyConcern, k.concern)
	with := func(kv attribute.KeyValue) []metric.RecordOption {
		set := attribute.NewSet(append(common[:len(common):len(common)], kv)...)
		return []metric.RecordOption{metric.WithAttributeSet(set)}
	}
	s := &series{operation: with(keyOutcome.String(k.outcome))}
	var w trace.Waits
	for i, p := range w.Parts() {
		s.parts[i] = with(keyPart.String(p.Name))
	}
	return s
}

func (m *metrics) link(name string) []metric.RecordOption {
	o := m.links[name]
	if o == nil {
		o = []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(keyLink.String(name)))}
		m.links[name] = o
	}
	return o
}
