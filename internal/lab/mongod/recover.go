package mongod

import (
	"time"
)

// recover reads a member's files and does all that its oplog says. A member
// without files begins with the set's first entry and fetches the rest.
func (s *Server) recover(path string) error {
	vote, err := loadBallot(s.dir)
	if err != nil {
		return err
	}
	j, log, err := openJournal(path, s.durable)
	if err != nil {
		return err
	}
	s.journal = j
	if len(log) == 0 {
		seed := *s.member.set.seed
		j.append(&seed)
		log = oplog{&seed}
		j.durable = func(mark) {}
		err = j.flush()
		j.durable = s.durable
	}
	s.set.vote = vote
	s.replay(log)
	s.set.term = max(s.set.written.T, vote.Term)
	return err
}

// replay makes the data anew, of this oplog and nothing else.
func (s *Server) replay(log oplog) {
	s.data, s.sessions = store{}, sessions{}
	for _, e := range log {
		s.apply(e)
	}
	r := s.set
	r.oplog = log
	r.written, r.durable, r.applied = log.last(), log.last(), log.last()
}

// replicate begins what a member does besides answering. The one with the
// highest priority begins a new set as its primary.
func (s *Server) replicate() {
	r := s.set
	s.mu.Lock()
	if len(r.oplog) == 1 && r.vote.Term == 0 && r.self == s.member.set.candidate(r.config) && s.castVote(1, r.self) {
		s.reign(1)
	}
	s.mu.Unlock()
	s.wg.Go(func() {
		if err := s.journal.run(s.ctx, &s.gate); err != nil {
			s.fail(err)
		}
	})
	for i := range r.config.members {
		if i != r.self {
			s.wg.Go(func() { s.heartbeats(i) })
		}
	}
	s.wg.Go(s.elections)
	s.wg.Go(func() { s.writes(s.ctx) })
	s.wg.Go(func() { s.applies(s.ctx) })
	s.wg.Go(s.syncs)
	s.wg.Go(s.notes)
	s.wg.Go(s.checkpointer)
	s.wg.Go(s.flowControls)
}

// noteInterval is how often a primary to which nobody writes makes an entry all
// the same, by which the others see that it's there (periodicNoopIntervalSecs).
const noteInterval = 10 * time.Second

func (s *Server) notes() {
	for sleep(s.ctx, noteInterval, nil) == nil && s.gate.pass(s.ctx) == nil {
		s.mu.Lock()
		if s.set.writable && time.Since(s.set.written.wall) >= noteInterval {
			s.note("periodic noop")
		}
		s.mu.Unlock()
	}
}

// fail ends a member that can't go on, as a server that can't write its journal
// ends itself. Stop tells why.
func (s *Server) fail(err error) {
	s.cancel(err)
	s.listener.Close()
	s.connections.Lock()
	defer s.connections.Unlock()
	s.stopped = true
	for c := range s.open {
		c.Close()
	}
}
