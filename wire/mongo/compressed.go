package mongo

import (
	"github.com/wirewait/wirewait/wire"
)

// OP_COMPRESSED (specifications/source/compression/OP_COMPRESSED.md):
//
//	int32 opcode | int32 size of the body when inflated | byte compressor | bytes
//
// The inner message has no header of its own. Only its first maxInflate bytes
// are read: commands come before their documents, and error replies are short.
const (
	packedHead = 9
	maxInflate = 256 << 10
	// maxPacked of the compressed bytes are enough for that: what doesn't
	// compress grows by less than the slack.
	maxPacked = packedHead + maxInflate + 8<<10
)

// packed gathers a compressed message that straddles reads.
type packed struct {
	buf     []byte
	taken   int // of the budget
	refused bool
}

func (p *packed) gather(chunk []byte, size int, budget wire.Budget) {
	size = min(size, maxPacked)
	if p.taken == 0 && !p.refused {
		p.refused = !take(budget, size)
		if !p.refused {
			p.taken = size
		}
	}
	if !p.refused {
		p.buf = append(p.buf, chunk[:min(len(chunk), size-len(p.buf))]...)
	}
}

// end gives back what the message took.
func (p *packed) end(budget wire.Budget) {
	if p.taken > 0 && budget != nil {
		budget.Give(p.taken)
	}
	buf := p.buf[:0]
	if cap(buf) > 1024 {
		buf = nil
	}
	*p = packed{buf: buf}
}

func take(budget wire.Budget, n int) bool { return budget == nil || budget.Take(n) }

// unpack takes the next bytes of a compressed body, and with the last of them
// reads what they hold.
func (s *session) unpack(dir wire.Direction, f *framed, chunk []byte, last bool) {
	d := &s.decoders[dir]
	p := &d.packed
	in := chunk
	if gathering := len(p.buf) > 0 || p.refused; gathering || !last {
		p.gather(chunk, f.length-headerLen, s.options.Inflate)
		in = p.buf
	}
	if !last {
		return
	}
	if p.refused {
		d.body.note(troubleBudget)
		return
	}
	if reason := s.inflate(dir, f, in); reason != "" {
		d.body.note(reason)
	}
}

// inflate reads a compressed body of which in is all, or the first maxPacked
// bytes. It returns a reason for trouble.
func (s *session) inflate(dir wire.Direction, f *framed, in []byte) string {
	if len(in) < packedHead {
		return troubleShort
	}
	op, size, id := int32(le32(in)), le32(in[4:]), in[8]
	name := compressorName(id)
	if x := f.call.x; dir == wire.ToServer || x.Compressor == "" {
		x.Compressor = name
	}
	switch {
	case name == "":
		return troubleCompressor
	case !knownOp(op) || op == opCompressed:
		return troubleCompressed
	case size < 0 || size > maxMessage-headerLen:
		return troubleSize
	case !take(s.options.Inflate, inflateCost):
		return troubleBudget
	}
	z := borrowInflater()
	out, reason := z.inflate(id, in[packedHead:], size, len(in) == f.length-headerLen)
	if len(out) > 0 || reason == "" {
		b := &s.decoders[dir].body
		s.beginBody(dir, op, size)
		b.cut = len(out) < size
		b.feed(out)
	}
	z.giveBack()
	if s.options.Inflate != nil {
		s.options.Inflate.Give(inflateCost)
	}
	return reason
}

// Compressor ids.
const (
	packedNoop   = 0
	packedSnappy = 1
	packedZlib   = 2
	packedZstd   = 3
)

func compressorName(id byte) string {
	switch id {
	case packedNoop:
		return "noop"
	case packedSnappy:
		return "snappy"
	case packedZlib:
		return "zlib"
	case packedZstd:
		return "zstd"
	}
	return ""
}
