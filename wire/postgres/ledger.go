package postgres

import "github.com/wirewait/wirewait/wire"

// With Options.Ledger every byte between two exchanges is counted to the
// earlier one: the newest exchange is held until a round brings another.

// Sizes of the messages that end a round.
const (
	syncSize  = headerLen
	readySize = headerLen + 1
)

// enter holds the round's last result, or gives the bytes of a round without
// one to the exchange that is held.
func (s *session) enter() {
	var last *call
	for _, c := range s.round {
		if c.result != 0 && !c.void() {
			last = c
		}
	}
	if last != nil {
		s.hold(last.x)
		return
	}
	for _, c := range s.round {
		if s.held == nil || !c.void() {
			continue
		}
		for dir := range c.x.Sides {
			s.open.CountOnly(s.held, wire.Direction(dir), int(c.x.Sides[dir].Bytes))
		}
	}
}

// enterLoose counts the messages that ended a round, if nothing else did.
func (s *session) enterLoose(it *item) {
	if s.held == nil {
		return
	}
	if it.looseSync {
		s.open.CountOnly(s.held, wire.ToServer, syncSize)
	}
	if it.looseReady {
		s.open.CountOnly(s.held, wire.ToClient, readySize)
	}
}

// hold keeps x from being emitted, and lets go of what was held before.
func (s *session) hold(x *wire.Exchange) {
	if s.held != nil {
		s.open.Release(s.held)
	}
	if s.held = x; x != nil {
		s.open.Hold(x)
	}
}
