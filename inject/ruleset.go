package inject

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/wirewait/wirewait/wire"
)

// Rules are what is in force on one link: rules, compiled. They are immutable; a
// nil *Rules is none.
//
// A match is looked up, not searched for. For each effect and each set of fields
// that its rules name there is a table by the values of those fields:
//
//	rules that name            table
//	command, collection        {insert, orders} -> rules 3, 17    {update, carts} -> 5
//	user                       {report} -> 4
//	nothing                    {} -> 9
//
// so that the cost of a decision depends on how many such sets there are, and
// not on how many rules.
type Rules struct {
	bound   []*Bound
	tables  [NumEffects][]table
	content bool // some need what messages say
	unless  bool // some act on bytes, but not of monitoring connections
}

type table struct {
	fields fields
	rules  map[Subject][]*Bound // in the order of the set
}

// Bound is a rule that is in force on a link.
type Bound struct {
	*Rule
	Hits  Hits
	order int
	until wire.Stamp // 0: no end
	seed  uint64
	key   uint64 // of its draws, with the ordinal
	delay Delay  // latency's
}

// Place is the link that rules are compiled for.
type Place struct {
	Seed     uint64
	Link, To string
	// Standing says what is counted of a rule here, and since when it's in force.
	Standing func(*Rule) (Hits, wire.Stamp)
}

// Compile compiles those of the rules, which Check has passed, that can match on
// a link; nil if none can.
func Compile(rules []Rule, at Place) *Rules {
	var c *Rules
	for i := range rules {
		r := &rules[i]
		if !allows(r.When.Link, at.Link) || !allows(r.When.To, at.To) {
			continue
		}
		if c == nil {
			c = &Rules{}
		}
		c.add(r, at)
	}
	return c
}

func allows(values []string, v string) bool { return len(values) == 0 || slices.Contains(values, v) }

func (c *Rules) add(r *Rule, at Place) {
	h := fnv.New64a()
	h.Write([]byte(at.Link + "\x00" + r.Name))
	b := &Bound{Rule: r, order: len(c.bound), seed: at.Seed, key: at.Seed ^ h.Sum64(), delay: Delay{Base: r.With.Delay, Jitter: r.With.Jitter}}
	var since wire.Stamp
	if b.Hits, since = at.Standing(r); r.Limit.Until > 0 {
		b.until = since.Add(min(r.Limit.Until, maxDelay))
	}
	c.bound = append(c.bound, b)
	switch {
	case r.Effect == EffectLag: // which connections it's of is known without
	case r.When.Content() || !r.Effect.OnBytes():
		c.content = true
	case !r.When.Monitors:
		c.unless = true
	}
	for f, subjects := range r.When.forms() {
		t := c.table(r.Effect, f)
		for _, s := range subjects {
			if n := len(t.rules[s]); n == 0 || t.rules[s][n-1] != b { // a value may be given twice
				t.rules[s] = append(t.rules[s], b)
			}
		}
	}
}

func (c *Rules) table(e Effect, f fields) *table {
	for i := range c.tables[e] {
		if t := &c.tables[e][i]; t.fields == f {
			return t
		}
	}
	c.tables[e] = append(c.tables[e], table{f, map[Subject][]*Bound{}})
	return &c.tables[e][len(c.tables[e])-1]
}

// Inspect reports whether messages must be decoded before they are forwarded, on
// a connection whose protocol has connections for monitoring alone, or has not.
func (c *Rules) Inspect(monitors bool) bool {
	return c != nil && (c.content || monitors && c.unless)
}

// Has reports whether there is any rule with an effect.
func (c *Rules) Has(e Effect) bool { return c != nil && len(c.tables[e]) > 0 }

// Holds reports whether a rule that was in force before is so still, though it
// may have been compiled anew.
func (c *Rules) Holds(b *Bound) bool {
	return c != nil && slices.ContainsFunc(c.bound, func(o *Bound) bool { return o.Hits == b.Hits })
}

// Successor is the rule in force that stands in the place of one before: of the
// same name, effect and direction, with other parameters; nil if there is none.
func (c *Rules) Successor(b *Bound) *Bound {
	if c == nil {
		return nil
	}
	for _, o := range c.bound {
		if o.Name == b.Name && o.Effect == b.Effect && o.When.Direction == b.When.Direction {
			return o
		}
	}
	return nil
}

// Next is the first rule, behind the one given or from the beginning, that
// matches; nil if none does. Whether it fires is another question.
func (c *Rules) Next(e Effect, s *Subject, now wire.Stamp, behind *Bound) *Bound {
	after := -1
	if behind != nil {
		after = behind.order
	}
	var best *Bound
	for i := range c.tables[e] {
		t := &c.tables[e][i]
		for _, b := range t.rules[s.only(t.fields)] {
			if b.order > after && !b.Over(now) && (!s.Monitor || b.When.Monitors) {
				if best == nil || b.order < best.order {
					best = b
				}
				break
			}
		}
	}
	return best
}

// Over reports whether the rule's time is over.
func (b *Bound) Over(now wire.Stamp) bool { return b.until != 0 && now >= b.until }

// Until is when the rule's time is over; 0: never.
func (b *Bound) Until() wire.Stamp { return b.until }

// PerExchange reports whether the effect is on exchanges that match and not on
// all bytes from some moment on.
func (b *Bound) PerExchange() bool {
	return !b.Effect.OnBytes() || b.Effect == EffectLatency && b.When.Content()
}

// Fire counts a match that the effect can apply to and reports whether it fires,
// with the ordinal of the match.
func (b *Bound) Fire() (ordinal uint64, fires bool) {
	n := b.Hits.Match()
	l := &b.Limit
	if l.Nth > 0 && n != l.Nth || l.First > 0 && n > l.First {
		return n, false
	}
	if p := l.Probability; p > 0 && p < 1 && b.draw(n) >= p {
		return n, false
	}
	b.Hits.Hit()
	return n, true
}

// draw is the n-th match's draw from [0, 1).
func (b *Bound) draw(n uint64) float64 {
	src := rand.NewPCG(b.key, n)
	return float64(src.Uint64()>>11) / (1 << 53)
}

// Draw names a match, for wire.Fault.
func (b *Bound) Draw(ordinal uint64) string { return fmt.Sprintf("%d:%s:%d", b.seed, b.Name, ordinal) }

// Latency draws what the rule delays by.
func (b *Bound) Latency(src *Source) time.Duration { return b.delay.Draw(src) }
