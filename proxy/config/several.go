package config

import (
	"slices"
	"strings"

	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/wire"
)

// each is the ends of a link that several dial, or the one.
func (e end) each() []end {
	if e.several != nil {
		return e.several
	}
	return []end{e}
}

// hasMembers says that all other members of the target's cluster dial.
func (e end) hasMembers() bool {
	return slices.ContainsFunc(e.each(), func(one end) bool { return one.members })
}

// fromEnd reads from: one end, or a list of them.
func (r *reader) fromEnd(n *node, t *topology) (end, bool) {
	if !isList(n) {
		return r.end(n, "from", t)
	}
	items, ok := r.items(n, "from")
	e := end{several: []end{}}
	var names []string
	for _, item := range items {
		one, good := r.end(item, "from", t)
		if ok = ok && good; slices.Contains(names, one.name) && good {
			r.problem(item, "from names %s twice: leave one out", quote(follow(item)))
		}
		e.several, names = append(e.several, one), append(names, one.name)
	}
	if len(items) == 0 {
		r.problem(n, "from is an empty list: write who dials")
		ok = false
	}
	e.name = strings.Join(names, "+")
	return e, ok
}

// diallers are who may dial a link that several do. The first n of them are
// those that from names; sources may tell of others, and knows better.
func (d *draft) diallers(t *topology) (ends []end, n int) {
	add := func(e end) {
		if !slices.ContainsFunc(ends, func(o end) bool { return o.name == e.name }) {
			ends = append(ends, e)
		}
	}
	for _, e := range d.from.each() {
		if !e.members {
			add(e)
			continue
		}
		for _, m := range d.to.member.cluster.members {
			if m != d.to.member {
				add(m.end())
			}
		}
	}
	n = len(ends)
	for _, k := range t.known {
		add(k.of)
	}
	return ends, n
}

// placeSeveral gives a link that several dial the delay of each of them, and to
// a connection that nothing tells the longest: one that is faster than it
// should be is the worst that a simulated network can do.
func (r *reader) placeSeveral(d *draft, t *topology) {
	ends, n := d.diallers(t)
	if n == 0 {
		r.problem(d.node, "%s has no other members, so nobody would dial here: leave the link out", d.to.member.cluster.Name)
		return
	}
	var paths []path
	for i, e := range ends {
		p, ok := t.between(e.site, d.to.site)
		if d.own.complete() {
			ok = true
		} else if i < n {
			p, ok = r.pathBetween(d.node, e.site, d.to.site, t)
		}
		if !ok && i < n {
			return
		} else if !ok {
			continue // sources tells of it, and nothing how far away it is
		}
		p = d.own.over(p)
		r.checkJitter(d.node, p)
		s := proxy.Source{Name: e.name, Delay: p.settings(), Pipes: t.pipesBetween(e.site, d.to.site)}
		s.Addresses, s.Names = t.tells(e.name)
		if i == 0 || i < n && s.Delay.RTT() > d.Delay.RTT() {
			d.Delay, d.Pipes = s.Delay, s.Pipes
		}
		paths, d.Sources, d.dialling = append(paths, p), append(d.Sources, s), append(d.dialling, e)
	}
	r.checkTold(d, paths[:n])
}

// checkTold finds diallers that nothing could ever tell. Where all members are
// equally far away that doesn't matter, unless they have a bandwidth to share
// with others.
func (r *reader) checkTold(d *draft, paths []path) {
	matters := !d.from.members
	for _, p := range paths {
		matters = matters || p != paths[0] || p.shares()
	}
	some := false
	for i, s := range d.Sources {
		told := len(s.Addresses)+len(s.Names) > 0 || d.dialling[i].tellsItself()
		some = some || told
		if !told && matters && i < len(paths) {
			r.problem(d.node, "nothing tells when it's %s that dials %s: add its address to sources, such as {10.0.1.12: %s}, or %s",
				s.Name, d.to.name, s.Name, d.instead())
		}
	}
	if !some {
		d.Sources, d.dialling = nil, nil
	}
}

// tellsItself: MongoDB's members say who they are.
func (e end) tellsItself() bool { return e.member != nil && e.member.cluster.Protocol == wire.MongoDB }

// instead is what to do about those that can't be told.
func (d *draft) instead() string {
	if isMesh(d.node) {
		return "write members: false to open the application's links only"
	}
	return "write a link from each"
}

// nameMembers adds what a MongoDB cluster's members call themselves: in hello
// their own host and port, and in heartbeats what the others dial them by.
func nameMembers(drafts []*draft) {
	for _, d := range drafts {
		for i, e := range d.dialling {
			if e.tellsItself() {
				d.Sources[i].Names = append(d.Sources[i].Names, e.member.names(drafts)...)
			}
		}
	}
}

// joinSets has an application's links to a MongoDB cluster stand for its members
// in hello replies.
func joinSets(drafts []*draft) {
	for _, d := range drafts {
		if m := d.to.member; m != nil && d.Protocol == wire.MongoDB && d.Dialer == FromApplication {
			d.Set, d.Hosts = m.cluster.Name, m.names(drafts)
		}
	}
}

func (m *member) names(drafts []*draft) (names []string) {
	add := func(address string) {
		if address != "" && !slices.Contains(names, address) && !strings.HasPrefix(address, "unix:") {
			names = append(names, address)
		}
	}
	add(m.Host)
	add(m.Upstream)
	for _, d := range drafts {
		if d.to.member == m && d.from.hasMembers() {
			add(d.Dialled())
		}
	}
	return names
}
