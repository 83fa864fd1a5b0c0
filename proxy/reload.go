package proxy

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"
)

// Reload has the proxy serve the links that are given, in the place of those
// that it has. Links are told by their names, listeners by their addresses:
//
//	the same address    its listener stays: nobody is refused meanwhile
//	a link that is gone stops accepting; its connections go on
//	another delay       for connections that exist as well
//	all else            for connections that begin from now on
//
// Certificates are read from their files again. If any link can't be had, none
// changes, and the error names all that can't.
func (p *Proxy) Reload(links []LinkConfig) error {
	p.reloading.Lock()
	defer p.reloading.Unlock()
	r := &reload{proxy: p, now: p.Links(), names: map[string]bool{}}
	var errs []error
	for _, c := range links {
		if err := r.plan(c); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		r.undo()
		return err
	}
	if err := r.commit(); err != nil {
		return err
	}
	p.book.mu.Lock()
	defer p.book.mu.Unlock()
	p.applyRules()
	return nil
}

// reload is one that is under way.
type reload struct {
	proxy *Proxy
	now   []*Link
	names map[string]bool
	plans []plan
}

// plan is what becomes of one link.
type plan struct {
	name     string
	route    *route
	listener *listener
	opened   bool // for this reload
}

func (r *reload) plan(c LinkConfig) error {
	route, err := newRoute(c)
	if err != nil {
		return fmt.Errorf("link %s: %w", nameOf(c), err)
	}
	n := plan{name: nameOf(c), route: route}
	if r.names[n.name] {
		return fmt.Errorf("link %s: the name is taken: give each link its own", n.name)
	}
	r.names[n.name] = true
	if n.listener = r.inherited(c); n.listener == nil {
		n.opened = true
		if n.listener, err = r.proxy.listen(c.Listen); err != nil {
			return fmt.Errorf("link %s: %w", n.name, r.explain(err, c.Listen))
		}
	}
	r.plans = append(r.plans, n)
	return nil
}

func nameOf(c LinkConfig) string {
	if c.Name == "" {
		return c.Listen
	}
	return c.Name
}

// inherited is the listener of the address, whichever link has it now. Port 0 is
// another address each time, so there it is the link's own one.
func (r *reload) inherited(c LinkConfig) *listener {
	a, _ := parseAddress(c.Listen)
	anyPort := a.network == "tcp" && a.port == 0
	for _, l := range r.now {
		ln := l.listener.Load()
		same := ln.address == c.Listen && (!anyPort || l.name == nameOf(c)) || ln.Addr().String() == c.Listen
		if same && !r.taken(ln) {
			return ln
		}
	}
	return nil
}

func (r *reload) taken(ln *listener) bool {
	for _, n := range r.plans {
		if n.listener == ln {
			return true
		}
	}
	return false
}

// explain says of an address in use that it is a link's own, which keeps it
// until the reload has succeeded.
func (r *reload) explain(err error, address string) error {
	_, port, _ := net.SplitHostPort(address)
	if !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	for _, l := range r.now {
		if ln := l.listener.Load(); ln.address != address && portOf(ln.Addr()) == port {
			return fmt.Errorf("%w by link %s, at %s: reload without this link first, or start again", err, l.name, ln.address)
		}
	}
	return err
}

func portOf(a net.Addr) string {
	_, port, _ := net.SplitHostPort(a.String())
	return port
}

// undo closes what was opened in vain.
func (r *reload) undo() {
	for _, n := range r.plans {
		if n.opened {
			n.listener.Close()
		}
	}
}

// commit carries the plans out; nothing can fail any more, but for a stop that
// was faster.
func (r *reload) commit() error {
	p := r.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.stopping:
		r.undo()
		return errors.New("it is stopping")
	default:
	}
	r.eachPair((*source).inherit)
	r.keepPipes()
	links := make([]*Link, len(r.plans))
	for i, n := range r.plans {
		links[i] = r.link(n)
	}
	for _, l := range r.now {
		// The listener that a link has left may be another's now.
		if ln := l.listener.Load(); !r.taken(ln) {
			ln.Close()
		}
		if !slices.Contains(links, l) {
			p.retire(l)
		}
	}
	for i, n := range r.plans {
		n.listener.address = n.route.config.Listen
		links[i].listener.Store(n.listener)
	}
	p.links = links
	return nil
}

// link is the one of the plan's name, or a new one, and accepts from now on.
func (r *reload) link(n plan) *Link {
	l := &Link{name: n.name, proxy: r.proxy}
	for _, old := range r.now {
		if old.name == n.name {
			l = old
		}
	}
	l.route.Store(n.route)
	n.listener.link.Store(l)
	if n.opened {
		r.proxy.running.Add(1)
		go n.listener.accept()
	}
	return l
}

// eachPair visits the sources that were there before.
func (r *reload) eachPair(visit func(now, then *source)) {
	for _, n := range r.plans {
		for _, l := range r.now {
			if l.name == n.name {
				n.route.pairs(l.route.Load(), visit)
			}
		}
	}
}
