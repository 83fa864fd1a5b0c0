package pump

import (
	"slices"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// acting is what rules do to all bytes of a direction.
type acting struct {
	on [inject.NumEffects]*inject.Bound
	by *[inject.NumEffects]wire.Fault // nil until one acts: few connections need it

	changed bool // due times are
	bounded bool // not all bytes pass
	holds   bool // nothing does, for now
	stopped bool // by a rate of 0

	late   time.Duration // latency, drawn for the present exchange
	shift  *inject.Shift // of a member that lags, or recovers; nil: none
	left   int64         // of limit_data
	sliced wire.Stamp    // when the last slice is due
	stack  []stacked     // in the order in which they began

	set        *inject.Settings // the link's, at the last read
	base, over *inject.Settings // the link's, and what bandwidth and loss make of them
}

// act has a rule's effect begin.
func (c *Conn) act(b *inject.Bound, ordinal uint64, now wire.Stamp) {
	for d := range c.dirs {
		p := &c.dirs[d]
		if !b.When.Direction.Include(wire.Direction(d)) {
			continue
		}
		if b.Stacks {
			c.stack(p, b, ordinal, now)
			continue
		}
		if p.on[b.Effect] != nil {
			continue
		}
		if p.by == nil {
			p.by = new([inject.NumEffects]wire.Fault)
		}
		p.on[b.Effect], p.by[b.Effect] = b, fault(b, ordinal)
		switch b.Effect {
		case inject.EffectLimitData:
			p.left = b.With.Bytes
		case inject.EffectLatency:
			p.late = b.Latency(p.src)
		}
		p.sum()
	}
	if b.Effect == inject.EffectTimeout && b.With.After > 0 && !b.Stacks {
		c.end(now.Add(b.With.After), inject.EndCut)
	}
	c.awaitEnd(b)
}

// sum works out what the effects that act come to.
func (p *pump) sum() {
	on := &p.on
	p.stopped = on[inject.EffectBandwidth] != nil && on[inject.EffectBandwidth].With.Bandwidth == 0
	p.holds = p.stopped || on[inject.EffectHold] != nil
	p.changed = p.holds || on[inject.EffectLatency] != nil || on[inject.EffectSlicer] != nil ||
		on[inject.EffectBandwidth] != nil || on[inject.EffectLoss] != nil || p.shift != nil
	p.bounded = on[inject.EffectLimitData] != nil || on[inject.EffectTimeout] != nil || on[inject.EffectResetPeer] != nil
	p.base, p.over = nil, nil
	p.sumStack()
}

// overlay are the link's settings with the rate and the loss of rules.
func (p *pump) overlay(set *inject.Settings) *inject.Settings {
	rate, loss := p.on[inject.EffectBandwidth], p.on[inject.EffectLoss]
	if rate == nil && loss == nil && len(p.stack) == 0 {
		return set
	}
	if p.base != set {
		over := *set
		d := &over.Delay[p.dir]
		if rate != nil && rate.With.Bandwidth > 0 {
			d.Bandwidth, d.PerConnection = rate.With.Bandwidth, true
		}
		if loss != nil {
			d.Loss = loss.With.Loss
		}
		p.overlayStack(d)
		p.base, p.over = set, &over
	}
	return p.over
}

// changedDue is due where rules change due times.
func (c *Conn) changedDue(p *pump, pc *wire.Piece, rest int, begins bool, now wire.Stamp) (int, wire.Stamp) {
	if begins {
		p.redraw(pc)
	}
	late := extra(p, pc)
	if late == 0 && p.on[inject.EffectLatency] != nil {
		late = p.late
	}
	late += p.lateBy()
	slicer := p.on[inject.EffectSlicer]
	if slicer != nil && rest > 0 {
		rest = min(rest, p.slice(&slicer.With))
	}
	n, notBefore := p.cutStack(rest, rest == pc.Len, p.notBefore)
	n, due := p.path.Parcel(n, now)
	shift := p.shifted(now)
	due = max(due.Add(late+shift), notBefore)
	if slicer != nil && n > 0 {
		if p.sliced != 0 {
			due = max(due, p.sliced.Add(slicer.With.Delay))
		}
		p.sliced = due
	}
	p.cutAs(n, due)
	if p.holds {
		return n, p.line.Clamp(inject.Never)
	}
	due = p.line.Clamp(due)
	p.path.Clamped(n, due.Add(-shift)) // a wire's window isn't what a member lags by
	return n, due
}

// redraw draws what rules leave to chance for the exchange that begins, and notes
// on it which they are.
func (p *pump) redraw(pc *wire.Piece) {
	if b := p.on[inject.EffectLatency]; b != nil {
		p.late = b.Latency(p.src)
	}
	x := pc.Exchange
	p.redrawStack(x)
	if x == nil {
		return
	}
	for e, b := range p.on {
		if b != nil && !slices.Contains(x.Faults, p.by[e]) {
			x.Blame(p.by[e])
		}
	}
}

// slice draws a slice's size.
func (p *pump) slice(w *inject.With) int {
	return w.Size - w.Variation + p.src.N(2*w.Variation+1)
}

// bound is how many of n bytes pass, from the first on. The others are thrown
// away.
func (c *Conn) bound(p *pump, n int, now wire.Stamp) int {
	pass := n
	if b := p.on[inject.EffectLimitData]; b != nil {
		pass = int(min(int64(n), p.left))
		p.left -= int64(pass)
	}
	if b := p.on[inject.EffectResetPeer]; b != nil && n > 0 {
		c.end(now.Add(b.With.After), inject.EndAbort)
		pass = 0
	}
	if p.on[inject.EffectTimeout] != nil {
		pass = 0
	}
	return c.boundStack(p, pass, now)
}

// spent reports that no byte more may pass, so that the connection ends.
func (p *pump) spent() bool {
	return p.on[inject.EffectLimitData] != nil && p.left == 0 || p.spentStack()
}

// slowly is when an end is passed on that is due then.
func (p *pump) slowly(due wire.Stamp) wire.Stamp {
	if due == inject.Never {
		return due
	}
	return due.Add(p.slow())
}
