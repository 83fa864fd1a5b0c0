package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy/pump"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// conn is one client socket, its upstream socket, and the pump between them.
// It lives from accept (serve) until stop was called and finish has closed the
// sockets for good.
type conn struct {
	link    *Link
	route   *route // the link's, when the connection began
	ordinal uint64
	draws   [2]*inject.Source

	// source is whose connection this is, and basis how that is known. They
	// change once at most, while basis is unknown: see tell.
	source atomic.Pointer[source]
	basis  string

	from, to net.Addr // the client's address, and (until there is a driver) the one that it dialled
	accepted wire.Stamp

	// ctx is what establish waits under, and cancel, guarded by mu, ends that.
	// Both are gone once there is a driver: an idle connection shall be small.
	ctx    context.Context
	cancel context.CancelFunc
	torn   atomic.Bool // whatever waits is to be cut short

	// mu is the pump's and is never held across I/O. The pump and the driver are
	// set once, when the upstream is there; before that they are nil.
	mu      sync.Mutex
	pump    *pump.Conn
	driver  driver
	info    *trace.Conn
	stopped bool // from now on what the sockets do is the stop's business
	unread  bool // the session reads nothing any more, and that was said
	seen

	ended [2]bool     // directions whose end was carried out
	half  atomic.Bool // one of them ended, so the other may not idle for ever

	aborted atomic.Bool // by a rule: both sockets are reset
}

// serve begins the life of an accepted connection: it leads to the upstream and
// starts the driver. What is needed only here, the deep stack of a dial or a
// handshake above all, goes with its goroutine.
func (l *Link) serve(nc net.Conn, ln *listener) {
	p := l.proxy
	accepted := p.clock.now()
	c := &conn{link: l, route: l.route.Load(), ordinal: p.ordinal.Add(1), accepted: accepted}
	c.from, c.to = nc.RemoteAddr(), nc.LocalAddr()
	c.source.Store(c.route.base)
	c.basis = c.route.basis()
	c.ctx, c.cancel = context.WithCancel(context.Background())
	if !p.add(c, ln) {
		nc.Close()
		p.running.Done()
		return
	}
	for d := range c.draws {
		c.draws[d] = inject.NewSource(p.config.Seed, l.name, c.ordinal, wire.Direction(d))
	}
	e, err := c.establish(nc, accepted)
	if err != nil {
		c.refuse(nc, err)
		c.cancel()
		c.end()
		return
	}
	c.begin(e)
}

// end takes the connection off the books.
func (c *conn) end() {
	c.link.proxy.remove(c)
	c.link.proxy.running.Done()
}

// refuse ends a connection that never reached its upstream. A client of a dead
// server would see a reset, so it sees one here.
func (c *conn) refuse(nc net.Conn, err error) {
	(&socket{Conn: nc}).reset()
	if c.torn.Load() {
		return // our own doing
	}
	var dial *dialError
	if !errors.As(err, &dial) {
		c.sayTLS(err, nc.RemoteAddr())
		return
	}
	c.link.rare.dialFailed.Add(1)
	c.link.say(noticeDial, "cannot reach the upstream", "upstream", c.route.config.Upstream, "error", err)
}

// say logs something at warning level the first time it happens on the link,
// and at debug level after that: a port scan must not fill the disk.
func (l *Link) say(notice int, msg string, args ...any) {
	args = append([]any{"link", l.Name()}, args...)
	log := l.proxy.log.Debug
	l.said[notice].Do(func() { log = l.proxy.log.Warn })
	log(msg, args...)
}

// begin makes the pump of an established connection and starts a driver.
func (c *conn) begin(e *established) {
	p := c.link.proxy
	options := wire.Options{
		Text: p.config.Text, Inflate: p.inflate, Trouble: c.link.rare.trouble, ChannelBinding: c.unbound(e),
	}
	if c.basis == basisUnknown {
		options.Member = c.named
	}
	if c.basis == basisUnknown && e.protocol != wire.MongoDB && e.protocol != "" {
		c.sayUnknown() // no message can tell any more
	}
	c.setOptions(&options)
	session, _ := NewSession(e.protocol, options) // the protocol was checked with the link
	info := c.describe(e)
	session.Open().Emit = c.emit
	if p.config.Tracer != nil {
		session.Open().Spare = p.config.Tracer.Spare
		session.Open().Report = c.report
	}
	pc := pump.New(pump.Config{
		Session: session, Sources: c.draws, Budget: p.lines, Free: putBuffer, NotBefore: e.notBefore,
		Pipes: c.bookers(), From: info.From,
	})
	d, start := c.newDriver(e)
	c.mu.Lock()
	c.pump, c.driver, c.info = pc, d, info
	c.ctx, c.cancel, c.to = nil, nil, nil
	c.pump.SetRules(c.link.rules.Load(), p.clock.now())
	stopped := c.stopped
	c.mu.Unlock()
	if stopped { // while the upstream was dialled
		d.halt()
	}
	start()
}

// emit passes a finished exchange on to the tracer.
func (c *conn) emit(x *wire.Exchange) bool {
	p := c.link.proxy
	c.saw(x)
	if p.config.Tracer == nil || !x.Write && !p.config.Reads {
		return false
	}
	return p.config.Tracer.Offer(x, c.info)
}

// report passes on what a connection between members said.
func (c *conn) report(r *wire.Report) {
	r.Connection, r.Told = c.ordinal, c.link.proxy.clock.now()
	if r.Out == 0 { // an end that nobody stamped
		r.Out = r.Told
	}
	if r.Magic != 0 {
		c.link.say(noticeLog, "the log of this server's version can't be read: acknowledgements are followed, and no commit is matched with them",
			"page_magic", fmt.Sprintf("%04X", r.Magic), "known", "PostgreSQL "+walVersions)
	}
	c.link.proxy.config.Tracer.OfferReport(r, c.info)
}

func (c *conn) describe(e *established) *trace.Conn {
	r := c.route
	info := &trace.Conn{
		Link: c.link.name, From: c.source.Load().name, FromBasis: c.basis, To: r.config.To,
		ClientAddr: c.from.String(),
		ServerHost: r.upstream.host, ServerPort: r.upstream.port,
		PeerAddr: e.server.RemoteAddr().String(),
		Epoch:    c.link.proxy.clock.start,
	}
	if _, port, err := net.SplitHostPort(e.server.LocalAddr().String()); err == nil {
		info.UpstreamPort, _ = strconv.Atoi(port)
	}
	return info
}

// watch looks, after each read, for what should be said of the connection
// once: that it can no longer be read. It reports whether it still can.
func (c *conn) watch() bool {
	err := c.pump.Session().Opaque()
	if err == nil {
		return true
	}
	if errors.Is(err, wire.ErrEncrypted) {
		c.link.rare.encrypted.Add(1)
		c.link.say(noticeEncrypted, "encrypted, not decoded: use --tls decline or --tls-cert/--tls-key")
	} else {
		c.link.rare.opaque.Add(1)
		c.link.say(noticeMalformed, "not decoded any further; its bytes still pass", "error", err)
	}
	return false
}

// stopIfQuiet ends the connection in good order if nothing is under way.
func (c *conn) stopIfQuiet() {
	c.mu.Lock()
	driving := c.pump != nil
	c.mu.Unlock()
	if !driving {
		c.tear()
	} else if c.quiet() {
		c.stop()
	}
}

// quiet reports that nothing is under way on a connection that has its pump.
func (c *conn) quiet() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pump.Quiet()
}

// stop makes the driver end, wherever it waits, and finish the connection.
func (c *conn) stop() {
	c.mu.Lock()
	first, d := !c.stopped, c.driver
	c.stopped = true
	c.mu.Unlock()
	if first && d != nil {
		d.halt()
	}
}

// tear ends the connection at once, whatever waits.
func (c *conn) tear() {
	c.torn.Store(true)
	c.mu.Lock()
	cancel := c.cancel
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	c.stop()
}

// leave is how a driver leaves a socket.
type leave uint8

const (
	leaveDrained leave = iota // let the peer read what was sent to it
	leaveClosed               // close it
	leaveReset                // have the peer see a reset
)

// leave says how both sockets are to be left, once the driver has ended.
func (c *conn) leave() leave {
	switch {
	case c.aborted.Load():
		return leaveReset
	case !c.torn.Load():
		return leaveDrained
	case c.quiet():
		return leaveClosed
	}
	// An orderly end would pass off what was cut short as all there was.
	return leaveReset
}

// finished closes the books after the sockets.
func (c *conn) finished() {
	c.mu.Lock()
	lost := c.pump.Close()
	nobodys := c.basis == basisUnknown && c.exchanges > 0
	c.mu.Unlock()
	if nobodys {
		c.sayUnknown()
	}
	if lost > 0 {
		c.link.proxy.log.Info("connection ended with bytes undelivered", "link", c.link.Name(), "bytes", lost)
	}
	c.end()
}

// dialError says that the upstream could not be reached.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

func (c *conn) dial() (net.Conn, error) {
	ctx, cancel := context.WithTimeout(c.ctx, c.link.proxy.config.DialTimeout)
	defer cancel()
	nc, err := c.link.proxy.dial(ctx, c.route.upstream.network, c.route.upstream.value)
	if err != nil {
		return nil, &dialError{err}
	}
	if c.route.config.ProxyProtocol.Send {
		if _, err := nc.Write(proxyHeader(c.from, c.to)); err != nil {
			nc.Close()
			return nil, &dialError{fmt.Errorf("PROXY header: %w", err)}
		}
	}
	return nc, nil
}

// established is a connection that is ready to be driven.
type established struct {
	client, server net.Conn
	prefix         []byte // read from the client already
	protocol       wire.Protocol
	notBefore      [2]wire.Stamp
}

// connectCost is when the first bytes may arrive, had connecting begun at the
// stamp given, over a wire like the link's: the client's first bytes after a
// number of round trips and one way, those of a server that speaks first
// another way later.
func (c *conn) connectCost(from wire.Stamp, rounds int) (at [2]wire.Stamp) {
	set := c.settings()
	if set.FreeConnect {
		return at
	}
	rtt := set.RTT()
	start := from.Add(time.Duration(rounds) * rtt)
	at[wire.ToServer] = start.Add(set.Delay[wire.ToServer].Base)
	at[wire.ToClient] = start.Add(rtt)
	return at
}
