package otlp

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// spans makes the spans of writes. One goroutine uses it.
type spans struct {
	tracer   oteltrace.Tracer
	gate     *gate
	children Children
	limits   sdktrace.SpanLimits
	template sdktrace.ReadOnlySpan // what records embed; nil before the first
	finished []*record             // of one write
}

// write makes the span of one write, and its children:
//
//	|------------------ insert orders (CLIENT) ------------------|
//	  receive |--- request ---|--- server ---|------ reply ------|   (INTERNAL)
//
// Receive has no child: it is the stretch before the first one.
func (s *spans) write(f *trace.Finished) {
	ctx, links := relation(f)
	// The SDK draws the ids and samples, by OTEL_TRACES_SAMPLER.
	_, drawn := s.tracer.Start(ctx, "")
	if !drawn.SpanContext().IsSampled() {
		return
	}
	if s.template == nil {
		s.template, _ = drawn.(sdktrace.ReadOnlySpan)
	}
	root := s.root(f, drawn.SpanContext())
	root.parent, root.links = oteltrace.SpanContextFromContext(ctx), links
	s.finished = append(s.finished[:0], root)
	if s.wantsChildren(f) {
		s.addChildren(root, f)
	}
	s.gate.end(s.finished) // all of a write or nothing: half a tree misleads
	clear(s.finished)
}

func (s *spans) root(f *trace.Finished, sc oteltrace.SpanContext) *record {
	start := f.Conn.Time(trace.Start(f.Exchange))
	r := &record{
		ReadOnlySpan: s.template,
		name:         spanName(f),
		kind:         oteltrace.SpanKindClient,
		context:      sc,
		start:        start,
		end:          start.Add(f.Waits.Total),
		status:       status(f),
		attributes:   limit(writeAttributes(f), s.limits),
	}
	if f.Unreplicated() {
		r.events = []sdktrace.Event{{Name: eventUnreplicated, Time: r.end.Add(-f.Waits.Reply)}}
	}
	return r
}

// relation is the context with the write's parent, or the links of a write
// whose traceparent belonged to an earlier one: a prepared statement keeps its
// comment, so that only its first Execute was sent by that parent.
func relation(f *trace.Finished) (context.Context, []sdktrace.Link) {
	ctx := context.Background()
	if f.Traceparent == "" {
		return ctx, nil
	}
	sc, ok := parent(f.Traceparent)
	switch {
	case !ok:
		return ctx, nil
	case f.TraceparentReused:
		return ctx, []sdktrace.Link{{SpanContext: sc}}
	}
	return oteltrace.ContextWithRemoteSpanContext(ctx, sc), nil
}

// spanName follows the conventions: the summary, else {operation} {target}.
func spanName(f *trace.Finished) string { return valid(nameOf(f)) }

func nameOf(f *trace.Finished) string {
	if f.Postgres.Summary != "" {
		return f.Postgres.Summary
	}
	target := f.Collection
	if target == "" {
		target = f.Database
	}
	switch {
	case f.Operation == "" && target == "":
		return system(f.Protocol).Value.AsString()
	case f.Operation == "":
		return target
	case target == "":
		return f.Operation
	}
	return f.Operation + " " + target
}

// status is Error if something that the client asked to be written was not, or
// nobody knows.
//
// A write whose concern was not met (ok: 1 with a writeConcernError, or a
// cancelled wait for standbys) keeps its status unset: the conventions want
// Error for an operation that failed, and this one took effect. They treat
// PostgreSQL's form of it (a warning of class 01) as no error, and MongoDB
// drivers' own spans, made of CommandSucceeded, are unset too. It carries
// wirewait.committed_not_replicated, an event of that name, and the code.
func status(f *trace.Finished) sdktrace.Status {
	switch {
	case f.Missing():
		return sdktrace.Status{Code: codes.Error, Description: "the connection ended before the reply"}
	case f.Failed():
		return sdktrace.Status{Code: codes.Error}
	}
	return sdktrace.Status{}
}

func (s *spans) wantsChildren(f *trace.Finished) bool {
	switch s.children {
	case ChildrenNever:
		return false
	case ChildrenAlways:
		return true
	}
	return f.Waits.Planned > 0 || f.Waits.Replication > 0
}

// addChildren adds request, server and reply, end to end. Without a reply there
// is a request only.
func (s *spans) addChildren(root *record, f *trace.Finished) {
	w := &f.Waits
	request, reply := &f.Sides[wire.ToServer], &f.Sides[wire.ToClient]
	at := root.start.Add(w.Receive)
	at = s.addChild(root, trace.PartRequest, at, w.Request, request)
	if reply.LastIn == 0 {
		return
	}
	at = s.addChild(root, trace.PartServer, at, w.Server+w.Replication, nil)
	s.addChild(root, trace.PartReply, at, w.Reply, reply)
}

// addChild adds one that begins at start, and returns where it ends. The delay
// is that of side; nil: none.
func (s *spans) addChild(root *record, name string, start time.Time, d time.Duration, side *wire.Side) time.Time {
	r := &record{
		ReadOnlySpan: s.template,
		name:         name,
		kind:         oteltrace.SpanKindInternal,
		context:      root.context.WithSpanID(newSpanID()),
		parent:       root.context,
		start:        start,
		end:          start.Add(d),
	}
	if side != nil && side.Planned > 0 && side.LastOut != 0 {
		r.attributes = []attribute.KeyValue{ms(keyPlanned, side.Planned), ms(keyAchieved, side.LastOut.Sub(side.LastIn))}
	}
	root.children++
	s.finished = append(s.finished, r)
	return r.end
}
