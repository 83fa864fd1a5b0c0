package otlp

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// metrics counts the waits of every exchange. One goroutine records, any may
// produce. The SDK's own instruments cost four times as much as all the rest
// that is done for a write: for each value they look up its set of labels,
// which here is done once a write, and take part in what we don't use.
type metrics struct {
	version string
	start   time.Time
	known   map[string]bool // operations

	mu     sync.Mutex
	series map[seriesKey]*series
	waits  map[seriesKey]*[5]histogram // by part; their keys have no outcome
	delays map[string]*[2]histogram    // errors of the delay, by link and direction
	// latest is the series that was used last: writes are seldom alone.
	latest    *series
	latestKey seriesKey
}

type seriesKey struct {
	protocol                          wire.Protocol
	link, operation, concern, outcome string
}

// series is what is counted of one seriesKey.
type series struct {
	operation histogram
	waits     *[5]histogram
}

func newMetrics(version string) *metrics {
	return &metrics{
		version: version, start: time.Now(), known: knownOperations(),
		series: make(map[seriesKey]*series), waits: make(map[seriesKey]*[5]histogram), delays: make(map[string]*[2]histogram),
	}
}

func (m *metrics) record(f *trace.Finished) {
	if f.Background() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.of(f)
	s.operation.add(f.Waits.Total)
	if f.Missing() {
		return // its parts end where its connection did
	}
	for i, p := range f.Waits.Parts() {
		if p.Name == trace.PartReplication && p.Time == 0 {
			continue // not seen, which is not the same as none
		}
		s.waits[i].add(p.Time)
	}
	for d := range f.Sides {
		if planned, achieved, ok := trace.Held(&f.Sides[d]); ok {
			m.delay(f.Conn.Link)[d].add(achieved - planned)
		}
	}
}

func (m *metrics) of(f *trace.Finished) *series {
	k := seriesKey{f.Protocol, f.Conn.Link, f.Operation, concernLabel(f), outcomeLabel(f)}
	if m.latest != nil && k == m.latestKey {
		return m.latest
	}
	if !m.known[k.operation] {
		k.operation = trace.Other
	}
	s := m.series[k]
	if s == nil {
		s = m.newSeries(k)
		m.series[k] = s
	}
	m.latest, m.latestKey = s, k
	return s
}

func (m *metrics) newSeries(k seriesKey) *series {
	common := []attribute.KeyValue{
		system(k.protocol),
		semconv.DBOperationName(k.operation),
		keyLink.String(k.link),
	}
	common = appendString(common, keyConcern, k.concern)
	with := func(kv attribute.KeyValue) histogram {
		return newHistogram(waitBuckets, append(common[:len(common):len(common)], kv)...)
	}
	s := &series{operation: with(keyOutcome.String(k.outcome))}
	k.outcome = ""
	if s.waits = m.waits[k]; s.waits == nil {
		s.waits = new([5]histogram)
		for i, p := range new(trace.Waits).Parts() {
			s.waits[i] = with(keyPart.String(p.Name))
		}
		m.waits[k] = s.waits
	}
	return s
}

func (m *metrics) delay(link string) *[2]histogram {
	h := m.delays[link]
	if h == nil {
		h = new([2]histogram)
		for d := range h {
			h[d] = newHistogram(errorBuckets, keyLink.String(link), keyDirection.String(wire.Direction(d).String()))
		}
		m.delays[link] = h
	}
	return h
}

// Produce is a snapshot, for the SDK's readers: it goes where the instruments'
// values go, under the same scope. It is always cumulative.
func (m *metrics) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	var operations, waits, errors points
	now := time.Now()
	m.mu.Lock()
	for _, s := range m.series {
		operations = s.operation.appendTo(operations, m.start, now)
	}
	for _, parts := range m.waits {
		for i := range parts {
			waits = parts[i].appendTo(waits, m.start, now)
		}
	}
	for _, h := range m.delays {
		for d := range h {
			errors = h[d].appendTo(errors, m.start, now)
		}
	}
	m.mu.Unlock()
	return []metricdata.ScopeMetrics{{
		Scope: instrumentation.Scope{Name: scope, Version: m.version},
		Metrics: appendHistogram(appendHistogram(appendHistogram(nil,
			"wirewait.operation.duration", "From the first byte of a request to the last of its reply, as the client sees it.", operations),
			"wirewait.wait.duration", "The same time by part: receive, request, server, replication, reply.", waits),
			"wirewait.delay.error", "How much longer a request or a reply was held than it was to be.", errors),
	}}, nil
}

func appendHistogram(list []metricdata.Metrics, name, what string, values points) []metricdata.Metrics {
	if len(values) == 0 {
		return list
	}
	return append(list, metricdata.Metrics{Name: name, Description: what, Unit: "s",
		Data: metricdata.Histogram[float64]{DataPoints: values, Temporality: metricdata.CumulativeTemporality}})
}
