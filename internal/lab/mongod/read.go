package mongod

import (
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// amount reads an option that must not be negative; def if it isn't there.
func amount(body bson.Raw, name string, def int) (int, error) {
	v, err := body.LookupErr(name)
	if err != nil {
		return def, nil
	}
	n, ok := v.AsInt64OK()
	if !ok || n < 0 || n > 1<<31 {
		return 0, badValue("%s must be a number from 0", name)
	}
	return int(n), nil
}

func (s *Server) find(q *request) (bson.D, error) {
	if q.namespace() == oplogNamespace && s.set != nil {
		return s.findOplog(q)
	}
	if err := refuse(q.body, "tailable", "awaitData", "collation", "hint", "min", "max", "returnKey", "showRecordId"); err != nil {
		return nil, err
	}
	where, _ := q.body.Lookup("filter").DocumentOK()
	docs, err := s.query(q, where)
	if err != nil {
		return nil, err
	}
	shown, err := parseProjection(q.body.Lookup("projection"))
	if err == nil {
		docs, err = project(docs, shown)
	}
	if err != nil {
		return nil, err
	}
	size, err := amount(q.body, "batchSize", firstBatch)
	if err != nil {
		return nil, err
	}
	cur := &cursor{namespace: q.namespace(), docs: docs}
	batch := bson.A{}
	if _, err := q.body.LookupErr("batchSize"); err != nil || size > 0 { // 0 asks for the cursor alone
		batch = cur.batch(size)
	}
	if q.bool("singleBatch") {
		cur.docs = nil
	}
	return cursorReply(s.cursors.keep(0, cur), cur.namespace, "firstBatch", batch), nil
}

func cursorReply(id int64, namespace, name string, batch bson.A) bson.D {
	return bson.D{{Key: "cursor", Value: bson.D{
		{Key: name, Value: batch},
		{Key: "id", Value: id},
		{Key: "ns", Value: namespace},
	}}}
}

// query finds, sorts, skips and limits, by a command's options.
func (s *Server) query(q *request, where bson.Raw) ([]bson.Raw, error) {
	where, each, err := splitWhere(where)
	if err != nil {
		return nil, err
	}
	f, err := parseFilter(where)
	if err != nil {
		return nil, err
	}
	order, err := parseSort(q.body.Lookup("sort"))
	if err != nil {
		return nil, err
	}
	skip, err := amount(q.body, "skip", 0)
	if err != nil {
		return nil, err
	}
	limit, err := amount(q.body, "limit", 0)
	if err != nil {
		return nil, err
	}
	docs, err := s.matching(q, f, each)
	if err != nil {
		return nil, err
	}
	sortDocs(docs, order)
	return cut(docs, skip, limit), nil
}

// matching reads the data as it is, once that's as new as the request asks for,
// and takes its time for each document.
func (s *Server) matching(q *request, f filter, each time.Duration) ([]bson.Raw, error) {
	defer s.tookTime(q.Name, time.Now())
	if err := s.awaitReadable(q); err != nil {
		return nil, err
	}
	ctx, cancel := q.operation()
	defer cancel()
	done, err := s.admitRead(ctx, q)
	if err != nil {
		return nil, err
	}
	defer done()
	docs, err := s.matched(q, f)
	if err != nil {
		return nil, err
	}
	return docs, sleepEach(ctx, each, len(docs))
}

// matched are the documents that match now.
func (s *Server) matched(q *request, f filter) ([]bson.Raw, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set != nil && q.namespace() == "local.system.replset" { // where shells read the configuration
		raw, err := bson.Marshal(s.set.config.document())
		return []bson.Raw{raw}, err
	}
	return s.data[q.namespace()].find(f, 0), nil
}

// cut drops the first skip documents and keeps limit of the rest; 0: all.
func cut(docs []bson.Raw, skip, limit int) []bson.Raw {
	docs = docs[min(skip, len(docs)):]
	if limit > 0 {
		docs = docs[:min(limit, len(docs))]
	}
	return docs
}

func (s *Server) getMore(q *request) (bson.D, error) {
	id, ok := q.body.Lookup("getMore").AsInt64OK()
	size, err := amount(q.body, "batchSize", 0)
	if !ok || err != nil {
		return nil, badValue("getMore needs a cursor's id and a batchSize from 0")
	}
	cur := s.cursors.take(id, q.namespace())
	if cur == nil {
		return nil, &commandError{code: 43, name: "CursorNotFound", message: fmt.Sprintf("cursor id %d not found", id)}
	}
	if cur.tail != nil {
		return s.getMoreOplog(q, id, cur)
	}
	batch := cur.batch(size)
	id = s.cursors.keep(id, cur)
	q.awaits.over = id == 0
	return cursorReply(id, cur.namespace, "nextBatch", batch), nil
}

func (s *Server) killCursors(q *request) (bson.D, error) {
	array, _ := q.body.Lookup("cursors").ArrayOK()
	values, err := array.Values()
	if err != nil {
		return nil, failedToParse("cursors: %v", err)
	}
	killed, missing := bson.A{}, bson.A{}
	for _, v := range values {
		id, _ := v.AsInt64OK()
		if s.cursors.take(id, q.namespace()) != nil {
			killed = append(killed, id)
		} else {
			missing = append(missing, id)
		}
	}
	return bson.D{
		{Key: "cursorsKilled", Value: killed},
		{Key: "cursorsNotFound", Value: missing},
		{Key: "cursorsAlive", Value: bson.A{}},
		{Key: "cursorsUnknown", Value: bson.A{}},
	}, nil
}

func (s *Server) count(q *request) (bson.D, error) {
	where, _ := q.body.Lookup("query").DocumentOK()
	docs, err := s.query(q, where)
	if err != nil {
		return nil, err
	}
	return bson.D{{Key: "n", Value: int32(len(docs))}}, nil
}
