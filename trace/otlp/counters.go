package otlp

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// observe exports what others counted: it's read when metrics are collected.
type observe struct {
	meter metric.Meter
	errs  []error
	all   []metric.Observable
}

func (o *observe) counter(name, unit, what string) metric.Int64ObservableCounter {
	c, err := o.meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(what))
	o.errs, o.all = append(o.errs, err), append(o.all, c)
	return c
}

func (o *observe) gauge(name, unit, what string) metric.Int64ObservableUpDownCounter {
	g, err := o.meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(what))
	o.errs, o.all = append(o.errs, err), append(o.all, g)
	return g
}

func (o *observe) seconds(name, what string) metric.Float64ObservableCounter {
	c, err := o.meter.Float64ObservableCounter(name, metric.WithUnit("s"), metric.WithDescription(what))
	o.errs, o.all = append(o.errs, err), append(o.all, c)
	return c
}

// register calls each at every collection, once all instruments are made.
func (o *observe) register(each func(metric.Observer)) error {
	if err := errors.Join(o.errs...); err != nil {
		return err
	}
	_, err := o.meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		each(to)
		return nil
	}, o.all...)
	return err
}

func label(kv attribute.KeyValue) metric.ObserveOption {
	return metric.WithAttributeSet(attribute.NewSet(kv))
}

// observeProxy exports the proxy's counters.
func observeProxy(m metric.Meter, read func() trace.Counters) error {
	o := &observe{meter: m}
	open := o.gauge("wirewait.connections.open", "{connection}", "Client connections that are open.")
	total := o.counter("wirewait.connections", "{connection}", "Client connections accepted.")
	live := o.gauge("wirewait.bytes.live", "By", "Bytes that wait in the lines.")
	bytes := o.counter("wirewait.bytes", "By", "Bytes forwarded.")
	exchanges := o.counter("wirewait.exchanges", "{exchange}", "Requests seen with their replies.")
	opaque := o.counter("wirewait.connections.opaque", "{connection}", "Connections whose bytes could not be read.")
	decode := o.counter("wirewait.decode.failures", "{message}", "Messages that were framed and not understood.")
	dial := o.counter("wirewait.dial.failures", "{connection}", "Upstreams that could not be reached.")
	accept := o.counter("wirewait.accept.failures", "{failure}", "Failures to accept a connection.")
	dropped := o.counter("wirewait.exchanges.dropped", "{exchange}", "Exchanges that the tracer had no room for: not in any figure here.")
	stalled := o.seconds("wirewait.stalled.time", "How long reading stood still because a line was full.")

	directions := [2]metric.ObserveOption{}
	for i := range directions {
		directions[i] = label(keyDirection.String(wire.Direction(i).String()))
	}
	encrypted, other := label(keyReason.String("encrypted")), label(keyReason.String("other"))

	return o.register(func(to metric.Observer) {
		c := read()
		to.ObserveInt64(open, c.ConnectionsOpen)
		to.ObserveInt64(total, int64(c.ConnectionsTotal))
		to.ObserveInt64(live, c.BytesLive)
		to.ObserveInt64(exchanges, int64(c.Exchanges))
		to.ObserveInt64(dial, int64(c.DialFailures))
		to.ObserveInt64(accept, int64(c.AcceptFailures))
		to.ObserveInt64(dropped, int64(c.Dropped))
		to.ObserveInt64(opaque, int64(c.Encrypted), encrypted)
		to.ObserveInt64(opaque, int64(c.Opaque), other)
		for i, d := range directions {
			to.ObserveInt64(bytes, int64(c.Bytes[i]), d)
			to.ObserveFloat64(stalled, c.StalledSeconds[i], d)
		}
		for reason, n := range c.DecodeFailures {
			to.ObserveInt64(decode, int64(n), label(keyReason.String(reason)))
		}
	})
}

// observeSpans exports what became of the spans.
func observeSpans(m metric.Meter, g *gate) error {
	o := &observe{meter: m}
	exported := o.counter("wirewait.spans.exported", "{span}", "Spans that the exporter took.")
	dropped := o.counter("wirewait.spans.dropped", "{span}", "Spans that were lost: the queue was full, or the exporter failed.")
	full, failed := label(keyReason.String("queue_full")), label(keyReason.String("export_failed"))
	return o.register(func(to metric.Observer) {
		to.ObserveInt64(exported, int64(g.exported.Load()))
		to.ObserveInt64(dropped, int64(g.dropped.Load()), full)
		to.ObserveInt64(dropped, int64(g.failed.Load()), failed)
	})
}
