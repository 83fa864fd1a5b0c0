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

	sourceChanges atomic.Uint64
	spare         sync.Pool // of *wire.Exchange, handled

	committing  func(*Conn) // nil: nobody asks
	attribution attribution
	markers     markers
	activities  Activities
	held        wire.Queue[job] // writes that wait for reports; the worker's
	finished    Finished        // the worker's

	mu      sync.Mutex
	pending []job
	missing gap // when reports were made that found no room
	closed  bool

	wake chan struct{} // room for one: something is pending
	stop chan struct{} // closed by Close
	done chan struct{} // closed by the worker
}

// job is an exchange or a report.
type job struct {
	x *wire.Exchange
	r *wire.Report
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
	t.append(job{x: x, c: c})
	return true
}

// append adds a job to the queue and unlocks it.
func (t *Tracer) append(j job) {
	t.pending = append(t.pending, j)
	n := len(t.pending)
	t.mu.Unlock()
	if n == 1 || n == t.limit/2 {
		t.signal()
	}
}

// OfferReport hands over what a connection between members said. It never
// blocks. A report that finds no room is counted as dropped, and writes of its
// time are attributed to nobody.
func (t *Tracer) OfferReport(r *wire.Report, c *Conn) {
	if t.committing != nil && len(r.Commits) > 0 {
		t.committing(c)
	}
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return
	}
	if len(t.pending) >= t.limit {
		if r.Kind != wire.ReportObserved { // without which less is known, and nothing wrong
			if t.missing.from == 0 {
				t.missing.from = max(r.In, 1)
			}
			t.missing.to = max(r.In, r.Out)
		}
		t.mu.Unlock()
		t.dropped.Add(1)
		return
	}
	t.append(job{r: r, c: c})
}

// SetRule says whose acknowledgements the writes need that go to a server, from
// the next that is looked at. The server is named as connections to it name it:
// Conn.To if that's a member of a cluster ("pg.p"), else its host:port. Without
// a rule nothing is known of whom its writes wait for.
func (t *Tracer) SetRule(server string, r Rule) { t.attribution.setRule(server, r) }

// ChangeRule is SetRule for one that came into force between since, when the one
// before it still was, and now. Writes that ended before then are judged by that
// one, and of those that were under way meanwhile nobody knows.
func (t *Tracer) ChangeRule(server string, r Rule, since time.Time) {
	t.attribution.changeRule(server, r, since, time.Now())
}

// SetCommitDefaults says what level the sessions of a server have that don't say
// it; the server is named as for SetRule. Nil: not known. d must not be changed
// afterwards.
func (t *Tracer) SetCommitDefaults(server string, d *CommitDefaults) {
	t.attribution.defaults.change(server, func(*CommitDefaults) *CommitDefaults { return d })
}

// SetStandbys says which standbys a server knows that its commits may wait for,
// by their application names. While one of them was never seen here, its
// acknowledgements pass by elsewhere, and nobody knows who releases commits. The
// server is named as for SetRule.
func (t *Tracer) SetStandbys(server string, names []string) {
	t.attribution.standbys.change(server, func([]string) []string { return names })
}

// Observe takes in which sessions of a server wait for standbys, in which
// transactions, as it answered when it was asked. With that, a session's commit
// is known among others of its time (BasisExact). The server is named as for
// SetRule; it must be a member of a cluster.
func (t *Tracer) Observe(server string, waiting []wire.Backend, asked time.Time) {
	t.OfferReport(&wire.Report{Kind: wire.ReportObserved, Backends: waiting}, &Conn{To: server, Epoch: asked})
}

// WatchCommits has f called whenever commits were seen on their way to a standby,
// with its connection, by whoever saw them: f must not block. It must be called
// before anything is offered.
func (t *Tracer) WatchCommits(f func(*Conn)) { t.committing = f }

// WatchSyncSources has f called whenever a member of a replica set turns out to
// follow another than before: by their names, or addresses where those aren't
// known. It must be called before anything is offered; f must not block.
func (t *Tracer) WatchSyncSources(f func(member, was, is string)) {
	t.attribution.mongo.changed = func(member, was, is string) {
		t.sourceChanges.Add(1)
		f(member, was, is)
	}
}

// SyncSourceChanges counts those changes, since WatchSyncSources.
func (t *Tracer) SyncSourceChanges() uint64 { return t.sourceChanges.Load() }

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
	settled := time.NewTimer(settleTime)
	settled.Stop()
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
		case <-settled.C:
		case <-t.stop:
		}
		var last bool
		var missing gap
		batch, missing, last = t.take(batch)
		if missing.from != 0 {
			t.attribution.lost(missing.from, missing.to)
		}
		t.handle(batch)
		t.handleHeld(last)
		if last {
			return
		}
		if t.held.Len() > 0 {
			settled.Reset(max(settleTime-t.held.Front().age(), linger))
		}
	}
}

// take exchanges the pending jobs for an empty slice. After the last, none can
// follow.
func (t *Tracer) take(empty []job) (batch []job, missing gap, last bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	batch, t.pending = t.pending, empty[:0]
	missing, t.missing = t.missing, gap{}
	return batch, missing, t.closed
}

func (t *Tracer) handle(batch []job) {
	for i := range batch {
		j := &batch[i]
		switch {
		case j.r != nil:
			t.attribution.report(j.r, j.c)
		case t.attribution.waitsFor(j.x, j.c) || t.awaitsSample(j):
			t.held.Push(*j)
		default:
			t.consume(j)
		}
		*j = job{}
	}
}

// handleHeld handles the writes whose reports are in by now, or all. No more
// are held than may be queued.
func (t *Tracer) handleHeld(all bool) {
	for t.held.Len() > 0 {
		if !all && t.held.Len() <= t.limit && !t.settled(t.held.Front()) {
			return
		}
		j := t.held.Pop()
		t.consume(&j)
	}
}

// settled reports whether all that is said of a write's time is in.
func (t *Tracer) settled(j *job) bool {
	age := j.age()
	return age >= settleTime && !t.awaitsSample(j) && (age >= maxSettleTime || !t.attribution.awaitsReports(j))
}

// awaitsSample reports whether a write's server will be looked at soon.
func (t *Tracer) awaitsSample(j *job) bool {
	return j.x.Write && t.activities.watched.Load() > 0 && t.activities.awaits(serverOf(j.c), j.c.Time(End(j.x)), j.age())
}

// Activities are what servers did lately: whoever looks at servers adds to them,
// and Finished.Meanwhile tells each write's.
func (t *Tracer) Activities() *Activities { return &t.activities }

// age is how long ago an exchange ended.
func (j *job) age() time.Duration { return time.Since(j.c.Time(End(j.x))) }

// consume hands an exchange to the consumers. t.finished is used for all, one
// after the other.
func (t *Tracer) consume(j *job) {
	f := &t.finished
	f.Exchange, f.Conn, f.Waits = j.x, j.c, Split(j.x)
	f.Marker = t.markers.at(Start(j.x))
	t.attribution.observed(f)
	t.attribution.judge(f)
	t.observed(f)
	for _, c := range t.consumers {
		c.Consume(f)
	}
	t.spare.Put(j.x)
	f.Exchange, f.Conn = nil, nil
}

// observed finds what the server did during a write's server part.
func (t *Tracer) observed(f *Finished) {
	f.Meanwhile.Samples = 0
	if !f.Write || t.activities.watched.Load() == 0 {
		return
	}
	out, in := f.Sides[wire.ToServer].LastOut, f.Sides[wire.ToClient].LastIn
	if out == 0 || in < out {
		return
	}
	t.activities.during(serverOf(f.Conn), f.Conn.Time(out), f.Conn.Time(in), &f.Meanwhile)
}
