// Package proxy is the sockets and lifetimes of wirewait: listeners,
// connections, the drivers that move bytes through pumps, their clocks, TLS.
//
//	 client socket                                            server socket
//	     | read                                                      ^ write
//	     v                                                           |
//	[ pump.Conn, to_server: frame, due times, line ] ----------------+
//	     +---------------------------------------- [ the same, to_client ] <--- read
//	     |  write
//	     v
//	 client socket          finished exchanges --> trace.Tracer (never waits)
//
// A Proxy has links, each a listener and the upstream that it leads to. Every
// accepted connection gets one of its own to the upstream; none is ever shared.
package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// Config is what a Proxy is started with.
type Config struct {
	Links []LinkConfig
	// Tracer gets the finished exchanges that are writes; nil: nobody does.
	Tracer *trace.Tracer
	// Reads offers the tracer all other exchanges as well.
	Reads bool
	// Text is what becomes of PostgreSQL's statement text; none by default.
	Text wire.TextMode
	// Seed of the jitter's draws, and of the rules'.
	Seed uint64
	// Rules to begin with: see Proxy.SetRules.
	Rules []inject.Rule
	// LineLimit bounds the bytes that wait in all lines together, beyond the
	// 1 MiB that each direction is assured. 0: the smaller of 1 GiB and half of
	// what the process may use.
	LineLimit int64
	// Linger ends a connection of which one side is closed and the other is
	// silent for so long. 0: ten minutes.
	Linger time.Duration
	// DialTimeout bounds the connecting to an upstream. 0: ten seconds.
	DialTimeout time.Duration
	// Driver moves the bytes of connections that are plain on both sides; others
	// are DriverNet's. Empty: the best for the system.
	Driver string
	// Log gets one line per event of a kind worth knowing; nil: nobody does.
	Log *slog.Logger
}

// LinkConfig describes one link.
type LinkConfig struct {
	// Name is unique; empty: the listen address.
	Name string
	// From and To are the ends as the user calls them; both may be empty.
	From, To string
	// Listen and Upstream are "host:port" ("[::1]:5432" for IPv6) or
	// "unix:/path". Port 0 lets the system choose.
	Listen, Upstream string
	// Protocol is what to read; empty: detected for each connection.
	Protocol wire.Protocol
	TLS      TLSConfig
	// Delay is the delay to begin with: see Link.SetDelay.
	Delay inject.Settings
	// Pipes are what the link's bandwidth is shared in, with the connections of
	// all other links that have the same ones; nil: with its own only.
	Pipes *Pipes
	// Sources are those who dial the link, where that is more than From. Delay
	// and Pipes are then for the connections that nothing tells.
	Sources []Source
	// Set names the replica set that Upstream is a member of, for links of
	// applications: in hello replies, the names of members become the addresses of
	// the links that have the same Set and From. Empty: hello replies pass as they
	// are.
	Set string
	// Hosts are names by which the set knows this member, beside Upstream and what
	// it calls itself.
	Hosts []string
	// Advertise is the address that is handed out for this link; empty: the one
	// where it listens.
	Advertise string
	// ProxyProtocol says who else may say who dials, and whom to tell.
	ProxyProtocol ProxyProtocol
	// WALTimeouts are those of the PostgreSQL cluster that Upstream is in, for
	// warnings of lags alone.
	WALTimeouts WALTimeouts
}

// inflateLimit bounds decompression over all connections.
const inflateLimit = 128 << 20

// Proxy is a set of running links. Its methods are safe for concurrent use.
type Proxy struct {
	config  Config
	log     *slog.Logger
	clock   *clock
	alarm   alarm
	loops   loops
	lines   *budget
	inflate *budget
	dial    func(ctx context.Context, network, address string) (net.Conn, error)

	// stopping is closed when a graceful stop begins, and stopped when what is
	// still there then is torn down.
	stopping, stopped chan struct{}
	stopOnce          sync.Once
	running           sync.WaitGroup // accept loops, connections and a scenario
	ordinal           atomic.Uint64  // of connections

	reloading sync.Mutex
	book      book
	members   *members

	scenarioMu sync.Mutex
	scenario   *player // the last one; nil: none was started

	mu    sync.Mutex
	links []*Link
	gone  trace.Counters // of links that a reload took away
	conns map[*conn]struct{}
}

// Start listens on every link and serves until Shutdown, or until ctx ends,
// which is a Shutdown without patience. If one link cannot listen, none does,
// and the error names them all.
func Start(ctx context.Context, c Config) (*Proxy, error) {
	p, err := newProxy(c)
	if err != nil {
		return nil, err
	}
	if err := p.Reconfigure(c.Links, c.Rules); err != nil {
		p.alarm.close()
		return nil, err
	}
	context.AfterFunc(ctx, func() {
		done, cancel := context.WithCancel(context.Background())
		cancel()
		_ = p.Shutdown(done)
	})
	return p, nil
}

func newProxy(c Config) (*Proxy, error) {
	if err := CheckDriver(c.Driver); err != nil {
		return nil, err
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Linger == 0 {
		c.Linger = 10 * time.Minute
	}
	if c.DialTimeout == 0 {
		c.DialTimeout = 10 * time.Second
	}
	if c.LineLimit == 0 {
		c.LineLimit = defaultLineLimit()
	}
	p := &Proxy{
		config: c, log: c.Log, clock: newClock(),
		dial:     (&net.Dialer{}).DialContext,
		lines:    &budget{limit: c.LineLimit},
		inflate:  &budget{limit: inflateLimit},
		stopping: make(chan struct{}), stopped: make(chan struct{}),
		conns: map[*conn]struct{}{},
	}
	p.members = newMembers(p)
	var err error
	if p.alarm, err = newAlarm(p.clock); err != nil {
		return nil, fmt.Errorf("precise clock: %w", err)
	}
	return p, nil
}

// Links are the proxy's links in the order of the configuration. Nobody changes
// the slice: a reload makes another.
func (p *Proxy) Links() []*Link {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.links
}

// Link is the one of that name, or nil.
func (p *Proxy) Link(name string) *Link {
	for _, l := range p.Links() {
		if l.name == name {
			return l
		}
	}
	return nil
}

// Shutdown stops accepting, lets what is under way end (a connection ends once
// its lines are empty and no reply is awaited) and returns nil when nothing is
// left. When ctx ends first, what remains is torn down, and the error says how
// many connections that were.
func (p *Proxy) Shutdown(ctx context.Context) error {
	p.stopOnce.Do(func() { close(p.stopping) })
	p.mu.Lock()
	for _, l := range p.links {
		l.listener.Load().Close()
	}
	for c := range p.conns {
		c.stopIfQuiet()
	}
	p.mu.Unlock()

	ended := make(chan struct{})
	go func() {
		p.running.Wait()
		close(ended)
	}()
	var err error
	select {
	case <-ended:
	case <-ctx.Done():
		if n := p.abort(); n > 0 {
			err = fmt.Errorf("%d connections were cut: %w", n, context.Cause(ctx))
		}
		<-ended
	}
	p.loops.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.alarm != nil {
		p.alarm.close()
		p.alarm = nil
	}
	return err
}

// abort tears down every connection and returns how many there were.
func (p *Proxy) abort() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.stopped:
	default:
		close(p.stopped)
	}
	for c := range p.conns {
		c.tear()
	}
	return len(p.conns)
}

// add registers a connection; it reports false if the proxy is stopping, or the
// link was.
func (p *Proxy) add(c *conn, ln *listener) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ln.closed.Load() {
		return false
	}
	select {
	case <-p.stopping:
		return false
	default:
	}
	p.conns[c] = struct{}{}
	return true
}

// remove takes a connection off the books; what it counted stays with its link.
func (p *Proxy) remove(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	p.ended(c)
}
