package pump

import "github.com/wirewait/wirewait/wire"

// window is how much of a message is kept back until it's known what becomes of
// it. Of a longer one all but the last piece passes before that.
const window = 64 << 10

// judged is the message that a direction stands in, on a connection whose
// messages are looked into before they pass.
type judged struct {
	how  fate
	kept []byte  // what came of it, and has not passed
	draw bool    // of its first piece
	doom *choice // it's being thrown away by this rule, and will be answered
}

// fate is what becomes of the message at hand.
type fate uint8

const (
	fresh     fate = iota
	keeping        // it's kept back until it's whole
	streaming      // it passes, but for its last piece
	unseen         // it began before anybody looked: it passes
	losing         // it's thrown away
)

// undecided reports that a message must be followed to its end.
func (j *judged) undecided() bool { return j.how != fresh && j.how != unseen }

// inspect takes the read apart message by message: each is decoded, judged, and
// passes or doesn't.
func (rd *reading) inspect() {
	c, p := rd.Conn, rd.p
	for rd.off < len(rd.b) && !p.deaf {
		rd.answer()
		pc := c.inspector.FrameOne(p.dir, rd.b[rd.off:], rd.now)
		lo := rd.off
		rd.off += pc.Len
		x := pc.Exchange
		if x != nil {
			c.session.Open().Hold(x) // decoding may end it
		}
		p.pieces = append(p.pieces[:0], pc)
		c.session.Decode(p.dir, rd.b[lo:rd.off], p.pieces)
		p.pieces = p.pieces[:0]
		p.mid = !pc.Last && !pc.Opaque
		c.recognise(rd.now)
		rd.judge(lo, rd.off, &pc)
		if x != nil {
			c.session.Open().Release(x)
		}
	}
	rd.answer()
	c.lookInside()
}

// judge decides about a piece, the stretch [lo, hi) of b.
func (rd *reading) judge(lo, hi int, pc *wire.Piece) {
	c, p := rd.Conn, rd.p
	if pc.Opaque {
		c.letGo(p, rd.now)
		p.how = fresh
		rd.pass(lo, hi, pc)
		return
	}
	if p.how == fresh {
		p.draw = pc.Draw
		switch {
		case pc.Remove:
			p.how = losing
		case !pc.First:
			p.how = unseen
		case c.keeps(p.dir) || c.rewrites(p.dir, pc.Exchange):
			p.how = keeping
		default:
			p.how = streaming
		}
	}
	switch {
	case p.doom != nil && pc.Last:
		rd.refuse(c.inspector.Asked().Exchange, p.doom, hi-lo, &wire.Piece{Draw: p.draw})
		p.doom = nil
	case pc.Remove, p.how == losing:
		rd.lose(hi - lo)
	case p.how == unseen:
		rd.pass(lo, hi, pc)
	case pc.Last:
		rd.decide(lo, hi, pc)
	case p.how == keeping:
		p.kept = append(p.kept, rd.b[lo:hi]...)
		if len(p.kept) > window {
			rd.decideEarly(pc)
		}
	default:
		rd.pass(lo, hi, pc)
	}
	if pc.Last {
		p.how = fresh
	}
}

// keeps reports whether messages of a direction are kept back until they are
// whole.
func (c *Conn) keeps(dir wire.Direction) bool {
	if dir == wire.ToServer {
		return c.refuses()
	}
	return c.replaces()
}

// rewrites reports whether a message is kept back because it may be changed.
func (c *Conn) rewrites(dir wire.Direction, x *wire.Exchange) bool {
	return dir == wire.ToClient && x != nil && c.rewriter != nil && c.rewriter.Rewrites(x)
}

// lose throws n bytes away, which the session was shown.
func (rd *reading) lose(n int) {
	n += len(rd.p.kept)
	rd.p.forgetKept()
	rd.p.edits.replace(n, 0)
}

// letGo passes on what is kept back, as it is.
func (c *Conn) letGo(p *pump, now wire.Stamp) {
	if len(p.kept) == 0 {
		return
	}
	kept := p.kept
	p.kept = nil
	c.put(p, kept, &wire.Piece{Len: len(kept), Draw: p.draw}, now)
}

// forgetKept empties what is kept back. Memory that a large message took isn't
// held on to.
func (j *judged) forgetKept() {
	if j.kept = j.kept[:0]; cap(j.kept) > 4<<10 {
		j.kept = nil
	}
}

// decide says what becomes of a message that is whole now: the stretch [lo, hi)
// is its last piece.
func (rd *reading) decide(lo, hi int, pc *wire.Piece) {
	p := rd.p
	last := *pc
	last.Draw = p.draw && (len(p.kept) > 0 || pc.First)
	streamed := p.how == streaming && !pc.First
	if p.dir == wire.ToServer {
		if rd.request(lo, hi, &last, streamed) {
			return
		}
	} else if rd.reply(lo, hi, &last, streamed) || !streamed && rd.rewrite(lo, hi, &last) {
		return
	}
	rd.passAll(lo, hi, &last)
}

// passAll passes what was kept back, and behind it the stretch [lo, hi).
func (rd *reading) passAll(lo, hi int, pc *wire.Piece) {
	p := rd.p
	if len(p.kept) == 0 {
		rd.pass(lo, hi, pc)
		return
	}
	kept := *pc
	kept.Len = len(p.kept)
	rd.put(p, p.kept, &kept, rd.now)
	p.forgetKept()
	rd.r.Queued = true
	rest := *pc
	rest.Draw = false
	rd.pass(lo, hi, &rest)
}

// decideEarly says what becomes of a message of which more came than can be kept
// back.
func (rd *reading) decideEarly(pc *wire.Piece) {
	p := rd.p
	if p.dir == wire.ToServer && rd.foresee() {
		p.how = losing
		return
	}
	p.how = streaming
	kept := *pc
	kept.Len, kept.Draw = len(p.kept), p.draw
	rd.put(p, p.kept, &kept, rd.now)
	p.forgetKept()
	rd.r.Queued = true
}
