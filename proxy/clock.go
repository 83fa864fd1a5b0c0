package proxy

import (
	"time"

	"github.com/wirewait/wirewait/wire"
)

// clock gives stamps: nanoseconds since its start, never 0.
type clock struct{ start time.Time }

func newClock() *clock { return &clock{start: time.Now()} }

func (c *clock) now() wire.Stamp { return wire.Stamp(time.Since(c.start)) + 1 }

// alarm wakes whoever waits for a due time. Go's own timers are up to 1 ms late
// in an otherwise idle process (golang/go#44343), so Linux has another.
type alarm interface {
	// wait returns once due has come, or wake or stop received something.
	wait(due wire.Stamp, wake, stop <-chan struct{})
	close()
}

// timerAlarm is the alarm by time.Timer: everywhere, and under a fake clock.
type timerAlarm struct{ clock *clock }

func (a timerAlarm) wait(due wire.Stamp, wake, stop <-chan struct{}) {
	t := time.NewTimer(time.Duration(due - a.clock.now()))
	defer t.Stop()
	select {
	case <-t.C:
	case <-wake:
	case <-stop:
	}
}

func (timerAlarm) close() {}
