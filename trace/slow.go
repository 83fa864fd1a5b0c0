package trace

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// What Slow keeps at most: of each of its groups one write a second, and of so
// many groups.
const (
	slowSeconds = 32
	slowGroups  = 128
)

// Slow is a Consumer that keeps the slowest write of each second, by link and by
// what it waited for:
//
//	         second   41     42     43     44
//	app, majority     98 ms  97 ms  -      312 ms
//	app, w:1          -      4 ms   0.4 ms -
//
// so that a fast kind of write is seen beside a slow one, and a minute of 20,000
// a second needs no more room than one of two. Seconds without writes take none.
// Its memory is bounded, the zero value is ready to use, and it is safe to read
// while it runs.
type Slow struct {
	mu     sync.Mutex
	ids    uint64
	groups map[slowKey]*slowGroup
}

type slowKey struct{ link, concern string }

// slowGroup is a ring of writes; the one at next-1 is of the current second.
type slowGroup struct {
	second int64
	next   int
	writes []SlowWrite
}

// SlowWrite is a write as it ended. It shares nothing with the tracer.
type SlowWrite struct {
	// ID tells it from all others of the same Slow.
	ID uint64
	Finished
	// Concern is what it waited for; see Finished.Concern.
	Concern string
}

// Began and Ended are when.
func (w *SlowWrite) Began() time.Time { return w.Conn.Time(Start(w.Exchange)) }
func (w *SlowWrite) Ended() time.Time { return w.Conn.Time(End(w.Exchange)) }

// Consume keeps a write if none of its second was slower.
func (s *Slow) Consume(f *Finished) {
	if !f.Write || f.Conn == nil || f.Background() {
		return
	}
	second := f.Conn.Time(End(f.Exchange)).Unix()
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.group(slowKey{f.Conn.Link, f.Concern()})
	if n := len(g.writes); n > 0 && second <= g.second {
		if latest := &g.writes[(g.next+slowSeconds-1)%slowSeconds]; f.Waits.Total > latest.Waits.Total {
			s.keep(latest, f)
		}
		return
	}
	if g.second = second; len(g.writes) < slowSeconds {
		g.writes = append(g.writes, SlowWrite{})
	}
	s.keep(&g.writes[g.next], f)
	g.next = (g.next + 1) % slowSeconds
}

// group finds or makes one, in the place of the one that was silent for longest
// if there are too many.
func (s *Slow) group(k slowKey) *slowGroup {
	if g := s.groups[k]; g != nil {
		return g
	}
	if s.groups == nil {
		s.groups = map[slowKey]*slowGroup{}
	}
	if len(s.groups) >= slowGroups {
		var oldest slowKey
		since := int64(1<<63 - 1)
		for k, g := range s.groups {
			if g.second < since {
				oldest, since = k, g.second
			}
		}
		delete(s.groups, oldest)
	}
	g := &slowGroup{}
	s.groups[k] = g
	return g
}

// keep copies what the tracer and the connection use again.
func (s *Slow) keep(to *SlowWrite, f *Finished) {
	s.ids++
	x := *f.Exchange
	x.Mongo.WriteConcern.Raw, x.Faults = nil, slices.Clone(f.Faults)
	*to = SlowWrite{ID: s.ids, Finished: *f, Concern: f.Concern()}
	to.Exchange = &x // a new one each time: Writes hands them out
	to.Replication.Acknowledged = slices.Clone(f.Replication.Acknowledged)
	to.Replication.Behind = slices.Clone(f.Replication.Behind)
}

// Writes are those that are kept, latest first. They must not be changed.
func (s *Slow) Writes() []SlowWrite {
	s.mu.Lock()
	var list []SlowWrite
	for _, g := range s.groups {
		list = append(list, g.writes...)
	}
	s.mu.Unlock()
	slices.SortFunc(list, func(a, b SlowWrite) int {
		return cmp.Or(b.Ended().Compare(a.Ended()), cmp.Compare(b.ID, a.ID))
	})
	return list
}

// Reset forgets them all.
func (s *Slow) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups = nil
}
