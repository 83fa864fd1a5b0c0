// Package inject decides what happens to bytes on their way, and when, and
// holds them until then. It's told the time and asks no clock; it does no I/O.
//
//	Settings --Draw--> one-way delay --+
//	                                   v  due = max(arrival + delay, previous due)
//	bytes of one read ------------> [ Line: runs with due times ] --> what may be written now
//
// A delay is drawn once per exchange and direction; the line keeps the order of
// the bytes whatever is drawn.
package inject

import (
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/wirewait/wirewait/wire"
)

// Delay is what one direction of a link adds to every message: Base, give or
// take a uniformly distributed Jitter, never less than zero.
type Delay struct {
	Base, Jitter time.Duration
}

// Settings are the delays of a link. A value is never changed once it is in
// use; to change a link, give it another.
type Settings struct {
	// Delay is indexed by wire.Direction: one way each.
	Delay [2]Delay
	// FreeConnect leaves out what connecting would cost: without it, the first
	// client bytes are due no earlier than a round trip and one way after the
	// connection was accepted.
	FreeConnect bool
}

// Symmetric settings have half of rtt each way; jitter is of the one-way delay.
func Symmetric(rtt, jitter time.Duration) Settings {
	d := Delay{Base: rtt / 2, Jitter: jitter}
	return Settings{Delay: [2]Delay{d, d}}
}

// RTT is the round trip without jitter.
func (s *Settings) RTT() time.Duration {
	return s.Delay[wire.ToServer].Base + s.Delay[wire.ToClient].Base
}

// Draw is one delay out of d's distribution: uniform over [Base - Jitter,
// Base + Jitter] and never negative.
func (d Delay) Draw(src *Source) time.Duration {
	if d.Jitter <= 0 {
		return max(d.Base, 0)
	}
	return max(d.Base-d.Jitter+time.Duration(src.rnd.Int64N(int64(2*d.Jitter)+1)), 0)
}

// Source draws for one direction of one connection. The same key gives the
// same draws, always.
type Source struct{ rnd *rand.Rand }

// NewSource makes the source for (seed, link, connection ordinal, direction).
func NewSource(seed uint64, link string, conn uint64, dir wire.Direction) *Source {
	h := fnv.New64a()
	h.Write([]byte(link))
	return &Source{rnd: rand.New(rand.NewPCG(seed^h.Sum64(), conn<<1|uint64(dir)))}
}
