package mongod

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// replSetStepDown makes a primary step down, once a majority and a member that
// may follow it have all that it has written; and tells that one to stand, so
// that there's a primary again at once ("election handoff"; since 4.2 no
// connection is closed over it).
func (s *Server) replSetStepDown(q *request) (bson.D, error) {
	period := time.Duration(q.int64("replSetStepDown")) * time.Second
	if period <= 0 {
		period = time.Minute
	}
	patience := 10 * time.Second
	if q.bool("force") { // src/mongo/db/repl/repl_set_commands.cpp, CmdReplSetStepDown
		patience = 0
	}
	if v, err := q.body.LookupErr("secondaryCatchUpPeriodSecs"); err == nil {
		secs, _ := v.AsInt64OK()
		patience = time.Duration(secs) * time.Second
	}
	if period < patience {
		return nil, badValue("stepdown period must be longer than secondaryCatchUpPeriodSecs")
	}
	term, err := s.beginStepDown()
	if err != nil {
		return nil, err
	}
	heir := s.awaitHeir(patience)
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.set
	switch {
	case r.state != statePrimary || r.term != term:
		return bson.D{}, nil // a new term did it
	case heir < 0 && !q.bool("force"):
		r.writable = true
		r.turned()
		return nil, &commandError{code: 262, name: "ExceededTimeLimit", message: "No electable secondaries caught up. Please use the replSetStepDown command with the argument {force: true} to force node to step down."}
	}
	s.stepDown()
	r.barred = time.Now().Add(period)
	if heir >= 0 {
		s.wg.Go(func() { s.handOver(heir) })
	}
	return bson.D{}, nil
}

// beginStepDown lets no more writes in.
func (s *Server) beginStepDown() (term int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set == nil {
		return 0, notReplicated()
	}
	if !s.set.writable {
		return 0, notWritablePrimary()
	}
	s.set.writable = false
	s.set.turned()
	return s.set.term, nil
}

// awaitHeir waits until a majority has all and an electable member is among it;
// -1: none was in time.
func (s *Server) awaitHeir(patience time.Duration) int {
	deadline := time.Now().Add(patience)
	for {
		s.mu.Lock()
		heir := s.set.heir()
		s.mu.Unlock()
		if heir >= 0 || time.Now().After(deadline) || sleep(s.ctx, time.Millisecond, nil) != nil {
			return heir
		}
	}
}

func (r *replication) heir() int {
	best, votes := -1, r.config.members[r.self].votes
	for i, m := range r.config.members {
		p := r.peers[i]
		if i == r.self || p.state == stateDown || p.written.Before(r.written.OpTime) {
			continue
		}
		votes += m.votes
		if m.priority > 0 && p.electable && (best < 0 || m.priority > r.config.members[best].priority) {
			best = i
		}
	}
	if votes < r.config.majority() {
		return -1
	}
	return best
}

// handOver tells a member to stand. If it doesn't win, there will be an election
// when its time has come.
func (s *Server) handOver(to int) {
	ctx, cancel := context.WithTimeout(s.ctx, s.set.electionTimeout())
	defer cancel()
	conn, err := s.dialPeer(ctx, to, driverReports, "")
	if err != nil {
		return
	}
	defer conn.close()
	_, _ = conn.call(ctx, s.set.electionTimeout(), s.gossiped(bson.D{
		{Key: "replSetStepUp", Value: int32(1)}, {Key: "skipDryRun", Value: true}}, "admin"))
}

// replSetStepUp makes this member stand for election.
func (s *Server) replSetStepUp(q *request) (bson.D, error) {
	if s.set == nil {
		return nil, notReplicated()
	}
	if !s.stand(s.ctx, q.bool("skipDryRun")) {
		return nil, &commandError{code: 125, name: "CommandFailed", message: "Election failed."}
	}
	return bson.D{}, nil
}
