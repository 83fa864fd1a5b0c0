package trace

import (
	"slices"
	"time"

	"github.com/wirewait/wirewait/wire"
)

// promptly is how soon after its release a reply comes, unless something else
// was waited for as well.
const promptly = time.Millisecond

// Acknowledgements that are written within two milliseconds of each other may be
// taken in by the primary in either order: each has a process of its own there.
// The busier it is, the longer it takes them, which shows in how long the reply
// takes after the release. With these bounds 3 of 1,185 commits that were
// attributed to one of two equally far standbys were the other's, on a busy
// machine of two cores; with none, 1 in 10
// (TestRealQuorum_EquallyFarStandbys).
const (
	leastTie = 2 * time.Millisecond
	mostTie  = 10 * time.Millisecond
)

// judgePostgres finds the standby that released a commit.
//
//	request out        commit seen              acknowledged        reply in
//	----|--------------------|--------------------------|---------------|---
//	    |<-- execution, -->  |<------ replication ----->|<- wake up, -->|
//	        local flush                                     answer
//
// The client's side shows neither the commit's LSN nor its transaction. So every
// commit that was seen and released between request and reply is a candidate;
// if one standby released them all, it's certain which. Where somebody observes
// the primary's sessions, the commit itself is. A commit is never seen
// before it's flushed, and the reply never sent before the release.
func (g *replicas) judgePostgres(f *Finished, rule Rule, standbys []string) {
	r := &f.Replication
	from, to := f.Sides[wire.ToServer].LastOut, f.Sides[wire.ToClient].LastIn
	level := f.Postgres.SynchronousCommit
	switch {
	case !f.Answered || !f.OK || f.Postgres.RolledBack || f.Postgres.Unconfirmed || from == 0 || to == 0:
		return // nothing was committed, or nobody knows
	case level == "off" || level == "local":
		r.Basis = BasisNotWaited
		return
	case rule == nil:
		r.Basis = BasisUnknown
		return
	}
	if _, take := rule.Choose(nil, nil); take == NobodyNeeded {
		r.Basis = BasisNotWaited
		return
	}
	window := g.commits.between(from, to)
	switch {
	case f.Postgres.NotReplicated:
		r.Basis = BasisInterrupted
		if len(window) > 0 {
			r.Began, r.Released = window[len(window)-1].seen, to
		}
	case !g.whole(from, to) || g.blind || !g.sees(standbys) || from <= g.commits.forgotten:
		r.Basis = BasisUnknown
	case len(window) == 0:
		r.Basis = BasisNoCommit
		if !g.anyThere(from) {
			r.Basis = BasisUnknown
		}
	default:
		g.choose(f, g.explain(window, f, rule))
	}
}

// sees reports whether all of these standbys were seen, if not now then before.
func (g *replicas) sees(standbys []string) bool {
	for _, name := range standbys {
		if !slices.ContainsFunc(g.members, func(m *member) bool { return equalFoldASCII(m.name, name) }) {
			return false
		}
	}
	return true
}

func (g *replicas) anyThere(at wire.Stamp) bool {
	return slices.ContainsFunc(g.members, func(m *member) bool { return m.there(at) })
}

// candidate is a commit that may be the write's, with what released it.
type candidate struct {
	*commit
	level   wire.Level
	release release
}

// explain lists the candidates: commits whose release explains the reply. If the
// write's own is known, by its session, there is no other.
func (g *replicas) explain(window []commit, f *Finished, rule Rule) (list []candidate) {
	own, others := g.observed.own(window, f)
	for _, believe := range []bool{true, false} {
		for i := range window {
			c := &window[i]
			if own != nil && c != own || !inWindow(c, f) || others(c) {
				continue
			}
			level, contradicted := levelOf(c, f.Postgres.SynchronousCommit)
			if contradicted && believe && own == nil && firm(f.Postgres.SyncSource) {
				continue
			}
			rel := g.releaseOf(c, rule, level)
			if rel.by != nil && rel.at <= f.Sides[wire.ToClient].LastIn {
				list = append(list, candidate{c, level, rel})
			}
		}
		if len(list) > 0 {
			break // else the belief is wrong
		}
	}
	if own != nil && len(list) > 0 {
		f.Replication.Basis = BasisExact
	}
	return list
}

// inWindow reports whether a commit was first seen while a write was under way.
func inWindow(c *commit, f *Finished) bool {
	return c.seen >= f.Sides[wire.ToServer].LastOut && c.seen <= f.Sides[wire.ToClient].LastIn
}

// firm reports whether the session itself said what its level is.
func firm(source string) bool { return source == "startup" || source == "set" || source == "set_local" }

// levelOf is what a commit waits for: what its record says, and for the rest
// what is believed of its session. Contradicted: the record says otherwise. Only
// commits proper are waited for until they are applied (SyncRepWaitForLSN).
func levelOf(c *commit, believed string) (level wire.Level, contradicted bool) {
	switch {
	case c.Apply:
		return wire.Applied, believed != "remote_apply"
	case believed == "remote_write":
		return wire.Written, false
	}
	return wire.Durable, believed == "remote_apply" && c.Kind == wire.CommitPlain
}

// releaseOf is released, remembered.
func (g *replicas) releaseOf(c *commit, rule Rule, level wire.Level) release {
	if c.released != nil && c.level == level && c.rule == rule {
		return *c.released
	}
	r := g.released(rule, c.End, level)
	if r.by != nil {
		c.released, c.level, c.rule = &r, level, rule
	}
	return r
}

// choose settles on what the candidates have in common.
func (g *replicas) choose(f *Finished, list []candidate) {
	r := &f.Replication
	r.Candidates = len(list)
	exact := r.Basis == BasisExact
	if len(list) == 0 {
		r.Basis = BasisUnknown
		return
	}
	replyIn := f.Sides[wire.ToClient].LastIn
	// The reply follows its release at once, so the latest is the likeliest.
	best := slices.MaxFunc(list, func(a, b candidate) int { return int(a.release.at - b.release.at) })
	late := replyIn.Sub(best.release.at)
	tie := min(max(late, leastTie), mostTie)
	least, most, rival := best.release.at.Sub(best.seen), best.release.at.Sub(best.seen), false
	for _, c := range list {
		rival = rival || c.release.rival(c.End, c.level, tie) != nil
		if c.release.by.name != best.release.by.name {
			r.Basis = BasisUnknown
			return
		}
		d := c.release.at.Sub(c.seen)
		least, most = min(least, d), max(most, d)
	}
	rival = rival || late > mostTie && g.otherWithin(max(mostTie, late/4), replyIn, best)
	r.Basis, r.ReleasedBy = BasisUnanimous, best.release.by.name
	r.Began, r.Released, r.Spread = best.seen, best.release.at, most-least
	switch {
	case rival:
		r.Basis, r.ReleasedBy = BasisTie, ""
	case exact && g.observed.waitedSince(best.commit, f.Conn.Time(best.release.at.Add(mostTie))) && g.otherWithin(late, replyIn, best):
		// It may have been the other one, by a rule that isn't known yet.
		r.Basis, r.ReleasedBy, r.Released = BasisUnknown, "", replyIn
	case exact:
		r.Basis = BasisExact
	case late > promptly:
		r.Basis = BasisThenPrimary
	}
	if len(list) == 1 {
		r.Commit, r.XID = best.End, best.XID
	}
	g.standings(f, best.End, best.level)
}

// otherWithin reports whether another member acknowledged within d before the
// reply. If that came long after the release, it may explain it better: a standby
// that has caught up counts from a moment on that only the primary knows, and the
// primary's processes may stand still.
func (g *replicas) otherWithin(d time.Duration, replyIn wire.Stamp, c candidate) bool {
	for _, m := range g.members {
		at, ok := m.reached[c.level].reached(c.End)
		if ok && m.name != c.release.by.name && at <= replyIn && replyIn.Sub(at) <= d {
			return true
		}
	}
	return false
}

// standings notes which members had a position when the reply left.
func (g *replicas) standings(f *Finished, p wire.Position, level wire.Level) {
	r := &f.Replication
	end := End(f.Exchange)
	for _, m := range g.members {
		if !m.there(r.Began) && !m.there(end) {
			continue
		}
		at, ok := m.reached[level].reached(p)
		if !ok || at > end {
			if m.left == 0 || m.left > end {
				r.Behind = append(r.Behind, m.name)
			}
			continue
		}
		sent, ok := m.sent.reached(p)
		if !ok || sent > at {
			sent = r.Began
		}
		r.Acknowledged = append(r.Acknowledged, MemberWait{Member: m.name, Sent: sent, Acknowledged: at})
	}
	slices.SortStableFunc(r.Acknowledged, func(a, b MemberWait) int { return int(a.Acknowledged - b.Acknowledged) })
}
