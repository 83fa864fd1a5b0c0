package proxy

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"

	"github.com/wirewait/wirewait/inject"
)

// Reload has the proxy serve the links that are given, in the place of those
// that it has. Links are told by their names, listeners by their addresses:
//
//	the same address    its listener stays: nobody is refused meanwhile
//	another address     opened before the old one is closed, if the system can
//	                    have both (it can't have 0.0.0.0 beside 127.0.0.1)
//	a link that is gone stops accepting; its connections go on
//	another delay       for connections that exist as well
//	all else            for connections that begin from now on
//
// Certificates are read from their files again. The rules stay, and are in force
// on a new link before it accepts anybody. If any link can't be had, none
// changes, and the error names all that can't.
func (p *Proxy) Reload(links []LinkConfig) error { return p.reconfigure(links, nil) }

// Reconfigure is Reload and SetRules in one: both, or neither.
func (p *Proxy) Reconfigure(links []LinkConfig, rules []inject.Rule) error {
	return p.reconfigure(links, &rules)
}

func (p *Proxy) reconfigure(links []LinkConfig, rules *[]inject.Rule) error {
	p.reloading.Lock()
	defer p.reloading.Unlock()
	r := &reload{proxy: p, names: map[string]bool{}}
	for _, l := range p.Links() {
		if l.added {
			r.names[l.name] = true
			r.added = append(r.added, l)
		} else {
			r.now = append(r.now, l)
		}
	}
	for _, c := range links {
		r.plan(c)
	}
	if rules != nil {
		r.checkRules(*rules)
	}
	for _, n := range r.plans {
		r.open(n)
	}
	if err := errors.Join(r.errs...); err != nil {
		r.undo()
		return err
	}
	p.book.mu.Lock()
	defer p.book.mu.Unlock()
	if rules != nil {
		p.book.turn(slices.Clone(*rules), p.clock.now())
	}
	if err := r.commit(); err != nil {
		return err
	}
	p.members.reloaded()
	p.applyRules()
	return nil
}

func (r *reload) checkRules(rules []inject.Rule) {
	if err := inject.CheckRules(rules); err != nil {
		r.errs = append(r.errs, err)
	}
	r.errs = append(r.errs, checkPlaces(rules, func(link string) bool { return r.names[link] })...)
}

// reload is one that is under way.
type reload struct {
	proxy *Proxy
	now   []*Link
	added []*Link // by AddLink: they stay
	names map[string]bool
	plans []*plan
	errs  []error
	left  []*Link // whose listeners had to be closed before others could be opened
}

// plan is what becomes of one link.
type plan struct {
	name     string
	route    *route
	listener *listener
	opened   bool // for this reload
}

func (r *reload) fail(name string, err error) {
	r.errs = append(r.errs, fmt.Errorf("link %s: %w", name, err))
}

func (r *reload) plan(c LinkConfig) {
	name := nameOf(c)
	route, err := newRoute(c)
	switch {
	case err != nil:
		r.fail(name, err)
	case r.names[name]:
		r.fail(name, errors.New("the name is taken: give each link its own"))
	default:
		r.names[name] = true
		r.plans = append(r.plans, &plan{name: name, route: route, listener: r.inherited(c)})
	}
}

// open listens where nobody did. What stands in the way may be the listener of a
// link that leaves its address: it's closed, if all else is well.
func (r *reload) open(n *plan) {
	if n.listener != nil {
		return
	}
	address := n.route.config.Listen
	ln, err := r.proxy.listen(address)
	for errors.Is(err, syscall.EADDRINUSE) && len(r.errs) == 0 && r.leave(address) {
		ln, err = r.proxy.listen(address)
	}
	if err != nil {
		r.fail(n.name, err)
		return
	}
	n.listener, n.opened = ln, true
}

// leave closes a listener of ours at the address's port that no link keeps.
func (r *reload) leave(address string) bool {
	_, port, _ := net.SplitHostPort(address)
	for _, l := range r.now {
		ln := l.listener.Load()
		if !l.Stopped() && portOf(ln.Addr()) == port && !r.taken(ln) && !slices.Contains(r.left, l) {
			ln.Close()
			r.left = append(r.left, l)
			return true
		}
	}
	return false
}

func portOf(a net.Addr) string {
	_, port, _ := net.SplitHostPort(a.String())
	return port
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
		if l.Stopped() {
			if l.name == nameOf(c) {
				return l.stillStopped(c.Listen)
			}
			continue
		}
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

// undo closes what was opened in vain, and opens again what was closed in vain.
func (r *reload) undo() {
	for _, n := range r.plans {
		if n.opened {
			n.listener.Close()
		}
	}
	for _, l := range r.left {
		old := l.listener.Load()
		ln, err := r.proxy.listen(old.Addr().String())
		if err != nil {
			r.proxy.log.Error("a link no longer listens: reload again", "link", l.name, "error", err)
			continue
		}
		ln.address = old.address
		r.serve(ln, l)
	}
}

// serve has a new listener lead to its link.
func (r *reload) serve(ln *listener, l *Link) {
	p := r.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	ln.link.Store(l)
	l.listener.Store(ln)
	select {
	case <-p.stopping:
		ln.Close()
	default:
		p.running.Add(1)
		go ln.accept()
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
		for _, n := range r.plans {
			if n.opened {
				n.listener.Close()
			}
		}
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
	p.links = append(links, r.added...)
	return nil
}

// link is the one of the plan's name, or a new one, and accepts from now on.
func (r *reload) link(n *plan) *Link {
	l := &Link{name: n.name, proxy: r.proxy}
	for _, old := range r.now {
		if old.name == n.name {
			l = old
		}
	}
	l.route.Store(n.route)
	l.rules.Store(r.proxy.book.compile(l, r.proxy.config.Seed))
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
