package toxiproxy

import (
	"math"
	"time"

	"github.com/wirewait/wirewait/inject"
)

// attributes are those of a type of toxic, with the names and units that they have
// there. A value is decoded into, checked, and made a rule of.
type attributes interface {
	check() *apiError
	// rule gives a rule its effect and parameters; false: there is nothing to do.
	rule(*inject.Rule) bool
}

// types makes the attributes of a type: those of Toxiproxy 2.12, and packet_loss,
// which came after it.
var types = map[string]func() attributes{
	"latency":     func() attributes { return &latencyToxic{} },
	"bandwidth":   func() attributes { return &bandwidthToxic{} },
	"slow_close":  func() attributes { return &slowCloseToxic{} },
	"timeout":     func() attributes { return &timeoutToxic{} },
	"reset_peer":  func() attributes { return &resetToxic{} },
	"slicer":      func() attributes { return &slicerToxic{} },
	"limit_data":  func() attributes { return &limitDataToxic{} },
	"noop":        func() attributes { return &noopToxic{} },
	"packet_loss": func() attributes { return &packetLossToxic{} },
}

// longest is the most milliseconds that can be waited: 36 years.
const longest = int64(1<<60) / int64(time.Millisecond)

func checkTime(name string, v int64) *apiError {
	if v < 0 || v > longest {
		return bad("%s is %d: write milliseconds from 0 to %d", name, v, longest)
	}
	return nil
}

func ms(v int64) time.Duration { return time.Duration(v) * time.Millisecond }

type latencyToxic struct {
	Latency int64 `json:"latency"`
	Jitter  int64 `json:"jitter"`
}

func (t *latencyToxic) check() *apiError {
	if err := checkTime("latency", t.Latency); err != nil {
		return err
	}
	return checkTime("jitter", t.Jitter)
}

func (t *latencyToxic) rule(r *inject.Rule) bool {
	r.Effect, r.With.Delay, r.With.Jitter = inject.EffectLatency, ms(t.Latency), ms(t.Jitter)
	return t.Latency > 0 || t.Jitter > 0
}

// bandwidthToxic is in thousands of bytes a second; at 0 nothing passes.
type bandwidthToxic struct {
	Rate int64 `json:"rate"`
}

func (t *bandwidthToxic) check() *apiError {
	if t.Rate < 0 {
		return bad("rate is %d: write KB/s, or 0 for a connection on which nothing passes", t.Rate)
	}
	return nil
}

func (t *bandwidthToxic) rule(r *inject.Rule) bool {
	r.Effect, r.With.Bandwidth = inject.EffectBandwidth, min(t.Rate, math.MaxInt64/16000)*8000
	return true
}

type slowCloseToxic struct {
	Delay int64 `json:"delay"`
}

func (t *slowCloseToxic) check() *apiError { return checkTime("delay", t.Delay) }

func (t *slowCloseToxic) rule(r *inject.Rule) bool {
	r.Effect, r.With.Delay = inject.EffectSlowClose, ms(t.Delay)
	return t.Delay > 0
}

type timeoutToxic struct {
	Timeout int64 `json:"timeout"`
}

func (t *timeoutToxic) check() *apiError { return checkTime("timeout", t.Timeout) }

func (t *timeoutToxic) rule(r *inject.Rule) bool {
	r.Effect, r.With.After = inject.EffectTimeout, ms(t.Timeout)
	return true
}

type resetToxic struct {
	Timeout int64 `json:"timeout"`
}

func (t *resetToxic) check() *apiError { return checkTime("timeout", t.Timeout) }

func (t *resetToxic) rule(r *inject.Rule) bool {
	r.Effect, r.With.After = inject.EffectResetPeer, ms(t.Timeout)
	return true
}

// slicerToxic has bytes and microseconds.
type slicerToxic struct {
	AverageSize   int `json:"average_size"`
	SizeVariation int `json:"size_variation"`
	Delay         int `json:"delay"`
}

func (t *slicerToxic) check() *apiError {
	switch {
	case t.AverageSize < 1 || t.AverageSize > math.MaxInt32:
		return bad("average_size is %d: write at least 1 byte", t.AverageSize)
	case t.SizeVariation < 0 || t.SizeVariation >= t.AverageSize:
		return bad("size_variation is %d: write less than the average_size, and not less than 0", t.SizeVariation)
	case t.Delay < 0 || int64(t.Delay) > longest:
		return bad("delay is %d: write microseconds from 0 to %d", t.Delay, longest)
	}
	return nil
}

func (t *slicerToxic) rule(r *inject.Rule) bool {
	r.Effect, r.With.Size, r.With.Variation = inject.EffectSlicer, t.AverageSize, t.SizeVariation
	r.With.Delay = time.Duration(t.Delay) * time.Microsecond
	return true
}

type limitDataToxic struct {
	Bytes int64 `json:"bytes"`
}

func (t *limitDataToxic) check() *apiError {
	if t.Bytes < 0 {
		return bad("bytes is %d: write how many are to pass, from 0", t.Bytes)
	}
	return nil
}

func (t *limitDataToxic) rule(r *inject.Rule) bool {
	r.Effect, r.With.Bytes = inject.EffectLimitData, t.Bytes
	return true
}

type noopToxic struct{}

func (*noopToxic) check() *apiError       { return nil }
func (*noopToxic) rule(*inject.Rule) bool { return false }

// packetLossToxic is a chain of two states: a segment is lost with the loss_rate,
// and its fate is the last one's fate again for a part of correlation.
type packetLossToxic struct {
	LossRate    float64 `json:"loss_rate"`
	Correlation float64 `json:"correlation"`
}

func (t *packetLossToxic) check() *apiError {
	if !(t.LossRate >= 0 && t.LossRate <= 1 && t.Correlation >= 0 && t.Correlation <= 1) {
		return bad("loss_rate is %v and correlation %v: write probabilities from 0 to 1", t.LossRate, t.Correlation)
	}
	return nil
}

// mostCorrelated keeps a state from lasting for ever.
const mostCorrelated = 0.99

func (t *packetLossToxic) rule(r *inject.Rule) bool {
	r.Effect = inject.EffectLoss
	c := min(t.Correlation, mostCorrelated)
	switch {
	case t.LossRate >= 1: // nothing arrives, however often it's repeated
		r.Effect = inject.EffectHold
	case c > 0:
		r.With.Loss = inject.Loss{P: t.LossRate * (1 - c), R: (1 - t.LossRate) * (1 - c), Bad: 1}
	default:
		r.With.Loss = inject.RandomLoss(t.LossRate)
	}
	return t.LossRate > 0
}
