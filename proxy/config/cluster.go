package config

import (
	"slices"
	"strings"

	"github.com/wirewait/wirewait/wire"
)

// cluster is one that is being read: its protocol is empty after a problem.
type cluster struct {
	Cluster
	members []*member // in the order of the file
}

// member is one server of it: its site and upstream are empty if they aren't
// given, or after a problem.
type member struct {
	Member
	cluster *cluster
}

func (m *member) end() end { return end{name: m.Name, site: m.Site, member: m} }

func (r *reader) clusters(n *node, t *topology) {
	o, _ := r.mapping(n, "clusters")
	for _, k := range o.keys {
		if !r.checkWord(k, k.Value, "a cluster") {
			continue
		}
		c := &cluster{Cluster: Cluster{Name: k.Value}}
		t.clusters = append(t.clusters, c)
		if keys, ok := r.object(o.get(k.Value), clusterKeys); ok {
			r.cluster(k, &keys, c, t)
		}
	}
}

func (r *reader) cluster(at *node, o *object, c *cluster, t *topology) {
	if p := o.get("protocol"); p != nil {
		c.Protocol = wire.Protocol(r.choice(p, "a cluster's protocol", clusterWords))
	} else if o.lacks("protocol") {
		r.problem(at, "cluster %s has no protocol: write protocol: mongodb or protocol: postgres", c.Name)
	}
	if v := o.get("observe"); v != nil {
		r.observe(v, c)
	}
	if v := o.get("observe_every"); v != nil {
		r.observeEvery(v, c)
	}
	r.walTimeouts(o, c)
	n := o.get("members")
	if n == nil && o.lacks("members") {
		r.problem(at, "cluster %s has no members: write members: {a: {site: SITE, upstream: HOST:PORT}}", c.Name)
	}
	if n == nil {
		return
	}
	members, ok := r.mapping(n, "members")
	if ok && len(follow(n).Content) == 0 {
		r.problem(n, "cluster %s has no members: write members: {a: {site: SITE, upstream: HOST:PORT}}", c.Name)
	}
	for _, k := range members.keys {
		if !r.checkWord(k, k.Value, "a member") {
			continue
		}
		m := &member{cluster: c, Member: Member{Name: c.Name + "." + k.Value, ApplicationName: k.Value}}
		c.members = append(c.members, m)
		if keys, ok := r.object(members.get(k.Value), memberKeys); ok {
			r.member(k, &keys, m, t)
		}
	}
	if n := o.get("synchronous_standby_names"); n != nil {
		r.standbyNames(n, c)
	}
	r.checkIDs(n, c)
}

func (r *reader) member(at *node, o *object, m *member, t *topology) {
	if n := o.get("upstream"); n != nil {
		m.Upstream = r.upstream(n)
	}
	r.replication(o, m)
	n := o.get("site")
	if n == nil && o.lacks("site") {
		r.problem(at, "%s has no site: write site: and the place where it stands", m.Name)
	}
	if n == nil {
		return
	}
	if name, ok := r.word(n, "a site"); ok {
		m.Site = name
		t.addSite(name)
	}
}

// cluster finds one by its name, or nil.
func (t *topology) cluster(name string) *cluster {
	for _, c := range t.clusters {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func (t *topology) clusterNames() (names []string) {
	for _, c := range t.clusters {
		names = append(names, c.Name)
	}
	return names
}

func (c *cluster) memberNames() (names []string) {
	for _, m := range c.members {
		names = append(names, m.Name)
	}
	return names
}

// end is one end of a link. All zero: the file doesn't say.
type end struct {
	name    string
	site    string // empty for all members, and after a problem with a member's site
	member  *member
	members bool // all members of the cluster at the other end
	several []end
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
		i := slices.IndexFunc(c.members, func(m *member) bool { return m.Name == v })
		if i < 0 {
			r.problem(n, "%s is %s, and %s has no such member: use %s", what, quote(follow(n)), c.Name, list(c.memberNames()))
			return end{}, false
		}
		return c.members[i].end(), true
	}
	if slices.Contains(t.sites, v) {
		return end{name: v, site: v}, true
	}
	if c := t.cluster(v); c != nil {
		r.problem(n, "%s is %s, which is a cluster: write one of its members (%s), or open all with {mesh: %s, listen: HOST:PORT}",
			what, quote(follow(n)), list(c.memberNames()), c.Name)
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
