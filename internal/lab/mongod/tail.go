package mongod

import (
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

const (
	oplogNamespace = "local.oplog.rs"
	// awaitData is how long a getMore waits for new entries if it doesn't say.
	awaitData = time.Second
	// fetchBytes is about how much of the oplog goes into one reply.
	fetchBytes = 16_000_000
)

// tail is a tailable cursor's place in the oplog: the last entry that it has
// returned. One that a rollback takes away ends the cursor.
type tail struct {
	last      OpTime
	next      int
	rollbacks int32
}

// findOplog reads the oplog: from a timestamp on, in order, tailable or not; or
// all of it backwards ({$natural: -1}), as a rollback does to find where it and
// its source part.
func (s *Server) findOplog(q *request) (bson.D, error) {
	if err := s.checkOplogQuery(q); err != nil {
		return nil, err
	}
	var from bson.Timestamp
	from.T, from.I, _ = q.body.Lookup("filter", "ts", "$gte").TimestampOK()
	size, err := amount(q.body, "batchSize", firstBatch)
	if err != nil {
		return nil, err
	}
	limit, err := amount(q.body, "limit", 0)
	if err != nil {
		return nil, err
	}
	backwards := q.int64("sort", "$natural") < 0
	s.mu.Lock()
	log := s.set.oplog
	t := &tail{next: log.from(from), rollbacks: s.set.rollbacks}
	if t.next > 0 {
		t.last = log[t.next-1].OpTime
	}
	s.mu.Unlock()
	if q.bool("tailable") {
		batch, _, err := s.take(t, size, OpTime{})
		if err != nil {
			return nil, err
		}
		return cursorReply(s.cursors.keep(0, &cursor{namespace: oplogNamespace, tail: t}), oplogNamespace, "firstBatch", batch), nil
	}
	cur := &cursor{namespace: oplogNamespace}
	for _, e := range log[t.next:] {
		cur.docs = append(cur.docs, e.raw)
	}
	if backwards {
		slices.Reverse(cur.docs)
	}
	cur.docs = cut(cur.docs, 0, limit)
	batch := cur.batch(size)
	return cursorReply(s.cursors.keep(0, cur), oplogNamespace, "firstBatch", batch), nil
}

// checkOplogQuery refuses what findOplog would ignore.
func (s *Server) checkOplogQuery(q *request) error {
	if err := refuse(q.body, "projection", "collation", "hint", "skip"); err != nil {
		return err
	}
	where, _ := q.body.Lookup("filter").DocumentOK()
	elements, err := where.Elements()
	if err != nil && len(where) > 0 {
		return failedToParse("filter: %v", err)
	}
	for _, e := range elements {
		bound, _ := e.Value().DocumentOK()
		fields, _ := bound.Elements()
		if e.Key() != "ts" || len(fields) != 1 || fields[0].Key() != "$gte" {
			return notImplemented("a filter on the oplog other than {ts: {$gte: ...}}")
		}
	}
	return nil
}

// take returns the entries that a tail hasn't seen. Without any it returns what
// is closed when there's news: an entry, or a commit point that isn't known.
func (s *Server) take(t *tail, size int, known OpTime) (batch bson.A, news <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.set.settle(t) {
		return nil, nil, &commandError{code: 136, name: "CappedPositionLost", message: "the oplog was rolled back"}
	}
	batch = bson.A{}
	log, bytes := s.set.oplog, 0
	for t.next < len(log) && bytes < fetchBytes && (size == 0 || len(batch) < size) {
		e := log[t.next]
		batch = append(batch, e.raw)
		bytes += len(e.raw)
		t.last = e.OpTime
		t.next++
	}
	if len(batch) > 0 || known != (OpTime{}) && known.Before(s.set.committed.OpTime) {
		return batch, nil, nil
	}
	return batch, s.set.progress.next(), nil
}

// getMoreOplog waits for entries. A member that follows says which commit point
// it knows and gets an empty batch when that moves
// (src/mongo/db/commands/query_cmd/getmore_cmd.cpp).
func (s *Server) getMoreOplog(q *request, id int64, cur *cursor) (bson.D, error) {
	wait := awaitData
	if ms := q.int64("maxTimeMS"); ms > 0 {
		wait = time.Duration(ms) * time.Millisecond
	}
	size, err := amount(q.body, "batchSize", 0)
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(wait)
	for {
		batch, news, err := s.take(cur.tail, size, q.awaits.committed)
		if err != nil {
			return nil, err
		}
		if left := time.Until(deadline); news != nil && left > 0 {
			if err := sleep(q.connection.ctx, left, news); err != nil {
				return nil, err
			}
			continue
		}
		if q.awaits.committed != (OpTime{}) {
			s.mu.Lock()
			q.awaits.committed = s.set.committed.OpTime
			s.mu.Unlock()
		}
		return cursorReply(s.cursors.keep(id, cur), oplogNamespace, "nextBatch", batch), nil
	}
}

// settle finds a tail's place again after a rollback. It reports whether the
// entry that the tail returned last is still there.
func (r *replication) settle(t *tail) bool {
	if t.rollbacks == r.rollbacks {
		return true
	}
	t.next, t.rollbacks = r.oplog.from(t.last.TS), r.rollbacks
	if t.last == (OpTime{}) {
		return true
	}
	t.next++
	return r.oplog.has(t.last)
}
