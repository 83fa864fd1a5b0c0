package pump

import (
	"slices"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// stacked is a rule that acts on a direction beside all others of its effect
// (inject.Rule.Stacks), and what it remembers.
//
//	latency      the delays add up
//	bandwidth    the smallest rate        loss   one after the other
//	slicer       a piece ends where one of them ends it
//	limit_data   each counts for itself, from its own beginning on
//	timeout, reset_peer                   the first to end the connection
//	slow_close   the delays add up        hold   until the last is gone
type stacked struct {
	*inject.Bound
	fault  wire.Fault
	late   time.Duration // latency, drawn for the present exchange
	passed int64         // of limit_data
	piece  int           // what is left of a slicer's piece
	fresh  bool          // none of it has left
	sliced wire.Stamp    // when its beginning is due
	ends   ending        // when it ends the connection
}

// ending is the end of a connection at some moment; 0: none.
type ending struct {
	at  wire.Stamp
	how inject.End
}

func (e ending) or(o ending) ending {
	if e.at == 0 || o.at != 0 && o.at < e.at {
		return o
	}
	return e
}

// stack has a rule act on a direction, beside the others.
func (c *Conn) stack(p *pump, b *inject.Bound, ordinal uint64, now wire.Stamp) {
	s := stacked{}
	s.follow(p, b, ordinal, now)
	p.stack = append(p.stack, s)
	p.sum()
	c.settle()
	c.awaitEnd(b)
}

// follow has it be the rule from now on. What it counted stays.
func (s *stacked) follow(p *pump, b *inject.Bound, ordinal uint64, now wire.Stamp) {
	s.Bound, s.fault = b, fault(b, ordinal)
	switch b.Effect {
	case inject.EffectLatency:
		s.late = b.Latency(p.src)
	case inject.EffectTimeout:
		s.ends = ending{}
		if b.With.After > 0 {
			s.ends = ending{now.Add(b.With.After), inject.EndCut}
		}
	case inject.EffectResetPeer:
		if s.ends.at != 0 {
			s.ends.at = now.Add(b.With.After)
		}
	}
}

// stacks reports whether the rule acts on a direction already.
func (p *pump) stacks(b *inject.Bound) bool {
	return slices.ContainsFunc(p.stack, func(s stacked) bool { return s.Hits == b.Hits })
}

// unstack ends what rules do that are gone, and has those that have changed go on
// with what they are now, by another draw.
func (c *Conn) unstack(p *pump, now wire.Stamp) {
	if len(p.stack) == 0 {
		return
	}
	var gone time.Duration // latency
	changed, left := false, 0
	for _, s := range p.stack {
		b := s.Bound
		next := c.rules.Successor(b)
		switch {
		case next == nil || b.Over(now):
			next = nil
		case next.Hits == b.Hits: // the same, though it may have been compiled anew
		default:
			c.draw(next)
			changed, gone = true, gone+s.late
			if n, fires := next.Fire(); fires {
				s.follow(p, next, n, now)
			} else {
				next = nil
			}
		}
		if next != nil {
			p.stack[left] = s
			left++
			c.awaitEnd(next)
			continue
		}
		changed, gone = true, gone+s.late
		c.left(&s, now)
	}
	clear(p.stack[left:])
	if p.stack = p.stack[:left]; left == 0 {
		p.stack = nil
	}
	if changed {
		p.sum()
		c.settle()
		p.hasten(gone, now)
	}
}

// left ends a connection that lost bytes to a rule that is gone.
func (c *Conn) left(s *stacked, now wire.Stamp) {
	switch {
	case s.Effect == inject.EffectTimeout:
		c.end(now, inject.EndCut)
	case s.Effect == inject.EffectResetPeer && s.ends.at != 0:
		c.end(now, inject.EndAbort)
	}
}

// useNow has the path follow what rules come to now, and not at the next read
// only, for which a full path may have to wait.
func (p *pump) useNow() {
	if p.set != nil {
		p.path.Use(p.overlay(p.set))
	}
}

// hasten has what waits go on as things are now, after rules went that delayed it
// by so much. Where a wire with a rate is left, what is in it keeps its distances.
func (p *pump) hasten(gone time.Duration, now wire.Stamp) {
	p.useNow()
	late := p.path.Delay() + p.lateBy()
	if p.on[inject.EffectLatency] != nil {
		late += p.late
	}
	spaced := p.path.Cuts() || p.shift != nil || p.on[inject.EffectSlicer] != nil ||
		slices.ContainsFunc(p.stack, func(s stacked) bool { return s.Effect == inject.EffectSlicer })
	slow := p.slow()
	p.line.Hasten(func(came, due wire.Stamp, end bool) wire.Stamp {
		late := late
		if p.shift != nil {
			late += p.shift.At(came)
		}
		switch {
		case end:
			return max(came.Add(late), p.notBefore).Add(slow)
		case spaced:
			return max(due.Add(-gone), now)
		}
		return max(came.Add(late), p.notBefore, now)
	})
}

// settle finds the first end of the connection among those there are to come.
func (c *Conn) settle() {
	e := c.fixed
	for d := range c.dirs {
		for i := range c.dirs[d].stack {
			e = e.or(c.dirs[d].stack[i].ends)
		}
	}
	c.endAt, c.endHow = e.at, e.how
}

// sumStack is sum for rules that stack.
func (p *pump) sumStack() {
	for i := range p.stack {
		s := &p.stack[i]
		switch s.Effect {
		case inject.EffectHold:
			p.holds = true
		case inject.EffectBandwidth:
			p.stopped = p.stopped || s.With.Bandwidth == 0
			p.changed = true
		case inject.EffectLatency, inject.EffectSlicer, inject.EffectLoss:
			p.changed = true
		case inject.EffectLimitData, inject.EffectTimeout, inject.EffectResetPeer:
			p.bounded = true
		}
	}
	p.holds = p.holds || p.stopped
	p.changed = p.changed || p.holds
}

// overlayStack adds rates and losses to a way.
func (p *pump) overlayStack(d *inject.Delay) {
	for i := range p.stack {
		w := &p.stack[i].With
		switch p.stack[i].Effect {
		case inject.EffectBandwidth:
			if w.Bandwidth > 0 && (d.Bandwidth == 0 || w.Bandwidth < d.Bandwidth) {
				d.Bandwidth, d.PerConnection = w.Bandwidth, true
			}
		case inject.EffectLoss:
			d.Loss = d.Loss.And(w.Loss)
		}
	}
}

// lateBy is what latencies come to for the present exchange.
func (p *pump) lateBy() (late time.Duration) {
	for i := range p.stack {
		late += p.stack[i].late
	}
	return late
}

// cutStack is how many of n bytes are in the same piece of every slicer, and when
// the piece is due that is due then. A message begins a piece.
func (p *pump) cutStack(n int, begins bool, due wire.Stamp) (int, wire.Stamp) {
	for i := range p.stack {
		if s := &p.stack[i]; s.Effect == inject.EffectSlicer && n > 0 {
			if s.piece == 0 || begins {
				s.piece, s.fresh = p.slice(&s.With), true
				if s.sliced != 0 {
					s.sliced = s.sliced.Add(s.With.Delay)
				}
			}
			n, due = min(n, s.piece), max(due, s.sliced)
		}
	}
	return n, due
}

// cutAs says that n bytes leave together then.
func (p *pump) cutAs(n int, due wire.Stamp) {
	for i := range p.stack {
		if s := &p.stack[i]; s.Effect == inject.EffectSlicer {
			s.piece -= n
			if s.fresh && n > 0 {
				s.sliced, s.fresh = due, false
			}
		}
	}
}

// boundStack is how many of n bytes pass.
func (c *Conn) boundStack(p *pump, n int, now wire.Stamp) int {
	pass := n
	for i := range p.stack {
		s := &p.stack[i]
		switch s.Effect {
		case inject.EffectLimitData:
			k := int(min(int64(pass), max(s.With.Bytes-s.passed, 0)))
			s.passed += int64(k)
			pass = k
		case inject.EffectResetPeer:
			if n > 0 && s.ends.at == 0 {
				s.ends = ending{now.Add(s.With.After), inject.EndAbort}
				c.settle()
			}
			pass = 0
		case inject.EffectTimeout:
			pass = 0
		}
	}
	return pass
}

// spentStack reports that one of them lets no byte more pass.
func (p *pump) spentStack() bool {
	return slices.ContainsFunc(p.stack, func(s stacked) bool {
		return s.Effect == inject.EffectLimitData && s.passed >= s.With.Bytes
	})
}

// slow is how much later an end is passed on.
func (p *pump) slow() (late time.Duration) {
	if b := p.on[inject.EffectSlowClose]; b != nil {
		late = b.With.Delay
	}
	for i := range p.stack {
		if s := &p.stack[i]; s.Effect == inject.EffectSlowClose {
			late += s.With.Delay
		}
	}
	return late
}

// redrawStack draws for the exchange that begins.
func (p *pump) redrawStack(x *wire.Exchange) {
	for i := range p.stack {
		s := &p.stack[i]
		if s.Effect == inject.EffectLatency {
			s.late = s.Latency(p.src)
		}
		if x != nil && !slices.Contains(x.Faults, s.fault) {
			x.Blame(s.fault)
		}
	}
}
