package proxy

import (
	"cmp"
	"slices"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// seen is what a connection's exchanges said of it. Guarded by conn.mu.
type seen struct {
	exchanges uint64
	protocol  wire.Protocol
	peer      *wire.Peer
}

// saw notes a finished exchange. Called with mu held, as all of the pump is.
func (s *seen) saw(x *wire.Exchange) {
	s.exchanges++
	s.protocol, s.peer = x.Protocol, x.Peer
}

// Connection is what is known of one connection at a moment.
type Connection struct {
	// ID counts the connections of a Proxy from 1.
	ID   uint64
	Link string
	// Client is its address, Upstream that of the server as resolved, and
	// UpstreamPort our own port towards it: the client's port in the server's
	// log. The latter two are zero while the connection is being made.
	Client, Upstream string
	UpstreamPort     int
	Since            time.Time
	State            ConnectionState
	// From is whose it is, and Basis how that is known; see Source.
	From, Basis string
	// Delay is what its bytes are delayed by at present.
	Delay inject.Settings
	// Replication is what it carries of a member's following, as far as is known.
	Replication wire.Replication
	// Lag is how much later than it came each direction passes what comes now, since
	// a rule lags the member whose stream this is, or did.
	Lag [2]time.Duration
	// Protocol is what it speaks; empty if nothing was said yet.
	Protocol wire.Protocol
	// Peer is what it said of itself; nil: nothing.
	Peer *wire.Peer
	// Opaque is why its messages are no longer read; nil: they are.
	Opaque error
	// Waiting is how many requests have no reply yet.
	Waiting int
	// Counts are its own.
	Counts trace.LinkCounters
}

// ConnectionState is where in its life a connection is.
type ConnectionState string

// A connection has a client only, both sides, one side that has closed, or is
// being ended.
const (
	Connecting ConnectionState = "connecting"
	Open       ConnectionState = "open"
	HalfClosed ConnectionState = "half_closed"
	Closing    ConnectionState = "closing"
)

// Connections are all that exist, oldest first. It takes each one's lock for a
// moment and waits for no peer.
func (p *Proxy) Connections() []Connection {
	conns := p.each()
	list := make([]Connection, len(conns))
	for i, c := range conns {
		list[i] = c.look()
	}
	return list
}

// Connection is the one of an ID; not ok: it doesn't exist, or no longer.
func (p *Proxy) Connection(id uint64) (Connection, bool) {
	c := p.byID(id)
	if c == nil {
		return Connection{}, false
	}
	return c.look(), true
}

// Cut ends a connection at once, both its sockets, whatever waits, and returns
// before that is done. Its peers see a reset if something was under way. It
// reports false if there is no such connection.
func (p *Proxy) Cut(id uint64) bool {
	c := p.byID(id)
	if c == nil {
		return false
	}
	c.tear()
	return true
}

func (p *Proxy) each() []*conn {
	p.mu.Lock()
	list := make([]*conn, 0, len(p.conns))
	for c := range p.conns {
		list = append(list, c)
	}
	p.mu.Unlock()
	slices.SortFunc(list, func(a, b *conn) int { return cmp.Compare(a.ordinal, b.ordinal) })
	return list
}

func (p *Proxy) byID(id uint64) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if c.ordinal == id {
			return c
		}
	}
	return nil
}

// look is what is known now.
func (c *conn) look() Connection {
	at := Connection{
		ID: c.ordinal, Link: c.link.Name(), State: Connecting,
		Since: c.link.proxy.clock.start.Add(time.Duration(c.accepted)),
	}
	c.addTo(&at.Counts)
	c.mu.Lock()
	defer c.mu.Unlock()
	at.Client, at.Delay = c.from.String(), *c.settings()
	at.Protocol, at.Peer = c.protocol, c.peer
	if c.pump != nil {
		session := c.pump.Session()
		at.State, at.Opaque, at.Waiting = Open, session.Opaque(), session.Open().Len()
		at.Upstream, at.UpstreamPort = c.info.PeerAddr, c.info.UpstreamPort
		at.From, at.Basis = c.info.From, c.info.FromBasis
		if r, ok := session.(wire.Replicator); ok {
			at.Replication = r.Replication()
		}
		for dir := range at.Lag {
			at.Lag[dir] = c.pump.Lag(wire.Direction(dir), c.link.proxy.clock.now())
		}
	}
	if c.ended[0] || c.ended[1] {
		at.State = HalfClosed
	}
	if c.stopped {
		at.State = Closing
	}
	return at
}
