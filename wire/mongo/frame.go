package mongo

import (
	"encoding/binary"
	"fmt"

	"github.com/wirewait/wirewait/wire"
)

const (
	headerLen   = 16
	flagsLen    = 4
	checksumLen = 4
	minMessage  = headerLen
	maxMessage  = 48_000_000 // maxMessageSizeBytes (message.h, both directions)
	tlsLen      = 6          // bytes that tell a TLS handshake from a length
)

// framer walks one direction's bytes from header to header.
type framer struct {
	off     int64 // bytes of the stream framed so far
	left    int   // bytes of the current message still to come
	call    *call // of the current message
	op      int32
	final   bool // the current message is the last reply of its call
	have    int  // bytes of a header that has not come whole
	head    [headerLen + flagsLen]byte
	headIn  wire.Stamp // when the first of them came
	started bool       // a header of this direction was read
	report  *wire.Report
}

// header is what framing reads of a message.
type header struct {
	length                int
	requestID, responseTo int32
	op                    int32
	flags                 uint32 // of an uncompressed OP_MSG that has room for them
}

// size is how many bytes of the message framing reads.
func (h *header) size() int {
	if h.op == opMsg && h.length >= headerLen+flagsLen {
		return headerLen + flagsLen
	}
	return headerLen
}

// Frame implements wire.Session.
func (s *session) Frame(dir wire.Direction, b []byte, now wire.Stamp, pieces []wire.Piece) []wire.Piece {
	for len(b) > 0 && !s.closed() {
		p := s.frameOne(dir, b, now)
		pieces = append(pieces, p)
		b = b[p.Len:]
	}
	if len(b) > 0 {
		s.framers[dir].off += int64(len(b))
		pieces = append(pieces, wire.Piece{Len: len(b), Opaque: true, Draw: true})
	}
	return pieces
}

// frameOne takes what b holds of one message.
func (s *session) frameOne(dir wire.Direction, b []byte, now wire.Stamp) wire.Piece {
	f := &s.framers[dir]
	if f.left > 0 {
		p := wire.Piece{Len: min(f.left, len(b)), Kind: f.op, Exchange: f.call.x}
		return s.advance(dir, p, now)
	}
	p := wire.Piece{First: f.have == 0, Draw: f.have == 0}
	early, raw := f.have, b
	if early > 0 || len(b) < len(f.head) {
		k := copy(f.head[f.have:], b)
		raw = f.head[:f.have+k]
	}
	if early == 0 {
		f.headIn = now
	}
	var h header
	ok, err := h.read(raw, !f.started)
	switch {
	case err != nil:
		s.giveUp(fmt.Errorf("mongodb: %s, message at byte %d: %w", dir, f.off-int64(early), err))
		return wire.Piece{Len: len(b), Opaque: true, Draw: true}
	case !ok:
		f.have = len(raw)
		f.off += int64(len(b))
		p.Len = len(b)
		return p
	}
	f.have, f.started = 0, true
	begun := now
	if early > 0 {
		begun = f.headIn
	}
	if !s.begin(dir, &h, begun) {
		return wire.Piece{Len: len(b), Opaque: true, Draw: true}
	}
	p.Kind, p.Exchange = h.op, f.call.x
	f.left = h.length - early
	if early > 0 {
		s.open.Count(f.call.x, dir, early, f.headIn)
	}
	p.Len = min(f.left, len(b))
	return s.advance(dir, p, now)
}

// advance counts a piece of the current message, and ends the message with its
// last byte.
func (s *session) advance(dir wire.Direction, p wire.Piece, now wire.Stamp) wire.Piece {
	f := &s.framers[dir]
	f.off += int64(p.Len)
	f.left -= p.Len
	if p.Len > 0 {
		s.open.Count(f.call.x, dir, p.Len, now)
	}
	if f.left > 0 {
		return p
	}
	p.Last = true
	c := f.call
	f.call = nil
	s.open.Mark(c.x, dir, f.off)
	if f.report != nil {
		s.open.MarkReport(f.report, dir, f.off)
		f.report = nil
	}
	if dir == wire.ToServer {
		c.sent = true
	} else {
		c.x.Answered = true
		c.answered = c.answered || f.final
	}
	s.settle(c)
	return p
}

// read reads a header from the start of a message; false if b holds too little
// of it. first: nothing was read of this direction yet.
func (h *header) read(b []byte, first bool) (bool, error) {
	if first && mayBeTLS(b) {
		if len(b) < tlsLen {
			return false, nil
		}
		return false, fmt.Errorf("%w: a TLS handshake instead of a message", wire.ErrEncrypted)
	}
	if len(b) < 4 {
		return false, nil
	}
	h.length = le32(b)
	if h.length < minMessage || h.length > maxMessage {
		return false, fmt.Errorf("%w: length %d is not within %d to %d", wire.ErrMalformed, h.length, minMessage, maxMessage)
	}
	if len(b) < headerLen {
		return false, nil
	}
	h.requestID = int32(le32(b[4:]))
	h.responseTo = int32(le32(b[8:]))
	h.op = int32(le32(b[12:]))
	if !knownOp(h.op) {
		return false, fmt.Errorf("%w: opcode %d is not one of the protocol's", wire.ErrMalformed, h.op)
	}
	n := h.size()
	if len(b) < n {
		return false, nil
	}
	if n > headerLen {
		h.flags = binary.LittleEndian.Uint32(b[headerLen:])
	}
	return true, nil
}

// mayBeTLS reports whether b is, or may become, the start of a TLS handshake
// record: type 22, version 3.x, a length, then ClientHello or ServerHello. Its
// first byte alone is also that of a message of, say, 278 bytes.
func mayBeTLS(b []byte) bool {
	is := func(i int, ok func(byte) bool) bool { return len(b) <= i || ok(b[i]) }
	return is(0, func(c byte) bool { return c == 0x16 }) &&
		is(1, func(c byte) bool { return c == 3 }) &&
		is(2, func(c byte) bool { return c <= 4 }) &&
		is(5, func(c byte) bool { return c == 1 || c == 2 })
}

// begin finds or opens the exchange of a message that began at now and whose header was read. False:
// too many are open, and the session has given up.
func (s *session) begin(dir wire.Direction, h *header, now wire.Stamp) bool {
	f := &s.framers[dir]
	f.op = h.op
	if dir == wire.ToServer {
		f.call = s.beginRequest(h)
	} else {
		f.call = s.beginReply(h)
		f.final = !mayContinue(h)
	}
	if f.call == nil {
		s.giveUp(fmt.Errorf("mongodb: %s, message at byte %d: %w: more than %d requests await a reply",
			dir, f.off, wire.ErrMalformed, s.maxOpen))
		return false
	}
	f.call.refs++
	s.open.Hold(f.call.x)
	f.report = s.newReport(now)
	s.decoders[dir].queue.Push(framed{call: f.call, header: *h, report: f.report})
	return true
}

// crowded reports whether another exchange would exceed what may be open. Those
// that await no reply but whose bytes have not left are bounded too.
func (s *session) crowded(awaits bool) bool {
	return awaits && s.requests.n+s.exhausts.n >= s.maxOpen || s.open.Len() >= 4*s.maxOpen
}

func (s *session) beginRequest(h *header) *call {
	awaits := answered(h.op) && (h.op != opMsg || !moreToCome(h.flags))
	if s.crowded(awaits) {
		return nil
	}
	c := s.newCall()
	c.x.Mongo.OpCode, c.x.Mongo.RequestID = h.op, h.requestID
	c.plain = h.op == opGetMore
	if awaits {
		s.requests.add(h.requestID, c)
	} else {
		c.x.NoReply = true
		c.answered = true
	}
	return c
}

// beginReply finds the call that a reply answers. A reply that none is known
// for makes an exchange of its own. While more is to come the call awaits a
// reply to this reply: the server answers as if its own reply were the request
// (mongo/src/mongo/transport/session_workflow.cpp).
func (s *session) beginReply(h *header) *call {
	more := mayContinue(h)
	c := s.requests.take(h.responseTo)
	if c == nil {
		c = s.exhausts.take(h.responseTo)
	}
	if c == nil {
		if s.crowded(more) {
			return nil
		}
		c = s.newCall()
		c.x.Mongo.OpCode, c.x.Mongo.RequestID = h.op, h.responseTo
		c.sent, c.orphan = true, true
	}
	if more {
		c.x.Mongo.Exhaust = c.x.Mongo.Exhaust || h.op == opMsg
		s.exhausts.add(h.requestID, c)
	}
	return c
}

// mayContinue reports whether another reply may follow this one unasked. What
// a compressed one says of it is known after decoding.
func mayContinue(h *header) bool {
	return h.op == opCompressed || h.op == opMsg && moreToCome(h.flags)
}
