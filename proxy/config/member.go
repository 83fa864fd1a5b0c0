package config

import (
	"slices"
	"strconv"
	"time"

	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// Cluster is a replica set, or a primary and its standbys.
type Cluster struct {
	Name     string
	Protocol wire.Protocol
	// Observe is the URI of a server to ask what the wire doesn't say. It may
	// hold a password.
	Observe string
	// ObserveEvery is how often members are asked what they do; 0: the default.
	ObserveEvery time.Duration
	// Standbys are PostgreSQL's synchronous_standby_names; nil: the file doesn't
	// say.
	Standbys *trace.StandbyNames
	// WALTimeouts are what the file says of PostgreSQL's.
	WALTimeouts proxy.WALTimeouts
	Members     []Member
}

// Member is one server of a cluster.
type Member struct {
	// Name is CLUSTER.MEMBER, as links call it.
	Name string
	// Site is where it stands, and Upstream where wirewait reaches it; empty if
	// no link leads to it.
	Site, Upstream string
	// Host is what a MongoDB member calls itself: its name and port in the
	// configuration of its replica set, or its own. Empty: Upstream.
	Host string
	// ApplicationName is what a PostgreSQL standby calls itself, by default the
	// member's name without the cluster's.
	ApplicationName string
	// Votes, Priority and ID are a MongoDB member's in the configuration of its
	// replica set; nil: the file doesn't say. Arbiter and Tags are the same.
	Votes    *int
	Priority *float64
	ID       *int
	Arbiter  bool
	Tags     map[string]string
}

func (c *cluster) export() Cluster {
	for _, m := range c.members {
		c.Members = append(c.Members, m.Member)
	}
	return c.Cluster
}

// replication reads what a member is to the others.
func (r *reader) replication(o *object, m *member) {
	only := func(n *node, key string, p wire.Protocol) {
		if m.cluster.Protocol != p && m.cluster.Protocol != "" {
			r.problem(n, "%s is for members that speak %s, and %s speaks %s: leave it out", key, p, m.Name, m.cluster.Protocol)
		}
	}
	for key, read := range map[string]func(*node){
		"host":     func(n *node) { m.Host = r.dialled(n, "host") },
		"votes":    func(n *node) { m.Votes = r.whole(n, "votes", 1) },
		"priority": func(n *node) { m.Priority = r.priority(n) },
		"id":       func(n *node) { m.ID = r.whole(n, "id", 255) },
		"arbiter":  func(n *node) { m.Arbiter = r.boolean(n, "arbiter") },
		"tags":     func(n *node) { m.Tags = r.tags(n) },
	} {
		if n := o.get(key); n != nil {
			only(n, key, wire.MongoDB)
			read(n)
		}
	}
	if n := o.get("application_name"); n != nil {
		only(n, "application_name", wire.Postgres)
		m.ApplicationName, _ = r.text(n, "application_name")
	}
	r.checkReplication(o, m)
}

// checkReplication finds what a replica set would refuse. Source:
// https://www.mongodb.com/docs/manual/reference/replica-configuration/
func (r *reader) checkReplication(o *object, m *member) {
	n := o.get("priority")
	switch {
	case n == nil || m.Priority == nil || *m.Priority == 0:
	case m.Votes != nil && *m.Votes == 0:
		r.problem(n, "%s has no vote, and so its priority is 0", m.Name)
	case m.Arbiter && *m.Priority != 1:
		r.problem(n, "%s is an arbiter, whose priority is 0 or 1", m.Name)
	}
	for _, other := range m.cluster.members {
		if other != m && m.ID != nil && other.ID != nil && *m.ID == *other.ID {
			r.problem(o.get("id"), "%s has the id %d already: each member has its own", other.Name, *m.ID)
		}
	}
}

// whole is a number from 0 to a limit.
func (r *reader) whole(n *node, what string, limit int) *int {
	v, ok := r.text(n, what)
	i, err := strconv.Atoi(v)
	if !ok {
		return nil
	}
	if err != nil || i < 0 || i > limit {
		r.problem(n, "%s is %s: write a whole number from 0 to %d", what, quote(follow(n)), limit)
		return nil
	}
	return &i
}

func (r *reader) priority(n *node) *float64 {
	v, ok := r.text(n, "priority")
	f, err := strconv.ParseFloat(v, 64)
	if !ok {
		return nil
	}
	if err != nil || !(f >= 0 && f <= 1000) {
		r.problem(n, "priority is %s: write a number from 0 to 1000", quote(follow(n)))
		return nil
	}
	return &f
}

func (r *reader) tags(n *node) map[string]string {
	o, ok := r.mapping(n, "tags")
	if !ok {
		return nil
	}
	tags := map[string]string{}
	for _, k := range o.keys {
		tags[k.Value], _ = r.text(o.get(k.Value), "the tag "+quote(k))
	}
	return tags
}

// observeEvery is how often they are asked. Less than a tenth of a second would
// be work for the server, and say little more.
func (r *reader) observeEvery(n *node, c *cluster) {
	d, ok := r.duration(n, "observe_every")
	if ok && d < 100*time.Millisecond {
		r.problem(n, "observe_every is %v: write 100ms or more", d)
	}
	c.ObserveEvery = d
}

// observe is the URI of one of the cluster's servers.
func (r *reader) observe(n *node, c *cluster) {
	v, ok := r.text(n, "observe")
	schemes := map[wire.Protocol][]string{
		wire.MongoDB: {"mongodb"}, wire.Postgres: {"postgres", "postgresql"},
	}[c.Protocol]
	if ok && c.Protocol != "" && !slices.Contains(schemes, scheme(v)) {
		r.problem(n, "observe isn't a URI of %s: write %s://USER:${PASSWORD}@HOST:PORT/", c.Protocol, schemes[0])
		return
	}
	c.Observe = v
}
