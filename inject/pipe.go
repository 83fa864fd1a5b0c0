package inject

import (
	"math/bits"
	"time"

	"github.com/wirewait/wirewait/wire"
)

// Booker is a pipe that several connections share. An implementation locks a
// Pipe and calls it.
type Booker interface {
	// Book is Pipe.Book.
	Book(now wire.Stamp, n int, rate int64) (sent wire.Stamp)
	// Free is Pipe.Free.
	Free() wire.Stamp
}

// Pipe is one direction of a wire that takes one byte after the other. What is
// sent while others are in the pipe waits for them: first come, first served.
// The zero value is idle. It's not safe for concurrent use.
type Pipe struct {
	free wire.Stamp
	rest uint64 // of a nanosecond, times rate: so that no bit is lost by rounding
	rate int64
}

// Book sends n bytes at rate bits per second, not before now, and returns when
// the last of them is in. No rate at all is any rate.
func (p *Pipe) Book(now wire.Stamp, n int, rate int64) (sent wire.Stamp) {
	if now > p.free || p.rate != rate {
		p.free, p.rest, p.rate = max(now, p.free), 0, rate
	}
	if rate <= 0 || n <= 0 {
		return p.free
	}
	hi, lo := bits.Mul64(uint64(n)*8, uint64(time.Second))
	lo, carry := bits.Add64(lo, p.rest, 0)
	hi += carry
	took := uint64(maxDelay)
	if hi < uint64(rate) {
		took, p.rest = bits.Div64(hi, lo, uint64(rate))
	}
	p.free = min(p.free+wire.Stamp(min(took, maxDelay)), 2*maxDelay)
	return p.free
}

// Free is when all that was booked is in.
func (p *Pipe) Free() wire.Stamp { return p.free }
