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
// src/operations/insert.ts: a sequence is for bulk writes). So a command that has
// not ended by then is read again, once, as far as lateInflate: after its bytes
// are on their way, but before anything else of its connection is looked at. That
// is why it isn't more, and why lateRatio bounds what a client can make us do for
// a byte that it sends.
const (
	packedHead  = 9
	maxInflate  = 256 << 10
	lateInflate = 4 << 20
	lateRatio   = 64
)

// packedFor is how many compressed bytes are enough for so many inflated ones:
// what doesn't compress grows by less than the slack.
func packedFor(inflated int) int { return packedHead + inflated + inflated/32 }

// packed gathers the start of a compressed message that straddles reads: as much
// as the next pass needs, and nothing once there is none.
type packed struct {
	buf    []byte
	taken  int // of the budget
	passes int // made, or given up
}

// passes are how far a body is inflated: the second time only a command that
// goes on, or a batch of the oplog, whose last entry counts.
var passes = [...]int{maxInflate, lateInflate}

// enough returns the first n bytes of the body, and what is left of chunk. It
// failed if the budget has no room to keep them until all are there.
func (p *packed) enough(chunk []byte, n int, budget wire.Budget) (in, rest []byte, st status) {
	if len(p.buf) == 0 && len(chunk) >= n {
		return chunk[:n], chunk, done // not kept, so not used up
	}
	if n > p.taken {
		if !take(budget, n-p.taken) {
			return nil, nil, failed
		}
		p.taken = n
	}
	k := min(len(chunk), n-len(p.buf))
	p.buf = append(p.buf, chunk[:k]...)
	if len(p.buf) < n {
		return nil, nil, hungry
	}
	return p.buf, chunk[k:], done
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

// unpack takes the next bytes of a compressed body, and reads what they hold as
// soon as there are enough of them.
func (s *session) unpack(dir wire.Direction, f *framed, chunk []byte) {
	d := &s.decoders[dir]
	p := &d.packed
	for p.passes < len(passes) {
		limit := passes[p.passes]
		in, rest, st := p.enough(chunk, min(f.length-headerLen, packedFor(limit)), s.options.Inflate)
		if st == hungry {
			return
		}
		p.passes++
		if st == failed && limit == maxInflate {
			d.body.note(troubleBudget)
		}
		if st == failed || !s.inflate(limit, dir, f, in) {
			p.passes = len(passes)
		}
		chunk = rest
	}
}

// inflate reads a compressed body of which in is all, or the start, and reports
// whether more of it is worth reading.
func (s *session) inflate(limit int, dir wire.Direction, f *framed, in []byte) (goesOn bool) {
	b := &s.decoders[dir].body
	if reason := s.checkPacked(dir, f, in); reason != "" {
		b.note(reason)
		return false
	}
	op, size := int32(le32(in)), le32(in[4:])
	late := limit > maxInflate
	if late {
		if limit = min(limit, maxInflate+lateRatio*len(in), size); limit <= maxInflate {
			return false
		}
	}
	cost := inflateCost(limit)
	if !take(s.options.Inflate, cost) {
		if !late {
			b.note(troubleBudget)
		}
		return false
	}
	if late { // from the start
		if dir == wire.ToServer {
			s.request.begin(s, f.call)
		} else {
			s.reply.begin(s, f.call)
		}
		b.reset()
	}
	if reason := s.inflateTo(limit, dir, f, in); reason != "" {
		b.note(reason)
	}
	if s.options.Inflate != nil {
		s.options.Inflate.Give(cost)
	}
	return (dir == wire.ToServer || s.reply.oplog) && op == opMsg && b.trouble == "" && b.cut && !b.whole && !b.over
}

// checkPacked reads what stands before the compressed bytes; it returns a reason
// for trouble.
func (s *session) checkPacked(dir wire.Direction, f *framed, in []byte) string {
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
	return ""
}

// inflateTo inflates and reads the first limit bytes of a body.
func (s *session) inflateTo(limit int, dir wire.Direction, f *framed, in []byte) string {
	op, size, id := int32(le32(in)), le32(in[4:]), in[8]
	z := borrowInflater(limit)
	out, reason := z.inflate(id, in[packedHead:], size, len(in) == f.length-headerLen)
	if len(out) > 0 || reason == "" {
		b := &s.decoders[dir].body
		s.beginBody(dir, op, size)
		b.cut = len(out) < size
		b.feed(out)
	}
	z.giveBack()
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
