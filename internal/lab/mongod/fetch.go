package mongod

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

const (
	// fetchPause is before another source is looked for.
	fetchPause = 100 * time.Millisecond
	// fetchBuffer is how much later than asked a batch may come
	// (oplogNetworkTimeoutBufferSeconds).
	fetchBuffer = 5 * time.Second
)

// syncs keep a secondary up with a source: one that is chosen anew whenever it
// fails, or there's a better one.
func (s *Server) syncs() {
	for s.gate.pass(s.ctx) == nil {
		s.mu.Lock()
		source := s.set.chooseSource(time.Now())
		s.set.source = source
		topology, progress := s.set.topology.next(), s.set.progress.next()
		s.mu.Unlock()
		if source < 0 {
			// Nobody to follow, or nobody needed: this one is primary.
			select {
			case <-topology:
			case <-progress:
			case <-time.After(fetchPause):
			case <-s.ctx.Done():
			}
			continue
		}
		s.syncFrom(source)
		if sleep(s.ctx, fetchPause, nil) != nil {
			return
		}
	}
}

// syncFrom follows a source until that is no good any more.
func (s *Server) syncFrom(source int) {
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.reports(ctx, source)
	}()
	err := s.fetch(ctx, source)
	cancel()
	<-done
	if errors.Is(err, errDiverged) {
		err = s.rollBack(source)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set.state != statePrimary {
		s.set.source = -1
	}
	if err != nil {
		s.set.peers[source].avoid = time.Now().Add(fetchPause)
	}
}

// Reasons to leave a source.
var (
	errDiverged = errors.New("the source's history is another")
	errBehind   = errors.New("the source is behind")
	errBetter   = errors.New("there is a better source")
)

// fetch reads a source's oplog from this member's last entry on: a find, then a
// single getMore that is answered again and again
// (src/mongo/db/repl/oplog_fetcher.cpp).
func (s *Server) fetch(ctx context.Context, source int) error {
	conn, err := s.dialPeer(ctx, source, driverFetcher, appFetcher)
	if err != nil {
		return err
	}
	defer conn.close()
	s.mu.Lock()
	last := s.fetched()
	s.mu.Unlock()
	reply, err := conn.call(ctx, time.Minute+fetchBuffer, s.firstFetch(last))
	if err != nil {
		return fmt.Errorf("find in the oplog: %w", err)
	}
	entries, id, err := readBatch(reply, "firstBatch")
	if err == nil {
		err = s.compare(last, entries, reply)
	}
	if err == nil {
		err = s.fetchedBatch(ctx, source, entries[1:], reply)
	}
	if err != nil {
		return err
	}
	return s.fetchMore(ctx, conn, source, id)
}

// fetchMore takes in batch after batch. It returns with what ends that.
func (s *Server) fetchMore(ctx context.Context, conn *peerConn, source int, id int64) error {
	wait := min(s.set.electionTimeout()/2, 30*time.Second)
	for more := false; ; {
		if !more {
			if err := conn.send(ctx, s.nextFetch(id, wait), flagExhaust); err != nil {
				return err
			}
		}
		var reply bson.Raw
		var err error
		if reply, more, err = conn.receive(wait + fetchBuffer); err != nil {
			return err
		}
		if err := s.gate.pass(ctx); err != nil {
			return err
		}
		entries, next, err := readBatch(reply, "nextBatch")
		if err == nil {
			err = s.fetchedBatch(ctx, source, entries, reply)
		}
		if err != nil {
			return err
		}
		if id = next; id == 0 {
			return errors.New("the source closed the cursor")
		}
	}
}

// fetched is the last entry that was fetched, written or not. Server.mu is held.
func (s *Server) fetched() OpTime {
	if n := len(s.inbox.waiting); n > 0 {
		return s.inbox.waiting[n-1].OpTime
	}
	return s.set.written.OpTime
}

func (s *Server) firstFetch(last OpTime) bson.D {
	s.mu.Lock()
	term := s.set.term
	s.mu.Unlock()
	return s.gossiped(bson.D{
		{Key: "find", Value: "oplog.rs"},
		{Key: "filter", Value: bson.D{{Key: "ts", Value: bson.D{{Key: "$gte", Value: last.TS}}}}},
		{Key: "batchSize", Value: int32(13981010)}, {Key: "tailable", Value: true}, {Key: "awaitData", Value: true},
		{Key: "term", Value: term}, {Key: "maxTimeMS", Value: int32(60_000)},
		{Key: "readConcern", Value: bson.D{{Key: "level", Value: "local"}, {Key: "afterClusterTime", Value: bson.Timestamp{I: 1}}}},
		{Key: "$replData", Value: int32(1)}, {Key: "$oplogQueryData", Value: int32(1)},
		{Key: "$readPreference", Value: bson.D{{Key: "mode", Value: "secondaryPreferred"}}},
	}, "local")
}

func (s *Server) nextFetch(id int64, wait time.Duration) bson.D {
	s.mu.Lock()
	term, committed := s.set.term, s.set.committed.OpTime
	s.mu.Unlock()
	return s.gossiped(bson.D{
		{Key: "getMore", Value: id}, {Key: "collection", Value: "oplog.rs"}, {Key: "batchSize", Value: int32(13981010)},
		{Key: "maxTimeMS", Value: int32(wait.Milliseconds())}, {Key: "term", Value: term},
		{Key: "lastKnownCommittedOpTime", Value: wireOpTime(committed)},
		{Key: "$replData", Value: int32(1)}, {Key: "$oplogQueryData", Value: int32(1)},
	}, "local")
}

func readBatch(reply bson.Raw, name string) (entries []*entry, id int64, err error) {
	id, _ = reply.Lookup("cursor", "id").AsInt64OK()
	array, ok := reply.Lookup("cursor", name).ArrayOK()
	values, err := array.Values()
	if !ok || err != nil {
		return nil, 0, errors.New("a reply without a batch")
	}
	for _, v := range values {
		doc, _ := v.DocumentOK()
		e, err := parseEntry(doc)
		if err != nil {
			return nil, 0, err
		}
		entries = append(entries, e)
	}
	return entries, id, nil
}

// compare checks that the source has this member's last entry.
func (s *Server) compare(last OpTime, entries []*entry, reply bson.Raw) error {
	if len(entries) > 0 && entries[0].OpTime == last {
		return nil
	}
	if written := readOpTime(reply.Lookup("$oplogQueryData", "lastOpWritten")); written.Before(last) {
		return errBehind
	}
	return errDiverged
}

// fetchedBatch takes in a batch, once there's room for it.
func (s *Server) fetchedBatch(ctx context.Context, source int, entries []*entry, reply bson.Raw) error {
	s.learn(reply, true)
	now := time.Now()
	for {
		s.mu.Lock()
		full, changed := s.inbox.bytes > queueBytes, s.inbox.changed.next()
		if !full {
			err := s.takeBatch(source, entries, reply, now)
			s.mu.Unlock()
			return err
		}
		s.mu.Unlock()
		if err := sleep(ctx, time.Minute, changed); err != nil {
			return err
		}
	}
}

func (s *Server) takeBatch(source int, entries []*entry, reply bson.Raw, now time.Time) error {
	r := s.set
	if r.state == statePrimary {
		return errBetter
	}
	p := &r.peers[source]
	p.heard = now
	if source == r.primary {
		r.heard = now
	}
	p.source, _ = reply.Lookup("$oplogQueryData", "syncSourceHost").StringValueOK()
	if len(entries) > 0 {
		last := s.fetched()
		if !last.TS.Before(entries[0].TS) {
			return errDiverged
		}
		s.inbox.add(entries, now)
	}
	if better := r.betterSource(source, now); better {
		return errBetter
	}
	return nil
}
