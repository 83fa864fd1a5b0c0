package postgres

import "github.com/wirewait/wirewait/wire"

// inspected is what Inspector tells of the message decoded last, and what it has
// led to.
type inspected struct {
	judging  bool // somebody inspects
	askedFor byte // the type of a message that asks for something; 0: it doesn't
	askedX   *wire.Exchange
	keywords []string
	acks     []wire.Acknowledgement
	failable []bool // of acks: an error in place of the message keeps the protocol
	refusing int    // calls that the server was made to refuse, and has not
	status   byte   // of the last ReadyForQuery
}

// FrameOne implements wire.Inspector.
func (s *session) FrameOne(dir wire.Direction, b []byte, now wire.Stamp) wire.Piece {
	s.judging = true
	f := &s.framers[dir]
	if !s.closed() {
		if p := s.frameOne(dir, f, b, now); p.Len > 0 {
			return p
		}
	}
	if s.answersStill(dir) {
		if p, ok := s.frameAnswer(f, b, now); ok {
			return p
		}
	}
	f.off += int64(len(b))
	return wire.Piece{Len: len(b), Opaque: true, Draw: true}
}

// Monitors implements wire.Inspector: there are no such connections.
func (s *session) Monitors() bool { return false }

// Removing implements wire.Inspector.
func (s *session) Removing() bool { return s.refusing > 0 }

// forgetInspected begins the decoding of another message.
func (s *session) forgetInspected() {
	s.askedFor, s.askedX = 0, nil
	s.acks, s.failable = s.acks[:0], s.failable[:0]
}

// noteRequest keeps what a message to the server was that is decoded now.
func (s *session) noteRequest(p *wire.Piece) {
	switch p.Kind {
	case 'Q', 'E', 'F':
		s.askedFor, s.askedX = byte(p.Kind), p.Exchange
	}
}

// askedCall is the call of a request that awaits an answer; nil if there's none,
// or the server will skip it.
func (s *session) askedCall() *call {
	n := s.requests.Len()
	if s.askedFor == 0 || n == 0 {
		return nil
	}
	if c := s.requests.At(n - 1).c; c != nil && c.x == s.askedX {
		return c
	}
	return nil
}

// Asked implements wire.Inspector. It fills in of the exchange what rules match,
// as far as it's known before the server has answered.
func (s *session) Asked() wire.Asked {
	c := s.askedCall()
	if c == nil {
		return wire.Asked{}
	}
	x := c.x
	if x.Peer = s.peer; s.peer != nil {
		x.Database = s.peer.Database
	}
	x.Postgres.SynchronousCommit = s.levels.now().value
	a := wire.Asked{Exchange: x, Known: true}
	facts := &s.decoders[wire.ToServer].facts
	if facts.Len() == 0 {
		return a
	}
	switch last := facts.At(facts.Len() - 1); {
	case s.askedFor == 'Q' && last.kind == 'Q':
		a.Keywords = s.keywordsOf(last.script)
	case s.askedFor == 'E' && last.kind == 'E':
		if st := s.portalStatement(last.text); st != nil {
			x.Postgres.Keyword = st.keyword
		}
	}
	if a.Keywords != nil {
		x.Postgres.Keyword = a.Keywords[0]
	}
	return a
}

func (s *session) keywordsOf(sc *script) []string {
	if sc == nil || len(sc.stmts) == 0 {
		return nil
	}
	s.keywords = s.keywords[:0]
	for i := range sc.stmts {
		s.keywords = append(s.keywords, sc.stmts[i].keyword)
	}
	return s.keywords
}

// portalStatement is the statement that a portal will run: what has been sent
// since the last answers says so, newest first, else what was settled.
func (s *session) portalStatement(portal string) *statement {
	facts := s.decoders[wire.ToServer].facts.Rest()
	for i := len(facts) - 1; i >= 0; i-- {
		if b := &facts[i]; b.kind == 'B' && b.text == portal {
			for j := i - 1; j >= 0; j-- {
				if p := &facts[j]; p.kind == 'P' && p.name == b.name {
					return p.script.at(0)
				}
			}
			return s.statements[b.name]
		}
	}
	return s.portals[portal]
}

// Turn implements wire.Inspector.
func (s *session) Turn(x *wire.Exchange) bool {
	r := s.head()
	return r == nil || r.c != nil && r.c.x == x && !r.answered
}

// Acknowledged implements wire.Inspector.
func (s *session) Acknowledged() []wire.Acknowledgement { return s.acks }

func (s *session) acknowledge(x *wire.Exchange, obstacle wire.Reason, failable bool) {
	s.acks = append(s.acks, wire.Acknowledgement{Exchange: x, Obstacle: obstacle})
	s.failable = append(s.failable, failable)
}

// acknowledgeCall says what the result of a call, which is settled now, tells of
// how it went: a COMMIT and a Query in autocommit are committed when their result
// is sent, an Execute when ReadyForQuery is (src/backend/tcop/postgres.c,
// exec_simple_query, exec_execute_message, finish_xact_command).
func (s *session) acknowledgeCall(c *call, st *statement) {
	if !s.judging || c.skipped || c.result == 0 || c.result == 's' || c.kind != kindQuery && c.kind != kindExecute {
		return
	}
	x := c.x
	act := actionOf(x.Operation, st)
	lastOf := c.kind == kindQuery && (s.script == nil || s.index+1 >= len(s.script.stmts))
	switch {
	case c.result == 'E' || act != actCommit && st != nil && st.act == actCommit:
		s.acknowledge(x, wire.ReplyFailed, false)
	case act == actCommit:
		s.acknowledge(x, wire.Applies, lastOf || c.kind == kindExecute && s.syncFollows())
	case act == actBegin || x.Postgres.InBlock || c.kind == kindQuery && !lastOf && !c.grouped:
		s.acknowledge(x, wire.InBlock, false)
	case lastOf:
		for _, g := range s.group {
			s.acknowledge(g.x, wire.Applies, true)
		}
		if !c.grouped {
			s.acknowledge(x, wire.Applies, true)
		}
	case !c.grouped:
		s.acknowledge(x, wire.Applies, false)
	}
}

// syncFollows reports whether nothing stands between the answer at hand and
// ReadyForQuery. After an error in an extended query the client expects nothing
// else.
func (s *session) syncFollows() bool {
	r := s.head()
	return r != nil && r.what == whatSync
}

// acknowledgeRound says what a ReadyForQuery tells: the writes in front of it are
// committed.
func (s *session) acknowledgeRound(tail *wire.Tail, status byte, failed string) {
	if !s.judging || tail == nil || status != 'I' || failed != "" {
		return
	}
	for _, c := range s.group {
		if c.kind == kindExecute {
			s.acknowledge(c.x, wire.Applies, true)
		}
	}
}
