package inject

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Effect is what a rule does to what it matches. For each effect the first rule
// that matches and fires is the one; different effects compose, in the order of
// the constants:
//
//	request   Refuse -> Hold -> Latency
//	reply     LoseReply -> FailReply -> Hold -> Latency
//	bytes     ResetPeer, Timeout, LimitData -> Bandwidth, Loss -> Latency, Lag -> Slicer -> Hold -> SlowClose
//
// What an earlier one took away (a refused request, a reply that is lost) the
// later ones don't see.
type Effect uint8

// The effects. See With for their parameters.
const (
	// EffectRefuse answers a request in the server's place, or makes the server
	// itself fail, so that the request never takes effect.
	EffectRefuse Effect = iota
	// EffectLoseReply ends the connection in place of a successful reply: the
	// server did what it was asked, and nobody heard of it.
	EffectLoseReply
	// EffectFailReply puts an error in place of a successful reply.
	EffectFailReply
	// EffectHold lets nothing pass any more and leaves the sockets open, until the
	// rule is gone: a partition.
	EffectHold
	// EffectLatency delays, on top of the link's own delay.
	EffectLatency
	// EffectLag delays the log that a member receives of its cluster, by an amount
	// that is reached little by little. Connections that carry something else pass.
	EffectLag
	// EffectResetPeer resets both sockets, With.After the first byte.
	EffectResetPeer
	// EffectTimeout takes all bytes away, and ends the connection With.After the
	// effect began (0: never).
	EffectTimeout
	// EffectLimitData ends the connection once With.Bytes have passed.
	EffectLimitData
	// EffectLoss is packet loss, seen as what TCP needs to repeat segments.
	EffectLoss
	// EffectBandwidth is a rate of its own for each connection.
	EffectBandwidth
	// EffectSlicer cuts what passes into small writes.
	EffectSlicer
	// EffectSlowClose delays the passing on of the end of a stream.
	EffectSlowClose
	// NumEffects is how many there are.
	NumEffects
)

var effectNames = [NumEffects]string{
	"refuse", "lose_reply", "fail_reply", "hold", "latency", "lag", "reset_peer", "timeout", "limit_data",
	"loss", "bandwidth", "slicer", "slow_close",
}

// EffectNames are the names of all effects, as the file and the control API
// write them.
func EffectNames() []string { return effectNames[:] }

// String is the effect's name: "lose_reply".
func (e Effect) String() string {
	if e < NumEffects {
		return effectNames[e]
	}
	return fmt.Sprintf("Effect(%d)", uint8(e))
}

// ParseEffect reads an effect's name.
func ParseEffect(name string) (Effect, error) {
	if i := slices.Index(effectNames[:], name); i >= 0 {
		return Effect(i), nil
	}
	return 0, fmt.Errorf("no effect is called %q: write one of %s", name, strings.Join(effectNames[:], ", "))
}

// OnBytes reports whether the effect acts on all that passes, from its beginning
// on, and not on one message. Latency does if its rule has no content, and lag
// from where it turns out to be a log.
func (e Effect) OnBytes() bool { return e > EffectFailReply }

// With are an effect's parameters. Those that an effect doesn't have are zero.
type With struct {
	// Delay and Jitter of latency are one way: uniform over Delay ± Jitter, drawn
	// once per exchange and direction. Delay is also what slow_close waits before
	// it passes an end on, slicer between two pieces, and what lag comes to.
	Delay, Jitter time.Duration
	// Ramp is how fast a lag moves, in seconds per second, LeastRamp to 1; 0 stands
	// for DefaultRamp.
	Ramp float64
	// Acknowledgements: what the member says of its progress lags too, by as much
	// again.
	Acknowledgements bool
	// After: of reset_peer, from the first byte to the reset; of timeout, from the
	// beginning of the effect to the end of the connection, 0 for never.
	After time.Duration
	// Bandwidth is in bits per second, for each connection and direction.
	Bandwidth int64
	// Loss is per segment.
	Loss Loss
	// Size is the average of a slicer's pieces in bytes; they vary by up to
	// Variation, uniformly.
	Size, Variation int
	// Bytes of limit_data, counted in each direction from the effect's beginning.
	Bytes int64

	// Code of refuse and fail_reply: MongoDB's number, or a SQLSTATE.
	Code string
	// WriteConcernError (fail_reply, MongoDB) puts the code into a
	// writeConcernError beside what the server answered, and leaves ok at 1.
	WriteConcernError bool
	// Fatal (refuse, PostgreSQL): the error is a FATAL, and the connection ends.
	Fatal bool
	// Message of the error; empty: the server's own for some codes, else one that
	// names the rule.
	Message string
	// Labels are MongoDB's errorLabels; nil: those that a server of the version at
	// hand would give.
	Labels []string
}
