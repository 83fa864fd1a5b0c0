package postgres

import (
	"sync"
	"testing"
	"time"

	"github.com/wirewait/wirewait/internal/interop/rig"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// What the link of the matrix adds: 2.5 ms each way, give or take 1 ms.
const (
	roundTrip = 5 * time.Millisecond
	jitter    = time.Millisecond
)

// link leads to one server and counts what it saw.
type link struct {
	*rig.Link
	t     *testing.T
	least time.Duration // of delay in one direction

	mu     sync.Mutex
	writes map[string]int // by operation
	all    uint64         // writes or not, replication left out
}

// startLink starts a link to a server, which ends with the test.
func startLink(t *testing.T, upstream string) *link {
	t.Helper()
	return startSlow(t, upstream, roundTrip, jitter)
}

func startSlow(t *testing.T, upstream string, roundTrip, jitter time.Duration) *link {
	t.Helper()
	l := &link{t: t, writes: map[string]int{}, least: roundTrip/2 - jitter}
	l.Link = rig.Start(t, rig.Options{Upstream: upstream, Protocol: wire.Postgres, RTT: roundTrip, Jitter: jitter, Reads: true}, l)
	return l
}

// Consume counts an exchange and looks at its waits.
func (l *link) Consume(f *trace.Finished) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.Background() {
		return
	}
	l.all++
	if !f.Write {
		return
	}
	l.writes[f.Operation]++
	sum := time.Duration(0)
	for _, p := range f.Waits.Parts() {
		sum += p.Time
	}
	// The second and later results of one Query have no request of their own,
	// and a COPY may be refused or given up before all of it was sent.
	least := l.least
	if f.Operation == "COPY" && !f.OK {
		least = 0
	}
	late := f.Sides[wire.ToServer].Bytes == 0
	if sum != f.Waits.Total || !late && f.Waits.Request < least || f.Answered && f.Waits.Reply < least {
		l.t.Errorf("%s: waits %+v: want parts that add up, request and reply of at least %v", f.Operation, f.Waits, least)
	}
}

// finish ends the link, whose clients must be gone, and returns how many
// writes it saw, by operation. All of what passed must have been read.
func (l *link) finish() map[string]int {
	l.t.Helper()
	l.Stop(l.t, "")
	return l.writes
}
