package config

import (
	"regexp"
	"slices"
	"time"

	"github.com/wirewait/wirewait/wire"
)

// draft is a link that is being read.
type draft struct {
	Link
	node             *node // the link's
	nameAt, listenAt *node // where problems with these are shown; node if absent
	from, to         end
	own              ownDelay
	dialling         []end // those of Sources
	advertised       bool  // as it should or not
}

// ownDelay is what a link says of its delay itself. Both ways of it replace the
// pair of sites, jitter and all; one way, or jitter alone, only that part.
type ownDelay struct {
	base   [2]*time.Duration // by wire.Direction; nil: the pair's
	jitter *time.Duration
}

// complete: nothing of the pair's delay is needed.
func (o *ownDelay) complete() bool { return o.base[0] != nil && o.base[1] != nil }

func (r *reader) links(n *node, t *topology) (drafts []*draft) {
	items, ok := r.items(n, "links")
	if ok && len(items) == 0 {
		r.problem(n, "links is an empty list, so nothing would listen: add one")
	}
	for _, item := range items {
		if isMesh(item) {
			drafts = append(drafts, r.mesh(item, t)...)
		} else if d := r.link(item, t); d != nil {
			drafts = append(drafts, d)
		}
	}
	return drafts
}

// link is nil after a problem that leaves nothing to check against others.
func (r *reader) link(n *node, t *topology) *draft {
	o, ok := r.object(n, linkKeys)
	if !ok {
		return nil
	}
	d := &draft{node: n, nameAt: n, listenAt: n, Link: Link{Line: n.Line}}
	if v := o.get("name"); v != nil {
		d.nameAt, d.Name = v, r.linkName(v)
	}
	if v := o.get("listen"); v != nil {
		d.listenAt, d.Listen = v, r.address(v, "listen")
	} else if o.lacks("listen") {
		r.problem(n, "a link needs listen: where clients connect, such as listen: 127.0.0.1:27101")
	}
	if v := o.get("advertise"); v != nil {
		d.Advertise, d.advertised = r.advertise(v), true
	}
	if v := o.get("proxy_protocol"); v != nil {
		d.ProxyProtocol = r.proxyProtocol(v, d)
	}
	if v := o.get("protocol"); v != nil {
		d.Protocol = wire.Protocol(r.choice(v, "protocol", protocolWords))
	}
	endsOK := r.linkEnds(&o, d, t)
	upstreamOK := r.linkUpstream(&o, d)
	ownOK := r.ownDelay(&o, &d.own)
	if v := o.get("tls"); v != nil {
		r.tls(v, d)
	}
	if endsOK && ownOK {
		r.place(d, t)
	}
	d.describeEnds()
	if v := o.get("connect"); v != nil {
		d.Delay.FreeConnect = !r.boolean(v, "connect")
	}
	if !endsOK || !upstreamOK {
		return nil
	}
	return d
}

var linkNameShape = regexp.MustCompile(`^[A-Za-z0-9_.:-]+$`)

func (r *reader) linkName(n *node) string {
	v, ok := r.text(n, "name")
	if ok && !linkNameShape.MatchString(v) {
		r.problem(n, "a link is called %s: use letters, digits and - _ . :", quote(follow(n)))
		return ""
	}
	return v
}

// linkEnds reads from and to. Neither may be given: then the link says where it
// leads, and its delay.
func (r *reader) linkEnds(o *object, d *draft, t *topology) bool {
	from, to := o.get("from"), o.get("to")
	okFrom, okTo := true, true
	if from != nil {
		d.from, okFrom = r.fromEnd(from, t)
	}
	if to != nil {
		d.to, okTo = r.end(to, "to", t)
	}
	if !okFrom || !okTo {
		return false
	}
	switch {
	case !o.lacks("from") && from == nil, !o.lacks("to") && to == nil:
		return false // a key without a value
	case (from == nil) != (to == nil):
		r.problem(d.node, "a link has from and to, or neither: with one of them its delay isn't known")
	case d.to.members:
		r.problem(to, "to is members, and a link leads to one server: name it, or open a link to each with {mesh: CLUSTER, listen: HOST:PORT}")
	case d.from.hasMembers() && d.to.member == nil:
		r.problem(from, "from is members, which are those of the cluster that to names a member of: write to: CLUSTER.MEMBER")
	case from != nil && d.to.member != nil && slices.ContainsFunc(d.from.each(), func(e end) bool { return e.member == d.to.member }):
		r.problem(to, "the link leads from %s to itself: name another member", d.to.name)
	default:
		return true
	}
	return false
}

// linkUpstream: from the member that the link leads to, or its own.
func (r *reader) linkUpstream(o *object, d *draft) bool {
	v := o.get("upstream")
	m := d.to.member
	switch {
	case v != nil && m != nil && m.Upstream != "":
		r.problem(v, "%s has an upstream already, %s: leave this one out", m.Name, m.Upstream)
		return false
	case v != nil:
		d.Upstream = r.upstream(v)
	case m != nil && m.Upstream != "":
		d.Upstream = m.Upstream
	case !o.lacks("upstream"), d.to.members:
		return false // that is the problem
	case m != nil:
		r.problem(d.node, "%s has no upstream, and this link leads to it: add upstream: HOST:PORT to the member", m.Name)
	case o.get("to") != nil && d.to.site == "":
		return false // that is the problem
	default:
		r.problem(d.node, "a link needs upstream: the server that it leads to, such as upstream: db.internal:5432")
	}
	if m != nil && m.cluster.Protocol != "" {
		if p := o.get("protocol"); p != nil && d.Protocol != "" && d.Protocol != m.cluster.Protocol {
			r.problem(p, "%s speaks %s: leave protocol out", m.cluster.Name, m.cluster.Protocol)
		}
		d.Protocol = m.cluster.Protocol
	}
	return true
}

func (r *reader) ownDelay(o *object, own *ownDelay) bool {
	rtt, delay, jitter := o.get("rtt"), o.get("delay"), o.get("jitter")
	ok := (rtt != nil || o.lacks("rtt")) && (delay != nil || o.lacks("delay"))
	switch {
	case rtt != nil && delay != nil:
		r.problem(delay, "rtt sets both ways already: leave out one of rtt and delay")
		ok = false
	case rtt != nil:
		base, good := r.roundTrip(rtt)
		own.base, ok = [2]*time.Duration{&base[0], &base[1]}, good
	case delay != nil:
		ok = r.ownWays(delay, own)
	}
	if jitter != nil {
		j, good := r.duration(jitter, "jitter")
		own.jitter, ok = &j, ok && good
	}
	return ok
}

func (r *reader) ownWays(n *node, own *ownDelay) bool {
	if follow(n).Kind != mappingKind {
		r.problem(n, "a link's delay names its ways: write delay: {to_server: 60ms, to_client: 20ms}, or rtt for half of it each way")
		return false
	}
	o, ok := r.object(n, delayKeys)
	for dir, key := range delayKeys.known {
		if v := o.get(key); v != nil {
			d, good := r.duration(v, key)
			own.base[dir], ok = &d, ok && good
		}
	}
	return ok
}

// describeEnds fills in what tables say, and the name that a link has without
// one.
func (d *draft) describeEnds() {
	d.From, d.To = d.from.name, d.to.name
	switch {
	case d.from.hasMembers():
		d.Dialer = FromMembers
	case d.from.member != nil:
		d.Dialer = FromMember
	}
	if d.Name == "" && d.From != "" {
		d.Name = d.From + "-" + d.To
	} else if d.Name == "" {
		d.Name = d.Listen
	}
}

// place gives the link its delay: its own, or that of its pair of sites.
func (r *reader) place(d *draft, t *topology) {
	if d.from.members || d.from.several != nil {
		r.placeSeveral(d, t)
		return
	}
	p, ok := r.path(d, t)
	if !ok {
		return
	}
	p = d.own.over(p)
	r.checkJitter(d.node, p)
	d.Delay = p.settings()
	if d.from.site != "" && d.to.site != "" {
		d.Pipes = t.pipesBetween(d.from.site, d.to.site)
	}
}

// over is the path with what the link says itself.
func (o *ownDelay) over(p path) path {
	if o.complete() {
		p = path{}
	}
	for dir, own := range o.base {
		if own != nil {
			p.base[dir] = *own
		}
	}
	if o.jitter != nil {
		p.model.Jitter = *o.jitter
	}
	return p
}

func (r *reader) path(d *draft, t *topology) (path, bool) {
	if d.own.complete() {
		return path{}, true
	}
	if d.from.name == "" {
		r.problem(d.node, "nothing says how slow this link is: write rtt (rtt: 0 for none), or from and to")
		return path{}, false
	}
	return r.pathBetween(d.node, d.from.site, d.to.site, t)
}

func (r *reader) pathBetween(n *node, from, to string, t *topology) (path, bool) {
	if from == "" || to == "" {
		return path{}, false // a member without a site: said there
	}
	p, ok := t.between(from, to)
	if !ok {
		r.problem(n, "network has no pair of %s and %s, which this link uses: add {between: [%s, %s], rtt: 80ms}; rtt: 0 means none", from, to, from, to)
	}
	return p, ok
}
