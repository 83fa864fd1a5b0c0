package postgres

import (
	"encoding/binary"
	"fmt"

	"github.com/wirewait/wirewait/wire"
)

const (
	headerLen     = 5
	minLength     = 4
	maxLength     = 0x3fffffff // PQ_LARGE_MESSAGE_LIMIT, MaxAllocSize (src/include/libpq/libpq.h)
	startupHeader = 8
)

// tally is how the bytes of a message are entered into the books.
type tally uint8

const (
	tallyNone tally = iota
	tallyAll        // bytes and stamps
	tallyOnly       // bytes alone: nobody waits for them
	tallyCopy       // stamps now, bytes when it is known whose they are
)

// framer walks one direction's bytes from header to header.
type framer struct {
	off    int64 // bytes of the stream framed so far
	left   int   // bytes of the current message still to come
	kind   int32
	c      *call // of the current message
	how    tally
	urgent bool
	remove bool // the current message is not for the client
	have   int  // bytes of a header that has not come whole
	head   [startupHeader]byte
	headIn wire.Stamp // when the first of them came
	begun  bool       // a message of this direction was framed
	report *wire.Report
}

// Frame implements wire.Session.
func (s *session) Frame(dir wire.Direction, b []byte, now wire.Stamp, pieces []wire.Piece) []wire.Piece {
	f := &s.framers[dir]
	for len(b) > 0 && !s.closed() {
		p := s.frameOne(dir, f, b, now)
		if p.Len == 0 { // closed meanwhile
			break
		}
		pieces = append(pieces, p)
		b = b[p.Len:]
	}
	for len(b) > 0 && s.answersStill(dir) {
		p, ok := s.frameAnswer(f, b, now)
		if !ok {
			break
		}
		pieces = append(pieces, p)
		b = b[p.Len:]
	}
	if len(b) > 0 {
		f.off += int64(len(b))
		pieces = append(pieces, wire.Piece{Len: len(b), Opaque: true, Draw: true})
	}
	return pieces
}

// frameOne takes what b holds of one message; a piece without bytes says that
// framing is over.
func (s *session) frameOne(dir wire.Direction, f *framer, b []byte, now wire.Stamp) wire.Piece {
	if f.left > 0 {
		return s.advance(dir, f, wire.Piece{}, len(b), now)
	}
	if dir == wire.ToServer && s.phase != phaseNormal {
		if s.midStream(b[0]) {
			s.phase = phaseNormal
		} else {
			return s.frameStartup(f, b, now)
		}
	}
	if dir == wire.ToClient && (f.have == 0 || s.unsure) {
		if p, ok := s.frameAnswer(f, b, now); ok || s.err != nil {
			return p
		}
	}
	raw, early := f.header(b, headerLen, now)
	t := raw[0]
	p := wire.Piece{Kind: int32(t), First: early == 0, Remove: s.removes(dir, t)}
	if !known[dir][t] {
		s.giveUp(dir, f.off-int64(early), fmt.Errorf("%w: %q is not a type of message", wire.ErrMalformed, t))
		return wire.Piece{}
	}
	if early == 0 {
		p.Draw = s.draws(dir, t)
	}
	if len(raw) < headerLen {
		return f.wait(p, b)
	}
	n := binary.BigEndian.Uint32(raw[1:])
	if n < minLength || n > maxLength {
		s.giveUp(dir, f.off-int64(early), fmt.Errorf("%w: length %d of a %q message is not within %d to %d",
			wire.ErrMalformed, n, t, minLength, maxLength))
		return wire.Piece{}
	}
	if (dir == wire.ToServer || p.Draw) && s.crowded() { // a row adds nothing
		s.giveUp(dir, f.off-int64(early), s.errCrowded())
		return wire.Piece{}
	}
	switch f.remove = p.Remove; {
	case f.remove:
		f.c, f.how = nil, tallyNone
	case dir == wire.ToServer:
		f.c, f.how = s.beginRequest(t)
	default:
		f.c, f.how = s.beginReply(t)
	}
	f.kind = int32(t)
	if s.reports(dir, t) {
		s.beginReport(dir, f, early, now)
	}
	f.start(s, dir, int(n)+1, early)
	return s.advance(dir, f, p, len(b), now)
}

// header returns up to n bytes of the header that b goes on with, and how many
// of them came before b.
func (f *framer) header(b []byte, n int, now wire.Stamp) (raw []byte, early int) {
	early = f.have
	if early == 0 {
		f.headIn = now
		if len(b) >= n {
			return b[:n], 0
		}
	}
	k := copy(f.head[early:n], b)
	return f.head[:early+k], early
}

// wait takes b as part of a header that is not whole yet.
func (f *framer) wait(p wire.Piece, b []byte) wire.Piece {
	copy(f.head[f.have:], b)
	f.have += len(b)
	f.off += int64(len(b))
	p.Len = len(b)
	return p
}

// start begins a message of n bytes, of which early came before.
func (f *framer) start(s *session, dir wire.Direction, n, early int) {
	f.have, f.left, f.begun = 0, n-early, true
	if early > 0 {
		f.count(s.open, dir, early, f.headIn)
	}
}

// advance takes up to n bytes of the current message, and ends the message with
// its last one.
func (s *session) advance(dir wire.Direction, f *framer, p wire.Piece, n int, now wire.Stamp) wire.Piece {
	p.Len, p.Kind, p.Urgent, p.Remove = min(f.left, n), f.kind, f.urgent, f.remove
	f.off += int64(p.Len)
	f.left -= p.Len
	if f.c != nil {
		if f.how != tallyNone {
			f.count(s.open, dir, p.Len, now)
		}
		if f.how != tallyNone || dir == wire.ToServer {
			p.Exchange = f.c.x
		}
	}
	if f.left > 0 {
		return p
	}
	p.Last = true
	if f.remove {
		f.remove = false
		return p
	}
	s.endReport(dir, f)
	c := f.c
	f.c = nil
	if dir == wire.ToServer {
		s.endRequest(f.kind, c, f.how, f.off, now)
	} else {
		s.endReply(byte(f.kind), c, f.how, f.off, now)
	}
	return p
}

func (f *framer) count(o *wire.Open, dir wire.Direction, n int, now wire.Stamp) {
	c := f.c
	if c == nil {
		return
	}
	switch f.how {
	case tallyAll:
		o.Count(c.x, dir, n, now)
	case tallyOnly:
		o.CountOnly(c.x, dir, n)
	case tallyCopy:
		c.copied += int64(n)
		o.Count(c.x, dir, 0, now)
	}
}
