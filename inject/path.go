package inject

import (
	"time"

	"github.com/wirewait/wirewait/wire"
)

// Path is the way that one direction of one connection takes. It cuts what was
// read into parcels that arrive together:
//
//	read --> window: is there room in flight? --> pipe: serialise at Bandwidth
//	     --> Base + Jitter --> loss: + what repeating takes --> arrives --> acknowledged
//
// Each step begins when the one before it ends, and a parcel never arrives
// before the one in front of it: what follows a lost segment waits for it. Of
// the bytes of one read, every 1,448 are a segment. It's not safe for concurrent
// use.
type Path struct {
	src    *Source
	shared Booker // nil: every connection has its own pipe

	dir   wire.Direction
	set   *Settings
	by    *Delay
	stale bool          // the settings changed since the last draw
	fixed bool          // every draw is the same
	model bool          // there is more to it than delay
	delay time.Duration // drawn for the present exchange

	own    Pipe
	flight flight

	// Of the present read:
	rest  int           // bytes in segments that were not drawn yet
	full  bool          // more follows
	drawn int           // bytes that are left of the last segment drawn
	late  time.Duration // what loss adds to that segment
}

// NewPath makes the path of a direction. Without shared, bandwidth is each
// connection's own.
func NewPath(dir wire.Direction, src *Source, shared Booker) Path {
	return Path{dir: dir, src: src, shared: shared}
}

// initialWindow is what a sender may have on its way before it heard anything
// (ten segments: RFC 6928): no queue keeps it from that.
const initialWindow = 10 * SegmentSize

// queue is how long what is booked in a pipe may take before senders with more
// than an initial window wait with the rest.
const queue = 100 * time.Millisecond

// quantum is how much time the bytes of one parcel may take in the pipe, if they
// are more than a segment: a wake-up of the proxy for each.
const quantum = time.Millisecond

// Use has the settings apply to what comes next.
func (w *Path) Use(set *Settings) {
	if w.set != set {
		w.set, w.stale = set, true
		w.by = &set.Delay[w.dir]
		w.fixed, w.model = w.by.Jitter <= 0, w.by.modelled()
	}
}

// Draw draws the delay of an exchange that begins now; and of one that is under
// way as well, after a change of settings, which is felt at once.
func (w *Path) Draw(begins bool) {
	if begins && !w.fixed || w.stale {
		w.draw()
	}
}

func (w *Path) draw() { w.delay, w.stale = w.by.Draw(w.src), false }

// Arrived begins a read of n bytes. Full says that there is surely more where
// they came from.
func (w *Path) Arrived(n int, full bool) { w.rest, w.full, w.drawn = n, full, 0 }

// Delay is what was drawn.
func (w *Path) Delay() time.Duration { return w.delay }

// Cuts says that there is more to the path than delay. If not, all bytes of a
// message arrive together, Delay later, and Parcel need not be asked.
func (w *Path) Cuts() bool { return w.model }

// Parcel takes n bytes that arrived now: it returns how many of them, at least
// one, arrive together at the other end, and when. Clamped must follow.
func (w *Path) Parcel(n int, now wire.Stamp) (int, wire.Stamp) {
	if !w.model || n == 0 {
		return n, now.Add(w.delay)
	}
	d, start, late := w.by, now, time.Duration(0)
	if d.Window > 0 {
		n, start = w.flight.admit(n, d.Window, now)
	}
	if d.Bandwidth > 0 {
		n = min(n, max(SegmentSize, int(min(d.Bandwidth/8, 1<<40)*int64(quantum)/int64(time.Second))))
	}
	if !d.Loss.none() {
		n, late = w.cutAtLoss(n)
	}
	if d.Bandwidth > 0 {
		start = w.serialise(n, now, start)
	}
	return n, start.Add(w.delay + late)
}

// serialise sends n bytes that arrived now and may be sent at start. What a
// window puts off takes its share of the shared pipe when it arrives, since a
// pipe that was booked for later would stand idle till then for the others.
func (w *Path) serialise(n int, now, start wire.Stamp) wire.Stamp {
	if w.ownPipe() {
		return w.own.Book(start, n, w.by.Bandwidth)
	}
	sent := w.shared.Book(now, n, w.by.Bandwidth)
	if w.by.Window > 0 {
		sent = max(sent, w.own.Book(start, n, w.by.Bandwidth))
	}
	return sent
}

func (w *Path) ownPipe() bool { return w.shared == nil || w.by.PerConnection }

// Resend is when n bytes arrive that were held on their way until now: as fast as
// the pipe takes them.
func (w *Path) Resend(n int, now wire.Stamp) wire.Stamp {
	if w.model && w.by.Bandwidth > 0 {
		return w.serialise(n, now, now)
	}
	return now
}

// Clamped says when a parcel of n bytes really arrives, after those in front.
func (w *Path) Clamped(n int, at wire.Stamp) {
	if w.model && n > 0 {
		w.sent(n, at)
	}
}

func (w *Path) sent(n int, at wire.Stamp) {
	if w.by.Window > 0 {
		w.flight.add(n, at.Add(min(w.set.Delay[1-w.dir].Base, maxDelay)), w.by.Window)
	}
}

// cutAtLoss says how many of n bytes share the fate of the first, and what it
// is.
func (w *Path) cutAtLoss(n int) (int, time.Duration) {
	if w.drawn == 0 {
		w.drawSegment()
	}
	m, late := 0, w.late
	for {
		k := min(n-m, w.drawn)
		w.drawn -= k
		if m += k; m == n {
			return m, late
		}
		if w.drawSegment(); w.late != late {
			return m, late
		}
	}
}

// drawSegment draws the fate of the next segment.
func (w *Path) drawSegment() {
	w.drawn = min(max(w.rest, 1), SegmentSize)
	w.rest -= w.drawn
	followers := (w.rest + SegmentSize - 1) / SegmentSize
	if w.full {
		followers += dupAcks
	}
	w.late = w.src.recovery(&w.by.Loss, w.set.RTT(), followers)
}

// Full says that a sender would wait before it sends more, when the given
// number of its bytes are on their way: for the window to open, or for a place
// in the pipe, which there is at again. Zero means that only bytes which arrive
// make room.
func (w *Path) Full(underWay int, now wire.Stamp) (full bool, again wire.Stamp) {
	if !w.model {
		return false, 0
	}
	if w.by.Window > 0 && int64(underWay) >= w.by.Window {
		return true, 0
	}
	if w.by.Bandwidth > 0 && underWay >= initialWindow {
		free := w.own.Free()
		if !w.ownPipe() {
			free = w.shared.Free()
		}
		if again = free.Add(-queue); again > now {
			return true, again
		}
	}
	return false, 0
}
