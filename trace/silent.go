package trace

import (
	"time"

	"github.com/wirewait/wirewait/wire"
)

// maxSettleTime is how long a PostgreSQL write waits at most to be looked at, for
// standbys that are silent.
const maxSettleTime = 500 * time.Millisecond

// awaitsReports reports whether a standby may have said more until a write's end
// than is in. What it said is reported once it was passed on, by a thread that a
// busy machine may keep from it for as long as it likes: to wake who reads it is
// when a scheduler takes another thread.
//
//	acknowledged, out     reply in        report        settleTime
//	------|-------------------|---------------|---------------|---
//	      |<-- the report, on a busy machine, comes then or later -->
//
// A standby has said all if it said something later, or has all that was on its
// way to anybody.
func (a *attribution) awaitsReports(j *job) bool {
	if !j.x.Write || j.x.Protocol != wire.Postgres {
		return false
	}
	g := a.servers[serverOf(j.c)]
	if g == nil {
		return false
	}
	level := wire.Durable
	if j.x.Postgres.SynchronousCommit == "remote_apply" {
		level = wire.Applied
	}
	return g.silent(j.x.Sides[wire.ToClient].LastIn, level)
}

// silent reports whether a member has neither acknowledged all commits that were
// seen until at, nor been heard of since.
func (g *replicas) silent(at wire.Stamp, level wire.Level) bool {
	list := g.commits.list
	n := len(list)
	for n > 0 && list[n-1].seen > at {
		n--
	}
	if n == 0 {
		return false
	}
	for _, m := range g.members {
		if m.left != 0 || m.since == 0 || len(m.heard) > 0 && m.heard[len(m.heard)-1] > at {
			continue
		}
		if !m.reached[level].latest().Reaches(list[n-1].End) {
			return true
		}
	}
	return false
}
