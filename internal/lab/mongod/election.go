package mongod

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// meetTerm takes in a term that somebody speaks of. A newer one ends a primary's
// reign. Server.mu is held.
func (s *Server) meetTerm(term int64) {
	r := s.set
	if term <= r.term {
		return
	}
	r.term = term
	if r.state == statePrimary {
		s.stepDown()
	} else if r.primary >= 0 {
		s.losePrimary()
	}
}

// stepDown makes a primary a secondary: writes that wait learn it, and reads go
// on. Server.mu is held.
func (s *Server) stepDown() {
	r := s.set
	r.state, r.writable, r.primary = stateSecondary, false, -1
	r.heard = time.Now()
	for w := range r.waiters {
		delete(r.waiters, w)
		w.problem = steppedDown()
		close(w.done)
	}
	r.turned()
}

// electable reports whether this member may stand. Server.mu is held.
func (r *replication) electable() bool {
	me := r.config.members[r.self]
	return me.votes > 0 && me.priority > 0 && r.state == stateSecondary && time.Now().After(r.barred)
}

// elections watch over the primary: a secondary stands when none has been heard
// of for an election timeout, and some more by lot, so that two don't stand at
// once; a primary that hears no majority for as long steps down
// (src/mongo/db/repl/topology_coordinator.cpp).
func (s *Server) elections() {
	timeout := s.set.electionTimeout()
	tick := max(timeout/50, time.Millisecond)
	lot, notBefore := lots(timeout), time.Time{}
	for sleep(s.ctx, tick, nil) == nil && s.gate.pass(s.ctx) == nil {
		s.mu.Lock()
		r := s.set
		waited := time.Since(r.heard) > timeout+lot || r.config.voters() == 1
		stand := r.electable() && (waited || r.outranks(timeout)) && time.Now().After(notBefore)
		if r.state == statePrimary && !r.hearsMajority(timeout) {
			s.stepDown()
		}
		s.mu.Unlock()
		if stand {
			s.stand(s.ctx, false)
			lot = lots(timeout)
			notBefore = time.Now().Add(timeout/2 + lot)
		}
	}
}

// lots is up to 15 % of the timeout (electionTimeoutOffsetLimitFraction).
func lots(timeout time.Duration) time.Duration {
	return rand.N(timeout*15/100 + 1)
}

// outranks reports whether it's for this member to take over from a primary of
// lower priority: it has the highest of those that are up, and has all that the
// primary has. It waits for a while after an election, so as not to undo one
// that was asked for.
func (r *replication) outranks(timeout time.Duration) bool {
	if r.primary < 0 || r.primary == r.self || r.written.Before(r.peers[r.primary].written.OpTime) {
		return false
	}
	mine := r.config.members[r.self].priority
	for i, m := range r.config.members {
		if i != r.self && m.priority >= mine && r.peers[i].state != stateDown {
			return false
		}
	}
	return time.Since(r.since) > 2*timeout
}

func (r *replication) hearsMajority(timeout time.Duration) bool {
	n := r.config.members[r.self].votes
	for i, m := range r.config.members {
		if i != r.self && time.Since(r.peers[i].heard) < timeout {
			n += m.votes
		}
	}
	return n >= r.config.majority()
}

// stand asks for votes: first whether it would win, without a new term, so that
// one that can't doesn't disturb; then in earnest. It reports whether it has won.
func (s *Server) stand(ctx context.Context, skipDryRun bool) bool {
	s.mu.Lock()
	electable, term := s.set.electable(), s.set.term
	s.mu.Unlock()
	if !electable || !skipDryRun && !s.canvass(ctx, term, true) {
		return false
	}
	s.mu.Lock()
	if !s.set.electable() || s.set.term != term {
		s.mu.Unlock()
		return false
	}
	term++
	s.set.term = term
	voted := s.castVote(term, s.set.self)
	s.mu.Unlock()
	if !voted || !s.canvass(ctx, term, false) {
		return false
	}
	return s.win(term)
}

// castVote puts a vote on disk. Server.mu is held: it's rare, and nobody may
// vote meanwhile.
func (s *Server) castVote(term int64, candidate int) bool {
	b := ballot{term, candidate}
	if err := b.save(s.dir); err != nil {
		s.cancel(err)
		return false
	}
	s.set.vote = b
	return true
}

// canvass reports whether a majority is for this member.
func (s *Server) canvass(ctx context.Context, term int64, dryRun bool) bool {
	s.mu.Lock()
	r := s.set
	written := r.written.OpTime
	votes := r.config.members[r.self].votes
	s.mu.Unlock()
	command := bson.D{
		{Key: "replSetRequestVotes", Value: int32(1)}, {Key: "setName", Value: r.config.name}, {Key: "dryRun", Value: dryRun},
		{Key: "term", Value: term}, {Key: "candidateIndex", Value: int64(r.self)},
		{Key: "configVersion", Value: configVersion}, {Key: "configTerm", Value: configTerm},
		{Key: "lastWrittenOpTime", Value: wireOpTime(written)}, {Key: "lastAppliedOpTime", Value: wireOpTime(written)},
	}
	ctx, cancel := context.WithTimeout(ctx, r.electionTimeout())
	defer cancel()
	answers := make(chan int, len(r.config.members))
	var wg sync.WaitGroup
	for i, m := range r.config.members {
		if i != r.self && m.votes > 0 {
			wg.Go(func() { answers <- m.votes * s.askVote(ctx, i, command) })
		}
	}
	go func() {
		wg.Wait()
		close(answers)
	}()
	for n := range answers {
		if votes += n; votes >= r.config.majority() {
			break
		}
	}
	cancel()
	wg.Wait()
	return votes >= r.config.majority()
}

func (s *Server) askVote(ctx context.Context, to int, command bson.D) int {
	conn, err := s.dialPeer(ctx, to, driverHeartbeats, "")
	if err != nil {
		return 0
	}
	defer conn.close()
	reply, err := conn.call(ctx, s.set.electionTimeout(), s.gossiped(command[:len(command):len(command)], "admin"))
	if err != nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if term, ok := reply.Lookup("term").AsInt64OK(); ok {
		s.meetTerm(term)
	}
	if granted, _ := reply.Lookup("voteGranted").BooleanOK(); granted {
		return 1
	}
	return 0
}

// win makes this member primary: it finishes what it has fetched from the last
// one, and begins its term with an entry of its own.
func (s *Server) win(term int64) bool {
	s.mu.Lock()
	r := s.set
	if r.term != term || r.state != stateSecondary {
		s.mu.Unlock()
		return false
	}
	r.state, r.primary, r.source = statePrimary, r.self, -1
	r.turned()
	s.mu.Unlock()
	s.drain()
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.term != term || r.state != statePrimary {
		return false
	}
	s.reign(term)
	return true
}

// reign begins a term with this member as its primary. Server.mu is held.
func (s *Server) reign(term int64) {
	r := s.set
	r.state, r.primary, r.term, r.writable = statePrimary, r.self, term, true
	now := time.Now()
	for i := range r.peers {
		r.peers[i].heard = now // a majority has just voted
		r.peers[i].nudge.raise()
	}
	e := s.note("new primary")
	r.first, r.elected = e.OpTime, e.TS
	r.turned()
	s.moved(cause{r.self, viaSelf, now})
}

// note writes an entry that changes nothing. Server.mu is held.
func (s *Server) note(text string) *entry {
	o, err := bson.Marshal(bson.D{{Key: "msg", Value: text}})
	e := &entry{kind: "n", o: o}
	if err == nil {
		err = s.set.stamp(e)
	}
	if err != nil {
		s.cancel(err)
	}
	s.wrotePrimary(e)
	return e
}

// replSetRequestVotes gives a vote, or says why not
// (src/mongo/db/repl/topology_coordinator.cpp, processReplSetRequestVotes).
func (s *Server) replSetRequestVotes(q *request) (bson.D, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.set
	if r == nil {
		return nil, notReplicated()
	}
	term, candidate, dryRun := q.int64("term"), int(q.int64("candidateIndex")), q.bool("dryRun")
	if !dryRun {
		s.meetTerm(term)
	}
	written := readOpTime(q.body.Lookup("lastWrittenOpTime"))
	name, _ := q.body.Lookup("setName").StringValueOK()
	reason := ""
	switch {
	case candidate < 0 || candidate >= len(r.config.members) || r.config.members[r.self].votes == 0:
		reason = "candidate or voter is not in the configuration"
	case term < r.term:
		reason = "candidate's term is lower than mine"
	case name != r.config.name || q.int64("configVersion") != configVersion:
		reason = "candidate's set name or configuration differs from mine"
	case written.Before(r.written.OpTime):
		reason = "candidate's data is staler than mine"
	case !dryRun && r.vote.Term >= term && (r.vote.Term > term || r.vote.Candidate != candidate):
		reason = "already voted for another candidate this term"
	case dryRun && term == r.term && r.vouches(candidate):
		reason = "I can still see a healthy primary"
	case !dryRun && !s.castVote(term, candidate):
		reason = "my vote could not be written"
	}
	if reason == "" && !dryRun {
		r.heard = time.Now() // the winner gets its chance
	}
	return bson.D{{Key: "term", Value: r.term}, {Key: "voteGranted", Value: reason == ""}, {Key: "reason", Value: reason}}, nil
}

// vouches reports whether there is a primary that the candidate has no right to
// replace: of a priority not lower than the candidate's, and heard of lately.
func (r *replication) vouches(candidate int) bool {
	if r.primary < 0 || r.primary == candidate || time.Since(r.heard) > r.electionTimeout() && r.primary != r.self {
		return false
	}
	return r.config.members[r.primary].priority >= r.config.members[candidate].priority
}
