package trace

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Activity is what a server did between two looks at its counters. It's
// immutable once it was added.
//
//	samples       |---- a ----|---- b ----|---- c ----|
//	a write           out |------ server ------| in
//
// a, b and c overlap the write's server part; what they say happened meanwhile.
// That it's why the write took its time nobody can tell from that.
type Activity struct {
	// From and To are when the server was looked at before, and now.
	From, To time.Time
	// TicketRule is how MongoDB's tickets are read in this version; empty:
	// there are none.
	TicketRule string
	// Lags are how far other members are behind, as the server has it.
	Lags []MemberLag

	values [measureCount]float64
	known  [measureCount]bool
}

// MemberLag is how far a member is behind the one that was asked, by what it
// has written, made durable and applied; NoLag: it doesn't say.
type MemberLag struct {
	Member                    string
	Written, Durable, Applied time.Duration
}

// NoLag is a lag of which nothing is known.
const NoLag = time.Duration(-1)

// Set notes a measure.
func (a *Activity) Set(m Measure, v float64) { a.values[m], a.known[m] = v, true }

// Get is a measure's value; not ok: the server doesn't say.
func (a *Activity) Get(m Measure) (v float64, ok bool) { return a.values[m], a.known[m] }

// merge takes the more telling value of each measure.
func (a *Activity) merge(b *Activity) {
	for m := range b.values {
		v, ok := b.values[m], b.known[m]
		switch {
		case !ok:
		case !a.known[m], measures[m].least && v < a.values[m], !measures[m].least && v > a.values[m]:
			a.values[m], a.known[m] = v, true
		}
	}
	if b.From.Before(a.From) {
		a.From = b.From
	}
	if b.To.After(a.To) {
		a.To = b.To
	}
}

// Meanwhile is what the server did during a write's server part: of several
// samples the more telling value of each measure.
type Meanwhile struct {
	Activity
	// Samples is of how many; 0: nothing is known.
	Samples int
	// Age is how old the newest of them was when the reply came; negative: it
	// was taken after, so that all of the time is covered.
	Age time.Duration
}

const (
	keptActivities = 120
	// maxPatience is how long a write waits at most for the sample after it.
	maxPatience = 2 * time.Second
)

// Activities are what servers did lately. Its methods are safe for concurrent
// use; the zero value is usable.
type Activities struct {
	watched atomic.Int32
	mu      sync.Mutex
	servers map[string]*activities
}

type activities struct {
	every time.Duration
	list  []*Activity
}

// Watch announces samples of a server, one in every such time: its writes wait
// for the one that follows them, two seconds at most. The server is named as in
// Tracer.SetRule.
func (s *Activities) Watch(server string, every time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.servers == nil {
		s.servers = map[string]*activities{}
	}
	if s.servers[server] == nil {
		s.servers[server] = &activities{}
		s.watched.Add(1)
	}
	s.servers[server].every = every
}

// Forget ends what Watch began, and drops the server's samples.
func (s *Activities) Forget(server string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.servers[server] != nil {
		delete(s.servers, server)
		s.watched.Add(-1)
	}
}

// Add adds a sample of a server that is watched. Its caller must not change it
// any more.
func (s *Activities) Add(server string, a *Activity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.servers[server]
	if of == nil {
		return
	}
	if len(of.list) >= keptActivities {
		of.list = slices.Delete(of.list, 0, 1)
	}
	of.list = append(of.list, a)
}

// Servers are those that are watched, by name.
func (s *Activities) Servers() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name := range s.servers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Latest are a server's last n samples, the newest last. At most two minutes'
// are kept at one a second.
func (s *Activities) Latest(server string, n int) []*Activity {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.servers[server]
	if of == nil {
		return nil
	}
	return slices.Clone(of.list[max(len(of.list)-n, 0):])
}

// awaits reports whether a sample of the server that is yet to come would say
// more of the time until at.
func (s *Activities) awaits(server string, at time.Time, waited time.Duration) bool {
	if s.watched.Load() == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.servers[server]
	if of == nil || waited > min(of.every+settleTime, maxPatience) {
		return false
	}
	n := len(of.list)
	return n == 0 || of.list[n-1].To.Before(at)
}

// during fills m with what overlaps the time from out to in, or if nothing does,
// with the newest sample before, unless it's old.
func (s *Activities) during(server string, out, in time.Time, m *Meanwhile) {
	if s.watched.Load() == 0 {
		m.Samples = 0
		return
	}
	*m = Meanwhile{}
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.servers[server]
	if of == nil {
		return
	}
	for _, a := range slices.Backward(of.list) {
		if !a.From.Before(in) { // it began after
			continue
		}
		stale := !a.To.After(out)
		if stale && (m.Samples > 0 || in.Sub(a.To) > 3*of.every) {
			return
		}
		if m.Samples == 0 {
			m.Activity, m.Age = *a, in.Sub(a.To)
		} else {
			m.merge(a)
		}
		m.Samples++
		if stale {
			return
		}
	}
}

// Now is a server's newest sample; nil: there is none, or it's out of date.
func (s *Activities) Now(server string) *Activity {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.servers[server]
	if of == nil || len(of.list) == 0 {
		return nil
	}
	if a := of.list[len(of.list)-1]; time.Since(a.To) <= 3*of.every+time.Second {
		return a
	}
	return nil
}
