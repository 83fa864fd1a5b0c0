package postgres

import "github.com/wirewait/wirewait/wire"

// settler is what the statements so far have led to.
type settler struct {
	round   []*call // settled, and waiting for the round to end
	sweepAt int     // the length of round at which those that need not wait go
	group   []*call // those of the round that the end of it commits
	ordinal uint64

	peer   *wire.Peer
	parent string // traceparent in application_name
	given  bool   // parent was given to an exchange

	names
	levels
	inBlock bool // of an explicit transaction
	wrote   bool // something in it did

	script *script // of the Query at hand
	index  int     // of the statement that its next result belongs to

	kept   int            // bytes of statement text that are held
	held   *wire.Exchange // see Options.Ledger
	spare  []*script
	codec  codec
	parser parser
}

const (
	// maxRound is how many calls wait for a ReadyForQuery. Beyond it only those
	// do whose outcome it tells: the writes that it commits.
	maxRound = 4_096
	// maxGroup is how many of those wait. Beyond it they end with their own
	// results, committed or not.
	maxGroup = 32_768
)

// keepRound is how many calls a round may have had for its memory to be kept.
const keepRound = 64

// settle takes the calls whose bytes are decoded, first in, first out.
func (s *session) settle() {
	for s.ready.Len() > 0 {
		it := s.ready.Front()
		reqEnd, repEnd := it.reqEnd, it.repEnd
		if it.c != nil {
			reqEnd, repEnd = it.c.reqEnd, it.c.repEnd
		}
		if !s.ended && (s.decoders[wire.ToServer].off < reqEnd || s.decoders[wire.ToClient].off < repEnd) {
			return
		}
		if c := it.c; c != nil {
			s.ready.Pop()
			s.settleCall(c)
			continue
		}
		s.endSettled(s.ready.Pop())
	}
}

// settleCall gives a call what its messages said, and what they meant.
func (s *session) settleCall(c *call) {
	if s.levels.session.source == "" {
		s.levels.begin(belief{source: "unknown"}) // joined in mid-stream
	}
	st := s.takeRequest(c)
	said := s.takeReply(c)
	if c.copied > 0 && (c.copyIn || c.result == 0 && !c.copyBoth) {
		s.open.CountOnly(c.x, wire.ToServer, int(c.copied))
	}
	s.describe(c, st, said)
	if !c.void() { // counted here: a Query's further results come to light late
		s.ordinal++
		c.x.Ordinal = s.ordinal
	}
	if c.kind == kindCancel { // it stands alone, in no round
		s.complete(c)
		return
	}
	s.interpret(c, st)
	s.acknowledgeCall(c, st)
	s.sweep()
	s.round = append(s.round, c)
}

// sweep lets go of what need not wait for the end of a long round.
func (s *session) sweep() {
	if len(s.round) < max(s.sweepAt, maxRound) {
		return
	}
	if len(s.group) >= maxGroup {
		s.closeGroup(nil, "")
	}
	s.completeRound(nil, 0, func(c *call) bool { return c.grouped || s.inUse(c) })
	s.sweepAt = 2 * len(s.round)
}

// said is what the messages of a reply said.
type said struct{ tag, code string }

// takeReply uses the facts of a call's reply.
func (s *session) takeReply(c *call) (r said) {
	facts := &s.decoders[wire.ToClient].facts
	for facts.Len() > 0 && facts.Front().end <= c.repEnd && facts.Front().kind != 'Z' {
		switch f := facts.Pop(); f.kind {
		case 'C':
			r.tag = f.text
		case 'E':
			r.code = f.text
		case 'N':
			c.x.Postgres.NotReplicated = true
		default:
			s.meet(&f)
		}
	}
	return r
}

// meet learns about the peer.
func (s *session) meet(f *fact) {
	p := wire.Peer{}
	if s.peer != nil {
		p = *s.peer
	}
	switch f.kind {
	case 'S':
		if p.Application == f.text && s.peer != nil {
			return
		}
		p.Application = f.text
		s.application(f.text)
	case 'K':
		p.BackendPID = f.number
	default:
		return
	}
	s.peer = &p
}

// application notes a trace that the application's name carries.
func (s *session) application(name string) {
	s.parent, s.given = "", false
	if validTraceparent([]byte(name)) {
		s.parent = name
	} else if v := traceparentIn([]byte(name)); v != nil {
		s.parent = string(v)
	}
}

// endSettled ends a round: at its ReadyForQuery, or at the end of everything.
func (s *session) endSettled(it item) {
	facts := &s.decoders[wire.ToClient].facts
	var status byte
	notReplicated, failed := false, ""
	for facts.Len() > 0 && facts.Front().end <= it.repEnd {
		switch f := facts.Pop(); f.kind {
		case 'Z':
			status = f.what
		case 'N':
			notReplicated = true
		case 'S', 'K':
			s.meet(&f)
		}
	}
	if n := len(s.round); n > 0 && s.round[n-1].kind == kindSync && s.round[n-1].result == 'E' {
		failed = s.round[n-1].x.ErrorCode
	}
	if notReplicated {
		for _, c := range s.round {
			if c.x.Write && (c.grouped || c.result == 0) {
				c.x.Postgres.NotReplicated = true
			}
		}
	}
	switch status {
	case 0:
		s.unconfirm()
	case 'T', 'E':
		// A block began that wasn't seen to; PostgreSQL 18 makes one of what
		// stands before a Query without a Sync between.
		if !s.inBlock {
			s.ungroup(true)
		}
	}
	s.acknowledgeRound(it.tail, status, failed)
	s.closeGroup(it.tail, failed)
	s.completeRound(it.tail, status, nil)
	s.sweepAt = 0
	s.enterLoose(&it)
	if it.tail != nil {
		s.open.CloseTail(it.tail)
	}
	s.dropScript()
	if failed != "" {
		s.levels.rolledBack()
	}
	s.endTransaction(status)
	if cap(s.round) > keepRound {
		s.round, s.group = nil, nil
	}
}

// closeGroup gives the writes that commit together what they share. failed is
// the SQLSTATE with which the commit was refused.
func (s *session) closeGroup(tail *wire.Tail, failed string) {
	level := s.levels.now()
	for _, c := range s.group {
		p := &c.x.Postgres
		p.Shared = len(s.group)
		p.SynchronousCommit, p.SyncSource = level.value, level.source
		c.late = tail != nil && c.kind == kindExecute
		c.grouped = false
		if failed != "" {
			c.x.OK, c.x.ErrorCode, p.RolledBack = false, failed, true
		}
	}
	clear(s.group)
	s.group = s.group[:0]
}

// unconfirm is for writes whose Sync, or the rest of whose Query, has no answer,
// and none will come: nobody knows whether they were committed. A Query's last
// result comes after its commit, and so does what warns of a wait that ended
// early.
func (s *session) unconfirm() {
	ended := s.script == nil || s.index+1 >= len(s.script.stmts)
	for _, c := range s.group {
		if p := &c.x.Postgres; (c.kind == kindExecute || !ended) && !p.NotReplicated {
			p.Unconfirmed = true
		}
	}
}

// completeRound lets the exchanges of the round go, in order, but for those to
// keep. What made none gives its bytes to the one before it.
func (s *session) completeRound(tail *wire.Tail, status byte, keep func(*call) bool) {
	last := s.foldVoid()
	if last != nil {
		last.x.Postgres.TxStatus = status
	}
	if s.options.Ledger && keep == nil {
		s.enter()
	}
	kept := s.round[:0]
	for _, c := range s.round {
		switch {
		case keep != nil && keep(c):
			kept = append(kept, c)
			continue
		case c.void():
			s.open.Discard(c.x)
			s.free(c)
			continue
		}
		if c.late {
			for dir := range c.x.Sides {
				c.x.Sides[dir].Planned = last.x.Sides[dir].Planned
			}
			c.tail = tail
		}
		s.complete(c)
	}
	clear(s.round[len(kept):])
	s.round = kept
}

// complete lets an exchange go.
func (s *session) complete(c *call) {
	if c.tail != nil {
		s.open.CompleteWith(c.x, c.tail)
	} else {
		s.open.Complete(c.x)
	}
	s.free(c)
}

// foldVoid gives the bytes of what made no exchange to the one before it, and
// returns the last that is one.
func (s *session) foldVoid() (last *call) {
	for _, c := range s.round {
		if !c.void() {
			last = c
			continue
		}
		if last == nil || last.kind != kindExecute {
			continue
		}
		for dir := range c.x.Sides {
			s.open.CountOnly(last.x, wire.Direction(dir), int(c.x.Sides[dir].Bytes))
			c.x.Sides[dir].Bytes = 0
		}
	}
	return last
}

// inUse reports whether framing may still count bytes to a call.
func (s *session) inUse(c *call) bool {
	return c == s.active || c == s.last || s.requests.Len() > 0 && s.requests.Front().c == c
}

// void reports whether a call makes no exchange: it's none of those that are
// answered one for one, and no result came.
func (c *call) void() bool {
	if c.cut {
		return true
	}
	return c.result == 0 && (c.kind == kindPrepare || c.kind == kindLone || c.kind == kindSync || c.further)
}
