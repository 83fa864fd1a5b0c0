package proxy

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// Nothing here is touched by a message but what its own connection counts, under
// the lock that it holds anyway: a counter that many connections share costs
// each of them a cache miss. A snapshot adds up the connections that are open
// and what those that ended left to their link.

// rare are a link's events that are not part of the path of a message.
type rare struct {
	encrypted, opaque       atomic.Uint64
	dialFailed, acceptFails atomic.Uint64

	mu       sync.Mutex
	failures map[string]uint64
}

// trouble counts a message that was not understood.
func (r *rare) trouble(reason string) {
	r.mu.Lock()
	if r.failures == nil {
		r.failures = map[string]uint64{}
	}
	r.failures[reason]++
	r.mu.Unlock()
}

// Counters is a snapshot of what was counted, of each link and of all. It takes
// each connection's lock for a moment and waits for no peer.
func (p *Proxy) Counters() trace.Counters {
	p.mu.Lock()
	links := slices.Clone(p.links)
	s := p.gone
	s.DecodeFailures = maps.Clone(p.gone.DecodeFailures)
	if p.config.Tracer != nil {
		s.Dropped = p.config.Tracer.Dropped()
	}
	index := make(map[*Link]int, len(links))
	for i, l := range links {
		s.Links = append(s.Links, l.past)
		index[l] = i
	}
	conns := make([]*conn, 0, len(p.conns))
	for c := range p.conns {
		conns = append(conns, c)
		if _, there := index[c.link]; !there { // it's gone, and its connections go on
			index[c.link] = len(links)
			links, s.Links = append(links, c.link), append(s.Links, c.link.past)
		}
	}
	p.mu.Unlock()
	// Without the proxy's lock, which connections that begin or end wait for: one
	// that ends meanwhile is in the past only after that was looked at.
	for _, c := range conns {
		n := &s.Links[index[c.link]]
		n.ConnectionsOpen++
		n.ConnectionsTotal++
		c.addTo(n)
	}
	for i, l := range links {
		n := &s.Links[i]
		c := l.Config()
		n.Link, n.From, n.To = l.name, c.From, c.To
		l.rare.addTo(n)
		s.Add(n)
	}
	s.Rules = p.ruleCounters()
	if at := p.Scenario(); at.Step != "" {
		s.Marker = &trace.Marker{Scenario: at.Name, Step: at.Step}
	}
	return s
}

// ended takes a connection's counts over that is off the books. Called with mu
// held.
func (p *Proxy) ended(c *conn) {
	c.link.past.ConnectionsTotal++
	c.addTo(&c.link.past)
	if c.link.retired {
		p.retire(c.link)
	}
}

// retire keeps what a link counted that a reload took away, in the sums, once
// its last connection has ended. Called with mu held.
func (p *Proxy) retire(l *Link) {
	l.retired = true
	for c := range p.conns {
		if c.link == l {
			return
		}
	}
	n := l.past
	l.rare.addTo(&n)
	p.gone.Add(&n)
}

func (r *rare) addTo(n *trace.LinkCounters) {
	n.Encrypted, n.Opaque = r.encrypted.Load(), r.opaque.Load()
	n.DialFailures, n.AcceptFailures = r.dialFailed.Load(), r.acceptFails.Load()
	r.mu.Lock()
	n.DecodeFailures = maps.Clone(r.failures)
	r.mu.Unlock()
}

// addTo adds what the connection counted.
func (c *conn) addTo(n *trace.LinkCounters) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n.Exchanges += c.exchanges
	if c.pump == nil {
		return
	}
	for d := range n.Ways {
		k, w := c.pump.Counts(wire.Direction(d)), &n.Ways[d]
		w.Bytes += uint64(k.Bytes)
		w.Read += uint64(k.Read)
		w.Live += int64(k.Live)
		w.Stalls += k.Stalls
		w.Stalled += k.Stalled
		if k.Paused {
			w.Paused++
		}
		w.Held += k.Held.Runs
		w.PlannedSeconds += k.Held.Planned
		w.AchievedSeconds += k.Held.Achieved
		w.MaxError = max(w.MaxError, k.Held.MaxError)
	}
}
