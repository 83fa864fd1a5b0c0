package pump

import (
	"slices"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// lagging is what rules that lag members have to do with a connection. It's asked
// before each read whether it turned out to be a member's stream; a lag begins at
// nothing, so that what passed before doesn't matter.
type lagging struct {
	replicator wire.Replicator // nil: the protocol has none
	lags       bool            // there are such rules
	follows    wire.Replication
	drawn      []drawn // of the rules that matched
}

// drawn is the draw of a rule for a connection, which is made once.
type drawn struct {
	*inject.Bound
	ordinal uint64
	fires   bool
}

func newLagging(s wire.Session) lagging {
	r, _ := s.(wire.Replicator)
	return lagging{replicator: r}
}

// notice looks whether the connection became a member's stream, or no longer is
// one.
func (c *Conn) notice(now wire.Stamp) {
	if f := c.replicator.Replication(); f != c.follows {
		c.follows = f
		c.lag(now)
	}
}

// lag has the first rule that matches and fires lag the connection, and no other.
func (c *Conn) lag(now wire.Stamp) {
	if c.replicator == nil {
		return
	}
	c.lags = c.rules.Has(inject.EffectLag)
	var by *drawn
	if c.lags {
		by = c.lagged(now)
	}
	c.dirs[wire.ToClient].lagBy(by, c.follows.Log, now)
	c.dirs[wire.ToServer].lagBy(by, by != nil && c.follows.Progress && by.With.Acknowledgements, now)
	if by != nil {
		c.awaitEnd(by.Bound)
	}
}

// lagged is the rule by which the connection is to lag; nil: none.
func (c *Conn) lagged(now wire.Stamp) *drawn {
	c.follows = c.replicator.Replication()
	c.drawn = slices.DeleteFunc(c.drawn, func(d drawn) bool { return !c.rules.Holds(d.Bound) })
	if !c.follows.Log && !c.follows.Progress {
		return nil
	}
	s := inject.Subject{From: c.from}
	if p := c.follows.Peer; p != nil {
		s.User, s.Application = p.User, p.Application
	}
	for b := c.rules.Next(inject.EffectLag, &s, now, nil); b != nil; b = c.rules.Next(inject.EffectLag, &s, now, b) {
		if !c.follows.Log && !b.With.Acknowledgements {
			continue
		}
		if d := c.drawLag(b); d.fires {
			return d
		}
	}
	return nil
}

func (c *Conn) drawLag(b *inject.Bound) *drawn {
	i := slices.IndexFunc(c.drawn, func(d drawn) bool { return d.Hits == b.Hits })
	if i < 0 {
		n, fires := b.Fire()
		i, c.drawn = len(c.drawn), append(c.drawn, drawn{b, n, fires})
	}
	return &c.drawn[i]
}

// lagBy has the direction follow a rule, if one applies to it, from where it is.
func (p *pump) lagBy(d *drawn, applies bool, now wire.Stamp) {
	old := p.on[inject.EffectLag]
	switch {
	case d == nil || !applies:
		if old != nil {
			p.recede(now)
		}
		return
	case old != nil && old.Hits == d.Hits:
		return
	}
	if p.shift == nil {
		p.shift = new(inject.Shift)
	}
	if p.by == nil {
		p.by = new([inject.NumEffects]wire.Fault)
	}
	p.on[inject.EffectLag], p.by[inject.EffectLag] = d.Bound, fault(d.Bound, d.ordinal)
	d.Lags(p.shift, now)
	p.sum()
}

// recede has the direction's lag go away.
func (p *pump) recede(now wire.Stamp) {
	p.on[inject.EffectLag].Recovers(p.shift, now)
	p.on[inject.EffectLag] = nil
}

// shifted is how much later than it would the direction passes what comes now.
func (p *pump) shifted(now wire.Stamp) time.Duration {
	switch {
	case p.shift == nil:
		return 0
	case p.shift.Over(now):
		p.shift = nil
		p.sum()
		return 0
	}
	return p.shift.At(now)
}

// Lag is how much later a direction would pass what came at now.
func (c *Conn) Lag(dir wire.Direction, now wire.Stamp) time.Duration {
	if s := c.dirs[dir].shift; s != nil {
		return s.At(now)
	}
	return 0
}
