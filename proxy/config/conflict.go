package config

import (
	"net"
	"strings"

	"github.com/wirewait/wirewait/wire"
)

// checkDrafts finds links that stand in each other's way.
func (r *reader) checkDrafts(drafts []*draft, admin string, adminAt *node) {
	names := map[string]*draft{}
	for i, d := range drafts {
		if other := names[d.Name]; other != nil && d.Name != "" {
			r.problem(d.nameAt, "the link of line %d is called %s as well: give one of them another name", other.Line, d.Name)
		}
		names[d.Name] = d
		r.checkAdvertised(d)
		if d.Listen != "" && d.Listen == d.Upstream {
			r.problem(d.listenAt, "the link leads to itself: listen and upstream are both %s", d.Listen)
		}
		if collide(d.Listen, admin) {
			r.problem(d.listenAt, "listen is %s, where admin listens (line %d): take another port", d.Listen, adminAt.Line)
		}
		r.checkSameAddress(d, drafts[:i])
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

// handsOut says that what clients dial is handed out: a MongoDB member's address
// stands in the configuration of its replica set, and a link's to it in the hello
// replies to applications.
func handsOut(d *draft) bool {
	return d.Protocol == wire.MongoDB && d.to.member != nil && d.Dialer != FromMember
}

// checkSameAddress: what one link is dialled by is no other's.
func (r *reader) checkSameAddress(d *draft, before []*draft) {
	for _, o := range before {
		if d.Advertise != "" && d.Advertise == o.Advertise {
			r.problem(d.node, "%s (line %d) advertises %s as well: each link has its own", o.Name, o.Line, d.Advertise)
			return
		}
	}
}

func (r *reader) checkAdvertised(d *draft) {
	host, _, err := net.SplitHostPort(d.Listen)
	unusable := strings.HasPrefix(d.Listen, "unix:") || err == nil && wildcard(host)
	if !unusable || d.Advertise != "" || d.advertised || !handsOut(d) {
		return
	}
	r.problem(d.listenAt, "listen is %s, and a replica set's clients and members are told one address that they must reach: add advertise: HOST:PORT, this machine's as they see it", quote(follow(d.listenAt)))
}
