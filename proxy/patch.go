package proxy

import (
	"fmt"
	"time"

	"github.com/wirewait/wirewait/inject"
)

// DelayPatch changes a part of a link's delay; what is nil stays as it is. The
// zero value changes nothing.
type DelayPatch struct {
	// Base is the one-way delay, indexed by wire.Direction. A way whose delay
	// becomes zero loses its jitter, as there is nothing left to vary.
	Base [2]*time.Duration
	// The rest is of both ways.
	Jitter       *time.Duration
	Distribution *inject.Distribution
	Correlation  *float64
	Loss         *inject.Loss
	// Bandwidth is in bits per second, zero for none, and shared as the link's
	// was unless PerConnection says otherwise.
	Bandwidth     *int64
	PerConnection *bool
	Window        *int64 // bytes; zero for none
	FreeConnect   *bool
}

// Apply is s with the changes. The error says everything that no link can have.
func (p DelayPatch) Apply(s inject.Settings) (inject.Settings, error) {
	for dir := range s.Delay {
		d := &s.Delay[dir]
		set(&d.Base, p.Base[dir])
		set(&d.Jitter, p.Jitter)
		set(&d.Correlation, p.Correlation)
		set(&d.Loss, p.Loss)
		set(&d.Bandwidth, p.Bandwidth)
		set(&d.PerConnection, p.PerConnection)
		set(&d.Window, p.Window)
		if p.Distribution != nil {
			d.Distribution, d.Table = *p.Distribution, nil
		}
		if d.Base == 0 {
			d.Jitter, d.Distribution, d.Correlation, d.Table = 0, inject.Uniform, 0, nil
		}
	}
	set(&s.FreeConnect, p.FreeConnect)
	if p.Jitter != nil && *p.Jitter > 0 && s.RTT() == 0 {
		return s, fmt.Errorf("jitter %v varies a delay, and there is none: give rtt as well", *p.Jitter)
	}
	for dir := range s.Delay {
		if d := &s.Delay[dir]; d.Jitter > d.Base {
			return s, fmt.Errorf("jitter %v is more than the one-way delay, %v, and none can be less than 0: give a smaller jitter as well (0 for none)", d.Jitter, d.Base)
		}
	}
	return s, s.Check()
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}
