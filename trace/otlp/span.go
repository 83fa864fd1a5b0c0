package otlp

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// spans makes the spans of writes. One goroutine uses it.
type spans struct {
	tracer   oteltrace.Tracer
	gate     *gate
	children Children
	scratch  []attribute.KeyValue
}

// write makes the span of one write, and its children:
//
//	|------------------ insert orders (CLIENT) ------------------|
//	  receive |--- request ---|--- server ---|------ reply ------|   (INTERNAL)
//
// Receive has no child: it is the stretch before the first one.
func (s *spans) write(f *trace.Finished) {
	c := f.Conn
	start := c.Time(trace.Start(f.Exchange))
	end := start.Add(f.Waits.Total)

	s.scratch = appendIdentity(s.scratch[:0], f)
	ctx, links := relation(f)
	ctx, span := s.tracer.Start(ctx, spanName(f),
		oteltrace.WithSpanKind(oteltrace.SpanKindClient),
		oteltrace.WithTimestamp(start),
		oteltrace.WithAttributes(s.scratch...),
		oteltrace.WithLinks(links...))
	if !span.SpanContext().IsSampled() {
		return
	}
	var room [3]child
	children := room[:0]
	if s.wantsChildren(f) {
		children = appendChildren(children, f, start)
	}
	if n := 1 + len(children); !s.gate.room(n) {
		s.gate.drop(n) // all of a write or nothing: half a tree misleads
		return
	}
	s.scratch = appendDetails(s.scratch[:0], f)
	span.SetAttributes(s.scratch...)
	setStatus(span, f)
	if f.Unreplicated() {
		span.AddEvent(eventUnreplicated, oteltrace.WithTimestamp(end.Add(-f.Waits.Reply)))
	}
	for i := range children {
		s.child(ctx, &children[i])
	}
	span.End(oteltrace.WithTimestamp(end))
}

// relation is the context with the write's parent, or the links of a write
// whose traceparent belonged to an earlier one: a prepared statement keeps its
// comment, so that only its first Execute was sent by that parent.
func relation(f *trace.Finished) (context.Context, []oteltrace.Link) {
	ctx := context.Background()
	if f.Traceparent == "" {
		return ctx, nil
	}
	sc, ok := parent(f.Traceparent)
	switch {
	case !ok:
		return ctx, nil
	case f.TraceparentReused:
		return ctx, []oteltrace.Link{{SpanContext: sc}}
	}
	return oteltrace.ContextWithRemoteSpanContext(ctx, sc), nil
}

// spanName follows the conventions: the summary, else {operation} {target}.
func spanName(f *trace.Finished) string {
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

// setStatus makes the span an error if something that the client asked to be
// written was not, or nobody knows.
//
// A write whose concern was not met (ok: 1 with a writeConcernError, or a
// cancelled wait for standbys) keeps its status unset: the conventions want
// Error for an operation that failed, and this one took effect. They treat
// PostgreSQL's form of it (a warning of class 01) as no error, and MongoDB
// drivers' own spans, made of CommandSucceeded, are unset too. It carries
// wirewait.committed_not_replicated, an event of that name, and the code.
func setStatus(span oteltrace.Span, f *trace.Finished) {
	switch {
	case f.Missing():
		span.SetStatus(codes.Error, "the connection ended before the reply")
	case f.Failed():
		span.SetStatus(codes.Error, "")
	}
}

type child struct {
	name       string
	start, end time.Time
	planned    time.Duration
	achieved   time.Duration
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

// appendChildren lists request, server and reply, end to end. Without a reply
// there is a request only.
func appendChildren(list []child, f *trace.Finished, start time.Time) []child {
	w := &f.Waits
	at := start.Add(w.Receive)
	add := func(name string, d time.Duration, side *wire.Side) {
		c := child{name: name, start: at, end: at.Add(d)}
		if side != nil && side.Planned > 0 && side.LastOut != 0 {
			c.planned, c.achieved = side.Planned, side.LastOut.Sub(side.LastIn)
		}
		list = append(list, c)
		at = c.end
	}
	add(trace.PartRequest, w.Request, &f.Sides[wire.ToServer])
	if f.Sides[wire.ToClient].LastIn == 0 {
		return list
	}
	add(trace.PartServer, w.Server+w.Replication, nil)
	add(trace.PartReply, w.Reply, &f.Sides[wire.ToClient])
	return list
}

func (s *spans) child(ctx context.Context, c *child) {
	_, span := s.tracer.Start(ctx, c.name, oteltrace.WithTimestamp(c.start))
	if c.planned > 0 {
		span.SetAttributes(ms(keyPlanned, c.planned), ms(keyAchieved, c.achieved))
	}
	span.End(oteltrace.WithTimestamp(c.end))
}
