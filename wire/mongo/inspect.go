package mongo

import (
	"strconv"

	"github.com/wirewait/wirewait/wire"
)

// inspected is what Inspector tells of the message decoded last.
type inspected struct {
	asked envelope
	acked [1]wire.Acknowledgement
	acks  int
}

// envelope is how a request came, and so how its reply must come
// (facts: a server compresses a reply if the request was, by the same compressor,
// and gives a checksum if the request had one; mongo/src/mongo/transport/session_workflow.cpp).
type envelope struct {
	x          *wire.Exchange
	id         int32
	op         int32 // the inner one; 0: it couldn't be read
	compressor string
	checksum   bool
	plain      bool // it asks for the user's documents
}

// FrameOne implements wire.Inspector.
func (s *session) FrameOne(dir wire.Direction, b []byte, now wire.Stamp) wire.Piece {
	if !s.closed() {
		return s.frameOne(dir, b, now)
	}
	s.framers[dir].off += int64(len(b))
	return wire.Piece{Len: len(b), Opaque: true, Draw: true}
}

// Monitors implements wire.Inspector: drivers watch a server over connections of
// their own.
func (s *session) Monitors() bool { return true }

// Removing implements wire.Inspector.
func (s *session) Removing() bool { return false }

// Asked implements wire.Inspector.
func (s *session) Asked() wire.Asked {
	if x := s.asked.x; x != nil {
		return wire.Asked{Exchange: x, Known: true}
	}
	d := &s.decoders[wire.ToServer]
	if !d.active {
		return wire.Asked{}
	}
	return wire.Asked{Exchange: d.queue.Front().call.x, Known: d.body.whole}
}

// noteRequest keeps what a request was like that is decoded now.
func (s *session) noteRequest(f *framed, b *body) {
	c := f.call
	s.asked = envelope{
		x: c.x, id: f.requestID, op: b.op, compressor: c.x.Compressor, plain: c.plain,
		checksum: f.op == opMsg && b.flags&flagChecksum != 0,
	}
}

// noteReply keeps whether a reply that is decoded now tells how a request went.
func (s *session) noteReply(c *call) {
	if c.orphan || !c.answered {
		return
	}
	a := wire.Acknowledgement{Exchange: c.x}
	if !c.x.OK || c.x.Mongo.WriteErrors > 0 {
		a.Obstacle = wire.ReplyFailed
	}
	s.acked[0], s.acks = a, 1
}

// Acknowledged implements wire.Inspector.
func (s *session) Acknowledged() []wire.Acknowledgement { return s.acked[:s.acks] }

// CanRefuse implements wire.Inspector.
func (s *session) CanRefuse(f *wire.Failure) wire.Reason {
	e := &s.asked
	if e.x == nil {
		return s.canForesee(f)
	}
	switch e.op {
	case 0:
		return wire.Unread
	case opMsg, opQuery, opGetMore, opCommand, opInsert, opUpdate, opDelete:
		return numeric(f)
	}
	return wire.NoSuchReply
}

// canForesee is CanRefuse for a request that isn't whole yet.
func (s *session) canForesee(f *wire.Failure) wire.Reason {
	if d := &s.decoders[wire.ToServer]; !d.active || d.body.op != opMsg {
		return wire.NoSuchReply
	}
	return numeric(f)
}

func numeric(f *wire.Failure) wire.Reason {
	if _, err := strconv.ParseInt(f.Code, 10, 32); err != nil {
		return wire.NoSuchReply
	}
	return wire.Applies
}

// Refuse implements wire.Inspector.
func (s *session) Refuse(f *wire.Failure) wire.Refusal {
	e := &s.asked
	if e.x.NoReply {
		return wire.Refusal{}
	}
	r := answer{id: e.id, to: e.id, op: replyOp(e.op), compressor: e.compressor, checksum: e.checksum}
	r.doc = s.errorDocument(e.x, f)
	if e.plain {
		r.flags, r.doc = replyQueryFailure, queryFailure(f)
	}
	return wire.Refusal{Answer: r.encode(nil)}
}

// Turn implements wire.Inspector. Replies name their requests, but a server
// answers one request after the other.
func (s *session) Turn(x *wire.Exchange) bool {
	return !s.requests.before(x) && !s.exhausts.before(x)
}

// before reports whether a call in the table is older than an exchange.
func (t *table) before(x *wire.Exchange) bool {
	for _, ch := range t.calls {
		for c := ch.first; c != nil; c = c.next {
			if c.x != x && c.x.Ordinal < x.Ordinal {
				return true
			}
		}
	}
	return false
}

// CanFail implements wire.Inspector.
func (s *session) CanFail(_ *wire.Exchange, f *wire.Failure) wire.Reason { return numeric(f) }
