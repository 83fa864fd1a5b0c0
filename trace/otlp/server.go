package otlp

import (
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/wirewait/wirewait/trace"
)

// What a server did during a write's server part is on the write's span; what it
// does now is in the metrics. Both are named by trace.Measure, and say what
// happened at the same time: correlation, no cause.

const serverPrefix = "wirewait.server."

const (
	keySampleAge = attribute.Key("wirewait.server.sample_age_ms")

	// Metrics only.
	keyServer   = attribute.Key("wirewait.server")
	keyMember   = attribute.Key("wirewait.member")
	keyProgress = attribute.Key("wirewait.progress")
)

// serverKeys are the measures' attributes, by measure.
var serverKeys = func() (keys []attribute.Key) {
	for _, m := range trace.Measures() {
		keys = append(keys, attribute.Key(serverPrefix+m.String()))
	}
	return keys
}()

func appendMeanwhile(a []attribute.KeyValue, m *trace.Meanwhile) []attribute.KeyValue {
	if m.Samples == 0 {
		return a
	}
	for i, key := range serverKeys {
		of := trace.Measure(i)
		v, ok := m.Get(of)
		switch {
		case !ok || !of.OnSpans():
		case of.Kind() == trace.Mark:
			a = append(a, key.Bool(v != 0))
		default:
			a = append(a, key.Float64(v))
		}
	}
	return append(a, ms(keySampleAge, m.Age))
}

// observeServers exports the newest sample of each server. Times are in seconds,
// as all metrics are, and called so: checkpoint_ms is checkpoint_time here.
func observeServers(m metric.Meter, read func() *trace.Activities) error {
	o := &observe{meter: m}
	gauges := make([]metric.Float64ObservableGauge, len(serverKeys))
	for i := range gauges {
		of := trace.Measure(i)
		gauges[i] = o.float(serverPrefix+metricName(of), metricUnit(of.Kind()), of.About())
	}
	lag := o.float("wirewait.server.member.lag", "s", "How far a member is behind the server, by what it has written, made durable and applied.")
	return o.register(func(to metric.Observer) {
		all := read()
		if all == nil {
			return
		}
		for _, server := range all.Servers() {
			a := all.Now(server)
			if a == nil {
				continue
			}
			name := keyServer.String(server)
			for i := range gauges {
				if v, ok := a.Get(trace.Measure(i)); ok {
					to.ObserveFloat64(gauges[i], metricValue(trace.Measure(i), v), label(name))
				}
			}
			for _, l := range a.Lags {
				for progress, d := range map[string]time.Duration{"written": l.Written, "durable": l.Durable, "applied": l.Applied} {
					if d != trace.NoLag {
						to.ObserveFloat64(lag, d.Seconds(), label(name, keyMember.String(l.Member), keyProgress.String(progress)))
					}
				}
			}
		}
	})
}

func (o *observe) float(name, unit, what string) metric.Float64ObservableGauge {
	g, err := o.meter.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(what))
	o.errs, o.all = append(o.errs, err), append(o.all, g)
	return g
}

func metricName(m trace.Measure) string {
	if m.Kind() != trace.Milliseconds {
		return m.String()
	}
	return strings.Replace(m.String(), "_ms", "_time", 1)
}

func metricUnit(k trace.Kind) string {
	if k == trace.Milliseconds {
		return "s"
	}
	return "" // others say their unit in their names
}

func metricValue(m trace.Measure, v float64) float64 {
	if m.Kind() == trace.Milliseconds {
		return v / 1000
	}
	return v
}
