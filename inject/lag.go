package inject

import (
	"time"

	"github.com/wirewait/wirewait/wire"
)

// DefaultRamp is a lag's Ramp where none is given: what came a second apart leaves
// at most a second and a half apart, which the time-outs of servers allow for.
const DefaultRamp = 0.5

// LeastRamp is the slowest ramp there is: a second after a quarter of an hour.
const LeastRamp = 0.001

// Shift is how much later a stream passes than it came, while that moves to where
// it's to be by no more than a rate, in seconds per second:
//
//	shift
//	  |       _______________
//	  |      /               \
//	  |  ___/                 \____
//	  +----------------------------> when bytes come
//
// Of a rate up to 1 no due time is before an earlier one's, whichever way the
// shift moves. The zero value is no shift. It's not safe for concurrent use.
type Shift struct {
	was, goal time.Duration
	rate      float64
	since     wire.Stamp // when it was at was
}

// Aim has the shift move to goal, from where it is at now.
func (s *Shift) Aim(now wire.Stamp, goal time.Duration, rate float64) {
	*s = Shift{was: s.At(now), goal: goal, rate: rate, since: now}
}

// At is the shift of bytes that come at now, which is no earlier than the last Aim
// or counts as that moment.
func (s *Shift) At(now wire.Stamp) time.Duration {
	if s.was == s.goal {
		return s.goal
	}
	moved := time.Duration(min(float64(max(now-s.since, 0))*s.rate, maxDelay))
	if s.goal > s.was {
		return min(s.was+moved, s.goal)
	}
	return max(s.was-moved, s.goal)
}

// Over reports whether there is no shift any more at now, and none to come.
func (s *Shift) Over(now wire.Stamp) bool { return s.goal == 0 && s.At(now) == 0 }

// ramp is how fast a lag moves.
func (w *With) ramp() float64 {
	if w.Ramp == 0 {
		return DefaultRamp
	}
	return w.Ramp
}

// Lags has a shift move to what the rule, which is a lag, wants.
func (b *Bound) Lags(s *Shift, now wire.Stamp) { s.Aim(now, b.With.Delay, b.With.ramp()) }

// Recovers has a shift move back to none, as fast as the rule had it grow.
func (b *Bound) Recovers(s *Shift, now wire.Stamp) { s.Aim(now, 0, b.With.ramp()) }
