package trace

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/wirewait/wirewait/wire"
)

// linger is how long the worker lets exchanges gather before it handles them:
// at most 50 wake-ups a second, however many writes there are. Waking a
// thread for each write would cost more than handling it.
const linger = 20 * time.Millisecond

// Tracer is the bounded queue between connections and consumers, with the one
// worker that empties it. Its methods are safe for concurrent use.
type Tracer struct {
	consumers []Consumer
	limit     int
	dropped   atomic.Uint64
	spare     sync.Pool // of *wire.Exchange, handled

	mu      sync.Mutex
	pending []job
	closed  bool

	wake chan struct{} // room for one: something is pending
	stop chan struct{} // closed by Close
	done chan struct{} // closed by the worker
}

type job struct {
	x *wire.Exchange
	c *Conn
}

// New starts a tracer. At most queue exchanges wait, and at most as many again
// are being handled. Close must be called.
func New(queue int, consumers ...Consumer) *Tracer {
	t := &Tracer{
		consumers: consumers,
		limit:     max(queue, 1),
		wake:      make(chan struct{}, 1),
		stop:      make(chan struct{}),
		done:      make(chan struct{}),
	}
	go t.work()
	return t
}

// Offer hands over a finished exchange. It never blocks. True: the tracer
// keeps x and the caller must not touch it again (others may: Spare). False: there was no room
// (counted as dropped) or the tracer is closed, and x is still the caller's.
func (t *Tracer) Offer(x *wire.Exchange, c *Conn) bool {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return false
	}
	if len(t.pending) >= t.limit {
		t.mu.Unlock()
		t.dropped.Add(1)
		return false
	}
	t.pending = append(t.pending, job{x, c})
	n := len(t.pending)
	t.mu.Unlock()
	if n == 1 || n == t.limit/2 {
		t.signal()
	}
	return true
}

// Spare gives an exchange that was handled, to be used again by whoever calls,
// with whatever it holds; nil: there is none. It's made for wire.Open.Spare:
// an exchange is half a kilobyte, and without it each write leaves one to the
// garbage collector.
func (t *Tracer) Spare() *wire.Exchange {
	x, _ := t.spare.Get().(*wire.Exchange)
	return x
}

// Dropped is how many exchanges found the queue full.
func (t *Tracer) Dropped() uint64 { return t.dropped.Load() }

// Close handles what is queued, then returns. It may be called again.
func (t *Tracer) Close() {
	t.mu.Lock()
	if !t.closed {
		t.closed = true
		close(t.stop)
	}
	t.mu.Unlock()
	<-t.done
}

// signal wakes the worker, or ends its lingering.
func (t *Tracer) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

func (t *Tracer) work() {
	defer close(t.done)
	gather := time.NewTimer(linger)
	gather.Stop()
	var batch []job
	for {
		select {
		case <-t.wake:
			gather.Reset(linger)
			select {
			case <-gather.C:
			case <-t.wake: // half full
			case <-t.stop:
			}
		case <-t.stop:
		}
		var last bool
		batch, last = t.take(batch)
		t.handle(batch)
		if last {
			return
		}
	}
}

// take exchanges the pending jobs for an empty slice. After the last, none can
// follow.
func (t *Tracer) take(empty []job) (batch []job, last bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	batch, t.pending = t.pending, empty[:0]
	return batch, t.closed
}

func (t *Tracer) handle(batch []job) {
	var f Finished
	for i := range batch {
		j := &batch[i]
		f = Finished{Exchange: j.x, Conn: j.c, Waits: Split(j.x)}
		for _, c := range t.consumers {
			c.Consume(&f)
		}
		t.spare.Put(j.x)
		*j = job{}
	}
}
