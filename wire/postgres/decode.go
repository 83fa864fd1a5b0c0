package postgres

import "github.com/wirewait/wirewait/wire"

const (
	maxText    = 64 << 10 // of SQL that is looked at
	maxNames   = 1 << 10  // of a portal's and a statement's name together
	maxReport  = 16 << 10 // of an ErrorResponse, a NoticeResponse
	maxTag     = 256
	maxSetting = 4 << 10 // of a ParameterStatus
	maxOffer   = 1 << 10 // of an authentication request
	keepBuffer = 8 << 10 // a larger one isn't kept for the next message
)

// decoder reads one direction's messages, in the order of their framing.
type decoder struct {
	off   int64  // bytes of the stream given to Decode
	seen  int    // bytes of the current message given so far
	body  []byte // of a message that straddles reads, as far as it's wanted
	facts wire.Queue[fact]
}

// Decode implements wire.Session.
func (s *session) Decode(dir wire.Direction, b []byte, pieces []wire.Piece) {
	if s.ended {
		return
	}
	d := &s.decoders[dir]
	s.forgetInspected()
	for i := range pieces {
		p := &pieces[i]
		n := min(p.Len, len(b))
		if p.Opaque {
			d.off += int64(n)
		} else {
			s.decodePiece(dir, d, b[:n], p)
		}
		b = b[n:]
	}
	s.settle()
}

func (s *session) decodePiece(dir wire.Direction, d *decoder, chunk []byte, p *wire.Piece) {
	if p.First {
		d.seen = 0
		d.body = d.body[:0]
	}
	early := d.seen
	d.seen += len(chunk)
	d.off += int64(len(chunk))
	if s.told[dir].Len() > 0 {
		s.decodeReport(dir, d, chunk, p)
	}
	limit := wanted(dir, p.Kind)
	if limit == 0 || p.Last && d.seen == 1 { // an answer to an SSLRequest is one byte
		return
	}
	header := headerLen
	if p.Kind > 0xff {
		header = startupHeader
	}
	chunk = chunk[min(max(header-early, 0), len(chunk)):]
	cut := d.seen-header > limit
	if early > 0 || !p.Last {
		d.body = append(d.body, chunk[:min(len(chunk), limit-len(d.body))]...)
		chunk = d.body
	} else if cut {
		chunk = chunk[:limit]
	}
	if !p.Last {
		return
	}
	if dir == wire.ToServer {
		s.readRequest(p.Kind, chunk, cut)
		s.noteRequest(p)
	} else {
		s.readReply(byte(p.Kind), chunk, cut)
	}
	if cap(d.body) > keepBuffer {
		d.body = nil
	}
}

// wanted is how many bytes of a message's body are looked at. Passwords are
// not, nor are values.
func wanted(dir wire.Direction, kind int32) int {
	if kind > 0xff {
		if kind == codeSSL || kind == codeGSS || kind == codeCancel {
			return 0
		}
		return maxStartup
	}
	if dir == wire.ToServer {
		switch kind {
		case 'Q':
			return maxText
		case 'P':
			return maxText + maxNames
		case 'B', 'E', 'C', 'D':
			return maxNames
		case 'F':
			return 4
		}
		return 0
	}
	switch kind {
	case 'C':
		return maxTag
	case 'Z':
		return 1
	case 'E', 'N':
		return maxReport
	case 'S':
		return maxSetting
	case 'R':
		return maxOffer
	case 'K':
		return 4
	}
	return 0
}
