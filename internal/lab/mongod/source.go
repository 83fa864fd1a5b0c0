package mongod

import "time"

const (
	// nearer is by how much less another member's ping must be to be worth a
	// change (changeSyncSourceThresholdMillis), so many times an hour at most
	// (maxNumSyncSourceChangesPerHour).
	nearer       = 5 * time.Millisecond
	changesAHour = 3
	// maxLag is how far behind the primary a source may be (maxSyncSourceLagSecs).
	maxLag = 30 * time.Second
)

// chooseSource picks the member to follow: the primary without chaining; else
// the nearest by ping of those that have what this one lacks
// (src/mongo/db/repl/topology_coordinator.cpp, _chooseNearbySyncSource). -1: none.
func (r *replication) chooseSource(now time.Time) int {
	if r.state == statePrimary {
		return -1
	}
	best := -1
	for i := range r.peers {
		if r.canFollow(i, now) && (best < 0 || r.peers[i].ping < r.peers[best].ping) {
			best = i
		}
	}
	return best
}

func (r *replication) canFollow(i int, now time.Time) bool {
	p, m := &r.peers[i], r.config.members[i]
	me := r.config.members[r.self]
	switch {
	case i == r.self || now.Before(p.avoid) || p.state == stateDown || p.state == stateUnknown:
		return false
	case i == r.primary:
		return true
	case !r.config.chaining || p.state != stateSecondary || m.delaySecs > me.delaySecs:
		return false
	case p.source == me.host:
		return false
	case r.primary >= 0 && r.peers[r.primary].applied.wall.Sub(p.applied.wall) > maxLag:
		return false
	}
	return r.written.Before(p.written.OpTime)
}

// betterSource reports whether to leave the present source: there's another
// primary to follow and no chaining, it has no source of its own, or another
// member is nearer.
func (r *replication) betterSource(source int, now time.Time) bool {
	p := &r.peers[source]
	switch {
	case !r.config.chaining && r.primary >= 0 && source != r.primary:
		return true
	case source != r.primary && p.state == stateSecondary && p.source == "" && !r.written.Before(p.written.OpTime):
		return true
	case !r.config.chaining:
		return false
	}
	for i := range r.peers {
		if i == source || !r.canFollow(i, now) || r.peers[i].ping+nearer > p.ping || p.ping == 0 {
			continue
		}
		if now.Sub(r.hour) > time.Hour {
			r.hour, r.changes = now, 0
		}
		if r.changes++; r.changes > changesAHour {
			return false
		}
		return true
	}
	return false
}
