package pump

import (
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// Counts are what a direction counted since its start.
type Counts struct {
	Bytes int64 // written
	Read  int64 // whatever became of them
	Live  int   // waiting in the line now
	// Stalls are pauses of the reading that ended, and Stalled how long they
	// took. Paused says that there is one now.
	Stalls  uint64
	Stalled time.Duration
	Paused  bool
	Held    inject.Tally
}

// Counts is a snapshot of what the direction counted.
func (c *Conn) Counts(dir wire.Direction) Counts {
	p := &c.dirs[dir]
	return Counts{
		Bytes: p.out, Read: p.in, Live: p.line.Bytes(), Stalls: p.stalls, Stalled: p.stalled, Paused: p.paused != 0, Held: p.line.Held,
	}
}
