package proxy

import (
	"crypto/tls"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// Source is one of those who dial a link that several do, and what the link
// does for it. Each connection is somebody's, told by (best first):
//
//	address       the address that it comes from, or that a PROXY header names
//	certificate   a name in the client certificate, where Link.TLS wants one
//	host_info     what a MongoDB member calls itself in its first message
//	heartbeat     the same, in a heartbeat
//
// The last two are known only once the message was read; what came before takes
// LinkConfig.Delay, as do all connections that nothing tells.
type Source struct {
	// Name is a site or a member, as on spans (wirewait.from).
	Name  string
	Delay inject.Settings
	// Pipes are what its bandwidth is shared in; nil: with itself only.
	Pipes *Pipes
	// Addresses that it dials from. The longest prefix of all sources wins.
	Addresses []netip.Prefix
	// Names that it goes by, in certificates ("mongo-b.internal") and as a member
	// of a replica set ("mongo-b:27017"; without a port: with any). Case doesn't
	// matter. A name that two sources have tells neither.
	Names []string
}

// Bases of what is said of a connection's source: trace.Conn.FromBasis.
const (
	basisLink        = "link" // the listener is its own
	basisAddress     = "address"
	basisProxyHeader = "proxy_header"
	basisCertificate = "certificate"
	basisHostInfo    = "host_info"
	basisHeartbeat   = "heartbeat"
	basisUnknown     = "unknown"
)

// source is what connections hold of a Source. Its settings are those of the
// same one in the routes before: connections feel what a reload changes.
type source struct {
	name     string
	settings *atomic.Pointer[inject.Settings]
	pipes    *Pipes
}

func newSource(name string, set inject.Settings, pipes *Pipes) *source {
	if pipes == nil {
		pipes = new(Pipes)
	}
	s := &source{name: name, settings: new(atomic.Pointer[inject.Settings]), pipes: pipes}
	s.settings.Store(&set)
	return s
}

// sources tells them apart.
type sources struct {
	all      []*source
	prefixes []prefix
	// named are the names as they are given, and hosts those without their
	// ports. nil: two have it.
	named, hosts map[string]*source
}

type prefix struct {
	netip.Prefix
	of *source
}

func newSources(list []Source) (s sources) {
	s.named, s.hosts = map[string]*source{}, map[string]*source{}
	for _, c := range list {
		one := newSource(c.Name, c.Delay, c.Pipes)
		s.all = append(s.all, one)
		for _, p := range c.Addresses {
			s.prefixes = append(s.prefixes, prefix{p, one})
		}
		for _, n := range c.Names {
			n = strings.ToLower(n)
			unique(s.named, n, one)
			unique(s.hosts, hostOf(n), one)
		}
	}
	return s
}

func unique(m map[string]*source, name string, s *source) {
	if other, taken := m[name]; taken && other != s {
		s = nil
	}
	m[name] = s
}

func hostOf(name string) string {
	if host, _, err := net.SplitHostPort(name); err == nil {
		return host
	}
	return name
}

// at is whose address that is, or nil.
func (s *sources) at(a net.Addr) (of *source) {
	ip, ok := addressOf(a)
	bits := -1
	for _, p := range s.prefixes {
		if ok && p.Bits() > bits && p.Contains(ip) {
			bits, of = p.Bits(), p.of
		}
	}
	return of
}

// addressOf is the address without port and zone, an IPv4 one as such.
func addressOf(a net.Addr) (netip.Addr, bool) {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}, false
	}
	ip, ok := netip.AddrFromSlice(t.IP)
	return ip.Unmap(), ok
}

// member is who calls itself so, host and port; nil: nobody, or not only one.
func (s *sources) member(name string) *source {
	name = strings.ToLower(name)
	if of, ok := s.named[name]; ok {
		return of
	}
	return s.named[hostOf(name)]
}

// certified is whose certificate has one of these names.
func (s *sources) certified(names ...string) *source {
	for _, n := range names {
		n = strings.ToLower(n)
		if of := s.named[n]; of != nil {
			return of
		}
		if of := s.hosts[n]; of != nil {
			return of
		}
	}
	return nil
}

// sayUnknown says that nothing told whose connection it is, or was.
func (c *conn) sayUnknown() {
	c.link.say(noticeSource, "nothing tells whose connection this is, so it has the longest delay: add its address to sources", "client", c.from)
}

// settings are what the connection's bytes are delayed by at present.
func (c *conn) settings() *inject.Settings { return c.source.Load().settings.Load() }

// tell says whose connection this is. A nil source leaves all as it is: so does
// a basis that is worse than the one there is.
func (c *conn) tell(s *source, basis string) bool {
	if s == nil || c.basis != basisUnknown {
		return false
	}
	c.basis = basis
	c.source.Store(s)
	return true
}

// named is called with the connection's lock held, when a member of a replica
// set said what it is called.
func (c *conn) named(name, basis string) {
	if !c.tell(c.route.sources.member(name), basis) {
		return
	}
	info := *c.info
	info.From, info.FromBasis = c.source.Load().name, basis
	c.info = &info
	c.pump.SetFrom(info.From, c.link.proxy.clock.now())
}

// bookers are the pipes that the connection shares with others.
func (c *conn) bookers() (b [2]inject.Booker) {
	for d := range b {
		if b[d] = c.source.Load().pipes.booker(wire.Direction(d)); c.basis == basisUnknown {
			b[d] = &sourcePipe{c, wire.Direction(d)}
		}
	}
	return b
}

// sourcePipe is the pipe of whoever the connection turns out to be of.
type sourcePipe struct {
	conn *conn
	dir  wire.Direction
}

func (p *sourcePipe) booker() inject.Booker { return p.conn.source.Load().pipes.booker(p.dir) }

// Book is inject.Booker's.
func (p *sourcePipe) Book(now wire.Stamp, n int, rate int64) wire.Stamp {
	return p.booker().Book(now, n, rate)
}

// Free is inject.Booker's.
func (p *sourcePipe) Free() wire.Stamp { return p.booker().Free() }

// basis of all that dials the link, before anything tells more.
func (r *route) basis() string {
	switch {
	case len(r.sources.all) > 0:
		return basisUnknown
	case r.config.From == "":
		return ""
	}
	return basisLink
}

// tellByCertificate tells by a certificate that an authority of ours signed.
func (c *conn) tellByCertificate(s tls.ConnectionState) {
	if len(s.VerifiedChains) == 0 {
		return
	}
	leaf := s.VerifiedChains[0][0]
	c.tell(c.route.sources.certified(append(leaf.DNSNames, leaf.Subject.CommonName)...), basisCertificate)
}
