package inject

import (
	"errors"
	"fmt"
	"time"

	"github.com/wirewait/wirewait/wire"
)

// Check reports everything in s that no link can have, each with what to write
// instead; nil: nothing.
func (s *Settings) Check() error {
	var errs []error
	for dir := range s.Delay {
		if err := s.Delay[dir].Check(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", wire.Direction(dir), err))
		}
	}
	return errors.Join(errs...)
}

// Check is Settings.Check for one direction.
func (d *Delay) Check() error {
	var errs []error
	bad := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	bad(d.Base < 0 || d.Base > maxDelay, "the delay is %v: write one from 0 to %v", d.Base, time.Duration(maxDelay))
	bad(d.Jitter < 0 || d.Jitter > maxDelay, "the jitter is %v: write one from 0 to %v", d.Jitter, time.Duration(maxDelay))
	bad(int(d.Distribution) >= len(distributionNames), "there is no distribution %d", int(d.Distribution))
	bad(!(d.Correlation >= 0 && d.Correlation < 1), "the correlation is %v: write one from 0 to below 1", d.Correlation)
	bad(d.Bandwidth < 0, "the bandwidth is %d bits a second: write a positive one, or 0 for none", d.Bandwidth)
	bad(d.Window < 0, "the window is %d bytes: write a positive one, or 0 for none", d.Window)
	for _, p := range []struct {
		name string
		is   float64
	}{{"p", d.Loss.P}, {"r", d.Loss.R}, {"the loss in the bad state", d.Loss.Bad}, {"the loss in the good state", d.Loss.Good}} {
		bad(!(p.is >= 0 && p.is <= 1), "loss: %s is %v: write a probability from 0 to 1", p.name, p.is)
	}
	bad(d.Loss.Good == 1 || d.Loss.P > 0 && d.Loss.R == 0 && d.Loss.Bad == 1,
		"loss: in the end nothing would arrive: write less than 100%%")
	return errors.Join(errs...)
}
