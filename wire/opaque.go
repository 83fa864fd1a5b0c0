package wire

// NewOpaque is the session of a connection whose bytes mean nothing to us:
// everything passes, nothing is framed.
func NewOpaque() Session { return &opaque{open: NewOpen(TCP)} }

type opaque struct{ open *Open }

func (*opaque) Frame(_ Direction, b []byte, _ Stamp, pieces []Piece) []Piece {
	if len(b) == 0 {
		return pieces
	}
	return append(pieces, Piece{Len: len(b), Opaque: true, Draw: true})
}

func (*opaque) Decode(Direction, []byte, []Piece) {}
func (o *opaque) Open() *Open                     { return o.open }
func (*opaque) Opaque() error                     { return nil }
func (*opaque) Quiet() bool                       { return true }
func (*opaque) End()                              {}
