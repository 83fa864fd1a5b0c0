package config

import (
	"net/netip"
	"slices"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/wire"
)

// topology is what links refer to.
type topology struct {
	sites    []string // in the order in which they are first named
	pairs    map[[2]string]path
	clusters []*cluster
	known    []known        // sources
	prefixes []netip.Prefix // of them
	pipes    map[[2]string]*proxy.Pipes
}

// pipesBetween are what all links from one site to another share, and from
// there, the other way round, those back.
func (t *topology) pipesBetween(from, to string) *proxy.Pipes {
	if back := t.pipes[[2]string{to, from}]; back != nil && from != to {
		return back.Reversed()
	}
	if t.pipes[[2]string{from, to}] == nil {
		t.pipes[[2]string{from, to}] = new(proxy.Pipes)
	}
	return t.pipes[[2]string{from, to}]
}

// path is what lies between two sites, seen from the first one. Each pair
// stands in the topology in both orders.
type path struct {
	base [2]time.Duration // by wire.Direction: one way each
	// model is all else that an inject.Delay has, and the same for both ways.
	model inject.Delay
}

func (p path) reversed() path {
	return path{[2]time.Duration{p.base[wire.ToClient], p.base[wire.ToServer]}, p.model}
}

// settings are the path's, for a link along it. A way without delay has nothing
// to vary.
func (p path) settings() (s inject.Settings) {
	for dir, base := range p.base {
		d := p.model
		if d.Base = base; base == 0 {
			d.Jitter, d.Distribution, d.Correlation = 0, inject.Uniform, 0
		}
		s.Delay[dir] = d
	}
	return s
}

// shares says that connections share the path's bandwidth.
func (p path) shares() bool { return p.model.Bandwidth > 0 && !p.model.PerConnection }

func (t *topology) addSite(name string) {
	if !slices.Contains(t.sites, name) {
		t.sites = append(t.sites, name)
	}
}

// between is the path from one site to another. Within a site there is no
// delay, unless the file gives one.
func (t *topology) between(from, to string) (path, bool) {
	p, ok := t.pairs[[2]string{from, to}]
	return p, ok || from == to
}

func (r *reader) network(n *node, t *topology) {
	items, _ := r.items(n, "network")
	for _, item := range items {
		o, ok := r.object(item, pairKeys)
		if !ok {
			continue
		}
		ends, ok := r.ends(&o)
		if !ok {
			continue
		}
		for _, site := range ends {
			t.addSite(site)
		}
		if _, twice := t.pairs[ends]; twice {
			r.problem(item, "the pair of %s and %s is given twice: leave one out (rtt is the way there and back; delay: [there, back] tells them apart)", ends[0], ends[1])
			continue
		}
		// A pair that can't be read is there all the same: links that use it are
		// no further problems.
		p := r.pairPath(&o)
		t.pairs[[2]string{ends[1], ends[0]}] = p.reversed()
		t.pairs[ends] = p // of a site with itself, this
	}
}

func (r *reader) ends(o *object) (ends [2]string, ok bool) {
	n := o.get("between")
	if n == nil && o.lacks("between") {
		r.problem(o.node, "a pair of sites needs between: [ONE, OTHER]")
	}
	if n == nil {
		return ends, false
	}
	items, ok := r.items(n, "between")
	if !ok {
		return ends, false
	}
	if len(items) != 2 {
		r.problem(n, "between names %d sites: it takes two, such as [app, sgp]; write an entry for each pair", len(items))
		return ends, false
	}
	for i, item := range items {
		name, good := r.word(item, "a site")
		ends[i], ok = name, ok && good
	}
	return ends, ok
}

// pairPath reads rtt or delay, jitter, and the model.
func (r *reader) pairPath(o *object) (p path) {
	rtt, delay, jitter := o.get("rtt"), o.get("delay"), o.get("jitter")
	good := true
	switch {
	case rtt != nil && delay != nil:
		r.problem(delay, "rtt sets both ways already: leave out one of rtt and delay")
		good = false
	case rtt != nil:
		p.base, good = r.roundTrip(rtt)
	case delay != nil:
		p.base, good = r.thereAndBack(delay)
	default:
		good = false
	}
	if o.lacks("rtt", "delay") {
		r.problem(o.node, "this pair has no delay: write rtt, or delay: [there, back]; rtt: 0 means none")
	}
	if jitter != nil {
		var ok bool
		if p.model.Jitter, ok = r.duration(jitter, "jitter"); ok && good {
			r.checkJitter(jitter, p)
		}
	}
	r.model(o, &p.model)
	return p
}

// roundTrip is half of it each way.
func (r *reader) roundTrip(n *node) ([2]time.Duration, bool) {
	d, ok := r.duration(n, "rtt")
	return [2]time.Duration{d / 2, d / 2}, ok
}

func (r *reader) thereAndBack(n *node) (base [2]time.Duration, ok bool) {
	const form = "write delay: [there, back], such as [60ms, 20ms], or rtt for half of it each way"
	items := follow(n).Content
	if !isList(n) || len(items) != 2 {
		r.problem(n, "delay is of one way each: %s", form)
		return base, false
	}
	there, ok1 := r.duration(items[0], "delay")
	back, ok2 := r.duration(items[1], "delay")
	return [2]time.Duration{wire.ToServer: there, wire.ToClient: back}, ok1 && ok2
}

// checkJitter: jitter is of the one-way delay, which can't become negative.
func (r *reader) checkJitter(n *node, p path) {
	if p.model.Jitter > 0 && p.base == [2]time.Duration{} {
		r.problem(n, "jitter %v varies a delay, and there is none: add rtt, or leave jitter out", p.model.Jitter)
		return
	}
	for _, base := range p.base {
		if base > 0 && p.model.Jitter > base {
			r.problem(n, "jitter %v is more than the one-way delay, %v, and none can be less than 0: make it smaller (jitter: 0 for none)", p.model.Jitter, base)
			return
		}
	}
}
