package config

import (
	"slices"
	"strings"

	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

type cluster struct {
	name     string
	protocol wire.Protocol // empty after a problem
	members  []*member     // in the order of the file
	standbys *trace.StandbyNames
}

// member is one server of a cluster.
type member struct {
	cluster        *cluster
	name           string // "rs0.a", as links call it
	site, upstream string // empty: not given, or a problem
	application    string // application_name; else the name in the cluster
}

func (r *reader) clusters(n *node, t *topology) {
	o, _ := r.mapping(n, "clusters")
	for _, k := range o.keys {
		if !r.checkWord(k, k.Value, "a cluster") {
			continue
		}
		c := &cluster{name: k.Value}
		t.clusters = append(t.clusters, c)
		if keys, ok := r.object(o.get(k.Value), clusterKeys); ok {
			r.cluster(k, &keys, c, t)
		}
	}
}

func (r *reader) cluster(at *node, o *object, c *cluster, t *topology) {
	if p := o.get("protocol"); p != nil {
		c.protocol = wire.Protocol(r.choice(p, "a cluster's protocol", clusterWords))
	} else if o.lacks("protocol") {
		r.problem(at, "cluster %s has no protocol: write protocol: mongodb or protocol: postgres", c.name)
	}
	n := o.get("members")
	if n == nil && o.lacks("members") {
		r.problem(at, "cluster %s has no members: write members: {a: {site: SITE, upstream: HOST:PORT}}", c.name)
	}
	if n == nil {
		return
	}
	members, ok := r.mapping(n, "members")
	if ok && len(follow(n).Content) == 0 {
		r.problem(n, "cluster %s has no members: write members: {a: {site: SITE, upstream: HOST:PORT}}", c.name)
	}
	for _, k := range members.keys {
		if !r.checkWord(k, k.Value, "a member") {
			continue
		}
		m := &member{cluster: c, name: c.name + "." + k.Value, application: k.Value}
		c.members = append(c.members, m)
		if keys, ok := r.object(members.get(k.Value), memberKeys); ok {
			r.member(k, &keys, m, t)
		}
	}
	if n := o.get("synchronous_standby_names"); n != nil {
		r.standbyNames(n, c)
	}
}

func (r *reader) member(at *node, o *object, m *member, t *topology) {
	if n := o.get("upstream"); n != nil {
		m.upstream = r.upstream(n)
	}
	if n := o.get("application_name"); n != nil {
		m.application, _ = r.text(n, "an application_name")
	}
	n := o.get("site")
	if n == nil && o.lacks("site") {
		r.problem(at, "%s has no site: write site: and the place where it stands", m.name)
	}
	if n == nil {
		return
	}
	if name, ok := r.word(n, "a site"); ok {
		m.site = name
		t.addSite(name)
	}
}

// cluster finds one by its name, or nil.
func (t *topology) cluster(name string) *cluster {
	for _, c := range t.clusters {
		if c.name == name {
			return c
		}
	}
	return nil
}

func (t *topology) clusterNames() (names []string) {
	for _, c := range t.clusters {
		names = append(names, c.name)
	}
	return names
}

func (c *cluster) memberNames() (names []string) {
	for _, m := range c.members {
		names = append(names, m.name)
	}
	return names
}

// end is one end of a link. All zero: the file doesn't say.
type end struct {
	name    string
	site    string // empty for all members, and after a problem with a member's site
	member  *member
	members bool // all members of the cluster at the other end
}

// end reads a site, CLUSTER.MEMBER, or members.
func (r *reader) end(n *node, what string, t *topology) (end, bool) {
	v, ok := r.text(n, what)
	if !ok {
		return end{}, false
	}
	if v == "members" {
		return end{name: v, members: true}, true
	}
	// v itself is in no problem: it may be what a variable holds.
	if name, _, dotted := strings.Cut(v, "."); dotted {
		c := t.cluster(name)
		if c == nil {
			r.problem(n, "%s is %s, and there is no such cluster%s", what, quote(follow(n)), guess(name, t.clusterNames()))
			return end{}, false
		}
		i := slices.IndexFunc(c.members, func(m *member) bool { return m.name == v })
		if i < 0 {
			r.problem(n, "%s is %s, and %s has no such member: use %s", what, quote(follow(n)), c.name, list(c.memberNames()))
			return end{}, false
		}
		return end{name: v, site: c.members[i].site, member: c.members[i]}, true
	}
	if slices.Contains(t.sites, v) {
		return end{name: v, site: v}, true
	}
	if c := t.cluster(v); c != nil {
		r.problem(n, "%s is %s, which is a cluster: write one of its members (%s), or open all with {mesh: %s, listen: HOST:PORT}",
			what, quote(follow(n)), list(c.memberNames()), c.name)
		return end{}, false
	}
	hint := guess(v, append(t.clusterMemberNames(), t.sites...))
	if hint == "" {
		hint = ": name it in a pair of network"
	}
	r.problem(n, "%s is %s, and there is no such site%s", what, quote(follow(n)), hint)
	return end{}, false
}

func (t *topology) clusterMemberNames() (names []string) {
	for _, c := range t.clusters {
		names = append(names, c.memberNames()...)
	}
	return names
}
