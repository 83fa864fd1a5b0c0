package config

import (
	"net"
	"net/netip"

	"github.com/wirewait/wirewait/proxy"
)

// proxyProtocol reads a word or an object. The word accept believes this machine
// only: whom else to believe must be said.
func (r *reader) proxyProtocol(n *node, d *draft) (p proxy.ProxyProtocol) {
	if follow(n).Kind != mappingKind {
		switch r.choice(n, "proxy_protocol", proxyProtocolWords) {
		case "send":
			p.Send = true
		case "accept":
			p.Accept = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
			if host, _, err := net.SplitHostPort(d.Listen); err == nil && !onThisMachine(host) {
				r.problem(n, "proxy_protocol: accept believes clients on this machine, and listen is for others: say whom to believe, such as {accept: [10.0.9.0/24]}")
			}
		}
		return p
	}
	o, ok := r.object(n, proxyProtocolKeys)
	if v := o.get("send"); v != nil {
		p.Send = r.boolean(v, "send")
	}
	if v := o.get("accept"); v != nil {
		p.Accept = r.believed(v)
	}
	if ok && o.lacks("accept", "send") {
		r.problem(n, "proxy_protocol says nothing: write accept, send, or {accept: [10.0.9.0/24], send: true}")
	}
	return p
}

// onThisMachine is loopback by address or by name.
func onThisMachine(host string) bool {
	ip := net.ParseIP(loopback(host))
	return ip != nil && ip.IsLoopback()
}

// believed reads an address or a network, or a list of them.
func (r *reader) believed(n *node) (list []netip.Prefix) {
	items := []*node{n}
	if isList(n) {
		items, _ = r.items(n, "accept")
	}
	for _, item := range items {
		v, ok := r.text(item, "accept")
		if !ok {
			continue
		}
		p, err := netip.ParsePrefix(v)
		if a, e := netip.ParseAddr(v); e == nil {
			p, err = netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()), nil
		}
		if err != nil || p != p.Masked() {
			r.problem(item, "accept is %s: write whose headers to believe, an address or a network such as 10.0.9.0/24 (0.0.0.0/0 for everybody's)", quote(follow(item)))
			continue
		}
		list = append(list, p)
	}
	if isList(n) && len(items) == 0 {
		r.problem(n, "accept is an empty list: write whose headers to believe, or leave it out")
	}
	return list
}
