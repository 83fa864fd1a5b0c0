package postgres

import "github.com/wirewait/wirewait/wire"

// replySide is where the server's stream stands.
type replySide struct {
	// active is the call whose reply has begun, until ReadyForQuery or until
	// the next one's begins.
	active   *call
	copyBoth bool // a replication stream runs
	unsure   bool // one byte that may be an answer to an SSLRequest
}

// draws reports whether a message, of which the type alone is known, begins an
// exchange's request or reply, or is one of a replication stream.
func (s *session) draws(dir wire.Direction, t byte) bool {
	if s.copyBoth && t == 'd' {
		return true
	}
	if dir == wire.ToServer {
		switch t {
		case 'P', 'B', 'D', 'C', 'E':
			return s.building == nil
		}
		return t == 'Q' || t == 'F'
	}
	if asynchronous(t) {
		return false
	}
	return s.active == nil || s.active.finished && t != 'Z'
}

// beginReply says whose a message to the client is. It's told its type alone.
func (s *session) beginReply(t byte) (*call, tally) {
	switch {
	case asynchronous(t):
		switch {
		case s.active == nil:
			return nil, tallyNone
		case s.active.kind == kindStartup:
			return s.active, tallyAll
		}
		return s.active, tallyOnly
	case t == 'Z':
		return s.beginReady()
	case t == 'd' && s.copyBoth:
		return nil, tallyNone
	}
	if s.active == nil || s.active.finished {
		s.active = s.answered(t)
	}
	return s.active, tallyAll
}

// beginReady says whose a ReadyForQuery is: the last exchange's before it.
func (s *session) beginReady() (*call, tally) {
	if s.active == nil {
		r := s.head()
		if r == nil || r.c == nil {
			return nil, tallyNone
		}
		s.active = r.c
	}
	if s.active.kind == kindStartup {
		return s.active, tallyAll
	}
	return s.active, tallyOnly
}

// answered is the call that a message of type t begins to answer.
func (s *session) answered(t byte) *call {
	r := s.head()
	switch {
	case r == nil && s.building != nil:
		return s.building // answered before its Execute: Flush
	case r == nil:
		return s.newLone(t)
	case r.what == whatSync:
		return s.newCall(kindSync)
	case r.answered:
		return s.another(r.c)
	case r.c.kind == kindStartup && !ofStartup(t):
		// The capture has no reply to the start-up.
		s.finish(r.c)
		s.requests.Pop()
		return s.answered(t)
	}
	return r.c
}

// ofStartup reports whether a start-up may be answered by a message of type t.
func ofStartup(t byte) bool { return t == 'R' || t == 'v' || t == 'K' || t == 'E' }

// newLone makes a call for a reply without a request.
func (s *session) newLone(t byte) *call {
	c := s.newCall(kindLone)
	switch t {
	case 'R', 'K', 'v':
		c.kind = kindStartup
	case 'V':
		c.kind = kindFunction
	}
	return c
}

// another makes a call for one more result of a Query. Its request is the
// Query's, whose bytes are counted to the first.
func (s *session) another(first *call) *call {
	c := s.newCall(first.kind)
	c.further = true
	c.reqEnd = first.reqEnd
	from, to := &first.x.Sides[wire.ToServer], &c.x.Sides[wire.ToServer]
	to.FirstIn, to.LastIn, to.LastOut = from.FirstIn, from.LastIn, from.LastOut
	to.Planned, to.Stalled = from.Planned, from.Stalled
	return c
}

// endReply draws the consequences of a message to the client, now whole.
func (s *session) endReply(t byte, c *call, how tally, end int64, now wire.Stamp) {
	if how == tallyAll {
		c.repEnd = end
	}
	switch t {
	case '1', '2', '3', 'n', 'T':
		s.endStep(t, c, end)
	case 'C', 'I', 's', 'E', 'V':
		s.endResult(t, c, end)
	case 'G':
		if r := s.head(); !c.copyIn && r != nil {
			s.swallowSyncs()
		}
		c.copyIn = true
	case 'W':
		c.copyBoth, s.copyBoth = true, true
	case 'Z':
		s.endReady(c, end, now)
	}
}

// endStep counts the answer to a Parse, Bind, Close or Describe.
func (s *session) endStep(t byte, c *call, end int64) {
	switch t {
	case '1':
		c.parsed++
	case '2':
		c.bound++
	}
	if c.refused && c.expected > 0 {
		c.expected--
	}
	if c.kind != kindPrepare {
		return
	}
	s.open.Mark(c.x, wire.ToClient, end)
	if c.expected > 0 {
		c.expected--
	}
	if r := s.head(); c.expected == 0 && r != nil && r.c == c {
		s.requests.Pop()
		s.finish(c)
	}
}

// endResult ends the reply of a call.
func (s *session) endResult(t byte, c *call, end int64) {
	if c.finished {
		return
	}
	c.result = t
	s.open.Mark(c.x, wire.ToClient, end)
	s.inCopy, s.copyBoth = false, false
	r := s.head()
	if r != nil && (r.c == c || c.further) && r.what == whatReady {
		r.answered = true
	} else if r != nil && r.c == c {
		s.requests.Pop()
	}
	if c == s.building {
		s.building = nil
	}
	s.finish(c)
	switch {
	case t != 'E':
	case c.kind == kindExecute || c.kind == kindPrepare:
		s.skipToSync()
	case c.kind == kindStartup:
		// FATAL: no ReadyForQuery follows.
		if r != nil && r.c == c {
			s.requests.Pop()
		}
		s.endRound(request{}, false, end)
	}
}

// endReady ends a round: the request that ReadyForQuery answers is done with,
// and so are those before it that have no answer.
func (s *session) endReady(c *call, end int64, now wire.Stamp) {
	var by request
	if s.head(); s.expectsReady() {
		for by.end == 0 {
			r := s.requests.Pop()
			if r.what == whatSync && !r.swallowed || r.what == whatReady {
				by = r
			} else if r.tail != nil {
				s.open.CloseTail(r.tail)
			}
			s.endUnanswered(r.c, end)
		}
	}
	if c != nil && c.kind == kindStartup {
		s.endUnanswered(c, end)
	}
	if by.tail != nil {
		s.open.MarkTail(by.tail, wire.ToClient, end, now)
	}
	s.endRound(by, c == nil, end)
}

// endUnanswered ends a call that ReadyForQuery ends: a start-up as it should
// be, others without a result.
func (s *session) endUnanswered(c *call, end int64) {
	if c == nil || c.finished {
		return
	}
	if c.kind == kindStartup {
		c.result = 'Z'
		s.open.Mark(c.x, wire.ToClient, end)
	}
	s.finish(c)
}

// farthest bounds the search for the request that a ReadyForQuery answers. It
// is the first one, but for servers that break the protocol.
const farthest = 64

// expectsReady reports whether a request that awaits ReadyForQuery is open.
func (s *session) expectsReady() bool {
	for i := range min(s.requests.Len(), farthest) {
		r := s.requests.At(i)
		if r.what == whatReady || r.what == whatSync && !r.swallowed {
			return true
		}
	}
	return false
}

// endRound lets what was finished be settled. by is the request that
// ReadyForQuery answered, if it did; loose: its bytes are not counted yet.
func (s *session) endRound(by request, loose bool, end int64) {
	// What is not among the requests will find no other end.
	r := s.head()
	if a := s.active; a != nil && !a.finished && a != s.building && (r == nil || r.c != a) {
		s.finish(a)
	}
	if s.last != nil && s.last.finished {
		s.last = nil
	}
	// Its COPY may have failed while more data was on the way.
	if f := &s.framers[wire.ToServer]; f.c != nil && f.c.finished {
		f.c = nil
	}
	s.active = nil
	s.ready.Push(item{tail: by.tail, reqEnd: by.end, repEnd: end, looseSync: by.loose, looseReady: loose})
}
