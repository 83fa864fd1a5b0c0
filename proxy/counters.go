package proxy

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// counters are what a Proxy counts since its start.
type counters struct {
	open                    atomic.Int64
	total                   atomic.Uint64
	bytes                   [2]atomic.Uint64
	exchanges               atomic.Uint64
	encrypted, opaque       atomic.Uint64
	dialFailed, acceptFails atomic.Uint64
	stalled                 [2]atomic.Int64 // nanoseconds

	mu       sync.Mutex
	failures map[string]uint64
}

func (c *counters) trouble(reason string) {
	c.mu.Lock()
	if c.failures == nil {
		c.failures = map[string]uint64{}
	}
	c.failures[reason]++
	c.mu.Unlock()
}

// Counters is a snapshot of what was counted. It takes each connection's lock
// for a moment, to add up the bytes that wait.
func (p *Proxy) Counters() trace.Counters {
	n := &p.counts
	s := trace.Counters{
		ConnectionsOpen: n.open.Load(), ConnectionsTotal: n.total.Load(),
		Exchanges: n.exchanges.Load(), Encrypted: n.encrypted.Load(), Opaque: n.opaque.Load(),
		DialFailures: n.dialFailed.Load(), AcceptFailures: n.acceptFails.Load(),
	}
	for d := range s.Bytes {
		s.Bytes[d] = n.bytes[d].Load()
		s.StalledSeconds[d] = time.Duration(n.stalled[d].Load()).Seconds()
	}
	n.mu.Lock()
	s.DecodeFailures = maps.Clone(n.failures)
	n.mu.Unlock()
	if p.config.Tracer != nil {
		s.Dropped = p.config.Tracer.Dropped()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.mu.Lock()
		if c.pump != nil {
			s.BytesLive += int64(c.pump.Live(wire.ToServer) + c.pump.Live(wire.ToClient))
		}
		c.mu.Unlock()
	}
	return s
}
