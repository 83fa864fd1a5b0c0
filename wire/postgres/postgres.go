// Package postgres follows one PostgreSQL connection: it frames the start-up
// and every message, pairs results with statements through pipelines, COPY and
// errors, and reads what statements and results say.
//
// # A message
//
// Integers are big-endian (https://www.postgresql.org/docs/current/protocol-message-formats.html).
//
//	start-up phase        0        4       8
//	                      | length | code  | ...      length counts itself: 8 to 10,000
//	  StartupMessage        196608 (3.0), 196610 (3.2), ... | name NUL value NUL ... | NUL
//	  CancelRequest         80877102 | Int32 pid | key
//	  SSLRequest            80877103            answered by one byte, S or N
//	  GSSENCRequest         80877104            answered by one byte, G or N
//
//	afterwards            0      1        5
//	                      | type | length | body      length counts itself: 4 to 0x3fffffff
//	  Parse        P        name NUL | SQL NUL | Int16 n | n x Int32 type
//	  Bind         B        portal NUL | statement NUL | ...
//	  Execute      E        portal NUL | Int32 rows
//	  Close, Describe C D   byte S or P | name NUL
//	  Query        Q        SQL NUL
//	  CommandComplete C     tag NUL                        (to the client)
//	  ReadyForQuery Z       byte I, T or E                 (to the client)
//	  ErrorResponse E       (byte field | text NUL) ... | NUL (to the client)
//
// # Three steps
//
//	Frame    lengths and types -> pieces; which call they belong to   (frame.go, startup.go)
//	           requests in order; results answer the first            (request.go, reply.go)
//	Decode   bodies of a few types -> facts, in stream order          (decode.go, facts.go)
//	settle   calls in the order of their results + facts              (settle.go)
//	           -> what was a write, in a block, at which level -> Open
//
// A call is an exchange in the making. What a statement means depends on all
// that came before it on the connection: so calls are settled strictly first
// in, first out, in rounds that end with ReadyForQuery, and nowhere else.
//
// # Which bytes belong to which exchange
//
// Parse, Bind, Describe and Close belong to the Execute that follows them. If
// none follows before the Sync, they and their replies go to the last exchange
// of the same round; a round with no Execute at all (a driver that prepares)
// makes no exchange unless it fails, and its bytes go to the exchange before it
// where nobody waits for that one (Options.Ledger). A Query's bytes belong to its first
// result; Sync and ReadyForQuery to the last exchange before them. COPY data
// belongs to its COPY, except on replication streams, where it belongs to none.
// Notices, notifications and parameters belong to the reply under way, if any.
package postgres

import (
	"fmt"

	"github.com/wirewait/wirewait/wire"
)

type session struct {
	open    *wire.Open
	options wire.Options
	memory  memory
	err     error
	ended   bool

	framers [2]framer
	phase   phase
	asked   wire.Queue[byte] // SSL and GSS requests without an answer yet

	requestSide
	replySide
	ready wire.Queue[item] // to be settled

	decoders [2]decoder
	settler
	replication
	inspected
	strings interned
	freed   []*call
}

// New is the session of a PostgreSQL connection, in its initial state; a stream
// that starts in the middle is read if it starts at a message boundary.
func New(o wire.Options) wire.Session {
	return &session{open: wire.NewOpen(wire.Postgres), options: o, memory: newMemory(o.MaxMemory)}
}

// Open implements wire.Session.
func (s *session) Open() *wire.Open { return s.open }

// Opaque implements wire.Session.
func (s *session) Opaque() error { return s.err }

// Quiet implements wire.Session.
func (s *session) Quiet() bool {
	if s.closed() {
		return true
	}
	for dir := range s.framers {
		if s.framers[dir].left > 0 || s.framers[dir].have > 0 {
			return false
		}
	}
	return s.requests.Len() == 0 && s.asked.Len() == 0 && s.building == nil && s.active == nil
}

// End implements wire.Session. What was framed and not yet given to Decode is
// not decoded any more.
func (s *session) End() {
	if s.ended {
		return
	}
	s.leave()
	s.ended = true
	s.settle()
	s.hold(nil)
}

func (s *session) closed() bool { return s.err != nil || s.ended }

// giveUp ends framing in both directions for good.
func (s *session) giveUp(dir wire.Direction, at int64, err error) {
	s.err = fmt.Errorf("postgres: %s, message at byte %d: %w", dir, at, err)
	s.leave()
}

// leave hands over what is under way, as it stands, to be settled.
func (s *session) leave() {
	for s.requests.Len() > 0 {
		r := s.requests.Pop()
		if r.tail != nil {
			s.open.CloseTail(r.tail)
		}
		if r.c != nil && !r.c.finished {
			s.finish(r.c)
		}
	}
	if a := s.active; a != nil && !a.finished {
		s.finish(a)
	}
	if b := s.building; b != nil && !b.finished {
		s.finish(b)
	}
	if c := s.framers[wire.ToServer].c; c != nil && !c.finished {
		c.cut = true
		s.finish(c)
	}
	s.framers[wire.ToServer].c, s.framers[wire.ToClient].c = nil, nil
	s.active, s.building, s.last = nil, nil, nil
	s.ready.Push(item{reqEnd: s.framers[wire.ToServer].off, repEnd: s.framers[wire.ToClient].off})
}
