package otlp

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// spans makes the spans of writes. One goroutine uses it; what it makes is used
// again for the next write.
type spans struct {
	sampler  sdktrace.Sampler
	gate     *gate
	children Children
	limits   limits
	// connections holds what all writes of one have in common. It is emptied
	// when it has grown to maxConnections.
	connections map[*trace.Conn]*sharedAttributes

	finished   []record // of one write: the root, then its children
	attributes []attribute.KeyValue
}

const maxConnections = 4096

// write makes the span of one write, and its children:
//
//	|------------------ insert orders (CLIENT) ------------------|
//	  receive |--- request ---|--- server ---|------ reply ------|   (INTERNAL)
//	                            |-- replicate s1 --|                 (INTERNAL)
//
// Receive has no child: it is the stretch before the first one.
func (s *spans) write(f *trace.Finished) {
	id, sampled := s.identify(f)
	if !sampled {
		return
	}
	s.make(f, id)
	s.gate.end(s.finished) // all of a write or nothing: half a tree misleads
}

// make fills s.finished.
func (s *spans) make(f *trace.Finished, id identity) {
	s.finished, s.attributes = s.finished[:0], s.attributes[:0]
	s.addRoot(f, id)
	if s.wantsChildren(f) {
		s.addChildren(f)
	}
}

func (s *spans) addRoot(f *trace.Finished, id identity) {
	start := f.Conn.Time(trace.Start(f.Exchange))
	r := record{
		name:    spanName(f),
		kind:    oteltrace.SpanKindClient,
		context: id.context,
		parent:  id.parent,
		links:   id.links,
		start:   start,
		end:     start.Add(f.Waits.Total),
		status:  status(f),
		shared:  s.connection(f.Conn),
	}
	s.attributes = appendWrite(s.attributes, f)
	r.attributes = s.limits.apply(s.attributes, len(r.shared.list))
	if f.Unreplicated() {
		r.events = []sdktrace.Event{{Name: eventUnreplicated, Time: r.end.Add(-f.Waits.Reply)}}
	}
	s.finished = append(s.finished, r)
}

func (s *spans) connection(c *trace.Conn) *sharedAttributes {
	shared := s.connections[c]
	if shared != nil {
		return shared
	}
	if s.connections == nil || len(s.connections) >= maxConnections {
		s.connections = make(map[*trace.Conn]*sharedAttributes)
	}
	shared = &sharedAttributes{list: s.limits.apply(connectionAttributes(c), 0)}
	s.connections[c] = shared
	return shared
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

// addChildren adds request, server and reply, end to end, and what members did
// during the server's part. Without a reply there
// is a request only.
func (s *spans) addChildren(f *trace.Finished) {
	w := &f.Waits
	request, reply := &f.Sides[wire.ToServer], &f.Sides[wire.ToClient]
	at := s.finished[0].start.Add(w.Receive)
	at = s.addChild(trace.PartRequest, at, w.Request, request)
	if reply.LastIn == 0 {
		return
	}
	at = s.addChild(trace.PartServer, at, w.Server+w.Replication, nil)
	s.addReplicas(f)
	s.addChild(trace.PartReply, at, w.Reply, reply)
}

// addChild adds one that begins at start, and returns where it ends. The delay
// is that of side; nil: none.
func (s *spans) addChild(name string, start time.Time, d time.Duration, side *wire.Side) time.Time {
	root := &s.finished[0]
	root.children++
	r := record{
		name:    name,
		kind:    oteltrace.SpanKindInternal,
		context: root.context.WithSpanID(newSpanID()),
		parent:  root.context,
		start:   start,
		end:     start.Add(d),
	}
	if side != nil && side.Planned > 0 && side.LastOut != 0 {
		n := len(s.attributes)
		s.attributes = append(s.attributes, ms(keyPlanned, side.Planned), ms(keyAchieved, side.LastOut.Sub(side.LastIn)))
		r.attributes = s.attributes[n:]
	}
	s.finished = append(s.finished, r)
	return r.end
}
