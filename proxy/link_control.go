package proxy

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
)

// ErrLinkExists says that there is a link of the name already.
var ErrLinkExists = errors.New("there is a link of this name")

// ErrNoLink says that the link was removed.
var ErrNoLink = errors.New("the link was removed")

// Links that come and go one by one, while others stay as they are:
//
//	AddLink --> [ listens ] --Stop--> [ doesn't ] --Start--> [ listens ]
//	                 |                     ^
//	                 +------Redirect-------+        RemoveLink from anywhere
//
// Stop, Redirect and RemoveLink cut the link's connections and wait for none.

// AddLink adds a link that no reload touches. It listens, unless it's to be stopped
// from the beginning. The address may be all that net.Listen takes, or unix:/path.
// Errors of the system are returned as they are; ErrLinkExists if the name is taken.
func (p *Proxy) AddLink(c LinkConfig, stopped bool) (*Link, error) {
	r, err := newRoute(c)
	if err != nil {
		return nil, err
	}
	if p.Link(nameOf(c)) != nil {
		return nil, ErrLinkExists
	}
	var ln net.Listener
	if !stopped {
		if ln, err = listenAnywhere(c.Listen); err != nil {
			return nil, err
		}
	}
	p.reloading.Lock()
	defer p.reloading.Unlock()
	if p.Link(nameOf(c)) != nil { // meanwhile
		if ln != nil {
			ln.Close()
		}
		return nil, ErrLinkExists
	}
	l := &Link{name: nameOf(c), proxy: p, added: true}
	l.route.Store(r)
	l.listener.Store(closedListener(p, c.Listen, c.Listen))
	p.book.mu.Lock()
	l.rules.Store(p.book.compile(l, p.config.Seed))
	p.book.mu.Unlock()
	if ln != nil {
		if err := l.serveOn(ln); err != nil {
			return nil, err
		}
	}
	p.mu.Lock()
	p.links = append(slices.Clip(p.links), l)
	p.mu.Unlock()
	return l, nil
}

// RemoveLink takes a link away and cuts its connections. It reports false if there
// is none of that name. One of the configuration is back after the next reload.
func (p *Proxy) RemoveLink(name string) bool {
	p.reloading.Lock()
	defer p.reloading.Unlock()
	l := p.Link(name)
	if l == nil {
		return false
	}
	l.stop()
	p.mu.Lock()
	p.links = slices.DeleteFunc(slices.Clone(p.links), func(o *Link) bool { return o == l })
	p.retire(l)
	p.mu.Unlock()
	return true
}

// Added reports whether the link was made by AddLink.
func (l *Link) Added() bool { return l.added }

// Stopped reports whether the link doesn't listen, because it was stopped.
func (l *Link) Stopped() bool { return l.listener.Load().closed.Load() }

// Stop has the link listen no longer and cuts its connections. A reload leaves it
// stopped.
func (l *Link) Stop() {
	l.proxy.reloading.Lock()
	defer l.proxy.reloading.Unlock()
	l.stop()
}

func (l *Link) stop() {
	p := l.proxy
	old := l.listener.Load()
	if old.closed.Load() {
		return
	}
	now := closedListener(p, old.address, dialled(old.Addr()))
	now.link.Store(l)
	p.mu.Lock()
	old.closed.Store(true)
	l.listener.Store(now)
	var cut []*conn
	for c := range p.conns {
		if c.link == l {
			cut = append(cut, c)
		}
	}
	p.mu.Unlock()
	old.Close()
	for _, c := range cut {
		c.tear()
	}
}

// dialled is an address as AddLink takes it.
func dialled(a net.Addr) string {
	if a.Network() == "unix" {
		return "unix:" + a.String()
	}
	return a.String()
}

// Start has a stopped link listen again, where it did. The error is the system's, or
// ErrNoLink. Of several at once one begins to listen, and the others find it so.
func (l *Link) Start() error {
	l.starting.Lock()
	defer l.starting.Unlock()
	for {
		l.proxy.reloading.Lock() // who stops it has closed its listener by then
		stopped, at := l.Stopped(), dialled(l.Addr())
		l.proxy.reloading.Unlock()
		if !stopped {
			return nil
		}
		ln, err := listenAnywhere(at) // a name may take its time: others don't wait
		if err != nil {
			return err
		}
		if again, err := l.startOn(ln, at); !again {
			return err
		}
	}
}

// startOn has a stopped link accept from a listener at an address. It reports true
// if the link was redirected to another meanwhile.
func (l *Link) startOn(ln net.Listener, at string) (again bool, err error) {
	l.proxy.reloading.Lock()
	defer l.proxy.reloading.Unlock()
	switch {
	case l.proxy.Link(l.name) != l: // meanwhile
		ln.Close()
		return false, ErrNoLink
	case !l.Stopped():
		return false, ln.Close()
	case dialled(l.Addr()) != at:
		return true, ln.Close()
	}
	return false, l.serveOn(ln)
}

// Redirect stops the link and has it lead elsewhere, and listen elsewhere when it's
// started again.
func (l *Link) Redirect(listen, upstream string) error {
	l.proxy.reloading.Lock()
	defer l.proxy.reloading.Unlock()
	old := l.route.Load()
	c := old.config
	c.Upstream = upstream
	if listen != dialled(l.Addr()) {
		c.Listen = listen
	}
	r, err := newRoute(c)
	if err != nil {
		return err
	}
	r.pairs(old, func(now, then *source) { now.settings, now.pipes = then.settings, then.pipes })
	l.stop()
	l.route.Store(r)
	now := closedListener(l.proxy, c.Listen, listen)
	now.link.Store(l)
	l.listener.Store(now)
	return nil
}

// serveOn has the link accept from a listener. Called with reloading held.
func (l *Link) serveOn(ln net.Listener) error {
	p := l.proxy
	now := &listener{Listener: ln, proxy: p, address: l.Config().Listen}
	now.link.Store(l)
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.stopping:
		ln.Close()
		return errors.New("it is stopping")
	default:
	}
	l.listener.Store(now)
	p.running.Add(1)
	go now.accept()
	return nil
}

func listenAnywhere(address string) (net.Listener, error) {
	if !strings.HasPrefix(address, "unix:") {
		return net.Listen("tcp", address)
	}
	a, err := parseAddress(address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return a.listen()
}

// closedListener is that of a stopped link: nobody listens, and the address is the
// one that is meant.
func closedListener(p *Proxy, configured, address string) *listener {
	l := &listener{Listener: nobody{address}, proxy: p, address: configured}
	l.closed.Store(true)
	return l
}

// stillStopped is the listener of a stopped link that a reload wants at address.
func (l *Link) stillStopped(address string) *listener {
	if ln := l.listener.Load(); ln.address == address {
		return ln
	}
	return closedListener(l.proxy, address, address)
}

// nobody is a net.Listener that doesn't listen.
type nobody struct{ address string }

func (n nobody) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (n nobody) Close() error              { return nil }
func (n nobody) Addr() net.Addr            { return n }
func (n nobody) String() string            { return strings.TrimPrefix(n.address, "unix:") }

func (n nobody) Network() string {
	if strings.HasPrefix(n.address, "unix:") {
		return "unix"
	}
	return "tcp"
}
