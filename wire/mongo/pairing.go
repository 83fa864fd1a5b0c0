package mongo

import (
	"cmp"
	"slices"

	"github.com/wirewait/wirewait/wire"
)

// call is an exchange under way and what the session must remember of it.
//
// An exchange is complete once its request is whole (sent) and no reply is
// awaited any more (answered). Every message holds its exchange from framing
// to the end of decoding, so that x is alive while refs > 0.
type call struct {
	x    *wire.Exchange
	refs int // messages framed and not yet decoded
	sent bool
	// answered: the last reply is whole, or none is coming.
	answered bool
	done     bool
	orphan   bool // there is no request to this reply

	// plain: an OP_QUERY or OP_GET_MORE on a collection, whose reply holds the
	// user's documents and not a command's reply. queryFailed is its verdict.
	plain, queryFailed bool
	replied            bool // a reply was decoded

	from string // a heartbeat's sender, by its _id

	in   *table // where it awaits a reply
	key  int32
	next *call // same key, later
}

// table finds the calls that await a reply. Request ids may repeat: the
// earlier call gets the earlier reply.
type table struct {
	calls map[int32]chain
	n     int
}

type chain struct{ first, last *call }

func (t *table) add(key int32, c *call) {
	if t.calls == nil {
		t.calls = make(map[int32]chain)
	}
	c.in, c.key, c.next = t, key, nil
	ch := t.calls[key]
	if ch.first == nil {
		ch.first = c
	} else {
		ch.last.next = c
	}
	ch.last = c
	t.calls[key] = ch
	t.n++
}

// take removes and returns the first call with this key, nil if there is none.
func (t *table) take(key int32) *call {
	c := t.calls[key].first
	if c != nil {
		t.remove(c)
	}
	return c
}

func (t *table) remove(c *call) {
	ch := t.calls[c.key]
	var before *call
	for d := ch.first; d != c; d = d.next {
		before = d
	}
	if before == nil {
		ch.first = c.next
	} else {
		before.next = c.next
	}
	if ch.last == c {
		ch.last = before
	}
	if ch.first == nil {
		delete(t.calls, c.key)
	} else {
		t.calls[c.key] = ch
	}
	c.in, c.next = nil, nil
	t.n--
}

// monitorsOnly reports that no call but those of monitors is in the table.
func (t *table) monitorsOnly() bool {
	for _, ch := range t.calls {
		for c := ch.first; c != nil; c = c.next {
			if !c.x.Mongo.Monitor {
				return false
			}
		}
	}
	return true
}

// newCall opens an exchange.
func (s *session) newCall() *call {
	c := s.free
	if c == nil {
		c = &call{}
	} else {
		s.free = c.next
		s.freed--
		*c = call{}
	}
	c.x = s.open.New()
	c.x.Mongo.N, c.x.Mongo.NModified = -1, -1
	c.x.Peer = s.peer
	return c
}

// settle completes an exchange that nothing will be added to. The caller holds
// a message of it.
func (s *session) settle(c *call) {
	if c.done || !c.sent || !c.answered {
		return
	}
	c.done = true
	if c.in != nil {
		c.in.remove(c)
	}
	s.open.Complete(c.x)
}

// release ends the hold of one message. Neither c nor its exchange may be used
// afterwards.
func (s *session) release(c *call) {
	c.refs--
	s.open.Release(c.x)
	if c.done && c.refs == 0 && s.freed < 64 {
		*c = call{next: s.free}
		s.free = c
		s.freed++
	}
}

// finishAll completes all exchanges as they stand, in the order in which they
// began.
func (s *session) finishAll() {
	var left []*call
	for _, t := range []*table{&s.requests, &s.exhausts} {
		for _, ch := range t.calls {
			for c := ch.first; c != nil; c = c.next {
				left = append(left, c)
			}
		}
		*t = table{}
	}
	for dir := range s.decoders {
		for _, f := range s.decoders[dir].queue.Rest() {
			if f.call.in == nil {
				left = append(left, f.call)
			}
		}
	}
	slices.SortFunc(left, func(a, b *call) int { return cmp.Compare(a.x.Ordinal, b.x.Ordinal) })
	for _, c := range left {
		c.in, c.next = nil, nil
		c.sent, c.answered = true, true
		s.settle(c)
	}
}
