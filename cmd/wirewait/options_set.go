package main

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/wire"
)

// replicaSet is what --upstream says if it's a MongoDB URI: a link leads to each
// of its hosts, on consecutive ports, and clients that know the set's name stay
// on the links (proxy/members.go).
type replicaSet struct {
	name  string
	hosts []string
	rest  string // of the URI: /database?options
}

const setExample = `--upstream "mongodb://a:27017,b:27017,c:27017/?replicaSet=rs0"`

// replicaSet reads the URI. User and password are the client's affair, and not
// looked at.
func (r *reader) replicaSet(uri string) *replicaSet {
	if strings.HasPrefix(uri, "mongodb+srv://") {
		r.problem("--upstream %q: write the hosts that its SRV record names, as in %s", redactURI(uri), setExample)
		return nil
	}
	rest := withoutUser(uri[len("mongodb://"):])
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	s := &replicaSet{rest: rest[end:]}
	if !strings.HasPrefix(s.rest, "/") {
		s.rest = "/" + s.rest
	}
	_, query, _ := strings.Cut(s.rest, "?")
	options, err := url.ParseQuery(query)
	if err != nil {
		r.problem("--upstream %q: its options can't be read: write %% as %%25, and so on", redactURI(uri))
		return nil
	}
	for key, values := range options { // keys are known in any case
		if strings.EqualFold(key, "replicaSet") {
			s.name = values[0]
		}
	}
	if s.name == "" {
		r.problem("--upstream %q names no replica set: add replicaSet=NAME, or for a single server write --upstream HOST:PORT", redactURI(uri))
	}
	for _, host := range strings.Split(rest[:end], ",") {
		s.hosts = append(s.hosts, r.member(uri, host))
	}
	return s
}

// member is a host of the URI with its port; MongoDB's own one is 27017.
func (r *reader) member(uri, host string) string {
	if _, _, err := net.SplitHostPort(host); err != nil {
		host = net.JoinHostPort(strings.Trim(host, "[]"), "27017")
	}
	name, port, err := net.SplitHostPort(host)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || name == "" || bad != nil || n == 0 {
		r.problem("--upstream %q: %q is no host: write %s", redactURI(uri), redactURI(host), setExample)
	}
	return host
}

// links are one to each host, where link says how.
func (s *replicaSet) links(r *reader, link proxy.LinkConfig) (links []proxy.LinkConfig) {
	host, port, err := net.SplitHostPort(link.Listen)
	first, _ := strconv.Atoi(port)
	switch {
	case err != nil || host == "unix":
		r.problem("--listen %s: a replica set takes a port for each member: write HOST:PORT", link.Listen)
	case net.ParseIP(host).IsUnspecified():
		r.problem("--listen %s: hello replies must name one address that drivers reach: write it, or say it with advertise: in a file", link.Listen)
	case first+len(s.hosts)-1 > 65535:
		r.problem("--listen %s: %d ports are needed from there on: begin lower", link.Listen, len(s.hosts))
	}
	for i, upstream := range s.hosts {
		l := link
		l.Name, l.Upstream, l.Set, l.Protocol = upstream, upstream, s.name, wire.MongoDB
		if first != 0 {
			l.Listen = net.JoinHostPort(host, strconv.Itoa(first+i))
		}
		links = append(links, l)
	}
	return links
}

// uri is what clients use.
func (s *replicaSet) uri(links []*proxy.Link) string {
	var addrs []string
	for _, l := range links {
		addrs = append(addrs, l.Addr().String())
	}
	return "mongodb://" + strings.Join(addrs, ",") + s.rest
}
