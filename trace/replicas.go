package trace

import (
	"slices"

	"github.com/wirewait/wirewait/wire"
)

// replicas are the members that receive one server's log, as far as they were
// seen, with all that was sent and acknowledged. It's the same for both
// protocols: which member a write waited for is a matter of its position, of a
// level, and of a rule (release.go).
type replicas struct {
	members []*member
	commits commits
	blind   bool // the log came and could not be read
	gaps    []gap

	// PostgreSQL's: whose transactions were seen.
	observed observations

	// MongoDB's: when the log was first read on its way to any member, the latest
	// term in it, and members' addresses by their ids.
	log   history
	term  uint64
	hosts map[string]string
}

// member is a connection over which a member receives the log, or, in MongoDB,
// a member whose positions come over any.
type member struct {
	name       string
	connection uint64
	// catching: what the server has written meanwhile is not all sent.
	// acknowledged: the server knows of something that's durable there.
	catching, acknowledged bool

	since, left wire.Stamp // since it acknowledged and caught up; left 0: it's there
	sent        history
	reached     [wire.Levels + 1]history // appliedAndDurable too
	heard       []wire.Stamp             // of its latest acknowledgements, whatever they said
}

// appliedAndDurable is the level of MongoDB's w: N with j: the lesser of the two.
const appliedAndDurable = wire.Levels

// gap is a stretch of time of which reports were lost.
type gap struct{ from, to wire.Stamp }

const (
	maxMembers = 256
	maxLeft    = 16 // of those that are gone
	maxHeard   = 256
	maxGaps    = 64
)

// there reports whether the member counts at a time: the server knows how far
// it has come, and its connection hasn't ended.
func (m *member) there(at wire.Stamp) bool {
	return m.since != 0 && m.since <= at && (m.left == 0 || at < m.left)
}

// report takes in what one message said.
func (g *replicas) report(r *wire.Report) {
	switch r.Kind {
	case wire.ReportJoined:
		g.leave(r) // a stream that ended unseen
		if !slices.ContainsFunc(g.members, func(m *member) bool { return m.left == 0 }) {
			// Meanwhile it may have become another server, whose log begins afresh.
			g.commits.forget(len(g.commits.list))
			g.observed = observations{}
		}
		g.member(r.Member, r.Connection).catching = !r.CaughtUp
	case wire.ReportLeft:
		g.leave(r)
	case wire.ReportSent:
		m := g.member(r.Member, r.Connection)
		m.sent.add(r.In, r.Sent, 0)
		if m.catching && r.CaughtUp {
			m.catching = false
			if m.acknowledged {
				m.since = r.In
			}
		}
		g.blind = r.Blind
		for _, c := range r.Commits {
			g.commits.add(c, r.In)
		}
	case wire.ReportReached:
		for i := range r.Reached {
			g.reached(r, &r.Reached[i])
		}
	}
}

func (g *replicas) reached(r *wire.Report, p *wire.Progress) {
	m := g.member(p.Member, r.Connection)
	for level, position := range p.Reached {
		m.reached[level].add(r.Out, position, max(r.Told.Sub(r.Out), 0))
	}
	if r.Set != nil {
		both := p.Reached[wire.Durable]
		if both.Reaches(p.Reached[wire.Applied]) {
			both = p.Reached[wire.Applied]
		}
		m.reached[appliedAndDurable].add(r.Out, both, max(r.Told.Sub(r.Out), 0))
	}
	m.acknowledged = m.acknowledged || !p.Reached[wire.Durable].IsZero()
	if m.since == 0 && m.acknowledged && !m.catching {
		m.since = r.Out
	}
	if len(m.heard) >= maxHeard {
		m.heard = slices.Delete(m.heard, 0, maxHeard/2)
	}
	m.heard = append(m.heard, r.Out)
}

// member finds the one of a connection, or makes it.
func (g *replicas) member(name string, connection uint64) *member {
	for _, m := range g.members {
		if m.left == 0 && m.connection == connection && m.name == name {
			return m
		}
	}
	if len(g.members) >= maxMembers { // the oldest, which is gone in all likelihood
		g.members = slices.Delete(g.members, 0, 1)
	}
	m := &member{name: name, connection: connection}
	g.members = append(g.members, m)
	return m
}

func (g *replicas) leave(r *wire.Report) {
	left := 0
	for _, m := range g.members {
		if m.left == 0 && m.connection == r.Connection {
			m.left = r.Out
		}
		if m.left != 0 {
			left++
		}
	}
	g.members = slices.DeleteFunc(g.members, func(m *member) bool {
		if m.left == 0 || left <= maxLeft {
			return false
		}
		left-- // those that left first are in front
		return true
	})
}

// lost notes that reports of that time are missing.
func (g *replicas) lost(from, to wire.Stamp) {
	if len(g.gaps) >= maxGaps {
		g.gaps = slices.Delete(g.gaps, 0, 1)
	}
	g.gaps = append(g.gaps, gap{from, to})
}

// whole reports whether nothing is missing of a stretch of time.
func (g *replicas) whole(from, to wire.Stamp) bool {
	for _, h := range g.gaps {
		if from <= h.to && h.from <= to {
			return false
		}
	}
	return true
}
