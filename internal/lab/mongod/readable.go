package mongod

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// awaitReadable refuses a read that this member must not answer, and waits until
// its data is as new as readConcern.afterClusterTime says.
func (s *Server) awaitReadable(q *request) error {
	level, _ := q.body.Lookup("readConcern", "level").StringValueOK()
	switch level {
	case "", "local", "available":
	case "majority", "linearizable", "snapshot":
		return notImplemented("read concern " + level)
	default:
		return failedToParse("unknown read concern level %q", level)
	}
	if s.set == nil {
		return nil
	}
	var after bson.Timestamp
	after.T, after.I, _ = q.body.Lookup("readConcern", "afterClusterTime").TimestampOK()
	var deadline <-chan time.Time
	if ms := q.int64("maxTimeMS"); ms > 0 {
		t := time.NewTimer(time.Duration(ms) * time.Millisecond)
		defer t.Stop()
		deadline = t.C
	}
	for {
		s.mu.Lock()
		readable, fresh := s.set.readable(q), !s.set.applied.TS.Before(after)
		changed := s.set.progress.next()
		s.mu.Unlock()
		switch {
		case !readable:
			return &commandError{code: codeNotSecondaryOk, name: "NotPrimaryNoSecondaryOk", message: "not primary and secondaryOk=false"}
		case fresh:
			return nil
		}
		select {
		case <-changed:
		case <-deadline:
			return &commandError{code: 50, name: "MaxTimeMSExpired", message: "operation exceeded time limit"}
		case <-s.ctx.Done():
			return s.ctx.Err()
		}
	}
}

// readable reports whether the client takes an answer from this member in the
// state in which it is.
func (r *replication) readable(q *request) bool {
	if r.writable {
		return true
	}
	mode, _ := q.body.Lookup("$readPreference", "mode").StringValueOK()
	return mode != "" && mode != "primary" && (r.state == stateSecondary || r.state == statePrimary)
}
