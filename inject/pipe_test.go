package inject

import (
	"math"
	"testing"
	"time"

	"github.com/wirewait/wirewait/wire"
)

const ms = wire.Stamp(time.Millisecond)

func TestPipe_SerialisesFirstComeFirstServed(t *testing.T) {
	var p Pipe
	const rate = 1_000_000 // 125 bytes a millisecond
	for i, c := range []struct {
		now  wire.Stamp
		n    int
		want wire.Stamp
	}{{10 * ms, 125, 11 * ms}, {10 * ms, 250, 13 * ms}, {12 * ms, 125, 14 * ms}, {14 * ms, 125, 15 * ms}, {20 * ms, 125, 21 * ms}} {
		if got := p.Book(c.now, c.n, rate); got != c.want {
			t.Errorf("%d: sent at %v, want %v", i, time.Duration(got), time.Duration(c.want))
		}
	}
	if got := p.Book(21*ms, 125, rate/2); got != 23*ms {
		t.Errorf("at half the rate: %v", time.Duration(got))
	}
	if got := p.Book(5, 0, rate/2); got != 23*ms || p.Free() != 23*ms {
		t.Errorf("nothing takes no time but waits its turn: %v", got)
	}
}

// A booking takes no whole number of nanoseconds here: no rounding adds up.
func TestPipe_LosesNoTimeToRounding(t *testing.T) {
	var p Pipe
	const rate = 7_777_777_777
	for range 1_000_000 {
		p.Book(1, 13, rate)
	}
	if got, want := p.Free()-1, wire.Stamp(1_000_000*13*8*1_000_000_000/rate); got != want {
		t.Errorf("%d ns for a million bookings, want %d", got, want)
	}
}

func TestPipe_TakesAnything(t *testing.T) {
	for _, rate := range []int64{math.MinInt64, -1, 0, 1, math.MaxInt64} {
		for _, n := range []int{math.MinInt, 0, 1, math.MaxInt} {
			var p Pipe
			last := wire.Stamp(0)
			for range 10 {
				if got := p.Book(7, n, rate); got < 7 || got < last || got > 2*maxDelay+7 {
					t.Fatalf("%d bytes at %d: %d after %d", n, rate, got, last)
				} else {
					last = got
				}
			}
		}
	}
}

// A sender that always has more gets one window a round trip, and never has
// more than that in flight.
func TestFlight_IsOneWindowARoundTrip(t *testing.T) {
	const window, rtt = 64 << 10, 40 * ms
	var f flight
	type sent struct {
		at wire.Stamp
		n  int
	}
	var all []sent
	total := 0
	for total < 10*window {
		n, at := f.admit(1448, window, 1)
		f.add(n, at+rtt, window)
		all = append(all, sent{at, n})
		total += n
	}
	for i, s := range all {
		if want := 1 + wire.Stamp(total/window-1)*rtt; i == len(all)-1 && s.at != want {
			t.Errorf("the last of %d bytes were sent at %d, want %d", total, s.at, want)
		}
		flying := 0
		for _, o := range all[:i+1] {
			if o.at+rtt > s.at {
				flying += o.n
			}
		}
		if flying > window {
			t.Fatalf("%d bytes in flight at %d", flying, s.at)
		}
	}
}

func TestFlight_ManySmallMessagesNeedLittleMemory(t *testing.T) {
	const window = 1 << 20
	var f flight
	for i := range 100_000 {
		n, at := f.admit(20, window, wire.Stamp(i+1))
		f.add(n, at+40*ms, window)
	}
	if len(f.acks) > 4*fine {
		t.Errorf("%d stretches", len(f.acks))
	}
	if f.bytes > window || f.bytes < window*9/10 {
		t.Errorf("%d bytes in flight", f.bytes)
	}
}
