package config

import (
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// replicaSet is what the file says of a set's configuration: its members have the
// ids 0, 1, 2, in the order of the file, and a vote, unless it says otherwise.
func (c *cluster) replicaSet() *trace.ReplicaSet {
	set := &trace.ReplicaSet{}
	for i, m := range c.members {
		member := trace.SetMember{Name: m.Name, ID: i, Votes: 1, Arbiter: m.Arbiter, Tags: m.Tags}
		if m.ID != nil {
			member.ID = *m.ID
		}
		if m.Votes != nil {
			member.Votes = *m.Votes
		}
		set.Members = append(set.Members, member)
	}
	return set
}

// checkIDs finds members that have one id because only some say theirs.
func (r *reader) checkIDs(at *node, c *cluster) {
	taken := map[int]*member{}
	for i, m := range c.members {
		id := i
		if m.ID != nil {
			id = *m.ID
		}
		other := taken[id]
		if taken[id] = m; other == nil || m.ID != nil && other.ID != nil {
			continue // both written: said where it stands
		}
		r.problem(at, "%s and %s both have the id %d, as a member without one has its place in the file: give each its id", other.Name, m.Name, id)
	}
}

// replicaSets are what each member's writes wait for, were it the primary.
func (t *topology) replicaSets() map[string]*trace.ReplicaSet {
	sets := map[string]*trace.ReplicaSet{}
	for _, c := range t.clusters {
		if c.Protocol != wire.MongoDB {
			continue
		}
		set := c.replicaSet()
		for _, m := range c.members {
			sets[m.Name] = set
		}
	}
	return sets
}
