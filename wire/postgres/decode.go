package postgres

import "github.com/wirewait/wirewait/wire"

// decoder reads one direction's messages, in the order of their framing.
type decoder struct {
	off int64 // bytes of the stream given to Decode
}

// Decode implements wire.Session.
func (s *session) Decode(dir wire.Direction, b []byte, pieces []wire.Piece) {
	if s.ended {
		return
	}
	s.decoders[dir].off += int64(len(b))
	s.settle()
}
