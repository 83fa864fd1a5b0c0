package pump

import (
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// Result is what to do after Read.
type Result struct {
	// Direct is how many of the bytes to write now, from the first on; report
	// what became of them by Sent.
	Direct int
	// Kept says that the buffer now belongs to the line.
	Kept bool
	// Queued says that bytes went into the line: see Next.
	Queued bool
	// Other says that something went into the other direction's line: a rule's
	// reply or the end of the connection. See its Next.
	Other bool
	// Pause says that the line is full: read no more until Wrote or LookAgain
	// says Resume.
	Pause bool
}

// Read takes the bytes b, read in direction dir at now. Decode must follow with
// the same bytes, after the direct ones were written. A buffer that is at least
// half full is taken over rather than copied: when Kept, it must not be written
// to again and may be read until Decode.
func (c *Conn) Read(dir wire.Direction, b []byte, now wire.Stamp, set *inject.Settings) Result {
	p := &c.dirs[dir]
	p.pieces = p.pieces[:0]
	p.in += int64(len(b))
	if p.deaf {
		return Result{}
	}
	c.expire(now)
	if c.endAt != 0 && now >= c.endAt { // bytes may be missing before these
		return Result{Other: true}
	}
	if c.lags {
		c.notice(now)
	}
	rd := reading{Conn: c, p: p, b: b, now: now, set: set}
	switch {
	case p.dead:
		p.pieces = c.session.Frame(dir, b, now, p.pieces)
		c.session.Open().Abandon(dir)
		return Result{}
	case c.inspecting:
		rd.begin()
		rd.inspect()
	default:
		p.pieces = c.session.Frame(dir, b, now, p.pieces)
		rd.begin()
		for i := range p.pieces {
			rd.pass(rd.off, rd.off+p.pieces[i].Len, &p.pieces[i])
			rd.off += p.pieces[i].Len
		}
		if n := len(p.pieces); n > 0 {
			p.mid = !p.pieces[n-1].Last && !p.pieces[n-1].Opaque
		}
	}
	p.direct = rd.r.Direct > 0
	if !p.direct && p.edits.pending() {
		c.departed(p, 0, now)
	}
	rd.r.Other = rd.r.Other || c.endAt != 0
	if !p.deaf && !c.room(p, now) {
		rd.r.Pause, p.paused = true, now
	}
	return rd.r
}

// reading is one Read.
type reading struct {
	*Conn
	p   *pump
	b   []byte
	off int // of b: what was framed
	now wire.Stamp
	set *inject.Settings
	r   Result
}

func (rd *reading) begin() {
	rd.p.set = rd.set
	rd.p.path.Use(rd.p.overlay(rd.set))
	rd.p.path.Arrived(len(rd.b), len(rd.b) == cap(rd.b))
	rd.p.line.Arrived(rd.now)
}

// pass forwards the stretch [lo, hi) of b, of one piece.
func (rd *reading) pass(lo, hi int, pc *wire.Piece) {
	c, p := rd.Conn, rd.p
	n := c.admit(p, hi-lo, rd.now)
	end := lo + n
	due := wire.Stamp(0)
	for lo < end {
		if n, due = c.due(p, pc, end-lo, rd.now); due <= rd.now && !rd.r.Queued && lo == rd.r.Direct && p.line.Empty() {
			rd.r.Direct += n
		} else {
			p.take(&rd.r, rd.b, lo, lo+n, due)
		}
		lo += n
	}
	planned(p, pc, due, rd.now)
	c.admitted(p, hi-end, rd.now)
}

// put forwards bytes that are not of b: what was kept back, or made up.
func (c *Conn) put(p *pump, b []byte, pc *wire.Piece, now wire.Stamp) {
	left := len(b)
	b = b[:c.admit(p, len(b), now)]
	left -= len(b)
	due := wire.Stamp(0)
	for len(b) > 0 {
		var n int
		n, due = c.due(p, pc, len(b), now)
		p.line.Push(due, b[:n])
		b = b[n:]
	}
	planned(p, pc, due, now)
	c.admitted(p, left, now)
}

// admit is how many of n bytes may pass.
func (c *Conn) admit(p *pump, n int, now wire.Stamp) int {
	if p.bounded {
		n = c.bound(p, n, now)
	}
	p.edits.tail += int64(n)
	return n
}

// admitted says that those that may have passed, and how many did not.
func (c *Conn) admitted(p *pump, left int, now wire.Stamp) {
	if left > 0 {
		p.edits.replace(left, 0)
	}
	if p.bounded && p.spent() && !p.deaf {
		c.cut(p, p.line.Clamp(now.Add(p.path.Delay())))
	}
}

func planned(p *pump, pc *wire.Piece, due, now wire.Stamp) {
	if x := pc.Exchange; x != nil && due != 0 && due != inject.Never {
		x.Sides[p.dir].Planned = time.Duration(due - now)
	}
}

// take puts the stretch [lo, hi) of b in the line.
func (p *pump) take(r *Result, b []byte, lo, hi int, due wire.Stamp) {
	switch {
	case r.Kept:
		p.line.PushAdopted(due, p.adopted, lo, hi)
	case !r.Queued && len(b)-lo >= cap(b)/2:
		p.adopted, p.held, r.Kept = p.line.Adopt(b), true, true
		p.line.PushAdopted(due, p.adopted, lo, hi)
	default:
		p.line.Push(due, b[lo:hi])
	}
	r.Queued = true
}

// due is how many of the last rest bytes of a piece that arrived now leave
// together, and when.
func (c *Conn) due(p *pump, pc *wire.Piece, rest int, now wire.Stamp) (int, wire.Stamp) {
	if pc.Urgent {
		c.urgent = true
	}
	switch {
	case c.urgent && p.holds:
		return rest, p.line.Clamp(inject.Never)
	case c.urgent:
		return rest, p.line.Clamp(now)
	}
	begins := pc.Draw && rest == pc.Len
	p.path.Draw(begins)
	if p.changed {
		return c.changedDue(p, pc, rest, begins, now)
	}
	if !p.path.Cuts() {
		return rest, p.line.Clamp(max(now.Add(p.path.Delay()+extra(p, pc)), p.notBefore))
	}
	n, due := p.path.Parcel(rest, now)
	due = p.line.Clamp(max(due.Add(extra(p, pc)), p.notBefore))
	p.path.Clamped(n, due)
	return n, due
}

// extra is what a rule delays the piece's exchange by.
func extra(p *pump, pc *wire.Piece) time.Duration {
	if pc.Exchange == nil {
		return 0
	}
	return pc.Exchange.Extra[p.dir]
}
