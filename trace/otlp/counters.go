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

func label(kvs ...attribute.KeyValue) metric.ObserveOption {
	return metric.WithAttributeSet(attribute.NewSet(kvs...))
}

// observeProxy exports the proxy's counters, by link: their names come from the
// configuration, so there are no more of them than somebody wrote down.
func observeProxy(m metric.Meter, read func() trace.Counters) error {
	o := &observe{meter: m}
	dropped := o.counter("wirewait.exchanges.dropped", "{exchange}", "Exchanges that the tracer had no room for: not in any figure here.")
	sources := o.counter("wirewait.mongodb.sync_source.changes", "{change}", "How often a member of a replica set turned to another one for its log.")
	step := o.gauge("wirewait.scenario.step", "{step}", "1 while the step of the scenario is in force.")
	links, ways, rules := observeLinks(o), observeWays(o), observeRules(o)
	return o.register(func(to metric.Observer) {
		c := read()
		to.ObserveInt64(dropped, int64(c.Dropped))
		to.ObserveInt64(sources, int64(c.SyncSourceChanges))
		if m := c.Marker; m != nil {
			to.ObserveInt64(step, 1, label(keyScenario.String(m.Scenario), keyScenarioStep.String(m.Step)))
		}
		for i := range c.Rules {
			rules(to, &c.Rules[i])
		}
		for i := range c.Links {
			l := &c.Links[i]
			name := keyLink.String(l.Link)
			links(to, l, name)
			for d := range l.Ways {
				ways(to, &l.Ways[d], label(name, keyDirection.String(wire.Direction(d).String())))
			}
		}
	})
}

// observeLinks makes the instruments of what a link counts of its connections.
func observeLinks(o *observe) func(metric.Observer, *trace.LinkCounters, attribute.KeyValue) {
	open := o.gauge("wirewait.connections.open", "{connection}", "Client connections that are open.")
	total := o.counter("wirewait.connections", "{connection}", "Client connections accepted.")
	exchanges := o.counter("wirewait.exchanges", "{exchange}", "Requests seen with their replies.")
	opaque := o.counter("wirewait.connections.opaque", "{connection}", "Connections whose bytes could not be read.")
	decode := o.counter("wirewait.decode.failures", "{message}", "Messages that were framed and not understood.")
	dial := o.counter("wirewait.dial.failures", "{connection}", "Upstreams that could not be reached.")
	accept := o.counter("wirewait.accept.failures", "{failure}", "Failures to accept a connection.")
	return func(to metric.Observer, l *trace.LinkCounters, name attribute.KeyValue) {
		of := label(name)
		to.ObserveInt64(open, l.ConnectionsOpen, of)
		to.ObserveInt64(total, int64(l.ConnectionsTotal), of)
		to.ObserveInt64(exchanges, int64(l.Exchanges), of)
		to.ObserveInt64(dial, int64(l.DialFailures), of)
		to.ObserveInt64(accept, int64(l.AcceptFailures), of)
		to.ObserveInt64(opaque, int64(l.Encrypted), label(name, keyReason.String("encrypted")))
		to.ObserveInt64(opaque, int64(l.Opaque), label(name, keyReason.String("other")))
		for reason, n := range l.DecodeFailures {
			to.ObserveInt64(decode, int64(n), label(name, keyReason.String(reason)))
		}
	}
}

// observeWays makes the instruments of what a link counts of each direction.
func observeWays(o *observe) func(metric.Observer, *trace.WayCounters, metric.ObserveOption) {
	bytes := o.counter("wirewait.bytes", "By", "Bytes forwarded.")
	live := o.gauge("wirewait.bytes.live", "By", "Bytes that wait in the lines.")
	stalled := o.seconds("wirewait.stalled.time", "How long reading stood still because a line was full.")
	stalls := o.counter("wirewait.stalls", "{stall}", "How often reading stood still because a line was full.")
	paused := o.gauge("wirewait.connections.paused", "{connection}", "Connections whose reading stands still now because a line is full.")
	held := o.counter("wirewait.delay.runs", "{run}", "Runs of bytes that were delayed and have left.")
	planned := o.seconds("wirewait.delay.planned.time", "How long those runs were to be held, added up.")
	achieved := o.seconds("wirewait.delay.achieved.time", "How long they were held, added up.")
	return func(to metric.Observer, w *trace.WayCounters, of metric.ObserveOption) {
		to.ObserveInt64(bytes, int64(w.Bytes), of)
		to.ObserveInt64(live, w.Live, of)
		to.ObserveFloat64(stalled, w.Stalled.Seconds(), of)
		to.ObserveInt64(stalls, int64(w.Stalls), of)
		to.ObserveInt64(paused, w.Paused, of)
		to.ObserveInt64(held, int64(w.Held), of)
		to.ObserveFloat64(planned, w.PlannedSeconds, of)
		to.ObserveFloat64(achieved, w.AchievedSeconds, of)
	}
}

// observeRules makes the instruments of what rules do.
func observeRules(o *observe) func(metric.Observer, *trace.RuleCounters) {
	matches := o.counter("wirewait.rule.matches", "{match}", "What a rule matched and could apply to.")
	hits := o.counter("wirewait.rule.hits", "{match}", "Matches for which a rule fired.")
	not := o.counter("wirewait.rule.not_applicable", "{match}", "Matches that a rule could not apply to.")
	return func(to metric.Observer, r *trace.RuleCounters) {
		of := []attribute.KeyValue{keyRule.String(r.Rule), keyRuleEffect.String(r.Effect), keyLink.String(r.Link)}
		to.ObserveInt64(matches, int64(r.Matches), label(of...))
		to.ObserveInt64(hits, int64(r.Hits), label(of...))
		for reason, n := range r.NotApplicable {
			to.ObserveInt64(not, int64(n), label(append(of[:3:3], keyReason.String(reason))...))
		}
	}
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
