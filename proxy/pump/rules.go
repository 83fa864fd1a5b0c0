package pump

import (
	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// ruled is what rules have to do with a connection.
type ruled struct {
	rules     *inject.Rules
	from      string
	inspector wire.Inspector // nil: messages can't be told apart
	rewriter  wire.Rewriter  // nil: none is changed but by rules
	// inspecting: messages are decoded before they are forwarded.
	inspecting bool
	// known: it's not a connection that does nothing but watch the server.
	known bool
	// tried are the rules whose draw for this connection was made.
	tried   map[inject.Hits]bool
	answers wire.Queue[answer]

	endAt   wire.Stamp // when a rule ends the connection; 0: never
	endHow  inject.End
	fixed   ending     // the same, whatever becomes of rules that stack
	expires wire.Stamp // when the next rule that acts is over; 0: never
	wakeAt  wire.Stamp // the same, of rules whose end must not wait for bytes

	lagging
}

func newRuled(c *Config) ruled {
	i, _ := c.Session.(wire.Inspector)
	r := ruled{inspector: i, from: c.From, known: i == nil, lagging: newLagging(c.Session)}
	if w, ok := c.Session.(wire.Rewriter); ok && w.Rewriting() {
		r.rewriter, r.inspecting = w, true
	}
	return r
}

// SetRules has rules apply from now on, in the place of those before: what was
// held by one that is gone is let go, and a connection that lost bytes to one
// ends. Afterwards both directions may have something to write sooner than Next
// had said.
func (c *Conn) SetRules(r *inject.Rules, now wire.Stamp) {
	if r == nil && c.rules == nil {
		return
	}
	c.rules = r
	c.retire(now)
	c.recognise(now)
	c.begin(now)
	c.lookInside()
}

// SetFrom says which end dialled, for rules, where it was not known before.
func (c *Conn) SetFrom(from string, now wire.Stamp) {
	c.from = from
	if c.rules != nil {
		c.begin(now)
		c.lag(now)
	}
}

// lookInside decides whether messages are to be decoded before they are
// forwarded.
func (c *Conn) lookInside() {
	c.inspecting = c.inspector != nil && (c.rewriting() || c.rules.Inspect(!c.known) || c.answers.Len() > 0 ||
		c.inspector.Removing() || c.dirs[0].undecided() || c.dirs[1].undecided())
}

func (c *Conn) rewriting() bool { return c.rewriter != nil && c.rewriter.Rewriting() }

// recognise notes when the protocol turns out to have no connections for
// monitoring alone, or this one to carry a member's stream, which needs no other
// command once it has begun.
func (c *Conn) recognise(now wire.Stamp) {
	streams := c.replicator != nil && c.replicator.Replication().Log
	if !c.known && (c.inspector.Opaque() != nil || !c.inspector.Monitors() || streams) {
		c.meet(now)
	}
}

// meet says that the connection does more than watch the server.
func (c *Conn) meet(now wire.Stamp) {
	c.known = true
	c.begin(now)
}

// begin has the effects on bytes begin that need nothing of what messages say.
func (c *Conn) begin(now wire.Stamp) {
	if c.rules != nil {
		c.start(&inject.Subject{From: c.from, Monitor: !c.known}, nil, now)
	}
}

// start has the effects on bytes begin whose rules match a subject and fire. x
// is the exchange that brought them; nil: none.
func (c *Conn) start(s *inject.Subject, x *wire.Exchange, now wire.Stamp) {
	for e := inject.EffectHold; e < inject.NumEffects; e++ {
		if !c.rules.Has(e) || e == inject.EffectLag { // which begins in its own way
			continue
		}
		for b := c.rules.Next(e, s, now, nil); b != nil; b = c.rules.Next(e, s, now, b) {
			if !b.PerExchange() && c.startable(b) {
				if n, fires := b.Fire(); fires {
					c.act(b, n, now)
					if x != nil {
						x.Blame(fault(b, n))
					}
				}
			}
		}
	}
}

// startable reports whether a rule can begin to act: in some direction no other
// one has its effect yet, and its draw is due.
func (c *Conn) startable(b *inject.Bound) bool {
	free := false
	for d := range c.dirs {
		p := &c.dirs[d]
		if b.When.Direction.Include(wire.Direction(d)) {
			free = free || b.Stacks && !p.stacks(b) || !b.Stacks && p.on[b.Effect] == nil
		}
	}
	if !free || b.When.Content() {
		return free
	}
	return c.draw(b)
}

// draw reports whether the rule's draw for this connection is due: once.
func (c *Conn) draw(b *inject.Bound) bool {
	if c.tried[b.Hits] {
		return false
	}
	if c.tried == nil {
		c.tried = map[inject.Hits]bool{}
	}
	c.tried[b.Hits] = true
	return true
}

func fault(b *inject.Bound, ordinal uint64) wire.Fault {
	return wire.Fault{Rule: b.Name, Effect: b.Effect.String(), Draw: b.Draw(ordinal)}
}

// expire ends what rules do whose time is over.
func (c *Conn) expire(now wire.Stamp) {
	if c.expires != 0 && now >= c.expires {
		c.retire(now)
	}
}

// retire ends the effects of rules that are no longer in force.
func (c *Conn) retire(now wire.Stamp) {
	c.expires, c.wakeAt = 0, 0
	for d := range c.dirs {
		p := &c.dirs[d]
		for e, b := range p.on {
			switch {
			case b == nil:
			case !b.Over(now) && c.rules.Holds(b):
				c.awaitEnd(b)
			case b.Effect == inject.EffectLag:
				p.recede(now)
			default:
				p.on[e] = nil
				if b.Effect == inject.EffectTimeout {
					c.end(now, inject.EndCut)
				}
			}
		}
		held, stopped := p.holds, p.stopped
		p.sum()
		c.unstack(p, now)
		p.useNow()
		if held && !p.holds {
			p.line.Release(now, func(n int) wire.Stamp {
				if !stopped {
					return now // it has been through the pipe
				}
				return p.path.Resend(n, now)
			})
		}
	}
	c.lag(now)
}

// awaitEnd remembers when a rule that acts is over.
func (c *Conn) awaitEnd(b *inject.Bound) {
	c.expires = sooner(c.expires, b.Until())
	if b.Stacks {
		c.wakeAt = sooner(c.wakeAt, b.Until())
	}
	switch b.Effect {
	case inject.EffectHold, inject.EffectBandwidth, inject.EffectTimeout:
		c.wakeAt = sooner(c.wakeAt, b.Until())
	}
}

// end ends the whole connection at some moment, unless it ends before.
func (c *Conn) end(at wire.Stamp, how inject.End) {
	c.fixed = c.fixed.or(ending{at, how})
	c.settle()
}

// cut ends the connection behind what the direction has passed on.
func (c *Conn) cut(p *pump, due wire.Stamp) {
	p.line.Close(due, inject.EndCut)
	p.ended, p.deaf, p.paused = true, true, 0
}
