package mongo

import (
	"github.com/wirewait/wirewait/wire"
)

// OP_COMPRESSED (specifications/source/compression/OP_COMPRESSED.md):
//
//	int32 opcode | int32 size of the body when inflated | byte compressor | bytes
//
// The inner message has no header of its own. Only its first maxInflate bytes
// are read: most drivers send a command before its documents, and error replies
// are short.
//
// The Node.js driver's insertOne and updateOne, and so mongosh's, have them in the
// command, in front of its write concern (node-mongodb-native 7.9,
// src/operations/insert.ts: a sequence is for bulk writes). So a command that has not ended by then is read
// again, as far as lateInflate, once: after its bytes are on their way, but before
// anything else of its connection is looked at. That is why it isn't more, and
// why lateRatio bounds what a client can make us do for a byte that it sends.
const (
	packedHead  = 9
	maxInflate  = 256 << 10
	lateInflate = 4 << 20
	lateRatio   = 64
)

// packedFor is how many compressed bytes are enough for so many inflated ones:
// what doesn't compress grows by less than the slack.
func packedFor(inflated int) int { return packedHead + inflated + inflated/32 }

// packedSizes are what is gathered of a message that is longer, by direction:
// the most that is of use, and less if the budget has no room for that.
var packedSizes = [2][]int{
	wire.ToServer: {packedFor(lateInflate), packedFor(maxInflate)},
	wire.ToClient: {packedFor(maxInflate)},
}

// packed gathers a compressed message that straddles reads.
type packed struct {
	buf     []byte
	taken   int // of the budget
	refused bool
}

// gather keeps chunk of a message whose body has size bytes.
func (p *packed) gather(dir wire.Direction, chunk []byte, size int, budget wire.Budget) {
	if p.taken == 0 && !p.refused {
		p.refused = true
		for _, most := range packedSizes[dir] {
			if n := min(size, most); take(budget, n) {
				p.taken, p.refused = n, false
				break
			}
		}
	}
	if !p.refused {
		p.buf = append(p.buf, chunk[:min(len(chunk), p.taken-len(p.buf))]...)
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
		p.gather(dir, chunk, f.length-headerLen, s.options.Inflate)
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

// inflate reads a compressed body of which in is all, or the start. It returns a
// reason for trouble.
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
	}
	reason := s.inflateTo(maxInflate, dir, f, in)
	b := &s.decoders[dir].body
	late := min(lateInflate, maxInflate+lateRatio*len(in), size)
	if dir == wire.ToServer && op == opMsg && reason == "" && b.cut && !b.whole && !b.over && late > maxInflate {
		first := *b
		s.request.begin(s, f.call)
		b.reset()
		if reason = s.inflateTo(late, dir, f, in); reason == troubleBudget {
			*b, reason = first, ""
		}
	}
	return reason
}

// inflateTo inflates and reads the first limit bytes of a body.
func (s *session) inflateTo(limit int, dir wire.Direction, f *framed, in []byte) string {
	op, size, id := int32(le32(in)), le32(in[4:]), in[8]
	cost := inflateCost(limit)
	if !take(s.options.Inflate, cost) {
		return troubleBudget
	}
	z := borrowInflater(limit)
	out, reason := z.inflate(id, in[packedHead:], size, len(in) == f.length-headerLen)
	if len(out) > 0 || reason == "" {
		b := &s.decoders[dir].body
		s.beginBody(dir, op, size)
		b.cut = len(out) < size
		b.feed(out)
	}
	z.giveBack()
	if s.options.Inflate != nil {
		s.options.Inflate.Give(cost)
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
