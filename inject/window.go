package inject

import "github.com/wirewait/wirewait/wire"

// flight is the bytes that were sent and are not acknowledged yet: in order,
// with the time at which each stretch is.
type flight struct {
	acks  []ack
	head  int
	bytes int64
	start wire.Stamp // of the last send
}

type ack struct {
	at    wire.Stamp
	bytes int64
}

// fine is how many stretches a full window is told apart into. Smaller ones are
// acknowledged together, so that many small messages need no more memory.
const fine = 256

// admit says how many of n bytes that come now may be sent together, at least
// one, and when: as soon as fewer than window are in flight.
func (f *flight) admit(n int, window int64, now wire.Stamp) (int, wire.Stamp) {
	f.start = max(f.start, now)
	for f.head < len(f.acks) && (f.acks[f.head].at <= f.start || f.bytes >= window) {
		a := f.acks[f.head]
		f.head++
		f.bytes -= a.bytes
		f.start = max(f.start, a.at)
	}
	return int(min(int64(n), max(window-f.bytes, 1))), f.start
}

// add says that n bytes were sent, to be acknowledged at at.
func (f *flight) add(n int, at wire.Stamp, window int64) {
	f.bytes += int64(n)
	if last := len(f.acks) - 1; last >= f.head {
		a := &f.acks[last]
		at = max(at, a.at)
		if a.at == at || a.bytes+int64(n) <= window/fine {
			a.at, a.bytes = at, a.bytes+int64(n)
			return
		}
	}
	if f.head == len(f.acks) || f.head > fine {
		f.acks = f.acks[:copy(f.acks, f.acks[f.head:])]
		f.head = 0
	}
	f.acks = append(f.acks, ack{at, int64(n)})
}
