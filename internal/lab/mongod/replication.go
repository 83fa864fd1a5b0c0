package mongod

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Member states, as on the wire (src/mongo/db/repl/member_state.h).
const (
	statePrimary   = 1
	stateSecondary = 2
	stateUnknown   = 6
	stateDown      = 8
	stateRollback  = 9
)

// replication is what a member knows of its set and of itself. Server.mu guards
// it.
type replication struct {
	config *config
	self   int // this member's place in config.members

	state    int
	writable bool // a primary that has finished its election, and isn't stepping down
	term     int64
	primary  int // its place; -1: unknown
	vote     ballot
	elected  bson.Timestamp // when this member last became primary
	since    time.Time      // it has been as it is: when hello's answer last changed
	first    OpTime         // of this term, on the primary
	barred   time.Time      // no candidate before then: it stepped down
	heard    time.Time      // of a primary

	oplog     oplog
	position  // this member's own
	committed mark
	peers     []peer    // by place; this member's own is unused
	source    int       // where the oplog comes from; -1: nowhere
	rollbacks int32     // rollback id
	hour      time.Time // in which the source was changed for a nearer one
	changes   int       // so many times

	version  int64  // topologyVersion's counter
	topology notice // version changed
	progress notice // the oplog grew, or the commit point moved
	reports  notice // there is something to report to the source
	stale    bool   // as yet unreported
	urgent   bool   // as yet unreported, and lastDurable among it

	waiters map[*waiter]struct{}
}

// peer is what a member knows of another.
type peer struct {
	position
	state     int // stateDown: no answer
	term      int64
	heard     time.Time // of it, in whatever way
	ping      time.Duration
	source    string // syncingTo
	electable bool
	nudge     notice    // a heartbeat is wanted at once
	avoid     time.Time // not to be followed before then
}

func newReplication(c *config, self int) *replication {
	r := &replication{config: c, self: self, state: stateSecondary, primary: -1, source: -1, version: 1,
		heard: time.Now(), vote: ballot{Candidate: -1}, waiters: map[*waiter]struct{}{}, peers: make([]peer, len(c.members))}
	for i := range r.peers {
		r.peers[i].state = stateUnknown
	}
	return r
}

// turned says that hello's answer is another now.
func (r *replication) turned() {
	r.since = time.Now()
	r.version++
	r.topology.raise()
}

// positionOf is a member's, this one's included.
func (r *replication) positionOf(i int) position {
	if i == r.self {
		return r.position
	}
	return r.peers[i].position
}

// stamp gives a primary's new entry its optime: seconds, and a counter within
// each, ever upward.
func (r *replication) stamp(e *entry) error {
	now := time.Now()
	e.TS = bson.Timestamp{T: uint32(now.Unix()), I: 1}
	if last := r.written.TS; !e.TS.After(last) {
		e.TS = bson.Timestamp{T: last.T, I: last.I + 1}
	}
	e.T, e.wall = r.term, now
	return e.encode()
}

// wrotePrimary takes in an entry that the primary has just made and applied.
// Server.mu is held.
func (s *Server) wrotePrimary(e *entry) {
	r := s.set
	r.oplog = append(r.oplog, e)
	r.written, r.applied = e.mark, e.mark
	if !s.journal.append(e) {
		r.durable = e.mark
	}
	s.moved(cause{r.self, viaSelf, time.Now()})
	r.progress.raise()
}

// durable takes in that the journal has reached the disk.
func (s *Server) durable(m mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := time.Now()
	if !s.set.durable.upTo(m) {
		return
	}
	s.truth.durable(m.OpTime, at)
	s.report(true)
	s.moved(cause{s.set.self, viaSelf, at})
}

// report notes that this member has something to tell its source.
func (s *Server) report(urgent bool) {
	s.set.stale = true
	s.set.urgent = s.set.urgent || urgent
	s.set.reports.raise()
}

// Ways in which a member's position comes to another.
const (
	viaSelf      = "self"
	viaReport    = "replSetUpdatePosition"
	viaHeartbeat = "replSetHeartbeat"
)

// cause is whose progress it is that something came of.
type cause struct {
	member int
	via    string
	at     time.Time
}

// moved does what follows from a position that has moved: the commit point, and
// the waiters that have waited for it.
func (s *Server) moved(c cause) {
	if s.set.state != statePrimary {
		return
	}
	s.advanceCommit()
	s.release(c)
}

// advanceCommit finds what a majority of the voters has on disk
// (src/mongo/db/repl/topology_coordinator.cpp,
// updateLastCommittedOpTimeAndWallTime): only entries of the primary's own term
// commit, and with them all before.
func (s *Server) advanceCommit() {
	r := s.set
	var marks []mark
	for i, m := range r.config.members {
		if m.votes > 0 {
			marks = append(marks, r.positionOf(i).durable)
		}
	}
	m := majorityOf(marks, r.config.majority())
	if m.T != r.term || m.Before(r.first) {
		return
	}
	if r.committed.upTo(m) {
		r.progress.raise()
	}
}

// learnCommit takes the commit point from another member. From the source, whose
// history this one's is known to be part of, no further than this one has got; from
// anyone else only in the term of its own last entry, which may otherwise be one
// that never commits (src/mongo/db/repl/topology_coordinator.cpp,
// advanceLastCommittedOpTimeAndWallTime).
func (r *replication) learnCommit(m mark, fromSource bool) {
	if r.state == statePrimary || !fromSource && m.T != r.written.T {
		return
	}
	if r.written.Before(m.OpTime) {
		m = r.written
	}
	if r.committed.upTo(m) {
		r.progress.raise()
	}
}

// waiter is a write that waits for its concern.
type waiter struct {
	last    OpTime
	concern concern
	since   time.Time
	done    chan struct{} // closed when problem is final
	problem bson.D        // nil: the concern was met
}

// waitFor begins to wait for a write's concern, if there is something to wait for;
// else the waiter is done at once. Server.mu is held.
func (s *Server) waitFor(last OpTime, c concern, replies bool) *waiter {
	r := s.set
	w := &waiter{last: last, concern: c, since: time.Now(), done: make(chan struct{})}
	switch {
	case !replies || c.own() && (!c.journal || c.members == 0):
	case r.config.cannot(c) != nil:
		w.problem = r.config.cannot(c)
	case r.met(w):
		s.truth.released(w, nil)
	default:
		r.waiters[w] = struct{}{}
		return w
	}
	close(w.done)
	return w
}

// giveUp reports whether it was too late to: the waiter is done.
func (s *Server) giveUp(w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, waits := s.set.waiters[w]
	delete(s.set.waiters, w)
	return !waits
}

// met reports whether a waiter's concern holds.
func (r *replication) met(w *waiter) bool {
	switch {
	case w.concern.majority:
		return !r.committed.Before(w.last)
	case w.concern.mode != nil:
		return w.concern.mode.met(r, w)
	case w.concern.members <= 1:
		return !r.durable.Before(w.last)
	}
	n := 0
	for i := range r.config.members {
		if r.reached(i, w) {
			n++
		} else if i == r.self {
			return false
		}
	}
	return n >= w.concern.members
}

// reached reports whether a member has what a waiter waits for, as all concerns but
// majority see it.
func (r *replication) reached(i int, w *waiter) bool {
	p := r.positionOf(i)
	return !p.applied.Before(w.last) && (!w.concern.journal || !p.durable.Before(w.last))
}

func (s *Server) release(c cause) {
	for w := range s.set.waiters {
		if !s.set.met(w) {
			continue
		}
		delete(s.set.waiters, w)
		s.truth.released(w, &c)
		close(w.done)
	}
}

func steppedDown() bson.D {
	return wcError(codePrimarySteppedDown, "PrimarySteppedDown", "Primary stepped down while waiting for replication", nil)
}
