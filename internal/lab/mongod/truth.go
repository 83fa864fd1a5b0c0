package mongod

import (
	"slices"
	"sync"
	"time"
)

// Truth is what a member knows of its own progress and of what its writes have
// waited for, with the times of its own clock: what a test holds a trace
// against. Only a set with SetOptions.Record keeps it.
type Truth struct {
	// Durable is when this member's journal had reached the disk.
	Durable []Durability
	// Positions are what others have told it, in the order of their arrival.
	Positions []Arrival
	// Releases are the write concerns that were met here, w: 1 without j aside.
	Releases []Release
}

// Durability says that everything up to OpTime was on disk at At.
type Durability struct {
	OpTime OpTime
	At     time.Time
}

// Arrival is what a message says of one member's position.
type Arrival struct {
	Member                    string // whose position
	Via                       string // the command that brought it
	Written, Durable, Applied OpTime
	At                        time.Time // when the message was taken in, which orders all that is here
}

// Release is the end of one write's wait.
type Release struct {
	OpTime  OpTime
	Concern string // "majority", or w in decimal; with " j" if j was asked for
	// By is the member whose progress met it, this one included; empty if it was
	// met already, as for a write that changes nothing.
	By    string
	Via   string    // "self", or the command that brought the position
	Since time.Time // when the write was done here
	// At is when the message with the progress was taken in, or the journal had been
	// synced: the At of an Arrival or a Durability.
	At time.Time
}

// recorder collects a member's truth. nil collects nothing.
type recorder struct {
	names []string
	mu    sync.Mutex
	truth Truth
}

func (r *recorder) durable(o OpTime, at time.Time) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.truth.Durable = append(r.truth.Durable, Durability{o, at})
}

func (r *recorder) arrived(member int, via string, p position, at time.Time) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.truth.Positions = append(r.truth.Positions, Arrival{
		Member: r.names[member], Via: via, At: at,
		Written: p.written.OpTime, Durable: p.durable.OpTime, Applied: p.applied.OpTime,
	})
}

// released takes note of a wait's end; nil: there was nothing to wait for.
func (r *recorder) released(w *waiter, c *cause) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	release := Release{OpTime: w.last, Concern: w.concern.label(), Since: w.since, At: w.since}
	if c != nil {
		release.By, release.Via, release.At = r.names[c.member], c.via, c.at
	}
	r.truth.Releases = append(r.truth.Releases, release)
}

func (r *recorder) read() Truth {
	if r == nil {
		return Truth{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return Truth{
		Durable:   slices.Clone(r.truth.Durable),
		Positions: slices.Clone(r.truth.Positions),
		Releases:  slices.Clone(r.truth.Releases),
	}
}
