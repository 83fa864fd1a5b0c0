package mongod

import (
	"bufio"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// connection is a client's.
type connection struct {
	net.Conn
	id       int64
	ctx      context.Context // ends with the server, or when the client is seen to have gone
	cancel   context.CancelFunc
	internal atomic.Bool // of another member: its hello had internalClient
}

// converse answers one connection until it ends. Like a server it answers one
// request after the other, and closes the connection on a malformed one.
func (s *Server) converse(c *connection) {
	defer func() {
		c.cancel()
		c.Close()
		s.connections.Lock()
		delete(s.open, c)
		s.connections.Unlock()
	}()
	r := bufio.NewReader(c)
	for {
		m, err := s.codec.read(r)
		if err != nil || s.gate.pass(s.ctx) != nil {
			return
		}
		q, err := newRequest(m, c)
		if err != nil {
			return
		}
		awaited := q.readAwait()
		var watching sync.WaitGroup
		if awaited {
			watching.Go(func() { c.watch(r) })
		}
		if s.respond(q, awaited) != nil {
			c.Close() // ends the watch
			watching.Wait()
			return
		}
		watching.Wait() // for the next request, for which there is nothing to do but wait
	}
}

// watch ends the connection's context when the client goes away while a request
// of its waits for news, as a server does (markKillOnClientDisconnect in
// src/mongo/db/operation_context.h). It returns when there's more to read.
func (c *connection) watch(r *bufio.Reader) {
	if _, err := r.Peek(1); err != nil {
		c.cancel()
	}
}

// respond answers a request: once, never (w: 0), or, where the client allows it,
// again and again, each time as if the answer before had been the request
// (src/mongo/transport/session_workflow.cpp).
func (s *Server) respond(q *request, awaited bool) error {
	for {
		reply, problem := s.answer(q)
		if s.options.ServerDelay != nil && !awaited {
			if err := sleep(s.ctx, s.options.ServerDelay(q.Command), nil); err != nil {
				return err
			}
		}
		if q.NoReply {
			// A primary that has become none can tell so in no other way
			// (src/mongo/transport/session_workflow.cpp).
			if problem != nil && problem.code == codeNotWritablePrimary {
				return net.ErrClosed
			}
			return nil
		}
		more := problem == nil && awaited && q.exhaust() && !q.awaits.over
		if err := s.gate.pass(s.ctx); err != nil {
			return err
		}
		id, err := s.send(q.connection, q.message.reply(more), reply)
		if err != nil || !more {
			return err
		}
		q.id = id
	}
}

func (s *Server) send(c net.Conn, f frame, doc bson.D) (id int32, err error) {
	raw, err := bson.Marshal(doc)
	if err != nil {
		return 0, err
	}
	b, id, err := s.codec.encode(f, raw)
	if err != nil {
		return 0, err
	}
	_, err = c.Write(b)
	return id, err
}

// answer runs a command and gives its reply the fields that all replies have.
func (s *Server) answer(q *request) (bson.D, *commandError) {
	reply, err := s.dispatch(q)
	var problem *commandError
	if err != nil {
		problem = asCommandError(err)
		reply = append(errorReply(problem), s.whyNot(q, problem.code)...)
	} else {
		reply = append(reply, bson.E{Key: "ok", Value: 1.0})
		if code := concernCode(reply); isRetriable(code) && q.isRetryable() {
			reply = append(reply, bson.E{Key: "errorLabels", Value: bson.A{"RetryableWriteError"}})
		}
	}
	if s.set == nil {
		return reply, problem
	}
	return append(reply, s.gossip(q)...), problem
}

// isRetryable reports whether the request is a retryable write.
func (q *request) isRetryable() bool {
	_, err := q.body.LookupErr("txnNumber")
	return err == nil
}

// concernCode is that of the reply's writeConcernError, 0 if there is none.
func concernCode(reply bson.D) int32 {
	for _, e := range reply {
		if problem, ok := e.Value.(bson.D); ok && e.Key == "writeConcernError" {
			code, _ := problem[0].Value.(int32)
			return code
		}
	}
	return 0
}

// whyNot are an error's further fields: the label without which drivers don't
// send a write again (src/mongo/db/error_labels.cpp), and, if this member's state
// is the reason, the topologyVersion by which they know whether it's news.
func (s *Server) whyNot(q *request, code int32) (d bson.D) {
	if s.set == nil {
		return nil
	}
	if isRetriable(code) && q.isRetryable() {
		d = append(d, bson.E{Key: "errorLabels", Value: bson.A{"RetryableWriteError"}})
	}
	if code == codeNotWritablePrimary || code == codeNotSecondaryOk || code == codePrimarySteppedDown {
		s.mu.Lock()
		d = append(d, bson.E{Key: "topologyVersion", Value: s.topologyVersion()})
		s.mu.Unlock()
	}
	return d
}

// gossip is what ends every reply of a set's member, and what it asked for with
// $replData and $oplogQueryData. A server without authentication signs with
// zeros; among themselves members don't sign.
func (s *Server) gossip(q *request) bson.D {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.set
	var d bson.D
	if q.int64("$replData") == 1 {
		d = append(d, bson.E{Key: "$replData", Value: r.metadata()})
	}
	if q.int64("$oplogQueryData") == 1 {
		d = append(d, bson.E{Key: "$oplogQueryData", Value: r.oplogMetadata()})
	}
	cluster := bson.D{{Key: "clusterTime", Value: r.written.TS}}
	if !q.connection.internal.Load() {
		cluster = append(cluster, bson.E{Key: "signature", Value: bson.D{
			{Key: "hash", Value: bson.Binary{Data: make([]byte, 20)}},
			{Key: "keyId", Value: int64(0)},
		}})
	}
	operation := q.wrote.TS
	if operation.IsZero() {
		operation = r.applied.TS
	}
	return append(d, bson.E{Key: "$clusterTime", Value: cluster}, bson.E{Key: "operationTime", Value: operation})
}

// awaiting is what a request says of the news that it waits for.
type awaiting struct {
	wait      time.Duration
	version   int64 // of the topology that it knows; -1: of another process, or none
	committed OpTime
	over      bool // no news can come after the next answer
}

// readAwait reports whether the request is one that waits for news: a hello with
// the topologyVersion that an earlier one was answered with
// (specifications/source/server-discovery-and-monitoring/server-monitoring.md),
// or a getMore.
func (q *request) readAwait() bool {
	q.awaits.wait = time.Duration(q.int64("maxAwaitTimeMS")) * time.Millisecond
	switch q.Name {
	case "hello", "isMaster", "ismaster":
		_, ok := q.body.Lookup("topologyVersion").DocumentOK()
		return ok
	case "getMore":
		q.awaits.committed = readOpTime(q.body.Lookup("lastKnownCommittedOpTime"))
		return true
	}
	return false
}
