package proxy

import (
	"bytes"
	"encoding/binary"
)

// offer takes SCRAM-SHA-256-PLUS out of what a PostgreSQL server offers, where
// the server's leg has TLS and the client's has none: such a client can't bind
// to a channel, and libpq takes the offer for an attack. The server minds
// nothing: a client without TLS says that it does not know of binding (the flag
// n of RFC 5802, section 7), which is always allowed.
//
// It's the one place where a message is changed. AuthenticationSASL is
//
//	R | Int32 length | Int32 10 | mechanism NUL ... | NUL
//
// and comes before anything but NegotiateProtocolVersion and notices. What
// comes after it, or instead of it, passes untouched.
type offer struct {
	held  []byte // read, and not looked at yet
	ready []byte // to be given on
	over  bool   // nothing more is looked at
}

const (
	authenticationSASL = 10
	maxOffer           = 2_000 // an AuthenticationSASL is some 40 bytes
)

var boundMechanism = []byte("SCRAM-SHA-256-PLUS\x00")

// read fills b with what there is, reading more by next where it must.
func (o *offer) read(b []byte, next func([]byte) (int, error)) (int, error) {
	for len(o.ready) == 0 {
		if o.over {
			return next(b)
		}
		chunk := make([]byte, maxOffer)
		n, err := next(chunk)
		o.held = append(o.held, chunk[:n]...)
		o.look()
		if err != nil {
			o.pass()
			if len(o.ready) == 0 {
				return 0, err
			}
		}
	}
	n := copy(b, o.ready)
	o.ready = o.ready[n:]
	return n, nil
}

// look takes whole messages from held until the offer is found, or what can't
// come before one.
func (o *offer) look() {
	for !o.over && len(o.held) >= 5 {
		size := 1 + int(binary.BigEndian.Uint32(o.held[1:]))
		switch t := o.held[0]; {
		case size > maxOffer, size < 5, t != 'R' && t != 'v' && t != 'N':
			o.pass()
			return
		case len(o.held) < size:
			return
		case t == 'R':
			o.ready = append(o.ready, withoutBinding(o.held[:size])...)
			o.held = o.held[size:]
			o.pass()
		default:
			o.ready = append(o.ready, o.held[:size]...)
			o.held = o.held[size:]
		}
	}
}

func (o *offer) pass() {
	o.ready = append(o.ready, o.held...)
	o.held, o.over = nil, true
}

// withoutBinding is a whole Authentication message without the bound mechanism,
// or as it is if it offers none or no other.
func withoutBinding(m []byte) []byte {
	if len(m) < 9 || binary.BigEndian.Uint32(m[5:]) != authenticationSASL {
		return m
	}
	list := append([]byte{0}, m[9:]...) // so that each name has a NUL before it
	i := bytes.Index(list, append([]byte{0}, boundMechanism...))
	if i < 0 || len(list) <= len(boundMechanism)+2 {
		return m
	}
	list = append(list[:i:i], list[i+len(boundMechanism):]...)
	out := append(bytes.Clone(m[:9]), list[1:]...)
	binary.BigEndian.PutUint32(out[1:], uint32(len(out)-1))
	return out
}
