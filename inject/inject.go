// Package inject decides what happens to bytes on their way, and when, and
// holds them until then. It's told the time and asks no clock; it does no I/O.
//
//	Settings, Source, Pipe --> [ Path: window, bandwidth, delay and jitter, loss ]
//	                              |  due = max(when it would arrive, previous due)
//	                              v
//	bytes of one read ------> [ Line: runs with due times ] --> what may be written now
//
// A delay is drawn once per exchange and direction; the line keeps the order of
// the bytes whatever is drawn. Path says how the models compose, and Delay,
// Distribution, Loss, Pipe what each of them is.
package inject

import (
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/wirewait/wirewait/wire"
)

// Delay is what one direction of a link does to what passes: it serialises at
// Bandwidth, within Window; it delays by Base and Jitter; it repeats what Loss
// took. All but Base may be zero, which leaves that part out. See Path for how
// they compose, and Check for what is allowed.
type Delay struct {
	// Base is the delay of every message, and Jitter what is added to it or
	// taken from it, by Distribution or by Table if that isn't nil. Together
	// they are never less than zero.
	Base, Jitter time.Duration
	Distribution Distribution
	Table        *Table
	// Correlation, from 0 to below 1, is how much of one draw is in the next.
	Correlation float64

	Loss Loss
	// Bandwidth is in bits per second, of the bytes that are forwarded. It's
	// shared by all that share the Booker, unless PerConnection.
	Bandwidth     int64
	PerConnection bool
	// Window is how many bytes may be on their way unacknowledged: each
	// connection gets at most Window / RTT.
	Window int64
}

// modelled says that bytes must be looked at by the segment.
func (d *Delay) modelled() bool { return d.Bandwidth > 0 || d.Window > 0 || !d.Loss.none() }

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

// maxDelay bounds what one message can be delayed by, so that no sum overflows.
const maxDelay = 1 << 60 // 36 years

// Draw is one delay out of d's distribution, never negative.
func (d *Delay) Draw(src *Source) time.Duration {
	base, jitter := min(d.Base, maxDelay), min(d.Jitter, maxDelay)
	switch {
	case jitter <= 0:
		return max(base, 0)
	case d.Distribution == Uniform && d.Table == nil && d.Correlation <= 0:
		base += time.Duration(src.rnd.Int64N(int64(2*jitter)+1)) - jitter
	default:
		base += time.Duration(float64(jitter) * d.quantile(src.correlated(d.Correlation)))
	}
	return min(max(base, 0), maxDelay)
}

// Source draws for one direction of one connection. The same key gives the
// same draws, always; the draws of loss don't disturb those of jitter.
type Source struct {
	rnd   *rand.Rand
	drawn bool    // norm holds a draw
	norm  float64 // the last correlated draw, as a standard normal value

	loss rand.PCG
	bad  bool // the state of the loss chain
}

// NewSource makes the source for (seed, link, connection ordinal, direction).
func NewSource(seed uint64, link string, conn uint64, dir wire.Direction) *Source {
	h := fnv.New64a()
	h.Write([]byte(link))
	hi, lo := seed^h.Sum64(), conn<<1|uint64(dir)
	return &Source{rnd: rand.New(rand.NewPCG(hi, lo)), loss: *rand.NewPCG(^hi, lo)}
}

// N draws a number below n, which is at least 1.
func (s *Source) N(n int) int { return s.rnd.IntN(n) }
