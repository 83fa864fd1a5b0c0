package mongod

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// admission is what an operation waits for before it's done.
//
//	request --> flow control --> ticket, or the queue --> work --> done --> write concern
//	            (writes of clients)    <-- ticket given back
//	|<------------------ maxTimeMS ----------------->|
type admission struct {
	writes, reads tickets
	flow          flowControl
	documents     documentLocks

	writeConflicts          atomic.Int64
	readOps, writeOps       atomic.Int64 // with their times, write concerns included
	readMicros, writeMicros atomic.Int64
}

// operation is a context that ends when the client's time for the request is
// over, which begins when it came (src/mongo/db/service_entry_point_common.cpp
// computes the deadline before anything else is done).
func (q *request) operation() (context.Context, context.CancelFunc) {
	ms := q.int64("maxTimeMS")
	if ms <= 0 || q.Name == "getMore" {
		return q.connection.ctx, func() {}
	}
	return context.WithDeadline(q.connection.ctx, q.arrived.Add(time.Duration(ms)*time.Millisecond))
}

// whyEnded is the error of an operation whose context has ended.
func whyEnded(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &commandError{code: 50, name: "MaxTimeMSExpired", message: "operation exceeded time limit"}
	}
	return &commandError{code: 11600, name: "InterruptedAtShutdown", message: "interrupted at shutdown"}
}

// admitWrite returns once a write may be done: flow control lets it, it has a
// ticket, and its work is over. done gives the ticket back.
func (s *Server) admitWrite(q *request) (done func(), err error) {
	if q.connection.internal.Load() {
		return func() {}, nil
	}
	ctx, cancel := q.operation()
	defer cancel()
	if err := s.admission.flow.take(ctx); err != nil {
		return nil, whyEnded(err)
	}
	for {
		if err := s.admission.writes.take(ctx); err != nil {
			return nil, whyEnded(err)
		}
		since := time.Now()
		unlock, free := s.admission.documents.lock(q.changes(s.options.Engine.WriteWork))
		if free == nil {
			give := func() {
				unlock()
				s.admission.writes.give(since)
			}
			if err := sleep(ctx, s.options.Engine.WriteWork, nil); err != nil {
				give()
				return nil, whyEnded(err)
			}
			return give, nil
		}
		// Another changes the document: this one begins anew, without its ticket
		// meanwhile (src/mongo/db/concurrency/exception_util.h, and the yield of
		// src/mongo/db/query/plan_yield_policy.cpp).
		s.admission.writeConflicts.Add(1)
		s.admission.writes.give(since)
		select {
		case <-free:
		case <-ctx.Done():
			return nil, whyEnded(ctx.Err())
		}
	}
}

// changes names the document that an update or a delete of one _id changes, if
// the work takes time; empty: it has none to compete for.
func (q *request) changes(work time.Duration) string {
	if work <= 0 {
		return ""
	}
	where := q.body.Lookup("query", "_id") // findAndModify's
	for _, list := range []string{"updates", "deletes"} {
		if v := q.body.Lookup(list, "0", "q", "_id"); v.Type != 0 {
			where = v
		}
	}
	if where.Type == 0 {
		return ""
	}
	return q.namespace() + "\x00" + idKey(where)
}

// admitRead is the same for a read, which waits for a ticket alone.
func (s *Server) admitRead(ctx context.Context, q *request) (done func(), err error) {
	if q.connection.internal.Load() {
		return func() {}, nil
	}
	if err := s.admission.reads.take(ctx); err != nil {
		return nil, whyEnded(err)
	}
	since := time.Now()
	return func() { s.admission.reads.give(since) }, nil
}

// tookTime counts an operation for opLatencies.
func (s *Server) tookTime(name string, since time.Time) {
	ops, micros := &s.admission.readOps, &s.admission.readMicros
	switch name {
	case "insert", "update", "delete", "findAndModify", "findandmodify", "bulkWrite":
		ops, micros = &s.admission.writeOps, &s.admission.writeMicros
	case "find", "getMore", "aggregate", "count":
	default:
		return
	}
	ops.Add(1)
	micros.Add(time.Since(since).Microseconds())
}

// ticketsStatus is a pool of tickets as serverStatus shows it, with its queue from
// 7.0 on (src/mongo/db/admission/queues_server_status_section.cpp).
func ticketsStatus(t *tickets, queue bool) bson.D {
	n := t.now()
	d := bson.D{{Key: "out", Value: int32(n.out)}, {Key: "available", Value: int32(n.total - n.out)}, {Key: "totalTickets", Value: int32(n.total)}}
	if !queue {
		return d
	}
	return append(d, bson.E{Key: "normalPriority", Value: bson.D{
		{Key: "addedToQueue", Value: n.addedToQueue}, {Key: "removedFromQueue", Value: n.removedFromQueue},
		{Key: "queueLength", Value: int64(n.waiting)}, {Key: "startedProcessing", Value: n.started},
		{Key: "processing", Value: int64(n.out)}, {Key: "finishedProcessing", Value: n.finished},
		{Key: "totalTimeProcessingMicros", Value: n.processing.Microseconds()}, {Key: "canceled", Value: n.canceled},
		{Key: "newAdmissions", Value: n.started}, {Key: "totalTimeQueuedMicros", Value: n.queued.Microseconds()},
	}})
}
