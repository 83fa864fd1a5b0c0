package postgres

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/wirewait/wirewait/wire"
)

// phase is where the client's stream stands.
type phase uint8

const (
	phaseStart  phase = iota // packets without a type byte
	phaseNormal              // after a StartupMessage, or joined in mid-stream
)

const (
	minStartup   = 8
	maxStartup   = 10_000 // MAX_STARTUP_PACKET_LENGTH (src/include/libpq/pqcomm.h)
	tlsHandshake = 0x16   // a TLS record's first byte
)

// midStream reports whether the client's stream, of which nothing was seen,
// begins with a message and not with a start-up packet, whose first byte is 0.
func (s *session) midStream(first byte) bool {
	f := &s.framers[wire.ToServer]
	return !f.begun && f.have == 0 && known[wire.ToServer][first]
}

// frameStartup takes what b holds of a packet of the start-up phase. What the
// server answered to an SSLRequest is told by what the client sends next, so
// that its stream can be read alone.
func (s *session) frameStartup(f *framer, b []byte, now wire.Stamp) wire.Piece {
	raw, early := f.header(b, startupHeader, now)
	p := wire.Piece{First: early == 0, Draw: early == 0}
	code, ok, err := readStartup(raw)
	switch {
	case err != nil:
		if s.asked.Len() > 0 && raw[0] != tlsHandshake && *s.asked.At(s.asked.Len() - 1) == 'G' {
			err = fmt.Errorf("%w: GSSAPI after a GSSENCRequest", wire.ErrEncrypted)
		}
		s.giveUp(wire.ToServer, f.off-int64(early), err)
		return wire.Piece{}
	case !ok:
		return f.wait(p, b)
	}
	f.kind, f.c, f.how, f.urgent = int32(code), nil, tallyAll, false
	switch code {
	case codeSSL:
		s.asked.Push('S')
	case codeGSS:
		s.asked.Push('G')
	case codeCancel:
		f.c, f.urgent = s.newCall(kindCancel), true
		f.c.x.NoReply = true
	default:
		f.c = s.newCall(kindStartup)
		s.phase = phaseNormal
	}
	if s.asked.Len() > maxAsked {
		s.giveUp(wire.ToServer, f.off-int64(early), fmt.Errorf("%w: more than %d requests for encryption", wire.ErrMalformed, maxAsked))
		return wire.Piece{}
	}
	f.start(s, wire.ToServer, int(binary.BigEndian.Uint32(raw)), early)
	return s.advance(wire.ToServer, f, p, len(b), now)
}

// maxAsked bounds the requests for encryption that await an answer. Drivers
// ask twice at most.
const maxAsked = 64

// readStartup reads a start-up packet's length and code; false if raw holds too
// little of them. Any version of the protocol is taken, known or not: the
// server negotiates.
func readStartup(raw []byte) (code uint32, ok bool, err error) {
	if raw[0] == tlsHandshake {
		return 0, false, fmt.Errorf("%w: a TLS handshake", wire.ErrEncrypted)
	}
	if raw[0] != 0 {
		return 0, false, fmt.Errorf("%w: byte %#02x begins neither a start-up packet nor a message", wire.ErrMalformed, raw[0])
	}
	if len(raw) < 4 {
		return 0, false, nil
	}
	if n := binary.BigEndian.Uint32(raw); n < minStartup || n > maxStartup {
		return 0, false, fmt.Errorf("%w: length %d of a start-up packet is not within %d to %d",
			wire.ErrMalformed, n, minStartup, maxStartup)
	}
	if len(raw) < startupHeader {
		return 0, false, nil
	}
	code = binary.BigEndian.Uint32(raw[4:])
	switch major := code >> 16; {
	case code == codeSSL, code == codeGSS, code == codeCancel, major >= 2 && major <= 9:
		return code, true, nil
	}
	return 0, false, fmt.Errorf("%w: start-up code %#08x is not a version of the protocol", wire.ErrMalformed, code)
}

// answersStill reports whether the answer to a request for encryption is still
// to come, although the client has shown what it will be: its stream is
// encrypted by now.
func (s *session) answersStill(dir wire.Direction) bool {
	return dir == wire.ToClient && !s.ended && s.asked.Len() > 0 && s.framers[dir].have == 0 &&
		errors.Is(s.err, wire.ErrEncrypted)
}

// frameAnswer takes the one-byte answer to a request for encryption, if b
// begins with one.
func (s *session) frameAnswer(f *framer, b []byte, now wire.Stamp) (wire.Piece, bool) {
	if s.asked.Len() == 0 {
		if f.begun || s.framers[wire.ToServer].off > 0 {
			return wire.Piece{}, false
		}
		return s.guessAnswer(f, b, now)
	}
	asked := s.asked.Pop()
	if b[0] != 'N' && b[0] != asked {
		// A very old server's ErrorResponse, if anything.
		s.asked = wire.Queue[byte]{}
		return wire.Piece{}, false
	}
	return s.answer(f, b[0]), true
}

// answer is the piece of an answer. S and G mean that all that follows is
// encrypted.
func (s *session) answer(f *framer, c byte) wire.Piece {
	if c != 'N' {
		s.encrypted(c, f.off)
	}
	f.off++
	return wire.Piece{Len: 1, Kind: int32(c), First: true, Last: true, Draw: true}
}

// encrypted gives up after the answer c at an offset of the server's stream.
func (s *session) encrypted(c byte, at int64) {
	if s.err != nil {
		return
	}
	what := "TLS after an SSLRequest"
	if c == 'G' {
		what = "GSSAPI after a GSSENCRequest"
	}
	s.giveUp(wire.ToClient, at, fmt.Errorf("%w: %s", wire.ErrEncrypted, what))
}

// guessAnswer tells an answer from a message where the client's stream is not
// in the capture: a message goes on with a length, whose first byte is 0. One
// byte alone is left undecided.
func (s *session) guessAnswer(f *framer, b []byte, now wire.Stamp) (wire.Piece, bool) {
	held := f.have == 1
	c, rest := b[0], b[1:]
	if held {
		c, rest = f.head[0], b
	}
	if c != 'N' && c != 'S' {
		return wire.Piece{}, false
	}
	if len(rest) == 0 {
		s.unsure, f.headIn = true, now
		return f.wait(wire.Piece{First: true, Draw: true, Kind: int32(c)}, b), true
	}
	s.unsure = false
	if c == 'N' && !known[wire.ToClient][rest[0]] || c == 'S' && rest[0] != tlsHandshake {
		return wire.Piece{}, false
	}
	if !held {
		return s.answer(f, c), true
	}
	f.have = 0
	if c == 'S' {
		s.encrypted(c, f.off-1)
		return wire.Piece{}, false
	}
	return s.guessAnswer(f, b, now)
}
