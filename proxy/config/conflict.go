package config

import (
	"net"

	"github.com/wirewait/wirewait/proxy"
)

// checkDrafts finds links that stand in each other's way.
func (r *reader) checkDrafts(drafts []*draft, admin string, adminAt *node) {
	names := map[string]*draft{}
	for i, d := range drafts {
		if other := names[d.Name]; other != nil && d.Name != "" {
			r.problem(d.nameAt, "the link of line %d is called %s as well: give one of them another name", other.Line, d.Name)
		}
		names[d.Name] = d
		if d.Listen != "" && d.Listen == d.Upstream {
			r.problem(d.listenAt, "the link leads to itself: listen and upstream are both %s", d.Listen)
		}
		if collide(d.Listen, admin) {
			r.problem(d.listenAt, "listen is %s, where admin listens (line %d): take another port", d.Listen, adminAt.Line)
		}
		for _, before := range drafts[:i] {
			if collide(d.Listen, before.Listen) {
				r.problem(d.listenAt, "listen is %s, and %s (line %d) listens there: take another port", d.Listen, before.Name, before.Line)
				break
			}
		}
	}
}

// collide reports whether both addresses can't be listened on at once. Port 0
// is a free one each time; a wildcard takes the port of every address.
func collide(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil {
		return a == b && a != "" && a != "off"
	}
	if portA != portB || portA == "0" {
		return false
	}
	return loopback(hostA) == loopback(hostB) || wildcard(hostA) || wildcard(hostB)
}

func loopback(host string) string {
	if host == "localhost" {
		return "127.0.0.1"
	}
	return host
}

func wildcard(host string) bool { return host == "0.0.0.0" || host == "::" }

// sharePipes has all links from one site to another share their bandwidth. They
// get their pipes whether they have any or not: a reload may bring it. Links
// the other way can't share them, since a link's pipes have a direction.
func (r *reader) sharePipes(d *draft, p path, t *topology) {
	shared := p.model.Bandwidth > 0 && !p.model.PerConnection
	if d.from.members && shared {
		r.problem(d.node, "the bandwidth of a pair is shared, and one listener can't tell which member is dialling: use bandwidth_per_connection, or write a link from each member")
	}
	from, to := d.from.site, d.to.site
	if from == "" || to == "" {
		return
	}
	if t.pipes[[2]string{from, to}] == nil {
		t.pipes[[2]string{from, to}] = new(proxy.Pipes)
	}
	d.Pipes = t.pipes[[2]string{from, to}]
	if !shared {
		return
	}
	if other := t.sharing[[2]string{to, from}]; other != nil && from != to {
		r.problem(d.node, "this link and the one of line %d lead opposite ways between %s and %s, and can't share a bandwidth yet: use bandwidth_per_connection", other.Line, from, to)
	}
	t.sharing[[2]string{from, to}] = d
}
