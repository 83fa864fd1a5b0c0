package pump

import (
	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// choice is a rule that fired for an exchange.
type choice struct {
	*inject.Bound
	ordinal uint64
	failure wire.Failure
}

func (c *Conn) refuses() bool { return c.rules.Has(inject.EffectRefuse) }
func (c *Conn) replaces() bool {
	return c.rules.Has(inject.EffectLoseReply) || c.rules.Has(inject.EffectFailReply)
}

// choose finds the first rule with an effect that matches and fires, among those
// that can says nothing keeps from being carried out.
func (c *Conn) choose(e inject.Effect, s *inject.Subject, now wire.Stamp, can func(*inject.Bound, *wire.Failure) wire.Reason) *choice {
	if !c.rules.Has(e) {
		return nil
	}
	for b := c.rules.Next(e, s, now, nil); b != nil; b = c.rules.Next(e, s, now, b) {
		if !b.PerExchange() || b.Stacks && e == inject.EffectLatency {
			continue
		}
		f := failure(b)
		if why := can(b, &f); why != wire.Applies {
			b.Hits.NotApplicable(why)
			continue
		}
		if n, fires := b.Fire(); fires {
			return &choice{b, n, f}
		}
	}
	return nil
}

func failure(b *inject.Bound) wire.Failure {
	w := &b.With
	return wire.Failure{
		Code: w.Code, Message: w.Message, Rule: b.Name, ConcernError: w.WriteConcernError, Labels: w.Labels, Fatal: w.Fatal,
	}
}

func (ch *choice) blame(x *wire.Exchange) {
	f := fault(ch.Bound, ch.ordinal)
	f.Code = ch.With.Code
	x.Blame(f)
}

// statement makes s the subject that is the i-th statement of a request; false
// if it has no more.
func statement(s *inject.Subject, a *wire.Asked, i int) bool {
	if i < len(a.Keywords) {
		s.Statement = a.Keywords[i]
		return true
	}
	return i == 0
}

// request decides about a message to the server, of which the stretch [lo, hi)
// is the last piece. True: it's dealt with.
func (rd *reading) request(lo, hi int, pc *wire.Piece, streamed bool) bool {
	c := rd.Conn
	a := c.inspector.Asked()
	x := a.Exchange
	if x == nil || c.rules == nil {
		return false
	}
	if !c.known && !x.Mongo.Monitor {
		c.meet(rd.now)
	}
	if rd.p.holds {
		return false // it doesn't reach the server in any case
	}
	s := inject.SubjectOf(x, c.from)
	if ch := rd.refusing(&s, &a, streamed); ch != nil {
		rd.refuse(x, ch, hi-lo, pc)
		return true
	}
	delayed := false
	for i := 0; statement(&s, &a, i); i++ {
		c.start(&s, x, rd.now)
		delayed = delayed || rd.delay(&s, x)
	}
	return false
}

// refusing is the rule by which a request is refused, or nil.
func (rd *reading) refusing(s *inject.Subject, a *wire.Asked, streamed bool) (ch *choice) {
	if !rd.refuses() {
		return nil
	}
	for i := 0; ch == nil && statement(s, a, i); i++ {
		ch = rd.choose(inject.EffectRefuse, s, rd.now, func(_ *inject.Bound, f *wire.Failure) wire.Reason {
			if why := rd.inspector.CanRefuse(f); why != wire.Applies || !streamed || f.Fatal {
				return why
			}
			return wire.TooLarge
		})
	}
	return ch
}

// foresee decides early about a request of which more came than is kept back:
// true if it's refused, which is carried out when the last of it has come.
func (rd *reading) foresee() bool {
	a := rd.inspector.Asked()
	if a.Exchange == nil || !a.Known || rd.p.holds {
		return false
	}
	s := inject.SubjectOf(a.Exchange, rd.from)
	rd.p.doom = rd.refusing(&s, &a, false)
	return rd.p.doom != nil
}

// refuse carries a refusal out. n bytes of the request are in this read, besides
// what is kept back.
func (rd *reading) refuse(x *wire.Exchange, ch *choice, n int, pc *wire.Piece) {
	c, p := rd.Conn, rd.p
	ch.blame(x)
	r := c.inspector.Refuse(&ch.failure)
	n += len(p.kept)
	p.forgetKept()
	_, arrives := c.due(p, &wire.Piece{Exchange: x, Draw: pc.Draw}, 0, rd.now)
	p.edits.replace(n, len(r.Forward))
	if len(r.Forward) > 0 {
		c.put(p, r.Forward, &wire.Piece{Exchange: x, Len: len(r.Forward)}, rd.now)
		rd.r.Queued = true
	}
	if len(r.Answer) > 0 || r.Cut {
		c.session.Open().Hold(x)
		c.answers.Push(answer{x: x, b: r.Answer, at: arrives, cut: r.Cut})
	}
	if r.Cut {
		p.deaf, p.paused = true, 0
	}
}

// delay has rules delay one exchange, both ways or one. True: one does.
func (rd *reading) delay(s *inject.Subject, x *wire.Exchange) bool {
	stacked := rd.delayStack(s, x)
	ch := rd.choose(inject.EffectLatency, s, rd.now, func(*inject.Bound, *wire.Failure) wire.Reason { return wire.Applies })
	if ch == nil {
		return stacked
	}
	rd.delayBy(ch, x)
	return true
}

func (rd *reading) delayBy(ch *choice, x *wire.Exchange) {
	for d := range x.Extra {
		if ch.When.Direction.Include(wire.Direction(d)) {
			x.Extra[d] += ch.Latency(rd.dirs[d].src)
		}
	}
	ch.blame(x)
}

// delayStack is delay by the rules that stack: all of them.
func (rd *reading) delayStack(s *inject.Subject, x *wire.Exchange) (any bool) {
	if !rd.rules.Has(inject.EffectLatency) {
		return false
	}
	for b := rd.rules.Next(inject.EffectLatency, s, rd.now, nil); b != nil; b = rd.rules.Next(inject.EffectLatency, s, rd.now, b) {
		if !b.Stacks || !b.PerExchange() {
			continue
		}
		if n, fires := b.Fire(); fires {
			rd.delayBy(&choice{Bound: b, ordinal: n}, x)
			any = true
		}
	}
	return any
}

// reply decides about a message to the client, of which the stretch [lo, hi) is
// the last piece. True: it's dealt with.
func (rd *reading) reply(lo, hi int, pc *wire.Piece, streamed bool) bool {
	c := rd.Conn
	if c.rules == nil || !c.replaces() {
		return false
	}
	for _, k := range c.inspector.Acknowledged() {
		s := inject.SubjectOf(k.Exchange, c.from)
		if ch := rd.losing(&s, k); ch != nil {
			ch.blame(k.Exchange)
			rd.loseReply(pc)
			return true
		}
		if ch := rd.failing(&s, k, streamed); ch != nil {
			ch.blame(k.Exchange)
			rd.failReply(k.Exchange, ch, lo, hi, pc)
			return true
		}
	}
	return false
}

func (rd *reading) losing(s *inject.Subject, k wire.Acknowledgement) *choice {
	return rd.choose(inject.EffectLoseReply, s, rd.now, func(*inject.Bound, *wire.Failure) wire.Reason { return k.Obstacle })
}

func (rd *reading) failing(s *inject.Subject, k wire.Acknowledgement, streamed bool) *choice {
	return rd.choose(inject.EffectFailReply, s, rd.now, func(_ *inject.Bound, f *wire.Failure) wire.Reason {
		switch {
		case k.Obstacle != wire.Applies:
			return k.Obstacle
		case streamed:
			return wire.TooLarge
		}
		return rd.inspector.CanFail(k.Exchange, f)
	})
}

// loseReply ends the connection when the reply would have arrived. What is lost
// never leaves, so its exchange ends with the connection.
func (rd *reading) loseReply(pc *wire.Piece) {
	c, p := rd.Conn, rd.p
	_, due := c.due(p, &wire.Piece{Exchange: pc.Exchange, Draw: pc.Draw}, 0, rd.now)
	p.forgetKept()
	c.cut(p, due)
	c.dirs[wire.ToServer].deaf = true
}

// failReply puts an error in the reply's place.
func (rd *reading) failReply(x *wire.Exchange, ch *choice, lo, hi int, pc *wire.Piece) {
	whole := rd.whole(lo, hi)
	rd.replace(whole, rd.inspector.Fail(x, &ch.failure, whole, nil), pc)
}

// rewrite puts another message in the place of one that answers an exchange, if
// the session wants it so. True: it's dealt with.
func (rd *reading) rewrite(lo, hi int, pc *wire.Piece) bool {
	if !rd.rewrites(wire.ToClient, pc.Exchange) {
		return false
	}
	whole := rd.whole(lo, hi)
	b, ok := rd.rewriter.Rewrite(pc.Exchange, whole, nil)
	if !ok {
		b = whole
	}
	rd.replace(whole, b, pc)
	return true
}

// whole is the message to the client of which the stretch [lo, hi) is the last
// piece, with what of it was kept back.
func (rd *reading) whole(lo, hi int) []byte {
	p := rd.p
	if len(p.kept) == 0 {
		return rd.b[lo:hi]
	}
	p.kept = append(p.kept, rd.b[lo:hi]...)
	return p.kept
}

// replace passes b in the place of a whole message.
func (rd *reading) replace(whole, b []byte, pc *wire.Piece) {
	c, p := rd.Conn, rd.p
	p.edits.replace(len(whole), len(b))
	c.put(p, b, &wire.Piece{Exchange: pc.Exchange, Len: len(b), Draw: pc.Draw}, rd.now)
	p.forgetKept()
	rd.r.Queued = true
}
