package postgres

import "github.com/wirewait/wirewait/wire"

// request is a forwarded message that the server will answer, in its turn.
// Parse, Bind, Describe and Close are counted in their call.
type request struct {
	c    *call
	tail *wire.Tail // of a Sync
	end  int64      // where its message ended in the stream
	// what is one of the types below, or of the kinds of calls.
	what what
	// answered: a Query that has a result and awaits ReadyForQuery.
	answered bool
	// loose: a Sync whose bytes belong to no exchange of its round.
	loose bool
	// swallowed: a Sync that the server reads, and ignores, within COPY.
	swallowed bool
}

type what uint8

const (
	whatCall  what = iota // Execute, or its like without one
	whatReady             // Query, FunctionCall, StartupMessage: ReadyForQuery follows
	whatSync
	whatCopyEnd // CopyDone, CopyFail: of no account but within COPY
)

// requestSide is what the client's stream has led to.
type requestSide struct {
	requests wire.Queue[request]
	building *call // Parse, Bind, ... whose Execute has not come
	last     *call // the newest call, while its round goes on
	synced   bool  // a Sync came after last
	skipping bool  // after an error, until the next Sync
	inCopy   bool  // COPY FROM STDIN goes on
}

// beginRequest says whose a message to the server is. It's told its type alone.
func (s *session) beginRequest(t byte) (*call, tally) {
	switch t {
	case 'P', 'B', 'D', 'C', 'E':
		if s.building == nil {
			s.building = s.newCall(kindPrepare)
			s.last, s.synced = s.building, false
		}
		return s.building, tallyAll
	case 'Q', 'F':
		s.flushBuilding()
		k := kindQuery
		if t == 'F' {
			k = kindFunction
		}
		c := s.newCall(k)
		s.last, s.synced = c, false
		return c, tallyAll
	case 'S':
		switch {
		case s.building != nil:
			return s.building, tallyAll
		case s.last != nil && !s.synced && s.last.kind == kindExecute:
			return s.last, tallyOnly
		}
	case 'H':
		if s.last != nil && !s.synced && s.last.extended() {
			return s.last, tallyOnly
		}
	case 'd', 'c', 'f':
		if s.last != nil && !s.copyBoth && (s.last.extended() || s.last.kind == kindQuery) {
			return s.last, tallyCopy
		}
	case 'p':
		if s.last != nil && s.last.kind == kindStartup {
			return s.last, tallyAll
		}
	}
	return nil, tallyNone
}

// endRequest enters a message to the server, now whole, into the order of what
// will be answered.
func (s *session) endRequest(kind int32, c *call, how tally, end int64, now wire.Stamp) {
	if how == tallyAll && c != nil {
		c.reqEnd = end
	}
	switch kind {
	case 'P', 'B', 'D', 'C', 'E':
		if c == nil || c.finished { // answered, by an error, before it was whole
			return
		}
		if kind != 'E' {
			c.expected++
			return
		}
		c.kind = kindExecute
		s.open.Mark(c.x, wire.ToServer, end)
		s.building = nil
		s.enqueue(request{c: c, end: end})
	case 'Q', 'F':
		s.open.Mark(c.x, wire.ToServer, end)
		s.enqueue(request{c: c, end: end, what: whatReady})
	case 'S':
		s.endSync(c, end, now)
	case 'c', 'f':
		s.endCopy(c, end)
	case 'p':
		if c != nil {
			s.open.Mark(c.x, wire.ToServer, end)
		}
	case 'H', 'X', 'd':
	default:
		s.endStartup(c, end)
	}
}

func (s *session) endStartup(c *call, end int64) {
	if c == nil { // a request for encryption
		return
	}
	s.open.Mark(c.x, wire.ToServer, end)
	if c.kind == kindCancel {
		s.finish(c)
		return
	}
	s.last = c
	s.enqueue(request{c: c, end: end, what: whatReady})
}

// enqueue awaits an answer, unless the server will skip the request.
func (s *session) enqueue(r request) {
	if s.skipping {
		s.skip(r.c)
		return
	}
	s.requests.Push(r)
}

// skip notes that the server threw a request away.
func (s *session) skip(c *call) {
	c.skipped = true
	s.finish(c)
}

// flushBuilding awaits answers to Parse, Bind, Describe and Close that have no
// Execute.
func (s *session) flushBuilding() {
	c := s.building
	if c == nil {
		return
	}
	s.building = nil
	switch {
	case s.skipping:
		s.skip(c)
	case c.expected == 0:
		s.finish(c)
	default:
		s.requests.Push(request{c: c, end: c.reqEnd})
	}
}

func (s *session) endSync(c *call, end int64, now wire.Stamp) {
	if s.building != nil && c == s.building {
		s.open.Mark(c.x, wire.ToServer, end)
	}
	s.flushBuilding()
	s.synced = true
	if s.inCopy {
		return
	}
	s.skipping = false
	t := s.open.NewTail()
	s.open.MarkTail(t, wire.ToServer, end, now)
	s.requests.Push(request{what: whatSync, tail: t, end: end, loose: c == nil})
}

// endCopy ends COPY data. Many in a row count as one: those that come outside
// of COPY are ignored by the server.
func (s *session) endCopy(c *call, end int64) {
	if c != nil {
		s.synced = false
		s.open.Mark(c.x, wire.ToServer, end)
	}
	if s.inCopy {
		s.inCopy = false
		return
	}
	n := s.requests.Len()
	if n > 0 && s.requests.At(n-1).what != whatCopyEnd && !s.skipping {
		s.requests.Push(request{what: whatCopyEnd, end: end})
	}
}

// swallowSyncs marks those that were sent into the COPY that begins now, up to
// its end; if that was not sent yet, those that come meanwhile.
func (s *session) swallowSyncs() {
	for i := range s.requests.Len() {
		switch r := s.requests.At(i); r.what {
		case whatCopyEnd:
			return
		case whatSync:
			r.swallowed = true
		}
	}
	s.inCopy = true
}

// head is the first request that awaits an answer; nil if there is none.
func (s *session) head() *request {
	for s.requests.Len() > 0 {
		r := s.requests.Front()
		if r.what != whatCopyEnd && !r.swallowed {
			return r
		}
		if r.tail != nil {
			s.open.CloseTail(r.tail)
		}
		s.requests.Pop()
	}
	return nil
}

// skipToSync drops what the server throws away after an error in an extended
// query: everything up to the next Sync (facts of the protocol: "Extended
// Query", https://www.postgresql.org/docs/current/protocol-flow.html).
func (s *session) skipToSync() {
	for s.requests.Len() > 0 {
		r := s.requests.Front()
		if r.what == whatSync && !r.swallowed {
			return
		}
		if r.tail != nil {
			s.open.CloseTail(r.tail)
		}
		if r.c != nil && !r.c.finished {
			s.skip(r.c)
		}
		s.requests.Pop()
	}
	s.skipping = true
}
