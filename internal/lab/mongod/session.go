package mongod

import (
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// sessions remember what each client session's last retryable write did, by
// lsid.id, so that one which is sent again, because its acknowledgement got lost
// or its primary did, isn't done twice. They are part of what the oplog adds up
// to, on every member. Server.mu guards them.
type sessions map[string]*sessionRecord

type sessionRecord struct {
	txnNumber int64
	done      map[int32]*entry // by statement
	image     bson.Raw         // what findAndModify answered with
}

// remember takes note of an entry that was applied.
func (s sessions) remember(e *entry, before, after bson.Raw) {
	if e.session == "" {
		return
	}
	r := s[e.session]
	if r == nil || r.txnNumber < e.txnNumber {
		r = &sessionRecord{txnNumber: e.txnNumber, done: map[int32]*entry{}}
		s[e.session] = r
	}
	for _, id := range e.stmtIDs {
		r.done[id] = e
	}
	switch e.image {
	case "preImage":
		r.image = before
	case "postImage":
		r.image = after
	}
}

func sessionID(lsid bson.RawValue) string {
	doc, _ := lsid.DocumentOK()
	_, id, _ := doc.Lookup("id").BinaryOK()
	return string(id)
}

// retry is a write's place among its session's.
type retry struct {
	session   string // empty: not a retryable write
	txnNumber int64
	record    *sessionRecord // nil: nothing of it was done yet
	stmtIDs   []int32        // as sent; nil: 0 and up
	repeated  []int32        // statements that were done the first time
}

// retryOf reads a write's session and finds what was done of it before.
func (s *Server) retryOf(q *request) (*retry, error) {
	number, ok := q.body.Lookup("txnNumber").AsInt64OK()
	if !ok {
		return &retry{}, nil
	}
	if s.set == nil {
		return nil, &commandError{code: 20, name: "IllegalOperation",
			message: "Transaction numbers are only allowed on a replica set member or mongos"}
	}
	r := &retry{session: sessionID(q.body.Lookup("lsid")), txnNumber: number}
	if r.session == "" {
		return nil, &commandError{code: 72, name: "InvalidOptions", message: "Transaction number may only be specified with a session"}
	}
	if record := s.sessions[r.session]; record != nil {
		if number < record.txnNumber {
			return nil, &commandError{code: 225, name: "TransactionTooOld",
				message: fmt.Sprintf("txnNumber %d is older than the session's %d", number, record.txnNumber)}
		}
		if number == record.txnNumber {
			r.record = record
		}
	}
	if r.stmtIDs = int32s(q.body.Lookup("stmtIds")); r.stmtIDs == nil {
		r.stmtIDs = int32s(q.body.Lookup("stmtId"))
	}
	return r, nil
}

// stmtID is that of a command's i-th statement.
func (r *retry) stmtID(i int) int32 {
	switch {
	case i < len(r.stmtIDs):
		return r.stmtIDs[i]
	case len(r.stmtIDs) > 0:
		return r.stmtIDs[0] + int32(i)
	}
	return int32(i)
}

// before is the entry of the i-th statement if that was done already.
func (r *retry) before(i int) *entry {
	if r.record == nil {
		return nil
	}
	e := r.record.done[r.stmtID(i)]
	if e != nil {
		r.repeated = append(r.repeated, r.stmtID(i))
	}
	return e
}

func (s *Server) endSessions(q *request) (bson.D, error) {
	ids, _ := q.body.Lookup("endSessions").ArrayOK()
	values, _ := ids.Values()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range values {
		delete(s.sessions, sessionID(v))
	}
	return bson.D{}, nil
}
