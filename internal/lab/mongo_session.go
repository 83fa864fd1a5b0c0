package lab

import (
	"fmt"
	"slices"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// sessions remember each client session's last retryable write, so that one
// which is sent again, because its acknowledgement got lost, isn't done twice.
type sessions struct {
	mu   sync.Mutex
	last map[string]*retryable // by lsid.id
}

type retryable struct {
	mu     sync.Mutex // held while the write runs: its retry waits for it
	number int64
	reply  bson.D // nil if the write failed as a whole
}

func newSessions() *sessions { return &sessions{last: map[string]*retryable{}} }

func (s *sessions) get(id string) *retryable {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.last[id]
	if r == nil {
		r = &retryable{number: -1}
		s.last[id] = r
	}
	return r
}

func sessionID(lsid bson.RawValue) string {
	doc, _ := lsid.DocumentOK()
	_, id, _ := doc.Lookup("id").BinaryOK()
	return string(id)
}

func (m *Mongo) endSessions(q *request) (bson.D, error) {
	ids, _ := q.body.Lookup("endSessions").ArrayOK()
	values, _ := ids.Values()
	m.sessions.mu.Lock()
	defer m.sessions.mu.Unlock()
	for _, v := range values {
		delete(m.sessions.last, sessionID(v))
	}
	return bson.D{}, nil
}

// writing wraps a write command with what all of them have: a write concern, an
// optime, and the memory for retries.
func writing(write func(*Mongo, *request) (bson.D, error)) func(*Mongo, *request) (bson.D, error) {
	return func(m *Mongo, q *request) (bson.D, error) {
		number, ok := q.body.Lookup("txnNumber").AsInt64OK()
		if !ok {
			return m.runWrite(q, write)
		}
		if m.clock == nil {
			return nil, &commandError{code: 20, name: "IllegalOperation",
				message: "Transaction numbers are only allowed on a replica set member or mongos"}
		}
		return m.runRetryable(q, number, write)
	}
}

func (m *Mongo) runRetryable(q *request, number int64, write func(*Mongo, *request) (bson.D, error)) (bson.D, error) {
	r := m.sessions.get(sessionID(q.body.Lookup("lsid")))
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case number < r.number:
		return nil, &commandError{code: 225, name: "TransactionTooOld",
			message: fmt.Sprintf("txnNumber %d is older than the session's %d", number, r.number)}
	case number == r.number && r.reply != nil:
		return r.reply, nil
	}
	reply, err := m.runWrite(q, write)
	// Clipped: what the caller appends must not end up in a later retry's reply.
	r.number, r.reply = number, slices.Clip(reply)
	return r.reply, err
}

func (m *Mongo) runWrite(q *request, write func(*Mongo, *request) (bson.D, error)) (bson.D, error) {
	if q.Collection == "" {
		return nil, badValue("%s needs a collection's name", q.Name)
	}
	nodes, isNumber := bson.Raw(q.WriteConcern.Raw).Lookup("w").AsInt64OK()
	if isNumber && nodes > 1 && m.clock == nil {
		return nil, badValue("cannot use 'w' > 1 when a host is not replicated")
	}
	reply, err := write(m, q)
	if err != nil || m.clock == nil {
		return reply, err
	}
	if isNumber && nodes > 1 {
		reply = append(reply, bson.E{Key: "writeConcernError", Value: bson.D{
			{Key: "code", Value: int32(100)},
			{Key: "codeName", Value: "UnsatisfiableWriteConcern"},
			{Key: "errmsg", Value: "Not enough data-bearing nodes"},
		}})
	}
	ts := m.clock.of(q)
	return append(reply, bson.E{Key: "opTime", Value: opTime(ts)}, bson.E{Key: "electionId", Value: electionID()}), nil
}
