package config

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/wire"
)

const mappingKind = yaml.MappingNode

func isList(n *node) bool { return follow(n).Kind == yaml.SequenceNode }

// isMesh tells a mesh from a link by its key.
func isMesh(n *node) bool {
	n = follow(n)
	for i := 0; n.Kind == mappingKind && i < len(n.Content); i += 2 {
		if n.Content[i].Value == "mesh" {
			return true
		}
	}
	return false
}

// mesh opens links to every member of a cluster, on ports that count up: from
// the application's site to each, then from the members. A replica set has one
// address per member for everyone, so there each member gets one listener for
// all others; PostgreSQL's primary_conninfo is each standby's own, so there
// every pair gets one.
func (r *reader) mesh(n *node, t *topology) (drafts []*draft) {
	o, ok := r.object(n, meshKeys)
	if !ok {
		return nil
	}
	c, from, ok := r.meshEnds(&o, t)
	listen, advertise := r.meshListen(&o), ""
	if v := o.get("advertise"); v != nil {
		advertise = r.advertise(v)
	}
	free := false
	if v := o.get("connect"); v != nil {
		free = !r.boolean(v, "connect")
	}
	members := true
	if v := o.get("members"); v != nil {
		members = r.boolean(v, "members")
	}
	if !ok || listen == "" {
		return nil
	}
	sources := []end{from}
	for _, to := range c.members {
		drafts = append(drafts, meshLinks(n, sources, to)...)
	}
	for _, to := range c.members {
		if members && len(c.members) > 1 {
			drafts = append(drafts, meshLinks(n, otherMembers(to), to)...)
		}
	}
	for i, d := range drafts {
		var err error
		if d.Listen, err = portAfter(listen, i); err != nil {
			r.problem(o.get("listen"), "the mesh needs %d ports, and %v: begin lower", len(drafts), err)
			break
		}
		d.listenAt = o.get("listen")
		if advertise != "" {
			if d.Advertise, err = portAfter(advertise, i); err != nil {
				_, err = portAfter(advertise, len(drafts)-1)
				r.problem(o.get("advertise"), "the mesh needs %d ports, and %v: begin lower", len(drafts), err)
				d.Advertise = advertise
			}
		}
		if v := o.get("proxy_protocol"); v != nil {
			d.ProxyProtocol = r.proxyProtocol(v, d)
		}
		if v := o.get("tls"); v != nil {
			r.tls(v, d)
		}
		r.place(d, t)
		d.Delay.FreeConnect = free
		d.describeEnds()
	}
	return drafts
}

// meshEnds are the cluster and the site of the application.
func (r *reader) meshEnds(o *object, t *topology) (c *cluster, from end, ok bool) {
	if n := o.get("mesh"); n != nil {
		v, good := r.text(n, "mesh")
		if c = t.cluster(v); good && c == nil {
			r.problem(n, "mesh is %s, and there is no such cluster%s", quote(follow(n)), guess(v, t.clusterNames()))
		}
	}
	if c != nil {
		ok = r.meshUpstreams(o, c)
	}
	n := o.get("from")
	switch {
	case n == nil && slices.Contains(t.sites, "app"):
		return c, end{name: "app", site: "app"}, ok
	case n == nil && !o.lacks("from"):
		return c, from, false
	case n == nil:
		r.problem(o.node, "a mesh begins in the site app, and there is none: write from: SITE, the application's")
		return c, from, false
	}
	from, good := r.end(n, "from", t)
	if good && (from.member != nil || from.members) {
		r.problem(n, "from is %s: a mesh begins in a site, the application's", quote(follow(n)))
		good = false
	}
	return c, from, ok && good
}

func (r *reader) meshUpstreams(o *object, c *cluster) bool {
	var without []string
	for _, m := range c.members {
		if m.Upstream == "" {
			without = append(without, m.Name)
		}
	}
	if len(without) > 0 {
		r.problem(o.get("mesh"), "a mesh leads to every member, and %s has no upstream: add it, or write single links", strings.Join(without, ", "))
	}
	return len(without) == 0
}

func (r *reader) meshListen(o *object) string {
	n := o.get("listen")
	if n == nil && o.lacks("listen") {
		r.problem(o.node, "a mesh needs listen: the first of its addresses, such as listen: 127.0.0.1:27200")
	}
	if n == nil {
		return ""
	}
	v := r.address(n, "listen")
	if strings.HasPrefix(v, "unix:") {
		r.problem(n, "listen is %s: a mesh counts ports up, so write host:port", quote(follow(n)))
		return ""
	}
	return v
}

// otherMembers are the ends that the links from members to one of them have.
func otherMembers(to *member) (ends []end) {
	if to.cluster.Protocol != wire.Postgres {
		return []end{{name: "members", members: true}}
	}
	for _, m := range to.cluster.members {
		if m != to {
			ends = append(ends, m.end())
		}
	}
	return ends
}

func meshLinks(n *node, from []end, to *member) (drafts []*draft) {
	for _, f := range from {
		drafts = append(drafts, &draft{
			node: n, nameAt: n, from: f, to: to.end(),
			Link: Link{Line: n.Line, LinkConfig: proxy.LinkConfig{Upstream: to.Upstream, Protocol: to.cluster.Protocol}},
		})
	}
	return drafts
}
